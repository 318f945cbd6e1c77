// SPDX-License-Identifier: BSD-3-Clause
/* Ranks that disagree: every pair of different calls is an error on all ranks, which shows both. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "harness.h"

enum { CAP = 60 };

struct pair {
    struct hoop_case usual, odd; /* what all ranks call, what rank 1 calls instead */
    const char *words;           /* in the error text, beside both ranks */
};

static int call_odd(struct harness_rank *self)
{
    const struct pair *pair = self->argument;
    const struct hoop_case *c = self->rank == 1 ? &pair->odd : &pair->usual;
    unsigned char *memory = calloc(4, 1 << 21);
    struct hoop_comm *comm = harness_join(self);

    if (comm == NULL)
        return 1;
    enum hoop_status status = hoop_barrier(comm, NULL);
    if (status == HOOP_OK)
        status = case_call(c, memory, c->in_place ? memory : memory + (2 << 20), comm, NULL);
    if (status == HOOP_OK) /* not noticed by this rank: the next call tells, whatever it is */
        status = hoop_comm_finalize(comm);
    harness_tell(self, status, comm);
    hoop_comm_destroy(comm);
    free(memory);
    return 0;
}

static const struct pair pairs[] = {
#define USUAL   HOOP_ALL_REDUCE, HOOP_F32, HOOP_SUM, 0, 0
#define SPREAD  HOOP_BROADCAST, HOOP_F32, HOOP_SUM, 0
#define COMBINE HOOP_REDUCE, HOOP_F32, HOOP_SUM, 0
    {{USUAL, 4, false, 0}, {USUAL, 5, false, 0}, "all_reduce of 5 float"},
    {{USUAL, 4, false, 0}, {USUAL, 100000, false, 0}, "all_reduce of 100000 float"},
    {{USUAL, 100000, false, 0}, {USUAL, 100001, false, 0}, "all_reduce of 100001 float"},
    {{USUAL, 100000, false, 0}, {USUAL, 0, false, 0}, "all_reduce of 0 float"},
    {{USUAL, 0, false, 0}, {USUAL, 1, false, 0}, "all_reduce of 1 float"},
    {{USUAL, 4, false, 0}, {HOOP_ALL_REDUCE, HOOP_I32, HOOP_SUM, 0, 0, 4, false, 0}, "int32"},
    {{USUAL, 50000, false, 0}, {HOOP_ALL_REDUCE, HOOP_I32, HOOP_SUM, 0, 0, 50000, false, 0}, "int32"},
    {{USUAL, 4, false, 0}, {HOOP_ALL_REDUCE, HOOP_F32, HOOP_MAX, 0, 0, 4, false, 0}, "max"},
    {{USUAL, 50000, false, 0}, {HOOP_ALL_REDUCE, HOOP_F32, HOOP_MAX, 0, 0, 50000, false, 0}, "max"},
    {{USUAL, 4, false, 0}, {USUAL, 4, true, 0}, "in place"},
    {{USUAL, 50000, true, 0}, {USUAL, 50000, false, 0}, "in place"},
    {{USUAL, 4, false, 0}, {SPREAD, 0, 4, false, 0}, "broadcast of 4 float, root 0"},
    {{USUAL, 50000, false, 0}, {HOOP_ALL_GATHER, HOOP_F32, HOOP_SUM, 0, 0, 50000, false, 0}, "all_gather of 50000"},
    {{USUAL, 4, false, 0}, {HOOP_BARRIER, HOOP_F32, HOOP_SUM, 0, 0, 0, false, 0}, "barrier"},
    {{HOOP_BARRIER, HOOP_F32, HOOP_SUM, 0, 0, 0, false, 0},
     {HOOP_REDUCE_SCATTER, HOOP_F32, HOOP_SUM, 0, 0, 9, false, 0},
     "reduce_scatter of 9"},
    {{SPREAD, 0, 4, false, 0}, {SPREAD, 1, 4, false, 0}, "root 1"},
    {{SPREAD, 0, 90000, false, 0}, {SPREAD, 2, 90000, false, 0}, "root 2"},
    {{COMBINE, 0, 4, false, 0}, {COMBINE, 1, 4, false, 0}, "root 1"},
    {{COMBINE, 2, 70000, false, 0}, {COMBINE, 2, 4, false, 0}, "reduce of 4"},
    {{HOOP_ALL_TO_ALL, HOOP_F32, HOOP_SUM, 0, 0, 4, false, 0},
     {HOOP_GATHER, HOOP_F32, HOOP_SUM, 0, 1, 4, false, 0},
     "gather of 4 float, root 1"},
    {{HOOP_SCATTER, HOOP_F32, HOOP_SUM, 0, 0, 4, false, 0},
     {HOOP_SCATTER, HOOP_F32, HOOP_SUM, 0, 1, 4, false, 0},
     "root 1"},
#undef USUAL
#undef SPREAD
#undef COMBINE
};

START_TEST(different_calls)
{
    const struct pair *pair = &pairs[_i];

    for (int ranks = 2; ranks <= 4; ranks++) {
        struct harness harness;
        if (pair->usual.root >= ranks || pair->odd.root >= ranks)
            continue;
        harness_start(&harness, ranks, call_odd, (void *)(uintptr_t)pair, CAP);
        ck_assert_msg(harness_wait(&harness), "pair %d, %d ranks: hangs", _i, ranks);
        for (int rank = 0; rank < ranks; rank++) {
            const struct harness_report *report = &harness.report[rank];
            ck_assert_msg(report->status == HOOP_ERR_MISMATCH && strstr(report->text, pair->words) &&
                              strstr(report->text, "rank 1 called"),
                          "pair %d, %d ranks: rank %d: status %d: %s", _i, ranks, rank, report->status, report->text);
        }
    }
}
END_TEST

/* Rank 1 runs ahead with calls that need nobody's answer; rank 0's first call is another one. */
static int run_ahead(struct harness_rank *self)
{
    static float data[100000], result[100000];
    const int calls = (int)(intptr_t)self->argument;
    struct hoop_comm *comm = harness_join(self);
    enum hoop_status status = HOOP_OK;

    if (comm == NULL)
        return 1;
    if (self->rank == 0)
        status = hoop_all_reduce(data, result, 100000, HOOP_F32, HOOP_SUM, comm, NULL);
    for (int call = 0; self->rank > 0 && status == HOOP_OK && call < calls; call++)
        status = hoop_reduce(data, NULL, 4, HOOP_F32, HOOP_SUM, 0, comm, NULL);
    if (status == HOOP_OK)
        status = hoop_comm_finalize(comm);
    harness_tell(self, status, comm);
    hoop_comm_destroy(comm);
    return 0;
}

START_TEST(different_calls_of_a_rank_ahead)
{
    for (int calls = 1; calls <= 100; calls = calls < 8 ? calls + 1 : calls * 3) {
        struct harness harness;
        harness_start(&harness, 2, run_ahead, (void *)(intptr_t)calls, CAP);
        ck_assert_msg(harness_wait(&harness), "%d calls ahead: hangs", calls);
        for (int rank = 0; rank < 2; rank++) {
            const struct harness_report *report = &harness.report[rank];
            ck_assert_msg(report->status == HOOP_ERR_MISMATCH &&
                              strstr(report->text, "call 1: rank 0 called all_reduce of 100000") &&
                              strstr(report->text, "rank 1 called reduce of 4 float, sum, root 0"),
                          "%d calls ahead: rank %d: %s", calls, rank, report->text);
        }
    }
}
END_TEST

/* No elements: in place or not has no meaning, and pointers may be anything. */
static int no_elements(struct harness_rank *self)
{
    char a, b;
    struct hoop_comm *comm = harness_join(self);
    enum hoop_status status = HOOP_OK;

    if (comm == NULL)
        return 1;
    for (int round = 0; round < 3; round++) {
        const bool null = round == self->rank;
        for (int coll = 0; status == HOOP_OK && coll < HOOP_COLLS; coll++)
            status = case_call(&(struct hoop_case){.coll = (enum hoop_coll)coll, .root = round}, null ? NULL : &a,
                               null ? NULL : &b, comm, NULL);
    }
    return status == HOOP_OK && hoop_comm_destroy(comm) == HOOP_OK ? 0 : harness_tell(self, status, comm);
}

START_TEST(zero_counts_agree)
{
    harness_run(3, no_elements, NULL, CAP);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ranks that disagree");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 150);
    tcase_add_loop_test(tests, different_calls, 0, sizeof pairs / sizeof *pairs);
    tcase_add_test(tests, different_calls_of_a_rank_ahead);
    tcase_add_test(tests, zero_counts_agree);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
