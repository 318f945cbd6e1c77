// SPDX-License-Identifier: BSD-3-Clause
/* Streams: a thread and a queue each, and the rules of the legacy stream. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fakecuda/queue.h"

static _Atomic uint64_t flushes;

uint64_t fake_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fake_flush(void)
{
    if (fake_options.LAZY) {
        atomic_fetch_add(&flushes, 1);
        fake_ring(0);
    }
}

uint64_t fake_flushes(void)
{
    return atomic_load(&flushes);
}

struct fake_operation *fake_operation_new(enum fake_operation_kind kind, size_t tail)
{
    struct fake_operation *operation = calloc(1, sizeof *operation + tail);

    if (!operation)
        abort();
    operation->kind = kind;
    operation->tail = tail;
    return operation;
}

void fake_operation_free(struct fake_operation *operation)
{
    if (operation->kind == FAKE_RECORD || operation->kind == FAKE_WAIT)
        fake_fence_drop(operation->fence);
    free(operation);
}

struct fake_operation *fake_operation_copy(const struct fake_operation *operation)
{
    struct fake_operation *copy = fake_operation_new(operation->kind, operation->tail);

    memcpy(copy, operation, sizeof *copy + operation->tail);
    if (copy->kind == FAKE_RECORD || copy->kind == FAKE_WAIT)
        fake_fence_keep(copy->fence);
    return copy;
}

/* The modes that bring late what a real device may bring late. */
static void hold_back(const struct fake_operation *operation)
{
    static _Thread_local unsigned seed;

    if (fake_options.DELAY > 0) {
        struct timespec pause = {0};

        if (!seed)
            seed = (unsigned)fake_options.SEED + (unsigned)((uintptr_t)operation >> 4);
        pause.tv_nsec = rand_r(&seed) % (fake_options.DELAY + 1) * 1000 % 1000000000;
        nanosleep(&pause, NULL);
    }
    while (fake_options.LAZY > 0 && fake_flushes() == operation->flush &&
           fake_clock() - operation->queued < (uint64_t)fake_options.LAZY * 1000000u) {
        const uint32_t noted = fake_bell_note(0);

        if (fake_flushes() == operation->flush)
            fake_bell_sleep(0, noted, 1000000);
        fake_bell_leave(0);
    }
}

/* Whoever has seen a record reached, and asks then whether the stream is done, is not to come before the count of it. */
static void run_one(struct fake_stream *stream, struct fake_operation *operation)
{
    const bool record = operation->kind == FAKE_RECORD;

    if (record)
        pthread_mutex_lock(&stream->mutex);
    fake_operation_run(stream, operation);
    fake_operation_free(operation);
    atomic_fetch_add(&stream->done, 1);
    if (record)
        pthread_mutex_unlock(&stream->mutex);
}

static void *run(void *data)
{
    struct fake_stream *stream = data;

    for (;;) {
        struct fake_operation *operation;

        pthread_mutex_lock(&stream->mutex);
        while (!stream->first && !stream->closing)
            pthread_cond_wait(&stream->wake, &stream->mutex);
        operation = stream->first;
        if (operation) {
            stream->first = operation->next;
            if (!stream->first)
                stream->last = NULL;
        }
        pthread_mutex_unlock(&stream->mutex);
        if (!operation)
            break;
        hold_back(operation);
        run_one(stream, operation);
        fake_ring(0);
    }
    pthread_mutex_destroy(&stream->mutex);
    pthread_cond_destroy(&stream->wake);
    free(stream);
    return NULL;
}

struct fake_stream *fake_stream_new(struct fake_context *context, unsigned flags, int priority)
{
    static uint64_t ids;
    struct fake_stream *stream = calloc(1, sizeof *stream);
    pthread_t thread;

    if (!stream)
        return NULL;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = ++ids;
    stream->branch = -1;
    pthread_mutex_init(&stream->mutex, NULL);
    pthread_cond_init(&stream->wake, NULL);
    if (pthread_create(&thread, NULL, run, stream) != 0) {
        free(stream);
        return NULL;
    }
    pthread_detach(thread);
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

/* The thread works off what is queued, then frees the stream. */
void fake_stream_close(struct fake_stream *stream)
{
    struct fake_stream **link = &stream->context->streams;

    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    if (stream->capture)
        fake_capture_break(stream->capture);
    pthread_mutex_lock(&stream->mutex);
    stream->closing = true;
    pthread_cond_signal(&stream->wake);
    pthread_mutex_unlock(&stream->mutex);
}

void fake_stream_push(struct fake_stream *stream, struct fake_operation *operation)
{
    operation->next = NULL;
    operation->flush = fake_flushes();
    operation->queued = fake_clock();
    pthread_mutex_lock(&stream->mutex);
    if (stream->last)
        stream->last->next = operation;
    else
        stream->first = operation;
    stream->last = operation;
    stream->queued++;
    pthread_cond_signal(&stream->wake);
    pthread_mutex_unlock(&stream->mutex);
}

bool fake_stream_idle(struct fake_stream *stream)
{
    bool idle;

    pthread_mutex_lock(&stream->mutex);
    idle = atomic_load(&stream->done) >= stream->queued;
    pthread_mutex_unlock(&stream->mutex);
    return idle;
}

/* `later` goes on only after what `earlier` holds now. */
static void order(struct fake_stream *earlier, struct fake_stream *later)
{
    struct fake_operation *record, *wait;

    if (earlier == later || fake_stream_idle(earlier))
        return;
    record = fake_operation_new(FAKE_RECORD, 0);
    wait = fake_operation_new(FAKE_WAIT, 0);
    record->fence = fake_fence_new();
    wait->fence = fake_fence_keep(record->fence);
    fake_stream_push(earlier, record);
    fake_stream_push(later, wait);
}

/* The legacy stream and the blocking streams of its context wait for each other. */
int fake_stream_add(struct fake_stream *stream, struct fake_operation *operation)
{
    struct fake_context *context = stream->context;

    if (stream->capture)
        return fake_capture_add(stream, operation);
    if (stream == context->legacy) {
        for (struct fake_stream *other = context->streams; other; other = other->next) {
            if (other->flags & FAKE_STREAM_NON_BLOCKING)
                continue;
            if (other->capture) {
                fake_operation_free(operation);
                fake_capture_break(other->capture);
                return STREAM_CAPTURE_IMPLICIT;
            }
            order(other, stream);
        }
    } else if (!(stream->flags & FAKE_STREAM_NON_BLOCKING)) {
        order(context->legacy, stream);
    }
    fake_stream_push(stream, operation);
    return OK;
}

/* The same handle is another stream in each thread, made when it is first used. With the lock. */
static struct fake_stream *of_this_thread(struct fake_context *context)
{
    static uint64_t threads;
    static _Thread_local uint64_t number;
    struct fake_stream *stream;

    if (number == 0)
        number = ++threads;
    for (stream = context->streams; stream && stream->thread != number;)
        stream = stream->next;
    if (!stream) {
        stream = fake_stream_new(context, 0, 0);
        if (stream)
            stream->thread = number;
    }
    return stream;
}

int fake_stream_enter(struct fake_stream *handle, struct fake_stream **result)
{
    struct fake_context *context = fake_current();

    fake_lock();
    if (!handle || handle == FAKE_STREAM_LEGACY) {
        *result = context->legacy;
        return OK;
    }
    if (handle == FAKE_STREAM_PER_THREAD) {
        *result = of_this_thread(context);
        if (*result)
            return OK;
        fake_unlock();
        return OUT_OF_MEMORY;
    }
    for (struct fake_stream *stream = context->streams; stream; stream = stream->next) {
        if (stream == handle) {
            *result = stream;
            return OK;
        }
    }
    fake_unlock();
    return INVALID_HANDLE; /* of another context, destroyed, or never one */
}

static bool find_alive(const struct fake_stream *stream, uint64_t id)
{
    bool found = false;

    fake_lock();
    for (struct fake_context *context = fake_contexts; context && !found; context = context->next)
        for (const struct fake_stream *each = context->streams; each && !found; each = each->next)
            found = each == stream && each->id == id;
    fake_unlock();
    return found;
}

/* By a fence behind what is queued, so that the stream may be destroyed meanwhile. */
int fake_stream_wait(struct fake_stream *stream)
{
    struct fake_context *context = stream->context;
    struct fake_operation *record;
    struct fake_fence *fence;

    if (!find_alive(stream, stream->id))
        return INVALID_HANDLE;
    fake_flush();
    record = fake_operation_new(FAKE_RECORD, 0);
    fence = record->fence = fake_fence_new();
    fake_fence_keep(fence);
    fake_stream_push(stream, record);
    fake_flush();
    fake_fence_wait(fence, NULL);
    fake_fence_drop(fence);
    return atomic_load(&context->error);
}

FAKE_ENTRY(cuStreamCreateWithPriority, struct fake_stream **result, unsigned flags, int priority)
{
    FAKE_ENTER(cuStreamCreateWithPriority);
    if (!result || flags > 1)
        return INVALID_VALUE;
    fake_lock();
    *result = fake_stream_new(fake_current(), flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    fake_unlock();
    return *result ? OK : OUT_OF_MEMORY;
}

FAKE_ENTRY(cuStreamCreate, struct fake_stream **result, unsigned flags)
{
    FAKE_ENTER(cuStreamCreate);
    if (!result || flags > 1)
        return INVALID_VALUE;
    fake_lock();
    *result = fake_stream_new(fake_current(), flags, 0);
    fake_unlock();
    return *result ? OK : OUT_OF_MEMORY;
}

FAKE_ENTRY(cuStreamDestroy_v2, struct fake_stream *handle)
{
    struct fake_stream *stream;
    int status;

    FAKE_ENTER(cuStreamDestroy_v2);
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    if (stream == stream->context->legacy || stream->thread)
        status = INVALID_HANDLE;
    else
        fake_stream_close(stream);
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuStreamSynchronize, struct fake_stream *handle)
{
    struct fake_stream *stream;
    int status;

    FAKE_ENTER(cuStreamSynchronize);
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    if (stream->capture) {
        fake_capture_break(stream->capture);
        status = STREAM_CAPTURE_UNSUPPORTED;
    }
    fake_unlock();
    return status == OK ? fake_stream_wait(stream) : status;
}

FAKE_ENTRY(cuStreamQuery, struct fake_stream *handle)
{
    struct fake_stream *stream;
    int status;

    FAKE_ENTER(cuStreamQuery);
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    fake_flush();
    if (stream->capture) {
        fake_capture_break(stream->capture);
        status = STREAM_CAPTURE_UNSUPPORTED;
    } else if (!fake_stream_idle(stream)) {
        status = NOT_READY;
    }
    fake_unlock();
    return status == OK ? atomic_load(&fake_current()->error) : status;
}

/* What a stream tells of itself it tells whatever context is current. Keeps the lock if it is found. */
int fake_stream_find(struct fake_stream *handle, struct fake_stream **result)
{
    if (!handle || handle == FAKE_STREAM_LEGACY || handle == FAKE_STREAM_PER_THREAD)
        return fake_current() ? fake_stream_enter(handle, result) : INVALID_CONTEXT;
    fake_lock();
    for (struct fake_context *context = fake_contexts; context; context = context->next) {
        for (struct fake_stream *stream = context->streams; stream; stream = stream->next) {
            if (stream == handle) {
                *result = stream;
                return OK;
            }
        }
    }
    fake_unlock();
    return INVALID_HANDLE;
}

#define TELL(name, type, what)                                \
    FAKE_ENTRY(name, struct fake_stream *handle, type *value) \
    {                                                         \
        struct fake_stream *stream;                           \
        int status;                                           \
                                                              \
        FAKE_ENTER(name);                                     \
        status = fake_stream_find(handle, &stream);           \
        if (status != OK)                                     \
            return status;                                    \
        *value = what;                                        \
        fake_unlock();                                        \
        return OK;                                            \
    }
TELL(cuStreamGetCtx, struct fake_context *, stream->context)
TELL(cuStreamGetFlags, unsigned, stream->flags)
TELL(cuStreamGetPriority, int, stream->priority)
TELL(cuStreamGetId, uint64_t, stream->id)
