// SPDX-License-Identifier: BSD-3-Clause
/* Tree: a binary tree in the order of a heap; rank r has the children 2r+1 and 2r+2.
 *
 * Idea: sums go up to rank 0, results come down. All-reduce does both, each in a lane of its own, so that with slices
 * one is going up while the one before comes down and no link rests. The barrier is the same with empty messages.
 * Cost: an inner rank has 2 children and a parent: all-reduce and barrier 3 messages, 3 vectors, 2 added; broadcast
 * 2 and 2; reduce 1 and 1, 2 added.   Depth: 2 L, broadcast and reduce L, with L = floor(log2 n).
 * Order: own + first child's + second child's, at every rank of the tree; all ranks get the root's bits.
 */
#include "hoop/plan.h"

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks > 1 && (p->coll == HOOP_ALL_REDUCE || p->coll == HOOP_REDUCE || p->coll == HOOP_BROADCAST ||
                            p->coll == HOOP_BARRIER);
}

static int levels(int n)
{
    int levels = 0;

    while (n >> (levels + 1) != 0)
        levels++;
    return levels;
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    const int n = p->ranks;
    const double depth = levels(n), children = n == 2 ? 1 : 2;
    const double both = n < 4 ? children : n == 4 ? 2 : 3; /* rank 1 has a parent and, from 4 ranks on, children */

    switch (p->coll) {
    case HOOP_ALL_REDUCE:
        return (struct hoop_cost){both, both, children, 2 * depth, 0};
    case HOOP_BARRIER:
        return (struct hoop_cost){both, 0, 0, 2 * depth, 0};
    case HOOP_REDUCE:
        return (struct hoop_cost){1, 1, children, depth, 0};
    default:
        return (struct hoop_cost){children, children, 0, depth, 0};
    }
}

static int parent(const struct hoop_problem *p)
{
    return (p->rank - 1) / 2;
}

static int children(const struct hoop_problem *p)
{
    const int rest = p->ranks - (2 * p->rank + 1);

    return rest < 0 ? 0 : rest > 2 ? 2 : rest;
}

/* Collect the children's sums and mine; the root keeps the whole in `sum`. */
static void up(struct hoop_lane *lane, const struct hoop_problem *p, enum hoop_buffer sum)
{
    enum hoop_buffer mine = HOOP_IN;

    for (int i = 0; i < children(p); i++) {
        hoop_lane_recv_reduce(lane, 2 * p->rank + 1 + i, sum, 0, mine);
        mine = sum;
    }
    if (p->rank > 0)
        hoop_lane_send(lane, parent(p), mine, 0);
}

/* Hand down what the root has in `from`. */
static void down(struct hoop_lane *lane, const struct hoop_problem *p, enum hoop_buffer from)
{
    if (p->rank > 0) {
        hoop_lane_recv(lane, parent(p), HOOP_OUT, 0);
        from = HOOP_OUT;
    }
    for (int i = 0; i < children(p); i++)
        hoop_lane_send(lane, 2 * p->rank + 1 + i, from, 0);
}

static void barrier(struct hoop_lane *lane, const struct hoop_problem *p)
{
    for (int i = 0; i < children(p); i++)
        hoop_lane_recv(lane, 2 * p->rank + 1 + i, HOOP_OUT, 0);
    if (p->rank > 0) {
        hoop_lane_send(lane, parent(p), HOOP_IN, 0);
        hoop_lane_recv(lane, parent(p), HOOP_OUT, 0);
    }
    for (int i = 0; i < children(p); i++)
        hoop_lane_send(lane, 2 * p->rank + 1 + i, HOOP_IN, 0);
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    struct hoop_lane *lane = hoop_lane(b);

    switch (p->coll) {
    case HOOP_ALL_REDUCE: {
        struct hoop_lane *way_down = hoop_lane(b);

        up(lane, p, HOOP_OUT);
        hoop_lane_after(way_down, lane);
        down(way_down, p, HOOP_OUT);
        break;
    }
    case HOOP_REDUCE:
        up(lane, p, p->rank == 0 ? HOOP_OUT : HOOP_TMP);
        break;
    case HOOP_BROADCAST:
        down(lane, p, HOOP_IN);
        if (p->rank == 0 && !p->in_place)
            hoop_lane_copy(lane, HOOP_OUT, 0, HOOP_IN, 0);
        break;
    default:
        barrier(lane, p);
    }
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_tree = {
    .name = "tree", .applicable = applicable, .cost = cost, .plan = plan, .ordered = true};
