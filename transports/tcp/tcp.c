// SPDX-License-Identifier: BSD-3-Clause
/* The tcp transport's domain: opening, the epoll set, links coming and going. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"
#include "transports/tcp/inside.h"
#include "transports/transports.h"

enum { EVENTS = 64, LINE = 64, INTERFACES = 256, IDLE_TELLS = 16, TRIES_STRAIGHT = 4 };

static enum hoop_status tcp_probe(void)
{
    return HOOP_OK;
}

/* ---- opening ---- */

static enum hoop_status find_addresses(struct tcp_domain *domain, const char *filter)
{
    struct hoop_iface *list = hoop_calloc(INTERFACES, sizeof *list);

    if (list == NULL)
        return HOOP_ERR_MEMORY;
    int count = hoop_iface_list(list, INTERFACES);
    enum hoop_status status = count < 0 ? HOOP_ERR_SYSTEM : hoop_iface_choose(list, &count, filter);
    domain->loopback = filter[0] == 0;
    for (int i = 0; status == HOOP_OK && i < count; i++)
        if (list[i].loopback)
            domain->loopback = true; /* asked for; its address is still no other host's business */
        else if (domain->addresses < TCP_ADDRESSES)
            domain->address[domain->addresses++] = list[i];
    hoop_free(list);
    return status;
}

static void close_all(struct tcp_domain *domain)
{
    for (int i = 0; i < TCP_LISTENERS; i++)
        if (domain->listener[i].sock >= 0)
            close(domain->listener[i].sock);
    for (int i = 0; i < TCP_GUESTS; i++)
        if (domain->guest[i].source.sock >= 0)
            close(domain->guest[i].source.sock);
    while (domain->held) {
        struct tcp_held *next = domain->held->next;
        close(domain->held->sock);
        hoop_free(domain->held);
        domain->held = next;
    }
    if (domain->poll >= 0)
        close(domain->poll);
    hoop_free(domain->generation);
    hoop_auth_wipe(domain->key, sizeof domain->key);
    hoop_free(domain);
}

static enum hoop_status check_setup(const struct hoop_domain_setup *setup)
{
    if (setup->rank < 0 || setup->rank >= setup->ranks || setup->lanes < 1 || setup->slots < 2 ||
        setup->slots > TCP_SLOTS_MAX || setup->frame > TCP_FRAME_MAX || setup->context == NULL)
        return hoop_fail(HOOP_ERR_ARG, "tcp: rank %d of %d, %d lanes, %d slots of %zu bytes are out of range",
                         setup->rank, setup->ranks, setup->lanes, setup->slots, setup->frame);
    return hoop_auth_start();
}

static enum hoop_status start(struct tcp_domain *domain, const struct hoop_tcp_setup *tcp)
{
    static const unsigned char unknown[HOOP_NET_HOME];

    memcpy(domain->key, tcp->key, sizeof domain->key);
    domain->both_ways = tcp->both_ways;
    hoop_auth_random(domain->nonce, sizeof domain->nonce);
    hoop_net_home(domain->home);
    hoop_net_kernel(domain->kernel);
    domain->reno = tcp->reno && memcmp(domain->kernel, unknown, sizeof unknown) != 0;
    domain->poll = epoll_create1(EPOLL_CLOEXEC);
    if (domain->poll < 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "tcp: cannot make an epoll set");
    const enum hoop_status status = find_addresses(domain, tcp->interfaces);
    return status == HOOP_OK ? tcp_listen(domain, tcp->first_port, tcp->last_port) : status;
}

static enum hoop_status tcp_open(const struct hoop_domain_setup *setup, struct hoop_domain **result)
{
    enum hoop_status status = check_setup(setup);

    if (status != HOOP_OK)
        return status;
    const size_t places = (size_t)setup->ranks * (size_t)setup->lanes;
    struct tcp_domain *domain = hoop_calloc(1, sizeof *domain + places * sizeof(struct tcp_link *));
    if (domain == NULL)
        return HOOP_ERR_MEMORY;
    domain->head = (struct hoop_domain){&hoop_transport_tcp, setup->rank, setup->ranks};
    domain->frame = setup->frame;
    domain->slots = setup->slots;
    domain->lanes = setup->lanes;
    domain->poll = -1;
    for (int i = 0; i < TCP_LISTENERS; i++)
        domain->listener[i] = (struct tcp_source){TCP_LISTENER, -1};
    for (int i = 0; i < TCP_GUESTS; i++)
        domain->guest[i].source = (struct tcp_source){TCP_GUEST, -1};
    domain->generation = hoop_calloc(places, sizeof *domain->generation);
    status = domain->generation ? start(domain, setup->context) : HOOP_ERR_MEMORY;
    if (status != HOOP_OK) {
        close_all(domain);
        return status;
    }
    *result = &domain->head;
    return HOOP_OK;
}

/* ---- links ---- */

static void free_link(struct tcp_link *link)
{
    hoop_free(link->out);
    hoop_free(link->memory);
    hoop_free(link->landed);
    hoop_free(link->pending);
    hoop_free(link);
}

static void unlink_link(struct tcp_link *link)
{
    if (link->state == TCP_CONNECTING || link->state == TCP_GREETING)
        tcp_domain_of(link)->connecting--;
    if (tcp_domain_of(link)->wanted == link)
        tcp_domain_of(link)->wanted = NULL;
    if (link->source.sock >= 0)
        close(link->source.sock);
    *link->back = link->next;
    if (link->next)
        link->next->back = link->back;
    free_link(link);
}

static struct tcp_link *new_link(struct tcp_domain *domain, int peer, int lane)
{
    struct tcp_link *link = hoop_calloc(1, sizeof *link);
    const size_t slots = (size_t)domain->slots;

    if (link == NULL)
        return NULL;
    link->head = (struct hoop_link){.transport = &hoop_transport_tcp,
                                    .domain = &domain->head,
                                    .peer = peer,
                                    .lane = lane,
                                    .frame = domain->frame,
                                    .lands = true};
    link->source = (struct tcp_source){TCP_LINK, -1};
    link->slots = (uint32_t)slots;
    link->stride = (domain->frame + LINE - 1) / LINE * LINE + LINE;
    link->reserved = SIZE_MAX;
    link->out_room = link->slots + 2;
    link->out = hoop_calloc(link->out_room, sizeof *link->out);
    link->memory = hoop_calloc(2 * slots + 1, link->stride);
    link->stage = (unsigned char *)(((uintptr_t)link->memory + LINE - 1) / LINE * LINE);
    link->landing = link->stage + slots * link->stride;
    link->landed = hoop_calloc(slots, sizeof *link->landed);
    link->pending = hoop_calloc(slots, sizeof *link->pending);
    if (link->out && link->memory && link->landed && link->pending)
        return link;
    free_link(link);
    return NULL;
}

static enum hoop_status check_peer(const struct tcp_domain *domain, int peer, int lane, const unsigned char *data,
                                   size_t size, struct tcp_blob *blob)
{
    const int rank = domain->head.rank;

    if (peer < 0 || peer >= domain->head.ranks || peer == rank || lane < 0 || lane >= domain->lanes)
        return hoop_fail(HOOP_ERR_ARG, "rank %d cannot connect tcp to rank %d on lane %d (%d ranks, %d lanes)", rank,
                         peer, lane, domain->head.ranks, domain->lanes);
    if (domain->living[peer * domain->lanes + lane])
        return hoop_fail(HOOP_ERR_ARG, "the tcp link to rank %d, lane %d, exists already", peer, lane);
    if (data == NULL)
        return hoop_fail(HOOP_ERR_ARG, "tcp needs the address of rank %d", peer);
    const enum hoop_status status = tcp_blob_read(domain, data, size, blob);
    if (status == HOOP_OK && blob->rank != peer)
        return hoop_fail(HOOP_ERR_ARG, "the tcp address given for rank %d is that of rank %d", peer, blob->rank);
    return status;
}

static int try_twice(struct hoop_address tries[TCP_TRIES], int count)
{
    const int more = count < TCP_TRIES - count ? count : TCP_TRIES - count;

    memcpy(tries + count, tries, (size_t)more * sizeof *tries);
    return count + more;
}

static enum hoop_status tcp_connect(struct hoop_domain *head, int peer, int lane, const unsigned char *data,
                                    size_t size, struct hoop_link **result)
{
    struct tcp_domain *domain = (struct tcp_domain *)head;
    struct hoop_address tries[TCP_TRIES];
    struct tcp_blob blob;

    const enum hoop_status status = check_peer(domain, peer, lane, data, size, &blob);
    if (status != HOOP_OK)
        return status;
    int count = tcp_tries(domain, &blob, tries);
    if (domain->both_ways) /* silence is to mean something: one lost packet must not be it */
        count = try_twice(tries, count);
    if (count == 0)
        return hoop_fail(HOOP_ERR_SETUP,
                         "rank %d has told no address at which rank %d can reach it. Set HOOP_IFACE on its host to an "
                         "interface that both share.",
                         peer, head->rank);
    struct tcp_link *link = new_link(domain, peer, lane);
    if (link == NULL)
        return HOOP_ERR_MEMORY;
    memcpy(link->tries, tries, sizeof tries);
    memcpy(link->peer_nonce, blob.nonce, sizeof blob.nonce);
    link->unpaced = domain->reno && memcmp(blob.kernel, domain->kernel, sizeof blob.kernel) == 0;
    link->generation = ++domain->generation[peer * domain->lanes + lane];
    link->next = domain->links;
    link->back = &domain->links;
    if (link->next)
        link->next->back = &link->next;
    domain->links = link;
    domain->living[peer * domain->lanes + lane] = link;
    if (tcp_dials(domain, peer, lane)) {
        link->tries_count = count;
        tcp_try_next(link, NULL);
    } else {
        tcp_meet_held(link);
    }
    *result = &link->head;
    return HOOP_OK;
}

static void tcp_disconnect(struct hoop_link *head)
{
    struct tcp_link *link = (struct tcp_link *)head;
    struct tcp_domain *domain = tcp_domain_of(link);

    domain->living[head->peer * domain->lanes + head->lane] = NULL;
    if (head->status == HOOP_OK)
        tcp_bury(link, HOOP_ERR_PEER);
    domain->queued -= link->out_count; /* from here on nobody waits for it */
    link->dropped = true;
    if (link->state == TCP_ENDED)
        unlink_link(link);
}

static void tcp_close(struct hoop_domain *head)
{
    struct tcp_domain *domain = (struct tcp_domain *)head;

    if (domain == NULL)
        return;
    while (domain->links) {
        struct tcp_link *link = domain->links;
        if (link->state ==
            TCP_OPEN) { /* what has come must not lie there when the socket closes: the kernel would reset */
            tcp_push(link);
            tcp_pull(link);
        }
        unlink_link(link);
    }
    close_all(domain);
}

/* ---- progress ---- */

static void handle(struct tcp_domain *domain, const struct epoll_event *event)
{
    struct tcp_source *source = event->data.ptr;

    if (source->sock < 0)
        return;
    if (source->kind == TCP_LISTENER) {
        tcp_accept(domain, source);
        return;
    }
    if (source->kind == TCP_GUEST) {
        tcp_hear_guest(domain, (struct tcp_guest *)((char *)source - offsetof(struct tcp_guest, source)));
        return;
    }
    struct tcp_link *link = (struct tcp_link *)((char *)source - offsetof(struct tcp_link, source));
    if (link->state != TCP_OPEN) {
        tcp_greet(link);
        return;
    }
    if (event->events & EPOLLOUT)
        tcp_push(link);
    if (event->events & ~(uint32_t)EPOLLOUT)
        tcp_pull(link);
}

/* What has to happen though no event says so: addresses that do not answer, credit that nobody has carried, links that have ended. */
static void tend(struct tcp_domain *domain)
{
    const bool tell = domain->idle == IDLE_TELLS;

    for (struct tcp_link *link = domain->links, *next; link; link = next) {
        next = link->next;
        if (link->state == TCP_CONNECTING && hoop_expired(link->try_until))
            tcp_try_next(link, "timed out");
        if (tell && link->state == TCP_OPEN)
            tcp_tell(link);
        if (link->dropped && link->state == TCP_ENDED)
            unlink_link(link);
    }
}

/* Whoever asked for a frame in vain will ask again: most times it is read straight from its socket, which saves the question which
 * sockets have something. */
static bool read_straight(struct tcp_domain *domain)
{
    struct tcp_link *link = domain->wanted;

    if (link == NULL || link->state != TCP_OPEN || domain->connecting > 0 || domain->idle == IDLE_TELLS ||
        ++domain->tries % TRIES_STRAIGHT == 0)
        return false;
    tcp_pull(link);
    return true;
}

static enum hoop_status tcp_progress(struct hoop_domain *head)
{
    struct tcp_domain *domain = (struct tcp_domain *)head;
    struct epoll_event events[EVENTS];

    domain->moved = false;
    domain->idle++;
    if (read_straight(domain))
        return domain->moved ? HOOP_OK : HOOP_AGAIN;
    const int count = epoll_wait(domain->poll, events, EVENTS, 0);
    for (int i = 0; i < count; i++)
        handle(domain, &events[i]);
    if (count > 0 || domain->connecting > 0 || domain->idle == IDLE_TELLS)
        tend(domain);
    return domain->moved ? HOOP_OK : HOOP_AGAIN;
}

static enum hoop_status tcp_flush(struct hoop_domain *head)
{
    return ((const struct tcp_domain *)head)->queued == 0 ? HOOP_OK : HOOP_AGAIN;
}

static int tcp_descriptor(struct hoop_domain *head)
{
    return ((const struct tcp_domain *)head)->poll;
}

/* ---- addresses ---- */

static enum hoop_status tcp_address(struct hoop_domain *head, unsigned char *blob, size_t *size)
{
    *size = tcp_blob_write((const struct tcp_domain *)head, blob);
    return HOOP_OK;
}

static enum hoop_status tcp_cost(struct hoop_domain *head, const unsigned char *data, size_t size,
                                 struct hoop_transport_cost *cost)
{
    const struct tcp_domain *domain = (const struct tcp_domain *)head;
    struct hoop_address tries[TCP_TRIES];
    struct tcp_blob blob;
    const enum hoop_status status = tcp_blob_read(domain, data, size, &blob);

    if (status == HOOP_OK)
        *cost = (struct hoop_transport_cost){.reachable = blob.rank != head->rank && tcp_tries(domain, &blob, tries)};
    return status;
}

static void tcp_describe(const struct hoop_link *head, char *text, size_t size)
{
    static const char *const states[] = {"waits for the peer", "connects", "greets", "open", "ended"};
    const struct tcp_link *link = (const struct tcp_link *)head;

    if (size > 0)
        snprintf(text, size, "tcp %d <-> %d, lane %d, %u slots of %zu bytes, %s", head->domain->rank, head->peer,
                 head->lane, link->slots, head->frame, states[link->state]);
}

const struct hoop_transport hoop_transport_tcp = {
    .size = sizeof(struct hoop_transport),
    .name = "tcp",
    .probe = tcp_probe,
    .open = tcp_open,
    .close = tcp_close,
    .address = tcp_address,
    .cost = tcp_cost,
    .connect = tcp_connect,
    .disconnect = tcp_disconnect,
    .send = tcp_send,
    .recv = tcp_recv,
    .progress = tcp_progress,
    .reserve = tcp_reserve,
    .commit = tcp_commit,
    .peek = tcp_peek,
    .release = tcp_release,
    .flush = tcp_flush,
    .descriptor = tcp_descriptor,
    .describe = tcp_describe,
};
