// SPDX-License-Identifier: BSD-3-Clause
/* Flat: every rank sends what others need straight to them.
 *
 * Idea: one step. All-reduce: everyone sends the whole vector to everyone and adds up alone. Reduce-scatter: the same
 * with each receiver's block. The rest is what it must be: everyone to the root, the root to everyone, everyone's
 * block to everyone, an empty message to everyone.
 * Cost, per rank: n-1 messages (reduce, gather: 1); all-reduce n-1 vectors, all-gather, reduce-scatter, all-to-all and
 * scatter (n-1)/n, gather 1/n, broadcast n-1 from the root, reduce 1.   Depth: 1.
 * Order: ((x0 + x1) + x2) + … on every rank and for every root, so the bits do not depend on who adds.
 *
 * Only where all ranks overwrite what all are sending (all-reduce and all-to-all in place) are sends staged: nobody
 * could begin if everybody waited for his readers.
 */
#include "algo/order.h"
#include "hoop/plan.h"

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks >= 1;
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    const double n = p->ranks, others = n - 1;

    if (p->ranks == 1)
        return (struct hoop_cost){0};
    switch (p->coll) {
    case HOOP_ALL_REDUCE:
        return (struct hoop_cost){.messages = others, .volume = others, .reduced = others, .depth = 1};
    case HOOP_REDUCE:
        return (struct hoop_cost){.messages = 1, .volume = 1, .reduced = others, .depth = 1};
    case HOOP_BROADCAST:
        return (struct hoop_cost){.messages = others, .volume = others, .depth = 1};
    case HOOP_GATHER:
        return (struct hoop_cost){.messages = 1, .volume = 1 / n, .depth = 1};
    case HOOP_ALL_GATHER:
    case HOOP_ALL_TO_ALL:
    case HOOP_SCATTER:
        return (struct hoop_cost){.messages = others, .volume = others / n, .depth = 1};
    case HOOP_REDUCE_SCATTER:
        return (struct hoop_cost){.messages = others, .volume = others / n, .reduced = others / n, .depth = 1};
    default:
        return (struct hoop_cost){.messages = others, .depth = 1};
    }
}

static bool in_blocks(const struct hoop_problem *p)
{
    return hoop_coll_shape(p->coll)->blocks;
}

/* Send to all others, beginning with the next rank so that not all begin with the same one. */
static void send_to_all(struct hoop_lane *lane, const struct hoop_problem *p)
{
    for (int i = 1; i < p->ranks; i++) {
        const int peer = (p->rank + i) % p->ranks;
        const int chunk = p->coll == HOOP_ALL_GATHER ? p->rank : in_blocks(p) ? peer : 0;

        if (p->in_place && (p->coll == HOOP_ALL_REDUCE || p->coll == HOOP_ALL_TO_ALL))
            hoop_lane_send_staged(lane, peer, HOOP_IN, chunk);
        else
            hoop_lane_send(lane, peer, HOOP_IN, chunk);
    }
}

static void receive_from_all(struct hoop_lane *lane, const struct hoop_problem *p)
{
    for (int i = 1; i < p->ranks; i++) {
        const int peer = (p->rank + p->ranks - i) % p->ranks;

        hoop_lane_recv(lane, peer, HOOP_OUT, in_blocks(p) ? peer : 0);
    }
}

static void copy_own(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int chunk = in_blocks(p) ? p->rank : 0;

    if (!p->in_place && p->coll != HOOP_BARRIER)
        hoop_lane_copy(lane, HOOP_OUT, chunk, HOOP_IN, chunk);
}

/* The root and the others, in collectives that have one. */
static void with_root(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const bool at_root = p->rank == p->root, gives = p->coll == HOOP_BROADCAST || p->coll == HOOP_SCATTER;
    const int own = in_blocks(p) ? p->rank : 0;

    if (!at_root) {
        if (gives)
            hoop_lane_recv(lane, p->root, HOOP_OUT, own);
        else
            hoop_lane_send(lane, p->root, HOOP_IN, own);
    } else if (p->coll == HOOP_REDUCE) {
        hoop_algo_sum_in_order(lane, p, 0, 0);
    } else {
        if (gives)
            send_to_all(lane, p);
        copy_own(lane, p);
        if (!gives)
            receive_from_all(lane, p);
    }
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    struct hoop_lane *lane = hoop_lane(b);

    if (p->ranks == 1) {
        copy_own(lane, p);
        return hoop_builder_status(b);
    }
    if (hoop_coll_shape(p->coll)->rooted) {
        with_root(lane, p);
        return hoop_builder_status(b);
    }
    send_to_all(lane, p);
    if (hoop_coll_shape(p->coll)->sums) {
        hoop_algo_sum_in_order(lane, p, in_blocks(p) ? p->rank : 0, in_blocks(p) ? p->rank : 0);
    } else {
        copy_own(lane, p);
        receive_from_all(lane, p);
    }
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_flat = {
    .name = "flat", .applicable = applicable, .cost = cost, .plan = plan, .any_root = true, .rank_order = true};
