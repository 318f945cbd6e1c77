// SPDX-License-Identifier: BSD-3-Clause
/* Between the two halves of the reader of NCCL's files: the tree (source_nccl.c) and the fabric (source_nccl_links.c). */
#ifndef HOOP_TOPO_NCCL_H
#define HOOP_TOPO_NCCL_H

#include "topo/model.h"

/* Links of one GPU to one target, as the file says it; who is meant is looked up when all devices are known. */
struct hoop_nccl_link {
    enum hoop_topo_link_kind kind;
    int from;                /* node */
    struct hoop_topo_bus to; /* not known: a switch that the machine does not show */
    uint32_t target_class;   /* 0: not told */
    int count;
    bool used;
};

struct hoop_nccl_links {
    struct hoop_nccl_link *link;
    int links, room;
};

/* Note the links that a <nvlink> or <xgmi> element below GPU `from` tells of.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_nccl_links_add(struct hoop_topo *topo, struct hoop_nccl_links *links, int from,
                                     enum hoop_topo_link_kind kind, const char *const *attributes);

/* Join the nodes of the graph; adds fabric switches.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_nccl_links_join(struct hoop_topo *topo, struct hoop_nccl_links *links);

/* An attribute's value as a whole number; `otherwise` if it is absent or no number from least to most. */
long hoop_nccl_number(const char *const *attributes, const char *attribute, long least, long most, long otherwise);

#endif
