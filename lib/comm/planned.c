// SPDX-License-Identifier: BSD-3-Clause
/* A call by its plan: bind it, make room and links, drive it to its end, and tell everybody when a link fails. */
#include <stdio.h>
#include <string.h>

#include "comm/uneven.h"
#include "health/verdict.h"

enum {
    CHANNELS_LEAST = 256 * 1024, /* bytes of a vector for several channels, where no setting says how many */
    WHOLE_MOST = 4 << 20         /* for large pieces through one; what is larger leaves the caches meanwhile */
};

enum hoop_status hoop_scratch_grow(struct hoop_comm *comm, struct hoop_scratch *scratch, size_t bytes)
{
    if (bytes <= scratch->bytes)
        return HOOP_OK;
    if (scratch->memory)
        hoop_heap_give(comm->heap, scratch->memory);
    *scratch = (struct hoop_scratch){NULL, 0};
    enum hoop_status status = hoop_heap_take(comm->heap, bytes, &scratch->memory);
    if (status == HOOP_OK)
        scratch->bytes = bytes;
    return status;
}

/* Connect what the plan names and is not connected yet. */
static enum hoop_status connect_links(struct hoop_comm *comm, const struct hoop_plan *plan)
{
    if ((int)plan->lanes >= comm->lanes)
        return hoop_fail(HOOP_ERR_INTERNAL, "plan %s has %u lanes, the communicator only %d", plan->algo->name,
                         plan->lanes, comm->lanes - 1);
    for (uint32_t l = 0; l < plan->lanes; l++)
        for (uint32_t s = 0; s < plan->lane[l].steps; s++) {
            const struct hoop_step *step = &plan->lane[l].step[s];
            if (step->kind < HOOP_STEP_SEND || step->kind > HOOP_STEP_RECV_REDUCE)
                continue;
            struct hoop_link **link = &comm->links[step->peer * comm->lanes + (int)l];
            if (*link)
                continue;
            enum hoop_status status = hoop_comm_connect(comm, step->peer, (int)l, link);
            if (status != HOOP_OK)
                return status;
        }
    return HOOP_OK;
}

/* A link failed: what that means for everybody. */
static enum hoop_status blame(struct hoop_comm *comm, enum hoop_status status)
{
    const int peer = hoop_exec_peer(comm->exec);
    struct hoop_verdict verdict = {HOOP_VERDICT_FAILED, comm->rank, peer, (unsigned)comm->sequence};

    if (status == HOOP_ERR_MISMATCH)
        verdict = (struct hoop_verdict){HOOP_VERDICT_MISMATCH, peer < comm->rank ? peer : comm->rank,
                                        peer < comm->rank ? comm->rank : peer, (unsigned)comm->sequence};
    if (status == HOOP_ERR_PEER)
        hoop_comm_lost(comm, peer, comm->sequence);
    else
        hoop_verdict_pass(comm->board, verdict);
    return status;
}

/* Nobody moves what we have sent on once the call is over: wait until it is the kernel's. */
static enum hoop_status let_go(struct hoop_comm *comm)
{
    enum hoop_status status = HOOP_OK;

    hoop_wait_for(&comm->wait, HOOP_AWAIT_AWAY, -1);
    while (status == HOOP_OK && hoop_comm_flush(comm) == HOOP_AGAIN)
        status = hoop_wait_step(&comm->wait);
    return status;
}

static enum hoop_status drive(struct hoop_comm *comm)
{
    enum hoop_status status;
    bool moved;

    while ((status = hoop_exec_poll(comm->exec, &moved)) == HOOP_AGAIN) {
        if (moved) {
            hoop_wait_moved(&comm->wait);
            continue;
        }
        if (comm->wait.phase == HOOP_WAIT_ARM)
            comm->wait.where = hoop_exec_where(comm->exec);
        status = hoop_wait_step(&comm->wait);
        if (status != HOOP_OK)
            break;
    }
    if (status == HOOP_OK)
        status = let_go(comm);
    hoop_wait_moved(&comm->wait);
    return status < HOOP_OK && !hoop_verdict_stands(comm->board) ? blame(comm, status) : status;
}

/* In place is told to the root alone. */
static bool on_root_in_place(const struct hoop_comm_call *call)
{
    const struct hoop_coll_shape *shape = hoop_coll_shape(call->coll);
    const uintptr_t in = (uintptr_t)call->in, out = (uintptr_t)call->out;
    const size_t block = (size_t)call->root * call->count * hoop_call_element(call);

    if (call->root != call->comm->rank)
        return false;
    return in + (shape->out == HOOP_OWN_BLOCK ? block : 0) == out + (shape->in == HOOP_OWN_BLOCK ? block : 0);
}

/* Where nothing paces a connection, a large piece moves faster than several small ones. */
static bool in_large_pieces(const struct hoop_comm_call *call)
{
    const struct hoop_comm *comm = call->comm;

    return comm->hosts.unpaced && comm->hosts.count == comm->ranks && hoop_call_judged(call) <= WHOLE_MOST;
}

/* Small vectors gain nothing from being cut once more. */
static int channels_for(const struct hoop_comm_call *call)
{
    const struct hoop_comm *comm = call->comm;
    const bool chosen = comm->settings.value[HOOP_SETTING_CHANNELS].empty;

    return chosen && (hoop_call_judged(call) < CHANNELS_LEAST || in_large_pieces(call)) ? 1 : comm->channels;
}

/* Small pieces are needed only where what a rank receives is on its way to the next meanwhile: not if there is a chunk for each rank. */
static size_t frame_for(const struct hoop_comm_call *call, const struct hoop_plan *plan)
{
    const struct hoop_comm *comm = call->comm;

    return in_large_pieces(call) && (int)plan->grid >= comm->ranks ? hoop_hosts_frame(comm) : comm->choice.frame;
}

/* The problem that the call poses to this rank. */
static struct hoop_problem problem_of(const struct hoop_comm_call *call, const struct hoop_decision *chosen)
{
    const struct hoop_comm *comm = call->comm;
    const bool rooted = call->root >= 0;

    return (struct hoop_problem){.coll = call->coll,
                                 .ranks = comm->ranks,
                                 .rank = comm->rank,
                                 .root = rooted ? call->root : 0,
                                 .in_place = rooted ? on_root_in_place(call) : call->in_place,
                                 .channels = channels_for(call),
                                 .groups = chosen->algo->composed ? comm->groups : NULL,
                                 .inter = chosen->inter,
                                 .intra = chosen->intra};
}

static enum hoop_status plan_for_kernels(const struct hoop_comm_call *call, size_t vector, int channels,
                                         struct hoop_decision *chosen, const struct hoop_plan **plan)
{
    struct hoop_comm *comm = call->comm;
    const struct hoop_problem shape = {
        .coll = call->coll, .ranks = comm->ranks, .in_place = call->in_place, .channels = 1};

    *chosen = hoop_comm_select(comm, &shape, vector, false);
    struct hoop_problem problem = problem_of(call, chosen);
    problem.channels = channels;
    problem.orders = comm->orders;
    return hoop_plan_cache_get(&comm->plans, chosen->algo, &problem, plan);
}

enum hoop_status hoop_comm_plan(const struct hoop_comm_call *call, size_t vector, int channels,
                                const struct hoop_plan **plan, struct hoop_binding *binding)
{
    const struct hoop_comm_blocks *blocks = call->blocks;
    struct hoop_comm *comm = call->comm;
    struct hoop_decision chosen;
    char name[HOOP_ALGO_TEXT];

    enum hoop_status status = plan_for_kernels(call, vector, channels, &chosen, plan);
    if (status == HOOP_OK)
        status = blocks ? hoop_bind_blocks(binding, *plan, blocks->in, blocks->out, blocks->largest,
                                           hoop_call_element(call), comm->choice.frame, 1)
                        : hoop_bind(binding, *plan, call->count, hoop_call_element(call), comm->choice.frame, 1);
    if (status != HOOP_OK)
        return status;
    hoop_algo_text(name, chosen.algo, chosen.inter, chosen.intra);
    snprintf(comm->stats.last_plan, sizeof comm->stats.last_plan, "%.40s/kernel/%dch/%zusl", name, channels,
             binding->slices);
    return HOOP_OK;
}

/* To write it anew takes longer than a small message does. */
static void tell_name(struct hoop_comm *comm, const struct hoop_plan_name *its)
{
    struct hoop_plan_name *name = &comm->name;
    char algo[HOOP_ALGO_TEXT];

    if (name->algo != its->algo || name->inter != its->inter || name->intra != its->intra ||
        name->channels != its->channels || name->slices != its->slices) {
        *name = *its;
        hoop_algo_text(algo, its->algo, its->inter, its->intra);
        snprintf(name->text, sizeof name->text, "%.40s/%s/links/%dch/%zusl", algo,
                 comm->hosts.count == 1             ? "shm"
                 : comm->hosts.count == comm->ranks ? "tcp"
                                                    : "shm+tcp",
                 its->channels, its->slices);
    }
    _Static_assert(sizeof name->text <= sizeof comm->stats.last_plan, "it fits");
    memcpy(comm->stats.last_plan, name->text, sizeof name->text);
}

enum hoop_status hoop_comm_run_plan(const struct hoop_comm_call *call, const struct hoop_algo *algo, uint64_t tag)
{
    struct hoop_comm *comm = call->comm;
    const struct hoop_problem problem = problem_of(
        call, &(struct hoop_decision){.algo = algo, .inter = comm->chosen.inter, .intra = comm->chosen.intra});
    const struct hoop_comm_blocks *blocks = call->blocks;
    const size_t element = hoop_call_element(call);
    const struct hoop_plan *plan = NULL;
    struct hoop_binding binding;
    size_t offset;
    /* edges of registered memory say nothing */
    const void *middle = (const void *)((uintptr_t)call->out + call->count * hoop_call_element(call) / 2);

    enum hoop_status status = hoop_plan_cache_get(&comm->plans, algo, &problem, &plan);
    if (status == HOOP_OK)
        status = blocks ? hoop_bind_blocks(&binding, plan, blocks->in, blocks->out, blocks->largest, element,
                                           comm->choice.frame, 1)
                        : hoop_bind(&binding, plan, call->count, element, frame_for(call, plan), 1);
    if (status == HOOP_OK)
        status = hoop_scratch_grow(comm, &comm->tmp, binding.tmp_bytes);
    if (status == HOOP_OK)
        status = connect_links(comm, plan);
    if (status != HOOP_OK)
        return status;
    const struct hoop_exec_call run = {.plan = plan,
                                       .binding = &binding,
                                       .domain = comm->domain,
                                       .far = comm->hosts.domain,
                                       .links = comm->links,
                                       .lanes = comm->lanes,
                                       .type = call->type == HOOP_TYPES ? HOOP_U8 : call->type,
                                       .op = hoop_op_is_builtin(call->op) ? call->op : HOOP_SUM,
                                       .user = call->user,
                                       .in = call->in,
                                       .out = call->out,
                                       .tmp = comm->tmp.memory,
                                       .tag = tag,
                                       .out_shared = hoop_board_owns(comm->board, middle, 1, &offset)};
    tell_name(comm, &(struct hoop_plan_name){algo, problem.inter, problem.intra, problem.channels, binding.slices, ""});
    status = hoop_exec_start(comm->exec, &run);
    return status == HOOP_OK ? drive(comm) : status;
}
