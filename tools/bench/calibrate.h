// SPDX-License-Identifier: BSD-3-Clause
/* Parts of hoop-bench --calibrate: the fit and its judgement. calibrate.c makes the measurements. */
#ifndef HOOP_TOOLS_CALIBRATE_H
#define HOOP_TOOLS_CALIBRATE_H

#include <hoop/plan.h>

#include "bench.h"

enum { CONSTANTS_MOST = 16, ROUNDS = 5, ROUNDS_MOST = 25, TRIALS_MOST = 1024 };

/* One collective of one size by one algorithm, measured in every round. */
struct trial {
    const struct hoop_algo *algo;
    struct hoop_problem problem;
    size_t bytes; /* of the whole vector */
    int cores;
    double weight[CONSTANTS_MOST];    /* the model predicts: sum of weight[i] times quantity i */
    double time[ROUNDS_MOST], chosen; /* ns; 0: not measured; chosen: what stands for all rounds */
};

/* Fill weight: the model is linear in its times and in one over its rates. */
void fit_weigh(struct trial *trial, size_t frame);
/* The constants for which the predictions lie nearest to the times, as ratios. round < 0: the chosen ones. */
struct hoop_model fit_model(const struct trial *trial, int trials, int round);
/* How well a model chooses among the algorithms that were measured. */
struct judgement {
    int choices, best;  /* sets of algorithms for the same call; how often the fastest is chosen */
    double mean, worst; /* time of the chosen over that of the fastest */
    const struct trial *worst_chosen, *worst_fastest; /* NULL: always the fastest */
    double error;                                     /* typical ratio of prediction and time, 1 or more */
};
struct judgement fit_judge(const struct trial *trial, int trials, const struct hoop_model *model, size_t frame);

/* calibrate.c: measure, print, save; exits on errors. */
void calibrate(const struct options *options, struct hoop_comm *comm);

#endif
