// SPDX-License-Identifier: BSD-3-Clause
/* Two-shot: rank i reduces slice i of the vector straight from everyone, then everyone takes it from there.
 *
 * Idea: cut the vector into n chunks. First shot: each rank sends chunk j to rank j, and adds up its own chunk as the
 * others' come in. Second shot: it sends the finished chunk to all. Where peers read each other's memory both shots are
 * direct: every element is read once where it lies, added, and read once more as a result. Reduce-scatter is the first
 * shot alone.
 * Cost, per rank: all-reduce 2(n-1) messages, 2(n-1)/n of the vector, (n-1)/n of it added; reduce-scatter n-1 messages,
 * (n-1)/n, (n-1)/n: as little as the ring, in 2 steps instead of 2(n-1).   Depth: 2; reduce-scatter 1.
 * Order: ((x0 + x1) + x2) + …, once for each chunk, so all ranks get the same bits, whoever adds.
 *
 * In place the finished chunk j lands where my part of it lay; rank j has read that before it sends the result, so nobody
 * waits in a circle and no send has to be staged.
 */
#include "algo/order.h"
#include "hoop/plan.h"

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks > 1 && (p->coll == HOOP_ALL_REDUCE || p->coll == HOOP_REDUCE_SCATTER);
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    const double others = p->ranks - 1, share = others / p->ranks, shots = p->coll == HOOP_ALL_REDUCE ? 2 : 1;

    return (struct hoop_cost){shots * others, shots * share, share, shots, 0};
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    struct hoop_lane *lane = hoop_lane(b);
    const int n = p->ranks, own = p->rank;

    hoop_grid(b, n);
    for (int i = 1; i < n; i++) /* beginning with the next rank, so that not all begin with the same one */
        hoop_lane_send(lane, (own + i) % n, HOOP_IN, (own + i) % n);
    hoop_algo_sum_in_order(lane, p, own, own);
    if (p->coll == HOOP_REDUCE_SCATTER)
        return hoop_builder_status(b);
    for (int i = 1; i < n; i++)
        hoop_lane_send(lane, (own + i) % n, HOOP_OUT, own);
    for (int i = 1; i < n; i++)
        hoop_lane_recv(lane, (own + n - i) % n, HOOP_OUT, (own + n - i) % n);
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_twoshot = {
    .name = "twoshot", .applicable = applicable, .cost = cost, .plan = plan, .rank_order = true};
