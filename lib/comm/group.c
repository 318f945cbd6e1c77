// SPDX-License-Identifier: BSD-3-Clause
/* Groups: a thread's calls are noted, sorted by communicator, and run together.
 *
 * The calls of one communicator become a batch, which has one turn in its order of calls. With several communicators each batch
 * runs on a helper stream of its own communicator, so that one thread can be many ranks.
 */
#include "base/alloc.h"
#include "comm/device_team.h"
#include "comm/uneven.h"
#include "exec/stream.h"

struct note {
    struct note *next;
    struct hoop_comm_call call;
    hoop_stream *stream;
};

struct group {
    int depth;
    struct note *first, *last;
};

static _Thread_local struct group group;

bool hoop_group_open(void)
{
    return group.depth > 0;
}

enum hoop_status hoop_group_note(const struct hoop_comm_call *call, hoop_stream *stream)
{
    if (group.depth == 0)
        return HOOP_AGAIN;
    struct note *note = hoop_calloc(1, sizeof *note);
    if (note == NULL)
        return HOOP_ERR_MEMORY;
    note->call = *call;
    hoop_blocks_keep(call->blocks);
    note->stream = stream;
    if (group.last)
        group.last->next = note;
    else
        group.first = note;
    group.last = note;
    return HOOP_OK;
}

static void forget_notes(struct note *note)
{
    while (note) {
        struct note *next = note->next;
        hoop_blocks_drop(note->call.blocks);
        hoop_free(note);
        note = next;
    }
}

/* The batch of the communicator of the first note; those notes are marked by a NULL communicator. */
static enum hoop_status make_batch(struct note *first, struct hoop_comm_batch **batch)
{
    struct hoop_comm *comm = first->call.comm;
    size_t calls = 0;

    for (const struct note *note = first; note; note = note->next) {
        calls += note->call.comm == comm;
        if (note->call.comm == comm && note->stream != first->stream)
            return hoop_fail(HOOP_ERR_ARG,
                             "hoop_group_end: the group's calls of one communicator name two streams; give one");
    }
    struct hoop_comm_batch *new = hoop_calloc(1, sizeof *new + calls * sizeof *new->call);
    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->comm = comm;
    new->stream = first->stream;
    new->cuda = first->call.device && first->stream;
    for (struct note *note = first; note; note = note->next)
        if (note->call.comm == comm) {
            new->call[new->calls++] = note->call;
            note->call.comm = NULL;
            note->call.blocks = NULL;
        }
    *batch = new;
    return HOOP_OK;
}

/* All batches of a group. */
struct batches {
    size_t count;
    struct hoop_comm_batch **batch;
};

static enum hoop_status sort_notes(struct note *notes, struct batches *all)
{
    size_t most = 0;

    for (const struct note *note = notes; note; note = note->next)
        most++;
    *all = (struct batches){0, hoop_calloc(most, sizeof(struct hoop_comm_batch *))};
    if (all->batch == NULL)
        return HOOP_ERR_MEMORY;
    for (struct note *note = notes; note; note = note->next) {
        if (note->call.comm == NULL)
            continue;
        enum hoop_status status = make_batch(note, &all->batch[all->count]);
        if (status != HOOP_OK)
            return status;
        all->count++;
    }
    return HOOP_OK;
}

/* Does giving the batch to its stream wait for others of the group? */
static bool meets(const struct hoop_comm_batch *batch)
{
    return batch->cuda && hoop_device_team_waits(batch->comm);
}

/* Several communicators: those without a stream get their helper, and those that wait for others when they are given to it. */
static enum hoop_status lend_helpers(const struct batches *all)
{
    for (size_t i = 0; i < all->count; i++) {
        struct hoop_comm *comm = all->batch[i]->comm;
        if ((all->batch[i]->stream == NULL || meets(all->batch[i])) && comm->helper == NULL) {
            enum hoop_status status = hoop_stream_create(&comm->helper);
            if (status != HOOP_OK)
                return status;
        }
    }
    return HOOP_OK;
}

/* On a helper. */
static enum hoop_status submit(void *data)
{
    return hoop_comm_submit_batch(*(struct hoop_comm_batch **)data);
}

static enum hoop_status submit_by_helper(struct hoop_comm_batch *batch)
{
    hoop_stream *helper = batch->comm->helper;
    struct hoop_comm_batch **order = hoop_calloc(1, sizeof(struct hoop_comm_batch *));

    if (order == NULL) {
        hoop_comm_batch_free(batch);
        return HOOP_ERR_MEMORY;
    }
    *order = batch;
    const enum hoop_status status = hoop_stream_enqueue(helper, submit, order);
    if (status != HOOP_OK) {
        hoop_comm_batch_free(batch);
        hoop_free(order);
    }
    return status;
}

/* What the thread that ends a group waits for. */
struct waited {
    struct hoop_comm *comm; /* whose helper; NULL: none */
    bool rejoin;            /* its launches are in a stream that stands in for this thread's default stream */
};

static enum hoop_status run_batch(struct hoop_comm_batch *batch, bool alone, struct waited *waited)
{
    const bool met = !alone && meets(batch);
    enum hoop_status status = met ? hoop_device_team_replace(batch, &waited->rejoin) : HOOP_OK;

    if (status != HOOP_OK) {
        batch->comm->issued++;
        status = hoop_comm_refuse(batch->comm, status);
        hoop_comm_batch_free(batch);
        return status;
    }
    if (!alone && (batch->stream == NULL || met))
        waited->comm = batch->comm;
    if (waited->comm && !met)
        batch->stream = batch->comm->helper;
    return met ? submit_by_helper(batch) : hoop_comm_submit_batch(batch);
}

static enum hoop_status run_batches(struct batches *all)
{
    enum hoop_status status = HOOP_OK;
    struct waited *waited = hoop_calloc(all->count, sizeof *waited);

    if (waited == NULL)
        return HOOP_ERR_MEMORY;
    if (all->count > 1)
        status = lend_helpers(all);
    for (size_t i = 0; status == HOOP_OK && i < all->count; i++) {
        struct hoop_comm_batch *batch = all->batch[i];
        all->batch[i] = NULL; /* it frees itself */
        status = run_batch(batch, all->count == 1, &waited[i]);
    }
    for (size_t i = 0; i < all->count; i++) {
        enum hoop_status one = waited[i].comm ? hoop_stream_synchronize(waited[i].comm->helper) : HOOP_OK;
        if (one == HOOP_OK && waited[i].rejoin)
            one = hoop_device_team_rejoin(waited[i].comm);
        status = status == HOOP_OK ? one : status;
    }
    hoop_free(waited);
    return status;
}

enum hoop_status hoop_group_start(void)
{
    group.depth++;
    return HOOP_OK;
}

enum hoop_status hoop_group_end(void)
{
    struct note *notes = group.first;
    struct batches all = {0};

    if (group.depth == 0)
        return hoop_fail(HOOP_ERR_ARG, "hoop_group_end: no group was begun by this thread");
    if (--group.depth > 0 || notes == NULL)
        return HOOP_OK;
    group.first = group.last = NULL;
    enum hoop_status status = sort_notes(notes, &all);
    if (status == HOOP_OK)
        status = run_batches(&all);
    for (size_t i = 0; i < all.count; i++)
        hoop_comm_batch_free(all.batch[i]);
    hoop_free(all.batch);
    forget_notes(notes);
    return status;
}
