// SPDX-License-Identifier: BSD-3-Clause
/* The graph in the language of Graphviz: CPUs, GPUs and interfaces, and what joins them. Solid lines are the tree with the speed of each link,
 * coloured ones the links of a GPU fabric, as thick as there are many of them; all its switches are one hexagon. */
#include <stdlib.h>

#include "show.h"

static void put_node(const struct hoop_topo *topo, FILE *out, int i)
{
    static const char *const looks[HOOP_TOPO_KINDS] = {
        "shape=box3d",
        "shape=box, style=filled, fillcolor=\"#cfd8e3\"",
        "shape=box, style=filled, fillcolor=\"#e6edf5\"",
        "shape=ellipse",
        "shape=ellipse, style=filled, fillcolor=\"#f2e8cf\"",
        "shape=box, style=\"filled,rounded\", fillcolor=\"#bfe3c0\"",
        "shape=box, style=\"filled,rounded\", fillcolor=\"#f6cfc4\"",
        "shape=hexagon, style=filled, fillcolor=\"#d9c8ec\"",
        "shape=box",
    };
    const struct hoop_topo_node *node = hoop_topo_node(topo, i);

    fprintf(out, "  \"%s\" [%s, label=\"%s", node->label, looks[node->kind], node->label);
    if (node->bus.known && node->kind >= HOOP_TOPO_PCI_BRIDGE)
        fprintf(out, "\\n%04x:%02x:%02x.%x", node->bus.domain, node->bus.bus, node->bus.device, node->bus.function);
    for (const char *at = node->name[0] != '\0' ? node->name : ""; *at != '\0'; at++) {
        if (at == node->name)
            fputs("\\n", out);
        fputc(*at == '"' || *at == '\\' || (unsigned char)*at < ' ' ? '?' : *at, out);
    }
    fputs("\"];\n", out);
}

static void put_link(const struct hoop_topo *topo, FILE *out, const struct hoop_topo_link *link)
{
    const char *a = hoop_topo_node(topo, link->a)->label, *b = hoop_topo_node(topo, link->b)->label;

    fprintf(out, "  \"%s\" -- \"%s\" [label=\"", a, b);
    if (link->gigabytes_per_second.source != HOOP_TOPO_UNKNOWN)
        fprintf(out, "%.3g GB/s", link->gigabytes_per_second.value);
    fputs("\"];\n", out);
}

/* Links of a fabric between two nodes: their number as the label. place: what Graphviz is to do with it. */
static void put_fabric(FILE *out, const char *a, const char *b, const char *kind, double count, const char *place)
{
    fprintf(out, "  \"%s\" -- \"%s\" [color=\"#2e8b57\", fontcolor=\"#2e8b57\", %spenwidth=%d", a, b, place,
            count < 1   ? 1
            : count > 8 ? 5
                        : 1 + (int)count / 2);
    if (count > 0)
        fprintf(out, ", label=\"%.0f\", tooltip=\"%.0f %s\"", count, count, kind);
    fputs("];\n", out);
}

/* A GPU's links to switches of the fabric, all together. */
static void put_uplinks(const struct hoop_topo *topo, FILE *out, int gpu)
{
    const struct hoop_topo_link *link;
    double count = 0;
    bool any = false;

    for (int i = 0; (link = hoop_topo_link(topo, i)) != NULL; i++)
        if (link->a == gpu && hoop_topo_node(topo, link->b)->kind == HOOP_TOPO_SWITCH) {
            count += link->count.value;
            any = true;
        }
    if (any)
        put_fabric(out, hoop_topo_node(topo, gpu)->label, "Fabric", "links to the fabric's switches", count, "");
}

/* Shown: CPUs, the GPUs and interfaces wanted, and the bridges above these. NULL: no memory. */
static bool *find_drawn(const struct hoop_topo *topo, const bool *shown)
{
    int nodes = 0;

    while (hoop_topo_node(topo, nodes) != NULL)
        nodes++;
    bool *drawn = calloc((size_t)nodes, sizeof *drawn);
    for (int i = 0; i < nodes && drawn != NULL; i++) {
        const struct hoop_topo_node *node = hoop_topo_node(topo, i);
        const bool device = node->kind == HOOP_TOPO_GPU || node->kind == HOOP_TOPO_NIC;

        if (node->kind <= HOOP_TOPO_NUMA || (device && is_shown(shown, i)))
            for (int at = i; at >= 0; at = hoop_topo_node(topo, at)->parent)
                drawn[at] = true;
    }
    return drawn;
}

static void put_links(const struct hoop_topo *topo, FILE *out, const bool *drawn)
{
    const struct hoop_topo_link *link;

    for (int i = 0; (link = hoop_topo_link(topo, i)) != NULL; i++)
        if (drawn[link->a] && drawn[link->b] && link->kind < HOOP_TOPO_LINK_NVLINK)
            put_link(topo, out, link);
        else if (drawn[link->a] && drawn[link->b] && link->kind != HOOP_TOPO_LINK_PEER)
            put_fabric(out, hoop_topo_node(topo, link->a)->label, hoop_topo_node(topo, link->b)->label,
                       hoop_topo_link_name(link->kind), link->count.value, "constraint=false, ");
    if (hoop_topo_count(topo, HOOP_TOPO_SWITCH) == 0)
        return;
    fputs(
        "  \"Fabric\" [shape=hexagon, style=filled, fillcolor=\"#d9c8ec\", label=\"switches of the\\nGPU fabric\"];\n",
        out);
    for (int i = 0; hoop_topo_node(topo, i) != NULL; i++)
        if (drawn[i] && hoop_topo_node(topo, i)->kind == HOOP_TOPO_GPU)
            put_uplinks(topo, out, i);
}

void show_dot(const struct hoop_topo *topo, const bool *shown, FILE *out)
{
    bool *drawn = find_drawn(topo, shown);

    fputs("graph topology {\n  rankdir=LR; ranksep=0.9; node [fontname=\"sans-serif\", fontsize=10]; edge "
          "[fontname=\"sans-serif\", "
          "fontsize=9];\n",
          out);
    for (int i = 0; drawn != NULL && hoop_topo_node(topo, i) != NULL; i++)
        if (drawn[i])
            put_node(topo, out, i);
    if (drawn != NULL)
        put_links(topo, out, drawn);
    fputs("}\n", out);
    free(drawn);
}
