// SPDX-License-Identifier: BSD-3-Clause
/* The parts of the hierarchical algorithm (hier.c): which there are, where they apply, what they cost together. */
#include <string.h>

#include "algo/hier.h"

static const struct hoop_algo *fit(const struct hoop_algo *algo, enum hoop_coll coll, int ranks)
{
    const struct hoop_problem problem = {.coll = coll, .ranks = ranks, .channels = 1};

    /* a grid that grows with the ranks of a group cannot be shared by groups of different sizes */
    if (algo == NULL || algo->composed || strcmp(algo->name, "sag") == 0)
        return NULL;
    return algo->applicable(&problem) ? algo : NULL;
}

const struct hoop_algo *hoop_hier_part(const struct hoop_problem *p, enum hoop_hier_side side, enum hoop_coll coll,
                                       int ranks)
{
    static const char *const standard[HOOP_COLLS][2] = {
        [HOOP_ALL_REDUCE] = {"twoshot", "rhd"},     [HOOP_REDUCE] = {"tree", "tree"},
        [HOOP_BROADCAST] = {"tree", "tree"},        [HOOP_ALL_GATHER] = {"flat", "bruck"},
        [HOOP_REDUCE_SCATTER] = {"twoshot", "rhd"}, [HOOP_BARRIER] = {"recdbl", "recdbl"},
    };
    const struct hoop_algo *wish = fit(side == HOOP_HIER_INSIDE ? p->intra : p->inter, coll, ranks);

    return wish != NULL ? wish : hoop_algo_find(standard[coll][side]);
}

/* Does each rank carry its share across, not the leaders all? */
bool hoop_hier_shared(const struct hoop_problem *p)
{
    if (!p->groups->equal || hoop_hier_size(p->groups, 0) == 1)
        return false;
    if (p->coll == HOOP_ALL_REDUCE)
        return p->intra == NULL || fit(p->intra, HOOP_REDUCE_SCATTER, 2) || fit(p->intra, HOOP_ALL_GATHER, 2);
    return p->coll == HOOP_REDUCE_SCATTER || p->coll == HOOP_ALL_GATHER;
}

/* ---- cost ---- */

static struct hoop_cost cost_of(const struct hoop_problem *p, enum hoop_hier_side side, enum hoop_coll coll, int ranks)
{
    const struct hoop_problem problem = {.coll = coll, .ranks = ranks, .channels = 1};

    return ranks > 1 ? hoop_hier_part(p, side, coll, ranks)->cost(&problem) : (struct hoop_cost){0};
}

/* Chunks of the part's vector: all are of the same size, so they follow from its formulas. */
int hoop_hier_grid(const struct hoop_problem *p, enum hoop_hier_side side, enum hoop_coll coll, int ranks)
{
    const struct hoop_cost cost = cost_of(p, side, coll, ranks);

    return cost.volume > 0 ? (int)((cost.messages + cost.joined) / cost.volume + 0.5) : 1;
}

static int multiple(int a, int b)
{
    int x = a, y = b;

    while (y != 0) {
        const int rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* Chunks of the whole vector where leaders cross. */
int hoop_hier_leaders_grid(const struct hoop_problem *p)
{
    const bool up = p->coll != HOOP_BROADCAST, down = p->coll != HOOP_REDUCE;
    int grid = hoop_hier_grid(p, HOOP_HIER_ACROSS, p->coll, p->groups->groups);

    if (up)
        grid = multiple(grid, hoop_hier_grid(p, HOOP_HIER_INSIDE, HOOP_REDUCE, 4));
    return down ? multiple(grid, hoop_hier_grid(p, HOOP_HIER_INSIDE, HOOP_BROADCAST, 4)) : grid;
}

bool hoop_hier_applicable(const struct hoop_problem *p)
{
    const struct hoop_groups *g = p->groups;
    const bool blocks = p->coll == HOOP_REDUCE_SCATTER || p->coll == HOOP_ALL_GATHER;

    if (g == NULL || g->ranks != p->ranks || g->groups < 2 || g->groups == p->ranks || p->coll > HOOP_BARRIER ||
        (blocks && !g->equal))
        return false;
    if (p->inter != NULL && !fit(p->inter, p->coll, 2))
        return false;
    /* A guest of recursive doubling has to send all parts before it hears of one; parts go by turns. */
    if (p->inter != NULL && strcmp(p->inter->name, "recdbl") == 0 && p->coll == HOOP_ALL_REDUCE &&
        !hoop_hier_shared(p) && (g->groups & (g->groups - 1)) != 0 && hoop_hier_leaders_grid(p) > 1)
        return false;
    if (p->intra == NULL || fit(p->intra, p->coll, 2))
        return true;
    return p->coll == HOOP_ALL_REDUCE &&
           ((g->equal && hoop_hier_shared(p)) || fit(p->intra, HOOP_REDUCE, 2) || fit(p->intra, HOOP_BROADCAST, 2));
}

/* sum + a part's cost, on a share of the vector; each of its messages is cut into parts. */
static struct hoop_cost plus(struct hoop_cost sum, struct hoop_cost one, double parts, double share)
{
    sum.messages += one.messages;
    sum.volume += one.volume * share;
    sum.reduced += one.reduced * share;
    sum.depth += one.depth;
    sum.joined += (one.messages + one.joined) * parts - one.messages;
    return sum;
}

/* Inside of the groups, the largest of each figure. */
static struct hoop_cost most_inside(const struct hoop_problem *p, enum hoop_coll coll)
{
    struct hoop_cost most = {0};

    for (int g = 0, last = 1; g < p->groups->groups; g++) {
        const int size = hoop_hier_size(p->groups, g);
        if (size == last)
            continue;
        const struct hoop_cost one = cost_of(p, HOOP_HIER_INSIDE, coll, last = size);
        most.messages = one.messages > most.messages ? one.messages : most.messages;
        most.volume = one.volume > most.volume ? one.volume : most.volume;
        most.reduced = one.reduced > most.reduced ? one.reduced : most.reduced;
        most.depth = one.depth > most.depth ? one.depth : most.depth;
        most.joined = one.joined > most.joined ? one.joined : most.joined;
    }
    return most;
}

struct hoop_cost hoop_hier_cost(const struct hoop_problem *p)
{
    const int groups = p->groups->groups, m = hoop_hier_size(p->groups, 0);
    struct hoop_cost sum = {0};

    if (p->coll == HOOP_BARRIER) {
        sum = plus(sum, most_inside(p, HOOP_BARRIER), 1, 1);
        return plus(plus(sum, sum, 1, 1), cost_of(p, HOOP_HIER_ACROSS, HOOP_BARRIER, groups), 1, 1);
    }
    if (!hoop_hier_shared(p)) {
        const int grid = hoop_hier_leaders_grid(p);

        if (p->coll != HOOP_BROADCAST)
            sum = plus(sum, most_inside(p, HOOP_REDUCE), grid / hoop_hier_grid(p, HOOP_HIER_INSIDE, HOOP_REDUCE, 4), 1);
        sum = plus(sum, cost_of(p, HOOP_HIER_ACROSS, p->coll, groups),
                   grid / hoop_hier_grid(p, HOOP_HIER_ACROSS, p->coll, groups), 1);
        if (p->coll != HOOP_REDUCE)
            sum = plus(sum, most_inside(p, HOOP_BROADCAST),
                       grid / hoop_hier_grid(p, HOOP_HIER_INSIDE, HOOP_BROADCAST, 4), 1);
        return sum;
    }
    const int parts =
        p->coll == HOOP_ALL_REDUCE ? hoop_hier_grid(p, HOOP_HIER_ACROSS, HOOP_ALL_REDUCE, groups) : groups;
    if (p->coll != HOOP_ALL_GATHER)
        sum = plus(sum, cost_of(p, HOOP_HIER_INSIDE, HOOP_REDUCE_SCATTER, m), parts, 1);
    sum = plus(sum, cost_of(p, HOOP_HIER_ACROSS, p->coll, groups), 1, 1.0 / m);
    if (p->coll != HOOP_REDUCE_SCATTER)
        sum = plus(sum, cost_of(p, HOOP_HIER_INSIDE, HOOP_ALL_GATHER, m), parts, 1);
    return sum;
}

/* Only the part across crosses; each rank of a group carries its share of it, or the leader all. */
struct hoop_crossing hoop_hier_cross(const struct hoop_problem *p)
{
    const struct hoop_cost across = cost_of(p, HOOP_HIER_ACROSS, p->coll, p->groups->groups);
    const bool shared = hoop_hier_shared(p);
    const int carriers = shared ? hoop_hier_size(p->groups, 0) : 1;

    return (struct hoop_crossing){.near = hoop_hier_cost(p).depth - across.depth,
                                  .far = across.depth,
                                  .volume = across.volume / carriers,
                                  .load = across.volume,
                                  .messages = across.messages,
                                  .mean = shared ? across.messages : across.messages * p->groups->groups / p->ranks};
}
