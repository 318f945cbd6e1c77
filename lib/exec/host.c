// SPDX-License-Identifier: BSD-3-Clause
/* Lanes, steps and lent memory. */
#include "exec/host.h"

#include "base/alloc.h"
#include "base/fault.h"

struct lane {
    const struct hoop_lane_plan *plan;
    int number;
    uint32_t step;
    size_t slice;
    bool receiving;         /* an accepted recv is under way (transports without peek) */
    uint64_t awaited;       /* its number */
    unsigned char *landing; /* where such a receive lands before it is reduced */
    size_t landing_bytes;
};

/* Memory that a peer reads in place until the send completes. */
struct loan {
    const struct hoop_link *link;
    uint64_t number;
    const unsigned char *from;
    size_t bytes;
};

struct hoop_exec {
    struct hoop_exec_call call;
    uint32_t lanes_done;
    struct lane *lane;
    uint32_t lane_room;
    struct loan *loan;
    size_t loans, loan_room;
    int peer;
};

/* One piece of a buffer. */
struct piece {
    unsigned char *data;
    size_t count, bytes;
};

enum hoop_status hoop_exec_new(struct hoop_exec **exec)
{
    *exec = hoop_calloc(1, sizeof **exec);
    return *exec ? HOOP_OK : HOOP_ERR_MEMORY;
}

void hoop_exec_free(struct hoop_exec *exec)
{
    if (exec == NULL)
        return;
    for (uint32_t i = 0; i < exec->lane_room; i++)
        hoop_free(exec->lane[i].landing);
    hoop_free(exec->lane);
    hoop_free(exec->loan);
    hoop_free(exec);
}

int hoop_exec_peer(const struct hoop_exec *exec)
{
    return exec->peer;
}

static enum hoop_status make_room(struct hoop_exec *exec, uint32_t lanes)
{
    if (lanes <= exec->lane_room)
        return HOOP_OK;
    struct lane *more = hoop_realloc(exec->lane, lanes, sizeof *more);
    if (more == NULL)
        return HOOP_ERR_MEMORY;
    for (uint32_t i = exec->lane_room; i < lanes; i++)
        more[i] = (struct lane){.landing = NULL};
    exec->lane = more;
    exec->lane_room = lanes;
    return HOOP_OK;
}

enum hoop_status hoop_exec_start(struct hoop_exec *exec, const struct hoop_exec_call *call)
{
    const struct hoop_plan *plan = call->plan;
    enum hoop_status status = make_room(exec, plan->lanes);

    if (status != HOOP_OK)
        return status;
    exec->call = *call;
    exec->loans = 0;
    exec->lanes_done = 0;
    for (uint32_t i = 0; i < plan->lanes; i++) {
        struct lane *lane = &exec->lane[i];
        lane->plan = &plan->lane[i];
        lane->number = (int)i;
        lane->step = 0;
        lane->slice = lane->plan->steps ? 0 : call->binding->slices;
        lane->receiving = false;
        exec->lanes_done += lane->plan->steps == 0;
    }
    return HOOP_OK;
}

/* ---- pieces, links, loans ---- */

static struct piece locate(const struct hoop_exec *exec, enum hoop_buffer buffer, uint32_t chunk, size_t slice)
{
    const struct hoop_exec_call *call = &exec->call;
    const struct hoop_extent extent = hoop_bind_extent(call->binding, buffer, chunk, slice);
    unsigned char *base = buffer == HOOP_TMP  ? (unsigned char *)call->tmp + hoop_bind_tmp_offset(call->binding, chunk)
                          : buffer == HOOP_IN ? (unsigned char *)(uintptr_t)call->in
                                              : (unsigned char *)call->out;

    return (struct piece){base + extent.first * call->binding->element, extent.count,
                          extent.count * call->binding->element};
}

static struct hoop_link *link_of(struct hoop_exec *exec, const struct lane *lane, int peer)
{
    exec->peer = peer;
    return exec->call.links[peer * exec->call.lanes + lane->number];
}

/* Forget the loans that came back. */
static void collect_loans(struct hoop_exec *exec)
{
    for (size_t i = 0; i < exec->loans;)
        if (exec->loan[i].link->sent_done >= exec->loan[i].number)
            exec->loan[i] = exec->loan[--exec->loans];
        else
            i++;
}

static bool overlaps_loan(const struct hoop_exec *exec, const struct piece *piece)
{
    for (size_t i = 0; i < exec->loans; i++)
        if (piece->data < exec->loan[i].from + exec->loan[i].bytes && exec->loan[i].from < piece->data + piece->bytes)
            return true;
    return false;
}

static bool progress(const struct hoop_exec *exec)
{
    struct hoop_domain *domain = exec->call.domain, *far = exec->call.far;
    bool moved = domain && domain->transport->progress(domain) == HOOP_OK;

    if (__builtin_expect(far != NULL, 0))
        moved |= far->transport->progress(far) == HOOP_OK;
    return moved;
}

/* May the piece be overwritten now? HOOP_AGAIN while a peer still reads it. */
static enum hoop_status writable(struct hoop_exec *exec, const struct piece *piece)
{
    if (exec->loans == 0 || !overlaps_loan(exec, piece))
        return HOOP_OK;
    progress(exec);
    collect_loans(exec);
    return overlaps_loan(exec, piece) ? HOOP_AGAIN : HOOP_OK;
}

static enum hoop_status lend(struct hoop_exec *exec, const struct hoop_link *link, const struct piece *piece)
{
    if (exec->loans == exec->loan_room)
        collect_loans(exec);
    if (exec->loans == exec->loan_room) {
        const size_t room = exec->loan_room ? exec->loan_room * 2 : 16;
        struct loan *more = hoop_realloc(exec->loan, room, sizeof *more);
        if (more == NULL)
            return HOOP_ERR_MEMORY;
        exec->loan = more;
        exec->loan_room = room;
    }
    exec->loan[exec->loans++] = (struct loan){link, link->sent, piece->data, piece->bytes};
    return HOOP_OK;
}

/* ---- moving ---- */

static enum hoop_status send_piece(struct hoop_exec *exec, struct hoop_link *link, const struct piece *piece,
                                   bool staged)
{
    enum hoop_status status =
        link->transport->send(link, piece->data, piece->bytes, exec->call.tag, staged ? HOOP_SEND_STAGED : 0);

    if (status == HOOP_OK && !staged && link->sent_done < link->sent)
        return lend(exec, link, piece);
    return status;
}

static enum hoop_status landing(struct lane *lane, size_t bytes)
{
    if (bytes <= lane->landing_bytes)
        return HOOP_OK;
    hoop_free(lane->landing);
    lane->landing_bytes = 0;
    lane->landing = hoop_calloc_aligned(64, bytes, 1);
    if (lane->landing == NULL)
        return HOOP_ERR_MEMORY;
    lane->landing_bytes = bytes;
    return HOOP_OK;
}

/* The next frame's data: where the transport has it, or received into `into` (NULL: anywhere). */
static enum hoop_status take(struct hoop_exec *exec, struct lane *lane, struct hoop_link *link, void *into,
                             size_t bytes, const void **data)
{
    if (link->transport->peek && !(into && link->lands))
        return link->transport->peek(link, bytes, exec->call.tag, data);
    if (into == NULL) {
        enum hoop_status status = landing(lane, bytes);
        if (status != HOOP_OK)
            return status;
        into = lane->landing;
    }
    if (!lane->receiving) {
        enum hoop_status status = link->transport->recv(link, into, bytes, exec->call.tag);
        if (status != HOOP_OK)
            return status;
        lane->receiving = true;
        lane->awaited = link->received;
    }
    if (link->status != HOOP_OK)
        return link->status;
    if (link->received_done < lane->awaited)
        return HOOP_AGAIN;
    lane->receiving = false;
    *data = into;
    return HOOP_OK;
}

static enum hoop_status give_back(struct hoop_link *link)
{
    return link->transport->release ? link->transport->release(link) : HOOP_OK;
}

/* ---- steps ---- */

/* to = in op own, or, as the step says, own op in. Built-in operators give the same bits either way. */
static void combine(const struct hoop_exec *exec, const struct hoop_step *step, void *to, const void *in,
                    const void *own, size_t count)
{
    const struct hoop_exec_call *call = &exec->call;
    const struct hoop_user_op *user = call->user;

    if (__builtin_expect(user == NULL, 1))
        hoop_kernel_reduce(to, in, own, count, call->type, call->op);
    else if (step->flags & HOOP_STEP_BEHIND)
        user->function(to, own, in, count, call->type, user->context);
    else
        user->function(to, in, own, count, call->type, user->context);
}

static bool skipped(const struct hoop_exec *exec, const struct piece *piece)
{
    return piece->count == 0 && !exec->call.binding->empty_frames;
}

static enum hoop_status run_local(struct hoop_exec *exec, const struct lane *lane, const struct hoop_step *step)
{
    const struct piece to = locate(exec, (enum hoop_buffer)step->to_buffer, step->to, lane->slice);
    const struct piece from = locate(exec, (enum hoop_buffer)step->from_buffer, step->from, lane->slice);

    if (to.count == 0 || (to.data == from.data && step->kind == HOOP_STEP_COPY))
        return HOOP_OK;
    enum hoop_status status = writable(exec, &to);
    if (status != HOOP_OK)
        return status;
    if (step->kind == HOOP_STEP_COPY)
        hoop_kernel_copy(to.data, from.data, to.bytes);
    else
        combine(exec, step, to.data, from.data, to.data, to.count);
    return HOOP_OK;
}

static enum hoop_status run_send(struct hoop_exec *exec, const struct lane *lane, const struct hoop_step *step)
{
    const struct piece from = locate(exec, (enum hoop_buffer)step->from_buffer, step->from, lane->slice);

    if (skipped(exec, &from))
        return HOOP_OK;
    return send_piece(exec, link_of(exec, lane, step->peer), &from, step->flags & HOOP_STEP_STAGED);
}

static enum hoop_status run_recv(struct hoop_exec *exec, struct lane *lane, const struct hoop_step *step)
{
    const struct piece to = locate(exec, (enum hoop_buffer)step->to_buffer, step->to, lane->slice);
    const void *data;

    if (skipped(exec, &to))
        return HOOP_OK;
    struct hoop_link *link = link_of(exec, lane, step->peer);
    enum hoop_status status = lane->receiving ? HOOP_OK : writable(exec, &to);
    if (status == HOOP_OK)
        status = take(exec, lane, link, to.data, to.bytes, &data);
    if (status != HOOP_OK)
        return status;
    if (data == to.data)
        return HOOP_OK;
    hoop_kernel_copy(to.data, data, to.bytes);
    return give_back(link);
}

static enum hoop_status run_recv_reduce(struct hoop_exec *exec, struct lane *lane, const struct hoop_step *step)
{
    const struct piece to = locate(exec, (enum hoop_buffer)step->to_buffer, step->to, lane->slice);
    const struct piece from = locate(exec, (enum hoop_buffer)step->from_buffer, step->from, lane->slice);
    const void *data;

    if (skipped(exec, &to))
        return HOOP_OK;
    struct hoop_link *link = link_of(exec, lane, step->peer);
    enum hoop_status status = lane->receiving ? HOOP_OK : writable(exec, &to);
    if (status == HOOP_OK)
        status = take(exec, lane, link, NULL, to.bytes, &data);
    if (status != HOOP_OK)
        return status;
    combine(exec, step, to.data, data, from.data, to.count);
    return give_back(link);
}

static enum hoop_status run_after(const struct hoop_exec *exec, const struct lane *lane, const struct hoop_step *step)
{
    const struct lane *other = &exec->lane[step->peer];

    return other->slice > lane->slice || (other->slice == lane->slice && other->step > step->to) ? HOOP_OK : HOOP_AGAIN;
}

/* Can the pair of a receive and the send of the same chunk be done in one pass over the data, and is that less work? A link that
 * copies what it sends takes it as well from where it is stored. */
static bool can_forward(const struct hoop_exec *exec, const struct lane *lane, const struct hoop_step *step)
{
    if (!(step->flags & HOOP_STEP_FORWARD) || (step->kind == HOOP_STEP_RECV && exec->call.out_shared))
        return false;
    const struct hoop_link *in = exec->call.links[step->peer * exec->call.lanes + lane->number];
    const struct hoop_link *out = exec->call.links[step[1].peer * exec->call.lanes + lane->number];
    if ((step->kind == HOOP_STEP_RECV && in->lands) || (!(step->flags & HOOP_STEP_NO_STORE) && out->lands))
        return false;
    return in->transport->peek && out->transport->reserve;
}

static void compute_forward(const struct hoop_exec *exec, const struct hoop_step *step, const struct piece *to,
                            const struct piece *from, const void *data, void *frame)
{
    const bool store = !(step->flags & HOOP_STEP_NO_STORE);

    if (step->kind == HOOP_STEP_RECV) {
        hoop_kernel_copy(frame, data, to->bytes);
        if (store)
            hoop_kernel_copy(to->data, data, to->bytes);
    } else if (store && exec->call.user == NULL) {
        hoop_kernel_reduce_two(to->data, frame, data, from->data, to->count, exec->call.type, exec->call.op);
    } else {
        combine(exec, step, frame, data, from->data, to->count);
        if (store)
            hoop_kernel_copy(to->data, frame, to->bytes);
    }
}

/* Receive, combine and send on, straight from frame to frame. */
static enum hoop_status run_forward(struct hoop_exec *exec, const struct lane *lane, const struct hoop_step *step)
{
    const struct piece to = locate(exec, (enum hoop_buffer)step->to_buffer, step->to, lane->slice);
    const struct piece from =
        step->kind == HOOP_STEP_RECV ? to : locate(exec, (enum hoop_buffer)step->from_buffer, step->from, lane->slice);
    const void *data;
    void *frame;

    if (skipped(exec, &to))
        return HOOP_OK;
    struct hoop_link *in = link_of(exec, lane, step->peer);
    enum hoop_status status = in->transport->peek(in, to.bytes, exec->call.tag, &data);
    if (status == HOOP_OK && !(step->flags & HOOP_STEP_NO_STORE))
        status = writable(exec, &to);
    if (status != HOOP_OK)
        return status;
    struct hoop_link *out = link_of(exec, lane, step[1].peer);
    status = out->transport->reserve(out, to.bytes, &frame);
    if (status != HOOP_OK)
        return status;
    compute_forward(exec, step, &to, &from, data, frame);
    status =
        in->transport->release(in); /* fails if the data was lent and its lender has gone: then it must not travel on */
    return status == HOOP_OK ? out->transport->commit(out, to.bytes, exec->call.tag) : status;
}

/* Run the lane's next step; *steps receives how many it was. */
static enum hoop_status run_step(struct hoop_exec *exec, struct lane *lane, uint32_t *steps)
{
    const struct hoop_step *step = &lane->plan->step[lane->step];

    *steps = 1;
    switch ((enum hoop_step_kind)step->kind) {
    case HOOP_STEP_COPY:
    case HOOP_STEP_REDUCE:
        return run_local(exec, lane, step);
    case HOOP_STEP_SEND:
        return run_send(exec, lane, step);
    case HOOP_STEP_RECV:
    case HOOP_STEP_RECV_REDUCE:
        if (can_forward(exec, lane, step)) {
            *steps = 2;
            return run_forward(exec, lane, step);
        }
        return step->kind == HOOP_STEP_RECV ? run_recv(exec, lane, step) : run_recv_reduce(exec, lane, step);
    case HOOP_STEP_AFTER:
        return run_after(exec, lane, step);
    case HOOP_STEP_KINDS:
        break;
    }
    return hoop_fail(HOOP_ERR_INTERNAL, "plan %s holds a step of unknown kind %d", exec->call.plan->algo->name,
                     step->kind);
}

/* Run a lane until a step blocks. */
static enum hoop_status run_lane(struct hoop_exec *exec, struct lane *lane, bool *moved)
{
    const size_t slices = exec->call.binding->slices;

    while (lane->slice < slices) {
        uint32_t steps;
        enum hoop_status status = run_step(exec, lane, &steps);
        if (status != HOOP_OK)
            return status;
        if (HOOP_FAULT_FAILS(STEP))
            return hoop_fail(HOOP_ERR_MEMORY, "a step fails, as the test has asked for");
        *moved = true;
        lane->step += steps;
        if (lane->step == lane->plan->steps) {
            lane->step = 0;
            exec->lanes_done += ++lane->slice == slices;
        }
    }
    return HOOP_OK;
}

enum hoop_status hoop_exec_poll(struct hoop_exec *exec, bool *moved)
{
    const uint32_t lanes = exec->call.plan->lanes;

    *moved = false;
    for (uint32_t i = 0; i < lanes; i++) {
        enum hoop_status status = run_lane(exec, &exec->lane[i], moved);
        if (status < HOOP_OK)
            return status;
    }
    if (exec->lanes_done == lanes) {
        if (exec->loans == 0)
            return HOOP_OK;
        collect_loans(exec);
        if (exec->loans == 0)
            return HOOP_OK;
        exec->peer = exec->loan[0].link->peer;
        if (exec->loan[0].link->status != HOOP_OK)
            return exec->loan[0].link->status;
    }
    if (!*moved)
        *moved = progress(exec);
    return HOOP_AGAIN;
}

/* A receive that hands on waits for its data, or for room in front of the peer behind. */
static bool waits_for_room(const struct hoop_exec *exec, const struct lane *lane, const struct hoop_step *step)
{
    struct hoop_link *in = exec->call.links[step->peer * exec->call.lanes + lane->number];
    const struct piece to = locate(exec, (enum hoop_buffer)step->to_buffer, step->to, lane->slice);
    const void *data;

    return can_forward(exec, lane, step) && in->transport->peek(in, to.bytes, exec->call.tag, &data) == HOOP_OK;
}

static struct hoop_where where_of(const struct hoop_exec *exec, const struct lane *lane)
{
    const struct hoop_step *step = &lane->plan->step[lane->step];
    struct hoop_where where = {.peer = step->peer,
                               .lane = (unsigned)lane->number,
                               .step = lane->step + 1,
                               .slice = (unsigned)(lane->slice < 0xffff ? lane->slice : 0xffff)};

    switch ((enum hoop_step_kind)step->kind) {
    case HOOP_STEP_SEND:
        where.what = HOOP_AWAIT_ROOM;
        break;
    case HOOP_STEP_RECV:
    case HOOP_STEP_RECV_REDUCE:
        where.what = HOOP_AWAIT_DATA;
        if (waits_for_room(exec, lane, step)) {
            where.what = HOOP_AWAIT_ROOM;
            where.peer = step[1].peer;
        }
        break;
    default: /* lent memory that is to be overwritten comes back from whoever has it */
        where.what = HOOP_AWAIT_LANE;
        where.peer = -1;
    }
    return where;
}

struct hoop_where hoop_exec_where(const struct hoop_exec *exec)
{
    struct hoop_where where = {.what = HOOP_AWAIT_NOTHING, .peer = -1};

    for (uint32_t i = 0; i < exec->call.plan->lanes; i++) {
        const struct lane *lane = &exec->lane[i];
        if (lane->slice == exec->call.binding->slices)
            continue;
        where = where_of(exec, lane);
        if (where.peer >= 0)
            return where;
    }
    if (where.what == HOOP_AWAIT_NOTHING && exec->loans > 0)
        where = (struct hoop_where){.what = HOOP_AWAIT_ROOM, .peer = exec->loan[0].link->peer};
    return where;
}
