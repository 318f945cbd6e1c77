// SPDX-License-Identifier: BSD-3-Clause
/* Random numbers by position: a pure function of (seed, stream, epoch, index).
 *
 * Nothing has a state, so nothing depends on how many ranks there are, which of them asks, or in which order. The
 * generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) with its published
 * constants. */
#ifndef TRAINER_RANDOM_H
#define TRAINER_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* Who draws; numbers of different streams are independent. Values are part of the frozen orders: never renumber. */
enum random_stream { RANDOM_INIT = 1, RANDOM_SHUFFLE = 2, RANDOM_SYNTHETIC = 3 };

/* A place to draw from: vary the index of random_bits. */
struct random_key {
    uint64_t seed;
    uint32_t stream; /* enum random_stream */
    uint32_t epoch;  /* or any other number that shall give fresh numbers */
};

/* One block of the generator: 10 rounds over counter with key. */
void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* 64 random bits at index. */
uint64_t random_bits(const struct random_key *key, uint64_t index);

/* A number in 0 … bound - 1 (bound ≥ 1). The bias is below bound / 2^64. */
uint64_t random_below(const struct random_key *key, uint64_t index, uint64_t bound);

/* A number in [-1, 1), a multiple of 2^-23: exact in float, the same on every machine. */
float random_symmetric(const struct random_key *key, uint64_t index);

/* A fast 64-bit digest of bytes, not for security. Start with before = 0; chain by passing the last digest. */
uint64_t digest(const void *bytes, size_t size, uint64_t before);

#endif
