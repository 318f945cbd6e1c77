// SPDX-License-Identifier: BSD-3-Clause
/* Names and sizes from types.def and ops.def, and the choice of kernels. */
#include "dtype/dtype.h"

#include <stdatomic.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "dtype/kernels.h"
#include "dtype/ops.def"

enum { REALS = 1, INTEGERS = 2, PAIRS = 4 };

static const struct {
    const char *name;
    size_t size;
    enum hoop_type wide;
    unsigned family;
} types[HOOP_TYPES] = {
#define FAMILY_REAL     REALS
#define FAMILY_SIGNED   INTEGERS
#define FAMILY_UNSIGNED INTEGERS
#define TYPE(id, name, stored, wide, value, bits, arithmetic, codec, twin) \
    [HOOP_##id] = {name, sizeof(stored), HOOP_##wide, FAMILY_##arithmetic},
#define PAIR(id, name, stored, lane, bits, order) [HOOP_##id] = {name, sizeof(stored), HOOP_##id, PAIRS},
#include "dtype/types.def"
};

#define BIT_OP(type, id, name, combine, finish)  [HOOP_##id] = {name, INTEGERS},
#define ANY_OP(type, id, name, combine, finish)  [HOOP_##id] = {name, REALS | INTEGERS},
#define PAIR_OP(type, id, name, combine, finish) [HOOP_##id] = {name, PAIRS},
static const struct {
    const char *name;
    unsigned families;
} ops[HOOP_OPS] = {HOOP_FOR_SIGNLESS_OPS(ANY_OP, ) HOOP_FOR_SIGN_OPS(ANY_OP, ) HOOP_FOR_BIT_OPS(BIT_OP, )
                       HOOP_FOR_PAIR_OPS(PAIR_OP, )};

size_t hoop_type_size(enum hoop_type type)
{
    return (unsigned)type < HOOP_TYPES ? types[type].size : 0;
}

const char *hoop_type_name(enum hoop_type type)
{
    return (unsigned)type < HOOP_TYPES ? types[type].name : "?";
}

const char *hoop_op_name(enum hoop_op op)
{
    static const char *const kinds[] = {"?", [HOOP_OP_PREMUL] = "premul", "user", "user_in_order"};

    if ((unsigned)op < HOOP_OPS)
        return ops[op].name;
    return (unsigned)op < HOOP_OPS_END ? kinds[op / HOOP_OP_NUMBERS] : "?";
}

int hoop_op_accepts(enum hoop_op op, enum hoop_type type)
{
    return (unsigned)op < HOOP_OPS && (unsigned)type < HOOP_TYPES && (types[type].family & ops[op].families) != 0;
}

enum hoop_type hoop_type_wide(enum hoop_type type)
{
    return types[type].wide;
}

/* The choice. Threads that come first at the same time all find the same. */

static const struct hoop_kernels *const levels[HOOP_KERNEL_LEVELS] = {
    [HOOP_KERNEL_PLAIN] = &hoop_kernels_plain,
#if defined(__x86_64__)
    [HOOP_KERNEL_AVX2] = &hoop_kernels_avx2,
    [HOOP_KERNEL_AVX512] = &hoop_kernels_avx512,
#elif defined(__aarch64__)
    [HOOP_KERNEL_NEON] = &hoop_kernels_neon,
#endif
};

static _Atomic(const struct hoop_kernels *) chosen;

static bool machine_has(enum hoop_kernel_level level)
{
    if (level == HOOP_KERNEL_PLAIN)
        return true;
#if defined(__x86_64__)
    unsigned a, b, c, d;

    if (level == HOOP_KERNEL_AVX2)
        return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
    if (level == HOOP_KERNEL_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#elif defined(__aarch64__)
    if (level == HOOP_KERNEL_NEON) /* part of the architecture */
        return true;
#endif
    return false;
}

static const struct hoop_kernels *kernels(void)
{
    const struct hoop_kernels *table = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (table == NULL) {
        int level = HOOP_KERNEL_LEVELS - 1;

        while (!machine_has((enum hoop_kernel_level)level))
            level--;
        table = levels[level];
        atomic_store_explicit(&chosen, table, memory_order_relaxed);
    }
    return table;
}

enum hoop_kernel_level hoop_kernel_level(void)
{
    const struct hoop_kernels *table = kernels();
    int level = 0;

    while (levels[level] != table)
        level++;
    return (enum hoop_kernel_level)level;
}

bool hoop_kernel_level_set(enum hoop_kernel_level level)
{
    if ((unsigned)level >= HOOP_KERNEL_LEVELS || !machine_has(level))
        return false;
    atomic_store_explicit(&chosen, levels[level], memory_order_relaxed);
    return true;
}

void hoop_kernel_reduce(void *to, const void *left, const void *right, size_t count, enum hoop_type type,
                        enum hoop_op op)
{
    if (count > 0)
        kernels()->type[type].op[op].reduce(to, left, right, count);
}

void hoop_kernel_reduce_two(void *to, void *also, const void *left, const void *right, size_t count,
                            enum hoop_type type, enum hoop_op op)
{
    if (count > 0)
        kernels()->type[type].op[op].reduce_two(to, also, left, right, count);
}

void hoop_kernel_reduce_many(void *to, const void *const *inputs, int n, size_t count, enum hoop_type type,
                             enum hoop_op op)
{
    if (count > 0)
        kernels()->type[type].op[op].reduce_many(to, inputs, n, count, 1);
}

void hoop_user_reduce_many(const struct hoop_user_op *op, void *to, const void *const *inputs, int n, size_t count,
                           enum hoop_type type)
{
    if (count == 0)
        return;
    op->function(to, inputs[0], inputs[1], count, type, op->context);
    for (int i = 2; i < n; i++)
        op->function(to, to, inputs[i], count, type, op->context);
}

void hoop_kernel_average_many(void *to, const void *const *inputs, int n, size_t count, enum hoop_type type, int ranks)
{
    if (count > 0)
        kernels()->type[type].op[HOOP_AVG].reduce_many(to, inputs, n, count, ranks);
}

void hoop_kernel_divide(void *data, size_t count, enum hoop_type type, int ranks)
{
    if (count > 0)
        kernels()->type[type].divide(data, count, ranks);
}

void hoop_kernel_widen(float *to, const void *from, size_t count, enum hoop_type type)
{
    const struct hoop_kernels_of_type *of = &kernels()->type[type];

    if (of->widen == NULL)
        hoop_kernel_copy(to, from, count * sizeof(float));
    else if (count > 0)
        of->widen((unsigned char *)to, from, count);
}

void hoop_kernel_narrow(void *to, const float *from, size_t count, enum hoop_type type)
{
    const struct hoop_kernels_of_type *of = &kernels()->type[type];

    if (of->narrow == NULL) {
        if (to != from)
            hoop_kernel_copy(to, from, count * sizeof(float));
    } else if (count > 0) {
        of->narrow(to, (const unsigned char *)from, count);
    }
}
