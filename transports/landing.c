// SPDX-License-Identifier: BSD-3-Clause
/* The arithmetic of landing areas, and their allocation. */
#include "transports/landing.h"

#ifdef HOOP_CUDA

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "wire/cursor.h"

enum {
    BLOB_MAGIC = 0x646e6c68 /* "hlnd" */,
    COUNTER = 64,
    COUNTERS = 2 * COUNTER,
    LANES_MOST = 1024,
    SLOTS_MOST = 4096
};

uint64_t hoop_landing_place(const struct hoop_landing_address *own)
{
    return COUNTERS + hoop_device_landing(own->frame, (uint32_t)own->slots);
}

static uint64_t place_of(const struct hoop_landing_address *own, int rank, int lane)
{
    return ((uint64_t)rank * (uint64_t)own->lanes + (uint64_t)lane) * hoop_landing_place(own);
}

enum hoop_status hoop_landing_probe(void)
{
    const struct hoop_cuda_driver *driver;

    return hoop_cuda_driver(&driver);
}

/* ---- domains ---- */

/* Links begin with zeros. */
static enum hoop_status clear(const struct hoop_landing_domain *domain)
{
    const struct hoop_landing_address *own = &domain->own;
    hoop_cu_stream stream = NULL;

    enum hoop_status status = hoop_cuda_stream_create(domain->cuda, false, &stream);
    if (status == HOOP_OK)
        status = hoop_cuda_fill(domain->cuda, own->base, 0, place_of(own, own->ranks, 0), stream);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_wait(domain->cuda, stream, UINT64_MAX);
    if (stream)
        hoop_cuda_stream_destroy(domain->cuda, stream);
    return status;
}

static enum hoop_status allocate(struct hoop_landing_domain *domain)
{
    struct hoop_landing_address *own = &domain->own;
    hoop_cu_address base;

    const enum hoop_status status = hoop_cuda_alloc(domain->cuda, place_of(own, own->ranks, 0), &base);
    if (status != HOOP_OK)
        return status;
    own->base = base;
    return clear(domain);
}

/* Who asks for the descriptor of the memory gets it from a thread of ours. */
static enum hoop_status give_out(struct hoop_landing_domain *domain)
{
    struct hoop_landing_address *own = &domain->own;
    int descriptor;

    enum hoop_status status = hoop_cuda_block_export(domain->cuda, &domain->block, &descriptor);
    if (status == HOOP_OK)
        status = hoop_giver_open(&domain->giver, descriptor);
    if (status != HOOP_OK)
        return status;
    if (strlen(hoop_giver_name(domain->giver)) >= sizeof own->giver)
        return hoop_fail(HOOP_ERR_SYSTEM, "the name %s of a Unix socket is too long", hoop_giver_name(domain->giver));
    snprintf(own->giver, sizeof own->giver, "%s", hoop_giver_name(domain->giver));
    memcpy(own->key, hoop_giver_key(domain->giver), sizeof own->key);
    own->passed = own->exported = true;
    own->export.bytes = domain->block.bytes;
    memcpy(own->export.uuid, domain->cuda->device.uuid, sizeof own->export.uuid);
    return HOOP_OK;
}

enum hoop_status hoop_landing_pass(struct hoop_landing_domain *domain)
{
    struct hoop_landing_address *own = &domain->own;

    hoop_cuda_free(domain->cuda, own->base);
    own->base = 0;
    enum hoop_status status = hoop_cuda_block_alloc(domain->cuda, place_of(own, own->ranks, 0), &domain->block);
    if (status != HOOP_OK)
        return status;
    own->base = domain->block.address;
    status = clear(domain);
    return status == HOOP_OK ? give_out(domain) : status;
}

enum hoop_status hoop_landing_make(const struct hoop_transport *transport, const struct hoop_domain_setup *setup,
                                   struct hoop_cuda *cuda, size_t bytes, struct hoop_landing_domain **domain)
{
    if (setup->context == NULL || setup->lanes < 1 || setup->lanes > LANES_MOST || setup->slots < 2 ||
        setup->slots > SLOTS_MOST || setup->frame < 16 || setup->frame > UINT32_MAX - 15 || setup->ranks < 1)
        return hoop_fail(HOOP_ERR_ARG, "%s: %d ranks, %d lanes and %d slots of %zu bytes are no shape of links",
                         transport->name, setup->ranks, setup->lanes, setup->slots, setup->frame);
    struct hoop_landing_domain *new = hoop_calloc(1, bytes);
    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->head = (struct hoop_domain){transport, setup->rank, setup->ranks};
    new->cuda = cuda;
    new->own = (struct hoop_landing_address){.process = (int)getpid(),
                                             .ordinal = cuda->device.ordinal,
                                             .ranks = setup->ranks,
                                             .lanes = setup->lanes,
                                             .slots = setup->slots,
                                             .frame = ((uint32_t)setup->frame + 15) / 16 * 16};
    new->links = hoop_calloc((size_t)setup->ranks * (size_t)setup->lanes, sizeof(struct hoop_landing_link *));
    if (new->links == NULL) {
        hoop_free(new);
        return HOOP_ERR_MEMORY;
    }
    *domain = new;
    return HOOP_OK;
}

enum hoop_status hoop_landing_open(const struct hoop_transport *transport, const struct hoop_domain_setup *setup,
                                   struct hoop_domain **domain)
{
    struct hoop_landing_domain *new;

    enum hoop_status status = hoop_landing_make(transport, setup, setup->context, sizeof *new, &new);
    if (status != HOOP_OK)
        return status;
    status = allocate(new);
    if (status != HOOP_OK) {
        hoop_landing_close(&new->head);
        return status;
    }
    *domain = &new->head;
    return HOOP_OK;
}

void hoop_landing_close(struct hoop_domain *domain)
{
    struct hoop_landing_domain *self = (struct hoop_landing_domain *)domain;

    hoop_giver_close(self->giver);
    if (self->block.bytes)
        hoop_cuda_block_free(self->cuda, &self->block);
    else if (self->own.base)
        hoop_cuda_free(self->cuda, self->own.base);
    hoop_free(self->imports);
    hoop_free(self->links);
    hoop_free(self);
}

void hoop_landing_abandon(struct hoop_domain *domain)
{
    ((struct hoop_landing_domain *)domain)->own.base = 0;
    ((struct hoop_landing_domain *)domain)->block.bytes = 0;
    hoop_landing_close(domain);
}

/* ---- addresses ---- */

enum hoop_status hoop_landing_address(struct hoop_domain *domain, unsigned char *blob, size_t *size)
{
    const struct hoop_landing_address *own = &((struct hoop_landing_domain *)domain)->own;
    struct hoop_writer writer = hoop_writer(blob, HOOP_ADDRESS_MAX);

    hoop_put_u32(&writer, BLOB_MAGIC);
    hoop_put_u32(&writer, (uint32_t)own->process);
    hoop_put_u32(&writer, (uint32_t)own->ordinal);
    hoop_put_u32(&writer, (uint32_t)own->ranks);
    hoop_put_u32(&writer, (uint32_t)own->lanes);
    hoop_put_u32(&writer, (uint32_t)own->slots);
    hoop_put_u32(&writer, own->frame);
    hoop_put_u64(&writer, own->base);
    hoop_put_u8(&writer, own->exported);
    hoop_put_bytes(&writer, &own->export.handle, sizeof own->export.handle);
    hoop_put_u64(&writer, own->export.offset);
    hoop_put_u64(&writer, own->export.bytes);
    hoop_put_u64(&writer, own->export.id);
    hoop_put_bytes(&writer, own->export.uuid, sizeof own->export.uuid);
    hoop_put_u8(&writer, own->passed);
    hoop_put_bytes(&writer, own->giver, sizeof own->giver);
    hoop_put_bytes(&writer, own->key, sizeof own->key);
    *size = hoop_writer_used(&writer);
    return HOOP_OK;
}

enum hoop_status hoop_landing_read(const struct hoop_domain *domain, const unsigned char *blob, size_t size,
                                   struct hoop_landing_address *address)
{
    const struct hoop_landing_address *own = &((const struct hoop_landing_domain *)domain)->own;
    struct hoop_reader reader = hoop_reader(blob, size);

    memset(address, 0, sizeof *address);
    const bool magic = hoop_get_u32(&reader) == BLOB_MAGIC;
    address->process = (int)hoop_get_u32_range(&reader, 0, INT32_MAX);
    address->ordinal = (int)hoop_get_u32_range(&reader, 0, 1 << 16);
    address->ranks = (int)hoop_get_u32_range(&reader, 1, 1 << 20);
    address->lanes = (int)hoop_get_u32_range(&reader, 1, LANES_MOST);
    address->slots = (int)hoop_get_u32_range(&reader, 2, SLOTS_MOST);
    address->frame = hoop_get_u32(&reader);
    address->base = hoop_get_u64(&reader);
    address->exported = hoop_get_u8_range(&reader, 0, 1);
    hoop_get_bytes(&reader, &address->export.handle, sizeof address->export.handle);
    address->export.offset = hoop_get_u64(&reader);
    address->export.bytes = hoop_get_u64(&reader);
    address->export.id = hoop_get_u64(&reader);
    hoop_get_bytes(&reader, address->export.uuid, sizeof address->export.uuid);
    address->passed = hoop_get_u8_range(&reader, 0, 1);
    hoop_get_bytes(&reader, address->giver, sizeof address->giver);
    address->giver[sizeof address->giver - 1] = 0;
    hoop_get_bytes(&reader, address->key, sizeof address->key);
    if (!hoop_reader_done(&reader) || !magic || address->ranks != own->ranks || address->lanes != own->lanes ||
        address->slots != own->slots || address->frame != own->frame ||
        (address->exported && address->export.bytes < place_of(own, own->ranks, 0)))
        return hoop_fail(HOOP_ERR_ARG, "%s: a peer's address cannot be read, or its links have another shape",
                         domain->transport->name);
    return HOOP_OK;
}

/* ---- links ---- */

enum hoop_status hoop_landing_link(struct hoop_domain *domain, int peer, int lane, struct hoop_landing_link **link)
{
    struct hoop_landing_domain *self = (struct hoop_landing_domain *)domain;

    if (peer < 0 || peer >= domain->ranks || peer == domain->rank || lane < 0 || lane >= self->own.lanes ||
        self->links[peer * self->own.lanes + lane])
        return hoop_fail(HOOP_ERR_ARG, "%s: no link of rank %d to rank %d, lane %d, can be made",
                         domain->transport->name, domain->rank, peer, lane);
    struct hoop_landing_link *new = hoop_calloc(1, sizeof *new);
    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->head = (struct hoop_link){
        .transport = domain->transport, .domain = domain, .peer = peer, .lane = lane, .frame = self->own.frame};
    self->links[peer * self->own.lanes + lane] = new;
    *link = new;
    return HOOP_OK;
}

void hoop_landing_forget(struct hoop_landing_link *link)
{
    struct hoop_landing_domain *self = (struct hoop_landing_domain *)link->head.domain;

    self->links[link->head.peer * self->own.lanes + link->head.lane] = NULL;
    hoop_free(link);
}

void hoop_landing_meet(struct hoop_landing_link *link, hoop_cu_address base)
{
    const struct hoop_landing_domain *self = (const struct hoop_landing_domain *)link->head.domain;

    link->base = base;
    link->here = self->own.base + place_of(&self->own, link->head.peer, link->head.lane);
    link->there = base + place_of(&self->own, self->head.rank, link->head.lane);
}

enum hoop_status hoop_landing_device(struct hoop_link *link, struct hoop_device_link *ends)
{
    const struct hoop_landing_address *own = &((const struct hoop_landing_domain *)link->domain)->own;
    const uint64_t here = ((struct hoop_landing_link *)link)->here, there = ((struct hoop_landing_link *)link)->there;

    *ends = (struct hoop_device_link){.out_frames = there + COUNTERS,
                                      .out_head = there,
                                      .out_taken = here + COUNTER,
                                      .in_frames = here + COUNTERS,
                                      .in_head = here,
                                      .in_taken = there + COUNTER,
                                      .frame = own->frame,
                                      .slots = (uint32_t)own->slots,
                                      .direct = ((const struct hoop_landing_link *)link)->direct};
    return HOOP_OK;
}

void hoop_landing_describe(const struct hoop_link *link, char *text, size_t size)
{
    const struct hoop_landing_domain *self = (const struct hoop_landing_domain *)link->domain;

    snprintf(text, size, "%s %d -> %d, lane %d, %d slots of %u bytes, for kernels", link->transport->name,
             link->domain->rank, link->peer, link->lane, self->own.slots, self->own.frame);
}

#else

#include "base/status.h"

enum hoop_status hoop_landing_probe(void)
{
    return hoop_fail(HOOP_ERR_UNSUPPORTED, "this build of hoop has no CUDA");
}

#endif
