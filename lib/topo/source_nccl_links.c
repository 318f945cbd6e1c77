// SPDX-License-Identifier: BSD-3-Clause
/* The fabric in topology files of NCCL and RCCL.
 *
 * Every GPU lists its links by the bus id at their other end, so a link between GPUs is told twice; where the two differ the
 * lesser number holds. Ends that the machine does not show (virtual machines) have the bus id fffffff:…, which NCCL takes for
 * an NVSwitch, and so do we. Speeds are not in the file: they follow from the GPU's device id. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/nccl.h"
#include "topo/xml.h"

enum { MOST_LINKS = 4096, MOST_COUNT = 64 };
enum { CLASS_NVSWITCH = 0x068000, CLASS_CPU = 0x068001 };

long hoop_nccl_number(const char *const *attributes, const char *attribute, long least, long most, long otherwise)
{
    const char *text = hoop_xml_value(attributes, attribute);
    char *end;

    if (text == NULL || *text == '\0')
        return otherwise;
    const long value = strtol(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
    return *end != '\0' || value < least || value > most ? otherwise : value;
}

/* The entry for links from that node to that target, new if there is none. */
static struct hoop_nccl_link *entry_of(struct hoop_nccl_links *links, const struct hoop_nccl_link *like)
{
    for (int i = 0; i < links->links; i++) {
        struct hoop_nccl_link *link = &links->link[i];

        if (link->from == like->from && link->kind == like->kind && hoop_topo_same_bus(&link->to, &like->to))
            return link;
    }
    if (links->links == links->room) {
        const int room = links->room > 0 ? links->room * 2 : 64;
        struct hoop_nccl_link *bigger = hoop_realloc(links->link, (size_t)room, sizeof *bigger);
        if (bigger == NULL)
            return NULL;
        links->link = bigger;
        links->room = room;
    }
    links->link[links->links] = *like;
    return &links->link[links->links++];
}

enum hoop_status hoop_nccl_links_add(struct hoop_topo *topo, struct hoop_nccl_links *links, int from,
                                     enum hoop_topo_link_kind kind, const char *const *attributes)
{
    const char *target = hoop_xml_value(attributes, "target");
    struct hoop_nccl_link like = {
        .kind = kind, .from = from, .target_class = (uint32_t)hoop_nccl_number(attributes, "tclass", 0, 0xffffff, 0)};
    const int count = (int)hoop_nccl_number(attributes, "count", 1, MOST_COUNT, 0);

    if (count == 0 || target == NULL || links->links == MOST_LINKS)
        return hoop_topo_remark(topo,
                                "a link to %.40s is left out: it has no count from 1 to %d, or there are too many",
                                target == NULL ? "(no target)" : target, MOST_COUNT);
    if (strncmp(target, "fffffff:", 8) == 0)
        like.target_class = CLASS_NVSWITCH;
    else if (!hoop_topo_parse_bus(target, &like.to))
        return hoop_topo_remark(topo, "a link is left out: its target %.40s is no bus id", target);
    struct hoop_nccl_link *entry = entry_of(links, &like);
    if (entry == NULL)
        return HOOP_ERR_MEMORY;
    entry->count = entry->count + count < MOST_COUNT ? entry->count + count : MOST_COUNT;
    return HOOP_OK;
}

/* The switch with that bus id, or the one that stands for all that are not shown; made where it is missing. */
static int switch_at(struct hoop_topo *topo, const struct hoop_topo_bus *bus)
{
    for (int i = 0; i < topo->nodes; i++)
        if (topo->place[i].node.kind == HOOP_TOPO_SWITCH && hoop_topo_same_bus(&topo->place[i].node.bus, bus))
            return i;
    const struct hoop_topo_node node = {.kind = HOOP_TOPO_SWITCH,
                                        .parent = 0,
                                        .source = HOOP_TOPO_NCCL_XML,
                                        .bus = *bus,
                                        .vendor = bus->known ? 0x10de : 0};
    const int added = hoop_topo_add(topo, &node, NULL, NULL);
    if (added >= 0)
        topo->place[added].adrift = true;
    return added;
}

static int numa_above(const struct hoop_topo *topo, int node)
{
    while (node >= 0 && topo->place[node].node.kind != HOOP_TOPO_NUMA)
        node = topo->place[node].node.parent;
    return node;
}

struct bus_text {
    char text[24];
};

static struct bus_text bus_text(const struct hoop_topo *topo, int node)
{
    const struct hoop_topo_bus *bus = &topo->place[node].node.bus;
    struct bus_text text;

    snprintf(text.text, sizeof text.text, "%04x:%02x:%02x.%x", bus->domain, bus->bus, bus->device, bus->function);
    return text;
}

enum { NONE = -1, NO_MEMORY = -2 };

/* The node at the other end; NONE: it is not in the file. */
static int other_end(struct hoop_topo *topo, const struct hoop_nccl_link *link)
{
    if (link->target_class == CLASS_CPU)
        return numa_above(topo, link->from);
    if (link->target_class == CLASS_NVSWITCH) {
        const int fabric = switch_at(topo, &link->to);
        return fabric < 0 ? NO_MEMORY : fabric;
    }
    const int at = hoop_topo_at_bus(topo, &link->to);
    if (at < 0 || (topo->place[at].node.kind != HOOP_TOPO_GPU && topo->place[at].node.kind != HOOP_TOPO_SWITCH))
        return NONE;
    return at;
}

/* The other GPU's account of the same links; NULL: it does not tell. */
static struct hoop_nccl_link *counterpart(const struct hoop_topo *topo, const struct hoop_nccl_links *links,
                                          const struct hoop_nccl_link *link)
{
    for (int i = 0; i < links->links; i++) {
        struct hoop_nccl_link *other = &links->link[i];

        if (other->kind == link->kind && hoop_topo_same_bus(&topo->place[other->from].node.bus, &link->to) &&
            hoop_topo_same_bus(&other->to, &topo->place[link->from].node.bus))
            return other;
    }
    return NULL;
}

static enum hoop_status join_one(struct hoop_topo *topo, const struct hoop_nccl_link *link, int to, int count)
{
    const struct hoop_topo_node *from = &topo->place[link->from].node;
    const uint16_t made = hoop_topo_gcn_device(from->model);
    const double rate = from->vendor != 0 || made == 0 ? hoop_topo_fabric_rate(from->vendor, from->device)
                                                       : hoop_topo_fabric_rate(0x1002, made);
    const struct hoop_topo_link join = {
        .kind = link->kind,
        .a = link->from,
        .b = to,
        .source = HOOP_TOPO_NCCL_XML,
        .count = {count, HOOP_TOPO_NCCL_XML},
        .gigabytes_per_second = {rate * count, rate > 0 ? HOOP_TOPO_DEVICE_ID : HOOP_TOPO_UNKNOWN}};

    return hoop_topo_join(topo, &join);
}

/* Links between two GPUs, which both tell of, or one. */
static enum hoop_status join_gpus(struct hoop_topo *topo, struct hoop_nccl_links *links,
                                  const struct hoop_nccl_link *link, int to)
{
    struct hoop_nccl_link *other = counterpart(topo, links, link);
    enum hoop_status status = HOOP_OK;

    if (other == NULL)
        return join_one(topo, link, to, link->count);
    other->used = true;
    if (other->count != link->count)
        status = hoop_topo_remark(topo, "%s: %d counted at one end, %d at the other (of %s): the lesser is taken",
                                  hoop_topo_link_name(link->kind), link->count, other->count, bus_text(topo, to).text);
    return status == HOOP_OK ? join_one(topo, link, to, other->count < link->count ? other->count : link->count)
                             : status;
}

enum hoop_status hoop_nccl_links_join(struct hoop_topo *topo, struct hoop_nccl_links *links)
{
    enum hoop_status status = HOOP_OK;

    for (int i = 0; i < links->links && status == HOOP_OK; i++) {
        const struct hoop_nccl_link *link = &links->link[i];
        const int to = link->used ? NONE : other_end(topo, link);

        if (link->used)
            continue;
        if (to == NO_MEMORY)
            return HOOP_ERR_MEMORY;
        if (to == link->from || to == NONE)
            status = hoop_topo_remark(topo, "%s: %d of GPU %s left out: %s", hoop_topo_link_name(link->kind),
                                      link->count, bus_text(topo, link->from).text,
                                      to == NONE ? "what is at the other end is not in the file"
                                                 : "the file gives that GPU itself as the other end");
        else if (topo->place[to].node.kind == HOOP_TOPO_GPU)
            status = join_gpus(topo, links, link, to);
        else
            status = join_one(topo, link, to, link->count);
    }
    return status;
}
