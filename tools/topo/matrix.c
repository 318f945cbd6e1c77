// SPDX-License-Identifier: BSD-3-Clause
/* The matrix in the layout that scripts know from `nvidia-smi topo -m`: cells parted by one TAB, a header that begins
 * with a TAB, " X " for the device itself, three columns of affinity, two legends. */
#include <stdlib.h>
#include <string.h>

#include "show.h"

static bool is_row(const struct hoop_topo_node *node, bool wide)
{
    switch (node->kind) {
    case HOOP_TOPO_GPU:
        return true;
    case HOOP_TOPO_NUMA:
        return wide;
    case HOOP_TOPO_NIC:
        return node->name[0] != '\0' && (wide || node->rdma);
    default:
        return false;
    }
}

static int count_rdma(const struct hoop_topo *topo)
{
    const struct hoop_topo_node *node;
    int count = 0;

    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++)
        count += node->kind == HOOP_TOPO_NIC && node->rdma && node->name[0] != '\0';
    return count;
}

int matrix_rows(const struct hoop_topo *topo, const bool *shown, bool pci, int **rows)
{
    const bool wide = hoop_topo_count(topo, HOOP_TOPO_GPU) == 0 && !(pci && count_rdma(topo) > 0);
    const struct hoop_topo_node *node;
    int count = 0;

    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++)
        count += is_row(node, wide) && is_shown(shown, i);
    *rows = malloc(((size_t)count + 1) * sizeof(**rows));
    if (*rows == NULL)
        return 0;
    count = 0;
    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++)
        if (is_row(node, wide) && is_shown(shown, i))
            (*rows)[count++] = i;
    return count;
}

/* Which of the rarer cells were printed, for the legend. */
struct seen {
    bool nvlink, xgmi, unknown;
};

/* Do links of that kind end at the GPU? */
static bool has_links(const struct hoop_topo *topo, int gpu, enum hoop_topo_link_kind kind)
{
    const struct hoop_topo_link *link;

    for (int i = 0; (link = hoop_topo_link(topo, i)) != NULL; i++)
        if (link->kind == kind && (link->a == gpu || link->b == gpu))
            return true;
    return false;
}

static void show_cell(const struct hoop_topo *topo, FILE *out, int a, int b, bool pci, struct seen *seen)
{
    const enum hoop_topo_class path = hoop_topo_path_class(topo, a, b);
    struct hoop_topo_fact count;

    if (path == HOOP_TOPO_SELF) {
        fputs("\t X ", out);
    } else if (!pci && hoop_topo_fabric(topo, a, b, &count, NULL)) {
        const bool xgmi = has_links(topo, a, HOOP_TOPO_LINK_XGMI);

        seen->xgmi |= xgmi;
        seen->nvlink |= !xgmi;
        fputs(xgmi ? "\tXG" : "\tNV", out);
        if (count.source == HOOP_TOPO_UNKNOWN)
            fputs("?", out);
        else
            fprintf(out, "%.0f", count.value);
    } else {
        seen->unknown |= path == HOOP_TOPO_CLASS_UNKNOWN;
        fprintf(out, "\t%s", hoop_topo_class_name(path));
    }
}

/* Interfaces have empty cells there: four TABs end their rows. */
static void show_affinity(const struct hoop_topo *topo, FILE *out, int i)
{
    const struct hoop_topo_node *node = hoop_topo_node(topo, i);
    char cpus[LIST_TEXT] = "", numas[LIST_TEXT] = "";

    if (node->kind == HOOP_TOPO_NIC) {
        fputs("\t\t\t\t\n", out);
        return;
    }
    hoop_topo_cpu_list(topo, i, cpus, sizeof(cpus));
    hoop_topo_numa_list(topo, i, numas, sizeof(numas));
    fprintf(out, "\t%s\t%s\t\t", cpus, numas);
    if (node->memory_numa.source == HOOP_TOPO_UNKNOWN)
        fputs("N/A\n", out);
    else
        fprintf(out, "%.0f\n", node->memory_numa.value);
}

static void show_legend(FILE *out, const struct seen *seen, bool numa)
{
    fputs("\nLegend:\n\n"
          "  X    = the device itself\n"
          "  SYS  = PCIe, then from one NUMA node to another (the links between sockets or parts of one)\n"
          "  NODE = PCIe, then from one host bridge to another inside a NUMA node\n"
          "  PHB  = PCIe and one host bridge (the CPU's root of PCIe)\n"
          "  PXB  = several PCIe bridges, no host bridge\n"
          "  PIX  = one PCIe bridge at most\n",
          out);
    if (seen->xgmi)
        fputs("  XG#  = # XGMI links side by side\n", out);
    if (seen->nvlink)
        fputs("  NV#  = # NVLinks side by side, direct or through switches (NV?: nobody told how many)\n", out);
    if (numa)
        fputs("  NUMA row: memory of that node, with the CPUs near it; PHB to devices that are local to it\n", out);
    if (seen->unknown)
        fputs("  ?    = nobody told where one of the two is: near which NUMA node, on which PCI bus, or how many host "
              "bridges "
              "are in between\n",
              out);
}

static void show_nics(const struct hoop_topo *topo, FILE *out, const int *rows, int count)
{
    bool any = false;

    for (int i = 0; i < count; i++) {
        const struct hoop_topo_node *node = hoop_topo_node(topo, rows[i]);

        if (node->kind != HOOP_TOPO_NIC)
            continue;
        if (!any)
            fputs("\nNIC Legend:\n\n", out);
        any = true;
        fprintf(out, "  %s: %s\n", node->label, node->name);
    }
}

/* The other GPUs whose memory a GPU reaches, as " GPU1 GPU2". */
static void tell_peers(const struct hoop_topo *topo, FILE *out, int gpu)
{
    const struct hoop_topo_link *link;
    const char *before = "; peer access to";

    for (int i = 0; (link = hoop_topo_link(topo, i)) != NULL; i++) {
        if (link->kind != HOOP_TOPO_LINK_PEER || (link->a != gpu && link->b != gpu))
            continue;
        fprintf(out, "%s %s", before, hoop_topo_node(topo, link->a == gpu ? link->b : link->a)->label);
        before = "";
    }
    fprintf(out, "%s\n", *before == '\0' ? "" : "; no peer access");
}

static void show_gpus(const struct hoop_topo *topo, FILE *out, const int *rows, int count)
{
    bool any = false;

    for (int i = 0; i < count; i++) {
        const struct hoop_topo_node *node = hoop_topo_node(topo, rows[i]);

        if (node->kind != HOOP_TOPO_GPU || node->ordinal.source == HOOP_TOPO_UNKNOWN)
            continue;
        if (!any)
            fputs("\nGPU Legend:\n\n", out);
        any = true;
        if (node->ordinal.source != HOOP_TOPO_CUDA) {
            fprintf(out, "  %s: device %.0f of who wrote the file%s%s\n", node->label, node->ordinal.value,
                    node->model[0] != '\0' ? ", " : "", node->model);
            continue;
        }
        fprintf(out, "  %s: CUDA device %.0f, %s", node->label, node->ordinal.value, node->model);
        tell_peers(topo, out, rows[i]);
    }
}

static void show_absent(const struct hoop_topo *topo, FILE *out)
{
    const bool gpu = hoop_topo_count(topo, HOOP_TOPO_GPU) > 0, nic = hoop_topo_count(topo, HOOP_TOPO_NIC) > 0;
    const bool rdma = count_rdma(topo) > 0, pci = hoop_topo_count(topo, HOOP_TOPO_HOST_BRIDGE) > 0;

    if (gpu && rdma)
        return;
    fputc('\n', out);
    if (!gpu)
        fputs("No GPU: there is no PCI display or accelerator device of NVIDIA, AMD or Intel.\n", out);
    if (!rdma && nic)
        fputs("No RDMA network interface: what there is does sockets only.\n", out);
    if (!nic)
        fputs("No network interface of a device, RDMA or other.\n", out);
    if (!pci)
        fputs("No PCI bus: this source has none, or a container or virtual machine hides it.\n", out);
}

void show_matrix(const struct hoop_topo *topo, const bool *shown, FILE *out, bool pci, bool underline)
{
    struct seen seen = {0};
    int *rows, numa = 0;
    const int count = matrix_rows(topo, shown, pci, &rows);

    if (rows == NULL)
        return;
    fprintf(out, "\t%s", underline ? "\033[4m" : "");
    for (int i = 0; i < count; i++)
        fprintf(out, "%s\t", hoop_topo_node(topo, rows[i])->label);
    fprintf(out, "CPU Affinity\tNUMA Affinity\tGPU NUMA ID%s\n", underline ? "\033[0m" : "");
    for (int i = 0; i < count; i++) {
        const struct hoop_topo_node *node = hoop_topo_node(topo, rows[i]);

        numa += node->kind == HOOP_TOPO_NUMA;
        fputs(node->label, out);
        for (int j = 0; j < count; j++)
            show_cell(topo, out, rows[i], rows[j], pci, &seen);
        show_affinity(topo, out, rows[i]);
    }
    show_legend(out, &seen, numa > 0);
    show_gpus(topo, out, rows, count);
    show_nics(topo, out, rows, count);
    show_absent(topo, out);
    free(rows);
}
