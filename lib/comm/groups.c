// SPDX-License-Identifier: BSD-3-Clause
/* Which ranks are near each other: those whose cores belong to one NUMA node, or as HOOP_GROUPS says. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/comm.h"
#include "plan/crossing.h"

/* Is there but one NUMA node? Most machines are such, and then nothing more is read. */
static bool one_node(void)
{
    char text[32] = "";
    FILE *file = fopen("/sys/devices/system/node/online", "re");

    if (file == NULL)
        return true;
    const bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return !read || strcmp(text, "0\n") == 0;
}

/* The node of a CPU; -1: unknown. */
static int node_of(int cpu)
{
    char path[64];
    int node = -1;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d", cpu);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return -1;
    for (const struct dirent *entry = readdir(folder); entry != NULL && node < 0; entry = readdir(folder))
        if (sscanf(entry->d_name, "node%d", &node) != 1)
            node = -1;
    closedir(folder);
    return node;
}

int hoop_comm_node(const uint64_t *cpus, int words)
{
    int node = -1;

    if (one_node())
        return 0;
    for (int cpu = 0; cpu < 64 * words; cpu++) {
        if (!(cpus[cpu / 64] >> cpu % 64 & 1))
            continue;
        const int its = node_of(cpu);
        if (its < 0 || (node >= 0 && its != node))
            return -1;
        node = its;
    }
    return node;
}

static enum hoop_status cut(struct hoop_comm *comm, const char *sizes)
{
    const enum hoop_status status = hoop_groups_cut(&comm->groups, comm->ranks, sizes);

    return status != HOOP_ERR_ARG
               ? status
               : hoop_fail(HOOP_ERR_SETUP,
                           "HOOP_GROUPS=%s: give auto, none, or the number of ranks in a group (several with commas)",
                           sizes);
}

static enum hoop_status by_node(struct hoop_comm *comm, const int *node)
{
    bool differ = false;

    for (int rank = 0; rank < comm->ranks; rank++) {
        if (node[rank] < 0)
            return HOOP_OK;
        differ = differ || node[rank] != node[0];
    }
    return differ ? hoop_groups_new(&comm->groups, comm->ranks, node) : HOOP_OK;
}

enum hoop_status hoop_comm_group(struct hoop_comm *comm, const int *node)
{
    const char *sizes = comm->settings.value[HOOP_SETTING_GROUPS].word;

    if (strcmp(sizes, "none") == 0)
        return HOOP_OK;
    const enum hoop_status status = strcmp(sizes, "auto") == 0 ? by_node(comm, node) : cut(comm, sizes);
    comm->choice.groups = comm->groups;
    return status == HOOP_OK && comm->groups ? hoop_crossing_learn(&comm->choice.model, comm->groups) : status;
}
