// SPDX-License-Identifier: BSD-3-Clause
/* Kernels of different processes: landing areas in device memory that the peers open by IPC handle.
 *
 * A handle opens the whole allocation at an address of its own in each process. All lanes of a peer share one opening, which is
 * counted (mem/cuda_import.c). The exporter may free its memory only when the openers have closed it: domains are closed after all ranks
 * have parted, or when the communicator is dead.
 */
#include "transports/landing.h"

#include "base/status.h"

#ifdef HOOP_CUDA

#include <string.h>

static enum hoop_status open_domain(const struct hoop_domain_setup *setup, struct hoop_domain **domain)
{
    struct hoop_domain *new;

    enum hoop_status status = hoop_landing_open(&hoop_transport_cuda_ipc, setup, &new);
    if (status != HOOP_OK)
        return status;
    struct hoop_landing_domain *self = (struct hoop_landing_domain *)new;
    status = hoop_cuda_export(self->cuda, (const void *)(uintptr_t)self->own.base, &self->own.export);
    self->own.exported = status == HOOP_OK;
    if (status == HOOP_OK)
        *domain = new;
    else
        hoop_landing_close(new);
    return status;
}

static enum hoop_status cost(struct hoop_domain *domain, const unsigned char *blob, size_t size,
                             struct hoop_transport_cost *cost)
{
    const struct hoop_landing_domain *self = (const struct hoop_landing_domain *)domain;
    struct hoop_landing_address peer;

    const enum hoop_status status = hoop_landing_read(domain, blob, size, &peer);
    if (status != HOOP_OK)
        return status;
    *cost = (struct hoop_transport_cost){
        .reachable = peer.process != self->own.process && peer.exported &&
                     memcmp(peer.export.uuid, self->cuda->device.uuid, sizeof peer.export.uuid) != 0};
    return HOOP_OK;
}

static enum hoop_status connect_link(struct hoop_domain *domain, int peer, int lane, const unsigned char *blob,
                                     size_t size, struct hoop_link **link)
{
    const struct hoop_landing_domain *self = (const struct hoop_landing_domain *)domain;
    struct hoop_landing_address address;
    struct hoop_landing_link *new;

    enum hoop_status status = hoop_landing_read(domain, blob, size, &address);
    if (status == HOOP_OK && !address.exported)
        status = hoop_fail(HOOP_ERR_ARG, "cuda_ipc: rank %d could not export its device memory", peer);
    if (status == HOOP_OK && memcmp(address.export.uuid, self->cuda->device.uuid, sizeof address.export.uuid) == 0)
        status = hoop_fail(HOOP_ERR_UNSUPPORTED, "cuda_ipc: rank %d has the same GPU", peer);
    if (status == HOOP_OK)
        status = hoop_landing_link(domain, peer, lane, &new);
    if (status != HOOP_OK)
        return status;
    hoop_cu_address base = 0;
    status = hoop_cuda_import(self->cuda, &address.export, &base);
    if (status != HOOP_OK) {
        hoop_landing_forget(new);
        return status;
    }
    hoop_landing_meet(new, base);
    *link = &new->head;
    return HOOP_OK;
}

static void disconnect(struct hoop_link *link)
{
    const struct hoop_landing_domain *self = (const struct hoop_landing_domain *)link->domain;
    struct hoop_landing_link *gone = (struct hoop_landing_link *)link;

    hoop_cuda_import_end(self->cuda, gone->base);
    hoop_landing_forget(gone);
}

const struct hoop_transport hoop_transport_cuda_ipc = {.size = sizeof(struct hoop_transport),
                                                       .name = "cuda_ipc",
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

const struct hoop_transport hoop_transport_cuda_ipc = {
    .size = sizeof(struct hoop_transport), .name = "cuda_ipc", .probe = hoop_landing_probe};

#endif
