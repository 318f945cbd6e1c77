// SPDX-License-Identifier: BSD-3-Clause
/* A shared-memory link at work: the three ways of a frame, loans, and the link's death. */
#include "transports/shm/link.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

/* Lending a smaller buffer costs more (one more trip of the counter's line) than copying it. */
enum { DIRECT_LEAST = 1024 };

static struct shm_domain *domain_of(const struct shm_link *link)
{
    return (struct shm_domain *)link->head.domain;
}

/* ---- busy list ---- */

static void busy_add(struct shm_link *link)
{
    struct shm_domain *domain = domain_of(link);

    if (link->is_busy)
        return;
    link->is_busy = true;
    link->next = domain->busy;
    link->back = &domain->busy;
    if (link->next)
        link->next->back = &link->next;
    domain->busy = link;
}

static void busy_remove(struct shm_link *link)
{
    if (!link->is_busy)
        return;
    link->is_busy = false;
    *link->back = link->next;
    if (link->next)
        link->next->back = link->back;
}

/* ---- death ---- */

static void complete_all(struct shm_link *link)
{
    link->head.sent_done = link->head.sent;
    link->head.received_done = link->head.received;
    link->lending = false;
    link->count = 0;
    busy_remove(link);
}

/* The link is dead; the error text has been written. The peer learns the cause through both rings. */
static __attribute__((cold)) enum hoop_status die(struct shm_link *link, enum hoop_status status)
{
    link->head.status = status;
    hoop_ring_give_up_sending(&link->out, status);
    hoop_ring_give_up_taking(&link->in, status);
    complete_all(link);
    hoop_bell_ring(link->bell);
    return status;
}

/* The peer's end says so, or makes no sense. */
static __attribute__((cold)) enum hoop_status die_of_peer(struct shm_link *link, enum hoop_status status)
{
    const int peer = link->head.peer, lane = link->head.lane;

    if (status == HOOP_ERR_PEER)
        hoop_fail(status, "rank %d has closed its shm link, lane %d", peer, lane);
    else if (status == HOOP_ERR_MISMATCH)
        hoop_fail(status, "rank %d found on lane %d that its call and this rank's differ", peer, lane);
    else
        hoop_fail(
            status,
            "the shm link to rank %d, lane %d, is broken: rank %d gave it up, or a rank wrote over the shared memory",
            peer, lane, peer);
    return die(link, status);
}

static __attribute__((cold)) enum hoop_status die_of_frame(struct shm_link *link, const struct hoop_frame *frame,
                                                           size_t bytes, uint64_t tag)
{
    const int rank = link->head.domain->rank, peer = link->head.peer, lane = link->head.lane;

    if (frame->tag != tag)
        return die(link, hoop_fail(HOOP_ERR_MISMATCH,
                                   "mismatch on lane %d: rank %d is in call %016llx, rank %d in call %016llx", lane,
                                   rank, (unsigned long long)tag, peer, (unsigned long long)frame->tag));
    if (frame->bytes != bytes)
        return die(link, hoop_fail(HOOP_ERR_INTERNAL, "lane %d: rank %d sent %zu bytes where rank %d expects %zu", lane,
                                   peer, frame->bytes, rank, bytes));
    return die(link, hoop_fail(HOOP_ERR_INTERNAL,
                               "lane %d: rank %d lends %zu bytes at offset %llu of the board, outside its heap", lane,
                               peer, frame->bytes, (unsigned long long)frame->offset));
}

/* ---- receiving ---- */

/* Where a lent frame lies in this process, or NULL if it is not inside the peer's heap. */
static const void *lent_data(const struct shm_link *link, const struct hoop_frame *frame)
{
    const struct hoop_board *board = link->board;
    const uint64_t from = hoop_board_heap_offset(board, link->head.peer), heap = board->shape.heap;

    if (frame->offset < from || frame->offset - from > heap || frame->bytes > heap - (frame->offset - from))
        return NULL;
    return board->base + frame->offset;
}

/* The next frame, if it has come and is the one that is expected. */
static inline enum hoop_status look(struct shm_link *link, size_t bytes, uint64_t tag, struct hoop_frame *frame)
{
    const enum hoop_status status = hoop_ring_look(&link->in, frame);

    if (status != HOOP_OK)
        return status == HOOP_AGAIN ? HOOP_AGAIN : die_of_peer(link, status);
    if (frame->tag != tag || frame->bytes != bytes)
        return die_of_frame(link, frame, bytes, tag);
    if (frame->kind == HOOP_FRAME_DIRECT) {
        frame->data = lent_data(link, frame);
        if (!frame->data)
            return die_of_frame(link, frame, bytes, tag);
    }
    return HOOP_OK;
}

/* Give the frame back. What was read from lent memory counts only if the peer still lent it. */
static inline enum hoop_status take(struct shm_link *link, bool direct)
{
    if (direct) {
        const enum hoop_status status = hoop_ring_lender_status(&link->in);

        if (status != HOOP_OK)
            return die_of_peer(link, status);
    }
    hoop_ring_take(&link->in);
    hoop_bell_ring(link->bell);
    return HOOP_OK;
}

static enum hoop_status copy_out(struct shm_link *link, void *data, size_t bytes, uint64_t tag)
{
    struct hoop_frame frame;
    const enum hoop_status status = look(link, bytes, tag, &frame);

    if (status != HOOP_OK)
        return status;
    if (bytes > 0)
        memcpy(data, frame.data, bytes);
    return take(link, frame.kind == HOOP_FRAME_DIRECT);
}

enum hoop_status shm_recv(struct hoop_link *head, void *data, size_t bytes, uint64_t tag)
{
    struct shm_link *link = (struct shm_link *)head;

    if (head->status != HOOP_OK)
        return head->status;
    if (bytes > head->frame)
        return hoop_fail(HOOP_ERR_ARG, "a frame of %zu bytes cannot come: the link's limit is %zu", bytes, head->frame);
    if (link->count == 0) {
        const enum hoop_status status = copy_out(link, data, bytes, tag);

        if (status != HOOP_AGAIN) {
            if (status == HOOP_OK)
                head->received_done = ++head->received;
            return status;
        }
    }
    if (link->count == link->in.slots)
        return HOOP_AGAIN;
    const uint32_t at = (link->first + link->count++) % link->in.slots;
    link->pending[at] = (struct shm_pending){data, bytes, tag};
    head->received++;
    busy_add(link);
    return HOOP_OK;
}

enum hoop_status shm_peek(struct hoop_link *head, size_t bytes, uint64_t tag, const void **data)
{
    struct shm_link *link = (struct shm_link *)head;
    struct hoop_frame frame;

    if (head->status != HOOP_OK)
        return head->status;
    const enum hoop_status status = look(link, bytes, tag, &frame);
    if (status != HOOP_OK)
        return status;
    link->shown = frame.kind == HOOP_FRAME_DIRECT ? SHOWN_DIRECT : SHOWN_SLOT;
    *data = frame.data;
    return HOOP_OK;
}

enum hoop_status shm_release(struct hoop_link *head)
{
    struct shm_link *link = (struct shm_link *)head;

    if (head->status != HOOP_OK)
        return head->status;
    if (link->shown == SHOWN_NOTHING)
        return hoop_fail(HOOP_ERR_ARG, "release without a frame shown by peek");
    const enum hoop_status status = take(link, link->shown == SHOWN_DIRECT);
    link->shown = SHOWN_NOTHING;
    if (status == HOOP_OK)
        head->received_done = ++head->received;
    return status;
}

/* ---- sending ---- */

static inline enum hoop_status make_room(struct shm_link *link, size_t bytes)
{
    if (link->head.status != HOOP_OK)
        return link->head.status;
    if (bytes > link->head.frame)
        return hoop_fail(HOOP_ERR_ARG, "a frame of %zu bytes is too large: the link's limit is %zu", bytes,
                         link->head.frame);
    const enum hoop_status status = hoop_ring_room(&link->out);
    return status < 0 ? die_of_peer(link, status) : status;
}

static inline void publish(struct shm_link *link, enum hoop_frame_kind kind, size_t bytes, uint64_t tag)
{
    hoop_ring_publish(&link->out, kind, bytes, tag);
    link->reserved = SIZE_MAX;
    link->head.sent++;
    if (!link->lending)
        link->head.sent_done = link->head.sent;
    hoop_bell_ring(link->bell);
}

enum hoop_status shm_send(struct hoop_link *head, const void *data, size_t bytes, uint64_t tag, unsigned flags)
{
    struct shm_link *link = (struct shm_link *)head;
    const enum hoop_status status = make_room(link, bytes);
    size_t offset;

    if (status != HOOP_OK)
        return status;
    if (bytes <= HOOP_RING_INLINE) {
        if (bytes > 0)
            memcpy(hoop_ring_head(&link->out)->data, data, bytes);
        publish(link, HOOP_FRAME_INLINE, bytes, tag);
    } else if (bytes >= DIRECT_LEAST && !(flags & HOOP_SEND_STAGED) &&
               hoop_board_owns(link->board, data, bytes, &offset)) {
        HOOP_ATOMIC_STORE(&hoop_ring_head(&link->out)->offset, offset, relaxed);
        link->lending = true;
        publish(link, HOOP_FRAME_DIRECT, bytes, tag);
        link->lent = link->out.sent;
        busy_add(link);
    } else {
        memcpy(hoop_ring_slot(&link->out), data, bytes);
        publish(link, HOOP_FRAME_SLOT, bytes, tag);
    }
    return HOOP_OK;
}

enum hoop_status shm_reserve(struct hoop_link *head, size_t bytes, void **data)
{
    struct shm_link *link = (struct shm_link *)head;
    const enum hoop_status status = make_room(link, bytes);

    if (status != HOOP_OK)
        return status;
    link->reserved = bytes;
    *data = bytes <= HOOP_RING_INLINE ? hoop_ring_head(&link->out)->data : hoop_ring_slot(&link->out);
    return HOOP_OK;
}

enum hoop_status shm_commit(struct hoop_link *head, size_t bytes, uint64_t tag)
{
    struct shm_link *link = (struct shm_link *)head;

    if (head->status != HOOP_OK)
        return head->status;
    if (link->reserved == SIZE_MAX || bytes > link->reserved)
        return hoop_fail(HOOP_ERR_ARG, "commit of %zu bytes that were not reserved", bytes);
    const enum hoop_frame_kind kind = link->reserved <= HOOP_RING_INLINE ? HOOP_FRAME_INLINE : HOOP_FRAME_SLOT;
    publish(link, kind, bytes, tag);
    return HOOP_OK;
}

/* ---- progress ---- */

/* What the peer has taken: sent_done follows the counter while a lent frame is out, and is `sent` when none is. */
static bool settle_loans(struct shm_link *link)
{
    const uint64_t before = link->head.sent_done;
    const enum hoop_status status = hoop_ring_refresh(&link->out);

    if (status != HOOP_OK) {
        die_of_peer(link, status);
        return true;
    }
    if ((int32_t)(link->out.seen - link->lent) >= 0) {
        link->lending = false;
        link->head.sent_done = link->head.sent;
    } else {
        const uint64_t taken = link->head.sent - (link->out.sent - link->out.seen);

        if (taken > before)
            link->head.sent_done = taken;
    }
    return link->head.sent_done != before;
}

static bool move_receives(struct shm_link *link)
{
    bool moved = false;

    while (link->count > 0) {
        const struct shm_pending *pending = &link->pending[link->first];
        const enum hoop_status status = copy_out(link, pending->data, pending->bytes, pending->tag);

        if (status == HOOP_AGAIN)
            break;
        moved = true;
        if (status != HOOP_OK)
            break; /* dead: nothing is pending any more */
        link->first = hoop_ring_turn(link->first, link->in.slots);
        link->count--;
        link->head.received_done++;
    }
    return moved;
}

enum hoop_status shm_progress(struct hoop_domain *head)
{
    struct shm_domain *domain = (struct shm_domain *)head;
    struct shm_link *link = domain->busy, *next;
    bool moved = false;

    for (; link; link = next) {
        next = link->next;
        if (link->lending)
            moved |= settle_loans(link);
        if (link->count > 0)
            moved |= move_receives(link);
        if (!link->lending && link->count == 0)
            busy_remove(link);
    }
    return moved ? HOOP_OK : HOOP_AGAIN;
}

void shm_disconnect(struct hoop_link *head)
{
    struct shm_link *link = (struct shm_link *)head;
    struct shm_domain *domain = domain_of(link);

    complete_all(link);
    hoop_ring_hang_up_sending(&link->out);
    hoop_ring_hang_up_taking(&link->in);
    hoop_bell_ring(link->bell);
    domain->links[head->peer * domain->lanes + head->lane] = NULL;
    hoop_free(link);
}
