// SPDX-License-Identifier: BSD-3-Clause
/* One rank's training job: everything it owns, and the phases it goes through: setup, loop, evaluation, end. */
#ifndef TRAINER_TRAINER_H
#define TRAINER_TRAINER_H

#include <stdint.h>
#include <time.h>

#include "bucket.h"
#include "dataset.h"
#include "hoop.h"
#include "model.h"
#include "optimizer.h"
#include "options.h"
#include "report.h"
#include "sampler.h"

/* What the ranks tell each other at every step, summed over them. All decisions are made from these sums, so they are
 * the same everywhere. */
enum control {
    CONTROL_LOSS,      /* sum of the samples' losses */
    CONTROL_RIGHT,     /* samples classified right */
    CONTROL_COUNT,     /* samples */
    CONTROL_INTERRUPT, /* ranks that got SIGINT */
    CONTROL_TERMINATE, /* ranks that got SIGTERM */
    CONTROL_WORDS
};

enum { TRAINER_TIMES = 512 }; /* measured times kept for medians */

/* Measured times in seconds; the newest TRAINER_TIMES of them. */
struct times {
    double value[TRAINER_TIMES];
    size_t count; /* ever measured */
};

struct trainer {
    const struct options *options;
    struct hoop_comm *comm;
    hoop_stream *stream;
    int rank, ranks;

    struct dataset dataset;
    struct sampler sampler;
    struct model model;
    struct optimizer optimizer;
    struct bucket_set buckets;
    struct report report;
    float *values; /* the model's parameters, memory of the communicator */
    size_t rows;   /* samples that the batch buffers hold */
    float *inputs;
    uint8_t *labels;
    uint32_t *samples;
    double control[CONTROL_WORDS];

    size_t steps, warmup; /* planned */
    size_t step;          /* done */
    int epoch;            /* of the last step, from 1 */
    int stop_signal;      /* agreed by all ranks: SIGINT, SIGTERM or 0 */
    struct evaluation last;
    uint64_t parameters; /* digest at the last check */
    size_t checks, checked_step;
    double begun, loop_seconds, evaluation_seconds;
    double window_begun, window_samples, samples_per_second; /* since the last step line */
    uint64_t samples_done;
    struct times communication; /* of measured steps: the all-reduces alone */
    struct times serial;        /* of measured steps: all they waited after the backward pass */
    struct times exposed;       /* of other steps: the same */
    char plan[64];
};

static inline double seconds_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Load the data, make everything, agree with the other ranks, and get rank 0's parameters. comm is the caller's.
 * Returns 0 or an exit code. trainer_free() in both cases. */
int trainer_setup(struct trainer *trainer, const struct options *options, struct hoop_comm *comm);

/* Train, evaluate and verify, until the steps are done, the target is reached or a signal arrives. Returns 0 or an exit
 * code. */
int trainer_loop(struct trainer *trainer);

/* Test with all ranks; the result is in trainer->last and in the report. Collective. Returns 0 or an exit code. */
int trainer_evaluate(struct trainer *trainer);

/* Fill the summary of a loop that ended with code. */
void trainer_summary(const struct trainer *trainer, struct summary *summary, int code);

void trainer_free(struct trainer *trainer);

#endif
