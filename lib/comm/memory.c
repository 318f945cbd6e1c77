// SPDX-License-Identifier: BSD-3-Clause
/* Memory that the library hands out, on the host or on the rank's device, and copies between the two. */
#include <string.h>

#include "comm/comm.h"
#include "comm/device.h"

static enum hoop_status check_request(struct hoop_comm *comm, const char *what, void *const *buffer, size_t bytes)
{
    const enum hoop_status status = hoop_comm_usable(comm, what);

    if (status != HOOP_OK)
        return status;
    if (buffer == NULL || bytes == 0)
        return hoop_fail(HOOP_ERR_ARG, "%s: %s", what, buffer ? "0 bytes were asked for" : "buffer is NULL");
    return HOOP_OK;
}

enum hoop_status hoop_mem_alloc(struct hoop_comm *comm, void **buffer, size_t bytes)
{
    const enum hoop_status status = check_request(comm, "hoop_mem_alloc", buffer, bytes);

    if (status != HOOP_OK)
        return status;
#ifdef HOOP_CUDA
    if (comm->device)
        return hoop_device_take(comm, bytes, buffer);
#endif
    return hoop_heap_take(comm->heap, bytes, buffer);
}

enum hoop_status hoop_mem_alloc_host(struct hoop_comm *comm, void **buffer, size_t bytes)
{
    const enum hoop_status status = check_request(comm, "hoop_mem_alloc_host", buffer, bytes);

    return status == HOOP_OK ? hoop_heap_take(comm->heap, bytes, buffer) : status;
}

enum hoop_status hoop_mem_free(struct hoop_comm *comm, void *buffer)
{
    if (comm == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_mem_free: the communicator is NULL");
    if (comm->forks != hoop_comm_forks())
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "hoop_mem_free: this process was forked; the buffer is its parent's");
    if (buffer == NULL)
        return HOOP_OK;
#ifdef HOOP_CUDA
    if (comm->device) {
        const enum hoop_status status = hoop_device_give(comm, buffer);
        if (status != HOOP_AGAIN)
            return status;
    }
#endif
    return hoop_heap_give(comm->heap, buffer);
}

enum hoop_status hoop_mem_copy(struct hoop_comm *comm, void *to, const void *from, size_t bytes)
{
    if (comm == NULL || (bytes > 0 && (to == NULL || from == NULL)))
        return hoop_fail(HOOP_ERR_ARG, "hoop_mem_copy: %s is NULL", comm == NULL ? "comm" : to == NULL ? "to" : "from");
    if (comm->forks != hoop_comm_forks())
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "hoop_mem_copy: this process was forked after the communicator was made");
    if (bytes == 0)
        return HOOP_OK;
#ifdef HOOP_CUDA
    if (comm->device)
        return hoop_device_copy(comm, to, from, bytes);
#endif
    memmove(to, from, bytes);
    return HOOP_OK;
}

enum hoop_status hoop_comm_device(const struct hoop_comm *comm, int *ordinal)
{
    if (comm == NULL || ordinal == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_device: %s is NULL", comm ? "ordinal" : "comm");
    *ordinal = -1;
#ifdef HOOP_CUDA
    if (comm->device)
        *ordinal = comm->device->cuda->device.ordinal;
#endif
    return HOOP_OK;
}
