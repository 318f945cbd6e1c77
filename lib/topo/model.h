// SPDX-License-Identifier: BSD-3-Clause
/* Inside of the topology graph: what sources (source_*.c) call to build it.
 *
 * A source adds nodes in any order, parents first, and links by the numbers that hoop_topo_add returned. Sealing sorts
 * all, numbers the nodes, remaps parents and links and takes the digest; after it nothing changes any more.
 * Sets of CPUs and NUMA nodes are hwloc bitmaps. */
#ifndef HOOP_TOPO_MODEL_H
#define HOOP_TOPO_MODEL_H

#include <hwloc.h>

#include "base/arena.h"
#include "base/status.h"
#include "hoop/topo.h"

struct hoop_topo_place {
    struct hoop_topo_node node;
    hwloc_bitmap_t cpus, numas; /* near it; all of the machine's CPUs, not only those that the process may use */
    int added;                  /* number that hoop_topo_add gave */
    bool adrift;                /* nobody told on which bus it is */
};

/* What the driver says of a's access to b's memory. */
struct hoop_topo_access {
    int a, b;
    uint8_t way[HOOP_TOPO_PEER_WAYS]; /* enum hoop_topo_peer */
};

struct hoop_topo {
    struct hoop_arena arena; /* texts */
    struct hoop_topo_place *place;
    int nodes, node_room;
    struct hoop_topo_link *link;
    int links, link_room;
    struct hoop_topo_access *access;
    int accesses, access_room;
    struct hoop_topo_gid *gid;
    int gids, gid_room;
    hwloc_bitmap_t *core; /* CPUs of each core, in the machine's order */
    int cores, core_room;
    hwloc_bitmap_t allowed; /* CPUs that the process may use */
    const char **note;
    int notes, note_room;
    bool switches; /* bridges are whole switches, and host bridges are not told: the tree that NCCL keeps */
    uint64_t digest;
    char origin[192];
};

/* An empty topology.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_create(struct hoop_topo **topo);

/* Add a node; the texts and sets are copied. number counts only for packages and NUMA nodes; label and uplink are
 * filled in by sealing. Returns its number until sealing, or -1 with HOOP_ERR_MEMORY recorded. */
int hoop_topo_add(struct hoop_topo *topo, const struct hoop_topo_node *node, hwloc_const_bitmap_t cpus,
                  hwloc_const_bitmap_t numas);

/* Add a link.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_join(struct hoop_topo *topo, const struct hoop_topo_link *link);

/* Add what is known of one GPU's access to another's memory.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_add_access(struct hoop_topo *topo, const struct hoop_topo_access *access);

/* Add a GID; its text is copied.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_add_gid(struct hoop_topo *topo, const struct hoop_topo_gid *gid);

/* A GID as 32 hexadecimal digits, with colons after each four or without; and a type by its name, HOOP_TOPO_GID_UNKNOWN if it is none.
 * False: not such a text. */
bool hoop_gid_parse(const char *text, uint8_t gid[16]);
enum hoop_topo_gid_type hoop_gid_type(const char *name);

/* Add a core.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_add_core(struct hoop_topo *topo, hwloc_const_bitmap_t cpus);

/* Add a remark for people; those beyond a few dozen are dropped.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_remark(struct hoop_topo *topo, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sort, number and digest.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_seal(struct hoop_topo *topo);

/* Order of names as people read them: numbers inside count as numbers, so "mlx5_2" comes before "mlx5_10". */
int hoop_topo_compare_names(const char *a, const char *b);

/* ---- telling devices apart ---- */

/* What is known of a PCI function when its kind has to be found. */
struct hoop_topo_identity {
    uint16_t vendor, device, pci_class;
    bool verbs;         /* an RDMA device of the system sits on it */
    bool fabric_switch; /* the source itself calls it one */
};

/* Kind of a PCI function that is no bridge, and whether a NIC does RDMA. */
enum hoop_topo_kind hoop_topo_classify(const struct hoop_topo_identity *identity, bool *rdma);

/* NVLink or XGMI: 10^9 bytes a second of one link in one direction, as the makers give it; 0 if the id tells nothing. */
double hoop_topo_fabric_rate(uint16_t vendor, uint16_t device);

/* A device id of the generation that a GPU's model names in RCCL's words ("gcn 908", "gfx942"); 0: it names none. */
uint16_t hoop_topo_gcn_device(const char *model);

/* NVLink: 10^9 bytes a second of one link in one direction as hwloc counts them for that GPU; 0 if the id tells
 * nothing. */
double hoop_topo_nvlink_rate(uint16_t device);

/* ---- texts of facts ---- */

/* "0000:1b:00.0" in hexadecimal digits, the domain of up to 8.   False: not such a text. */
bool hoop_topo_parse_bus(const char *text, struct hoop_topo_bus *bus);

/* "16.0 GT/s PCIe", or a prefix of it that ends after the number's unit: 10^9 transfers a second.   False: not such a text. */
bool hoop_topo_parse_transfers(const char *text, double *gigatransfers);

/* 10^9 bytes a second and lane that a PCI link carries at that rate, after its line code. */
double hoop_topo_pci_lane(double gigatransfers);

/* A set of CPUs as words of 32 bits in hexadecimal, parted by commas, the highest first.   False: not such a text, or too long. */
bool hoop_topo_parse_mask(const char *text, hwloc_bitmap_t set);

/* ---- sources ---- */

/* Make a topology through hwloc.
 *
 * source       HOOP_TOPO_HWLOC: the machine that runs, text is not used; HOOP_TOPO_HWLOC_XML: text is an XML
 *              document of size bytes with its final NUL; HOOP_TOPO_SYNTHETIC: text is a description.
 * name         of the source, for errors and the origin.
 * drivers      add what hoop_topo_read_devices knows.
 * Errors: HOOP_ERR_ARG (hwloc refuses the text), HOOP_ERR_SYSTEM, HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_read_hwloc(struct hoop_topo **topo, enum hoop_topo_source source, const char *text, int size,
                                      const char *name, bool drivers);

/* Add what hwloc knows of NVLinks to the graph. node_of(object) of objects is in userdata, plus one; 0: none.
 * Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_read_nvlinks(struct hoop_topo *topo, hwloc_topology_t hwloc, enum hoop_topo_source source);

/* Add what the CUDA driver and NVML know, if they are there, to a graph that is not sealed yet.
 * Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_read_devices(struct hoop_topo *topo);

/* Add what NVML knows of access between GPUs, and, if `links` says so, of NVLinks. *told: it knows a GPU of the graph, so that no link means
 * none.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_read_nvml(struct hoop_topo *topo, bool links, bool *told);

/* Both known and equal, or both unknown. */
bool hoop_topo_same_bus(const struct hoop_topo_bus *a, const struct hoop_topo_bus *b);

/* The PCI switches above a device as NCCL counts them, nearest first; returns how many, at most `most`. */
int hoop_topo_switches_above(const struct hoop_topo *topo, int device, int *above, int most);

/* The device, no bridge, with that bus id, before sealing; -1: none. _any: PCI bridges count, too. */
int hoop_topo_at_bus(const struct hoop_topo *topo, const struct hoop_topo_bus *bus);
int hoop_topo_at_bus_any(const struct hoop_topo *topo, const struct hoop_topo_bus *bus);

/* A copy of the text that lives as long as the topology; NULL: no memory. */
const char *hoop_topo_keep_text(struct hoop_topo *topo, const char *text);

/* Make a topology from a topology file of NCCL or RCCL; text ends with a NUL.
 * Errors: HOOP_ERR_ARG, HOOP_ERR_UNSUPPORTED (a version we do not know, several hosts), HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_read_nccl(struct hoop_topo **topo, const char *text, const char *name);

/* Make a topology from a folder with a copy of /sys: the folder itself, or "sys" in it.
 * Errors: HOOP_ERR_ARG (no such copy), HOOP_ERR_SYSTEM (cannot be read), HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_read_sysfs(struct hoop_topo **topo, const char *path);

/* Add what /sys of the machine that runs knows of PCI to a graph of that machine that is not sealed yet.
 * Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_add_sysfs(struct hoop_topo *topo);

/* Whose document is a text. */
enum hoop_topo_form { HOOP_TOPO_FORM_HWLOC, HOOP_TOPO_FORM_NCCL, HOOP_TOPO_FORM_OWN };

/* Looks at the root element, and for hwloc at the version and the shape, so that hwloc can read it.
 * Errors: HOOP_ERR_ARG, HOOP_ERR_UNSUPPORTED, with the cure. */
enum hoop_status hoop_topo_recognize(const char *text, const char *name, enum hoop_topo_form *form);

/* The whole of a file of at most 64 MiB, with its size and a final NUL; hoop_free it, after a failure, too.
 * Errors: HOOP_ERR_SYSTEM, HOOP_ERR_ARG (no such file, or a NUL in it), HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_read_text(const char *path, char **text, size_t *size);

/* hoop_topo_override with the text itself; name: of the text, for errors. Any text is safe to give. */
enum hoop_status hoop_topo_override_text(struct hoop_topo *topo, const char *text, const char *name);

/* Make a topology from what hoop_topo_write wrote; text ends with a NUL. Any text is safe to give.
 * Errors: HOOP_ERR_ARG, HOOP_ERR_UNSUPPORTED (another version), HOOP_ERR_MEMORY. */
enum hoop_status hoop_topo_read_own(struct hoop_topo **topo, const char *text, const char *name);

#endif
