// SPDX-License-Identifier: BSD-3-Clause
/* Plans on integers: see brute.h. Buffers are exactly as large as they must be and begin with rubbish; a touch outside
 * of them is a fault. A message that is lent is a pointer, read when it is received. */
#include "brute.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct vector {
    uint64_t *data;
    size_t count; /* elements; 0: there is no such buffer */
};

struct envelope {
    uint64_t *data;
    size_t count;
    bool lent;
};

struct queue {
    struct envelope *envelope; /* credit of them, the oldest first */
    size_t held;
};

struct strand { /* a lane of a rank */
    uint32_t next;
    size_t slice;
};

struct world {
    struct hoop_plan *const *plan;
    struct brute *brute;
    int ranks, lanes;
    struct vector *in, *out, *tmp; /* one a rank; in place, in and out share memory */
    uint64_t **before;             /* what IN held at first */
    struct strand *strand;
    struct queue *queue; /* (source * ranks + destination) * lanes + lane */
    uint64_t random;
    int frozen; /* barrier: this rank does not enter; -1: all do */
    bool failed;
};

__attribute__((format(printf, 2, 3))) static bool fault(struct world *world, const char *format, ...)
{
    va_list arguments;

    if (!world->failed) {
        va_start(arguments, format);
        vsnprintf(world->brute->fault, sizeof world->brute->fault, format, arguments);
        va_end(arguments);
    }
    world->failed = true;
    return false;
}

static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
    x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
    return x ^ (x >> 33);
}

static uint64_t draw(struct world *world)
{
    return scramble(world->random += 0x9e3779b97f4a7c15u);
}

static uint64_t operate(const struct world *world, uint64_t a, uint64_t b)
{
    return world->brute->mix ? scramble(a + b) : a + b;
}

/* ---- shapes, by the words of plan.h ---- */

/* Does the buffer hold only the rank's own block? */
static bool holds_block(enum hoop_coll coll, unsigned buffer)
{
    return buffer == HOOP_IN ? coll == HOOP_ALL_GATHER || coll == HOOP_GATHER
                             : coll == HOOP_REDUCE_SCATTER || coll == HOOP_SCATTER;
}

static bool holds_blocks_at_all(enum hoop_coll coll)
{
    return holds_block(coll, HOOP_IN) || holds_block(coll, HOOP_OUT) || coll == HOOP_ALL_TO_ALL;
}

static bool in_blocks(const struct world *world)
{
    return holds_blocks_at_all(world->plan[0]->problem.coll);
}

static size_t part_begin(size_t total, size_t parts, size_t i)
{
    return i * (total / parts) + (i < total % parts ? i : total % parts);
}

static size_t part_count(size_t total, size_t parts, size_t i)
{
    return part_begin(total, parts, i + 1) - part_begin(total, parts, i);
}

/* First element and count of a grid chunk in the whole vector. */
static void chunk_of_vector(const struct world *world, uint32_t chunk, size_t *begin, size_t *count)
{
    const size_t blocks = in_blocks(world) ? (size_t)world->ranks : 1, each = world->plan[0]->grid / blocks;
    const size_t total = world->plan[0]->problem.coll == HOOP_BARRIER ? 0 : world->brute->count;

    *begin = chunk / each * total + part_begin(total, each, chunk % each);
    *count = part_count(total, each, chunk % each);
}

/* Memory of one slice of a chunk; NULL with a fault if it is not all there. */
static uint64_t *find_piece(struct world *world, int rank, unsigned buffer, uint32_t chunk, size_t slice, size_t *count)
{
    const enum hoop_coll coll = world->plan[0]->problem.coll;
    const struct vector *vector = buffer == HOOP_IN    ? &world->in[rank]
                                  : buffer == HOOP_OUT ? &world->out[rank]
                                                       : &world->tmp[rank];
    const uint32_t grid = world->plan[0]->grid;
    size_t begin, whole;

    if (buffer > HOOP_TMP || (buffer != HOOP_TMP && chunk >= grid)) {
        fault(world, "rank %d: buffer %u has no chunk %u", rank, buffer, chunk);
        return NULL;
    }
    chunk_of_vector(world, chunk % grid, &begin, &whole);
    *count = part_count(whole, world->brute->slices, slice);
    if (buffer == HOOP_TMP) {
        begin = (size_t)chunk * world->brute->count; /* more room than any chunk needs */
    } else {
        if (holds_block(coll, buffer))
            begin -= (size_t)rank * world->brute->count; /* wraps around for an earlier block: not there */
        begin += part_begin(whole, world->brute->slices, slice);
    }
    if (*count > vector->count || begin > vector->count - *count) {
        if (*count > 0 || coll != HOOP_BARRIER)
            fault(world, "rank %d: chunk %u is outside of buffer %u", rank, chunk, buffer);
        return world->failed ? NULL : vector->data;
    }
    return vector->data + begin;
}

/* ---- steps ---- */

enum result { DID, BLOCKED };

struct turn {
    struct world *world;
    int rank, lane;
    size_t slice;
};

static struct queue *queue_of(const struct turn *turn, int source, int destination)
{
    return &turn->world->queue[(source * turn->world->ranks + destination) * turn->world->lanes + turn->lane];
}

static bool good_peer(const struct turn *turn, const struct hoop_step *step)
{
    if (step->peer >= 0 && step->peer < turn->world->ranks && step->peer != turn->rank)
        return true;
    return fault(turn->world, "rank %d: peer %d is none", turn->rank, step->peer);
}

/* Is any of this memory of the rank lent? */
static bool is_lent(const struct turn *turn, const uint64_t *data, size_t count)
{
    for (int destination = 0; destination < turn->world->ranks; destination++)
        for (int lane = 0; lane < turn->world->lanes; lane++) {
            const struct turn other = {turn->world, turn->rank, lane, 0};
            const struct queue *queue = queue_of(&other, turn->rank, destination);

            for (size_t i = 0; i < queue->held; i++)
                if (queue->envelope[i].lent && queue->envelope[i].data < data + count &&
                    data < queue->envelope[i].data + queue->envelope[i].count)
                    return true;
        }
    return false;
}

/* An envelope that is lent points at `piece`; else it gets a copy of `data`. */
static void post(const struct turn *turn, const struct hoop_step *step, uint64_t *piece, const uint64_t *data,
                 size_t count)
{
    struct queue *queue = queue_of(turn, turn->rank, step->peer);
    const bool lent = turn->world->brute->borrow && (step->flags & HOOP_STEP_STAGED) == 0 && piece != NULL;
    struct envelope *envelope = &queue->envelope[queue->held++];

    *envelope = (struct envelope){.data = piece, .count = count, .lent = lent};
    if (!lent) {
        envelope->data = malloc(count * sizeof *data + 1);
        memcpy(envelope->data, data, count * sizeof *data);
    }
}

static enum result do_send(const struct turn *turn, const struct hoop_step *step)
{
    size_t count;
    uint64_t *data = find_piece(turn->world, turn->rank, step->from_buffer, step->from, turn->slice, &count);

    if (!good_peer(turn, step) || data == NULL)
        return BLOCKED;
    if (count == 0 && turn->world->plan[0]->problem.coll != HOOP_BARRIER)
        return DID;
    if (queue_of(turn, turn->rank, step->peer)->held == turn->world->brute->credit)
        return BLOCKED;
    post(turn, step, data, data, count);
    return DID;
}

static void drop_oldest(struct queue *queue)
{
    if (!queue->envelope[0].lent)
        free(queue->envelope[0].data);
    queue->held--;
    memmove(queue->envelope, queue->envelope + 1, queue->held * sizeof *queue->envelope);
}

/* RECV and RECV_REDUCE; with keep, a FORWARD takes the next step along. *steps: how many were done. */
static enum result do_receive(const struct turn *turn, const struct hoop_step *step, uint32_t *steps)
{
    struct world *world = turn->world;
    const bool keep = world->brute->keep && (step->flags & HOOP_STEP_FORWARD) != 0;
    size_t count, from_count = 0;
    uint64_t *to = find_piece(world, turn->rank, step->to_buffer, step->to, turn->slice, &count);
    uint64_t *from = to;

    if (step->kind == HOOP_STEP_RECV_REDUCE)
        from = find_piece(world, turn->rank, step->from_buffer, step->from, turn->slice, &from_count);
    if (!good_peer(turn, step) || to == NULL || from == NULL)
        return BLOCKED;
    if (step->kind == HOOP_STEP_RECV_REDUCE && from_count != count)
        return fault(world, "rank %d: operands of %zu and %zu elements", turn->rank, count, from_count), BLOCKED;
    *steps = keep ? 2 : 1;
    if (count == 0 && world->plan[0]->problem.coll != HOOP_BARRIER)
        return DID;
    struct queue *queue = queue_of(turn, step->peer, turn->rank);
    if (queue->held == 0 || is_lent(turn, to, count))
        return BLOCKED;
    if (keep && (!good_peer(turn, step + 1) || queue_of(turn, turn->rank, step[1].peer)->held == world->brute->credit))
        return BLOCKED;
    if (queue->envelope[0].count != count)
        return fault(world, "rank %d: %zu elements come for %zu", turn->rank, queue->envelope[0].count, count), BLOCKED;
    uint64_t *result = malloc(count * sizeof *result + 1);
    for (size_t i = 0; i < count; i++)
        result[i] = step->kind == HOOP_STEP_RECV ? queue->envelope[0].data[i]
                                                 : operate(world, queue->envelope[0].data[i], from[i]);
    drop_oldest(queue);
    if (!keep || (step->flags & HOOP_STEP_NO_STORE) == 0)
        memcpy(to, result, count * sizeof *result);
    if (keep)
        post(turn, step + 1, (step->flags & HOOP_STEP_NO_STORE) == 0 ? to : NULL, result, count);
    free(result);
    return DID;
}

static enum result do_local(const struct turn *turn, const struct hoop_step *step)
{
    size_t count, from_count;
    uint64_t *to = find_piece(turn->world, turn->rank, step->to_buffer, step->to, turn->slice, &count);
    const uint64_t *from = find_piece(turn->world, turn->rank, step->from_buffer, step->from, turn->slice, &from_count);

    if (to == NULL || from == NULL)
        return BLOCKED;
    if (from_count != count)
        return fault(turn->world, "rank %d: operands of %zu and %zu elements", turn->rank, count, from_count), BLOCKED;
    if (is_lent(turn, to, count))
        return BLOCKED;
    for (size_t i = 0; i < count; i++)
        to[i] = step->kind == HOOP_STEP_COPY ? from[i] : operate(turn->world, from[i], to[i]);
    return DID;
}

static enum result do_after(const struct turn *turn, const struct hoop_step *step)
{
    const struct hoop_plan *plan = turn->world->plan[turn->rank];

    if (step->peer < 0 || step->peer >= (int)plan->lanes || step->to >= plan->lane[step->peer].steps)
        return fault(turn->world, "rank %d: waits for no step", turn->rank), BLOCKED;
    const struct strand *other = &turn->world->strand[turn->rank * turn->world->lanes + step->peer];
    return other->slice > turn->slice || (other->slice == turn->slice && other->next > step->to) ? DID : BLOCKED;
}

static enum result do_step(const struct turn *turn, const struct hoop_step *step, uint32_t *steps)
{
    switch (step->kind) {
    case HOOP_STEP_COPY:
    case HOOP_STEP_REDUCE:
        return do_local(turn, step);
    case HOOP_STEP_SEND:
        return do_send(turn, step);
    case HOOP_STEP_RECV:
    case HOOP_STEP_RECV_REDUCE:
        return do_receive(turn, step, steps);
    case HOOP_STEP_AFTER:
        return do_after(turn, step);
    default:
        fault(turn->world, "rank %d: kind %d is none", turn->rank, step->kind);
        return BLOCKED;
    }
}

/* ---- the run ---- */

static bool strand_ended(const struct world *world, int rank, int lane)
{
    const struct strand *strand = &world->strand[rank * world->lanes + lane];

    return lane >= (int)world->plan[rank]->lanes || world->plan[rank]->lane[lane].steps == 0 ||
           strand->slice == world->brute->slices;
}

static bool rank_ended(const struct world *world, int rank)
{
    for (int lane = 0; lane < world->lanes; lane++)
        if (!strand_ended(world, rank, lane))
            return false;
    return true;
}

/* A few steps of one lane; true: it moved. */
static bool run_strand(struct world *world, int rank, int lane)
{
    struct strand *strand = &world->strand[rank * world->lanes + lane];
    uint64_t patience = 1 + draw(world) % 4;
    bool moved = false;

    while (patience-- > 0 && rank != world->frozen && !strand_ended(world, rank, lane)) {
        const struct hoop_lane_plan *program = &world->plan[rank]->lane[lane];
        const struct turn turn = {world, rank, lane, strand->slice};
        uint32_t steps = 1;

        if (do_step(&turn, &program->step[strand->next], &steps) == BLOCKED)
            break;
        moved = true;
        strand->next += steps;
        if (strand->next >= program->steps) {
            strand->next = 0;
            strand->slice++;
        }
    }
    return moved;
}

/* Run until nothing moves any more. */
static void run_all(struct world *world)
{
    const uint64_t strands = (uint64_t)world->ranks * (uint64_t)world->lanes;
    bool moved = strands > 0;

    while (moved && !world->failed) {
        moved = false;
        for (uint64_t i = 0; i < 2 * strands && !world->failed; i++) {
            const uint64_t chosen = draw(world) % strands;

            moved = run_strand(world, (int)(chosen / (uint64_t)world->lanes), (int)(chosen % (uint64_t)world->lanes)) ||
                    moved;
        }
        for (uint64_t i = 0; i < strands && !world->failed; i++)
            moved = run_strand(world, (int)(i / (uint64_t)world->lanes), (int)(i % (uint64_t)world->lanes)) || moved;
    }
}

/* ---- data ---- */

static uint64_t contribution(const struct world *world, int rank, size_t element)
{
    return scramble(scramble(world->brute->seed + (uint64_t)rank) + element);
}

/* What the vector's element must be in the end. With mix only the sameness on all ranks is looked at. */
static uint64_t expected(const struct world *world, int rank, size_t element)
{
    const struct hoop_problem *problem = &world->plan[0]->problem;
    uint64_t sum = 0;

    const size_t count = world->brute->count;

    if (problem->coll == HOOP_BROADCAST || problem->coll == HOOP_SCATTER)
        return contribution(world, problem->root, element);
    if (problem->coll == HOOP_ALL_TO_ALL)
        return contribution(world, (int)(element / count), (size_t)rank * count + element % count);
    if (problem->coll == HOOP_ALL_GATHER || problem->coll == HOOP_GATHER)
        return contribution(world, (int)(element / count), element % count);
    for (int giver = 0; giver < world->ranks; giver++)
        sum += contribution(world, giver, element);
    return sum;
}

static void open_rank(struct world *world, int rank)
{
    const struct hoop_plan *plan = world->plan[rank];
    const enum hoop_coll coll = plan->problem.coll;
    const bool root = rank == plan->problem.root;
    const size_t count = coll == HOOP_BARRIER ? 0 : world->brute->count, all = count * (size_t)world->ranks;
    struct vector *in = &world->in[rank], *out = &world->out[rank], *tmp = &world->tmp[rank];

    in->count = (coll == HOOP_BROADCAST || coll == HOOP_SCATTER) && !root  ? 0
                : holds_block(coll, HOOP_IN) || !holds_blocks_at_all(coll) ? count
                                                                           : all;
    out->count = (coll == HOOP_REDUCE || coll == HOOP_GATHER) && !root       ? 0
                 : holds_block(coll, HOOP_OUT) || !holds_blocks_at_all(coll) ? count
                                                                             : all;
    tmp->count = plan->tmp * count;
    in->data = malloc((in->count + 1) * sizeof *in->data);
    out->data = malloc((out->count + 1) * sizeof *out->data);
    tmp->data = malloc((tmp->count + 1) * sizeof *tmp->data);
    world->before[rank] = malloc((in->count + 1) * sizeof *in->data);
    if (plan->problem.in_place && in->count > 0 && out->count > 0) {
        const size_t mine = (size_t)rank * count;

        if (holds_block(coll, HOOP_IN)) {
            free(in->data);
            in->data = out->data + mine;
        } else {
            free(out->data);
            out->data = holds_block(coll, HOOP_OUT) ? in->data + mine : in->data;
        }
    }
    for (size_t i = 0; i < out->count; i++)
        out->data[i] = draw(world);
    for (size_t i = 0; i < tmp->count; i++)
        tmp->data[i] = draw(world);
    for (size_t i = 0; i < in->count; i++)
        world->before[rank][i] = in->data[i] = contribution(world, rank, i);
}

static void close_rank(const struct world *world, int rank)
{
    const struct hoop_plan *plan = world->plan[rank];
    const bool shared = plan->problem.in_place && world->in[rank].count > 0 && world->out[rank].count > 0;

    if (!shared || !holds_block(plan->problem.coll, HOOP_IN))
        free(world->in[rank].data);
    if (!shared || holds_block(plan->problem.coll, HOOP_IN))
        free(world->out[rank].data);
    free(world->tmp[rank].data);
    free(world->before[rank]);
}

/* ---- what came of it ---- */

static bool overlaps(const struct vector *out, const uint64_t *data)
{
    return data >= out->data && data < out->data + out->count;
}

static bool check_rank(struct world *world, int rank)
{
    const struct vector *in = &world->in[rank], *out = &world->out[rank];
    const enum hoop_coll coll = world->plan[0]->problem.coll;
    const size_t first = holds_block(coll, HOOP_OUT) ? (size_t)rank * world->brute->count : 0;
    const bool sums = coll == HOOP_ALL_REDUCE || coll == HOOP_REDUCE || coll == HOOP_REDUCE_SCATTER;

    for (size_t i = 0; i < in->count; i++)
        if (!overlaps(out, in->data + i) && in->data[i] != world->before[rank][i])
            return fault(world, "rank %d: input element %zu is overwritten", rank, i);
    for (size_t i = 0; i < out->count; i++) {
        if (!(sums && world->brute->mix) && out->data[i] != expected(world, rank, first + i))
            return fault(world, "rank %d: element %zu is wrong", rank, i);
        if (coll == HOOP_ALL_REDUCE && out->data[i] != world->out[0].data[i])
            return fault(world, "rank %d: element %zu differs from rank 0's", rank, i);
    }
    return true;
}

static bool check_end(struct world *world)
{
    for (int rank = 0; rank < world->ranks; rank++)
        if (world->frozen < 0 && !rank_ended(world, rank))
            return fault(world, "rank %d does not end", rank);
    for (int i = 0; i < world->ranks * world->ranks * world->lanes; i++)
        if (world->frozen < 0 && world->queue[i].held > 0)
            return fault(world, "rank %d has a message that rank %d does not take", i / world->lanes / world->ranks,
                         i / world->lanes % world->ranks);
    for (int rank = 0; rank < world->ranks; rank++)
        if (world->frozen >= 0 && rank != world->frozen && rank_ended(world, rank))
            return fault(world, "rank %d leaves the barrier and rank %d has not entered", rank, world->frozen);
    for (int rank = 0; rank < world->ranks && world->plan[0]->problem.coll != HOOP_BARRIER; rank++)
        if (!check_rank(world, rank))
            return false;
    return true;
}

static bool run_once(struct world *world)
{
    const size_t queues = (size_t)(world->ranks * world->ranks * world->lanes);

    world->random = world->brute->seed;
    world->in = calloc((size_t)world->ranks, sizeof *world->in);
    world->out = calloc((size_t)world->ranks, sizeof *world->out);
    world->tmp = calloc((size_t)world->ranks, sizeof *world->tmp);
    world->before = calloc((size_t)world->ranks, sizeof *world->before);
    world->strand = calloc((size_t)(world->ranks * world->lanes) + 1, sizeof *world->strand);
    world->queue = calloc(queues + 1, sizeof *world->queue);
    for (size_t i = 0; i < queues; i++)
        world->queue[i].envelope = calloc(world->brute->credit, sizeof(struct envelope));
    for (int rank = 0; rank < world->ranks; rank++)
        open_rank(world, rank);
    run_all(world);
    const bool good = !world->failed && check_end(world);
    for (size_t i = 0; i < queues; i++) {
        while (world->queue[i].held > 0)
            drop_oldest(&world->queue[i]);
        free(world->queue[i].envelope);
    }
    for (int rank = 0; rank < world->ranks; rank++)
        close_rank(world, rank);
    free(world->in);
    free(world->out);
    free(world->tmp);
    free(world->before);
    free(world->strand);
    free(world->queue);
    return good;
}

bool brute_run(struct hoop_plan *const *plan, struct brute *brute)
{
    struct world world = {.plan = plan, .brute = brute, .ranks = plan[0]->problem.ranks, .frozen = -1};

    brute->fault[0] = '\0';
    for (int rank = 0; rank < world.ranks; rank++)
        if ((int)plan[rank]->lanes > world.lanes)
            world.lanes = (int)plan[rank]->lanes;
    if (!run_once(&world))
        return false;
    for (int rank = 0; rank < world.ranks && plan[0]->problem.coll == HOOP_BARRIER && world.ranks > 1; rank++) {
        world.frozen = rank;
        if (!run_once(&world))
            return false;
    }
    return true;
}
