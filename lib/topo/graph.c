// SPDX-License-Identifier: BSD-3-Clause
/* The topology graph: building, the order of nodes, look-up, digest. See model.h for how it is built. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/model.h"

enum { MOST_NOTES = 48 };

enum hoop_status hoop_topo_create(struct hoop_topo **topo)
{
    struct hoop_topo *t = hoop_calloc(1, sizeof(*t));

    if (t == NULL)
        return HOOP_ERR_MEMORY;
    t->allowed = hwloc_bitmap_alloc();
    if (t->allowed == NULL) {
        hoop_free(t);
        return hoop_fail(HOOP_ERR_MEMORY, "no memory for a topology");
    }
    *topo = t;
    return HOOP_OK;
}

void hoop_topo_free(struct hoop_topo *topo)
{
    if (topo == NULL)
        return;
    for (int i = 0; i < topo->nodes; i++) {
        hwloc_bitmap_free(topo->place[i].cpus);
        hwloc_bitmap_free(topo->place[i].numas);
    }
    for (int i = 0; i < topo->cores; i++)
        hwloc_bitmap_free(topo->core[i]);
    hwloc_bitmap_free(topo->allowed);
    hoop_free(topo->core);
    hoop_free(topo->note);
    hoop_free(topo->link);
    hoop_free(topo->access);
    hoop_free(topo->gid);
    hoop_free(topo->place);
    hoop_arena_clear(&topo->arena);
    hoop_free(topo);
}

/* Room for one more entry of an array that doubles. */
static bool make_room(void **array, int used, int *room, size_t size)
{
    if (used < *room)
        return true;
    const int more = *room > 0 ? *room * 2 : 16;
    void *bigger = hoop_realloc(*array, (size_t)more, size);
    if (bigger == NULL)
        return false;
    *array = bigger;
    *room = more;
    return true;
}

const char *hoop_topo_keep_text(struct hoop_topo *topo, const char *text)
{
    const size_t size = strlen(text == NULL ? "" : text) + 1;

    if (size == 1)
        return "";
    char *copy = hoop_arena_take(&topo->arena, 1, size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

int hoop_topo_add(struct hoop_topo *topo, const struct hoop_topo_node *node, hwloc_const_bitmap_t cpus,
                  hwloc_const_bitmap_t numas)
{
    struct hoop_topo_place new = {.node = *node, .added = topo->nodes};

    new.node.name = hoop_topo_keep_text(topo, node->name);
    new.node.names = hoop_topo_keep_text(topo, node->names);
    new.node.model = hoop_topo_keep_text(topo, node->model);
    new.node.cpu.arch = hoop_topo_keep_text(topo, node->cpu.arch);
    new.node.cpu.vendor = hoop_topo_keep_text(topo, node->cpu.vendor);
    if (new.node.name == NULL || new.node.names == NULL || new.node.model == NULL || new.node.cpu.arch == NULL ||
        new.node.cpu.vendor == NULL ||
        !make_room((void **)&topo->place, topo->nodes, &topo->node_room, sizeof(*topo->place)))
        return -1;
    new.cpus = cpus == NULL ? hwloc_bitmap_alloc() : hwloc_bitmap_dup(cpus);
    new.numas = numas == NULL ? hwloc_bitmap_alloc() : hwloc_bitmap_dup(numas);
    if (new.cpus == NULL || new.numas == NULL) {
        hwloc_bitmap_free(new.cpus);
        hwloc_bitmap_free(new.numas);
        hoop_fail(HOOP_ERR_MEMORY, "no memory for a topology of %d nodes", topo->nodes + 1);
        return -1;
    }
    topo->place[topo->nodes] = new;
    return topo->nodes++;
}

enum hoop_status hoop_topo_join(struct hoop_topo *topo, const struct hoop_topo_link *link)
{
    if (!make_room((void **)&topo->link, topo->links, &topo->link_room, sizeof(*topo->link)))
        return HOOP_ERR_MEMORY;
    topo->link[topo->links++] = *link;
    return HOOP_OK;
}

enum hoop_status hoop_topo_add_access(struct hoop_topo *topo, const struct hoop_topo_access *access)
{
    if (!make_room((void **)&topo->access, topo->accesses, &topo->access_room, sizeof *topo->access))
        return HOOP_ERR_MEMORY;
    topo->access[topo->accesses++] = *access;
    return HOOP_OK;
}

enum hoop_status hoop_topo_add_gid(struct hoop_topo *topo, const struct hoop_topo_gid *gid)
{
    const char *interface = hoop_topo_keep_text(topo, gid->interface);

    if (interface == NULL || !make_room((void **)&topo->gid, topo->gids, &topo->gid_room, sizeof *topo->gid))
        return HOOP_ERR_MEMORY;
    topo->gid[topo->gids] = *gid;
    topo->gid[topo->gids++].interface = interface;
    return HOOP_OK;
}

enum hoop_status hoop_topo_remark(struct hoop_topo *topo, const char *format, ...)
{
    char text[256];
    va_list values;

    if (topo->notes == MOST_NOTES)
        return HOOP_OK;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    const char *kept = hoop_topo_keep_text(topo, text);
    if (kept == NULL || !make_room((void **)&topo->note, topo->notes, &topo->note_room, sizeof *topo->note))
        return HOOP_ERR_MEMORY;
    topo->note[topo->notes++] = kept;
    return HOOP_OK;
}

enum hoop_status hoop_topo_add_core(struct hoop_topo *topo, hwloc_const_bitmap_t cpus)
{
    if (!make_room((void **)&topo->core, topo->cores, &topo->core_room, sizeof(*topo->core)))
        return HOOP_ERR_MEMORY;
    topo->core[topo->cores] = hwloc_bitmap_dup(cpus);
    if (topo->core[topo->cores] == NULL)
        return hoop_fail(HOOP_ERR_MEMORY, "no memory for a topology of %d cores", topo->cores + 1);
    topo->cores++;
    return HOOP_OK;
}

/* ---- order ---- */

int hoop_topo_compare_names(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0");
            b += strspn(b, "0");
            const size_t digits_a = strspn(a, "0123456789"), digits_b = strspn(b, "0123456789");
            if (digits_a != digits_b)
                return digits_a < digits_b ? -1 : 1;
            const int order = strncmp(a, b, digits_a);
            if (order != 0)
                return order;
            a += digits_a;
            b += digits_b;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return (*a != '\0') - (*b != '\0');
}

static uint64_t bus_key(const struct hoop_topo_bus *bus)
{
    if (!bus->known)
        return UINT64_MAX;
    return (uint64_t)bus->domain << 24 | (uint64_t)bus->bus << 16 | (uint64_t)bus->device << 8 | bus->function;
}

/* Interfaces that verbs can use come first, those that nobody has given a name last. */
static int nic_group(const struct hoop_topo_node *node)
{
    return node->name[0] == '\0' ? 2 : node->rdma ? 0 : 1;
}

static int compare_places(const void *first, const void *second)
{
    const struct hoop_topo_node *a = &((const struct hoop_topo_place *)first)->node;
    const struct hoop_topo_node *b = &((const struct hoop_topo_place *)second)->node;
    const uint64_t bus_a = bus_key(&a->bus), bus_b = bus_key(&b->bus);

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if ((a->kind == HOOP_TOPO_PACKAGE || a->kind == HOOP_TOPO_NUMA) && a->number != b->number)
        return a->number < b->number ? -1 : 1;
    if (a->kind == HOOP_TOPO_NIC && nic_group(a) != nic_group(b))
        return nic_group(a) - nic_group(b);
    if (a->kind == HOOP_TOPO_NIC && nic_group(a) == 0 && hoop_topo_compare_names(a->name, b->name) != 0)
        return hoop_topo_compare_names(a->name, b->name);
    if (bus_a != bus_b)
        return bus_a < bus_b ? -1 : 1;
    const int names = hoop_topo_compare_names(a->names, b->names);
    return names != 0 ? names : (a->listed > b->listed) - (a->listed < b->listed);
}

static int compare_links(const void *first, const void *second)
{
    const struct hoop_topo_link *a = first, *b = second;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->a != b->a)
        return a->a < b->a ? -1 : 1;
    return (a->b > b->b) - (a->b < b->b);
}

static int compare_gids(const void *first, const void *second)
{
    const struct hoop_topo_gid *a = first, *b = second;

    if (a->node != b->node || a->port != b->port)
        return a->node != b->node ? a->node - b->node : a->port - b->port;
    return a->index != b->index ? a->index - b->index : memcmp(a->gid, b->gid, sizeof a->gid);
}

static const char *const labels[HOOP_TOPO_KINDS] = {"Machine", "Package", "NUMA",   "Host", "Bridge",
                                                    "GPU",     "NIC",     "Switch", "PCI"};

/* Numbers within the kind, labels, and where each node went. */
static void number_nodes(struct hoop_topo *topo, int *new_number)
{
    int next = 0;

    for (int i = 0; i < topo->nodes; i++) {
        struct hoop_topo_node *node = &topo->place[i].node;

        next = i > 0 && node->kind == topo->place[i - 1].node.kind ? next + 1 : 0;
        if (node->kind != HOOP_TOPO_PACKAGE && node->kind != HOOP_TOPO_NUMA)
            node->number = next;
        if (node->kind == HOOP_TOPO_MACHINE)
            snprintf(node->label, sizeof(node->label), "%s", labels[node->kind]);
        else
            snprintf(node->label, sizeof(node->label), "%s%d", labels[node->kind], node->number);
        new_number[topo->place[i].added] = i;
    }
}

static void remap(struct hoop_topo *topo, const int *new_number)
{
    for (int i = 0; i < topo->nodes; i++) {
        struct hoop_topo_node *node = &topo->place[i].node;

        node->parent = node->parent < 0 ? -1 : new_number[node->parent];
        node->uplink = -1;
    }
    for (int i = 0; i < topo->links; i++) {
        struct hoop_topo_link *link = &topo->link[i];
        const int a = new_number[link->a], b = new_number[link->b];

        link->a = a < b ? a : b;
        link->b = a < b ? b : a;
    }
    for (int i = 0; i < topo->accesses; i++) {
        topo->access[i].a = new_number[topo->access[i].a];
        topo->access[i].b = new_number[topo->access[i].b];
    }
    for (int i = 0; i < topo->gids; i++)
        topo->gid[i].node = new_number[topo->gid[i].node];
}

static void find_uplinks(struct hoop_topo *topo)
{
    for (int i = 0; i < topo->links; i++) {
        const struct hoop_topo_link *link = &topo->link[i];

        if (link->kind >= HOOP_TOPO_LINK_NVLINK)
            continue;
        if (topo->place[link->b].node.parent == link->a)
            topo->place[link->b].node.uplink = i;
        else if (topo->place[link->a].node.parent == link->b)
            topo->place[link->a].node.uplink = i;
    }
}

/* ---- digest: FNV-1a over fixed-size words, so that no two fields can run into each other ---- */

static uint64_t mix(uint64_t digest, uint64_t word)
{
    for (int i = 0; i < 8; i++) {
        digest ^= word >> (8 * i) & 0xff;
        digest *= 0x100000001b3u;
    }
    return digest;
}

static uint64_t mix_set(uint64_t digest, hwloc_const_bitmap_t set)
{
    const int last = hwloc_bitmap_last(set); /* -1: empty or without end */

    digest = mix(digest, (uint64_t)last);
    for (int i = hwloc_bitmap_first(set); i >= 0 && i <= last; i = hwloc_bitmap_next(set, i))
        digest = mix(digest, (uint64_t)i);
    return digest;
}

static uint64_t mix_fact(uint64_t digest, const struct hoop_topo_fact *fact)
{
    return mix(digest, fact->source == HOOP_TOPO_UNKNOWN ? UINT64_MAX : (uint64_t)(fact->value * 1000));
}

static uint64_t digest_of(const struct hoop_topo *topo)
{
    uint64_t digest = 0xcbf29ce484222325u;

    for (int i = 0; i < topo->nodes; i++) {
        const struct hoop_topo_node *node = &topo->place[i].node;

        digest = mix(digest, (uint64_t)node->kind << 32 | (uint32_t)node->number);
        digest = mix(digest, (uint64_t)node->parent);
        digest = mix(digest, bus_key(&node->bus));
        digest = mix(digest, (uint64_t)node->vendor << 32 | (uint64_t)node->device << 16 | node->pci_class);
        digest = mix(digest, node->rdma);
        digest = mix_set(digest, topo->place[i].cpus);
        digest = mix_set(digest, topo->place[i].numas);
    }
    for (int i = 0; i < topo->links; i++) {
        const struct hoop_topo_link *link = &topo->link[i];

        digest = mix(digest, (uint64_t)link->kind);
        digest = mix(digest, (uint64_t)link->a << 32 | (uint32_t)link->b);
        if (link->current)
            continue;
        digest = mix_fact(digest, &link->width);
        digest = mix_fact(digest, &link->gigatransfers);
        digest = mix_fact(digest, &link->count);
        digest = mix_fact(digest, &link->gigabytes_per_second);
        digest = mix_fact(digest, &link->nanoseconds);
    }
    return digest == 0 ? 1 : digest;
}

enum hoop_status hoop_topo_seal(struct hoop_topo *topo)
{
    int *new_number = hoop_calloc((size_t)topo->nodes, sizeof(*new_number));

    if (new_number == NULL)
        return HOOP_ERR_MEMORY;
    qsort(topo->place, (size_t)topo->nodes, sizeof(*topo->place), compare_places);
    number_nodes(topo, new_number);
    remap(topo, new_number);
    hoop_free(new_number);
    if (topo->links > 0)
        qsort(topo->link, (size_t)topo->links, sizeof(*topo->link), compare_links);
    if (topo->gids > 0)
        qsort(topo->gid, (size_t)topo->gids, sizeof *topo->gid, compare_gids);
    find_uplinks(topo);
    topo->digest = digest_of(topo);
    return HOOP_OK;
}

/* ---- look-up ---- */

bool hoop_topo_same_bus(const struct hoop_topo_bus *a, const struct hoop_topo_bus *b)
{
    return a->known == b->known && a->domain == b->domain && a->bus == b->bus && a->device == b->device &&
           a->function == b->function;
}

static int find_bus(const struct hoop_topo *topo, const struct hoop_topo_bus *bus, enum hoop_topo_kind least)
{
    for (int i = 0; i < topo->nodes; i++)
        if (topo->place[i].node.kind >= least && topo->place[i].node.bus.known &&
            hoop_topo_same_bus(&topo->place[i].node.bus, bus))
            return i;
    return -1;
}

int hoop_topo_at_bus(const struct hoop_topo *topo, const struct hoop_topo_bus *bus)
{
    return find_bus(topo, bus, HOOP_TOPO_GPU);
}

int hoop_topo_at_bus_any(const struct hoop_topo *topo, const struct hoop_topo_bus *bus)
{
    return find_bus(topo, bus, HOOP_TOPO_PCI_BRIDGE);
}

const char *hoop_topo_origin(const struct hoop_topo *topo)
{
    return topo == NULL ? "" : topo->origin;
}

const char *hoop_topo_note(const struct hoop_topo *topo, int i)
{
    return topo != NULL && i >= 0 && i < topo->notes ? topo->note[i] : NULL;
}

const struct hoop_topo_node *hoop_topo_node(const struct hoop_topo *topo, int i)
{
    return topo != NULL && i >= 0 && i < topo->nodes ? &topo->place[i].node : NULL;
}

const struct hoop_topo_link *hoop_topo_link(const struct hoop_topo *topo, int i)
{
    return topo != NULL && i >= 0 && i < topo->links ? &topo->link[i] : NULL;
}

int hoop_topo_count(const struct hoop_topo *topo, enum hoop_topo_kind kind)
{
    int count = 0;

    for (int i = 0; topo != NULL && i < topo->nodes; i++)
        count += topo->place[i].node.kind == kind;
    return count;
}

int hoop_topo_find(const struct hoop_topo *topo, enum hoop_topo_kind kind, int number)
{
    for (int i = 0; topo != NULL && i < topo->nodes; i++)
        if (topo->place[i].node.kind == kind && topo->place[i].node.number == number)
            return i;
    return -1;
}

uint64_t hoop_topo_digest(const struct hoop_topo *topo)
{
    return topo == NULL ? 0 : topo->digest;
}

const char *hoop_topo_kind_name(enum hoop_topo_kind kind)
{
    static const char *const names[HOOP_TOPO_KINDS] = {
        "machine", "package", "NUMA node", "host bridge", "PCI bridge", "GPU", "NIC", "fabric switch", "PCI device"};

    return kind < HOOP_TOPO_KINDS ? names[kind] : "?";
}

const char *hoop_topo_link_name(enum hoop_topo_link_kind kind)
{
    static const char *const names[HOOP_TOPO_LINK_KINDS] = {"socket", "memory", "host", "PCI",
                                                            "NVLink", "XGMI",   "C2C",  "peer access"};

    return kind < HOOP_TOPO_LINK_KINDS ? names[kind] : "?";
}

const char *hoop_topo_source_name(enum hoop_topo_source source)
{
    static const char *const names[HOOP_TOPO_SOURCES] = {"unknown",     "hwloc", "hwloc XML", "synthetic", "device id",
                                                         "CUDA driver", "NVML",  "NCCL XML",  "sysfs",     "override"};

    return source < HOOP_TOPO_SOURCES ? names[source] : "?";
}
