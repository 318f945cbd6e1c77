// SPDX-License-Identifier: BSD-3-Clause
/* See model.h. Matrix products by CBLAS, everything else in plain loops that the compiler vectorises. */
#include "model.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "random.h"

#define CORNER 0.5f /* half the width of the smooth activation's corner */

static struct tensor *weight_of(struct model *model, int layer)
{
    return &model->tensor[2 * (layer - 1)];
}

static struct tensor *bias_of(struct model *model, int layer)
{
    return &model->tensor[2 * (layer - 1) + 1];
}

static void plan_tensor(struct model *model, struct tensor *tensor, const char *kind, int layer, size_t rows,
                        size_t columns)
{
    snprintf(tensor->name, sizeof tensor->name, "%s%d", kind, layer);
    tensor->rows = rows;
    tensor->columns = columns;
    tensor->count = rows * columns;
    tensor->decays = rows > 1;
    tensor->offset = model->values_count;
    model->values_count += (tensor->count + MODEL_ALIGN - 1) / MODEL_ALIGN * MODEL_ALIGN;
    model->parameters += tensor->count;
}

void model_plan(struct model *model, int layers, const size_t *widths, enum activation activation)
{
    *model = (struct model){.layers = layers, .activation = activation, .tensors = 2 * layers};
    memcpy(model->width, widths, (size_t)(layers + 1) * sizeof *widths);
    for (int layer = 1; layer <= layers; layer++) {
        plan_tensor(model, weight_of(model, layer), "weight", layer, widths[layer - 1], widths[layer]);
        plan_tensor(model, bias_of(model, layer), "bias", layer, 1, widths[layer]);
    }
}

static float *floats(size_t count)
{
    const size_t bytes = (count * sizeof(float) + 63) / 64 * 64;

    return aligned_alloc(64, bytes ? bytes : 64);
}

int model_make(struct model *model, float *values, size_t rows)
{
    size_t widest = 0;
    int missing = 0;

    model->values = values;
    model->rows = rows;
    for (int i = 0; i < model->tensors; i++)
        model->tensor[i].value = values + model->tensor[i].offset;
    for (int layer = 1; layer <= model->layers; layer++) {
        model->output[layer] = floats(rows * model->width[layer]);
        missing += !model->output[layer];
        if (model->width[layer] > widest)
            widest = model->width[layer];
    }
    model->scratch = floats(rows * widest);
    model->other_scratch = floats(rows * widest);
    if (missing || !model->scratch || !model->other_scratch)
        return train_fail(TRAIN_RESOURCE, "no memory for %zu samples of a model that is %zu wide", rows, widest);
    return TRAIN_OK;
}

void model_initialise(struct model *model, uint64_t seed)
{
    for (int layer = 1; layer <= model->layers; layer++) {
        const struct random_key key = {.seed = seed, .stream = RANDOM_INIT, .epoch = (uint32_t)layer};
        const float bound = sqrtf(6.0f / (float)model->width[layer - 1]);
        struct tensor *weight = weight_of(model, layer), *bias = bias_of(model, layer);

        for (size_t i = 0; i < weight->count; i++)
            weight->value[i] = bound * random_symmetric(&key, i);
        memset(bias->value, 0, bias->count * sizeof(float));
    }
}

/* c (m × n) = a (m × k) · b (k × n), each stored by rows; transposed operands are stored the other way round. */
static void multiply(enum CBLAS_TRANSPOSE turn_a, enum CBLAS_TRANSPOSE turn_b, size_t m, size_t n, size_t k,
                     const float *a, const float *b, float *c)
{
    const size_t wide_a = turn_a == CblasNoTrans ? k : m, wide_b = turn_b == CblasNoTrans ? n : k;

    cblas_sgemm(CblasRowMajor, turn_a, turn_b, (blasint)m, (blasint)n, (blasint)k, 1, a, (blasint)wide_a, b,
                (blasint)wide_b, 0, c, (blasint)n);
}

static void add_bias(float *output, const float *bias, size_t rows, size_t width)
{
    for (size_t row = 0; row < rows; row++, output += width)
        for (size_t i = 0; i < width; i++)
            output[i] += bias[i];
}

/* In place. Comparisons are written so that NaN stays NaN. */
static void activate(enum activation activation, float *values, size_t count)
{
    for (size_t i = 0; activation == ACTIVATION_RELU && i < count; i++)
        values[i] = values[i] < 0 ? 0 : values[i];
    for (size_t i = 0; activation == ACTIVATION_SMOOTH && i < count; i++) {
        const float above = values[i] < -CORNER ? 0 : values[i] + CORNER;

        values[i] = values[i] >= CORNER ? values[i] : above * above / (4 * CORNER);
    }
}

/* The gradient before an activation from the one behind it; the slope follows from the activation's output. */
static void activate_backward(enum activation activation, float *gradient, const float *output, size_t count)
{
    for (size_t i = 0; activation == ACTIVATION_RELU && i < count; i++)
        gradient[i] = output[i] > 0 ? gradient[i] : 0;
    for (size_t i = 0; activation == ACTIVATION_SMOOTH && i < count; i++)
        gradient[i] *= sqrtf((output[i] < CORNER ? output[i] : CORNER) / CORNER);
}

void model_forward(struct model *model, const float *inputs, size_t rows)
{
    const float *from = inputs;

    for (int layer = 1; rows > 0 && layer <= model->layers; layer++) {
        const size_t in = model->width[layer - 1], out = model->width[layer];

        multiply(CblasNoTrans, CblasNoTrans, rows, out, in, from, weight_of(model, layer)->value, model->output[layer]);
        add_bias(model->output[layer], bias_of(model, layer)->value, rows, out);
        if (layer < model->layers)
            activate(model->activation, model->output[layer], rows * out);
        from = model->output[layer];
    }
}

/* The place of the largest logit; the first of equal ones. */
static size_t largest(const float *logits, size_t count)
{
    size_t best = 0;

    for (size_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

double model_loss(const struct model *model, const uint8_t *labels, size_t rows, int64_t *right)
{
    const size_t classes = model->width[model->layers];
    const float *logits = model->output[model->layers];
    double loss = 0;

    *right = 0;
    for (size_t row = 0; row < rows; row++, logits += classes) {
        const size_t best = largest(logits, classes);
        const double top = (double)logits[best];
        double sum = 0;

        for (size_t i = 0; i < classes; i++)
            sum += exp((double)logits[i] - top);
        loss += log(sum) + top - (double)logits[labels[row]];
        *right += best == labels[row];
    }
    return loss;
}

/* Logits become scale × (softmax − 1 at the label). */
static void loss_gradient(float *logits, const uint8_t *labels, size_t rows, size_t classes, float scale)
{
    for (size_t row = 0; row < rows; row++, logits += classes) {
        const float top = logits[largest(logits, classes)];
        float sum = 0;

        for (size_t i = 0; i < classes; i++) {
            logits[i] = expf(logits[i] - top);
            sum += logits[i];
        }
        for (size_t i = 0; i < classes; i++)
            logits[i] = scale * (logits[i] / sum - (i == labels[row] ? 1.0f : 0.0f));
    }
}

static void sum_rows(const float *matrix, size_t rows, size_t width, float *sum)
{
    memset(sum, 0, width * sizeof *sum);
    for (size_t row = 0; row < rows; row++, matrix += width)
        for (size_t i = 0; i < width; i++)
            sum[i] += matrix[i];
}

/* The gradients of one layer's weight and bias from `delta`, the gradient of its output before the activation. */
static int layer_gradients(struct model *model, int layer, const float *from, const float *delta, size_t rows,
                           int (*ready)(void *context, int tensor), void *context)
{
    const size_t in = model->width[layer - 1], out = model->width[layer];
    struct tensor *weight = weight_of(model, layer), *bias = bias_of(model, layer);
    int code;

    sum_rows(delta, rows, out, bias->gradient);
    code = ready(context, 2 * (layer - 1) + 1);
    if (code != TRAIN_OK)
        return code;
    if (rows > 0)
        multiply(CblasTrans, CblasNoTrans, in, out, rows, from, delta, weight->gradient);
    else
        memset(weight->gradient, 0, weight->count * sizeof(float));
    return ready(context, 2 * (layer - 1));
}

int model_backward(struct model *model, const float *inputs, const uint8_t *labels, size_t rows, float scale,
                   int (*ready)(void *context, int tensor), void *context)
{
    float *delta = model->output[model->layers], *next = model->scratch;

    loss_gradient(delta, labels, rows, model->width[model->layers], scale);
    for (int layer = model->layers; layer >= 1; layer--) {
        const size_t in = model->width[layer - 1], out = model->width[layer];
        const float *from = layer > 1 ? model->output[layer - 1] : inputs;
        const int code = layer_gradients(model, layer, from, delta, rows, ready, context);

        if (code != TRAIN_OK)
            return code;
        if (layer == 1)
            break;
        if (rows > 0)
            multiply(CblasNoTrans, CblasTrans, rows, in, out, delta, weight_of(model, layer)->value, next);
        activate_backward(model->activation, next, from, rows * in);
        delta = next;
        next = next == model->scratch ? model->other_scratch : model->scratch;
    }
    return TRAIN_OK;
}

void model_free(struct model *model)
{
    for (int layer = 1; layer <= model->layers; layer++)
        free(model->output[layer]);
    free(model->scratch);
    free(model->other_scratch);
    *model = (struct model){0};
}
