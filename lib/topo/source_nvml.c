// SPDX-License-Identifier: BSD-3-Clause
/* What NVML tells of every GPU in the graph: each NVLink that is up, and what is at its other end; and whether the driver lets it reach
 * the others' memory, or why not.
 *
 * NVML is a library of NVIDIA's driver, loaded here and let go again. Declared below is what of it is used: its functions
 * keep their form under names that end in a version.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "topo/model.h"

enum { MOST_LINKS = 18, REMOTE_SWITCH = 2, FIELD_LINK_SPEED = 90 }; /* MB/s of one link */

struct nvml_pci {
    char short_id[16];
    unsigned domain, bus, device, ids, subsystem;
    char id[32];
};

struct nvml_field {
    unsigned field, scope;
    long long timestamp, latency;
    int type, result;
    union {
        double as_double;
        unsigned as_unsigned;
        unsigned long long as_long;
    } value;
};

typedef int (*plain_call)(void);

struct nvml {
    void *handle;
    plain_call start, stop;
    int (*device)(const char *bus, void **device);
    int (*link_state)(void *device, unsigned link, int *up);
    int (*remote)(void *device, unsigned link, struct nvml_pci *pci);
    int (*remote_type)(void *device, unsigned link, int *type); /* NULL in old ones */
    int (*fields)(void *device, int count, struct nvml_field *field);
    int (*access)(void *device, void *other, int way, int *status); /* NULL in old ones */
};

/* Fill in a pointer to a function; POSIX: its address fits a pointer to an object. */
static bool find(void *handle, const char *symbol, void *pointer)
{
    void *address = dlsym(handle, symbol);

    memcpy(pointer, &address, sizeof address);
    return address != NULL;
}

static bool open_nvml(struct nvml *nvml)
{
    *nvml = (struct nvml){.handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (nvml->handle == NULL)
        return false;
    find(nvml->handle, "nvmlDeviceGetNvLinkRemoteDeviceType", &nvml->remote_type);
    find(nvml->handle, "nvmlDeviceGetFieldValues", &nvml->fields);
    find(nvml->handle, "nvmlDeviceGetP2PStatus", &nvml->access);
    if (find(nvml->handle, "nvmlInit_v2", &nvml->start) && find(nvml->handle, "nvmlShutdown", &nvml->stop) &&
        find(nvml->handle, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->device) &&
        find(nvml->handle, "nvmlDeviceGetNvLinkState", &nvml->link_state) &&
        find(nvml->handle, "nvmlDeviceGetNvLinkRemotePciInfo_v2", &nvml->remote) && nvml->start() == 0)
        return true;
    dlclose(nvml->handle);
    return false;
}

/* The node at the other end; a switch that the graph lacks is added. -1: none that is of interest, -2: no memory. */
static int remote_node(struct hoop_topo *topo, const struct nvml *nvml, void *device, unsigned link)
{
    struct nvml_pci pci = {.domain = 0};
    int type = -1;

    if (nvml->remote(device, link, &pci) != 0)
        return -1;
    const struct hoop_topo_bus bus = {true, pci.domain, (uint8_t)pci.bus, (uint8_t)pci.device, 0};
    const int found = hoop_topo_at_bus(topo, &bus);
    if (found >= 0)
        return found;
    if (nvml->remote_type == NULL || nvml->remote_type(device, link, &type) != 0 || type != REMOTE_SWITCH)
        return -1;
    const struct hoop_topo_node node = {.kind = HOOP_TOPO_SWITCH, .source = HOOP_TOPO_NVML, .bus = bus};
    const int added = hoop_topo_add(topo, &node, NULL, NULL);
    if (added < 0)
        return -2;
    topo->place[added].adrift = true;
    return added;
}

/* 10^9 bytes a second of one link; 0: unknown. */
static double link_rate(const struct nvml *nvml, void *device, const struct hoop_topo_node *node,
                        enum hoop_topo_source *source)
{
    struct nvml_field field = {.field = FIELD_LINK_SPEED};

    *source = HOOP_TOPO_NVML;
    if (nvml->fields && nvml->fields(device, 1, &field) == 0 && field.result == 0 && field.value.as_unsigned > 0)
        return (double)field.value.as_unsigned / 1000;
    *source = HOOP_TOPO_DEVICE_ID;
    return hoop_topo_nvlink_rate(node->device);
}

/* One more link between the two: a new entry, or one more side by side. Links are seen from both ends: those of a GPU to a GPU
 * that comes later in the graph count here. */
static enum hoop_status count_link(struct hoop_topo *topo, int from, int to, double rate, enum hoop_topo_source source)
{
    for (int i = 0; i < topo->links; i++) {
        struct hoop_topo_link *link = &topo->link[i];

        if (link->kind != HOOP_TOPO_LINK_NVLINK || link->a != from || link->b != to)
            continue;
        link->count.value++;
        link->gigabytes_per_second.value += rate;
        return HOOP_OK;
    }
    struct hoop_topo_link link = {
        .kind = HOOP_TOPO_LINK_NVLINK, .a = from, .b = to, .source = HOOP_TOPO_NVML, .count = {1, HOOP_TOPO_NVML}};
    if (rate > 0)
        link.gigabytes_per_second = (struct hoop_topo_fact){rate, source};
    return hoop_topo_join(topo, &link);
}

/* NVML's handle of a node; NULL: it is no GPU, or none that NVML knows. */
static void *handle_of(const struct hoop_topo *topo, const struct nvml *nvml, int i)
{
    const struct hoop_topo_bus *bus = &topo->place[i].node.bus;
    void *device = NULL;
    char text[32];

    if (topo->place[i].node.kind != HOOP_TOPO_GPU || !bus->known)
        return NULL;
    snprintf(text, sizeof text, "%08x:%02x:%02x.%x", bus->domain, bus->bus, bus->device, bus->function);
    return nvml->device(text, &device) == 0 ? device : NULL;
}

static enum hoop_status read_links(struct hoop_topo *topo, const struct nvml *nvml, int gpu, void *device)
{
    enum hoop_topo_source source;

    const double rate = link_rate(nvml, device, &topo->place[gpu].node, &source);
    for (unsigned link = 0; link < MOST_LINKS; link++) {
        int up = 0;

        if (nvml->link_state(device, link, &up) != 0 || !up)
            continue;
        const int other = remote_node(topo, nvml, device, link);
        if (other == -2)
            return HOOP_ERR_MEMORY;
        if (other < 0)
            continue;
        if (other <= gpu && topo->place[other].node.kind == HOOP_TOPO_GPU)
            continue;
        const enum hoop_status status = count_link(topo, gpu, other, rate, source);
        if (status != HOOP_OK)
            return status;
    }
    return HOOP_OK;
}

/* ---- access ---- */

/* NVML numbers ways as we do, reasons from 0 (OK) to 5. */
static enum hoop_topo_peer ask_access(const struct nvml *nvml, void *device, void *other, int way)
{
    static const enum hoop_topo_peer peers[] = {HOOP_TOPO_PEER_OK,       HOOP_TOPO_PEER_CHIPSET,
                                                HOOP_TOPO_PEER_GPU,      HOOP_TOPO_PEER_TOPOLOGY,
                                                HOOP_TOPO_PEER_REGISTRY, HOOP_TOPO_PEER_UNSUPPORTED};
    int status = -1;

    if (nvml->access(device, other, way, &status) != 0 || status < 0 ||
        (size_t)status >= sizeof peers / sizeof peers[0])
        return HOOP_TOPO_PEER_UNKNOWN;
    return peers[status];
}

static enum hoop_status read_access(struct hoop_topo *topo, const struct nvml *nvml, int gpu, void *device, int nodes)
{
    enum hoop_status status = HOOP_OK;

    for (int i = 0; i < nodes && status == HOOP_OK; i++) {
        struct hoop_topo_access access = {.a = gpu, .b = i};
        void *other = i == gpu ? NULL : handle_of(topo, nvml, i);

        if (other == NULL)
            continue;
        for (int way = 0; way < HOOP_TOPO_PEER_WAYS; way++)
            access.way[way] = (uint8_t)ask_access(nvml, device, other, way);
        status = hoop_topo_add_access(topo, &access);
    }
    return status;
}

enum hoop_status hoop_topo_read_nvml(struct hoop_topo *topo, bool links, bool *told)
{
    enum hoop_status status = HOOP_OK;
    const int nodes = topo->nodes; /* switches come on */
    struct nvml nvml;

    if (!open_nvml(&nvml))
        return HOOP_OK;
    for (int i = 0; i < nodes && status == HOOP_OK; i++) {
        void *device = handle_of(topo, &nvml, i);

        if (device == NULL)
            continue;
        *told = true;
        if (links)
            status = read_links(topo, &nvml, i, device);
        if (status == HOOP_OK && nvml.access != NULL)
            status = read_access(topo, &nvml, i, device, nodes);
    }
    nvml.stop();
    dlclose(nvml.handle);
    return status;
}
