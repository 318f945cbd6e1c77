// SPDX-License-Identifier: BSD-3-Clause
/* The network between the GPUs of a host. See network.h.
 *
 * Budgets are what links carry in practice, not what they are called: three quarters of a PCI link's bits, and what was published for
 * NVLink and XGMI generations. The links between CPUs are in no recording: they are assumed by the CPU's make, and marked. */
#include "topo/network.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ABOVE = 16, ASSUMED_PCI = 12000, ASSUMED_CPUS = 6000, ASSUMED_FABRIC = 20000, MOST_BUDGET = 1000000000 };
enum { AMD = 0x1002, INTEL_FAMILY = 6 };

/* MB/s of one link of a fabric; 0: the device id tells nothing. */
static int fabric_link(const struct hoop_topo_node *gpu)
{
    static const struct {
        uint16_t vendor, first, last;
        int rate;
    } generations[] = {
        {0x10de, 0x15f0, 0x15ff, 18000}, /* Pascal */
        {0x10de, 0x1d80, 0x20ff, 20000}, /* Volta, A100 */
        {0x10de, 0x2200, 0x25ff, 12000}, /* the smaller Amperes */
        {0x10de, 0x2300, 0x23ff, 20600}, /* Hopper: the last line that fits holds */
        {0x10de, 0x2900, 0x2fff, 40100}, /* Blackwell */
        {AMD, 0x66a0, 0x66af, 24000},    /* Vega 20 */
        {AMD, 0x7380, 0x740f, 36000},    /* MI100, MI200 */
        {AMD, 0x74a0, 0x75bf, 48000},    /* MI300, MI350 */
    };
    const uint16_t made = hoop_topo_gcn_device(gpu->model), device = gpu->device != 0 ? gpu->device : made;
    const uint16_t vendor = gpu->vendor != 0 ? gpu->vendor : made != 0 ? AMD : 0;
    int rate = 0;

    for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++)
        if (vendor == generations[i].vendor && device >= generations[i].first && device <= generations[i].last)
            rate = generations[i].rate;
    return rate;
}

/* MB/s between two CPUs (NUMA nodes) of that make. */
static int between_cpus(const struct hoop_topo_cpu *cpu)
{
    static const struct {
        const char *vendor;
        int least; /* model */
        int rate;
    } makes[] = {
        {"GenuineIntel", 0xcf, 40000}, {"GenuineIntel", 0x8f, 22000}, {"GenuineIntel", 0x55, 10000},
        {"GenuineIntel", 0, 6000},     {"AuthenticAMD", 0, 16000},
    };

    for (size_t i = 0; i < sizeof makes / sizeof makes[0]; i++)
        if (strcmp(cpu->vendor, makes[i].vendor) == 0 && cpu->model >= makes[i].least)
            return makes[i].rate;
    if (strncmp(cpu->arch, "ppc64", 5) == 0)
        return 32000;
    return ASSUMED_CPUS;
}

/* ---- building ---- */

static int add_vertex(struct hoop_net *net, enum hoop_net_kind kind, int node)
{
    if (net->vertices == HOOP_NET_VERTICES)
        return -1;
    net->vertex[net->vertices] = (struct hoop_net_vertex){.kind = kind, .node = node, .above = -1};
    return net->vertices++;
}

/* Both directions of a link. */
static void add_edges(struct hoop_net *net, struct hoop_net_edge edge)
{
    if (net->edges + 2 > HOOP_NET_EDGES)
        return; /* paths that need it do not exist then */
    net->edge[net->edges++] = edge;
    const int from = edge.from;
    edge.from = edge.to;
    edge.to = from;
    net->edge[net->edges++] = edge;
}

static int find_vertex(const struct hoop_net *net, enum hoop_net_kind kind, int node)
{
    for (int i = 0; i < net->vertices; i++)
        if (net->vertex[i].kind == kind && net->vertex[i].node == node)
            return i;
    return -1;
}

/* What a PCI function's link upwards carries: the rates that NCCL reckons with, 12 GB/s for 16 lanes of generation 3. A bridge
 * whose link is said to be slower than what hangs below it is one that does not tell the truth (virtual, or not trained). */
static struct hoop_net_edge pci_edge(const struct hoop_net *net, int vertex, int node)
{
    const struct hoop_topo_link *link = hoop_topo_link(net->topo, net->topo->place[node].node.uplink);
    struct hoop_net_edge edge = {.from = vertex, .kind = HOOP_TOPO_LINK_PCI, .budget = ASSUMED_PCI, .assumed = true};

    if (link == NULL || link->width.source == HOOP_TOPO_UNKNOWN || link->gigatransfers.source == HOOP_TOPO_UNKNOWN) {
        if (link != NULL && link->gigabytes_per_second.source != HOOP_TOPO_UNKNOWN &&
            link->gigabytes_per_second.value >= 1) {
            edge.budget = (int)(link->gigabytes_per_second.value * 762);
            edge.assumed = link->current;
        }
        return edge;
    }
    const double coded = link->gigatransfers.value <= 5 ? link->gigatransfers.value * 0.8 : link->gigatransfers.value;
    edge.budget = (int)(link->width.value * coded * 7500 / 80);
    edge.assumed = false;
    return edge;
}

static int cpu_vertex(struct hoop_net *net, int device)
{
    const struct hoop_topo *topo = net->topo;
    int numa = -1;

    for (int i = 0; i < topo->nodes && numa < 0; i++)
        if (topo->place[i].node.kind == HOOP_TOPO_NUMA &&
            hwloc_bitmap_isset(topo->place[device].numas, (unsigned)topo->place[i].node.number))
            numa = i;
    const int found = find_vertex(net, HOOP_NET_CPU, numa);
    return found >= 0 ? found : add_vertex(net, HOOP_NET_CPU, numa);
}

/* The switches and the CPU of a GPU or network card, and the edges between them that are not there yet. */
static bool add_branch(struct hoop_net *net, int device)
{
    int above[MOST_ABOVE], at = device;
    const int node = net->vertex[device].node, switches = hoop_topo_switches_above(net->topo, node, above, MOST_ABOVE);

    for (int i = 0; i <= switches; i++) {
        struct hoop_net_edge edge = pci_edge(net, at, net->vertex[at].node);

        if (net->vertex[at].above >= 0) /* the rest is there */
            return true;
        edge.to = i == switches ? cpu_vertex(net, node) : find_vertex(net, HOOP_NET_SWITCH, above[i]);
        if (edge.to < 0)
            edge.to = add_vertex(net, HOOP_NET_SWITCH, above[i]);
        if (edge.to < 0)
            return false;
        net->vertex[at].above = edge.to;
        add_edges(net, edge);
        at = edge.to;
    }
    return true;
}

static void mark_gpus(struct hoop_net *net)
{
    for (int gpu = 0; gpu < net->gpus; gpu++)
        for (int at = gpu; at >= 0; at = net->vertex[at].above)
            net->vertex[at].gpus |= 1u << gpu;
}

/* Slower than all that hangs below: what hangs below counts. */
static void mend_bridges(struct hoop_net *net)
{
    for (int i = 0; i < net->edges; i++) {
        struct hoop_net_edge *up = &net->edge[i];
        int most = 0;

        if (net->vertex[up->from].kind != HOOP_NET_SWITCH || net->vertex[up->from].above != up->to)
            continue;
        for (int j = 0; j < net->edges; j++)
            if (net->edge[j].to == up->from && net->vertex[net->edge[j].from].above == up->from)
                most = net->edge[j].budget > most ? net->edge[j].budget : most;
        if (up->budget * 2 > most)
            continue;
        up->assumed = net->edge[i ^ 1].assumed = true;
        up->budget = net->edge[i ^ 1].budget = most;
    }
}

static void join_cpus(struct hoop_net *net)
{
    for (int a = 0; a < net->vertices; a++)
        for (int b = a + 1; b < net->vertices; b++) {
            static const struct hoop_topo_cpu unknown = {.arch = "", .vendor = ""};
            const int node = net->vertex[a].node;

            if (net->vertex[a].kind == HOOP_NET_CPU && net->vertex[b].kind == HOOP_NET_CPU)
                add_edges(net, (struct hoop_net_edge){
                                   .from = a,
                                   .to = b,
                                   .kind = HOOP_TOPO_LINK_SOCKET,
                                   .assumed = true,
                                   .budget = between_cpus(node < 0 ? &unknown : &net->topo->place[node].node.cpu)});
        }
}

/* No file says more than numbers hold. */
static int sum(int a, int b)
{
    return a < MOST_BUDGET - b ? a + b : MOST_BUDGET;
}

/* All switches are one fabric; its links of one GPU are one edge. */
static void join_fabric(struct hoop_net *net)
{
    const struct hoop_topo_link *link;
    int fabric = -1;

    for (int i = 0; (link = hoop_topo_link(net->topo, i)) != NULL; i++) {
        const bool into = hoop_topo_node(net->topo, link->b)->kind == HOOP_TOPO_SWITCH;
        const int a = find_vertex(net, HOOP_NET_GPU, link->a),
                  b = into ? fabric : find_vertex(net, HOOP_NET_GPU, link->b);
        const int count = link->count.source == HOOP_TOPO_UNKNOWN ? 0 : (int)link->count.value;
        int budget, rate;

        if ((link->kind != HOOP_TOPO_LINK_NVLINK && link->kind != HOOP_TOPO_LINK_XGMI) || a < 0 || (b < 0 && !into))
            continue;
        if (into && fabric < 0 && (fabric = add_vertex(net, HOOP_NET_FABRIC, -1)) < 0)
            return;
        rate = fabric_link(hoop_topo_node(net->topo, link->a));
        budget = count > 0 && rate > 0 ? count * rate : (int)(link->gigabytes_per_second.value * 800);
        struct hoop_net_edge edge = {.from = a,
                                     .to = into ? fabric : b,
                                     .kind = link->kind,
                                     .count = count,
                                     .assumed = budget == 0,
                                     .budget = budget > 0 ? budget : ASSUMED_FABRIC};
        int same = 0;
        while (same < net->edges && (net->edge[same].from != edge.from || net->edge[same].to != edge.to))
            same++;
        if (same == net->edges)
            add_edges(net, edge);
        else
            for (int k = 0; k < 2; k++) { /* a further switch: both directions */
                net->edge[same ^ k].budget = sum(net->edge[same ^ k].budget, edge.budget);
                net->edge[same ^ k].count += edge.count;
            }
    }
}

/* ---- ports to other hosts ---- */

/* From the card upwards. */
static int edge_of_card(const struct hoop_net *net, int card)
{
    int i = 0;

    while (net->edge[i].from != card || net->edge[i].to != net->vertex[card].above)
        i++;
    return i;
}

enum port_rule { RDMA_FUNCTIONS, RDMA, NAMED, PORT_RULES };

/* Interfaces with RDMA that are no shares of others; where there is none such shares; else whatever has a name. */
static bool is_port(const struct hoop_topo_node *node, enum port_rule rule)
{
    if (node->kind != HOOP_TOPO_NIC)
        return false;
    return rule == NAMED ? node->name[0] != '\0' : node->rdma && (rule == RDMA || !node->virtual_function);
}

/* The card of a port: functions of one device share its PCI link. */
static int card_vertex(struct hoop_net *net, int node)
{
    const struct hoop_topo_bus *bus = &net->topo->place[node].node.bus;

    for (int i = 0; i < net->ports; i++) {
        const struct hoop_topo_bus *other = &net->topo->place[net->port[i].node].node.bus;

        if (bus->known && other->known && bus->domain == other->domain && bus->bus == other->bus &&
            bus->device == other->device)
            return net->port[i].card;
    }
    const int card = add_vertex(net, HOOP_NET_CARD, node);
    return card >= 0 && add_branch(net, card) ? card : -1;
}

/* A port of unknown speed is as fast as the card's link. */
static bool add_port(struct hoop_net *net, int node, int wire)
{
    const struct hoop_topo_fact *speed = &net->topo->place[node].node.port_speed;
    const int card = net->ports < HOOP_NET_PORTS ? card_vertex(net, node) : -1;

    if (card < 0 || net->edges + 2 > HOOP_NET_EDGES)
        return false;
    net->port[net->ports++] = (struct hoop_net_port){.node = node, .card = card, .out = net->edges};
    add_edges(net, (struct hoop_net_edge){.from = card,
                                          .to = wire,
                                          .kind = HOOP_TOPO_LINK_HOST,
                                          .assumed = speed->source == HOOP_TOPO_UNKNOWN,
                                          .budget = speed->source == HOOP_TOPO_UNKNOWN
                                                        ? net->edge[edge_of_card(net, card)].budget
                                                        : (int)(speed->value < 1e6 ? speed->value * 1000 : 1e9)});
    return true;
}

static enum hoop_status add_ports(struct hoop_net *net, const bool *shown)
{
    const int wire = add_vertex(net, HOOP_NET_WIRE, -1);

    for (int rule = 0; rule < PORT_RULES && net->ports == 0; rule++)
        for (int i = 0; i < net->topo->nodes; i++)
            if (is_port(&net->topo->place[i].node, (enum port_rule)rule) && (shown == NULL || shown[i]) &&
                (wire < 0 || !add_port(net, i, wire)))
                return hoop_fail(HOOP_ERR_UNSUPPORTED, "rings: more than %d network ports, or %d switches",
                                 HOOP_NET_PORTS, HOOP_NET_VERTICES);
    return net->ports > 0 ? HOOP_OK
                          : hoop_fail(HOOP_ERR_UNSUPPORTED,
                                      "rings: the machine has no network interface that leads to other hosts");
}

/* ---- paths ---- */

static int edge_between(const struct hoop_net *net, int from, int to)
{
    for (int i = 0; i < net->edges; i++)
        if (net->edge[i].from == from && net->edge[i].to == to)
            return i;
    return -1;
}

static void append(struct hoop_net_path *path, int edge)
{
    if (edge < 0 || path->edges < 0 || path->edges == HOOP_NET_HOPS)
        path->edges = -1; /* no way after all */
    else
        path->edge[path->edges++] = edge;
}

static bool fabric_path(const struct hoop_net *net, int a, int b, struct hoop_net_path *path)
{
    const int direct = edge_between(net, a, b), fabric = find_vertex(net, HOOP_NET_FABRIC, -1);

    *path = (struct hoop_net_path){.hop = HOOP_TOPO_HOP_FABRIC};
    if (direct >= 0) {
        append(path, direct);
        return true;
    }
    if (fabric < 0 || edge_between(net, a, fabric) < 0 || edge_between(net, fabric, b) < 0)
        return false;
    append(path, edge_between(net, a, fabric));
    append(path, edge_between(net, fabric, b));
    return true;
}

/* The vertices from one upwards, itself first; returns how many. */
static int ancestors(const struct hoop_net *net, int of, int all[HOOP_NET_HOPS])
{
    int count = 0;

    for (; of >= 0 && count < HOOP_NET_HOPS; of = net->vertex[of].above)
        all[count++] = of;
    return count;
}

/* Up from a, over to b's CPU where that is another, and down to b. */
static void pci_path(const struct hoop_net *net, int a, int b, struct hoop_net_path *path)
{
    int above_a[HOOP_NET_HOPS], above_b[HOOP_NET_HOPS];
    const int count_a = ancestors(net, a, above_a), count_b = ancestors(net, b, above_b);
    int top_a = 0, top_b = count_b;

    for (; top_a < count_a; top_a++) {
        for (top_b = 0; top_b < count_b && above_b[top_b] != above_a[top_a]; top_b++)
            ;
        if (top_b < count_b)
            break;
    }
    const bool meet = top_a < count_a;
    if (!meet) {
        top_a = count_a - 1;
        top_b = count_b - 1;
    }
    *path = (struct hoop_net_path){.hop = !meet                                                 ? HOOP_TOPO_HOP_SYS
                                          : net->vertex[above_a[top_a]].kind != HOOP_NET_SWITCH ? HOOP_TOPO_HOP_PHB
                                          : top_a == 1 && top_b == 1                            ? HOOP_TOPO_HOP_PIX
                                                                                                : HOOP_TOPO_HOP_PXB};
    for (int i = 0; i < top_a; i++)
        append(path, edge_between(net, above_a[i], above_a[i + 1]));
    if (!meet)
        append(path, edge_between(net, above_a[top_a], above_b[top_b]));
    for (int i = top_b; i > 0; i--)
        append(path, edge_between(net, above_b[i], above_b[i - 1]));
    if (path->edges < 0)
        path->edges = 0;
}

static void find_paths(struct hoop_net *net)
{
    for (int a = 0; a < net->gpus; a++) {
        for (int b = 0; b < net->gpus; b++)
            if (a != b && !fabric_path(net, a, b, &net->path[a][b]))
                pci_path(net, a, b, &net->path[a][b]);
        for (int port = 0; port < net->ports; port++) {
            struct hoop_net_path *path = &net->way_out[a][port];

            pci_path(net, a, net->port[port].card, path);
            if (path->edges > 0)
                append(path, net->port[port].out);
            if (path->edges < 0)
                path->edges = 0;
        }
    }
}

enum hoop_status hoop_net_make(struct hoop_net *net, const struct hoop_topo *topo,
                               const struct hoop_topo_wanted *wanted)
{
    int gpus = 0;

    for (int i = 0; i < topo->nodes; i++)
        gpus += topo->place[i].node.kind == HOOP_TOPO_GPU && (wanted->shown == NULL || wanted->shown[i]);
    if (gpus < 2 || gpus > HOOP_TOPO_SEARCH_DEVICES)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "rings: %s %d GPU%s, and rings join 2 to %d",
                         wanted->shown == NULL ? "the machine has" : "there are", gpus, gpus == 1 ? "" : "s",
                         HOOP_TOPO_SEARCH_DEVICES);
    *net = (struct hoop_net){.topo = topo, .gpus = gpus};
    for (int i = 0; i < topo->nodes; i++)
        if (topo->place[i].node.kind == HOOP_TOPO_GPU && (wanted->shown == NULL || wanted->shown[i]))
            add_vertex(net, HOOP_NET_GPU, i);
    for (int gpu = 0; gpu < gpus; gpu++)
        if (!add_branch(net, gpu))
            return hoop_fail(HOOP_ERR_UNSUPPORTED, "rings: more than %d switches above GPUs", HOOP_NET_VERTICES);
    const enum hoop_status status = wanted->hosts > 1 ? add_ports(net, wanted->shown) : HOOP_OK;
    if (status != HOOP_OK)
        return status;
    mark_gpus(net);
    mend_bridges(net);
    join_cpus(net);
    join_fabric(net);
    find_paths(net);
    return HOOP_OK;
}

/* ---- cuts ---- */

/* Is an edge of use where hops are no worse than `worst`? */
static bool usable(const struct hoop_net_edge *edge, enum hoop_topo_hop worst)
{
    const bool fabric = edge->kind == HOOP_TOPO_LINK_NVLINK || edge->kind == HOOP_TOPO_LINK_XGMI;

    return fabric || worst > HOOP_TOPO_HOP_FABRIC;
}

/* What leaves a group: GPUs in it, and of what has only such below the switches, or switches and CPUs, or nothing. The fabric's switches
 * stand on the side where less is cut. */
static long cut(const struct hoop_net *net, uint32_t group, enum hoop_net_kind deepest, enum hoop_topo_hop worst)
{
    long rest = 0, into = 0, out = 0;

    for (int i = 0; i < net->edges; i++) {
        const struct hoop_net_edge *edge = &net->edge[i];
        const struct hoop_net_vertex *from = &net->vertex[edge->from], *to = &net->vertex[edge->to];
        const bool from_in = from->kind <= deepest && from->gpus != 0 && (from->gpus & ~group) == 0;
        const bool to_in = to->kind <= deepest && to->gpus != 0 && (to->gpus & ~group) == 0;

        if (!usable(edge, worst) || from->kind > HOOP_NET_FABRIC || to->kind > HOOP_NET_FABRIC)
            continue;
        if (to->kind == HOOP_NET_FABRIC)
            into += from_in ? edge->budget : 0;
        else if (from->kind == HOOP_NET_FABRIC)
            out += to_in ? 0 : edge->budget;
        else if (from_in && !to_in)
            rest += edge->budget;
    }
    return rest + (into < out ? into : out);
}

/* The vertex below which hops over PCI stay that are no worse than `worst`. */
static int root_of(const struct hoop_net *net, int gpu, enum hoop_topo_hop worst)
{
    int at = net->vertex[gpu].above;

    while (worst != HOOP_TOPO_HOP_PIX && net->vertex[at].above >= 0 &&
           (worst >= HOOP_TOPO_HOP_PHB || net->vertex[net->vertex[at].above].kind == HOOP_NET_SWITCH))
        at = net->vertex[at].above;
    return at;
}

/* What leaves a group over hops alone: over the fabric, and below each root over PCI what its GPUs in the group can send and the others
 * take. */
static long cut_by_hops(const struct hoop_net *net, uint32_t group, enum hoop_topo_hop worst)
{
    long sum_of_roots = cut(net, group, HOOP_NET_GPU, HOOP_TOPO_HOP_FABRIC);

    for (int root = 0; root < net->vertices && worst > HOOP_TOPO_HOP_FABRIC; root++) {
        long in = 0, out = 0;

        for (int gpu = 0; gpu < net->gpus; gpu++) {
            const int up = edge_between(net, gpu, net->vertex[gpu].above);

            if (root_of(net, gpu, worst) == root)
                *(group >> gpu & 1 ? &out : &in) += net->edge[up].budget;
        }
        sum_of_roots += out < in ? out : in;
    }
    return sum_of_roots;
}

long hoop_net_bound(const struct hoop_net *net, enum hoop_topo_hop worst)
{
    const uint32_t all = (uint32_t)((1ull << net->gpus) - 1);
    const bool limited = worst > HOOP_TOPO_HOP_FABRIC && worst < HOOP_TOPO_HOP_SYS;
    long least = -1;

    for (uint32_t group = 1; group < all; group++) {
        const long by_hops = limited ? cut_by_hops(net, group, worst) : LONG_MAX;

        for (int deepest = HOOP_NET_GPU; deepest <= HOOP_NET_CPU; deepest++) {
            const long by_edges = cut(net, group, (enum hoop_net_kind)deepest, worst),
                       value = by_edges < by_hops ? by_edges : by_hops;

            if (least < 0 || value < least)
                least = value;
        }
    }
    return least;
}

long hoop_net_two_neighbours(const struct hoop_net *net, enum hoop_topo_hop worst)
{
    long least = LONG_MAX;

    for (int gpu = 0; gpu < net->gpus; gpu++) {
        long out = 0, to_one = 0;

        for (int i = 0; i < net->edges; i++) {
            const struct hoop_net_edge *edge = &net->edge[i];

            if (edge->from != gpu || !usable(edge, worst))
                continue;
            out += edge->budget;
            if (edge->to < net->gpus && edge->budget > to_one)
                to_one = edge->budget;
        }
        least = 2 * (out - to_one) < least ? 2 * (out - to_one) : least;
    }
    return least;
}

long hoop_net_out(const struct hoop_net *net, enum hoop_topo_hop worst)
{
    long out = 0;

    for (int i = 0; i < net->edges; i++)
        out += net->edge[i].from < net->gpus && usable(&net->edge[i], worst) ? net->edge[i].budget : 0;
    return out;
}

long hoop_net_wire_bound(const struct hoop_net *net)
{
    long wire = 0;

    for (int i = 0; i < net->ports; i++) {
        const int card = net->port[i].card;
        long ports = 0;
        bool first = true;

        for (int j = 0; j < net->ports; j++) {
            first &= j >= i || net->port[j].card != card;
            ports += net->port[j].card == card ? net->edge[net->port[j].out].budget : 0;
        }
        const long up = net->edge[edge_of_card(net, card)].budget;
        wire += !first ? 0 : up < ports ? up : ports;
    }
    for (int gpu = 0; gpu < net->gpus; gpu++) {
        long out = 0;

        for (int i = 0; i < net->edges; i++)
            out += net->edge[i].from == gpu ? net->edge[i].budget : 0;
        wire = out < wire ? out : wire;
    }
    return wire;
}

void hoop_net_describe(const struct hoop_net *net, int edge, char *text, size_t size)
{
    const struct hoop_net_edge *e = &net->edge[edge];
    const char *name[2], *assumed = e->assumed ? ", speed assumed" : "";

    for (int i = 0; i < net->ports; i++)
        if (net->port[i].out == (edge & ~1)) {
            snprintf(text, size, "port of %s%s", net->topo->place[net->port[i].node].node.label, assumed);
            return;
        }
    for (int i = 0; i < 2; i++) {
        const struct hoop_net_vertex *end = &net->vertex[i == 0 ? e->from : e->to];
        name[i] = end->kind == HOOP_NET_FABRIC ? "switches"
                  : end->node < 0              ? "CPU"
                                               : net->topo->place[end->node].node.label;
    }
    if (e->count > 0)
        snprintf(text, size, "%d %s %s - %s%s", e->count, hoop_topo_link_name(e->kind), name[0], name[1], assumed);
    else if (e->kind == HOOP_TOPO_LINK_SOCKET)
        snprintf(text, size, "between CPUs %s - %s%s", name[0], name[1], assumed);
    else
        snprintf(text, size, "%s %s - %s%s", hoop_topo_link_name(e->kind), name[0], name[1], assumed);
}
