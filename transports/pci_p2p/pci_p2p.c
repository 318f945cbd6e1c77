// SPDX-License-Identifier: BSD-3-Clause
/* Kernels of one process: landing areas in device memory that the peers reach at the same address, by peer access if they are on another
 * device.
 *
 * Peer access is between contexts, stays on for the life of the process, and costs nothing where it is on already.
 */
#include "transports/landing.h"

#include "base/status.h"

#ifdef HOOP_CUDA

static enum hoop_status open_domain(const struct hoop_domain_setup *setup, struct hoop_domain **domain)
{
    return hoop_landing_open(&hoop_transport_pci_p2p, setup, domain);
}

static enum hoop_status cost(struct hoop_domain *domain, const unsigned char *blob, size_t size,
                             struct hoop_transport_cost *cost)
{
    const struct hoop_landing_domain *self = (const struct hoop_landing_domain *)domain;
    struct hoop_landing_address peer;
    bool access = false, atomics;
    int rank;

    enum hoop_status status = hoop_landing_read(domain, blob, size, &peer);
    access = peer.process == self->own.process && peer.ordinal == self->own.ordinal;
    if (status == HOOP_OK && peer.process == self->own.process && peer.ordinal != self->own.ordinal)
        status = hoop_cuda_peer_facts(self->own.ordinal, peer.ordinal, &access, &atomics, &rank);
    if (status == HOOP_OK)
        *cost = (struct hoop_transport_cost){.reachable = access};
    return status;
}

static enum hoop_status connect_link(struct hoop_domain *domain, int peer, int lane, const unsigned char *blob,
                                     size_t size, struct hoop_link **link)
{
    const struct hoop_landing_domain *self = (const struct hoop_landing_domain *)domain;
    struct hoop_landing_address address;
    struct hoop_landing_link *new;

    enum hoop_status status = hoop_landing_read(domain, blob, size, &address);
    if (status == HOOP_OK && address.process != self->own.process)
        status = hoop_fail(HOOP_ERR_ARG, "pci_p2p: rank %d is another process", peer);
    if (status == HOOP_OK)
        status = hoop_landing_link(domain, peer, lane, &new);
    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_open(address.ordinal, &new->peer);
    if (status == HOOP_OK)
        status = hoop_cuda_reach(self->cuda, new->peer);
    if (status != HOOP_OK) {
        hoop_cuda_close(new->peer);
        hoop_landing_forget(new);
        return status;
    }
    hoop_landing_meet(new, address.base);
    new->direct = true; /* the peer enables access, too, or kernels are not used */
    *link = &new->head;
    return HOOP_OK;
}

static void disconnect(struct hoop_link *link)
{
    struct hoop_landing_link *gone = (struct hoop_landing_link *)link;

    hoop_cuda_close(gone->peer);
    hoop_landing_forget(gone);
}

const struct hoop_transport hoop_transport_pci_p2p = {.size = sizeof(struct hoop_transport),
                                                      .name = "pci_p2p",
                                                      .probe = hoop_landing_probe,
                                                      .open = open_domain,
                                                      .close = hoop_landing_close,
                                                      .address = hoop_landing_address,
                                                      .cost = cost,
                                                      .connect = connect_link,
                                                      .disconnect = disconnect,
                                                      .device = hoop_landing_device,
                                                      .describe = hoop_landing_describe};

#else

const struct hoop_transport hoop_transport_pci_p2p = {
    .size = sizeof(struct hoop_transport), .name = "pci_p2p", .probe = hoop_landing_probe};

#endif
