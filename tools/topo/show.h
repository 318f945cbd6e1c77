// SPDX-License-Identifier: BSD-3-Clause
/* What hoop-topo can print. All write to `out` and leave its errors to the caller. shown: by node, which devices to show; NULL: all. */
#ifndef HOOP_TOPO_SHOW_H
#define HOOP_TOPO_SHOW_H

#include <hoop/topo.h>
#include <stdbool.h>
#include <stdio.h>

enum { LIST_TEXT = 8192 }; /* bytes of a list of CPUs: enough for 2048 ranges that do not join */

/* The matrix of path classes. pci: without GPU fabrics. underline: the header, for a terminal. */
void show_matrix(const struct hoop_topo *topo, const bool *shown, FILE *out, bool pci, bool underline);

/* Which devices a list names ("0,NIC1,mlx5_0"), by node; NULL: no such device (told on standard error), or no memory. */
bool *select_devices(const struct hoop_topo *topo, const char *list);

static inline bool is_shown(const bool *shown, int node)
{
    return shown == NULL || shown[node];
}

/* The matrix of peer access between GPUs: what is r, w (reads, writes), n (NVLink), a (atomic operations) or p (PCIe). */
void show_peers(const struct hoop_topo *topo, const bool *shown, FILE *out, char what);

/* GPUs near a CPU; GPUs at a distance of 0 to 5 of those shown; what is between each two devices shown. */
void show_near_cpu(const struct hoop_topo *topo, const bool *shown, FILE *out, long cpu);
void show_near_gpu(const struct hoop_topo *topo, const bool *shown, FILE *out, long level);
void show_between(const struct hoop_topo *topo, const bool *shown, FILE *out);

/* Rings or chains one by one, or one line for each shape. False: there are none, as told on standard error. */
bool show_channels(const struct hoop_topo *topo, FILE *out, const struct hoop_topo_wanted *wanted);
bool show_channel_table(const struct hoop_topo *topo, FILE *out, const struct hoop_topo_wanted *wanted);

/* hoop_topo_load, also of an archive with a copy of /sys. *reported: the error has been told on standard error. */
enum hoop_status load_archive(struct hoop_topo **topo, const char *path, bool *reported);

/* The matrix of NCCL's path classes. */
void show_nccl(const struct hoop_topo *topo, const bool *shown, FILE *out);

/* The machine as a tree. lines: with the characters of boxes (UTF-8), else ASCII. colour: for a terminal. */
void show_tree(const struct hoop_topo *topo, const bool *shown, FILE *out, bool lines, bool colour);

/* A picture of the machine; the same for Graphviz. */
void show_svg(const struct hoop_topo *topo, const bool *shown, FILE *out);
void show_dot(const struct hoop_topo *topo, const bool *shown, FILE *out);

/* A topology file for NCCL and RCCL. */
void show_nccl_xml(const struct hoop_topo *topo, const bool *shown, FILE *out);

/* Measure memory between cores of this machine. False: it cannot, as told on standard error. */
bool show_measured(const struct hoop_topo *topo, FILE *out);

/* Is the number in a list such as "0-3,8"? */
bool list_has(const char *list, long number);

/* What stands in the way of communication, with cause and cure. live: topo is this machine. False: something is wrong. */
bool show_doctor(const struct hoop_topo *topo, const bool *shown, FILE *out, bool live);

/* Everything in JSON; what is unknown is null. */
void show_json(const struct hoop_topo *topo, const bool *shown, FILE *out);

/* The nodes that are rows and columns of a matrix, in order: GPUs and named RDMA interfaces; on a machine without
 * GPU, NUMA nodes and all named interfaces (with pci: only where there is no RDMA interface either).
 * Returns their number; *rows is malloc'd, NULL if there is no memory. */
int matrix_rows(const struct hoop_topo *topo, const bool *shown, bool pci, int **rows);

#endif
