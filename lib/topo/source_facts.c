// SPDX-License-Identifier: BSD-3-Clause
/* The source "override": a text in which a person states single facts, which go over what all others say.
 *
 *     # the card is in the wrong slot, and the firmware does not tell where
 *     GPU0       numa 1
 *     GPU0       width 8
 *     mlx5_0     port_speed 25
 *     GPU0 GPU1  p2p no
 *     GPU2 GPU3  nvlink 4
 *
 * A line is a node (its label, bus id or name), or two of them, the name of a fact and its value. Rates in GB/s are stated last, whatever the
 * order of the lines, so that what follows from width and transfers does not hide them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/facts.h"

enum { MOST_WORDS = 4, MOST_DIGITS = 15 };

struct facts {
    struct hoop_topo *topo;
    const char *name; /* of the text */
    int line;
    bool rates; /* the second time: only rates, which the first time leaves out */
};

static struct hoop_topo_node *at(const struct facts *facts, int i)
{
    return &facts->topo->place[i].node;
}

static enum hoop_status wrong(const struct facts *facts, const char *what, const char *cure)
{
    return hoop_fail(HOOP_ERR_ARG, "%s:%d: %s; %s", facts->name, facts->line, what, cure);
}

/* A statement "KEY VALUE" that cannot be. */
static enum hoop_status wrong_value(const struct facts *facts, const char *key, const char *value, const char *cure)
{
    char what[160];

    snprintf(what, sizeof what, "%.40s cannot be \"%.60s\"", key, value);
    return wrong(facts, what, cure);
}

/* "12.5", without asking the locale; false: no such number. */
static bool read_number(const char *text, double *value)
{
    double digit = 1;
    int digits = 0;

    *value = 0;
    for (; isdigit((unsigned char)*text) && digits < MOST_DIGITS; text++, digits++)
        *value = *value * 10 + (*text - '0');
    if (digits > 0 && *text == '.')
        for (text++; isdigit((unsigned char)*text) && digits < MOST_DIGITS; text++, digits++)
            *value += (*text - '0') * (digit /= 10);
    return digits > 0 && *text == '\0';
}

/* Is the word one of the names, which commas part? */
static bool among(const char *names, const char *word)
{
    const size_t length = strlen(word);

    for (const char *found = names; (found = strstr(found, word)) != NULL; found++)
        if ((found == names || found[-1] == ',') && (found[length] == ',' || found[length] == '\0'))
            return true;
    return false;
}

/* The node of that label, bus id or name; -1: none. */
static int find_node(const struct facts *facts, const char *word)
{
    struct hoop_topo_bus bus = {.known = false};

    for (int i = 0; i < facts->topo->nodes; i++)
        if (strcmp(at(facts, i)->label, word) == 0)
            return i;
    if (hoop_topo_parse_bus(word, &bus))
        return hoop_topo_at_bus_any(facts->topo, &bus);
    for (int i = 0; i < facts->topo->nodes; i++)
        if (at(facts, i)->kind >= HOOP_TOPO_GPU && among(at(facts, i)->names, word))
            return i;
    return -1;
}

static enum hoop_status no_node(const struct facts *facts, const char *word)
{
    char what[96];

    snprintf(what, sizeof what, "there is no \"%.60s\"", word);
    return wrong(facts, what, "hoop-topo --tree shows labels, bus ids and names");
}

/* ---- where a device is ---- */

static int numa_of_number(const struct facts *facts, double number)
{
    for (int i = 0; i < facts->topo->nodes; i++)
        if (at(facts, i)->kind == HOOP_TOPO_NUMA && at(facts, i)->number == number)
            return i;
    return -1;
}

/* Is a node the other or below it? */
static bool is_below(const struct facts *facts, int node, int above)
{
    while (node >= 0 && node != above)
        node = at(facts, node)->parent;
    return node == above;
}

/* The branch of the PCI tree that a device is on, up to the host bridge, is near a NUMA node; it hangs there if it hung on CPUs before. */
static enum hoop_status set_numa(const struct facts *facts, int node, const char *value)
{
    double number = -1;
    const int numa = read_number(value, &number) ? numa_of_number(facts, number) : -1;
    int branch = node;

    if (numa < 0)
        return wrong_value(facts, "numa", value, "it is the number of a NUMA node that the machine has");
    if (at(facts, node)->kind < HOOP_TOPO_HOST_BRIDGE)
        return wrong(facts, "numa is of a device or bridge", "name one, such as GPU0 or Host0");
    while (at(facts, branch)->parent >= 0 && at(facts, at(facts, branch)->parent)->kind == HOOP_TOPO_PCI_BRIDGE)
        branch = at(facts, branch)->parent;
    if (at(facts, at(facts, branch)->parent)->kind < HOOP_TOPO_HOST_BRIDGE) {
        if (at(facts, branch)->uplink >= 0)
            facts->topo->link[at(facts, branch)->uplink].a = numa; /* a NUMA node comes before devices */
        at(facts, branch)->parent = numa;
    }
    for (int i = 0; i < facts->topo->nodes; i++)
        if (is_below(facts, i, branch) &&
            (hwloc_bitmap_copy(facts->topo->place[i].cpus, facts->topo->place[numa].cpus) != 0 ||
             hwloc_bitmap_copy(facts->topo->place[i].numas, facts->topo->place[numa].numas) != 0))
            return hoop_fail(HOOP_ERR_MEMORY, "no memory for a set of CPUs");
    return HOOP_OK;
}

/* ---- facts with a value ---- */

static enum hoop_status set_fact(const struct facts *facts, void *of, const struct hoop_fact_name *name,
                                 const char *value)
{
    double number;
    char cure[64];

    snprintf(cure, sizeof cure, "it is a number from 0 to %.15g", name->most);
    if (!read_number(value, &number) || number > name->most)
        return wrong_value(facts, name->name, value, cure);
    *hoop_fact_of(of, name) = (struct hoop_topo_fact){number, HOOP_TOPO_OVERRIDE};
    return HOOP_OK;
}

/* The kinds of nodes that have the facts of hoop_node_facts, in that order. */
static bool has_fact(enum hoop_topo_kind kind, int fact)
{
    static const unsigned kinds[HOOP_NODE_FACTS] = {
        1u << HOOP_TOPO_MACHINE | 1u << HOOP_TOPO_NUMA,
        1u << HOOP_TOPO_GPU,
        1u << HOOP_TOPO_GPU | 1u << HOOP_TOPO_NIC,
        1u << HOOP_TOPO_NIC,
        1u << HOOP_TOPO_NIC,
        1u << HOOP_TOPO_NIC,
        1u << HOOP_TOPO_PCI_BRIDGE | 1u << HOOP_TOPO_GPU | 1u << HOOP_TOPO_NIC | 1u << HOOP_TOPO_SWITCH |
            1u << HOOP_TOPO_PCI_DEVICE,
        1u << HOOP_TOPO_PCI_BRIDGE | 1u << HOOP_TOPO_GPU | 1u << HOOP_TOPO_NIC | 1u << HOOP_TOPO_SWITCH |
            1u << HOOP_TOPO_PCI_DEVICE,
    };

    return kinds[fact] >> kind & 1;
}

static bool is_rate(const char *key)
{
    return strcmp(key, "gigabytes_per_second") == 0;
}

/* A fact of a link. What PCI carries follows from its lanes. */
static enum hoop_status set_link_fact(const struct facts *facts, struct hoop_topo_link *link, const char *key,
                                      const char *value, bool *known)
{
    *known = false;
    for (int i = 0; i < HOOP_LINK_FACTS; i++) {
        if (strcmp(key, hoop_link_facts[i].name) != 0)
            continue;
        *known = true;
        if (is_rate(key) != facts->rates)
            return HOOP_OK;
        link->current = false;
        const enum hoop_status status = set_fact(facts, link, &hoop_link_facts[i], value);
        if (status == HOOP_OK && link->kind == HOOP_TOPO_LINK_PCI && !facts->rates &&
            link->width.source != HOOP_TOPO_UNKNOWN && link->gigatransfers.source != HOOP_TOPO_UNKNOWN &&
            (link->width.source == HOOP_TOPO_OVERRIDE || link->gigatransfers.source == HOOP_TOPO_OVERRIDE))
            link->gigabytes_per_second = (struct hoop_topo_fact){
                link->width.value * hoop_topo_pci_lane(link->gigatransfers.value), HOOP_TOPO_OVERRIDE};
        return status;
    }
    return HOOP_OK;
}

static enum hoop_status set_one(const struct facts *facts, int node, const char *key, const char *value)
{
    char what[128];
    bool known = false;

    if (strcmp(key, "numa") == 0)
        return facts->rates ? HOOP_OK : set_numa(facts, node, value);
    for (int i = 0; i < HOOP_NODE_FACTS; i++)
        if (strcmp(key, hoop_node_facts[i].name) == 0 && has_fact(at(facts, node)->kind, i))
            return facts->rates ? HOOP_OK : set_fact(facts, at(facts, node), &hoop_node_facts[i], value);
    if (at(facts, node)->uplink >= 0 && strcmp(key, "count") != 0) {
        const enum hoop_status status =
            set_link_fact(facts, &facts->topo->link[at(facts, node)->uplink], key, value, &known);

        if (known)
            return status;
    }
    snprintf(what, sizeof what, "%s has no fact \"%.40s\"", at(facts, node)->label, key);
    return wrong(facts, what,
                 "facts are numa, memory, memory_numa, ordinal, port_speed, iommu_group, acs_redirect, and of its link "
                 "width, gigatransfers, "
                 "gigabytes_per_second, nanoseconds");
}

/* ---- facts of a pair ---- */

/* The link of a kind between the two, or, with HOOP_TOPO_LINK_KINDS, the first of any kind that says something of the way; -1: none. */
static int find_link(const struct facts *facts, int a, int b, enum hoop_topo_link_kind kind)
{
    for (int i = 0; i < facts->topo->links; i++) {
        const struct hoop_topo_link *link = &facts->topo->link[i];
        const bool fits = kind == HOOP_TOPO_LINK_KINDS ? link->kind != HOOP_TOPO_LINK_PEER : link->kind == kind;

        if (fits && ((link->a == a && link->b == b) || (link->a == b && link->b == a)))
            return i;
    }
    return -1;
}

static void remove_link(struct hoop_topo *topo, int i)
{
    topo->links--;
    memmove(&topo->link[i], &topo->link[i + 1], (size_t)(topo->links - i) * sizeof *topo->link);
    for (int node = 0; node < topo->nodes; node++)
        topo->place[node].node.uplink -= topo->place[node].node.uplink > i;
}

/* So many links of a fabric side by side; 0: none. */
static enum hoop_status set_fabric(const struct facts *facts, int a, int b, enum hoop_topo_link_kind kind,
                                   const char *value)
{
    const struct hoop_topo_node *gpu = at(facts, at(facts, a)->kind == HOOP_TOPO_GPU ? a : b);
    double count;

    if (gpu->kind != HOOP_TOPO_GPU ||
        (at(facts, a)->kind != at(facts, b)->kind &&
         at(facts, at(facts, a)->kind == HOOP_TOPO_GPU ? b : a)->kind != HOOP_TOPO_SWITCH))
        return wrong(facts, "links of a GPU fabric join two GPUs, or a GPU and a switch of the fabric", "name such");
    if (!read_number(value, &count) || count > 64 || count != (int)count)
        return wrong_value(facts, hoop_topo_link_name(kind), value, "it is how many are side by side, 0 to 64");
    const int old = find_link(facts, a, b, kind);
    if (old >= 0)
        remove_link(facts->topo, old);
    if (count == 0)
        return HOOP_OK;
    const double rate = count * hoop_topo_fabric_rate(gpu->vendor, gpu->device);
    return hoop_topo_join(
        facts->topo,
        &(struct hoop_topo_link){.kind = kind,
                                 .a = a < b ? a : b,
                                 .b = a < b ? b : a,
                                 .source = HOOP_TOPO_OVERRIDE,
                                 .count = {count, HOOP_TOPO_OVERRIDE},
                                 .gigabytes_per_second = {rate, rate > 0 ? HOOP_TOPO_DEVICE_ID : HOOP_TOPO_UNKNOWN}});
}

/* What the driver says of a's access to b, made if it says nothing. */
static enum hoop_status state_access(struct hoop_topo *topo, int a, int b, bool reached)
{
    struct hoop_topo_access new = {.a = a, .b = b};
    struct hoop_topo_access *access = &new;

    for (int i = 0; i < topo->accesses; i++)
        if (topo->access[i].a == a && topo->access[i].b == b)
            access = &topo->access[i];
    for (int way = 0; way < HOOP_TOPO_PEER_WAYS; way++)
        if (!reached)
            access->way[way] = HOOP_TOPO_PEER_UNSUPPORTED;
    if (reached)
        access->way[HOOP_TOPO_PEER_READ] = access->way[HOOP_TOPO_PEER_WRITE] = HOOP_TOPO_PEER_OK;
    return access == &new ? hoop_topo_add_access(topo, &new) : HOOP_OK;
}

static enum hoop_status set_peers(const struct facts *facts, int a, int b, const char *value)
{
    const bool reached = strcmp(value, "yes") == 0;
    const int old = find_link(facts, a, b, HOOP_TOPO_LINK_PEER);
    const struct hoop_topo_link link = {
        .kind = HOOP_TOPO_LINK_PEER, .a = a < b ? a : b, .b = a < b ? b : a, .source = HOOP_TOPO_OVERRIDE};
    enum hoop_status status = HOOP_OK;

    if (!reached && strcmp(value, "no") != 0)
        return wrong_value(facts, "p2p", value, "it is yes or no");
    if (at(facts, a)->kind != HOOP_TOPO_GPU || at(facts, b)->kind != HOOP_TOPO_GPU)
        return wrong(facts, "p2p is between two GPUs", "name two, such as GPU0 GPU1");
    if (old >= 0)
        remove_link(facts->topo, old);
    if (reached)
        status = hoop_topo_join(facts->topo, &link);
    if (status == HOOP_OK)
        status = state_access(facts->topo, a, b, reached);
    return status == HOOP_OK ? state_access(facts->topo, b, a, reached) : status;
}

static enum hoop_status set_pair(const struct facts *facts, int a, int b, const char *key, const char *value)
{
    const int link = find_link(facts, a, b, HOOP_TOPO_LINK_KINDS);
    char what[160];
    bool known = false;

    if (a == b)
        return wrong(facts, "the two are one", "name two");
    if (strcmp(key, "p2p") == 0)
        return facts->rates ? HOOP_OK : set_peers(facts, a, b, value);
    if (strcmp(key, "nvlink") == 0 || strcmp(key, "xgmi") == 0)
        return facts->rates
                   ? HOOP_OK
                   : set_fabric(facts, a, b, key[0] == 'n' ? HOOP_TOPO_LINK_NVLINK : HOOP_TOPO_LINK_XGMI, value);
    if (link >= 0) {
        const enum hoop_status status = set_link_fact(facts, &facts->topo->link[link], key, value, &known);

        if (known)
            return status;
    }
    snprintf(what, sizeof what, "%s and %s have no fact \"%.40s\"", at(facts, a)->label, at(facts, b)->label, key);
    return wrong(facts, what,
                 "facts of a pair are p2p, nvlink, xgmi, and where a link joins the two, gigabytes_per_second and "
                 "nanoseconds");
}

/* ---- the text ---- */

/* Cut a line into words; returns how many, at most one more than MOST_WORDS. */
static int cut(char *line, char **word)
{
    int words = 0;

    line[strcspn(line, "#")] = '\0';
    for (char *rest = line, *next; (next = strtok_r(rest, " \t\r", &rest)) != NULL; words++) {
        if (words == MOST_WORDS)
            return MOST_WORDS + 1;
        word[words] = next;
    }
    return words;
}

static enum hoop_status take_line(const struct facts *facts, char *line)
{
    char *word[MOST_WORDS];
    const int words = cut(line, word);
    int node[2];

    if (words == 0)
        return HOOP_OK;
    if (words < 3 || words > 4)
        return wrong(facts, "no fact: it has too few words, or too many",
                     "a line is DEVICE FACT VALUE, or DEVICE DEVICE FACT VALUE");
    for (int i = 0; i < words - 2; i++)
        if ((node[i] = find_node(facts, word[i])) < 0)
            return no_node(facts, word[i]);
    return words == 3 ? set_one(facts, node[0], word[1], word[2]) : set_pair(facts, node[0], node[1], word[2], word[3]);
}

/* All lines, for rates or for all else. */
static enum hoop_status take_lines(struct facts *facts, const char *text)
{
    enum hoop_status status = HOOP_OK;
    const size_t size = strlen(text) + 1;
    char *copy = hoop_calloc(size, 1);

    if (copy == NULL)
        return HOOP_ERR_MEMORY;
    memcpy(copy, text, size);
    facts->line = 0;
    for (char *rest = copy, *line; status == HOOP_OK && (line = strsep(&rest, "\n")) != NULL;) {
        facts->line++;
        status = take_line(facts, line);
    }
    hoop_free(copy);
    return status;
}

enum hoop_status hoop_topo_override_text(struct hoop_topo *topo, const char *text, const char *name)
{
    struct facts facts = {.topo = topo, .name = name};
    const size_t used = strlen(topo->origin);

    enum hoop_status status = take_lines(&facts, text);
    facts.rates = true;
    if (status == HOOP_OK)
        status = take_lines(&facts, text);
    if (status != HOOP_OK)
        return status;
    snprintf(topo->origin + used, sizeof topo->origin - used, "; facts of %.100s", name);
    for (int i = 0; i < topo->nodes; i++)
        topo->place[i].added = i;
    return hoop_topo_seal(topo);
}

enum hoop_status hoop_topo_override(struct hoop_topo *topo, const char *path)
{
    char *text = NULL;
    size_t size;

    if (topo == NULL || path == NULL)
        return hoop_fail(HOOP_ERR_ARG, "topology: no file name, or no topology to state facts of");
    enum hoop_status status = hoop_topo_read_text(path, &text, &size);
    if (status == HOOP_OK)
        status = hoop_topo_override_text(topo, text, path);
    hoop_free(text);
    return status;
}
