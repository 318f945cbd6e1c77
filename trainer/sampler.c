// SPDX-License-Identifier: BSD-3-Clause
/* See sampler.h. */
#include "sampler.h"

#include <stdlib.h>

#include "fail.h"
#include "random.h"

int sampler_make(struct sampler *sampler, size_t count, size_t batch, int rank, int ranks, uint64_t seed)
{
    const size_t n = (size_t)ranks;

    *sampler = (struct sampler){.count = count, .batch = batch, .rank = rank, .ranks = ranks, .seed = seed};
    sampler->total = (count + n - 1) / n * n;
    sampler->order = malloc(count * sizeof *sampler->order);
    if (!sampler->order)
        return train_fail(TRAIN_RESOURCE, "no memory for the order of %zu samples", count);
    sampler_epoch(sampler, 0);
    return TRAIN_OK;
}

void sampler_epoch(struct sampler *sampler, int epoch)
{
    const struct random_key key = {.seed = sampler->seed + (uint64_t)epoch, .stream = RANDOM_SHUFFLE};
    uint32_t *order = sampler->order;

    for (size_t i = 0; i < sampler->count; i++)
        order[i] = (uint32_t)i;
    for (size_t i = sampler->count - 1; i > 0; i--) {
        const size_t j = random_below(&key, i, i + 1);
        const uint32_t other = order[j];

        order[j] = order[i];
        order[i] = other;
    }
}

size_t sampler_steps(const struct sampler *sampler)
{
    return (sampler->total + sampler->batch - 1) / sampler->batch;
}

size_t sampler_step_total(const struct sampler *sampler, size_t step)
{
    const size_t left = sampler->total - step * sampler->batch;

    return left < sampler->batch ? left : sampler->batch;
}

size_t sampler_step(const struct sampler *sampler, size_t step, uint32_t *samples)
{
    const size_t n = (size_t)sampler->ranks, rank = (size_t)sampler->rank;
    const size_t first = step * sampler->batch, end = first + sampler_step_total(sampler, step);
    size_t taken = 0;

    for (size_t position = first + (rank + n - first % n) % n; position < end; position += n)
        samples[taken++] = sampler->order[position % sampler->count]; /* the padding repeats the beginning */
    return taken;
}

size_t sampler_share(const struct sampler *sampler)
{
    const size_t n = (size_t)sampler->ranks, most = sampler_step_total(sampler, 0);

    return (most + n - 1) / n;
}

void sampler_free(struct sampler *sampler)
{
    free(sampler->order);
    sampler->order = NULL;
}
