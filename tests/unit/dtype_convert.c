// SPDX-License-Identifier: BSD-3-Clause
/* Small types to f32 and back: every pattern, every tie and its neighbours, a sample of all f32. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "unit/dtype_reference.h"

enum { BLOCK = 1024, MOST_PATTERNS = 65536, NARROW_TYPES = 4 };

static const enum hoop_type narrow_types[NARROW_TYPES] = {HOOP_F16, HOOP_BF16, HOOP_F8E4M3, HOOP_F8E5M2};

static uint32_t patterns_of(enum hoop_type type)
{
    return (uint32_t)1 << 8 * hoop_type_size(type);
}

/* Elements of one or two bytes. */
static uint16_t read_at(const void *from, size_t i, enum hoop_type type)
{
    uint16_t pattern;

    if (hoop_type_size(type) == 1)
        return ((const uint8_t *)from)[i];
    memcpy(&pattern, (const unsigned char *)from + 2 * i, 2);
    return pattern;
}

static void write_at(void *to, size_t i, enum hoop_type type, uint16_t pattern)
{
    if (hoop_type_size(type) == 1)
        ((uint8_t *)to)[i] = (uint8_t)pattern;
    else
        memcpy((unsigned char *)to + 2 * i, &pattern, 2);
}

static bool use(int level)
{
    return hoop_kernel_level_set((enum hoop_kernel_level)level);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float value_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Sign and payload stay; NaN becomes quiet but for bf16, because the instruction does that to f16. */
static uint32_t widened_nan(uint32_t pattern, enum hoop_type type)
{
    switch (type) {
    case HOOP_BF16:
        return pattern << 16;
    case HOOP_F8E4M3:
        return (pattern & 0x80) << 24 | 0x7fc00000;
    case HOOP_F8E5M2:
        return (pattern & 0x80) << 24 | 0x7fc00000 | (pattern & 3) << 21;
    default:
        return (pattern & 0x8000) << 16 | 0x7fc00000 | (pattern & 0x3ff) << 13;
    }
}

START_TEST(widen_all)
{
    static uint16_t patterns[MOST_PATTERNS];
    static float wide[MOST_PATTERNS];

    if (!use(_i))
        return;
    for (int k = 0; k < NARROW_TYPES; k++) {
        const uint32_t all = patterns_of(narrow_types[k]);

        for (size_t i = 0; i < all; i++)
            write_at(patterns, i, narrow_types[k], (uint16_t)i);
        hoop_kernel_widen(wide, patterns, all, narrow_types[k]);
        for (size_t i = 0; i < all; i++) {
            const double expected = reference_decode((uint16_t)i, narrow_types[k]);
            const uint32_t bits =
                isnan(expected) ? widened_nan((uint16_t)i, narrow_types[k]) : bits_of((float)expected);

            if (bits_of(wide[i]) != bits)
                ck_abort_msg("level=%d type=%s pattern=%#zx gives %#x", _i, hoop_type_name(narrow_types[k]), i,
                             (unsigned)bits_of(wide[i]));
        }
    }
}
END_TEST

/* Collects values and checks them a block at a time, narrowed apart and in place. */
static void try_narrow(uint32_t bits, bool flush)
{
    static float block[BLOCK], in_place[BLOCK];
    static size_t used;
    uint16_t narrow[BLOCK];

    block[used++] = value_of(bits);
    if (used < BLOCK && !flush)
        return;
    for (int k = 0; k < NARROW_TYPES; k++) {
        memcpy(in_place, block, sizeof(block));
        hoop_kernel_narrow(narrow, block, used, narrow_types[k]);
        hoop_kernel_narrow(in_place, in_place, used, narrow_types[k]);
        ck_assert_mem_eq(in_place, narrow, used * hoop_type_size(narrow_types[k]));
        for (size_t i = 0; i < used; i++)
            if (read_at(narrow, i, narrow_types[k]) != reference_encode((double)block[i], narrow_types[k]))
                ck_abort_msg("level=%d type=%s f32=%#x gives %#x", (int)hoop_kernel_level(),
                             hoop_type_name(narrow_types[k]), (unsigned)bits_of(block[i]),
                             (unsigned)read_at(narrow, i, narrow_types[k]));
    }
    used = 0;
}

/* Each pattern's value, the middle to the next, and the f32 on both sides of either. */
START_TEST(narrow_ties)
{
    if (!use(_i))
        return;
    for (int k = 0; k < NARROW_TYPES; k++)
        for (uint32_t i = 0; i + 1 < patterns_of(narrow_types[k]); i++) {
            const double low = reference_decode((uint16_t)i, narrow_types[k]);
            double high = reference_decode((uint16_t)(i + 1), narrow_types[k]);

            if (isinf(high) && !isinf(low)) /* where the next would be, had the format one more exponent */
                high = 2 * low - reference_decode((uint16_t)(i - 1), narrow_types[k]);
            for (int32_t step = -1; step <= 1; step++) {
                try_narrow(bits_of((float)low) + (uint32_t)step, false);
                try_narrow(bits_of((float)((low + high) / 2)) + (uint32_t)step, false);
            }
        }
    try_narrow(0, true);
}
END_TEST

START_TEST(narrow_sample)
{
    if (!use(_i))
        return;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 32771)
        try_narrow((uint32_t)bits, false);
    try_narrow(0, true);
}
END_TEST

/* Lengths and alignments: the patterns must not depend on where in a buffer an element lies. */
START_TEST(every_length)
{
    unsigned char stored[4 * 130 + 192], wide[4 * 130 + 192], again[4 * 130 + 192];
    uint64_t seed = 5;

    if (!use(_i))
        return;
    for (int k = 0; k < NARROW_TYPES; k++)
        for (size_t count = 0; count <= 130; count++) {
            unsigned char *from = stored + reference_random(&seed, 64), *to = wide + reference_random(&seed, 64);
            unsigned char *back = again + reference_random(&seed, 64);
            const size_t size = hoop_type_size(narrow_types[k]);

            memset(wide, 0xa5, sizeof(wide));
            memset(again, 0xa5, sizeof(again));
            for (size_t i = 0; i < count; i++) { /* all but NaN come back as they were */
                uint16_t pattern = (uint16_t)reference_random(&seed, patterns_of(narrow_types[k]));

                if (isnan(reference_decode(pattern, narrow_types[k])))
                    pattern = (uint16_t)i % 100;
                write_at(from, i, narrow_types[k], pattern);
            }
            hoop_kernel_widen((float *)(void *)to, from, count, narrow_types[k]);
            hoop_kernel_narrow(back, (const float *)(const void *)to, count, narrow_types[k]);
            ck_assert_msg(memcmp(back, from, size * count) == 0, "level=%d type=%s count=%zu", _i,
                          hoop_type_name(narrow_types[k]), count);
            ck_assert_uint_eq(to[4 * count], 0xa5);
            ck_assert_uint_eq(back[size * count], 0xa5);
        }
}
END_TEST

START_TEST(float_is_copied)
{
    float from[5] = {1, -0.0f, 3, INFINITY, 5}, to[5];

    hoop_kernel_widen(to, from, 5, HOOP_F32);
    ck_assert_mem_eq(to, from, sizeof(to));
    memset(to, 0, sizeof(to));
    hoop_kernel_narrow(to, from, 5, HOOP_F32);
    ck_assert_mem_eq(to, from, sizeof(to));
    hoop_kernel_narrow(to, to, 5, HOOP_F32);
    ck_assert_mem_eq(to, from, sizeof(to));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dtype_convert");
    TCase *each_level = tcase_create("each level");
    SRunner *runner;
    int failed;

    tcase_set_timeout(each_level, 120);
    tcase_add_loop_test(each_level, widen_all, 0, HOOP_KERNEL_LEVELS);
    tcase_add_loop_test(each_level, narrow_ties, 0, HOOP_KERNEL_LEVELS);
    tcase_add_loop_test(each_level, narrow_sample, 0, HOOP_KERNEL_LEVELS);
    tcase_add_loop_test(each_level, every_length, 0, HOOP_KERNEL_LEVELS);
    tcase_add_test(each_level, float_is_copied);
    suite_add_tcase(suite, each_level);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
