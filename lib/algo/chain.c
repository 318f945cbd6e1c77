// SPDX-License-Identifier: BSD-3-Clause
/* Chain: a broadcast or reduction along the line of ranks, in parts that follow each other.
 *
 * Idea: the vector is cut into 8 chunks. Each rank receives them from one neighbour and hands each on to the other as soon
 * as it has it (reduce: with its own part added), so all links of the line are busy at once, and each carries the vector
 * just once. Larger vectors are cut further by slices.
 * Cost: 8 messages, 1 vector; reduce adds 1.   Depth: n-1.
 * Order: from the last rank to the root, own part + what came, so each chunk is summed once.
 */
#include "hoop/plan.h"

enum { PARTS = 8 };

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks > 1 && (p->coll == HOOP_BROADCAST || p->coll == HOOP_REDUCE);
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    return (struct hoop_cost){PARTS, 1, p->coll == HOOP_REDUCE, p->ranks - 1, 0};
}

static void broadcast(struct hoop_lane *lane, const struct hoop_problem *p, int part)
{
    if (p->rank > 0)
        hoop_lane_recv(lane, p->rank - 1, HOOP_OUT, part);
    if (p->rank + 1 < p->ranks)
        hoop_lane_send(lane, p->rank + 1, p->rank == 0 ? HOOP_IN : HOOP_OUT, part);
    if (p->rank == 0 && !p->in_place)
        hoop_lane_copy(lane, HOOP_OUT, part, HOOP_IN, part);
}

static void reduce(struct hoop_lane *lane, const struct hoop_problem *p, int part)
{
    enum hoop_buffer sum = HOOP_IN;

    if (p->rank + 1 < p->ranks) {
        sum = p->rank == 0 ? HOOP_OUT : HOOP_TMP;
        hoop_lane_recv_reduce(lane, p->rank + 1, sum, part, HOOP_IN);
    }
    if (p->rank > 0)
        hoop_lane_send(lane, p->rank - 1, sum, part);
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    struct hoop_lane *lane = hoop_lane(b);

    hoop_grid(b, PARTS);
    for (int part = 0; part < PARTS; part++)
        if (p->coll == HOOP_BROADCAST)
            broadcast(lane, p, part);
        else
            reduce(lane, p, part);
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_chain = {
    .name = "chain", .applicable = applicable, .cost = cost, .plan = plan, .ordered = true};
