// SPDX-License-Identifier: BSD-3-Clause
/* Running staged calls.
 *
 * Staging memory is a block of the board's heap, so that peers read it in place, pinned for the device. Blocks are kept for later calls,
 * since to pin memory takes long and may wait for the device.
 *
 * A call on a CUDA stream becomes five things in it: copies into the block, a host function that tells the worker, a thread of the
 * communicator, that the data are there, a gate that holds the stream until the worker has run the calls, copies back, an event. The gate
 * is a word of pinned memory that the stream waits for. A host function must not wait in its place: a driver may run those of all streams
 * one after the other, so ranks in threads of one process would wait for each other for ever. The worker never touches the device,
 * and no stream but the caller's own is needed: a second one could wait behind the first in the same queue of the device. What failed
 * is known to the worker before the stream goes on.
 */
#include "comm/stage.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/device.h"
#include "comm/device_copy.h"
#include "comm/stage_layout.h"
#include "exec/stream.h"
#include "mem/cuda.h"

enum { LEAST_BLOCK = 65536, LOOK_NS = 100000000, DRAIN_SECONDS = 30, GATES = 1024 };

struct block {
    struct block *next;
    void *memory;
    size_t bytes;
    bool busy;
    bool drivers; /* the driver's own pinned memory: the heap's could not be pinned */
};

/* Calls that were given to a CUDA stream. */
struct job {
    struct job *next;
    struct hoop_stage *stage;
    struct hoop_comm_batch *batch; /* the calls on staging memory */
    struct hoop_layout layout;
    struct block *block;
    hoop_cu_event end; /* behind the copies back */
    uint64_t number;   /* of the job; its gate is number % GATES, and opens at number / GATES + 1 */
    bool ready, done;
};

struct hoop_stage {
    struct hoop_comm *comm;
    struct hoop_cuda *cuda;
    hoop_cu_stream stream; /* the communicator's own, for calls without one */
    hoop_cu_event before;  /* on the legacy default stream */
    uint64_t jobs_given;
    uint32_t *gates;
    hoop_cu_address gates_address;
    struct block *blocks;
    hoop_stream *worker;
    pthread_mutex_t lock; /* ready, done and blocks */
    pthread_cond_t changed;
    struct job *jobs; /* only the thread that submits looks at the list */
};

/* ---- staging memory ---- */

static void give_back(struct hoop_stage *stage, struct block *block)
{
    struct block **one = &stage->blocks;

    while (*one != block)
        one = &(*one)->next;
    *one = block->next;
    if (block->drivers)
        hoop_cuda_host_free(stage->cuda, block->memory);
    else {
        hoop_cuda_host_unregister(stage->cuda, block->memory);
        hoop_heap_give(stage->comm->heap, block->memory);
    }
    hoop_free(block);
}

/* The smallest idle block that is large enough; NULL: there is none. Under the lock. */
static struct block *find_block(const struct hoop_stage *stage, size_t bytes)
{
    struct block *best = NULL;

    for (struct block *one = stage->blocks; one; one = one->next)
        if (!one->busy && one->bytes >= bytes && (best == NULL || one->bytes < best->bytes))
            best = one;
    return best;
}

static enum hoop_status pin(struct hoop_stage *stage, struct block *block)
{
    hoop_cu_address address;

    enum hoop_status status =
        hoop_heap_take_for(stage->comm->heap, block->bytes, "staging memory for device buffers", &block->memory);
    if (status != HOOP_OK)
        return status;
    if (hoop_cuda_host_register(stage->cuda, block->memory, block->bytes, &address) == HOOP_OK)
        return HOOP_OK;
    hoop_heap_give(stage->comm->heap, block->memory);
    block->drivers = true;
    return hoop_cuda_host_alloc(stage->cuda, block->bytes, &block->memory, &address);
}

/* No block is given back before the end: to unpin memory may wait for the device, and so for another rank's gate, which waits for this
 * rank. Sizes are powers of two, so all blocks together are less than twice the largest, for each call that is under way.
 * Under the lock. */
static enum hoop_status take_block(struct hoop_stage *stage, size_t bytes, struct block **block)
{
    size_t size = LEAST_BLOCK;

    while (size < bytes && size <= SIZE_MAX / 2)
        size *= 2;
    *block = find_block(stage, bytes);
    if (*block == NULL) {
        struct block *new = hoop_calloc(1, sizeof *new);
        if (new == NULL)
            return HOOP_ERR_MEMORY;
        new->bytes = size < bytes ? bytes : size;
        const enum hoop_status status = pin(stage, new);
        if (status != HOOP_OK) {
            hoop_free(new);
            return status;
        }
        new->next = stage->blocks;
        stage->blocks = new;
        *block = new;
    }
    (*block)->busy = true;
    return HOOP_OK;
}

/* ---- making ---- */

/* The gates: words of pinned memory. */
static enum hoop_status make_gates(struct hoop_stage *stage)
{
    void *memory;

    const enum hoop_status status =
        hoop_cuda_host_alloc(stage->cuda, GATES * sizeof *stage->gates, &memory, &stage->gates_address);
    if (status != HOOP_OK)
        return status;
    stage->gates = memory;
    memset(stage->gates, 0, GATES * sizeof *stage->gates);
    return HOOP_OK;
}

static enum hoop_status make(struct hoop_stage *stage)
{
    enum hoop_status status = hoop_cuda_event_create(stage->cuda, &stage->before);

    if (status == HOOP_OK)
        status = make_gates(stage);
    return status == HOOP_OK ? hoop_stream_create(&stage->worker) : status;
}

static enum hoop_status get(struct hoop_comm *comm, struct hoop_stage **stage)
{
    struct hoop_stage *new = comm->device->stage;

    *stage = new;
    if (new)
        return HOOP_OK;
    new = hoop_calloc(1, sizeof *new);
    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->comm = comm;
    new->cuda = comm->device->cuda;
    new->stream = comm->device->stream;
    pthread_mutex_init(&new->lock, NULL);
    pthread_cond_init(&new->changed, NULL);
    const enum hoop_status status = make(new);
    if (status != HOOP_OK) {
        hoop_stage_free(new);
        return status;
    }
    *stage = comm->device->stage = new;
    return HOOP_OK;
}

/* ---- copies ---- */

static enum hoop_status copy_in(struct hoop_stage *stage, const struct hoop_layout *layout, const struct block *block,
                                hoop_cu_stream stream)
{
    enum hoop_status status = HOOP_OK;

    for (size_t i = 0; status == HOOP_OK && i < layout->in.pieces; i++) {
        const struct hoop_piece *piece = &layout->in.piece[i];
        status = hoop_cuda_copy(stage->cuda, (unsigned char *)block->memory + piece->offset,
                                (const void *)piece->device, piece->bytes, stream);
    }
    return status;
}

static enum hoop_status copy_back(struct hoop_stage *stage, const struct hoop_layout *layout, const struct block *block,
                                  hoop_cu_stream stream)
{
    enum hoop_status status = HOOP_OK;

    for (size_t i = 0; status == HOOP_OK && i < layout->out.pieces; i++) {
        const struct hoop_piece *piece = &layout->out.piece[i];
        status = hoop_cuda_copy(stage->cuda, (void *)piece->device, (unsigned char *)block->memory + piece->offset,
                                piece->bytes, stream);
    }
    return status;
}

/* Show in the figures how the calls went. */
static void mark(struct hoop_comm *comm)
{
    char plan[sizeof comm->stats.last_plan];

    memcpy(plan, comm->stats.last_plan, sizeof plan);
    snprintf(comm->stats.last_plan, sizeof comm->stats.last_plan, "staged/%.56s", plan);
}

/* ---- at once ---- */

static enum hoop_status synchronize(struct hoop_stage *stage)
{
    return hoop_cuda_stream_wait(stage->cuda, stage->stream, UINT64_MAX);
}

/* What was given to the default stream comes first. */
static enum hoop_status follow_default(struct hoop_stage *stage)
{
    enum hoop_status status = hoop_cuda_event_record(stage->cuda, stage->before, NULL);

    if (status == HOOP_OK)
        status = hoop_cuda_stream_wait_event(stage->cuda, stage->stream, stage->before);
    return status;
}

static enum hoop_status run_between(struct hoop_stage *stage, struct hoop_layout *layout, struct block *block,
                                    struct hoop_comm_call *call, size_t calls)
{
    enum hoop_status status = follow_default(stage);

    if (status == HOOP_OK)
        status = copy_in(stage, layout, block, stage->stream);
    if (status == HOOP_OK)
        status = synchronize(stage);
    hoop_layout_apply(layout, block->memory, call);
    status =
        status == HOOP_OK ? hoop_comm_run_calls(stage->comm, call, calls) : hoop_comm_conclude(stage->comm, status);
    if (status != HOOP_OK)
        return status;
    mark(stage->comm);
    status = copy_back(stage, layout, block, stage->stream);
    if (status == HOOP_OK)
        status = synchronize(stage);
    return status == HOOP_OK ? HOOP_OK : hoop_comm_conclude(stage->comm, status);
}

enum hoop_status hoop_stage_run(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls)
{
    struct hoop_comm_call single = *call, *copy = calls == 1 ? &single : hoop_calloc(calls, sizeof *copy);
    struct hoop_layout layout = {.bytes = 0};
    struct hoop_stage *stage = NULL;
    struct block *block = NULL;

    enum hoop_status status = copy ? get(comm, &stage) : HOOP_ERR_MEMORY;
    if (status == HOOP_OK)
        status = hoop_layout_make(&layout, call, calls);
    if (status == HOOP_OK) {
        pthread_mutex_lock(&stage->lock);
        status = take_block(stage, layout.bytes, &block);
        pthread_mutex_unlock(&stage->lock);
    }
    if (status == HOOP_OK) {
        memcpy(copy, call, calls * sizeof *copy);
        status = run_between(stage, &layout, block, copy, calls);
        pthread_mutex_lock(&stage->lock);
        block->busy = false;
        pthread_mutex_unlock(&stage->lock);
    } else
        status = hoop_comm_conclude(comm, status);
    hoop_layout_free(&layout);
    if (copy != &single)
        hoop_free(copy);
    return status;
}

/* ---- in the order of a stream ---- */

static uint32_t opened(const struct job *job)
{
    return (uint32_t)(job->number / GATES + 1);
}

/* In the stream: the data are there. */
static void tell(void *data)
{
    struct job *job = data;
    struct hoop_stage *stage = job->stage;

    pthread_mutex_lock(&stage->lock);
    job->ready = true;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

/* The calls have run: let the stream go on. */
static void open_gate(struct job *job)
{
    struct hoop_stage *stage = job->stage;

    pthread_mutex_lock(&stage->lock);
    job->done = true;
    __atomic_store_n(&stage->gates[job->number % GATES], opened(job), __ATOMIC_RELEASE);
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

/* A context that has failed runs no more host functions. */
static enum hoop_status look_at_context(const struct job *job)
{
    const enum hoop_status status = hoop_cuda_event_query(job->stage->cuda, job->end);

    return status == HOOP_AGAIN ? HOOP_OK : status;
}

/* Wait for the word that the data are there. */
static enum hoop_status await_data(struct job *job)
{
    struct hoop_stage *stage = job->stage;
    enum hoop_status status = HOOP_OK;

    pthread_mutex_lock(&stage->lock);
    while (!job->ready && status == HOOP_OK) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&stage->changed, &stage->lock, &until) == 0 || job->ready)
            continue;
        pthread_mutex_unlock(&stage->lock);
        status = look_at_context(job);
        pthread_mutex_lock(&stage->lock);
    }
    pthread_mutex_unlock(&stage->lock);
    return status;
}

/* On the worker, in the order of the calls. Once the turn has ended the communicator may be drained; the job stays until its stream
 * has passed it. */
static enum hoop_status serve(void *data)
{
    struct job *job = *(struct job **)data;
    struct hoop_stage *stage = job->stage;
    struct hoop_comm *comm = stage->comm;
    const uint64_t ticket = job->batch->ticket;

    enum hoop_status status = await_data(job);
    hoop_comm_wait_for_turn(comm, ticket);
    if (status != HOOP_OK)
        hoop_comm_conclude(comm, status);
    else if (hoop_copies_take(job->batch->call))
        hoop_copies_run(job->batch->call, false);
    else if (hoop_comm_run_calls(comm, job->batch->call, job->batch->calls) == HOOP_OK)
        mark(comm);
    open_gate(job);
    hoop_comm_end_turn(comm, ticket);
    return HOOP_OK; /* the communicator has the error */
}

static void free_job(struct job *job)
{
    struct hoop_stage *stage = job->stage;

    if (job->end)
        hoop_cuda_event_destroy(stage->cuda, job->end);
    if (job->block) {
        pthread_mutex_lock(&stage->lock);
        job->block->busy = false;
        pthread_mutex_unlock(&stage->lock);
    }
    if (job->batch)
        for (size_t i = 0; i < job->batch->calls; i++)
            job->batch->call[i].blocks = NULL; /* the layout's */
    hoop_free(job->batch);
    hoop_layout_free(&job->layout);
    hoop_free(job);
}

/* Has the stream passed all of it? */
static bool passed(const struct job *job)
{
    pthread_mutex_lock(&job->stage->lock);
    const bool done = job->done;
    pthread_mutex_unlock(&job->stage->lock);
    return done && hoop_cuda_event_query(job->stage->cuda, job->end) != HOOP_AGAIN;
}

/* Free the jobs that are over. */
static void reap(struct hoop_stage *stage)
{
    for (struct job **one = &stage->jobs; *one;) {
        struct job *job = *one;
        if (passed(job)) {
            *one = job->next;
            free_job(job);
        } else
            one = &job->next;
    }
}

static enum hoop_status give_gate(struct job *job, hoop_cu_stream stream)
{
    struct hoop_stage *stage = job->stage;
    const struct hoop_cuda *cuda = stage->cuda;
    enum hoop_status status = hoop_cuda_enter(cuda);

    if (status != HOOP_OK)
        return status;
    status =
        hoop_cuda_check(cuda->driver->cuLaunchHostFunc(stream, tell, job), "cuLaunchHostFunc", cuda->device.ordinal);
    hoop_cuda_leave(cuda);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_wait_word(
            cuda, stream, stage->gates_address + job->number % GATES * sizeof *stage->gates, opened(job));
    return status;
}

static enum hoop_status give(struct job *job, hoop_cu_stream stream)
{
    struct hoop_stage *stage = job->stage;

    enum hoop_status status = copy_in(stage, &job->layout, job->block, stream);
    if (status == HOOP_OK)
        status = give_gate(job, stream);
    if (status == HOOP_OK)
        status = copy_back(stage, &job->layout, job->block, stream);
    const enum hoop_status recorded = hoop_cuda_event_record(stage->cuda, job->end, stream);
    return status == HOOP_OK ? recorded : status;
}

/* What the job needs before anything is given to anybody. */
static enum hoop_status prepare(struct job *job, const struct hoop_comm_batch *batch)
{
    struct hoop_stage *stage = job->stage;
    const size_t size = sizeof *batch + batch->calls * sizeof *batch->call;

    job->batch = hoop_calloc(1, size);
    if (job->batch == NULL)
        return HOOP_ERR_MEMORY;
    memcpy(job->batch, batch, size);
    if (hoop_copies_take(batch->call)) /* alone in its batch; needs no memory of the host */
        return HOOP_OK;
    enum hoop_status status = hoop_layout_make(&job->layout, batch->call, batch->calls);
    if (status != HOOP_OK)
        return status;
    pthread_mutex_lock(&stage->lock);
    status = take_block(stage, job->layout.bytes, &job->block);
    pthread_mutex_unlock(&stage->lock);
    if (status != HOOP_OK)
        return status;
    hoop_layout_apply(&job->layout, job->block->memory, job->batch->call);
    return HOOP_OK;
}

/* The job could not be given to the stream whole: when the stream has passed what it has of it, it may be freed. */
static enum hoop_status take_back(struct job *job, hoop_cu_stream stream, enum hoop_status status)
{
    struct hoop_stage *stage = job->stage;
    char text[HOOP_ERROR_TEXT];

    snprintf(text, sizeof text, "%s", hoop_error_text());
    open_gate(job); /* if it is in the stream */
    hoop_cuda_stream_wait(stage->cuda, stream, hoop_deadline(DRAIN_SECONDS));
    return hoop_fail(status, "%s", text);
}

/* The worker and the stream get the job. */
static enum hoop_status start(struct job *job, hoop_cu_stream stream)
{
    struct hoop_stage *stage = job->stage;
    struct job **order = hoop_calloc(1, sizeof *order);

    if (order == NULL)
        return HOOP_ERR_MEMORY;
    *order = job;
    enum hoop_status status = hoop_cuda_event_create(stage->cuda, &job->end);
    if (status == HOOP_OK) {
        status = give(job, stream);
        if (status == HOOP_OK)
            status = hoop_stream_enqueue(stage->worker, serve, order);
        if (status != HOOP_OK)
            status = take_back(job, stream, status);
    }
    if (status != HOOP_OK) {
        hoop_free(order);
        return status;
    }
    job->next = stage->jobs;
    stage->jobs = job;
    return HOOP_OK;
}

enum hoop_status hoop_stage_submit(struct hoop_comm_batch *batch)
{
    struct hoop_stage *stage = NULL;
    struct job *job = hoop_calloc(1, sizeof *job);

    enum hoop_status status = job ? get(batch->comm, &stage) : HOOP_ERR_MEMORY;
    if (status != HOOP_OK) {
        hoop_free(job);
        return status;
    }
    reap(stage);
    job->stage = stage;
    job->number = stage->jobs_given++;
    status = prepare(job, batch);
    if (status == HOOP_OK)
        status = start(job, (hoop_cu_stream)(void *)batch->stream);
    if (status != HOOP_OK)
        free_job(job);
    return status;
}

/* ---- the end ---- */

void hoop_stage_drain(struct hoop_stage *stage)
{
    if (stage == NULL)
        return;
    const uint64_t deadline = hoop_deadline(DRAIN_SECONDS);
    for (reap(stage); stage->jobs && !hoop_expired(deadline); reap(stage))
        usleep(100); /* the copies back are under way */
}

void hoop_stage_free(struct hoop_stage *stage)
{
    if (stage == NULL)
        return;
    hoop_stage_drain(stage);
    hoop_stream_destroy(stage->worker);
    if (stage->jobs) /* a device that does not move on: what it may still copy stays */
        return;
    while (stage->blocks)
        give_back(stage, stage->blocks);
    if (stage->gates)
        hoop_cuda_host_free(stage->cuda, stage->gates);
    if (stage->before)
        hoop_cuda_event_destroy(stage->cuda, stage->before);
    pthread_mutex_destroy(&stage->lock);
    pthread_cond_destroy(&stage->changed);
    hoop_free(stage);
}
