// SPDX-License-Identifier: BSD-3-Clause
/* What the CUDA driver knows of the machine that runs: its devices, by PCI bus id, and which reaches whose memory.
 *
 * hwloc sees GPUs from outside, as PCI functions, and in a container or virtual machine maybe not at all. The driver knows
 * them by the ordinals that programs use. NVLinks are told by NVML (source_nvml.c). Where that is missing, the driver
 * still says which pairs of devices do atomic operations in each other's memory, which PCIe does not carry: a fabric joins
 * them, but nobody tells of how many links.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/model.h"

enum { MOST_DEVICES = 64 };

static int numa_at(const struct hoop_topo *topo, int number)
{
    for (int i = 0; i < topo->nodes; i++)
        if (topo->place[i].node.kind == HOOP_TOPO_NUMA && topo->place[i].node.number == number)
            return i;
    return -1;
}

/* A device that nobody else has seen hangs where the driver says that it is near, else on the machine. */
static int add_device(struct hoop_topo *topo, const struct hoop_device *device, const struct hoop_topo_bus *bus)
{
    const int numa = device->numa_node < 0 ? -1 : numa_at(topo, device->numa_node);
    const struct hoop_topo_node node = {
        .kind = HOOP_TOPO_GPU, .parent = numa < 0 ? 0 : numa, .source = HOOP_TOPO_CUDA, .bus = *bus};
    const int added =
        hoop_topo_add(topo, &node, topo->place[numa < 0 ? 0 : numa].cpus, numa < 0 ? NULL : topo->place[numa].numas);

    if (added < 0)
        return -1;
    topo->place[added].adrift = true;
    const struct hoop_topo_link link = {
        .kind = HOOP_TOPO_LINK_HOST, .a = node.parent, .b = added, .source = HOOP_TOPO_CUDA};
    return hoop_topo_join(topo, &link) == HOOP_OK ? added : -1;
}

/* Add "cuda3" to the node's names, and the driver's name of the model where there is none. MIG instances share a bus id: the
 * first one gives the ordinal. */
static enum hoop_status name_node(struct hoop_topo *topo, int i, const struct hoop_device *device)
{
    struct hoop_topo_node *node = &topo->place[i].node;
    char names[320];

    if (node->ordinal.source == HOOP_TOPO_UNKNOWN)
        node->ordinal = (struct hoop_topo_fact){device->ordinal, HOOP_TOPO_CUDA};
    snprintf(names, sizeof names, "%s%scuda%d", node->names, node->names[0] ? "," : "", device->ordinal);
    const char *kept = hoop_topo_keep_text(topo, names),
               *model = node->model[0] ? node->model : hoop_topo_keep_text(topo, device->name);
    if (kept == NULL || model == NULL)
        return HOOP_ERR_MEMORY;
    node->names = kept;
    node->model = model;
    if (node->name[0] == 0) /* the last of the names, being the only one */
        node->name = kept;
    return HOOP_OK;
}

static enum hoop_status place_device(struct hoop_topo *topo, const struct hoop_device *device, int *place)
{
    struct hoop_topo_bus bus;

    *place = -1;
    if (!hoop_topo_parse_bus(device->bus, &bus))
        return HOOP_OK;
    int i = hoop_topo_at_bus(topo, &bus);
    if (i < 0)
        i = add_device(topo, device, &bus);
    if (i < 0)
        return HOOP_ERR_MEMORY;
    *place = i;
    return name_node(topo, i, device);
}

/* Both reach each other's memory. */
static enum hoop_status join_peers(struct hoop_topo *topo, const struct hoop_device *device, const int *place,
                                   int count, enum hoop_topo_link_kind kind,
                                   uint64_t (*reach)(const struct hoop_device *))
{
    enum hoop_status status = HOOP_OK;

    for (int a = 0; a < count; a++)
        for (int b = a + 1; b < count && status == HOOP_OK; b++) {
            const struct hoop_topo_link link = {.kind = kind, .a = place[a], .b = place[b], .source = HOOP_TOPO_CUDA};

            if (place[a] >= 0 && place[b] >= 0 && place[a] != place[b] && reach(&device[a]) >> b & 1 &&
                reach(&device[b]) >> a & 1)
                status = hoop_topo_join(topo, &link);
        }
    return status;
}

static uint64_t peers_of(const struct hoop_device *device)
{
    return device->peers;
}

static uint64_t atomics_of(const struct hoop_device *device)
{
    return device->peers & device->atomics;
}

static bool has_fabric(const struct hoop_topo *topo)
{
    for (int i = 0; i < topo->links; i++)
        if (topo->link[i].kind == HOOP_TOPO_LINK_NVLINK)
            return true;
    return false;
}

static enum hoop_status read_all(struct hoop_topo *topo, struct hoop_device *device, int count)
{
    int place[MOST_DEVICES];
    enum hoop_status status = HOOP_OK;
    bool told = false;

    for (int i = 0; i < count && status == HOOP_OK; i++) {
        device[i].size = sizeof device[i];
        place[i] = -1;
        if (hoop_device_info(i, &device[i]) == HOOP_OK) /* else it cannot be used: not in the graph */
            status = place_device(topo, &device[i], &place[i]);
    }
    if (status == HOOP_OK)
        status = join_peers(topo, device, place, count, HOOP_TOPO_LINK_PEER, peers_of);
    if (status == HOOP_OK)
        status = hoop_topo_read_nvml(topo, !has_fabric(topo), &told);
    if (status == HOOP_OK && !has_fabric(topo) && !told)
        status = join_peers(topo, device, place, count, HOOP_TOPO_LINK_NVLINK, atomics_of);
    return status;
}

enum hoop_status hoop_topo_read_devices(struct hoop_topo *topo)
{
    const size_t used = strlen(topo->origin);
    int version = 0, count = 0;

    if (hoop_device_driver(&version, &count, NULL) != HOOP_OK)
        return HOOP_OK; /* there is nothing to add */
    count = count < MOST_DEVICES ? count : MOST_DEVICES;
    struct hoop_device *device = hoop_calloc((size_t)count, sizeof *device);
    if (device == NULL)
        return HOOP_ERR_MEMORY;
    const enum hoop_status status = read_all(topo, device, count);
    hoop_free(device);
    snprintf(topo->origin + used, sizeof topo->origin - used, ", and by the CUDA driver (%d.%d)", version / 1000,
             version % 1000 / 10);
    return status;
}
