// SPDX-License-Identifier: BSD-3-Clause
/* Facts that a person states: any text is taken or refused with its line; what comes out is a tree with classes that are the same in both
 * directions, all stated facts in their range, and written and read again the same machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char machine[] =
    "<hoop-topology version=\"1\" allowed=\"f\"><node kind=\"machine\" number=\"0\" parent=\"-1\" source=\"sysfs\" "
    "cpus=\"f\" numas=\"3\"/>"
    "<node kind=\"NUMA node\" number=\"0\" parent=\"0\" source=\"sysfs\" cpus=\"3\" numas=\"1\"/>"
    "<node kind=\"NUMA node\" number=\"1\" parent=\"0\" source=\"sysfs\" cpus=\"c\" numas=\"2\"/>"
    "<node kind=\"host bridge\" number=\"0\" parent=\"1\" source=\"sysfs\" bus=\"0000:00:00.0\" cpus=\"3\" "
    "numas=\"1\"/>"
    "<node kind=\"PCI bridge\" number=\"0\" parent=\"3\" source=\"sysfs\" bus=\"0000:00:01.0\" cpus=\"3\" numas=\"1\"/>"
    "<node kind=\"GPU\" number=\"0\" parent=\"4\" source=\"sysfs\" bus=\"0000:01:00.0\" "
    "pci=\"10de:20b0:0302:0000:0000\" cpus=\"3\" numas=\"1\"/>"
    "<node kind=\"GPU\" number=\"1\" parent=\"3\" source=\"sysfs\" bus=\"0000:02:00.0\" "
    "pci=\"10de:20b0:0302:0000:0000\" cpus=\"3\" numas=\"1\"/>"
    "<node kind=\"NIC\" number=\"0\" parent=\"2\" source=\"sysfs\" bus=\"0000:03:00.0\" name=\"mlx5_0\" "
    "names=\"mlx5_0,ib0\" rdma=\"1\" cpus=\"c\" numas=\"2\"/>"
    "<node kind=\"fabric switch\" number=\"0\" parent=\"0\" source=\"NVML\" adrift=\"1\"/>"
    "<link kind=\"PCI\" a=\"4\" b=\"5\" source=\"sysfs\" width=\"16 sysfs\"/><link kind=\"PCI\" a=\"3\" b=\"6\" "
    "source=\"sysfs\"/>"
    "<link kind=\"PCI\" a=\"2\" b=\"7\" source=\"sysfs\"/><link kind=\"host\" a=\"1\" b=\"3\" source=\"sysfs\"/>"
    "<link kind=\"PCI\" a=\"3\" b=\"4\" source=\"sysfs\"/><link kind=\"NVLink\" a=\"5\" b=\"6\" source=\"NVML\" "
    "count=\"2 NVML\"/></hoop-topology>";

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void in_range(const void *of, const struct hoop_fact_name *names, int count)
{
    for (int i = 0; i < count; i++)
        check(hoop_fact_in(of, &names[i])->source != HOOP_TOPO_OVERRIDE ||
              (hoop_fact_in(of, &names[i])->value >= 0 && hoop_fact_in(of, &names[i])->value <= names[i].most));
}

static void walk(const struct hoop_topo *topo)
{
    for (int i = 0; i < topo->nodes; i++) {
        const struct hoop_topo_node *node = hoop_topo_node(topo, i);

        check(node->parent < i || hoop_topo_node(topo, node->parent)->kind == node->kind);
        check(node->uplink < 0 || hoop_topo_link(topo, node->uplink)->a == node->parent ||
              hoop_topo_link(topo, node->uplink)->b == node->parent);
        in_range(node, hoop_node_facts, HOOP_NODE_FACTS);
        for (int j = 0; j < i; j++)
            check(hoop_topo_path_class(topo, i, j) == hoop_topo_path_class(topo, j, i) &&
                  hoop_topo_nccl_class(topo, i, j) == hoop_topo_nccl_class(topo, j, i));
    }
    for (int i = 0; i < topo->links; i++) {
        check(topo->link[i].a < topo->link[i].b);
        in_range(&topo->link[i], hoop_link_facts, HOOP_LINK_FACTS);
    }
}

static void same_again(const struct hoop_topo *topo)
{
    struct hoop_topo *again = NULL;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    check(file != NULL && hoop_topo_write(topo, file) == HOOP_OK && fclose(file) == 0);
    check(hoop_topo_read_own(&again, text, "again") == HOOP_OK);
    check(hoop_topo_digest(again) == hoop_topo_digest(topo));
    hoop_topo_free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hoop_topo *topo = NULL;
    char *text = malloc(bytes + 1);

    check(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    check(hoop_topo_read_own(&topo, machine, "machine") == HOOP_OK);
    const enum hoop_status status = hoop_topo_override_text(topo, text, "facts");
    check(status == HOOP_OK || (status == HOOP_ERR_ARG && strncmp(hoop_error_text(), "facts:", 6) == 0));
    if (status == HOOP_OK) {
        walk(topo);
        same_again(topo);
    }
    hoop_topo_free(topo);
    free(text);
    return 0;
}
