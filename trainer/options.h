// SPDX-License-Identifier: BSD-3-Clause
/* The command line. One table makes the parser, --help, the manual page and the completion. */
#ifndef TRAINER_OPTIONS_H
#define TRAINER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"
#include "optimizer.h"

struct options {
    const char *data;
    int hidden_layers;
    size_t hidden[MODEL_LAYERS];
    enum activation activation;
    size_t batch, global_batch; /* 0: not given; exactly one is given after parsing */
    int epochs;
    size_t steps; /* 0: whole epochs */
    uint64_t seed;
    double rate, momentum, decay;
    enum schedule schedule;
    double warmup;               /* part of all steps, 0 … 1 */
    double first_bucket, bucket; /* MiB */
    bool overlap;
    size_t verify_every;    /* steps; 0: only at the end */
    double target_accuracy; /* 0: none */
    const char *out;
    size_t log_every; /* steps; 0: no step lines */
    bool json;
};

/* Parse the command line. Ends the process for --help, --version and the like (0) and for mistakes (TRAIN_USAGE). */
void options_parse(struct options *options, int count, char **words);

#endif
