// SPDX-License-Identifier: BSD-3-Clause
/* Inside of the tcp transport.
 *
 * A link is one socket. The rank with the lower number (tcp_dials) connects, trying the peer's addresses one by one; the other takes the
 * connection from its listener. The first bytes of a connection prove to both that the other holds the key and is the rank, lane and
 * generation that it says (greet.c): the k-th link of a pair and lane meets the k-th of the other side. Then frames flow both ways
 * (stream.c), each behind a header that also says how many frames its sender has taken, so nobody sends more than the receiver
 * has landing room for, and no lane holds up another.
 *
 * All sockets of a domain are in one epoll set. A link that its owner has dropped stays in the domain until what was sent has
 * left and the peer has hung up, too: closing earlier would make the kernel throw away what the peer has not read yet.
 */
#ifndef HOOP_TRANSPORTS_TCP_INSIDE_H
#define HOOP_TRANSPORTS_TCP_INSIDE_H

#include "hoop/transport.h"
#include "transports/tcp/tcp.h"
#include "wire/iface.h"

enum {
    TCP_NONCE = 16,
    TCP_HEADER = 16,
    TCP_BUFFER = 8192,  /* bytes read ahead: small frames come several at a time */
    TCP_TRIES = 16,     /* addresses of a peer that are tried */
    TCP_LISTENERS = 2,  /* IPv4 and IPv6 */
    TCP_GUESTS = 32,    /* connections that have not proved themselves */
    TCP_ADDRESSES = 33, /* most that a blob holds */
    TCP_HELLO = 8 + 5 * 4 + 8 + TCP_NONCE + HOOP_AUTH_MAC,
    TCP_WELCOME = 8 + HOOP_AUTH_MAC,
    TCP_FRAME_MAX = (1 << 28) - 1,
    TCP_SLOTS_MAX = 4096
};

enum tcp_kind { TCP_DATA, TCP_CREDIT, TCP_CLOSE };

/* What an event of the epoll set points to. */
enum tcp_source_kind { TCP_LISTENER, TCP_GUEST, TCP_LINK };
struct tcp_source {
    enum tcp_source_kind kind;
    int sock; /* -1: none */
};

/* A peer's address blob, taken apart and proved. */
struct tcp_blob {
    int rank;
    unsigned char nonce[TCP_NONCE]; /* of the peer's domain */
    unsigned char home[HOOP_NET_HOME], kernel[HOOP_NET_HOME];
    bool loopback; /* it may be reached by loopback in the same home */
    uint16_t port[TCP_LISTENERS];
    int addresses;
    struct hoop_address address[TCP_ADDRESSES]; /* with port, without scope */
    uint8_t prefix[TCP_ADDRESSES];
};

/* The first message of a connection. */
struct tcp_hello {
    int from, to, lane;
    uint32_t generation, slots;
    uint64_t frame;
    unsigned char nonce[TCP_NONCE]; /* of the sender's domain */
};

struct tcp_out {
    unsigned char header[TCP_HEADER];
    const void *data;
    size_t bytes;
    uint64_t number; /* of the frame; 0: no data */
    bool lent;       /* the data are still the caller's memory */
};

struct tcp_pending {
    void *data;
    size_t bytes;
    uint64_t tag;
};

struct tcp_landed {
    size_t bytes;
    uint64_t tag;
};

enum tcp_state {
    TCP_WAITING,    /* for the peer to connect */
    TCP_CONNECTING, /* the kernel is at it */
    TCP_GREETING,   /* the hello has been sent, the welcome has not come */
    TCP_OPEN,
    TCP_ENDED /* there is no socket any more */
};

struct tcp_link {
    struct hoop_link head;
    struct tcp_source source;
    struct tcp_link *next, **back; /* in the domain's list */
    enum tcp_state state;
    bool dropped;  /* by its owner */
    bool unpaced;  /* by Reno */
    bool finished; /* CLOSE has been queued: nothing may follow */
    bool hung_up;  /* our direction of the socket is shut, or broken */
    bool watched_out;
    uint32_t generation, slots;
    size_t stride; /* bytes from slot to slot */
    unsigned char peer_nonce[TCP_NONCE];

    struct hoop_address tries[TCP_TRIES];
    int tries_count, trying;
    uint64_t try_until;
    char tried[256]; /* what has failed so far, for people */

    struct tcp_out *out; /* circle of slots + 2: the frames, a credit, the end */
    uint32_t out_first, out_count, out_room;
    size_t out_offset; /* of the first: bytes that have left */
    uint32_t lent;     /* entries that are */
    uint32_t credited; /* frames that the peer has taken, modulo 2^32 */
    void *memory;      /* of stage and landing; zeros, so that what is not used takes none */
    unsigned char *stage, *landing;
    size_t reserved; /* SIZE_MAX: nothing */

    struct tcp_landed *landed; /* one a slot */
    uint64_t begun, arrived, taken;
    uint32_t told; /* of taken, to the peer */
    unsigned char *into;
    size_t left;
    bool reading, direct, shown;
    enum hoop_status closed; /* by the peer, and why; HOOP_OK: it is not */
    uint32_t pending_first, pending_count;
    struct tcp_pending *pending; /* circle of slots */
    size_t at, end;              /* of what is in buffer */
    unsigned char buffer[TCP_BUFFER];
};

/* A connection that has not proved itself. */
struct tcp_guest {
    struct tcp_source source;
    uint64_t since;
    size_t got;
    unsigned char hello[TCP_HELLO];
};

/* One that has, before its link is there. */
struct tcp_held {
    struct tcp_held *next;
    struct tcp_hello hello;
    int sock;
};

struct tcp_domain {
    struct hoop_domain head;
    size_t frame;
    int slots, lanes, poll;
    bool moved; /* since progress began */
    int connecting, idle;
    struct tcp_link *wanted; /* whose frame was asked for last, and had not come; NULL: none */
    unsigned tries;          /* to read it straight */
    unsigned queued;         /* entries of out of all links that live */
    unsigned char key[HOOP_AUTH_KEY], nonce[TCP_NONCE], home[HOOP_NET_HOME], kernel[HOOP_NET_HOME];
    bool loopback, both_ways, reno;
    struct tcp_source listener[TCP_LISTENERS];
    uint16_t port[TCP_LISTENERS];
    int addresses;
    struct hoop_iface address[TCP_ADDRESSES];
    struct tcp_guest guest[TCP_GUESTS];
    struct tcp_held *held;
    struct tcp_link *links;
    uint32_t *generation;      /* [peer][lane]: how many links there have been */
    struct tcp_link *living[]; /* [peer][lane] */
};

static inline struct tcp_domain *tcp_domain_of(const struct tcp_link *link)
{
    return (struct tcp_domain *)link->head.domain;
}

/* Does this rank connect to the peer on that lane? The other one waits for it. */
static inline bool tcp_dials(const struct tcp_domain *domain, int peer, int lane)
{
    return (domain->head.rank < peer) != (domain->both_ways && lane % 2 == 1);
}

/* Has the peer waited long enough to hear what has been taken? */
static inline bool tcp_owes_credit(const struct tcp_link *link)
{
    return (uint32_t)link->taken - link->told >= (link->slots + 1) / 2;
}

/* ---- address.c */

/* Write the domain's blob; returns its bytes. */
size_t tcp_blob_write(const struct tcp_domain *domain, unsigned char *blob);

/* Errors: HOOP_ERR_ARG (not a blob of this communicator). */
enum hoop_status tcp_blob_read(const struct tcp_domain *domain, const unsigned char *data, size_t size,
                               struct tcp_blob *blob);

/* Where to try to reach that peer, the likeliest first; returns how many. */
int tcp_tries(const struct tcp_domain *domain, const struct tcp_blob *blob, struct hoop_address tries[TCP_TRIES]);

/* ---- greet.c */

/* Open the domain's listeners. Errors: HOOP_ERR_SYSTEM. */
enum hoop_status tcp_listen(struct tcp_domain *domain, uint16_t first_port, uint16_t last_port);

/* Write and read hellos and welcomes. Reading: is it whole, proved, and for this domain? */
void tcp_hello_write(const struct tcp_domain *domain, const struct tcp_link *link, unsigned char hello[TCP_HELLO]);
bool tcp_hello_read(const struct tcp_domain *domain, const unsigned char data[TCP_HELLO], struct tcp_hello *hello);
bool tcp_welcome_fits(const struct tcp_link *link, const unsigned char welcome[TCP_WELCOME]);

/* Begin to connect a link of the lower rank, or go on with its next address. */
void tcp_try_next(struct tcp_link *link, const char *why);

/* Events. */
void tcp_accept(struct tcp_domain *domain, const struct tcp_source *listener);
void tcp_hear_guest(struct tcp_domain *domain, struct tcp_guest *guest);
void tcp_greet(struct tcp_link *link);

/* Give a link of the higher rank the connection that has come for it already, if it has. */
void tcp_meet_held(struct tcp_link *link);

/* ---- stream.c */

/* Add to what is to be sent; there must be room. */
void tcp_queue(struct tcp_link *link, enum tcp_kind kind, const void *data, size_t bytes, uint64_t tag);

/* Send what goes now. */
void tcp_push(struct tcp_link *link);

/* Read what has come. */
void tcp_pull(struct tcp_link *link);

/* Give taken frames back to a peer that has not been told. */
void tcp_tell(struct tcp_link *link);

/* The link is dead for this reason, and the peer learns it if it does not know. Writes no error record. */
void tcp_bury(struct tcp_link *link, enum hoop_status status);

/* The same; where the peer is the cause, what it was is recorded. Returns the status. */
enum hoop_status tcp_die(struct tcp_link *link, enum hoop_status status);

/* No memory of the caller's is needed any more: what was lent is copied. */
void tcp_own(struct tcp_link *link);

/* The socket is gone; what has landed can still be taken. */
void tcp_end(struct tcp_link *link, enum hoop_status why);

/* If the peer has gone, everything of it has been taken and something waits: the link's death. */
void tcp_settle(struct tcp_link *link);

/* Watch the link's socket for room, or not. */
void tcp_watch_out(struct tcp_link *link, bool out);

/* ---- link.c: entries of the vtable */

enum hoop_status tcp_send(struct hoop_link *link, const void *data, size_t bytes, uint64_t tag, unsigned flags);
enum hoop_status tcp_recv(struct hoop_link *link, void *data, size_t bytes, uint64_t tag);
enum hoop_status tcp_reserve(struct hoop_link *link, size_t bytes, void **data);
enum hoop_status tcp_commit(struct hoop_link *link, size_t bytes, uint64_t tag);
enum hoop_status tcp_peek(struct hoop_link *link, size_t bytes, uint64_t tag, const void **data);
enum hoop_status tcp_release(struct hoop_link *link);

/* Compare a frame with what is expected; kills the link if they differ. */
enum hoop_status tcp_compare(struct tcp_link *link, struct tcp_landed frame, size_t bytes, uint64_t tag);

/* A frame has been handed over. */
void tcp_take(struct tcp_link *link);

#endif
