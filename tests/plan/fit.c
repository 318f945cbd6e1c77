// SPDX-License-Identifier: BSD-3-Clause
/* The fit of hoop-bench --calibrate: from times that a known model predicts it finds that model again, with noise nearly so; and
 * its judgement of a model's choices. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "harness.h"
#include "tools/bench/calibrate.h"

enum { FRAME = 131072 };

static struct trial trials[TRIALS_MOST];

/* Every algorithm, some collectives and sizes, on as many cores as ranks and on fewer. Times as the model predicts them, off by up
 * to a factor. */
static int make(const struct hoop_model *model, double noise)
{
    static const int ranks[] = {2, 4, 8}, cores[] = {2, 4, 2};
    const struct hoop_algo *algo;
    int made = 0;

    srand(1);
    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++)
        for (int coll = 0; coll < HOOP_COLLS; coll++)
            for (int s = 0; s < 3; s++)
                for (size_t bytes = 256; bytes < 1 << 23; bytes *= 16) {
                    struct trial trial = {.algo = algo, .bytes = bytes, .cores = cores[s]};
                    trial.problem =
                        (struct hoop_problem){.coll = (enum hoop_coll)coll, .ranks = ranks[s], .channels = 1};
                    if (coll == HOOP_BARRIER || !algo->applicable(&trial.problem) || made == TRIALS_MOST)
                        continue;
                    fit_weigh(&trial, FRAME);
                    trial.chosen = pow(noise, 2.0 * rand() / RAND_MAX - 1) *
                                   hoop_model_predict(model, algo, &trial.problem, bytes, FRAME, trial.cores).time;
                    trials[made++] = trial;
                }
    return made;
}

static void compare(const struct hoop_model *fitted, const struct hoop_model *truth, double factor)
{
    struct hoop_constant constant;

    for (int i = 0; hoop_constant_get(i, &constant); i++) {
        const double a = *(const double *)(const void *)((const char *)fitted + constant.offset),
                     b = *(const double *)(const void *)((const char *)truth + constant.offset);
        ck_assert_msg(a / b < factor && b / a < factor, "%s: fitted %g, in truth %g", constant.name, a, b);
    }
}

static const struct hoop_model models[] = {
    /* the last three are not tried, and stay as built in */
    {.hop = 150,
     .hop_crowded = 30000,
     .post = 60,
     .slot = 90,
     .copy = 20,
     .reduce = 3,
     .hop_across = 600,
     .post_across = 150,
     .uplink = 40},
    {.hop = 3000,
     .hop_crowded = 2000,
     .post = 500,
     .slot = 300,
     .copy = 4,
     .reduce = 12,
     .hop_across = 600,
     .post_across = 150,
     .uplink = 40},
};

START_TEST(the_model_is_found_again)
{
    const int made = make(&models[_i], 1);
    struct hoop_model fitted = fit_model(trials, made, -1);

    ck_assert(fitted.measured);
    compare(&fitted, &models[_i], 1.15);
    fitted = fit_model(trials, make(&models[_i], 1.5), -1);
    compare(&fitted, &models[_i], 1.6);
}
END_TEST

START_TEST(a_model_is_judged_by_its_choices)
{
    const int made = make(&models[0], 1);
    const struct judgement good = fit_judge(trials, made, &models[0], FRAME),
                           bad = fit_judge(trials, made, &models[1], FRAME);

    ck_assert_int_gt(good.choices, 10);
    ck_assert_int_eq(good.best, good.choices);
    ck_assert_double_eq_tol(good.mean, 1, 1e-9);
    ck_assert_double_eq_tol(good.error, 1, 1e-9);
    ck_assert(good.worst_chosen == NULL);
    ck_assert_int_eq(bad.choices, good.choices);
    ck_assert_int_lt(bad.best, bad.choices);
    ck_assert(bad.mean > 1 && bad.worst >= bad.mean && bad.error > 1.1);
    ck_assert_double_eq_tol(bad.worst, bad.worst_chosen->chosen / bad.worst_fastest->chosen, 1e-9);
}
END_TEST

/* Nothing measured: the built-in constants stay. */
START_TEST(nothing_is_known_of_nothing)
{
    const struct hoop_model fitted = fit_model(trials, 0, -1), builtin = hoop_model_builtin();

    compare(&fitted, &builtin, 1.0001);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fit");
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, the_model_is_found_again, 0, 2);
    tcase_add_test(all, a_model_is_judged_by_its_choices);
    tcase_add_test(all, nothing_is_known_of_nothing);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
