// SPDX-License-Identifier: BSD-3-Clause
/* The cost model: its file form, its formula, and that predictions grow with bytes. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "hoop/plan.h"
#include "plan/choose.h"
#include "plan/model.h"

static enum hoop_status parse(struct hoop_model *model, const char *text)
{
    return hoop_model_parse(model, text, strlen(text));
}

START_TEST(files_are_read)
{
    struct hoop_model model;

    ck_assert_int_eq(parse(&model, "hoop-model 1\n# remark\n\nhop 412.5\r\n copy\t9.125 # here too\nreduce 1"),
                     HOOP_OK);
    ck_assert(model.measured);
    ck_assert_double_eq(model.hop, 412.5);
    ck_assert_double_eq(model.copy, 9.125);
    ck_assert_double_eq(model.reduce, 1);
    ck_assert_double_eq(model.post, hoop_model_builtin().post);
    ck_assert(!hoop_model_builtin().measured);
}
END_TEST

START_TEST(wrong_files_are_refused)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "empty"},
        {"hoop-model 2\n", "line 1"},
        {"hoop-model 1 x\n", "line 1"},
        {"model 1\n", "line 1"},
        {"hoop-model 1\nhopp 4\n", "line 2: hopp is no constant"},
        {"hoop-model 1\nhop 4\nhop 4\n", "line 3: hop is given twice"},
        {"hoop-model 1\nhop\n", "line 2"},
        {"hoop-model 1\nhop 4 5\n", "line 2: 5 follows"},
        {"hoop-model 1\nhop -4\n", "line 2: -4"},
        {"hoop-model 1\nhop 0\n", "line 2: 0 is no number"},
        {"hoop-model 1\nhop 1e3\n", "line 2: 1e3"},
        {"hoop-model 1\nhop 4.\n", "line 2: 4."},
        {"hoop-model 1\nhop .5\n", "line 2: .5"},
        {"hoop-model 1\nhop 1.2345\n", "line 2: 1.2345"},
        {"hoop-model 1\nhop 4,5\n", "line 2: 4,5"},
        {"hoop-model 1\nhop 1000000001\n", "line 2"},
        {"hoop-model 1\ncopy nan\n", "line 2: nan"},
        {"hoop-model 1\ncopy 99999999999999999999999999\n", "line 2"},
    };
    struct hoop_model model = hoop_model_builtin();
    const struct hoop_model before = model;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(parse(&model, cases[i].text) == HOOP_ERR_ARG, "case %zu is taken", i);
        ck_assert_msg(strstr(hoop_last_error(NULL), cases[i].error), "case %zu: %s", i, hoop_last_error(NULL));
        ck_assert_mem_eq(&model, &before, sizeof model);
    }
    ck_assert_int_eq(hoop_model_load(&model, "/nonexistent/model"), HOOP_ERR_SETUP);
    ck_assert_ptr_nonnull(strstr(hoop_last_error(NULL), "/nonexistent/model"));
}
END_TEST

START_TEST(what_is_written_is_read)
{
    struct hoop_model model = hoop_model_builtin(), again;
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    model.hop = 0.001 * 123456789;
    model.reduce = 0.001;
    ck_assert_int_eq(hoop_model_print(&model, file), HOOP_OK);
    fclose(file);
    ck_assert_int_eq(hoop_model_parse(&again, text, size), HOOP_OK);
    for (int i = 0; i < HOOP_MODEL_CONSTANTS; i++)
        ck_assert_double_eq_tol(hoop_model_get(&again, i), hoop_model_get(&model, i), 1e-9);
    free(text);
}
END_TEST

START_TEST(constants_over_the_wire_are_checked)
{
    static const double wrong[] = {NAN, INFINITY, -1, 0};
    struct hoop_model model = hoop_model_builtin();

    ck_assert(hoop_model_valid(&model));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        model.copy = wrong[i];
        ck_assert(!hoop_model_valid(&model));
    }
}
END_TEST

/* Round constants, so that the sum can be made by hand: ring, 4 ranks, all-reduce of 4000 bytes: depth 6, 6 messages, 1.5
 * vectors moved, 0.75 combined. */
START_TEST(the_formula_is_kept)
{
    const struct hoop_model model = {.hop = 100, .hop_crowded = 1000, .post = 10, .slot = 20, .copy = 2, .reduce = 1};
    const struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .ranks = 4, .channels = 1};
    const struct hoop_algo *ring = hoop_algo_find("ring");
    const struct hoop_prediction alone = hoop_model_predict(&model, ring, &problem, 4000, 1000, 4),
                                 crowd = hoop_model_predict(&model, ring, &problem, 4000, 1000, 2);

    ck_assert_double_eq_tol(alone.hops, 600, 1e-6);
    ck_assert_double_eq_tol(alone.messages, 6 * 10 + 6 * 20, 1e-6);
    ck_assert_double_eq_tol(alone.copy, 3000, 1e-6);
    ck_assert_double_eq_tol(alone.reduce, 3000, 1e-6);
    ck_assert_double_eq_tol(alone.time, 6780, 1e-6);
    ck_assert_double_eq_tol(crowd.time, 6000 + 2 * 6180, 1e-6);
}
END_TEST

START_TEST(predictions_grow_with_bytes)
{
    const struct hoop_model model = hoop_model_builtin();
    const struct hoop_algo *algo;

    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++)
        for (int coll = 0; coll < HOOP_COLLS; coll++)
            for (int n = 2; n <= 40; n++) {
                const struct hoop_problem problem = {.coll = (enum hoop_coll)coll, .ranks = n, .channels = 1};
                double before = 0;
                if (!algo->applicable(&problem))
                    continue;
                for (size_t bytes = 1; bytes < (size_t)1 << 40; bytes *= 3) {
                    const double time = hoop_model_predict(&model, algo, &problem, bytes, 131072, 8).time;
                    ck_assert_msg(coll == HOOP_BARRIER ? time >= before : time > before, "%s %s n=%d bytes=%zu",
                                  algo->name, hoop_coll_name(problem.coll), n, bytes);
                    before = time;
                }
            }
}
END_TEST

/* The choice has the least prediction, and the reasons come in their order. */
START_TEST(the_choice_is_the_least)
{
    struct hoop_choice choice = {
        .flat = hoop_algo_find("flat"), .frame = 131072, .flat_max = 4096, .cores = 2, .model = hoop_model_builtin()};
    const struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .ranks = 6, .channels = 1};
    const struct hoop_algo *algo;

    for (size_t bytes = 4097; bytes < (size_t)1 << 32; bytes = bytes * 3 / 2) {
        const struct hoop_decision decision = hoop_choose(&choice, &problem, bytes);
        const double chosen = hoop_model_predict(&choice.model, decision.algo, &problem, bytes, 131072, 2).time;
        ck_assert_int_eq(decision.reason, HOOP_BY_COST);
        for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++)
            if (algo->applicable(&problem))
                ck_assert(hoop_model_predict(&choice.model, algo, &problem, bytes, 131072, 2).time >= chosen);
    }
    ck_assert_int_eq(hoop_choose(&choice, &problem, 4096).reason, HOOP_BY_SIZE);
    ck_assert_ptr_eq(hoop_choose(&choice, &problem, 4096).algo, choice.flat);
    choice.forced = hoop_algo_find("tree");
    ck_assert_int_eq(hoop_choose(&choice, &problem, 8).reason, HOOP_BY_FORCE);
    ck_assert_ptr_eq(hoop_choose(&choice, &problem, 8).algo, choice.forced);
    const struct hoop_problem gather = {.coll = HOOP_ALL_GATHER, .ranks = 6, .channels = 1};
    ck_assert_int_eq(hoop_choose(&choice, &gather, 6 * 4096).reason, HOOP_BY_SIZE);
    ck_assert_int_eq(hoop_choose(&choice, &gather, 6 * 4096 + 6).reason, HOOP_BY_COST);
}
END_TEST

/* Only what combines in rank order is chosen, and the others are told why not. */
START_TEST(rank_order_restricts_the_choice)
{
    static char text[HOOP_EXPLAIN_TEXT];
    struct hoop_choice choice = {
        .flat = hoop_algo_find("flat"), .frame = 131072, .flat_max = 4096, .cores = 2, .model = hoop_model_builtin()};
    struct hoop_problem problem = {.channels = 1};
    int changed = 0;

    for (int coll = 0; coll < HOOP_COLLS; coll++)
        for (problem.ranks = 2; problem.ranks <= 20; problem.ranks++)
            for (size_t bytes = 100; bytes < (size_t)1 << 28; bytes *= 7) {
                problem.coll = (enum hoop_coll)coll;
                choice.deterministic = false;
                const struct hoop_algo *free = hoop_choose(&choice, &problem, bytes).algo;
                choice.deterministic = true;
                const struct hoop_algo *bound = hoop_choose(&choice, &problem, bytes).algo;
                const bool may_change = hoop_coll_shape(problem.coll)->sums && problem.ranks > 2;
                ck_assert(bound == free || may_change);
                ck_assert(!may_change || bound->rank_order);
                changed += bound != free;
            }
    ck_assert_int_gt(changed, 0);
    problem = (struct hoop_problem){.coll = HOOP_ALL_REDUCE, .ranks = 5, .channels = 1};
    choice.model.post = 1e6; /* few messages: a tree */
    ck_assert_int_eq(hoop_plan_explain(&choice, &problem, 1 << 20, false, text, sizeof text), HOOP_OK);
    ck_assert_ptr_nonnull(strstr(text, "ring                  left out: sums in another order, HOOP_DETERMINISTIC"));
    ck_assert_ptr_null(strstr(text, "HOOP_ALGO=ring"));
    ck_assert_ptr_nonnull(strstr(text, "of those that sum in rank order"));
    ck_assert_ptr_nonnull(strstr(text, "change     HOOP_DETERMINISTIC=0 gives"));
}
END_TEST

/* The sizes that explain names are the exact ends of the choice. */
START_TEST(the_range_is_exact)
{
    static char text[HOOP_EXPLAIN_TEXT];
    const struct hoop_choice choice = {
        .flat = hoop_algo_find("flat"), .frame = 131072, .flat_max = 4096, .cores = 2, .model = hoop_model_builtin()};
    const struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .ranks = 5, .channels = 1};

    for (size_t bytes = 0; bytes < (size_t)1 << 32; bytes = bytes * 3 + 1) {
        const struct hoop_algo *algo = hoop_choose(&choice, &problem, bytes).algo;
        ck_assert_int_eq(hoop_plan_explain(&choice, &problem, bytes, true, text, sizeof text), HOOP_OK);
        const char *first = strstr(text, "\"first_bytes\":"), *last = strstr(text, "\"last_bytes\":");
        ck_assert(first && last);
        const size_t low = strtoull(strchr(first, ':') + 1, NULL, 10), high = strtoull(strchr(last, ':') + 1, NULL, 10);
        ck_assert(low <= bytes && hoop_choose(&choice, &problem, low).algo == algo);
        ck_assert(low == 0 || low == 4097 || hoop_choose(&choice, &problem, low - 1).algo != algo);
        if (high > 0) {
            ck_assert(high >= bytes && hoop_choose(&choice, &problem, high).algo == algo);
            ck_assert(high == 4096 || hoop_choose(&choice, &problem, high + 1).algo != algo);
        }
    }
    ck_assert_int_eq(hoop_plan_explain(&choice, &problem, 8, true, text, 100), HOOP_ERR_ARG);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model");
    TCase *all = tcase_create("all");

    tcase_add_test(all, files_are_read);
    tcase_add_test(all, wrong_files_are_refused);
    tcase_add_test(all, what_is_written_is_read);
    tcase_add_test(all, constants_over_the_wire_are_checked);
    tcase_add_test(all, the_formula_is_kept);
    tcase_add_test(all, predictions_grow_with_bytes);
    tcase_add_test(all, the_choice_is_the_least);
    tcase_add_test(all, rank_order_restricts_the_choice);
    tcase_add_test(all, the_range_is_exact);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
