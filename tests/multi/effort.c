// SPDX-License-Identifier: BSD-3-Clause
/* Effort: the first calls try several algorithms with right results, all ranks settle on the same one, it is kept in a file, and with
 * the file nothing is tried again. Bits never depend on what was measured. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "hoop/plan.h"
#include "plan/wisdom.h"
#include "unit/dtype_reference.h"

enum { COUNT = 5000, CALLS = 16, RANKS = 4 };

/* What every rank saw, to compare. */
struct seen {
    bool tries;              /* several algorithms are expected */
    char plan[RANKS][3][64]; /* the one in the end: of an exact sum, of a real one, of a broadcast */
    float real[RANKS][CALLS][COUNT];
};

static int different(char names[CALLS][64])
{
    int count = 0;

    for (int i = 0; i < CALLS; i++) {
        bool fresh = true;
        for (int j = 0; j < i; j++)
            fresh &= strcmp(names[i], names[j]) != 0;
        count += fresh;
    }
    return count;
}

/* Sums of integers: any order is right. */
static int call_exact(int rank, struct hoop_comm *comm, struct seen *seen)
{
    static _Thread_local int32_t in[COUNT], out[COUNT];
    char names[CALLS][64];
    int bad = 0;

    for (int i = 0; i < CALLS; i++) {
        for (int k = 0; k < COUNT; k++)
            in[k] = k * (rank + 1) + i;
        bad |= hoop_all_reduce(in, out, COUNT, HOOP_I32, HOOP_SUM, comm, NULL) != HOOP_OK;
        for (int k = 0; k < COUNT; k++)
            bad |= out[k] != k * RANKS * (RANKS + 1) / 2 + RANKS * i;
        harness_last_algorithm(comm, names[i]);
    }
    snprintf(seen->plan[rank][0], 64, "%s", names[CALLS - 1]);
    if (seen->tries ? different(names) < 3 : different(names) != 1)
        return printf("rank %d: %d algorithms were tried\n", rank, different(names));
    return bad;
}

static int call_real(int rank, struct hoop_comm *comm, struct seen *seen)
{
    float in[COUNT];
    uint64_t seed = (uint64_t)rank + 77;
    int bad = 0;

    reference_fill(in, COUNT, HOOP_F32, &seed);
    for (int i = 0; i < CALLS; i++)
        bad |= hoop_all_reduce(in, seen->real[rank][i], COUNT, HOOP_F32, HOOP_SUM, comm, NULL) != HOOP_OK;
    harness_last_algorithm(comm, seen->plan[rank][1]);
    return bad;
}

static int call_data(int rank, struct hoop_comm *comm, struct seen *seen)
{
    static _Thread_local unsigned char data[COUNT * 3];
    int bad = 0;

    for (int i = 0; i < CALLS; i++) {
        memset(data, rank == i % RANKS ? i : 200, sizeof data);
        bad |= hoop_broadcast(data, data, sizeof data, HOOP_U8, i % RANKS, comm, NULL) != HOOP_OK;
        for (size_t k = 0; k < sizeof data; k++)
            bad |= data[k] != i;
    }
    harness_last_algorithm(comm, seen->plan[rank][2]);
    return bad;
}

/* hoop_explain tells where the choice comes from. */
static int explained(const struct hoop_comm *comm, const struct seen *seen, int rank)
{
    char *text = malloc(HOOP_EXPLAIN_TEXT), want[128];
    int bad = hoop_explain(comm, "all_reduce", COUNT * 4, 0, text, HOOP_EXPLAIN_TEXT) != HOOP_OK;

    snprintf(want, sizeof want, "exact out of place: %s, %s", seen->plan[rank][0],
             seen->tries ? "measured here" : "from HOOP_WISDOM");
    bad |= strstr(text, want) == NULL;
    if (bad)
        printf("rank %d: no \"%s\" in: %s\n", rank, want, text);
    free(text);
    return bad;
}

static int body(int rank, struct hoop_comm *comm, void *argument)
{
    struct seen *seen = argument;
    const int bad = call_exact(rank, comm, seen) || call_real(rank, comm, seen) || call_data(rank, comm, seen) ||
                    explained(comm, seen, rank);

    return hoop_comm_destroy(comm) != HOOP_OK || bad;
}

static void check_alike(const struct seen *seen)
{
    for (int rank = 0; rank < RANKS; rank++) {
        for (int i = 0; i < 3; i++)
            ck_assert_str_eq(seen->plan[rank][i], seen->plan[0][i]);
        for (int i = 0; i < CALLS; i++)
            ck_assert_mem_eq(seen->real[rank][i], seen->real[0][0], sizeof seen->real[0][0]);
    }
    ck_assert(hoop_algo_find(seen->plan[0][1])->rank_order);
}

static struct hoop_wisdom read_file(const char *path)
{
    struct hoop_wisdom wisdom = {NULL, 0, 0};

    ck_assert_msg(hoop_wisdom_load(&wisdom, path, NULL) == HOOP_OK, "%s", hoop_last_error(NULL));
    return wisdom;
}

/* The algorithm that the file has for a collective and class. */
static const char *kept(const struct hoop_wisdom *wisdom, enum hoop_coll coll, enum hoop_wisdom_class kind)
{
    for (size_t i = 0; i < wisdom->lines; i++)
        if (wisdom->line[i].coll == coll && wisdom->line[i].kind == kind)
            return wisdom->line[i].algo->name;
    return "none";
}

START_TEST(measured_kept_and_used)
{
    static struct seen first, second;
    char path[HARNESS_PATH];

    harness_file(path, NULL);
    setenv("HOOP_WISDOM", path, 1);
    setenv("HOOP_EFFORT", "measure", 1);
    first.tries = true;
    harness_threads(RANKS, body, &first);
    check_alike(&first);
    struct hoop_wisdom wisdom = read_file(path);
    ck_assert_str_eq(kept(&wisdom, HOOP_ALL_REDUCE, HOOP_WISDOM_EXACT), first.plan[0][0]);
    ck_assert_str_eq(kept(&wisdom, HOOP_ALL_REDUCE, HOOP_WISDOM_REAL), first.plan[0][1]);
    ck_assert_str_eq(kept(&wisdom, HOOP_BROADCAST, HOOP_WISDOM_DATA), first.plan[0][2]);

    const size_t lines = wisdom.lines;
    for (int effort = 0; effort < 2; effort++) { /* another choice is followed, and lines about others stay */
        for (size_t i = 0; i < wisdom.lines; i++)
            if (wisdom.line[i].coll == HOOP_BROADCAST)
                wisdom.line[i].algo = hoop_algo_find(effort ? "chain" : "tree");
        struct hoop_wisdom_line other = wisdom.line[0];
        other.ranks = 9;
        ck_assert_int_eq(hoop_wisdom_put(&wisdom, &other), HOOP_OK);
        ck_assert_int_eq(hoop_wisdom_save(&wisdom, path), HOOP_OK);
        setenv("HOOP_EFFORT", effort ? "measure" : "estimate", 1);
        memset(&second, 0, sizeof second);
        harness_threads(RANKS, body, &second);
        check_alike(&second);
        ck_assert_str_eq(second.plan[0][0], first.plan[0][0]);
        ck_assert_str_eq(second.plan[0][2], effort ? "chain" : "tree");
    }
    hoop_wisdom_free(&wisdom);
    wisdom = read_file(path);
    ck_assert_uint_eq(wisdom.lines, lines + 1);
    hoop_wisdom_free(&wisdom);
    unlink(path);
}
END_TEST

/* What was measured with other groups is not asked, and stays. */
START_TEST(groups_are_their_own_matter)
{
    static struct seen seen;
    static const char *const groups[] = {"none", "2", "3"};
    char path[HARNESS_PATH];

    harness_file(path, NULL);
    setenv("HOOP_WISDOM", path, 1);
    setenv("HOOP_EFFORT", "measure", 1);
    for (int round = 0; round < 6; round++) { /* the second time around all is known */
        setenv("HOOP_GROUPS", groups[round % 3], 1);
        memset(&seen, 0, sizeof seen);
        seen.tries = round < 3;
        harness_threads(RANKS, body, &seen);
        check_alike(&seen);
    }
    struct hoop_wisdom wisdom = read_file(path);
    int lines[3] = {0};
    for (size_t i = 0; i < wisdom.lines; i++)
        for (int g = 0; g < 3; g++)
            lines[g] += strcmp(wisdom.line[i].groups, groups[g]) == 0;
    ck_assert(lines[0] >= 3 && lines[1] >= 3 && lines[2] >= 3);
    hoop_wisdom_free(&wisdom);
    unlink(path);
}
END_TEST

START_TEST(bad_files_are_refused_by_all)
{
    struct hoop_comm *comms[2];
    char path[HARNESS_PATH];

    harness_file(path, "hoop-wisdom 2\nall_reduce real nowhere\n");
    setenv("HOOP_WISDOM", path, 1);
    harness_run(3, harness_refused, "line 2: nowhere is no place", 30);
    unlink(path);
    harness_run(2, harness_refused, "cannot be opened", 30); /* an estimate makes no file */
    setenv("HOOP_EFFORT", "guess", 1);
    ck_assert_int_eq(hoop_comm_init_all(comms, 2), HOOP_ERR_SETUP);
    ck_assert_ptr_nonnull(strstr(hoop_last_error(NULL), "HOOP_EFFORT=guess is not allowed: give estimate or measure"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("effort");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 120);
    tcase_add_test(all, measured_kept_and_used);
    tcase_add_test(all, groups_are_their_own_matter);
    tcase_add_test(all, bad_files_are_refused_by_all);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
