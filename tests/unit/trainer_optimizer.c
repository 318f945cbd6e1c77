// SPDX-License-Identifier: BSD-3-Clause
/* Momentum and decay against the formula in double; schedules at their corners; the gradient's norm. */
#include "trainer/optimizer.h"

#include <math.h>

#include "trainer_check.h"

START_TEST(momentum_and_decay)
{
    const double rates[] = {0.1, 0.2, 0.05, 0.1};
    struct model model;
    struct optimizer optimizer;
    double value[7], velocity[7] = {0};

    model_plan(&model, 1, (size_t[]){2, 2}, ACTIVATION_RELU); /* 4 weights, 2 biases */
    float *values = calloc(model.values_count, sizeof *values),
          *gradients = calloc(model.values_count, sizeof *gradients);
    ck_assert_int_eq(model_make(&model, values, 1), TRAIN_OK);
    ck_assert_int_eq(optimizer_make(&optimizer, &model, 0.9, 0.01), TRAIN_OK);
    for (int i = 0; i < 6; i++) {
        struct tensor *tensor = &model.tensor[i / 4];

        tensor->gradient = gradients + tensor->offset;
        tensor->value[i % 4] = (float)i - 2.5f;
        value[i] = i - 2.5;
    }
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < 6; i++) {
            const double gradient = (i + 1) * 0.125 - step;

            model.tensor[i / 4].gradient[i % 4] = (float)gradient;
            velocity[i] = 0.9 * velocity[i] + gradient + (i < 4 ? 0.01 * value[i] : 0);
            value[i] -= rates[step] * velocity[i];
        }
        optimizer_step(&optimizer, &model, rates[step]);
        for (int i = 0; i < 6; i++)
            ck_assert_double_eq_tol((double)model.tensor[i / 4].value[i % 4], value[i], 1e-6);
    }
    optimizer_free(&optimizer);
    model_free(&model);
    free(values);
    free(gradients);
}
END_TEST

START_TEST(schedules)
{
    const enum schedule all[] = {SCHEDULE_CONSTANT, SCHEDULE_LINEAR, SCHEDULE_COSINE};

    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq_tol(schedule_rate(all[i], 2, 0, 4, 104), 0.5, 1e-12);
        ck_assert_double_eq_tol(schedule_rate(all[i], 2, 3, 4, 104), 2, 1e-12);
        ck_assert_double_eq_tol(schedule_rate(all[i], 2, 4, 4, 104), 2, 1e-12);
        ck_assert_double_eq_tol(schedule_rate(all[i], 2, 0, 0, 104), 2, 1e-12);
        ck_assert_double_eq_tol(schedule_rate(all[i], 2, 9, 10, 10), 2, 1e-12); /* all of it warm-up */
    }
    ck_assert_double_eq_tol(schedule_rate(SCHEDULE_CONSTANT, 2, 103, 4, 104), 2, 1e-12);
    ck_assert_double_eq_tol(schedule_rate(SCHEDULE_LINEAR, 2, 54, 4, 104), 1, 1e-12);
    ck_assert_double_eq_tol(schedule_rate(SCHEDULE_COSINE, 2, 54, 4, 104), 1, 1e-12);
    ck_assert_double_eq_tol(schedule_rate(SCHEDULE_COSINE, 2, 29, 4, 104), 1 + sqrt(0.5), 1e-12);
    ck_assert(schedule_rate(SCHEDULE_LINEAR, 2, 103, 4, 104) > 0);
    ck_assert(schedule_rate(SCHEDULE_COSINE, 2, 103, 4, 104) > 0);
}
END_TEST

START_TEST(norm)
{
    struct model model;
    double squares = 0;

    model_plan(&model, 2, (size_t[]){5, 3, 2}, ACTIVATION_RELU);
    float *gradients = calloc(model.values_count, sizeof *gradients);
    for (int i = 0; i < model.tensors; i++) {
        struct tensor *tensor = &model.tensor[i];

        tensor->gradient = gradients + tensor->offset;
        for (size_t k = 0; k < tensor->count; k++) {
            tensor->gradient[k] = (float)(i + 1) * ((float)k - 1.5f);
            squares += (double)tensor->gradient[k] * (double)tensor->gradient[k];
        }
    }
    ck_assert_double_eq_tol(gradient_norm(&model), sqrt(squares), 1e-9);
    for (int i = 0; i < model.tensors; i++)
        for (size_t k = 0; k < model.tensor[i].count; k++) {
            const float kept = model.tensor[i].gradient[k];

            model.tensor[i].gradient[k] = k % 2 ? INFINITY : NAN;
            ck_assert(!isfinite(gradient_norm(&model)));
            model.tensor[i].gradient[k] = kept;
        }
    free(gradients);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {momentum_and_decay, schedules, norm, NULL};

    return run_tests("trainer optimizer", tests, 60);
}
