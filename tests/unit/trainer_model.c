// SPDX-License-Identifier: BSD-3-Clause
/* The model against a plain double-precision network: loss and accuracy, and gradients by finite differences of that
 * network. */
#include "trainer/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/random.h"
#include "trainer_check.h"

enum { ROWS = 9, WIDEST = 16 };

/* A model with memory for parameters and gradients, random parameters and random samples. */
struct bench {
    struct model model;
    float *values, *gradients;
    float inputs[ROWS * WIDEST];
    uint8_t labels[ROWS];
    int ready[MODEL_TENSORS], ready_count; /* in the order of the calls */
};

static int note_ready(void *context, int tensor)
{
    struct bench *bench = context;

    bench->ready[bench->ready_count++] = tensor;
    return TRAIN_OK;
}

static void make(struct bench *bench, int layers, const size_t *widths, enum activation activation)
{
    const struct random_key key = {.seed = 4, .stream = RANDOM_SYNTHETIC};

    *bench = (struct bench){0};
    model_plan(&bench->model, layers, widths, activation);
    bench->values = calloc(bench->model.values_count, sizeof(float));
    bench->gradients = calloc(bench->model.values_count, sizeof(float));
    ck_assert_int_eq(model_make(&bench->model, bench->values, ROWS), TRAIN_OK);
    model_initialise(&bench->model, 1);
    for (int i = 0; i < bench->model.tensors; i++) {
        struct tensor *tensor = &bench->model.tensor[i];

        tensor->gradient = bench->gradients + tensor->offset;
        if (tensor->rows == 1) /* biases begin at 0; make them count */
            for (size_t k = 0; k < tensor->count; k++)
                tensor->value[k] = random_symmetric(&key, 1000 + 100 * (uint64_t)i + k) / 2;
    }
    for (size_t i = 0; i < ROWS * widths[0]; i++)
        bench->inputs[i] = random_symmetric(&key, i);
    for (int i = 0; i < ROWS; i++)
        bench->labels[i] = (uint8_t)random_below(&key, 900 + (uint64_t)i, widths[layers]);
}

static void drop(struct bench *bench)
{
    model_free(&bench->model);
    free(bench->values);
    free(bench->gradients);
}

static double activate(enum activation activation, double x)
{
    if (activation == ACTIVATION_RELU)
        return x > 0 ? x : 0;
    return x >= 0.5 ? x : x <= -0.5 ? 0 : (x + 0.5) * (x + 0.5) / 2;
}

/* One layer in double: out = in · weight + bias. */
static void reference_layer(const struct model *model, int layer, const double *parameters, const double *in,
                            double *out)
{
    const struct tensor *weight = &model->tensor[2 * layer], *bias = &model->tensor[2 * layer + 1];

    for (size_t j = 0; j < weight->columns; j++) {
        out[j] = parameters[bias->offset + j];
        for (size_t i = 0; i < weight->rows; i++)
            out[j] += in[i] * parameters[weight->offset + i * weight->columns + j];
        if (layer < model->layers - 1)
            out[j] = activate(model->activation, out[j]);
    }
}

/* The sum of losses of all rows in double. */
static double reference_loss(const struct bench *bench, const double *parameters, int64_t *right)
{
    const struct model *model = &bench->model;
    const size_t classes = model->width[model->layers];
    double loss = 0, at[2][WIDEST];

    *right = 0;
    for (int row = 0; row < ROWS; row++) {
        for (size_t i = 0; i < model->width[0]; i++)
            at[0][i] = (double)bench->inputs[(size_t)row * model->width[0] + i];
        for (int layer = 0; layer < model->layers; layer++)
            reference_layer(model, layer, parameters, at[layer % 2], at[(layer + 1) % 2]);
        const double *logits = at[model->layers % 2];
        double sum = 0;
        size_t best = 0;
        for (size_t i = 0; i < classes; i++) {
            sum += exp(logits[i]);
            best = logits[i] > logits[best] ? i : best;
        }
        loss += log(sum) - logits[bench->labels[row]];
        *right += best == bench->labels[row];
    }
    return loss;
}

static void check_gradients(int layers, const size_t *widths, enum activation activation)
{
    const double scale = 0.125, distance = 1e-6;
    struct bench bench;
    int64_t right, reference_right;

    make(&bench, layers, widths, activation);
    double *parameters = calloc(bench.model.values_count, sizeof *parameters);
    for (size_t i = 0; i < bench.model.values_count; i++)
        parameters[i] = (double)bench.values[i];
    model_forward(&bench.model, bench.inputs, ROWS);
    const double loss = model_loss(&bench.model, bench.labels, ROWS, &right);
    ck_assert_double_eq_tol(loss, reference_loss(&bench, parameters, &reference_right), 1e-5 * fabs(loss));
    ck_assert_int_eq(right, reference_right);
    ck_assert_int_eq(model_backward(&bench.model, bench.inputs, bench.labels, ROWS, (float)scale, note_ready, &bench),
                     TRAIN_OK);
    for (int i = 0; i < bench.model.tensors; i++) {
        const struct tensor *tensor = &bench.model.tensor[i];

        for (size_t k = 0; k < tensor->count; k++) {
            double *at = &parameters[tensor->offset + k];
            const double kept = *at;

            *at = kept + distance;
            const double above = reference_loss(&bench, parameters, &right);
            *at = kept - distance;
            const double below = reference_loss(&bench, parameters, &right);
            *at = kept;
            const double wanted = scale * (above - below) / (2 * distance), got = (double)tensor->gradient[k];
            ck_assert_msg(fabs(got - wanted) < 2e-6 + 1e-5 * fabs(wanted),
                          "%d layers, activation %d, %s[%zu]: %.9g, not %.9g", layers, (int)activation, tensor->name, k,
                          got, wanted);
        }
    }
    free(parameters);
    drop(&bench);
}

START_TEST(gradients_by_finite_differences)
{
    for (int activation = ACTIVATION_RELU; activation <= (int)ACTIVATION_SMOOTH; activation++) {
        check_gradients(1, (size_t[]){7, 3}, (enum activation)activation);
        check_gradients(2, (size_t[]){7, 5, 4}, (enum activation)activation);
        check_gradients(4, (size_t[]){6, 16, 9, 11, 10}, (enum activation)activation);
    }
}
END_TEST

/* Every tensor is reported once, last layer first. */
START_TEST(ready_order)
{
    static const int wanted[] = {5, 4, 3, 2, 1, 0};
    struct bench bench;

    make(&bench, 3, (size_t[]){4, 5, 6, 3}, ACTIVATION_RELU);
    model_forward(&bench.model, bench.inputs, ROWS);
    ck_assert_int_eq(model_backward(&bench.model, bench.inputs, bench.labels, ROWS, 1, note_ready, &bench), TRAIN_OK);
    ck_assert_int_eq(bench.ready_count, 6);
    ck_assert_mem_eq(bench.ready, wanted, sizeof wanted);
    drop(&bench);
}
END_TEST

/* The gradient of a batch is the sum of its parts' gradients: what makes data-parallel training right. */
START_TEST(parts_add_up)
{
    struct bench bench;
    int64_t right;

    make(&bench, 2, (size_t[]){8, 12, 5}, ACTIVATION_SMOOTH);
    const size_t count = bench.model.values_count;
    float *sum = calloc(count, sizeof *sum);
    double loss = 0;
    for (size_t first = 0, rows = 1; first < ROWS; first += rows, rows = ROWS - first < 3 ? ROWS - first : 3) {
        model_forward(&bench.model, bench.inputs + 8 * first, rows);
        loss += model_loss(&bench.model, bench.labels + first, rows, &right);
        model_backward(&bench.model, bench.inputs + 8 * first, bench.labels + first, rows, 1, note_ready, &bench);
        for (size_t i = 0; i < count; i++)
            sum[i] += bench.gradients[i];
        bench.ready_count = 0;
    }
    model_forward(&bench.model, bench.inputs, ROWS);
    ck_assert_double_eq_tol(model_loss(&bench.model, bench.labels, ROWS, &right), loss, 1e-6 * loss);
    model_backward(&bench.model, bench.inputs, bench.labels, ROWS, 1, note_ready, &bench);
    for (size_t i = 0; i < count; i++)
        ck_assert_float_eq_tol(bench.gradients[i], sum[i], 2e-6f);
    free(sum);
    drop(&bench);
}
END_TEST

/* A rank without samples in a step adds nothing, whatever was in its gradients. */
START_TEST(no_rows_give_zero)
{
    struct bench bench;
    int64_t right = 7;

    make(&bench, 2, (size_t[]){8, 12, 5}, ACTIVATION_SMOOTH);
    for (size_t i = 0; i < bench.model.values_count; i++)
        bench.gradients[i] = NAN;
    model_forward(&bench.model, bench.inputs, 0);
    ck_assert(model_loss(&bench.model, bench.labels, 0, &right) == 0);
    ck_assert_int_eq(right, 0);
    ck_assert_int_eq(model_backward(&bench.model, bench.inputs, bench.labels, 0, 1, note_ready, &bench), TRAIN_OK);
    ck_assert_int_eq(bench.ready_count, 4);
    for (int i = 0; i < bench.model.tensors; i++)
        for (size_t k = 0; k < bench.model.tensor[i].count; k++)
            ck_assert_msg(bench.model.tensor[i].gradient[k] == 0, "%s[%zu]", bench.model.tensor[i].name, k);
    drop(&bench);
}
END_TEST

/* A broken parameter must show in the loss; activations may not swallow it. */
START_TEST(nan_reaches_the_loss)
{
    for (int activation = ACTIVATION_RELU; activation <= (int)ACTIVATION_SMOOTH; activation++)
        for (int tensor = 0; tensor < 4; tensor++) {
            struct bench bench;
            int64_t right;

            make(&bench, 2, (size_t[]){8, 12, 5}, (enum activation)activation);
            bench.model.tensor[tensor].value[0] = NAN;
            model_forward(&bench.model, bench.inputs, ROWS);
            ck_assert_msg(isnan(model_loss(&bench.model, bench.labels, ROWS, &right)), "activation %d tensor %d",
                          activation, tensor);
            drop(&bench);
        }
}
END_TEST

START_TEST(initial_parameters)
{
    struct bench bench;
    double squares = 0;

    make(&bench, 2, (size_t[]){16, 16, 5}, ACTIVATION_RELU);
    model_initialise(&bench.model, 3);
    const struct tensor *weight = &bench.model.tensor[0];
    for (size_t i = 0; i < weight->count; i++)
        squares += (double)weight->value[i] * (double)weight->value[i];
    ck_assert_double_eq_tol(squares / (double)weight->count, 2.0 / 16, 0.02);
    for (size_t i = 0; i < 16; i++)
        ck_assert(bench.model.tensor[1].value[i] == 0);
    ck_assert_mem_ne(weight->value, bench.model.tensor[2].value, 16 * sizeof(float));
    const float first = weight->value[0];
    model_initialise(&bench.model, 4);
    ck_assert(weight->value[0] != first);
    model_initialise(&bench.model, 3);
    ck_assert(weight->value[0] == first);
    drop(&bench);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {gradients_by_finite_differences,
                                  ready_order,
                                  parts_add_up,
                                  no_rows_give_zero,
                                  nan_reaches_the_loss,
                                  initial_parameters,
                                  NULL};

    return run_tests("trainer model", tests, 60);
}
