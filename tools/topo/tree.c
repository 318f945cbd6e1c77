// SPDX-License-Identifier: BSD-3-Clause
/* The machine as a tree: what hangs where, with what is known of each node and its link upwards. */
#include <arpa/inet.h>
#include <string.h>

#include "show.h"

struct canvas {
    const struct hoop_topo *topo;
    const bool *shown;
    FILE *out;
    bool colour;
    const char *branch, *last, *through, *blank; /* what stands before a child, and before its own children */
};

static void show_bytes(FILE *out, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;

    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    fprintf(out, "%.*f %s", bytes < 10 && unit > 0 ? 1 : 0, bytes, units[unit]);
}

static void show_cpus(const struct canvas *canvas, int i)
{
    char cpus[LIST_TEXT] = "";

    if (hoop_topo_cpu_list(canvas->topo, i, cpus, sizeof(cpus)) != HOOP_OK)
        return;
    if (cpus[0] != '\0')
        fprintf(canvas->out, ", CPUs %s", cpus);
    else
        fputs(", no CPU that this process may use", canvas->out);
}

static void show_device(const struct canvas *canvas, const struct hoop_topo_node *node)
{
    const struct hoop_topo_bus *bus = &node->bus;
    const struct hoop_topo_link *link = hoop_topo_link(canvas->topo, node->uplink);

    if (bus->known)
        fprintf(canvas->out, "  %04x:%02x:%02x.%x", bus->domain, bus->bus, bus->device, bus->function);
    if (node->names[0] != '\0')
        fprintf(canvas->out, "  %s", node->names);
    if (node->vendor != 0)
        fprintf(canvas->out, "  [%04x:%04x]", node->vendor, node->device);
    if (node->model[0] != '\0')
        fprintf(canvas->out, " %s", node->model);
    if (node->kind == HOOP_TOPO_NIC)
        fputs(node->rdma ? ", RDMA" : ", sockets only", canvas->out);
    if (node->port_speed.source != HOOP_TOPO_UNKNOWN)
        fprintf(canvas->out, ", port %.3g GB/s", node->port_speed.value);
    if (node->virtual_function)
        fputs(", virtual function", canvas->out);
    if (link != NULL && link->gigabytes_per_second.source != HOOP_TOPO_UNKNOWN)
        fprintf(canvas->out, ", %.3g GB/s%s", link->gigabytes_per_second.value, link->current ? " now" : "");
    else if (node->kind == HOOP_TOPO_GPU || node->kind == HOOP_TOPO_NIC)
        fputs(", link speed unknown", canvas->out);
}

static void show_node(const struct canvas *canvas, int i)
{
    const struct hoop_topo_node *node = hoop_topo_node(canvas->topo, i);

    static const char *const colours[HOOP_TOPO_KINDS] = {"1", "1", "34", "33", "33", "32", "35", "36", "0"};

    if (canvas->colour)
        fprintf(canvas->out, "\033[%sm%s\033[0m", colours[node->kind], node->label);
    else
        fputs(node->label, canvas->out);
    switch (node->kind) {
    case HOOP_TOPO_MACHINE:
    case HOOP_TOPO_NUMA:
        fputs("  ", canvas->out);
        if (node->memory.source == HOOP_TOPO_UNKNOWN)
            fputs("memory unknown", canvas->out);
        else
            show_bytes(canvas->out, node->memory.value);
        show_cpus(canvas, i);
        break;
    case HOOP_TOPO_PACKAGE:
        if (node->model[0] != '\0')
            fprintf(canvas->out, "  %s", node->model);
        break;
    case HOOP_TOPO_HOST_BRIDGE:
        fprintf(canvas->out, "  PCI bus %04x:%02x", node->bus.domain, node->bus.bus);
        break;
    default:
        show_device(canvas, node);
        break;
    }
    fputc('\n', canvas->out);
}

/* A device that was chosen, or something above one. */
static bool leads_to_shown(const struct canvas *canvas, int node)
{
    const struct hoop_topo_node *below;

    if (canvas->shown == NULL)
        return true;
    for (int i = 0; hoop_topo_node(canvas->topo, i) != NULL; i++)
        for (int at = canvas->shown[i] ? i : -1; at >= 0 && (below = hoop_topo_node(canvas->topo, at)) != NULL;
             at = below->parent)
            if (at == node)
                return true;
    return false;
}

/* The next child of a node after `child`, -1 if there is none. */
static int next_child(const struct canvas *canvas, int node, int child)
{
    const struct hoop_topo_node *next;

    for (int i = child + 1; (next = hoop_topo_node(canvas->topo, i)) != NULL; i++)
        if (next->parent == node && leads_to_shown(canvas, i))
            return i;
    return -1;
}

static void show_below(const struct canvas *canvas, int node, const char *margin)
{
    char deeper[512];

    for (int child = next_child(canvas, node, -1), next; child >= 0; child = next) {
        next = next_child(canvas, node, child);
        fprintf(canvas->out, "%s%s", margin, next >= 0 ? canvas->branch : canvas->last);
        show_node(canvas, child);
        snprintf(deeper, sizeof(deeper), "%s%s", margin, next >= 0 ? canvas->through : canvas->blank);
        show_below(canvas, child, deeper);
    }
}

static void show_fabric(const struct hoop_topo *topo, const bool *shown, FILE *out)
{
    const struct hoop_topo_link *link;
    bool any = false;

    for (int i = 0; (link = hoop_topo_link(topo, i)) != NULL; i++) {
        if (link->kind < HOOP_TOPO_LINK_NVLINK || link->kind > HOOP_TOPO_LINK_C2C ||
            !(is_shown(shown, link->a) || is_shown(shown, link->b)))
            continue;
        if (!any)
            fputs("\nFabric:\n", out);
        any = true;
        fprintf(out, "  %s - %s  %s", hoop_topo_node(topo, link->a)->label, hoop_topo_node(topo, link->b)->label,
                hoop_topo_link_name(link->kind));
        if (link->count.source != HOOP_TOPO_UNKNOWN)
            fprintf(out, "  %.0f link%s", link->count.value, link->count.value > 1 ? "s" : "");
        if (link->gigabytes_per_second.source != HOOP_TOPO_UNKNOWN)
            fprintf(out, "  %.4g GB/s each way", link->gigabytes_per_second.value);
        fputc('\n', out);
    }
}

/* Verbs ports: what runs on them, and the addresses in their tables. */
static void show_ports(const struct hoop_topo *topo, const bool *shown, FILE *out)
{
    static const char *const states[] = {"", "down", "initializing", "armed", "active"};
    static const char *const layers[] = {"", "InfiniBand", "Ethernet"};
    const struct hoop_topo_node *node;
    const struct hoop_topo_gid *gid;
    const char *head = "\nVerbs ports:\n";

    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++) {
        const int state = (int)node->port_state.value, layer = (int)node->port_layer.value;

        if (node->kind != HOOP_TOPO_NIC || node->port_state.source == HOOP_TOPO_UNKNOWN || !is_shown(shown, i))
            continue;
        fprintf(out, "%s  %s %s  %s, %s\n", head, node->label, node->name,
                layer > 0 ? layers[layer] : "link layer unknown", state < 5 ? states[state] : "in an unknown state");
        head = "";
        for (int k = 0; (gid = hoop_topo_gid(topo, k)) != NULL; k++) {
            char text[INET6_ADDRSTRLEN] = "";

            if (gid->node != i)
                continue;
            inet_ntop(AF_INET6, gid->gid, text, sizeof text);
            fprintf(out, "    port %d  GID %d  %s  %s%s%s\n", gid->port, gid->index, hoop_topo_gid_name(gid->type),
                    text, gid->interface[0] != '\0' ? "  on " : "", gid->interface);
        }
    }
}

static void show_remarks(const struct hoop_topo *topo, FILE *out)
{
    for (int i = 0; hoop_topo_note(topo, i) != NULL; i++)
        fprintf(out, "%s  %s\n", i == 0 ? "\nRemarks:\n" : "", hoop_topo_note(topo, i));
}

void show_tree(const struct hoop_topo *topo, const bool *shown, FILE *out, bool lines, bool colour)
{
    const struct canvas canvas = {.topo = topo,
                                  .shown = shown,
                                  .out = out,
                                  .colour = colour,
                                  .branch = lines ? "├── " : "|-- ",
                                  .last = lines ? "└── " : "`-- ",
                                  .through = lines ? "│   " : "|   ",
                                  .blank = "    "};

    fputs(hoop_topo_origin(topo), out);
    if (hoop_topo_cores(topo) > 0)
        fprintf(out, ": %d core%s, %d CPU%s that this process may use", hoop_topo_cores(topo),
                hoop_topo_cores(topo) == 1 ? "" : "s", hoop_topo_cpus(topo), hoop_topo_cpus(topo) == 1 ? "" : "s");
    fputs("\n\n", out);
    show_node(&canvas, 0);
    show_below(&canvas, 0, "");
    show_fabric(topo, shown, out);
    show_ports(topo, shown, out);
    show_remarks(topo, out);
}
