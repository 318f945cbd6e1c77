// SPDX-License-Identifier: BSD-3-Clause
/* Listening, connecting, and how both ends of a connection learn that they are the right ones.
 *
 *     connector -> listener    hello      who, to whom, lane, generation, shape; code over that and the listener's nonce
 *     listener -> connector    welcome    code over the same and both nonces
 *
 * Nonces are the domains', which the ranks have told each other when they met; a hello is taken once. So a recorded one is worth
 * nothing, and no round trip is spent on a challenge. A stranger gets a place of a fixed number for a short time, and no byte.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/status.h"
#include "transports/tcp/inside.h"
#include "wire/cursor.h"

static const uint64_t try_time = 3000000000u, guest_time = 2000000000u; /* ns for an address to answer; for a hello */
static const char hello_magic[8] = "hooptcp1", welcome_magic[8] = "hoopwlc1";

/* ---- messages ---- */

static void hello_code(const struct tcp_domain *domain, const unsigned char *hello, const unsigned char *listener,
                       unsigned char mac[HOOP_AUTH_MAC])
{
    const struct hoop_auth_part parts[] = {{hello, TCP_HELLO - HOOP_AUTH_MAC}, {listener, TCP_NONCE}};

    hoop_auth_mac(mac, domain->key, parts, 2);
}

void tcp_hello_write(const struct tcp_domain *domain, const struct tcp_link *link, unsigned char hello[TCP_HELLO])
{
    struct hoop_writer writer = hoop_writer(hello, TCP_HELLO);

    hoop_put_bytes(&writer, hello_magic, sizeof hello_magic);
    hoop_put_u32(&writer, (uint32_t)domain->head.rank);
    hoop_put_u32(&writer, (uint32_t)link->head.peer);
    hoop_put_u32(&writer, (uint32_t)link->head.lane);
    hoop_put_u32(&writer, link->generation);
    hoop_put_u32(&writer, link->slots);
    hoop_put_u64(&writer, link->head.frame);
    hoop_put_bytes(&writer, domain->nonce, TCP_NONCE);
    hello_code(domain, hello, link->peer_nonce, writer.at);
}

bool tcp_hello_read(const struct tcp_domain *domain, const unsigned char data[TCP_HELLO], struct tcp_hello *hello)
{
    struct hoop_reader reader = hoop_reader(data, TCP_HELLO);
    const unsigned char *magic = hoop_get_view(&reader, sizeof hello_magic);
    const uint32_t own = (uint32_t)domain->head.rank;
    unsigned char expected[HOOP_AUTH_MAC];

    hello->from = (int)hoop_get_u32_range(&reader, 0, (uint32_t)domain->head.ranks - 1);
    hello->to = (int)hoop_get_u32_range(&reader, own, own);
    hello->lane = (int)hoop_get_u32_range(&reader, 0, (uint32_t)domain->lanes - 1);
    hello->generation = hoop_get_u32_range(&reader, 1, UINT32_MAX);
    hello->slots = hoop_get_u32_range(&reader, (uint32_t)domain->slots, (uint32_t)domain->slots);
    hello->frame = hoop_get_u64_range(&reader, domain->frame, domain->frame);
    hoop_get_bytes(&reader, hello->nonce, TCP_NONCE);
    if (reader.failed || memcmp(magic, hello_magic, sizeof hello_magic) != 0 || hello->from == domain->head.rank ||
        tcp_dials(domain, hello->from, hello->lane))
        return false;
    hello_code(domain, data, domain->nonce, expected);
    return hoop_auth_equal(expected, data + TCP_HELLO - HOOP_AUTH_MAC, sizeof expected);
}

/* `connector` and `listener`: the nonces of their domains. */
static void welcome_code(const struct tcp_domain *domain, int lane, uint32_t generation, const unsigned char *connector,
                         const unsigned char *listener, unsigned char mac[HOOP_AUTH_MAC])
{
    unsigned char numbers[8];
    struct hoop_writer writer = hoop_writer(numbers, sizeof numbers);
    const struct hoop_auth_part parts[] = {{welcome_magic, sizeof welcome_magic},
                                           {connector, TCP_NONCE},
                                           {listener, TCP_NONCE},
                                           {numbers, sizeof numbers}};

    hoop_put_u32(&writer, (uint32_t)lane);
    hoop_put_u32(&writer, generation);
    hoop_auth_mac(mac, domain->key, parts, 4);
}

bool tcp_welcome_fits(const struct tcp_link *link, const unsigned char welcome[TCP_WELCOME])
{
    const struct tcp_domain *domain = tcp_domain_of(link);
    unsigned char expected[HOOP_AUTH_MAC];

    welcome_code(domain, link->head.lane, link->generation, domain->nonce, link->peer_nonce, expected);
    return memcmp(welcome, welcome_magic, sizeof welcome_magic) == 0 &&
           hoop_auth_equal(welcome + sizeof welcome_magic, expected, sizeof expected);
}

/* ---- who connects ---- */

static void watch(struct tcp_domain *domain, struct tcp_source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.ptr = source}};

    epoll_ctl(domain->poll, EPOLL_CTL_ADD, source->sock, &event);
}

static void note_failed_try(struct tcp_link *link, const char *why)
{
    const size_t used = strlen(link->tried);
    char text[HOOP_ADDRESS_TEXT];

    hoop_address_print(&link->tries[link->trying], text);
    snprintf(link->tried + used, sizeof link->tried - used, "%s%s (%s)", used ? ", " : "", text, why);
}

static void give_up(struct tcp_link *link)
{
    tcp_domain_of(link)->connecting--;
    tcp_end(link, HOOP_ERR_PEER);
}

void tcp_try_next(struct tcp_link *link, const char *why)
{
    struct tcp_domain *domain = tcp_domain_of(link);
    const bool first = link->state == TCP_WAITING;

    if (first)
        domain->connecting++;
    else {
        note_failed_try(link, why);
        link->trying++;
    }
    if (link->source.sock >= 0)
        close(link->source.sock);
    link->source.sock = -1;
    link->at = link->end = 0;
    for (link->state = TCP_CONNECTING; link->trying < link->tries_count; link->trying++) {
        const enum hoop_status status = hoop_sock_connect_begin(&link->tries[link->trying], &link->source.sock);

        if (status == HOOP_OK || status == HOOP_AGAIN) {
            link->try_until = hoop_now() + try_time;
            watch(domain, &link->source, EPOLLIN | EPOLLOUT);
            link->watched_out = true;
            return;
        }
        note_failed_try(link, status == HOOP_ERR_PEER ? "refused" : "no route");
    }
    give_up(link);
}

static void send_hello(struct tcp_link *link)
{
    unsigned char hello[TCP_HELLO];
    size_t moved;

    tcp_hello_write(tcp_domain_of(link), link, hello);
    if (hoop_sock_send_some(link->source.sock, hello, sizeof hello, &moved) != HOOP_OK || moved != sizeof hello) {
        tcp_try_next(link, "closed");
        return;
    }
    HOOP_FAULT_CUTS(GREET, link->source.sock);
    link->state = TCP_GREETING;
    tcp_watch_out(link, false);
}

/* Both have proved themselves. */
static void begin(struct tcp_link *link)
{
    if (link->unpaced)
        hoop_sock_unpace(link->source.sock);
    link->state = TCP_OPEN;
    tcp_push(link);
}

static void hear_welcome(struct tcp_link *link)
{
    size_t moved;
    const enum hoop_status status =
        hoop_sock_recv_some(link->source.sock, link->buffer + link->end, (size_t)TCP_WELCOME - link->end, &moved);

    if (status == HOOP_AGAIN)
        return;
    link->end += moved;
    if (status != HOOP_OK) {
        tcp_try_next(link, "turned us away");
        return;
    }
    if (link->end < TCP_WELCOME)
        return;
    if (!tcp_welcome_fits(link, link->buffer)) {
        tcp_try_next(link, "somebody else answers there");
        return;
    }
    link->at = link->end = 0;
    tcp_domain_of(link)->connecting--;
    begin(link);
}

void tcp_greet(struct tcp_link *link)
{
    if (link->state == TCP_CONNECTING) {
        const enum hoop_status status = hoop_sock_connect_end(&link->tries[link->trying], link->source.sock);
        if (status != HOOP_OK)
            tcp_try_next(link, status == HOOP_ERR_PEER ? "refused" : "no route");
        else
            send_hello(link);
        return;
    }
    hear_welcome(link);
}

/* ---- who listens ---- */

static bool listen_on(struct tcp_domain *domain, int family, uint16_t port)
{
    struct hoop_address any = {.family = (uint8_t)family, .port = port};
    struct tcp_source *listener = &domain->listener[family == 6];

    if (hoop_sock_listen(&any, &listener->sock) != HOOP_OK)
        return false;
    domain->port[family == 6] = any.port;
    watch(domain, listener, EPOLLIN);
    return true;
}

enum hoop_status tcp_listen(struct tcp_domain *domain, uint16_t first_port, uint16_t last_port)
{
    bool four = false, six = false;

    for (unsigned port = first_port; port <= last_port && !(four && six); port++) {
        four = four || listen_on(domain, 4, (uint16_t)port);
        six = six || listen_on(domain, 6, (uint16_t)port);
    }
    if (four || six) /* one of them may be switched off here */
        return HOOP_OK;
    if (first_port == 0)
        return HOOP_ERR_SYSTEM;
    return hoop_fail(HOOP_ERR_SYSTEM, "rank %d: no port of %u to %u is free (HOOP_PORTS)", domain->head.rank,
                     (unsigned)first_port, (unsigned)last_port);
}

static void dismiss(struct tcp_guest *guest)
{
    close(guest->source.sock);
    guest->source.sock = -1;
}

/* A free place, or that of the one who has had it longest, if that is long enough. */
static struct tcp_guest *place(struct tcp_domain *domain)
{
    struct tcp_guest *oldest = &domain->guest[0];

    for (int i = 0; i < TCP_GUESTS; i++) {
        if (domain->guest[i].source.sock < 0)
            return &domain->guest[i];
        if (domain->guest[i].since < oldest->since)
            oldest = &domain->guest[i];
    }
    if (hoop_now() - oldest->since < guest_time / 10)
        return NULL;
    dismiss(oldest);
    return oldest;
}

void tcp_accept(struct tcp_domain *domain, const struct tcp_source *listener)
{
    for (int i = 0; i < TCP_GUESTS; i++) {
        struct tcp_guest *guest = place(domain);

        if (guest == NULL)
            return;
        if (hoop_sock_accept(listener->sock, &guest->source.sock) != HOOP_OK) {
            guest->source.sock = -1;
            return;
        }
        guest->since = hoop_now();
        guest->got = 0;
        watch(domain, &guest->source, EPOLLIN);
    }
}

static struct tcp_link *link_of(const struct tcp_domain *domain, const struct tcp_hello *hello)
{
    struct tcp_link *link = domain->links;

    while (link &&
           (link->head.peer != hello->from || link->head.lane != hello->lane || link->generation != hello->generation))
        link = link->next;
    return link;
}

/* The link gets its connection. */
static void bind_socket(struct tcp_link *link, int sock)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &link->source}};
    struct tcp_domain *domain = tcp_domain_of(link);

    link->source.sock = sock;
    if (epoll_ctl(domain->poll, EPOLL_CTL_MOD, sock, &event) != 0)
        epoll_ctl(domain->poll, EPOLL_CTL_ADD, sock, &event);
    begin(link);
}

/* Keep a connection for a link that is still to come. */
static bool hold(struct tcp_domain *domain, const struct tcp_hello *hello, int sock)
{
    const size_t at = (size_t)hello->from * (size_t)domain->lanes + (size_t)hello->lane;
    struct tcp_held *held = domain->held;

    if (hello->generation <= domain->generation[at])
        return false; /* its link has been here; a recorded hello at best */
    while (held && (held->hello.from != hello->from || held->hello.lane != hello->lane ||
                    held->hello.generation != hello->generation))
        held = held->next;
    if (held != NULL || (held = hoop_calloc(1, sizeof *held)) == NULL)
        return false;
    *held = (struct tcp_held){domain->held, *hello, sock};
    domain->held = held;
    epoll_ctl(domain->poll, EPOLL_CTL_DEL, sock, NULL);
    return true;
}

static bool admit(struct tcp_domain *domain, const struct tcp_hello *hello, int sock)
{
    unsigned char welcome[TCP_WELCOME];
    struct tcp_link *link = link_of(domain, hello);
    size_t moved;

    if (link != NULL && (link->state != TCP_WAITING || !hoop_auth_equal(link->peer_nonce, hello->nonce, TCP_NONCE)))
        return false;
    memcpy(welcome, welcome_magic, sizeof welcome_magic);
    welcome_code(domain, hello->lane, hello->generation, hello->nonce, domain->nonce, welcome + sizeof welcome_magic);
    if (hoop_sock_send_some(sock, welcome, sizeof welcome, &moved) != HOOP_OK || moved != sizeof welcome)
        return false;
    if (link == NULL)
        return hold(domain, hello, sock);
    bind_socket(link, sock);
    return true;
}

void tcp_hear_guest(struct tcp_domain *domain, struct tcp_guest *guest)
{
    struct tcp_hello hello;
    size_t moved;
    const enum hoop_status status =
        hoop_sock_recv_some(guest->source.sock, guest->hello + guest->got, TCP_HELLO - guest->got, &moved);

    if (status == HOOP_AGAIN)
        return;
    guest->got += moved;
    if (status == HOOP_OK && guest->got < TCP_HELLO && hoop_now() - guest->since < guest_time)
        return;
    if (status == HOOP_OK && guest->got == TCP_HELLO && tcp_hello_read(domain, guest->hello, &hello) &&
        admit(domain, &hello, guest->source.sock))
        guest->source.sock = -1;
    else
        dismiss(guest);
}

void tcp_meet_held(struct tcp_link *link)
{
    struct tcp_domain *domain = tcp_domain_of(link);

    for (struct tcp_held **at = &domain->held; *at; at = &(*at)->next) {
        struct tcp_held *held = *at;

        if (held->hello.from != link->head.peer || held->hello.lane != link->head.lane ||
            held->hello.generation != link->generation ||
            !hoop_auth_equal(held->hello.nonce, link->peer_nonce, TCP_NONCE))
            continue;
        *at = held->next;
        bind_socket(link, held->sock);
        hoop_free(held);
        return;
    }
}
