// SPDX-License-Identifier: BSD-3-Clause
/* Landing areas: links for kernels, in memory that both devices reach. What the transports that make such links have in common.
 *
 * A rank's domain is one piece of memory with a place for every (peer, lane): two counters on cache lines of their own, then
 * the landing area for what that peer sends. It is one allocation on the rank's device, and who can reach it finds all of it by the same
 * arithmetic; or it is memory of the host (cuda_host). The transports differ in how a peer's memory is reached.
 */
#ifndef HOOP_TRANSPORTS_LANDING_H
#define HOOP_TRANSPORTS_LANDING_H

#include "transports/transports.h"

/* hoop_transport's probe. */
enum hoop_status hoop_landing_probe(void);

#ifdef HOOP_CUDA

#include "mem/cuda.h"
#include "mem/heap.h"
#include "wire/give.h"

/* What cuda_host's open gets as its context. */
struct hoop_cuda_host_place {
    struct hoop_cuda *cuda;
    struct hoop_heap *heap; /* of this rank, in the board of all ranks */
    const bool *with;       /* by rank: links to it will be made */
};

/* What a rank tells of its domain. */
struct hoop_landing_address {
    int process, ordinal;
    int ranks, lanes, slots;
    uint32_t frame;
    uint64_t base;
    bool exported; /* export is filled in; else another process cannot open it */
    struct hoop_cuda_export export;
    bool passed; /* it is opened by a descriptor instead of the handle: who gives it, of whole granules: export.bytes */
    char giver[64];
    unsigned char key[HOOP_AUTH_KEY];
};

struct hoop_landing_domain {
    struct hoop_domain head;
    struct hoop_cuda *cuda;
    struct hoop_landing_address own;
    struct hoop_landing_link **links; /* by peer * lanes + lane */
    struct hoop_cuda_block block;     /* the memory, where it is passed by descriptor */
    struct hoop_giver *giver;
    struct hoop_landing_import *imports; /* cuda_ipc: by peer, what was opened by descriptor */
};

struct hoop_landing_import {
    struct hoop_cuda_block block;
    int uses; /* links */
};

struct hoop_landing_link {
    struct hoop_link head;
    struct hoop_cuda *peer;       /* pci_p2p: the peer's device */
    hoop_cu_address base;         /* of the peer's domain, as reached from here */
    hoop_cu_address here, there;  /* this lane's places: for what the peer sends, and for what it gets */
    void *own_block, *peer_block; /* cuda_host: what is registered for the places */
    bool direct; /* what the peer allocates is reached at the same addresses, and the other way round */
};

/* Check the shape and make a domain of `bytes` bytes that has no memory yet.   Errors: HOOP_ERR_ARG, HOOP_ERR_MEMORY. */
enum hoop_status hoop_landing_make(const struct hoop_transport *transport, const struct hoop_domain_setup *setup,
                                   struct hoop_cuda *cuda, size_t bytes, struct hoop_landing_domain **domain);

/* Bytes of one place. */
uint64_t hoop_landing_place(const struct hoop_landing_address *own);

/* Take memory that can be passed by descriptor in the place of what the open domain has.
 * Errors: HOOP_ERR_UNSUPPORTED (no such memory), HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM, the driver's; the domain has no memory then. */
enum hoop_status hoop_landing_pass(struct hoop_landing_domain *domain);

/* hoop_transport's open (context: struct hoop_cuda *), close, address, device and describe. */
enum hoop_status hoop_landing_open(const struct hoop_transport *transport, const struct hoop_domain_setup *setup,
                                   struct hoop_domain **domain);
void hoop_landing_close(struct hoop_domain *domain);
enum hoop_status hoop_landing_address(struct hoop_domain *domain, unsigned char *blob, size_t *size);
enum hoop_status hoop_landing_device(struct hoop_link *link, struct hoop_device_link *ends);
void hoop_landing_describe(const struct hoop_link *link, char *text, size_t size);

/* Close a domain where peers may still write: its device memory stays until the process ends. */
void hoop_landing_abandon(struct hoop_domain *domain);

/* Read a peer's address and compare its shape with ours.   Errors: HOOP_ERR_ARG. */
enum hoop_status hoop_landing_read(const struct hoop_domain *domain, const unsigned char *blob, size_t size,
                                   struct hoop_landing_address *address);

/* Make an unconnected link, to be completed by `here` and `there`, or by hoop_landing_meet; forget frees it again.
 * Errors: HOOP_ERR_ARG (numbers, connected already), HOOP_ERR_MEMORY. */
enum hoop_status hoop_landing_link(struct hoop_domain *domain, int peer, int lane, struct hoop_landing_link **link);
void hoop_landing_forget(struct hoop_landing_link *link);

/* The peer's domain is one allocation, which is reached at `base`. */
void hoop_landing_meet(struct hoop_landing_link *link, hoop_cu_address base);

#endif
#endif
