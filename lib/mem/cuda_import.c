// SPDX-License-Identifier: BSD-3-Clause
/* Device memory of other processes, by the driver's IPC handles.
 *
 * Opening is slow, and an allocation should be open once in a process; so all imports are in one list, each with the device for
 * which it was opened and a count. The list is short: peers' buffers of communicators.
 */
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "mem/cuda.h"

struct import {
    struct import *next;
    struct hoop_cuda *cuda;     /* kept open as long as this is */
    struct hoop_cuda_export of; /* offset and bytes: not meant here */
    hoop_cu_address base;
    uint64_t bytes; /* of the allocation */
    int uses;
};

static struct import *imports;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum hoop_status hoop_cuda_export(const struct hoop_cuda *cuda, const void *pointer, struct hoop_cuda_export *export)
{
    const hoop_cu_address address = hoop_cuda_address(pointer);
    struct hoop_cuda_export new = {.offset = 0};
    struct hoop_cuda_memory memory;

    enum hoop_status status = hoop_cuda_classify(cuda->driver, pointer, &memory);
    if (status != HOOP_OK)
        return status;
    if (memory.kind != HOOP_CUDA_DEVICE)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "%p is %s memory: only device memory has a handle for other processes",
                         pointer, hoop_cuda_kind_name(memory.kind));
    if (!memory.ipc)
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "%p is device memory of a pool or of virtual addresses: it has no handle for "
                         "other processes; memory of cudaMalloc, cuMemAlloc or hoop_mem_alloc has one",
                         pointer);
    if (address < memory.base || address - memory.base >= memory.bytes)
        return hoop_fail(HOOP_ERR_INTERNAL, "the driver says that %p is outside of its own allocation", pointer);
    status = hoop_cuda_enter(cuda);
    if (status != HOOP_OK)
        return status;
    status =
        hoop_cuda_check(cuda->driver->cuIpcGetMemHandle(&new.handle, memory.base), "cuIpcGetMemHandle", memory.ordinal);
    hoop_cuda_leave(cuda);
    new.offset = address - memory.base;
    new.bytes = memory.bytes - new.offset;
    new.id = memory.id;
    memcpy(new.uuid, cuda->device.uuid, sizeof new.uuid);
    if (status == HOOP_OK)
        *export = new;
    return status;
}

/* The open import of that allocation, or NULL. The lock is held. */
static struct import *find(const struct hoop_cuda *cuda, const struct hoop_cuda_export *export)
{
    for (struct import *one = imports; one; one = one->next)
        if (one->cuda == cuda && one->of.id == export->id &&
            memcmp(&one->of.handle, &export->handle, sizeof export->handle) == 0)
            return one;
    return NULL;
}

static enum hoop_status open_first(struct hoop_cuda *cuda, const struct hoop_cuda_export *export,
                                   struct import **import)
{
    struct import *new = hoop_calloc(1, sizeof *new);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    enum hoop_status status = hoop_cuda_enter(cuda);
    if (status == HOOP_OK) {
        status = hoop_cuda_check(
            cuda->driver->cuIpcOpenMemHandle(&new->base, export->handle, HOOP_CU_IPC_LAZY_ENABLE_PEER_ACCESS),
            "cuIpcOpenMemHandle", cuda->device.ordinal);
        hoop_cuda_leave(cuda);
    }
    struct hoop_cuda *again = NULL;
    if (status == HOOP_OK)
        status = hoop_cuda_open(cuda->device.ordinal, &again); /* counts: cannot fail, it is open */
    if (status != HOOP_OK) {
        hoop_free(new);
        return status;
    }
    new->cuda = again;
    new->of = *export;
    new->bytes = export->offset + export->bytes;
    new->next = imports;
    imports = *import = new;
    return HOOP_OK;
}

enum hoop_status hoop_cuda_import(struct hoop_cuda *cuda, const struct hoop_cuda_export *export,
                                  hoop_cu_address *address)
{
    enum hoop_status status = HOOP_OK;

    if (export->bytes > UINT64_MAX - export->offset)
        return hoop_fail(HOOP_ERR_ARG, "a handle of another process's memory has an offset beyond all memory");
    pthread_mutex_lock(&lock);
    struct import *one = find(cuda, export);
    if (one == NULL)
        status = open_first(cuda, export, &one);
    if (status == HOOP_OK && export->offset >= one->bytes)
        status = hoop_fail(HOOP_ERR_ARG, "a handle of another process's memory has an offset outside of it");
    if (status == HOOP_OK) {
        one->uses++;
        *address = one->base + export->offset;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static enum hoop_status close_last(struct import **place)
{
    struct import *one = *place;
    struct hoop_cuda *cuda = one->cuda;

    *place = one->next;
    enum hoop_status status = hoop_cuda_enter(cuda);
    if (status == HOOP_OK) {
        status =
            hoop_cuda_check(cuda->driver->cuIpcCloseMemHandle(one->base), "cuIpcCloseMemHandle", cuda->device.ordinal);
        hoop_cuda_leave(cuda);
    }
    hoop_cuda_close(cuda);
    hoop_free(one);
    return status;
}

enum hoop_status hoop_cuda_import_end(struct hoop_cuda *cuda, hoop_cu_address address)
{
    enum hoop_status status = HOOP_OK;
    struct import **place = &imports;

    pthread_mutex_lock(&lock);
    while (*place &&
           !((*place)->cuda == cuda && address >= (*place)->base && address - (*place)->base < (*place)->bytes))
        place = &(*place)->next;
    if (*place == NULL)
        status = hoop_fail(HOOP_ERR_ARG, "%#llx is no address in another process's memory that is open here", address);
    else if (--(*place)->uses == 0)
        status = close_last(place);
    pthread_mutex_unlock(&lock);
    return status;
}
