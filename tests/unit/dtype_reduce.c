// SPDX-License-Identifier: BSD-3-Clause
/* Types × operators × lengths × alignments × levels of the host kernels, compared bit by bit with the reference. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "unit/dtype_reference.h"

enum { LONGEST = 300, MARGIN = 64, ROOM = LONGEST * 16 + 3 * MARGIN, INPUTS = 9, UNTOUCHED = 0xa5 };

static unsigned char room[INPUTS + 2][ROOM]; /* each begins MARGIN bytes or more before its buffer */

/* Skips what this machine cannot run. */
static bool use(int level)
{
    return hoop_kernel_level_set((enum hoop_kernel_level)level);
}

static bool applies(int op, int type)
{
    return hoop_op_accepts((enum hoop_op)op, (enum hoop_type)type);
}

/* The operator, or one that the type takes. */
static enum hoop_op op_of(enum hoop_type type, enum hoop_op op)
{
    return applies((int)op, (int)type) ? op : op == HOOP_MAX ? HOOP_MAXLOC : HOOP_MINLOC;
}

static unsigned char *place(int which, uint64_t *seed)
{
    memset(room[which], UNTOUCHED, ROOM);
    return room[which] + MARGIN + reference_random(seed, 64);
}

static bool untouched_around(int which, const unsigned char *buffer, size_t bytes)
{
    for (const unsigned char *at = room[which]; at < room[which] + ROOM; at++)
        if ((at < buffer || at >= buffer + bytes) && *at != UNTOUCHED)
            return false;
    return true;
}

/* mode 0: apart; 1: to is left; 2: to is right; 3: all are one. */
static void try_reduce(size_t count, enum hoop_type type, enum hoop_op op, int mode, uint64_t *seed)
{
    const size_t bytes = count * hoop_type_size(type);
    unsigned char *left = place(0, seed), *right = place(1, seed), *also = place(3, seed), expected[ROOM];
    unsigned char *to = mode == 0 ? place(2, seed) : mode == 2 ? right : left;
    const int which = mode == 0 ? 2 : mode == 2 ? 1 : 0;
    const uint64_t start = *seed;

    for (int twice = 0; twice <= 1; twice++) {
        *seed = start;
        reference_fill(left, count, type, seed);
        reference_fill(right, count, type, seed);
        if (mode == 3)
            right = left;
        reference_reduce(expected, (const unsigned char *[]){left, right}, 2, count, type, op, 0);
        if (twice)
            hoop_kernel_reduce_two(to, also, left, right, count, type, op);
        else
            hoop_kernel_reduce(to, left, right, count, type, op);
        if (memcmp(to, expected, bytes) != 0 || !untouched_around(which, to, bytes))
            ck_abort_msg("level=%d type=%s op=%s count=%zu mode=%d twice=%d seed=%llu", (int)hoop_kernel_level(),
                         hoop_type_name(type), hoop_op_name(op), count, mode, twice, (unsigned long long)start);
        if (twice && (memcmp(also, expected, bytes) != 0 || !untouched_around(3, also, bytes)))
            ck_abort_msg("also: level=%d type=%s op=%s count=%zu mode=%d", (int)hoop_kernel_level(),
                         hoop_type_name(type), hoop_op_name(op), count, mode);
    }
}

START_TEST(two_operands)
{
    uint64_t seed = 1;

    if (!use(_i))
        return;
    for (int type = 0; type < HOOP_TYPES; type++)
        for (int op = 0; op < HOOP_OPS; op++)
            for (size_t count = 0; count <= 130 && applies(op, type); count++)
                for (int mode = 0; mode <= 3; mode++)
                    try_reduce(count, (enum hoop_type)type, (enum hoop_op)op, mode, &seed);
}
END_TEST

/* replaced: the input that receives the result; -1: none. ranks 0: no average. */
static void try_many(int n, size_t count, enum hoop_type type, enum hoop_op op, int replaced, int ranks, uint64_t *seed)
{
    const size_t bytes = count * hoop_type_size(type);
    unsigned char *inputs[INPUTS], *to, expected[ROOM];

    for (int k = 0; k < n; k++) {
        inputs[k] = place(k, seed);
        reference_fill(inputs[k], count, type, seed);
    }
    to = replaced >= 0 ? inputs[replaced] : place(INPUTS, seed);
    reference_reduce(expected, (const unsigned char *const *)inputs, n, count, type, op, ranks);
    if (ranks > 0)
        hoop_kernel_average_many(to, (const void *const *)inputs, n, count, type, ranks);
    else
        hoop_kernel_reduce_many(to, (const void *const *)inputs, n, count, type, op);
    if (memcmp(to, expected, bytes) != 0 || !untouched_around(replaced >= 0 ? replaced : INPUTS, to, bytes))
        ck_abort_msg("level=%d type=%s op=%s n=%d count=%zu replaced=%d ranks=%d", (int)hoop_kernel_level(),
                     hoop_type_name(type), hoop_op_name(op), n, count, replaced, ranks);
}

START_TEST(many_operands)
{
    uint64_t seed = 2;

    if (!use(_i))
        return;
    for (int type = 0; type < HOOP_TYPES; type++)
        for (int op = 0; op < HOOP_OPS; op++)
            for (int n = 1; n <= INPUTS && applies(op, type); n++)
                for (size_t count = 0; count <= LONGEST; count += 1 + reference_random(&seed, 16))
                    try_many(n, count, (enum hoop_type)type, (enum hoop_op)op,
                             (int)reference_random(&seed, (uint64_t)n + 1) - 1, 0, &seed);
}
END_TEST

/* One, two and three inputs in every length up to 130 and with every buffer at each of 64 alignments. The counts ascend, so
 * that what lies behind the result must still be untouched. */
enum { ENOUGH = 130 };

static void try_alignment(size_t shift, enum hoop_type type, enum hoop_op op, unsigned char input[3][16 * ENOUGH],
                          unsigned char expected[4][16 * ENOUGH])
{
    const size_t size = hoop_type_size(type);
    unsigned char *at[6];

    for (size_t k = 0; k < 6; k++) {
        at[k] = room[k] + MARGIN + (shift * (2 * k + 1) + k) % 64;
        memset(room[k], UNTOUCHED, ROOM);
        if (k < 3)
            memcpy(at[k], input[k], ENOUGH * size);
    }
    for (size_t count = 0; count <= ENOUGH; count++)
        for (int n = 1; n <= 3; n++) {
            const size_t bytes = count * size;

            hoop_kernel_reduce_many(at[3], (const void *[]){at[0], at[1], at[2]}, n, count, type, op);
            if (n == 2) {
                hoop_kernel_reduce(at[4], at[0], at[1], count, type, op);
                hoop_kernel_reduce_two(at[4], at[5], at[0], at[1], count, type, op);
            }
            for (size_t k = 3; k < (n == 2 ? 6 : 4); k++)
                if (memcmp(at[k], expected[n], bytes) != 0 || at[k][-1] != UNTOUCHED ||
                    memcmp(at[k] + bytes, room[6], 64) != 0)
                    ck_abort_msg("level=%d type=%s op=%s n=%d count=%zu shift=%zu result=%zu", (int)hoop_kernel_level(),
                                 hoop_type_name(type), hoop_op_name(op), n, count, shift, k - 3);
        }
}

START_TEST(every_length_and_alignment)
{
    static unsigned char input[3][16 * ENOUGH], expected[4][16 * ENOUGH];
    uint64_t seed = 6;

    if (!use(_i))
        return;
    memset(room[6], UNTOUCHED, ROOM);
    for (int type = 0; type < HOOP_TYPES; type++)
        for (int op = 0; op < HOOP_OPS; op++) {
            if (!applies(op, type))
                continue;
            for (int k = 0; k < 3; k++)
                reference_fill(input[k], ENOUGH, (enum hoop_type)type, &seed);
            for (int n = 1; n <= 3; n++)
                reference_reduce(expected[n], (const unsigned char *[]){input[0], input[1], input[2]}, n, ENOUGH,
                                 (enum hoop_type)type, (enum hoop_op)op, 0);
            for (size_t shift = 0; shift < 64; shift++)
                try_alignment(shift, (enum hoop_type)type, (enum hoop_op)op, input, expected);
        }
}
END_TEST

START_TEST(average)
{
    static const int ranks[] = {1, 2, 3, 7, 128, 1000};
    uint64_t seed = 3;

    if (!use(_i))
        return;
    for (int type = 0; type < HOOP_TYPES; type++)
        for (size_t r = 0; r < sizeof(ranks) / sizeof(*ranks) && applies(HOOP_AVG, type); r++)
            for (int n = 1; n <= INPUTS; n += 2)
                for (size_t count = 0; count <= LONGEST; count += 1 + reference_random(&seed, 16))
                    try_many(n, count, (enum hoop_type)type, HOOP_AVG,
                             (int)reference_random(&seed, (uint64_t)n + 1) - 1, ranks[r], &seed);
}
END_TEST

START_TEST(divide)
{
    static const int ranks[] = {1, 2, 3, 5, 10, 255, 256, 300, 65537, 2147483647};
    uint64_t seed = 4;

    if (!use(_i))
        return;
    for (int type = 0; type < HOOP_TYPES; type++)
        for (size_t r = 0; r < sizeof(ranks) / sizeof(*ranks) && applies(HOOP_AVG, type); r++)
            for (size_t count = 0; count <= 130; count++) {
                unsigned char *data = place(0, &seed), expected[ROOM];
                const size_t bytes = count * hoop_type_size((enum hoop_type)type);

                if (ranks[r] > 1 << 24 && hoop_type_wide((enum hoop_type)type) == HOOP_F32)
                    continue; /* not a float */
                reference_fill(data, count, (enum hoop_type)type, &seed);
                reference_reduce(expected, (const unsigned char *[]){data}, 1, count, (enum hoop_type)type, HOOP_SUM,
                                 ranks[r]);
                hoop_kernel_divide(data, count, (enum hoop_type)type, ranks[r]);
                if (memcmp(data, expected, bytes) != 0 || !untouched_around(0, data, bytes))
                    ck_abort_msg("level=%d type=%s count=%zu ranks=%d", _i, hoop_type_name((enum hoop_type)type), count,
                                 ranks[r]);
            }
}
END_TEST

/* Buffers that end, then begin, at a page that must not be touched. */
static unsigned char *fenced(size_t page)
{
    unsigned char *pages = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert(pages != MAP_FAILED);
    ck_assert_int_eq(mprotect(pages + page, page, PROT_READ | PROT_WRITE), 0);
    return pages + page;
}

START_TEST(nothing_outside_is_read)
{
    const size_t page = 65536; /* a multiple of every page size in use */
    unsigned char *left = fenced(page), *right = fenced(page), *to = fenced(page), *also = fenced(page);

    if (!use(_i))
        return;
    for (int kind = 0; kind < HOOP_TYPES; kind++)
        for (size_t count = 1; count <= 130; count++)
            for (int end = 0; end <= 1; end++) {
                const enum hoop_type type = (enum hoop_type)kind;
                const size_t at = end ? page - count * hoop_type_size(type) : 0;
                const size_t wide_at = end ? page - count * sizeof(float) : 0;
                const void *inputs[] = {left + at, right + at, left + at};

                hoop_kernel_reduce_two(to + at, also + at, left + at, right + at, count, type, op_of(type, HOOP_SUM));
                hoop_kernel_reduce_many(to + at, inputs, 3, count, type, op_of(type, HOOP_MAX));
                if (applies(HOOP_AVG, kind))
                    hoop_kernel_divide(to + at, count, type, 3);
                if (hoop_type_wide(type) == HOOP_F32) {
                    hoop_kernel_widen((float *)(void *)(to + wide_at), left + at, count, type);
                    hoop_kernel_narrow(left + at, (const float *)(void *)(to + wide_at), count, type);
                }
            }
}
END_TEST

START_TEST(names)
{
    ck_assert_str_eq(hoop_type_name(HOOP_F32), "float");
    ck_assert_str_eq(hoop_type_name(HOOP_BF16), "bfloat16");
    ck_assert_str_eq(hoop_op_name(HOOP_AVG), "avg");
    ck_assert_str_eq(hoop_op_name(HOOP_LXOR), "lxor");
    ck_assert_str_eq(hoop_type_name(HOOP_F8E5M2), "f8e5m2");
    ck_assert_str_eq(hoop_type_name(HOOP_TYPES), "?");
    ck_assert_str_eq(hoop_type_name((enum hoop_type) - 1), "?");
    ck_assert_str_eq(hoop_op_name(HOOP_OPS), "?");
    ck_assert_uint_eq(hoop_type_size(HOOP_TYPES), 0);
    ck_assert_uint_eq(hoop_type_size(HOOP_F16), 2);
    ck_assert_uint_eq(hoop_type_size(HOOP_I64), 8);
    for (int type = 0; type < HOOP_TYPES; type++) {
        const enum hoop_type wide = hoop_type_wide((enum hoop_type)type);

        ck_assert_uint_gt(hoop_type_size((enum hoop_type)type), 0);
        ck_assert_int_eq(hoop_type_wide(wide), wide);
        for (int other = 0; other < type; other++)
            ck_assert_str_ne(hoop_type_name((enum hoop_type)type), hoop_type_name((enum hoop_type)other));
    }
}
END_TEST

/* Which operator takes which type: by the rule, not by the table. */
START_TEST(acceptance)
{
    for (int type = -1; type <= HOOP_TYPES; type++)
        for (int op = -1; op <= HOOP_OPS; op++) {
            const bool real = type == HOOP_F32 || type == HOOP_F64 || type == HOOP_F16 || type == HOOP_BF16 ||
                              type == HOOP_F8E4M3 || type == HOOP_F8E5M2;
            const bool exists = type >= 0 && type < HOOP_TYPES && op >= 0 && op < HOOP_OPS;
            const bool pair = type >= HOOP_F32_I32 && type <= HOOP_I64_I64,
                       loc = op == HOOP_MINLOC || op == HOOP_MAXLOC;
            const bool expected = exists && pair == loc && (!real || op <= HOOP_AVG);

            ck_assert_msg(applies(op, type) == expected, "op=%d type=%d", op, type);
        }
}
END_TEST

/* The rules of hoop.h in numbers, independent of the reference. */
START_TEST(rules)
{
    static const struct {
        enum hoop_type type;
        enum hoop_op op;
        uint16_t left, right, result; /* bits */
    } cases[] = {
        {HOOP_I8, HOOP_SUM, 0x7f, 0x01, 0x80},
        {HOOP_U8, HOOP_PROD, 0x10, 0x11, 0x10},
        {HOOP_I8, HOOP_MIN, 0x80, 0x7f, 0x80},
        {HOOP_U8, HOOP_MIN, 0x80, 0x7f, 0x7f},
        {HOOP_I16, HOOP_MAX, 0x8000, 0x7fff, 0x7fff},
        {HOOP_U16, HOOP_MAX, 0x8000, 0x7fff, 0x8000},
        {HOOP_U16, HOOP_BAND, 0xff0f, 0x3333, 0x3303},
        {HOOP_U16, HOOP_BOR, 0xff00, 0x3333, 0xff33},
        {HOOP_U16, HOOP_BXOR, 0xff00, 0x3333, 0xcc33},
        {HOOP_I16, HOOP_LAND, 0x0100, 0x8000, 1},
        {HOOP_I16, HOOP_LAND, 0x0100, 0, 0},
        {HOOP_I16, HOOP_LOR, 0, 0x8000, 1},
        {HOOP_I8, HOOP_LOR, 0, 0, 0},
        {HOOP_I8, HOOP_LXOR, 0x80, 0x01, 0},
        {HOOP_I8, HOOP_LXOR, 0x80, 0, 1},
        {HOOP_F8E4M3, HOOP_SUM, 0x7e, 0x7e, 0x7e}, /* 448 + 448 */
        {HOOP_F8E5M2, HOOP_SUM, 0xfb, 0xfb, 0xfb}, /* -57344 twice */
        {HOOP_F8E5M2, HOOP_SUM, 0x7c, 0xfb, 0x7c}, /* inf - 57344 */
        {HOOP_F8E5M2, HOOP_SUM, 0x7c, 0xfc, 0x7e}, /* inf - inf */
        {HOOP_F8E4M3, HOOP_MAX, 0xff, 0x38, 0x7f}, /* NaN, 1 */
        {HOOP_F8E4M3, HOOP_MIN, 0x00, 0x80, 0x80}, /* 0, -0 */
        {HOOP_F8E4M3, HOOP_SUM, 0x38, 0x18, 0x38}, /* 1 + 2^-4: a tie, to even */
        {HOOP_F8E4M3, HOOP_SUM, 0x39, 0x18, 0x3a}, /* 1.125 + 2^-4: a tie, to even */
        {HOOP_F16, HOOP_SUM, 0x7bff, 0x7bff, 0x7c00},
        {HOOP_BF16, HOOP_SUM, 0x7f7f, 0x7f7f, 0x7f80},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint16_t result = 0;

        hoop_kernel_reduce(&result, &cases[i].left, &cases[i].right, 1, cases[i].type, cases[i].op);
        ck_assert_msg(result == cases[i].result, "%s %s of %#x and %#x gives %#x, must be %#x",
                      hoop_type_name(cases[i].type), hoop_op_name(cases[i].op), cases[i].left, cases[i].right, result,
                      cases[i].result);
    }
}
END_TEST

/* Pairs likewise, written out. Every case also with the operands exchanged: the result is the same to the bit. */
START_TEST(pair_rules)
{
    static const uint64_t nan = 0x7fc00000, payload = 0xffc00005, infinite = 0x7f800000, minus_zero = 0x80000000;
    static const struct {
        enum hoop_op op;
        uint64_t value[2], index[2], result_value, result_index; /* bits of f32 and i32 */
    } cases[] = {
        {HOOP_MINLOC, {0x3f800000, 0x40000000}, {7, 3}, 0x3f800000, 7},
        {HOOP_MAXLOC, {0x3f800000, 0x40000000}, {7, 3}, 0x40000000, 3},
        {HOOP_MINLOC, {0x3f800000, 0x3f800000}, {7, 3}, 0x3f800000, 3},
        {HOOP_MAXLOC, {0x3f800000, 0x3f800000}, {7, 3}, 0x3f800000, 3},
        {HOOP_MINLOC, {0, minus_zero}, {1, 2}, minus_zero, 2},
        {HOOP_MAXLOC, {0, minus_zero}, {2, 1}, 0, 2},
        {HOOP_MINLOC, {infinite | minus_zero, payload}, {1, 2}, nan, 2},
        {HOOP_MAXLOC, {infinite, payload}, {1, 2}, nan, 2},
        {HOOP_MINLOC, {nan, payload}, {9, 4}, nan, 4},
        {HOOP_MAXLOC, {nan, payload}, {4, 9}, nan, 4},
        {HOOP_MINLOC, {0x3f800000, 0x3f800000}, {3, 0xffffffff}, 0x3f800000, 0xffffffff}, /* -1 is less */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (int turned = 0; turned <= 1; turned++) {
            const uint32_t left[] = {(uint32_t)cases[i].value[turned], (uint32_t)cases[i].index[turned]};
            const uint32_t right[] = {(uint32_t)cases[i].value[!turned], (uint32_t)cases[i].index[!turned]};
            uint32_t result[2];

            hoop_kernel_reduce(result, left, right, 1, HOOP_F32_I32, cases[i].op);
            ck_assert_msg(result[0] == cases[i].result_value && result[1] == cases[i].result_index,
                          "case %zu turned=%d gives %#x %#x", i, turned, result[0], result[1]);
        }
    ck_assert_uint_eq(sizeof(struct hoop_f32_i32), 8);
    ck_assert_uint_eq(sizeof(struct hoop_f64_i64), 16);
    ck_assert_uint_eq(offsetof(struct hoop_f32_i32, index), 4);
    ck_assert_uint_eq(offsetof(struct hoop_f64_i64, index), 8);
    ck_assert_uint_eq(offsetof(struct hoop_i64_i64, index), 8);
}
END_TEST

START_TEST(nothing_of_nothing)
{
    const void *inputs[] = {NULL, NULL};

    for (int type = 0; type < HOOP_TYPES; type++) {
        const enum hoop_op op = op_of((enum hoop_type)type, HOOP_SUM);

        hoop_kernel_reduce(NULL, NULL, NULL, 0, (enum hoop_type)type, op);
        hoop_kernel_reduce_two(NULL, NULL, NULL, NULL, 0, (enum hoop_type)type, op);
        hoop_kernel_reduce_many(NULL, inputs, 2, 0, (enum hoop_type)type, op);
        hoop_kernel_divide(NULL, 0, (enum hoop_type)type, 2);
    }
    hoop_kernel_widen(NULL, NULL, 0, HOOP_F16);
    hoop_kernel_narrow(NULL, NULL, 0, HOOP_BF16);
    hoop_kernel_copy(NULL, NULL, 0);
}
END_TEST

START_TEST(levels)
{
    const enum hoop_kernel_level best = hoop_kernel_level();

    ck_assert(hoop_kernel_level_set(HOOP_KERNEL_PLAIN));
    ck_assert_int_eq(hoop_kernel_level(), HOOP_KERNEL_PLAIN);
    ck_assert(!hoop_kernel_level_set(HOOP_KERNEL_LEVELS));
    ck_assert(hoop_kernel_level_set(best));
    ck_assert_int_eq(hoop_kernel_level(), best);
    for (int level = (int)best + 1; level < HOOP_KERNEL_LEVELS; level++)
        ck_assert(!hoop_kernel_level_set((enum hoop_kernel_level)level));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dtype_reduce");
    TCase *each_level = tcase_create("each level"), *once = tcase_create("once");
    SRunner *runner;
    int failed;

    tcase_set_timeout(each_level, 120);
    tcase_add_loop_test(each_level, two_operands, 0, HOOP_KERNEL_LEVELS);
    tcase_add_loop_test(each_level, many_operands, 0, HOOP_KERNEL_LEVELS);
    tcase_add_loop_test(each_level, every_length_and_alignment, 0, HOOP_KERNEL_LEVELS);
    tcase_add_loop_test(each_level, average, 0, HOOP_KERNEL_LEVELS);
    tcase_add_loop_test(each_level, divide, 0, HOOP_KERNEL_LEVELS);
    tcase_add_loop_test(each_level, nothing_outside_is_read, 0, HOOP_KERNEL_LEVELS);
    suite_add_tcase(suite, each_level);
    tcase_add_test(once, names);
    tcase_add_test(once, acceptance);
    tcase_add_test(once, rules);
    tcase_add_test(once, pair_rules);
    tcase_add_test(once, nothing_of_nothing);
    tcase_add_test(once, levels);
    suite_add_tcase(suite, once);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
