// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan --topo: a network in levels, described in words or read from a machine's topology. */
#include <hoop.h>
#include <hoop/topo.h>
#include <stdio.h>
#include <string.h>

#include "plan_tool.h"

/* Levels of a machine: one host, its sockets, their NUMA nodes, and a rank for each core; those that do not go up evenly
 * are left out. */
static bool read_machine(const char *path, struct hoop_network *network)
{
    struct hoop_topo *topo;
    char text[128];

    if (hoop_topo_load(&topo, path) != HOOP_OK)
        return false;
    const int cores = hoop_topo_cores(topo) > 0 ? hoop_topo_cores(topo) : 1;
    int sockets = hoop_topo_count(topo, HOOP_TOPO_PACKAGE), numas = hoop_topo_count(topo, HOOP_TOPO_NUMA);
    hoop_topo_free(topo);
    if (sockets < 1 || cores % sockets != 0)
        sockets = 1;
    if (numas < sockets || numas % sockets != 0 || cores % numas != 0)
        numas = sockets;
    snprintf(text, sizeof text, "hosts:1 sockets:%d numa:%d ranks:%d", sockets, numas / sockets, cores / numas);
    return hoop_network_read(network, text) == HOOP_OK;
}

bool read_topo(const char *text, struct hoop_network *network, const char **machine)
{
    const bool words = strncmp(text, "synthetic:", 10) != 0 && strstr(text, "ranks:") != NULL;

    *machine = words ? NULL : text;
    return words ? hoop_network_read(network, text) == HOOP_OK : read_machine(text, network);
}

struct hoop_network network_of(const struct plan_options *options, int ranks)
{
    struct hoop_network network = options->topo;

    if (network.levels == 0)
        return (struct hoop_network){1, {{"ranks", ranks, options->network.bandwidth, options->network.latency}}};
    for (int i = network.levels - 1; i > 0; i--) {
        int count = network.level[i].count < ranks ? network.level[i].count : ranks;

        while (ranks % count != 0) /* as many as go up evenly */
            count--;
        network.level[i].count = count;
        ranks /= count;
    }
    network.level[0].count = ranks;
    return network;
}

int group_of(const struct hoop_network *network)
{
    int ranks = 1;

    for (int i = network->levels; i-- > 1;)
        ranks *= network->level[i].count;
    for (int i = 0; i + 1 < network->levels; i++) {
        if (network->level[i].count > 1)
            return ranks > 1 ? ranks : 0;
        ranks /= network->level[i + 1].count;
    }
    return 0;
}

void network_text(const struct hoop_network *network, char *text, size_t size)
{
    size_t used = 0;

    for (int i = 0; i < network->levels && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s:%d@%g,%g", i > 0 ? " " : "", network->level[i].name,
                                 network->level[i].count, network->level[i].bandwidth, network->level[i].latency);
}
