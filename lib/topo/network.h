// SPDX-License-Identifier: BSD-3-Clause
/* The network that data between the GPUs of a host go through, as the search for rings and chains sees it: GPUs, PCI switches, CPUs and
 * one GPU fabric, joined by edges with a budget in whole MB/s for each direction. */
#ifndef HOOP_TOPO_NETWORK_H
#define HOOP_TOPO_NETWORK_H

#include "topo/model.h"

enum { HOOP_NET_VERTICES = 160, HOOP_NET_EDGES = 1024, HOOP_NET_HOPS = 24 };

enum hoop_net_kind { HOOP_NET_GPU, HOOP_NET_SWITCH, HOOP_NET_CPU, HOOP_NET_FABRIC };

struct hoop_net_vertex {
    enum hoop_net_kind kind;
    int node;      /* of the graph; of a CPU a NUMA node, -1 if none is known; of the fabric -1 */
    int above;     /* vertex; -1: none */
    uint32_t gpus; /* that are below it (of a GPU: itself), as bits */
};

struct hoop_net_edge { /* one direction */
    int from, to;
    int budget;
    bool assumed; /* nobody told: what such parts usually carry */
    enum hoop_topo_link_kind kind;
    int count; /* links side by side; 0: does not apply */
};

/* The way between two GPUs. */
struct hoop_net_path {
    enum hoop_topo_hop hop;
    int edge[HOOP_NET_HOPS], edges; /* edges 0: there is no way */
};

struct hoop_net {
    const struct hoop_topo *topo;
    int gpus, vertices, edges;
    struct hoop_net_vertex vertex[HOOP_NET_VERTICES]; /* GPUs first, in the graph's order */
    struct hoop_net_edge edge[HOOP_NET_EDGES];
    struct hoop_net_path path[HOOP_TOPO_SEARCH_DEVICES][HOOP_TOPO_SEARCH_DEVICES];
};

/* Make the network of the graph's GPUs.   Errors: HOOP_ERR_UNSUPPORTED (fewer than 2 GPUs, more than HOOP_TOPO_SEARCH_DEVICES). */
enum hoop_status hoop_net_make(struct hoop_net *net, const struct hoop_topo *topo);

/* Upper bound of what all rings or chains together can carry, in MB/s: the narrowest cut between two groups of GPUs, over edges of hops no
 * worse than `worst`. */
long hoop_net_bound(const struct hoop_net *net, enum hoop_topo_hop worst);

/* What an edge is, for people: "2 XGMI links GPU0 - GPU3". */
void hoop_net_describe(const struct hoop_net *net, int edge, char *text, size_t size);

#endif
