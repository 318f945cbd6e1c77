// SPDX-License-Identifier: BSD-3-Clause
/* Calls as kernels.
 *
 * A call is published and chosen as on the host, and its plan is launched instead of run. The launch takes the turn, not the kernel: turns
 * order the launches, streams the kernels. Kernels carry a fingerprint of their own from call to call, so that ranks which differ are found
 * out where the data meet; the published record is for those who wait on the host.
 *
 * What stands around a plan is the same as on the host, in kernels of its own: small types are widened into scratch memory, combined
 * in f32 and rounded once; a premultiplied sum is the sum of what was multiplied into scratch; an average is divided at the end.
 */
#include <string.h>

#include "comm/device.h"
#include "comm/device_copy.h"
#include "comm/kernel.h"
#include "comm/lend.h"
#include "health/verdict.h"

enum scratch { TMP_SCRATCH, WIDE_IN_SCRATCH, WIDE_OUT_SCRATCH };

/* Operators of the user are functions of the host, so they run there; so do messages, and all_to_allv, whose ranks first tell each other
 * their counts. */
bool hoop_kernels_take(const struct hoop_comm_call *call)
{
    const struct hoop_comm *comm = call->comm;

    return comm->device && comm->device->kernels && comm->ranks > 1 && (int)call->coll < HOOP_COLLS &&
           (call->blocks == NULL || call->coll == HOOP_ALL_GATHER) && !hoop_copies_take(call) &&
           (call->op <= HOOP_OPS || hoop_operator_is_premul(call->op));
}

/* ---- the plan ---- */

/* Where kernels find who has opened the buffer. */
static uint32_t row_of(const struct hoop_kernels *kernels, const void *buffer)
{
    struct hoop_lend *lend = kernels->comm->device->lend;

    return hoop_lend_has_news(lend) ? 0 : hoop_lend_row(lend, buffer); /* news: the stream is captured */
}

/* `run` with `shown`'s name and choice, as it is without what stands around it. */
static enum hoop_status launch_plan(const struct hoop_kernels *kernels, const struct hoop_comm_call *run,
                                    const struct hoop_comm_call *shown, hoop_cu_stream stream)
{
    struct hoop_comm *comm = run->comm;
    const size_t vector = hoop_call_judged(shown);
    const struct hoop_plan *plan = NULL;
    struct hoop_binding binding;
    hoop_cu_address tmp = 0;

    enum hoop_status status = hoop_comm_plan(run, vector, comm->device->channels, &plan, &binding);
    if (status == HOOP_OK && binding.tmp_bytes > 0)
        status = hoop_cuda_exec_scratch(kernels->exec, TMP_SCRATCH, binding.tmp_bytes, &tmp);
    if (status != HOOP_OK)
        return status;
    const struct hoop_cuda_call call = {.plan = plan,
                                        .binding = &binding,
                                        .type = run->type == HOOP_TYPES ? HOOP_U8 : run->type,
                                        .op = hoop_op_is_builtin(run->op) ? run->op : HOOP_SUM,
                                        .in = hoop_cuda_address(run->in),
                                        .out = hoop_cuda_address(run->out),
                                        .tmp = tmp,
                                        .keep_in = run->in_own,
                                        .keep_out = run->out_own,
                                        .in_view = row_of(kernels, run->in),
                                        .out_view = row_of(kernels, run->out),
                                        .tag = hoop_comm_publish(shown),
                                        .number = comm->sequence};
    return hoop_cuda_exec_launch(kernels->exec, &call, stream);
}

/* ---- around it ---- */

static enum hoop_status vector(const struct hoop_kernels *kernels, enum hoop_cuda_vector what, const void *to,
                               const void *left, size_t count, enum hoop_type type, uint64_t factor,
                               hoop_cu_stream stream)
{
    const struct hoop_device_vector argument = {.to = hoop_cuda_address(to),
                                                .left = hoop_cuda_address(left),
                                                .count = count,
                                                .factor = factor,
                                                .type = (uint32_t)type,
                                                .ranks = kernels->comm->ranks};

    return count == 0 ? HOOP_OK : hoop_cuda_exec_vector(kernels->exec, what, &argument, 0, stream);
}

/* The plan, and behind it: an average is the sum divided. */
static enum hoop_status launch_and_divide(const struct hoop_kernels *kernels, const struct hoop_comm_call *run,
                                          const struct hoop_comm_call *shown, hoop_cu_stream stream)
{
    const enum hoop_status status = launch_plan(kernels, run, shown, stream);

    if (status != HOOP_OK || run->op != HOOP_AVG)
        return status;
    return vector(kernels, HOOP_CUDA_DIVIDE, run->out, NULL, hoop_call_combined(run), run->type, 0, stream);
}

/* Scratch memory with room for both vectors in the wide type; *out stays as it is where the result needs no rounding. */
static enum hoop_status take_scratch(const struct hoop_kernels *kernels, const struct hoop_comm_call *call,
                                     const void **in, void **out)
{
    const enum hoop_type wide = hoop_type_wide(call->type);
    const size_t element = hoop_type_size(wide), got = hoop_call_combined(call);
    hoop_cu_address place;

    enum hoop_status status =
        hoop_cuda_exec_scratch(kernels->exec, WIDE_IN_SCRATCH, hoop_call_vector(call) * element, &place);
    *in = (const void *)(uintptr_t)place;
    if (status != HOOP_OK || wide == call->type)
        return status;
    status = hoop_cuda_exec_scratch(kernels->exec, WIDE_OUT_SCRATCH, got * element, &place);
    *out = got ? (void *)(uintptr_t)place : NULL;
    return status;
}

/* Into scratch memory (widened, or multiplied by `factor`), combine there, and back. Calls share the scratch memory, also those
 * of other streams. */
static enum hoop_status launch_wide(struct hoop_kernels *kernels, const struct hoop_comm_call *call,
                                    enum hoop_cuda_vector first, uint64_t factor, hoop_cu_stream stream)
{
    const size_t got = hoop_call_combined(call);
    struct hoop_comm_call run = *call;

    run.type = hoop_type_wide(call->type);
    run.op = first == HOOP_CUDA_MULTIPLY ? HOOP_SUM : call->op;
    run.in_place = run.in_own = false;
    run.out_own &= run.type == call->type;
    enum hoop_status status = take_scratch(kernels, call, &run.in, &run.out);
    if (status == HOOP_OK)
        status = hoop_cuda_exec_follow(kernels->exec, stream);
    if (status == HOOP_OK)
        status = vector(kernels, first, run.in, call->in, hoop_call_vector(call), call->type, factor, stream);
    if (status == HOOP_OK)
        status = launch_and_divide(kernels, &run, call, stream);
    if (status == HOOP_OK && run.type != call->type)
        status = vector(kernels, HOOP_CUDA_NARROW, call->out, run.out, got, call->type, 0, stream);
    return status == HOOP_OK ? hoop_cuda_exec_lead(kernels->exec, stream) : status;
}

static enum hoop_status launch(struct hoop_kernels *kernels, const struct hoop_comm_call *call, hoop_cu_stream stream)
{
    if (hoop_operator_is_premul(call->op)) {
        const struct hoop_operator *created = hoop_operator_find(call->comm, call->op);
        if (created == NULL)
            return hoop_fail(HOOP_ERR_ARG, "operator %d was destroyed before a call with it has run", (int)call->op);
        return launch_wide(kernels, call, HOOP_CUDA_MULTIPLY, hoop_operator_factor(created), stream);
    }
    return hoop_call_widens(call) ? launch_wide(kernels, call, HOOP_CUDA_WIDEN, 0, stream)
                                  : launch_and_divide(kernels, call, call, stream);
}

/* ---- calls ---- */

/* Under the gate. */
static enum hoop_status launch_in_order(struct hoop_kernels *kernels, const struct hoop_comm_call *call,
                                        hoop_cu_stream stream)
{
    bool capturing = false;

    enum hoop_status status = hoop_cuda_stream_capturing(kernels->cuda, stream, &capturing);
    if (status == HOOP_OK && !capturing && hoop_lend_has_news(call->comm->device->lend)) {
        status = hoop_cuda_exec_follow(kernels->exec, stream);
        if (status == HOOP_OK)
            status = hoop_lend_tell(call->comm->device->lend, kernels->exec, stream);
    }
    if (status == HOOP_OK)
        status = launch(kernels, call, stream);
    if (status == HOOP_OK && !capturing)
        status = hoop_cuda_event_record(kernels->cuda, kernels->ended, stream);
    return status;
}

enum hoop_status hoop_kernels_launch(const struct hoop_comm_call *call, hoop_cu_stream stream)
{
    struct hoop_comm *comm = call->comm;
    struct hoop_kernels *kernels = comm->device->kernels;

    enum hoop_status status = hoop_comm_usable(comm, "collective");
    if (status != HOOP_OK)
        return status;
    pthread_mutex_lock(&kernels->gate);
    const bool closed = kernels->closed;
    if (!closed)
        status = launch_in_order(kernels, call, stream);
    pthread_mutex_unlock(&kernels->gate);
    if (closed)
        return hoop_comm_condemned(comm);
    if (status != HOOP_OK)
        return hoop_comm_conclude(comm, status);
    comm->stats.calls++;
    comm->stats.bytes += hoop_call_vector(call) * hoop_call_element(call);
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
