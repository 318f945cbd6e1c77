// SPDX-License-Identifier: BSD-3-Clause
/* Ring: chunks travel round the ring of ranks.
 *
 * Idea: cut the vector into n chunks. Reduce-scatter: chunk c sets out at rank c+1 and collects every rank's part on
 * its way to rank c. All-gather: it travels from rank c through all others. All-reduce is the two in a row, with the
 * first part ending one rank earlier.
 * Cost, per link: all-reduce 2(n-1) messages, 2(n-1)/n of the vector; all-gather and reduce-scatter half of that.
 * Depth: 2(n-1); the others n-1.
 * Order: each chunk is summed once, in ring order, so all ranks get the same bits.
 *
 * Sums on their way lie in two TMP chunks by turns: what is lent to the next rank is free again when the turn comes.
 */
#include "hoop/plan.h"

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks > 1 && (p->coll == HOOP_ALL_REDUCE || p->coll == HOOP_ALL_GATHER || p->coll == HOOP_REDUCE_SCATTER);
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    const double n = p->ranks, others = n - 1;

    switch (p->coll) {
    case HOOP_ALL_REDUCE:
        return (struct hoop_cost){2 * others, 2 * others / n, others / n, 2 * others, 0};
    case HOOP_ALL_GATHER:
        return (struct hoop_cost){others, others / n, 0, others, 0};
    default:
        return (struct hoop_cost){others, others / n, others / n, others, 0};
    }
}

static void all_reduce(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int n = p->ranks, next = (p->rank + 1) % n, prev = (p->rank + n - 1) % n;

    hoop_lane_send(lane, next, HOOP_IN, p->rank);
    for (int step = 1; step < n; step++) { /* collect */
        const int chunk = (p->rank + n - step) % n;

        hoop_lane_recv_reduce(lane, prev, HOOP_OUT, chunk, HOOP_IN);
        hoop_lane_send(lane, next, HOOP_OUT, chunk);
    }
    for (int step = 1; step < n; step++) { /* spread */
        const int chunk = (p->rank + 1 + n - step) % n;

        hoop_lane_recv(lane, prev, HOOP_OUT, chunk);
        if (step < n - 1)
            hoop_lane_send(lane, next, HOOP_OUT, chunk);
    }
}

static void all_gather(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int n = p->ranks, next = (p->rank + 1) % n, prev = (p->rank + n - 1) % n;

    hoop_lane_send(lane, next, HOOP_IN, p->rank);
    if (!p->in_place)
        hoop_lane_copy(lane, HOOP_OUT, p->rank, HOOP_IN, p->rank);
    for (int step = 1; step < n; step++) {
        const int chunk = (p->rank + n - step) % n;

        hoop_lane_recv(lane, prev, HOOP_OUT, chunk);
        if (step < n - 1)
            hoop_lane_send(lane, next, HOOP_OUT, chunk);
    }
}

static void reduce_scatter(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int n = p->ranks, next = (p->rank + 1) % n, prev = (p->rank + n - 1) % n;

    hoop_lane_send(lane, next, HOOP_IN, prev);
    for (int step = 2; step < n; step++) {
        const int chunk = (p->rank + n - step) % n;

        hoop_lane_recv_reduce_at(lane, prev, HOOP_TMP, step % 2, HOOP_IN, chunk);
        hoop_lane_send(lane, next, HOOP_TMP, step % 2);
    }
    hoop_lane_recv_reduce(lane, prev, HOOP_OUT, p->rank, HOOP_IN);
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    struct hoop_lane *lane = hoop_lane(b);

    hoop_grid(b, p->ranks);
    switch (p->coll) {
    case HOOP_ALL_REDUCE:
        all_reduce(lane, p);
        break;
    case HOOP_ALL_GATHER:
        all_gather(lane, p);
        break;
    default:
        reduce_scatter(lane, p);
    }
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_ring = {
    .name = "ring", .applicable = applicable, .cost = cost, .plan = plan, .ordered = true};
