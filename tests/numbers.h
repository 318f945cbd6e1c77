// SPDX-License-Identifier: BSD-3-Clause
/* Bits to try reductions and conversions with: random ones, and what is special in some type. The same in every run. */
#ifndef HOOP_TESTS_NUMBERS_H
#define HOOP_TESTS_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "hoop.h"

uint64_t numbers_random(void);

/* Any bits, and now and then what is special in some type: zeros, the largest, infinities, NaN of all kinds, small ones.
 * lane: bytes of an element; 16: a pair, whose indices are few, so that they often decide. */
void numbers_fill(unsigned char *data, size_t bytes, size_t lane);

/* Bytes on which an element of the type lies. */
size_t numbers_grain(enum hoop_type type);

#endif
