// SPDX-License-Identifier: BSD-3-Clause
/* Facts by name: what the forms that hoop writes and reads call them, and the text of one. */
#ifndef HOOP_TOPO_FACTS_H
#define HOOP_TOPO_FACTS_H

#include "topo/model.h"

struct hoop_fact_name {
    const char *name;
    size_t offset; /* in the node or link */
    double most;   /* none is greater */
};

enum { HOOP_NODE_FACTS = 8, HOOP_LINK_FACTS = 9 };

extern const struct hoop_fact_name hoop_node_facts[HOOP_NODE_FACTS], hoop_link_facts[HOOP_LINK_FACTS];

/* A fact of a node or link. */
struct hoop_topo_fact *hoop_fact_of(void *of, const struct hoop_fact_name *name);
const struct hoop_topo_fact *hoop_fact_in(const void *of, const struct hoop_fact_name *name);

/* Has it a value that can be written? */
bool hoop_fact_known(const struct hoop_topo_fact *fact, const struct hoop_fact_name *name);

/* Its text, "63p-2 NVML": a whole number or one and a power of two, so that no digit is lost and no locale asked, and the source. */
void hoop_fact_put(FILE *out, const struct hoop_topo_fact *fact);

/* Read such a text.   False: it is none, or greater than the fact can be. */
bool hoop_fact_parse(const char *text, const struct hoop_fact_name *name, struct hoop_topo_fact *fact);

/* The number of a name among `count`; -1: it is none of them. text may be NULL. */
int hoop_fact_named(const char *text, int count, const char *(*name)(int));

/* hoop_topo_kind_name and the like, for hoop_fact_named. */
const char *hoop_fact_kind(int i);
const char *hoop_fact_link(int i);
const char *hoop_fact_source(int i);
const char *hoop_fact_peer(int i);

/* An attribute of an XML element, if the text is not empty. What XML cannot have becomes a question mark. */
void hoop_xml_put(FILE *out, const char *name, const char *text);

#endif
