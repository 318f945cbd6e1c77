// SPDX-License-Identifier: BSD-3-Clause
/* Rings and chains through all GPUs of a host, with several hosts from a network port to a port.
 *
 * First the nearest kind of hop is found with which a ring is possible at all: where NVLinks join all, none goes over PCI. Then
 * channels of a fixed bandwidth are packed one by one, each found depth first (the emptiest way first), taking its bandwidth from the
 * budget of every link on the way. That is repeated for every bandwidth that is a whole share of some link; the one that carries most in
 * all is kept, and of equals the one with fewer channels. Where the bound is not reached one channel more is looked for with all of them
 * together, so that earlier ones give way. Steps are counted, so the work is bounded and always the same. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/search.h"

enum {
    MOST_SHARES = 8,
    MOST_STEPS = 1 << 13,
    MOST_STEPS_A_LEVEL = 1 << 16,
    MOST_TOGETHER = 12,
    MOST_STEPS_TOGETHER = 1 << 15
};

/* Take bandwidth (or give it back) on the way from a to b; a chain uses both directions. */
void hoop_search_use(struct hoop_search *search, int a, int b, int bandwidth)
{
    const struct hoop_net_path *path = &search->net.path[a][b], *back = &search->net.path[b][a];

    for (int i = 0; i < path->edges; i++)
        search->left[path->edge[i]] -= bandwidth;
    for (int i = 0; search->shape == HOOP_TOPO_CHAIN && i < back->edges; i++)
        search->left[back->edge[i]] -= bandwidth;
}

/* What is left on the way; -1: it is no way, or worse than allowed. */
static int room(const struct hoop_search *search, int a, int b)
{
    const struct hoop_net_path *path = &search->net.path[a][b];
    int least = path->edges == 0 || path->hop > search->worst ? -1 : INT32_MAX;

    for (int i = 0; i < path->edges && least >= 0; i++)
        if (search->left[path->edge[i]] < least)
            least = search->left[path->edge[i]];
    return least;
}

/* What makes a GPU a good next one; less is better. Several greedy rules are tried, since each fails on some machine. */
static long rank_of(const struct hoop_search *search, int from, int to, int left)
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
static int candidates(const struct hoop_search *search, int from, int *next)
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
static bool fits(const struct hoop_search *search, int a, int b)
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

/* ---- several hosts: the ports at the ends ---- */

/* Parts of the data that pass a port each way: a ring's all; of a host in two binary trees four halves, with few hosts less. */
int hoop_search_through_port(const struct hoop_search *search, int bandwidth)
{
    if (search->shape == HOOP_TOPO_RING)
        return bandwidth;
    return (bandwidth * (search->hosts < 4 ? search->hosts : 4) + 1) / 2;
}

/* Take bandwidth between a GPU and a port: out, in or both. */
void hoop_search_use_port(struct hoop_search *search, int gpu, int port, bool out, bool in, int bandwidth)
{
    const struct hoop_net_path *path = &search->net.way_out[gpu][port];

    for (int i = 0; i < path->edges; i++) {
        search->left[path->edge[i]] -= out ? bandwidth : 0;
        search->left[path->edge[i] ^ 1] -= in ? bandwidth : 0;
    }
}

/* What is left on the way from a GPU to a port, or back; -1: it is no way, or worse than allowed. */
static int room_port(const struct hoop_search *search, int gpu, int port, bool out, bool in)
{
    const struct hoop_net_path *path = &search->net.way_out[gpu][port];
    int least = path->edges == 0 || path->hop > search->worst_port ? -1 : INT32_MAX;

    for (int i = 0; i < path->edges && least >= 0; i++) {
        const int to = search->left[path->edge[i]], from = search->left[path->edge[i] ^ 1];

        least = out && to < least ? to : least;
        least = in && from < least ? from : least;
    }
    return least;
}

/* The nearest port for the GPU at an end, of those the one with most room, or for a ring's end the one that it began with; -1: none. */
static int choose_port(const struct hoop_search *search, int gpu, bool out, bool in, int prefer)
{
    const int bandwidth = hoop_search_through_port(search, search->bandwidth);
    int best = -1, best_room = 0;

    for (int port = 0; port < search->net.ports; port++) {
        const int left = room_port(search, gpu, port, out, in);
        const enum hoop_topo_hop hop = search->net.way_out[gpu][port].hop,
                                 best_hop = best < 0 ? HOOP_TOPO_HOPS : search->net.way_out[gpu][best].hop;

        if (left < bandwidth || hop > best_hop)
            continue;
        if (hop < best_hop || (best != prefer && (port == prefer || left > best_room))) {
            best = port;
            best_room = left;
        }
    }
    return best;
}

/* The channel is whole but for what joins its ends: the way back, or to the next host. */
static bool close_channel(struct hoop_search *search)
{
    const int last = search->way.order[search->length - 1];

    if (search->shape == HOOP_TOPO_CHAIN)
        return true;
    if (search->hosts > 1) {
        search->way.port[1] = choose_port(search, last, true, false, search->way.port[0]);
        if (search->way.port[1] < 0)
            return false;
        hoop_search_use_port(search, last, search->way.port[1], true, false, search->bandwidth);
        return true;
    }
    if (room(search, last, search->way.order[0]) < search->bandwidth)
        return false;
    hoop_search_use(search, last, search->way.order[0], search->bandwidth);
    return true;
}

static void open_again(struct hoop_search *search)
{
    const int last = search->way.order[search->length - 1];

    if (search->shape == HOOP_TOPO_RING && search->hosts > 1)
        hoop_search_use_port(search, last, search->way.port[1], true, false, -search->bandwidth);
    else if (search->shape == HOOP_TOPO_RING)
        hoop_search_use(search, last, search->way.order[0], -search->bandwidth);
}

/* The port by which a channel that begins at this GPU comes in. */
static bool open_channel(struct hoop_search *search, int start)
{
    const bool both = search->shape == HOOP_TOPO_CHAIN;

    search->way.port[0] = search->way.port[1] = -1;
    if (search->hosts == 1)
        return true;
    search->way.port[0] = choose_port(search, start, both, true, -1);
    if (search->way.port[0] < 0)
        return false;
    hoop_search_use_port(search, start, search->way.port[0], both, true,
                         hoop_search_through_port(search, search->bandwidth));
    return true;
}

/* Nothing came of it. */
static void give_up_channel(struct hoop_search *search, int start)
{
    if (search->way.port[0] >= 0)
        hoop_search_use_port(search, start, search->way.port[0], search->shape == HOOP_TOPO_CHAIN, true,
                             -hoop_search_through_port(search, search->bandwidth));
}

/* ---- one channel ---- */

static bool find_channel(struct hoop_search *search);

/* The channel is closed. Where several are looked for together it holds only if the others can be found, too. */
static bool go_on(struct hoop_search *search)
{
    const struct hoop_search_way way = search->way;
    const uint32_t visited = search->visited;

    search->found[search->channels++] = way;
    if (search->target == 0 || search->channels == search->target || find_channel(search))
        return true;
    search->channels--;
    search->way = way;
    search->visited = visited;
    search->length = search->net.gpus;
    open_again(search);
    return false;
}

static bool extend(struct hoop_search *search)
{
    const int last = search->way.order[search->length - 1];
    int next[HOOP_TOPO_SEARCH_DEVICES];

    if (search->length == search->net.gpus)
        return close_channel(search) && go_on(search);
    const int count = candidates(search, last, next);
    for (int i = 0; i < count && search->steps > 0; i++) {
        search->steps--;
        hoop_search_use(search, last, next[i], search->bandwidth);
        search->way.order[search->length++] = next[i];
        search->visited |= 1u << next[i];
        if (fits(search, last, next[i]) && extend(search))
            return true;
        search->visited &= ~(1u << next[i]);
        search->length--;
        hoop_search_use(search, last, next[i], -search->bandwidth);
    }
    return false;
}

/* What makes a GPU a good beginning; more is better. With several hosts what is left at its ports; else for a chain that little is left of its
 * links, since an end needs half of what those in between need. */
static long start_of(const struct hoop_search *search, int gpu)
{
    long rank = 0;

    for (int port = 0; search->hosts > 1 && port < search->net.ports; port++) {
        const int left = room_port(search, gpu, port, search->shape == HOOP_TOPO_CHAIN, true);
        const long value = left < 0 ? 0 : (long)(HOOP_TOPO_HOPS - search->net.way_out[gpu][port].hop) << 32 | left;
        rank = value > rank ? value : rank;
    }
    for (int i = 0; search->hosts == 1 && search->shape == HOOP_TOPO_CHAIN && i < search->net.edges; i++)
        rank -= search->net.edge[i].from == gpu ? search->left[i] : 0;
    return rank;
}

/* GPUs in the order in which they are tried as beginnings, equals by number; returns how many. */
static int starts(const struct hoop_search *search, int start[HOOP_TOPO_SEARCH_DEVICES])
{
    long rank[HOOP_TOPO_SEARCH_DEVICES];

    for (int gpu = 0; gpu < search->net.gpus; gpu++) {
        const long mine = start_of(search, gpu);
        int at = gpu;

        for (; at > 0 && rank[at - 1] < mine; at--) {
            rank[at] = rank[at - 1];
            start[at] = start[at - 1];
        }
        rank[at] = mine;
        start[at] = gpu;
    }
    return search->shape == HOOP_TOPO_RING && search->hosts == 1 ? 1 : search->net.gpus;
}

/* One more channel, from the first GPU that can be its beginning (a ring of one host: any is as good). */
static bool find_channel(struct hoop_search *search)
{
    int start[HOOP_TOPO_SEARCH_DEVICES];
    const int count = starts(search, start);

    for (int i = 0; i < count; i++) {
        search->way.order[0] = start[i];
        search->length = 1;
        search->visited = 1u << start[i];
        if (search->target == 0)
            search->steps = search->steps_level < MOST_STEPS ? search->steps_level : MOST_STEPS;
        if (!open_channel(search, start[i]))
            continue;
        const long before = search->steps;
        const bool found = extend(search);
        search->steps_level -= before - search->steps;
        if (found)
            return true;
        give_up_channel(search, start[i]);
    }
    return false;
}

void hoop_search_fill_budgets(struct hoop_search *search)
{
    for (int i = 0; i < search->net.edges; i++)
        search->left[i] = search->net.edge[i].budget;
    search->steps_level = MOST_STEPS_A_LEVEL;
}

/* Keep what was found, if it carries more than what was found before. */
static void keep(struct hoop_search *search)
{
    if (search->channels > 0 && search->bandwidth > search->single)
        search->single = search->bandwidth;
    if ((long)search->channels * search->bandwidth <= (long)search->best_channels * search->best_bandwidth)
        return;
    search->best_channels = search->channels;
    search->best_bandwidth = search->bandwidth;
    search->best_port = search->worst_port;
    memcpy(search->best, search->found, sizeof search->best);
}

/* As many channels of that bandwidth as go, one after the other. */
static void pack(struct hoop_search *search, int bandwidth)
{
    hoop_search_fill_budgets(search);
    search->bandwidth = bandwidth;
    search->channels = search->target = 0;
    while (search->channels < HOOP_TOPO_SEARCH_CHANNELS && find_channel(search))
        ;
    keep(search);
}

/* One channel more than would do, as long as that goes: earlier channels give way to later ones. Only while the bound is not reached. */
static void pack_together(struct hoop_search *search, int bandwidth)
{
    const long best = (long)search->best_channels * search->best_bandwidth;
    bool found = true;

    for (int target = (int)(best / bandwidth) + 1;
         found && target <= MOST_TOGETHER && (long)target * bandwidth <= search->bound; target++) {
        hoop_search_fill_budgets(search);
        search->steps = MOST_STEPS_TOGETHER;
        search->bandwidth = bandwidth;
        search->channels = 0;
        search->target = target;
        found = find_channel(search);
        if (found)
            keep(search);
    }
    search->target = 0;
}

/* A budget's whole shares, if they are not there yet. `part` of it is what a channel's bandwidth takes of it, in halves. */
static void add_shares(struct hoop_search *search, int budget, int part)
{
    for (int share = 1; share <= MOST_SHARES; share++) {
        const int level = (int)(2l * budget / part / share);
        int at = search->levels;
        bool known = level <= 0;

        for (int i = 0; i < search->levels; i++)
            known |= search->level[i] == level;
        if (known)
            continue;
        for (; at > 0 && search->level[at - 1] < level; at--)
            if (at < HOOP_SEARCH_LEVELS)
                search->level[at] = search->level[at - 1];
        if (at < HOOP_SEARCH_LEVELS)
            search->level[at] = level;
        search->levels += search->levels < HOOP_SEARCH_LEVELS;
    }
}

/* Whole shares of links that the paths in question use, most first. */
static void find_levels(struct hoop_search *search)
{
    const int part = hoop_search_through_port(search, 2);

    search->levels = 0;
    for (int a = 0; a < search->net.gpus; a++) {
        for (int b = 0; b < search->net.gpus; b++) {
            const struct hoop_net_path *path = &search->net.path[a][b];

            for (int i = 0; a != b && path->hop <= search->worst && i < path->edges; i++)
                add_shares(search, search->net.edge[path->edge[i]].budget, 2);
        }
        for (int port = 0; port < search->net.ports; port++) {
            const struct hoop_net_path *path = &search->net.way_out[a][port];

            for (int i = 0; path->hop <= search->worst_port && i < path->edges; i++)
                add_shares(search, search->net.edge[path->edge[i]].budget, part);
        }
    }
}

static bool one_is_possible(struct hoop_search *search)
{
    hoop_search_fill_budgets(search);
    search->bandwidth = 2;
    search->steps_level = (long)HOOP_TOPO_SEARCH_DEVICES * MOST_STEPS;
    return find_channel(search);
}

/* The nearest kinds of hops, first among GPUs and then to ports, that suffice for one channel of any bandwidth. */
static bool find_worst(struct hoop_search *search)
{
    int hop = HOOP_TOPO_HOP_FABRIC, port = HOOP_TOPO_HOP_PIX;

    search->worst_port = HOOP_TOPO_HOP_SYS;
    for (; hop < HOOP_TOPO_HOPS; hop++) {
        search->worst = (enum hoop_topo_hop)hop;
        if (one_is_possible(search))
            break;
    }
    for (; hop < HOOP_TOPO_HOPS && search->hosts > 1 && port < HOOP_TOPO_HOP_SYS; port++) {
        search->worst_port = (enum hoop_topo_hop)port;
        if (one_is_possible(search))
            break;
    }
    search->nearest_port = search->worst_port = (enum hoop_topo_hop)port;
    return hop < HOOP_TOPO_HOPS;
}

/* Every rule with every bandwidth, and with several hosts every kind of way to the ports, the nearest first. */
static void try_all(struct hoop_search *search)
{
    const int last = search->hosts > 1 ? HOOP_TOPO_HOP_SYS : (int)search->worst_port;

    search->bound = hoop_search_bound(search);
    for (int port = (int)search->worst_port; port <= last; port++) {
        search->worst_port = (enum hoop_topo_hop)port;
        find_levels(search);
        for (int rule = 0; rule < RULES; rule++)
            for (int i = 0; i < search->levels; i++) {
                search->rule = (enum hoop_search_rule)rule;
                pack(search, search->level[i]);
            }
        if (search->hosts > 1)
            continue;
        if ((long)search->best_channels * search->best_bandwidth < search->bound)
            search->bound = hoop_net_price_bound(&search->net, search->shape, search->worst, search->bound);
        for (int rule = 0; rule < RULES; rule++)
            for (int i = 0; i < search->levels; i++) {
                search->rule = (enum hoop_search_rule)rule;
                pack_together(search, search->level[i]);
            }
    }
}

enum hoop_status hoop_topo_search(const struct hoop_topo *topo, const struct hoop_topo_wanted *wanted,
                                  struct hoop_topo_channels *found)
{
    struct hoop_search *search;
    enum hoop_status status;

    if (topo == NULL || wanted == NULL || found == NULL)
        return hoop_fail(HOOP_ERR_ARG, "rings: no topology, no wish, or no place for the result");
    if (wanted->shape >= HOOP_TOPO_SHAPES || wanted->hosts < 1 || wanted->hosts > HOOP_TOPO_SEARCH_HOSTS)
        return hoop_fail(HOOP_ERR_ARG, "rings: shape %d is none, or %d is no number of hosts from 1 to %d",
                         (int)wanted->shape, wanted->hosts, HOOP_TOPO_SEARCH_HOSTS);
    search = hoop_calloc(1, sizeof *search);
    if (search == NULL)
        return HOOP_ERR_MEMORY;
    search->shape = wanted->shape;
    search->hosts = wanted->hosts;
    status = hoop_net_make(&search->net, topo, wanted);
    if (status == HOOP_OK && !find_worst(search))
        status = hoop_fail(HOOP_ERR_UNSUPPORTED, "rings: no way through all %d GPUs%s is known", search->net.gpus,
                           search->hosts > 1 ? " and a port" : "");
    if (status == HOOP_OK) {
        try_all(search);
        hoop_search_report(search, found);
    }
    hoop_free(search);
    return status;
}

const char *hoop_topo_hop_name(enum hoop_topo_hop hop)
{
    static const char *const names[HOOP_TOPO_HOPS] = {"NVL", "PIX", "PXB", "PHB", "SYS"};

    return hop < HOOP_TOPO_HOPS ? names[hop] : "?";
}
