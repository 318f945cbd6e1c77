// SPDX-License-Identifier: BSD-3-Clause
/* Topology: what the machine is made of, as a graph that can be read.
 *
 * Nodes form a tree: the machine; its packages (CPU sockets); NUMA nodes; PCI host bridges; PCI bridges (the ports of
 * switches are bridges too); and at the leaves GPUs, network interfaces, fabric switches and other PCI devices. Links
 * join two nodes and may cross the tree (NVLink). Nodes come in an order that depends on the machine alone, never on
 * the order in which it was read: by kind, then NUMA nodes and packages by the system's number, GPUs by bus id, RDMA
 * interfaces by name and the rest by bus id.
 *
 * Every fact carries its source. What nobody told is unknown (HOOP_TOPO_UNKNOWN) and stays so: a figure is never made
 * up from what such machines usually have.
 *
 * A topology is read-only once it is made; any number of threads may read it until it is freed.
 */
#ifndef HOOP_TOPO_H
#define HOOP_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "hoop.h"

#ifdef __cplusplus
extern "C" {
#endif

enum hoop_topo_source {
    HOOP_TOPO_UNKNOWN,   /* nobody told */
    HOOP_TOPO_HWLOC,     /* hwloc, on the machine that runs */
    HOOP_TOPO_HWLOC_XML, /* a machine recorded by hwloc */
    HOOP_TOPO_SYNTHETIC, /* a described machine that need not exist */
    HOOP_TOPO_DEVICE_ID, /* follows from the PCI device id and another fact */
    HOOP_TOPO_CUDA,      /* the CUDA driver, on the machine that runs */
    HOOP_TOPO_NVML,      /* NVIDIA's management library, on the machine that runs */
    HOOP_TOPO_NCCL_XML,  /* a topology file of NCCL or RCCL */
    HOOP_TOPO_SYSFS,     /* the kernel's /sys, of the machine that runs or a copy */
    HOOP_TOPO_OVERRIDE,  /* a person, by hoop_topo_override */
    HOOP_TOPO_SOURCES
};

/* A number and who told it. source HOOP_TOPO_UNKNOWN: value is 0 and means nothing. */
struct hoop_topo_fact {
    double value;
    enum hoop_topo_source source;
};

enum hoop_topo_kind {
    HOOP_TOPO_MACHINE,
    HOOP_TOPO_PACKAGE,
    HOOP_TOPO_NUMA,
    HOOP_TOPO_HOST_BRIDGE, /* where a PCI tree meets the CPUs */
    HOOP_TOPO_PCI_BRIDGE,  /* a root port, or an upstream or downstream port of a switch */
    HOOP_TOPO_GPU,
    HOOP_TOPO_NIC,        /* network interface, RDMA or not */
    HOOP_TOPO_SWITCH,     /* of a GPU fabric (NVSwitch) */
    HOOP_TOPO_PCI_DEVICE, /* any other */
    HOOP_TOPO_KINDS
};

struct hoop_topo_bus {
    bool known; /* false: not a PCI device, or nobody told; the rest is 0 then */
    uint32_t domain;
    uint8_t bus, device, function;
};

/* Which CPU it is: for people, and for what is known of such CPUs. "" and 0: unknown. */
struct hoop_topo_cpu {
    const char *arch, *vendor; /* "x86_64", "GenuineIntel" */
    int family, model;
};

struct hoop_topo_node {
    enum hoop_topo_kind kind;
    int number;     /* NUMA node, package: the system's number, maybe with gaps; others: 0, 1, … in order */
    char label[24]; /* kind and number: "GPU0", "NIC1", "NUMA0" */
    int parent;     /* node above; -1 for the machine */
    int uplink;     /* link to the parent, -1 if there is none */
    enum hoop_topo_source source;       /* who told that it exists, where it hangs and the identity below */
    struct hoop_topo_bus bus;           /* bridges of the host: domain and the first bus below */
    uint16_t vendor, device, pci_class; /* PCI ids; 0 where bus is not known or nobody told */
    uint16_t subsystem_vendor, subsystem_device;
    bool rdma;                         /* NIC: verbs or the like, not sockets only */
    const char *name;                  /* as the system calls it ("mlx5_0", "nvml0"); "" if it has no name */
    const char *names;                 /* all its names, parted by commas */
    const char *model;                 /* for people; "" if unknown */
    struct hoop_topo_fact memory;      /* machine, NUMA node: bytes */
    struct hoop_topo_fact memory_numa; /* GPU: number of the NUMA node that its memory is, where it is one */
    struct hoop_topo_fact
        ordinal; /* GPU: its number as a CUDA device of this process, or of who wrote the file; NIC: of the latter */
    struct hoop_topo_fact port_speed;  /* NIC: GB/s of its port, one direction */
    struct hoop_topo_fact port_state;  /* verbs device: of its first port; 1 down, 2 initializing, 3 armed, 4 active */
    struct hoop_topo_fact port_layer;  /* verbs device: of its first port; 1 InfiniBand, 2 Ethernet */
    struct hoop_topo_fact iommu_group; /* PCI device: devices of one group share their translations */
    struct hoop_topo_fact
        acs_redirect;      /* PCI device: bits of ACS that send traffic between devices up to the CPUs; 0: none does */
    bool virtual_function; /* PCI device: a share of another function, not a device beside it */
    struct hoop_topo_cpu cpu; /* machine (arch only), package, NUMA node */
    int listed; /* GPU, NIC, PCI device: its place in the file that told of it, among all, from 1; 0: none */
};

enum hoop_topo_link_kind {
    HOOP_TOPO_LINK_SOCKET, /* package and the machine's interconnect of packages (parent: the machine) */
    HOOP_TOPO_LINK_MEMORY, /* NUMA node and its package or machine */
    HOOP_TOPO_LINK_HOST,   /* host bridge and the CPUs it hangs on */
    HOOP_TOPO_LINK_PCI,
    HOOP_TOPO_LINK_NVLINK, /* two GPUs, or a GPU and a switch, package or NUMA node */
    HOOP_TOPO_LINK_XGMI,   /* two GPUs */
    HOOP_TOPO_LINK_C2C,    /* a GPU and the NUMA node of the CPU beside it */
    HOOP_TOPO_LINK_PEER,   /* two GPUs that reach each other's memory; says nothing of the way */
    HOOP_TOPO_LINK_KINDS
};

struct hoop_topo_link {
    enum hoop_topo_link_kind kind;
    int a, b;                     /* nodes; a < b */
    enum hoop_topo_source source; /* who told that the two are joined */
    bool
        current; /* the five figures of width to nanoseconds are what runs now and change with power saving, not what the link can do */
    struct hoop_topo_fact width;                /* lanes */
    struct hoop_topo_fact gigatransfers;        /* 10^9 transfers a second and lane */
    struct hoop_topo_fact count;                /* equal links side by side; the figures below are of all together */
    struct hoop_topo_fact gigabytes_per_second; /* 10^9 bytes, one direction */
    struct hoop_topo_fact nanoseconds;
    struct hoop_topo_fact now_width, now_gigatransfers;       /* PCI: as it runs now */
    struct hoop_topo_fact device_width, device_gigatransfers; /* PCI: what b could do; the port above may do less */
};

/* How far two nodes are apart, near to far: the classes that `nvidia-smi topo` made common. */
enum hoop_topo_class {
    HOOP_TOPO_SELF, /* X: the same node */
    HOOP_TOPO_PIX,  /* at most one PCI bridge on each side of the nearest common bridge; functions of one device */
    HOOP_TOPO_PXB,  /* more PCI bridges, but not a host bridge */
    HOOP_TOPO_PHB,  /* through one host bridge; a NUMA node and a device that is local to it */
    HOOP_TOPO_NODE, /* through several host bridges of one NUMA node (of the same set of NUMA nodes) */
    HOOP_TOPO_SYS,  /* between NUMA nodes */
    HOOP_TOPO_CLASS_UNKNOWN, /* nobody told exactly where one of the two is: in which NUMA node, or on which PCI bus */
    HOOP_TOPO_CLASSES
};

struct hoop_topo; /* opaque */

/* Read the machine that runs, through hwloc.
 *
 * topo         receives the topology; free it with hoop_topo_free. Unchanged on failure.
 * It holds the whole machine as the process may see it; which CPUs the process may use is asked for once, now.
 * hwloc's own variables (HWLOC_XMLFILE, HWLOC_SYNTHETIC …) are honoured; hoop_topo_origin says so then.
 * Blocking: on /sys and /proc, some milliseconds.   Threads: any.
 * Errors: HOOP_ERR_SYSTEM (hwloc cannot read the machine), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_topo_detect(struct hoop_topo **topo);

/* Read the machine that runs as hoop_topo_detect does, and ask those who know more of its devices, where they are: /sys what PCI links
 * can do at most, IOMMU groups, virtual functions, ports of interfaces, and devices that hwloc leaves out; the CUDA driver and NVIDIA's
 * management library the ordinals of GPUs, NVLinks and peer access. GPUs that only the driver sees are added.
 * Blocking: as hoop_topo_detect, and until the driver has started (seconds on some machines).   Threads: any.
 * Errors: as hoop_topo_detect; that there is no driver is none. */
HOOP_API enum hoop_status hoop_topo_detect_devices(struct hoop_topo **topo);

/* Read a recorded machine.
 *
 * topo         as for detect.
 * path         an XML file of hwloc (what `lstopo file.xml` writes), a topology file of NCCL (version 1) or RCCL (2), or what hoop_topo_write
 *              wrote, at most 64 MiB; or a folder with a copy of /sys (and maybe /proc), as hwloc-gather-topology makes it; or
 *              "synthetic:" and a description in hwloc's words, such as "synthetic:pack:2 [numa] core:4 pu:2".
 * A file that is cut off, nested deeper than 128 or otherwise not well-formed is refused. A well-formed one of hwloc goes to
 * hwloc, whose older versions may crash on contradictory content: do not give it files of people you do not trust.
 * Blocking: on the file.   Threads: any.
 * Errors: HOOP_ERR_ARG (not such a file; says what it is, if it can), HOOP_ERR_SYSTEM (cannot be read),
 * HOOP_ERR_UNSUPPORTED (a format version that the linked hwloc does not read), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_topo_load(struct hoop_topo **topo, const char *path);

/* State single facts of a machine over what all sources say: those in a text file, a line each.
 *
 * topo         nobody else may read it meanwhile. After a failure it may have some of the facts: free it.
 * path         lines "NODE FACT VALUE" or "NODE NODE FACT VALUE"; a node by its label, bus id or name ("GPU0", "0000:41:00.0", "mlx5_0"); what stands
 *              behind # is not read. Of a node: numa (the branch of PCI that it is on is near that NUMA node), the facts of struct
 *              hoop_topo_node by their names, and those of its link upwards: width, gigatransfers, gigabytes_per_second, nanoseconds and so on.
 *              Of two: p2p (yes, no), nvlink and xgmi (how many links; 0: none), and the facts of the link between them.
 *              Units are those of the structures above.
 * Blocking: on the file.   Threads: any.
 * Errors: HOOP_ERR_ARG (a line that is no fact, with its number; not a file), HOOP_ERR_SYSTEM (cannot be read), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_topo_override(struct hoop_topo *topo, const char *path);

/* Write all that is known of a machine in hoop's own form (lib/topo/own.c), an XML text that hoop_topo_load reads: what was read is the same
 * machine, with the same digest, and hwloc need not be asked again.
 * Blocking: on the file.   Threads: any.   Errors: HOOP_ERR_ARG (NULL), HOOP_ERR_SYSTEM (the file's error), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_topo_write(const struct hoop_topo *topo, FILE *file);

/* Write a machine as XML of hwloc 2, which lstopo and hoop_topo_load read. What hwloc has no place for stands in info attributes "hoop.…", so
 * that what hoop_topo_load reads is the same machine, with the same digest.
 * Blocking: on the file.   Threads: any.
 * Errors: as hoop_topo_write; HOOP_ERR_UNSUPPORTED (CPUs or devices are nested as hwloc cannot have them; nothing is written). */
HOOP_API enum hoop_status hoop_topo_write_hwloc(const struct hoop_topo *topo, FILE *file);

/* Free a topology; NULL is allowed.   Blocking: never.   Threads: nobody may still read it.   Errors: none. */
HOOP_API void hoop_topo_free(struct hoop_topo *topo);

/* Where the topology comes from, for people: "this machine, read by hwloc 2.9.0".
 * The text lives as long as the topology.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const char *hoop_topo_origin(const struct hoop_topo *topo);

/* Remark i on what was read, for people: what a file says that cannot be, or what it leaves out. NULL past the end.
 * The text lives as long as the topology.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const char *hoop_topo_note(const struct hoop_topo *topo, int i);

/* Node i, link i; NULL past the end. They live as long as the topology. Node 0 is the machine, and a parent comes
 * before its children of another kind.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const struct hoop_topo_node *hoop_topo_node(const struct hoop_topo *topo, int i);
HOOP_API const struct hoop_topo_link *hoop_topo_link(const struct hoop_topo *topo, int i);

/* How many nodes there are of a kind; they are neighbours in the order of nodes.
 * Blocking: never.   Threads: any.   Errors: 0 for a value that is no kind. */
HOOP_API int hoop_topo_count(const struct hoop_topo *topo, enum hoop_topo_kind kind);

/* The node of that kind and number ("GPU3"), by its place in the order of nodes.
 * Blocking: never.   Threads: any.   Errors: -1 if there is none. */
HOOP_API int hoop_topo_find(const struct hoop_topo *topo, enum hoop_topo_kind kind, int number);

/* Names for people; "?" for a value that is none. Classes: "X", "PIX", …, "?".
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const char *hoop_topo_kind_name(enum hoop_topo_kind kind);
HOOP_API const char *hoop_topo_link_name(enum hoop_topo_link_kind kind);
HOOP_API const char *hoop_topo_source_name(enum hoop_topo_source source);
HOOP_API const char *hoop_topo_class_name(enum hoop_topo_class path);

/* How far nodes a and b are apart along PCI and the CPUs; GPU fabrics do not count.
 *
 * It says what `nvidia-smi topo -mp` would say: of the structure, not of the speed.
 * Blocking: never.   Threads: any.   Errors: HOOP_TOPO_CLASS_UNKNOWN for a number that is no node. */
HOOP_API enum hoop_topo_class hoop_topo_path_class(const struct hoop_topo *topo, int a, int b);

/* How far two devices are apart as NCCL counts: along its tree of PCI switches, where a switch is one node and the two levels
 * of a Broadcom switch are one. It knows no difference between host bridges of one CPU. */
enum hoop_topo_nccl {
    HOOP_TOPO_NCCL_LOC, /* one PCI function */
    HOOP_TOPO_NCCL_PIX, /* one PCI switch */
    HOOP_TOPO_NCCL_PXB, /* several PCI switches */
    HOOP_TOPO_NCCL_PHB, /* through the CPU (the NUMA node) that both hang on */
    HOOP_TOPO_NCCL_SYS, /* from one CPU to another */
    HOOP_TOPO_NCCL_UNKNOWN,
    HOOP_TOPO_NCCL_CLASSES
};

/* The class of the path between nodes a and b, GPUs, NICs or other PCI devices; GPU fabrics do not count.
 * Blocking: never.   Threads: any.   Errors: HOOP_TOPO_NCCL_UNKNOWN for a number that is no device. */
HOOP_API enum hoop_topo_nccl hoop_topo_nccl_class(const struct hoop_topo *topo, int a, int b);

/* "LOC", "PIX", … "?".   Blocking: never.   Threads: any.   Errors: "?" for a value that is none. */
HOOP_API const char *hoop_topo_nccl_name(enum hoop_topo_nccl path);

/* The fabric between two GPUs: NVLinks or XGMI links that join them directly, or through switches (all switches are one fabric).
 *
 * count, gigabytes_per_second   receive the links side by side and their speed in one direction; may be NULL. Both
 *              may be unknown although the result is true. Through switches it is the lesser of what the two have.
 * Returns whether such a path is known. False does not prove that there is none: few sources tell.
 * Blocking: never.   Threads: any.   Errors: false for numbers that are no GPUs. */
HOOP_API bool hoop_topo_fabric(const struct hoop_topo *topo, int a, int b, struct hoop_topo_fact *count,
                               struct hoop_topo_fact *gigabytes_per_second);

/* What the driver says of one GPU's access to another's memory, in the words of `nvidia-smi topo -p2p`. Independent of how near they are. */
enum hoop_topo_peer {
    HOOP_TOPO_PEER_UNKNOWN,     /* U: nobody told */
    HOOP_TOPO_PEER_OK,          /* OK */
    HOOP_TOPO_PEER_CHIPSET,     /* CNS: the chipset does not carry it */
    HOOP_TOPO_PEER_GPU,         /* GNS: such GPUs do not do it */
    HOOP_TOPO_PEER_TOPOLOGY,    /* TNS: the way between them does not carry it */
    HOOP_TOPO_PEER_REGISTRY,    /* DR: a registry key of the driver forbids it */
    HOOP_TOPO_PEER_UNSUPPORTED, /* NS: not supported, for a reason that is not told */
    HOOP_TOPO_PEERS
};

enum hoop_topo_peer_way {
    HOOP_TOPO_PEER_READ,
    HOOP_TOPO_PEER_WRITE,
    HOOP_TOPO_PEER_NVLINK,
    HOOP_TOPO_PEER_ATOMICS,
    HOOP_TOPO_PEER_PCI,
    HOOP_TOPO_PEER_WAYS
};

/* Access of GPU a to the memory of GPU b.
 * Blocking: never.   Threads: any.   Errors: HOOP_TOPO_PEER_UNKNOWN for numbers that are no GPUs, and a way that is none. */
HOOP_API enum hoop_topo_peer hoop_topo_peer_access(const struct hoop_topo *topo, int a, int b,
                                                   enum hoop_topo_peer_way way);

/* "U", "OK", "CNS" …   Blocking: never.   Threads: any.   Errors: "?" for a value that is none. */
HOOP_API const char *hoop_topo_peer_name(enum hoop_topo_peer peer);

enum hoop_topo_gid_type {
    HOOP_TOPO_GID_UNKNOWN,
    HOOP_TOPO_GID_IB,
    HOOP_TOPO_GID_ROCE_1,
    HOOP_TOPO_GID_ROCE_2,
    HOOP_TOPO_GID_TYPES
};

/* An address of a verbs port, as its GID table has it. */
struct hoop_topo_gid {
    int node;        /* NIC */
    int port, index; /* port from 1, entry of its table from 0 */
    uint8_t gid[16]; /* as an IPv6 address; with Ethernet an IPv4 one is mapped into it */
    enum hoop_topo_gid_type type;
    const char *interface; /* of the network, with Ethernet; "": not told */
};

/* GID i of all ports, by node, port and index; NULL past the end. Empty entries are left out.
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const struct hoop_topo_gid *hoop_topo_gid(const struct hoop_topo *topo, int i);

/* "IB", "RoCE v1", "RoCE v2", "?".   Blocking: never.   Threads: any.   Errors: "?" for a value that is none. */
HOOP_API const char *hoop_topo_gid_name(enum hoop_topo_gid_type type);

/* CPUs near a node, as a list of ranges ("0-3,8"), limited to those that the process may use. May be "".
 *
 * text, size   receive the list with its NUL.
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_ARG (no such node; size too small: then text is ""). */
HOOP_API enum hoop_status hoop_topo_cpu_list(const struct hoop_topo *topo, int node, char *text, size_t size);

/* NUMA nodes near a node, as a list of ranges of the system's numbers.
 * Blocking, threads, errors: as hoop_topo_cpu_list. */
HOOP_API enum hoop_status hoop_topo_numa_list(const struct hoop_topo *topo, int node, char *text, size_t size);

/* Cores, and CPUs (hardware threads), that the process may use; 0 if the source lists none.
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API int hoop_topo_cores(const struct hoop_topo *topo);
HOOP_API int hoop_topo_cpus(const struct hoop_topo *topo);

/* The CPUs to bind local rank `rank` of `ranks` to: those of its share of the cores that the process may use.
 *
 * rank, ranks  0 … ranks - 1; on this host. With c cores, rank r has cores r·c/ranks to (r+1)·c/ranks, so that
 *              neighbours stay near and no core is idle; where ranks outnumber cores they share them round robin.
 * cpus, most   receive at most `most` numbers of CPUs as sched_setaffinity counts them, core by core.
 * count        receives how many.
 * Nothing is bound: that is the caller's.
 * Blocking: never.   Threads: any.
 * Errors: HOOP_ERR_ARG (rank or ranks out of range, most < 1), HOOP_ERR_UNSUPPORTED (the source lists no core that the
 * process may use). */
HOOP_API enum hoop_status hoop_topo_bind_core(const struct hoop_topo *topo, int rank, int ranks, int *cpus, int most,
                                              int *count);

/* ---- rings and chains ---- */

enum { HOOP_TOPO_SEARCH_DEVICES = 16, HOOP_TOPO_SEARCH_CHANNELS = 32 };

/* The way from one GPU to the next, near to far. */
enum hoop_topo_hop {
    HOOP_TOPO_HOP_FABRIC, /* NVLink or XGMI, directly or through switches of the fabric */
    HOOP_TOPO_HOP_PIX,    /* one PCI switch */
    HOOP_TOPO_HOP_PXB,    /* several */
    HOOP_TOPO_HOP_PHB,    /* through a CPU */
    HOOP_TOPO_HOP_SYS,    /* between CPUs */
    HOOP_TOPO_HOPS
};

enum hoop_topo_shape {
    HOOP_TOPO_RING,  /* each GPU sends to the next, the last to the first; one direction of each link */
    HOOP_TOPO_CHAIN, /* the tree inside a host: the first is the root; both directions of each link */
    HOOP_TOPO_SHAPES
};

/* What to search for. Several hosts are equal ones, each such a machine, and each port reaches those of the other hosts.
 *
 * A ring over hosts enters each host by one port and leaves it by one, so that it goes through all GPUs of a host before the next one; on
 * every second host it runs backwards, so that data stay on their rail: the ports of one number. Chains over hosts are joined by two binary
 * trees, each for half of the data, such that a host is an inner one in one of them at most; their first GPU is the one that talks to
 * other hosts. */
struct hoop_topo_wanted {
    enum hoop_topo_shape shape;
    int hosts;         /* 1 … HOOP_TOPO_SEARCH_HOSTS */
    const bool *shown; /* by node: GPUs and NICs to use; NULL: all */
};

enum { HOOP_TOPO_SEARCH_HOSTS = 65536 };

struct hoop_topo_channel {
    int node[HOOP_TOPO_SEARCH_DEVICES]; /* GPUs in order */
    int port[2]; /* several hosts: NICs at the first and the last GPU (chains: only the first); else -1 */
    enum hoop_topo_hop worst, worst_port; /* among GPUs; between GPUs and ports */
    char limit[120];                      /* the link that is used up most, for people */
};

struct hoop_topo_channels {
    int devices, hosts, channels;
    double gigabytes_per_second; /* of each channel */
    double single;               /* what the best channel alone could carry */
    double bound; /* no set of channels carries more: the narrowest cut between two groups of GPUs, what ports allow, or
                     with up to 10 GPUs what linear programming proves */
    enum hoop_topo_hop
        worst; /* the nearest kind of way with which one ring (chain) is possible at all; none is worse */
    enum hoop_topo_hop nearest_port,
        worst_port; /* several hosts: the nearest kind of way to ports with which one is possible, and the one
                                                    that is used since it carries more */
    bool assumed;   /* some link's speed is not told: what such parts usually carry was taken */
    struct hoop_topo_channel channel[HOOP_TOPO_SEARCH_CHANNELS];
};

/* Find rings or chains through all GPUs that together carry as much as the links allow.
 *
 * found        receives the channels; each visits every GPU once, and no link carries more than its budget.
 * The result follows from the machine alone (ties fall to the lower bus id), and the work is bounded, so it is not always the best: compare
 * channels · gigabytes_per_second with bound.
 * Blocking: computes for up to a second on large machines.   Threads: any.
 * Errors: HOOP_ERR_ARG (no such shape or number of hosts), HOOP_ERR_UNSUPPORTED (fewer than 2 GPUs, more than HOOP_TOPO_SEARCH_DEVICES, no
 * way between two of them is known, or several hosts and no NIC), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_topo_search(const struct hoop_topo *topo, const struct hoop_topo_wanted *wanted,
                                           struct hoop_topo_channels *found);

/* "NVL", "PIX", … "?".   Blocking: never.   Threads: any.   Errors: "?" for a value that is none. */
HOOP_API const char *hoop_topo_hop_name(enum hoop_topo_hop hop);

/* A digest of the machine: nodes, where they hang, their identity and the links. Equal for every process that sees
 * the same machine: the CPUs that one may use, names and speeds of the moment do not count. 0: only where topo is
 * NULL.
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API uint64_t hoop_topo_digest(const struct hoop_topo *topo);

#ifdef __cplusplus
}
#endif
#endif
