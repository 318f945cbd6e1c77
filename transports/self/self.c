// SPDX-License-Identifier: BSD-3-Clause
/* A rank with itself: both ends of a link are the same struct.
 *
 * A link is a circle of frames. A staged or reserved frame lies in its slot; any other stays where the sender has it
 * until it is received. Nothing is shared, so nothing here is atomic.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "transports/transports.h"
#include "wire/cursor.h"

enum { BLOB_MAGIC = 0x666c7368, /* "hslf" */ FRAME_MAX = 1 << 28, SLOTS_MAX = 4096, LINE = 64 };

struct frame {
    const void *data; /* the slot, or the sender's own buffer */
    size_t bytes;
    uint64_t tag;
};

struct pending {
    void *data;
    size_t bytes;
    uint64_t tag;
};

struct self_link {
    struct hoop_link head;
    unsigned char *room;             /* slots × stride bytes */
    size_t stride, reserved;         /* reserved: bytes of the frame being filled, SIZE_MAX: none */
    uint32_t slots, first, count;    /* of the frames on their way */
    uint32_t waiting_first, waiting; /* of the receives that wait */
    uint64_t taken, lent;            /* frames received; number of the last frame that was lent */
    bool shown;
    struct frame *frame;
    struct pending *pending;
};

struct self_domain {
    struct hoop_domain head;
    size_t frame;
    int slots, lanes;
    struct self_link *links[]; /* by lane */
};

static __attribute__((cold)) enum hoop_status die(struct self_link *link, enum hoop_status status)
{
    link->head.status = status;
    link->head.sent_done = link->head.sent;
    link->head.received_done = link->head.received;
    link->count = link->waiting = 0;
    return status;
}

static enum hoop_status look(struct self_link *link, size_t bytes, uint64_t tag, const struct frame **result)
{
    const struct frame *frame = &link->frame[link->first];
    const int rank = link->head.peer, lane = link->head.lane;

    if (link->count == 0)
        return HOOP_AGAIN;
    if (frame->tag != tag)
        return die(link,
                   hoop_fail(HOOP_ERR_MISMATCH, "rank %d, lane %d: sent in call %016llx, received in call %016llx",
                             rank, lane, (unsigned long long)frame->tag, (unsigned long long)tag));
    if (frame->bytes != bytes)
        return die(link, hoop_fail(HOOP_ERR_INTERNAL, "rank %d, lane %d: %zu bytes sent to itself, %zu expected", rank,
                                   lane, frame->bytes, bytes));
    *result = frame;
    return HOOP_OK;
}

static void take(struct self_link *link)
{
    link->first = (link->first + 1) % link->slots;
    link->count--;
    link->taken++;
    if (link->taken >= link->lent)
        link->head.sent_done = link->head.sent;
    else if (link->taken > link->head.sent_done)
        link->head.sent_done = link->taken;
}

static enum hoop_status copy_out(struct self_link *link, void *data, size_t bytes, uint64_t tag)
{
    const struct frame *frame;
    const enum hoop_status status = look(link, bytes, tag, &frame);

    if (status != HOOP_OK)
        return status;
    if (bytes > 0)
        memmove(data, frame->data, bytes);
    take(link);
    return HOOP_OK;
}

static enum hoop_status self_recv(struct hoop_link *head, void *data, size_t bytes, uint64_t tag)
{
    struct self_link *link = (struct self_link *)head;

    if (head->status != HOOP_OK)
        return head->status;
    if (bytes > head->frame)
        return hoop_fail(HOOP_ERR_ARG, "a frame of %zu bytes cannot come: the link's limit is %zu", bytes, head->frame);
    if (link->waiting == 0) {
        const enum hoop_status status = copy_out(link, data, bytes, tag);

        if (status == HOOP_OK)
            head->received_done = ++head->received;
        if (status != HOOP_AGAIN)
            return status;
    }
    if (link->waiting == link->slots)
        return HOOP_AGAIN;
    link->pending[(link->waiting_first + link->waiting++) % link->slots] = (struct pending){data, bytes, tag};
    head->received++;
    return HOOP_OK;
}

static enum hoop_status self_peek(struct hoop_link *head, size_t bytes, uint64_t tag, const void **data)
{
    struct self_link *link = (struct self_link *)head;
    const struct frame *frame;

    if (head->status != HOOP_OK)
        return head->status;
    const enum hoop_status status = look(link, bytes, tag, &frame);
    if (status != HOOP_OK)
        return status;
    link->shown = true;
    *data = frame->data;
    return HOOP_OK;
}

static enum hoop_status self_release(struct hoop_link *head)
{
    struct self_link *link = (struct self_link *)head;

    if (head->status != HOOP_OK)
        return head->status;
    if (!link->shown)
        return hoop_fail(HOOP_ERR_ARG, "release without a frame shown by peek");
    link->shown = false;
    take(link);
    head->received_done = ++head->received;
    return HOOP_OK;
}

static enum hoop_status make_room(const struct self_link *link, size_t bytes)
{
    if (link->head.status != HOOP_OK)
        return link->head.status;
    if (bytes > link->head.frame)
        return hoop_fail(HOOP_ERR_ARG, "a frame of %zu bytes is too large: the link's limit is %zu", bytes,
                         link->head.frame);
    return link->count < link->slots ? HOOP_OK : HOOP_AGAIN;
}

static unsigned char *next_slot(const struct self_link *link)
{
    return link->room + (link->first + link->count) % link->slots * link->stride;
}

/* Queue a frame. One that lies in its slot is complete for the sender, unless an older one is still lent. */
static void push(struct self_link *link, const void *data, size_t bytes, uint64_t tag)
{
    const bool lends = data != next_slot(link);

    link->frame[(link->first + link->count++) % link->slots] = (struct frame){data, bytes, tag};
    link->reserved = SIZE_MAX;
    link->head.sent++;
    if (lends)
        link->lent = link->head.sent;
    else if (link->taken >= link->lent)
        link->head.sent_done = link->head.sent;
}

static enum hoop_status self_send(struct hoop_link *head, const void *data, size_t bytes, uint64_t tag, unsigned flags)
{
    struct self_link *link = (struct self_link *)head;
    const enum hoop_status status = make_room(link, bytes);

    if (status != HOOP_OK)
        return status;
    if ((flags & HOOP_SEND_STAGED) || bytes == 0) {
        if (bytes > 0)
            memcpy(next_slot(link), data, bytes);
        data = next_slot(link);
    }
    push(link, data, bytes, tag);
    return HOOP_OK;
}

static enum hoop_status self_reserve(struct hoop_link *head, size_t bytes, void **data)
{
    struct self_link *link = (struct self_link *)head;
    const enum hoop_status status = make_room(link, bytes);

    if (status != HOOP_OK)
        return status;
    link->reserved = bytes;
    *data = next_slot(link);
    return HOOP_OK;
}

static enum hoop_status self_commit(struct hoop_link *head, size_t bytes, uint64_t tag)
{
    struct self_link *link = (struct self_link *)head;

    if (head->status != HOOP_OK)
        return head->status;
    if (link->reserved == SIZE_MAX || bytes > link->reserved)
        return hoop_fail(HOOP_ERR_ARG, "commit of %zu bytes that were not reserved", bytes);
    push(link, next_slot(link), bytes, tag);
    return HOOP_OK;
}

static bool move_receives(struct self_link *link)
{
    bool moved = false;

    while (link->waiting > 0) {
        const struct pending *pending = &link->pending[link->waiting_first];
        const enum hoop_status status = copy_out(link, pending->data, pending->bytes, pending->tag);

        if (status == HOOP_AGAIN)
            break;
        moved = true;
        if (status != HOOP_OK)
            break; /* dead: nothing waits any more */
        link->waiting_first = (link->waiting_first + 1) % link->slots;
        link->waiting--;
        link->head.received_done++;
    }
    return moved;
}

static enum hoop_status self_progress(struct hoop_domain *head)
{
    struct self_domain *domain = (struct self_domain *)head;
    bool moved = false;

    for (int lane = 0; lane < domain->lanes; lane++)
        if (domain->links[lane])
            moved |= move_receives(domain->links[lane]);
    return moved ? HOOP_OK : HOOP_AGAIN;
}

static enum hoop_status self_address(struct hoop_domain *head, unsigned char *blob, size_t *size)
{
    struct hoop_writer writer = hoop_writer(blob, HOOP_ADDRESS_MAX);

    hoop_put_u32(&writer, BLOB_MAGIC);
    hoop_put_u32(&writer, (uint32_t)head->rank);
    *size = hoop_writer_used(&writer);
    return HOOP_OK;
}

static enum hoop_status self_cost(struct hoop_domain *head, const unsigned char *blob, size_t size,
                                  struct hoop_transport_cost *cost)
{
    struct hoop_reader reader = hoop_reader(blob, size);

    hoop_get_u32_range(&reader, BLOB_MAGIC, BLOB_MAGIC);
    const uint32_t rank = hoop_get_u32_range(&reader, 0, (uint32_t)head->ranks - 1);
    if (!hoop_reader_done(&reader))
        return hoop_fail(HOOP_ERR_ARG, "%zu bytes that are not the self address of a rank below %d", size, head->ranks);
    *cost = (struct hoop_transport_cost){.reachable = rank == (uint32_t)head->rank};
    return HOOP_OK;
}

static enum hoop_status check_peer(struct self_domain *domain, int peer, int lane, const unsigned char *blob,
                                   size_t size)
{
    struct hoop_transport_cost cost = {.reachable = true};

    if (peer != domain->head.rank || lane < 0 || lane >= domain->lanes)
        return hoop_fail(HOOP_ERR_ARG, "rank %d cannot connect self to rank %d on lane %d of %d", domain->head.rank,
                         peer, lane, domain->lanes);
    if (domain->links[lane])
        return hoop_fail(HOOP_ERR_ARG, "the self link of lane %d exists already", lane);
    if (blob) {
        const enum hoop_status status = self_cost(&domain->head, blob, size, &cost);

        if (status != HOOP_OK)
            return status;
    }
    return cost.reachable ? HOOP_OK : hoop_fail(HOOP_ERR_ARG, "the self address given is another rank's");
}

static void free_link(struct self_link *link)
{
    hoop_free(link->room);
    hoop_free(link->frame);
    hoop_free(link->pending);
    hoop_free(link);
}

static enum hoop_status self_connect(struct hoop_domain *head, int peer, int lane, const unsigned char *blob,
                                     size_t size, struct hoop_link **result)
{
    struct self_domain *domain = (struct self_domain *)head;
    const enum hoop_status status = check_peer(domain, peer, lane, blob, size);
    const size_t slots = (size_t)domain->slots;

    if (status != HOOP_OK)
        return status;
    struct self_link *link = hoop_calloc(1, sizeof *link);
    if (!link)
        return HOOP_ERR_MEMORY;
    link->stride = (domain->frame + LINE - 1) / LINE * LINE + LINE; /* never 0: slots have addresses of their own */
    link->room = hoop_calloc_aligned(LINE, slots, link->stride);
    link->frame = hoop_calloc(slots, sizeof *link->frame);
    link->pending = hoop_calloc(slots, sizeof *link->pending);
    if (!link->room || !link->frame || !link->pending) {
        free_link(link);
        return HOOP_ERR_MEMORY;
    }
    link->head = (struct hoop_link){
        .transport = head->transport, .domain = head, .peer = peer, .lane = lane, .frame = domain->frame};
    link->slots = (uint32_t)slots;
    link->reserved = SIZE_MAX;
    domain->links[lane] = link;
    *result = &link->head;
    return HOOP_OK;
}

static void self_disconnect(struct hoop_link *head)
{
    ((struct self_domain *)head->domain)->links[head->lane] = NULL;
    free_link((struct self_link *)head);
}

static enum hoop_status self_probe(void)
{
    return HOOP_OK;
}

static enum hoop_status self_open(const struct hoop_domain_setup *setup, struct hoop_domain **result)
{
    if (setup->rank < 0 || setup->rank >= setup->ranks || setup->lanes < 1 || setup->slots < 2 ||
        setup->slots > SLOTS_MAX || setup->frame > FRAME_MAX)
        return hoop_fail(HOOP_ERR_ARG, "self: rank %d of %d, %d lanes, %d slots of %zu bytes are out of range",
                         setup->rank, setup->ranks, setup->lanes, setup->slots, setup->frame);
    struct self_domain *domain = hoop_calloc(1, sizeof *domain + (size_t)setup->lanes * sizeof(struct self_link *));
    if (!domain)
        return HOOP_ERR_MEMORY;
    domain->head = (struct hoop_domain){&hoop_transport_self, setup->rank, setup->ranks};
    domain->frame = setup->frame;
    domain->slots = setup->slots;
    domain->lanes = setup->lanes;
    *result = &domain->head;
    return HOOP_OK;
}

static void self_close(struct hoop_domain *head)
{
    struct self_domain *domain = (struct self_domain *)head;

    for (int lane = 0; domain && lane < domain->lanes; lane++)
        if (domain->links[lane])
            free_link(domain->links[lane]);
    hoop_free(domain);
}

static void self_describe(const struct hoop_link *head, char *text, size_t size)
{
    if (size > 0)
        snprintf(text, size, "self %d, lane %d, %u slots of %zu bytes", head->peer, head->lane,
                 ((const struct self_link *)head)->slots, head->frame);
}

const struct hoop_transport hoop_transport_self = {
    .size = sizeof(struct hoop_transport),
    .name = "self",
    .probe = self_probe,
    .open = self_open,
    .close = self_close,
    .address = self_address,
    .cost = self_cost,
    .connect = self_connect,
    .disconnect = self_disconnect,
    .send = self_send,
    .recv = self_recv,
    .progress = self_progress,
    .reserve = self_reserve,
    .commit = self_commit,
    .peek = self_peek,
    .release = self_release,
    .describe = self_describe,
};
