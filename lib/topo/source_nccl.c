// SPDX-License-Identifier: BSD-3-Clause
/* The source NCCL: topology files that NCCL and RCCL read (NCCL_TOPO_FILE) and write (NCCL_TOPO_DUMP_FILE).
 *
 * <system> holds a <cpu> for each NUMA node, which holds the PCI tree as <pci> in <pci>: a switch is one of them, ports and host
 * bridges are left out. <gpu> and <nic><net> below a <pci> say what it is. Files of cloud providers are templates that NCCL
 * completes on the machine: they may leave out those, and the classes. What has children is a bridge then; what has neither
 * stays a PCI device of unknown kind. One pass: the graph is built as elements open, and a node's kind is corrected when its
 * children come.
 *
 * "dev" becomes the ordinal of GPUs and NICs. The links of GPUs are in source_nccl_links.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/nccl.h"
#include "topo/xml.h"

enum { MOST_DEPTH = 128, MOST_NODES = 65536, MOST_NUMA = 4095 };
enum { CLASS_PCI_BRIDGE = 0x0604, MOST_PORT_SPEED = 3200000 }; /* Mbit/s: four times the fastest port of today */

enum element { SYSTEM, CPU, PCI, GPU, NIC, NET, LEAF, IGNORED };

struct level {
    enum element element;
    int node;  /* that the element stands for, or below which it hangs */
    bool told; /* of a PCI function: a <gpu> or <net> has said what it is */
};

struct reader {
    struct hoop_topo *topo;
    const char *name;
    struct level level[MOST_DEPTH + 1];
    int depth;
    int listed, cpus;
    char host[64]; /* host_hash of the first CPU */
    long version;
    struct hoop_nccl_links links;
};

static struct hoop_topo_node *node_at(struct reader *reader, int i)
{
    return &reader->topo->place[i].node;
}

static struct hoop_topo_fact fact(double value)
{
    return value > 0 ? (struct hoop_topo_fact){value, HOOP_TOPO_NCCL_XML}
                     : (struct hoop_topo_fact){0, HOOP_TOPO_UNKNOWN};
}

static const char *text_of(const char *const *attributes, const char *attribute)
{
    const char *value = hoop_xml_value(attributes, attribute);

    return value == NULL ? "" : value;
}

/* Add a node near its parent's CPUs. */
static int add_node(struct reader *reader, const struct hoop_topo_node *node)
{
    const struct hoop_topo_place *parent = &reader->topo->place[node->parent];
    const bool adrift = parent->adrift || parent->node.kind == HOOP_TOPO_MACHINE;

    if (reader->topo->nodes == MOST_NODES) {
        hoop_fail(HOOP_ERR_ARG, "%s: more than %d devices", reader->name, MOST_NODES);
        return -1;
    }
    const int added = hoop_topo_add(reader->topo, node, parent->cpus, parent->numas);
    if (added >= 0)
        reader->topo->place[added].adrift = adrift && node->kind != HOOP_TOPO_NUMA;
    return added;
}

/* add_node has recorded what went wrong. */
static enum hoop_status why(const struct reader *reader)
{
    return reader->topo->nodes == MOST_NODES ? HOOP_ERR_ARG : HOOP_ERR_MEMORY;
}

static enum hoop_status open_system(struct reader *reader, const char *const *attributes, struct level *level)
{
    const struct hoop_topo_node machine = {.kind = HOOP_TOPO_MACHINE, .parent = -1, .source = HOOP_TOPO_NCCL_XML};

    reader->version = hoop_nccl_number(attributes, "version", 1, 2, 0);
    if (reader->version == 0)
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "%s: topology file of version \"%.20s\"; version 1 (NCCL) and 2 (RCCL) are read", reader->name,
                         text_of(attributes, "version"));
    level->node = hoop_topo_add(reader->topo, &machine, NULL, NULL);
    return level->node < 0 ? HOOP_ERR_MEMORY : HOOP_OK;
}

/* The node of that NUMA number, if the file named it before. */
static int known_numa(struct reader *reader, int number)
{
    for (int i = 0; i < reader->topo->nodes; i++)
        if (node_at(reader, i)->kind == HOOP_TOPO_NUMA && node_at(reader, i)->number == number)
            return i;
    return -1;
}

static enum hoop_status read_affinity(struct reader *reader, const char *const *attributes, int numa)
{
    struct hoop_topo *topo = reader->topo;
    const char *mask = hoop_xml_value(attributes, "affinity");

    if (mask != NULL && *mask != '\0' && !hoop_topo_parse_mask(mask, topo->place[numa].cpus)) {
        hwloc_bitmap_zero(topo->place[numa].cpus);
        return hoop_topo_remark(topo, "the CPUs of NUMA node %d are unknown: affinity \"%.40s\" is no mask",
                                node_at(reader, numa)->number, mask);
    }
    if (hwloc_bitmap_or(topo->allowed, topo->allowed, topo->place[numa].cpus) != 0 ||
        hwloc_bitmap_or(topo->place[0].cpus, topo->place[0].cpus, topo->place[numa].cpus) != 0)
        return hoop_fail(HOOP_ERR_MEMORY, "no memory for the set of CPUs");
    return HOOP_OK;
}

static enum hoop_status open_cpu(struct reader *reader, const char *const *attributes, struct level *level)
{
    const int number = (int)hoop_nccl_number(attributes, "numaid", 0, MOST_NUMA, -1);
    const char *host = text_of(attributes, "host_hash");
    const struct hoop_topo_node node = {.kind = HOOP_TOPO_NUMA,
                                        .number = number,
                                        .source = HOOP_TOPO_NCCL_XML,
                                        .cpu = {.arch = text_of(attributes, "arch"),
                                                .vendor = text_of(attributes, "vendor"),
                                                .family = (int)hoop_nccl_number(attributes, "familyid", 0, 4095, 0),
                                                .model = (int)hoop_nccl_number(attributes, "modelid", 0, 4095, 0)}};
    const struct hoop_topo_link link = {
        .kind = HOOP_TOPO_LINK_MEMORY, .b = reader->topo->nodes, .source = HOOP_TOPO_NCCL_XML};

    if (++reader->cpus > MOST_NUMA)
        return hoop_fail(HOOP_ERR_ARG, "%s: more than %d <cpu> elements", reader->name, MOST_NUMA);
    if (reader->host[0] == '\0')
        snprintf(reader->host, sizeof reader->host, "%s", host);
    else if (*host != '\0' && strncmp(host, reader->host, sizeof reader->host - 1) != 0)
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "%s: it holds the CPUs of several hosts; only files of one host are read", reader->name);
    if (number < 0) { /* devices below it are near nobody knows which */
        level->node = 0;
        return HOOP_OK;
    }
    level->node = known_numa(reader, number);
    if (level->node < 0) {
        level->node = add_node(reader, &node);
        if (level->node < 0)
            return why(reader);
        hwloc_bitmap_zero(reader->topo->place[level->node].cpus);
        if (hwloc_bitmap_only(reader->topo->place[level->node].numas, (unsigned)number) != 0 ||
            hwloc_bitmap_set(reader->topo->place[0].numas, (unsigned)number) != 0)
            return hoop_fail(HOOP_ERR_MEMORY, "no memory for the set of NUMA nodes");
        const enum hoop_status status = hoop_topo_join(reader->topo, &link);
        if (status != HOOP_OK)
            return status;
    }
    return read_affinity(reader, attributes, level->node);
}

/* The link of a PCI function to what is above it. */
static enum hoop_status join_up(struct reader *reader, int node, const char *const *attributes)
{
    const int parent = node_at(reader, node)->parent;
    const bool pci = node_at(reader, parent)->kind == HOOP_TOPO_PCI_BRIDGE || node_at(reader, node)->bus.known;
    const char *speed = text_of(attributes, "link_speed");
    struct hoop_topo_link link = {.kind = pci ? HOOP_TOPO_LINK_PCI : HOOP_TOPO_LINK_HOST,
                                  .a = parent,
                                  .b = node,
                                  .source = HOOP_TOPO_NCCL_XML,
                                  .width = fact((double)hoop_nccl_number(attributes, "link_width", 1, 64, 0))};
    double transfers = 0;
    enum hoop_status status = HOOP_OK;

    if (hoop_topo_parse_transfers(speed, &transfers))
        link.gigatransfers = fact(transfers);
    else if (*speed != '\0')
        status = hoop_topo_remark(reader->topo, "the link speed of %.20s is unknown: \"%.40s\" is none",
                                  text_of(attributes, "busid"), speed);
    link.gigabytes_per_second = fact(link.width.value * hoop_topo_pci_lane(transfers));
    return status == HOOP_OK ? hoop_topo_join(reader->topo, &link) : status;
}

static enum hoop_topo_kind kind_of(struct hoop_topo_node *node)
{
    const struct hoop_topo_identity identity = {
        .vendor = node->vendor, .device = node->device, .pci_class = node->pci_class};

    if (node->pci_class == CLASS_PCI_BRIDGE)
        return HOOP_TOPO_PCI_BRIDGE;
    return node->pci_class == 0 ? HOOP_TOPO_PCI_DEVICE : hoop_topo_classify(&identity, &node->rdma);
}

static enum hoop_status open_pci(struct reader *reader, const char *const *attributes, struct level *level)
{
    const char *bus = text_of(attributes, "busid");
    struct hoop_topo_node node = {
        .parent = level[-1].node,
        .source = HOOP_TOPO_NCCL_XML,
        .vendor = (uint16_t)hoop_nccl_number(attributes, "vendor", 0, 0xffff, 0),
        .device = (uint16_t)hoop_nccl_number(attributes, "device", 0, 0xffff, 0),
        .pci_class = (uint16_t)(hoop_nccl_number(attributes, "class", 0, 0xffffff, 0) >> 8),
        .subsystem_vendor = (uint16_t)hoop_nccl_number(attributes, "subsystem_vendor", 0, 0xffff, 0),
        .subsystem_device = (uint16_t)hoop_nccl_number(attributes, "subsystem_device", 0, 0xffff, 0),
        .listed = ++reader->listed,
    };

    if (!hoop_topo_parse_bus(bus, &node.bus)) {
        const enum hoop_status status = hoop_topo_remark(reader->topo, "\"%.40s\" is no bus id", bus);
        if (status != HOOP_OK)
            return status;
    }
    node.kind = kind_of(&node);
    if (level[-1].element == PCI)
        node_at(reader, level[-1].node)->kind = HOOP_TOPO_PCI_BRIDGE;
    level->node = add_node(reader, &node);
    return level->node < 0 ? why(reader) : join_up(reader, level->node, attributes);
}

/* The node that a <gpu> or <net> stands for: that of the PCI function the first time, then one more with its identity. */
static int claim(struct reader *reader, struct level *pci, enum hoop_topo_kind kind)
{
    struct hoop_topo_node node = *node_at(reader, pci->node);

    if (pci->element == PCI && !pci->told) {
        pci->told = true;
        node_at(reader, pci->node)->kind = kind;
        return pci->node;
    }
    if (pci->element == CPU) /* an interface without a PCI device */
        node = (struct hoop_topo_node){.parent = pci->node, .source = HOOP_TOPO_NCCL_XML};
    node.kind = kind;
    node.listed = ++reader->listed;
    return add_node(reader, &node);
}

/* Another node of a PCI function shares its link; search and drawings know by the bus id. */
static enum hoop_status join_like(struct reader *reader, int node, const struct level *pci)
{
    static const char *const none[] = {NULL};

    for (int i = 0; node != pci->node && i < reader->topo->links; i++)
        if (pci->element == PCI && reader->topo->link[i].b == pci->node) {
            struct hoop_topo_link link = reader->topo->link[i];
            link.b = node;
            return hoop_topo_join(reader->topo, &link);
        }
    return node == pci->node ? HOOP_OK : join_up(reader, node, none);
}

static enum hoop_status name_node(struct reader *reader, int node, const char *name, const char *model)
{
    const char *kept = hoop_topo_keep_text(reader->topo, name), *kept_model = hoop_topo_keep_text(reader->topo, model);

    if (kept == NULL || kept_model == NULL)
        return HOOP_ERR_MEMORY;
    node_at(reader, node)->name = node_at(reader, node)->names = kept;
    node_at(reader, node)->model = kept_model;
    return HOOP_OK;
}

static struct hoop_topo_fact ordinal(const char *const *attributes)
{
    const long dev = hoop_nccl_number(attributes, "dev", 0, 65535, -1);

    return (struct hoop_topo_fact){dev < 0 ? 0 : (double)dev, dev < 0 ? HOOP_TOPO_UNKNOWN : HOOP_TOPO_NCCL_XML};
}

static enum hoop_status open_gpu(struct reader *reader, const char *const *attributes, struct level *level)
{
    const char *gcn = text_of(attributes, "gcn");
    const long sm = hoop_nccl_number(attributes, "sm", 1, 9999, 0);
    char model[64] = "", name[32] = "";

    level->node = claim(reader, level - 1, HOOP_TOPO_GPU);
    if (level->node < 0)
        return why(reader);
    struct hoop_topo_node *node = node_at(reader, level->node);
    node->ordinal = ordinal(attributes);
    if (*gcn != '\0')
        snprintf(model, sizeof model, "%s%.20s", strncmp(gcn, "gfx", 3) == 0 ? "" : "gcn ", gcn);
    else if (sm > 0)
        snprintf(model, sizeof model, "sm %ld", sm);
    if (node->ordinal.source != HOOP_TOPO_UNKNOWN)
        snprintf(name, sizeof name, "dev%.0f", node->ordinal.value);
    const enum hoop_status status = name_node(reader, level->node, name, model);
    return status == HOOP_OK ? join_like(reader, level->node, level - 1) : status;
}

/* What verbs devices are called; interfaces of sockets bear other names. */
static bool verbs_name(const char *name)
{
    static const char *const prefixes[] = {"mlx4_", "mlx5_", "bnxt_re", "rdmap", "irdma", "hfi1_", "efa_", "cxi"};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static enum hoop_status open_net(struct reader *reader, const char *const *attributes, struct level *level)
{
    const char *name = text_of(attributes, "name");
    const long speed = hoop_nccl_number(attributes, "speed", 0, INT32_MAX, 0);
    struct level *below = level - 2; /* of the <nic> */

    level->node = claim(reader, below, HOOP_TOPO_NIC);
    if (level->node < 0)
        return why(reader);
    struct hoop_topo_node *node = node_at(reader, level->node);
    node->ordinal = ordinal(attributes);
    node->rdma |= verbs_name(name) || hoop_nccl_number(attributes, "gdr", 0, 1, 0) == 1;
    if (speed <= MOST_PORT_SPEED)
        node->port_speed = fact((double)speed / 8000);
    enum hoop_status status = name_node(reader, level->node, name, "");
    if (status == HOOP_OK && speed > MOST_PORT_SPEED)
        status = hoop_topo_remark(reader->topo, "the speed of %.40s is unknown: %ld Mbit/s cannot be", name, speed);
    return status == HOOP_OK ? join_like(reader, level->node, below) : status;
}

static enum hoop_status open_c2c(struct reader *reader, const char *const *attributes, struct level *level)
{
    const long count = hoop_nccl_number(attributes, "count", 1, 64, 0),
               speed = hoop_nccl_number(attributes, "bw", 1, 10000000, 0);
    int numa = level[-1].node;

    while (numa >= 0 && node_at(reader, numa)->kind != HOOP_TOPO_NUMA)
        numa = node_at(reader, numa)->parent;
    if (numa < 0 || count == 0)
        return HOOP_OK;
    const struct hoop_topo_link link = {.kind = HOOP_TOPO_LINK_C2C,
                                        .a = numa,
                                        .b = level[-1].node,
                                        .source = HOOP_TOPO_NCCL_XML,
                                        .count = fact((double)count),
                                        .gigabytes_per_second = fact((double)(count * speed) / 1000)};
    return hoop_topo_join(reader->topo, &link);
}

static enum hoop_status open_nvlink(struct reader *reader, const char *const *attributes, struct level *level)
{
    return hoop_nccl_links_add(reader->topo, &reader->links, level[-1].node, HOOP_TOPO_LINK_NVLINK, attributes);
}

static enum hoop_status open_xgmi(struct reader *reader, const char *const *attributes, struct level *level)
{
    return hoop_nccl_links_add(reader->topo, &reader->links, level[-1].node, HOOP_TOPO_LINK_XGMI, attributes);
}

/* <nic> stands for nothing by itself. */
static enum hoop_status open_nic(struct reader *reader, const char *const *attributes, struct level *level)
{
    (void)reader;
    (void)attributes;
    level->node = level[-1].node;
    return HOOP_OK;
}

/* Which element may stand below which. */
static const struct {
    const char *name;
    unsigned below; /* bits of enum element */
    enum element element;
    enum hoop_status (*open)(struct reader *, const char *const *attributes, struct level *);
} elements[] = {
    {"cpu", 1u << SYSTEM, CPU, open_cpu}, {"pci", 1u << CPU | 1u << PCI, PCI, open_pci},
    {"gpu", 1u << PCI, GPU, open_gpu},    {"nic", 1u << CPU | 1u << PCI, NIC, open_nic},
    {"net", 1u << NIC, NET, open_net},    {"nvlink", 1u << GPU, LEAF, open_nvlink},
    {"xgmi", 1u << GPU, LEAF, open_xgmi}, {"c2c", 1u << GPU, LEAF, open_c2c},
};

static enum hoop_status on_open(void *user, const char *element, const char *const *attributes)
{
    struct reader *reader = user;
    struct level *level = &reader->level[reader->depth++];

    *level = (struct level){.element = IGNORED, .node = -1};
    if (reader->depth == 1) {
        level->element = SYSTEM;
        return open_system(reader, attributes, level);
    }
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
        if (strcmp(element, elements[i].name) == 0 && elements[i].below >> level[-1].element & 1) {
            level->element = elements[i].element;
            return elements[i].open(reader, attributes, level);
        }
    return HOOP_OK;
}

static void on_close(void *user)
{
    struct reader *reader = user;

    reader->depth--;
}

static enum hoop_status read_all(struct reader *reader, const char *text)
{
    const struct hoop_xml_reader handlers = {on_open, on_close, reader};
    enum hoop_status status = hoop_xml_parse(text, reader->name, &handlers);

    if (status == HOOP_OK)
        status = hoop_nccl_links_join(reader->topo, &reader->links);
    if (status != HOOP_OK)
        return status;
    reader->topo->switches = true;
    snprintf(reader->topo->origin, sizeof reader->topo->origin, "%.150s, a topology file of %s", reader->name,
             reader->version == 1 ? "NCCL" : "RCCL");
    return hoop_topo_seal(reader->topo);
}

enum hoop_status hoop_topo_read_nccl(struct hoop_topo **topo, const char *text, const char *name)
{
    struct reader *reader = hoop_calloc(1, sizeof *reader);

    if (reader == NULL)
        return HOOP_ERR_MEMORY;
    reader->name = name;
    enum hoop_status status = hoop_topo_create(&reader->topo);
    if (status == HOOP_OK)
        status = read_all(reader, text);
    if (status == HOOP_OK)
        *topo = reader->topo;
    else
        hoop_topo_free(reader->topo);
    hoop_free(reader->links.link);
    hoop_free(reader);
    return status;
}
