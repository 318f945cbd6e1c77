// SPDX-License-Identifier: BSD-3-Clause
/* Every rule of the fake driver is broken once, and the real driver's answer expected: here those of processes, contexts and memory. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/fakecuda/rules.h"

struct calls cu;
handle context[4];

void load(void)
{
    const char *build = getenv("TEST_BUILD");
    char path[1024];
    void *library;

    snprintf(path, sizeof path, "%s/tests/fakecuda/.libs/libcuda.so.1", build ? build : ".");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
#define X(name, symbol, parameters)              \
    *(void **)&cu.name = dlsym(library, symbol); \
    ck_assert_msg(cu.name != NULL, "no %s", symbol);
    CALLS(X)
#undef X
}

/* The driver, and the primary contexts of the first devices; the first is current. */
void begin(int devices)
{
    load();
    GOOD(cu.cuInit(0));
    for (int i = 0; i < devices; i++)
        GOOD(cu.cuDevicePrimaryCtxRetain(&context[i], i));
    GOOD(cu.cuCtxSetCurrent(context[0]));
}

handle function(const char *name)
{
    const uint32_t image[4] = {0xBA55ED50u};
    handle module, result;
    int registers;

    GOOD(cu.cuModuleLoadData(&module, image));
    GOOD(cu.cuModuleGetFunction(&result, module, name));
    GOOD(cu.cuFuncGetAttribute(&registers, 4, result));
    return result;
}

handle stream(void)
{
    handle result;

    GOOD(cu.cuStreamCreate(&result, FAKE_STREAM_NON_BLOCKING));
    return result;
}

int run(handle kernel, unsigned blocks, handle queue, struct fake_test argument)
{
    void *parameters[] = {&argument};

    return cu.cuLaunchKernel(kernel, blocks, 1, 1, 32, 1, 1, 0, queue, parameters, NULL);
}

address memory(size_t bytes)
{
    address result;

    GOOD(cu.cuMemAlloc(&result, bytes));
    return result;
}

uint64_t word(address at)
{
    uint64_t value = 0;

    GOOD(cu.cuMemcpyDtoH(&value, at, sizeof value));
    return value;
}

/* Ends the child as a caught signal would, without a report of a sanitizer. */
static void end_quietly(int number)
{
    _exit(128 + number);
}

/* ---- contexts and processes ---- */

START_TEST(nothing_before_init)
{
    int count;

    load();
    EXPECT(NOT_INITIALIZED, cu.cuDeviceGetCount(&count));
}
END_TEST

static void *without_context(void *data)
{
    address at;

    (void)data;
    EXPECT(INVALID_CONTEXT, cu.cuMemAlloc(&at, 64));
    return NULL;
}

START_TEST(context_is_the_threads)
{
    pthread_t thread;

    begin(1);
    pthread_create(&thread, NULL, without_context, NULL);
    pthread_join(thread, NULL);
    GOOD(cu.cuDevicePrimaryCtxRetain(&context[0], 0));
    GOOD(cu.cuDevicePrimaryCtxRelease(0));
    GOOD(cu.cuDevicePrimaryCtxRelease(0));
    EXPECT(INVALID_CONTEXT, cu.cuDevicePrimaryCtxRelease(0));
    EXPECT(CONTEXT_IS_DESTROYED, cu.cuCtxSynchronize());
}
END_TEST

START_TEST(unusable_after_fork)
{
    int status;
    pid_t child;

    begin(1);
    child = fork();
    if (child == 0) {
        int count;

        _exit(cu.cuInit(0) == NOT_INITIALIZED && cu.cuDeviceGetCount(&count) == NOT_INITIALIZED ? 0 : 1);
    }
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(visible_devices_are_renumbered)
{
    char bus[32];
    int count;

    setenv("CUDA_VISIBLE_DEVICES", "2,0,9,1", 1);
    begin(2);
    GOOD(cu.cuDeviceGetCount(&count));
    ck_assert_int_eq(count, 2);
    GOOD(cu.cuDeviceGetPCIBusId(bus, sizeof bus, 0));
    ck_assert_str_eq(bus, "0000:03:00.0");
}
END_TEST

START_TEST(instances_share_a_board)
{
    struct fake_uuid own[2], board[2];

    setenv("FAKECUDA_MACHINE", "device bus=0000:0a:00.0 instance=1 uuid=1;device bus=0000:0a:00.0 instance=1 uuid=2",
           1);
    begin(2);
    for (int i = 0; i < 2; i++) {
        GOOD(cu.cuDeviceGetUuid(&own[i], i));
        GOOD(cu.cuDeviceGetBoard(&board[i], i));
    }
    ck_assert_int_ne(memcmp(&own[0], &own[1], sizeof own[0]), 0);
    ck_assert_int_eq(memcmp(&board[0], &board[1], sizeof board[0]), 0);
}
END_TEST

/* ---- memory ---- */

START_TEST(host_cannot_follow_device_addresses)
{
    int status;
    pid_t child;
    address at;

    begin(1);
    at = memory(64);
    child = fork();
    if (child == 0) {
        signal(SIGSEGV, end_quietly);
        _exit(*(volatile char *)(uintptr_t)at);
    }
    waitpid(child, &status, 0);
    ck_assert_int_eq(WEXITSTATUS(status), 128 + SIGSEGV);
}
END_TEST

/* A kernel that touches what it must not: the error comes late, and stays. */
static void expect_fault(address at)
{
    handle kernel = function("fake_test_fill"), queue = stream();
    address more;

    GOOD(run(kernel, 1, queue, (struct fake_test){.at = at, .count = 1}));
    EXPECT(ILLEGAL_ADDRESS, cu.cuStreamSynchronize(queue));
    EXPECT(ILLEGAL_ADDRESS, cu.cuMemAlloc(&more, 64));
    EXPECT(ILLEGAL_ADDRESS, run(kernel, 1, queue, (struct fake_test){.at = at, .count = 1}));
}

START_TEST(kernels_reach_device_memory_only)
{
    static uint64_t host[8];
    void *pinned;
    address at;

    setenv("FAKECUDA_GUARD", "16", 1);
    begin(2);
    at = memory(4096);
    switch (_i) {
    case 0: /* the host's memory */
        expect_fault((address)(uintptr_t)host);
        break;
    case 1: /* past the end */
        expect_fault(at + 4096);
        break;
    case 2: /* freed */
        GOOD(cu.cuMemFree(at));
        expect_fault(at);
        break;
    case 3: /* a peer's, without access */
        GOOD(cu.cuCtxSetCurrent(context[1]));
        expect_fault(at);
        break;
    default: /* the host address of pinned memory */
        GOOD(cu.cuMemHostAlloc(&pinned, 64, 0));
        expect_fault((address)(uintptr_t)pinned);
    }
}
END_TEST

START_TEST(peers_reach_each_other_once_enabled)
{
    address at;

    begin(2);
    at = memory(64);
    GOOD(cu.cuCtxSetCurrent(context[1]));
    EXPECT(INVALID_CONTEXT, cu.cuCtxEnablePeerAccess(context[1], 0));
    GOOD(cu.cuCtxEnablePeerAccess(context[0], 0));
    EXPECT(PEER_ACCESS_ALREADY_ENABLED, cu.cuCtxEnablePeerAccess(context[0], 0));
    GOOD(run(function("fake_test_fill"), 1, NULL, (struct fake_test){.at = at, .value = 7, .count = 1}));
    ck_assert_uint_eq(word(at), 7);
}
END_TEST

START_TEST(no_path_no_access)
{
    int can = 1;

    setenv("FAKECUDA_PEERS", "0-1=none", 1);
    begin(2);
    GOOD(cu.cuDeviceCanAccessPeer(&can, 0, 1));
    ck_assert_int_eq(can, 0);
    EXPECT(PEER_ACCESS_UNSUPPORTED, cu.cuCtxEnablePeerAccess(context[1], 0));
}
END_TEST

START_TEST(broken_paths_spoil_data)
{
    address at;

    setenv("FAKECUDA_PEERS", _i ? "1-0=flip" : "1-0=lose", 1);
    begin(2);
    at = memory(64);
    GOOD(cu.cuCtxSetCurrent(context[1]));
    GOOD(cu.cuCtxEnablePeerAccess(context[0], 0));
    GOOD(run(function("fake_test_fill"), 1, NULL, (struct fake_test){.at = at, .value = 1ull << 50, .count = 1}));
    GOOD(cu.cuCtxSynchronize());
    GOOD(cu.cuCtxSetCurrent(context[0]));
    ck_assert_uint_eq(word(at), _i ? 1ull << 50 | 1ull << 40 : 0xA5A5A5A5A5A5A5A5ull);
}
END_TEST

START_TEST(memory_ends)
{
    address at;

    setenv("FAKECUDA_MEMORY", "1", 1);
    begin(1);
    at = memory(1000000);
    EXPECT(OUT_OF_MEMORY, cu.cuMemAlloc(&at, 100000));
    EXPECT(INVALID_VALUE, cu.cuMemFree(at + 8));
    GOOD(cu.cuMemFree(at));
    EXPECT(INVALID_VALUE, cu.cuMemFree(at));
}
END_TEST

START_TEST(mapped_memory_has_another_address)
{
    const size_t bytes = 8192;
    uint64_t *host;
    address at;

    begin(2);
    host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, (_i ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
    host[1] = 11;
    EXPECT(INVALID_VALUE, cu.cuMemHostGetDevicePointer(&at, host, 0));
    EXPECT(HOST_MEMORY_NOT_REGISTERED, cu.cuMemHostUnregister(host));
    GOOD(cu.cuMemHostRegister(host, bytes, FAKE_HOST_DEVICEMAP | FAKE_HOST_PORTABLE));
    EXPECT(HOST_MEMORY_ALREADY_REGISTERED, cu.cuMemHostRegister(host, bytes, 0));
    GOOD(cu.cuMemHostGetDevicePointer(&at, host, 0));
    ck_assert_uint_ne(at, (address)(uintptr_t)host);
    GOOD(cu.cuCtxSetCurrent(context[1]));
    GOOD(run(function("fake_test_copy"), 1, NULL, (struct fake_test){.at = at, .other = at + 8, .count = 1}));
    GOOD(cu.cuCtxSynchronize());
    ck_assert_uint_eq(host[0], 11);
    GOOD(cu.cuMemHostUnregister(host));
    ck_assert_uint_eq(host[1], 11);
}
END_TEST

/* By its host address it is good, by its device address lost or changed. */
START_TEST(mapped_path_is_broken)
{
    const uint64_t there = 11;
    handle memory = NULL;
    address at, from;
    uint64_t *host;

    setenv("FAKECUDA_MAPPED_PATH", _i ? "3" : "2", 1);
    begin(1);
    GOOD(cu.cuMemAlloc(&from, 8));
    GOOD(cu.cuMemcpyHtoD(from, &there, 8));
    GOOD(cu.cuMemHostAlloc((void **)&memory, 8, FAKE_HOST_DEVICEMAP));
    host = memory;
    *host = 7;
    GOOD(cu.cuMemHostGetDevicePointer(&at, host, 0));
    GOOD(cu.cuMemcpyAsync(at, from, 8, NULL));
    GOOD(cu.cuCtxSynchronize());
    ck_assert_uint_eq(*host, _i ? 11 ^ (uint64_t)1 << 56 : 7);
    GOOD(cu.cuMemcpyAsync((address)(uintptr_t)host, from, 8, NULL));
    GOOD(cu.cuCtxSynchronize());
    ck_assert_uint_eq(*host, 11);
}
END_TEST

static void rules_of_memory(TCase *tests)
{
    tcase_add_test(tests, nothing_before_init);
    tcase_add_test(tests, context_is_the_threads);
    tcase_add_loop_test(tests, mapped_path_is_broken, 0, 2);
    tcase_add_test(tests, unusable_after_fork);
    tcase_add_test(tests, visible_devices_are_renumbered);
    tcase_add_test(tests, instances_share_a_board);
    tcase_add_test(tests, host_cannot_follow_device_addresses);
    tcase_add_loop_test(tests, kernels_reach_device_memory_only, 0, 5);
    tcase_add_test(tests, peers_reach_each_other_once_enabled);
    tcase_add_test(tests, no_path_no_access);
    tcase_add_loop_test(tests, broken_paths_spoil_data, 0, 2);
    tcase_add_test(tests, memory_ends);
    tcase_add_loop_test(tests, mapped_memory_has_another_address, 0, 2);
}

int main(void)
{
    Suite *suite = suite_create("fake driver");
    TCase *tests = tcase_create("rules");
    SRunner *runner;
    int failed;

    setenv("FAKECUDA_NOISE", "0", 1);
    rules_of_memory(tests);
    rules_of_work(tests);
    rules_of_sharing(tests);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
