// SPDX-License-Identifier: BSD-3-Clause
/* From measured times to the constants of the cost model.
 *
 * What the model predicts is a sum of products: of what an algorithm does, which its formulas say, and what that costs: the
 * constants that are times, and one over those that are rates. So the constants follow from many measured times by least
 * squares. A ratio of 2 counts alike in both directions and at all sizes: a row's weight is one over its time and its
 * latest prediction, and the fit is repeated until that settles. What was hardly measured stays near its built-in value.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"

enum { REPEATS = 40, SWEEPS = 400 };
#define PRIOR \
    0.01 /* a constant that is off by its whole built-in value counts as a row that is off by a tenth of its time */

static bool is_rate(const struct hoop_constant *constant)
{
    return strcmp(constant->unit, "ns") != 0;
}

static double *value_of(struct hoop_model *model, const struct hoop_constant *constant)
{
    return (double *)(void *)((char *)model + constant->offset);
}

/* All constants without effect but one, of which there is one unit. */
static struct hoop_model unit_model(int which)
{
    struct hoop_model model = {.measured = true};
    struct hoop_constant constant;

    for (int i = 0; hoop_constant_get(i, &constant); i++)
        *value_of(&model, &constant) = is_rate(&constant) ? (i == which ? 1 : HUGE_VAL) : i == which;
    return model;
}

void fit_weigh(struct trial *trial, size_t frame)
{
    struct hoop_constant constant;

    for (int i = 0; i < CONSTANTS_MOST && hoop_constant_get(i, &constant); i++) {
        const struct hoop_model model = unit_model(i);

        trial->weight[i] =
            hoop_model_predict(&model, trial->algo, &trial->problem, trial->bytes, frame, trial->cores).time;
    }
}

struct fit {
    int constants;
    double prior[CONSTANTS_MOST], least[CONSTANTS_MOST], most[CONSTANTS_MOST];
    double x[CONSTANTS_MOST];
    double matrix[CONSTANTS_MOST][CONSTANTS_MOST], right[CONSTANTS_MOST];
};

static void begin(struct fit *fit)
{
    struct hoop_model model = hoop_model_builtin();
    struct hoop_constant constant;

    *fit = (struct fit){0};
    for (int i = 0; i < CONSTANTS_MOST && hoop_constant_get(i, &constant); i++) {
        const bool rate = is_rate(&constant);
        const double value = *value_of(&model, &constant);

        fit->prior[i] = fit->x[i] = rate ? 1 / value : value;
        fit->least[i] = rate ? 1 / constant.most : constant.least;
        fit->most[i] = rate ? 1 / constant.least : constant.most;
        fit->constants = i + 1;
    }
}

static double predict(const struct fit *fit, const struct trial *trial)
{
    double sum = 0;

    for (int i = 0; i < fit->constants; i++)
        sum += trial->weight[i] * fit->x[i];
    return sum;
}

static void add_row(struct fit *fit, const struct trial *trial, double time)
{
    const double weight = 1 / (time * fmax(predict(fit, trial), time / 1000));

    for (int i = 0; i < fit->constants; i++) {
        for (int j = 0; j < fit->constants; j++)
            fit->matrix[i][j] += weight * trial->weight[i] * trial->weight[j];
        fit->right[i] += weight * trial->weight[i] * time;
    }
}

/* The least point within the bounds, one constant after the other. */
static void descend(struct fit *fit)
{
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int i = 0; i < fit->constants; i++) {
            double rest = fit->right[i];

            for (int j = 0; j < fit->constants; j++)
                rest -= j == i ? 0 : fit->matrix[i][j] * fit->x[j];
            fit->x[i] = fmin(fmax(rest / fit->matrix[i][i], fit->least[i]), fit->most[i]);
        }
}

static double time_of(const struct trial *trial, int round)
{
    return round < 0 ? trial->chosen : trial->time[round];
}

struct hoop_model fit_model(const struct trial *trial, int trials, int round)
{
    struct hoop_model model = hoop_model_builtin();
    struct hoop_constant constant;
    struct fit fit;

    begin(&fit);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        memset(fit.matrix, 0, sizeof(fit.matrix));
        memset(fit.right, 0, sizeof(fit.right));
        for (int i = 0; i < trials; i++)
            if (time_of(&trial[i], round) > 0)
                add_row(&fit, &trial[i], time_of(&trial[i], round));
        for (int i = 0; i < fit.constants; i++) {
            fit.matrix[i][i] += PRIOR / (fit.prior[i] * fit.prior[i]);
            fit.right[i] += PRIOR / fit.prior[i];
        }
        descend(&fit);
    }
    for (int i = 0; i < fit.constants && hoop_constant_get(i, &constant); i++)
        *value_of(&model, &constant) = is_rate(&constant) ? 1 / fit.x[i] : fit.x[i];
    model.measured = true;
    return model;
}

/* ---- judgement ---- */

static bool same_call(const struct trial *a, const struct trial *b)
{
    return a->problem.coll == b->problem.coll && a->problem.ranks == b->problem.ranks && a->bytes == b->bytes &&
           a->cores == b->cores;
}

static double predicted(const struct trial *trial, const struct hoop_model *model, size_t frame)
{
    return hoop_model_predict(model, trial->algo, &trial->problem, trial->bytes, frame, trial->cores).time;
}

/* Of the trials that are the same call as the first one, the one with the least prediction, and the fastest. */
static void judge_call(const struct trial *first, const struct trial *end, const struct hoop_model *model, size_t frame,
                       struct judgement *judgement)
{
    const struct trial *chosen = first, *fastest = first;
    int others = 0;

    for (const struct trial *other = first + 1; other < end; other++) {
        if (!same_call(first, other))
            continue;
        others++;
        if (other->chosen < fastest->chosen)
            fastest = other;
        if (predicted(other, model, frame) < predicted(chosen, model, frame))
            chosen = other;
    }
    if (others == 0)
        return;
    const double loss = chosen->chosen / fastest->chosen;
    judgement->choices++;
    judgement->best += chosen == fastest;
    judgement->mean += loss;
    if (loss > judgement->worst) {
        judgement->worst = loss;
        judgement->worst_chosen = chosen;
        judgement->worst_fastest = fastest;
    }
}

struct judgement fit_judge(const struct trial *trial, int trials, const struct hoop_model *model, size_t frame)
{
    struct judgement judgement = {.worst = 1};
    double error = 0;

    for (int i = 0; i < trials; i++) {
        bool first = true;

        for (int j = 0; j < i && first; j++)
            first = !same_call(&trial[i], &trial[j]);
        if (first)
            judge_call(&trial[i], trial + trials, model, frame, &judgement);
        error += fabs(log(predicted(&trial[i], model, frame) / trial[i].chosen));
    }
    judgement.mean = judgement.choices > 0 ? judgement.mean / judgement.choices : 1;
    judgement.error = trials > 0 ? exp(error / trials) : 1;
    return judgement;
}
