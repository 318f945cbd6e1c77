// SPDX-License-Identifier: BSD-3-Clause
/* The kernels on vectors against the host's kernels, bit by bit: all types × operators, lengths and alignments. */
#include <check.h>
#include <stdbool.h>
#include <string.h>

#include "device.h"
#include "dtype/dtype.h"
#include "exec/device/program.h"
#include "harness.h"
#include "numbers.h"

enum { COUNT_MOST = 70, ROOM = 4096, EDGE = 64 };

static unsigned char left[ROOM], right[ROOM], got[ROOM], want[ROOM];

static void check_same(size_t bytes, const char *what, enum hoop_type type, enum hoop_op op, size_t count)
{
    if (memcmp(got, want, bytes) == 0)
        return;
    size_t at = 0;
    while (got[at] == want[at])
        at++;
    ck_abort_msg("%s %s %s count=%zu: byte %zu is %#x, must be %#x", what, hoop_type_name(type),
                 op < HOOP_OPS ? hoop_op_name(op) : "", count, at, got[at], want[at]);
}

/* The bare reduction, or copy where there is no right side, of so many bytes. */
static struct hoop_device_call bare(unsigned char *to, const unsigned char *from, const unsigned char *with,
                                    size_t bytes, enum hoop_type type, enum hoop_op op)
{
    return (struct hoop_device_call){.out = device_address(to),
                                     .in = device_address(from),
                                     .tmp = device_address(with),
                                     .count = bytes,
                                     .type = type,
                                     .element = (uint32_t)hoop_type_size(type),
                                     .op = op == HOOP_AVG ? HOOP_SUM : op,
                                     .flags = HOOP_DEVICE_BARE};
}

static void check_reduce(enum hoop_type type, enum hoop_op op, size_t count, const size_t *shift, bool in_place)
{
    const size_t size = hoop_type_size(type), bytes = count * size;
    unsigned char *to = in_place ? right + shift[1] : got + shift[2];

    memset(got, 0x5a, sizeof got);
    memset(want, 0x5a, sizeof want);
    numbers_fill(left, sizeof left, size);
    numbers_fill(right, sizeof right, size);
    if (in_place)
        memcpy(want, right, sizeof right);
    hoop_kernel_reduce(want + (in_place ? shift[1] : shift[2]), left + shift[0], right + shift[1], count, type, op);
    const struct hoop_device_call call = bare(to, left + shift[0], right + shift[1], bytes, type, op);
    launch_alone("hoop_interpret", &call);
    if (in_place)
        memcpy(got, right, sizeof right);
    check_same(sizeof got, "reduce", type, op, count);
}

START_TEST(reductions)
{
    const enum hoop_type type = (enum hoop_type)_i;

    for (int op = 0; op < HOOP_OPS; op++)
        for (size_t count = 0; count <= COUNT_MOST && hoop_op_accepts((enum hoop_op)op, type); count++) {
            const size_t grain = numbers_grain(type);
            const size_t one = EDGE + numbers_random() % 16 * grain, two = EDGE + numbers_random() % 16 * grain;
            check_reduce(type, (enum hoop_op)op, count, (size_t[]){one, one, one}, false);
            check_reduce(type, (enum hoop_op)op, count, (size_t[]){one, two, EDGE}, false);
            check_reduce(type, (enum hoop_op)op, count, (size_t[]){two, one, 0}, true);
        }
}
END_TEST

START_TEST(conversions)
{
    const enum hoop_type type = (enum hoop_type)_i;
    const size_t size = hoop_type_size(type);

    for (size_t turn = 0; turn < 300 && hoop_type_wide(type) != type; turn++) {
        const size_t count = turn % 64;
        struct hoop_device_vector vector = {
            .to = device_address(got), .left = device_address(left), .count = count, .type = type};
        memset(got, 0, sizeof got);
        memset(want, 0, sizeof want);
        numbers_fill(left, sizeof left, size);
        hoop_kernel_widen((float *)(void *)want, left, count, type);
        launch_alone("hoop_vector_widen", &vector);
        check_same(sizeof got, "widen", type, HOOP_OPS, count);
        numbers_fill(left, sizeof left, 4);
        memset(got, 0, sizeof got);
        memset(want, 0, sizeof want);
        hoop_kernel_narrow(want, (const float *)(const void *)left, count, type);
        launch_alone("hoop_vector_narrow", &vector);
        check_same(sizeof got, "narrow", type, HOOP_OPS, count);
    }
}
END_TEST

/* Every f16, bf16 and byte there is; and floats near the edges between those. */
START_TEST(all_small_numbers)
{
    const enum hoop_type type = (enum hoop_type)_i;
    const uint32_t numbers = hoop_type_size(type) == 1 ? 256 : 65536;
    float wide, host, near;
    uint16_t narrow, narrow_host;

    for (uint32_t bits = 0; bits < numbers && hoop_type_wide(type) != type; bits++) {
        struct hoop_device_vector vector = {
            .to = device_address(&wide), .left = device_address(&bits), .count = 1, .type = type};
        launch_alone("hoop_vector_widen", &vector);
        hoop_kernel_widen(&host, &bits, 1, type);
        ck_assert_msg(memcmp(&wide, &host, 4) == 0, "widen %s %#x", hoop_type_name(type), bits);
        for (int edge = -1; edge <= 1; edge++) {
            uint32_t near_bits;
            memcpy(&near_bits, &host, 4);
            near_bits += (uint32_t)edge + (bits % 2 ? 0 : 0x1000u * (bits % 16));
            memcpy(&near, &near_bits, 4);
            narrow = narrow_host = 0;
            vector.to = device_address(&narrow);
            vector.left = device_address(&near);
            launch_alone("hoop_vector_narrow", &vector);
            hoop_kernel_narrow(&narrow_host, &near, 1, type);
            ck_assert_msg(narrow == narrow_host, "narrow %s %#x: %#x, must be %#x", hoop_type_name(type), near_bits,
                          narrow, narrow_host);
        }
    }
}
END_TEST

START_TEST(averages_and_factors)
{
    const enum hoop_type type = (enum hoop_type)_i;
    const enum hoop_type wide = hoop_type_wide(type);
    const size_t size = hoop_type_size(type), wide_size = hoop_type_size(wide);

    for (int ranks = 1; ranks <= 40 && hoop_op_accepts(HOOP_AVG, type); ranks++) {
        const size_t count = (size_t)ranks;
        struct hoop_device_vector vector = {.to = device_address(got), .count = count, .type = type, .ranks = ranks};
        numbers_fill(got, sizeof got, size);
        memcpy(want, got, sizeof got);
        hoop_kernel_divide(want, count, type, ranks);
        launch_alone("hoop_vector_divide", &vector);
        check_same(sizeof got, "divide", type, HOOP_OPS, count);

        unsigned char factors[40 * 8];
        numbers_fill(left, sizeof left, size);
        numbers_fill(right, 8, wide_size);
        memset(got, 0, sizeof got);
        memset(want, 0, sizeof want);
        for (size_t i = 0; i < count; i++)
            memcpy(factors + i * wide_size, right, wide_size);
        if (wide == type)
            memcpy(want, left, count * size);
        else
            hoop_kernel_widen((float *)(void *)want, left, count, type);
        hoop_kernel_reduce(want, want, factors, count, wide, HOOP_PROD);
        vector.left = device_address(left);
        memcpy(&vector.factor, right, wide_size);
        launch_alone("hoop_vector_multiply", &vector);
        check_same(sizeof got, "multiply", type, HOOP_OPS, count);
    }
}
END_TEST

START_TEST(copies_and_patterns)
{
    uint64_t found = 0;

    for (size_t bytes = 0; bytes < 300; bytes++)
        for (size_t shift = 0; shift < 4; shift++) {
            const struct hoop_device_call copy =
                bare(got + EDGE + 1, left + EDGE + 1 + shift, NULL, bytes, HOOP_U8, HOOP_SUM);
            memset(got, 0x5a, sizeof got);
            memset(want, 0x5a, sizeof want);
            numbers_fill(left, sizeof left, 8);
            memcpy(want + EDGE + 1, left + EDGE + 1 + shift, bytes);
            launch_alone("hoop_interpret", &copy);
            check_same(sizeof got, "copy", HOOP_U8, HOOP_OPS, bytes);
        }
    struct hoop_device_vector pattern = {.to = device_address(got), .count = 100, .seed = 7};
    launch_alone("hoop_vector_fill", &pattern);
    pattern.left = device_address(got);
    pattern.report = device_address(&found);
    launch_alone("hoop_vector_compare", &pattern);
    ck_assert_uint_eq(found, 0);
    got[8 * 41] ^= 1;
    launch_alone("hoop_vector_compare", &pattern);
    ck_assert_uint_eq(found, 42);
}
END_TEST

/* A vector shared out to blocks and threads is the same vector. */
START_TEST(many_threads)
{
    for (size_t count = 0; count < 900; count += 61) {
        memset(got, 0x5a, sizeof got);
        memset(want, 0x5a, sizeof want);
        numbers_fill(left, sizeof left, 4);
        numbers_fill(right, sizeof right, 4);
        hoop_kernel_reduce(want + 8, left + 24, right + 40, count, HOOP_F32, HOOP_SUM);
        const struct hoop_device_call call = bare(got + 8, left + 24, right + 40, 4 * count, HOOP_F32, HOOP_SUM);
        launch_end(launch_begin("hoop_interpret", &call, 3, 5));
        check_same(sizeof got, "reduce by threads", HOOP_F32, HOOP_SUM, count);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels on vectors");
    TCase *tests = tcase_create("against the host");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, reductions, 0, HOOP_TYPES);
    tcase_add_loop_test(tests, conversions, 0, HOOP_TYPES);
    tcase_add_loop_test(tests, all_small_numbers, 0, HOOP_TYPES);
    tcase_add_loop_test(tests, averages_and_factors, 0, HOOP_TYPES);
    tcase_add_test(tests, copies_and_patterns);
    tcase_add_test(tests, many_threads);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
