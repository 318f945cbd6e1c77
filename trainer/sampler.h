// SPDX-License-Identifier: BSD-3-Clause
/* Which samples each rank takes, in which order: the semantics of PyTorch's DistributedSampler.
 *
 * Every epoch has one global order of all samples. It is padded with its own first entries until the ranks divide it,
 * and rank r takes positions r, r + n, r + 2n, …, so that all ranks have equally many. A step takes the next `batch`
 * positions of the global order; each rank takes its own among them. So the set of samples of a step does not depend on
 * the number of ranks, and a batch that the ranks do not divide gives some of them one sample less.
 *
 * The global order is "hoop-shuffle-1", frozen: for i = count-1 … 1 swap entries i and j, where j is
 * random_below(seed + epoch, stream RANDOM_SHUFFLE, epoch word 0, index i, bound i + 1), starting from 0, 1, 2, … */
#ifndef TRAINER_SAMPLER_H
#define TRAINER_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

struct sampler {
    size_t count; /* samples of the data set */
    size_t total; /* positions of an epoch: count, padded to a multiple of ranks */
    size_t batch; /* positions of a step, over all ranks */
    int rank, ranks;
    uint64_t seed;
    uint32_t *order; /* the global order, without the padding */
};

/* A sampler that stands at epoch 0. count 1 … 2^32 - 1, batch ≥ 1. Returns 0 or an exit code (no memory). */
int sampler_make(struct sampler *sampler, size_t count, size_t batch, int rank, int ranks, uint64_t seed);

/* Compute the order of an epoch. */
void sampler_epoch(struct sampler *sampler, int epoch);

/* Steps of an epoch; the last one may be smaller. */
size_t sampler_steps(const struct sampler *sampler);

/* Positions that a step takes over all ranks. */
size_t sampler_step_total(const struct sampler *sampler, size_t step);

/* Write the sample numbers that this rank takes in a step; returns how many: 0 … sampler_share(). */
size_t sampler_step(const struct sampler *sampler, size_t step, uint32_t *samples);

/* The most samples that any rank takes in a step. */
size_t sampler_share(const struct sampler *sampler);

void sampler_free(struct sampler *sampler);

#endif
