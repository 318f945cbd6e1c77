// SPDX-License-Identifier: BSD-3-Clause
/* The transport over the virtual network: a link is two pipes (network.h). Every entry takes the network's lock. */
#include "transports/sim/sim.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "transports/sim/network.h"
#include "transports/transports.h"
#include "wire/cursor.h"

enum { BLOB_MAGIC = 0x6d697368, /* "hsim" */ FRAME_MAX = 1 << 28, SLOTS_MAX = 4096 };

struct pending {
    void *data;
    size_t bytes;
    uint64_t tag;
};

struct sim_link {
    struct hoop_link head;
    struct sim_pipe *out, *in;
    uint64_t lent;  /* number of the last send that was lent */
    void *reserved; /* the frame being filled */
    size_t reserved_bytes;
    bool shown;
    struct sim_link *next, **back; /* in the domain's list */
    int first, count;              /* of the receives that wait */
    struct pending pending[];
};

struct sim_domain {
    struct hoop_domain head;
    struct hoop_sim *sim;
    size_t frame;
    int slots, lanes;
    struct sim_link *links;
};

static struct hoop_sim *sim_of(const struct hoop_link *head)
{
    return ((const struct sim_domain *)head->domain)->sim;
}

static void lock(const struct hoop_link *head)
{
    pthread_mutex_lock(&sim_of(head)->lock);
}

static enum hoop_status unlock(const struct hoop_link *head, enum hoop_status status)
{
    pthread_mutex_unlock(&sim_of(head)->lock);
    return status;
}

/* ---- death ---- */

static enum hoop_status die(struct sim_link *link, enum hoop_status status)
{
    link->head.status = status;
    sim_pipe_stop(link->out, status);
    if (link->in->receiver == HOOP_OK)
        link->in->receiver = status;
    link->head.sent_done = link->head.sent;
    link->head.received_done = link->head.received;
    link->count = 0;
    sim_of(&link->head)->idle = 0;
    return status;
}

static enum hoop_status die_of_peer(struct sim_link *link, enum hoop_status cause)
{
    const int peer = link->head.peer, lane = link->head.lane;

    if (cause == HOOP_ERR_PEER)
        return die(link, hoop_fail(cause, "rank %d has closed its sim link, lane %d, or died", peer, lane));
    return die(link, hoop_fail(cause, "rank %d ended the sim link, lane %d: %s", peer, lane, hoop_strerror(cause)));
}

/* The link's status, after looking whether this rank itself has been killed. */
static enum hoop_status alive(struct sim_link *link)
{
    const int rank = link->head.domain->rank;

    if (link->head.status == HOOP_OK && sim_of(&link->head)->dead[rank])
        return die(link, hoop_fail(HOOP_ERR_PEER, "rank %d was killed in the simulation", rank));
    return link->head.status;
}

/* ---- receiving ---- */

static enum hoop_status look(struct sim_link *link, size_t bytes, uint64_t tag, struct sim_frame **result)
{
    struct sim_frame *frame = sim_pipe_look(link->in);
    const int rank = link->head.domain->rank, peer = link->head.peer, lane = link->head.lane;

    if (!frame)
        return link->in->count == 0 && link->in->sender != HOOP_OK ? die_of_peer(link, link->in->sender) : HOOP_AGAIN;
    if (frame->tag != tag)
        return die(link, hoop_fail(HOOP_ERR_MISMATCH,
                                   "mismatch on lane %d: rank %d is in call %016llx, rank %d in call %016llx", lane,
                                   rank, (unsigned long long)tag, peer, (unsigned long long)frame->tag));
    if (frame->bytes != bytes)
        return die(link, hoop_fail(HOOP_ERR_INTERNAL, "lane %d: rank %d sent %zu bytes where rank %d expects %zu", lane,
                                   peer, frame->bytes, rank, bytes));
    if (frame->lost)
        return die_of_peer(link, link->in->sender);
    *result = frame;
    return HOOP_OK;
}

static enum hoop_status copy_out(struct sim_link *link, void *data, size_t bytes, uint64_t tag)
{
    struct sim_frame *frame;
    const enum hoop_status status = look(link, bytes, tag, &frame);

    if (status != HOOP_OK)
        return status;
    if (bytes > 0)
        memmove(data, frame->data, bytes);
    sim_pipe_take(sim_of(&link->head), link->in);
    return HOOP_OK;
}

static enum hoop_status receive(struct sim_link *link, void *data, size_t bytes, uint64_t tag)
{
    struct hoop_link *head = &link->head;
    enum hoop_status status = alive(link);

    if (status != HOOP_OK)
        return status;
    if (bytes > head->frame)
        return hoop_fail(HOOP_ERR_ARG, "a frame of %zu bytes cannot come: the link's limit is %zu", bytes, head->frame);
    if (link->count == 0) {
        status = copy_out(link, data, bytes, tag);
        if (status == HOOP_OK)
            head->received_done = ++head->received;
        if (status != HOOP_AGAIN)
            return status;
    }
    if (link->count == link->in->slots)
        return HOOP_AGAIN;
    link->pending[(link->first + link->count++) % link->in->slots] = (struct pending){data, bytes, tag};
    head->received++;
    sim_of(head)->idle = 0;
    return HOOP_OK;
}

static enum hoop_status sim_recv(struct hoop_link *head, void *data, size_t bytes, uint64_t tag)
{
    lock(head);
    return unlock(head, receive((struct sim_link *)head, data, bytes, tag));
}

static enum hoop_status sim_peek(struct hoop_link *head, size_t bytes, uint64_t tag, const void **data)
{
    struct sim_link *link = (struct sim_link *)head;
    struct sim_frame *frame;

    lock(head);
    enum hoop_status status = alive(link);
    if (status == HOOP_OK)
        status = look(link, bytes, tag, &frame);
    if (status == HOOP_OK) {
        link->shown = true;
        *data = frame->data;
    }
    return unlock(head, status);
}

static enum hoop_status sim_release(struct hoop_link *head)
{
    struct sim_link *link = (struct sim_link *)head;

    lock(head);
    enum hoop_status status = alive(link);
    if (status == HOOP_OK && !link->shown)
        status = hoop_fail(HOOP_ERR_ARG, "release without a frame shown by peek");
    if (status == HOOP_OK && sim_pipe_look(link->in)->lost)
        status = die_of_peer(link, link->in->sender); /* the caller read memory that was not lent any more */
    if (status == HOOP_OK) {
        link->shown = false;
        sim_pipe_take(sim_of(head), link->in);
        head->received_done = ++head->received;
    }
    return unlock(head, status);
}

/* ---- sending ---- */

static enum hoop_status make_room(struct sim_link *link, size_t bytes)
{
    const enum hoop_status status = alive(link);

    if (status != HOOP_OK)
        return status;
    if (bytes > link->head.frame)
        return hoop_fail(HOOP_ERR_ARG, "a frame of %zu bytes is too large: the link's limit is %zu", bytes,
                         link->head.frame);
    if (link->out->receiver != HOOP_OK)
        return die_of_peer(link, link->out->receiver);
    return link->out->count < link->out->slots ? HOOP_OK : HOOP_AGAIN;
}

/* What the peer has received: all is complete when nothing lent is out, else what was taken. */
static bool settle(struct sim_link *link)
{
    const uint64_t before = link->head.sent_done, taken = link->out->taken;

    if (taken >= link->lent)
        link->head.sent_done = link->head.sent;
    else if (taken > before)
        link->head.sent_done = taken;
    return link->head.sent_done != before;
}

static enum hoop_status transmit(struct sim_link *link, const void *data, size_t bytes, uint64_t tag, unsigned flags)
{
    struct hoop_sim *sim = sim_of(&link->head);
    const bool lend = sim->config.lend && !(flags & HOOP_SEND_STAGED) && bytes > 0;
    void *copy = NULL;
    const enum hoop_status status = make_room(link, bytes);

    if (status != HOOP_OK)
        return status;
    if (!lend && bytes > 0) {
        copy = hoop_calloc(1, bytes);
        if (!copy)
            return die(link, HOOP_ERR_MEMORY);
        memcpy(copy, data, bytes);
    }
    sim_pipe_push(sim, link->out, copy ? copy : data, copy, bytes, tag);
    hoop_free(link->reserved); /* void now */
    link->reserved = NULL;
    link->head.sent++;
    if (lend)
        link->lent = link->head.sent;
    settle(link);
    return HOOP_OK;
}

static enum hoop_status sim_send(struct hoop_link *head, const void *data, size_t bytes, uint64_t tag, unsigned flags)
{
    lock(head);
    return unlock(head, transmit((struct sim_link *)head, data, bytes, tag, flags));
}

static enum hoop_status sim_reserve(struct hoop_link *head, size_t bytes, void **data)
{
    struct sim_link *link = (struct sim_link *)head;

    lock(head);
    enum hoop_status status = make_room(link, bytes);
    if (status == HOOP_OK) {
        hoop_free(link->reserved);
        link->reserved_bytes = bytes;
        link->reserved = hoop_calloc(1, bytes + 1);
        if (!link->reserved)
            status = die(link, HOOP_ERR_MEMORY);
        *data = link->reserved;
    }
    return unlock(head, status);
}

static enum hoop_status sim_commit(struct hoop_link *head, size_t bytes, uint64_t tag)
{
    struct sim_link *link = (struct sim_link *)head;

    lock(head);
    enum hoop_status status = alive(link);
    if (status == HOOP_OK && (!link->reserved || bytes > link->reserved_bytes))
        status = hoop_fail(HOOP_ERR_ARG, "commit of %zu bytes that were not reserved", bytes);
    if (status == HOOP_OK) {
        sim_pipe_push(sim_of(head), link->out, link->reserved, link->reserved, bytes, tag);
        link->reserved = NULL;
        head->sent++;
        settle(link);
    }
    return unlock(head, status);
}

/* ---- progress ---- */

static bool move_receives(struct sim_link *link)
{
    bool moved = false;

    while (link->count > 0) {
        const struct pending *pending = &link->pending[link->first];
        const enum hoop_status status = copy_out(link, pending->data, pending->bytes, pending->tag);

        if (status == HOOP_AGAIN)
            break;
        moved = true;
        if (status != HOOP_OK)
            break; /* dead: nothing waits any more */
        link->first = (link->first + 1) % link->in->slots;
        link->count--;
        link->head.received_done++;
    }
    return moved;
}

static bool move_link(struct sim_link *link)
{
    const bool waits = link->count > 0 || link->head.sent_done < link->head.sent;

    if (link->head.status != HOOP_OK)
        return false;
    if (alive(link) != HOOP_OK)
        return waits;
    bool moved = settle(link);
    moved |= move_receives(link);
    if (link->head.status == HOOP_OK && link->head.sent_done < link->head.sent && link->out->receiver != HOOP_OK) {
        die_of_peer(link, link->out->receiver);
        moved = true;
    }
    return moved;
}

static enum hoop_status sim_progress(struct hoop_domain *head)
{
    struct sim_domain *domain = (struct sim_domain *)head;
    bool moved = false;

    pthread_mutex_lock(&domain->sim->lock);
    for (struct sim_link *link = domain->links; link; link = link->next)
        moved |= move_link(link);
    sim_tick(domain->sim, moved);
    pthread_mutex_unlock(&domain->sim->lock);
    return moved ? HOOP_OK : HOOP_AGAIN;
}

/* ---- links and domains ---- */

static enum hoop_status sim_address(struct hoop_domain *head, unsigned char *blob, size_t *size)
{
    struct hoop_writer writer = hoop_writer(blob, HOOP_ADDRESS_MAX);

    hoop_put_u32(&writer, BLOB_MAGIC);
    hoop_put_u32(&writer, (uint32_t)head->rank);
    *size = hoop_writer_used(&writer);
    return HOOP_OK;
}

static enum hoop_status read_address(const struct hoop_domain *head, const unsigned char *blob, size_t size, int *rank)
{
    struct hoop_reader reader = hoop_reader(blob, size);

    hoop_get_u32_range(&reader, BLOB_MAGIC, BLOB_MAGIC);
    *rank = (int)hoop_get_u32_range(&reader, 0, (uint32_t)head->ranks - 1);
    if (!hoop_reader_done(&reader))
        return hoop_fail(HOOP_ERR_ARG, "%zu bytes that are not the sim address of a rank below %d", size, head->ranks);
    return HOOP_OK;
}

static enum hoop_status sim_cost(struct hoop_domain *head, const unsigned char *blob, size_t size,
                                 struct hoop_transport_cost *cost)
{
    const struct hoop_sim_config *config = &((struct sim_domain *)head)->sim->config;
    int rank;
    const enum hoop_status status = read_address(head, blob, size, &rank);

    if (status != HOOP_OK)
        return status;
    *cost = (struct hoop_transport_cost){true, config->gigabytes_per_second, config->nanoseconds};
    if (config->link)
        config->link(config->context, head->rank, rank, &cost->gigabytes_per_second, &cost->nanoseconds);
    return HOOP_OK;
}

static enum hoop_status check_peer(const struct sim_domain *domain, int peer, int lane, const unsigned char *blob,
                                   size_t size)
{
    int rank = peer;

    if (peer < 0 || peer >= domain->head.ranks || peer == domain->head.rank || lane < 0 || lane >= domain->lanes)
        return hoop_fail(HOOP_ERR_ARG, "rank %d cannot connect sim to rank %d on lane %d (%d ranks, %d lanes)",
                         domain->head.rank, peer, lane, domain->head.ranks, domain->lanes);
    for (const struct sim_link *link = domain->links; link; link = link->next)
        if (link->head.peer == peer && link->head.lane == lane)
            return hoop_fail(HOOP_ERR_ARG, "the sim link to rank %d, lane %d, exists already", peer, lane);
    if (blob) {
        const enum hoop_status status = read_address(&domain->head, blob, size, &rank);

        if (status != HOOP_OK)
            return status;
    }
    return rank == peer ? HOOP_OK
                        : hoop_fail(HOOP_ERR_ARG, "the sim address given for rank %d is that of rank %d", peer, rank);
}

static enum hoop_status join_pipes(struct sim_link *link)
{
    const struct sim_domain *domain = (const struct sim_domain *)link->head.domain;
    const int rank = domain->head.rank, peer = link->head.peer;
    struct sim_pipe shape = {
        .from = rank, .to = peer, .lane = link->head.lane, .slots = domain->slots, .frame_bytes = domain->frame};
    enum hoop_status status = sim_pipe_join(domain->sim, &shape, SIM_SENDER, &link->out);

    if (status != HOOP_OK)
        return status;
    shape.from = peer;
    shape.to = rank;
    status = sim_pipe_join(domain->sim, &shape, SIM_RECEIVER, &link->in);
    if (status != HOOP_OK)
        sim_pipe_leave(domain->sim, link->out, SIM_SENDER);
    return status;
}

static enum hoop_status sim_connect(struct hoop_domain *head, int peer, int lane, const unsigned char *blob,
                                    size_t size, struct hoop_link **result)
{
    struct sim_domain *domain = (struct sim_domain *)head;
    enum hoop_status status = check_peer(domain, peer, lane, blob, size);

    if (status != HOOP_OK)
        return status;
    struct sim_link *link = hoop_calloc(1, sizeof *link + (size_t)domain->slots * sizeof(struct pending));
    if (!link)
        return HOOP_ERR_MEMORY;
    link->head = (struct hoop_link){
        .transport = head->transport, .domain = head, .peer = peer, .lane = lane, .frame = domain->frame};
    pthread_mutex_lock(&domain->sim->lock);
    status = join_pipes(link);
    pthread_mutex_unlock(&domain->sim->lock);
    if (status != HOOP_OK) {
        hoop_free(link);
        return status;
    }
    link->next = domain->links;
    link->back = &domain->links;
    if (link->next)
        link->next->back = &link->next;
    domain->links = link;
    *result = &link->head;
    return HOOP_OK;
}

static void sim_disconnect(struct hoop_link *head)
{
    struct sim_link *link = (struct sim_link *)head;
    struct hoop_sim *sim = sim_of(head);

    *link->back = link->next;
    if (link->next)
        link->next->back = link->back;
    pthread_mutex_lock(&sim->lock);
    sim_pipe_leave(sim, link->out, SIM_SENDER);
    sim_pipe_leave(sim, link->in, SIM_RECEIVER);
    sim->idle = 0;
    pthread_mutex_unlock(&sim->lock);
    hoop_free(link->reserved);
    hoop_free(link);
}

static enum hoop_status sim_probe(void)
{
    return HOOP_OK;
}

static const struct hoop_transport sim_in_place;

static enum hoop_status sim_open(const struct hoop_domain_setup *setup, struct hoop_domain **result)
{
    struct hoop_sim *sim = setup->context;

    if (!sim || setup->ranks != sim->ranks || setup->rank < 0 || setup->rank >= setup->ranks)
        return hoop_fail(HOOP_ERR_ARG, "sim: rank %d of %d on a network of %d", setup->rank, setup->ranks,
                         sim ? sim->ranks : 0);
    if (setup->lanes < 1 || setup->slots < 2 || setup->slots > SLOTS_MAX || setup->frame > FRAME_MAX)
        return hoop_fail(HOOP_ERR_ARG, "sim: %d lanes, %d slots of %zu bytes are out of range", setup->lanes,
                         setup->slots, setup->frame);
    struct sim_domain *domain = hoop_calloc(1, sizeof *domain);
    if (!domain)
        return HOOP_ERR_MEMORY;
    domain->head =
        (struct hoop_domain){sim->config.in_place ? &sim_in_place : &hoop_transport_sim, setup->rank, setup->ranks};
    domain->sim = sim;
    domain->frame = setup->frame;
    domain->slots = setup->slots;
    domain->lanes = setup->lanes;
    pthread_mutex_lock(&sim->lock);
    sim->open++;
    pthread_mutex_unlock(&sim->lock);
    *result = &domain->head;
    return HOOP_OK;
}

static void sim_close(struct hoop_domain *head)
{
    struct sim_domain *domain = (struct sim_domain *)head;

    if (!domain)
        return;
    while (domain->links)
        sim_disconnect(&domain->links->head);
    pthread_mutex_lock(&domain->sim->lock);
    domain->sim->open--;
    pthread_mutex_unlock(&domain->sim->lock);
    hoop_free(domain);
}

static void sim_describe(const struct hoop_link *head, char *text, size_t size)
{
    const struct sim_pipe *out = ((const struct sim_link *)head)->out;

    if (size > 0)
        snprintf(text, size, "sim %d <-> %d, lane %d, %d slots of %zu bytes, %g GB/s, %g ns", head->domain->rank,
                 head->peer, head->lane, out->slots, head->frame, out->gigabytes_per_second, out->nanoseconds);
}

#define SIM_ENTRIES                                                                                                   \
    .size = sizeof(struct hoop_transport), .name = "sim", .probe = sim_probe, .open = sim_open, .close = sim_close,   \
    .address = sim_address, .cost = sim_cost, .connect = sim_connect, .disconnect = sim_disconnect, .send = sim_send, \
    .recv = sim_recv, .progress = sim_progress, .describe = sim_describe

const struct hoop_transport hoop_transport_sim = {SIM_ENTRIES};

static const struct hoop_transport sim_in_place = {SIM_ENTRIES, .reserve = sim_reserve, .commit = sim_commit,
                                                   .peek = sim_peek, .release = sim_release};
