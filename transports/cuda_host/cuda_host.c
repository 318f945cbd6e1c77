// SPDX-License-Identifier: BSD-3-Clause
/* Kernels on devices between whose memories there is no path: landing areas in memory of the host, which both devices reach.
 *
 * The memory is the rank's own heap in the board, so that the peers have it mapped already, threads and processes alike; each end
 * registers the two places of a pair with the driver, for its own device. Only peers that need it have places, all lanes of one
 * together in whole pages:
 *
 *     number of the place of each rank, 0: none | place 1 | place 2 | …
 *
 * Whoever gives up only unregisters: a peer's device keeps the pages of its own registration, so a rank may leave at any time.
 */
#include "transports/landing.h"

#include "base/status.h"

#ifdef HOOP_CUDA

#include <unistd.h>

struct domain {
    struct hoop_landing_domain landing; /* own.base: where in the board the memory begins */
    struct hoop_heap *heap;
    unsigned char *memory;
    size_t table, stride; /* bytes of the table, and of a place with all its lanes; whole pages */
};

static size_t whole_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

/* ---- domains ---- */

static void close_domain(struct hoop_domain *domain)
{
    struct domain *self = (struct domain *)domain;

    if (self->memory)
        hoop_heap_give(self->heap, self->memory);
    self->landing.own.base = 0; /* no device memory */
    hoop_landing_close(domain);
}

static enum hoop_status take_memory(struct domain *self, const bool *with)
{
    const int ranks = self->landing.own.ranks;
    uint32_t places = 0;
    void *memory;

    for (int rank = 0; rank < ranks; rank++)
        places += with[rank];
    const enum hoop_status status =
        hoop_heap_take_for(self->heap, self->table + places * self->stride,
                           "landing areas in host memory, for kernels of devices without peer access", &memory);
    if (status != HOOP_OK)
        return status;
    self->memory = memory;
    self->landing.own.base = (uint64_t)(self->memory - hoop_heap_board(self->heap)->base);
    places = 0;
    for (int rank = 0; rank < ranks; rank++)
        ((uint32_t *)memory)[rank] = with[rank] ? ++places : 0;
    return HOOP_OK;
}

static enum hoop_status open_domain(const struct hoop_domain_setup *setup, struct hoop_domain **domain)
{
    const struct hoop_cuda_host_place *place = setup->context;
    struct hoop_landing_domain *new;

    enum hoop_status status =
        hoop_landing_make(&hoop_transport_cuda_host, setup, place ? place->cuda : NULL, sizeof(struct domain), &new);
    if (status != HOOP_OK)
        return status;
    struct domain *self = (struct domain *)new;
    self->heap = place->heap;
    self->table = whole_pages((size_t)setup->ranks * sizeof(uint32_t));
    self->stride = whole_pages((size_t)setup->lanes * hoop_landing_place(&new->own));
    status = take_memory(self, place->with);
    if (status != HOOP_OK) {
        close_domain(&new->head);
        return status;
    }
    *domain = &new->head;
    return HOOP_OK;
}

/* ---- links ---- */

/* Where the owner of the memory at `base` has the place of `rank`; NULL: nowhere in its heap. */
static unsigned char *place_in(const struct domain *self, uint64_t base, int owner, int rank)
{
    const struct hoop_board *board = hoop_heap_board(self->heap);
    const size_t first = hoop_board_heap_offset(board, owner), end = first + board->shape.heap;

    if (base < first || base % sizeof(uint32_t) || base > end || end - base < self->table)
        return NULL;
    const uint32_t place = ((const uint32_t *)(const void *)(board->base + base))[rank];
    if (place == 0 || place > (end - base - self->table) / self->stride)
        return NULL;
    return board->base + base + self->table + (place - 1) * self->stride;
}

static enum hoop_status cost(struct hoop_domain *domain, const unsigned char *blob, size_t size,
                             struct hoop_transport_cost *cost)
{
    const struct domain *self = (const struct domain *)domain;
    struct hoop_landing_address peer;

    const enum hoop_status status = hoop_landing_read(domain, blob, size, &peer);
    if (status == HOOP_OK)
        *cost = (struct hoop_transport_cost){.reachable = self->landing.cuda->device.host_register};
    return status;
}

static enum hoop_status register_places(const struct domain *self, struct hoop_landing_link *link)
{
    const struct hoop_cuda *cuda = self->landing.cuda;
    const uint64_t lane = (uint64_t)link->head.lane * hoop_landing_place(&self->landing.own);

    enum hoop_status status = hoop_cuda_host_register(cuda, link->own_block, self->stride, &link->here);
    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_host_register(cuda, link->peer_block, self->stride, &link->there);
    if (status != HOOP_OK) {
        hoop_cuda_host_unregister(cuda, link->own_block);
        return status;
    }
    link->here += lane;
    link->there += lane;
    return HOOP_OK;
}

static enum hoop_status connect_link(struct hoop_domain *domain, int peer, int lane, const unsigned char *blob,
                                     size_t size, struct hoop_link **link)
{
    const struct domain *self = (const struct domain *)domain;
    struct hoop_landing_address address;
    struct hoop_landing_link *new;

    enum hoop_status status = hoop_landing_read(domain, blob, size, &address);
    if (status == HOOP_OK)
        status = hoop_landing_link(domain, peer, lane, &new);
    if (status != HOOP_OK)
        return status;
    new->own_block = place_in(self, self->landing.own.base, domain->rank, peer);
    new->peer_block = place_in(self, address.base, peer, domain->rank);
    status =
        new->own_block &&new->peer_block
            ? register_places(self, new)
            : hoop_fail(HOOP_ERR_ARG, "cuda_host: ranks %d and %d have no places for each other", domain->rank, peer);
    if (status != HOOP_OK) {
        hoop_landing_forget(new);
        return status;
    }
    *link = &new->head;
    return HOOP_OK;
}

static void disconnect(struct hoop_link *link)
{
    const struct hoop_landing_domain *self = (const struct hoop_landing_domain *)link->domain;
    struct hoop_landing_link *gone = (struct hoop_landing_link *)link;

    hoop_cuda_host_unregister(self->cuda, gone->own_block);
    hoop_cuda_host_unregister(self->cuda, gone->peer_block);
    hoop_landing_forget(gone);
}

const struct hoop_transport hoop_transport_cuda_host = {.size = sizeof(struct hoop_transport),
                                                        .name = "cuda_host",
                                                        .probe = hoop_landing_probe,
                                                        .open = open_domain,
                                                        .close = close_domain,
                                                        .address = hoop_landing_address,
                                                        .cost = cost,
                                                        .connect = connect_link,
                                                        .disconnect = disconnect,
                                                        .device = hoop_landing_device,
                                                        .describe = hoop_landing_describe};

#else

const struct hoop_transport hoop_transport_cuda_host = {
    .size = sizeof(struct hoop_transport), .name = "cuda_host", .probe = hoop_landing_probe};

#endif
