// SPDX-License-Identifier: BSD-3-Clause
/* Device memory of each kind, and host memory that devices reach. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fakecuda/queue.h"

#define PAGE ((uint64_t)4096)

/* With the lock: memory of that kind in the current context. */
static int allocate(enum fake_kind kind, uint64_t bytes, struct fake_memory **result)
{
    struct fake_context *context = fake_current();
    struct fake_memory *memory;

    if (bytes == 0)
        return INVALID_VALUE;
    if (bytes > (uint64_t)1 << 46 || !fake_charge(context->device, bytes))
        return OUT_OF_MEMORY;
    memory = fake_memory_new(kind, bytes, fake_round(bytes, PAGE), 0);
    if (!memory) {
        fake_discharge(context->device, bytes);
        return OUT_OF_MEMORY;
    }
    memory->context = context;
    memory->device = context->device;
    memory->machine = fake_device(context->device)->index;
    memory->base = fake_place_in_pages(memory->start, memory->length, bytes);
    memory->file = fake_file_new(memory->length, "fakecuda");
    if (kind == FAKE_MANAGED)
        memory->host = (char *)(uintptr_t)memory->base;
    if (memory->file < 0 || !fake_show(memory)) {
        fake_memory_give_back(memory);
        return OUT_OF_MEMORY;
    }
    fake_poison(memory);
    *result = memory;
    return OK;
}

int fake_memory_give_back(struct fake_memory *memory)
{
    if (memory->kind == FAKE_LEGACY || memory->kind == FAKE_POOL || memory->kind == FAKE_MANAGED)
        fake_discharge(memory->device, memory->bytes);
    if (memory->kind == FAKE_LEGACY && fake_import_count(getpid(), memory->id) > 0) {
        fake_say("memory freed while another process has it open: undefined on a real device (allocation of %lu bytes)",
                 (unsigned long)memory->bytes);
        abort();
    }
    fake_hide(memory);
    if (memory->kind == FAKE_PINNED)
        munmap(memory->host, memory->length);
    fake_memory_drop(memory);
    return OK;
}

void fake_memory_end(struct fake_context *context)
{
    struct fake_memory *memory = fake_memory_next(NULL);

    while (memory) {
        struct fake_memory *next = fake_memory_next(memory);

        if (memory->context == context && memory->kind != FAKE_REGISTERED && memory->kind != FAKE_PINNED) {
            if (memory->kind == FAKE_LEGACY || memory->kind == FAKE_POOL || memory->kind == FAKE_MANAGED)
                fake_discharge(memory->device, memory->bytes);
            if (memory->origin)
                fake_import_end(memory);
            fake_hide(memory);
            fake_memory_drop(memory);
        }
        memory = next;
    }
}

static int allocate_and_tell(enum fake_kind kind, uint64_t *address, size_t bytes)
{
    struct fake_memory *memory = NULL;
    int status;

    if (!address)
        return INVALID_VALUE;
    fake_lock();
    status = allocate(kind, bytes, &memory);
    if (status == OK)
        *address = memory->base;
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuMemAlloc_v2, uint64_t *address, size_t bytes)
{
    FAKE_ENTER(cuMemAlloc_v2);
    if (fake_options.ALLOC_WAITS)
        fake_context_wait(fake_current());
    return allocate_and_tell(FAKE_LEGACY, address, bytes);
}

FAKE_ENTRY(cuMemAllocManaged, uint64_t *address, size_t bytes, unsigned flags)
{
    FAKE_ENTER(cuMemAllocManaged);
    return flags < 1 || flags > 2 ? INVALID_VALUE : allocate_and_tell(FAKE_MANAGED, address, bytes);
}

/* Waits for the work of the context, as a real driver may: freeing while a peer spins is a deadlock. */
FAKE_ENTRY(cuMemFree_v2, uint64_t address)
{
    struct fake_memory *memory;
    int status = INVALID_VALUE;

    FAKE_ENTER(cuMemFree_v2);
    if (address == 0)
        return OK;
    fake_lock();
    memory = fake_memory_at(address);
    fake_unlock();
    if (memory && memory->context && memory->kind != FAKE_IMPORTED)
        fake_context_wait(memory->context);
    fake_lock();
    memory = fake_memory_at(address);
    if (memory && memory->base == address &&
        (memory->kind == FAKE_LEGACY || memory->kind == FAKE_POOL || memory->kind == FAKE_MANAGED))
        status = fake_memory_give_back(memory);
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuMemGetAddressRange_v2, uint64_t *base, size_t *bytes, uint64_t address)
{
    const struct fake_memory *memory;

    FAKE_ENTER(cuMemGetAddressRange_v2);
    fake_lock();
    memory = fake_memory_at(address);
    if (memory && memory->kind != FAKE_RESERVED) {
        if (base)
            *base = memory->base;
        if (bytes)
            *bytes = memory->bytes;
    }
    fake_unlock();
    return memory && memory->kind != FAKE_RESERVED ? OK : NOT_FOUND;
}

FAKE_ENTRY(cuMemGetInfo_v2, size_t *left, size_t *total)
{
    const struct fake_context *context;

    FAKE_ENTER(cuMemGetInfo_v2);
    context = fake_current();
    fake_lock();
    *total = fake_device(context->device)->memory;
    *left = *total - fake_charged(context->device);
    fake_unlock();
    return OK;
}

FAKE_ENTRY(cuMemAllocAsync, uint64_t *address, size_t bytes, struct fake_stream *handle)
{
    struct fake_stream *stream;
    struct fake_memory *memory = NULL;
    int status;

    FAKE_ENTER(cuMemAllocAsync);
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    status = stream->capture ? STREAM_CAPTURE_UNSUPPORTED : allocate(FAKE_POOL, bytes, &memory);
    if (status == OK)
        *address = memory->base;
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuMemFreeAsync, uint64_t address, struct fake_stream *handle)
{
    struct fake_stream *stream;
    struct fake_memory *memory;
    int status;

    FAKE_ENTER(cuMemFreeAsync);
    status = fake_stream_enter(handle, &stream);
    if (status != OK)
        return status;
    memory = fake_memory_at(address);
    if (!memory || memory->base != address || memory->kind != FAKE_POOL)
        status = INVALID_VALUE;
    fake_unlock();
    if (status != OK)
        return status;
    fake_stream_wait(stream);
    fake_lock();
    memory = fake_memory_at(address);
    if (memory)
        fake_memory_give_back(memory);
    fake_unlock();
    return OK;
}

/* ---- host memory ---- */

static int host_allocate(void **pointer, size_t bytes, unsigned flags)
{
    struct fake_memory *memory;
    void *host;

    if (!pointer || bytes == 0 || flags > 7)
        return INVALID_VALUE;
    if (bytes > (uint64_t)1 << 40)
        return OUT_OF_MEMORY;
    fake_lock();
    memory = fake_memory_new(FAKE_PINNED, bytes, fake_round(bytes, PAGE), 0);
    if (!memory) {
        fake_unlock();
        return OUT_OF_MEMORY;
    }
    memory->context = fake_current();
    memory->flags = flags | FAKE_HOST_PORTABLE | FAKE_HOST_DEVICEMAP; /* so with unified addresses */
    memory->file = fake_file_new(memory->length, "fakecuda-host");
    host = mmap(NULL, memory->length, PROT_READ | PROT_WRITE, MAP_SHARED, memory->file, 0);
    if (host == MAP_FAILED) {
        fake_memory_drop(memory);
        fake_unlock();
        return OUT_OF_MEMORY;
    }
    memory->host = host;
    if (!fake_show(memory)) {
        fake_memory_give_back(memory);
        fake_unlock();
        return OUT_OF_MEMORY;
    }
    fake_poison(memory);
    *pointer = host;
    fake_unlock();
    return OK;
}

FAKE_ENTRY(cuMemHostAlloc, void **pointer, size_t bytes, unsigned flags)
{
    FAKE_ENTER(cuMemHostAlloc);
    return host_allocate(pointer, bytes, flags);
}

FAKE_ENTRY(cuMemAllocHost_v2, void **pointer, size_t bytes)
{
    FAKE_ENTER(cuMemAllocHost_v2);
    return host_allocate(pointer, bytes, 0);
}

FAKE_ENTRY(cuMemFreeHost, void *pointer)
{
    struct fake_memory *memory;
    int status = INVALID_VALUE;

    FAKE_ENTER(cuMemFreeHost);
    if (fake_options.HOST_WAITS)
        fake_context_wait(fake_current());
    fake_lock();
    memory = fake_memory_host(pointer);
    if (memory && memory->kind == FAKE_PINNED && memory->host == pointer)
        status = fake_memory_give_back(memory);
    fake_unlock();
    return status;
}

/* Shared pages get further addresses; private ones cannot have them, so a file with their content takes their place. */
static bool register_pages(struct fake_memory *memory, void *start)
{
    void *probe = mremap(start, 0, memory->length, MREMAP_MAYMOVE);

    memory->host = start;
    memory->alias = probe != MAP_FAILED;
    if (memory->alias) {
        munmap(probe, memory->length);
        return true;
    }
    memory->file = fake_file_new(memory->length, "fakecuda-registered");
    if (memory->file < 0)
        return false;
    if (pwrite(memory->file, start, memory->length, 0) != (ssize_t)memory->length)
        return false;
    return mmap(start, memory->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->file, 0) != MAP_FAILED;
}

FAKE_ENTRY(cuMemHostRegister_v2, void *pointer, size_t bytes, unsigned flags)
{
    const uint64_t start = (uint64_t)(uintptr_t)pointer & ~(PAGE - 1);
    const uint64_t length = fake_round((uint64_t)(uintptr_t)pointer + bytes - start, PAGE);
    struct fake_memory *memory;
    int status = OK;

    FAKE_ENTER(cuMemHostRegister_v2);
    if (!fake_options.REGISTER)
        return NOT_SUPPORTED;
    if (!pointer || bytes == 0 || flags > 15)
        return INVALID_VALUE;
    fake_lock();
    if (fake_memory_host(pointer) || fake_memory_host((char *)pointer + bytes - 1)) {
        fake_unlock();
        return HOST_MEMORY_ALREADY_REGISTERED;
    }
    memory = fake_memory_new(FAKE_REGISTERED, bytes, length, 0);
    if (!memory) {
        status = OUT_OF_MEMORY;
    } else {
        memory->context = fake_current();
        memory->flags = flags;
        if (!register_pages(memory, (void *)(uintptr_t)start) || !fake_show(memory)) {
            fake_hide(memory);
            fake_memory_drop(memory);
            status = INVALID_VALUE;
        } else {
            memory->base = memory->start + ((uint64_t)(uintptr_t)pointer - start);
            memory->host = pointer;
        }
    }
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuMemHostUnregister, void *pointer)
{
    struct fake_memory *memory;
    int status = HOST_MEMORY_NOT_REGISTERED;

    FAKE_ENTER(cuMemHostUnregister);
    if (fake_options.HOST_WAITS)
        fake_context_wait(fake_current());
    fake_lock();
    memory = fake_memory_host(pointer);
    if (memory && memory->kind == FAKE_REGISTERED) {
        status = memory->host == pointer ? OK : INVALID_VALUE;
        if (status == OK) {
            fake_hide(memory);
            fake_memory_drop(memory);
        }
    }
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuMemHostGetDevicePointer_v2, uint64_t *address, void *pointer, unsigned flags)
{
    const struct fake_memory *memory;

    FAKE_ENTER(cuMemHostGetDevicePointer_v2);
    if (flags || !address)
        return INVALID_VALUE;
    fake_lock();
    memory = fake_memory_host(pointer);
    if (memory)
        *address = memory->base + (uint64_t)((char *)pointer - memory->host);
    fake_unlock();
    return memory ? OK : INVALID_VALUE;
}

FAKE_ENTRY(cuMemHostGetFlags, unsigned *flags, void *pointer)
{
    const struct fake_memory *memory;

    FAKE_ENTER(cuMemHostGetFlags);
    fake_lock();
    memory = fake_memory_host(pointer);
    if (memory)
        *flags = memory->flags;
    fake_unlock();
    return memory ? OK : INVALID_VALUE;
}
