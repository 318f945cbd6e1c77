// SPDX-License-Identifier: BSD-3-Clause
/* Devices, contexts, kinds of memory, copies and streams on a driver: every test is a process of its own, which starts the
 * driver. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"
#include "mem_cuda.h"

/* ---- devices and contexts ---- */

/* Not the first device, where there are several. */
static int the_other(void)
{
    return the_driver()->devices > 1;
}

START_TEST(devices_are_told_apart)
{
    const struct hoop_cuda_driver *driver = the_driver();
    struct hoop_cuda_device a, b;

    ck_assert_int_ge(driver->devices, 2);
    for (int i = 0; i < driver->devices; i++)
        for (int j = 0; j < driver->devices; j++) {
            GOOD(hoop_cuda_device(i, &a));
            GOOD(hoop_cuda_device(j, &b));
            ck_assert_int_eq(a.ordinal, i);
            ck_assert_int_eq(memcmp(a.uuid, b.uuid, sizeof a.uuid) == 0, i == j);
            ck_assert_int_eq(strcmp(a.bus, b.bus) == 0, i == j);
            ck_assert_int_gt(a.multiprocessors, 0);
            ck_assert_uint_gt(a.bytes, 0);
            ck_assert(a.name[0] != 0);
        }
    REFUSED(hoop_cuda_device(driver->devices, &a), HOOP_ERR_ARG, "there is no CUDA device");
    REFUSED(hoop_cuda_device(-1, &a), HOOP_ERR_ARG, "there is no CUDA device -1");
}
END_TEST

START_TEST(contexts_are_shared_and_counted)
{
    struct hoop_cuda *first = device(0), *second = device(0), *other = device(1);
    unsigned flags;
    int active = -1;

    ck_assert_ptr_eq(first, second);
    ck_assert_ptr_ne(first, other);
    const struct hoop_cuda_driver *driver = first->driver;
    hoop_cuda_close(first);
    driver->cuDevicePrimaryCtxGetState(0, &flags, &active);
    ck_assert_int_eq(active, 1);
    hoop_cuda_close(second);
    driver->cuDevicePrimaryCtxGetState(0, &flags, &active);
    ck_assert_int_eq(active, 0);
    hoop_cuda_close(other);
}
END_TEST

/* Whatever is called, the program's own context stays current; the calls go to their device nevertheless. */
START_TEST(the_current_context_is_put_back)
{
    struct hoop_cuda *ours = device(1), *users = device(0);
    const struct hoop_cuda_driver *driver = ours->driver;
    hoop_cu_context none[] = {NULL, users->context}, now;
    hoop_cu_address address, host_address;
    struct hoop_cuda_export export;
    struct hoop_cuda_memory memory;
    hoop_cu_stream stream;
    hoop_cu_event event;
    int ordinal = -1;
    bool capturing;
    void *host;

    for (int i = 0; i < 2; i++) {
        driver->cuCtxSetCurrent(none[i]);
#define KEEPS(call)                                                        \
    do {                                                                   \
        GOOD(call);                                                        \
        driver->cuCtxGetCurrent(&now);                                     \
        ck_assert_msg(now == none[i], "%s leaves another context", #call); \
    } while (0)
        KEEPS(hoop_cuda_alloc(ours, 5000, &address));
        KEEPS(hoop_cuda_classify(driver, at(address), &memory));
        ck_assert_int_eq(memory.ordinal, 1);
        KEEPS(hoop_cuda_stream_create(ours, true, &stream));
        KEEPS(hoop_cuda_stream_device(driver, stream, &ordinal));
        ck_assert_int_eq(ordinal, 1);
        KEEPS(hoop_cuda_stream_capturing(ours, stream, &capturing));
        ck_assert(!capturing);
        KEEPS(hoop_cuda_event_create(ours, &event));
        KEEPS(hoop_cuda_event_record(ours, event, stream));
        KEEPS(hoop_cuda_stream_wait_event(ours, stream, event));
        KEEPS(hoop_cuda_host_alloc(ours, 4096, &host, &host_address));
        KEEPS(hoop_cuda_fill(ours, address, 3, 100, stream));
        KEEPS(hoop_cuda_copy(ours, host, at(address), 100, stream));
        KEEPS(hoop_cuda_stream_wait(ours, stream, UINT64_MAX));
        KEEPS(hoop_cuda_event_query(ours, event));
        KEEPS(hoop_cuda_export(ours, at(address), &export));
        KEEPS(hoop_cuda_host_free(ours, host));
        KEEPS(hoop_cuda_event_destroy(ours, event));
        KEEPS(hoop_cuda_stream_destroy(ours, stream));
        KEEPS(hoop_cuda_free(ours, address));
    }
    driver->cuCtxSetCurrent(NULL);
    hoop_cuda_close(users);
    hoop_cuda_close(ours);
}
END_TEST

static void *current_elsewhere(void *ordinal)
{
    const char *reason;

    *(int *)ordinal = hoop_cuda_current(&reason);
    return NULL;
}

START_TEST(the_current_device_is_the_threads)
{
    const char *reason = "";
    pthread_t thread;
    int elsewhere = 7;

    ck_assert_int_eq(hoop_cuda_current(&reason), -1);
    ck_assert_str_eq(reason, "CUDA is not in use in this process");
    struct hoop_cuda *cuda = device(the_other());
    ck_assert_int_eq(hoop_cuda_current(&reason), -1);
    ck_assert(strstr(reason, "no CUDA context is current") != NULL);
    GOOD(hoop_cuda_enter(cuda));
    ck_assert_int_eq(hoop_cuda_current(&reason), the_other());
    pthread_create(&thread, NULL, current_elsewhere, &elsewhere);
    pthread_join(thread, NULL);
    ck_assert_int_eq(elsewhere, -1);
    hoop_cuda_leave(cuda);
    ck_assert_int_eq(hoop_cuda_current(&reason), -1);
    hoop_cuda_close(cuda);
}
END_TEST

START_TEST(a_forked_child_is_told)
{
    const struct hoop_cuda_driver *driver = the_driver();
    int end = -1;

    const pid_t child = fork();
    if (child == 0)
        _exit(hoop_cuda_driver(&driver) == HOOP_ERR_UNSUPPORTED && strstr(hoop_error_text(), "then forked") ? 0 : 1);
    ck_assert_int_eq(waitpid(child, &end, 0), child);
    ck_assert_int_eq(end, 0);
}
END_TEST

/* ---- what a pointer is ---- */

START_TEST(host_memory_of_all_kinds)
{
    struct hoop_cuda *cuda = device(the_other());
    hoop_cu_address address;
    char here[10], *heap = malloc(100);
    void *pinned, *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    expect_kind(NULL, HOOP_CUDA_HOST, -1);
    expect_kind(here, HOOP_CUDA_HOST, -1);
    expect_kind(heap, HOOP_CUDA_HOST, -1);
    expect_kind(shared, HOOP_CUDA_HOST, -1);
    GOOD(hoop_cuda_host_alloc(cuda, 5000, &pinned, &address));
    expect_kind((char *)pinned + 77, HOOP_CUDA_PINNED, the_other());
    GOOD(hoop_cuda_host_register(cuda, shared, 8192, &address));
    expect_kind((char *)shared + 4097, HOOP_CUDA_PINNED, the_other());
    GOOD(hoop_cuda_host_unregister(cuda, shared));
    expect_kind(shared, HOOP_CUDA_HOST, -1);
    if (cuda->driver->cuMemAllocManaged) {
        GOOD(hoop_cuda_enter(cuda));
        ck_assert_int_eq(cuda->driver->cuMemAllocManaged(&address, 4096, HOOP_CU_MANAGED_ATTACH_GLOBAL), 0);
        hoop_cuda_leave(cuda);
        expect_kind(at(address), HOOP_CUDA_MANAGED, the_other());
        GOOD(hoop_cuda_free(cuda, address));
    }
    GOOD(hoop_cuda_host_free(cuda, pinned));
    free(heap);
    munmap(shared, 8192);
    hoop_cuda_close(cuda);
}
END_TEST

START_TEST(device_memory_of_all_kinds)
{
    struct hoop_cuda *cuda = device(the_other());
    struct hoop_cuda_memory memory, other;
    struct hoop_cuda_block block = {0};
    hoop_cu_address address, second;

    GOOD(hoop_cuda_alloc(cuda, 100000, &address));
    GOOD(hoop_cuda_alloc(cuda, 100000, &second));
    GOOD(hoop_cuda_classify(cuda->driver, at(address + 99999), &memory));
    ck_assert_int_eq(memory.kind, HOOP_CUDA_DEVICE);
    ck_assert_int_eq(memory.ordinal, the_other());
    ck_assert_uint_eq(memory.base, address);
    ck_assert_uint_ge(memory.bytes, 100000);
    ck_assert(memory.ipc && !memory.posix_fd);
    GOOD(hoop_cuda_classify(cuda->driver, at(second), &other));
    ck_assert_uint_ne(memory.id, other.id);
    GOOD(hoop_cuda_free(cuda, address));
    GOOD(hoop_cuda_free(cuda, second));

    GOOD(hoop_cuda_block_alloc(cuda, 5000, &block));
    ck_assert_uint_ge(block.bytes, 5000);
    GOOD(hoop_cuda_classify(cuda->driver, at(block.address + 4000), &memory));
    ck_assert_int_eq(memory.kind, HOOP_CUDA_DEVICE);
    ck_assert(!memory.ipc && memory.posix_fd);
    GOOD(hoop_cuda_block_free(cuda, &block));
    ck_assert_uint_eq(block.bytes, 0);
    GOOD(hoop_cuda_block_free(cuda, &block));
    hoop_cuda_close(cuda);
}
END_TEST

START_TEST(running_out_says_what_is_left)
{
    struct hoop_cuda *cuda = device(0);
    struct hoop_cuda_block block;
    hoop_cu_address address;
    char words[64];

    snprintf(words, sizeof words, "has no %zu bytes left", (size_t)1 << 42);
    REFUSED(hoop_cuda_alloc(cuda, (size_t)1 << 42, &address), HOOP_ERR_MEMORY, words);
    REFUSED(hoop_cuda_block_alloc(cuda, (size_t)1 << 42, &block), HOOP_ERR_MEMORY, words);
    REFUSED(hoop_cuda_block_alloc(cuda, 0, &block), HOOP_ERR_ARG, "0 bytes");
    hoop_cuda_close(cuda);
}
END_TEST

/* ---- copies and streams ---- */

START_TEST(copies_of_all_sizes_and_ways)
{
    enum { MOST = 300000 };
    struct hoop_cuda *cuda = device(the_other());
    unsigned char *from = malloc(MOST), *to = malloc(MOST);
    hoop_cu_address a, b;

    GOOD(hoop_cuda_alloc(cuda, MOST, &a));
    GOOD(hoop_cuda_alloc(cuda, MOST, &b));
    for (size_t bytes = 1; bytes <= MOST; bytes = bytes * 3 + 1) {
        number_bytes(from, bytes, (unsigned)bytes);
        memset(to, 0, MOST);
        put(cuda, a, from, bytes);
        put(cuda, b, at(a), bytes); /* from one to the other on the device */
        get(cuda, to, b, bytes);
        ck_assert_msg(memcmp(from, to, bytes) == 0, "%zu bytes", bytes);
    }
    GOOD(hoop_cuda_copy(cuda, NULL, NULL, 0, NULL));
    GOOD(hoop_cuda_free(cuda, a));
    GOOD(hoop_cuda_free(cuda, b));
    free(from);
    free(to);
    hoop_cuda_close(cuda);
}
END_TEST

static atomic_int gate;

static void wait_at_gate(void *unused)
{
    (void)unused;
    while (atomic_load(&gate) == 0)
        usleep(1000);
}

static hoop_cu_stream blocked_stream(struct hoop_cuda *cuda)
{
    hoop_cu_stream stream;

    GOOD(hoop_cuda_stream_create(cuda, false, &stream));
    GOOD(hoop_cuda_enter(cuda));
    GOOD(hoop_cuda_check(cuda->driver->cuLaunchHostFunc(stream, wait_at_gate, NULL), "cuLaunchHostFunc", 0));
    hoop_cuda_leave(cuda);
    return stream;
}

START_TEST(waiting_has_a_deadline)
{
    struct hoop_cuda *cuda = device(0);
    const hoop_cu_stream stream = blocked_stream(cuda);

    ck_assert_int_eq(hoop_cuda_stream_query(cuda, stream), HOOP_AGAIN);
    REFUSED(hoop_cuda_stream_wait(cuda, stream, hoop_deadline(0.02)), HOOP_ERR_TIMEOUT, "has not ended in time");
    atomic_store(&gate, 1);
    GOOD(hoop_cuda_stream_wait(cuda, stream, UINT64_MAX));
    GOOD(hoop_cuda_stream_query(cuda, stream));
    GOOD(hoop_cuda_stream_destroy(cuda, stream));
    hoop_cuda_close(cuda);
}
END_TEST

START_TEST(events_order_streams)
{
    struct hoop_cuda *cuda = device(0);
    const hoop_cu_stream first = blocked_stream(cuda);
    hoop_cu_stream second;
    hoop_cu_event event;
    hoop_cu_address address;
    unsigned char byte = 0;

    GOOD(hoop_cuda_stream_create(cuda, false, &second));
    GOOD(hoop_cuda_event_create(cuda, &event));
    GOOD(hoop_cuda_event_query(cuda, event)); /* never recorded */
    GOOD(hoop_cuda_alloc(cuda, 1, &address));
    GOOD(hoop_cuda_fill(cuda, address, 17, 1, first));
    GOOD(hoop_cuda_event_record(cuda, event, first));
    GOOD(hoop_cuda_stream_wait_event(cuda, second, event));
    GOOD(hoop_cuda_copy(cuda, &byte, at(address), 1, second));
    ck_assert_int_eq(hoop_cuda_event_query(cuda, event), HOOP_AGAIN);
    ck_assert_int_eq(hoop_cuda_stream_query(cuda, second), HOOP_AGAIN);
    atomic_store(&gate, 1);
    GOOD(hoop_cuda_stream_wait(cuda, second, UINT64_MAX));
    ck_assert_int_eq(byte, 17);
    GOOD(hoop_cuda_event_destroy(cuda, event));
    GOOD(hoop_cuda_stream_destroy(cuda, first));
    GOOD(hoop_cuda_stream_destroy(cuda, second));
    GOOD(hoop_cuda_free(cuda, address));
    hoop_cuda_close(cuda);
}
END_TEST

START_TEST(peers_reach_each_other)
{
    struct hoop_cuda *a = device(0), *b = device(1);
    unsigned char numbers[1000];
    hoop_cu_address there;

    number_bytes(numbers, sizeof numbers, 5);
    GOOD(hoop_cuda_reach(a, a));
    GOOD(hoop_cuda_reach(a, b));
    GOOD(hoop_cuda_reach(a, b)); /* again */
    GOOD(hoop_cuda_alloc(b, sizeof numbers, &there));
    put(a, there, numbers, sizeof numbers);
    expect_numbers(b, there, sizeof numbers, 5);
    GOOD(hoop_cuda_free(b, there));
    hoop_cuda_close(a);
    hoop_cuda_close(b);
}
END_TEST

int main(int count, char **arguments)
{
    (void)count;
    cuda_driver_or_skip(arguments);
    cuda_devices(4);
    unsetenv("HOOP_DEVICE");
    Suite *suite = suite_create("cuda");
    TCase *cases = tcase_create("devices");
    if (cuda_suits("devices, contexts and peers", 2, false)) {
        tcase_add_test(cases, devices_are_told_apart);
        tcase_add_test(cases, contexts_are_shared_and_counted);
        tcase_add_test(cases, the_current_context_is_put_back);
        tcase_add_test(cases, peers_reach_each_other);
    }
    tcase_add_test(cases, the_current_device_is_the_threads);
    tcase_add_test(cases, a_forked_child_is_told);
    tcase_add_test(cases, host_memory_of_all_kinds);
    tcase_add_test(cases, device_memory_of_all_kinds);
    tcase_add_test(cases, running_out_says_what_is_left);
    tcase_add_test(cases, copies_of_all_sizes_and_ways);
    tcase_add_test(cases, waiting_has_a_deadline);
    tcase_add_test(cases, events_order_streams);
    suite_add_tcase(suite, cases);
    return harness_suite(suite);
}
