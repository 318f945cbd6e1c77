// SPDX-License-Identifier: BSD-3-Clause
/* Recursive halving and doubling on a circle, for any n.
 *
 * Idea: seen from rank r, item i is the chunk that belongs to rank r+i. Halving: of s items r hands the upper floor(s/2)
 * to the rank ceil(s/2) further on, adds what comes from as far back to its lower ones, and keeps ceil(s/2); after
 * ceil(log2 n) rounds it holds item 0 with everybody's part. Doubling is the same backwards and hands out finished
 * items. Reduce-scatter is the one, all-gather the other, all-reduce both in a row. Where n is no power of two the
 * circle closes by itself: nobody is a guest.
 * Cost: all-reduce 2 ceil(log2 n) messages, 2(n-1)/n of the vector; reduce-scatter and all-gather half of that. What goes
 * over in a round is one message of up to floor(n/2) parts.   Depth: as many as messages.
 * Order: a balanced sum of ceil(log2 n) levels for each chunk, made once, so all ranks get the same bits, and rounding
 * errors grow with log n, not with n.
 *
 * In a round items are sent and received by turns: with one slot a link nobody could send two before he receives.
 */
#include "hoop/plan.h"

enum { ROUNDS_MOST = 32 };

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks > 1 && (p->coll == HOOP_ALL_REDUCE || p->coll == HOOP_REDUCE_SCATTER || p->coll == HOOP_ALL_GATHER);
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    const double others = p->ranks - 1, share = others / p->ranks, ways = p->coll == HOOP_ALL_REDUCE ? 2 : 1;
    double rounds = 0;

    for (int size = p->ranks; size > 1; size = (size + 1) / 2)
        rounds++;
    return (struct hoop_cost){.messages = ways * rounds,
                              .volume = ways * share,
                              .reduced = p->coll == HOOP_ALL_GATHER ? 0 : share,
                              .depth = ways * rounds,
                              .joined = ways * (others - rounds)};
}

static void join(struct hoop_lane *lane, int i)
{
    if (i > 0)
        hoop_lane_join(lane);
}

/* Where the sum of an item grows, and its chunk number there. */
static enum hoop_buffer sum_buffer(const struct hoop_problem *p, int item)
{
    return p->coll == HOOP_REDUCE_SCATTER && item > 0 ? HOOP_TMP : HOOP_OUT;
}

static int sum_chunk(const struct hoop_problem *p, int item)
{
    return sum_buffer(p, item) == HOOP_TMP ? item : (p->rank + item) % p->ranks;
}

static void halve(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int n = p->ranks;

    for (int size = n; size > 1;) {
        const int keep = (size + 1) / 2, next = (p->rank + keep) % n, prev = (p->rank + n - keep) % n;
        const bool first = size == n;

        for (int i = 0; i < size - keep; i++) {
            const int item = keep + i, chunk = (p->rank + i) % n;

            if (item < n / 2) /* the first round has added something to it */
                hoop_lane_send(lane, next, sum_buffer(p, item), sum_chunk(p, item));
            else
                hoop_lane_send(lane, next, HOOP_IN, (p->rank + item) % n);
            join(lane, i);
            hoop_lane_recv_reduce_at(lane, prev, sum_buffer(p, i), sum_chunk(p, i), first ? HOOP_IN : sum_buffer(p, i),
                                     first ? chunk : sum_chunk(p, i));
            join(lane, i);
        }
        size = keep;
    }
}

static void grow(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int n = p->ranks;
    int size[ROUNDS_MOST], rounds = 0;

    for (int s = n; s > 1; s = (s + 1) / 2)
        size[rounds++] = s;
    while (rounds-- > 0) {
        const int have = (size[rounds] + 1) / 2, next = (p->rank + n - have) % n, prev = (p->rank + have) % n;

        for (int i = 0; i < size[rounds] - have; i++) {
            const bool own = i == 0 && p->coll == HOOP_ALL_GATHER;

            hoop_lane_send(lane, next, own ? HOOP_IN : HOOP_OUT, (p->rank + i) % n);
            join(lane, i);
            hoop_lane_recv(lane, prev, HOOP_OUT, (p->rank + have + i) % n);
            join(lane, i);
        }
    }
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    struct hoop_lane *lane = hoop_lane(b);

    hoop_grid(b, p->ranks);
    if (p->coll != HOOP_ALL_GATHER)
        halve(lane, p);
    else if (!p->in_place)
        hoop_lane_copy(lane, HOOP_OUT, p->rank, HOOP_IN, p->rank);
    if (p->coll != HOOP_REDUCE_SCATTER)
        grow(lane, p);
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_rhd = {.name = "rhd", .applicable = applicable, .cost = cost, .plan = plan};
