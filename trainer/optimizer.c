// SPDX-License-Identifier: BSD-3-Clause
/* See optimizer.h. */
#include "optimizer.h"

#include <math.h>
#include <stdlib.h>

#include "fail.h"

int optimizer_make(struct optimizer *optimizer, const struct model *model, double momentum, double decay)
{
    *optimizer = (struct optimizer){.momentum = (float)momentum, .decay = (float)decay};
    optimizer->velocity = calloc(model->values_count, sizeof(float));
    if (!optimizer->velocity)
        return train_fail(TRAIN_RESOURCE, "no memory for the momentum of %zu parameters", model->parameters);
    return TRAIN_OK;
}

static void update(float *restrict value, float *restrict velocity, const float *restrict gradient, size_t count,
                   float rate, float momentum, float decay)
{
    for (size_t i = 0; i < count; i++) {
        velocity[i] = momentum * velocity[i] + gradient[i] + decay * value[i];
        value[i] -= rate * velocity[i];
    }
}

void optimizer_step(struct optimizer *optimizer, struct model *model, double rate)
{
    for (int i = 0; i < model->tensors; i++) {
        struct tensor *tensor = &model->tensor[i];

        update(tensor->value, optimizer->velocity + tensor->offset, tensor->gradient, tensor->count, (float)rate,
               optimizer->momentum, tensor->decays ? optimizer->decay : 0);
    }
}

void optimizer_free(struct optimizer *optimizer)
{
    free(optimizer->velocity);
    optimizer->velocity = NULL;
}

double schedule_rate(enum schedule schedule, double rate, size_t step, size_t warmup, size_t steps)
{
    if (step < warmup)
        return rate * (double)(step + 1) / (double)warmup;
    const double done = steps > warmup ? (double)(step - warmup) / (double)(steps - warmup) : 0;

    switch (schedule) {
    case SCHEDULE_LINEAR:
        return rate * (1 - done);
    case SCHEDULE_COSINE:
        return rate * 0.5 * (1 + cos(acos(-1) * done));
    default:
        return rate;
    }
}

/* Sum of squares in double; eight partial sums in a fixed order, which the compiler can keep in vectors. */
static double squares(const float *values, size_t count)
{
    double part[8] = {0}, sum = 0;
    size_t i = 0;

    for (; i + 8 <= count; i += 8)
        for (size_t j = 0; j < 8; j++)
            part[j] += (double)values[i + j] * (double)values[i + j];
    for (; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    for (size_t j = 0; j < 8; j++)
        sum += part[j];
    return sum;
}

double gradient_norm(const struct model *model)
{
    double sum = 0;

    for (int i = 0; i < model->tensors; i++)
        sum += squares(model->tensor[i].gradient, model->tensor[i].count);
    return sqrt(sum);
}
