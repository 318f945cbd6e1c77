// SPDX-License-Identifier: BSD-3-Clause
/* Inside of the search for rings and chains: what it holds, shared by search.c, which finds, and search_report.c, which tells. */
#ifndef HOOP_TOPO_SEARCH_H
#define HOOP_TOPO_SEARCH_H

#include "topo/network.h"

enum { HOOP_SEARCH_LEVELS = 48 };

enum hoop_search_rule { NEAR_THEN_ROOM, ROOM, TIGHT, TURNING, RULES };

/* A channel: its GPUs, and with several hosts its ports (numbers in the network). */
struct hoop_search_way {
    int order[HOOP_TOPO_SEARCH_DEVICES], port[2];
};

struct hoop_search {
    struct hoop_net net;
    enum hoop_topo_shape shape;
    int hosts;
    enum hoop_topo_hop worst, nearest_port, worst_port, best_port;
    int left[HOOP_NET_EDGES]; /* of the budgets */
    int bandwidth, channels;
    enum hoop_search_rule rule;
    struct hoop_search_way way;
    int length;
    uint32_t visited;
    long steps, steps_level;
    int level[HOOP_SEARCH_LEVELS], levels;
    struct hoop_search_way found[HOOP_TOPO_SEARCH_CHANNELS]; /* the channels so far */
    int target; /* channels that are looked for all together, earlier ones changed for the sake of later ones; 0: one by one */
    struct hoop_search_way best[HOOP_TOPO_SEARCH_CHANNELS];
    int best_channels, best_bandwidth;
    int single;
    long bound; /* no set of channels carries more, in MB/s */
};

/* Take bandwidth (or give it back) on the way from a to b; a chain uses both directions. */
void hoop_search_use(struct hoop_search *search, int a, int b, int bandwidth);

/* Take bandwidth between a GPU and a port: out, in or both. */
void hoop_search_use_port(struct hoop_search *search, int gpu, int port, bool out, bool in, int bandwidth);

/* What passes a port each way: of a ring all, of a host in two binary trees four halves, with few hosts less. */
int hoop_search_through_port(const struct hoop_search *search, int bandwidth);

/* Nothing is used. */
void hoop_search_fill_budgets(struct hoop_search *search);

/* No set of channels carries more, in MB/s: as cuts and ports tell. */
long hoop_search_bound(const struct hoop_search *search);

/* Tell the best that was found. */
void hoop_search_report(struct hoop_search *search, struct hoop_topo_channels *found);

#endif
