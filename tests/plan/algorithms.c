// SPDX-License-Identifier: BSD-3-Clause
/* Every algorithm, by the checker and by the brute-force executor, on small numbers of ranks and samples of large ones;
 * which plans are in rank order; roots; who has an algorithm at all. The whole round is `hoop-plan check --all`. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "brute.h"
#include "harness.h"
#include "plans.h"

static const struct {
    bool fuse, borrow;
    int credit;
} modes[] = {{false, false, 1}, {false, true, 1}, {true, true, 1}, {true, true, 2}, {true, false, 4}};
enum { MODES = sizeof modes / sizeof modes[0] };

static const char *name_of(const struct hoop_problem *problem, const struct hoop_algo *algo)
{
    static char text[160];

    snprintf(text, sizeof text, "%s %s -n %d --root %d --channels %d%s", algo->name, hoop_coll_name(problem->coll),
             problem->ranks, problem->root, problem->channels, problem->in_place ? " --in-place" : "");
    return text;
}

static void prove(const struct hoop_algo *algo, const struct hoop_problem *problem, int slices)
{
    struct hoop_plan *plan[PLANS_MOST];

    for (int mode = 0; mode < MODES; mode++) {
        struct hoop_check check = {.slices = slices, .credit = modes[mode].credit, .borrow = modes[mode].borrow};

        ck_assert_msg(plans_build(plan, algo, *problem, modes[mode].fuse), "%s", name_of(problem, algo));
        ck_assert_msg(hoop_plan_check(plan, &check) == HOOP_OK, "%s, %d slices, mode %d: %s", name_of(problem, algo),
                      slices, mode, check.fault);
        ck_assert_uint_gt(check.steps + (uint64_t)(problem->ranks == 1), 0);
        plans_free(plan, problem->ranks);
    }
}

static void execute(const struct hoop_algo *algo, const struct hoop_problem *problem, struct brute brute, bool fuse)
{
    struct hoop_plan *plan[PLANS_MOST];

    ck_assert_msg(plans_build(plan, algo, *problem, fuse), "%s", name_of(problem, algo));
    ck_assert_msg(brute_run(plan, &brute), "%s, count %zu, %zu slices, credit %zu: %s", name_of(problem, algo),
                  brute.count, brute.slices, brute.credit, brute.fault);
    plans_free(plan, problem->ranks);
}

static void execute_all_ways(const struct hoop_algo *algo, const struct hoop_problem *problem)
{
    static const size_t counts[] = {0, 1, 5, 29};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (unsigned way = 0; way < 16; way++) {
            const bool fuse = (way & 1) != 0, keep = fuse && (way & 2) != 0;
            const struct brute brute = {.count = counts[i],
                                        .slices = 1 + way % 3,
                                        .credit = keep ? 2 : 1,
                                        .borrow = (way & 4) != 0,
                                        .keep = keep,
                                        .mix = (way & 8) != 0,
                                        .seed = 1000 * counts[i] + way};

            execute(algo, problem, brute, fuse);
        }
}

typedef void (*visit_one)(const struct hoop_algo *algo, const struct hoop_problem *problem);

/* Visit every problem of up to `most` ranks that the algorithm solves, all roots, with 1 to `channels` channels. */
static void visit(const struct hoop_algo *algo, int most, int channels, visit_one see)
{
    struct hoop_problem problem = {0};

    for (int coll = 0; coll < HOOP_COLLS; coll++)
        for (problem.ranks = 1; problem.ranks <= most; problem.ranks++)
            for (int in_place = 0; in_place <= (coll != HOOP_BARRIER); in_place++) {
                problem.coll = (enum hoop_coll)coll;
                problem.in_place = in_place != 0;
                if (!algo->applicable(&problem))
                    continue;
                for (problem.channels = 1; problem.channels <= channels; problem.channels++)
                    for (problem.root = 0; problem.root < (plans_rooted(problem.coll) ? problem.ranks : 1);
                         problem.root++)
                        see(algo, &problem);
            }
}

static void prove_sliced(const struct hoop_algo *algo, const struct hoop_problem *problem)
{
    for (int slices = 1; slices <= 4; slices++)
        prove(algo, problem, slices);
}

START_TEST(proved)
{
    visit(hoop_algo_get(_i), 9, 3, prove_sliced);
}
END_TEST

START_TEST(executed)
{
    visit(hoop_algo_get(_i), 6, 2, execute_all_ways);
}
END_TEST

/* Odd sizes around powers of two, where trees and folds have their corners. */
START_TEST(samples)
{
    static const int sizes[] = {15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 200, 256};
    const struct hoop_algo *algo = hoop_algo_get(_i);

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int coll = 0; coll < HOOP_COLLS; coll++) {
            const struct hoop_problem problem = {
                .coll = (enum hoop_coll)coll,
                .ranks = sizes[i],
                .root = plans_rooted((enum hoop_coll)coll) ? sizes[i] / 3 : 0,
                .in_place = i % 2 != 0,
                .channels = 1,
            };

            if (algo->applicable(&problem))
                prove(algo, &problem, 1);
        }
}
END_TEST

START_TEST(selection_is_total)
{
    for (int coll = 0; coll < HOOP_COLLS; coll++)
        for (int ranks = 1; ranks <= 128; ranks++)
            for (int in_place = 0; in_place < 2; in_place++) {
                const struct hoop_problem problem = {
                    .coll = (enum hoop_coll)coll, .ranks = ranks, .in_place = in_place != 0, .channels = 1};
                int able = 0;

                for (int i = 0; hoop_algo_get(i) != NULL; i++)
                    able += hoop_algo_get(i)->applicable(&problem);
                ck_assert_msg(able > 0, "nobody does %s of %d ranks", hoop_coll_name(problem.coll), ranks);
            }
}
END_TEST

static void check_order(const struct hoop_algo *algo, const struct hoop_problem *problem)
{
    struct hoop_plan *plan[PLANS_MOST];
    struct hoop_check check = {.slices = 1, .credit = 1, .borrow = true};
    const bool sums =
        problem->coll == HOOP_ALL_REDUCE || problem->coll == HOOP_REDUCE || problem->coll == HOOP_REDUCE_SCATTER;

    ck_assert(plans_build(plan, algo, *problem, true));
    ck_assert_int_eq(hoop_plan_check(plan, &check), HOOP_OK);
    plans_free(plan, problem->ranks);
    if (algo->rank_order || !sums || problem->ranks <= 2)
        ck_assert_msg(check.rank_order, "%s", name_of(problem, algo));
    else if (strcmp(algo->name, "ring") == 0)
        ck_assert_msg(!check.rank_order, "%s", name_of(problem, algo));
}

START_TEST(rank_order)
{
    visit(hoop_algo_get(_i), 7, 1, check_order);
}
END_TEST

/* The checker does not believe an algorithm that says so; of two ranks, too: operands must keep their sides. */
START_TEST(rank_order_is_proved)
{
    struct hoop_algo liar = *hoop_algo_find("ring");
    struct hoop_plan *plan[PLANS_MOST];
    struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .channels = 1};

    ck_assert(hoop_algo_find("flat")->rank_order && hoop_algo_find("twoshot")->rank_order);
    liar.rank_order = true;
    for (problem.ranks = 2; problem.ranks <= 5; problem.ranks++) {
        struct hoop_check check = {.slices = 1, .credit = 1};
        ck_assert(plans_build(plan, &liar, problem, true));
        ck_assert_int_eq(hoop_plan_check(plan, &check), HOOP_ERR_ARG);
        ck_assert(strstr(check.fault, "not in rank order") != NULL);
        plans_free(plan, problem.ranks);
    }
}
END_TEST

/* In place is told to the root alone, so the other ranks' plans may not depend on it. */
static void check_others(const struct hoop_algo *algo, const struct hoop_problem *problem)
{
    struct hoop_problem other = *problem;
    struct hoop_plan *a, *b;

    if (!plans_rooted(problem->coll) || problem->in_place)
        return;
    for (other.rank = 0; other.rank < other.ranks; other.rank++) {
        if (other.rank == other.root)
            continue;
        other.in_place = false;
        ck_assert_int_eq(hoop_plan_build(&a, algo, &other, true), HOOP_OK);
        other.in_place = true;
        ck_assert_int_eq(hoop_plan_build(&b, algo, &other, true), HOOP_OK);
        ck_assert_uint_eq(a->lanes, b->lanes);
        ck_assert_uint_eq(a->grid, b->grid);
        ck_assert_uint_eq(a->tmp, b->tmp);
        for (uint32_t lane = 0; lane < a->lanes; lane++) {
            ck_assert_uint_eq(a->lane[lane].steps, b->lane[lane].steps);
            ck_assert_mem_eq(a->lane[lane].step, b->lane[lane].step, a->lane[lane].steps * sizeof *a->lane[lane].step);
        }
        hoop_plan_free(a);
        hoop_plan_free(b);
    }
}

START_TEST(in_place_is_the_roots_matter)
{
    visit(hoop_algo_get(_i), 9, 1, check_others);
}
END_TEST

/* Sums that travel on are not stored: the fuse pass must see that, or the ring writes twice as much. */
START_TEST(fused_steps)
{
    static const struct {
        const char *algo;
        enum hoop_coll coll;
        int rank, forward, no_store; /* of 4 ranks */
    } cases[] = {
        {"ring", HOOP_ALL_REDUCE, 1, 5, 2},   {"ring", HOOP_REDUCE_SCATTER, 1, 2, 2},
        {"chain", HOOP_REDUCE, 1, 8, 8},      {"chain", HOOP_BROADCAST, 1, 8, 0},
        {"ring", HOOP_ALL_GATHER, 1, 2, 0},   {"tree", HOOP_ALL_REDUCE, 1, 2, 1},
        {"recdbl", HOOP_ALL_REDUCE, 1, 1, 0}, {"flat", HOOP_ALL_REDUCE, 1, 0, 0},
    };

    const struct hoop_problem problem = {.coll = cases[_i].coll, .ranks = 4, .rank = cases[_i].rank, .channels = 1};
    struct hoop_plan *plan;
    int forward = 0, no_store = 0;

    ck_assert_int_eq(hoop_plan_build(&plan, hoop_algo_find(cases[_i].algo), &problem, true), HOOP_OK);
    for (uint32_t lane = 0; lane < plan->lanes; lane++)
        for (uint32_t i = 0; i < plan->lane[lane].steps; i++) {
            forward += (plan->lane[lane].step[i].flags & HOOP_STEP_FORWARD) != 0;
            no_store += (plan->lane[lane].step[i].flags & HOOP_STEP_NO_STORE) != 0;
        }
    hoop_plan_free(plan);
    ck_assert_int_eq(forward, cases[_i].forward);
    ck_assert_int_eq(no_store, cases[_i].no_store);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("algorithms");
    TCase *tests = tcase_create("all");
    int algos = 0;

    while (hoop_algo_get(algos) != NULL)
        algos++;
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, proved, 0, algos);
    tcase_add_loop_test(tests, executed, 0, algos);
    tcase_add_loop_test(tests, samples, 0, algos);
    tcase_add_test(tests, selection_is_total);
    tcase_add_loop_test(tests, rank_order, 0, algos);
    tcase_add_test(tests, rank_order_is_proved);
    tcase_add_loop_test(tests, in_place_is_the_roots_matter, 0, algos);
    tcase_add_loop_test(tests, fused_steps, 0, 8);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
