// SPDX-License-Identifier: BSD-3-Clause
/* Pairwise exchange: in every round two ranks swap what they have for each other.
 *
 * Idea: in round k = 0 … n-1 the partner of rank r is k-r on the circle of ranks, whose partner is r; who would be his
 * own partner rests. So every pair meets once, and nobody sends to more than one rank at a time, which spares links and
 * receivers that many senders at once would choke.
 * Cost, per rank: n-1 messages, (n-1)/n of the vector.   Depth: n; 1 for two ranks.
 * Order: nothing is summed.
 *
 * In place the partners overwrite what they are sending, so sends are staged then.
 */
#include "hoop/plan.h"

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks > 1 && p->coll == HOOP_ALL_TO_ALL;
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    const double n = p->ranks;

    return (struct hoop_cost){n - 1, (n - 1) / n, 0, p->ranks == 2 ? 1 : n, 0};
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    struct hoop_lane *lane = hoop_lane(b);

    if (!p->in_place)
        hoop_lane_copy(lane, HOOP_OUT, p->rank, HOOP_IN, p->rank);
    for (int round = 0; round < p->ranks; round++) {
        const int partner = (round + p->ranks - p->rank) % p->ranks;

        if (partner == p->rank)
            continue;
        if (p->in_place)
            hoop_lane_send_staged(lane, partner, HOOP_IN, partner);
        else
            hoop_lane_send(lane, partner, HOOP_IN, partner);
        hoop_lane_recv(lane, partner, HOOP_OUT, partner);
    }
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_pairwise = {.name = "pairwise", .applicable = applicable, .cost = cost, .plan = plan};
