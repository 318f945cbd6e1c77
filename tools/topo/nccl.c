// SPDX-License-Identifier: BSD-3-Clause
/* The matrix of NCCL's path classes along PCI: GPUs and network devices by NCCL's own numbers. Those of a topology file are its
 * "dev", or the place in the file where it gives none; elsewhere GPUs count by bus id and interfaces by name. */
#include <stdlib.h>

#include "show.h"

struct row {
    int node;
    double number; /* what it is sorted and called by */
    int label;
};

/* Templates of cloud providers leave out what a function is, since NCCL looks on the machine: those count as network devices
 * here. What has a class but is neither is no row. */
static bool is_row(const struct hoop_topo_node *node, bool gpu)
{
    if (gpu || node->kind == HOOP_TOPO_GPU)
        return gpu && node->kind == HOOP_TOPO_GPU;
    if (node->kind == HOOP_TOPO_NIC)
        return node->source == HOOP_TOPO_NCCL_XML || (node->rdma && node->name[0] != '\0');
    return node->kind == HOOP_TOPO_PCI_DEVICE && node->source == HOOP_TOPO_NCCL_XML && node->pci_class == 0;
}

static int compare_rows(const void *first, const void *second)
{
    const struct row *a = first, *b = second;

    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

/* Rows of one kind. Where some have a number of NCCL's, those without cannot be used by it and are left out. */
static int collect(const struct hoop_topo *topo, const bool *shown, bool gpu, struct row *rows)
{
    const struct hoop_topo_node *node;
    bool numbered = false;
    int count = 0;

    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++)
        numbered |= is_row(node, gpu) && node->ordinal.source == HOOP_TOPO_NCCL_XML;
    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++) {
        const double number = numbered                                           ? node->ordinal.value
                              : node->listed > 0                                 ? node->listed
                              : node->ordinal.source != HOOP_TOPO_UNKNOWN && gpu ? node->ordinal.value
                                                                                 : node->number;

        if (!is_row(node, gpu) || (numbered && node->ordinal.source == HOOP_TOPO_UNKNOWN))
            continue;
        rows[count++] = (struct row){i, number, (int)number};
    }
    qsort(rows, (size_t)count, sizeof *rows, compare_rows);
    for (int i = 0; i < count && !numbered; i++)
        rows[i].label = i;
    const int all = count;
    count = 0;
    for (int i = 0; i < all; i++)
        if (is_shown(shown, rows[i].node))
            rows[count++] = rows[i];
    return count;
}

static const char *prefix(int i, int gpus)
{
    return i < gpus ? "GPU" : "NET";
}

static void show_rows(const struct hoop_topo *topo, FILE *out, const struct row *rows, int gpus, int count)
{
    for (int i = 0; i < count; i++)
        fprintf(out, "\t%s%d", prefix(i, gpus), rows[i].label);
    for (int i = 0; i < count; i++) {
        fprintf(out, "\n%s%d", prefix(i, gpus), rows[i].label);
        for (int j = 0; j < count; j++)
            fprintf(out, "\t%s",
                    i == j ? "X" : hoop_topo_nccl_name(hoop_topo_nccl_class(topo, rows[i].node, rows[j].node)));
    }
    fputc('\n', out);
}

static void show_devices(const struct hoop_topo *topo, FILE *out, const struct row *rows, int gpus, int count)
{
    if (count > 0)
        fputs("\nDevices:\n\n", out);
    for (int i = 0; i < count; i++) {
        const struct hoop_topo_node *node = hoop_topo_node(topo, rows[i].node);
        const struct hoop_topo_bus *bus = &node->bus;

        fprintf(out, "  %s%d:", prefix(i, gpus), rows[i].label);
        if (bus->known)
            fprintf(out, " %04x:%02x:%02x.%x", bus->domain, bus->bus, bus->device, bus->function);
        fprintf(out, "%s%s", node->name[0] != '\0' ? " " : "", node->name);
        fputs(node->kind == HOOP_TOPO_PCI_DEVICE ? " (the file does not tell what it is)\n" : "\n", out);
    }
}

void show_nccl(const struct hoop_topo *topo, const bool *shown, FILE *out)
{
    int nodes = 0;

    while (hoop_topo_node(topo, nodes) != NULL)
        nodes++;
    struct row *rows = malloc((size_t)nodes * sizeof *rows);
    if (rows == NULL)
        return;
    const int gpus = collect(topo, shown, true, rows), count = gpus + collect(topo, shown, false, rows + gpus);
    show_rows(topo, out, rows, gpus, count);
    fputs("\nLegend:\n\n"
          "  X    = the device itself\n"
          "  LOC  = the same PCI function\n"
          "  PIX  = one PCIe switch\n"
          "  PXB  = several PCIe switches (the two levels of a Broadcom switch count as one)\n"
          "  PHB  = PCIe and one CPU (NUMA node), however many host bridges\n"
          "  SYS  = between CPUs\n",
          out);
    show_devices(topo, out, rows, gpus, count);
    free(rows);
}
