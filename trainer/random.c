// SPDX-License-Identifier: BSD-3-Clause
/* See random.h. */
#include "random.h"

#include <string.h>

enum { ROUNDS = 10 };

void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t product0 = UINT64_C(0xD2511F53) * c0, product1 = UINT64_C(0xCD9E8D57) * c2;

        c0 = (uint32_t)(product1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)product1;
        c2 = (uint32_t)(product0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)product0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint64_t random_bits(const struct random_key *key, uint64_t index)
{
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), key->epoch, key->stream};
    const uint32_t words[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
    uint32_t out[4];

    random_philox(counter, words, out);
    return (uint64_t)out[1] << 32 | out[0];
}

/* The high 64 bits of the product a × b. */
static uint64_t multiply_high(uint64_t a, uint64_t b)
{
    const uint64_t low_a = (uint32_t)a, high_a = a >> 32, low_b = (uint32_t)b, high_b = b >> 32;
    const uint64_t middle = high_a * low_b + (low_a * low_b >> 32);
    const uint64_t other = low_a * high_b + (uint32_t)middle;

    return high_a * high_b + (middle >> 32) + (other >> 32);
}

uint64_t random_below(const struct random_key *key, uint64_t index, uint64_t bound)
{
    return multiply_high(random_bits(key, index), bound);
}

float random_symmetric(const struct random_key *key, uint64_t index)
{
    const int32_t steps = (int32_t)(random_bits(key, index) >> 40) - (1 << 23);

    return (float)steps / (float)(1 << 23);
}

static uint64_t mix(uint64_t state, uint64_t word)
{
    state = (state ^ word) * UINT64_C(0x9FB21C651E98DF25);
    return state ^ state >> 32;
}

uint64_t digest(const void *bytes, size_t size, uint64_t before)
{
    const unsigned char *at = bytes;
    uint64_t lane[4] = {before ^ 1, before ^ 2, before ^ 3, before ^ 4};
    uint64_t word, result = before ^ size;
    size_t left = size;

    for (; left >= 32; left -= 32, at += 32) /* four chains, for the sake of speed */
        for (int i = 0; i < 4; i++) {
            memcpy(&word, at + 8 * i, 8);
            lane[i] = mix(lane[i], word);
        }
    for (int i = 0; i < 4; i++)
        result = mix(result, lane[i]);
    for (; left > 0; left--, at++)
        result = mix(result, *at);
    return mix(result, 0);
}
