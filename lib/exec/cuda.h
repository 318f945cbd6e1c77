// SPDX-License-Identifier: BSD-3-Clause
/* Plans on a CUDA device: one launch of the interpreter kernel (device/interp.cu) runs one rank's plan.
 *
 * A communicator has one executor for its device. Making it loads the code and takes all memory that launches need but
 * programs: a plan is uploaded at its first launch and stays. Launches are made on the caller's stream and only enqueue; those of one
 * executor follow each other, also on different streams, since they share the links' counters. Counters and fingerprints advance
 * in device memory, so a launch that a stream capture recorded can be replayed any number of times, in the same order on all ranks.
 *
 * A kernel waits for kernels of other ranks. All blocks of all of them must be resident: hoop_cuda_exec_lanes tells how many lanes
 * the device can hold. Nothing of CUDA that may wait for the device is called here while launches are pending.
 *
 * Each call here makes the device's context current for as long as it lasts. One thread at a time, but for abort, verdict and waits,
 * which any thread may call at any time.
 */
#ifndef HOOP_EXEC_CUDA_H
#define HOOP_EXEC_CUDA_H

#include "exec/cuda_team.h"
#include "exec/program.h"
#include "mem/cuda.h"

struct hoop_cuda_exec;

/* Make it for `ranks` ranks and lanes 0 … lanes - 1 of plans, at most HOOP_DEVICE_PLAN_LANES, behind which come HOOP_DEVICE_MESSAGE_LANES
 * of messages. cuda stays the caller's and must outlive it.
 * Errors: HOOP_ERR_UNSUPPORTED (no device code for this device: says why), HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM. */
enum hoop_status hoop_cuda_exec_new(struct hoop_cuda_exec **exec, struct hoop_cuda *cuda, int ranks, int lanes);

/* Free it; its launches must have ended, since this waits for the device. NULL is allowed. */
void hoop_cuda_exec_free(struct hoop_cuda_exec *exec);

/* Lanes that can be resident on the device at once beside those of all other executors of this process, 0 … lanes: they are kept for
 * this one. */
int hoop_cuda_exec_lanes(const struct hoop_cuda_exec *exec);

/* No more than so many are needed: let others have the rest. */
void hoop_cuda_exec_set_lanes(struct hoop_cuda_exec *exec, int lanes);

/* Name the link to (peer, lane); before the first launch that uses it, once.   Errors: HOOP_ERR_ARG, the driver's. */
enum hoop_status hoop_cuda_exec_connect(struct hoop_cuda_exec *exec, int peer, int lane,
                                        const struct hoop_device_link *link);
bool hoop_cuda_exec_connected(const struct hoop_cuda_exec *exec, int peer, int lane);

/* Launch together with other ranks of this process and device. The team stays the caller's; wait: of the communicator. Before the first
 * launch. */
void hoop_cuda_exec_join(struct hoop_cuda_exec *exec, struct hoop_cuda_team *team, int seat, struct hoop_wait *wait);

/* One call of a rank. Addresses are in the device's context. */
struct hoop_cuda_call {
    const struct hoop_plan *plan;       /* must outlive the executor: its program is kept by this pointer */
    const struct hoop_binding *binding; /* by hoop_bind, with the links' frame */
    enum hoop_type type;
    enum hoop_op op; /* built in; HOOP_AVG adds, the caller divides */
    hoop_cu_address in, out, tmp;
    bool keep_in, keep_out;     /* peers whose links are direct do not reach the buffer under its own address */
    uint32_t in_view, out_view; /* 1 + the buffers' rows of hoop_cuda_exec_view; 0: none */
    uint64_t
        tag; /* of this call by itself, equal on all ranks; the kernel makes it a fingerprint of all calls so far */
    uint64_t number; /* of the call, for reports */
};

/* Enqueue the call.   Blocking: in a team, until all of it have come.   Errors: HOOP_ERR_UNSUPPORTED (more lanes than can be resident, or
 * a binding that only the host runs), HOOP_ERR_MEMORY, HOOP_ERR_ABORTED (in a team: a verdict stands), the driver's. Nothing was
 * enqueued then. */
enum hoop_status hoop_cuda_exec_launch(struct hoop_cuda_exec *exec, const struct hoop_cuda_call *call,
                                       hoop_cu_stream stream);

/* Messages that go on side by side, as one launch. */
struct hoop_cuda_messages {
    const struct hoop_device_message *message; /* those of one peer and kind one behind the other, in their order */
    size_t messages;
    bool ordered; /* they are a collective: on the lanes of plans, in the chain of calls; else on those of messages */
    int parts;    /* most of one message, 1 … the lanes that they are on; equal at both ends */
    uint64_t tag; /* as in a call; all messages that are not ordered have the same one */
    uint64_t number; /* of the call, for reports; 0: none */
};

/* Enqueue the messages; the list is the caller's again on return.   Blocking, errors: as hoop_cuda_exec_launch. */
enum hoop_status hoop_cuda_exec_messages(struct hoop_cuda_exec *exec, const struct hoop_cuda_messages *messages,
                                         hoop_cu_stream stream);

/* What is given to the stream from now on comes behind all launches so far, also those of other streams; and the other way round: launches
 * from now on come behind what the stream was given so far. For what stands around launches and shares memory with them. Nothing while
 * the stream is being captured. */
enum hoop_status hoop_cuda_exec_follow(struct hoop_cuda_exec *exec, hoop_cu_stream stream);
enum hoop_status hoop_cuda_exec_lead(struct hoop_cuda_exec *exec, hoop_cu_stream stream);

/* Say what peers that have opened memory of this rank for themselves have to add to addresses in it, in the order of the stream: shift
 * has one word a rank, HOOP_DEVICE_NOT_SEEN for those that have not. row: 0 … HOOP_CUDA_VIEWS - 1, one for each memory. */
enum { HOOP_CUDA_VIEWS = 64 };
enum hoop_status hoop_cuda_exec_view(struct hoop_cuda_exec *exec, int row, const uint64_t *shift,
                                     hoop_cu_stream stream);

/* Frames that were lent to peers in launches that have ended, and not copied. */
uint64_t hoop_cuda_exec_lent(const struct hoop_cuda_exec *exec);

/* Upload a plan now, that the first launch need not. */
enum hoop_status hoop_cuda_exec_upload(struct hoop_cuda_exec *exec, const struct hoop_plan *plan);

/* Device memory for one of a few uses (TMP, widened inputs, …): at least so many bytes, kept until the executor is freed. A block that
 * has become too small is kept as well, since launches and graphs may use it. */
enum { HOOP_CUDA_MESSAGES = 3, HOOP_CUDA_SCRATCHES = 5 }; /* MESSAGES: the executor's own */
enum hoop_status hoop_cuda_exec_scratch(struct hoop_cuda_exec *exec, int use, size_t bytes, hoop_cu_address *address);

/* Make whoever waits in a kernel give up; for good. */
void hoop_cuda_exec_abort(struct hoop_cuda_exec *exec);

/* What the kernels report, for the functions of program.h; of the executor. Any thread, also while kernels run. */
const struct hoop_device_report *hoop_cuda_exec_report(const struct hoop_cuda_exec *exec);

/* ---- vectors, in stream order; buffers aligned to their elements ---- */

enum hoop_cuda_vector {
    HOOP_CUDA_REDUCE,   /* to = left op right; no right: a copy. count is in bytes */
    HOOP_CUDA_DIVIDE,   /* to = to / ranks */
    HOOP_CUDA_WIDEN,    /* to (F32) = left, of a small type */
    HOOP_CUDA_NARROW,   /* to = left (F32), rounded */
    HOOP_CUDA_MULTIPLY, /* to = left * factor, in the wide type, whose bits `factor` has */
    HOOP_CUDA_FILL,     /* to = the pattern of `seed`, in words of 8 bytes */
    HOOP_CUDA_COMPARE,  /* *report = 1 + the number of a word of `left` that is not the pattern's, if there is one */
    HOOP_CUDA_VECTORS
};

/* Enqueue; blocks 0: as many as keep the device busy. The same bits as the host's kernels (dtype/dtype.h). */
enum hoop_status hoop_cuda_exec_vector(struct hoop_cuda_exec *exec, enum hoop_cuda_vector what,
                                       const struct hoop_device_vector *vector, int blocks, hoop_cu_stream stream);

#endif
