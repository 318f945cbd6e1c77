// SPDX-License-Identifier: BSD-3-Clause
/* Bruck: all-gather and all-to-all in ceil(log2 n) rounds, for any n.
 *
 * All-gather: after k rounds rank r has the blocks of r … r+2^k-1 on the circle of ranks. In round k it sends them, as many
 * as the other lacks, to rank r-2^k and gets as many from r+2^k.
 * All-to-all: the block for rank r+j has j ranks to go. In round k each rank hands all blocks whose j has bit k set to rank
 * r+2^k, one message. Each block goes its way bit by bit, and is where it belongs after the highest one.
 * Cost: ceil(log2 n) messages; all-gather (n-1)/n of the vector, all-to-all up to ceil(log2 n)/2 times what it must be.
 * Depth: ceil(log2 n).   Order: nothing is summed.
 *
 * On its way the block with j to go at first lies in TMP, in two places by turns: what is lent to the next rank is free again
 * when the turn comes. In place the sends begin from TMP too, since results overwrite what is still to be sent. In a round
 * blocks are sent and received by turns: with one slot a link nobody could send two before he receives.
 */
#include "hoop/plan.h"

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks > 1 && (p->coll == HOOP_ALL_GATHER || (p->coll == HOOP_ALL_TO_ALL && !p->uneven));
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    const int n = p->ranks;
    double rounds = 0, sent = p->coll == HOOP_ALL_GATHER ? n - 1 : 0;

    for (int distance = 1; distance < n; distance *= 2, rounds++)
        for (int j = distance; j < n && p->coll == HOOP_ALL_TO_ALL; j++)
            sent += (j & distance) != 0;
    return (struct hoop_cost){rounds, sent / n, 0, rounds, sent - rounds};
}

static void all_gather(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int n = p->ranks, own = p->rank;

    if (!p->in_place)
        hoop_lane_copy(lane, HOOP_OUT, own, HOOP_IN, own);
    for (int have = 1; have < n; have *= 2)
        for (int i = 0; i < have && have + i < n; i++) {
            hoop_lane_send(lane, (own + n - have) % n, i == 0 ? HOOP_IN : HOOP_OUT, (own + i) % n);
            if (i > 0)
                hoop_lane_join(lane);
            hoop_lane_recv(lane, (own + have) % n, HOOP_OUT, (own + have + i) % n);
            if (i > 0)
                hoop_lane_join(lane);
        }
}

/* The TMP chunk of a block with j ranks to go at first, before the move in the round of that distance. */
static int on_its_way(int n, int j, int distance)
{
    return j + (__builtin_popcount((unsigned)(j & (distance - 1))) % 2 != 0 ? n : 0);
}

static void all_to_all(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int n = p->ranks, own = p->rank;

    for (int j = 1; j < n && p->in_place; j++)
        hoop_lane_copy(lane, HOOP_TMP, j, HOOP_IN, (own + j) % n);
    if (!p->in_place)
        hoop_lane_copy(lane, HOOP_OUT, own, HOOP_IN, own);
    for (int distance = 1; distance < n; distance *= 2)
        for (int j = distance; j < n; j++) {
            const int next = (own + distance) % n, prev = (own + n - distance) % n;

            if ((j & distance) == 0)
                continue;
            if (!p->in_place && (j & (distance - 1)) == 0)
                hoop_lane_send(lane, next, HOOP_IN, (own + j) % n);
            else
                hoop_lane_send(lane, next, HOOP_TMP, on_its_way(n, j, distance));
            if (j > distance)
                hoop_lane_join(lane);
            if (j < 2 * distance) /* its last move */
                hoop_lane_recv(lane, prev, HOOP_OUT, (own + n - j) % n);
            else
                hoop_lane_recv(lane, prev, HOOP_TMP, on_its_way(n, j, 2 * distance));
            if (j > distance)
                hoop_lane_join(lane);
        }
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    struct hoop_lane *lane = hoop_lane(b);

    if (p->coll == HOOP_ALL_GATHER)
        all_gather(lane, p);
    else
        all_to_all(lane, p);
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_bruck = {.name = "bruck", .applicable = applicable, .cost = cost, .plan = plan};
