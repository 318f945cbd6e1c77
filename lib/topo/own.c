// SPDX-License-Identifier: BSD-3-Clause
/* hoop's own form of a topology: all that the graph holds, so that what is written and read again is the same machine to the bit.
 *
 *     <hoop-topology version="1" origin="…" switches="0" allowed="ff">
 *       <node kind="GPU" number="0" parent="3" source="hwloc" bus="0000:03:00.0" pci="10de:20b2:0302" cpus="f" memory_numa="2 NVML"/>
 *       <link kind="PCI" a="3" b="7" source="sysfs" width="16 sysfs" gigatransfers="16 sysfs"/>
 *       <access a="7" b="8" read="OK" write="OK" nvlink="NS" atomics="NS" pci="CNS"/>
 *       <gid node="9" port="1" index="3" gid="00000000000000000000ffff0a000001" type="RoCE v2" interface="eth0"/>
 *       <core cpus="3"/>
 *       <remark text="…"/>
 *     </hoop-topology>
 *
 * Nodes are numbered in the order of the file, a parent before its children. A fact is its value and its source; a value that is no whole
 * number is written as one and a power of two ("63p-2"), so that no digit is lost and no locale asked. Sets of CPUs and NUMA nodes are masks in
 * words of 32 bits, the highest first. What is unknown is not written. The lists below make both writer and reader.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/facts.h"
#include "topo/xml.h"

enum { MOST_NODES = 65536, MOST_LINKS = 65536, MOST_CORES = 32768, MASK_BITS = 32768 };

static const struct own_text {
    const char *name;
    size_t offset;
} texts[] = {{"name", offsetof(struct hoop_topo_node, name)},
             {"names", offsetof(struct hoop_topo_node, names)},
             {"model", offsetof(struct hoop_topo_node, model)},
             {"arch", offsetof(struct hoop_topo_node, cpu.arch)},
             {"vendor", offsetof(struct hoop_topo_node, cpu.vendor)}};

enum { TEXTS = sizeof texts / sizeof texts[0] };

static const char *const ways[HOOP_TOPO_PEER_WAYS] = {"read", "write", "nvlink", "atomics", "pci"};

/* ---- writing ---- */

static void put_mask(FILE *out, const char *name, hwloc_const_bitmap_t set)
{
    int last = hwloc_bitmap_last(set);

    if (hwloc_bitmap_iszero(set))
        return;
    if (last < 0 || last >= MASK_BITS) /* endless */
        last = MASK_BITS - 1;
    fprintf(out, " %s=\"", name);
    for (int word = last / 32; word >= 0; word--) {
        uint32_t bits = 0;

        for (int bit = 0; bit < 32; bit++)
            bits |= (uint32_t)hwloc_bitmap_isset(set, (unsigned)(word * 32 + bit)) << bit;
        fprintf(out, word == last / 32 ? "%" PRIx32 : ",%08" PRIx32, bits);
    }
    fputc('"', out);
}

static void put_facts(FILE *out, const void *of, const struct hoop_fact_name *facts, int count)
{
    for (int i = 0; i < count; i++) {
        const struct hoop_topo_fact *fact = hoop_fact_in(of, &facts[i]);

        if (!hoop_fact_known(fact, &facts[i]))
            continue;
        fprintf(out, " %s=\"", facts[i].name);
        hoop_fact_put(out, fact);
        fputc('"', out);
    }
}

static void put_number(FILE *out, const char *name, long value)
{
    if (value != 0)
        fprintf(out, " %s=\"%ld\"", name, value);
}

static void put_node(FILE *out, const struct hoop_topo_place *place, int parent)
{
    const struct hoop_topo_node *node = &place->node;

    fprintf(out, "  <node kind=\"%s\" number=\"%d\" parent=\"%d\" source=\"%s\"", hoop_topo_kind_name(node->kind),
            node->number, parent, hoop_topo_source_name(node->source));
    if (node->bus.known)
        fprintf(out, " bus=\"%04" PRIx32 ":%02x:%02x.%x\"", node->bus.domain, node->bus.bus, node->bus.device,
                node->bus.function);
    if (node->vendor != 0 || node->device != 0 || node->pci_class != 0)
        fprintf(out, " pci=\"%04x:%04x:%04x:%04x:%04x\"", node->vendor, node->device, node->pci_class,
                node->subsystem_vendor, node->subsystem_device);
    for (int i = 0; i < TEXTS; i++)
        hoop_xml_put(out, texts[i].name, *(const char *const *)(const void *)((const char *)node + texts[i].offset));
    put_number(out, "family", node->cpu.family);
    put_number(out, "cpu_model", node->cpu.model);
    put_number(out, "rdma", node->rdma);
    put_number(out, "virtual_function", node->virtual_function);
    put_number(out, "listed", node->listed);
    put_number(out, "adrift", place->adrift);
    put_facts(out, node, hoop_node_facts, HOOP_NODE_FACTS);
    put_mask(out, "cpus", place->cpus);
    put_mask(out, "numas", place->numas);
    fputs("/>\n", out);
}

/* A node's number in the file: parents first, else in the graph's order. Writes the nodes on the way. */
static void put_nodes(const struct hoop_topo *topo, FILE *out, int *number)
{
    int next = 0;

    for (int i = 0; i < topo->nodes; i++)
        number[i] = -1;
    while (next < topo->nodes)
        for (int i = 0; i < topo->nodes; i++) {
            const int parent = topo->place[i].node.parent;

            if (number[i] >= 0 || (parent >= 0 && number[parent] < 0))
                continue;
            number[i] = next++;
            put_node(out, &topo->place[i], parent < 0 ? -1 : number[parent]);
        }
}

static void put_link(FILE *out, const struct hoop_topo_link *link, const int *number)
{
    fprintf(out, "  <link kind=\"%s\" a=\"%d\" b=\"%d\" source=\"%s\"", hoop_topo_link_name(link->kind),
            number[link->a], number[link->b], hoop_topo_source_name(link->source));
    put_number(out, "current", link->current);
    put_facts(out, link, hoop_link_facts, HOOP_LINK_FACTS);
    fputs("/>\n", out);
}

static void put_access(FILE *out, const struct hoop_topo_access *access, const int *number)
{
    fprintf(out, "  <access a=\"%d\" b=\"%d\"", number[access->a], number[access->b]);
    for (int way = 0; way < HOOP_TOPO_PEER_WAYS; way++)
        if (access->way[way] != HOOP_TOPO_PEER_UNKNOWN)
            fprintf(out, " %s=\"%s\"", ways[way], hoop_topo_peer_name((enum hoop_topo_peer)access->way[way]));
    fputs("/>\n", out);
}

static void put_gid(FILE *out, const struct hoop_topo_gid *gid, const int *number)
{
    fprintf(out, "  <gid node=\"%d\" port=\"%d\" index=\"%d\" gid=\"", number[gid->node], gid->port, gid->index);
    for (int i = 0; i < 16; i++)
        fprintf(out, "%02x", gid->gid[i]);
    fputc('"', out);
    hoop_xml_put(out, "type", hoop_topo_gid_name(gid->type));
    hoop_xml_put(out, "interface", gid->interface);
    fputs("/>\n", out);
}

enum hoop_status hoop_topo_write(const struct hoop_topo *topo, FILE *file)
{
    int *number;

    if (topo == NULL || file == NULL)
        return hoop_fail(HOOP_ERR_ARG, "no topology to write, or no file to write to");
    number = hoop_calloc((size_t)topo->nodes, sizeof *number);
    if (number == NULL)
        return HOOP_ERR_MEMORY;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<hoop-topology version=\"1\"", file);
    hoop_xml_put(file, "origin", topo->origin);
    put_number(file, "switches", topo->switches);
    put_mask(file, "allowed", topo->allowed);
    fputs(">\n", file);
    put_nodes(topo, file, number);
    for (int i = 0; i < topo->links; i++)
        put_link(file, &topo->link[i], number);
    for (int i = 0; i < topo->accesses; i++)
        put_access(file, &topo->access[i], number);
    for (int i = 0; i < topo->gids; i++)
        put_gid(file, &topo->gid[i], number);
    for (int i = 0; i < topo->cores; i++) {
        fputs("  <core", file);
        put_mask(file, "cpus", topo->core[i]);
        fputs("/>\n", file);
    }
    for (int i = 0; i < topo->notes; i++) {
        fputs("  <remark", file);
        hoop_xml_put(file, "text", topo->note[i]);
        fputs("/>\n", file);
    }
    fputs("</hoop-topology>\n", file);
    hoop_free(number);
    return fflush(file) != 0 || ferror(file) ? hoop_fail_errno(HOOP_ERR_SYSTEM, "the topology cannot be written")
                                             : HOOP_OK;
}

/* ---- reading ---- */

struct reader {
    struct hoop_topo *topo;
    const char *name;
    int *number; /* of the file's nodes in the graph */
    int nodes;
    bool open; /* the root element was seen */
};

static enum hoop_status wrong(const struct reader *reader, const char *element, const char *attribute,
                              const char *value)
{
    return hoop_fail(HOOP_ERR_ARG, "%s: <%s>: %s=\"%.40s\" cannot be", reader->name, element, attribute,
                     value == NULL ? "" : value);
}

/* A whole number; false: not such a text, or out of range. */
static bool read_number(const char *text, long least, long most, long *value)
{
    char *end;

    if (text == NULL)
        return false;
    *value = strtol(text, &end, 10);
    return end != text && *end == '\0' && *value >= least && *value <= most;
}

/* As read_number; no text is 0. */
static bool read_flag(const char *const *attributes, const char *name, long most, long *value)
{
    const char *text = hoop_xml_value(attributes, name);

    *value = 0;
    return text == NULL || read_number(text, 0, most, value);
}

static enum hoop_status read_facts(const struct reader *reader, const char *element, const char *const *attributes,
                                   const struct hoop_fact_name *facts, int count, void *to)
{
    for (int i = 0; i < count; i++) {
        const char *text = hoop_xml_value(attributes, facts[i].name);

        if (text != NULL && !hoop_fact_parse(text, &facts[i], hoop_fact_of(to, &facts[i])))
            return wrong(reader, element, facts[i].name, text);
    }
    return HOOP_OK;
}

static bool read_ids(const char *text, struct hoop_topo_node *node)
{
    uint16_t *const id[] = {&node->vendor, &node->device, &node->pci_class, &node->subsystem_vendor,
                            &node->subsystem_device};

    for (int i = 0; i < 5; i++) {
        char *end;
        const unsigned long value = strtoul(text, &end, 16);

        if (end != text + 4 || value > 0xffff || *end != (i < 4 ? ':' : '\0'))
            return false;
        *id[i] = (uint16_t)value;
        text = end + 1;
    }
    return true;
}

static enum hoop_status read_set(const struct reader *reader, const char *element, const char *const *attributes,
                                 const char *name, hwloc_bitmap_t *set)
{
    const char *text = hoop_xml_value(attributes, name);

    *set = hwloc_bitmap_alloc();
    if (*set == NULL)
        return hoop_fail(HOOP_ERR_MEMORY, "no memory for a topology");
    return text == NULL || hoop_topo_parse_mask(text, *set) ? HOOP_OK : wrong(reader, element, name, text);
}

/* The words and numbers of a node; its sets and place come later. */
static enum hoop_status read_identity(const struct reader *reader, const char *const *attributes,
                                      struct hoop_topo_node *node)
{
    const char *bus = hoop_xml_value(attributes, "bus"), *pci = hoop_xml_value(attributes, "pci");
    const int kind = hoop_fact_named(hoop_xml_value(attributes, "kind"), HOOP_TOPO_KINDS, hoop_fact_kind),
              source = hoop_fact_named(hoop_xml_value(attributes, "source"), HOOP_TOPO_SOURCES, hoop_fact_source);
    long family, model, rdma, virtual, listed;

    if (kind < 0 || (kind == HOOP_TOPO_MACHINE) != (reader->nodes == 0))
        return wrong(reader, "node", "kind", hoop_xml_value(attributes, "kind"));
    if (source < 0)
        return wrong(reader, "node", "source", hoop_xml_value(attributes, "source"));
    if (bus != NULL && !hoop_topo_parse_bus(bus, &node->bus))
        return wrong(reader, "node", "bus", bus);
    if (pci != NULL && !read_ids(pci, node))
        return wrong(reader, "node", "pci", pci);
    if (!read_flag(attributes, "family", 1 << 20, &family) || !read_flag(attributes, "cpu_model", 1 << 20, &model) ||
        !read_flag(attributes, "rdma", 1, &rdma) || !read_flag(attributes, "virtual_function", 1, &virtual) ||
        !read_flag(attributes, "listed", MOST_NODES, &listed))
        return hoop_fail(HOOP_ERR_ARG, "%s: node %d has a number that cannot be", reader->name, reader->nodes);
    node->kind = (enum hoop_topo_kind)kind;
    node->source = (enum hoop_topo_source)source;
    node->rdma = rdma != 0;
    node->virtual_function = virtual != 0;
    node->listed = (int)listed;
    node->cpu.family = (int)family;
    node->cpu.model = (int)model;
    for (int i = 0; i < TEXTS; i++) {
        const char *text = hoop_xml_value(attributes, texts[i].name);
        *(const char **)(void *)((char *)node + texts[i].offset) = text == NULL ? "" : text;
    }
    return read_facts(reader, "node", attributes, hoop_node_facts, HOOP_NODE_FACTS, node);
}

static enum hoop_status read_node(struct reader *reader, const char *const *attributes)
{
    const char *above = hoop_xml_value(attributes, "parent");
    hwloc_bitmap_t cpus = NULL, numas = NULL;
    struct hoop_topo_node node = {.parent = -1};
    long number, parent, adrift;

    if (reader->nodes == MOST_NODES)
        return hoop_fail(HOOP_ERR_ARG, "%s: more than %d nodes", reader->name, MOST_NODES);
    enum hoop_status status = read_identity(reader, attributes, &node);
    if (status != HOOP_OK)
        return status;
    if (!read_number(above, reader->nodes == 0 ? -1 : 0, reader->nodes - 1, &parent))
        return wrong(reader, "node", "parent", above);
    if (!read_number(hoop_xml_value(attributes, "number"), 0, 65535, &number) ||
        !read_flag(attributes, "adrift", 1, &adrift))
        return wrong(reader, "node", "number", hoop_xml_value(attributes, "number"));
    node.parent = parent < 0 ? -1 : reader->number[parent];
    node.number = (int)number;
    status = read_set(reader, "node", attributes, "cpus", &cpus);
    if (status == HOOP_OK)
        status = read_set(reader, "node", attributes, "numas", &numas);
    if (status == HOOP_OK && (reader->number[reader->nodes] = hoop_topo_add(reader->topo, &node, cpus, numas)) < 0)
        status = HOOP_ERR_MEMORY;
    if (status == HOOP_OK)
        reader->topo->place[reader->number[reader->nodes++]].adrift = adrift != 0;
    hwloc_bitmap_free(cpus);
    hwloc_bitmap_free(numas);
    return status;
}

static enum hoop_status read_link(struct reader *reader, const char *const *attributes)
{
    const int kind = hoop_fact_named(hoop_xml_value(attributes, "kind"), HOOP_TOPO_LINK_KINDS, hoop_fact_link),
              source = hoop_fact_named(hoop_xml_value(attributes, "source"), HOOP_TOPO_SOURCES, hoop_fact_source);
    struct hoop_topo_link link = {.current = false};
    long a, b, current;

    if (kind < 0 || source < 0)
        return wrong(reader, "link", "kind", hoop_xml_value(attributes, "kind"));
    if (reader->topo->links == MOST_LINKS || !read_flag(attributes, "current", 1, &current) ||
        !read_number(hoop_xml_value(attributes, "a"), 0, reader->nodes - 1, &a) ||
        !read_number(hoop_xml_value(attributes, "b"), 0, reader->nodes - 1, &b) || a == b)
        return wrong(reader, "link", "b", hoop_xml_value(attributes, "b"));
    link.kind = (enum hoop_topo_link_kind)kind;
    link.source = (enum hoop_topo_source)source;
    link.current = current != 0;
    link.a = reader->number[a];
    link.b = reader->number[b];
    const enum hoop_status status = read_facts(reader, "link", attributes, hoop_link_facts, HOOP_LINK_FACTS, &link);
    return status == HOOP_OK ? hoop_topo_join(reader->topo, &link) : status;
}

static enum hoop_status read_access(struct reader *reader, const char *const *attributes)
{
    struct hoop_topo_access access = {.a = 0};
    long a, b;

    if (reader->topo->accesses == MOST_LINKS ||
        !read_number(hoop_xml_value(attributes, "a"), 0, reader->nodes - 1, &a) ||
        !read_number(hoop_xml_value(attributes, "b"), 0, reader->nodes - 1, &b) || a == b)
        return wrong(reader, "access", "b", hoop_xml_value(attributes, "b"));
    access.a = reader->number[a];
    access.b = reader->number[b];
    for (int way = 0; way < HOOP_TOPO_PEER_WAYS; way++) {
        const char *text = hoop_xml_value(attributes, ways[way]);
        const int peer = text == NULL ? HOOP_TOPO_PEER_UNKNOWN : hoop_fact_named(text, HOOP_TOPO_PEERS, hoop_fact_peer);

        if (peer < 0)
            return wrong(reader, "access", ways[way], text);
        access.way[way] = (uint8_t)peer;
    }
    return hoop_topo_add_access(reader->topo, &access);
}

static enum hoop_status read_gid(struct reader *reader, const char *const *attributes)
{
    const char *text = hoop_xml_value(attributes, "gid"), *type = hoop_xml_value(attributes, "type"),
               *interface = hoop_xml_value(attributes, "interface");
    struct hoop_topo_gid gid = {.interface = interface == NULL ? "" : interface};
    long node, port, index;

    if (text == NULL || !hoop_gid_parse(text, gid.gid))
        return wrong(reader, "gid", "gid", text);
    if (reader->topo->gids == MOST_LINKS ||
        !read_number(hoop_xml_value(attributes, "node"), 0, reader->nodes - 1, &node) ||
        !read_number(hoop_xml_value(attributes, "port"), 1, 255, &port) ||
        !read_number(hoop_xml_value(attributes, "index"), 0, 65535, &index))
        return wrong(reader, "gid", "node", hoop_xml_value(attributes, "node"));
    gid.node = reader->number[node];
    gid.port = (int)port;
    gid.index = (int)index;
    gid.type = hoop_gid_type(type == NULL ? "" : type);
    return hoop_topo_add_gid(reader->topo, &gid);
}

static enum hoop_status read_core(struct reader *reader, const char *const *attributes)
{
    hwloc_bitmap_t cpus = NULL;

    if (reader->topo->cores == MOST_CORES)
        return hoop_fail(HOOP_ERR_ARG, "%s: more than %d cores", reader->name, MOST_CORES);
    enum hoop_status status = read_set(reader, "core", attributes, "cpus", &cpus);
    if (status == HOOP_OK)
        status = hoop_topo_add_core(reader->topo, cpus);
    hwloc_bitmap_free(cpus);
    return status;
}

/* The origin begins with "recorded: ", once. */
static enum hoop_status read_root(struct reader *reader, const char *const *attributes)
{
    static const char recorded[] = "recorded: ";
    const char *version = hoop_xml_value(attributes, "version"), *origin = hoop_xml_value(attributes, "origin"),
               *allowed = hoop_xml_value(attributes, "allowed");
    struct hoop_topo *topo = reader->topo;
    long switches;

    reader->open = true;
    if (version == NULL || strcmp(version, "1") != 0)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "%s: a topology of hoop in form %.20s; this hoop reads form 1",
                         reader->name, version == NULL ? "?" : version);
    if (!read_flag(attributes, "switches", 1, &switches) ||
        (allowed != NULL && !hoop_topo_parse_mask(allowed, topo->allowed)))
        return wrong(reader, "hoop-topology", "allowed", allowed);
    topo->switches = switches != 0;
    origin = origin == NULL ? "" : origin;
    snprintf(topo->origin, sizeof topo->origin, "%s%s",
             strncmp(origin, recorded, sizeof recorded - 1) == 0 ? "" : recorded, origin);
    return HOOP_OK;
}

static enum hoop_status on_open(void *user, const char *element, const char *const *attributes)
{
    struct reader *reader = user;

    if (!reader->open)
        return read_root(reader, attributes);
    if (strcmp(element, "node") == 0)
        return read_node(reader, attributes);
    if (strcmp(element, "link") == 0)
        return read_link(reader, attributes);
    if (strcmp(element, "access") == 0)
        return read_access(reader, attributes);
    if (strcmp(element, "gid") == 0)
        return read_gid(reader, attributes);
    if (strcmp(element, "core") == 0)
        return read_core(reader, attributes);
    if (strcmp(element, "remark") == 0 && hoop_xml_value(attributes, "text") != NULL)
        return hoop_topo_remark(reader->topo, "%s", hoop_xml_value(attributes, "text"));
    return HOOP_OK; /* a later hoop may know more */
}

static void on_close(void *user)
{
    (void)user;
}

enum hoop_status hoop_topo_read_own(struct hoop_topo **topo, const char *text, const char *name)
{
    struct reader reader = {.name = name, .number = hoop_calloc(MOST_NODES, sizeof *reader.number)};
    const struct hoop_xml_reader xml = {on_open, on_close, &reader};
    enum hoop_status status = reader.number == NULL ? HOOP_ERR_MEMORY : hoop_topo_create(&reader.topo);

    if (status == HOOP_OK)
        status = hoop_xml_parse(text, name, &xml);
    if (status == HOOP_OK && reader.nodes == 0)
        status = hoop_fail(HOOP_ERR_ARG, "%s: there is no machine in it", name);
    if (status == HOOP_OK)
        status = hoop_topo_seal(reader.topo);
    hoop_free(reader.number);
    if (status != HOOP_OK) {
        hoop_topo_free(reader.topo);
        return status;
    }
    *topo = reader.topo;
    return HOOP_OK;
}
