// SPDX-License-Identifier: BSD-3-Clause
/* The network that data between the GPUs of a host go through, as the search for rings and chains sees it: GPUs, PCI switches, CPUs and
 * one GPU fabric, joined by edges with a budget in whole MB/s for each direction. Where other hosts count, network cards, too: each
 * port is an edge from its card to the wire. */
#ifndef HOOP_TOPO_NETWORK_H
#define HOOP_TOPO_NETWORK_H

#include "topo/model.h"

enum { HOOP_NET_VERTICES = 256, HOOP_NET_EDGES = 1536, HOOP_NET_HOPS = 24, HOOP_NET_PORTS = 64 };

enum hoop_net_kind { HOOP_NET_GPU, HOOP_NET_SWITCH, HOOP_NET_CPU, HOOP_NET_FABRIC, HOOP_NET_CARD, HOOP_NET_WIRE };

struct hoop_net_vertex {
    enum hoop_net_kind kind;
    int node;      /* of the graph; of a CPU a NUMA node, -1 if none is known; of the fabric and the wire -1 */
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

/* A port to other hosts. */
struct hoop_net_port {
    int node, card; /* of the graph; vertex */
    int out;        /* edge from card to wire; out ^ 1: from wire to card */
};

struct hoop_net {
    const struct hoop_topo *topo;
    int gpus, vertices, edges, ports;
    struct hoop_net_vertex vertex[HOOP_NET_VERTICES]; /* GPUs first, in the graph's order */
    struct hoop_net_edge edge[HOOP_NET_EDGES];
    struct hoop_net_path path[HOOP_TOPO_SEARCH_DEVICES][HOOP_TOPO_SEARCH_DEVICES];
    struct hoop_net_port port[HOOP_NET_PORTS];
    /* From a GPU out onto the wire; the way in is the same with each edge turned (edge ^ 1). */
    struct hoop_net_path way_out[HOOP_TOPO_SEARCH_DEVICES][HOOP_NET_PORTS];
};

/* Make the network of the GPUs that `wanted` asks for, and with several hosts of the ports that it asks for.
 * Errors: HOOP_ERR_UNSUPPORTED (fewer than 2 GPUs, more than HOOP_TOPO_SEARCH_DEVICES; several hosts and no port). */
enum hoop_status hoop_net_make(struct hoop_net *net, const struct hoop_topo *topo,
                               const struct hoop_topo_wanted *wanted);

/* Upper bound of what rings of three GPUs and more can carry, in MB/s: each GPU has two neighbours in a ring, so what goes to its best one does
 * not help the other half. */
long hoop_net_two_neighbours(const struct hoop_net *net, enum hoop_topo_hop worst);

/* What leaves all GPUs together, in MB/s, over edges of hops no worse than `worst`. */
long hoop_net_out(const struct hoop_net *net, enum hoop_topo_hop worst);

/* Upper bound of what all channels together can carry between hosts, in MB/s: of all ports, and of what leaves each GPU. */
long hoop_net_wire_bound(const struct hoop_net *net);

/* Upper bound of what all rings or chains together can carry, in MB/s: the narrowest cut between two groups of GPUs, over edges of hops no
 * worse than `worst`. */
long hoop_net_bound(const struct hoop_net *net, enum hoop_topo_hop worst);

/* Upper bound of what all rings or chains together can carry, in MB/s, over edges of hops no worse than `worst`: by lengths given to links, which
 * see more than cuts. `bound`, an upper bound from elsewhere, where they see no more (more than 10 GPUs, or no memory). */
long hoop_net_price_bound(const struct hoop_net *net, enum hoop_topo_shape shape, enum hoop_topo_hop worst, long bound);

/* What an edge is, for people: "2 XGMI links GPU0 - GPU3". */
void hoop_net_describe(const struct hoop_net *net, int edge, char *text, size_t size);

#endif
