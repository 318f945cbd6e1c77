// SPDX-License-Identifier: BSD-3-Clause
/* Shared memory between the ranks of one host.
 *
 * A link is two rings of the board (mem/board.h, mem/ring.h), one a direction, so connecting needs no handshake:
 * whoever comes first finds zeros. Frames take one of three ways: up to 48 bytes travel in the header line; a buffer
 * in this rank's heap of the board is lent, the frame says where it lies and the peer reads it there; everything else
 * is copied into a slot.
 *
 * After publishing a frame, and after giving one back, the peer's bell is rung: a fence and a load unless it sleeps.
 * Only links with pending receives or lent buffers need progress(); they hang in the domain's list `busy`.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/status.h"
#include "transports/shm/link.h"
#include "transports/transports.h"
#include "wire/cursor.h"

enum { BLOB_MAGIC = 0x6d687368, /* "hshm" */ BLOB_BYTES = 36 };

/* ---- links and domains ---- */

/* What a peer's address says; HOOP_ERR_ARG if it is none. */
static enum hoop_status read_address(const struct shm_domain *domain, const unsigned char *blob, size_t size, int *rank,
                                     bool *same)
{
    struct hoop_reader reader = hoop_reader(blob, size);

    hoop_get_u32_range(&reader, BLOB_MAGIC, BLOB_MAGIC);
    *rank = (int)hoop_get_u32_range(&reader, 0, (uint32_t)domain->head.ranks - 1);
    const uint32_t slots = hoop_get_u32(&reader);
    const uint64_t frame = hoop_get_u64(&reader), device = hoop_get_u64(&reader), inode = hoop_get_u64(&reader);
    if (!hoop_reader_done(&reader))
        return hoop_fail(HOOP_ERR_ARG, "%zu bytes that are not the shm address of a rank below %d", size,
                         domain->head.ranks);
    *same = device == domain->device && inode == domain->inode;
    if (*same && (slots != (uint32_t)domain->slots || frame != domain->frame))
        return hoop_fail(HOOP_ERR_ARG, "rank %d opened shm with %u slots of %llu bytes, rank %d with %d of %zu", *rank,
                         slots, (unsigned long long)frame, domain->head.rank, domain->slots, domain->frame);
    return HOOP_OK;
}

static enum hoop_status shm_address(struct hoop_domain *head, unsigned char *blob, size_t *size)
{
    const struct shm_domain *domain = (const struct shm_domain *)head;
    struct hoop_writer writer = hoop_writer(blob, HOOP_ADDRESS_MAX);

    hoop_put_u32(&writer, BLOB_MAGIC);
    hoop_put_u32(&writer, (uint32_t)head->rank);
    hoop_put_u32(&writer, (uint32_t)domain->slots);
    hoop_put_u64(&writer, domain->frame);
    hoop_put_u64(&writer, domain->device);
    hoop_put_u64(&writer, domain->inode);
    *size = hoop_writer_used(&writer);
    return *size == BLOB_BYTES ? HOOP_OK : hoop_fail(HOOP_ERR_INTERNAL, "the shm address does not fit");
}

static enum hoop_status shm_cost(struct hoop_domain *head, const unsigned char *blob, size_t size,
                                 struct hoop_transport_cost *cost)
{
    bool same;
    int rank;
    const enum hoop_status status = read_address((struct shm_domain *)head, blob, size, &rank, &same);

    if (status == HOOP_OK)
        *cost = (struct hoop_transport_cost){.reachable = same};
    return status;
}

static enum hoop_status check_peer(const struct shm_domain *domain, int peer, int lane, const unsigned char *blob,
                                   size_t size)
{
    bool same = true;
    int rank = peer;

    if (peer < 0 || peer >= domain->head.ranks || peer == domain->head.rank || lane < 0 || lane >= domain->lanes)
        return hoop_fail(HOOP_ERR_ARG, "rank %d cannot connect shm to rank %d on lane %d (%d ranks, %d lanes)",
                         domain->head.rank, peer, lane, domain->head.ranks, domain->lanes);
    if (domain->links[peer * domain->lanes + lane])
        return hoop_fail(HOOP_ERR_ARG, "the shm link to rank %d, lane %d, exists already", peer, lane);
    if (!blob)
        return HOOP_OK;
    const enum hoop_status status = read_address(domain, blob, size, &rank, &same);
    if (status != HOOP_OK)
        return status;
    if (rank != peer || !same)
        return hoop_fail(HOOP_ERR_ARG, "the shm address given for rank %d is that of rank %d%s", peer, rank,
                         same ? "" : " on another board");
    return HOOP_OK;
}

static enum hoop_status shm_connect(struct hoop_domain *head, int peer, int lane, const unsigned char *blob,
                                    size_t size, struct hoop_link **result)
{
    struct shm_domain *domain = (struct shm_domain *)head;
    struct hoop_board *board = domain->board;
    enum hoop_status status = check_peer(domain, peer, lane, blob, size);

    if (status != HOOP_OK)
        return status;
    const size_t out = hoop_board_ring_offset(board, peer, head->rank, lane);
    const size_t in = hoop_board_ring_offset(board, head->rank, peer, lane);
    const size_t bytes = hoop_ring_bytes(domain->slots, domain->frame);
    if ((status = hoop_board_reserve(board, out, bytes, "a link's ring")) != HOOP_OK ||
        (status = hoop_board_reserve(board, in, bytes, "a link's ring")) != HOOP_OK)
        return status;

    struct shm_link *link = hoop_calloc_aligned(
        HOOP_LINE, 1,
        (sizeof *link + (size_t)domain->slots * sizeof(struct shm_pending) + HOOP_LINE - 1) / HOOP_LINE * HOOP_LINE);
    if (!link)
        return HOOP_ERR_MEMORY;
    link->head = (struct hoop_link){
        .transport = head->transport, .domain = head, .peer = peer, .lane = lane, .frame = domain->frame};
    link->board = board;
    link->bell = &hoop_board_card(board, peer)->bell;
    link->reserved = SIZE_MAX;
    hoop_ring_produce(&link->out, board->base + out, domain->slots, domain->frame);
    hoop_ring_consume(&link->in, board->base + in, domain->slots, domain->frame);
    domain->links[peer * domain->lanes + lane] = link;
    *result = &link->head;
    return HOOP_OK;
}

static enum hoop_status shm_probe(void)
{
    return HOOP_OK;
}

static enum hoop_status check_setup(const struct hoop_domain_setup *setup)
{
    const struct hoop_board *board = setup->context;

    if (!board)
        return hoop_fail(HOOP_ERR_ARG, "shm needs a board as its context");
    if (setup->ranks != board->shape.ranks || setup->rank != board->rank)
        return hoop_fail(HOOP_ERR_ARG, "shm: rank %d of %d on a board of rank %d of %d", setup->rank, setup->ranks,
                         board->rank, board->shape.ranks);
    if (setup->lanes < 1 || setup->lanes > board->shape.lanes)
        return hoop_fail(HOOP_ERR_ARG, "shm: %d lanes on a board for %d", setup->lanes, board->shape.lanes);
    const size_t bytes = setup->slots < 2 ? 0 : hoop_ring_bytes(setup->slots, setup->frame);
    if (bytes == 0 || bytes > board->shape.ring)
        return hoop_fail(HOOP_ERR_ARG, "shm: %d slots of %zu bytes do not fit the board's rings of %zu bytes",
                         setup->slots, setup->frame, board->shape.ring);
    return HOOP_OK;
}

static enum hoop_status shm_open(const struct hoop_domain_setup *setup, struct hoop_domain **result)
{
    const enum hoop_status status = check_setup(setup);
    struct stat about;

    if (status != HOOP_OK)
        return status;
    struct hoop_board *board = setup->context;
    if (fstat(board->descriptor, &about) != 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "fstat of the board");
    struct shm_domain *domain =
        hoop_calloc(1, sizeof *domain + (size_t)setup->ranks * (size_t)setup->lanes * sizeof(struct shm_link *));
    if (!domain)
        return HOOP_ERR_MEMORY;
    domain->head = (struct hoop_domain){&hoop_transport_shm, setup->rank, setup->ranks};
    domain->board = board;
    domain->device = (uint64_t)about.st_dev;
    domain->inode = (uint64_t)about.st_ino;
    domain->frame = setup->frame;
    domain->slots = setup->slots;
    domain->lanes = setup->lanes;
    *result = &domain->head;
    return HOOP_OK;
}

static void shm_close(struct hoop_domain *head)
{
    struct shm_domain *domain = (struct shm_domain *)head;

    if (!domain)
        return;
    for (int i = 0; i < head->ranks * domain->lanes; i++)
        if (domain->links[i])
            shm_disconnect(&domain->links[i]->head);
    hoop_free(domain);
}

static void shm_describe(const struct hoop_link *head, char *text, size_t size)
{
    const struct shm_domain *domain = (const struct shm_domain *)head->domain;

    if (size > 0)
        snprintf(text, size, "shm rings %d <-> %d, lane %d, %d slots of %zu bytes", head->domain->rank, head->peer,
                 head->lane, domain->slots, head->frame);
}

const struct hoop_transport hoop_transport_shm = {
    .size = sizeof(struct hoop_transport),
    .name = "shm",
    .probe = shm_probe,
    .open = shm_open,
    .close = shm_close,
    .address = shm_address,
    .cost = shm_cost,
    .connect = shm_connect,
    .disconnect = shm_disconnect,
    .send = shm_send,
    .recv = shm_recv,
    .progress = shm_progress,
    .reserve = shm_reserve,
    .commit = shm_commit,
    .peek = shm_peek,
    .release = shm_release,
    .describe = shm_describe,
};
