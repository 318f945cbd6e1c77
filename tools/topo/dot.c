// SPDX-License-Identifier: BSD-3-Clause
/* The graph in the language of Graphviz: the tree by solid lines with the speed of each link, fabrics by coloured ones. */
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
    const bool fabric = link->kind >= HOOP_TOPO_LINK_NVLINK;
    const char *before = "";

    fprintf(out, "  \"%s\" -- \"%s\" [%slabel=\"", a, b, fabric ? "color=\"#2e8b57\", constraint=false, " : "");
    if (link->count.source != HOOP_TOPO_UNKNOWN) {
        fprintf(out, "%.0f %s", link->count.value, hoop_topo_link_name(link->kind));
        before = ", ";
    }
    if (link->gigabytes_per_second.source != HOOP_TOPO_UNKNOWN)
        fprintf(out, "%s%.3g GB/s", before, link->gigabytes_per_second.value);
    fputs("\"];\n", out);
}

void show_dot(const struct hoop_topo *topo, const bool *shown, FILE *out)
{
    const struct hoop_topo_node *node;
    const struct hoop_topo_link *link;

    fputs("graph topology {\n  rankdir=LR; node [fontname=\"sans-serif\", fontsize=10]; edge [fontname=\"sans-serif\", "
          "fontsize=9];\n",
          out);
    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++)
        if (node->kind < HOOP_TOPO_GPU || is_shown(shown, i))
            put_node(topo, out, i);
    for (int i = 0; (link = hoop_topo_link(topo, i)) != NULL; i++)
        if (link->kind != HOOP_TOPO_LINK_PEER &&
            (hoop_topo_node(topo, link->a)->kind < HOOP_TOPO_GPU || is_shown(shown, link->a)) &&
            (hoop_topo_node(topo, link->b)->kind < HOOP_TOPO_GPU || is_shown(shown, link->b)))
            put_link(topo, out, link);
    fputs("}\n", out);
}
