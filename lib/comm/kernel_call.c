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
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/device.h"
#include "comm/device_copy.h"
#include "comm/device_relay.h"
#include "comm/kernel.h"
#include "comm/lend.h"
#include "comm/uneven.h"
#include "health/verdict.h"

enum scratch { TMP_SCRATCH, WIDE_IN_SCRATCH, WIDE_OUT_SCRATCH, PLACE_SCRATCH = HOOP_CUDA_MESSAGES + 1 };

/* Operators of the user are functions of the host, so they run there; messages are not collectives. */
bool hoop_kernels_take(const struct hoop_comm_call *call)
{
    const struct hoop_comm *comm = call->comm;

    return comm->device && comm->device->kernels && comm->ranks > 1 && (int)call->coll < HOOP_COLLS &&
           !hoop_copies_take(call) && (call->op <= HOOP_OPS || hoop_operator_is_premul(call->op));
}

size_t hoop_kernels_tell(const struct hoop_comm *comm, char *text, size_t size)
{
    const bool one = comm->device->one_process;
    const size_t least = hoop_setting_size(&comm->settings, HOOP_SETTING_COPIES);
    char copies[120] = "";

    if (least > 0)
        snprintf(copies, sizeof copies,
                 one ? "; broadcasts and gathers of HOOP_COPIES=%zu bytes and more go by copies"
                     : "; not all ranks are threads of one process, so HOOP_COPIES=%zu has no effect",
                 least);
    return (size_t)snprintf(
        text, size, "what combines by functions of the user is staged: they are functions of the host%s%s; %s",
        comm->device->messages  ? ""
        : comm->hosts.count > 1 ? "; messages are staged: the ranks are on several hosts"
                                : "; messages are staged: ranks that share a GPU launch together",
        copies,
        one ? "memory of pools and of virtual addresses goes through slots: other devices do not reach it"
            : "between processes only memory of hoop_mem_alloc is read in place, other goes through slots");
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
    hoop_device_relay_want(comm, plan);
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

/* ---- all_to_allv ---- */

/* A rank knows only its own counts, so there is no plan: each pair's block is a message, which says how large it is. */
struct exchange {
    const struct hoop_comm_call *call;
    struct hoop_cuda_messages list;
    struct hoop_device_message message[];
};

/* In place: what is sent is not where it was by the time that it is wanted, so it is copied out of the way before; *in: where to. Calls share
 * that memory, also those of other streams. */
static enum hoop_status move_away(struct hoop_kernels *kernels, const struct hoop_comm_call *call, const void **in,
                                  hoop_cu_stream stream)
{
    const struct hoop_extent *block = call->blocks->in;
    const size_t element = hoop_call_element(call);
    hoop_cu_address place;
    size_t end = 0;

    for (int rank = 0; rank < call->comm->ranks; rank++)
        if (block[rank].count > 0 && block[rank].first + block[rank].count > end)
            end = block[rank].first + block[rank].count;
    enum hoop_status status = hoop_cuda_exec_scratch(kernels->exec, PLACE_SCRATCH, end * element, &place);
    if (status == HOOP_OK)
        status = hoop_cuda_exec_follow(kernels->exec, stream);
    *in = (const void *)(uintptr_t)place;
    for (int rank = 0; rank < call->comm->ranks && status == HOOP_OK; rank++)
        if (rank != call->comm->rank && block[rank].count > 0)
            status = hoop_cuda_copy(kernels->cuda, (void *)(uintptr_t)(place + block[rank].first * element),
                                    (const unsigned char *)call->in + block[rank].first * element,
                                    block[rank].count * element, stream);
    return status;
}

static void add_block(struct exchange *exchange, enum hoop_device_message_kind kind, int peer, const void *base,
                      const struct hoop_extent *block)
{
    const size_t element = hoop_call_element(exchange->call);

    exchange->message[exchange->list.messages++] =
        (struct hoop_device_message){.data = hoop_cuda_address(base) + block->first * element,
                                     .count = block->count,
                                     .bytes = block->count * element,
                                     .kind = kind,
                                     .peer = (uint32_t)peer};
}

/* The pairs begin with different peers. */
static void add_blocks(struct exchange *exchange, const void *in, uint32_t view, bool own)
{
    const struct hoop_comm_call *call = exchange->call;
    const int ranks = call->comm->ranks, rank = call->comm->rank;
    const struct hoop_comm_blocks *blocks = call->blocks;
    const uint32_t place = call->in_place ? HOOP_DEVICE_IN_PLACE : HOOP_DEVICE_APART;
    bool any = false;

    for (int i = 1; i < ranks; i++) {
        const int to = (rank + i) % ranks, from = (rank + ranks - i) % ranks;
        add_block(exchange, HOOP_DEVICE_SEND, to, in, &blocks->in[to]);
        exchange->message[exchange->list.messages - 1].view = view;
        exchange->message[exchange->list.messages - 1].keep = own;
        add_block(exchange, HOOP_DEVICE_RECV, from, call->out, &blocks->out[from]);
    }
    if (!call->in_place && blocks->in[rank].count > 0) {
        add_block(exchange, HOOP_DEVICE_COPY, rank, in, &blocks->in[rank]);
        exchange->message[exchange->list.messages - 1].to =
            hoop_cuda_address(call->out) + blocks->out[rank].first * hoop_call_element(call);
    }
    for (int r = 0; r < ranks; r++)
        any |= blocks->in[r].count > 0 || blocks->out[r].count > 0;
    for (size_t i = 0; i < exchange->list.messages; i++)
        exchange->message[i].shape = (uint32_t)call->type | (any ? place : 0);
}

static enum hoop_status launch_exchange(struct hoop_kernels *kernels, const struct hoop_comm_call *call,
                                        hoop_cu_stream stream)
{
    struct hoop_comm *comm = call->comm;
    const size_t most = 2 * (size_t)comm->ranks;
    struct exchange *exchange = hoop_calloc(1, sizeof *exchange + most * sizeof *exchange->message);
    const void *in = call->in;

    enum hoop_status status = exchange == NULL ? HOOP_ERR_MEMORY
                              : call->in_place ? move_away(kernels, call, &in, stream)
                                               : HOOP_OK;
    if (status == HOOP_OK) {
        exchange->call = call;
        add_blocks(exchange, in, call->in_place ? 0 : row_of(kernels, in), !call->in_place && call->in_own);
        exchange->list.message = exchange->message;
        exchange->list.ordered = true;
        exchange->list.parts = comm->device->channels * HOOP_LANES_A_CHANNEL;
        exchange->list.tag = hoop_comm_publish(call);
        exchange->list.number = comm->sequence;
        hoop_device_relay_want_all(comm, exchange->list.parts);
        status = hoop_cuda_exec_messages(kernels->exec, &exchange->list, stream);
        snprintf(comm->stats.last_plan, sizeof comm->stats.last_plan, "messages/kernel/%dch", comm->device->channels);
    }
    hoop_free(exchange);
    return status;
}

/* A job. */
static enum hoop_status launch(struct hoop_kernels *kernels, const void *data, hoop_cu_stream stream)
{
    const struct hoop_comm_call *call = data;

    if (call->blocks && call->coll == HOOP_ALL_TO_ALL)
        return launch_exchange(kernels, call, stream);
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
static enum hoop_status launch_in_order(struct hoop_kernels *kernels, hoop_kernels_job job, const void *data,
                                        hoop_cu_stream stream)
{
    struct hoop_lend *lend = kernels->comm->device->lend;
    bool capturing = false;

    enum hoop_status status = hoop_cuda_stream_capturing(kernels->cuda, stream, &capturing);
    if (status == HOOP_OK && !capturing && hoop_lend_has_news(lend)) {
        status = hoop_cuda_exec_follow(kernels->exec, stream);
        if (status == HOOP_OK)
            status = hoop_lend_tell(lend, kernels->exec, stream);
    }
    if (status == HOOP_OK)
        status = job(kernels, data, stream);
    if (status == HOOP_OK && !capturing)
        status = hoop_cuda_event_record(kernels->cuda, kernels->ended, stream);
    return status;
}

enum hoop_status hoop_kernels_give(struct hoop_comm *comm, const char *what, hoop_kernels_job job, const void *data,
                                   hoop_cu_stream stream)
{
    struct hoop_kernels *kernels = comm->device->kernels;

    enum hoop_status status = hoop_comm_usable(comm, what);
    if (status != HOOP_OK)
        return status;
    pthread_mutex_lock(&kernels->gate);
    const bool closed = kernels->closed;
    if (!closed)
        status = launch_in_order(kernels, job, data, stream);
    pthread_mutex_unlock(&kernels->gate);
    if (closed)
        return hoop_comm_condemned(comm);
    return status == HOOP_OK ? HOOP_OK : hoop_comm_conclude(comm, status);
}

enum hoop_status hoop_kernels_launch(const struct hoop_comm_call *call, hoop_cu_stream stream)
{
    struct hoop_comm *comm = call->comm;
    const enum hoop_status status = hoop_kernels_give(comm, "collective", launch, call, stream);

    if (status != HOOP_OK)
        return status;
    comm->stats.calls++;
    comm->stats.bytes += hoop_call_vector(call) * hoop_call_element(call);
    return HOOP_OK;
}

enum hoop_status hoop_kernels_begin(struct hoop_comm *comm, bool behind_default)
{
    const struct hoop_kernels *kernels = comm->device->kernels;

    enum hoop_status status = behind_default ? hoop_cuda_event_record(kernels->cuda, kernels->before, NULL) : HOOP_OK;
    if (status == HOOP_OK && behind_default)
        status = hoop_cuda_stream_wait_event(kernels->cuda, comm->device->stream, kernels->before);
    return status == HOOP_OK ? HOOP_OK : hoop_comm_conclude(comm, status);
}

enum hoop_status hoop_kernels_await(struct hoop_comm *comm)
{
    const enum hoop_status status =
        hoop_cuda_stream_wait(comm->device->cuda, comm->device->stream, UINT64_MAX); /* a verdict ends the kernel */

    if (status != HOOP_OK)
        return hoop_comm_conclude(comm, status);
    hoop_kernels_look(comm->device->kernels);
    return hoop_verdict_stands(comm->board) ? hoop_comm_condemned(comm) : HOOP_OK;
}

enum hoop_status hoop_kernels_run(const struct hoop_comm_call *call)
{
    struct hoop_comm *comm = call->comm;

    enum hoop_status status = hoop_kernels_begin(comm, true);
    if (status == HOOP_OK)
        status = hoop_kernels_launch(call, comm->device->stream);
    return status == HOOP_OK ? hoop_kernels_await(comm) : status;
}
