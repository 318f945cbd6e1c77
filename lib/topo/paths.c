// SPDX-License-Identifier: BSD-3-Clause
/* How far two nodes are apart.
 *
 * The class follows from the nearest node above both. A PCI bridge there means that traffic need not reach the CPUs:
 * PIX or PXB by the number of bridges in between. (A switch is two levels of bridges: two devices below one switch
 * meet at its upstream port with one downstream port on each side, which is PIX.) The host bridge gives PHB. If the
 * two meet only in the CPUs, NUMA decides: same nodes near both, NODE; else SYS. */
#include "topo/model.h"

static const struct hoop_topo_node *node_at(const struct hoop_topo *topo, int i)
{
    return &topo->place[i].node;
}

static int depth_of(const struct hoop_topo *topo, int node)
{
    int depth = 0;

    while ((node = node_at(topo, node)->parent) >= 0)
        depth++;
    return depth;
}

static int common_ancestor(const struct hoop_topo *topo, int a, int b)
{
    int depth_a = depth_of(topo, a), depth_b = depth_of(topo, b);

    while (a != b) {
        if (depth_a >= depth_b) {
            a = node_at(topo, a)->parent;
            depth_a--;
        } else {
            b = node_at(topo, b)->parent;
            depth_b--;
        }
    }
    return a;
}

/* PCI bridges strictly between a node and one above it. */
static int bridges_between(const struct hoop_topo *topo, int node, int above)
{
    int count = 0;

    if (node == above)
        return 0;
    for (node = node_at(topo, node)->parent; node != above; node = node_at(topo, node)->parent)
        count += node_at(topo, node)->kind == HOOP_TOPO_PCI_BRIDGE;
    return count;
}

static bool same_slot(const struct hoop_topo_node *a, const struct hoop_topo_node *b)
{
    return a->kind > HOOP_TOPO_HOST_BRIDGE && b->kind > HOOP_TOPO_HOST_BRIDGE && a->bus.known && b->bus.known &&
           a->bus.domain == b->bus.domain && a->bus.bus == b->bus.bus && a->bus.device == b->bus.device;
}

/* A NUMA node and anything else. What lies near several nodes that have CPUs is nearest to one of them, nobody told
 * which. */
static enum hoop_topo_class from_numa(const struct hoop_topo *topo, int numa, int other)
{
    int near = 0;

    for (int i = 0; i < topo->nodes; i++)
        near += node_at(topo, i)->kind == HOOP_TOPO_NUMA && !hwloc_bitmap_iszero(topo->place[i].cpus) &&
                hwloc_bitmap_isset(topo->place[other].numas, (unsigned)node_at(topo, i)->number);
    if (!hwloc_bitmap_isset(topo->place[other].numas, (unsigned)node_at(topo, numa)->number))
        return HOOP_TOPO_SYS;
    return near > 1 ? HOOP_TOPO_CLASS_UNKNOWN : HOOP_TOPO_PHB;
}

/* Is it known that they are near different NUMA nodes? */
static bool far_apart(const struct hoop_topo_place *a, const struct hoop_topo_place *b)
{
    return !hwloc_bitmap_iszero(a->numas) && !hwloc_bitmap_iszero(b->numas) &&
           !hwloc_bitmap_intersects(a->numas, b->numas);
}

enum hoop_topo_class hoop_topo_path_class(const struct hoop_topo *topo, int a, int b)
{
    if (hoop_topo_node(topo, a) == NULL || hoop_topo_node(topo, b) == NULL)
        return HOOP_TOPO_CLASS_UNKNOWN;
    if (a == b)
        return HOOP_TOPO_SELF;
    const bool numa_a = node_at(topo, a)->kind == HOOP_TOPO_NUMA, numa_b = node_at(topo, b)->kind == HOOP_TOPO_NUMA;
    if (numa_a && numa_b)
        return HOOP_TOPO_SYS;
    if (numa_a || numa_b)
        return numa_a ? from_numa(topo, a, b) : from_numa(topo, b, a);
    const int meet = common_ancestor(topo, a, b);
    if (same_slot(node_at(topo, a), node_at(topo, b)))
        return HOOP_TOPO_PIX;
    const int most =
        topo->switches ? 0 : 1; /* a switch that stands as one node has its ports below the meeting point */
    if (node_at(topo, meet)->kind == HOOP_TOPO_PCI_BRIDGE)
        return bridges_between(topo, a, meet) <= most && bridges_between(topo, b, meet) <= most ? HOOP_TOPO_PIX
                                                                                                : HOOP_TOPO_PXB;
    const struct hoop_topo_place *place_a = &topo->place[a], *place_b = &topo->place[b];
    if (node_at(topo, meet)->kind == HOOP_TOPO_HOST_BRIDGE) /* a virtual machine may show one for the devices of all */
        return far_apart(place_a, place_b) ? HOOP_TOPO_SYS : HOOP_TOPO_PHB;
    if ((place_a->adrift || place_b->adrift) && !far_apart(place_a, place_b))
        return HOOP_TOPO_CLASS_UNKNOWN;
    if (!hwloc_bitmap_isequal(place_a->numas, place_b->numas))
        return HOOP_TOPO_SYS;
    return topo->switches ? HOOP_TOPO_CLASS_UNKNOWN : HOOP_TOPO_NODE; /* through one host bridge or through two? */
}

const char *hoop_topo_class_name(enum hoop_topo_class path)
{
    static const char *const names[HOOP_TOPO_CLASSES] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "?"};

    return path < HOOP_TOPO_CLASSES ? names[path] : "?";
}

/* ---- GPU fabrics ---- */

/* A sum with an unknown part is unknown. */
static struct hoop_topo_fact sum(struct hoop_topo_fact a, struct hoop_topo_fact b)
{
    if (a.source == HOOP_TOPO_UNKNOWN || b.source == HOOP_TOPO_UNKNOWN)
        return (struct hoop_topo_fact){0, HOOP_TOPO_UNKNOWN};
    return (struct hoop_topo_fact){a.value + b.value, b.source};
}

static struct hoop_topo_fact lesser(struct hoop_topo_fact a, struct hoop_topo_fact b)
{
    if (a.source == HOOP_TOPO_UNKNOWN)
        return a;
    return b.source == HOOP_TOPO_UNKNOWN || b.value < a.value ? b : a;
}

struct fabric_links {
    int links;
    struct hoop_topo_fact count, speed;
};

/* The links of GPU `from` to GPU `to`, or, with to < 0, to switches. */
static struct fabric_links links_of(const struct hoop_topo *topo, int from, int to)
{
    struct fabric_links found = {0};

    for (int i = 0; i < topo->links; i++) {
        const struct hoop_topo_link *link = &topo->link[i];
        const int other = link->a == from ? link->b : link->b == from ? link->a : -1;

        if ((link->kind != HOOP_TOPO_LINK_NVLINK && link->kind != HOOP_TOPO_LINK_XGMI) || other < 0)
            continue;
        if (to < 0 ? node_at(topo, other)->kind != HOOP_TOPO_SWITCH : other != to)
            continue;
        found.count = found.links == 0 ? link->count : sum(found.count, link->count);
        found.speed = found.links == 0 ? link->gigabytes_per_second : sum(found.speed, link->gigabytes_per_second);
        found.links++;
    }
    return found;
}

enum hoop_topo_peer hoop_topo_peer_access(const struct hoop_topo *topo, int a, int b, enum hoop_topo_peer_way way)
{
    for (int i = 0; topo != NULL && way < HOOP_TOPO_PEER_WAYS && i < topo->accesses; i++)
        if (topo->access[i].a == a && topo->access[i].b == b)
            return (enum hoop_topo_peer)topo->access[i].way[way];
    return HOOP_TOPO_PEER_UNKNOWN;
}

const char *hoop_topo_peer_name(enum hoop_topo_peer peer)
{
    static const char *const names[HOOP_TOPO_PEERS] = {"U", "OK", "CNS", "GNS", "TNS", "DR", "NS"};

    return peer < HOOP_TOPO_PEERS ? names[peer] : "?";
}

bool hoop_topo_fabric(const struct hoop_topo *topo, int a, int b, struct hoop_topo_fact *count,
                      struct hoop_topo_fact *gigabytes_per_second)
{
    const struct hoop_topo_node *node_a = hoop_topo_node(topo, a), *node_b = hoop_topo_node(topo, b);

    if (node_a == NULL || node_b == NULL || a == b || node_a->kind != HOOP_TOPO_GPU || node_b->kind != HOOP_TOPO_GPU)
        return false;
    struct fabric_links found = links_of(topo, a, b);
    if (found.links == 0) {
        const struct fabric_links up_a = links_of(topo, a, -1), up_b = links_of(topo, b, -1);
        found.links = up_a.links < up_b.links ? up_a.links : up_b.links;
        found.count = lesser(up_a.count, up_b.count);
        found.speed = lesser(up_a.speed, up_b.speed);
    }
    if (found.links == 0)
        return false;
    if (count != NULL)
        *count = found.count;
    if (gigabytes_per_second != NULL)
        *gigabytes_per_second = found.speed;
    return true;
}
