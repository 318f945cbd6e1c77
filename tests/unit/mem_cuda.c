// SPDX-License-Identifier: BSD-3-Clause
/* Devices, contexts, memory and streams on the fake driver: every test is a process of its own, which starts the driver. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cuda_help.h"
#include "mem/cuda.h"

#define GOOD(call)                                                          \
    do {                                                                    \
        const enum hoop_status good = (call);                               \
        ck_assert_msg(good == HOOP_OK, "%s: %s", #call, hoop_error_text()); \
    } while (0)

#define REFUSED(call, status, words)                                                                   \
    do {                                                                                               \
        ck_assert_int_eq((call), (status));                                                            \
        ck_assert_msg(strstr(hoop_error_text(), (words)) != NULL, "%s: %s", #call, hoop_error_text()); \
    } while (0)

static void *at(hoop_cu_address address)
{
    return (void *)(uintptr_t)address;
}

static const struct hoop_cuda_driver *the_driver(void)
{
    const struct hoop_cuda_driver *driver = NULL;

    GOOD(hoop_cuda_driver(&driver));
    return driver;
}

static struct hoop_cuda *device(int ordinal)
{
    struct hoop_cuda *cuda = NULL;

    GOOD(hoop_cuda_open(ordinal, &cuda));
    return cuda;
}

/* Bytes that tell their place. */
static void number_bytes(unsigned char *bytes, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(seed + i * 7 + i / 251);
}

static void put(struct hoop_cuda *cuda, hoop_cu_address to, const void *from, size_t bytes)
{
    hoop_cu_stream stream;

    GOOD(hoop_cuda_stream_create(cuda, true, &stream));
    GOOD(hoop_cuda_copy(cuda, at(to), from, bytes, stream));
    GOOD(hoop_cuda_stream_wait(cuda, stream, UINT64_MAX));
    GOOD(hoop_cuda_stream_destroy(cuda, stream));
}

static void get(struct hoop_cuda *cuda, void *to, hoop_cu_address from, size_t bytes)
{
    hoop_cu_stream stream;

    GOOD(hoop_cuda_stream_create(cuda, false, &stream));
    GOOD(hoop_cuda_copy(cuda, to, at(from), bytes, stream));
    GOOD(hoop_cuda_stream_wait(cuda, stream, UINT64_MAX));
    GOOD(hoop_cuda_stream_destroy(cuda, stream));
}

static void expect_numbers(struct hoop_cuda *cuda, hoop_cu_address from, size_t bytes, unsigned seed)
{
    unsigned char *is = malloc(bytes), *must = malloc(bytes);

    number_bytes(must, bytes, seed);
    get(cuda, is, from, bytes);
    ck_assert_mem_eq(is, must, bytes);
    free(is);
    free(must);
}

/* ---- devices and contexts ---- */

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
    struct hoop_cuda *cuda = device(1);
    ck_assert_int_eq(hoop_cuda_current(&reason), -1);
    ck_assert(strstr(reason, "no CUDA context is current") != NULL);
    GOOD(hoop_cuda_enter(cuda));
    ck_assert_int_eq(hoop_cuda_current(&reason), 1);
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

static void expect_kind(const void *pointer, enum hoop_cuda_kind kind, int ordinal)
{
    struct hoop_cuda_memory memory;

    GOOD(hoop_cuda_classify(the_driver(), pointer, &memory));
    ck_assert_str_eq(hoop_cuda_kind_name(memory.kind), hoop_cuda_kind_name(kind));
    ck_assert_int_eq(memory.ordinal, ordinal);
}

START_TEST(host_memory_of_all_kinds)
{
    struct hoop_cuda *cuda = device(1);
    hoop_cu_address address;
    char here[10], *heap = malloc(100);
    void *pinned, *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    expect_kind(NULL, HOOP_CUDA_HOST, -1);
    expect_kind(here, HOOP_CUDA_HOST, -1);
    expect_kind(heap, HOOP_CUDA_HOST, -1);
    expect_kind(shared, HOOP_CUDA_HOST, -1);
    GOOD(hoop_cuda_host_alloc(cuda, 5000, &pinned, &address));
    expect_kind((char *)pinned + 77, HOOP_CUDA_PINNED, 1);
    GOOD(hoop_cuda_host_register(cuda, shared, 8192, &address));
    expect_kind((char *)shared + 4097, HOOP_CUDA_PINNED, 1);
    GOOD(hoop_cuda_host_unregister(cuda, shared));
    expect_kind(shared, HOOP_CUDA_HOST, -1);
    if (cuda->driver->cuMemAllocManaged) {
        GOOD(hoop_cuda_enter(cuda));
        ck_assert_int_eq(cuda->driver->cuMemAllocManaged(&address, 4096, HOOP_CU_MANAGED_ATTACH_GLOBAL), 0);
        hoop_cuda_leave(cuda);
        expect_kind(at(address), HOOP_CUDA_MANAGED, 1);
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
    struct hoop_cuda *cuda = device(1);
    struct hoop_cuda_memory memory, other;
    struct hoop_cuda_block block = {0};
    hoop_cu_address address, second;

    GOOD(hoop_cuda_alloc(cuda, 100000, &address));
    GOOD(hoop_cuda_alloc(cuda, 100000, &second));
    GOOD(hoop_cuda_classify(cuda->driver, at(address + 99999), &memory));
    ck_assert_int_eq(memory.kind, HOOP_CUDA_DEVICE);
    ck_assert_int_eq(memory.ordinal, 1);
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
    struct hoop_cuda *cuda = device(1);
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

/* ---- host memory that devices reach ---- */

START_TEST(shared_pages_are_registered_for_several_devices)
{
    enum { BYTES = 1 << 16 };
    struct hoop_cuda *a = device(0), *b = device(1);
    unsigned char *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned char numbers[1000];
    hoop_cu_address from_a, from_b, again, buffer;

    GOOD(hoop_cuda_host_register(a, shared, BYTES, &from_a));
    GOOD(hoop_cuda_host_register(b, shared, BYTES, &from_b));
    GOOD(hoop_cuda_host_register(a, shared, BYTES, &again));
    ck_assert_uint_eq(from_a, again);
    REFUSED(hoop_cuda_host_register(a, shared + 4096, 4096, &again), HOOP_ERR_ARG, "overlap");
    REFUSED(hoop_cuda_host_register(a, shared, 100, &again), HOOP_ERR_ARG, "no whole pages");
    REFUSED(hoop_cuda_host_unregister(a, shared + 4096), HOOP_ERR_ARG, "not the start");

    number_bytes(numbers, sizeof numbers, 9);
    GOOD(hoop_cuda_alloc(b, sizeof numbers, &buffer));
    put(b, buffer, numbers, sizeof numbers);
    put(b, from_b + 100, at(buffer), sizeof numbers); /* the device writes, host and other device read */
    ck_assert_mem_eq(shared + 100, numbers, sizeof numbers);
    expect_numbers(a, from_a + 100, sizeof numbers, 9);

    GOOD(hoop_cuda_host_unregister(a, shared));
    GOOD(hoop_cuda_host_unregister(a, shared));
    put(b, from_b, at(buffer), sizeof numbers); /* still there for the other */
    ck_assert_mem_eq(shared, numbers, sizeof numbers);
    GOOD(hoop_cuda_host_unregister(b, shared));
    REFUSED(hoop_cuda_host_unregister(b, shared), HOOP_ERR_ARG, "not the start");
    expect_kind(shared, HOOP_CUDA_HOST, -1);
    GOOD(hoop_cuda_free(b, buffer));
    munmap(shared, BYTES);
    hoop_cuda_close(a);
    hoop_cuda_close(b);
}
END_TEST

/* ---- memory of other processes ---- */

/* Run `other` in a process of its own, joined by two pipes; CUDA is not started here yet. */
struct both {
    int in, out; /* this end */
    pid_t child;
};

static struct both with_another(void (*other)(int in, int out))
{
    int there[2], back[2];

    ck_assert_int_eq(pipe(there) | pipe(back), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(there[1]);
        close(back[0]);
        other(there[0], back[1]);
        _exit(0);
    }
    close(there[0]);
    close(back[1]);
    return (struct both){back[0], there[1], child};
}

static void end_both(struct both *both)
{
    int end = -1;

    ck_assert_int_eq(write(both->out, "x", 1), 1);
    ck_assert_int_eq(waitpid(both->child, &end, 0), both->child);
    ck_assert_int_eq(end, 0);
}

static void wait_for_byte(int in)
{
    char byte;

    ck_assert_int_eq(read(in, &byte, 1), 1);
}

enum { EXPORTED = 70000, OFFSET = 12345 };

static void export_some(int in, int out)
{
    struct hoop_cuda *cuda = device(0);
    unsigned char *numbers = malloc(EXPORTED);
    struct hoop_cuda_export export[2];
    hoop_cu_address address;

    number_bytes(numbers, EXPORTED, 3);
    GOOD(hoop_cuda_alloc(cuda, EXPORTED, &address));
    put(cuda, address, numbers, EXPORTED);
    GOOD(hoop_cuda_export(cuda, at(address), &export[0]));
    GOOD(hoop_cuda_export(cuda, at(address + OFFSET), &export[1]));
    ck_assert_uint_eq(export[0].offset, 0);
    ck_assert_uint_eq(export[1].offset, OFFSET);
    ck_assert_mem_eq(&export[0].handle, &export[1].handle, sizeof export[0].handle);
    ck_assert_int_eq(write(out, export, sizeof export), sizeof export);
    wait_for_byte(in);
    get(cuda, numbers, address + OFFSET, 5);
    ck_assert_mem_eq(numbers, "there", 5);
    GOOD(hoop_cuda_free(cuda, address));
    hoop_cuda_close(cuda);
}

START_TEST(memory_of_another_process)
{
    struct both both = with_another(export_some);
    struct hoop_cuda *cuda = device(0), *peer = device(1);
    struct hoop_cuda_export export[2];
    hoop_cu_address base, middle, second;

    ck_assert_int_eq(read(both.in, export, sizeof export), sizeof export);
    GOOD(hoop_cuda_import(cuda, &export[1], &middle));
    GOOD(hoop_cuda_import(cuda, &export[0], &base));
    ck_assert_uint_eq(middle, base + OFFSET); /* opened once */
    expect_numbers(cuda, base, EXPORTED, 3);
    GOOD(hoop_cuda_import_end(cuda, base));
    put(cuda, middle, "there", 5);                     /* the other is still open */
    GOOD(hoop_cuda_import(peer, &export[1], &second)); /* for another device */
    unsigned char text[5];
    get(peer, text, second, 5);
    ck_assert_mem_eq(text, "there", 5);
    GOOD(hoop_cuda_import_end(peer, second));
    GOOD(hoop_cuda_import_end(cuda, middle));
    REFUSED(hoop_cuda_import_end(cuda, middle), HOOP_ERR_ARG, "no address in another process's memory");
    export[0].offset = UINT64_MAX;
    REFUSED(hoop_cuda_import(cuda, &export[0], &base), HOOP_ERR_ARG, "beyond all memory");
    hoop_cuda_close(cuda);
    hoop_cuda_close(peer);
    end_both(&both);
}
END_TEST

START_TEST(what_cannot_be_exported_says_so)
{
    struct hoop_cuda *cuda = device(0);
    struct hoop_cuda_export export;
    struct hoop_cuda_block block;
    hoop_cu_address address;
    char here[4];

    REFUSED(hoop_cuda_export(cuda, here, &export), HOOP_ERR_UNSUPPORTED, "is host memory");
    GOOD(hoop_cuda_block_alloc(cuda, 4096, &block));
    REFUSED(hoop_cuda_export(cuda, at(block.address), &export), HOOP_ERR_UNSUPPORTED, "no handle");
    GOOD(hoop_cuda_block_free(cuda, &block));
    GOOD(hoop_cuda_alloc(cuda, 4096, &address));
    GOOD(hoop_cuda_export(cuda, at(address), &export));
    REFUSED(hoop_cuda_import(cuda, &export, &address), HOOP_ERR_SYSTEM, "cuIpcOpenMemHandle"); /* one's own */
    hoop_cuda_close(cuda);
}
END_TEST

static void export_block(int in, int out)
{
    struct hoop_cuda *cuda = device(1);
    unsigned char *numbers = malloc(EXPORTED);
    struct hoop_cuda_block block;
    int told[2] = {(int)getpid(), -1};

    number_bytes(numbers, EXPORTED, 4);
    GOOD(hoop_cuda_block_alloc(cuda, EXPORTED, &block));
    put(cuda, block.address, numbers, EXPORTED);
    GOOD(hoop_cuda_block_export(cuda, &block, &told[1]));
    ck_assert_int_eq(write(out, told, sizeof told), sizeof told);
    wait_for_byte(in);
    get(cuda, numbers, block.address, 5);
    ck_assert_mem_eq(numbers, "there", 5);
    close(told[1]);
    GOOD(hoop_cuda_block_free(cuda, &block));
    hoop_cuda_close(cuda);
}

START_TEST(blocks_travel_as_file_descriptors)
{
    struct both both = with_another(export_block);
    struct hoop_cuda *cuda = device(0);
    struct hoop_cuda_block block;
    char path[64];
    int told[2];

    ck_assert_int_eq(read(both.in, told, sizeof told), sizeof told);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", told[0], told[1]);
    FILE *file = fopen(path, "r+");
    ck_assert_ptr_nonnull(file);
    GOOD(hoop_cuda_block_import(cuda, fileno(file), EXPORTED, &block));
    fclose(file); /* the mapping stays */
    expect_numbers(cuda, block.address, EXPORTED, 4);
    put(cuda, block.address, "there", 5);
    GOOD(hoop_cuda_block_free(cuda, &block));
    hoop_cuda_close(cuda);
    end_both(&both);
}
END_TEST

/* ---- communicators ---- */

START_TEST(communicators_have_devices)
{
    struct hoop_comm *comm[3], *alone;
    const int devices = the_driver()->devices;
    unsigned char zeros[5000] = {0}, bytes[5000];
    void *buffer, *host, *kept;
    int ordinal = 7;

    setenv("HOOP_DEVICE", "cuda", 1);
    GOOD(hoop_comm_init_all(comm, 3));
    for (int rank = 0; rank < 3; rank++) {
        GOOD(hoop_comm_device(comm[rank], &ordinal));
        ck_assert_int_eq(ordinal, rank % devices);
        GOOD(hoop_mem_alloc(comm[rank], &buffer, sizeof bytes));
        expect_kind(buffer, HOOP_CUDA_DEVICE, ordinal);
        memset(bytes, 1, sizeof bytes);
        GOOD(hoop_mem_copy(comm[rank], bytes, buffer, sizeof bytes));
        ck_assert_mem_eq(bytes, zeros, sizeof bytes);
        GOOD(hoop_mem_alloc_host(comm[rank], &host, sizeof bytes));
        memset(host, rank + 1, sizeof bytes);
        GOOD(hoop_mem_copy(comm[rank], buffer, host, sizeof bytes));
        GOOD(hoop_mem_copy(comm[rank], bytes, buffer, sizeof bytes));
        ck_assert_mem_eq(bytes, host, sizeof bytes);
        GOOD(hoop_mem_free(comm[rank], host));
        GOOD(hoop_mem_free(comm[rank], buffer));
        ck_assert_int_eq(hoop_mem_free(comm[rank], buffer), HOOP_ERR_ARG);
        GOOD(hoop_mem_alloc(comm[rank], &kept, 100)); /* given back with the communicator */
    }
    for (int rank = 0; rank < 3; rank++)
        hoop_comm_abort(comm[rank]);
    for (int rank = 0; rank < 3; rank++)
        hoop_comm_destroy(comm[rank]);

    setenv("HOOP_DEVICE", "cuda:1", 1);
    GOOD(hoop_comm_init_all(&alone, 1));
    GOOD(hoop_comm_device(alone, &ordinal));
    ck_assert_int_eq(ordinal, 1);
    setenv("HOOP_DEVICE", "none", 1); /* what is split off keeps the device */
    GOOD(hoop_comm_split(alone, 0, 0, comm));
    GOOD(hoop_comm_device(comm[0], &ordinal));
    ck_assert_int_eq(ordinal, 1);
    GOOD(hoop_comm_destroy(comm[0]));
    GOOD(hoop_comm_destroy(alone));
    setenv("HOOP_DEVICE", "cuda:77", 1);
    ck_assert_int_eq(hoop_comm_init_all(&alone, 1), HOOP_ERR_ARG);
}
END_TEST

START_TEST(the_current_device_is_taken)
{
    struct hoop_cuda *cuda = device(1);
    struct hoop_comm *comm;
    int ordinal = 7;

    GOOD(hoop_comm_init_rank(&comm, 1, NULL, 0));
    GOOD(hoop_comm_device(comm, &ordinal));
    ck_assert_int_eq(ordinal, -1);
    GOOD(hoop_comm_destroy(comm));
    GOOD(hoop_cuda_enter(cuda));
    GOOD(hoop_comm_init_rank(&comm, 1, NULL, 0));
    hoop_cuda_leave(cuda);
    GOOD(hoop_comm_device(comm, &ordinal));
    ck_assert_int_eq(ordinal, 1);
    GOOD(hoop_comm_destroy(comm));
    hoop_cuda_close(cuda);
}
END_TEST

int main(int count, char **arguments)
{
    (void)count;
    cuda_fake_or_skip(arguments);
    unsetenv("HOOP_DEVICE");
    Suite *suite = suite_create("cuda");
    TCase *cases = tcase_create("driver");
    tcase_add_test(cases, devices_are_told_apart);
    tcase_add_test(cases, contexts_are_shared_and_counted);
    tcase_add_test(cases, the_current_context_is_put_back);
    tcase_add_test(cases, the_current_device_is_the_threads);
    tcase_add_test(cases, a_forked_child_is_told);
    tcase_add_test(cases, host_memory_of_all_kinds);
    tcase_add_test(cases, device_memory_of_all_kinds);
    tcase_add_test(cases, running_out_says_what_is_left);
    tcase_add_test(cases, copies_of_all_sizes_and_ways);
    tcase_add_test(cases, waiting_has_a_deadline);
    tcase_add_test(cases, events_order_streams);
    tcase_add_test(cases, peers_reach_each_other);
    tcase_add_test(cases, shared_pages_are_registered_for_several_devices);
    tcase_add_test(cases, memory_of_another_process);
    tcase_add_test(cases, what_cannot_be_exported_says_so);
    tcase_add_test(cases, blocks_travel_as_file_descriptors);
    tcase_add_test(cases, communicators_have_devices);
    tcase_add_test(cases, the_current_device_is_taken);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
