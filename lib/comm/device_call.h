// SPDX-License-Identifier: BSD-3-Clause
/* Calls on a communicator whose rank has a device: what their buffers are, and which way they go. See device_call.c. */
#ifndef HOOP_COMM_DEVICE_CALL_H
#define HOOP_COMM_DEVICE_CALL_H

#include "comm/comm.h"

#ifdef HOOP_CUDA

/* Look at the buffers and the stream of a checked call; fills in call->device.
 * Errors: HOOP_ERR_ARG (buffers of two kinds or of another device, or a stream that does not go with them), HOOP_ERR_UNSUPPORTED
 * (the stream is being captured, and calls are staged). Nothing has happened then. */
enum hoop_status hoop_device_look(struct hoop_comm_call *call, hoop_stream *stream);

/* Run calls that have the turn, some of them on device memory, and return when the results are there.
 * Errors: those of the public calls; concluded. */
enum hoop_status hoop_device_run(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls);

/* Put a batch into its CUDA stream; it has its ticket and stays the caller's. Errors: the turn will not be taken. */
enum hoop_status hoop_device_submit(struct hoop_comm_batch *batch);

/* The communicator has failed: wait until no living peer can still read this rank's device memory, for a bounded time. Keeps the
 * thread's last error. */
void hoop_device_let_go(const struct hoop_comm *comm);

/* What kernels of this rank have reported so far becomes the verdict. Threads: any. */
void hoop_device_notice(const struct hoop_comm *comm);

/* HOOP_ERR_MISMATCH: a kernel of this rank has received another message than it expected; the thread's last error says which. HOOP_OK: none
 * has. */
enum hoop_status hoop_device_pair(const struct hoop_comm *comm);

#else /* no communicator has a device */

static inline void hoop_device_notice(const struct hoop_comm *comm)
{
    (void)comm;
}

static inline enum hoop_status hoop_device_pair(const struct hoop_comm *comm)
{
    (void)comm;
    return HOOP_OK;
}

static inline void hoop_device_let_go(const struct hoop_comm *comm)
{
    (void)comm;
}

static inline enum hoop_status hoop_device_look(struct hoop_comm_call *call, hoop_stream *stream)
{
    (void)stream;
    call->device = false;
    return HOOP_OK;
}

static inline enum hoop_status hoop_device_run(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls)
{
    (void)call;
    (void)calls;
    return hoop_comm_conclude(comm, HOOP_ERR_INTERNAL);
}

static inline enum hoop_status hoop_device_submit(struct hoop_comm_batch *batch)
{
    (void)batch;
    return HOOP_ERR_INTERNAL;
}

#endif
#endif
