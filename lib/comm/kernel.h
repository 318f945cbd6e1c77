// SPDX-License-Identifier: BSD-3-Clause
/* Calls on device memory as kernels that run the plans themselves. See kernel.c and kernel_call.c. */
#ifndef HOOP_COMM_KERNEL_H
#define HOOP_COMM_KERNEL_H

#include "comm/comm.h"
#include "exec/cuda.h"

struct hoop_kernels {
    struct hoop_comm *comm;
    struct hoop_cuda *cuda;
    struct hoop_cuda_exec *exec;
    const struct hoop_device_report *report; /* of exec */
    hoop_cu_event before, ended;             /* on the default stream; behind the last call */
    pthread_t watch;
    bool watched;
    pthread_mutex_t gate; /* held while a call is launched */
    bool closed;          /* under the gate: the communicator is dead, nothing more is launched */
    _Atomic bool closing;
    /* the watching thread's own */
    struct hoop_wait wait; /* of the kernels, which stand still */
    uint64_t seen;         /* where they stood */
};

/* Load the code and take what launches need, before the links are there.
 * Errors: HOOP_ERR_UNSUPPORTED (no code for the device, or it holds too few lanes: says why), HOOP_ERR_MEMORY, the driver's. */
enum hoop_status hoop_kernels_new(struct hoop_comm *comm);

/* Agreed with all ranks: the least of device->channels. Blocks of the device that are not needed are free for other communicators. */
void hoop_kernels_set_channels(struct hoop_kernels *kernels, int channels);

/* The links are there (device->links): begin to watch.   Errors: HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM, the driver's. */
enum hoop_status hoop_kernels_start(struct hoop_comm *comm);

/* Wait until what was launched has ended; on a dead communicator tell it to give up. No stream is waited for otherwise. */
void hoop_kernels_drain(struct hoop_kernels *kernels);
void hoop_kernels_free(struct hoop_kernels *kernels);

/* The communicator has failed: wait until no living peer's kernels can still read what was lent to them, for a bounded time. NULL is
 * allowed. */
void hoop_kernels_let_go(const struct hoop_kernels *kernels);

/* What kernels of this rank have reported so far becomes the verdict; a kernel may have given up and ended before the thread that watches
 * has seen why. Threads: any. */
void hoop_kernels_look(const struct hoop_kernels *kernels);

/* Has a kernel of this rank received another message than it expected? Says which as the thread's last error; HOOP_OK: none has. */
enum hoop_status hoop_kernels_pair(const struct hoop_kernels *kernels);

/* Does the call run as a kernel? The same on all ranks. */
bool hoop_kernels_take(const struct hoop_comm_call *call);

/* For people: what does not run as kernels although there are some, what they do not read in place, and why; ends with NUL. Returns as
 * snprintf. */
size_t hoop_kernels_tell(const struct hoop_comm *comm, char *text, size_t size);

/* Put such a call, which has the turn, into the stream.
 * Errors: those of the public calls; concluded. */
enum hoop_status hoop_kernels_launch(const struct hoop_comm_call *call, hoop_cu_stream stream);

/* The same on the communicator's own stream, behind the default stream; returns with the result. */
enum hoop_status hoop_kernels_run(const struct hoop_comm_call *call);

/* ---- what both are made of; errors: concluded ---- */

/* Something that has the turn and gives launches to a stream. */
typedef enum hoop_status (*hoop_kernels_job)(struct hoop_kernels *kernels, const void *data, hoop_cu_stream stream);
enum hoop_status hoop_kernels_give(struct hoop_comm *comm, const char *what, hoop_kernels_job job, const void *data,
                                   hoop_cu_stream stream);

/* What is given to the communicator's own stream from now on comes behind the default stream; wait for all that was given to it. */
enum hoop_status hoop_kernels_begin(struct hoop_comm *comm, bool behind_default);
enum hoop_status hoop_kernels_await(struct hoop_comm *comm);

#endif
