// SPDX-License-Identifier: BSD-3-Clause
/* How far two devices are apart as NCCL counts.
 *
 * NCCL's tree has one node for a PCI switch. In a tree of ports that is every second bridge above a device: the port above the
 * device is skipped (a downstream port, or the root port), the next is a switch's upstream port, the next skipped again. Large
 * Broadcom switches show themselves as a switch of switches; the lower ones are dissolved, since they are no bottleneck. */
#include "topo/model.h"

enum { MOST_SWITCHES = 64, BROADCOM = 0x1000, GEN4 = 0xc010, GEN5 = 0xc030 };

static const struct hoop_topo_node *node_at(const struct hoop_topo *topo, int i)
{
    return &topo->place[i].node;
}

/* Generation of a Broadcom switch of two levels (0: it is none), seen from above (level 0) or as a part (1). */
static int broadcom(const struct hoop_topo_node *node, int level)
{
    const int part = node->subsystem_device & 0xf000;

    if (node->vendor != BROADCOM || node->subsystem_vendor != BROADCOM)
        return 0;
    if (node->device == GEN4 && part == 0xa000)
        return 4;
    return node->device == GEN5 && part == level * 0x1000 ? 5 : 0;
}

/* The switches above a device, nearest first; at most MOST_SWITCHES. */
static int switches_above(const struct hoop_topo *topo, int device, int *above)
{
    int all[MOST_SWITCHES], found = 0, kept = 0, step = 0;

    for (int i = node_at(topo, device)->parent;
         i >= 0 && node_at(topo, i)->kind == HOOP_TOPO_PCI_BRIDGE && found < MOST_SWITCHES;
         i = node_at(topo, i)->parent, step++)
        if (topo->switches || step % 2 == 1)
            all[found++] = i;
    for (int i = 0; i < found; i++) {
        const int part = broadcom(node_at(topo, all[i]), 1);

        if (part == 0 || i + 1 == found || broadcom(node_at(topo, all[i + 1]), 0) != part)
            above[kept++] = all[i];
    }
    return kept;
}

int hoop_topo_switches_above(const struct hoop_topo *topo, int device, int *above, int most)
{
    int all[MOST_SWITCHES];
    const int count = switches_above(topo, device, all);

    for (int i = 0; i < count && i < most; i++)
        above[i] = all[i];
    return count < most ? count : most;
}

static enum hoop_topo_nccl through_cpus(const struct hoop_topo *topo, int a, int b)
{
    const struct hoop_topo_place *one = &topo->place[a], *other = &topo->place[b];
    const bool far = !hwloc_bitmap_iszero(one->numas) && !hwloc_bitmap_iszero(other->numas) &&
                     !hwloc_bitmap_intersects(one->numas, other->numas);

    if (hoop_topo_path_class(topo, a, b) == HOOP_TOPO_PHB)
        return HOOP_TOPO_NCCL_PHB;
    if ((one->adrift || other->adrift) && !far)
        return HOOP_TOPO_NCCL_UNKNOWN;
    return hwloc_bitmap_isequal(one->numas, other->numas) ? HOOP_TOPO_NCCL_PHB : HOOP_TOPO_NCCL_SYS;
}

enum hoop_topo_nccl hoop_topo_nccl_class(const struct hoop_topo *topo, int a, int b)
{
    int above_a[MOST_SWITCHES], above_b[MOST_SWITCHES];

    if (hoop_topo_node(topo, a) == NULL || hoop_topo_node(topo, b) == NULL || node_at(topo, a)->kind < HOOP_TOPO_GPU ||
        node_at(topo, b)->kind < HOOP_TOPO_GPU)
        return HOOP_TOPO_NCCL_UNKNOWN;
    if (a == b || (node_at(topo, a)->bus.known && hoop_topo_same_bus(&node_at(topo, a)->bus, &node_at(topo, b)->bus)))
        return HOOP_TOPO_NCCL_LOC;
    const int count_a = switches_above(topo, a, above_a), count_b = switches_above(topo, b, above_b);
    for (int i = 0; i < count_a; i++)
        for (int j = 0; j < count_b; j++)
            if (above_a[i] == above_b[j])
                return i == 0 && j == 0 ? HOOP_TOPO_NCCL_PIX : HOOP_TOPO_NCCL_PXB;
    return through_cpus(topo, a, b);
}

const char *hoop_topo_nccl_name(enum hoop_topo_nccl path)
{
    static const char *const names[HOOP_TOPO_NCCL_CLASSES] = {"LOC", "PIX", "PXB", "PHB", "SYS", "?"};

    return path < HOOP_TOPO_NCCL_CLASSES ? names[path] : "?";
}
