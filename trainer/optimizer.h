// SPDX-License-Identifier: BSD-3-Clause
/* Stochastic gradient descent with momentum and weight decay, and its learning rate over time.
 *
 *     velocity = momentum × velocity + gradient + decay × value         value = value − rate × velocity
 *
 * The velocity is free of the rate, so a schedule does not disturb it. Biases do not decay. */
#ifndef TRAINER_OPTIMIZER_H
#define TRAINER_OPTIMIZER_H

#include <stddef.h>

#include "model.h"

enum schedule { SCHEDULE_CONSTANT, SCHEDULE_LINEAR, SCHEDULE_COSINE };

struct optimizer {
    float momentum, decay;
    float *velocity; /* laid out as model.values */
};

/* Returns 0 or an exit code (no memory). */
int optimizer_make(struct optimizer *optimizer, const struct model *model, double momentum, double decay);

/* Update all parameters from their gradients. */
void optimizer_step(struct optimizer *optimizer, struct model *model, double rate);

void optimizer_free(struct optimizer *optimizer);

/* The rate of a step, 0 … steps - 1: rises in equal parts over the first `warmup` steps, then follows the schedule
 * down to 0. */
double schedule_rate(enum schedule schedule, double rate, size_t step, size_t warmup, size_t steps);

/* The Euclidean norm of all gradients; not finite if any of them is not. */
double gradient_norm(const struct model *model);

#endif
