// SPDX-License-Identifier: BSD-3-Clause
/* See bucket.h. */
#include "bucket.h"

#include <string.h>

#include "fail.h"

/* Floats that a tensor takes in its bucket. */
static size_t room(const struct tensor *tensor)
{
    return (tensor->count + MODEL_ALIGN - 1) / MODEL_ALIGN * MODEL_ALIGN;
}

void bucket_plan(struct bucket_set *set, struct model *model, size_t first, size_t next)
{
    size_t bytes = 0;

    *set = (struct bucket_set){.model = model};
    for (int i = model->tensors - 1; i >= 0; i--) {
        struct bucket *bucket = &set->bucket[set->buckets];

        if (bytes == 0)
            bucket->first = i;
        bucket->last = i;
        bucket->count += room(&model->tensor[i]);
        bytes += model->tensor[i].count * sizeof(float);
        set->of[i] = set->buckets;
        if (bytes >= (set->buckets == 0 ? first : next) || i == 0) {
            set->buckets++;
            bytes = 0;
        }
    }
}

int bucket_make(struct bucket_set *set, struct hoop_comm *comm, hoop_stream *stream)
{
    set->comm = comm;
    set->stream = stream;
    for (int i = 0; i < set->buckets; i++) {
        struct bucket *bucket = &set->bucket[i];
        void *memory = NULL;
        const enum hoop_status status = hoop_mem_alloc(comm, &memory, bucket->count * sizeof(float));
        size_t offset = 0;

        if (status != HOOP_OK)
            return train_fail_call(status, NULL, "memory for gradients");
        bucket->gradients = memory;
        for (int tensor = bucket->first; tensor >= bucket->last; tensor--) {
            set->model->tensor[tensor].gradient = bucket->gradients + offset;
            offset += room(&set->model->tensor[tensor]);
        }
    }
    return TRAIN_OK;
}

void bucket_begin(struct bucket_set *set, bool overlap)
{
    memset(set->seen, 0, sizeof set->seen);
    for (int i = 0; i < set->buckets; i++)
        set->bucket[i].missing = set->bucket[i].first - set->bucket[i].last + 1;
    set->sent = 0;
    set->overlap = overlap;
}

static int reduce(struct bucket_set *set, struct bucket *bucket, hoop_stream *stream)
{
    const enum hoop_status status =
        hoop_all_reduce(bucket->gradients, bucket->gradients, bucket->count, HOOP_F32, HOOP_SUM, set->comm, stream);

    return status == HOOP_OK ? TRAIN_OK : train_fail_call(status, set->comm, "all-reduce of gradients");
}

int bucket_ready(void *context, int tensor)
{
    struct bucket_set *set = context;

    if (set->seen[tensor])
        return train_fail(TRAIN_DISAGREE, "the gradient of %s became ready twice in one backward pass",
                          set->model->tensor[tensor].name);
    set->seen[tensor] = true;
    set->bucket[set->of[tensor]].missing--;
    while (set->overlap && set->sent < set->buckets && set->bucket[set->sent].missing == 0) {
        const int code = reduce(set, &set->bucket[set->sent], set->stream);

        if (code != TRAIN_OK)
            return code;
        set->sent++;
    }
    return TRAIN_OK;
}

int bucket_end(const struct bucket_set *set)
{
    for (int i = 0; i < set->model->tensors; i++)
        if (!set->seen[i])
            return train_fail(TRAIN_DISAGREE, "the backward pass left out the gradient of %s",
                              set->model->tensor[i].name);
    return TRAIN_OK;
}

int bucket_reduce(struct bucket_set *set)
{
    for (; set->sent < set->buckets; set->sent++) {
        const int code = reduce(set, &set->bucket[set->sent], NULL);

        if (code != TRAIN_OK)
            return code;
    }
    return TRAIN_OK;
}

void bucket_free(struct bucket_set *set)
{
    for (int i = 0; i < set->buckets; i++) {
        hoop_mem_free(set->comm, set->bucket[i].gradients);
        set->bucket[i].gradients = NULL;
    }
}
