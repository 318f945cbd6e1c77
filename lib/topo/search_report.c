// SPDX-License-Identifier: BSD-3-Clause
/* What the search has found, for its caller: the channels, what limits each, and the bound. See search.c. */
#include "topo/search.h"

/* The edge of least left of its budget, in proportion, of those seen so far. */
static void look_at(const struct hoop_search *search, int edge, int *worst, double *least)
{
    const double left = (double)search->left[edge] / search->net.edge[edge].budget;

    if (left < *least) {
        *least = left;
        *worst = edge;
    }
}

/* The link of a channel that has least left of its budget. */
static int most_used(const struct hoop_search *search, const struct hoop_search_way *way)
{
    const int hops = search->net.gpus - (search->shape == HOOP_TOPO_CHAIN || search->hosts > 1);
    int worst = -1;
    double least = 2;

    for (int end = 0; end < 2; end++)
        if (way->port[end] >= 0) {
            const struct hoop_net_path *path =
                &search->net.way_out[way->order[end == 0 ? 0 : search->net.gpus - 1]][way->port[end]];

            for (int i = path->edges; i-- > 0;) /* of equals the port */
                look_at(search, path->edge[i] ^ (end == 0), &worst, &least);
        }
    for (int i = 0; i < hops; i++) {
        const struct hoop_net_path *path = &search->net.path[way->order[i]][way->order[(i + 1) % search->net.gpus]];

        for (int j = 0; j < path->edges; j++)
            look_at(search, path->edge[j], &worst, &least);
    }
    return worst;
}

static void note_path(const struct hoop_search *search, const struct hoop_net_path *path, enum hoop_topo_hop *worst,
                      bool *assumed)
{
    if (path->hop > *worst)
        *worst = path->hop;
    for (int i = 0; i < path->edges; i++)
        *assumed |= search->net.edge[path->edge[i]].assumed;
}

static void use_channel(struct hoop_search *search, const struct hoop_search_way *way, struct hoop_topo_channels *found,
                        int number)
{
    const int gpus = search->net.gpus, hops = gpus - (search->shape == HOOP_TOPO_CHAIN || search->hosts > 1);
    struct hoop_topo_channel *channel = &found->channel[number];

    for (int i = 0; i < gpus; i++)
        channel->node[i] = search->net.vertex[way->order[i]].node;
    for (int i = 0; i < hops; i++) {
        const int to = way->order[(i + 1) % gpus];

        hoop_search_use(search, way->order[i], to, search->best_bandwidth);
        note_path(search, &search->net.path[way->order[i]][to], &channel->worst, &found->assumed);
    }
    for (int end = 0; end < 2; end++) {
        const int gpu = way->order[end == 0 ? 0 : gpus - 1], port = way->port[end];

        channel->port[end] = port < 0 ? -1 : search->net.port[port].node;
        if (port < 0)
            continue;
        hoop_search_use_port(search, gpu, port, end == 1 || search->shape == HOOP_TOPO_CHAIN, end == 0,
                             hoop_search_through_port(search, search->best_bandwidth));
        note_path(search, &search->net.way_out[gpu][port], &channel->worst_port, &found->assumed);
    }
}

/* Beside cuts: any tree, a chain as well, has one link fewer than GPUs, and uses each both ways; in a ring each GPU has two neighbours. */
long hoop_search_bound(const struct hoop_search *search)
{
    const int links = search->net.gpus - 1;

    if (search->hosts == 1) {
        const long cut = hoop_net_bound(&search->net, search->worst),
                   shape = search->shape == HOOP_TOPO_CHAIN ? hoop_net_out(&search->net, search->worst) / (2 * links)
                           : links > 1                      ? hoop_net_two_neighbours(&search->net, search->worst)
                                                            : cut;
        return shape < cut ? shape : cut;
    }
    return hoop_net_wire_bound(&search->net) * 2 / hoop_search_through_port(search, 2);
}

void hoop_search_report(struct hoop_search *search, struct hoop_topo_channels *found)
{
    *found = (struct hoop_topo_channels){.devices = search->net.gpus,
                                         .hosts = search->hosts,
                                         .channels = search->best_channels,
                                         .gigabytes_per_second = search->best_bandwidth / 1000.0,
                                         .single = search->single / 1000.0,
                                         .bound = (double)search->bound / 1000,
                                         .worst = search->worst,
                                         .nearest_port = search->nearest_port,
                                         .worst_port = search->best_port};
    hoop_search_fill_budgets(search);
    for (int i = 0; i < search->best_channels; i++)
        use_channel(search, &search->best[i], found, i);
    for (int i = 0; i < search->best_channels; i++) {
        const int edge = most_used(search, &search->best[i]);
        hoop_net_describe(&search->net, edge, found->channel[i].limit, sizeof found->channel[i].limit);
    }
}
