// SPDX-License-Identifier: BSD-3-Clause
/* Created operators: for hoop_all_reduce, hoop_reduce and hoop_reduce_scatter on the communicator that they were created for.
 * Part of hoop.h.
 *
 * A rank's operators are numbered in the order in which it creates them, numbers of destroyed ones being used again, the least
 * first. So all ranks must create and destroy the same operators in the same order, though creating is no collective and
 * sends nothing. Calls whose operators differ in number, kind or size of elements are HOOP_ERR_MISMATCH on every rank.
 * At most 64 at a time per communicator. A communicator of hoop_comm_split has none at first. */
#ifndef HOOP_OPERATORS_H
#define HOOP_OPERATORS_H

#include <stddef.h>

#include "hoop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Create the premultiplied sum: every rank's vector is multiplied by that rank's own scalar, then all are summed.
 *
 * Integers wrap. Each product is rounded to the type; with f16, bf16 and the 8-bit formats products and sums are in f32 and
 * rounded once at the end. A rank alone gets the product.
 * op           receives the operator; unchanged on failure.
 * scalar       one element of type, any alignment; copied.
 * type         of the scalar and of the vectors it may be used with; no pair.
 * Equal on all ranks: type and the order of creation; the scalar need not be.
 * Blocking: never.   Threads: one call at a time per communicator.   Errors: HOOP_ERR_ARG (also if 64 exist), HOOP_ERR_MEMORY,
 * the communicator's error. */
HOOP_API enum hoop_status hoop_op_premul_create(enum hoop_op *op, const void *scalar, enum hoop_type type,
                                                struct hoop_comm *comm);

/* The user's function: to = left op right over count elements, each on its own; element i of to depends on element i of left and
 * right only.
 *
 * to           may be left or right (the same address), but does not overlap them otherwise.
 * type         as in the call; HOOP_U8 for elements of a size of their own.
 * context      as given to hoop_op_user_create.
 * Addresses are aligned as the elements in the ranks' buffers are, but to no more than 16 bytes.
 * It is called any number of times in a collective, with any parts of the vectors, on the thread that makes the call or on the
 * thread of its stream. It must not call hoop, and must return. */
typedef void (*hoop_op_function)(void *to, const void *left, const void *right, size_t count, enum hoop_type type,
                                 void *context);

/* Create an operator that is a function of the caller's.
 *
 * op           receives the operator; unchanged on failure.
 * function     must be associative, since ranks combine in groups. context: handed to it; both must live until hoop_op_destroy.
 * element_bytes  0: the operator takes every type. Else 1 to 4096: its elements have that size and no type; a call gives
 *              HOOP_U8 as the type and counts elements of that size. They are never cut.
 * commutative  0: left op right differs from right op left. The result is then x0 op x1 op x2 … in rank order, computed from left
 *              to right, by an algorithm that keeps this order (flat or twoshot; HOOP_ALGO with another that serves the
 *              collective makes such calls HOOP_ERR_ARG).
 * Equal on all ranks: everything but context, and the order of creation. The functions must compute the same.
 * Blocking: never.   Threads: one call at a time per communicator.   Errors: as hoop_op_premul_create. */
HOOP_API enum hoop_status hoop_op_user_create(enum hoop_op *op, hoop_op_function function, void *context,
                                              size_t element_bytes, int commutative, struct hoop_comm *comm);

/* Destroy a created operator. Not inside a group, nor while a persistent handle uses it. Operators that still exist when the
 * communicator is destroyed go with it.
 * Blocking: until the calls that were given to streams have ended.   Threads: one call at a time per communicator.
 * Errors: HOOP_ERR_ARG (no such operator, inside a group, or used by a handle; nothing happened). */
HOOP_API enum hoop_status hoop_op_destroy(enum hoop_op op, struct hoop_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
