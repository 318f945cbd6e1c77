// SPDX-License-Identifier: BSD-3-Clause
/* Fences and events. */
#include "tests/fakecuda/event.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct fake_event *events;

struct fake_fence *fake_fence_new(void)
{
    struct fake_fence *fence = calloc(1, sizeof *fence);

    if (fence) {
        atomic_init(&fence->references, 1);
        fence->word = &fence->own;
        fence->ticket = 1;
        fence->node = -1;
    }
    return fence;
}

struct fake_fence *fake_fence_keep(struct fake_fence *fence)
{
    if (fence)
        atomic_fetch_add(&fence->references, 1);
    return fence;
}

void fake_fence_drop(struct fake_fence *fence)
{
    if (fence && atomic_fetch_sub(&fence->references, 1) == 1) {
        if (fence->page)
            munmap(fence->page, 4096);
        free(fence);
    }
}

bool fake_fence_reached(const struct fake_fence *fence)
{
    return atomic_load(fence->word) >= fence->ticket;
}

void fake_fence_set(struct fake_fence *fence)
{
    uint64_t old = atomic_load(fence->word);

    fence->nanoseconds = fake_clock();
    while (old < fence->ticket && !atomic_compare_exchange_weak(fence->word, &old, fence->ticket))
        ;
    fake_ring(0);
}

void fake_fence_wait(const struct fake_fence *fence, const _Atomic int *stop)
{
    while (!fake_fence_reached(fence) && !(stop && atomic_load(stop))) {
        const uint32_t noted = fake_bell_note(0);

        if (!fake_fence_reached(fence))
            fake_bell_sleep(0, noted, 2000000);
        fake_bell_leave(0);
    }
}

static void *map_page(int file)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    return page == MAP_FAILED ? NULL : page;
}

bool fake_event_lives(const struct fake_event *event)
{
    bool found = false;

    fake_lock();
    for (const struct fake_event *each = events; each && !found; each = each->next)
        found = each == event;
    fake_unlock();
    return found;
}

struct fake_event *fake_event_new(struct fake_context *context, unsigned flags, int file)
{
    struct fake_event *event = calloc(1, sizeof *event);

    if (!event)
        return NULL;
    *event = (struct fake_event){.context = context, .flags = flags, .file = file, .next = events};
    if (flags & FAKE_EVENT_INTERPROCESS) {
        if (file < 0)
            event->file = fake_file_new(4096, "fakecuda-event");
        event->page = event->file >= 0 ? map_page(event->file) : NULL;
        if (!event->page) {
            free(event);
            return NULL;
        }
    }
    events = event;
    return event;
}

FAKE_ENTRY(cuEventCreate, struct fake_event **result, unsigned flags)
{
    FAKE_ENTER(cuEventCreate);
    if (!result || flags > 7 || ((flags & FAKE_EVENT_INTERPROCESS) && !(flags & FAKE_EVENT_DISABLE_TIMING)))
        return INVALID_VALUE;
    fake_lock();
    *result = fake_event_new(fake_current(), flags, -1);
    fake_unlock();
    return *result ? OK : OUT_OF_MEMORY;
}

FAKE_ENTRY(cuEventDestroy_v2, struct fake_event *event)
{
    int status = INVALID_HANDLE;

    FAKE_ENTER(cuEventDestroy_v2);
    fake_lock();
    for (struct fake_event **link = &events; *link; link = &(*link)->next) {
        if (*link != event)
            continue;
        *link = event->next;
        fake_fence_drop(event->fence);
        if (event->page)
            munmap(event->page, 4096);
        if (event->file >= 0)
            close(event->file);
        free(event);
        status = OK;
        break;
    }
    fake_unlock();
    return status;
}

/* A fence for the moment that the event stands for now, to be dropped; NULL: it was never recorded. With the lock. */
struct fake_fence *fake_event_fence(struct fake_event *event)
{
    struct fake_fence *fence;

    if (!event->page)
        return fake_fence_keep(event->fence);
    if (atomic_load(&event->page->recorded) == 0)
        return NULL;
    fence = fake_fence_new();
    fence->page = map_page(event->file);
    fence->word = &((struct fake_event_page *)fence->page)->reached;
    fence->ticket = atomic_load(&event->page->recorded);
    return fence;
}

static int record(struct fake_event *event, struct fake_stream *stream)
{
    struct fake_operation *operation = fake_operation_new(FAKE_RECORD, 0);
    int status = OK;

    if (event->page) {
        atomic_fetch_add(&event->page->recorded, 1);
        operation->fence = fake_event_fence(event);
    } else {
        operation->fence = fake_fence_new();
        fake_fence_drop(event->fence);
        event->fence = fake_fence_keep(operation->fence);
    }
    if (stream->capture)
        status = fake_capture_record(stream, &operation->fence);
    return status == OK ? fake_stream_add(stream, operation) : status;
}

FAKE_ENTRY(cuEventRecord, struct fake_event *event, struct fake_stream *handle)
{
    struct fake_stream *stream;
    int status;

    FAKE_ENTER(cuEventRecord);
    if (!fake_event_lives(event))
        return INVALID_HANDLE;
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    status = event->context == stream->context ? record(event, stream) : INVALID_HANDLE;
    fake_unlock();
    return status;
}

static int look(struct fake_event *event, struct fake_fence **fence)
{
    if (!fake_event_lives(event))
        return INVALID_HANDLE;
    fake_lock();
    *fence = fake_event_fence(event);
    fake_unlock();
    if (*fence && (*fence)->node >= 0) {
        fake_fence_drop(*fence);
        return CAPTURED_EVENT;
    }
    return OK;
}

FAKE_ENTRY(cuEventQuery, struct fake_event *event)
{
    struct fake_fence *fence;
    int status;

    FAKE_ENTER(cuEventQuery);
    status = look(event, &fence);
    if (status != OK)
        return status;
    fake_flush();
    if (fence && !fake_fence_reached(fence))
        status = NOT_READY;
    fake_fence_drop(fence);
    return status == OK ? atomic_load(&fake_current()->error) : status;
}

FAKE_ENTRY(cuEventSynchronize, struct fake_event *event)
{
    struct fake_fence *fence;
    int status;

    FAKE_ENTER(cuEventSynchronize);
    status = look(event, &fence);
    if (status != OK)
        return status;
    fake_flush();
    if (fence)
        fake_fence_wait(fence, NULL);
    fake_fence_drop(fence);
    return atomic_load(&fake_current()->error);
}

FAKE_ENTRY(cuEventElapsedTime, float *milliseconds, struct fake_event *first, struct fake_event *second)
{
    int status = OK;

    FAKE_ENTER(cuEventElapsedTime);
    if (!fake_event_lives(first) || !fake_event_lives(second) ||
        (first->flags | second->flags) & FAKE_EVENT_DISABLE_TIMING)
        return INVALID_HANDLE;
    fake_lock();
    if (!first->fence || !second->fence)
        status = INVALID_HANDLE;
    else if (!fake_fence_reached(first->fence) || !fake_fence_reached(second->fence))
        status = NOT_READY;
    else
        *milliseconds = (float)((double)(int64_t)(second->fence->nanoseconds - first->fence->nanoseconds) / 1e6);
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuStreamWaitEvent, struct fake_stream *handle, struct fake_event *event, unsigned flags)
{
    struct fake_stream *stream;
    struct fake_fence *fence;
    int status;

    FAKE_ENTER(cuStreamWaitEvent);
    if (flags > 1)
        return INVALID_VALUE;
    if (!fake_event_lives(event))
        return INVALID_HANDLE;
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    fence = fake_event_fence(event);
    if (fence && (fence->node >= 0 || stream->capture)) {
        status = fake_capture_wait(stream, fence);
    } else if (fence) {
        struct fake_operation *operation = fake_operation_new(FAKE_WAIT, 0);

        operation->fence = fake_fence_keep(fence);
        status = fake_stream_add(stream, operation);
    }
    fake_fence_drop(fence);
    fake_unlock();
    return status;
}
