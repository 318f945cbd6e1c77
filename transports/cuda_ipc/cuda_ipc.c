// SPDX-License-Identifier: BSD-3-Clause
/* Kernels of different processes: landing areas in device memory that the peers open by IPC handle or by descriptor.
 *
 * A handle opens the whole allocation at an address of its own in each process. All lanes of a peer share one opening, which is
 * counted (mem/cuda_import.c). The exporter may free its memory only when the openers have closed it: domains are closed after all ranks
 * have parted, or when the communicator is dead.
 *
 * Where the driver has no handles (some containers and platforms), the memory is one that is mapped page by page, whose descriptor the
 * exporter gives to those who have its address (wire/give.h). Both ends of a pair open what the other has, each its way.
 */
#include "transports/landing.h"

#include "base/status.h"

#ifdef HOOP_CUDA

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { FETCH_SECONDS = 10 };

/* No handle: the thread's last error says why. */
static enum hoop_status pass_instead(struct hoop_landing_domain *self)
{
    char why[HOOP_ERROR_TEXT];

    snprintf(why, sizeof why, "%s", hoop_error_text());
    const enum hoop_status status = hoop_landing_pass(self);
    return status == HOOP_OK ? status : hoop_fail(status, "%.60s; %s", why, hoop_error_text());
}

static enum hoop_status open_domain(const struct hoop_domain_setup *setup, struct hoop_domain **domain)
{
    struct hoop_domain *new;

    enum hoop_status status = hoop_landing_open(&hoop_transport_cuda_ipc, setup, &new);
    if (status != HOOP_OK)
        return status;
    struct hoop_landing_domain *self = (struct hoop_landing_domain *)new;
    self->imports = hoop_calloc((size_t)setup->ranks, sizeof *self->imports);
    status = self->imports ? hoop_cuda_export(self->cuda, (const void *)(uintptr_t)self->own.base, &self->own.export)
                           : HOOP_ERR_MEMORY;
    self->own.exported = status == HOOP_OK;
    if (status == HOOP_ERR_UNSUPPORTED)
        status = pass_instead(self);
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

/* Open the memory of a peer that passes it by descriptor, once for all lanes. */
static enum hoop_status fetch(struct hoop_landing_domain *self, int peer, const struct hoop_landing_address *address,
                              hoop_cu_address *base)
{
    struct hoop_landing_import *import = &self->imports[peer];
    enum hoop_status status = HOOP_OK;
    int descriptor;

    if (import->uses == 0) {
        status = hoop_gift_fetch(address->giver, address->key, &descriptor, hoop_deadline(FETCH_SECONDS));
        if (status != HOOP_OK)
            return status;
        status = hoop_cuda_block_import(self->cuda, descriptor, address->export.bytes, &import->block);
        close(descriptor);
    }
    import->uses += status == HOOP_OK;
    *base = import->block.address;
    return status;
}

static void let_go(struct hoop_landing_domain *self, const struct hoop_landing_link *link)
{
    struct hoop_landing_import *import = &self->imports[link->head.peer];

    if (import->uses == 0)
        hoop_cuda_import_end(self->cuda, link->base);
    else if (--import->uses == 0)
        hoop_cuda_block_free(self->cuda, &import->block);
}

static enum hoop_status connect_link(struct hoop_domain *domain, int peer, int lane, const unsigned char *blob,
                                     size_t size, struct hoop_link **link)
{
    struct hoop_landing_domain *self = (struct hoop_landing_domain *)domain;
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
    status = address.passed ? fetch(self, peer, &address, &base) : hoop_cuda_import(self->cuda, &address.export, &base);
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
    struct hoop_landing_domain *self = (struct hoop_landing_domain *)link->domain;
    struct hoop_landing_link *gone = (struct hoop_landing_link *)link;

    let_go(self, gone);
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
