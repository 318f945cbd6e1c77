// SPDX-License-Identifier: BSD-3-Clause
/* What the tests of lib/mem/cuda*.c share. */
#ifndef HOOP_TESTS_MEM_CUDA_H
#define HOOP_TESTS_MEM_CUDA_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static inline void *at(hoop_cu_address address)
{
    return (void *)(uintptr_t)address;
}

static inline const struct hoop_cuda_driver *the_driver(void)
{
    const struct hoop_cuda_driver *driver = NULL;

    GOOD(hoop_cuda_driver(&driver));
    return driver;
}

static inline struct hoop_cuda *device(int ordinal)
{
    struct hoop_cuda *cuda = NULL;

    GOOD(hoop_cuda_open(ordinal, &cuda));
    return cuda;
}

/* Bytes that tell their place. */
static inline void number_bytes(unsigned char *bytes, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(seed + i * 7 + i / 251);
}

static inline void put(struct hoop_cuda *cuda, hoop_cu_address to, const void *from, size_t bytes)
{
    hoop_cu_stream stream;

    GOOD(hoop_cuda_stream_create(cuda, true, &stream));
    GOOD(hoop_cuda_copy(cuda, at(to), from, bytes, stream));
    GOOD(hoop_cuda_stream_wait(cuda, stream, UINT64_MAX));
    GOOD(hoop_cuda_stream_destroy(cuda, stream));
}

static inline void get(struct hoop_cuda *cuda, void *to, hoop_cu_address from, size_t bytes)
{
    hoop_cu_stream stream;

    GOOD(hoop_cuda_stream_create(cuda, false, &stream));
    GOOD(hoop_cuda_copy(cuda, to, at(from), bytes, stream));
    GOOD(hoop_cuda_stream_wait(cuda, stream, UINT64_MAX));
    GOOD(hoop_cuda_stream_destroy(cuda, stream));
}

static inline void expect_numbers(struct hoop_cuda *cuda, hoop_cu_address from, size_t bytes, unsigned seed)
{
    unsigned char *is = malloc(bytes), *must = malloc(bytes);

    number_bytes(must, bytes, seed);
    get(cuda, is, from, bytes);
    ck_assert_mem_eq(is, must, bytes);
    free(is);
    free(must);
}

static inline void expect_kind(const void *pointer, enum hoop_cuda_kind kind, int ordinal)
{
    struct hoop_cuda_memory memory;

    GOOD(hoop_cuda_classify(the_driver(), pointer, &memory));
    ck_assert_str_eq(hoop_cuda_kind_name(memory.kind), hoop_cuda_kind_name(kind));
    ck_assert_int_eq(memory.ordinal, ordinal);
}

#endif
