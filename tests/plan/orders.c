// SPDX-License-Identifier: BSD-3-Clause
/* Plans whose ranks stand in orders of their own on each channel: proved and executed as others are, for all roots; each channel goes from
 * rank to rank as its order says; algorithms that are not `ordered` take no notice. */
#include <check.h>
#include <string.h>

#include "brute.h"
#include "harness.h"
#include "plans.h"

enum { RANKS_MOST = 9, ORDERS = 3 };

/* Any orders, the same in every run. */
static struct hoop_orders shuffle(int ranks, int rank[ORDERS * RANKS_MOST])
{
    unsigned state = (unsigned)ranks * 2654435761u;

    for (int i = 0; i < ORDERS; i++) {
        int *order = &rank[i * ranks];

        for (int place = 0; place < ranks; place++)
            order[place] = place;
        for (int place = ranks - 1; place > 0; place--) {
            state = state * 1664525u + 1013904223u;
            const int other = (int)(state >> 16) % (place + 1), one = order[place];
            order[place] = order[other];
            order[other] = one;
        }
    }
    return (struct hoop_orders){.ranks = ranks, .orders = ORDERS, .rank = rank};
}

static void prove(const struct hoop_algo *algo, const struct hoop_problem *problem)
{
    struct hoop_plan *plan[PLANS_MOST];

    for (int mode = 0; mode < 4; mode++) {
        struct hoop_check check = {.slices = 1 + mode % 2, .credit = 1 + mode / 2, .borrow = mode > 0};
        struct brute brute = {.count = 29, .slices = 1 + (size_t)mode % 2, .credit = 2, .borrow = mode > 0, .seed = 7};

        ck_assert(plans_build(plan, algo, *problem, mode > 1));
        ck_assert_msg(hoop_plan_check(plan, &check) == HOOP_OK, "%s %s of %d ranks, root %d, %d channels: %s",
                      algo->name, hoop_coll_name(problem->coll), problem->ranks, problem->root, problem->channels,
                      check.fault);
        ck_assert_msg(brute_run(plan, &brute), "%s %s of %d ranks, root %d, %d channels: %s", algo->name,
                      hoop_coll_name(problem->coll), problem->ranks, problem->root, problem->channels, brute.fault);
        plans_free(plan, problem->ranks);
    }
}

START_TEST(proved)
{
    const struct hoop_algo *algo = hoop_algo_get(_i);
    int rank[ORDERS * RANKS_MOST];

    for (int coll = 0; coll < HOOP_COLLS; coll++)
        for (int ranks = 2; ranks <= RANKS_MOST; ranks++)
            for (int variant = 0; variant < 4; variant++) {
                const struct hoop_orders orders = shuffle(ranks, rank);
                struct hoop_problem problem = {.coll = (enum hoop_coll)coll,
                                               .ranks = ranks,
                                               .in_place = variant % 2 == 1 && coll != HOOP_BARRIER,
                                               .channels = variant < 2 ? 1 : 4,
                                               .orders = &orders};

                for (problem.root = 0; problem.root < (plans_rooted(problem.coll) ? ranks : 1); problem.root++)
                    if (algo->ordered && algo->applicable(&problem))
                        prove(algo, &problem);
            }
    ck_assert(!algo->ordered || !(algo->any_root || algo->rank_order));
}
END_TEST

/* Whom a lane's first send goes to. */
static int first_peer(const struct hoop_lane_plan *lane)
{
    for (uint32_t i = 0; i < lane->steps; i++)
        if (lane->step[i].kind == HOOP_STEP_SEND)
            return lane->step[i].peer;
    return -1;
}

START_TEST(followed)
{
    int rank[ORDERS * RANKS_MOST];
    const struct hoop_orders orders = shuffle(7, rank);
    struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .ranks = 7, .channels = 5, .orders = &orders};
    struct hoop_plan *plan[PLANS_MOST];

    ck_assert(plans_build(plan, hoop_algo_find("ring"), problem, true));
    for (int channel = 0; channel < 5; channel++)
        for (int place = 0; place < 7; place++) {
            const int *order = &rank[channel % ORDERS * 7];

            ck_assert_int_eq(first_peer(&plan[order[place]]->lane[channel]), order[(place + 1) % 7]);
        }
    plans_free(plan, 7);
}
END_TEST

START_TEST(refused_and_ignored)
{
    int rank[ORDERS * RANKS_MOST];
    const struct hoop_orders orders = shuffle(5, rank);
    struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .ranks = 6, .channels = 1, .orders = &orders};
    struct hoop_plan *plan = NULL, *other = NULL;

    ck_assert_int_eq(hoop_plan_build(&plan, hoop_algo_find("ring"), &problem, true), HOOP_ERR_ARG);
    problem.ranks = 5;
    ck_assert_int_eq(hoop_plan_build(&plan, hoop_algo_find("twoshot"), &problem, true), HOOP_OK);
    problem.orders = NULL;
    ck_assert_int_eq(hoop_plan_build(&other, hoop_algo_find("twoshot"), &problem, true), HOOP_OK);
    ck_assert_uint_eq(plan->lane[0].steps, other->lane[0].steps);
    ck_assert_int_eq(memcmp(plan->lane[0].step, other->lane[0].step, plan->lane[0].steps * sizeof *plan->lane[0].step),
                     0);
    hoop_plan_free(plan);
    hoop_plan_free(other);
}
END_TEST

int main(void)
{
    int algos = 0;
    Suite *suite = suite_create("orders");
    TCase *tests = tcase_create("orders");

    while (hoop_algo_get(algos) != NULL)
        algos++;
    tcase_add_loop_test(tests, proved, 0, algos);
    tcase_add_test(tests, followed);
    tcase_add_test(tests, refused_and_ignored);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
