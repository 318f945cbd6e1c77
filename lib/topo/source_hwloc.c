// SPDX-License-Identifier: BSD-3-Clause
/* The source hwloc: the machine that runs, a machine that hwloc recorded as XML, or one described in its words.
 *
 * First the CPU side (packages, NUMA nodes, cores), then everything below it that is I/O. A device hangs where hwloc
 * puts it: its sets of CPUs and NUMA nodes are those of the nearest object above that is not I/O; its host bridge's
 * parent in our tree is the one NUMA node of that set, else the package, else the machine. hwloc's userdata of an
 * object holds the number of its node here, plus one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/source_hwloc.h"

struct reader {
    hwloc_topology_t hwloc;
    struct hoop_topo *topo;
    enum hoop_topo_source source;
    bool drivers;
};

static int node_of(hwloc_obj_t object)
{
    return (int)(intptr_t)object->userdata - 1;
}

static void set_node(hwloc_obj_t object, int node)
{
    object->userdata = (void *)(intptr_t)(node + 1);
}

static struct hoop_topo_fact fact(const struct reader *reader, double value)
{
    return value > 0 ? (struct hoop_topo_fact){value, reader->source} : (struct hoop_topo_fact){0, HOOP_TOPO_UNKNOWN};
}

static const char *info_of(hwloc_obj_t object, const char *name)
{
    const char *value = hwloc_obj_get_info_by_name(object, name);

    return value == NULL ? "" : value;
}

static enum hoop_status link_to_parent(struct reader *reader, int node, enum hoop_topo_link_kind kind, double speed)
{
    const int parent = reader->topo->place[node].node.parent;
    const struct hoop_topo_link link = {.kind = kind,
                                        .a = parent,
                                        .b = node,
                                        .source = reader->source,
                                        .current = speed > 0,
                                        .gigabytes_per_second = fact(reader, speed)};

    return parent < 0 ? HOOP_OK : hoop_topo_join(reader->topo, &link);
}

/* ---- CPU side ---- */

/* The nearest node above an object that has one. Walks the objects that are not I/O. */
static int node_above(hwloc_obj_t object)
{
    for (object = object->parent; object != NULL; object = object->parent)
        if (node_of(object) >= 0)
            return node_of(object);
    return 0;
}

/* 0 where the text is no number. */
static int number_of(const char *text)
{
    char *end;
    const long value = strtol(text, &end, 10);

    return *end == '\0' && value > 0 && value < 65536 ? (int)value : 0;
}

/* A NUMA node's CPU is that of the package around it. */
static struct hoop_topo_cpu cpu_of(const struct reader *reader, hwloc_obj_t object, enum hoop_topo_kind kind)
{
    struct hoop_topo_cpu cpu = {.arch = info_of(hwloc_get_root_obj(reader->hwloc), "Architecture")};

    if (kind == HOOP_TOPO_MACHINE)
        return cpu;
    while (object != NULL && object->type != HWLOC_OBJ_PACKAGE)
        object = object->parent;
    if (object == NULL)
        return cpu;
    cpu.vendor = info_of(object, "CPUVendor");
    cpu.family = number_of(info_of(object, "CPUFamilyNumber"));
    cpu.model = number_of(info_of(object, "CPUModelNumber"));
    return cpu;
}

static enum hoop_status add_cpu_object(struct reader *reader, hwloc_obj_t object, enum hoop_topo_kind kind)
{
    const bool numa = kind == HOOP_TOPO_NUMA;
    const struct hoop_topo_node node = {
        .kind = kind,
        .number = kind == HOOP_TOPO_MACHINE                 ? 0
                  : object->os_index == HWLOC_UNKNOWN_INDEX ? (int)object->logical_index
                                                            : (int)object->os_index,
        .parent = kind == HOOP_TOPO_MACHINE ? -1 : node_above(object),
        .source = reader->source,
        .model = kind == HOOP_TOPO_PACKAGE ? info_of(object, "CPUModel") : "",
        .cpu = cpu_of(reader, object, kind),
        .memory = kind == HOOP_TOPO_PACKAGE
                      ? fact(reader, 0)
                      : fact(reader, (double)(numa ? object->attr->numanode.local_memory : object->total_memory)),
    };
    const int added = hoop_topo_add(reader->topo, &node, object->cpuset, object->nodeset);

    if (added < 0)
        return HOOP_ERR_MEMORY;
    set_node(object, added);
    return link_to_parent(reader, added, numa ? HOOP_TOPO_LINK_MEMORY : HOOP_TOPO_LINK_SOCKET, 0);
}

static enum hoop_status add_all(struct reader *reader, hwloc_obj_type_t type, enum hoop_topo_kind kind)
{
    enum hoop_status status = HOOP_OK;

    for (hwloc_obj_t object = NULL;
         status == HOOP_OK && (object = hwloc_get_next_obj_by_type(reader->hwloc, type, object)) != NULL;)
        status = add_cpu_object(reader, object, kind);
    return status;
}

/* Cores; where the source lists hardware threads only, each counts as a core. */
static enum hoop_status add_cores(struct reader *reader)
{
    const hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(reader->hwloc, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    enum hoop_status status = HOOP_OK;

    for (hwloc_obj_t object = NULL;
         status == HOOP_OK && (object = hwloc_get_next_obj_by_type(reader->hwloc, type, object)) != NULL;)
        status = hoop_topo_add_core(reader->topo, object->cpuset);
    return status;
}

static enum hoop_status read_cpus(struct reader *reader)
{
    enum hoop_status status = add_cpu_object(reader, hwloc_get_root_obj(reader->hwloc), HOOP_TOPO_MACHINE);

    if (status == HOOP_OK)
        status = add_all(reader, HWLOC_OBJ_PACKAGE, HOOP_TOPO_PACKAGE);
    if (status == HOOP_OK)
        status = hoop_hwloc_noted(reader->hwloc, "memory-made-up")
                     ? HOOP_OK
                     : add_all(reader, HWLOC_OBJ_NUMANODE, HOOP_TOPO_NUMA);
    if (status == HOOP_OK && !hoop_hwloc_noted(reader->hwloc, "no-cores"))
        status = add_cores(reader);
    return status;
}

/* ---- I/O side ---- */

/* Where the I/O below a normal object hangs in our tree. Nodes that are memory only do not count. */
static int home_of(struct reader *reader, hwloc_obj_t object)
{
    hwloc_obj_t numa = NULL, only = NULL;
    int near = 0;

    while ((numa = hwloc_get_next_obj_by_type(reader->hwloc, HWLOC_OBJ_NUMANODE, numa)) != NULL)
        if (!hwloc_bitmap_iszero(numa->cpuset) && hwloc_bitmap_isset(object->nodeset, numa->os_index)) {
            only = numa;
            near++;
        }
    if (near == 1 && node_of(only) >= 0)
        return node_of(only);
    return node_of(object) >= 0 ? node_of(object) : node_above(object);
}

enum device_use { USE_VERBS, USE_NETWORK, USE_OTHER };

static enum device_use use_of(hwloc_obj_t os_device)
{
#if HWLOC_API_VERSION >= 0x00030000
    const unsigned long types = os_device->attr->osdev.types;

    return types & HWLOC_OBJ_OSDEV_OPENFABRICS ? USE_VERBS : types & HWLOC_OBJ_OSDEV_NETWORK ? USE_NETWORK : USE_OTHER;
#else
    const hwloc_obj_osdev_type_t type = os_device->attr->osdev.type;

    return type == HWLOC_OBJ_OSDEV_OPENFABRICS ? USE_VERBS : type == HWLOC_OBJ_OSDEV_NETWORK ? USE_NETWORK : USE_OTHER;
#endif
}

/* The names that the system has for one PCI function, best first. */
struct device_names {
    const char *name[32];
    int rank[32], count;
    bool verbs;
    const char *model;
    char text[256];
};

/* Lower is better: the name that people use for the device. */
static int name_rank(hwloc_obj_t os_device)
{
    static const char *const prefixes[] = {"nvml", "rsmi", "cuda", "ze", "opencl"};
    const enum device_use use = use_of(os_device);

    if (use != USE_OTHER)
        return use == USE_VERBS ? 0 : 1;
    for (int i = 0; i < (int)(sizeof(prefixes) / sizeof(prefixes[0])); i++)
        if (strncmp(os_device->name, prefixes[i], strlen(prefixes[i])) == 0)
            return 2 + i;
    return 100;
}

static void add_name(struct device_names *names, hwloc_obj_t os_device)
{
    const int rank = name_rank(os_device);
    int at = names->count;

    names->verbs |= use_of(os_device) == USE_VERBS;
    if (names->model == NULL)
        names->model = hwloc_obj_get_info_by_name(os_device, "GPUModel");
    if (at == (int)(sizeof(names->name) / sizeof(names->name[0])))
        return;
    for (;
         at > 0 && (rank < names->rank[at - 1] ||
                    (rank == names->rank[at - 1] && hoop_topo_compare_names(os_device->name, names->name[at - 1]) < 0));
         at--) {
        names->name[at] = names->name[at - 1];
        names->rank[at] = names->rank[at - 1];
    }
    names->name[at] = os_device->name;
    names->rank[at] = rank;
    names->count++;
}

static void collect_names(struct device_names *names, hwloc_obj_t device)
{
    size_t used = 0;

    for (hwloc_obj_t child = device->io_first_child; child != NULL; child = child->next_sibling)
        if (child->type == HWLOC_OBJ_OS_DEVICE && child->name != NULL)
            add_name(names, child);
    for (int i = 0; i < names->count && used < sizeof(names->text); i++)
        used +=
            (size_t)snprintf(names->text + used, sizeof(names->text) - used, "%s%s", i > 0 ? "," : "", names->name[i]);
}

static enum hoop_status add_io(struct reader *reader, hwloc_obj_t object, const struct hoop_topo_node *node,
                               enum hoop_topo_link_kind kind, double speed)
{
    hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(reader->hwloc, object);
    const int added = hoop_topo_add(reader->topo, node, place->cpuset, place->nodeset);

    if (added < 0)
        return HOOP_ERR_MEMORY;
    set_node(object, added);
    return link_to_parent(reader, added, kind, speed);
}

static struct hoop_topo_bus bus_of(const struct hwloc_pcidev_attr_s *pci)
{
    return (struct hoop_topo_bus){.known = true,
                                  .domain = pci->domain,
                                  .bus = (uint8_t)pci->bus,
                                  .device = (uint8_t)pci->dev,
                                  .function = (uint8_t)pci->func};
}

static enum hoop_status add_device(struct reader *reader, hwloc_obj_t object, int parent)
{
    const struct hwloc_pcidev_attr_s *pci = &object->attr->pcidev;
    struct device_names names = {0};
    struct hoop_topo_node node = {.parent = parent,
                                  .source = reader->source,
                                  .bus = bus_of(pci),
                                  .vendor = pci->vendor_id,
                                  .device = pci->device_id,
                                  .pci_class = pci->class_id,
                                  .subsystem_vendor = pci->subvendor_id,
                                  .subsystem_device = pci->subdevice_id};

    collect_names(&names, object);
    const struct hoop_topo_identity identity = {.vendor = pci->vendor_id,
                                                .device = pci->device_id,
                                                .pci_class = pci->class_id,
                                                .verbs = names.verbs,
                                                .fabric_switch = object->subtype != NULL &&
                                                                 strcmp(object->subtype, "NVSwitch") == 0};
    node.kind = hoop_topo_classify(&identity, &node.rdma);
    node.name = names.count > 0 ? names.name[0] : "";
    node.names = names.text;
    node.model = names.model != NULL ? names.model : info_of(object, "PCIDevice");
    return add_io(reader, object, &node, HOOP_TOPO_LINK_PCI, (double)pci->linkspeed);
}

static enum hoop_status add_bridge(struct reader *reader, hwloc_obj_t object, int parent)
{
    const struct hwloc_bridge_attr_s *bridge = &object->attr->bridge;
    struct hoop_topo_node node = {.kind = HOOP_TOPO_HOST_BRIDGE, .parent = parent, .source = reader->source};

    if (bridge->upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
        node.bus = (struct hoop_topo_bus){.known = true,
                                          .domain = bridge->downstream.pci.domain,
                                          .bus = (uint8_t)bridge->downstream.pci.secondary_bus};
        return add_io(reader, object, &node, HOOP_TOPO_LINK_HOST, 0);
    }
    node.kind = HOOP_TOPO_PCI_BRIDGE;
    node.bus = bus_of(&bridge->upstream.pci);
    node.vendor = bridge->upstream.pci.vendor_id;
    node.device = bridge->upstream.pci.device_id;
    node.pci_class = bridge->upstream.pci.class_id;
    node.subsystem_vendor = bridge->upstream.pci.subvendor_id;
    node.subsystem_device = bridge->upstream.pci.subdevice_id;
    node.model = info_of(object, "PCIDevice");
    return add_io(reader, object, &node, HOOP_TOPO_LINK_PCI, (double)bridge->upstream.pci.linkspeed);
}

/* An interface that is no PCI device (of a virtual machine without PCI), or what a note of ours says that it is. */
static enum hoop_status add_bare_interface(struct reader *reader, hwloc_obj_t object, int parent)
{
    const struct hoop_topo_node node = {.kind = HOOP_TOPO_NIC,
                                        .parent = parent,
                                        .source = reader->source,
                                        .rdma = use_of(object) == USE_VERBS,
                                        .name = object->name,
                                        .names = object->name};

    if (object->name == NULL || (use_of(object) == USE_OTHER && *info_of(object, "hoop.kind") == '\0'))
        return HOOP_OK;
    return add_io(reader, object, &node, HOOP_TOPO_LINK_HOST, 0);
}

static enum hoop_status read_io(struct reader *reader, hwloc_obj_t above, int parent)
{
    for (hwloc_obj_t object = above->io_first_child; object != NULL; object = object->next_sibling) {
        enum hoop_status status = HOOP_OK;

        if (object->type == HWLOC_OBJ_BRIDGE)
            status = add_bridge(reader, object, parent);
        else if (object->type == HWLOC_OBJ_PCI_DEVICE)
            status = add_device(reader, object, parent);
        else if (object->type == HWLOC_OBJ_OS_DEVICE && above->type != HWLOC_OBJ_PCI_DEVICE)
            status = add_bare_interface(reader, object, parent);
        if (status == HOOP_OK && node_of(object) >= 0)
            status = read_io(reader, object, node_of(object));
        if (status != HOOP_OK)
            return status;
    }
    return HOOP_OK;
}

/* The I/O below an object that is not I/O, and below those under it. */
static enum hoop_status read_io_below(struct reader *reader, hwloc_obj_t object)
{
    enum hoop_status status = HOOP_OK;

    if (object->io_first_child != NULL)
        status = read_io(reader, object, home_of(reader, object));
    for (hwloc_obj_t child = object->first_child; status == HOOP_OK && child != NULL; child = child->next_sibling)
        status = read_io_below(reader, child);
    for (hwloc_obj_t child = object->memory_first_child; status == HOOP_OK && child != NULL;
         child = child->next_sibling)
        status = read_io_below(reader, child);
    return status;
}

/* NUMA nodes that are the memory of a GPU name it. */
static void find_gpu_memory(struct reader *reader)
{
    hwloc_obj_t numa = NULL;

    while ((numa = hwloc_get_next_obj_by_type(reader->hwloc, HWLOC_OBJ_NUMANODE, numa)) != NULL) {
        struct hoop_topo_bus bus;

        if (!hoop_topo_parse_bus(info_of(numa, "PCIBusID"), &bus))
            continue;
        const int gpu = hoop_topo_at_bus(reader->topo, &bus);
        if (gpu >= 0 && reader->topo->place[gpu].node.kind == HOOP_TOPO_GPU)
            reader->topo->place[gpu].node.memory_numa = (struct hoop_topo_fact){numa->os_index, reader->source};
    }
}

/* CPUs that this process may use; of a recorded machine those that its recorder was allowed. */
static enum hoop_status read_allowed(struct reader *reader)
{
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();

    if (bound == NULL ||
        hwloc_bitmap_copy(reader->topo->allowed, hwloc_topology_get_allowed_cpuset(reader->hwloc)) != 0) {
        hwloc_bitmap_free(bound);
        return hoop_fail(HOOP_ERR_MEMORY, "no memory for the set of CPUs");
    }
    if (reader->source == HOOP_TOPO_HWLOC && hwloc_topology_is_thissystem(reader->hwloc) != 0 &&
        hwloc_get_cpubind(reader->hwloc, bound, HWLOC_CPUBIND_PROCESS) == 0 && !hwloc_bitmap_iszero(bound))
        hwloc_bitmap_and(reader->topo->allowed, reader->topo->allowed, bound);
    hwloc_bitmap_free(bound);
    return HOOP_OK;
}

static void write_origin(struct reader *reader, const char *name)
{
    const unsigned version = hwloc_get_api_version();
    char *text = reader->topo->origin;
    const size_t size = sizeof(reader->topo->origin);

    if (reader->source == HOOP_TOPO_HWLOC && hwloc_topology_is_thissystem(reader->hwloc) == 0)
        name = "not this machine, but what the HWLOC_ variables name";
    snprintf(text, size, "%s, read by hwloc (API %u.%u)", name, version >> 16, version >> 8 & 0xff);
}

static enum hoop_status read_all(struct reader *reader, const char *name)
{
    enum hoop_status status = read_cpus(reader);

    if (status == HOOP_OK)
        status = read_io_below(reader, hwloc_get_root_obj(reader->hwloc));
    if (status == HOOP_OK)
        status = read_allowed(reader);
    if (status == HOOP_OK)
        status = hoop_hwloc_noted(reader->hwloc, "1")
                     ? hoop_hwloc_take_notes(reader->topo, reader->hwloc)
                     : hoop_topo_read_nvlinks(reader->topo, reader->hwloc, reader->source);
    if (status != HOOP_OK)
        return status;
    if (reader->drivers && hwloc_topology_is_thissystem(reader->hwloc) != 0)
        status = hoop_topo_add_sysfs(reader->topo);
    if (status != HOOP_OK)
        return status;
    find_gpu_memory(reader);
    write_origin(reader, name);
#ifdef HOOP_CUDA
    if (reader->drivers)
        status = hoop_topo_read_devices(reader->topo);
#endif
    return status == HOOP_OK ? hoop_topo_seal(reader->topo) : status;
}

/* ---- opening ---- */

/* The parts of hwloc that start a driver or a display connection are left out: slow, and not a library's to do. PCI is
 * read from /sys, not through libpciaccess, which wants more rights and leaks. */
static void leave_out_drivers(hwloc_topology_t hwloc)
{
    static const char *const parts[] = {"opencl", "gl", "cuda", "pci"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, parts[i]);
}

static enum hoop_status set_source(hwloc_topology_t hwloc, enum hoop_topo_source source, const char *text, int size,
                                   const char *name)
{
    if (source == HOOP_TOPO_HWLOC_XML && hwloc_topology_set_xmlbuffer(hwloc, text, size) != 0)
        return hoop_fail(HOOP_ERR_ARG, "%s: hwloc cannot read this XML", name);
    if (source == HOOP_TOPO_SYNTHETIC && hwloc_topology_set_synthetic(hwloc, text) != 0)
        return hoop_fail(HOOP_ERR_ARG,
                         "%s: not a description that hwloc understands; one is synthetic:pack:2 core:4 pu:2", name);
    return HOOP_OK;
}

static enum hoop_status open_hwloc(hwloc_topology_t hwloc, enum hoop_topo_source source, const char *text, int size,
                                   const char *name)
{
    hwloc_topology_set_flags(hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    const bool ours = source == HOOP_TOPO_HWLOC_XML && strstr(text, "\"hoop.form\"") != NULL;
    hwloc_topology_set_io_types_filter(hwloc, ours ? HWLOC_TYPE_FILTER_KEEP_ALL : HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    leave_out_drivers(hwloc);
    enum hoop_status status = set_source(hwloc, source, text, size, name);
    if (status != HOOP_OK)
        return status;
    if (hwloc_topology_load(hwloc) == 0)
        return HOOP_OK;
    if (source == HOOP_TOPO_HWLOC)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "hwloc cannot read this machine; lstopo tells more");
    return hoop_fail(HOOP_ERR_ARG, "%s: hwloc refuses the content; lstopo -i tells more", name);
}

enum hoop_status hoop_topo_read_hwloc(struct hoop_topo **topo, enum hoop_topo_source source, const char *text, int size,
                                      const char *name, bool drivers)
{
    struct reader reader = {.source = source, .drivers = drivers};
    enum hoop_status status;

    if (hwloc_topology_init(&reader.hwloc) != 0)
        return hoop_fail(HOOP_ERR_MEMORY, "no memory for hwloc");
    status = open_hwloc(reader.hwloc, source, text, size, name);
    if (status == HOOP_OK)
        status = hoop_topo_create(&reader.topo);
    if (status == HOOP_OK)
        status = read_all(&reader, name);
    hwloc_topology_destroy(reader.hwloc);
    if (status == HOOP_OK)
        *topo = reader.topo;
    else
        hoop_topo_free(reader.topo);
    return status;
}

enum hoop_status hoop_topo_detect(struct hoop_topo **topo)
{
    if (topo == NULL)
        return hoop_fail(HOOP_ERR_ARG, "topology: no place for the result");
    return hoop_topo_read_hwloc(topo, HOOP_TOPO_HWLOC, NULL, 0, "this machine", false);
}

enum hoop_status hoop_topo_detect_devices(struct hoop_topo **topo)
{
    if (topo == NULL)
        return hoop_fail(HOOP_ERR_ARG, "topology: no place for the result");
    return hoop_topo_read_hwloc(topo, HOOP_TOPO_HWLOC, NULL, 0, "this machine", true);
}
