// SPDX-License-Identifier: BSD-3-Clause
/* Persistent handles: a call whose arguments have been checked, kept to be started again and again.
 *
 * A handle is known to its communicator, which tells it when it is destroyed, so that a handle that outlives it gives an error.
 * What is started is a copy: the handle may be freed at once.
 */
#include "base/alloc.h"
#include "comm/uneven.h"

struct hoop_handle {
    struct hoop_comm_call call; /* comm NULL: it was destroyed */
    hoop_stream *stream;
    struct hoop_handle *next, **back; /* in the communicator's list */
};

enum hoop_status hoop_handle_new(struct hoop_handle **handle, const struct hoop_comm_call *call, hoop_stream *stream)
{
    struct hoop_comm *comm = call->comm;

    if (handle == NULL)
        return hoop_fail(HOOP_ERR_ARG, "%s%s_init: handle is NULL", hoop_coll_name(call->coll),
                         call->blocks ? "v" : "");
    struct hoop_handle *new = hoop_calloc(1, sizeof *new);
    if (new == NULL)
        return HOOP_ERR_MEMORY;
    hoop_blocks_keep(call->blocks);
    *new = (struct hoop_handle){.call = *call, .stream = stream, .next = comm->handles, .back = &comm->handles};
    if (new->next)
        new->next->back = &new->next;
    comm->handles = new;
    *handle = new;
    return HOOP_OK;
}

void hoop_handle_orphan_all(struct hoop_comm *comm)
{
    for (struct hoop_handle *handle = comm->handles; handle; handle = handle->next)
        handle->call.comm = NULL;
    comm->handles = NULL;
}

bool hoop_handle_uses(const struct hoop_comm *comm, enum hoop_op op)
{
    for (const struct hoop_handle *handle = comm->handles; handle; handle = handle->next)
        if (handle->call.op == op)
            return true;
    return false;
}

enum hoop_status hoop_start(struct hoop_handle *handle)
{
    if (handle == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_start: the handle is NULL");
    if (handle->call.comm == NULL)
        return hoop_fail(
            HOOP_ERR_ARG,
            "hoop_start: the communicator of this handle of %s%s was destroyed; free the handle, and make one "
            "on a living communicator",
            hoop_coll_name(handle->call.coll), handle->call.blocks ? "v" : "");
    enum hoop_status status = handle->stream || handle->call.blocks ? HOOP_AGAIN : hoop_again_run(&handle->call);
    if (status != HOOP_AGAIN)
        return status;
    status = hoop_comm_usable(handle->call.comm, "hoop_start");
    return status == HOOP_OK ? hoop_comm_submit(&handle->call, handle->stream) : status;
}

enum hoop_status hoop_handle_free(struct hoop_handle *handle)
{
    if (handle == NULL)
        return HOOP_OK;
    if (handle->call.comm) {
        *handle->back = handle->next;
        if (handle->next)
            handle->next->back = handle->back;
    }
    hoop_blocks_drop(handle->call.blocks);
    hoop_free(handle);
    return HOOP_OK;
}
