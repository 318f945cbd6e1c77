// SPDX-License-Identifier: BSD-3-Clause
/* Bits, not values: the hand-written flat exchange gives the same bits as the flat plan; every algorithm gives the same bits on
 * all ranks; small types are rounded once. With inputs for which the order of additions matters. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype/dtype.h"
#include "harness.h"
#include "hoop/plan.h"

enum { COUNT = 257, MOST_RANKS = 9 };

struct outcome {
    enum hoop_type type;
    enum hoop_op op;
    size_t bytes;
    unsigned char in[MOST_RANKS][COUNT * 16], out[MOST_RANKS][COUNT * 16];
};

/* Calls that one communicator makes one after the other. */
struct outcomes {
    int many;
    struct outcome of[HOOP_TYPES * HOOP_OPS];
};

/* Large, tiny, negative, subnormal: sums of these depend on the order. Any bits do for integers. */
static void fill(struct outcome *outcome, int rank)
{
    uint64_t state = (uint64_t)rank * 0x9e3779b97f4a7c15u + 12345;
    float number[COUNT];

    for (int i = 0; i < COUNT; i++) {
        static const float scale[] = {1e30f, -1e30f, 1e-3f, 1, -3, 1e-40f, 7e4f, 0};
        state = state * 6364136223846793005u + 1442695040888963407u;
        number[i] = scale[state >> 61] * (float)(1 + (state >> 40 & 0xffff)) / 32768;
    }
    if (outcome->type == HOOP_F32)
        memcpy(outcome->in[rank], number, sizeof number);
    else if (hoop_type_wide(outcome->type) == HOOP_F32)
        hoop_kernel_narrow(outcome->in[rank], number, COUNT, outcome->type);
    else if (outcome->type == HOOP_F64)
        for (int i = 0; i < COUNT; i++)
            ((double *)(void *)outcome->in[rank])[i] = (double)number[i] * 1.000000001;
    else
        for (size_t i = 0; i < outcome->bytes; i++)
            outcome->in[rank][i] = (unsigned char)((state = state * 6364136223846793005u + 1) >> 56);
}

static void add(struct outcomes *all, enum hoop_type type, enum hoop_op op, int ranks)
{
    struct outcome *outcome = &all->of[all->many++];

    outcome->type = type;
    outcome->op = op;
    outcome->bytes = COUNT * hoop_type_size(type);
    for (int rank = 0; rank < ranks; rank++)
        fill(outcome, rank);
}

static int body(int rank, struct hoop_comm *comm, void *argument)
{
    struct outcomes *all = argument;
    enum hoop_status status = HOOP_OK;

    for (int i = 0; i < all->many && status == HOOP_OK; i++) {
        struct outcome *outcome = &all->of[i];
        status = hoop_all_reduce(outcome->in[rank], outcome->out[rank], COUNT, outcome->type, outcome->op, comm, NULL);
    }
    return status != HOOP_OK || hoop_comm_destroy(comm) != HOOP_OK;
}

static void run(struct outcomes *all, int ranks, const char *algo, const char *flat_max)
{
    setenv("HOOP_ALGO", algo, 1);
    setenv("HOOP_FLAT_MAX", flat_max, 1);
    for (int i = 0; i < all->many; i++)
        memset(all->of[i].out, 0, sizeof all->of[i].out);
    harness_threads(ranks, body, all);
    for (int i = 0; i < all->many; i++)
        for (int rank = 1; rank < ranks; rank++)
            ck_assert_msg(memcmp(all->of[i].out[0], all->of[i].out[rank], all->of[i].bytes) == 0,
                          "algo=%s ranks=%d type=%s op=%s: ranks 0 and %d differ", algo, ranks,
                          hoop_type_name(all->of[i].type), hoop_op_name(all->of[i].op), rank);
}

/* The exact rules: rank-order sum in f32, one division, one rounding. */
static void check_narrow(const struct outcome *outcome, int ranks)
{
    const void *inputs[MOST_RANKS];
    unsigned char want[COUNT * 16];

    for (int rank = 0; rank < ranks; rank++)
        inputs[rank] = outcome->in[rank];
    if (outcome->op == HOOP_AVG)
        hoop_kernel_average_many(want, inputs, ranks, COUNT, outcome->type, ranks);
    else
        hoop_kernel_reduce_many(want, inputs, ranks, COUNT, outcome->type, outcome->op);
    ck_assert_msg(memcmp(want, outcome->out[0], outcome->bytes) == 0,
                  "ranks=%d type=%s op=%s: not the rank-order result", ranks, hoop_type_name(outcome->type),
                  hoop_op_name(outcome->op));
}

START_TEST(flat_equals_its_plan)
{
    static struct outcomes by_hand, by_plan;

    for (int type = 0; type < HOOP_TYPES; type++)
        for (int op = 0; op < HOOP_OPS; op++)
            if (hoop_op_accepts((enum hoop_op)op, (enum hoop_type)type)) {
                add(&by_hand, (enum hoop_type)type, (enum hoop_op)op, _i);
                add(&by_plan, (enum hoop_type)type, (enum hoop_op)op, _i);
            }
    run(&by_hand, _i, "flat", "4K");
    run(&by_plan, _i, "flat", "0");
    for (int i = 0; i < by_hand.many; i++) {
        const struct outcome *one = &by_hand.of[i];
        check_narrow(one, _i);
        ck_assert_msg(memcmp(one->out, by_plan.of[i].out, sizeof one->out) == 0,
                      "ranks=%d type=%s op=%s: the flat exchange and the flat plan differ", _i,
                      hoop_type_name(one->type), hoop_op_name(one->op));
    }
}
END_TEST

static int refused(int rank, struct hoop_comm *comm, void *argument)
{
    double in[2] = {1, 2}, out[2];
    int wrong = 0;

    (void)argument;
    for (int type = 0; type < HOOP_TYPES; type++)
        for (int op = 0; op < HOOP_OPS; op++) {
            if (hoop_op_accepts((enum hoop_op)op, (enum hoop_type)type))
                continue;
            const enum hoop_status status =
                hoop_all_reduce(in, out, 1, (enum hoop_type)type, (enum hoop_op)op, comm, NULL);
            const char *text = hoop_last_error(NULL);
            wrong += status != HOOP_ERR_ARG || strstr(text, hoop_type_name((enum hoop_type)type)) == NULL ||
                     strstr(text, hoop_op_name((enum hoop_op)op)) == NULL;
            wrong += hoop_reduce(in, out, 1, (enum hoop_type)type, (enum hoop_op)op, 0, comm, NULL) != HOOP_ERR_ARG;
            wrong +=
                hoop_reduce_scatter(in, out + 1, 0, (enum hoop_type)type, (enum hoop_op)op, comm, NULL) != HOOP_ERR_ARG;
        }
    in[0] = rank; /* nothing happened: the communicator lives */
    wrong += hoop_all_reduce(in, out, 1, HOOP_F64, HOOP_SUM, comm, NULL) != HOOP_OK || out[0] != 1;
    return wrong != 0 || hoop_comm_destroy(comm) != HOOP_OK;
}

START_TEST(only_what_fits)
{
    harness_threads(2, refused, NULL);
}
END_TEST

START_TEST(same_bits_on_all_ranks)
{
    for (int ranks = 2; ranks <= MOST_RANKS; ranks += 3) {
        static struct outcomes all;

        all.many = 0;
        for (int type = 0; type < HOOP_TYPES; type++)
            add(&all, (enum hoop_type)type, hoop_op_accepts(HOOP_SUM, (enum hoop_type)type) ? HOOP_SUM : HOOP_MAXLOC,
                ranks);
        run(&all, ranks, hoop_algo_get(_i)->name, "0");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("numerics");
    TCase *tests = tcase_create("bits");
    int algos = 0;

    while (hoop_algo_get(algos))
        algos++;
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, flat_equals_its_plan, 2, MOST_RANKS + 1);
    tcase_add_loop_test(tests, same_bits_on_all_ranks, 0, algos);
    tcase_add_test(tests, only_what_fits);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
