// SPDX-License-Identifier: BSD-3-Clause
/* What a call's buffers are, and which way it goes.
 *
 * All buffers of a call are of one kind: host memory, which here is all that the host can read (pinned and managed memory, too), or
 * memory of the rank's device. The kind is part of the call, so that ranks that differ get an error before any data moves.
 * The stream goes with it: a host stream with host memory, a CUDA stream, passed as it is, with device memory. A call without any
 * bytes is of the kind of its stream.
 */
#include "comm/device_call.h"

#include <string.h>

#include "base/alloc.h"
#include "comm/device.h"
#include "comm/device_copy.h"
#include "comm/device_team.h"
#include "comm/kernel.h"
#include "comm/messages.h"
#include "comm/stage.h"
#include "comm/uneven.h"
#include "exec/stream.h"
#include "mem/cuda.h"

static const char *name_of(const struct hoop_comm_call *call)
{
    if ((int)call->coll == HOOP_POINT_SEND)
        return "send";
    if ((int)call->coll == HOOP_POINT_RECV)
        return "recv";
    if (call->blocks)
        return call->coll == HOOP_ALL_GATHER ? "all_gatherv" : "all_to_allv";
    return hoop_coll_name(call->coll);
}

/* ---- buffers ---- */

enum kind { NO_MEMORY, HOST_MEMORY, DEVICE_MEMORY };

/* Does the buffer hold anything, as far as this rank knows? */
static void used(const struct hoop_comm_call *call, bool *in, bool *out)
{
    size_t in_bytes, out_bytes;

    if (call->blocks) {
        *in = call->in != NULL;
        *out = call->out != NULL;
        return;
    }
    hoop_call_held(call, &in_bytes, &out_bytes);
    *in = in_bytes > 0;
    *out = out_bytes > 0;
}

/* own: memory of a pool or mapped by its program, which other devices do not reach. */
static enum hoop_status kind_of(const struct hoop_comm_call *call, const char *which, const void *buffer,
                                enum kind *kind, bool *own)
{
    const struct hoop_cuda *cuda = call->comm->device->cuda;
    struct hoop_cuda_memory memory;

    const enum hoop_status status = hoop_cuda_classify(cuda->driver, buffer, &memory);
    if (status != HOOP_OK)
        return status;
    *kind = memory.kind == HOOP_CUDA_DEVICE ? DEVICE_MEMORY : HOST_MEMORY;
    *own = !memory.ipc;
    if (*kind == DEVICE_MEMORY && memory.ordinal != cuda->device.ordinal)
        return hoop_fail(HOOP_ERR_ARG,
                         "%s: the %s buffer is memory of device %d, but rank %d of the communicator uses device %d; "
                         "allocate it there, or make the communicator with HOOP_DEVICE=cuda:%d",
                         name_of(call), which, memory.ordinal, call->comm->rank, cuda->device.ordinal, memory.ordinal);
    return HOOP_OK;
}

static enum hoop_status kind_of_call(struct hoop_comm_call *call, enum kind *kind)
{
    static const char *const names[] = {"no memory", "host memory", "device memory"};
    enum kind in = NO_MEMORY, out = NO_MEMORY;
    enum hoop_status status = HOOP_OK;
    bool in_used, out_used;

    used(call, &in_used, &out_used);
    if (in_used)
        status = kind_of(call, "send", call->in, &in, &call->in_own);
    if (status == HOOP_OK && out_used && call->out == call->in && in_used) {
        out = in;
        call->out_own = call->in_own;
    } else if (status == HOOP_OK && out_used)
        status = kind_of(call, "receive", call->out, &out, &call->out_own);
    if (status != HOOP_OK)
        return status;
    if (in != NO_MEMORY && out != NO_MEMORY && in != out)
        return hoop_fail(HOOP_ERR_ARG,
                         "%s: the send buffer is %s and the receive buffer is %s; both must be of one kind",
                         name_of(call), names[in], names[out]);
    *kind = in != NO_MEMORY ? in : out;
    return HOOP_OK;
}

/* ---- streams ---- */

static bool runs_as_kernel(const struct hoop_comm_call *call)
{
    return hoop_kernels_take(call) || ((int)call->coll > HOOP_COLLS && hoop_messages_take(call->comm));
}

static enum hoop_status check_cuda_stream(const struct hoop_comm_call *call, hoop_stream *stream)
{
    const struct hoop_cuda *cuda = call->comm->device->cuda;
    hoop_cu_stream theirs = (hoop_cu_stream)(void *)stream;
    bool capturing = false;
    int ordinal = cuda->device.ordinal;

    /* the first handles are no pointers: default streams, of whatever device is current */
    enum hoop_status status = (uintptr_t)stream <= HOOP_CU_STREAM_PER_THREAD
                                  ? HOOP_OK
                                  : hoop_cuda_stream_device(cuda->driver, theirs, &ordinal);
    if (status != HOOP_OK)
        return status;
    if (ordinal != cuda->device.ordinal)
        return hoop_fail(HOOP_ERR_ARG,
                         "%s: the stream belongs to device %d, but rank %d of the communicator uses device %d; give a "
                         "stream of that device",
                         name_of(call), ordinal, call->comm->rank, cuda->device.ordinal);
    status = hoop_cuda_stream_capturing(cuda, theirs, &capturing);
    if (status == HOOP_OK && capturing && !runs_as_kernel(call))
        status = hoop_fail(HOOP_ERR_UNSUPPORTED,
                           "%s: the stream is being captured into a graph, but this call is staged "
                           "through the host, or made by copies (hoop_explain says which); call outside of the capture",
                           name_of(call));
    if (status == HOOP_OK && capturing && hoop_device_team_waits(call->comm))
        status =
            hoop_fail(HOOP_ERR_UNSUPPORTED,
                      "%s: the stream is being captured into a graph, but rank %d shares its GPU with others, whose "
                      "kernels are launched together; call outside of the capture, or give each rank a GPU",
                      name_of(call), call->comm->rank);
    return status;
}

enum hoop_status hoop_device_look(struct hoop_comm_call *call, hoop_stream *stream)
{
    const bool host_stream = stream && hoop_stream_is_host(stream);
    enum kind kind = NO_MEMORY;

    enum hoop_status status = kind_of_call(call, &kind);
    if (status != HOOP_OK)
        return status;
    if (kind == NO_MEMORY)
        kind = stream && !host_stream ? DEVICE_MEMORY : HOST_MEMORY;
    call->device = kind == DEVICE_MEMORY;
    if (stream == NULL || host_stream == (kind == HOST_MEMORY))
        return call->device && stream ? check_cuda_stream(call, stream) : HOOP_OK;
    if (host_stream)
        return hoop_fail(HOOP_ERR_ARG,
                         "%s: the buffers are device memory, but the stream is one of hoop_stream_create; give a CUDA "
                         "stream as it is, cast to hoop_stream *, or NULL",
                         name_of(call));
    return hoop_fail(HOOP_ERR_ARG,
                     "%s: the buffers are host memory, but the stream is no living stream of hoop_stream_create; a "
                     "CUDA stream goes with device memory only",
                     name_of(call));
}

/* ---- ways ---- */

void hoop_device_let_go(const struct hoop_comm *comm)
{
    if (comm->device)
        hoop_kernels_let_go(comm->device->kernels);
}

void hoop_device_notice(const struct hoop_comm *comm)
{
    if (comm->device && comm->device->kernels)
        hoop_kernels_look(comm->device->kernels);
}

enum hoop_status hoop_device_pair(const struct hoop_comm *comm)
{
    return comm->device && comm->device->kernels ? hoop_kernels_pair(comm->device->kernels) : HOOP_OK;
}

/* The messages among the calls, together. */
static enum hoop_status run_messages(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls)
{
    size_t messages = 0;
    struct hoop_comm_call *all = hoop_calloc(calls, sizeof *all);

    if (all == NULL)
        return hoop_comm_conclude(comm, HOOP_ERR_MEMORY);
    for (size_t i = 0; i < calls; i++)
        if ((int)call[i].coll > HOOP_COLLS)
            all[messages++] = call[i];
    const enum hoop_status status = messages == 0              ? HOOP_OK
                                    : hoop_messages_take(comm) ? hoop_messages_run(comm, all, messages)
                                                               : hoop_stage_run(comm, all, messages);
    hoop_free(all);
    return status;
}

/* The calls of a group in their order, each by its way; then the messages. */
enum hoop_status hoop_device_run(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls)
{
    enum hoop_status status = HOOP_OK;
    size_t unstaged = 0;

    for (size_t i = 0; i < calls; i++)
        unstaged += call[i].device && (hoop_kernels_take(&call[i]) || hoop_copies_take(&call[i]));
    if (unstaged == 0 && !hoop_messages_take(comm))
        return hoop_stage_run(comm, call, calls);
    for (size_t i = 0; i < calls && status == HOOP_OK; i++)
        if ((int)call[i].coll <= HOOP_COLLS)
            status = !call[i].device               ? hoop_comm_run_calls(comm, &call[i], 1)
                     : hoop_kernels_take(&call[i]) ? hoop_kernels_run(&call[i])
                     : hoop_copies_take(&call[i])  ? hoop_copies_run(&call[i], true)
                                                   : hoop_stage_run(comm, &call[i], 1);
    return status == HOOP_OK ? run_messages(comm, call, calls) : status;
}

/* A part of a batch that is staged. */
static enum hoop_status submit_staged(const struct hoop_comm_batch *batch, const struct hoop_comm_call *call,
                                      size_t calls)
{
    struct hoop_comm *comm = batch->comm;
    struct hoop_comm_batch *part = hoop_calloc(1, sizeof *part + calls * sizeof *part->call);

    if (calls == 0) {
        hoop_free(part);
        return HOOP_OK;
    }
    const uint64_t ticket = comm->issued++;
    if (part == NULL)
        return hoop_comm_refuse(comm, HOOP_ERR_MEMORY);
    *part =
        (struct hoop_comm_batch){.comm = comm, .stream = batch->stream, .cuda = true, .ticket = ticket, .calls = calls};
    memcpy(part->call, call, calls * sizeof *call);
    enum hoop_status status = hoop_stage_submit(part);
    if (status != HOOP_OK)
        status = hoop_comm_refuse(comm, status);
    hoop_free(part);
    return status;
}

static enum hoop_status submit_kernel(const struct hoop_comm_batch *batch, const struct hoop_comm_call *call)
{
    struct hoop_comm *comm = batch->comm;
    const uint64_t ticket = comm->issued++;

    hoop_comm_wait_for_turn(comm, ticket);
    const enum hoop_status status = hoop_kernels_launch(call, (hoop_cu_stream)(void *)batch->stream);
    hoop_comm_end_turn(comm, ticket);
    return status;
}

static enum hoop_status submit_messages(const struct hoop_comm_batch *batch, const struct hoop_comm_call *call,
                                        size_t calls)
{
    struct hoop_comm *comm = batch->comm;

    if (!hoop_messages_take(comm) || calls == 0)
        return submit_staged(batch, call, calls);
    const uint64_t ticket = comm->issued++;
    hoop_comm_wait_for_turn(comm, ticket);
    const enum hoop_status status = hoop_messages_launch(comm, call, calls, (hoop_cu_stream)(void *)batch->stream);
    hoop_comm_end_turn(comm, ticket);
    return status;
}

enum hoop_status hoop_device_submit(struct hoop_comm_batch *batch)
{
    enum hoop_status status = HOOP_OK;
    size_t messages = 0;

    for (size_t i = 0; i < batch->calls && status == HOOP_OK; i++)
        if ((int)batch->call[i].coll > HOOP_COLLS)
            batch->call[messages++] = batch->call[i]; /* behind the collectives */
        else
            status = hoop_kernels_take(&batch->call[i]) ? submit_kernel(batch, &batch->call[i])
                                                        : submit_staged(batch, &batch->call[i], 1);
    return status == HOOP_OK ? submit_messages(batch, batch->call, messages) : status;
}
