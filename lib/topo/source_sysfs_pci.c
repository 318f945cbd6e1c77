// SPDX-License-Identifier: BSD-3-Clause
/* PCI functions as the kernel tells them in /sys: where each hangs, what it is, what its link can do and what it does now.
 *
 * The path of a function names all bridges above it: devices/pci0000:00/0000:00:01.0/0000:01:00.0. hwloc tells of a link only what
 * runs now, which power saving changes; here is what both ends can do. hwloc as distributions build it also drops PCI domains
 * of more than 16 bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/sysfs.h"

enum { MOST_FUNCTIONS = 16384, MOST_NAMES = 64, CLASS_PCI_BRIDGE = 0x0604 };
enum { CAPABILITY_ACS = 0x000d, EXTENDED = 0x100, CONFIG_BYTES = 4096 };
enum { ACS_REQUEST_REDIRECT = 0x04, ACS_COMPLETION_REDIRECT = 0x08, ACS_EGRESS_CONTROL = 0x20 };

struct function {
    char path[HOOP_SYSFS_PATH]; /* from the root of /sys */
    struct hoop_topo_bus bus;
    int above; /* function that is the bridge above; -1: it hangs on a host bridge */
    int depth;
    bool wanted;
    int node;
    struct hoop_topo_node about; /* kind, identity, names */
    char names[256];
};

struct scan {
    struct hoop_sysfs *sysfs;
    struct hoop_topo *topo;
    bool merge;
    struct function *function;
    int functions, room;
    char *names; /* of the function whose folder is listed */
    bool verbs;
};

static struct hoop_topo_fact fact(double value)
{
    return value > 0 ? (struct hoop_topo_fact){value, HOOP_TOPO_SYSFS} : (struct hoop_topo_fact){0, HOOP_TOPO_UNKNOWN};
}

/* ---- what is there ---- */

static enum hoop_status add_function(void *user, const char *name)
{
    struct scan *scan = user;
    char link[HOOP_SYSFS_PATH];
    struct hoop_topo_bus bus;

    snprintf(link, sizeof link, "bus/pci/devices/%.64s", name);
    if (!hoop_topo_parse_bus(name, &bus))
        return HOOP_OK;
    if (scan->functions == scan->room) {
        const int room = scan->room > 0 ? scan->room * 2 : 64;
        struct function *bigger = hoop_realloc(scan->function, (size_t)room, sizeof *bigger);
        if (bigger == NULL)
            return HOOP_ERR_MEMORY;
        scan->function = bigger;
        scan->room = room;
    }
    struct function *function = &scan->function[scan->functions];
    *function = (struct function){.bus = bus, .above = -1, .node = -1};
    if (!hoop_sysfs_link(scan->sysfs, link, function->path, sizeof function->path) ||
        strncmp(function->path, "devices/", 8) != 0)
        return HOOP_OK;
    for (const char *at = function->path; (at = strchr(at, '/')) != NULL; at++)
        function->depth++;
    scan->functions++;
    return HOOP_OK;
}

static int compare_functions(const void *first, const void *second)
{
    const struct function *a = first, *b = second;

    return a->depth != b->depth ? a->depth - b->depth : strcmp(a->path, b->path);
}

static int compare_paths(const void *path, const void *function)
{
    return strcmp(path, ((const struct function *)function)->path);
}

/* The function whose path is the folder that this one's lies in: one less deep, where they are sorted by path. */
static int find_above(const struct scan *scan, const struct function *function)
{
    char path[HOOP_SYSFS_PATH];
    int first = 0, end;

    snprintf(path, sizeof path, "%.*s", (int)(strrchr(function->path, '/') - function->path), function->path);
    while (first < scan->functions && scan->function[first].depth < function->depth - 1)
        first++;
    for (end = first; end < scan->functions && scan->function[end].depth == function->depth - 1; end++) {
    }
    const struct function *found =
        bsearch(path, scan->function + first, (size_t)(end - first), sizeof *found, compare_paths);
    return found == NULL ? -1 : (int)(found - scan->function);
}

static uint16_t id_of(struct scan *scan, const struct function *function, const char *file, int shift)
{
    char *end;

    if (hoop_sysfs_read_in(scan->sysfs, function->path, file) <= 0)
        return 0;
    const unsigned long value = strtoul(scan->sysfs->text, &end, 16);
    return (uint16_t)(*end == '\0' ? value >> shift : 0);
}

static enum hoop_status add_name(void *user, const char *name)
{
    struct scan *scan = user;
    const size_t used = strlen(scan->names);

    if (used + strlen(name) + 2 < sizeof scan->function[0].names)
        snprintf(scan->names + used, sizeof scan->function[0].names - used, "%s%s", used > 0 ? "," : "", name);
    return HOOP_OK;
}

/* Verbs devices first, then interfaces: the folders of the function have their names. */
static enum hoop_status read_names(struct scan *scan, struct function *function)
{
    char folder[HOOP_SYSFS_PATH + 16];

    scan->names = function->names;
    snprintf(folder, sizeof folder, "%s/infiniband", function->path);
    enum hoop_status status = hoop_sysfs_list(scan->sysfs, folder, MOST_NAMES, add_name, scan);
    scan->verbs = function->names[0] != '\0';
    snprintf(folder, sizeof folder, "%s/net", function->path);
    return status == HOOP_OK ? hoop_sysfs_list(scan->sysfs, folder, MOST_NAMES, add_name, scan) : status;
}

/* Storage, display, processors: what people want to see beside GPUs and interfaces. */
static bool of_use(const struct function *function, bool merge)
{
    const int base = function->about.pci_class >> 8;

    if (function->about.kind == HOOP_TOPO_PCI_DEVICE)
        return !merge && (base == 0x01 || base == 0x03 || base == 0x0b || base == 0x12);
    return function->about.kind != HOOP_TOPO_PCI_BRIDGE;
}

static enum hoop_status identify(struct scan *scan, struct function *function)
{
    struct hoop_topo_node *about = &function->about;
    char link[HOOP_SYSFS_PATH + 16], to[HOOP_SYSFS_PATH];

    about->bus = function->bus;
    about->source = HOOP_TOPO_SYSFS;
    about->vendor = id_of(scan, function, "vendor", 0);
    about->device = id_of(scan, function, "device", 0);
    about->pci_class = id_of(scan, function, "class", 8);
    about->subsystem_vendor = id_of(scan, function, "subsystem_vendor", 0);
    about->subsystem_device = id_of(scan, function, "subsystem_device", 0);
    const enum hoop_status status = read_names(scan, function);
    const struct hoop_topo_identity identity = {
        .vendor = about->vendor, .device = about->device, .pci_class = about->pci_class, .verbs = scan->verbs};
    about->kind =
        about->pci_class == CLASS_PCI_BRIDGE ? HOOP_TOPO_PCI_BRIDGE : hoop_topo_classify(&identity, &about->rdma);
    snprintf(link, sizeof link, "%s/physfn", function->path);
    about->virtual_function = hoop_sysfs_link(scan->sysfs, link, to, sizeof to);
    function->wanted = of_use(function, scan->merge);
    return status;
}

/* ---- where it is ---- */

static int numa_node(const struct hoop_topo *topo, int number)
{
    for (int i = 0; i < topo->nodes; i++)
        if (topo->place[i].node.kind == HOOP_TOPO_NUMA && topo->place[i].node.number == number)
            return i;
    return -1;
}

static int numa_of(struct scan *scan, const struct function *function)
{
    char *end;

    if (hoop_sysfs_read_in(scan->sysfs, function->path, "numa_node") <= 0)
        return -1;
    const long number = strtol(scan->sysfs->text, &end, 10);
    return *end != '\0' || number < 0 || number > 65535 ? -1 : numa_node(scan->topo, (int)number);
}

/* The only NUMA node whose CPUs are those that the kernel calls local; -1: there is none such. */
static int numa_by_cpus(struct scan *scan, const struct function *function)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    int found = -1, nodes = 0;

    if (cpus != NULL && hoop_sysfs_read_in(scan->sysfs, function->path, "local_cpus") > 0 &&
        hoop_topo_parse_mask(scan->sysfs->text, cpus) && !hwloc_bitmap_iszero(cpus))
        for (int i = 0; i < scan->topo->nodes; i++)
            if (scan->topo->place[i].node.kind == HOOP_TOPO_NUMA &&
                hwloc_bitmap_intersects(scan->topo->place[i].cpus, cpus)) {
                found = i;
                nodes++;
            }
    hwloc_bitmap_free(cpus);
    return nodes == 1 ? found : -1;
}

/* Nearest NUMA node of a function; -1: nobody told. Firmware may say it of a bridge above only. */
static int home_of(struct scan *scan, const struct function *function)
{
    for (const struct function *at = function; at != NULL; at = at->above < 0 ? NULL : &scan->function[at->above]) {
        int numa = numa_of(scan, at);
        if (numa < 0)
            numa = numa_by_cpus(scan, at);
        if (numa >= 0)
            return numa;
    }
    return -1;
}

static bool host_bridge_of(const struct function *function, struct hoop_topo_bus *bus)
{
    const char *slash = strrchr(function->path, '/');
    char text[64];

    while (slash > function->path && slash[-1] != '/')
        slash--;
    snprintf(text, sizeof text, "%.*s:00.0", (int)strcspn(slash + 3, "/") % 32, slash + 3);
    return strncmp(slash, "pci", 3) == 0 && hoop_topo_parse_bus(text, bus);
}

static enum hoop_status join(struct scan *scan, enum hoop_topo_link_kind kind, int parent, int node)
{
    const struct hoop_topo_link link = {.kind = kind, .a = parent, .b = node, .source = HOOP_TOPO_SYSFS};

    return hoop_topo_join(scan->topo, &link);
}

/* The host bridge that a function hangs on, made where it is missing; the machine where the path names none. */
static int host_bridge(struct scan *scan, const struct function *function, int numa)
{
    struct hoop_topo *topo = scan->topo;
    struct hoop_topo_node node = {.kind = HOOP_TOPO_HOST_BRIDGE, .source = HOOP_TOPO_SYSFS};

    if (!host_bridge_of(function, &node.bus))
        return 0;
    for (int i = 0; i < topo->nodes; i++)
        if (topo->place[i].node.kind == HOOP_TOPO_HOST_BRIDGE && topo->place[i].node.bus.domain == node.bus.domain &&
            topo->place[i].node.bus.bus == node.bus.bus)
            return i;
    node.parent = numa < 0 ? 0 : numa;
    const int added =
        hoop_topo_add(topo, &node, topo->place[node.parent].cpus, numa < 0 ? NULL : topo->place[numa].numas);
    return added < 0 || join(scan, HOOP_TOPO_LINK_HOST, node.parent, added) != HOOP_OK ? -1 : added;
}

static enum hoop_status place(struct scan *scan, struct function *function)
{
    struct hoop_topo *topo = scan->topo;
    const int numa = home_of(scan, function);
    char name[64];

    function->node = hoop_topo_at_bus_any(topo, &function->bus);
    if (function->node >= 0)
        return HOOP_OK;
    struct hoop_topo_node node = function->about;
    node.parent = function->above >= 0 ? scan->function[function->above].node : host_bridge(scan, function, numa);
    if (node.parent < 0)
        return HOOP_ERR_MEMORY;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(function->names, ",") % 64, function->names);
    node.name = name;
    node.names = function->names;
    function->node =
        hoop_topo_add(topo, &node, topo->place[numa < 0 ? 0 : numa].cpus, numa < 0 ? NULL : topo->place[numa].numas);
    if (function->node < 0)
        return HOOP_ERR_MEMORY;
    topo->place[function->node].adrift = numa < 0;
    return join(scan, HOOP_TOPO_LINK_PCI, node.parent, function->node);
}

/* ---- what is known of it ---- */

static void read_link(struct scan *scan, const struct function *function, const char *which, double *width,
                      double *transfers)
{
    char file[32], *end;

    *width = *transfers = 0;
    snprintf(file, sizeof file, "%s_link_width", which);
    if (hoop_sysfs_read_in(scan->sysfs, function->path, file) > 0) {
        const long lanes = strtol(scan->sysfs->text, &end, 10);
        *width = *end == '\0' && lanes > 0 && lanes <= 64 ? (double)lanes : 0;
    }
    snprintf(file, sizeof file, "%s_link_speed", which);
    if (hoop_sysfs_read_in(scan->sysfs, function->path, file) > 0 &&
        !hoop_topo_parse_transfers(scan->sysfs->text, transfers))
        *transfers = 0;
}

/* What both ends of a link can do: the lesser where the port above tells, too. */
static double both(double mine, double above)
{
    return mine > 0 && above > 0 && above < mine ? above : mine;
}

/* Ports that face down (root ports, downstream ports of switches) and up take turns on the way from the CPUs. A port's figures are of
 * the link that it faces; what is between the ports of one switch is no link. */
static bool faces_down(const struct scan *scan, const struct function *function)
{
    bool down = true;

    for (int above = function->above; above >= 0; above = scan->function[above].above)
        down = !down;
    return down;
}

static void read_speed(struct scan *scan, const struct function *function)
{
    double width, transfers, width_above = 0, transfers_above = 0, now_width, now_transfers;

    if (function->about.kind == HOOP_TOPO_PCI_BRIDGE && faces_down(scan, function))
        return;
    read_link(scan, function, "max", &width, &transfers);
    read_link(scan, function, "current", &now_width, &now_transfers);
    if (function->above >= 0 && faces_down(scan, &scan->function[function->above]))
        read_link(scan, &scan->function[function->above], "max", &width_above, &transfers_above);
    for (int i = 0; i < scan->topo->links; i++) {
        struct hoop_topo_link *link = &scan->topo->link[i];

        if (link->kind != HOOP_TOPO_LINK_PCI || link->b != function->node)
            continue;
        link->now_width = fact(now_width);
        link->now_gigatransfers = fact(now_transfers);
        link->device_width = fact(width);
        link->device_gigatransfers = fact(transfers);
        width = both(width, width_above);
        transfers = both(transfers, transfers_above);
        if (width <= 0 || transfers <= 0)
            return;
        link->current = false;
        link->width = fact(width);
        link->gigatransfers = fact(transfers);
        link->gigabytes_per_second = fact(width * hoop_topo_pci_lane(transfers));
        return;
    }
}

int hoop_sysfs_acs(const unsigned char *config, size_t bytes)
{
    size_t at = EXTENDED;

    for (int hops = 0; hops < 64 && at >= EXTENDED && at + 8 <= bytes; hops++) {
        const unsigned id = config[at] | (unsigned)config[at + 1] << 8;

        if (id == CAPABILITY_ACS)
            return (config[at + 6] | config[at + 7] << 8) &
                   (ACS_REQUEST_REDIRECT | ACS_COMPLETION_REDIRECT | ACS_EGRESS_CONTROL);
        at = (size_t)(config[at + 2] >> 4 | config[at + 3] << 4) & ~(size_t)3;
    }
    return -1;
}

static void read_group(struct scan *scan, const struct function *function, struct hoop_topo_node *node)
{
    char link[HOOP_SYSFS_PATH + 16], to[HOOP_SYSFS_PATH], *end;

    snprintf(link, sizeof link, "%s/iommu_group", function->path);
    if (!hoop_sysfs_link(scan->sysfs, link, to, sizeof to))
        return;
    const char *last = strrchr(to, '/') == NULL ? to : strrchr(to, '/') + 1;
    const long group = strtol(last, &end, 10);
    if (*last != '\0' && *end == '\0' && group >= 0)
        node->iommu_group = (struct hoop_topo_fact){(double)group, HOOP_TOPO_SYSFS};
}

/* "100 Gb/sec (4X EDR)" of a verbs port, or Mbit/s of an interface. */
static void read_port(struct scan *scan, const struct function *function, struct hoop_topo_node *node)
{
    char file[HOOP_SYSFS_PATH + 128];
    const char *name = strrchr(node->names, ',') == NULL ? node->names : strrchr(node->names, ',') + 1;

    if (node->kind != HOOP_TOPO_NIC || node->name[0] == '\0')
        return;
    snprintf(file, sizeof file, "%s/infiniband/%.60s/ports/1/rate", function->path, node->name);
    if (hoop_sysfs_read(scan->sysfs, file) > 0 && strstr(scan->sysfs->text, " Gb/sec") != NULL)
        node->port_speed = fact((double)strtol(scan->sysfs->text, NULL, 10) / 8);
    snprintf(file, sizeof file, "%s/net/%.60s/speed", function->path, name);
    if (node->port_speed.source == HOOP_TOPO_UNKNOWN && hoop_sysfs_read(scan->sysfs, file) > 0)
        node->port_speed = fact((double)strtol(scan->sysfs->text, NULL, 10) / 8000);
}

static enum hoop_status read_facts(struct scan *scan, const struct function *function)
{
    struct hoop_topo_node *node = &scan->topo->place[function->node].node;

    node->virtual_function = function->about.virtual_function;
    read_speed(scan, function);
    read_group(scan, function, node);
    read_port(scan, function, node);
    const int bytes = hoop_sysfs_read_in(scan->sysfs, function->path, "config");
    const int redirect =
        bytes > EXTENDED ? hoop_sysfs_acs((const unsigned char *)scan->sysfs->text, (size_t)bytes) : -1;
    if (redirect >= 0)
        node->acs_redirect = (struct hoop_topo_fact){redirect, HOOP_TOPO_SYSFS};
    return node->kind == HOOP_TOPO_NIC && node->rdma
               ? hoop_sysfs_read_verbs(scan->sysfs, scan->topo, function->node, function->path)
               : HOOP_OK;
}

static enum hoop_status read_all(struct scan *scan)
{
    enum hoop_status status = hoop_sysfs_list(scan->sysfs, "bus/pci/devices", MOST_FUNCTIONS, add_function, scan);

    if (scan->functions > 0)
        qsort(scan->function, (size_t)scan->functions, sizeof *scan->function, compare_functions);
    for (int i = 0; i < scan->functions && status == HOOP_OK; i++) {
        scan->function[i].above = find_above(scan, &scan->function[i]);
        status = identify(scan, &scan->function[i]);
        scan->function[i].wanted |= scan->merge && hoop_topo_at_bus_any(scan->topo, &scan->function[i].bus) >= 0;
    }
    for (int i = scan->functions - 1; i >= 0; i--)
        if (scan->function[i].wanted && scan->function[i].above >= 0)
            scan->function[scan->function[i].above].wanted = true;
    for (int i = 0; i < scan->functions && status == HOOP_OK; i++)
        if (scan->function[i].wanted) {
            status = place(scan, &scan->function[i]);
            if (status == HOOP_OK)
                status = read_facts(scan, &scan->function[i]);
        }
    return status;
}

enum hoop_status hoop_sysfs_read_pci(struct hoop_sysfs *sysfs, struct hoop_topo *topo, bool merge)
{
    struct scan scan = {.sysfs = sysfs, .topo = topo, .merge = merge};
    const enum hoop_status status = read_all(&scan);

    hoop_free(scan.function);
    return status;
}
