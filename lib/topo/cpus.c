// SPDX-License-Identifier: BSD-3-Clause
/* CPUs and NUMA nodes near a node as text, and which core a rank should be bound to. */
#include <limits.h>
#include <stdio.h>

#include "topo/model.h"

static enum hoop_status write_list(hwloc_const_bitmap_t set, char *text, size_t size, const char *label)
{
    const int needed = hwloc_bitmap_list_snprintf(text, size, set);

    if (needed >= 0 && (size_t)needed < size)
        return HOOP_OK;
    if (size > 0)
        text[0] = '\0';
    return hoop_fail(HOOP_ERR_ARG, "the list of %s needs %d bytes, %zu are there", label, needed + 1, size);
}

enum hoop_status hoop_topo_cpu_list(const struct hoop_topo *topo, int node, char *text, size_t size)
{
    if (hoop_topo_node(topo, node) == NULL || text == NULL)
        return hoop_fail(HOOP_ERR_ARG, "cpu list: node %d does not exist, or text is NULL", node);
    hwloc_bitmap_t near = hwloc_bitmap_dup(topo->place[node].cpus);
    if (near == NULL)
        return hoop_fail(HOOP_ERR_MEMORY, "no memory for a list of CPUs");
    hwloc_bitmap_and(near, near, topo->allowed);
    const enum hoop_status status = write_list(near, text, size, topo->place[node].node.label);
    hwloc_bitmap_free(near);
    return status;
}

enum hoop_status hoop_topo_numa_list(const struct hoop_topo *topo, int node, char *text, size_t size)
{
    if (hoop_topo_node(topo, node) == NULL || text == NULL)
        return hoop_fail(HOOP_ERR_ARG, "NUMA list: node %d does not exist, or text is NULL", node);
    return write_list(topo->place[node].numas, text, size, topo->place[node].node.label);
}

int hoop_topo_cores(const struct hoop_topo *topo)
{
    int cores = 0;

    for (int i = 0; topo != NULL && i < topo->cores; i++)
        cores += hwloc_bitmap_intersects(topo->core[i], topo->allowed);
    return cores;
}

int hoop_topo_cpus(const struct hoop_topo *topo)
{
    int cpus = 0;

    for (int i = 0; topo != NULL && i < topo->cores; i++)
        for (int cpu = hwloc_bitmap_first(topo->core[i]); cpu >= 0; cpu = hwloc_bitmap_next(topo->core[i], cpu))
            cpus += hwloc_bitmap_isset(topo->allowed, (unsigned)cpu);
    return cpus;
}

/* Does core number `core` of those that the process may use belong to the rank? */
static bool core_is_for(int core, int cores, int rank, int ranks)
{
    if (ranks > cores)
        return core == rank % cores;
    return core >= (int)((long)rank * cores / ranks) && core < (int)((long)(rank + 1) * cores / ranks);
}

enum hoop_status hoop_topo_bind_core(const struct hoop_topo *topo, int rank, int ranks, int *cpus, int most, int *count)
{
    const int cores = hoop_topo_cores(topo);
    int core = 0, found = 0;

    if (topo == NULL || cpus == NULL || count == NULL || most < 1 || rank < 0 || rank >= ranks)
        return hoop_fail(HOOP_ERR_ARG, "bind core: local rank %d of %d, room for %d CPUs: not possible", rank, ranks,
                         most);
    if (cores == 0)
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "bind core: %s lists no core that this process may use; run without binding", topo->origin);
    for (int i = 0; i < topo->cores; i++) {
        if (!hwloc_bitmap_intersects(topo->core[i], topo->allowed))
            continue;
        for (int cpu = hwloc_bitmap_first(topo->core[i]); cpu >= 0; cpu = hwloc_bitmap_next(topo->core[i], cpu))
            if (core_is_for(core, cores, rank, ranks) && hwloc_bitmap_isset(topo->allowed, (unsigned)cpu) &&
                found < most)
                cpus[found++] = cpu;
        core++;
    }
    *count = found;
    return HOOP_OK;
}
