// SPDX-License-Identifier: BSD-3-Clause
/* Writing XML of hwloc: the objects that hold CPUs, made by write_hwloc_boxes.c and written by write_hwloc.c. */
#ifndef HOOP_TOPO_WRITE_HWLOC_H
#define HOOP_TOPO_WRITE_HWLOC_H

#include <stdio.h>

#include "topo/model.h"

/* An object that holds CPUs: the machine, a package, or a group of those near a NUMA node. */
struct hoop_hwloc_box {
    int node; /* -1: a group */
    int above;
    hwloc_const_bitmap_t cpus;
    hwloc_bitmap_t numas; /* near it, as hwloc will count them */
};

struct hoop_hwloc_writer {
    const struct hoop_topo *topo;
    FILE *out;
    hwloc_bitmap_t *cpus; /* by node, of those that are no devices */
    hwloc_bitmap_t left;  /* CPUs that no core has yet */
    struct hoop_hwloc_box *box;
    int boxes;
    int *home; /* by node: the box that its memory, or I/O below it, hangs on */
    int gp;    /* the next number of an object that is no node */
    bool no_cpus, no_numas;
};

/* The smallest box that holds all of a set. */
int hoop_hwloc_box(const struct hoop_hwloc_writer *writer, hwloc_const_bitmap_t cpus);

/* Write it all. */
void hoop_hwloc_put(struct hoop_hwloc_writer *writer);

#endif
