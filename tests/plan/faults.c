// SPDX-License-Identifier: BSD-3-Clause
/* What the checker says: small wrong plans, each with the one fault that must be named, and the right ones beside them
 * that must pass. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "plans.h"

static const struct {
    const char *fault; /* "": the plans are right */
    enum hoop_coll coll;
    int ranks;
    const char *shape; /* in_place, channels, grid, tmp, lanes */
    int slices, credit;
    bool borrow;
    const char *body[3]; /* of each rank */
} cases[] = {
    {"",
     HOOP_ALL_REDUCE,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     3,
     1,
     true,
     {"lane 0\nsend 1 in 0\nrecv_reduce 1 out 0 in 0\n", "lane 0\nsend 0 in 0\nrecv_reduce 0 out 0 in 0\n"}},
    {"rank 1 out 0 slice 0 holds nothing in the end",
     HOOP_BROADCAST,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\ncopy out 0 in 0\n", "lane 0\n"}},
    {"more messages than it receives: 1 left over",
     HOOP_BROADCAST,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     2,
     false,
     {"lane 0\nsend 1 in 0\nsend 1 in 0\ncopy out 0 in 0\n", "lane 0\nrecv 0 out 0\n"}},
    {"rank 1 lane 0 slice 0 step 1 (recv 0 out 0) waits for a message; rank 0 lane 0 has ended",
     HOOP_BROADCAST,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\ncopy out 0 in 0\n", "lane 0\nrecv 0 out 0\nrecv 0 out 0\n"}},
    {"deadlock with 1 credits; rank 0 lane 0 slice 0 step 1 (send 1 in 1) waits for room to send; rank 1",
     HOOP_ALL_REDUCE,
     2,
     "in_place 0 channels 1 grid 2 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\nsend 1 in 1\nrecv_reduce 1 out 0 in 0\nrecv_reduce 1 out 1 in 1\n",
      "lane 0\nsend 0 in 0\nsend 0 in 1\nrecv_reduce 0 out 0 in 0\nrecv_reduce 0 out 1 in 1\n"}},
    {"",
     HOOP_ALL_REDUCE,
     2,
     "in_place 0 channels 1 grid 2 tmp 0 lanes 1",
     1,
     2,
     false,
     {"lane 0\nsend 1 in 0\nsend 1 in 1\nrecv_reduce 1 out 0 in 0\nrecv_reduce 1 out 1 in 1\n",
      "lane 0\nsend 0 in 0\nsend 0 in 1\nrecv_reduce 0 out 0 in 0\nrecv_reduce 0 out 1 in 1\n"}},
    {"waits for a lent chunk to be read",
     HOOP_ALL_REDUCE,
     2,
     "in_place 1 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     true,
     {"lane 0\nsend 1 in 0\nrecv_reduce 1 out 0 in 0\n", "lane 0\nsend 0 in 0\nrecv_reduce 0 out 0 in 0\n"}},
    {"",
     HOOP_ALL_REDUCE,
     2,
     "in_place 1 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     true,
     {"lane 0\nsend 1 in 0 staged\nrecv_reduce 1 out 0 in 0\n", "lane 0\nsend 0 in 0\nrecv_reduce 0 out 0 in 0\n"}},
    {"waits for a lent chunk to be read",
     HOOP_ALL_REDUCE,
     2,
     "in_place 1 channels 1 grid 1 tmp 1 lanes 1",
     1,
     1,
     true,
     {"lane 0\nsend 1 in 0\ncopy in 0 in 0\nrecv_reduce 1 out 0 in 0\n",
      "lane 0\nsend 0 in 0\ncopy in 0 in 0\nrecv_reduce 0 out 0 in 0\n"}},
    {"reads tmp 0, which holds nothing yet",
     HOOP_REDUCE,
     2,
     "in_place 0 channels 1 grid 1 tmp 1 lanes 1",
     1,
     1,
     false,
     {"lane 0\nrecv_reduce 1 out 0 in 0\nreduce out 0 tmp 0\n", "lane 0\nsend 0 in 0\n"}},
    {"reads out 0, which holds nothing yet",
     HOOP_REDUCE,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nreduce out 0 in 0\nrecv_reduce 1 out 0 out 0\n", "lane 0\nsend 0 in 0\n"}},
    {"adds the part of rank 1 a second time",
     HOOP_REDUCE,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nrecv_reduce 1 out 0 in 0\nrecv_reduce 1 out 0 out 0\n", "lane 0\nsend 0 in 0\nsend 0 in 0\n"}},
    {"adds data of chunk",
     HOOP_REDUCE_SCATTER,
     2,
     "in_place 0 channels 1 grid 2 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\nrecv_reduce 1 out 0 in 0\n", "lane 0\nsend 0 in 1\nrecv_reduce 0 out 1 in 1\n"}},
    {"rank 0 out 0 slice 0 holds data of chunk 1 in the end",
     HOOP_ALL_GATHER,
     2,
     "in_place 0 channels 1 grid 2 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\ncopy out 0 in 0\ncopy out 1 in 0\nrecv 1 out 0\n",
      "lane 0\nsend 0 in 1\ncopy out 1 in 1\nrecv 0 out 0\n"}},
    {"has the parts of 1 ranks in the end",
     HOOP_ALL_REDUCE,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\ncopy out 0 in 0\n", "lane 0\ncopy out 0 in 0\n"}},
    {"rank 1 out 0 slice 0 is summed in another order than elsewhere",
     HOOP_ALL_REDUCE,
     3,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\nsend 2 in 0\nrecv_reduce 1 out 0 in 0\nrecv_reduce 2 out 0 out 0\n",
      "lane 0\nsend 0 in 0\nsend 2 in 0\nrecv_reduce 2 out 0 in 0\nrecv_reduce 0 out 0 out 0\n",
      "lane 0\nsend 0 in 0\nsend 1 in 0\nrecv_reduce 1 out 0 in 0\nrecv_reduce 0 out 0 out 0\n"}},
    {"writes the caller's input",
     HOOP_ALL_REDUCE,
     1,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\ncopy out 0 in 0\ncopy in 0 out 0\n"}},
    {"", HOOP_ALL_REDUCE, 1, "in_place 1 channels 1 grid 1 tmp 0 lanes 1", 1, 1, false, {"lane 0\ncopy in 0 out 0\n"}},
    {"writes the caller's input",
     HOOP_REDUCE_SCATTER,
     2,
     "in_place 1 channels 1 grid 2 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\ncopy in 1 in 0\n", "lane 0\n"}},
    {"",
     HOOP_BROADCAST,
     2,
     "in_place 0 channels 1 grid 2 tmp 0 lanes 1",
     3,
     1,
     true,
     {"lane 0\nsend 1 in 0\ncopy out 0 in 0\nsend 1 in 1 joined\ncopy out 1 in 1\n",
      "lane 0\nrecv 0 out 0\nrecv 0 out 1 joined\n"}},
    {"receives the begin of a message, which the sender sees otherwise",
     HOOP_BROADCAST,
     2,
     "in_place 1 channels 1 grid 2 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\nsend 1 in 1\n", "lane 0\nrecv 0 out 0\nrecv 0 out 1 joined\n"}},
    {"receives a further part of a message, which the sender sees otherwise",
     HOOP_BROADCAST,
     2,
     "in_place 1 channels 1 grid 2 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\nsend 1 in 1 joined\n", "lane 0\nrecv 0 out 0\nrecv 0 out 1\n"}},
    {"there is no message that it could be joined to",
     HOOP_BROADCAST,
     2,
     "in_place 1 channels 1 grid 1 tmp 0 lanes 1",
     2,
     1,
     false,
     {"lane 0\nsend 1 in 0 joined\n", "lane 0\nrecv 0 out 0 joined\n"}},
    {"joined to a message that began before these data were there",
     HOOP_ALL_REDUCE,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\nrecv_reduce 1 out 0 in 0\nsend 1 out 0 joined\n",
      "lane 0\nsend 0 in 0\nrecv 0 out 0\nrecv 0 out 0 joined\n"}},
    {"joined to a message that began before these data were there",
     HOOP_BROADCAST,
     2,
     "in_place 0 channels 1 grid 2 tmp 0 lanes 2",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\nafter 1 0\nsend 1 out 1 joined\nlane 1\ncopy out 1 in 1\ncopy out 0 in 0\n",
      "lane 0\nrecv 0 out 0\nrecv 0 out 1 joined\nlane 1\n"}},
    {"this rank has no such chunk",
     HOOP_REDUCE,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nrecv_reduce 1 out 0 in 0\n", "lane 0\ncopy out 0 in 0\nsend 0 out 0\n"}},
    {"this rank has no such chunk",
     HOOP_ALL_GATHER,
     2,
     "in_place 0 channels 1 grid 2 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 1\n", "lane 0\n"}},
    {"this rank has no such chunk",
     HOOP_BROADCAST,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\n", "lane 0\nsend 0 in 0\n"}},
    {"the two chunks differ in size",
     HOOP_ALL_REDUCE,
     1,
     "in_place 0 channels 1 grid 2 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\ncopy out 0 in 1\n"}},
    {"the two chunks differ in size",
     HOOP_ALL_REDUCE,
     1,
     "in_place 0 channels 1 grid 2 tmp 4 lanes 1",
     1,
     1,
     false,
     {"lane 0\ncopy tmp 2 in 0\ncopy tmp 3 in 0\n"}},
    {"receives data of chunk 0, which differs in size",
     HOOP_BROADCAST,
     2,
     "in_place 0 channels 1 grid 2 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\n", "lane 0\nrecv 0 out 1\n"}},
    {"receives data of another slice",
     HOOP_BROADCAST,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     2,
     4,
     false,
     {"lane 0\nsend 1 in 0\nsend 1 in 0\ncopy out 0 in 0\n", "lane 0\nrecv 0 out 0\n"}},
    {"the peer is not another rank",
     HOOP_BROADCAST,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 0 in 0\n", "lane 0\n"}},
    {"waits for a step that is not in another lane",
     HOOP_ALL_REDUCE,
     1,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 2",
     1,
     1,
     false,
     {"lane 0\ncopy out 0 in 0\nlane 1\nafter 0 1\n"}},
    {"waits for a step that is not in another lane",
     HOOP_ALL_REDUCE,
     1,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\ncopy out 0 in 0\nafter 0 0\n"}},
    {"a flag that this step cannot have",
     HOOP_BROADCAST,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\n", "lane 0\nrecv 0 out 0 forward\n"}},
    {"a flag that this step cannot have",
     HOOP_BROADCAST,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\n", "lane 0\nrecv 0 out 0 no_store\n"}},
    {"races with lane 0 step 0 (copy tmp 0 in 0)",
     HOOP_ALL_REDUCE,
     1,
     "in_place 0 channels 1 grid 1 tmp 1 lanes 2",
     1,
     1,
     false,
     {"lane 0\ncopy tmp 0 in 0\nlane 1\ncopy out 0 tmp 0\n"}},
    {"",
     HOOP_ALL_REDUCE,
     1,
     "in_place 0 channels 1 grid 1 tmp 1 lanes 2",
     1,
     1,
     false,
     {"lane 0\ncopy tmp 0 in 0\nlane 1\nafter 0 0\ncopy out 0 tmp 0\n"}},
    /* with a second slice lane 0 may overwrite TMP before lane 1 has read it */
    {"races with lane",
     HOOP_ALL_REDUCE,
     1,
     "in_place 0 channels 1 grid 1 tmp 1 lanes 2",
     2,
     1,
     false,
     {"lane 0\ncopy tmp 0 in 0\nlane 1\nafter 0 0\ncopy out 0 tmp 0\n"}},
    {"lanes of this rank wait for each other",
     HOOP_ALL_REDUCE,
     1,
     "in_place 0 channels 1 grid 1 tmp 1 lanes 2",
     1,
     1,
     false,
     {"lane 0\nafter 1 1\ncopy out 0 in 0\nlane 1\nafter 0 1\ncopy out 0 in 0\n"}},
    {"may leave the barrier before rank 1 has entered",
     HOOP_BARRIER,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     1,
     1,
     false,
     {"lane 0\nsend 1 in 0\n", "lane 0\nrecv 0 out 0\n"}},
    {"",
     HOOP_BARRIER,
     2,
     "in_place 0 channels 1 grid 1 tmp 0 lanes 1",
     2,
     1,
     true,
     {"lane 0\nsend 1 in 0\nrecv 1 out 0\n", "lane 0\nsend 0 in 0\nrecv 0 out 0\n"}},
};

enum { CASES = sizeof cases / sizeof cases[0] };

static struct hoop_plan *read_plan(int i, int rank)
{
    struct hoop_plan *plan = NULL;
    char text[1024];

    snprintf(text, sizeof text, "plan - %s ranks %d rank %d root 0 %s\n%s", hoop_coll_name(cases[i].coll),
             cases[i].ranks, rank, cases[i].shape, cases[i].body[rank]);
    ck_assert_msg(hoop_plan_parse(&plan, text, strlen(text)) == HOOP_OK, "case %d: %s", i, text);
    return plan;
}

START_TEST(named_fault)
{
    struct hoop_check check = {.slices = cases[_i].slices, .credit = cases[_i].credit, .borrow = cases[_i].borrow};
    struct hoop_plan *plan[3];

    for (int rank = 0; rank < cases[_i].ranks; rank++)
        plan[rank] = read_plan(_i, rank);
    const enum hoop_status status = hoop_plan_check(plan, &check);

    if (cases[_i].fault[0] == '\0') {
        ck_assert_msg(status == HOOP_OK, "case %d: %s", _i, check.fault);
        ck_assert_str_eq(check.fault, "");
    } else {
        ck_assert_int_eq(status, HOOP_ERR_ARG);
        ck_assert_msg(strstr(check.fault, cases[_i].fault) != NULL, "case %d: %s", _i, check.fault);
    }
    plans_free(plan, cases[_i].ranks);
}
END_TEST

/* An algorithm whose formulas promise something else than its plans do. */
static struct hoop_cost wrong_cost(const struct hoop_problem *problem)
{
    struct hoop_cost cost = hoop_algo_find("ring")->cost(problem);

    *(&cost.messages + problem->root) += 1; /* the root says which of the five is wrong */
    return cost;
}

START_TEST(wrong_formula)
{
    static const char *const told[] = {"messages of a rank", "data sent", "data reduced", "chain of messages",
                                       "joined parts"};
    struct hoop_algo algo = *hoop_algo_find("ring");
    const struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .ranks = 4, .channels = 1};
    struct hoop_check check = {.slices = 1, .credit = 1};
    struct hoop_plan *plan[4];

    algo.cost = wrong_cost;
    algo.any_root = true;
    ck_assert(plans_build(plan, &algo, problem, true));
    for (int rank = 0; rank < 4; rank++)
        plan[rank]->problem.root = _i;
    ck_assert_int_eq(hoop_plan_check(plan, &check), HOOP_ERR_ARG);
    ck_assert_msg(strstr(check.fault, told[_i]) != NULL, "%s", check.fault);
    check.skip_cost = true;
    ck_assert_int_eq(hoop_plan_check(plan, &check), HOOP_OK);
    plans_free(plan, 4);
}
END_TEST

/* Exchanges whose sends are staged for a reason: without it everyone waits for his reader. */
START_TEST(staging_is_needed)
{
    static const struct {
        const char *algo;
        bool in_place;
    } exchanges[] = {{"recdbl", false}, {"recdbl", true}, {"flat", true}};

    const struct hoop_problem problem = {
        .coll = HOOP_ALL_REDUCE, .ranks = 4, .in_place = exchanges[_i].in_place, .channels = 1};
    struct hoop_check check = {.slices = 1, .credit = 1, .borrow = true};
    struct hoop_plan *plan[4];

    ck_assert(plans_build(plan, hoop_algo_find(exchanges[_i].algo), problem, true));
    for (int rank = 0; rank < 4; rank++)
        for (uint32_t i = 0; i < plan[rank]->lane[0].steps; i++)
            plan[rank]->lane[0].step[i].flags &= (uint8_t)~HOOP_STEP_STAGED;
    ck_assert_int_eq(hoop_plan_check(plan, &check), HOOP_ERR_ARG);
    ck_assert_msg(strstr(check.fault, "waits for a lent chunk to be read") != NULL, "%s", check.fault);
    check.borrow = false;
    ck_assert_int_eq(hoop_plan_check(plan, &check), HOOP_OK);
    plans_free(plan, 4);
}
END_TEST

/* Plans of different problems do not go together. */
START_TEST(mixed_heads)
{
    const struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .ranks = 4, .channels = 1};
    struct hoop_check check = {.slices = 1, .credit = 1};
    struct hoop_plan *plan[4], *swap;

    ck_assert(plans_build(plan, hoop_algo_find("ring"), problem, true));
    swap = plan[1];
    plan[1] = plan[2];
    plan[2] = swap;
    ck_assert_int_eq(hoop_plan_check(plan, &check), HOOP_ERR_ARG);
    plan[2] = plan[1];
    plan[1] = swap;
    plan[3]->problem.in_place = true;
    ck_assert_int_eq(hoop_plan_check(plan, &check), HOOP_ERR_ARG);
    plan[3]->problem.in_place = false;
    ck_assert_int_eq(hoop_plan_check(plan, &check), HOOP_OK);
    check.slices = 0;
    ck_assert_int_eq(hoop_plan_check(plan, &check), HOOP_ERR_ARG);
    plans_free(plan, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("faults of plans");
    TCase *tests = tcase_create("all");

    tcase_add_loop_test(tests, named_fault, 0, CASES);
    tcase_add_loop_test(tests, wrong_formula, 0, 5);
    tcase_add_loop_test(tests, staging_is_needed, 0, 3);
    tcase_add_test(tests, mixed_heads);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
