// SPDX-License-Identifier: BSD-3-Clause
/* What people and programs see: step lines, progress bar, JSON lines, the summary and the picture. Only rank 0 reports;
 * on other ranks every call does nothing.
 *
 * The text lines keep their form and order of words, so that they can be searched; new words are added at the end. */
#ifndef TRAINER_REPORT_H
#define TRAINER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "options.h"
#include "picture.h"

/* One step; times in seconds. */
struct step_figures {
    size_t step; /* 1 … steps */
    int epoch;   /* 1 … */
    double loss; /* mean over the step's global batch */
    double accuracy;
    double norm; /* of the global gradient */
    double rate;
    double samples_per_second; /* of all ranks, since the last step line */
    double data, forward, backward, exposed, update;
    double communication; /* of the last step that was measured without overlap; 0: none yet */
};

struct evaluation {
    size_t step;
    int epoch;
    double accuracy, loss;
    int64_t right, count;
};

/* What the run came to; times in seconds. */
struct summary {
    size_t step; /* done */
    struct evaluation last;
    double seconds, training_seconds, samples_per_second;
    double communication;   /* medians: the all-reduces of a step alone; 0: not measured */
    double exposed, serial; /* what a step waited after its backward pass, with overlap and without */
    uint64_t parameters;    /* digest */
    size_t checks;          /* how often the ranks' parameters were compared */
    const char *plan;       /* of the last bucket's all-reduce */
    const char *why;        /* "finished", "reached its target accuracy", "stopped by SIGINT", … */
};

struct report {
    const struct options *options;
    int ranks;
    size_t steps, steps_per_epoch;
    int epochs;
    bool active, bar, bar_drawn;
    FILE *log;
    struct picture picture;
    double begun, bar_time, rate, accuracy;
};

/* Make the results folder and open the log. Returns 0 or an exit code. */
int report_open(struct report *report, const struct options *options, int rank, int ranks);

/* The head line. about: one line that says data, model and batch. */
void report_begin(struct report *report, const char *about, size_t steps, size_t steps_per_epoch);

void report_step(struct report *report, const struct step_figures *figures);

void report_evaluation(struct report *report, const struct evaluation *evaluation);

/* The ranks' parameters were compared and are equal. */
void report_verified(struct report *report, size_t step, uint64_t parameters);

/* Write the picture and the summary, close the log. Returns 0 or an exit code. */
int report_end(struct report *report, const struct summary *summary);

/* Close the log if it is open. */
void report_free(struct report *report);

#endif
