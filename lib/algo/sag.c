// SPDX-License-Identifier: BSD-3-Clause
/* Scatter and all-gather: a broadcast in which everyone hands out one part.
 *
 * Idea: the vector is cut into n-1 chunks. The root sends one to each of the others, and each of them sends it to the
 * rest. So the root sends the vector once, not n-1 times, all links carry data at the same time, and the way is short.
 * Cost: the root sends n-1 messages and 1 vector, the others n-2 messages and (n-2)/(n-1).   Depth: 2; 1 for n = 2.
 * Order: nothing is summed.
 */
#include "hoop/plan.h"

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks > 1 && p->coll == HOOP_BROADCAST;
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    return (struct hoop_cost){p->ranks - 1, 1, 0, p->ranks > 2 ? 2 : 1, 0};
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    struct hoop_lane *lane = hoop_lane(b);
    const int n = p->ranks, own = p->rank - 1, parts = n - 1;

    hoop_grid(b, parts);
    if (p->rank == 0) {
        for (int i = 0; i < parts; i++)
            hoop_lane_send(lane, i + 1, HOOP_IN, i);
        if (!p->in_place)
            for (int i = 0; i < parts; i++)
                hoop_lane_copy(lane, HOOP_OUT, i, HOOP_IN, i);
        return hoop_builder_status(b);
    }
    hoop_lane_recv(lane, 0, HOOP_OUT, own);
    for (int i = 1; i < parts; i++) /* beginning with the next rank, so that not all begin with the same one */
        hoop_lane_send(lane, (own + i) % parts + 1, HOOP_OUT, own);
    for (int i = 1; i < parts; i++) {
        const int part = (own + parts - i) % parts;

        hoop_lane_recv(lane, part + 1, HOOP_OUT, part);
    }
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_sag = {.name = "sag", .applicable = applicable, .cost = cost, .plan = plan};
