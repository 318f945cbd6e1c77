// SPDX-License-Identifier: BSD-3-Clause
/* Calls that only move data, by copies between devices instead of kernels, from HOOP_COPIES bytes on.
 *
 * A copy engine needs no multiprocessor, but cannot wait for a peer, and must be told addresses. So the ranks meet on the host: each tells
 * where its input is, fetches its parts of the peers' inputs, and waits until all have what they want. In a stream that is the
 * business of the communicator's worker, as with staged calls (stage.c), while the stream is held. If some input is memory that other
 * devices do not reach, that of a pool for example, all take the kernel.
 *
 * Only threads of one process do so. Memory of another process would have to be opened and closed again, and to close it waits for the
 * device, which may wait for us.
 */
#include "comm/device_copy.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/device.h"
#include "comm/kernel.h"

/* What a rank tells after each step. */
struct offer {
    uint64_t address; /* of its input; 0: it has none */
    uint64_t good;    /* 1: nothing stands in the way */
};

struct copies {
    const struct hoop_comm_call *call;
    struct hoop_comm *comm;
    struct hoop_cuda *cuda;
    size_t block;        /* bytes that go from one rank to another */
    struct offer *offer; /* of each rank */
    bool good;           /* all ranks' */
};

bool hoop_copies_take(const struct hoop_comm_call *call)
{
    const struct hoop_comm *comm = call->comm;
    const size_t least = hoop_setting_size(&comm->settings, HOOP_SETTING_COPIES);
    const bool moves = call->coll == HOOP_BROADCAST || call->coll == HOOP_ALL_GATHER || call->coll == HOOP_GATHER ||
                       call->coll == HOOP_SCATTER || (call->coll == HOOP_ALL_TO_ALL && !call->in_place);

    return least > 0 && moves && call->blocks == NULL && comm->ranks > 1 && comm->device && comm->device->kernels &&
           comm->device->one_process && hoop_call_vector(call) * hoop_call_element(call) >= least;
}

/* Does this rank get a part from the peer: *from bytes into the peer's input, *to bytes into its own output? */
static bool gets_from(const struct copies *copies, int peer, size_t *from, size_t *to)
{
    const struct hoop_comm_call *call = copies->call;
    const size_t rank = (size_t)copies->comm->rank;

    *from = *to = 0;
    switch (call->coll) {
    case HOOP_ALL_GATHER:
    case HOOP_GATHER:
        *to = (size_t)peer * copies->block;
        return call->coll == HOOP_ALL_GATHER || copies->comm->rank == call->root;
    case HOOP_ALL_TO_ALL:
        *to = (size_t)peer * copies->block;
        *from = rank * copies->block;
        return true;
    case HOOP_SCATTER:
        *from = rank * copies->block;
        return peer == call->root;
    default:
        return peer == call->root;
    }
}

/* ---- meeting ---- */

static enum hoop_status tell(struct copies *copies, bool good)
{
    struct hoop_comm *comm = copies->comm;
    const struct hoop_comm_call gather = {.comm = comm,
                                          .shown = copies->call,
                                          .coll = HOOP_ALL_GATHER,
                                          .type = HOOP_U8,
                                          .op = HOOP_OPS,
                                          .root = -1,
                                          .in_place = true,
                                          .count = sizeof *copies->offer,
                                          .in = &copies->offer[comm->rank],
                                          .out = copies->offer};

    copies->offer[comm->rank].good = good;
    const enum hoop_status status = hoop_comm_run_part(&gather);
    copies->good = true;
    for (int rank = 0; rank < comm->ranks; rank++)
        copies->good &= copies->offer[rank].good == 1;
    return status;
}

/* Where this rank's input is; false: others do not reach it. */
static bool offer_input(const struct copies *copies)
{
    struct offer *own = &copies->offer[copies->comm->rank];
    struct hoop_cuda_memory memory = {.ipc = false};
    size_t in, out;

    hoop_call_held(copies->call, &in, &out);
    own->address = in > 0 ? hoop_cuda_address(copies->call->in) : 0;
    return in == 0 || (hoop_cuda_classify(copies->cuda->driver, copies->call->in, &memory) == HOOP_OK && memory.ipc);
}

/* ---- copying ---- */

static enum hoop_status fetch(const struct copies *copies)
{
    const struct hoop_comm *comm = copies->comm;
    hoop_cu_stream stream = comm->device->stream;
    enum hoop_status status = HOOP_OK;
    size_t from, to;

    for (int i = 0; i < comm->ranks && status == HOOP_OK; i++) {
        const int peer = (comm->rank + i) % comm->ranks; /* not all from the same one */
        if (copies->offer[peer].address == 0 || !gets_from(copies, peer, &from, &to))
            continue;
        const void *source = (const void *)(uintptr_t)(copies->offer[peer].address + from);
        unsigned char *target = (unsigned char *)copies->call->out + to;
        if (source != target)
            status = hoop_cuda_copy(copies->cuda, target, source, copies->block, stream);
    }
    return status == HOOP_OK ? hoop_cuda_stream_wait(copies->cuda, stream, UINT64_MAX) : status;
}

/* Some rank cannot: the kernel, on the communicator's own stream. */
static enum hoop_status take_kernel(const struct copies *copies)
{
    hoop_cu_stream stream = copies->comm->device->stream;
    const enum hoop_status status = hoop_kernels_launch(copies->call, stream);

    return status == HOOP_OK ? hoop_cuda_stream_wait(copies->cuda, stream, UINT64_MAX) : status;
}

static enum hoop_status follow_default(const struct copies *copies)
{
    const struct hoop_kernels *kernels = copies->comm->device->kernels;
    hoop_cu_stream stream = copies->comm->device->stream;

    enum hoop_status status = hoop_cuda_event_record(copies->cuda, kernels->before, NULL);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_wait_event(copies->cuda, stream, kernels->before);
    return status == HOOP_OK ? hoop_cuda_stream_wait(copies->cuda, stream, UINT64_MAX) : status;
}

/* copies->good says then whether the call was made. */
static enum hoop_status meet_and_fetch(struct copies *copies)
{
    enum hoop_status status = tell(copies, offer_input(copies));

    if (status != HOOP_OK || !copies->good)
        return status;
    status = fetch(copies);
    return status == HOOP_OK ? tell(copies, true) : status; /* nobody reads this rank's input any more */
}

static void note(struct hoop_comm *comm, const struct hoop_comm_call *call)
{
    comm->stats.calls++;
    comm->stats.bytes += hoop_call_vector(call) * hoop_call_element(call);
    snprintf(comm->stats.last_plan, sizeof comm->stats.last_plan, "copies");
}

enum hoop_status hoop_copies_run(const struct hoop_comm_call *call, bool at_once)
{
    struct hoop_comm *comm = call->comm;
    struct copies copies = {
        .call = call, .comm = comm, .cuda = comm->device->cuda, .block = call->count * hoop_call_element(call)};

    enum hoop_status status = hoop_comm_usable(comm, "collective");
    if (status != HOOP_OK)
        return status;
    copies.offer = hoop_calloc((size_t)comm->ranks, sizeof *copies.offer);
    status = copies.offer == NULL ? HOOP_ERR_MEMORY : at_once ? follow_default(&copies) : HOOP_OK;
    if (status == HOOP_OK)
        status = meet_and_fetch(&copies);
    if (status != HOOP_OK)
        status = hoop_comm_conclude(comm, status);
    else if (copies.good)
        note(comm, call);
    else
        status = take_kernel(&copies);
    hoop_free(copies.offer);
    return status;
}
