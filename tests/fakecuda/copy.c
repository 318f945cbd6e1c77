// SPDX-License-Identifier: BSD-3-Clause
/* Copies, fills, host functions, values that streams write and wait for; and how each operation of a stream runs.
 *
 * Pageable memory is read when the call is made, pinned memory when the copy runs; all writes happen when it runs.
 */
#include <string.h>

#include "tests/fakecuda/queue.h"

/* ---- running ---- */

static void flip_some(char *bytes, size_t count)
{
    for (size_t i = 4096 < count ? 4095 : count - 1; i < count; i += 4096)
        bytes[i] = (char)(bytes[i] ^ 1);
}

static void run_copy(void *data)
{
    struct fake_operation *operation = data;
    const char *from = operation->copy.from ? operation->copy.from : fake_operation_tail(operation);

    if (operation->copy.path == FAKE_PATH_LOSE)
        return;
    memmove(operation->copy.to, from, operation->copy.bytes);
    if (operation->copy.path == FAKE_PATH_FLIP)
        flip_some(operation->copy.to, operation->copy.bytes);
}

static void run_fill(void *data)
{
    const struct fake_operation *operation = data;

    for (size_t i = 0; i < operation->fill.count; i++)
        memcpy(operation->fill.to + i * operation->fill.width, &operation->fill.value, operation->fill.width);
}

static void run_write(void *data)
{
    const struct fake_operation *operation = data;

    if (operation->word.wide)
        __atomic_store_n((uint64_t *)(void *)operation->word.at, operation->word.value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)(void *)operation->word.at, (uint32_t)operation->word.value, __ATOMIC_RELEASE);
}

static bool holds(const struct fake_operation *operation)
{
    const uint64_t value = operation->word.value;
    uint64_t now;

    if (operation->word.wide)
        now = __atomic_load_n((uint64_t *)(void *)operation->word.at, __ATOMIC_ACQUIRE);
    else
        now = __atomic_load_n((uint32_t *)(void *)operation->word.at, __ATOMIC_ACQUIRE);
    switch (operation->word.flags) {
    case FAKE_WAIT_EQ:
        return now == value;
    case FAKE_WAIT_AND:
        return (now & value) != 0;
    case FAKE_WAIT_NOR:
        return ~(now | value) != 0;
    default:
        return operation->word.wide ? (int64_t)(now - value) >= 0 : (int32_t)((uint32_t)now - (uint32_t)value) >= 0;
    }
}

static void wait_for_value(const struct fake_stream *stream, const struct fake_operation *operation)
{
    const int bell = fake_bell_of((uint64_t)(uintptr_t)operation->word.at);

    while (!holds(operation) && atomic_load(&stream->context->error) == OK) {
        const uint32_t noted = fake_bell_note(bell);

        if (!holds(operation))
            fake_bell_sleep(bell, noted, 100000); /* a store of the host rings no bell */
        fake_bell_leave(bell);
    }
}

static void guard(struct fake_stream *stream, void (*function)(void *), void *data, const char *what)
{
    if (!fake_guarded(function, data, stream->context, what)) {
        int none = OK;

        atomic_compare_exchange_strong(&stream->context->error, &none, ILLEGAL_ADDRESS);
    }
    fake_ring_all();
}

static void call_host(const struct fake_operation *operation)
{
    static pthread_mutex_t caller = PTHREAD_MUTEX_INITIALIZER;

    if (fake_options.ONE_CALLER)
        pthread_mutex_lock(&caller);
    fake_thread.callback = true;
    operation->call.function(operation->call.data);
    fake_thread.callback = false;
    if (fake_options.ONE_CALLER)
        pthread_mutex_unlock(&caller);
}

/* After an error a context does nothing more, but fences are reached, so that nobody waits for ever. */
void fake_operation_run(struct fake_stream *stream, struct fake_operation *operation)
{
    const bool sound = atomic_load(&stream->context->error) == OK;

    switch (operation->kind) {
    case FAKE_COPY:
        if (sound)
            guard(stream, run_copy, operation, "a copy");
        break;
    case FAKE_FILL:
        if (sound)
            guard(stream, run_fill, operation, "a fill");
        break;
    case FAKE_CALL:
        call_host(operation);
        break;
    case FAKE_RECORD:
        fake_fence_set(operation->fence);
        break;
    case FAKE_WAIT:
        fake_fence_wait(operation->fence, &stream->context->error);
        break;
    case FAKE_WAIT_VALUE:
        wait_for_value(stream, operation);
        break;
    case FAKE_WRITE_VALUE:
        if (sound)
            guard(stream, run_write, operation, "a written value");
        break;
    case FAKE_LAUNCH:
        if (sound)
            fake_engine_run(stream, &operation->launch, fake_operation_tail(operation));
        break;
    }
}

/* ---- calls ---- */

/* One end of a copy: where the driver reaches it. With the lock. */
struct end {
    char *at;
    const struct fake_memory *memory; /* NULL: pageable */
    bool mapped;                      /* host memory by its device address */
};

enum side { HOST, DEVICE, ANY };

static int find_end(uint64_t address, size_t bytes, enum side side, struct end *end)
{
    *end = (struct end){0};
    if (fake_in_range(address)) {
        end->memory = fake_memory_at(address);
        if (!end->memory || end->memory->kind == FAKE_RESERVED || side == HOST ||
            bytes > end->memory->base + end->memory->bytes - address)
            return INVALID_VALUE;
        end->at = fake_driver_view(address);
        end->mapped = end->memory->kind == FAKE_REGISTERED || end->memory->kind == FAKE_PINNED;
        return OK;
    }
    if (address == 0)
        return INVALID_VALUE;
    end->at = (char *)(uintptr_t)address;
    end->memory = fake_memory_host(end->at);
    return side == DEVICE ? INVALID_VALUE : OK;
}

/* A copy between devices whose contexts have peer access takes their path, with its faults; others go through the host. */
static enum fake_path path_of(const struct end *to, const struct end *from)
{
    if (to->mapped)
        return (enum fake_path)fake_options.MAPPED_PATH;
    if (!to->memory || !from->memory || to->memory->machine < 0 || from->memory->machine < 0 || !to->memory->context ||
        !from->memory->context || to->memory->machine == from->memory->machine)
        return FAKE_PATH_GOOD;
    if (to->memory->kind == FAKE_IMPORTED || from->memory->kind == FAKE_IMPORTED ||
        fake_context_reaches(from->memory->context, to->memory->context))
        return fake_path(from->memory->machine, to->memory->machine);
    return FAKE_PATH_GOOD;
}

static int copy(uint64_t to, uint64_t from, size_t bytes, struct fake_stream *handle, enum side to_side,
                enum side from_side, bool wait)
{
    struct fake_operation *operation;
    struct fake_stream *stream;
    struct end target, source;
    bool pageable;
    int status = fake_stream_enter(handle, &stream);

    if (status != OK)
        return status;
    if (bytes == 0) {
        fake_unlock();
        return OK;
    }
    status = find_end(to, bytes, to_side, &target);
    if (status == OK)
        status = find_end(from, bytes, from_side, &source);
    if (status != OK) {
        fake_unlock();
        return status;
    }
    pageable = !source.memory && !stream->capture;
    operation = fake_operation_new(FAKE_COPY, pageable ? bytes : 0);
    operation->copy.to = target.at;
    operation->copy.from = pageable ? NULL : source.at;
    operation->copy.bytes = bytes;
    operation->copy.path = path_of(&target, &source);
    if (pageable)
        memcpy(fake_operation_tail(operation), source.at, bytes);
    status = fake_stream_add(stream, operation);
    fake_unlock();
    return status == OK && wait ? fake_stream_wait(stream) : status;
}

FAKE_ENTRY(cuMemcpy, uint64_t to, uint64_t from, size_t bytes)
{
    FAKE_ENTER(cuMemcpy);
    return copy(to, from, bytes, NULL, ANY, ANY, true);
}

FAKE_ENTRY(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes)
{
    FAKE_ENTER(cuMemcpyHtoD_v2);
    return copy(to, (uint64_t)(uintptr_t)from, bytes, NULL, DEVICE, ANY, true);
}

FAKE_ENTRY(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes)
{
    FAKE_ENTER(cuMemcpyDtoH_v2);
    return copy((uint64_t)(uintptr_t)to, from, bytes, NULL, ANY, DEVICE, true);
}

FAKE_ENTRY(cuMemcpyDtoD_v2, uint64_t to, uint64_t from, size_t bytes)
{
    FAKE_ENTER(cuMemcpyDtoD_v2);
    return copy(to, from, bytes, NULL, DEVICE, DEVICE, true);
}

FAKE_ENTRY(cuMemcpyAsync, uint64_t to, uint64_t from, size_t bytes, struct fake_stream *stream)
{
    FAKE_ENTER(cuMemcpyAsync);
    return copy(to, from, bytes, stream, ANY, ANY, false);
}

FAKE_ENTRY(cuMemcpyPeerAsync, uint64_t to, struct fake_context *to_context, uint64_t from,
           struct fake_context *from_context, size_t bytes, struct fake_stream *stream)
{
    FAKE_ENTER(cuMemcpyPeerAsync);
    if (!fake_context_lives(to_context) || !fake_context_lives(from_context))
        return INVALID_CONTEXT;
    return copy(to, from, bytes, stream, DEVICE, DEVICE, false);
}

FAKE_ENTRY(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, struct fake_stream *stream)
{
    FAKE_ENTER(cuMemcpyHtoDAsync_v2);
    return copy(to, (uint64_t)(uintptr_t)from, bytes, stream, DEVICE, ANY, false);
}

FAKE_ENTRY(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t bytes, struct fake_stream *stream)
{
    FAKE_ENTER(cuMemcpyDtoHAsync_v2);
    return copy((uint64_t)(uintptr_t)to, from, bytes, stream, ANY, DEVICE, false);
}

FAKE_ENTRY(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t bytes, struct fake_stream *stream)
{
    FAKE_ENTER(cuMemcpyDtoDAsync_v2);
    return copy(to, from, bytes, stream, DEVICE, DEVICE, false);
}

static int fill(uint64_t to, uint32_t value, size_t width, size_t count, struct fake_stream *handle, bool wait)
{
    struct fake_operation *operation;
    struct fake_stream *stream;
    struct end target;
    int status = fake_stream_enter(handle, &stream);

    if (status != OK)
        return status;
    status = count == 0 ? OK : to % width ? INVALID_VALUE : find_end(to, width * count, DEVICE, &target);
    if (status != OK || count == 0) {
        fake_unlock();
        return status;
    }
    operation = fake_operation_new(FAKE_FILL, 0);
    operation->fill.to = target.at;
    operation->fill.value = value;
    operation->fill.width = width;
    operation->fill.count = count;
    status = fake_stream_add(stream, operation);
    fake_unlock();
    return status == OK && wait ? fake_stream_wait(stream) : status;
}

FAKE_ENTRY(cuMemsetD8_v2, uint64_t to, unsigned char value, size_t count)
{
    FAKE_ENTER(cuMemsetD8_v2);
    return fill(to, value, 1, count, NULL, true);
}

FAKE_ENTRY(cuMemsetD32_v2, uint64_t to, unsigned value, size_t count)
{
    FAKE_ENTER(cuMemsetD32_v2);
    return fill(to, value, 4, count, NULL, true);
}

FAKE_ENTRY(cuMemsetD8Async, uint64_t to, unsigned char value, size_t count, struct fake_stream *stream)
{
    FAKE_ENTER(cuMemsetD8Async);
    return fill(to, value, 1, count, stream, false);
}

FAKE_ENTRY(cuMemsetD32Async, uint64_t to, unsigned value, size_t count, struct fake_stream *stream)
{
    FAKE_ENTER(cuMemsetD32Async);
    return fill(to, value, 4, count, stream, false);
}

/* A word in memory of the host is waited for, and written, where the host has it: ThreadSanitizer knows words by their addresses, and what
 * the host did before it wrote the word must have happened before what the stream does behind it. */
static char *word_at(const struct fake_memory *memory, uint64_t address)
{
    return memory->host ? memory->host + (address - memory->base) : fake_driver_view(address);
}

static int value_operation(enum fake_operation_kind kind, struct fake_stream *handle, uint64_t address, uint64_t value,
                           unsigned flags, bool wide)
{
    struct fake_operation *operation;
    struct fake_stream *stream;
    struct end target;
    int status;

    if (!fake_options.STREAM_OPS)
        return NOT_SUPPORTED;
    if (kind == FAKE_WAIT_VALUE ? flags > FAKE_WAIT_NOR : flags > 1)
        return INVALID_VALUE;
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    status = address % (wide ? 8 : 4) ? INVALID_VALUE : find_end(address, wide ? 8 : 4, DEVICE, &target);
    if (status == OK) {
        operation = fake_operation_new(kind, 0);
        operation->word.at = word_at(target.memory, address);
        operation->word.value = value;
        operation->word.flags = flags;
        operation->word.wide = wide;
        status = fake_stream_add(stream, operation);
    }
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuStreamWaitValue32_v2, struct fake_stream *stream, uint64_t address, uint32_t value, unsigned flags)
{
    FAKE_ENTER(cuStreamWaitValue32_v2);
    return value_operation(FAKE_WAIT_VALUE, stream, address, value, flags, false);
}

FAKE_ENTRY(cuStreamWaitValue64_v2, struct fake_stream *stream, uint64_t address, uint64_t value, unsigned flags)
{
    FAKE_ENTER(cuStreamWaitValue64_v2);
    return value_operation(FAKE_WAIT_VALUE, stream, address, value, flags, true);
}

FAKE_ENTRY(cuStreamWriteValue32_v2, struct fake_stream *stream, uint64_t address, uint32_t value, unsigned flags)
{
    FAKE_ENTER(cuStreamWriteValue32_v2);
    return value_operation(FAKE_WRITE_VALUE, stream, address, value, flags, false);
}

FAKE_ENTRY(cuStreamWriteValue64_v2, struct fake_stream *stream, uint64_t address, uint64_t value, unsigned flags)
{
    FAKE_ENTER(cuStreamWriteValue64_v2);
    return value_operation(FAKE_WRITE_VALUE, stream, address, value, flags, true);
}

FAKE_ENTRY(cuLaunchHostFunc, struct fake_stream *handle, void (*function)(void *), void *data)
{
    struct fake_operation *operation;
    struct fake_stream *stream;
    int status;

    FAKE_ENTER(cuLaunchHostFunc);
    if (!function)
        return INVALID_VALUE;
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    operation = fake_operation_new(FAKE_CALL, 0);
    operation->call.function = function;
    operation->call.data = data;
    status = fake_stream_add(stream, operation);
    fake_unlock();
    return status;
}
