// SPDX-License-Identifier: BSD-3-Clause
/* Device memory: whole allocations, and blocks that are mapped page by page.
 *
 * A thread that captures a graph may not allocate, and neither may others while it captures in the strictest mode, unless they
 * say that they know what they do. The calls here touch no captured stream, so they say it.
 */
#include <string.h>

#include "mem/cuda.h"

/* Enter the context with that said; `mode` is the thread's own, for end. */
static enum hoop_status begin(const struct hoop_cuda *cuda, hoop_cu_capture_mode *mode)
{
    *mode = HOOP_CU_CAPTURE_RELAXED;
    const enum hoop_status status = hoop_cuda_enter(cuda);
    if (status == HOOP_OK)
        cuda->driver->cuThreadExchangeStreamCaptureMode(mode);
    return status;
}

static void end(const struct hoop_cuda *cuda, hoop_cu_capture_mode mode)
{
    cuda->driver->cuThreadExchangeStreamCaptureMode(&mode);
    hoop_cuda_leave(cuda);
}

static enum hoop_status no_memory(const struct hoop_cuda *cuda, hoop_cu_result result, const char *call, size_t bytes)
{
    size_t left = 0, total = 0;

    if (result != HOOP_CU_OUT_OF_MEMORY || cuda->driver->cuMemGetInfo(&left, &total) != HOOP_CU_SUCCESS)
        return hoop_cuda_check(result, call, cuda->device.ordinal);
    return hoop_fail(HOOP_ERR_MEMORY, "CUDA device %d (%s) has no %zu bytes left: %zu of %zu are free",
                     cuda->device.ordinal, cuda->device.name, bytes, left, total);
}

enum hoop_status hoop_cuda_alloc(const struct hoop_cuda *cuda, size_t bytes, hoop_cu_address *address)
{
    hoop_cu_capture_mode mode;
    enum hoop_status status = begin(cuda, &mode);

    if (status != HOOP_OK)
        return status;
    const hoop_cu_result result = cuda->driver->cuMemAlloc(address, bytes);
    if (result != HOOP_CU_SUCCESS)
        status = no_memory(cuda, result, "cuMemAlloc", bytes);
    end(cuda, mode);
    return status;
}

enum hoop_status hoop_cuda_free(const struct hoop_cuda *cuda, hoop_cu_address address)
{
    hoop_cu_capture_mode mode;
    enum hoop_status status = begin(cuda, &mode);

    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_check(cuda->driver->cuMemFree(address), "cuMemFree", cuda->device.ordinal);
    end(cuda, mode);
    return status;
}

/* ---- blocks ---- */

static hoop_cu_memory_properties properties_of(const struct hoop_cuda *cuda)
{
    return (hoop_cu_memory_properties){.type = HOOP_CU_ALLOCATION_PINNED,
                                       .handle_types = HOOP_CU_HANDLE_POSIX_FD,
                                       .location = {HOOP_CU_LOCATION_DEVICE, cuda->device.ordinal}};
}

static enum hoop_status blocks_usable(const struct hoop_cuda *cuda)
{
    return cuda->device.posix_fd
               ? HOOP_OK
               : hoop_fail(HOOP_ERR_UNSUPPORTED,
                           "CUDA device %d (%s) has no memory that can be passed as a file descriptor",
                           cuda->device.ordinal, cuda->device.name);
}

/* Give the block's memory an address where this device may use it. What was made is undone by block_undo. */
static enum hoop_status map(const struct hoop_cuda *cuda, struct hoop_cuda_block *block)
{
    const struct hoop_cuda_driver *driver = cuda->driver;
    const hoop_cu_access_of access = {{HOOP_CU_LOCATION_DEVICE, cuda->device.ordinal}, HOOP_CU_ACCESS_READ_WRITE};
    const int ordinal = cuda->device.ordinal;

    enum hoop_status status = hoop_cuda_check(driver->cuMemAddressReserve(&block->address, block->bytes, 0, 0, 0),
                                              "cuMemAddressReserve", ordinal);
    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_check(driver->cuMemMap(block->address, block->bytes, 0, block->memory, 0), "cuMemMap", ordinal);
    if (status == HOOP_OK) {
        status = hoop_cuda_check(driver->cuMemSetAccess(block->address, block->bytes, &access, 1), "cuMemSetAccess",
                                 ordinal);
        if (status != HOOP_OK)
            driver->cuMemUnmap(block->address, block->bytes);
    }
    if (status != HOOP_OK)
        driver->cuMemAddressFree(block->address, block->bytes);
    return status;
}

static enum hoop_status whole_granules(const struct hoop_cuda *cuda, size_t *bytes)
{
    const hoop_cu_memory_properties properties = properties_of(cuda);
    size_t granule = 0;

    const enum hoop_status status =
        hoop_cuda_check(cuda->driver->cuMemGetAllocationGranularity(&granule, &properties, HOOP_CU_GRANULARITY_MINIMUM),
                        "cuMemGetAllocationGranularity", cuda->device.ordinal);
    if (status != HOOP_OK)
        return status;
    if (granule == 0 || *bytes == 0 || *bytes > SIZE_MAX - granule)
        return hoop_fail(HOOP_ERR_ARG, "%zu bytes of device memory were asked for", *bytes);
    *bytes = (*bytes + granule - 1) / granule * granule;
    return HOOP_OK;
}

/* Map what was created or imported; it is given up if that fails. */
static enum hoop_status map_or_release(const struct hoop_cuda *cuda, struct hoop_cuda_block *block)
{
    const enum hoop_status status = map(cuda, block);

    if (status != HOOP_OK)
        cuda->driver->cuMemRelease(block->memory);
    return status;
}

enum hoop_status hoop_cuda_block_alloc(const struct hoop_cuda *cuda, size_t bytes, struct hoop_cuda_block *block)
{
    const hoop_cu_memory_properties properties = properties_of(cuda);
    struct hoop_cuda_block new = {.bytes = bytes};
    hoop_cu_capture_mode mode;
    enum hoop_status status = blocks_usable(cuda);

    if (status == HOOP_OK)
        status = begin(cuda, &mode);
    if (status != HOOP_OK)
        return status;
    status = whole_granules(cuda, &new.bytes);
    if (status == HOOP_OK) {
        const hoop_cu_result result = cuda->driver->cuMemCreate(&new.memory, new.bytes, &properties, 0);
        if (result != HOOP_CU_SUCCESS)
            status = no_memory(cuda, result, "cuMemCreate", new.bytes);
    }
    if (status == HOOP_OK)
        status = map_or_release(cuda, &new);
    end(cuda, mode);
    if (status == HOOP_OK)
        *block = new;
    return status;
}

enum hoop_status hoop_cuda_block_export(const struct hoop_cuda *cuda, const struct hoop_cuda_block *block,
                                        int *descriptor)
{
    enum hoop_status status = hoop_cuda_enter(cuda);
    int new = -1;

    if (status != HOOP_OK)
        return status;
    status =
        hoop_cuda_check(cuda->driver->cuMemExportToShareableHandle(&new, block->memory, HOOP_CU_HANDLE_POSIX_FD, 0),
                        "cuMemExportToShareableHandle", cuda->device.ordinal);
    hoop_cuda_leave(cuda);
    if (status == HOOP_OK)
        *descriptor = new;
    return status;
}

enum hoop_status hoop_cuda_block_import(const struct hoop_cuda *cuda, int descriptor, size_t bytes,
                                        struct hoop_cuda_block *block)
{
    struct hoop_cuda_block new = {.bytes = bytes};
    hoop_cu_capture_mode mode;
    enum hoop_status status = blocks_usable(cuda);

    if (status == HOOP_OK)
        status = begin(cuda, &mode);
    if (status != HOOP_OK)
        return status;
    status = whole_granules(cuda, &new.bytes);
    if (status == HOOP_OK) /* the descriptor travels in the place of the pointer */
        status = hoop_cuda_check(cuda->driver->cuMemImportFromShareableHandle(&new.memory, (void *)(intptr_t)descriptor,
                                                                              HOOP_CU_HANDLE_POSIX_FD),
                                 "cuMemImportFromShareableHandle", cuda->device.ordinal);
    if (status == HOOP_OK)
        status = map_or_release(cuda, &new);
    end(cuda, mode);
    if (status == HOOP_OK)
        *block = new;
    return status;
}

enum hoop_status hoop_cuda_block_free(const struct hoop_cuda *cuda, struct hoop_cuda_block *block)
{
    const int ordinal = cuda->device.ordinal;
    hoop_cu_capture_mode mode;

    if (block->bytes == 0)
        return HOOP_OK;
    enum hoop_status first = begin(cuda, &mode);
    if (first != HOOP_OK)
        return first;
    first = hoop_cuda_check(cuda->driver->cuMemUnmap(block->address, block->bytes), "cuMemUnmap", ordinal);
    const enum hoop_status second =
        hoop_cuda_check(cuda->driver->cuMemAddressFree(block->address, block->bytes), "cuMemAddressFree", ordinal);
    const enum hoop_status third = hoop_cuda_check(cuda->driver->cuMemRelease(block->memory), "cuMemRelease", ordinal);
    end(cuda, mode);
    *block = (struct hoop_cuda_block){0};
    return first != HOOP_OK ? first : second != HOOP_OK ? second : third;
}
