// SPDX-License-Identifier: BSD-3-Clause
/* The counter generator against its published vectors; ranges; the digest. */
#include "trainer/random.h"

#include <string.h>

#include "trainer_check.h"

START_TEST(published_vectors)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } vector[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                  {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                   {0xffffffff, 0xffffffff},
                   {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                  {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0},
                   {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    uint32_t out[4];

    for (size_t i = 0; i < sizeof vector / sizeof *vector; i++) {
        random_philox(vector[i].counter, vector[i].key, out);
        ck_assert_mem_eq(out, vector[i].out, sizeof out);
    }
}
END_TEST

/* The words of the counter are index, epoch, stream: part of the frozen orders. */
START_TEST(key_layout)
{
    const struct random_key key = {.seed = 0x299f31d0a4093822, .epoch = 0x13198a2e, .stream = 0x03707344};

    ck_assert_uint_eq(random_bits(&key, 0x85a308d3243f6a88), 0x94fdccebd16cfe09);
}
END_TEST

START_TEST(every_word_matters)
{
    const struct random_key key = {.seed = 7, .epoch = 1, .stream = RANDOM_SHUFFLE};
    struct random_key other = key;
    const uint64_t bits = random_bits(&key, 5);

    ck_assert_uint_ne(bits, random_bits(&key, 6));
    ck_assert_uint_ne(bits, random_bits(&key, 5 + (UINT64_C(1) << 32)));
    other.seed = 7 + (UINT64_C(1) << 32);
    ck_assert_uint_ne(bits, random_bits(&other, 5));
    other = key;
    other.epoch = 2;
    ck_assert_uint_ne(bits, random_bits(&other, 5));
    other = key;
    other.stream = RANDOM_INIT;
    ck_assert_uint_ne(bits, random_bits(&other, 5));
}
END_TEST

/* High half of the product with the bits, against 128-bit arithmetic. */
START_TEST(below_is_scaled_bits)
{
    static const uint64_t bounds[] = {1, 2, 3, 10, 60000, UINT64_C(1) << 32, UINT64_C(0xfedcba9876543211), UINT64_MAX};
    const struct random_key key = {.seed = 3, .stream = RANDOM_SYNTHETIC};

    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        for (uint64_t index = 0; index < 200; index++) {
            const unsigned __int128 product = (unsigned __int128)random_bits(&key, index) * bounds[i];

            ck_assert_uint_eq(random_below(&key, index, bounds[i]), (uint64_t)(product >> 64));
        }
}
END_TEST

START_TEST(below_is_even)
{
    enum { BOUND = 10, DRAWS = 100000 };
    const struct random_key key = {.seed = 11, .stream = RANDOM_SYNTHETIC};
    int count[BOUND] = {0};

    for (uint64_t index = 0; index < DRAWS; index++)
        count[random_below(&key, index, BOUND)]++;
    for (int i = 0; i < BOUND; i++) /* 10 standard deviations of 95 */
        ck_assert_msg(abs(count[i] - DRAWS / BOUND) < 950, "%d was drawn %d times", i, count[i]);
}
END_TEST

START_TEST(symmetric_range)
{
    const struct random_key key = {.seed = 1, .stream = RANDOM_INIT};
    double sum = 0, squares = 0;

    for (uint64_t index = 0; index < 100000; index++) {
        const float value = random_symmetric(&key, index);

        ck_assert(value >= -1 && value < 1);
        sum += (double)value;
        squares += (double)value * (double)value;
    }
    ck_assert_double_eq_tol(sum / 100000, 0, 0.02);
    ck_assert_double_eq_tol(squares / 100000, 1.0 / 3, 0.01);
}
END_TEST

/* Any bit that flips, anywhere, at any length, changes the digest. */
START_TEST(digest_sees_every_bit)
{
    unsigned char bytes[100];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        const uint64_t before = digest(bytes, size, 0);

        ck_assert_uint_ne(before, digest(bytes, size, 1));
        if (size > 0)
            ck_assert_uint_ne(before, digest(bytes, size - 1, 0));
        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            ck_assert_msg(before != digest(bytes, size, 0), "size %zu bit %zu", size, bit);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {published_vectors, key_layout,      every_word_matters,    below_is_scaled_bits,
                                  below_is_even,     symmetric_range, digest_sees_every_bit, NULL};

    return run_tests("trainer random", tests, 60);
}
