// SPDX-License-Identifier: BSD-3-Clause
/* What a link's owner calls. */
#include <string.h>

#include "base/status.h"
#include "transports/tcp/inside.h"

/* ---- out ---- */

/* May a frame of that many bytes be sent now? */
static enum hoop_status make_room(struct tcp_link *link, size_t bytes)
{
    if (link->head.status != HOOP_OK)
        return link->head.status;
    if (bytes > link->head.frame)
        return hoop_fail(HOOP_ERR_ARG, "a frame of %zu bytes is too large: the link's limit is %zu", bytes,
                         link->head.frame);
    if (link->closed != HOOP_OK)
        return tcp_die(link, link->closed);
    return (uint32_t)link->head.sent - link->credited < link->slots ? HOOP_OK : HOOP_AGAIN;
}

static unsigned char *stage_of(const struct tcp_link *link, uint64_t number)
{
    return link->stage + number % link->slots * link->stride;
}

/* A frame whose data are the link's own is complete for the sender, unless an older one is still lent. */
static void complete(struct tcp_link *link)
{
    if (link->lent == 0)
        link->head.sent_done = link->head.sent;
}

enum hoop_status tcp_send(struct hoop_link *head, const void *data, size_t bytes, uint64_t tag, unsigned flags)
{
    struct tcp_link *link = (struct tcp_link *)head;
    const enum hoop_status status = make_room(link, bytes);

    if (status != HOOP_OK)
        return status;
    head->sent++;
    link->reserved = SIZE_MAX;
    struct tcp_out *out = &link->out[(link->out_first + link->out_count) % link->out_room];
    tcp_queue(link, TCP_DATA, data, bytes, tag);
    out->lent = bytes > 0;
    link->lent += out->lent;
    if (!out->lent)
        complete(link);
    tcp_push(link);
    if ((flags & HOOP_SEND_STAGED) && link->out_count > 0 && out->lent) {
        out->data = memcpy(stage_of(link, head->sent), data, bytes);
        out->lent = false;
        link->lent--;
        complete(link);
    }
    return HOOP_OK;
}

enum hoop_status tcp_reserve(struct hoop_link *head, size_t bytes, void **data)
{
    struct tcp_link *link = (struct tcp_link *)head;
    const enum hoop_status status = make_room(link, bytes);

    if (status != HOOP_OK)
        return status;
    link->reserved = bytes;
    *data = stage_of(link, head->sent + 1);
    return HOOP_OK;
}

enum hoop_status tcp_commit(struct hoop_link *head, size_t bytes, uint64_t tag)
{
    struct tcp_link *link = (struct tcp_link *)head;

    if (head->status != HOOP_OK)
        return head->status;
    if (link->reserved == SIZE_MAX || bytes > link->reserved)
        return hoop_fail(HOOP_ERR_ARG, "commit of %zu bytes that were not reserved", bytes);
    link->reserved = SIZE_MAX;
    head->sent++;
    tcp_queue(link, TCP_DATA, stage_of(link, head->sent), bytes, tag);
    complete(link);
    tcp_push(link);
    return HOOP_OK;
}

/* ---- in ---- */

enum hoop_status tcp_compare(struct tcp_link *link, struct tcp_landed frame, size_t bytes, uint64_t tag)
{
    const int rank = link->head.domain->rank, peer = link->head.peer, lane = link->head.lane;

    if (frame.tag != tag)
        return tcp_die(link, hoop_fail(HOOP_ERR_MISMATCH,
                                       "lane %d: rank %d sent in call %016llx, rank %d receives in call %016llx", lane,
                                       peer, (unsigned long long)frame.tag, rank, (unsigned long long)tag));
    if (frame.bytes != bytes)
        return tcp_die(link, hoop_fail(HOOP_ERR_INTERNAL, "lane %d: rank %d sent %zu bytes, rank %d expects %zu", lane,
                                       peer, frame.bytes, rank, bytes));
    return HOOP_OK;
}

void tcp_take(struct tcp_link *link)
{
    link->taken++;
    tcp_domain_of(link)->idle = 0;
    if (tcp_owes_credit(link))
        tcp_tell(link);
}

/* The oldest frame that has landed and is whole, if there is one, and if it is what is expected. */
static enum hoop_status look(struct tcp_link *link, size_t bytes, uint64_t tag, const unsigned char **data)
{
    if (link->head.status != HOOP_OK)
        return link->head.status;
    if (link->arrived == link->taken) {
        tcp_domain_of(link)->wanted = link;
        return link->closed == HOOP_OK ? HOOP_AGAIN : tcp_die(link, link->closed);
    }
    const enum hoop_status status = tcp_compare(link, link->landed[link->taken % link->slots], bytes, tag);
    if (status == HOOP_OK)
        *data = link->landing + link->taken % link->slots * link->stride;
    return status;
}

/* The frame that is wanted next has begun to land in its slot: move what is there to where it is wanted; the rest follows. */
static enum hoop_status divert(struct tcp_link *link, unsigned char *data, size_t bytes, uint64_t tag)
{
    const uint64_t at = link->taken % link->slots;
    const enum hoop_status status = tcp_compare(link, link->landed[at], bytes, tag);

    if (status == HOOP_OK) {
        memcpy(data, link->landing + at * link->stride, bytes - link->left);
        link->into = data + (bytes - link->left);
        link->direct = true;
    }
    return status;
}

enum hoop_status tcp_recv(struct hoop_link *head, void *data, size_t bytes, uint64_t tag)
{
    struct tcp_link *link = (struct tcp_link *)head;
    const unsigned char *landed = NULL;

    if (head->status != HOOP_OK)
        return head->status;
    if (bytes > head->frame)
        return hoop_fail(HOOP_ERR_ARG, "a frame of %zu bytes cannot come: the link's limit is %zu", bytes, head->frame);
    if (link->pending_count == 0) {
        const enum hoop_status status = look(link, bytes, tag, &landed);

        if (status == HOOP_OK) {
            if (bytes > 0)
                memcpy(data, landed, bytes);
            head->received_done = ++head->received;
            tcp_take(link);
        }
        if (status != HOOP_AGAIN)
            return status;
        const enum hoop_status diverted = link->reading ? divert(link, data, bytes, tag) : HOOP_OK;
        if (diverted != HOOP_OK)
            return diverted;
    }
    if (link->pending_count == link->slots)
        return HOOP_AGAIN;
    link->pending[(link->pending_first + link->pending_count++) % link->slots] = (struct tcp_pending){data, bytes, tag};
    head->received++;
    return HOOP_OK;
}

enum hoop_status tcp_peek(struct hoop_link *head, size_t bytes, uint64_t tag, const void **data)
{
    struct tcp_link *link = (struct tcp_link *)head;
    const unsigned char *landed = NULL;
    const enum hoop_status status = look(link, bytes, tag, &landed);

    if (status != HOOP_OK)
        return status;
    link->shown = true;
    *data = landed;
    return HOOP_OK;
}

enum hoop_status tcp_release(struct hoop_link *head)
{
    struct tcp_link *link = (struct tcp_link *)head;

    if (head->status != HOOP_OK)
        return head->status;
    if (!link->shown)
        return hoop_fail(HOOP_ERR_ARG, "release without a frame shown by peek");
    link->shown = false;
    head->received_done = ++head->received;
    tcp_take(link);
    return HOOP_OK;
}
