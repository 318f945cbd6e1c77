// SPDX-License-Identifier: BSD-3-Clause
/* Binomial tree for gather and scatter: blocks travel in bundles that double.
 *
 * Idea: rank r's parent is r without its lowest set bit, so the ranks below r are r+1 … r+b-1 with b that bit. Gather:
 * each rank collects the blocks of those below it and hands all to its parent. Scatter is the same backwards. The root
 * talks to ceil(log2 n) ranks instead of n-1.
 * Cost: gather 1 message, of at most max(n - 2^(L-1), 2^(L-2)) blocks with L = ceil(log2 n); scatter L messages from the
 * root, (n-1)/n of the vector.   Depth: floor(log2 n), the most bits that a rank has set.
 * Order: nothing is summed.
 *
 * Blocks on their way lie in TMP, chunk i for the block of rank r+i.
 */
#include "hoop/plan.h"

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks > 1 && (p->coll == HOOP_GATHER || p->coll == HOOP_SCATTER);
}

static int log2_floor(int n)
{
    int log = 0;

    while (n >> (log + 1) != 0)
        log++;
    return log;
}

/* How many ranks, r itself too, are in the tree under r. */
static int bundle(int n, int r)
{
    const int whole = r == 0 ? n : r & -r;

    return whole < n - r ? whole : n - r;
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    const int n = p->ranks, log = log2_floor(n), messages = p->coll == HOOP_GATHER ? 1 : log + (n > 1 << log);
    int most = n - 1;

    if (p->coll == HOOP_GATHER)
        for (int r = most = 1; r < n; r *= 2)
            most = bundle(n, r) > most ? bundle(n, r) : most;
    return (struct hoop_cost){messages, (double)most / n, 0, log, most - messages};
}

static void gather(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int n = p->ranks, own = p->rank, size = bundle(n, own);

    if (own == 0 && !p->in_place)
        hoop_lane_copy(lane, HOOP_OUT, 0, HOOP_IN, 0);
    for (int step = 1; step < size; step *= 2) {
        for (int i = step; i < step + bundle(n, own + step); i++) {
            hoop_lane_recv(lane, own + step, own == 0 ? HOOP_OUT : HOOP_TMP, i);
            if (i > step)
                hoop_lane_join(lane);
        }
    }
    if (own == 0)
        return;
    hoop_lane_send(lane, own - (own & -own), HOOP_IN, own);
    for (int i = 1; i < size; i++) {
        hoop_lane_send(lane, own - (own & -own), HOOP_TMP, i);
        hoop_lane_join(lane);
    }
}

static void scatter(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int n = p->ranks, own = p->rank, size = bundle(n, own);
    int step = 1;

    if (own > 0)
        hoop_lane_recv(lane, own - (own & -own), HOOP_OUT, own);
    for (int i = 1; i < size && own > 0; i++) {
        hoop_lane_recv(lane, own - (own & -own), HOOP_TMP, i);
        hoop_lane_join(lane);
    }
    while (step < size)
        step *= 2;
    while ((step /= 2) > 0) /* the largest bundle first: it has the longest way to go */
        for (int i = step; i < step + bundle(n, own + step); i++) {
            hoop_lane_send(lane, own + step, own == 0 ? HOOP_IN : HOOP_TMP, i);
            if (i > step)
                hoop_lane_join(lane);
        }
    if (own == 0 && !p->in_place)
        hoop_lane_copy(lane, HOOP_OUT, 0, HOOP_IN, 0);
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    if (p->coll == HOOP_GATHER)
        gather(hoop_lane(b), p);
    else
        scatter(hoop_lane(b), p);
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_binomial = {.name = "binomial", .applicable = applicable, .cost = cost, .plan = plan};
