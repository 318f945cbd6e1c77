// SPDX-License-Identifier: BSD-3-Clause
/* The smaller questions of `nvidia-smi topo`: peer access, GPUs near a CPU, GPUs at a distance, what is between two. */
#include <stdlib.h>
#include <string.h>

#include "show.h"

/* Which nodes -i names: by label (GPU0, NIC1), by number (GPUs), bus id or name. */
static bool is_named(const struct hoop_topo_node *node, const char *word)
{
    char bus[24];

    snprintf(bus, sizeof bus, "%04x:%02x:%02x.%x", node->bus.domain, node->bus.bus, node->bus.device,
             node->bus.function);
    return strcmp(word, node->label) == 0 || (node->kind == HOOP_TOPO_GPU && strcmp(word, node->label + 3) == 0) ||
           (node->bus.known && strcmp(word, bus) == 0) || (node->name[0] != '\0' && strcmp(word, node->name) == 0);
}

bool *select_devices(const struct hoop_topo *topo, const char *list)
{
    const struct hoop_topo_node *node;
    int nodes = 0;
    char *words = strdup(list), *rest = words;

    while (hoop_topo_node(topo, nodes) != NULL)
        nodes++;
    bool *shown = calloc((size_t)nodes, sizeof *shown);
    for (const char *word; words != NULL && shown != NULL && (word = strsep(&rest, ",")) != NULL;) {
        bool found = false;

        for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++)
            if (node->kind >= HOOP_TOPO_GPU && is_named(node, word))
                shown[i] = found = true;
        if (!found) {
            fprintf(stderr,
                    "hoop-topo: -i %s: no such device; give GPU0 or 0, NIC0, a bus id or a name, parted by commas\n",
                    word);
            free(shown);
            shown = NULL;
        }
    }
    free(words);
    return shown;
}

static bool is_gpu(const struct hoop_topo *topo, const bool *shown, int i)
{
    return hoop_topo_node(topo, i)->kind == HOOP_TOPO_GPU && is_shown(shown, i);
}

/* ---- peer access ---- */

static bool joined(const struct hoop_topo *topo, int a, int b, enum hoop_topo_link_kind kind)
{
    const struct hoop_topo_link *link;

    for (int i = 0; (link = hoop_topo_link(topo, i)) != NULL; i++)
        if (link->kind == kind && ((link->a == a && link->b == b) || (link->a == b && link->b == a)))
            return true;
    return false;
}

/* What NVML says, else what follows from what the CUDA driver says. What only a driver tells is unknown of machines that were recorded
 * without one. */
static const char *peer_cell(const struct hoop_topo *topo, int a, int b, char what)
{
    static const char ways[HOOP_TOPO_PEER_WAYS] = {'r', 'w', 'n', 'a', 'p'};
    int way = 0;

    while (way < HOOP_TOPO_PEER_WAYS - 1 && ways[way] != what)
        way++;
    const enum hoop_topo_peer peer_says = hoop_topo_peer_access(topo, a, b, (enum hoop_topo_peer_way)way);
    if (peer_says != HOOP_TOPO_PEER_UNKNOWN)
        return hoop_topo_peer_name(peer_says);
    const bool told = hoop_topo_node(topo, a)->ordinal.source == HOOP_TOPO_CUDA &&
                      hoop_topo_node(topo, b)->ordinal.source == HOOP_TOPO_CUDA;
    const bool fabric = hoop_topo_fabric(topo, a, b, NULL, NULL), peer = joined(topo, a, b, HOOP_TOPO_LINK_PEER);

    switch (what) {
    case 'n':
        return fabric ? "OK" : told ? "NS" : "U";
    case 'a': /* PCIe carries no atomic operations between GPUs */
        return fabric && peer ? "OK" : told ? "NS" : "U";
    case 'p':
        return fabric || !told ? "U" : peer ? "OK" : "NS";
    default:
        return peer ? "OK" : told ? "NS" : "U";
    }
}

void show_peers(const struct hoop_topo *topo, const bool *shown, FILE *out, char what)
{
    const struct hoop_topo_node *node;

    fputc(' ', out);
    for (int i = 0; hoop_topo_node(topo, i) != NULL; i++)
        if (is_gpu(topo, shown, i))
            fprintf(out, "\t%s", hoop_topo_node(topo, i)->label);
    fputs("\t\n", out);
    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++) {
        if (!is_gpu(topo, shown, i))
            continue;
        fprintf(out, " %s", node->label);
        for (int j = 0; hoop_topo_node(topo, j) != NULL; j++)
            if (is_gpu(topo, shown, j))
                fprintf(out, "\t%s", i == j ? "X" : peer_cell(topo, i, j, what));
        fputs("\t\n", out);
    }
    fputs("\nLegend:\n\n"
          "  X    = Self\n"
          "  OK   = Status Ok\n"
          "  CNS  = Chipset not supported\n"
          "  GNS  = GPU not supported\n"
          "  TNS  = Topology not supported\n"
          "  DR   = Disabled by a registry key of the driver\n"
          "  NS   = Not supported\n"
          "  U    = Unknown\n",
          out);
}

/* ---- near a CPU, near a GPU ---- */

bool list_has(const char *list, long number)
{
    while (*list != '\0') {
        char *end;
        const long first = strtol(list, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;

        if (number >= first && number <= last)
            return true;
        list = *end == ',' ? end + 1 : "";
    }
    return false;
}

void show_near_cpu(const struct hoop_topo *topo, const bool *shown, FILE *out, long cpu)
{
    bool any = false;

    fprintf(out, "The GPUs that have an affinity with CPU %ld are:\n", cpu);
    for (int i = 0; hoop_topo_node(topo, i) != NULL; i++) {
        char list[LIST_TEXT] = "";

        if (!is_gpu(topo, shown, i) || hoop_topo_cpu_list(topo, i, list, sizeof list) != HOOP_OK ||
            !list_has(list, cpu))
            continue;
        fprintf(out, "%s%d", any ? ", " : "", hoop_topo_node(topo, i)->number);
        any = true;
    }
    fputs(any ? "\n" : "None\n", out);
}

static const char *const levels[] = {"a single PCIe switch on a dual GPU board",
                                     "a single PCIe switch",
                                     "multiple PCIe switches",
                                     "a PCIe host bridge",
                                     "an on-CPU interconnect link between PCIe host bridges",
                                     "an SMP interconnect link between NUMA nodes"};

/* Distance as -n counts it; -1: unknown. That two GPUs share a board nobody tells; -n 0 finds functions of one device. */
static int level_of(const struct hoop_topo *topo, int a, int b)
{
    static const int level[HOOP_TOPO_CLASSES] = {
        [HOOP_TOPO_PIX] = 1,  [HOOP_TOPO_PXB] = 2, [HOOP_TOPO_PHB] = 3,
        [HOOP_TOPO_NODE] = 4, [HOOP_TOPO_SYS] = 5, [HOOP_TOPO_CLASS_UNKNOWN] = -1};
    const struct hoop_topo_bus *one = &hoop_topo_node(topo, a)->bus, *other = &hoop_topo_node(topo, b)->bus;

    if (one->known && other->known && one->domain == other->domain && one->bus == other->bus &&
        one->device == other->device)
        return 0;
    return level[hoop_topo_path_class(topo, a, b)];
}

void show_near_gpu(const struct hoop_topo *topo, const bool *shown, FILE *out, long level)
{
    for (int i = 0; hoop_topo_node(topo, i) != NULL; i++) {
        bool any = false;

        if (!is_gpu(topo, shown, i))
            continue;
        fprintf(out, "The GPUs that connect to GPU %d via %s are:\n", hoop_topo_node(topo, i)->number, levels[level]);
        for (int j = 0; hoop_topo_node(topo, j) != NULL; j++)
            if (j != i && is_gpu(topo, NULL, j) && level_of(topo, i, j) == level) {
                fprintf(out, "%s%d", any ? ", " : "", hoop_topo_node(topo, j)->number);
                any = true;
            }
        fputs(any ? "\n" : "None\n", out);
    }
}

void show_between(const struct hoop_topo *topo, const bool *shown, FILE *out)
{
    for (int i = 0; hoop_topo_node(topo, i) != NULL; i++)
        for (int j = i + 1; hoop_topo_node(topo, j) != NULL; j++) {
            if (!is_shown(shown, i) || !is_shown(shown, j) || hoop_topo_node(topo, i)->kind < HOOP_TOPO_GPU ||
                hoop_topo_node(topo, j)->kind < HOOP_TOPO_GPU)
                continue;
            const int level = level_of(topo, i, j);
            fprintf(out, "Device %s is connected to device %s by way of %s.\n", hoop_topo_node(topo, i)->label,
                    hoop_topo_node(topo, j)->label, level < 0 ? "nobody knows what" : levels[level]);
        }
}
