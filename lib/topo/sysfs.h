// SPDX-License-Identifier: BSD-3-Clause
/* Small files and links below a folder that stands for /sys; nothing outside it is read, whatever links it holds. */
#ifndef HOOP_TOPO_SYSFS_H
#define HOOP_TOPO_SYSFS_H

#include "topo/model.h"

enum { HOOP_SYSFS_TEXT = 16384, HOOP_SYSFS_PATH = 512 };

struct hoop_sysfs {
    int root; /* descriptor of the folder */
    const char *name;
    char text[HOOP_SYSFS_TEXT]; /* of the file that was read last */
};

/* Read a file below the root, without its final newline, and a NUL behind it. Symbolic links are not followed.
 * Returns its bytes; -1 if it is not there, no plain file, or longer than text. */
int hoop_sysfs_read(struct hoop_sysfs *sysfs, const char *path);

/* The same for folder/file, both parts of a path. */
int hoop_sysfs_read_in(struct hoop_sysfs *sysfs, const char *folder, const char *file);

/* Where a symbolic link below the root leads, as a path from the root. False: it is none, or leads outside. */
bool hoop_sysfs_link(const struct hoop_sysfs *sysfs, const char *path, char *to, size_t size);

/* Call visit for the names in a folder, sorted, at most `most`; its error ends the walk. A folder that is not there has none. */
enum hoop_status hoop_sysfs_list(const struct hoop_sysfs *sysfs, const char *folder, int most,
                                 enum hoop_status (*visit)(void *user, const char *name), void *user);

/* The PCI functions of a copied or living /sys.
 *
 * merge    the graph holds what hwloc saw: add facts to its devices, and GPUs, NICs and switches that it left out; else add all
 *          devices of use and the bridges above them.
 * Errors: HOOP_ERR_ARG (more devices than any machine has), HOOP_ERR_MEMORY. */
enum hoop_status hoop_sysfs_read_pci(struct hoop_sysfs *sysfs, struct hoop_topo *topo, bool merge);

/* The ports of a verbs device on the PCI function at that path, a node of the graph: state, link layer and GIDs.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_sysfs_read_verbs(struct hoop_sysfs *sysfs, struct hoop_topo *topo, int node, const char *path);

/* The XGMI links that the kernel's KFD tells of, between GPUs of the graph that have none yet.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_sysfs_read_kfd(struct hoop_sysfs *sysfs, struct hoop_topo *topo);

/* Bits of Access Control Services that send traffic between devices up to the CPUs, from a function's configuration space; -1: not
 * told (it takes root to read), or it has none. */
int hoop_sysfs_acs(const unsigned char *config, size_t bytes);

#endif
