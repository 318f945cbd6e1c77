// SPDX-License-Identifier: BSD-3-Clause
/* The graph as JSON. A fact is {"value": …, "source": …} or null; nodes refer to one another by label. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>

#include "json.h"
#include "show.h"

static void put_text(FILE *out, const char *key, const char *text)
{
    fprintf(out, ", \"%s\": ", key);
    if (text[0] == '\0')
        fputs("null", out);
    else
        hoop_json_string(out, text);
}

static void put_fact(FILE *out, const char *key, const struct hoop_topo_fact *fact)
{
    fprintf(out, ", \"%s\": ", key);
    if (fact->source == HOOP_TOPO_UNKNOWN)
        fputs("null", out);
    else
        fprintf(out, "{\"value\": %.17g, \"source\": \"%s\"}", fact->value, hoop_topo_source_name(fact->source));
}

static void put_node(const struct hoop_topo *topo, FILE *out, int i)
{
    const struct hoop_topo_node *node = hoop_topo_node(topo, i);
    const struct hoop_topo_node *parent = hoop_topo_node(topo, node->parent);
    char list[LIST_TEXT] = "";

    fprintf(out, "%s\n    {\"label\": \"%s\", \"kind\": \"%s\", \"number\": %d", i > 0 ? "," : "", node->label,
            hoop_topo_kind_name(node->kind), node->number);
    put_text(out, "parent", parent == NULL ? "" : parent->label);
    put_text(out, "source", hoop_topo_source_name(node->source));
    if (node->bus.known)
        fprintf(out, ", \"bus\": \"%04x:%02x:%02x.%x\"", node->bus.domain, node->bus.bus, node->bus.device,
                node->bus.function);
    if (node->vendor != 0)
        fprintf(out, ", \"vendor\": \"%04x\", \"device\": \"%04x\", \"class\": \"%04x\"", node->vendor, node->device,
                node->pci_class);
    if (node->kind == HOOP_TOPO_NIC)
        fprintf(out, ", \"rdma\": %s", node->rdma ? "true" : "false");
    if (node->kind >= HOOP_TOPO_GPU)
        put_text(out, "names", node->names);
    put_text(out, "model", node->model);
    if (node->kind == HOOP_TOPO_MACHINE || node->kind == HOOP_TOPO_NUMA)
        put_fact(out, "memory_bytes", &node->memory);
    if (node->kind == HOOP_TOPO_GPU)
        put_fact(out, "memory_numa", &node->memory_numa);
    if (node->kind == HOOP_TOPO_GPU)
        put_fact(out, "cuda_ordinal", &node->ordinal);
    if (node->iommu_group.source != HOOP_TOPO_UNKNOWN)
        put_fact(out, "iommu_group", &node->iommu_group);
    if (node->acs_redirect.source != HOOP_TOPO_UNKNOWN)
        put_fact(out, "acs_redirect", &node->acs_redirect);
    if (node->virtual_function)
        fputs(", \"virtual_function\": true", out);
    if (node->kind == HOOP_TOPO_NIC)
        put_fact(out, "port_gigabytes_per_second", &node->port_speed);
    if (node->port_state.source != HOOP_TOPO_UNKNOWN)
        put_fact(out, "port_state", &node->port_state);
    if (node->port_layer.source != HOOP_TOPO_UNKNOWN)
        put_fact(out, "port_layer", &node->port_layer);
    hoop_topo_cpu_list(topo, i, list, sizeof(list));
    put_text(out, "cpus", list);
    hoop_topo_numa_list(topo, i, list, sizeof(list));
    put_text(out, "numas", list);
    fputc('}', out);
}

static void put_link(const struct hoop_topo *topo, FILE *out, int i)
{
    const struct hoop_topo_link *link = hoop_topo_link(topo, i);

    fprintf(out, "%s\n    {\"kind\": \"%s\", \"a\": \"%s\", \"b\": \"%s\"", i > 0 ? "," : "",
            hoop_topo_link_name(link->kind), hoop_topo_node(topo, link->a)->label,
            hoop_topo_node(topo, link->b)->label);
    put_text(out, "source", hoop_topo_source_name(link->source));
    fprintf(out, ", \"current\": %s", link->current ? "true" : "false");
    put_fact(out, "width", &link->width);
    put_fact(out, "gigatransfers", &link->gigatransfers);
    put_fact(out, "count", &link->count);
    put_fact(out, "gigabytes_per_second", &link->gigabytes_per_second);
    put_fact(out, "nanoseconds", &link->nanoseconds);
    if (link->now_width.source != HOOP_TOPO_UNKNOWN || link->device_width.source != HOOP_TOPO_UNKNOWN) {
        put_fact(out, "now_width", &link->now_width);
        put_fact(out, "now_gigatransfers", &link->now_gigatransfers);
        put_fact(out, "device_width", &link->device_width);
        put_fact(out, "device_gigatransfers", &link->device_gigatransfers);
    }
    fputc('}', out);
}

/* Only what a driver has told. */
static void put_access(const struct hoop_topo *topo, FILE *out)
{
    static const char *const ways[HOOP_TOPO_PEER_WAYS] = {"read", "write", "nvlink", "atomics", "pci"};
    bool any = false;

    for (int a = 0; hoop_topo_node(topo, a) != NULL; a++)
        for (int b = 0; hoop_topo_node(topo, b) != NULL; b++) {
            bool told = false;

            for (int way = 0; way < HOOP_TOPO_PEER_WAYS; way++)
                told |= hoop_topo_peer_access(topo, a, b, (enum hoop_topo_peer_way)way) != HOOP_TOPO_PEER_UNKNOWN;
            if (!told)
                continue;
            fprintf(out, "%s\n    {\"from\": \"%s\", \"to\": \"%s\"", any ? "," : ",\n  \"peer_access\": [",
                    hoop_topo_node(topo, a)->label, hoop_topo_node(topo, b)->label);
            for (int way = 0; way < HOOP_TOPO_PEER_WAYS; way++)
                put_text(out, ways[way],
                         hoop_topo_peer_name(hoop_topo_peer_access(topo, a, b, (enum hoop_topo_peer_way)way)));
            fputc('}', out);
            any = true;
        }
    if (any)
        fputc(']', out);
}

/* Only where there are verbs ports that tell them. */
static void put_gids(const struct hoop_topo *topo, FILE *out)
{
    const struct hoop_topo_gid *gid;

    for (int i = 0; (gid = hoop_topo_gid(topo, i)) != NULL; i++) {
        char text[INET6_ADDRSTRLEN] = "";

        inet_ntop(AF_INET6, gid->gid, text, sizeof text);
        fprintf(out, "%s\n    {\"nic\": \"%s\", \"port\": %d, \"index\": %d, \"type\": \"%s\"",
                i > 0 ? "," : ",\n  \"gids\": [", hoop_topo_node(topo, gid->node)->label, gid->port, gid->index,
                hoop_topo_gid_name(gid->type));
        put_text(out, "gid", text);
        put_text(out, "interface", gid->interface);
        fputc('}', out);
    }
    if (hoop_topo_gid(topo, 0) != NULL)
        fputc(']', out);
}

static void put_matrix(const struct hoop_topo *topo, const bool *shown, FILE *out)
{
    int *rows;
    const int count = matrix_rows(topo, shown, false, &rows);

    if (rows == NULL)
        return;
    fputs(",\n  \"matrix\": {\"labels\": [", out);
    for (int i = 0; i < count; i++)
        fprintf(out, "%s\"%s\"", i > 0 ? ", " : "", hoop_topo_node(topo, rows[i])->label);
    fputs("], \"pci\": [", out);
    for (int i = 0; i < count; i++) {
        fprintf(out, "%s\n    [", i > 0 ? "," : "");
        for (int j = 0; j < count; j++)
            fprintf(out, "%s\"%s\"", j > 0 ? ", " : "",
                    hoop_topo_class_name(hoop_topo_path_class(topo, rows[i], rows[j])));
        fputc(']', out);
    }
    fputs("]}", out);
    free(rows);
}

void show_json(const struct hoop_topo *topo, const bool *shown, FILE *out)
{
    fputs("{\"origin\": ", out);
    hoop_json_string(out, hoop_topo_origin(topo));
    fprintf(out, ", \"digest\": \"%016" PRIx64 "\", \"cores\": %d, \"cpus\": %d,\n  \"nodes\": [",
            hoop_topo_digest(topo), hoop_topo_cores(topo), hoop_topo_cpus(topo));
    for (int i = 0; hoop_topo_node(topo, i) != NULL; i++)
        put_node(topo, out, i);
    fputs("],\n  \"links\": [", out);
    for (int i = 0; hoop_topo_link(topo, i) != NULL; i++)
        put_link(topo, out, i);
    fputc(']', out);
    put_access(topo, out);
    put_gids(topo, out);
    fputs(",\n  \"remarks\": [", out);
    for (int i = 0; hoop_topo_note(topo, i) != NULL; i++) {
        fputs(i > 0 ? ", " : "", out);
        hoop_json_string(out, hoop_topo_note(topo, i));
    }
    fputc(']', out);
    put_matrix(topo, shown, out);
    fputs("}\n", out);
}
