// SPDX-License-Identifier: BSD-3-Clause
/* XGMI links between AMD GPUs from what the kernel's KFD tells in /sys/class/kfd/kfd/topology: readable without any library of AMD's.
 *
 * A node with compute units is a GPU, known by its PCI location. Its io_links say to which node, of what type (11: XGMI), with what weight
 * and bandwidth in MB/s. About 15 of weight are one hop, and peers that are reached through another GPU have no bandwidth of their own: those
 * are no links. The most bandwidth is that of all links side by side, the least that of one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/sysfs.h"

#define NODES_FOLDER "class/kfd/kfd/topology/nodes"

enum { MOST_NODES = 256, MOST_LINKS = 256, XGMI = 11, ONE_HOP = 15, MOST_MB = 10000000 };

struct kfd {
    struct hoop_sysfs *sysfs;
    struct hoop_topo *topo;
    int gpu[MOST_NODES]; /* node of the graph by KFD's number; -1: none */
    char folder[HOOP_SYSFS_PATH];
};

/* The number behind a key in lines "key value"; -1: it is not there, or no such number. */
static long value_of(const char *text, const char *key)
{
    const size_t length = strlen(key);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ' && line[length + 1] >= '0' &&
            line[length + 1] <= '9')
            return strtol(line + length, NULL, 10);
    }
    return -1;
}

static enum hoop_status read_gpu(void *user, const char *name)
{
    struct kfd *kfd = user;
    char folder[HOOP_SYSFS_PATH], *end;
    const long number = strtol(name, &end, 10);

    if (*end != '\0' || number < 0 || number >= MOST_NODES)
        return HOOP_OK;
    snprintf(folder, sizeof folder, NODES_FOLDER "/%ld", number);
    if (hoop_sysfs_read_in(kfd->sysfs, folder, "properties") < 0 || value_of(kfd->sysfs->text, "simd_count") <= 0)
        return HOOP_OK;
    const long place = value_of(kfd->sysfs->text, "location_id"), domain = value_of(kfd->sysfs->text, "domain");
    if (place < 0 || place > 0xffff || domain > INT32_MAX)
        return HOOP_OK;
    const struct hoop_topo_bus bus = {true, domain < 0 ? 0 : (uint32_t)domain, (uint8_t)(place >> 8),
                                      (uint8_t)(place >> 3 & 0x1f), (uint8_t)(place & 7)};
    const int node = hoop_topo_at_bus(kfd->topo, &bus);
    kfd->gpu[number] = node >= 0 && kfd->topo->place[node].node.kind == HOOP_TOPO_GPU ? node : -1;
    return HOOP_OK;
}

static bool joined(const struct hoop_topo *topo, int a, int b)
{
    for (int i = 0; i < topo->links; i++)
        if (topo->link[i].kind == HOOP_TOPO_LINK_XGMI &&
            ((topo->link[i].a == a && topo->link[i].b == b) || (topo->link[i].a == b && topo->link[i].b == a)))
            return true;
    return false;
}

static int gpu_of(const struct kfd *kfd, long number)
{
    return number >= 0 && number < MOST_NODES ? kfd->gpu[number] : -1;
}

static enum hoop_status read_link(void *user, const char *name)
{
    struct kfd *kfd = user;
    char folder[2 * HOOP_SYSFS_PATH];

    if (snprintf(folder, sizeof folder, "%s/%.64s", kfd->folder, name) >= HOOP_SYSFS_PATH ||
        hoop_sysfs_read_in(kfd->sysfs, folder, "properties") < 0)
        return HOOP_OK;
    const char *text = kfd->sysfs->text;
    const long weight = value_of(text, "weight"), most = value_of(text, "max_bandwidth"),
               one = value_of(text, "min_bandwidth");
    const int from = gpu_of(kfd, value_of(text, "node_from")), to = gpu_of(kfd, value_of(text, "node_to"));
    if (value_of(text, "type") != XGMI || from < 0 || to < 0 || from == to || joined(kfd->topo, from, to) ||
        weight > ONE_HOP || most == 0 || most > MOST_MB)
        return HOOP_OK;
    struct hoop_topo_link link = {.kind = HOOP_TOPO_LINK_XGMI, .a = from, .b = to, .source = HOOP_TOPO_SYSFS};
    if (most > 0)
        link.gigabytes_per_second = (struct hoop_topo_fact){(double)most / 1000, HOOP_TOPO_SYSFS};
    if (one > 0 && most >= one && most % one == 0 && most / one <= 64)
        link.count = (struct hoop_topo_fact){(double)(most / one), HOOP_TOPO_SYSFS};
    return hoop_topo_join(kfd->topo, &link);
}

enum hoop_status hoop_sysfs_read_kfd(struct hoop_sysfs *sysfs, struct hoop_topo *topo)
{
    struct kfd *kfd = hoop_calloc(1, sizeof *kfd);

    if (kfd == NULL)
        return HOOP_ERR_MEMORY;
    kfd->sysfs = sysfs;
    kfd->topo = topo;
    for (int i = 0; i < MOST_NODES; i++)
        kfd->gpu[i] = -1;
    enum hoop_status status = hoop_sysfs_list(sysfs, NODES_FOLDER, MOST_NODES, read_gpu, kfd);
    for (int i = 0; i < MOST_NODES && status == HOOP_OK; i++) {
        if (kfd->gpu[i] < 0)
            continue;
        snprintf(kfd->folder, sizeof kfd->folder, NODES_FOLDER "/%d/io_links", i);
        status = hoop_sysfs_list(sysfs, kfd->folder, MOST_LINKS, read_link, kfd);
    }
    hoop_free(kfd);
    return status;
}
