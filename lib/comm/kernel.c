// SPDX-License-Identifier: BSD-3-Clause
/* Calls as kernels.
 *
 * A call is published and chosen as on the host, and its plan is launched instead of run. The launch takes the turn, not the kernel: turns
 * order the launches, streams the kernels. Kernels carry a fingerprint of their own from call to call, so that ranks which differ are found
 * out where the data meet; the published record is for those who wait on the host.
 *
 * A kernel that waits knows nothing of processes. So a thread looks for it, as long as the communicator lives: a verdict that stands, or
 * a peer that is dead, reaches the kernels through their abort flag, and what a kernel reports becomes the verdict.
 */
#include "comm/kernel.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/device.h"
#include "exec/cuda.h"
#include "health/verdict.h"

enum { LOOK_US = 2000, DRAIN_SECONDS = 30, TMP_SCRATCH = 0 };

struct hoop_kernels {
    struct hoop_comm *comm;
    struct hoop_cuda *cuda;
    struct hoop_cuda_exec *exec;
    hoop_cu_event before, ended; /* on the default stream; behind the last launch */
    pthread_t watch;
    bool watched;
    _Atomic bool closing;
};

/* ---- watching ---- */

/* What a kernel reports is what all get as the verdict. */
static void look(struct hoop_kernels *kernels)
{
    struct hoop_comm *comm = kernels->comm;
    int peer = comm->rank;

    const enum hoop_status status = hoop_cuda_exec_verdict(kernels->exec, &peer);
    if (status == HOOP_ERR_MISMATCH && !hoop_verdict_stands(comm->board)) {
        const int a = peer < comm->rank ? peer : comm->rank, b = peer < comm->rank ? comm->rank : peer;
        hoop_verdict_pass(comm->board, (struct hoop_verdict){HOOP_VERDICT_MISMATCH, a, b, (unsigned)comm->sequence});
    }
    hoop_health_look(comm->board, 0);
}

static void *watch(void *argument)
{
    struct hoop_kernels *kernels = argument;

    while (!atomic_load(&kernels->closing)) {
        look(kernels);
        if (hoop_verdict_stands(kernels->comm->board)) {
            hoop_cuda_exec_abort(kernels->exec);
            hoop_comm_condemned(kernels->comm);
            return NULL;
        }
        usleep(LOOK_US);
    }
    return NULL;
}

/* ---- making ---- */

enum hoop_status hoop_kernels_new(struct hoop_comm *comm)
{
    struct hoop_kernels *new = hoop_calloc(1, sizeof *new);
    const int lanes = comm->lanes - 1; /* as many as a plan may have */

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->comm = comm;
    new->cuda = comm->device->cuda;
    enum hoop_status status = hoop_cuda_exec_new(&new->exec, new->cuda, comm->ranks, lanes);
    if (status == HOOP_OK && hoop_cuda_exec_lanes(new->exec) < lanes)
        status = hoop_fail(HOOP_ERR_UNSUPPORTED,
                           "device %d holds %d lanes at once, but plans may have %d: set HOOP_CHANNELS to fewer",
                           new->cuda->device.ordinal, hoop_cuda_exec_lanes(new->exec), lanes);
    if (status == HOOP_OK)
        status = hoop_cuda_event_create(new->cuda, &new->before);
    if (status == HOOP_OK)
        status = hoop_cuda_event_create(new->cuda, &new->ended);
    if (status != HOOP_OK) {
        hoop_kernels_free(new);
        return status;
    }
    comm->device->kernels = new;
    return HOOP_OK;
}

static enum hoop_status connect_all(struct hoop_kernels *kernels)
{
    const struct hoop_comm *comm = kernels->comm;
    const int lanes = comm->lanes - 1;
    enum hoop_status status = HOOP_OK;

    for (int peer = 0; peer < comm->ranks; peer++)
        for (int lane = 0; lane < lanes && peer != comm->rank && status == HOOP_OK; lane++) {
            struct hoop_link *link = comm->device->links[peer * lanes + lane];
            struct hoop_device_link ends;
            status = link->transport->device(link, &ends);
            if (status == HOOP_OK)
                status = hoop_cuda_exec_connect(kernels->exec, peer, lane, &ends);
        }
    return status;
}

enum hoop_status hoop_kernels_start(struct hoop_comm *comm)
{
    struct hoop_kernels *kernels = comm->device->kernels;
    sigset_t all, old;

    const enum hoop_status status = connect_all(kernels);
    if (status != HOOP_OK)
        return status;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    kernels->watched = pthread_create(&kernels->watch, NULL, watch, kernels) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return kernels->watched ? HOOP_OK : hoop_fail(HOOP_ERR_SYSTEM, "cannot start the thread that watches kernels");
}

void hoop_kernels_drain(struct hoop_kernels *kernels)
{
    const uint64_t deadline = hoop_deadline(DRAIN_SECONDS);

    if (kernels == NULL)
        return;
    while (hoop_cuda_event_query(kernels->cuda, kernels->ended) == HOOP_AGAIN && !hoop_expired(deadline)) {
        if (kernels->comm->error != HOOP_OK)
            hoop_cuda_exec_abort(kernels->exec);
        usleep(100);
    }
}

void hoop_kernels_free(struct hoop_kernels *kernels)
{
    if (kernels == NULL)
        return;
    if (kernels->ended)
        hoop_kernels_drain(kernels);
    atomic_store(&kernels->closing, true);
    if (kernels->watched)
        pthread_join(kernels->watch, NULL);
    hoop_cuda_exec_free(kernels->exec);
    if (kernels->before)
        hoop_cuda_event_destroy(kernels->cuda, kernels->before);
    if (kernels->ended)
        hoop_cuda_event_destroy(kernels->cuda, kernels->ended);
    hoop_free(kernels);
}

/* ---- calls ---- */

/* Small types that are combined in f32 and rounded once, created operators, blocks of different sizes and messages go through the host. */
bool hoop_kernels_take(const struct hoop_comm_call *call)
{
    const struct hoop_comm *comm = call->comm;

    if (comm->device == NULL || !comm->device->kernels || comm->ranks == 1 || (int)call->coll >= HOOP_COLLS ||
        call->blocks || call->op > HOOP_OPS)
        return false;
    return call->op == HOOP_OPS || hoop_type_wide(call->type) == call->type;
}

/* Behind the plan: an average is the sum divided. */
static enum hoop_status divide(struct hoop_kernels *kernels, const struct hoop_comm_call *call, hoop_cu_stream stream)
{
    const bool gets = call->coll != HOOP_REDUCE || call->root == call->comm->rank;
    const struct hoop_device_vector vector = {.to = (uint64_t)(uintptr_t)call->out,
                                              .count = call->count,
                                              .type = (uint32_t)call->type,
                                              .ranks = call->comm->ranks};

    if (call->op != HOOP_AVG || !gets || call->count == 0)
        return HOOP_OK;
    return hoop_cuda_exec_vector(kernels->exec, HOOP_CUDA_DIVIDE, &vector, 0, stream);
}

static enum hoop_status launch(struct hoop_kernels *kernels, const struct hoop_comm_call *call, hoop_cu_stream stream)
{
    struct hoop_comm *comm = call->comm;
    struct hoop_binding binding;
    const struct hoop_plan *plan = NULL;
    struct hoop_cuda_call run;
    hoop_cu_address tmp = 0;

    enum hoop_status status = hoop_comm_plan(call, &plan, &binding);
    if (status == HOOP_OK && binding.tmp_bytes > 0)
        status = hoop_cuda_exec_scratch(kernels->exec, TMP_SCRATCH, binding.tmp_bytes, &tmp);
    if (status != HOOP_OK)
        return status;
    run = (struct hoop_cuda_call){.plan = plan,
                                  .binding = &binding,
                                  .type = call->type == HOOP_TYPES ? HOOP_U8 : call->type,
                                  .op = hoop_op_is_builtin(call->op) ? call->op : HOOP_SUM,
                                  .in = hoop_cuda_address(call->in),
                                  .out = hoop_cuda_address(call->out),
                                  .tmp = tmp,
                                  .tag = hoop_comm_publish(call),
                                  .number = comm->sequence};
    status = hoop_cuda_exec_launch(kernels->exec, &run, stream);
    return status == HOOP_OK ? divide(kernels, call, stream) : status;
}

enum hoop_status hoop_kernels_launch(const struct hoop_comm_call *call, hoop_cu_stream stream)
{
    struct hoop_comm *comm = call->comm;
    struct hoop_kernels *kernels = comm->device->kernels;
    bool capturing = false;

    enum hoop_status status = hoop_comm_usable(comm, "collective");
    if (status != HOOP_OK)
        return status;
    status = launch(kernels, call, stream);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_capturing(kernels->cuda, stream, &capturing);
    if (status == HOOP_OK && !capturing)
        status = hoop_cuda_event_record(kernels->cuda, kernels->ended, stream);
    if (status != HOOP_OK)
        return hoop_comm_conclude(comm, status);
    comm->stats.calls++;
    comm->stats.bytes += call->count * hoop_call_element(call);
    return HOOP_OK;
}

enum hoop_status hoop_kernels_run(const struct hoop_comm_call *call)
{
    struct hoop_comm *comm = call->comm;
    const struct hoop_kernels *kernels = comm->device->kernels;
    hoop_cu_stream stream = comm->device->stream;

    enum hoop_status status = hoop_cuda_event_record(kernels->cuda, kernels->before, NULL);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_wait_event(kernels->cuda, stream, kernels->before);
    if (status != HOOP_OK)
        return hoop_comm_conclude(comm, status);
    status = hoop_kernels_launch(call, stream);
    if (status == HOOP_OK) {
        status = hoop_cuda_stream_wait(kernels->cuda, stream, UINT64_MAX); /* a verdict ends the kernel */
        if (status != HOOP_OK)
            return hoop_comm_conclude(comm, status);
    }
    if (status == HOOP_OK && hoop_verdict_stands(comm->board))
        status = hoop_comm_condemned(comm);
    return status;
}
