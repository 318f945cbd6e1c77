// SPDX-License-Identifier: BSD-3-Clause
/* Facts by name. */
#include "topo/facts.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define NODE(fact, most)                                   \
    {                                                      \
#fact, offsetof(struct hoop_topo_node, fact), most \
    }
#define LINK(fact, most)                                   \
    {                                                      \
#fact, offsetof(struct hoop_topo_link, fact), most \
    }

const struct hoop_fact_name hoop_node_facts[HOOP_NODE_FACTS] = {
    NODE(memory, 1e18),  NODE(memory_numa, 65535), NODE(ordinal, 65535),   NODE(port_speed, 1e6),
    NODE(port_state, 9), NODE(port_layer, 2),      NODE(iommu_group, 1e9), NODE(acs_redirect, 255),
};

const struct hoop_fact_name hoop_link_facts[HOOP_LINK_FACTS] = {
    LINK(width, 64),
    LINK(gigatransfers, 1000),
    LINK(count, 1000),
    LINK(gigabytes_per_second, 1e5),
    LINK(nanoseconds, 1e12),
    LINK(now_width, 64),
    LINK(now_gigatransfers, 1000),
    LINK(device_width, 64),
    LINK(device_gigatransfers, 1000),
};

struct hoop_topo_fact *hoop_fact_of(void *of, const struct hoop_fact_name *name)
{
    return (void *)((char *)of + name->offset);
}

const struct hoop_topo_fact *hoop_fact_in(const void *of, const struct hoop_fact_name *name)
{
    return (const void *)((const char *)of + name->offset);
}

bool hoop_fact_known(const struct hoop_topo_fact *fact, const struct hoop_fact_name *name)
{
    return fact->source != HOOP_TOPO_UNKNOWN && fact->value >= 0 && fact->value <= name->most;
}

void hoop_fact_put(FILE *out, const struct hoop_topo_fact *fact)
{
    double value = fact->value;
    int power = 0;

    for (; value != floor(value) && power > -1074; power--)
        value *= 2;
    fprintf(out, "%" PRId64, (int64_t)value);
    if (power < 0)
        fprintf(out, "p%d", power);
    fprintf(out, " %s", hoop_topo_source_name(fact->source));
}

int hoop_fact_named(const char *text, int count, const char *(*name)(int))
{
    int i = 0;

    while (i < count && (text == NULL || strcmp(text, name(i)) != 0))
        i++;
    return i < count ? i : -1;
}

const char *hoop_fact_kind(int i)
{
    return hoop_topo_kind_name((enum hoop_topo_kind)i);
}

const char *hoop_fact_link(int i)
{
    return hoop_topo_link_name((enum hoop_topo_link_kind)i);
}

const char *hoop_fact_source(int i)
{
    return hoop_topo_source_name((enum hoop_topo_source)i);
}

const char *hoop_fact_peer(int i)
{
    return hoop_topo_peer_name((enum hoop_topo_peer)i);
}

bool hoop_fact_parse(const char *text, const struct hoop_fact_name *name, struct hoop_topo_fact *fact)
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
    const int source = hoop_fact_named(end + 1, HOOP_TOPO_SOURCES, hoop_fact_source);
    fact->source = source < 0 ? HOOP_TOPO_UNKNOWN : (enum hoop_topo_source)source;
    return fact->value <= name->most && source > 0;
}

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

void hoop_xml_put(FILE *out, const char *name, const char *text)
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
