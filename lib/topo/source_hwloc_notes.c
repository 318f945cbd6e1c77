// SPDX-License-Identifier: BSD-3-Clause
/* What hoop notes in XML of hwloc (write_hwloc.c): info attributes "hoop.…", which go over what hwloc itself can hold. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/facts.h"
#include "topo/source_hwloc.h"

struct notes {
    struct hoop_topo *topo;
    struct name {
        uint64_t gp;
        int node;
    } * name; /* nodes by the number that hwloc's object has in the file */
    int names;
};

static int node_of(hwloc_obj_t object)
{
    return (int)(intptr_t)object->userdata - 1;
}

static enum hoop_status wrong(const char *note, const char *value)
{
    return hoop_fail(HOOP_ERR_ARG,
                     "XML of hwloc: the info attribute %s=\"%.60s\" cannot be; lstopo of another machine's file may "
                     "have kept it: write the file anew with hoop-topo --export hwloc",
                     note, value);
}

enum { MALFORMED = -1, ABSENT = -2 };

/* The node whose object has that number; ABSENT: hwloc has left it out. *text moves behind it and a bar. */
static int take_node(const struct notes *notes, const char **text)
{
    char *end;
    const uint64_t gp = strtoull(*text, &end, 10);

    if (end == *text || (*end != '|' && *end != '\0'))
        return MALFORMED;
    *text = end + (*end == '|');
    for (int i = 0; i < notes->names; i++)
        if (notes->name[i].gp == gp)
            return notes->name[i].node;
    return ABSENT;
}

/* The text up to the next bar, into word; *text moves behind it. False: too long. */
static bool take_word(const char **text, char *word, size_t size)
{
    const size_t length = strcspn(*text, "|");

    if (length >= size)
        return false;
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length + ((*text)[length] == '|');
    return true;
}

static const struct hoop_fact_name *find_fact(const struct hoop_fact_name *facts, int count, const char *name,
                                              size_t length)
{
    for (int i = 0; i < count; i++)
        if (strlen(facts[i].name) == length && strncmp(facts[i].name, name, length) == 0)
            return &facts[i];
    return NULL;
}

/* "NVLink|17|NVML|0|count=4 NVML|…" */
static enum hoop_status take_link(const struct notes *notes, int node, const char *value)
{
    struct hoop_topo_link link = {.a = node};
    const char *text = value;
    char word[96];

    const int kind =
        take_word(&text, word, sizeof word) ? hoop_fact_named(word, HOOP_TOPO_LINK_KINDS, hoop_fact_link) : -1;
    link.b = take_node(notes, &text);
    const int source =
        take_word(&text, word, sizeof word) ? hoop_fact_named(word, HOOP_TOPO_SOURCES, hoop_fact_source) : -1;
    if (link.b == ABSENT)
        return HOOP_OK;
    if (kind < 0 || link.b < 0 || link.b == node || source < 0 || !take_word(&text, word, sizeof word))
        return wrong("hoop.to", value);
    link.kind = (enum hoop_topo_link_kind)kind;
    link.source = (enum hoop_topo_source)source;
    link.current = strcmp(word, "1") == 0;
    while (*text != '\0') {
        const size_t length = strcspn(text, "=|");
        const struct hoop_fact_name *fact = find_fact(hoop_link_facts, HOOP_LINK_FACTS, text, length);

        if (text[length] != '=' || !take_word(&text, word, sizeof word) || fact == NULL ||
            !hoop_fact_parse(word + length + 1, fact, hoop_fact_of(&link, fact)))
            return wrong("hoop.to", value);
    }
    return hoop_topo_join(notes->topo, &link);
}

/* "17|OK|OK|NS|NS|CNS" */
static enum hoop_status take_access(const struct notes *notes, int node, const char *value)
{
    const char *text = value;
    struct hoop_topo_access access = {.a = node, .b = take_node(notes, &text)};
    char word[16];

    if (access.b == ABSENT)
        return HOOP_OK;
    if (access.b < 0 || access.b == node)
        return wrong("hoop.access", value);
    for (int way = 0; way < HOOP_TOPO_PEER_WAYS; way++) {
        const int peer =
            take_word(&text, word, sizeof word) ? hoop_fact_named(word, HOOP_TOPO_PEERS, hoop_fact_peer) : -1;

        if (peer < 0)
            return wrong("hoop.access", value);
        access.way[way] = (uint8_t)peer;
    }
    return hoop_topo_add_access(notes->topo, &access);
}

/* "1|3|fe80…|RoCE v2|eth0" */
static enum hoop_status take_gid(const struct notes *notes, int node, const char *value)
{
    struct hoop_topo_gid gid = {.node = node};
    char word[5][128];
    const char *text = value;

    for (int i = 0; i < 5; i++)
        if (!take_word(&text, word[i], sizeof word[i]))
            return wrong("hoop.gid", value);
    const long port = strtol(word[0], NULL, 10), index = strtol(word[1], NULL, 10);
    gid.port = (int)port;
    gid.index = (int)index;
    gid.type = hoop_gid_type(word[3]);
    gid.interface = word[4];
    if (port < 1 || port > 255 || index < 0 || index > 65535 || !hoop_gid_parse(word[2], gid.gid))
        return wrong("hoop.gid", value);
    return hoop_topo_add_gid(notes->topo, &gid);
}

/* The link to the parent, before sealing; NULL: there is none. */
static struct hoop_topo_link *way_up(struct hoop_topo *topo, int node)
{
    for (int i = 0; i < topo->links; i++)
        if (topo->link[i].b == node && topo->link[i].a == topo->place[node].node.parent &&
            topo->link[i].kind < HOOP_TOPO_LINK_NVLINK)
            return &topo->link[i];
    return NULL;
}

/* A device hangs on that machine, package or NUMA node; below a bridge it stays. */
static enum hoop_status take_parent(const struct notes *notes, int node, const char *value)
{
    struct hoop_topo_node *here = &notes->topo->place[node].node;
    struct hoop_topo_link *up = way_up(notes->topo, node);
    const char *text = value;
    const int parent = take_node(notes, &text);

    if (parent == here->parent || parent == ABSENT)
        return HOOP_OK;
    if (parent < 0 || here->kind < HOOP_TOPO_HOST_BRIDGE || here->parent < 0 ||
        notes->topo->place[parent].node.kind >= HOOP_TOPO_HOST_BRIDGE ||
        notes->topo->place[here->parent].node.kind >= HOOP_TOPO_HOST_BRIDGE)
        return wrong("hoop.parent", value);
    here->parent = parent;
    if (up != NULL)
        up->a = parent;
    return HOOP_OK;
}

static enum hoop_status take_text(struct hoop_topo *topo, const char **to, const char *value)
{
    const char *kept = hoop_topo_keep_text(topo, value);

    if (kept == NULL)
        return HOOP_ERR_MEMORY;
    *to = kept;
    return HOOP_OK;
}

/* Words and texts of a node. *known: the note is one of those. */
static enum hoop_status take_identity(struct hoop_topo *topo, struct hoop_topo_place *place, const char *name,
                                      const char *value, bool *known)
{
    struct hoop_topo_node *node = &place->node;
    const struct {
        const char *name;
        const char **to;
    } texts[] = {{"name", &node->name},
                 {"names", &node->names},
                 {"model", &node->model},
                 {"arch", &node->cpu.arch},
                 {"vendor", &node->cpu.vendor}};
    const struct {
        const char *name;
        bool *to;
    } flags[] = {{"rdma", &node->rdma}, {"virtual_function", &node->virtual_function}, {"adrift", &place->adrift}};
    const struct {
        const char *name;
        int *to;
    } numbers[] = {{"listed", &node->listed}, {"family", &node->cpu.family}, {"cpu_model", &node->cpu.model}};

    *known = true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(name, texts[i].name) == 0)
            return take_text(topo, texts[i].to, value);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(name, flags[i].name) == 0) {
            *flags[i].to = strcmp(value, "1") == 0;
            return HOOP_OK;
        }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(name, numbers[i].name) == 0) {
            const long number = strtol(value, NULL, 10);

            *numbers[i].to = number > 0 && number < 1 << 20 ? (int)number : 0;
            return HOOP_OK;
        }
    *known = false;
    return HOOP_OK;
}

static enum hoop_status take_kind(struct hoop_topo_node *node, const char *value)
{
    const int kind = hoop_fact_named(value, HOOP_TOPO_KINDS, hoop_fact_kind);

    if (kind == (int)node->kind)
        return HOOP_OK;
    if (kind < HOOP_TOPO_GPU || node->kind < HOOP_TOPO_GPU)
        return wrong("hoop.kind", value);
    node->kind = (enum hoop_topo_kind)kind;
    return HOOP_OK;
}

static enum hoop_status take_set(hwloc_bitmap_t set, const char *name, const char *value)
{
    return hwloc_bitmap_sscanf(set, value) == 0 && (hwloc_bitmap_last(set) >= 0 || hwloc_bitmap_iszero(set))
               ? HOOP_OK
               : wrong(name, value);
}

/* A word of the link upwards, or a fact of the node or of that link. */
static enum hoop_status take_fact(struct hoop_topo *topo, int node, const char *name, const char *value)
{
    const struct hoop_fact_name *of_node = find_fact(hoop_node_facts, HOOP_NODE_FACTS, name, strlen(name)),
                                *of_link = find_fact(hoop_link_facts, HOOP_LINK_FACTS, name, strlen(name));
    struct hoop_topo_link *up = way_up(topo, node);
    int number = -1;

    if (of_node != NULL)
        return hoop_fact_parse(value, of_node, hoop_fact_of(&topo->place[node].node, of_node)) ? HOOP_OK
                                                                                               : wrong(name, value);
    if (up == NULL)
        return HOOP_OK;
    if (of_link != NULL)
        return hoop_fact_parse(value, of_link, hoop_fact_of(up, of_link)) ? HOOP_OK : wrong(name, value);
    if (strcmp(value, "none") == 0) {
        topo->links--;
        memmove(up, up + 1, (size_t)(topo->link + topo->links - up) * sizeof *up);
    } else if (strcmp(name, "current") == 0) {
        up->current = strcmp(value, "1") == 0;
    } else if (strcmp(name, "link") == 0) {
        number = hoop_fact_named(value, HOOP_TOPO_LINK_NVLINK, hoop_fact_link);
        up->kind = number < 0 ? up->kind : (enum hoop_topo_link_kind)number;
    } else if (strcmp(name, "link_source") == 0) {
        number = hoop_fact_named(value, HOOP_TOPO_SOURCES, hoop_fact_source);
        up->source = number < 0 ? up->source : (enum hoop_topo_source)number;
    }
    return HOOP_OK; /* others are a later hoop's */
}

static enum hoop_status take_note(const struct notes *notes, int node, const char *name, const char *value)
{
    struct hoop_topo_place *place = &notes->topo->place[node];
    bool known;

    if (strcmp(name, "to") == 0)
        return take_link(notes, node, value);
    if (strcmp(name, "access") == 0)
        return take_access(notes, node, value);
    if (strcmp(name, "gid") == 0)
        return take_gid(notes, node, value);
    if (strcmp(name, "parent") == 0)
        return take_parent(notes, node, value);
    if (strcmp(name, "kind") == 0)
        return take_kind(&place->node, value);
    if (strcmp(name, "cpus") == 0)
        return take_set(place->cpus, name, value);
    if (strcmp(name, "numas") == 0)
        return take_set(place->numas, name, value);
    if (strcmp(name, "remark") == 0)
        return hoop_topo_remark(notes->topo, "%s", value);
    if (strcmp(name, "nameless") == 0) {
        place->node.name = place->node.names = "";
        return HOOP_OK;
    }
    if (strcmp(name, "switches") == 0) {
        notes->topo->switches = strcmp(value, "1") == 0;
        return HOOP_OK;
    }
    if (strcmp(name, "source") == 0) {
        const int source = hoop_fact_named(value, HOOP_TOPO_SOURCES, hoop_fact_source);

        place->node.source = source < 0 ? place->node.source : (enum hoop_topo_source)source;
        return HOOP_OK;
    }
    const enum hoop_status status = take_identity(notes->topo, place, name, value, &known);
    return known ? status : take_fact(notes->topo, node, name, value);
}

/* What is done with an object that is a node. */
typedef enum hoop_status visit(struct notes *notes, hwloc_obj_t object);

static enum hoop_status walk(struct notes *notes, hwloc_obj_t object, visit *see)
{
    hwloc_obj_t const below[] = {object->memory_first_child, object->first_child, object->io_first_child};
    enum hoop_status status = node_of(object) >= 0 ? see(notes, object) : HOOP_OK;

    for (int i = 0; i < 3; i++)
        for (hwloc_obj_t child = below[i]; child != NULL && status == HOOP_OK; child = child->next_sibling)
            status = walk(notes, child, see);
    return status;
}

static enum hoop_status count(struct notes *notes, hwloc_obj_t object)
{
    if (notes->names < notes->topo->nodes)
        notes->name[notes->names++] = (struct name){object->gp_index, node_of(object)};
    return HOOP_OK;
}

static enum hoop_status take_all(struct notes *notes, hwloc_obj_t object)
{
    enum hoop_status status = HOOP_OK;

    for (unsigned i = 0; i < object->infos_count && status == HOOP_OK; i++)
        if (strncmp(object->infos[i].name, "hoop.", 5) == 0)
            status = take_note(notes, node_of(object), object->infos[i].name + 5, object->infos[i].value);
    return status;
}

bool hoop_hwloc_noted(hwloc_topology_t hwloc, const char *word)
{
    const char *form = hwloc_obj_get_info_by_name(hwloc_get_root_obj(hwloc), "hoop.form");

    return form != NULL && strstr(form, word) != NULL;
}

enum hoop_status hoop_hwloc_take_notes(struct hoop_topo *topo, hwloc_topology_t hwloc)
{
    struct notes notes = {.topo = topo, .name = hoop_calloc((size_t)topo->nodes, sizeof *notes.name)};

    if (notes.name == NULL)
        return HOOP_ERR_MEMORY;
    enum hoop_status status = walk(&notes, hwloc_get_root_obj(hwloc), count);
    if (status == HOOP_OK)
        status = walk(&notes, hwloc_get_root_obj(hwloc), take_all);
    hoop_free(notes.name);
    if (hoop_hwloc_noted(hwloc, "cpus-made-up"))
        hwloc_bitmap_zero(topo->allowed);
    return status;
}
