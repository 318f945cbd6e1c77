// SPDX-License-Identifier: BSD-3-Clause
/* Rings and chains through all GPUs of a host.
 *
 * First the nearest kind of hop is found with which a ring is possible at all: where NVLinks join all, none goes over PCI. Then
 * channels of a fixed bandwidth are packed one by one, each found depth first (the emptiest way first), taking its bandwidth from the
 * budget of every link on the way. That is repeated for every bandwidth that is a whole share of some link; the one that carries most in
 * all is kept, and of equals the one with fewer channels. Steps are counted, so the work is bounded and always the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/network.h"

enum { MOST_SHARES = 8, MOST_LEVELS = 48, MOST_STEPS = 1 << 13, MOST_STEPS_A_LEVEL = 1 << 16 };

enum rule { NEAR_THEN_ROOM, ROOM, TIGHT, TURNING, RULES };

struct search {
    struct hoop_net net;
    enum hoop_topo_shape shape;
    enum hoop_topo_hop worst;
    int left[HOOP_NET_EDGES]; /* of the budgets */
    int bandwidth, channels;
    enum rule rule;
    int order[HOOP_TOPO_SEARCH_DEVICES], length;
    uint32_t visited;
    long steps, steps_level;
    int level[MOST_LEVELS], levels;
    int best[HOOP_TOPO_SEARCH_CHANNELS][HOOP_TOPO_SEARCH_DEVICES], best_channels, best_bandwidth;
    int single;
};

/* Take bandwidth (or give it back) on the way from a to b; a chain uses both directions. */
static void use(struct search *search, int a, int b, int bandwidth)
{
    const struct hoop_net_path *path = &search->net.path[a][b], *back = &search->net.path[b][a];

    for (int i = 0; i < path->edges; i++)
        search->left[path->edge[i]] -= bandwidth;
    for (int i = 0; search->shape == HOOP_TOPO_CHAIN && i < back->edges; i++)
        search->left[back->edge[i]] -= bandwidth;
}

/* What is left on the way; -1: it is no way, or worse than allowed. */
static int room(const struct search *search, int a, int b)
{
    const struct hoop_net_path *path = &search->net.path[a][b];
    int least = path->edges == 0 || path->hop > search->worst ? -1 : INT32_MAX;

    for (int i = 0; i < path->edges && least >= 0; i++)
        if (search->left[path->edge[i]] < least)
            least = search->left[path->edge[i]];
    return least;
}

/* What makes a GPU a good next one; less is better. Several greedy rules are tried, since each fails on some machine. */
static long rank_of(const struct search *search, int from, int to, int left)
{
    const long hop = search->net.path[from][to].hop, n = search->net.gpus;

    switch (search->rule) {
    case NEAR_THEN_ROOM:
        return hop * ((long)INT32_MAX + 1) + (INT32_MAX - left);
    case ROOM:
        return INT32_MAX - left;
    case TIGHT:
        return hop * ((long)INT32_MAX + 1) + left;
    default: /* near, then another distance for each channel */
        return hop * n + (to - from - search->channels + 3 * n - 1) % n;
    }
}

/* The GPUs that may come next, best first, equals in order. */
static int candidates(const struct search *search, int from, int *next)
{
    long rank[HOOP_TOPO_SEARCH_DEVICES];
    int count = 0;

    for (int to = 0; to < search->net.gpus; to++) {
        const int left = search->visited >> to & 1 ? -1 : room(search, from, to);
        int at = count;

        if (left < search->bandwidth)
            continue;
        const long mine = rank_of(search, from, to, left);
        for (; at > 0 && rank[at - 1] > mine; at--) {
            next[at] = next[at - 1];
            rank[at] = rank[at - 1];
        }
        next[at] = to;
        rank[at] = mine;
        count++;
    }
    return count;
}

/* Is what lies on the way still within its budget? A way may use a link that an earlier hop of the same channel used. */
static bool fits(const struct search *search, int a, int b)
{
    const struct hoop_net_path *path = &search->net.path[a][b], *back = &search->net.path[b][a];

    for (int i = 0; i < path->edges; i++)
        if (search->left[path->edge[i]] < 0)
            return false;
    for (int i = 0; search->shape == HOOP_TOPO_CHAIN && i < back->edges; i++)
        if (search->left[back->edge[i]] < 0)
            return false;
    return true;
}

static bool extend(struct search *search)
{
    const int last = search->order[search->length - 1];
    int next[HOOP_TOPO_SEARCH_DEVICES];

    if (search->length == search->net.gpus) {
        if (search->shape == HOOP_TOPO_CHAIN)
            return true;
        if (room(search, last, search->order[0]) < search->bandwidth)
            return false;
        use(search, last, search->order[0], search->bandwidth);
        return true;
    }
    const int count = candidates(search, last, next);
    for (int i = 0; i < count && search->steps > 0; i++) {
        search->steps--;
        use(search, last, next[i], search->bandwidth);
        search->order[search->length++] = next[i];
        search->visited |= 1u << next[i];
        if (fits(search, last, next[i]) && extend(search))
            return true;
        search->visited &= ~(1u << next[i]);
        search->length--;
        use(search, last, next[i], -search->bandwidth);
    }
    return false;
}

/* One more channel, from the first GPU that can be its beginning (a ring: any is as good). */
static bool find_channel(struct search *search)
{
    const int starts = search->shape == HOOP_TOPO_RING ? 1 : search->net.gpus;

    for (int start = 0; start < starts; start++) {
        search->order[0] = start;
        search->length = 1;
        search->visited = 1u << start;
        search->steps = search->steps_level < MOST_STEPS ? search->steps_level : MOST_STEPS;
        const long before = search->steps;
        const bool found = extend(search);
        search->steps_level -= before - search->steps;
        if (found)
            return true;
    }
    return false;
}

static void fill_budgets(struct search *search)
{
    for (int i = 0; i < search->net.edges; i++)
        search->left[i] = search->net.edge[i].budget;
    search->steps_level = MOST_STEPS_A_LEVEL;
}

/* As many channels of that bandwidth as go. */
static void pack(struct search *search, int bandwidth)
{
    int channel[HOOP_TOPO_SEARCH_CHANNELS][HOOP_TOPO_SEARCH_DEVICES];

    fill_budgets(search);
    search->bandwidth = bandwidth;
    search->channels = 0;
    while (search->channels < HOOP_TOPO_SEARCH_CHANNELS && find_channel(search))
        memcpy(channel[search->channels++], search->order, sizeof search->order);
    if (search->channels > 0 && bandwidth > search->single)
        search->single = bandwidth;
    if ((long)search->channels * bandwidth <= (long)search->best_channels * search->best_bandwidth)
        return;
    search->best_channels = search->channels;
    search->best_bandwidth = bandwidth;
    memcpy(search->best, channel, sizeof channel);
}

static int compare_down(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;

    return (x < y) - (x > y);
}

/* Whole shares of links that the paths in question use, most first. */
static void find_levels(struct search *search)
{
    int all[HOOP_NET_EDGES * MOST_SHARES] = {0}, count = 0;

    for (int a = 0; a < search->net.gpus; a++)
        for (int b = 0; b < search->net.gpus; b++) {
            const struct hoop_net_path *path = &search->net.path[a][b];

            for (int i = 0; a != b && path->hop <= search->worst && i < path->edges; i++) {
                const int budget = search->net.edge[path->edge[i]].budget;
                bool known = false;

                for (int j = 0; j < count && !known; j += MOST_SHARES)
                    known = all[j] == budget;
                for (int share = 1; share <= MOST_SHARES && !known && count < (int)(sizeof all / sizeof all[0]);
                     share++)
                    all[count++] = budget / share;
            }
        }
    qsort(all, (size_t)count, sizeof all[0], compare_down);
    search->levels = 0;
    for (int i = 0; i < count && search->levels < MOST_LEVELS; i++)
        if (all[i] > 0 && (search->levels == 0 || search->level[search->levels - 1] != all[i]))
            search->level[search->levels++] = all[i];
}

/* The nearest kind of hop that suffices for one channel of any bandwidth. */
static bool find_worst(struct search *search)
{
    for (int hop = HOOP_TOPO_HOP_FABRIC; hop < HOOP_TOPO_HOPS; hop++) {
        search->worst = (enum hoop_topo_hop)hop;
        fill_budgets(search);
        search->bandwidth = 1;
        search->steps_level = (long)HOOP_TOPO_SEARCH_DEVICES * MOST_STEPS;
        if (find_channel(search))
            return true;
    }
    return false;
}

/* The link of a channel that has least left of its budget, in proportion. */
static int most_used(const struct search *search, const int *order)
{
    const int hops = search->net.gpus - (search->shape == HOOP_TOPO_CHAIN);
    int worst = -1;
    double least = 2;

    for (int i = 0; i < hops; i++) {
        const struct hoop_net_path *path = &search->net.path[order[i]][order[(i + 1) % search->net.gpus]];

        for (int j = 0; j < path->edges; j++) {
            const int edge = path->edge[j];
            const double left = (double)search->left[edge] / search->net.edge[edge].budget;

            if (left < least) {
                least = left;
                worst = edge;
            }
        }
    }
    return worst;
}

static void use_channel(struct search *search, const int *order, struct hoop_topo_channels *found, int channel)
{
    const int hops = search->net.gpus - (search->shape == HOOP_TOPO_CHAIN);

    for (int i = 0; i < search->net.gpus; i++)
        found->channel[channel].node[i] = search->net.vertex[order[i]].node;
    for (int i = 0; i < hops; i++) {
        const int to = order[(i + 1) % search->net.gpus];
        const struct hoop_net_path *path = &search->net.path[order[i]][to];

        use(search, order[i], to, search->best_bandwidth);
        if (path->hop > found->channel[channel].worst)
            found->channel[channel].worst = path->hop;
        for (int j = 0; j < path->edges; j++)
            found->assumed |= search->net.edge[path->edge[j]].assumed;
    }
}

static void report(struct search *search, struct hoop_topo_channels *found)
{
    *found = (struct hoop_topo_channels){.devices = search->net.gpus,
                                         .channels = search->best_channels,
                                         .gigabytes_per_second = search->best_bandwidth / 1000.0,
                                         .single = search->single / 1000.0,
                                         .bound = (double)hoop_net_bound(&search->net, search->worst) / 1000,
                                         .worst = search->worst};
    fill_budgets(search);
    for (int i = 0; i < search->best_channels; i++)
        use_channel(search, search->best[i], found, i);
    for (int i = 0; i < search->best_channels; i++) {
        const int edge = most_used(search, search->best[i]);
        hoop_net_describe(&search->net, edge, found->channel[i].limit, sizeof found->channel[i].limit);
    }
}

enum hoop_status hoop_topo_search(const struct hoop_topo *topo, enum hoop_topo_shape shape,
                                  struct hoop_topo_channels *found)
{
    struct search *search;
    enum hoop_status status;

    if (topo == NULL || found == NULL || shape >= HOOP_TOPO_SHAPES)
        return hoop_fail(HOOP_ERR_ARG, "rings: no topology, no place for the result, or shape %d is none", (int)shape);
    search = hoop_calloc(1, sizeof *search);
    if (search == NULL)
        return HOOP_ERR_MEMORY;
    search->shape = shape;
    status = hoop_net_make(&search->net, topo);
    if (status == HOOP_OK && !find_worst(search))
        status = hoop_fail(HOOP_ERR_UNSUPPORTED, "rings: no way through all %d GPUs is known", search->net.gpus);
    if (status == HOOP_OK) {
        find_levels(search);
        for (int rule = 0; rule < RULES; rule++)
            for (int i = 0; i < search->levels; i++) {
                search->rule = (enum rule)rule;
                pack(search, search->level[i]);
            }
        report(search, found);
    }
    hoop_free(search);
    return status;
}

const char *hoop_topo_hop_name(enum hoop_topo_hop hop)
{
    static const char *const names[HOOP_TOPO_HOPS] = {"NVL", "PIX", "PXB", "PHB", "SYS"};

    return hop < HOOP_TOPO_HOPS ? names[hop] : "?";
}
