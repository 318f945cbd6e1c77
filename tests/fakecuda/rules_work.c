// SPDX-License-Identifier: BSD-3-Clause
/* Rules of streams, events and kernels. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tests/fakecuda/rules.h"

/* ---- streams ---- */

static void nap(void *data)
{
    usleep(*(unsigned *)data);
}

START_TEST(work_is_late)
{
    static unsigned pause = 50000;
    handle queue;
    void *pinned;
    uint64_t pageable = 1;
    address at, other;

    begin(1);
    queue = stream();
    at = memory(16);
    other = memory(16);
    GOOD(cu.cuMemHostAlloc(&pinned, 8, 0));
    *(uint64_t *)pinned = 2;
    GOOD(cu.cuLaunchHostFunc(queue, nap, &pause));
    GOOD(cu.cuMemcpyHtoDAsync(at, pinned, 8, queue));
    GOOD(cu.cuMemcpyHtoDAsync(other, &pageable, 8, queue));
    *(uint64_t *)pinned = 3; /* too early: the copy takes this */
    pageable = 4;            /* not too early: pageable memory was taken */
    EXPECT(NOT_READY, cu.cuStreamQuery(queue));
    GOOD(cu.cuStreamSynchronize(queue));
    ck_assert_uint_eq(word(at), 3);
    ck_assert_uint_eq(word(other), 1);
}
END_TEST

START_TEST(lazy_work_waits_for_a_wait)
{
    handle queue, kernel;
    void *pinned;
    address at;

    setenv("FAKECUDA_LAZY", "60000", 1);
    begin(1);
    queue = stream();
    kernel = function("fake_test_fill");
    GOOD(cu.cuMemHostAlloc(&pinned, 8, 0));
    GOOD(cu.cuMemHostGetDevicePointer(&at, pinned, 0));
    GOOD(run(kernel, 1, queue, (struct fake_test){.at = at, .value = 5, .count = 1}));
    usleep(20000);
    ck_assert_uint_eq(__atomic_load_n((uint64_t *)pinned, __ATOMIC_RELAXED), 0xA5A5A5A5A5A5A5A5ull);
    GOOD(cu.cuStreamSynchronize(queue));
    ck_assert_uint_eq(*(uint64_t *)pinned, 5);
}
END_TEST

START_TEST(streams_belong_to_contexts)
{
    handle queue, event;
    address at;

    begin(2);
    queue = stream();
    GOOD(cu.cuEventCreate(&event, 0));
    GOOD(cu.cuCtxSetCurrent(context[1]));
    at = memory(8);
    EXPECT(INVALID_HANDLE, cu.cuMemcpyDtoDAsync(at, at, 8, queue));
    EXPECT(INVALID_HANDLE, cu.cuEventRecord(event, stream()));
    GOOD(cu.cuCtxSetCurrent(context[0]));
    GOOD(cu.cuStreamDestroy(queue));
    EXPECT(INVALID_HANDLE, cu.cuStreamSynchronize(queue));
}
END_TEST

START_TEST(events_stand_for_their_last_record)
{
    static unsigned pause = 50000;
    handle first, second, event;

    begin(1);
    first = stream();
    second = stream();
    GOOD(cu.cuEventCreate(&event, 0));
    GOOD(cu.cuEventQuery(event)); /* never recorded: reached */
    GOOD(cu.cuStreamWaitEvent(second, event, 0));
    GOOD(cu.cuLaunchHostFunc(first, nap, &pause));
    GOOD(cu.cuEventRecord(event, first));
    GOOD(cu.cuStreamSynchronize(second)); /* waited for nothing */
    EXPECT(NOT_READY, cu.cuEventQuery(event));
    GOOD(cu.cuStreamWaitEvent(second, event, 0));
    GOOD(cu.cuStreamSynchronize(second));
    GOOD(cu.cuEventQuery(event));
}
END_TEST

START_TEST(legacy_stream_orders_blocking_ones)
{
    static unsigned pause = 50000;
    uint64_t one = 1, two = 2;
    handle blocking;
    address at;

    begin(1);
    at = memory(8);
    GOOD(cu.cuStreamCreate(&blocking, 0));
    GOOD(cu.cuLaunchHostFunc(blocking, nap, &pause));
    GOOD(cu.cuMemcpyHtoDAsync(at, &one, 8, blocking));
    GOOD(cu.cuMemcpyHtoD(at, &two, 8)); /* after the blocking stream */
    GOOD(cu.cuStreamSynchronize(blocking));
    ck_assert_uint_eq(word(at), 2);
}
END_TEST

static atomic_bool gate;

static void wait_at_gate(void *unused)
{
    (void)unused;
    while (!atomic_load(&gate))
        usleep(100);
}

static void *elsewhere(void *status)
{
    cu.cuCtxSetCurrent(context[0]);
    *(int *)status = cu.cuStreamQuery((handle)2);
    return NULL;
}

/* The handle of the per-thread default stream means another stream in each thread; the legacy stream waits for all of them. */
START_TEST(default_streams_of_threads)
{
    uint64_t one = 1;
    int status = -1;
    pthread_t thread;
    address at;

    begin(1);
    at = memory(8);
    GOOD(cu.cuLaunchHostFunc((handle)2, wait_at_gate, NULL));
    pthread_create(&thread, NULL, elsewhere, &status);
    pthread_join(thread, NULL);
    ck_assert_int_eq(status, OK);
    EXPECT(NOT_READY, cu.cuStreamQuery((handle)2));
    GOOD(cu.cuMemcpyHtoDAsync(at, &one, 8, (handle)1));
    EXPECT(NOT_READY, cu.cuStreamQuery((handle)1));
    atomic_store(&gate, true);
    GOOD(cu.cuStreamSynchronize((handle)1));
    GOOD(cu.cuStreamQuery((handle)2));
    EXPECT(INVALID_HANDLE, cu.cuStreamDestroy((handle)2));
}
END_TEST

static int inside;
static void call_inside(void *data)
{
    inside = cu.cuStreamQuery(data);
}

static atomic_int callers, most_callers;

static void count_callers(void *unused)
{
    const int now = atomic_fetch_add(&callers, 1) + 1;

    (void)unused;
    if (now > atomic_load(&most_callers))
        atomic_store(&most_callers, now);
    usleep(2000);
    atomic_fetch_sub(&callers, 1);
}

/* Whoever waits in one for another stream's waits for ever. */
START_TEST(host_functions_run_one_by_one)
{
    enum { STREAMS = 4 };
    handle queue[STREAMS];

    begin(1);
    for (int i = 0; i < STREAMS; i++)
        queue[i] = stream();
    for (int i = 0; i < 4 * STREAMS; i++)
        GOOD(cu.cuLaunchHostFunc(queue[i % STREAMS], count_callers, NULL));
    for (int i = 0; i < STREAMS; i++)
        GOOD(cu.cuStreamSynchronize(queue[i]));
    ck_assert_int_eq(atomic_load(&most_callers), 1);
}
END_TEST

START_TEST(host_functions_may_not_call)
{
    handle queue;

    begin(1);
    queue = stream();
    GOOD(cu.cuLaunchHostFunc(queue, call_inside, queue));
    GOOD(cu.cuStreamSynchronize(queue));
    ck_assert_int_eq(inside, NOT_PERMITTED);
}
END_TEST

/* ---- kernels ---- */

START_TEST(blocks_are_resident_up_to_a_limit)
{
    const struct fake_test argument = {.value = 1};
    struct fake_test meet = argument;
    void *parameters[] = {&meet};
    handle kernel, queue;

    setenv("FAKECUDA_SMS", "2", 1);
    setenv("FAKECUDA_BLOCKS", "2", 1);
    begin(1);
    kernel = function("fake_test_meet");
    queue = stream();
    meet.at = memory(64);
    GOOD(cu.cuMemcpyHtoD(meet.at, (uint64_t[8]){0}, 64));
    EXPECT(COOPERATIVE_LAUNCH_TOO_LARGE, cu.cuLaunchCooperativeKernel(kernel, 5, 1, 1, 32, 1, 1, 0, queue, parameters));
    GOOD(cu.cuLaunchCooperativeKernel(kernel, 4, 1, 1, 32, 1, 1, 0, queue, parameters));
    GOOD(cu.cuStreamSynchronize(queue));
    meet.value = 2; /* five blocks that wait for each other: one never begins */
    GOOD(run(kernel, 5, queue, meet));
    usleep(100000);
    EXPECT(NOT_READY, cu.cuStreamQuery(queue));
}
END_TEST

START_TEST(blocks_beyond_the_limit_follow)
{
    address at;

    setenv("FAKECUDA_SMS", "1", 1);
    setenv("FAKECUDA_THREADS", "4", 1);
    begin(1);
    at = memory(8000);
    GOOD(run(function("fake_test_fill"), 50, NULL, (struct fake_test){.at = at, .value = 100, .count = 1000}));
    ck_assert_uint_eq(word(at + 7992), 1099);
    GOOD(run(function("fake_test_turn"), 1, NULL, (struct fake_test){.at = at, .value = 10}));
    ck_assert_uint_eq(word(at), 11);
    ck_assert_uint_eq(word(at + 24), 10);
}
END_TEST

START_TEST(kernels_wait_for_each_other)
{
    handle first, second, post;
    address at;

    begin(2);
    at = memory(16);
    GOOD(cu.cuMemcpyHtoD(at, (uint64_t[2]){0}, 16));
    first = stream();
    GOOD(run(function("fake_test_wait"), 2, first, (struct fake_test){.at = at, .other = at + 8, .value = 3}));
    EXPECT(NOT_READY, cu.cuStreamQuery(first));
    GOOD(cu.cuCtxSetCurrent(context[1]));
    GOOD(cu.cuCtxEnablePeerAccess(context[0], 0));
    second = stream();
    post = function("fake_test_post");
    GOOD(run(post, 1, second, (struct fake_test){.at = at, .value = 3}));
    GOOD(cu.cuStreamSynchronize(second));
    GOOD(cu.cuCtxSetCurrent(context[0]));
    GOOD(cu.cuStreamSynchronize(first));
    ck_assert_uint_eq(word(at + 8), 3);
}
END_TEST

START_TEST(images_and_names)
{
    const uint32_t image[4] = {0xBA55ED50u}, text[4] = {1};
    handle module, kernel;

    if (_i)
        setenv("FAKECUDA_NO_BINARY", "1", 1);
    begin(1);
    EXPECT(INVALID_IMAGE, cu.cuModuleLoadData(&module, text));
    EXPECT(_i ? NO_BINARY_FOR_GPU : OK, cu.cuModuleLoadData(&module, image));
    if (!_i)
        EXPECT(NOT_FOUND, cu.cuModuleGetFunction(&kernel, module, "no_such_kernel"));
}
END_TEST

void rules_of_work(TCase *tests)
{
    tcase_add_test(tests, work_is_late);
    tcase_add_test(tests, lazy_work_waits_for_a_wait);
    tcase_add_test(tests, streams_belong_to_contexts);
    tcase_add_test(tests, events_stand_for_their_last_record);
    tcase_add_test(tests, legacy_stream_orders_blocking_ones);
    tcase_add_test(tests, default_streams_of_threads);
    tcase_add_test(tests, host_functions_run_one_by_one);
    tcase_add_test(tests, host_functions_may_not_call);
    tcase_add_test(tests, blocks_are_resident_up_to_a_limit);
    tcase_add_test(tests, blocks_beyond_the_limit_follow);
    tcase_add_test(tests, kernels_wait_for_each_other);
    tcase_add_loop_test(tests, images_and_names, 0, 2);
}
