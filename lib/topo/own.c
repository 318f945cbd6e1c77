// SPDX-License-Identifier: BSD-3-Clause
/* hoop's own form of a topology: all that the graph holds, so that what is written and read again is the same machine to the bit.
 *
 *     <hoop-topology version="1" origin="…" switches="0" allowed="ff">
 *       <node kind="GPU" number="0" parent="3" source="hwloc" bus="0000:03:00.0" pci="10de:20b2:0302" cpus="f" memory_numa="2 NVML"/>
 *       <link kind="PCI" a="3" b="7" source="sysfs" width="16 sysfs" gigatransfers="16 sysfs"/>
 *       <access a="7" b="8" read="OK" write="OK" nvlink="NS" atomics="NS" pci="CNS"/>
 *       <core cpus="3"/>
 *       <remark text="…"/>
 *     </hoop-topology>
 *
 * Nodes are numbered in the order of the file, a parent before its children. A fact is its value and its source; a value that is no whole
 * number is written as one and a power of two ("63p-2"), so that no digit is lost and no locale asked. Sets of CPUs and NUMA nodes are masks in
 * words of 32 bits, the highest first. What is unknown is not written. The lists below make both writer and reader.
 */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/model.h"
#include "topo/xml.h"

enum { MOST_NODES = 65536, MOST_LINKS = 65536, MOST_CORES = 32768, MASK_BITS = 32768 };

static const struct own_fact {
    const char *name;
    size_t offset;
    double most;
} node_facts[] = {{"memory", offsetof(struct hoop_topo_node, memory), 1e18},
                  {"memory_numa", offsetof(struct hoop_topo_node, memory_numa), 65535},
                  {"ordinal", offsetof(struct hoop_topo_node, ordinal), 65535},
                  {"port_speed", offsetof(struct hoop_topo_node, port_speed), 1e6},
                  {"iommu_group", offsetof(struct hoop_topo_node, iommu_group), 1e9},
                  {"acs_redirect", offsetof(struct hoop_topo_node, acs_redirect), 255}},
  link_facts[] = {{"width", offsetof(struct hoop_topo_link, width), 64},
                  {"gigatransfers", offsetof(struct hoop_topo_link, gigatransfers), 1000},
                  {"count", offsetof(struct hoop_topo_link, count), 1000},
                  {"gigabytes_per_second", offsetof(struct hoop_topo_link, gigabytes_per_second), 1e5},
                  {"nanoseconds", offsetof(struct hoop_topo_link, nanoseconds), 1e12},
                  {"now_width", offsetof(struct hoop_topo_link, now_width), 64},
                  {"now_gigatransfers", offsetof(struct hoop_topo_link, now_gigatransfers), 1000},
                  {"device_width", offsetof(struct hoop_topo_link, device_width), 64},
                  {"device_gigatransfers", offsetof(struct hoop_topo_link, device_gigatransfers), 1000}};

enum { NODE_FACTS = sizeof node_facts / sizeof node_facts[0], LINK_FACTS = sizeof link_facts / sizeof link_facts[0] };

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

/* Bytes of a character in UTF-8 as far as expat takes it; 0: it is none. */
static int character(const unsigned char *at)
{
    const int more = *at < 0x80 ? 0 : *at >= 0xc2 && *at < 0xe0 ? 1 : *at >= 0xe0 && *at < 0xf0 ? 2 : -1;

    if (more < 0 || (*at < 0x20 && *at != '\t'))
        return 0;
    for (int i = 1; i <= more; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] >= 0xa0) ||
        (*at == 0xef && at[1] == 0xbf && at[2] >= 0xbe))
        return 0;
    return 1 + more;
}

/* What XML cannot have becomes a question mark. */
static void put_text(FILE *out, const char *name, const char *text)
{
    if (text[0] == '\0')
        return;
    fprintf(out, " %s=\"", name);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
        const int length = character(at);

        if (strchr("&<>\"\t", *at) != NULL)
            fprintf(out, "&#%d;", *at);
        else if (length == 0)
            fputc('?', out);
        else
            fwrite(at, 1, (size_t)length, out);
        at += length == 0 ? 1 : length;
    }
    fputc('"', out);
}

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

static void put_facts(FILE *out, const void *of, const struct own_fact *facts, int count)
{
    for (int i = 0; i < count; i++) {
        const struct hoop_topo_fact *fact = (const void *)((const char *)of + facts[i].offset);
        double value = fact->value;
        int power = 0;

        if (fact->source == HOOP_TOPO_UNKNOWN || !(value >= 0 && value <= facts[i].most))
            continue;
        for (; value != floor(value) && power > -1074; power--)
            value *= 2;
        fprintf(out, " %s=\"%" PRId64, facts[i].name, (int64_t)value);
        if (power < 0)
            fprintf(out, "p%d", power);
        fprintf(out, " %s\"", hoop_topo_source_name(fact->source));
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
        put_text(out, texts[i].name, *(const char *const *)(const void *)((const char *)node + texts[i].offset));
    put_number(out, "family", node->cpu.family);
    put_number(out, "cpu_model", node->cpu.model);
    put_number(out, "rdma", node->rdma);
    put_number(out, "virtual_function", node->virtual_function);
    put_number(out, "listed", node->listed);
    put_number(out, "adrift", place->adrift);
    put_facts(out, node, node_facts, NODE_FACTS);
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
    put_facts(out, link, link_facts, LINK_FACTS);
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

enum hoop_status hoop_topo_write(const struct hoop_topo *topo, FILE *file)
{
    int *number;

    if (topo == NULL || file == NULL)
        return hoop_fail(HOOP_ERR_ARG, "no topology to write, or no file to write to");
    number = hoop_calloc((size_t)topo->nodes, sizeof *number);
    if (number == NULL)
        return HOOP_ERR_MEMORY;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<hoop-topology version=\"1\"", file);
    put_text(file, "origin", topo->origin);
    put_number(file, "switches", topo->switches);
    put_mask(file, "allowed", topo->allowed);
    fputs(">\n", file);
    put_nodes(topo, file, number);
    for (int i = 0; i < topo->links; i++)
        put_link(file, &topo->link[i], number);
    for (int i = 0; i < topo->accesses; i++)
        put_access(file, &topo->access[i], number);
    for (int i = 0; i < topo->cores; i++) {
        fputs("  <core", file);
        put_mask(file, "cpus", topo->core[i]);
        fputs("/>\n", file);
    }
    for (int i = 0; i < topo->notes; i++) {
        fputs("  <remark", file);
        put_text(file, "text", topo->note[i]);
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

static int named(const char *text, int count, const char *(*name)(int))
{
    int i = 0;

    while (i < count && (text == NULL || strcmp(text, name(i)) != 0))
        i++;
    return i < count ? i : -1;
}

static const char *kind_name(int i)
{
    return hoop_topo_kind_name((enum hoop_topo_kind)i);
}

static const char *link_name(int i)
{
    return hoop_topo_link_name((enum hoop_topo_link_kind)i);
}

static const char *source_name(int i)
{
    return hoop_topo_source_name((enum hoop_topo_source)i);
}

/* "63p-2 NVML". */
static bool read_fact(const char *text, double most, struct hoop_topo_fact *fact)
{
    char *end;
    long power = 0;

    if (text[0] < '0' || text[0] > '9')
        return false;
    fact->value = (double)strtoll(text, &end, 10);
    if (*end == 'p')
        power = strtol(end + 1, &end, 10);
    if (power > 0 || power < -1100 || *end != ' ')
        return false;
    fact->value = ldexp(fact->value, (int)power);
    const int source = named(end + 1, HOOP_TOPO_SOURCES, source_name);
    fact->source = source < 0 ? HOOP_TOPO_UNKNOWN : (enum hoop_topo_source)source;
    return fact->value <= most && source > 0;
}

static enum hoop_status read_facts(const struct reader *reader, const char *element, const char *const *attributes,
                                   const struct own_fact *facts, int count, void *to)
{
    for (int i = 0; i < count; i++) {
        const char *text = hoop_xml_value(attributes, facts[i].name);

        if (text != NULL && !read_fact(text, facts[i].most, (void *)((char *)to + facts[i].offset)))
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
    const int kind = named(hoop_xml_value(attributes, "kind"), HOOP_TOPO_KINDS, kind_name),
              source = named(hoop_xml_value(attributes, "source"), HOOP_TOPO_SOURCES, source_name);
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
    return read_facts(reader, "node", attributes, node_facts, NODE_FACTS, node);
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
    const int kind = named(hoop_xml_value(attributes, "kind"), HOOP_TOPO_LINK_KINDS, link_name),
              source = named(hoop_xml_value(attributes, "source"), HOOP_TOPO_SOURCES, source_name);
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
    const enum hoop_status status = read_facts(reader, "link", attributes, link_facts, LINK_FACTS, &link);
    return status == HOOP_OK ? hoop_topo_join(reader->topo, &link) : status;
}

static const char *peer_name(int i)
{
    return hoop_topo_peer_name((enum hoop_topo_peer)i);
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
        const int peer = text == NULL ? HOOP_TOPO_PEER_UNKNOWN : named(text, HOOP_TOPO_PEERS, peer_name);

        if (peer < 0)
            return wrong(reader, "access", ways[way], text);
        access.way[way] = (uint8_t)peer;
    }
    return hoop_topo_add_access(reader->topo, &access);
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
