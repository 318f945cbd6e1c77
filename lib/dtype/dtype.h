// SPDX-License-Identifier: BSD-3-Clause
/* Element types, reduction operators, and the host kernels that apply one to the other.
 *
 * types.def and ops.def are the registries: a line there is all that a new type or operator takes. Each kernel is
 * compiled several times from one text (kernels.inc), for narrower and wider vector registers, and the widest that the
 * machine can run is chosen once, at the first call.
 *
 * Every level gives the same bits for the same input, on every machine: results are rounded to nearest, ties to even,
 * operand by operand (no fused multiply-add), and a NaN result is always the one quiet NaN with sign and payload zero.
 * Integers wrap. HOOP_MIN and HOOP_MAX return NaN if an operand is NaN, and order -0 below +0; HOOP_MINLOC and HOOP_MAXLOC
 * compare the values of pairs likewise, then the indices.
 *
 * All functions: buffers of any alignment; count 0 is allowed, also with NULL buffers; type and op must be valid ones that
 * hoop_op_accepts. "Small" types are those that are carried in f32: F16, BF16, F8E4M3, F8E5M2.
 * Buffers that are not the same address must not overlap, unless a function says more.
 * Blocking: never.   Threads: any.   Errors: none.
 */
#ifndef HOOP_DTYPE_DTYPE_H
#define HOOP_DTYPE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "hoop.h"

/* Is it one of ops.def? The kernels below combine with these only. */
static inline bool hoop_op_is_builtin(enum hoop_op op)
{
    return (unsigned)op < HOOP_OPS;
}

/* Kinds of created operators, in the upper bits of their values; the number is below them. */
enum { HOOP_OP_PREMUL = 1, HOOP_OP_USER, HOOP_OP_IN_ORDER, HOOP_OP_KINDS, HOOP_OP_NUMBERS = 64 };

/* An operator that is the user's function. */
struct hoop_user_op {
    hoop_op_function function;
    void *context;
    size_t element; /* bytes of one; 0: the call's type tells */
    bool commutes;
};

/* The type in which sums of `type` are carried: HOOP_F32 for small types, for others the type itself. */
enum hoop_type hoop_type_wide(enum hoop_type type);

/* to = left op right, elementwise. HOOP_AVG adds. to may be left, right or both. Small types are rounded here. */
void hoop_kernel_reduce(void *to, const void *left, const void *right, size_t count, enum hoop_type type,
                        enum hoop_op op);

/* The same, stored twice in one pass: to also in `also`. */
void hoop_kernel_reduce_two(void *to, void *also, const void *left, const void *right, size_t count,
                            enum hoop_type type, enum hoop_op op);

/* to = ((x0 op x1) op x2) op …, elementwise over n >= 1 inputs, in one pass. HOOP_AVG adds.
 * Small types are carried in f32 over all inputs and rounded once. to may be one or more of the inputs. Logical operators
 * give 0 or 1 also for n = 1. */
void hoop_kernel_reduce_many(void *to, const void *const *inputs, int n, size_t count, enum hoop_type type,
                             enum hoop_op op);

/* The same with the user's function, n >= 2; to must not overlap the inputs. */
void hoop_user_reduce_many(const struct hoop_user_op *op, void *to, const void *const *inputs, int n, size_t count,
                           enum hoop_type type);

/* to = (x0 + x1 + …) / ranks: HOOP_AVG whole, so that small types are rounded once, after the division.
 * Other types: the same bits as hoop_kernel_reduce_many, then hoop_kernel_divide. ranks >= 1, not necessarily n. */
void hoop_kernel_average_many(void *to, const void *const *inputs, int n, size_t count, enum hoop_type type, int ranks);

/* data = data / ranks, in place: the end of HOOP_AVG. Integers round toward zero, small types divide in f32.
 * ranks >= 1. Not for pairs. */
void hoop_kernel_divide(void *data, size_t count, enum hoop_type type, int ranks);

/* to = from, exactly, from a small type (or F32: a copy) to f32. NaN keeps sign and payload, but becomes quiet (not bf16's). */
void hoop_kernel_widen(float *to, const void *from, size_t count, enum hoop_type type);

/* to = from, rounded to nearest, ties to even, from f32 to a small type (or F32: a copy). NaN becomes the one quiet NaN.
 * to may be from: the result then fills the first part. */
void hoop_kernel_narrow(void *to, const float *from, size_t count, enum hoop_type type);

/* The C library's memcpy chooses its way by size and switches to streaming stores for large blocks by itself. */
static inline void hoop_kernel_copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

/* to = from, past the caches where the machine can. Others see it only after hoop_kernel_copies_done and a release. */
void hoop_kernel_copy_past(void *to, const void *from, size_t bytes);
void hoop_kernel_copies_done(void);

/* How the kernels are compiled; of those that the machine can run the last one is chosen. */
enum hoop_kernel_level {
    HOOP_KERNEL_PLAIN,
    HOOP_KERNEL_AVX2,
    HOOP_KERNEL_AVX512,
    HOOP_KERNEL_NEON,
    HOOP_KERNEL_LEVELS
};

/* The level in force. */
enum hoop_kernel_level hoop_kernel_level(void);

/* Use another level from now on, for tests and measurements; false, and no change, if the machine cannot run it. */
bool hoop_kernel_level_set(enum hoop_kernel_level level);

#endif
