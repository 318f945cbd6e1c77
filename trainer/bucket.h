// SPDX-License-Identifier: BSD-3-Clause
/* Gradient buckets: few large all-reduces instead of many small ones, begun while the backward pass still computes.
 *
 * Tensors are taken in backward order (last first) and packed until a bucket reaches its limit; the first limit is
 * small, so that communication begins early. Gradients live inside the buckets, in memory that peers can read in place:
 * nothing is copied. Buckets are sent in index order on every rank, whatever became ready first, since the ranks' calls
 * must match. All gradients carry 1 / global batch already, so the buckets are summed, not averaged. */
#ifndef TRAINER_BUCKET_H
#define TRAINER_BUCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "hoop.h"
#include "model.h"

struct bucket {
    int first, last; /* its tensors, first ≥ last: backward order */
    size_t count;    /* floats, with the alignment between tensors */
    int missing;     /* tensors not ready yet in this pass */
    float *gradients;
};

struct bucket_set {
    struct hoop_comm *comm;
    hoop_stream *stream;
    struct model *model;
    int buckets;
    struct bucket bucket[MODEL_TENSORS];
    int of[MODEL_TENSORS];    /* the bucket of a tensor */
    bool seen[MODEL_TENSORS]; /* ready in this pass */
    int sent;                 /* buckets given to the stream in this pass */
    bool overlap;             /* of this pass: send as soon as ready */
};

/* Decide the buckets: first and next are limits in bytes. Fills all but memory, communicator and stream. */
void bucket_plan(struct bucket_set *set, struct model *model, size_t first, size_t next);

/* Get the buckets' memory and point the tensors' gradients into it. Returns 0 or an exit code. */
int bucket_make(struct bucket_set *set, struct hoop_comm *comm, hoop_stream *stream);

/* Begin a backward pass. overlap: send each bucket on the stream as soon as it and all before it are ready; else only
 * in bucket_reduce(). */
void bucket_begin(struct bucket_set *set, bool overlap);

/* A tensor's gradient is complete: the callback of model_backward(); context is the set. A tensor that comes twice is
 * an error. */
int bucket_ready(void *context, int tensor);

/* End a backward pass: every tensor must have come. Does not wait for the stream. */
int bucket_end(const struct bucket_set *set);

/* Reduce the buckets of a pass that did not overlap; returns when done. */
int bucket_reduce(struct bucket_set *set);

void bucket_free(struct bucket_set *set);

#endif
