// SPDX-License-Identifier: BSD-3-Clause
/* Plans as values: the text form there and back, the reader on wrong texts, the builder on authors' mistakes, the
 * cache, and every allocation failing once. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "harness.h"
#include "plan/cache.h"
#include "plans.h"

static char *print(const struct hoop_plan *plan, size_t *size)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, size);

    ck_assert_int_eq(hoop_plan_print(plan, file), HOOP_OK);
    fclose(file);
    return text;
}

static void check_same(const struct hoop_plan *a, const struct hoop_plan *b)
{
    ck_assert_ptr_eq(a->algo, b->algo);
    ck_assert_mem_eq(&a->problem, &b->problem, sizeof a->problem);
    ck_assert(a->grid == b->grid && a->tmp == b->tmp && a->lanes == b->lanes);
    for (uint32_t lane = 0; lane < a->lanes; lane++) {
        ck_assert_uint_eq(a->lane[lane].steps, b->lane[lane].steps);
        ck_assert_mem_eq(a->lane[lane].step, b->lane[lane].step, a->lane[lane].steps * sizeof *a->lane[lane].step);
    }
}

/* There and back, for every algorithm, collective and rank; and no prefix of the text does harm. */
START_TEST(round_trip)
{
    struct hoop_problem problem = {.ranks = 5, .root = 3, .channels = 2};

    for (int coll = 0; coll < HOOP_COLLS; coll++)
        for (problem.rank = 0; problem.rank < problem.ranks; problem.rank++) {
            struct hoop_plan *plan, *again;
            size_t size;

            problem.coll = (enum hoop_coll)coll;
            problem.in_place = problem.rank % 2 == 0;
            if (!hoop_algo_get(_i)->applicable(&problem))
                continue;
            ck_assert_int_eq(hoop_plan_build(&plan, hoop_algo_get(_i), &problem, true), HOOP_OK);
            char *text = print(plan, &size);
            ck_assert_msg(hoop_plan_parse(&again, text, size) == HOOP_OK, "%s\n%s", hoop_error_text(), text);
            check_same(plan, again);
            hoop_plan_free(again);
            for (size_t cut = 0; cut < size; cut++)
                if (hoop_plan_parse(&again, text, cut) == HOOP_OK)
                    hoop_plan_free(again);
            hoop_plan_free(plan);
            free(text);
        }
}
END_TEST

#define HEAD "plan ring all_reduce ranks 2 rank 0 root 0 in_place 0 channels 1 grid 2 tmp 1 lanes 1\n"

static const struct {
    const char *text, *line, *word;
} wrong[] = {
    {"", "line 1", "the line ends"},
    {"plane", "line 1", "\"plane\""},
    {"plan rang all_reduce", "line 1", "\"rang\""},
    {"plan ring all_reduced", "line 1", "\"all_reduced\""},
    {"plan ring all_reduce ranks 0", "line 1", "\"0\""},
    {"plan ring all_reduce ranks 2 rank 2", "line 1", "\"2\""},
    {"plan ring all_reduce ranks 99999999999999999999", "line 1", "\"99999999999999999999\""},
    {"plan ring all_reduce ranks 4294967297", "line 1", "\"4294967297\""},
    {"plan ring all_gather ranks 2 rank 0 root 0 in_place 0 channels 1 grid 3 tmp 0 lanes 0\n", "grid", "3"},
    {"plan ring all_reduce ranks 2 rank 0 root 0 in_place 0 channels 17", "line 1", "\"17\""},
    {HEAD, "line 2", "0 of 1"},
    {HEAD "lane 1\n", "line 2", "\"1\""},
    {HEAD "send 1 in 0\n", "line 2", "\"send\""},
    {HEAD "lane 0\nlane 1\n", "line 3", "lanes"},
    {HEAD "lane 0\n  sent 1 in 0\n", "line 3", "\"sent\""},
    {HEAD "lane 0\n  send 2 in 0\n", "line 3", "\"2\""},
    {HEAD "lane 0\n  send -1 in 0\n", "line 3", "\"-1\""},
    {HEAD "lane 0\n  send 1 inn 0\n", "line 3", "\"inn\""},
    {HEAD "lane 0\n  send 1 in 2\n", "line 3", "\"2\""},
    {HEAD "lane 0\n\n  recv 1 tmp 1\n", "line 4", "\"1\""},
    {HEAD "lane 0\n  recv 1 out\n", "line 3", "the line ends"},
    {HEAD "lane 0\n  recv 1 out 0 staged\n", "line 3", "\"staged\""},
    {HEAD "lane 0\n  send 1 in 0 \x01\xff\n", "line 3", "\"\?\?\""},
    {HEAD "lane 0\n  after 1 0\n", "line 3", "\"1\""},
};

START_TEST(wrong_texts)
{
    struct hoop_plan *plan = NULL;

    ck_assert_int_eq(hoop_plan_parse(&plan, wrong[_i].text, strlen(wrong[_i].text)), HOOP_ERR_ARG);
    ck_assert_ptr_null(plan);
    ck_assert_msg(strstr(hoop_error_text(), wrong[_i].line) != NULL, "%s", hoop_error_text());
    ck_assert_msg(strstr(hoop_error_text(), wrong[_i].word) != NULL, "%s", hoop_error_text());
}
END_TEST

/* Random bytes over a good text: read or refused, and what is read prints. */
START_TEST(damaged_texts)
{
    const struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .ranks = 6, .rank = 2, .channels = 1};
    struct hoop_plan *plan, *again;
    size_t size, printed;
    uint32_t random = 1;

    ck_assert_int_eq(hoop_plan_build(&plan, hoop_algo_find("dbtree"), &problem, true), HOOP_OK);
    char *text = print(plan, &size), *damaged = malloc(size);
    for (int i = 0; i < 20000; i++) {
        memcpy(damaged, text, size);
        for (int k = 0; k <= i % 3; k++) {
            random = random * 1664525 + 1013904223;
            damaged[(random >> 8) % size] = (char)((random >> 4) % 4 == 0 ? random >> 24 : '0' + (random >> 24) % 10);
        }
        if (hoop_plan_parse(&again, damaged, size) == HOOP_OK) {
            free(print(again, &printed));
            hoop_plan_free(again);
        }
    }
    hoop_plan_free(plan);
    free(damaged);
    free(text);
}
END_TEST

/* ---- authors' mistakes ---- */

static int mistake;

static bool always(const struct hoop_problem *problem)
{
    return problem->ranks > 0;
}

static struct hoop_cost nothing(const struct hoop_problem *problem)
{
    return (struct hoop_cost){.messages = problem->ranks < 0};
}

static enum hoop_status write_mistake(struct hoop_builder *builder, const struct hoop_problem *problem)
{
    struct hoop_lane *lane = hoop_lane(builder);

    hoop_grid(builder, mistake == 0 ? 0 : mistake == 1 ? problem->ranks + 1 : problem->ranks);
    if (mistake == 2)
        hoop_lane_send(lane, problem->ranks, HOOP_IN, 0);
    if (mistake == 3)
        hoop_lane_send(lane, problem->rank, HOOP_IN, 0);
    if (mistake == 4)
        hoop_lane_copy(lane, HOOP_OUT, problem->ranks, HOOP_IN, 0);
    if (mistake == 5)
        hoop_lane_recv(lane, 1, HOOP_TMP, -1);
    if (mistake == 6)
        hoop_lane_after(lane, lane);
    if (mistake == 7)
        for (int i = 0; i < HOOP_MAX_LANES; i++)
            hoop_lane_copy(hoop_lane(builder), HOOP_OUT, 0, HOOP_IN, 0);
    if (mistake == 8) {
        hoop_lane_copy(lane, HOOP_OUT, 0, HOOP_IN, 0);
        hoop_grid(builder, problem->ranks);
    }
    if (mistake == 9)
        hoop_lane_combine(lane, (enum hoop_buffer)3, 0, HOOP_IN, 0);
    if (mistake == 10) {
        hoop_lane_send(lane, 1, HOOP_IN, 0);
        hoop_lane_recv(lane, 1, HOOP_OUT, 1);
        hoop_lane_join(lane);
    }
    if (mistake == 11) {
        hoop_lane_copy(lane, HOOP_OUT, 0, HOOP_IN, 0);
        hoop_lane_join(lane);
    }
    hoop_lane_copy(lane, HOOP_OUT, 99, HOOP_IN, 99); /* a second mistake, which is not told */
    return hoop_builder_status(builder);
}

START_TEST(authors_mistakes)
{
    static const char *const told[] = {
        "grid of 0", "equal blocks",         "peer 3",   "peer 0",     "chunk 3",    "chunk -1", "for itself",
        "lanes",     "after the first step", "buffer 3", "no message", "only a send"};
    const struct hoop_algo algo = {.name = "test", .applicable = always, .cost = nothing, .plan = write_mistake};
    const struct hoop_problem problem = {.coll = HOOP_ALL_GATHER, .ranks = 3, .channels = 1};
    struct hoop_plan *plan = NULL;

    mistake = _i;
    ck_assert_int_eq(hoop_plan_build(&plan, &algo, &problem, true), HOOP_ERR_ARG);
    ck_assert_ptr_null(plan);
    ck_assert_msg(strstr(hoop_error_text(), told[_i]) != NULL, "%s", hoop_error_text());
}
END_TEST

START_TEST(wrong_problems)
{
    static const struct hoop_problem problems[] = {
        {.coll = HOOP_COLLS, .ranks = 2, .channels = 1},
        {.coll = HOOP_ALL_REDUCE, .ranks = 0, .channels = 1},
        {.coll = HOOP_ALL_REDUCE, .ranks = 2, .rank = 2, .channels = 1},
        {.coll = HOOP_ALL_REDUCE, .ranks = 2, .rank = -1, .channels = 1},
        {.coll = HOOP_REDUCE, .ranks = 2, .root = 2, .channels = 1},
        {.coll = HOOP_ALL_REDUCE, .ranks = 2, .channels = 0},
        {.coll = HOOP_ALL_REDUCE, .ranks = 2, .channels = HOOP_MAX_CHANNELS + 1},
        {.coll = HOOP_ALL_GATHER, .ranks = 2, .channels = 1}, /* not by dbtree */
    };
    struct hoop_plan *plan = NULL;

    ck_assert_int_eq(hoop_plan_build(&plan, hoop_algo_find("dbtree"), &problems[_i], true), HOOP_ERR_ARG);
    ck_assert_ptr_null(plan);
}
END_TEST

START_TEST(names)
{
    for (int coll = 0; coll < HOOP_COLLS; coll++)
        ck_assert_int_eq(hoop_coll_find(hoop_coll_name((enum hoop_coll)coll)), coll);
    ck_assert_int_eq(hoop_coll_find("allreduce"), -1);
    ck_assert_str_eq(hoop_coll_name(HOOP_COLLS), "?");
    for (int i = 0; hoop_algo_get(i) != NULL; i++) {
        ck_assert_ptr_eq(hoop_algo_find(hoop_algo_get(i)->name), hoop_algo_get(i));
        ck_assert_uint_gt(strlen(hoop_algo_help(i)), 10);
    }
    ck_assert_ptr_null(hoop_algo_get(-1));
    ck_assert_ptr_null(hoop_algo_find("rang"));
}
END_TEST

/* ---- cache and memory ---- */

START_TEST(cache)
{
    struct hoop_plan_cache store = {0};
    const struct hoop_plan *first[16 * HOOP_COLLS * 9], *plan;
    int known = 0;

    for (int round = 0; round < 2; round++) {
        int i = 0;

        for (int algo = 0; hoop_algo_get(algo) != NULL; algo++)
            for (int coll = 0; coll < HOOP_COLLS; coll++)
                for (int root = 0; root < 9; root++) {
                    const struct hoop_problem problem = {
                        .coll = (enum hoop_coll)coll, .ranks = 9, .rank = 4, .root = root, .channels = 1};

                    if (!hoop_algo_get(algo)->applicable(&problem))
                        continue;
                    hoop_alloc_fail_at(0);
                    ck_assert_int_eq(hoop_plan_cache_get(&store, hoop_algo_get(algo), &problem, &plan), HOOP_OK);
                    ck_assert_int_eq(plan->problem.root, plans_rooted(problem.coll) ? root : 0);
                    ck_assert_ptr_eq(plan->algo, hoop_algo_get(algo));
                    if (round == 0)
                        first[i++] = plan;
                    else
                        ck_assert_ptr_eq(first[i++], plan);
                    ck_assert(round == 0 || hoop_alloc_fail_at(0) == 0);
                }
        ck_assert(round == 0 || i == known);
        known = i;
    }
    ck_assert_uint_eq(store.built, store.plans);
    ck_assert_uint_lt(store.plans, (unsigned)known); /* roots do not matter where there are none */
    hoop_plan_cache_clear(&store);
    ck_assert(store.slot == NULL && store.plans == 0);
}
END_TEST

/* Build, check, print and read with the n-th allocation failing, for all n. */
static enum hoop_status use_plans(void)
{
    const struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .ranks = 4, .rank = 1, .channels = 1};
    struct hoop_check check = {.slices = 2, .credit = 1, .borrow = true};
    struct hoop_plan_cache store = {0};
    const struct hoop_plan *cached;
    struct hoop_plan *plan[PLANS_MOST], *again;
    enum hoop_status status = hoop_plan_cache_get(&store, hoop_algo_find("ring"), &problem, &cached);

    if (status == HOOP_OK) {
        size_t size;
        char *text = print(cached, &size);

        status = hoop_plan_parse(&again, text, size);
        free(text);
        if (status == HOOP_OK)
            hoop_plan_free(again);
    }
    hoop_plan_cache_clear(&store);
    if (status != HOOP_OK)
        return status;
    if (!plans_build(plan, hoop_algo_find("dbtree"), problem, true))
        return HOOP_ERR_MEMORY;
    status = hoop_plan_check(plan, &check);
    plans_free(plan, problem.ranks);
    return status;
}

START_TEST(no_memory)
{
    enum hoop_status status = HOOP_ERR_MEMORY;
    long n = 0;

    while (status == HOOP_ERR_MEMORY) {
        hoop_alloc_fail_at(++n);
        status = use_plans();
        ck_assert_msg(status == HOOP_OK || status == HOOP_ERR_MEMORY, "allocation %ld: %s", n, hoop_error_text());
    }
    hoop_alloc_fail_at(0);
    ck_assert_int_gt(n, 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plans as values");
    TCase *tests = tcase_create("all");
    int algos = 0;

    while (hoop_algo_get(algos) != NULL)
        algos++;
    tcase_add_loop_test(tests, round_trip, 0, algos);
    tcase_add_loop_test(tests, wrong_texts, 0, (int)(sizeof wrong / sizeof wrong[0]));
    tcase_add_test(tests, damaged_texts);
    tcase_add_loop_test(tests, authors_mistakes, 0, 12);
    tcase_add_loop_test(tests, wrong_problems, 0, 8);
    tcase_add_test(tests, names);
    tcase_add_test(tests, cache);
    tcase_add_test(tests, no_memory);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
