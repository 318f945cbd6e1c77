// SPDX-License-Identifier: BSD-3-Clause
/* What calls on the memory of a machine's GPUs would cost, from its topology alone: for machines that are not here.
 *
 * Rates are those of the rings that the search finds; where rings have to go from CPU to CPU, or to other hosts, GPUs near each other are
 * a group, and what crosses has a rate of its own. The kernels of a channel pass on what they combine, slice by slice, so combining
 * and messages take no time beside the longest chain. Its hops are what NCCL reckons with for rings of its bulk protocol: 3.4 us over a GPU
 * fabric, 5.7 us over PCI, 14 us over a network. Nothing here was fitted to a machine. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "hoop/plan.h"
#include "hoop/topo.h"
#include "plan/crossing.h"

enum { HOP_FABRIC = 3400, HOP_PCI = 5700, HOP_NETWORK = 14000, NO_TIME = 1000000, LIST = 8192 };

static double rate_of(const struct hoop_topo_channels *found)
{
    return found->channels * found->gigabytes_per_second;
}

/* Group numbers of a host's GPUs by the NUMA nodes near them; returns how many groups. */
static int label(const struct hoop_topo *topo, int *group, int *node)
{
    static const char nobody[] = "";
    char list[HOOP_TOPO_SEARCH_DEVICES][LIST];
    int gpus = 0, groups = 0;

    for (int i = 0; hoop_topo_node(topo, i) != NULL && gpus < HOOP_TOPO_SEARCH_DEVICES; i++) {
        if (hoop_topo_node(topo, i)->kind != HOOP_TOPO_GPU)
            continue;
        if (hoop_topo_numa_list(topo, i, list[gpus], LIST) != HOOP_OK)
            memcpy(list[gpus], nobody, sizeof nobody);
        group[gpus] = groups;
        for (int j = 0; j < gpus; j++)
            if (strcmp(list[j], list[gpus]) == 0)
                group[gpus] = group[j];
        groups += group[gpus] == groups;
        node[gpus++] = i;
    }
    return groups;
}

/* The least rate of rings inside of the groups that have several GPUs; 0: none has. */
static double rate_inside(const struct hoop_topo *topo, const int *group, const int *node, int gpus, int groups)
{
    double least = 0;
    int nodes = 0;

    while (hoop_topo_node(topo, nodes) != NULL)
        nodes++;
    bool *shown = hoop_calloc((size_t)nodes, sizeof *shown);
    struct hoop_topo_channels *found = hoop_calloc(1, sizeof *found);
    for (int i = 0; i < groups && shown != NULL && found != NULL; i++) {
        const struct hoop_topo_wanted wanted = {.shape = HOOP_TOPO_RING, .hosts = 1, .shown = shown};

        for (int gpu = 0; gpu < gpus; gpu++)
            shown[node[gpu]] = group[gpu] == i;
        if (hoop_topo_search(topo, &wanted, found) == HOOP_OK && (least == 0 || rate_of(found) < least))
            least = rate_of(found);
    }
    hoop_free(found);
    hoop_free(shown);
    return least;
}

/* One host: groups are needed only where rings have to go from CPU to CPU. */
static enum hoop_status one_host(struct hoop_gpu_choice *gpus, const struct hoop_topo *topo,
                                 const struct hoop_topo_channels *rings)
{
    int group[HOOP_TOPO_SEARCH_DEVICES], node[HOOP_TOPO_SEARCH_DEVICES];
    struct hoop_model *model = &gpus->choice.model;

    if (rings->worst < HOOP_TOPO_HOP_SYS)
        return HOOP_OK;
    const int groups = label(topo, group, node);
    const double inside = rate_inside(topo, group, node, gpus->ranks, groups);
    if (groups < 2 || groups == gpus->ranks || inside <= model->copy)
        return HOOP_OK;
    model->uplink = model->copy;
    model->copy = inside;
    return hoop_groups_new(&gpus->groups, gpus->ranks, group);
}

static enum hoop_status several_hosts(struct hoop_gpu_choice *gpus, const struct hoop_topo *topo, int hosts,
                                      struct hoop_topo_channels *rings)
{
    const struct hoop_topo_wanted wanted = {.shape = HOOP_TOPO_RING, .hosts = hosts};
    struct hoop_model *model = &gpus->choice.model;
    char size[16];

    const enum hoop_status status = hoop_topo_search(topo, &wanted, rings);
    if (status != HOOP_OK)
        return status;
    model->uplink = rate_of(rings);
    model->hop_across = HOP_NETWORK;
    snprintf(size, sizeof size, "%d", gpus->ranks);
    gpus->ranks *= hosts;
    return hoop_groups_cut(&gpus->groups, gpus->ranks, size);
}

enum hoop_status hoop_gpu_choice_make(struct hoop_gpu_choice *gpus, const struct hoop_topo *topo, int hosts,
                                      struct hoop_topo_channels *rings)
{
    const struct hoop_topo_wanted wanted = {.shape = HOOP_TOPO_RING, .hosts = 1};

    if (gpus == NULL || rings == NULL)
        return hoop_fail(HOOP_ERR_ARG, "no place for the GPUs' choice, or for their rings");
    *gpus = (struct hoop_gpu_choice){.groups = NULL};
    enum hoop_status status = hoop_choice_read(&gpus->choice);
    if (status == HOOP_OK)
        status = hoop_topo_search(topo, &wanted, rings);
    if (status != HOOP_OK)
        return status;
    const double hop = rings->worst == HOOP_TOPO_HOP_FABRIC ? HOP_FABRIC : HOP_PCI;
    gpus->ranks = rings->devices;
    gpus->choice.model = (struct hoop_model){.hop = hop,
                                             .hop_crowded = hop,
                                             .copy = rate_of(rings),
                                             .reduce = NO_TIME,
                                             .hop_across = hop,
                                             .uplink = NO_TIME,
                                             .derived = true};
    status = hosts == 1 ? one_host(gpus, topo, rings) : several_hosts(gpus, topo, hosts, rings);
    gpus->choice.cores = gpus->ranks;
    gpus->choice.flat_max = 0;
    gpus->choice.stage = 0;
    gpus->choice.direct_min = SIZE_MAX;
    gpus->choice.groups = gpus->groups;
    if (status == HOOP_OK && gpus->groups != NULL)
        status = hoop_crossing_learn(&gpus->choice.model, gpus->groups);
    if (status != HOOP_OK)
        hoop_groups_free(gpus->groups);
    return status;
}
