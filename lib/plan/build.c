// SPDX-License-Identifier: BSD-3-Clause
/* The builder: takes down the author's steps and makes the stored plan of them.
 *
 * The author writes one program, for one channel and (unless the algorithm has any_root) for root 0. The builder
 * keeps the first error, does nothing after it and tells it once at the end. The stored plan repeats the program for
 * every channel: chunk g of grid G becomes chunk g * C + c on a grid of G * C, and lane l becomes lane l * C + c, so
 * the channels touch no common chunk and share no link. Rooted programs are turned: the author's rank r is rank
 * (r + root) mod n, and so is its block.
 *
 * A stored plan is one allocation: the head, the lane table, then 16 bytes a step.
 */
#include "plan/build.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

enum { CHUNKS_MOST = 1 << 24, STEPS_MOST = 1 << 28, STEPS_FIRST = 16, RANKS_MOST = 1 << 20 };

static bool rooted(enum hoop_coll coll)
{
    return hoop_coll_shape(coll)->rooted;
}

static bool in_blocks(enum hoop_coll coll)
{
    return hoop_coll_shape(coll)->blocks;
}

void hoop_build_object(struct hoop_builder *builder, const struct hoop_lane *lane, const char *format, ...)
{
    char what[256];
    va_list arguments;

    if (builder->status != HOOP_OK)
        return;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    builder->status =
        hoop_fail(HOOP_ERR_ARG, "algorithm %s, %s of %d ranks, rank %d, lane %u, step %u: %s", builder->algo->name,
                  hoop_coll_name(builder->problem->coll), builder->problem->ranks, builder->problem->rank,
                  lane != NULL ? lane->number : 0, lane != NULL ? lane->steps : 0, what);
}

/* ---- the author's calls ---- */

struct hoop_lane *hoop_lane(struct hoop_builder *builder)
{
    if (builder->lanes >= builder->most_lanes) {
        hoop_build_object(builder, NULL, "more than %u lanes", builder->most_lanes);
        builder->spare.builder = builder;
        return &builder->spare;
    }
    struct hoop_lane *lane = &builder->lane[builder->lanes];

    *lane = (struct hoop_lane){.builder = builder, .number = builder->lanes++};
    return lane;
}

struct hoop_lane *hoop_lane_get(struct hoop_builder *builder, int number)
{
    while (builder->lanes <= (uint32_t)number)
        if (hoop_lane(builder) == &builder->spare)
            return &builder->spare;
    return &builder->lane[number];
}

void hoop_grid(struct hoop_builder *builder, int chunks)
{
    const struct hoop_problem *problem = builder->problem;

    for (uint32_t i = 0; i < builder->lanes; i++)
        if (builder->lane[i].steps > 0)
            hoop_build_object(builder, &builder->lane[i], "the grid is set after the first step");
    if (chunks < 1 || chunks > CHUNKS_MOST / problem->channels)
        hoop_build_object(builder, NULL, "a grid of %d chunks in %d channels; 1 to %d are allowed in all", chunks,
                          problem->channels, CHUNKS_MOST);
    else if (in_blocks(problem->coll) && chunks % problem->ranks != 0)
        hoop_build_object(builder, NULL, "a grid of %d chunks cannot be cut into %d equal blocks", chunks,
                          problem->ranks);
    else
        builder->grid = (uint32_t)chunks;
}

bool hoop_build_take_chunk(struct hoop_lane *lane, enum hoop_buffer buffer, int chunk)
{
    struct hoop_builder *builder = lane->builder;
    const int most = buffer == HOOP_TMP ? CHUNKS_MOST / builder->problem->channels : (int)builder->grid;

    if (buffer != HOOP_IN && buffer != HOOP_OUT && buffer != HOOP_TMP) {
        hoop_build_object(builder, lane, "buffer %d is none", (int)buffer);
        return false;
    }
    if (chunk < 0 || chunk >= most) {
        hoop_build_object(builder, lane, "chunk %d is outside of 0 to %d", chunk, most - 1);
        return false;
    }
    if (buffer == HOOP_TMP && (uint32_t)chunk >= builder->tmp)
        builder->tmp = (uint32_t)chunk + 1;
    return true;
}

static bool take_peer(struct hoop_lane *lane, int peer)
{
    const struct hoop_problem *problem = lane->builder->problem;

    if (peer >= 0 && peer < problem->ranks && peer != problem->rank)
        return true;
    hoop_build_object(lane->builder, lane, "peer %d is not another rank of 0 to %d", peer, problem->ranks - 1);
    return false;
}

void hoop_build_append(struct hoop_lane *lane, struct hoop_step step)
{
    struct hoop_builder *builder = lane->builder;

    if (builder->status != HOOP_OK)
        return;
    if (lane->steps == lane->room) {
        const uint32_t room = lane->room == 0 ? STEPS_FIRST : 2 * lane->room;

        if (room > STEPS_MOST) {
            hoop_build_object(builder, lane, "more than %d steps", STEPS_MOST);
            return;
        }
        struct hoop_step *grown = hoop_realloc(lane->step, room, sizeof *grown);
        if (grown == NULL) {
            builder->status = HOOP_ERR_MEMORY;
            return;
        }
        lane->step = grown;
        lane->room = room;
    }
    lane->step[lane->steps++] = step;
}

static void append_local(struct hoop_lane *lane, enum hoop_step_kind kind, unsigned flags, enum hoop_buffer to,
                         int to_chunk, enum hoop_buffer from, int from_chunk)
{
    if (!hoop_build_take_chunk(lane, to, to_chunk) || !hoop_build_take_chunk(lane, from, from_chunk))
        return;
    hoop_build_append(lane, (struct hoop_step){.kind = (uint8_t)kind,
                                               .flags = (uint8_t)flags,
                                               .to_buffer = (uint8_t)to,
                                               .from_buffer = (uint8_t)from,
                                               .to = (uint32_t)to_chunk,
                                               .from = (uint32_t)from_chunk});
}

void hoop_lane_copy(struct hoop_lane *lane, enum hoop_buffer to, int to_chunk, enum hoop_buffer from, int from_chunk)
{
    append_local(lane, HOOP_STEP_COPY, 0, to, to_chunk, from, from_chunk);
}

void hoop_lane_combine(struct hoop_lane *lane, enum hoop_buffer to, int to_chunk, enum hoop_buffer from, int from_chunk)
{
    append_local(lane, HOOP_STEP_REDUCE, 0, to, to_chunk, from, from_chunk);
}

void hoop_lane_combine_behind(struct hoop_lane *lane, enum hoop_buffer to, int to_chunk, enum hoop_buffer from,
                              int from_chunk)
{
    append_local(lane, HOOP_STEP_REDUCE, HOOP_STEP_BEHIND, to, to_chunk, from, from_chunk);
}

static void append_send(struct hoop_lane *lane, int peer, enum hoop_buffer from, int chunk, unsigned flags)
{
    if (!take_peer(lane, peer) || !hoop_build_take_chunk(lane, from, chunk))
        return;
    hoop_build_append(lane, (struct hoop_step){.kind = HOOP_STEP_SEND,
                                               .from_buffer = (uint8_t)from,
                                               .flags = (uint8_t)flags,
                                               .peer = peer,
                                               .from = (uint32_t)chunk});
}

void hoop_lane_send(struct hoop_lane *lane, int peer, enum hoop_buffer from, int chunk)
{
    append_send(lane, peer, from, chunk, 0);
}

void hoop_lane_send_staged(struct hoop_lane *lane, int peer, enum hoop_buffer from, int chunk)
{
    append_send(lane, peer, from, chunk, HOOP_STEP_STAGED);
}

void hoop_lane_recv(struct hoop_lane *lane, int peer, enum hoop_buffer to, int chunk)
{
    if (!take_peer(lane, peer) || !hoop_build_take_chunk(lane, to, chunk))
        return;
    hoop_build_append(lane, (struct hoop_step){
                                .kind = HOOP_STEP_RECV, .to_buffer = (uint8_t)to, .peer = peer, .to = (uint32_t)chunk});
}

static void append_recv_reduce(struct hoop_lane *lane, unsigned flags, int peer, enum hoop_buffer to, int to_chunk,
                               enum hoop_buffer from, int from_chunk)
{
    if (!take_peer(lane, peer) || !hoop_build_take_chunk(lane, to, to_chunk) ||
        !hoop_build_take_chunk(lane, from, from_chunk))
        return;
    hoop_build_append(lane, (struct hoop_step){.kind = HOOP_STEP_RECV_REDUCE,
                                               .flags = (uint8_t)flags,
                                               .to_buffer = (uint8_t)to,
                                               .from_buffer = (uint8_t)from,
                                               .peer = peer,
                                               .to = (uint32_t)to_chunk,
                                               .from = (uint32_t)from_chunk});
}

void hoop_lane_recv_reduce_at(struct hoop_lane *lane, int peer, enum hoop_buffer to, int to_chunk,
                              enum hoop_buffer from, int from_chunk)
{
    append_recv_reduce(lane, 0, peer, to, to_chunk, from, from_chunk);
}

void hoop_lane_recv_reduce_behind(struct hoop_lane *lane, int peer, enum hoop_buffer to, int to_chunk,
                                  enum hoop_buffer from, int from_chunk)
{
    append_recv_reduce(lane, HOOP_STEP_BEHIND, peer, to, to_chunk, from, from_chunk);
}

void hoop_lane_recv_reduce(struct hoop_lane *lane, int peer, enum hoop_buffer to, int chunk, enum hoop_buffer from)
{
    hoop_lane_recv_reduce_at(lane, peer, to, chunk, from, chunk);
}

void hoop_lane_join(struct hoop_lane *lane)
{
    struct hoop_step *last = lane->steps > 0 ? &lane->step[lane->steps - 1] : NULL;

    if (lane->builder->status != HOOP_OK)
        return;
    if (last == NULL || last->kind < HOOP_STEP_SEND || last->kind > HOOP_STEP_RECV_REDUCE) {
        hoop_build_object(lane->builder, lane, "only a send or receive can be joined");
        return;
    }
    for (const struct hoop_step *before = last; before-- > lane->step;)
        if (before->peer == last->peer && before->kind >= HOOP_STEP_SEND && before->kind <= HOOP_STEP_RECV_REDUCE &&
            (before->kind == HOOP_STEP_SEND) == (last->kind == HOOP_STEP_SEND)) {
            last->flags |= HOOP_STEP_JOINED;
            return;
        }
    hoop_build_object(lane->builder, lane, "there is no message that it could be joined to");
}

void hoop_lane_after(struct hoop_lane *lane, const struct hoop_lane *other)
{
    if (other == lane)
        hoop_build_object(lane->builder, lane, "a lane cannot wait for itself");
    else if (other->builder != lane->builder)
        hoop_build_object(lane->builder, lane, "the other lane belongs to another plan");
    else if (other->steps > 0)
        hoop_build_append(
            lane, (struct hoop_step){.kind = HOOP_STEP_AFTER, .peer = (int32_t)other->number, .to = other->steps - 1});
}

enum hoop_status hoop_builder_status(const struct hoop_builder *builder)
{
    return builder->status;
}

/* ---- from the author's program to the stored plan ---- */

bool hoop_plan_aliased(const struct hoop_problem *problem, uint32_t grid, uint32_t chunk)
{
    const struct hoop_coll_shape *shape = hoop_coll_shape(problem->coll);

    if (!problem->in_place || (shape->rooted && problem->rank != problem->root) || problem->coll == HOOP_BARRIER)
        return false;
    if (shape->in == HOOP_OWN_BLOCK || shape->out == HOOP_OWN_BLOCK)
        return chunk / (grid / (uint32_t)problem->ranks) == (uint32_t)problem->rank;
    return true;
}

static bool turned(const struct hoop_algo *algo, const struct hoop_problem *problem)
{
    return rooted(problem->coll) && !algo->any_root;
}

/* From the author's numbers to the plan's. */
struct numbering {
    uint32_t channels, ranks, shift; /* shift: of ranks and their blocks */
    uint32_t grid, block;            /* chunks that turn with the ranks, of one block; 0: none do */
    const int *order;                /* ranks by place; NULL: by number */
};

/* The true rank of what the author calls so. */
static uint32_t place_rank(const struct numbering *to, uint32_t rank)
{
    const uint32_t turned_rank = (rank + to->shift) % to->ranks;

    return to->order == NULL ? turned_rank : (uint32_t)to->order[turned_rank];
}

static uint32_t place_chunk(const struct numbering *to, unsigned buffer, uint32_t chunk, uint32_t c)
{
    if (to->block > 0 && buffer != HOOP_TMP)
        chunk = place_rank(to, chunk / to->block) * to->block + chunk % to->block;
    return chunk * to->channels + c;
}

/* One step for channel c, with the peer's true rank. */
static struct hoop_step place(struct hoop_step step, uint32_t c, const struct numbering *to)
{
    if (step.kind == HOOP_STEP_AFTER) {
        step.peer = (int32_t)((uint32_t)step.peer * to->channels + c);
        return step;
    }
    if (step.kind != HOOP_STEP_COPY && step.kind != HOOP_STEP_REDUCE)
        step.peer = (int32_t)place_rank(to, (uint32_t)step.peer);
    if (step.kind != HOOP_STEP_SEND)
        step.to = place_chunk(to, step.to_buffer, step.to, c);
    if (step.kind != HOOP_STEP_RECV)
        step.from = place_chunk(to, step.from_buffer, step.from, c);
    return step;
}

void hoop_plan_find_tmp(struct hoop_plan *plan)
{
    uint32_t first = plan->tmp;

    for (uint32_t lane = 0; lane < plan->lanes; lane++)
        for (uint32_t i = 0; i < plan->lane[lane].steps; i++) {
            const struct hoop_step *step = &plan->lane[lane].step[i];

            if (step->to_buffer == HOOP_TMP && step->to < first)
                first = step->to;
            if (step->from_buffer == HOOP_TMP && step->from < first)
                first = step->from;
        }
    plan->tmp_first = first;
}

/* What authors wrote, for one channel each, or once for all of them. */
struct written {
    struct hoop_builder *builder;
    int count;
};

/* The order of channel c; NULL: that of numbers. */
static const int *order_of(const struct hoop_algo *algo, const struct hoop_problem *problem, int c)
{
    const struct hoop_orders *orders = problem->orders;

    return orders == NULL || !algo->ordered ? NULL : &orders->rank[c % orders->orders * orders->ranks];
}

/* The rank's place in the order. */
static int place_of(const int *order, int rank)
{
    int place = 0;

    while (order != NULL && order[place] != rank)
        place++;
    return order == NULL ? rank : place;
}

static struct numbering number(const struct hoop_builder *builder, const struct hoop_problem *problem, int c)
{
    const int *order = order_of(builder->algo, problem, c);

    return (struct numbering){
        .channels = (uint32_t)problem->channels,
        .ranks = (uint32_t)problem->ranks,
        .shift = turned(builder->algo, problem) ? (uint32_t)place_of(order, problem->root) : 0,
        .grid = builder->grid,
        .block = in_blocks(problem->coll) ? builder->grid / (uint32_t)problem->ranks : 0,
        .order = order,
    };
}

static const struct hoop_builder *written_for(const struct written *written, uint32_t channel)
{
    return &written->builder[(int)channel % written->count];
}

/* An empty plan with room for all steps; the authors of all channels have as many lanes, the largest has most TMP. */
static struct hoop_plan *make_room(const struct written *written, const struct hoop_problem *problem)
{
    const uint32_t channels = (uint32_t)problem->channels;
    uint32_t lanes = 0, tmp = 0;
    size_t steps = 0;

    for (uint32_t c = 0; c < channels; c++) {
        const struct hoop_builder *builder = written_for(written, c);

        for (uint32_t i = 0; i < builder->lanes; i++)
            steps += builder->lane[i].steps;
        lanes = builder->lanes > lanes ? builder->lanes : lanes;
        tmp = builder->tmp > tmp ? builder->tmp : tmp;
    }
    lanes *= channels;
    struct hoop_plan *plan =
        hoop_calloc(1, sizeof *plan + lanes * sizeof(struct hoop_lane_plan) + steps * sizeof(struct hoop_step));
    if (plan == NULL)
        return NULL;
    plan->algo = written->builder[0].algo;
    plan->problem = *problem;
    plan->grid = written->builder[0].grid * channels;
    plan->tmp = tmp * channels;
    plan->lanes = lanes;
    return plan;
}

static struct hoop_plan *store(const struct written *written, const struct hoop_problem *problem)
{
    struct hoop_plan *plan = make_room(written, problem);
    const uint32_t channels = (uint32_t)problem->channels;

    if (plan == NULL)
        return NULL;
    struct hoop_step *next = (struct hoop_step *)(plan->lane + plan->lanes);
    for (uint32_t i = 0; i < plan->lanes; i++) {
        const uint32_t c = i % channels;
        const struct hoop_builder *builder = written_for(written, c);
        const struct numbering numbering = number(builder, problem, (int)c);
        const struct hoop_lane *lane = &builder->lane[i / channels];
        const uint32_t steps = i / channels < builder->lanes ? lane->steps : 0;

        plan->lane[i] = (struct hoop_lane_plan){.steps = steps, .step = next};
        for (uint32_t s = 0; s < steps; s++)
            *next++ = place(lane->step[s], c, &numbering);
    }
    hoop_plan_find_tmp(plan);
    return plan;
}

static enum hoop_status check_problem(const struct hoop_problem *problem)
{
    if ((unsigned)problem->coll >= HOOP_COLLS)
        return hoop_fail(HOOP_ERR_ARG, "collective %d is none", (int)problem->coll);
    if (problem->ranks < 1 || problem->ranks > RANKS_MOST)
        return hoop_fail(HOOP_ERR_ARG, "%d ranks; 1 to %d are allowed", problem->ranks, RANKS_MOST);
    if (problem->rank < 0 || problem->rank >= problem->ranks)
        return hoop_fail(HOOP_ERR_ARG, "rank %d is outside of 0 to %d", problem->rank, problem->ranks - 1);
    if (rooted(problem->coll) && (problem->root < 0 || problem->root >= problem->ranks))
        return hoop_fail(HOOP_ERR_ARG, "root %d is outside of 0 to %d", problem->root, problem->ranks - 1);
    if (problem->channels < 1 || problem->channels > HOOP_MAX_CHANNELS)
        return hoop_fail(HOOP_ERR_ARG, "%d channels; 1 to %d are allowed", problem->channels, HOOP_MAX_CHANNELS);
    return HOOP_OK;
}

enum hoop_status hoop_build_write(struct hoop_builder *builder, const struct hoop_problem *seen, uint32_t most_lanes)
{
    builder->problem = seen;
    builder->most_lanes = most_lanes;
    builder->grid = in_blocks(seen->coll) ? (uint32_t)seen->ranks : 1;
    if (!builder->algo->applicable(seen))
        return hoop_fail(HOOP_ERR_ARG, "algorithm %s does not do %s of %d ranks", builder->algo->name,
                         hoop_coll_name(seen->coll), seen->ranks);
    return builder->algo->plan(builder, seen);
}

/* Let the author write channel c, for root 0 if that is what it expects, in the channel's order. */
static enum hoop_status write_steps(struct hoop_builder *builder, const struct hoop_problem *whole, int c, bool fuse)
{
    const int *order = order_of(builder->algo, whole, c);
    struct hoop_problem seen = *whole;

    seen.orders = NULL;
    seen.rank = place_of(order, seen.rank);
    if (turned(builder->algo, &seen)) {
        seen.rank = (seen.rank - place_of(order, seen.root) + seen.ranks) % seen.ranks;
        seen.root = 0;
    }
    enum hoop_status status = hoop_build_write(builder, &seen, (uint32_t)(HOOP_MAX_LANES / seen.channels));
    if (status == HOOP_OK)
        status = fuse ? hoop_plan_fuse(builder) : builder->status;
    builder->problem = NULL;
    return status;
}

/* Once for all channels where their ranks stand alike. */
static enum hoop_status write_channels(struct written *written, const struct hoop_algo *algo,
                                       const struct hoop_problem *whole, bool fuse)
{
    const int orders = order_of(algo, whole, 0) == NULL ? 1 : whole->orders->orders;
    enum hoop_status status = HOOP_OK;

    written->count = orders < whole->channels ? orders : whole->channels;
    written->builder = hoop_calloc((size_t)written->count, sizeof *written->builder);
    if (written->builder == NULL)
        return HOOP_ERR_MEMORY;
    for (int c = 0; c < written->count && status == HOOP_OK; c++) {
        written->builder[c].algo = algo;
        status = write_steps(&written->builder[c], whole, c, fuse);
    }
    return status;
}

static enum hoop_status check_orders(const struct hoop_problem *problem)
{
    const struct hoop_orders *orders = problem->orders;

    return orders == NULL || (orders->ranks == problem->ranks && orders->orders > 0)
               ? HOOP_OK
               : hoop_fail(HOOP_ERR_ARG, "%d orders of %d ranks do not fit %d ranks", orders->orders, orders->ranks,
                           problem->ranks);
}

enum hoop_status hoop_plan_build(struct hoop_plan **plan, const struct hoop_algo *algo,
                                 const struct hoop_problem *problem, bool fuse)
{
    enum hoop_status status = check_problem(problem);

    if (status == HOOP_OK)
        status = check_orders(problem);
    if (status != HOOP_OK)
        return status;
    struct written written = {.count = 0};
    struct hoop_problem whole = *problem;
    if (!rooted(whole.coll))
        whole.root = 0;
    if (whole.coll == HOOP_BARRIER)
        whole.in_place = false;
    status = write_channels(&written, algo, &whole, fuse);
    if (status == HOOP_OK) {
        struct hoop_plan *stored = store(&written, &whole);

        if (stored != NULL)
            *plan = stored;
        else
            status = HOOP_ERR_MEMORY;
    }
    for (int c = 0; written.builder != NULL && c < written.count; c++)
        for (uint32_t i = 0; i < written.builder[c].lanes; i++)
            hoop_free(written.builder[c].lane[i].step);
    hoop_free(written.builder);
    return status;
}

void hoop_plan_free(struct hoop_plan *plan)
{
    hoop_free(plan);
}
