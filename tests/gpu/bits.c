// SPDX-License-Identifier: BSD-3-Clause
/* The kernels on vectors, launched through the driver, against the host's, bit by bit: all types × operators, aligned alike, not alike and in
 * place; conversions, division, multiplication; and every f16 there is with many others, since a GPU converts those by instructions of
 * its own, which the C build does not have. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_help.h"
#include "dtype/dtype.h"
#include "exec/cuda.h"
#include "harness.h"
#include "numbers.h"

enum { ROOM = 1 << 18, EDGE = 64, HALVES = 65536 };

static struct cuda_help cuda;
static struct hoop_cuda_exec *exec;
static unsigned char *left, *right, *got, *on_left, *on_right, *on_got; /* on the host, and on the device */
static unsigned char want[ROOM];

static void open_all(void)
{
    cuda_open(&cuda, 0, 1);
    ck_assert_msg(hoop_cuda_exec_new(&exec, cuda.cuda, 1, 1) == HOOP_OK, "%s", hoop_error_text());
    left = cuda_host(&cuda, ROOM);
    right = cuda_host(&cuda, ROOM);
    got = cuda_host(&cuda, ROOM);
    on_left = cuda_device(&cuda, ROOM);
    on_right = cuda_device(&cuda, ROOM);
    on_got = cuda_device(&cuda, ROOM);
}

static void close_all(void)
{
    hoop_cuda_exec_free(exec);
    cuda_close(&cuda);
}

/* Copy the operands to the device, run, copy the result back. */
static void run(enum hoop_cuda_vector what, const struct hoop_device_vector *vector)
{
    hoop_cu_stream stream = cuda.stream[0];

    cuda_copy(&cuda, on_left, left, ROOM, stream);
    cuda_copy(&cuda, on_right, right, ROOM, stream);
    cuda_copy(&cuda, on_got, got, ROOM, stream);
    ck_assert_msg(hoop_cuda_exec_vector(exec, what, vector, 0, stream) == HOOP_OK, "%s", hoop_error_text());
    cuda_copy(&cuda, got, on_got, ROOM, stream);
    cuda_synchronize(&cuda, stream);
}

static void same(const char *what, enum hoop_type type, enum hoop_op op, size_t count)
{
    size_t at = 0;

    if (memcmp(got, want, ROOM) == 0)
        return;
    while (got[at] == want[at])
        at++;
    ck_abort_msg("%s %s %s count=%zu: byte %zu is %#x, must be %#x", what, hoop_type_name(type),
                 op < HOOP_OPS ? hoop_op_name(op) : "", count, at, got[at], want[at]);
}

static uint64_t on(const unsigned char *base, size_t offset)
{
    return (uint64_t)(uintptr_t)base + offset;
}

/* shift: of left, right and result. in_place: the result is the right side, which `got` has. */
static void reduce(enum hoop_type type, enum hoop_op op, size_t count, const size_t *shift, bool in_place)
{
    const struct hoop_device_vector vector = {.to = on(on_got, shift[2]),
                                              .left = on(on_left, shift[0]),
                                              .right = in_place ? on(on_got, shift[2]) : on(on_right, shift[1]),
                                              .count = count * hoop_type_size(type),
                                              .type = type,
                                              .op = op};

    memcpy(want, got, ROOM);
    hoop_kernel_reduce(want + shift[2], left + shift[0], in_place ? want + shift[2] : right + shift[1], count, type,
                       op);
    run(HOOP_CUDA_REDUCE, &vector);
    same(in_place ? "in place" : "reduce", type, op, count);
}

START_TEST(reductions)
{
    const enum hoop_type type = (enum hoop_type)_i;
    const size_t size = hoop_type_size(type), grain = numbers_grain(type), most = (ROOM - 2 * EDGE) / size;
    const size_t counts[] = {1, 70, 5000, cuda_is_fake() ? 5001 : most};

    open_all();
    for (int op = 0; op < HOOP_OPS; op++)
        for (size_t i = 0; i < 4 && hoop_op_accepts((enum hoop_op)op, type); i++) {
            const size_t count = counts[i] < most ? counts[i] : most;
            const size_t one = EDGE + numbers_random() % 16 / grain * grain,
                         two = EDGE + numbers_random() % 16 / grain * grain;
            numbers_fill(left, ROOM, size);
            numbers_fill(right, ROOM, size);
            numbers_fill(got, ROOM, size);
            reduce(type, (enum hoop_op)op, count, (size_t[]){one, one, one}, false);
            reduce(type, (enum hoop_op)op, count, (size_t[]){one, two, EDGE}, false);
            reduce(type, (enum hoop_op)op, count, (size_t[]){two, one, one}, true);
        }
    close_all();
}
END_TEST

/* Every half with one other, and itself; the others are all kinds of numbers. */
START_TEST(all_halves)
{
    static const enum hoop_op ops[] = {HOOP_SUM, HOOP_PROD, HOOP_MIN, HOOP_MAX};
    static const uint16_t others[] = {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x3c00, 0xbc00, 0x3c01,
                                      0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xffff, 0x5640, 0x1234};
    const size_t few = cuda_is_fake() ? 3 : sizeof others / sizeof *others, shift[] = {0, 0, 0};

    open_all();
    memset(got, 0, ROOM);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k <= few; k++) {
            for (uint32_t half = 0; half < HALVES; half++) {
                const uint16_t a = (uint16_t)half, b = k < few ? others[k] : a;
                memcpy(left + 2 * (size_t)half, &a, 2);
                memcpy(right + 2 * (size_t)half, &b, 2);
            }
            reduce(HOOP_F16, ops[i], HALVES, shift, false);
        }
    close_all();
}
END_TEST

START_TEST(conversions)
{
    const enum hoop_type type = (enum hoop_type)_i, wide = hoop_type_wide(type);
    const size_t count = 10000;
    struct hoop_device_vector vector = {.to = on(on_got, 0), .count = count, .type = type};

    if (wide == type)
        return;
    open_all();
    vector.to = on(on_got, 0);
    vector.left = on(on_left, 0);
    numbers_fill(left, ROOM, hoop_type_size(type));
    memset(got, 0, ROOM);
    memset(want, 0, ROOM);
    hoop_kernel_widen((float *)(void *)want, left, count, type);
    run(HOOP_CUDA_WIDEN, &vector);
    same("widen", type, HOOP_OPS, count);
    numbers_fill(left, ROOM, 4);
    memset(got, 0, ROOM);
    memset(want, 0, ROOM);
    hoop_kernel_narrow(want, (const float *)(const void *)left, count, type);
    run(HOOP_CUDA_NARROW, &vector);
    same("narrow", type, HOOP_OPS, count);
    close_all();
}
END_TEST

START_TEST(divisions)
{
    const enum hoop_type type = (enum hoop_type)_i;
    const size_t count = 10000;

    if (!hoop_op_accepts(HOOP_AVG, type))
        return;
    open_all();
    for (int ranks = 1; ranks <= 7; ranks += 2) {
        const struct hoop_device_vector vector = {.to = on(on_got, 0), .count = count, .type = type, .ranks = ranks};
        numbers_fill(got, ROOM, hoop_type_size(type));
        memcpy(want, got, ROOM);
        hoop_kernel_divide(want, count, type, ranks);
        run(HOOP_CUDA_DIVIDE, &vector);
        same("divide", type, HOOP_AVG, count);
    }
    close_all();
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("bits of the kernels on vectors");
    TCase *all = tcase_create("all");

    (void)argc;
    cuda_driver_or_skip(argv);
    cuda_devices(1);
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, reductions, 0, HOOP_TYPES);
    tcase_add_test(all, all_halves);
    tcase_add_loop_test(all, conversions, 0, HOOP_TYPES);
    tcase_add_loop_test(all, divisions, 0, HOOP_TYPES);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
