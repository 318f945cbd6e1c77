// SPDX-License-Identifier: BSD-3-Clause
/* The machine as a topology file that NCCL and RCCL read (NCCL_TOPO_FILE): a <cpu> for each NUMA node, in it the PCI switches as one node
 * each, in them the devices, with the links of GPUs. What is unknown is left out; the libraries look for it on the machine. */
#include <stdlib.h>
#include <string.h>

#include "show.h"

struct writer {
    const struct hoop_topo *topo;
    const bool *shown;
    FILE *out;
};

enum { MOST_WORDS = 1024 };

static const struct hoop_topo_node *at(const struct writer *writer, int i)
{
    return hoop_topo_node(writer->topo, i);
}

static void put_bus(FILE *out, const char *name, const struct hoop_topo_bus *bus)
{
    if (bus->known)
        fprintf(out, " %s=\"%04x:%02x:%02x.%x\"", name, bus->domain, bus->bus, bus->device, bus->function);
    else
        fprintf(out, " %s=\"fffffff:ffff:ff\"", name); /* what NCCL writes for a switch that is not shown */
}

static void put_text(FILE *out, const char *name, const char *text)
{
    if (*text == '\0')
        return;
    fprintf(out, " %s=\"", name);
    for (; *text != '\0'; text++)
        fputc(strchr("<>&\"'", *text) != NULL || (unsigned char)*text < ' ' ? '_' : *text, out);
    fputc('"', out);
}

/* "0-3,32-39" as words of 32 bits, the highest first. */
static void put_affinity(FILE *out, const char *list)
{
    static unsigned word[MOST_WORDS];
    long last_word = 0;

    if (*list == '\0')
        return;
    memset(word, 0, sizeof word);
    while (*list != '\0') {
        char *end;
        const long first = strtol(list, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;

        for (long cpu = first; cpu <= last && cpu / 32 < MOST_WORDS; cpu++) {
            word[cpu / 32] |= 1u << cpu % 32;
            last_word = cpu / 32;
        }
        list = *end == ',' ? end + 1 : "";
    }
    fputs(" affinity=\"", out);
    for (long i = last_word; i >= 0; i--)
        fprintf(out, "%08x%s", word[i], i > 0 ? "," : "\"");
}

static int number_of(const struct hoop_topo_node *node)
{
    return node->ordinal.source != HOOP_TOPO_UNKNOWN ? (int)node->ordinal.value : node->number;
}

static void put_links(const struct writer *writer, int gpu, int depth)
{
    const struct hoop_topo_link *link;

    for (int i = 0; (link = hoop_topo_link(writer->topo, i)) != NULL; i++) {
        const int other = link->a == gpu ? link->b : link->b == gpu ? link->a : -1;
        const bool xgmi = link->kind == HOOP_TOPO_LINK_XGMI;

        if ((link->kind != HOOP_TOPO_LINK_NVLINK && !xgmi) || other < 0 || link->count.source == HOOP_TOPO_UNKNOWN)
            continue;
        const enum hoop_topo_kind kind = at(writer, other)->kind;
        if (kind != HOOP_TOPO_GPU && kind != HOOP_TOPO_SWITCH)
            continue;
        fprintf(writer->out, "%*s<%s", depth * 2, "", xgmi ? "xgmi" : "nvlink");
        put_bus(writer->out, "target", &at(writer, other)->bus);
        fprintf(writer->out, " count=\"%.0f\" tclass=\"0x%s\"/>\n", link->count.value,
                kind == HOOP_TOPO_SWITCH ? "068000" : "030200");
    }
}

static void put_gpu(const struct writer *writer, int i, int depth)
{
    const struct hoop_topo_node *node = at(writer, i);

    fprintf(writer->out, "%*s<gpu dev=\"%d\"", depth * 2, "", number_of(node));
    if (strncmp(node->model, "gcn ", 4) == 0 || strncmp(node->model, "gfx", 3) == 0)
        put_text(writer->out, "gcn", node->model + (node->model[1] == 'c' ? 4 : 0));
    else if (strncmp(node->model, "sm ", 3) == 0)
        put_text(writer->out, "sm", node->model + 3);
    fputs(">\n", writer->out);
    put_links(writer, i, depth + 1);
    fprintf(writer->out, "%*s</gpu>\n", depth * 2, "");
}

static void put_net(const struct writer *writer, int i, int depth)
{
    const struct hoop_topo_node *node = at(writer, i);

    fprintf(writer->out, "%*s<nic><net", depth * 2, "");
    put_text(writer->out, "name", node->name);
    fprintf(writer->out, " dev=\"%d\"", number_of(node));
    if (node->port_speed.source != HOOP_TOPO_UNKNOWN)
        fprintf(writer->out, " speed=\"%.0f\"", node->port_speed.value * 8000);
    fprintf(writer->out, " port=\"%d\" gdr=\"%d\"/></nic>\n", node->rdma, node->rdma);
}

static void put_children(const struct writer *writer, int above, int depth, bool kept);

/* One PCI function; ports of switches that are not the upper ones only pass on what is below. */
static void put_pci(const struct writer *writer, int i, int depth, bool kept)
{
    const struct hoop_topo_node *node = at(writer, i), *other;
    const struct hoop_topo_link *link = hoop_topo_link(writer->topo, node->uplink);

    fprintf(writer->out, "%*s<pci", depth * 2, "");
    put_bus(writer->out, "busid", &node->bus);
    if (node->pci_class != 0)
        fprintf(writer->out, " class=\"0x%04x00\"", node->pci_class);
    if (node->vendor != 0)
        fprintf(writer->out,
                " vendor=\"0x%04x\" device=\"0x%04x\" subsystem_vendor=\"0x%04x\" subsystem_device=\"0x%04x\"",
                node->vendor, node->device, node->subsystem_vendor, node->subsystem_device);
    if (link != NULL && link->gigatransfers.source != HOOP_TOPO_UNKNOWN)
        fprintf(writer->out, " link_speed=\"%.1f GT/s PCIe\"", link->gigatransfers.value);
    if (link != NULL && link->width.source != HOOP_TOPO_UNKNOWN)
        fprintf(writer->out, " link_width=\"%.0f\"", link->width.value);
    fputs(">\n", writer->out);
    for (int j = i; (other = at(writer, j)) != NULL; j++) { /* all nodes of this function */
        const bool same = j == i || (node->bus.known && other->parent == node->parent && other->kind == node->kind &&
                                     memcmp(&other->bus, &node->bus, sizeof node->bus) == 0);

        if (same && other->kind == HOOP_TOPO_GPU)
            put_gpu(writer, j, depth + 1);
        else if (same && other->kind == HOOP_TOPO_NIC && other->name[0] != '\0')
            put_net(writer, j, depth + 1);
    }
    if (node->kind == HOOP_TOPO_PCI_BRIDGE)
        put_children(writer, i, depth + 1, !kept);
    fprintf(writer->out, "%*s</pci>\n", depth * 2, "");
}

/* Is a node of the same function before it? Then it was written there. */
static bool is_written(const struct writer *writer, int i)
{
    const struct hoop_topo_node *node = at(writer, i);

    for (int j = 0; j < i; j++)
        if (node->bus.known && node->kind >= HOOP_TOPO_GPU && at(writer, j)->kind == node->kind &&
            at(writer, j)->parent == node->parent && memcmp(&at(writer, j)->bus, &node->bus, sizeof node->bus) == 0)
            return true;
    return false;
}

/* Interfaces for sockets only are NCCL's to find. */
static bool is_written_at_all(const struct hoop_topo_node *node)
{
    return node->kind == HOOP_TOPO_GPU ||
           (node->kind == HOOP_TOPO_NIC &&
            (node->source == HOOP_TOPO_NCCL_XML || (node->rdma && node->name[0] != '\0'))) ||
           (node->kind == HOOP_TOPO_PCI_DEVICE && node->source == HOOP_TOPO_NCCL_XML);
}

/* kept: bridges right below are upper ports of switches (or whole ones), which become nodes. */
static void put_children(const struct writer *writer, int above, int depth, bool kept)
{
    const struct hoop_topo_node *node;

    for (int i = 0; (node = at(writer, i)) != NULL; i++) {
        if (node->parent != above || is_written(writer, i))
            continue;
        if (node->kind == HOOP_TOPO_HOST_BRIDGE ||
            (node->kind == HOOP_TOPO_PCI_BRIDGE && !kept && node->source != HOOP_TOPO_NCCL_XML))
            put_children(writer, i, depth, node->kind == HOOP_TOPO_PCI_BRIDGE);
        else if (node->kind == HOOP_TOPO_PCI_BRIDGE)
            put_pci(writer, i, depth, true);
        else if (is_written_at_all(node) && is_shown(writer->shown, i) && node->bus.known)
            put_pci(writer, i, depth, kept);
        else if (node->kind == HOOP_TOPO_NIC && is_written_at_all(node) && is_shown(writer->shown, i))
            put_net(writer, i, depth);
    }
}

static void put_cpu(const struct writer *writer, int i)
{
    const struct hoop_topo_node *node = at(writer, i);
    char list[LIST_TEXT] = "";

    fprintf(writer->out, "  <cpu numaid=\"%d\"", node->kind == HOOP_TOPO_NUMA ? node->number : -1);
    if (node->kind == HOOP_TOPO_NUMA && hoop_topo_cpu_list(writer->topo, i, list, sizeof list) == HOOP_OK)
        put_affinity(writer->out, list);
    put_text(writer->out, "arch", node->cpu.arch);
    put_text(writer->out, "vendor", node->cpu.vendor);
    if (node->cpu.family > 0)
        fprintf(writer->out, " familyid=\"%d\" modelid=\"%d\"", node->cpu.family, node->cpu.model);
    fputs(">\n", writer->out);
    put_children(writer, i, 2, false);
    fputs("  </cpu>\n", writer->out);
}

void show_nccl_xml(const struct hoop_topo *topo, const bool *shown, FILE *out)
{
    const struct writer writer = {topo, shown, out};
    const struct hoop_topo_node *node;
    const struct hoop_topo_link *link;
    int version = 1;

    for (int i = 0; (link = hoop_topo_link(topo, i)) != NULL; i++)
        if (link->kind == HOOP_TOPO_LINK_XGMI)
            version = 2;
    fprintf(out, "<system version=\"%d\">\n", version);
    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++) {
        bool below = node->kind == HOOP_TOPO_NUMA;

        for (int j = 0; hoop_topo_node(topo, j) != NULL && !below; j++) /* devices that hang on no NUMA node */
            below = node->kind < HOOP_TOPO_NUMA && hoop_topo_node(topo, j)->parent == i &&
                    hoop_topo_node(topo, j)->kind > HOOP_TOPO_NUMA && hoop_topo_node(topo, j)->kind != HOOP_TOPO_SWITCH;
        if (below)
            put_cpu(&writer, i);
    }
    fputs("</system>\n", out);
}
