// SPDX-License-Identifier: BSD-3-Clause
/* Memory that devices share with the host, with other processes and with communicators. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "mem_cuda.h"

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
    cuda_driver_or_skip(arguments);
    cuda_devices(4);
    unsetenv("HOOP_DEVICE");
    if (!cuda_suits("memory that is shared", 2, false))
        return 77;
    Suite *suite = suite_create("shared memory of cuda");
    TCase *cases = tcase_create("sharing");
    tcase_add_test(cases, shared_pages_are_registered_for_several_devices);
    tcase_add_test(cases, memory_of_another_process);
    tcase_add_test(cases, what_cannot_be_exported_says_so);
    tcase_add_test(cases, blocks_travel_as_file_descriptors);
    tcase_add_test(cases, communicators_have_devices);
    tcase_add_test(cases, the_current_device_is_taken);
    suite_add_tcase(suite, cases);
    return harness_suite(suite);
}
