// SPDX-License-Identifier: BSD-3-Clause
/* Host memory that devices reach.
 *
 * The driver registers a range once in a process, for all devices; ranks that are threads share pages and each asks for its own
 * device. So registrations are kept in one list and counted. Where host addresses are no addresses of the device, each device is
 * asked for its own.
 */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "base/alloc.h"
#include "mem/cuda.h"

struct registration {
    struct registration *next;
    uintptr_t start;
    size_t bytes;
    int uses;
};

static struct registration *registrations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Where the current context's device sees the memory. */
static enum hoop_status address_of(const struct hoop_cuda *cuda, void *memory, hoop_cu_address *address)
{
    return hoop_cuda_check(cuda->driver->cuMemHostGetDevicePointer(address, memory, 0), "cuMemHostGetDevicePointer",
                           cuda->device.ordinal);
}

enum hoop_status hoop_cuda_host_alloc(const struct hoop_cuda *cuda, size_t bytes, void **memory,
                                      hoop_cu_address *address)
{
    enum hoop_status status = hoop_cuda_enter(cuda);
    void *new = NULL;

    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_check(cuda->driver->cuMemHostAlloc(&new, bytes, HOOP_CU_HOST_PORTABLE | HOOP_CU_HOST_DEVICE_MAP),
                             "cuMemHostAlloc", cuda->device.ordinal);
    if (status == HOOP_OK) {
        status = address_of(cuda, new, address);
        if (status != HOOP_OK)
            cuda->driver->cuMemFreeHost(new);
    }
    hoop_cuda_leave(cuda);
    if (status == HOOP_OK)
        *memory = new;
    return status;
}

enum hoop_status hoop_cuda_host_free(const struct hoop_cuda *cuda, void *memory)
{
    enum hoop_status status = hoop_cuda_enter(cuda);

    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_check(cuda->driver->cuMemFreeHost(memory), "cuMemFreeHost", cuda->device.ordinal);
    hoop_cuda_leave(cuda);
    return status;
}

/* ---- registration ---- */

/* The place in the list of what overlaps the range; *place is NULL if nothing does. The lock is held. */
static struct registration **overlapping(uintptr_t start, size_t bytes)
{
    struct registration **place = &registrations;

    while (*place && !(start < (*place)->start + (*place)->bytes && (*place)->start < start + bytes))
        place = &(*place)->next;
    return place;
}

/* The device's context is current, the lock is held. */
static enum hoop_status register_first(const struct hoop_cuda *cuda, void *memory, size_t bytes,
                                       struct registration **registration)
{
    struct registration *new = hoop_calloc(1, sizeof *new);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    const enum hoop_status status =
        hoop_cuda_check(cuda->driver->cuMemHostRegister(memory, bytes, HOOP_CU_HOST_PORTABLE | HOOP_CU_HOST_DEVICE_MAP),
                        "cuMemHostRegister", cuda->device.ordinal);
    if (status != HOOP_OK) {
        hoop_free(new);
        return status;
    }
    *new = (struct registration){registrations, (uintptr_t)memory, bytes, 0};
    registrations = *registration = new;
    return HOOP_OK;
}

/* As both below: one use less, and none ends the registration. */
static enum hoop_status drop(const struct hoop_cuda *cuda, struct registration **place)
{
    struct registration *one = *place;

    if (--one->uses > 0)
        return HOOP_OK;
    *place = one->next;
    const enum hoop_status status = hoop_cuda_check(cuda->driver->cuMemHostUnregister((void *)one->start),
                                                    "cuMemHostUnregister", cuda->device.ordinal);
    hoop_free(one);
    return status;
}

static enum hoop_status register_locked(const struct hoop_cuda *cuda, void *memory, size_t bytes,
                                        hoop_cu_address *address)
{
    struct registration **place = overlapping((uintptr_t)memory, bytes), *one = *place;
    enum hoop_status status = HOOP_OK;

    if (one && (one->start != (uintptr_t)memory || one->bytes != bytes))
        return hoop_fail(HOOP_ERR_ARG,
                         "%zu bytes at %p overlap %zu bytes at %p, which are registered with CUDA already", bytes,
                         memory, one->bytes, (void *)one->start);
    if (one == NULL) {
        status = register_first(cuda, memory, bytes, &one);
        place = &registrations;
    }
    if (status != HOOP_OK)
        return status;
    one->uses++;
    status = address_of(cuda, memory, address);
    if (status != HOOP_OK)
        drop(cuda, place);
    return status;
}

enum hoop_status hoop_cuda_host_register(const struct hoop_cuda *cuda, void *memory, size_t bytes,
                                         hoop_cu_address *address)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (bytes == 0 || bytes % page || (uintptr_t)memory % page || bytes > UINTPTR_MAX - (uintptr_t)memory)
        return hoop_fail(HOOP_ERR_ARG, "%zu bytes at %p are no whole pages", bytes, memory);
    if (!cuda->device.host_register)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "CUDA device %d (%s) cannot reach registered host memory",
                         cuda->device.ordinal, cuda->device.name);
    enum hoop_status status = hoop_cuda_enter(cuda);
    if (status != HOOP_OK)
        return status;
    pthread_mutex_lock(&lock);
    status = register_locked(cuda, memory, bytes, address);
    pthread_mutex_unlock(&lock);
    hoop_cuda_leave(cuda);
    return status;
}

enum hoop_status hoop_cuda_host_unregister(const struct hoop_cuda *cuda, void *memory)
{
    enum hoop_status status = hoop_cuda_enter(cuda);

    if (status != HOOP_OK)
        return status;
    pthread_mutex_lock(&lock);
    struct registration **place = overlapping((uintptr_t)memory, 1);
    if (*place == NULL || (*place)->start != (uintptr_t)memory)
        status = hoop_fail(HOOP_ERR_ARG, "%p is not the start of memory that was registered with CUDA", memory);
    else
        status = drop(cuda, place);
    pthread_mutex_unlock(&lock);
    hoop_cuda_leave(cuda);
    return status;
}
