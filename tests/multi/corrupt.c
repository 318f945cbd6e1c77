// SPDX-License-Identifier: BSD-3-Clause
/* For test_bench.sh and test_bench_device.sh: loaded before libhoop, this all_reduce spoils what SPOIL names on the last rank, for i32 vectors
 * only, so that the program's own agreements (f64) stay sound.
 *     result   one bit of one element of the result
 *     input    one bit of the input
 *     behind   the byte behind the result
 * Every program of the test loads it, with libhoop or without: so all functions are looked up when they are called. */
#include <dlfcn.h>
#include <hoop.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum hoop_status all_reduce(const void *, void *, size_t, enum hoop_type, enum hoop_op, struct hoop_comm *,
                                    hoop_stream *);

static void *look_up(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL)
        abort();
    return function;
}

static int ask(const char *name, const struct hoop_comm *comm)
{
    int (*function)(const struct hoop_comm *);

    *(void **)&function = look_up(name);
    return function(comm);
}

/* Flip one bit, in memory of the host or of a device. */
static void flip(struct hoop_comm *comm, unsigned char *at)
{
    enum hoop_status (*copy)(struct hoop_comm *, void *, const void *, size_t);
    unsigned char byte = 0;

    *(void **)&copy = look_up("hoop_mem_copy");
    copy(comm, &byte, at, 1);
    byte ^= 1;
    copy(comm, at, &byte, 1);
}

static void spoil(struct hoop_comm *comm, const char *what, const void *send, void *recv, size_t count)
{
    unsigned char *input = (unsigned char *)(uintptr_t)send, *result = recv;

    if (strcmp(what, "result") == 0)
        flip(comm, &result[count / 2 * 4]);
    else if (strcmp(what, "input") == 0 && send != recv)
        flip(comm, &input[count / 3 * 4]);
    else if (strcmp(what, "behind") == 0)
        flip(comm, &result[count * 4]);
}

HOOP_API enum hoop_status hoop_all_reduce(const void *send, void *recv, size_t count, enum hoop_type type,
                                          enum hoop_op op, struct hoop_comm *comm, hoop_stream *stream)
{
    const char *what = getenv("SPOIL");
    all_reduce *real;
    enum hoop_status status;

    *(void **)&real = look_up("hoop_all_reduce");
    status = real(send, recv, count, type, op, comm, stream);
    if (status == HOOP_OK && what != NULL && type == HOOP_I32 && count > 0 &&
        ask("hoop_comm_rank", comm) == ask("hoop_comm_size", comm) - 1)
        spoil(comm, what, send, recv, count);
    return status;
}
