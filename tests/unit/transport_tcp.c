// SPDX-License-Identifier: BSD-3-Clause
/* What the conformance suite cannot ask of tcp: which addresses it tells and tries, strangers at its door, and a peer that breaks the
 * rules of the stream. */
#include <check.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "harness.h"
#include "transports/tcp/inside.h"
#include "transports/transports.h"
#include "wire/cursor.h"

enum { FRAME = 3000, SLOTS = 3, TAG = 9 };
static const uint64_t soon = 10000000000u; /* ns */

static struct hoop_tcp_setup setup = {.key = "right", .interfaces = ""}, wrong = {.key = "wrong", .interfaces = ""};

static struct tcp_domain *open_rank(int rank, struct hoop_tcp_setup *context)
{
    const struct hoop_domain_setup all = {
        .rank = rank, .ranks = 3, .lanes = 2, .frame = FRAME, .slots = SLOTS, .context = context};
    struct hoop_domain *domain;

    ck_assert_msg(hoop_transport_tcp.open(&all, &domain) == HOOP_OK, "%s", hoop_error_text());
    return (struct tcp_domain *)domain;
}

static struct hoop_link *connect_to(struct tcp_domain *domain, struct tcp_domain *peer, int lane)
{
    unsigned char blob[HOOP_ADDRESS_MAX];
    struct hoop_link *link;
    size_t size;

    hoop_transport_tcp.address(&peer->head, blob, &size);
    ck_assert_msg(hoop_transport_tcp.connect(&domain->head, peer->head.rank, lane, blob, size, &link) == HOOP_OK, "%s",
                  hoop_error_text());
    return link;
}

static void close_rank(struct tcp_domain *domain)
{
    hoop_transport_tcp.close(&domain->head);
}

/* ---- addresses ---- */

static struct hoop_address address(const char *host)
{
    struct hoop_address parsed;

    ck_assert_int_eq(hoop_address_parse(&parsed, host), HOOP_OK);
    return parsed;
}

static struct hoop_iface iface(const char *name, const char *host, int prefix)
{
    struct hoop_iface made = {.address = address(host), .prefix = (uint8_t)prefix, .running = true};

    strncpy(made.name, name, sizeof made.name - 1);
    made.loopback = hoop_address_is_loopback(&made.address);
    made.isolated = strncmp(name, "docker", 6) == 0;
    return made;
}

START_TEST(filters)
{
    static const struct {
        const char *filter, *kept; /* first letters of the names, or NULL: refused */
    } cases[] = {
        {"", "eeiw"},       {"eth0", "ee"},           {"eth*", "ee"},      {"ib0,wan0", "iw"},    {"^eth0", "iw"},
        {"^eth0,^i*", "w"}, {"eth0,^fd00::/16", "e"}, {"10.0.0.0/8", "e"}, {"10.1.0.0/16", NULL}, {"fd00::/8", "e"},
        {"lo", "l"},        {"docker0", "d"},         {"off0", NULL},      {"eth", NULL},         {"eth0,", "ee"},
        {",eth0", NULL},    {"10.0.0.0/33", NULL},    {"10.0.0.0/", NULL}, {"^10.0.0/8", NULL}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hoop_iface list[] = {iface("lo", "127.0.0.1", 8),      iface("eth0", "10.0.0.1", 24),
                                    iface("eth0", "fd00::1", 64),     iface("docker0", "172.17.0.1", 16),
                                    iface("ib0", "192.168.5.1", 24),  iface("wan0", "2001:db8::1", 64),
                                    iface("off0", "192.168.77.1", 24)};
        int count = 7;
        char kept[8] = "";

        list[6].running = false;
        const enum hoop_status status = hoop_iface_choose(list, &count, cases[i].filter);
        ck_assert_msg(status == (cases[i].kept ? HOOP_OK : HOOP_ERR_SETUP), "'%s': %d", cases[i].filter, status);
        for (int k = 0; status == HOOP_OK && k < count; k++)
            kept[k] = list[k].name[0];
        ck_assert_msg(!cases[i].kept || strcmp(kept, cases[i].kept) == 0, "'%s' keeps %s", cases[i].filter, kept);
        if (!cases[i].kept)
            ck_assert_msg(strstr(hoop_error_text(), "HOOP_IFACE=") != NULL, "%s", hoop_error_text());
    }
    struct hoop_iface list[] = {iface("eth0", "10.0.0.1", 24)};
    int count = 1;
    ck_assert_int_eq(hoop_iface_choose(list, &count, "ib0"), HOOP_ERR_SETUP);
    ck_assert_ptr_nonnull(strstr(hoop_error_text(), "eth0 (10.0.0.1/24)"));
}
END_TEST

/* Our own address in another home leads to ourselves; what lies in a network of ours comes first; link-local needs our interface. */
START_TEST(order_of_tries)
{
    struct tcp_domain *domain = open_rank(0, &setup);
    struct hoop_address tries[TCP_TRIES];
    struct tcp_blob blob = {.rank = 1, .loopback = true, .port = {40, 60}, .addresses = 5};
    static const char *const hosts[] = {"203.0.113.9", "172.17.0.1", "2001:db8::9", "10.0.0.9", "fe80::9"};
    static const uint8_t prefixes[] = {24, 16, 64, 24, 64};

    domain->addresses = 3;
    domain->address[0] = iface("eth0", "10.0.0.1", 24);
    domain->address[1] = iface("docker0", "172.17.0.1", 16);
    domain->address[2] = iface("eth0", "fe80::1", 64);
    domain->address[2].address.scope = 7;
    for (int i = 0; i < blob.addresses; i++) {
        blob.address[i] = address(hosts[i]);
        blob.address[i].port = blob.port[blob.address[i].family == 6];
        blob.prefix[i] = prefixes[i];
    }
    ck_assert_int_eq(tcp_tries(domain, &blob, tries), 4);
    ck_assert_int_eq(tries[0].host[3], 9); /* 10.0.0.9 */
    ck_assert_int_eq(tries[0].host[0], 10);
    ck_assert_int_eq(tries[1].host[0], 203);
    ck_assert_int_eq(tries[2].host[0], 0x20);
    ck_assert_int_eq(tries[3].host[0], 0xfe);
    ck_assert_uint_eq(tries[3].scope, 7);
    memcpy(blob.home, domain->home, sizeof blob.home);
    ck_assert_int_eq(tcp_tries(domain, &blob, tries), 7);
    ck_assert_int_eq(tries[0].host[0], 127);
    domain->loopback = false;
    ck_assert_int_eq(tcp_tries(domain, &blob, tries), 5);
    close_rank(domain);
}
END_TEST

START_TEST(no_loopback_is_told)
{
    struct tcp_domain *domain = open_rank(0, &setup);
    unsigned char blob[HOOP_ADDRESS_MAX];
    struct tcp_blob read;
    size_t size;

    hoop_transport_tcp.address(&domain->head, blob, &size);
    ck_assert_int_eq(tcp_blob_read(domain, blob, size, &read), HOOP_OK);
    for (int i = 0; i < read.addresses; i++)
        ck_assert(!hoop_address_is_loopback(&read.address[i]));
    ck_assert(read.loopback);
    close_rank(domain);
}
END_TEST

/* Addresses that refuse are left for the next; if none answers the error says what was tried. */
START_TEST(next_address)
{
    struct tcp_domain *low = open_rank(0, &setup), *high = open_rank(1, &setup), *gone = open_rank(2, &setup);
    struct hoop_link *link = connect_to(low, high, 0), *other = connect_to(high, low, 0);
    unsigned char in = 0, out = 7;
    const uint64_t end = hoop_now() + soon;

    struct tcp_link *inner = (struct tcp_link *)link;
    ck_assert_int_ge(inner->tries_count, 1);
    inner->tries[1] = inner->tries[2] = inner->tries[0];
    inner->tries[1].port = gone->port[0]; /* a hoop that does not expect us, and soon nobody */
    inner->tries_count = 3;
    inner->trying = 0;
    tcp_try_next(inner, "the test");
    ck_assert_int_eq(other->transport->recv(other, &in, 1, TAG), HOOP_OK);
    ck_assert_int_eq(link->transport->send(link, &out, 1, TAG, 0), HOOP_OK);
    while (other->received_done == 0 && hoop_now() < end) {
        hoop_transport_tcp.progress(&low->head);
        hoop_transport_tcp.progress(&high->head);
        hoop_transport_tcp.progress(&gone->head);
    }
    ck_assert_msg(in == 7, "%s", inner->tried);
    struct hoop_link *lost = connect_to(high, gone, 1);
    close_rank(gone);
    ck_assert_int_eq(lost->transport->recv(lost, &in, 1, TAG), HOOP_OK);
    while (lost->status == HOOP_OK && hoop_now() < end)
        hoop_transport_tcp.progress(&high->head);
    ck_assert_int_eq(lost->status, HOOP_ERR_PEER);
    ck_assert_ptr_nonnull(strstr(hoop_error_text(), "no address of rank 2 answers: tried 127.0.0.1:"));
    lost->transport->disconnect(lost);
    link->transport->disconnect(link);
    other->transport->disconnect(other);
    close_rank(low);
    close_rank(high);
}
END_TEST

/* Of a domain that connects both ways each rank has a link that it connects itself; both carry frames, and only the connector learns that
 * nobody is there any more. */
START_TEST(both_ways)
{
    struct hoop_tcp_setup both = {.key = "right", .interfaces = "", .both_ways = true};
    struct tcp_domain *low = open_rank(0, &both), *high = open_rank(1, &both), *gone = open_rank(2, &both);
    const uint64_t end = hoop_now() + soon;
    unsigned char in[2] = {0}, out = 7;

    for (int lane = 0; lane < 2; lane++) {
        struct hoop_link *from = connect_to(low, high, lane), *to = connect_to(high, low, lane);
        const struct tcp_link *connects = (struct tcp_link *)(lane == 0 ? from : to),
                              *waits = (struct tcp_link *)(lane == 0 ? to : from);
        ck_assert(connects->state == TCP_CONNECTING && waits->state == TCP_WAITING);
        ck_assert_int_eq(to->transport->recv(to, &in[lane], 1, TAG), HOOP_OK);
        ck_assert_int_eq(from->transport->send(from, &out, 1, TAG, 0), HOOP_OK);
        while (to->received_done == 0 && hoop_now() < end) {
            hoop_transport_tcp.progress(&low->head);
            hoop_transport_tcp.progress(&high->head);
        }
        ck_assert_int_eq(in[lane], 7);
        from->transport->disconnect(from);
        to->transport->disconnect(to);
    }
    struct hoop_link *lost = connect_to(high, low, 1), *never = connect_to(gone, high, 0);
    close_rank(low);
    ck_assert_int_eq(lost->transport->recv(lost, in, 1, TAG), HOOP_OK);
    while (lost->status == HOOP_OK && hoop_now() < end)
        hoop_transport_tcp.progress(&high->head);
    ck_assert_int_eq(lost->status, HOOP_ERR_PEER);
    ck_assert_int_eq(never->status, HOOP_OK);
    lost->transport->disconnect(lost);
    never->transport->disconnect(never);
    close_rank(high);
    close_rank(gone);
}
END_TEST

/* ---- strangers ---- */

static int knock(const struct tcp_domain *domain)
{
    struct hoop_address door = {.family = 4, .port = domain->port[0], .host = {127, 0, 0, 1}};
    int sock;

    ck_assert_int_eq(hoop_sock_connect(&door, &sock, hoop_now() + soon), HOOP_OK);
    return sock;
}

/* The hello of rank 0 for a link to `to`. */
static void make_hello(const struct tcp_domain *from, const struct tcp_domain *to, uint32_t generation,
                       unsigned char hello[TCP_HELLO])
{
    static struct tcp_link link;

    link = (struct tcp_link){.head = {.peer = to->head.rank, .frame = FRAME}, .generation = generation, .slots = SLOTS};
    memcpy(link.peer_nonce, to->nonce, TCP_NONCE);
    tcp_hello_write(from, &link, hello);
}

/* Does the domain hang up on this connection? */
static bool turned_away(struct tcp_domain *domain, int sock)
{
    char byte;
    const uint64_t end = hoop_now() + soon;
    ssize_t got;

    do {
        hoop_transport_tcp.progress(&domain->head);
        got = recv(sock, &byte, 1, MSG_DONTWAIT);
    } while (got < 0 && hoop_now() < end);
    close(sock);
    return got == 0;
}

static void expect_turned_away(struct tcp_domain *domain, const unsigned char *hello, const char *what)
{
    const int sock = knock(domain);

    ck_assert_int_eq(send(sock, hello, TCP_HELLO, MSG_NOSIGNAL), TCP_HELLO);
    ck_assert_msg(turned_away(domain, sock), "%s", what);
}

START_TEST(strangers)
{
    struct tcp_domain *low = open_rank(0, &setup), *high = open_rank(1, &setup), *thief = open_rank(0, &wrong);
    unsigned char hello[TCP_HELLO], good[TCP_HELLO];
    int silent[TCP_GUESTS + 5];

    for (int i = 0; i < TCP_GUESTS + 5; i++)
        silent[i] = knock(high); /* say nothing, and keep others from nothing */
    memset(hello, 'G', sizeof hello);
    expect_turned_away(high, hello, "junk");
    make_hello(thief, high, 1, hello);
    expect_turned_away(high, hello, "wrong key");
    make_hello(low, high, 1, good);
    for (size_t byte = 0; byte < TCP_HELLO; byte++) {
        memcpy(hello, good, sizeof hello);
        hello[byte] ^= 1;
        expect_turned_away(high, hello, "one bit");
    }
    struct hoop_link *link = connect_to(high, low, 0), *other = connect_to(low, high, 0);
    unsigned char in = 0, out = 5;
    const uint64_t end = hoop_now() + soon;
    ck_assert_int_eq(other->transport->send(other, &out, 1, TAG, 0), HOOP_OK);
    ck_assert_int_eq(link->transport->recv(link, &in, 1, TAG), HOOP_OK);
    while (link->received_done == 0 && hoop_now() < end) {
        hoop_transport_tcp.progress(&low->head);
        hoop_transport_tcp.progress(&high->head);
    }
    ck_assert_int_eq(in, 5);
    expect_turned_away(high, good, "replayed");
    ck_assert_int_eq(link->status, HOOP_OK);
    link->transport->disconnect(link);
    other->transport->disconnect(other);
    for (int i = 0; i < TCP_GUESTS + 5; i++)
        close(silent[i]);
    close_rank(thief);
    close_rank(low);
    close_rank(high);
}
END_TEST

/* ---- a receive that comes late ---- */

static size_t header(unsigned char *to, uint32_t kind, uint32_t bytes, uint32_t taken, uint64_t tag)
{
    struct hoop_writer writer = hoop_writer(to, TCP_HEADER);

    hoop_put_u32(&writer, kind << 28 | bytes);
    hoop_put_u32(&writer, taken);
    hoop_put_u64(&writer, tag);
    return TCP_HEADER;
}

/* Half of a frame has come when it is first asked for, and part of the next when that is. */
START_TEST(late_receive)
{
    enum { BYTES = 1000, HALF = BYTES / 2 };
    struct tcp_domain *low = open_rank(0, &setup), *high = open_rank(1, &setup);
    struct hoop_link *link = connect_to(high, low, 0);
    const struct tcp_link *inside = (struct tcp_link *)link;
    unsigned char hello[TCP_HELLO], stream[2 * (TCP_HEADER + BYTES)], landing[2][BYTES + 1] = {{0}};
    const int sock = knock(high);
    const uint64_t end = hoop_now() + soon;

    make_hello(low, high, 1, hello);
    ck_assert_int_eq(send(sock, hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
    for (size_t i = 0; i < sizeof stream; i++)
        stream[i] = (unsigned char)(i * 7);
    header(stream, TCP_DATA, BYTES, 0, TAG);
    header(stream + TCP_HEADER + BYTES, TCP_DATA, BYTES, 0, TAG);
    ck_assert_int_eq(send(sock, stream, TCP_HEADER + HALF, MSG_NOSIGNAL), TCP_HEADER + HALF);
    for (int frame = 0; frame < 2; frame++) {
        const unsigned char *sent = stream + frame * (TCP_HEADER + BYTES) + TCP_HEADER;
        const ssize_t rest = frame == 0 ? BYTES + TCP_HEADER : HALF;

        while (hoop_now() < end && !(inside->reading && inside->left == HALF))
            hoop_transport_tcp.progress(&high->head);
        ck_assert_int_eq(link->transport->recv(link, landing[frame], BYTES, TAG), HOOP_OK);
        ck_assert_uint_eq(link->received_done, (unsigned)frame);
        ck_assert_int_eq(send(sock, sent + HALF, (size_t)rest, MSG_NOSIGNAL), rest);
        while (hoop_now() < end && link->received_done == (unsigned)frame)
            hoop_transport_tcp.progress(&high->head);
        ck_assert_uint_eq(link->received_done, (unsigned)frame + 1);
        ck_assert_mem_eq(landing[frame], sent, BYTES);
        ck_assert_uint_eq(landing[frame][BYTES], 0);
    }
    ck_assert_int_eq(link->status, HOOP_OK);
    link->transport->disconnect(link);
    close(sock);
    close_rank(low);
    close_rank(high);
}
END_TEST

/* ---- a peer on this kernel, or on another ---- */

enum { CONGESTION = 13 }; /* of <netinet/tcp.h>, whose other names are those of inside.h */

START_TEST(paced_or_not)
{
    for (int other = 0; other < 2; other++) {
        struct hoop_tcp_setup reno = setup;
        reno.reno = true;
        struct tcp_domain *low = open_rank(0, &setup), *high = open_rank(1, &reno);
        const int sock = knock(high);
        unsigned char hello[TCP_HELLO];
        char name[16] = "", given[16] = "";
        socklen_t size = sizeof name;
        const uint64_t end = hoop_now() + soon;

        low->kernel[0] ^= (unsigned char)other;
        struct hoop_link *link = connect_to(high, low, 0);
        const struct tcp_link *inside = (struct tcp_link *)link;
        make_hello(low, high, 1, hello);
        ck_assert_int_eq(getsockopt(sock, IPPROTO_TCP, CONGESTION, given, &size), 0);
        ck_assert_int_eq(send(sock, hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
        while (inside->state != TCP_OPEN && hoop_now() < end)
            hoop_transport_tcp.progress(&high->head);
        size = sizeof name;
        ck_assert_int_eq(getsockopt(inside->source.sock, IPPROTO_TCP, CONGESTION, name, &size), 0);
        ck_assert_str_eq(name, other ? given : "reno");
        link->transport->disconnect(link);
        close(sock);
        close_rank(low);
        close_rank(high);
    }
}
END_TEST

/* ---- a peer that leaves ---- */

/* Its frames are taken when it has gone already: nothing is queued for it, so the flush ends. */
START_TEST(taken_late)
{
    struct tcp_domain *low = open_rank(0, &setup), *high = open_rank(1, &setup);
    struct hoop_link *link = connect_to(high, low, 0);
    unsigned char hello[TCP_HELLO], frames[SLOTS * TCP_HEADER];
    const int sock = knock(high);
    const uint64_t end = hoop_now() + soon;
    const void *data;

    make_hello(low, high, 1, hello);
    ck_assert_int_eq(send(sock, hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
    for (int i = 0; i < SLOTS; i++)
        header(frames + i * TCP_HEADER, TCP_DATA, 0, 0, TAG);
    ck_assert_int_eq(send(sock, frames, sizeof frames, MSG_NOSIGNAL), sizeof frames);
    close(sock);
    while (((struct tcp_link *)link)->state != TCP_ENDED && hoop_now() < end)
        hoop_transport_tcp.progress(&high->head);
    for (int i = 0; i < SLOTS; i++) {
        ck_assert_int_eq(link->transport->peek(link, 0, TAG, &data), HOOP_OK);
        ck_assert_int_eq(link->transport->release(link), HOOP_OK);
    }
    ck_assert_int_eq(hoop_transport_tcp.flush(&high->head), HOOP_OK);
    link->transport->disconnect(link);
    ck_assert_int_eq(hoop_transport_tcp.flush(&high->head), HOOP_OK);
    close_rank(low);
    close_rank(high);
}
END_TEST

/* ---- a peer that breaks the rules ---- */

enum { TOO_LARGE, TOO_MANY, UNKNOWN_KIND, CREDIT_FOR_NOTHING, CUT_SHORT, RESET, HALF_CLOSED, RULES };

static enum hoop_status broken_rule(int rule, int sock, bool reset)
{
    unsigned char data[8 * TCP_HEADER] = {0};
    size_t bytes = 0;

    switch (rule) {
    case TOO_LARGE:
        bytes = header(data, TCP_DATA, FRAME + 1, 0, TAG);
        break;
    case TOO_MANY:
        for (int i = 0; i <= SLOTS + 1; i++)
            bytes += header(data + bytes, TCP_DATA, 0, 0, TAG);
        break;
    case UNKNOWN_KIND:
        bytes = header(data, 3, 0, 0, TAG);
        break;
    case CREDIT_FOR_NOTHING:
        bytes = header(data, TCP_CREDIT, 0, 1, TAG);
        break;
    default:
        bytes = header(data, TCP_DATA, 100, 0, TAG);
    }
    ck_assert_int_eq(send(sock, data, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
    if (reset) {
        const struct linger now = {.l_onoff = 1};
        setsockopt(sock, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    if (rule == HALF_CLOSED)
        shutdown(sock, SHUT_WR);
    return rule < CUT_SHORT ? HOOP_ERR_INTERNAL : HOOP_ERR_PEER;
}

START_TEST(broken_rules)
{
    struct tcp_domain *low = open_rank(0, &setup), *high = open_rank(1, &setup);

    for (int rule = 0; rule < RULES; rule++) {
        struct hoop_link *link = connect_to(high, low, 0);
        const int sock = knock(high);
        unsigned char hello[TCP_HELLO], landing[FRAME];
        const uint64_t end = hoop_now() + soon;

        make_hello(low, high, (uint32_t)rule + 1, hello);
        ck_assert_int_eq(send(sock, hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
        while (((struct tcp_link *)link)->state != TCP_OPEN && hoop_now() < end)
            hoop_transport_tcp.progress(&high->head);
        const enum hoop_status status = broken_rule(rule, sock, rule == RESET);
        if (rule == CUT_SHORT || rule == RESET)
            close(sock);
        if (rule >= CUT_SHORT)
            ck_assert_int_eq(link->transport->recv(link, landing, 100, TAG), HOOP_OK);
        while (link->status == HOOP_OK && hoop_now() < end)
            hoop_transport_tcp.progress(&high->head);
        ck_assert_msg(link->status == status, "rule %d: %d (%s)", rule, link->status, hoop_error_text());
        ck_assert_uint_eq(link->received_done, link->received);
        link->transport->disconnect(link);
        if (rule != CUT_SHORT && rule != RESET)
            close(sock);
    }
    close_rank(low);
    close_rank(high);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transport_tcp");
    TCase *tests = tcase_create("tcp");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, filters);
    tcase_add_test(tests, order_of_tries);
    tcase_add_test(tests, no_loopback_is_told);
    tcase_add_test(tests, next_address);
    tcase_add_test(tests, both_ways);
    tcase_add_test(tests, strangers);
    tcase_add_test(tests, late_receive);
    tcase_add_test(tests, paced_or_not);
    tcase_add_test(tests, taken_late);
    tcase_add_test(tests, broken_rules);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
