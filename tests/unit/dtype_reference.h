// SPDX-License-Identifier: BSD-3-Clause
/* What the kernels must give, element by element, computed in wide arithmetic without any of their code.
 *
 * Reals pass through a format wide enough that rounding twice cannot show (more than twice the digits and two more);
 * integers through 128 bits. Formats of less than 32 bits are taken apart and rounded by ldexp and rint.
 */
#ifndef HOOP_TESTS_DTYPE_REFERENCE_H
#define HOOP_TESTS_DTYPE_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "dtype/dtype.h"

/* to = ((x0 op x1) op x2) …, then divided by ranks if ranks > 0. Small types are carried in f32 and rounded at the
 * end. */
void reference_reduce(void *to, const unsigned char *const *inputs, int n, size_t count, enum hoop_type type,
                      enum hoop_op op, int ranks);

/* Is the type one of pairs? *value: the type of a pair's value; else the type itself. */
bool reference_pair(enum hoop_type type, enum hoop_type *value);

/* The value of a stored small type. */
double reference_decode(uint16_t stored, enum hoop_type type);

/* The nearest number of a small type, ties to even, with its rule of saturation; NaN becomes the quiet one with sign and
 * payload zero. */
uint16_t reference_encode(double value, enum hoop_type type);

/* Elements that try the corners: zeros, ones, limits, subnormals, infinities and NaN of every kind, between ordinary
 * values and random bits. */
void reference_fill(void *to, size_t count, enum hoop_type type, uint64_t *seed);

/* A pseudo-random number below limit. */
uint64_t reference_random(uint64_t *seed, uint64_t limit);

#endif
