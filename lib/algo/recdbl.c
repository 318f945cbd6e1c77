// SPDX-License-Identifier: BSD-3-Clause
/* Recursive doubling: partners at distance 1, 2, 4, … swap all they have.
 *
 * Idea: with p = 2^L ranks, after round k every rank has the sum of the 2^(k+1) ranks that share its higher bits.
 * For other n, L = floor(log2 n): ranks from p on first give their part to rank r-p and get the result from it in
 * the end. The barrier goes round: in round k rank r tells r + 2^k and hears from r - 2^k, any n.
 * Cost: all-reduce L messages, L vectors (one more each where a rank has a guest), as many added; barrier
 * ceil(log2 n) messages.   Depth: L; L + 1 with guests; L + 2 with more than p/2 of them, when two hosts differ in all
 * bits, so that a guest's part crosses in every round and then goes out to a guest. Barrier ceil(log2 n).
 * Order: a balanced binary sum; partners add the same two terms, so all ranks get the same bits.
 *
 * Partners overwrite what they are sending, so sends are staged: if they lent it, each would wait for the other.
 */
#include "hoop/plan.h"

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks > 1 && (p->coll == HOOP_ALL_REDUCE || p->coll == HOOP_BARRIER);
}

static int log2_floor(int n)
{
    int log = 0;

    while (n >> (log + 1) != 0)
        log++;
    return log;
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    const int rounds = log2_floor(p->ranks), guests = p->ranks - (1 << rounds);
    const double swaps = rounds, more = guests > 0;

    if (p->coll == HOOP_BARRIER)
        return (struct hoop_cost){.messages = swaps + more, .depth = swaps + more};
    return (struct hoop_cost){swaps + more, swaps + more, swaps + more, swaps + more + (2 * guests > 1 << rounds), 0};
}

static void all_reduce(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int power = 1 << log2_floor(p->ranks), guest = p->rank + power;
    enum hoop_buffer mine = HOOP_IN;

    if (p->rank >= power) {
        hoop_lane_send(lane, p->rank - power, HOOP_IN, 0);
        hoop_lane_recv(lane, p->rank - power, HOOP_OUT, 0);
        return;
    }
    if (guest < p->ranks) {
        hoop_lane_recv_reduce(lane, guest, HOOP_OUT, 0, HOOP_IN);
        mine = HOOP_OUT;
    }
    for (int distance = 1; distance < power; distance *= 2) {
        hoop_lane_send_staged(lane, p->rank ^ distance, mine, 0);
        hoop_lane_recv_reduce(lane, p->rank ^ distance, HOOP_OUT, 0, mine);
        mine = HOOP_OUT;
    }
    if (guest < p->ranks)
        hoop_lane_send(lane, guest, HOOP_OUT, 0);
}

static void barrier(struct hoop_lane *lane, const struct hoop_problem *p)
{
    const int n = p->ranks;

    for (int distance = 1; distance < n; distance *= 2) {
        hoop_lane_send(lane, (p->rank + distance) % n, HOOP_IN, 0);
        hoop_lane_recv(lane, (p->rank + n - distance) % n, HOOP_OUT, 0);
    }
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    if (p->coll == HOOP_BARRIER)
        barrier(hoop_lane(b), p);
    else
        all_reduce(hoop_lane(b), p);
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_recdbl = {.name = "recdbl", .applicable = applicable, .cost = cost, .plan = plan};
