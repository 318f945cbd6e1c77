// SPDX-License-Identifier: BSD-3-Clause
/* Landing areas: links for kernels in device memory. What the transports that make such links have in common.
 *
 * A rank's domain is one allocation on its device, with a place for every (peer, lane): two counters on cache lines of their own, then
 * the landing area for what that peer sends. Who can reach the allocation finds all of it by the same arithmetic. The transports differ
 * in how a peer's allocation is reached.
 */
#ifndef HOOP_TRANSPORTS_LANDING_H
#define HOOP_TRANSPORTS_LANDING_H

#include "transports/transports.h"

/* hoop_transport's probe. */
enum hoop_status hoop_landing_probe(void);

#ifdef HOOP_CUDA

#include "mem/cuda.h"

/* What a rank tells of its domain. */
struct hoop_landing_address {
    int process, ordinal;
    int ranks, lanes, slots;
    uint32_t frame;
    uint64_t base;
    bool exported; /* export is filled in; else another process cannot open it */
    struct hoop_cuda_export export;
};

struct hoop_landing_domain {
    struct hoop_domain head;
    struct hoop_cuda *cuda;
    struct hoop_landing_address own;
    struct hoop_landing_link **links; /* by peer * lanes + lane */
};

struct hoop_landing_link {
    struct hoop_link head;
    struct hoop_cuda *peer; /* pci_p2p: the peer's device */
    hoop_cu_address base;   /* of the peer's domain, as reached from here */
};

/* hoop_transport's open (context: struct hoop_cuda *), close, address, device and describe. */
enum hoop_status hoop_landing_open(const struct hoop_transport *transport, const struct hoop_domain_setup *setup,
                                   struct hoop_domain **domain);
void hoop_landing_close(struct hoop_domain *domain);
enum hoop_status hoop_landing_address(struct hoop_domain *domain, unsigned char *blob, size_t *size);
enum hoop_status hoop_landing_device(struct hoop_link *link, struct hoop_device_link *ends);
void hoop_landing_describe(const struct hoop_link *link, char *text, size_t size);

/* Read a peer's address and compare its shape with ours.   Errors: HOOP_ERR_ARG. */
enum hoop_status hoop_landing_read(const struct hoop_domain *domain, const unsigned char *blob, size_t size,
                                   struct hoop_landing_address *address);

/* Make an unconnected link, to be completed by `peer` and `base`; forget frees it again.
 * Errors: HOOP_ERR_ARG (numbers, connected already), HOOP_ERR_MEMORY. */
enum hoop_status hoop_landing_link(struct hoop_domain *domain, int peer, int lane, struct hoop_landing_link **link);
void hoop_landing_forget(struct hoop_landing_link *link);

#endif
#endif
