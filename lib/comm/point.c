// SPDX-License-Identifier: BSD-3-Clause
/* Messages between two ranks.
 *
 * They travel on a lane of their own, so that they never mix with a collective's frames, and have no place in the order of
 * collectives. A message is a frame that says how many elements of which type follow, so that the receiver can compare it
 * with what it expects and show both, and then its pieces. Messages of one pair and direction go one after the other; all others
 * of a batch go on at the same time, so any set of sends and receives that fit together ends.
 */
#include <string.h>

#include "base/alloc.h"
#include "comm/comm.h"
#include "comm/messages.h"
#include "dtype/dtype.h"
#include "health/verdict.h"

static const uint64_t point_tag = 0x706f696e74; /* all frames of messages */

struct head {
    uint64_t count, type;
};

struct point {
    const struct hoop_comm_call *call;
    struct hoop_link *link; /* NULL: to this rank itself */
    size_t bytes, moved;
    bool announced; /* the head has been sent, or received and compared */
    bool done;
};

static bool is_send(const struct point *point)
{
    return (int)point->call->coll == HOOP_POINT_SEND;
}

/* ---- one message ---- */

static enum hoop_status announce(struct point *point)
{
    const struct head head = {point->call->count, (uint64_t)point->call->type};

    return point->link->transport->send(point->link, &head, sizeof head, point_tag, HOOP_SEND_STAGED);
}

static enum hoop_status refuse(const struct point *point, const struct head *head)
{
    struct hoop_comm *comm = point->call->comm;
    const int peer = point->call->root;

    hoop_verdict_pass(comm->board, (struct hoop_verdict){HOOP_VERDICT_PAIR, peer, comm->rank, 0});
    return hoop_fail(HOOP_ERR_MISMATCH, "mismatch: rank %d sends %llu %s where rank %d receives %zu %s", peer,
                     (unsigned long long)head->count, hoop_type_name((enum hoop_type)head->type), comm->rank,
                     point->call->count, hoop_type_name(point->call->type));
}

static enum hoop_status hear(struct point *point)
{
    struct head head;
    const void *data;

    enum hoop_status status = point->link->transport->peek(point->link, sizeof head, point_tag, &data);
    if (status != HOOP_OK)
        return status;
    memcpy(&head, data, sizeof head);
    status = point->link->transport->release(point->link);
    if (status == HOOP_OK && (head.count != point->call->count || head.type != (uint64_t)point->call->type))
        status = refuse(point, &head);
    return status;
}

static enum hoop_status move_piece(struct point *point, size_t bytes)
{
    const void *data;

    if (is_send(point))
        return point->link->transport->send(point->link, (const unsigned char *)point->call->in + point->moved, bytes,
                                            point_tag, 0);
    enum hoop_status status = point->link->transport->peek(point->link, bytes, point_tag, &data);
    if (status != HOOP_OK)
        return status;
    hoop_kernel_copy((unsigned char *)point->call->out + point->moved, data, bytes);
    return point->link->transport->release(point->link);
}

/* Go on until it would block. *any: something moved. */
static enum hoop_status advance(struct point *point, bool *any)
{
    if (!point->announced) {
        enum hoop_status status = is_send(point) ? announce(point) : hear(point);
        if (status != HOOP_OK)
            return status;
        point->announced = *any = true;
    }
    while (point->moved < point->bytes) {
        const size_t left = point->bytes - point->moved;
        const size_t piece = left < point->link->frame ? left : point->link->frame;
        enum hoop_status status = move_piece(point, piece);
        if (status != HOOP_OK)
            return status;
        point->moved += piece;
        *any = true;
    }
    point->done = *any = true;
    return HOOP_OK;
}

/* ---- a batch ---- */

/* The k-th send to this rank itself meets the k-th receive. */
static enum hoop_status copy_to_self(struct point *point, size_t points)
{
    size_t receive = 0;

    for (size_t send = 0; send < points; send++) {
        if (point[send].link || !is_send(&point[send]))
            continue;
        while (receive < points && (point[receive].link || is_send(&point[receive])))
            receive++;
        if (receive == points || point[receive].bytes != point[send].bytes ||
            point[receive].call->type != point[send].call->type)
            return hoop_fail(HOOP_ERR_MISMATCH,
                             "rank %d sends itself %zu %s and has no receive of the same in the group",
                             point->call->comm->rank, point[send].call->count, hoop_type_name(point[send].call->type));
        hoop_kernel_copy(point[receive].call->out, point[send].call->in, point[send].bytes);
        point[send].done = point[receive++].done = true;
    }
    for (; receive < points; receive++)
        if (point[receive].link == NULL && !is_send(&point[receive]))
            return hoop_fail(HOOP_ERR_MISMATCH, "rank %d receives from itself and has no send of the same in the group",
                             point->call->comm->rank);
    return HOOP_OK;
}

/* Is an earlier message of the same pair and direction still under way? */
static bool has_to_queue(const struct point *point, size_t i)
{
    for (size_t before = 0; before < i; before++)
        if (!point[before].done && point[before].link == point[i].link && is_send(&point[before]) == is_send(&point[i]))
            return true;
    return false;
}

/* One round over all messages. HOOP_OK: all are done, and no peer can still read the data. */
static enum hoop_status go_round(struct point *point, size_t points, bool *any, int *peer)
{
    bool all = true;

    for (size_t i = 0; i < points; i++) {
        if (point[i].link == NULL)
            continue;
        *peer = point[i].call->root;
        if (!point[i].done && !has_to_queue(point, i)) {
            enum hoop_status status = advance(&point[i], any);
            if (status < HOOP_OK)
                return status;
        }
        if (point[i].link->status != HOOP_OK)
            return point[i].link->status;
        all &= point[i].done && (!is_send(&point[i]) || point[i].link->sent_done == point[i].link->sent);
    }
    return all ? HOOP_OK : HOOP_AGAIN;
}

static enum hoop_status progress(struct hoop_comm *comm)
{
    struct hoop_domain *far = comm->hosts.domain;
    const enum hoop_status near = comm->domain->transport->progress(comm->domain);

    return far && far->transport->progress(far) == HOOP_OK ? HOOP_OK : near;
}

/* Say for which message the next step of waiting is. */
static void wait_for_first(struct hoop_wait *wait, const struct point *point, size_t points)
{
    for (size_t i = 0; i < points; i++)
        if (point[i].link && (!point[i].done || point[i].link->sent_done < point[i].link->sent)) {
            hoop_wait_for(wait, is_send(&point[i]) || point[i].done ? HOOP_AWAIT_ROOM : HOOP_AWAIT_DATA,
                          point[i].call->root);
            return;
        }
}

static enum hoop_status drive(struct hoop_comm *comm, struct point *point, size_t points)
{
    enum hoop_status status;
    bool any = false;
    int peer = comm->rank;

    hoop_wait_begin(&comm->wait, 0);
    while ((status = go_round(point, points, &any, &peer)) == HOOP_AGAIN) {
        if (any || progress(comm) == HOOP_OK) {
            hoop_wait_moved(&comm->wait);
            any = false;
            continue;
        }
        if (comm->wait.phase == HOOP_WAIT_ARM)
            wait_for_first(&comm->wait, point, points);
        if ((status = hoop_wait_step(&comm->wait)) != HOOP_OK)
            break;
    }
    hoop_wait_for(&comm->wait, HOOP_AWAIT_AWAY, -1);
    while (status == HOOP_OK && hoop_comm_flush(comm) == HOOP_AGAIN)
        status = hoop_wait_step(&comm->wait);
    if (status == HOOP_ERR_PEER)
        hoop_comm_lost(comm, peer, 0);
    return status;
}

static enum hoop_status connect_point(struct hoop_comm *comm, int peer, struct hoop_link **link)
{
    struct hoop_link **known = &comm->links[peer * comm->lanes + comm->lanes - 1];
    enum hoop_status status = HOOP_OK;

    if (*known == NULL)
        status = hoop_comm_connect(comm, peer, comm->lanes - 1, known);
    *link = *known;
    return status;
}

static enum hoop_status run_points(struct hoop_comm *comm, struct point *point, const struct hoop_comm_call *call,
                                   size_t calls)
{
    enum hoop_status status = HOOP_OK;
    size_t points = 0;

    for (size_t i = 0; status == HOOP_OK && i < calls; i++) {
        if ((int)call[i].coll <= HOOP_COLLS)
            continue;
        struct point *new = &point[points++];
        *new = (struct point){.call = &call[i], .bytes = call[i].count * hoop_type_size(call[i].type)};
        if (call[i].root != comm->rank)
            status = connect_point(comm, call[i].root, &new->link);
        comm->stats.bytes += new->bytes;
    }
    if (status == HOOP_OK)
        status = copy_to_self(point, points);
    return status == HOOP_OK ? drive(comm, point, points) : status;
}

enum hoop_status hoop_point_run_on_host(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls)
{
    struct point single = {0}, *point = calls == 1 ? &single : hoop_calloc(calls, sizeof *point);

    const uint64_t first = atomic_load_explicit(&comm->recorder->next, memory_order_relaxed);

    for (size_t i = 0; i < calls; i++)
        if ((int)call[i].coll > HOOP_COLLS)
            hoop_comm_record(&call[i]);
    enum hoop_status status = point ? run_points(comm, point, call, calls) : HOOP_ERR_MEMORY;
    for (uint64_t i = first; i < atomic_load_explicit(&comm->recorder->next, memory_order_relaxed); i++)
        hoop_comm_recorded(&comm->recorder->record[i % HOOP_RECORDS], status);
    if (status != HOOP_OK)
        status = hoop_comm_conclude(comm, status);
    else
        hoop_wait_moved(&comm->wait);
    if (point != &single)
        hoop_free(point);
    return status;
}

enum hoop_status hoop_point_run(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls)
{
    return hoop_messages_take(comm) ? hoop_messages_run(comm, call, calls) : hoop_point_run_on_host(comm, call, calls);
}

/* ---- the public calls ---- */

static enum hoop_status submit(const char *what, int coll, const void *in, void *out, size_t count, enum hoop_type type,
                               int peer, struct hoop_comm *comm, hoop_stream *stream)
{
    enum hoop_status status = hoop_comm_usable(comm, what);

    if (status != HOOP_OK)
        return status;
    if ((unsigned)type >= HOOP_TYPES)
        return hoop_fail(HOOP_ERR_ARG, "%s: type %d is no enum hoop_type", what, (int)type);
    if (peer < 0 || peer >= comm->ranks)
        return hoop_fail(HOOP_ERR_ARG, "%s: peer %d is not one of the ranks 0 to %d", what, peer, comm->ranks - 1);
    if (count > SIZE_MAX / hoop_type_size(type) || (count > 0 && in == NULL && out == NULL))
        return hoop_fail(HOOP_ERR_ARG, "%s: %zu elements %s", what, count,
                         in || out ? "are more than an address space holds" : "at NULL");
    if (peer == comm->rank && !hoop_group_open())
        return hoop_fail(HOOP_ERR_ARG, "%s: rank %d and itself: put the send and the receive into one group", what,
                         peer);
    return hoop_comm_submit(&(struct hoop_comm_call){.comm = comm,
                                                     .coll = (enum hoop_coll)coll,
                                                     .type = type,
                                                     .op = HOOP_OPS,
                                                     .root = peer,
                                                     .count = count,
                                                     .in = in,
                                                     .out = out},
                            stream);
}

enum hoop_status hoop_send(const void *data, size_t count, enum hoop_type type, int peer, struct hoop_comm *comm,
                           hoop_stream *stream)
{
    return submit("send", HOOP_POINT_SEND, data, NULL, count, type, peer, comm, stream);
}

enum hoop_status hoop_recv(void *data, size_t count, enum hoop_type type, int peer, struct hoop_comm *comm,
                           hoop_stream *stream)
{
    return submit("recv", HOOP_POINT_RECV, NULL, data, count, type, peer, comm, stream);
}
