// SPDX-License-Identifier: BSD-3-Clause
/* The two streams of a connection: what is to be sent, and what comes.
 *
 * A header is: bytes and kind, how many frames the sender of the header has taken, and the tag (of CLOSE: why). A frame that was lent
 * is copied only when the kernel does not take it at once and its owner will not wait. A frame that is expected when its header
 * comes goes straight to where it is wanted; any other into its landing slot, which the credit has kept free for it.
 */
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/status.h"
#include "transports/tcp/inside.h"
#include "wire/cursor.h"

enum { KIND_SHIFT = 28 };

/* ---- out ---- */

static struct tcp_out *out_at(const struct tcp_link *link, uint32_t i)
{
    return &link->out[(link->out_first + i) % link->out_room];
}

/* What a dropped link still holds is nobody's to wait for. */
static void count_queued(struct tcp_link *link, uint32_t more, uint32_t less)
{
    if (!link->dropped)
        tcp_domain_of(link)->queued += more - less;
}

void tcp_queue(struct tcp_link *link, enum tcp_kind kind, const void *data, size_t bytes, uint64_t tag)
{
    struct tcp_out *out = out_at(link, link->out_count++);
    struct hoop_writer writer = hoop_writer(out->header, sizeof out->header);

    link->told = (uint32_t)link->taken;
    hoop_put_u32(&writer, (uint32_t)bytes | (uint32_t)kind << KIND_SHIFT);
    hoop_put_u32(&writer, link->told);
    hoop_put_u64(&writer, tag);
    out->data = data;
    out->bytes = bytes;
    out->number = kind == TCP_DATA ? link->head.sent : 0;
    out->lent = false;
    count_queued(link, 1, 0);
}

void tcp_watch_out(struct tcp_link *link, bool out)
{
    struct epoll_event event = {.events = EPOLLIN | (out ? (uint32_t)EPOLLOUT : 0), .data = {.ptr = &link->source}};

    if (link->watched_out != out && link->source.sock >= 0)
        epoll_ctl(tcp_domain_of(link)->poll, EPOLL_CTL_MOD, link->source.sock, &event);
    link->watched_out = out;
}

/* So many bytes have left: drop what is whole. */
static void advance(struct tcp_link *link, size_t moved)
{
    link->out_offset += moved;
    while (link->out_count > 0) {
        const struct tcp_out *out = out_at(link, 0);

        if (link->out_offset < TCP_HEADER + out->bytes)
            return;
        link->out_offset -= TCP_HEADER + out->bytes;
        link->out_first = (link->out_first + 1) % link->out_room;
        link->out_count--;
        count_queued(link, 0, 1);
        if (out->lent) {
            link->lent--;
            link->head.sent_done = link->lent == 0 ? link->head.sent : out->number;
            tcp_domain_of(link)->moved = true;
        }
    }
}

/* Nothing more leaves through this socket. */
static void hang_up(struct tcp_link *link)
{
    shutdown(link->source.sock, SHUT_WR);
    link->hung_up = true;
    tcp_watch_out(link, false);
}

void tcp_push(struct tcp_link *link)
{
    while (link->out_count > 0 && link->state == TCP_OPEN && !link->hung_up) {
        struct iovec parts[4];
        int n = 0;
        size_t moved;

        for (uint32_t i = 0; i < 2 && i < link->out_count; i++) {
            struct tcp_out *out = out_at(link, i);
            parts[n++] = (struct iovec){out->header, TCP_HEADER};
            if (out->bytes > 0)
                parts[n++] = (struct iovec){(void *)(uintptr_t)out->data, out->bytes};
        }
        const enum hoop_status status = hoop_sock_send_parts(link->source.sock, parts, n, link->out_offset, &moved);
        if (status == HOOP_AGAIN) {
            tcp_watch_out(link, true);
            return;
        }
        if (status != HOOP_OK) { /* the reading side tells why */
            hang_up(link);
            return;
        }
        HOOP_FAULT_CUTS(PUSH, link->source.sock);
        advance(link, moved);
    }
    if (link->state != TCP_OPEN || link->hung_up)
        return;
    if (link->finished) {
        hang_up(link);
        return;
    }
    tcp_watch_out(link, false);
    if (tcp_owes_credit(link)) /* it may have come about while frames with older news were queued */
        tcp_tell(link);
}

void tcp_tell(struct tcp_link *link)
{
    if (link->told == (uint32_t)link->taken || link->finished || link->out_count > 0 || link->state != TCP_OPEN)
        return; /* of a peer that has gone, frames may still be taken */
    tcp_queue(link, TCP_CREDIT, NULL, 0, 0);
    tcp_push(link);
}

void tcp_own(struct tcp_link *link)
{
    for (uint32_t i = 0; i < link->out_count && link->lent > 0; i++) {
        struct tcp_out *out = out_at(link, i);

        if (!out->lent)
            continue;
        out->data = memcpy(link->stage + out->number % link->slots * link->stride, out->data, out->bytes);
        out->lent = false;
        link->lent--;
    }
}

/* ---- ends ---- */

static void forget_out(struct tcp_link *link)
{
    count_queued(link, 0, link->out_count);
    link->out_count = link->lent = 0;
    link->out_offset = 0;
}

void tcp_end(struct tcp_link *link, enum hoop_status why)
{
    if (link->source.sock >= 0)
        close(link->source.sock);
    link->source.sock = -1;
    link->state = TCP_ENDED;
    link->reading = false;
    if (link->closed == HOOP_OK)
        link->closed = why;
    if (link->lent > 0 && link->head.status == HOOP_OK)
        tcp_die(link, link->closed);
    forget_out(link);
    tcp_settle(link);
}

void tcp_settle(struct tcp_link *link)
{
    if (link->closed != HOOP_OK && link->head.status == HOOP_OK && link->arrived == link->taken &&
        link->pending_count > 0)
        tcp_die(link, link->closed);
}

void tcp_bury(struct tcp_link *link, enum hoop_status status)
{
    struct hoop_link *head = &link->head;

    head->status = status;
    tcp_own(link);
    head->sent_done = head->sent;
    head->received_done = head->received;
    link->pending_count = 0;
    link->direct = false;
    tcp_domain_of(link)->moved = true;
    if (!link->finished && link->closed == HOOP_OK) {
        tcp_queue(link, TCP_CLOSE, NULL, 0, (uint64_t)-status);
        link->finished = true;
        tcp_push(link);
    }
}

enum hoop_status tcp_die(struct tcp_link *link, enum hoop_status status)
{
    const struct hoop_link *head = &link->head;

    if (link->closed != HOOP_OK && link->tries_count > 0 && link->trying == link->tries_count)
        hoop_fail(status,
                  "rank %d: no address of rank %d answers: tried %s. Set HOOP_IFACE to an interface that both hosts "
                  "share.",
                  head->domain->rank, head->peer, link->tried);
    else if (link->closed != HOOP_OK)
        hoop_fail(status, "rank %d: rank %d has ended the tcp link of lane %d%s", head->domain->rank, head->peer,
                  head->lane, status == HOOP_ERR_MISMATCH ? ": it is in another call" : "");
    tcp_bury(link, status);
    return status;
}

/* ---- in ---- */

static unsigned char *slot_of(const struct tcp_link *link, uint64_t number)
{
    return link->landing + number % link->slots * link->stride;
}

/* The peer breaks the rules of the stream. */
static void spoilt(struct tcp_link *link, const char *how)
{
    hoop_fail(HOOP_ERR_INTERNAL, "rank %d: the tcp stream from rank %d, lane %d, is damaged: %s",
              link->head.domain->rank, link->head.peer, link->head.lane, how);
    if (link->head.status == HOOP_OK)
        tcp_die(link, HOOP_ERR_INTERNAL);
    tcp_end(link, HOOP_ERR_INTERNAL);
}

static void begin_frame(struct tcp_link *link, size_t bytes, uint64_t tag)
{
    const struct tcp_landed frame = {bytes, tag};

    if (bytes > link->head.frame || link->begun - link->taken >= link->slots) {
        spoilt(link, bytes > link->head.frame ? "a frame is too large" : "more frames than there is room for");
        return;
    }
    link->direct = link->pending_count > 0 && link->begun == link->taken;
    if (link->direct) {
        const struct tcp_pending *pending = &link->pending[link->pending_first];
        if (tcp_compare(link, frame, pending->bytes, pending->tag) != HOOP_OK)
            return;
        link->into = pending->data;
    } else {
        link->landed[link->begun % link->slots] = frame;
        link->into = slot_of(link, link->begun);
    }
    link->begun++;
    link->left = bytes;
    link->reading = true;
}

/* A header has come. Returns false if nothing more is to be read. */
static bool hear(struct tcp_link *link, const unsigned char header[TCP_HEADER])
{
    struct hoop_reader reader = hoop_reader(header, TCP_HEADER);
    const uint32_t word = hoop_get_u32(&reader), credited = hoop_get_u32(&reader);
    const uint64_t tag = hoop_get_u64(&reader);
    const uint32_t sent = (uint32_t)link->head.sent;

    if (sent - credited > sent - link->credited) {
        spoilt(link, "it has taken more than was sent");
        return false;
    }
    link->credited = credited;
    switch (word >> KIND_SHIFT) {
    case TCP_DATA:
        begin_frame(link, word & ((1u << KIND_SHIFT) - 1), tag);
        break;
    case TCP_CREDIT:
        break;
    case TCP_CLOSE:
        link->closed = tag == (uint64_t)-HOOP_ERR_MISMATCH || tag == (uint64_t)-HOOP_ERR_INTERNAL
                           ? (enum hoop_status)(-(int)tag)
                           : HOOP_ERR_PEER;
        return false;
    default:
        spoilt(link, "a header of unknown kind");
    }
    return link->head.status == HOOP_OK && link->state == TCP_OPEN;
}

static void end_frame(struct tcp_link *link)
{
    link->reading = false;
    link->arrived++;
    tcp_domain_of(link)->moved = true;
    if (!link->direct)
        return;
    link->direct = false;
    link->pending_first = (link->pending_first + 1) % link->slots;
    link->pending_count--;
    link->head.received_done++;
    tcp_take(link);
}

/* Go through what has been read ahead. False: the rest is nobody's. */
static bool parse(struct tcp_link *link)
{
    for (;;) {
        const size_t have = link->end - link->at;

        if (link->reading) {
            const size_t piece = have < link->left ? have : link->left;
            if (piece > 0) {
                memcpy(link->into, link->buffer + link->at, piece);
                link->into += piece;
                link->left -= piece;
                link->at += piece;
            }
            if (link->left > 0)
                return true;
            end_frame(link);
        } else if (have < TCP_HEADER) {
            return true;
        } else {
            link->at += TCP_HEADER;
            if (!hear(link, link->buffer + link->at - TCP_HEADER))
                return false;
        }
    }
}

/* Read once more. HOOP_OK: there may be more still; HOOP_AGAIN: not now; HOOP_ERR_PEER: the end. */
static enum hoop_status fill(struct tcp_link *link)
{
    struct iovec parts[2];
    size_t moved, direct = link->reading ? link->left : 0;
    int n = 0;

    memmove(link->buffer, link->buffer + link->at, link->end - link->at);
    link->end -= link->at;
    link->at = 0;
    if (direct > 0)
        parts[n++] = (struct iovec){link->into, direct};
    parts[n++] = (struct iovec){link->buffer + link->end, TCP_BUFFER - link->end};
    const size_t room = direct + TCP_BUFFER - link->end;
    const enum hoop_status status = hoop_sock_recv_parts(link->source.sock, parts, n, &moved);
    if (status != HOOP_OK)
        return status;
    direct = moved < direct ? moved : direct;
    if (direct > 0) {
        link->into += direct;
        link->left -= direct;
    }
    link->end += moved - direct;
    return moved == room ? HOOP_OK : HOOP_AGAIN;
}

/* After the link's end: read and forget, until the peer has hung up, too. */
static void discard(struct tcp_link *link)
{
    size_t moved;

    for (int i = 0; i < 16; i++) {
        const enum hoop_status status = hoop_sock_recv_some(link->source.sock, link->buffer, TCP_BUFFER, &moved);
        if (status == HOOP_AGAIN)
            return;
        if (status != HOOP_OK) {
            tcp_end(link, HOOP_ERR_PEER);
            return;
        }
    }
}

void tcp_pull(struct tcp_link *link)
{
    enum hoop_status status = HOOP_OK;

    while (status == HOOP_OK && link->state == TCP_OPEN && link->closed == HOOP_OK && link->head.status == HOOP_OK) {
        status = fill(link);
        if (status != HOOP_ERR_PEER && !parse(link))
            break;
    }
    if (status == HOOP_ERR_PEER)
        tcp_end(link, HOOP_ERR_PEER);
    else if (link->state == TCP_OPEN && (link->closed != HOOP_OK || link->head.status != HOOP_OK))
        discard(link);
    tcp_settle(link);
}
