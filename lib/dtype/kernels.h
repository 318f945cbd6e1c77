// SPDX-License-Identifier: BSD-3-Clause
/* The tables of compiled kernels, one for each level. Only dtype.c and the level files use this. */
#ifndef HOOP_DTYPE_KERNELS_H
#define HOOP_DTYPE_KERNELS_H

#include <stddef.h>

#include "hoop.h"

/* Kernels of one type and operator. count >= 1; buffers as dtype.h says. */
struct hoop_kernels_of_op {
    void (*reduce)(unsigned char *to, const unsigned char *left, const unsigned char *right, size_t count);
    void (*reduce_two)(unsigned char *to, unsigned char *also, const unsigned char *left, const unsigned char *right,
                       size_t count);
    /* ranks: divide the result by it, if the operator's finish is quotient. */
    void (*reduce_many)(unsigned char *to, const void *const *inputs, int n, size_t count, int ranks);
};

struct hoop_kernels_of_type {
    struct hoop_kernels_of_op op[HOOP_OPS];                                     /* NULL where hoop_op_accepts says no */
    void (*divide)(unsigned char *data, size_t count, int ranks);               /* NULL where there is no average */
    void (*widen)(unsigned char *to, const unsigned char *from, size_t count);  /* stored to value; PLAIN: NULL */
    void (*narrow)(unsigned char *to, const unsigned char *from, size_t count); /* value to stored; PLAIN: NULL */
};

struct hoop_kernels {
    struct hoop_kernels_of_type type[HOOP_TYPES];
};

extern const struct hoop_kernels hoop_kernels_plain;
#if defined(__x86_64__)
extern const struct hoop_kernels hoop_kernels_avx2, hoop_kernels_avx512;
#elif defined(__aarch64__)
extern const struct hoop_kernels hoop_kernels_neon;
#endif

#endif
