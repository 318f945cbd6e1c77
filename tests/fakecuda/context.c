// SPDX-License-Identifier: BSD-3-Clause
/* Contexts: one is current on a thread; a device's primary one is shared by all of the process, and counted. */
#include <stdlib.h>

#include "tests/fakecuda/queue.h"

struct fake_context *fake_contexts;
static struct fake_context *primaries[FAKE_DEVICES];

struct fake_context *fake_current(void)
{
    return fake_thread.depth > 0 ? fake_thread.stack[fake_thread.depth - 1] : NULL;
}

static bool lives(const struct fake_context *context)
{
    for (const struct fake_context *each = fake_contexts; each; each = each->next)
        if (each == context)
            return each->references > 0;
    return false;
}

bool fake_context_lives(const struct fake_context *context)
{
    bool result;

    fake_lock();
    result = lives(context);
    fake_unlock();
    return result;
}

bool fake_context_reaches(const struct fake_context *context, const struct fake_context *peer)
{
    for (int i = 0; peer && i < FAKE_DEVICES && context->peers[i]; i++)
        if (context->peers[i] == (uint32_t)peer->id)
            return true;
    return false;
}

/* Structures stay when a context ends, so that stale handles can be told from live ones. */
static int start(struct fake_context *context)
{
    static uint64_t ids;

    context->window = fake_window_new();
    if (!context->window)
        return OUT_OF_MEMORY;
    context->references = 1;
    context->id = ++ids;
    atomic_store(&context->error, OK);
    context->legacy = fake_stream_new(context, 0, 0);
    return context->legacy && fake_show_again(context) ? OK : OUT_OF_MEMORY;
}

static struct fake_context *make(int device)
{
    struct fake_context *context = calloc(1, sizeof *context);

    if (context) {
        context->device = device;
        context->next = fake_contexts;
        fake_contexts = context;
    }
    return context;
}

static void end(struct fake_context *context)
{
    while (context->streams)
        fake_stream_close(context->streams);
    fake_memory_end(context);
    context->references = 0;
    fake_window_drop(context->window);
    for (int i = 0; i < FAKE_DEVICES; i++)
        context->peers[i] = 0;
}

FAKE_ENTRY(cuDevicePrimaryCtxRetain, struct fake_context **result, int device)
{
    struct fake_context *context;
    int status = OK;

    FAKE_ENTER(cuDevicePrimaryCtxRetain);
    if (!fake_device(device))
        return INVALID_DEVICE;
    if (!result)
        return INVALID_VALUE;
    fake_lock();
    if (!primaries[device]) {
        primaries[device] = make(device);
        if (primaries[device])
            primaries[device]->primary = true;
    }
    context = primaries[device];
    if (!context)
        status = OUT_OF_MEMORY;
    else if (context->references++ == 0)
        status = start(context);
    fake_unlock();
    *result = context;
    return status;
}

static int release(int device)
{
    struct fake_context *context;
    int status = INVALID_CONTEXT;

    if (!fake_device(device))
        return INVALID_DEVICE;
    context = primaries[device];
    if (context && context->references == 1)
        fake_context_wait(context);
    fake_lock();
    if (context && context->references > 0) {
        if (context->references == 1)
            end(context);
        else
            context->references--;
        status = OK;
    }
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuDevicePrimaryCtxRelease, int device)
{
    FAKE_ENTER(cuDevicePrimaryCtxRelease);
    return release(device);
}

FAKE_ENTRY(cuDevicePrimaryCtxRelease_v2, int device)
{
    FAKE_ENTER(cuDevicePrimaryCtxRelease_v2);
    return release(device);
}

FAKE_ENTRY(cuDevicePrimaryCtxReset_v2, int device)
{
    FAKE_ENTER(cuDevicePrimaryCtxReset_v2);
    if (!fake_device(device))
        return INVALID_DEVICE;
    if (primaries[device] && primaries[device]->references) {
        fake_lock();
        primaries[device]->references = 1;
        fake_unlock();
        return release(device);
    }
    return OK;
}

FAKE_ENTRY(cuDevicePrimaryCtxGetState, int device, unsigned *flags, int *active)
{
    FAKE_ENTER(cuDevicePrimaryCtxGetState);
    if (!fake_device(device))
        return INVALID_DEVICE;
    fake_lock();
    if (flags)
        *flags = 0;
    if (active)
        *active = primaries[device] && primaries[device]->references > 0;
    fake_unlock();
    return OK;
}

static int push(struct fake_context *context)
{
    if (fake_thread.depth == 16)
        return INVALID_VALUE;
    fake_thread.stack[fake_thread.depth++] = context;
    return OK;
}

FAKE_ENTRY(cuCtxCreate_v2, struct fake_context **result, unsigned flags, int device)
{
    struct fake_context *context;
    int status = OUT_OF_MEMORY;

    FAKE_ENTER(cuCtxCreate_v2);
    if (!fake_device(device))
        return INVALID_DEVICE;
    fake_lock();
    context = make(device);
    if (context) {
        context->flags = flags;
        status = start(context);
    }
    fake_unlock();
    *result = context;
    return status == OK ? push(context) : status;
}

FAKE_ENTRY(cuCtxDestroy_v2, struct fake_context *context)
{
    FAKE_ENTER(cuCtxDestroy_v2);
    if (!context || !fake_context_lives(context) || context->primary)
        return INVALID_CONTEXT;
    fake_context_wait(context);
    fake_lock();
    end(context);
    fake_unlock();
    if (fake_current() == context)
        fake_thread.depth--;
    return OK;
}

FAKE_ENTRY(cuCtxSetCurrent, struct fake_context *context)
{
    FAKE_ENTER(cuCtxSetCurrent);
    if (context && !fake_context_lives(context))
        return INVALID_CONTEXT;
    if (fake_thread.depth > 0)
        fake_thread.depth--;
    return context ? push(context) : OK;
}

FAKE_ENTRY(cuCtxGetCurrent, struct fake_context **context)
{
    FAKE_ENTER(cuCtxGetCurrent);
    *context = fake_current();
    return OK;
}

FAKE_ENTRY(cuCtxPushCurrent_v2, struct fake_context *context)
{
    FAKE_ENTER(cuCtxPushCurrent_v2);
    return !context || !fake_context_lives(context) ? INVALID_CONTEXT : push(context);
}

FAKE_ENTRY(cuCtxPopCurrent_v2, struct fake_context **context)
{
    FAKE_ENTER(cuCtxPopCurrent_v2);
    if (fake_thread.depth == 0)
        return INVALID_CONTEXT;
    fake_thread.depth--;
    if (context)
        *context = fake_thread.stack[fake_thread.depth];
    return OK;
}

FAKE_ENTRY(cuCtxGetDevice, int *device)
{
    FAKE_ENTER(cuCtxGetDevice);
    *device = fake_current()->device;
    return OK;
}

FAKE_ENTRY(cuCtxGetFlags, unsigned *flags)
{
    FAKE_ENTER(cuCtxGetFlags);
    *flags = fake_current()->flags;
    return OK;
}

FAKE_ENTRY(cuCtxGetApiVersion, struct fake_context *context, unsigned *version)
{
    FAKE_ENTER(cuCtxGetApiVersion);
    if (context && !fake_context_lives(context))
        return INVALID_CONTEXT;
    *version = 3020;
    return OK;
}

FAKE_ENTRY(cuCtxGetStreamPriorityRange, int *least, int *greatest)
{
    FAKE_ENTER(cuCtxGetStreamPriorityRange);
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return OK;
}

/* Streams may come and go meanwhile; those there are now are waited for, one after the other. */
int fake_context_wait(struct fake_context *context)
{
    for (;;) {
        struct fake_stream *busy = NULL;

        fake_lock();
        for (struct fake_stream *stream = context->streams; stream && !busy; stream = stream->next)
            if (!fake_stream_idle(stream))
                busy = stream;
        fake_unlock();
        if (!busy)
            return atomic_load(&context->error);
        fake_stream_wait(busy);
    }
}

FAKE_ENTRY(cuCtxSynchronize, void)
{
    FAKE_ENTER(cuCtxSynchronize);
    return fake_context_wait(fake_current());
}

int fake_context_enable(struct fake_context *context, struct fake_context *peer)
{
    for (int i = 0; i < FAKE_DEVICES - 1; i++) {
        if (context->peers[i])
            continue;
        context->peers[i] = (uint32_t)peer->id;
        return fake_show_again(context) ? OK : OUT_OF_MEMORY;
    }
    return OUT_OF_MEMORY;
}

FAKE_ENTRY(cuCtxEnablePeerAccess, struct fake_context *peer, unsigned flags)
{
    struct fake_context *context;
    int status;

    FAKE_ENTER(cuCtxEnablePeerAccess);
    context = fake_current();
    if (flags)
        return INVALID_VALUE;
    if (!peer || peer == context || !fake_context_lives(peer))
        return INVALID_CONTEXT;
    if (fake_path(fake_device(context->device)->index, fake_device(peer->device)->index) == FAKE_PATH_NONE)
        return PEER_ACCESS_UNSUPPORTED;
    fake_lock();
    status = fake_context_reaches(context, peer) ? PEER_ACCESS_ALREADY_ENABLED : fake_context_enable(context, peer);
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuCtxDisablePeerAccess, struct fake_context *peer)
{
    struct fake_context *context;
    int status = PEER_ACCESS_NOT_ENABLED;

    FAKE_ENTER(cuCtxDisablePeerAccess);
    context = fake_current();
    if (!peer || !fake_context_lives(peer))
        return INVALID_CONTEXT;
    fake_lock();
    for (int i = 0; i < FAKE_DEVICES && context->peers[i]; i++) {
        if (context->peers[i] != (uint32_t)peer->id)
            continue;
        for (int k = i; k < FAKE_DEVICES - 1; k++)
            context->peers[k] = context->peers[k + 1];
        status = fake_show_again(context) ? OK : OUT_OF_MEMORY;
        break;
    }
    fake_unlock();
    return status;
}
