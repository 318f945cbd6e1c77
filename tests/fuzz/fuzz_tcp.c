// SPDX-License-Identifier: BSD-3-Clause
/* What the tcp transport reads from others: any bytes as an address blob and as a hello, and as the stream of a peer that has proved
 * itself, in pieces, with receives posted as the first byte says. A link that is alive has handed over no more than has come. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transports/tcp/inside.h"
#include "transports/transports.h"

enum { FRAME = 200, SLOTS = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static struct tcp_domain *domain_of(int rank)
{
    static struct hoop_tcp_setup setup = {.interfaces = ""};
    const struct hoop_domain_setup all = {
        .rank = rank, .ranks = 2, .lanes = 1, .frame = FRAME, .slots = SLOTS, .context = &setup};
    struct hoop_domain *domain;

    check(hoop_transport_tcp.open(&all, &domain) == HOOP_OK);
    return (struct tcp_domain *)domain;
}

static void stream(struct tcp_domain *low, struct tcp_domain *high, const uint8_t *data, size_t bytes)
{
    unsigned char blob[HOOP_ADDRESS_MAX], landing[SLOTS][FRAME];
    struct hoop_link *head;
    int pair[2];
    size_t size;

    hoop_transport_tcp.address(&low->head, blob, &size);
    check(hoop_transport_tcp.connect(&high->head, 0, 0, blob, size, &head) == HOOP_OK);
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    struct tcp_link *link = (struct tcp_link *)head;
    link->source.sock = pair[0];
    link->state = TCP_OPEN;
    const int posted = bytes ? data[0] % (SLOTS + 1) : 0;
    for (int i = 0; i < posted; i++)
        check(head->transport->recv(head, landing[i], (size_t)data[0], 0) <= HOOP_OK || data[0] > FRAME);
    for (size_t at = 1; at < bytes; at += 50) {
        const size_t piece = bytes - at < 50 ? bytes - at : 50;
        const void *shown;
        if (send(pair[1], data + at, piece, MSG_NOSIGNAL) < 0)
            break;
        tcp_pull(link);
        check(head->received_done <= head->received &&
              head->received_done <= link->arrived + (head->status != HOOP_OK) * SLOTS);
        if (posted == 0 && head->transport->peek(head, data[0], 0, &shown) == HOOP_OK)
            check(head->transport->release(head) == HOOP_OK || head->status != HOOP_OK);
    }
    close(pair[1]);
    tcp_pull(link);
    head->transport->disconnect(head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct tcp_domain *low, *high;
    unsigned char hello[TCP_HELLO] = {0};
    struct tcp_hello read;
    struct tcp_blob blob;

    if (low == NULL) {
        low = domain_of(0);
        high = domain_of(1);
    }
    tcp_blob_read(high, data, bytes, &blob);
    if (bytes)
        memcpy(hello, data, bytes < sizeof hello ? bytes : sizeof hello);
    check(!tcp_hello_read(high, hello, &read));
    stream(low, high, data, bytes);
    return 0;
}
