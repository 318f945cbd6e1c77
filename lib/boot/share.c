// SPDX-License-Identifier: BSD-3-Clause
/* Sharing a segment's descriptor.
 *
 *     leader -> rank   challenge  magic, leader's nonce
 *     rank -> leader   answer     magic, rank, ranks, rank's nonce, code
 *     leader -> rank   gift       magic, code, and the descriptor; or one byte: refused
 *
 * The leader serves all connections from one loop with a fixed number of slots, none of which a stranger keeps for long
 * while others wait. Codes are those of auth.h over role, both nonces and numbers.
 */
#include "boot/share.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/status.h"
#include "wire/auth.h"
#include "wire/cursor.h"
#include "wire/unixfd.h"

#define FAIR_TIME 200000000u /* ns that a client keeps its slot though others may wait */

enum {
    SLOTS = 32,
    TICK_MS = 50, /* how long the leader sleeps at most while all slots are taken, or descriptors are short */
    RETRY_MS = 5, /* pause of a rank before it tries again */
    MAGIC = 8,
    CHALLENGE = MAGIC + HOOP_AUTH_NONCE,
    ANSWER = MAGIC + 4 + 4 + HOOP_AUTH_NONCE + HOOP_AUTH_MAC,
    GIFT = MAGIC + HOOP_AUTH_MAC
};

static const char challenge_magic[] = "hoopshar", answer_magic[] = "hoopfetc", gift_magic[] = "hoopgift";
static const unsigned char refused = 0;

struct hoop_share {
    int listener;
    char name[HOOP_UNIX_NAME];
};

_Static_assert((int)HOOP_SHARE_NAME >= (int)HOOP_UNIX_NAME, "a share's name holds a socket's name");

enum hoop_status hoop_share_open(struct hoop_share **share)
{
    struct hoop_share *made = hoop_calloc(1, sizeof *made);

    if (made == NULL)
        return HOOP_ERR_MEMORY;
    const enum hoop_status status = hoop_unix_listen(false, &made->listener, made->name);
    if (status == HOOP_OK)
        *share = made;
    else
        hoop_free(made);
    return status;
}

const char *hoop_share_name(const struct hoop_share *share)
{
    return share->name;
}

void hoop_share_close(struct hoop_share *share)
{
    if (share == NULL)
        return;
    close(share->listener);
    hoop_unix_unlink(share->name);
    hoop_free(share);
}

/* The code of an answer (or gift): who says it, to which nonces, for which rank of how many. */
static void code(unsigned char mac[HOOP_AUTH_MAC], const unsigned char key[32], const char magic[MAGIC],
                 const unsigned char leader_nonce[HOOP_AUTH_NONCE], const unsigned char rank_nonce[HOOP_AUTH_NONCE],
                 uint32_t rank, uint32_t ranks)
{
    unsigned char numbers[8];
    struct hoop_writer writer = hoop_writer(numbers, sizeof numbers);
    const struct hoop_auth_part parts[] = {
        {magic, MAGIC}, {leader_nonce, HOOP_AUTH_NONCE}, {rank_nonce, HOOP_AUTH_NONCE}, {numbers, sizeof numbers}};

    hoop_put_u32(&writer, rank);
    hoop_put_u32(&writer, ranks);
    hoop_auth_mac(mac, key, parts, 4);
}

/* ---- the leader ---- */

struct client {
    int sock; /* -1: the slot is free */
    uint64_t since;
    unsigned char nonce[HOOP_AUTH_NONCE];
};

struct serving {
    struct hoop_share *share;
    const unsigned char *key;
    int ranks, leader, segment, missing;
    int *lifeline;
    bool short_of_descriptors;
    struct client clients[SLOTS];
};

static void drop(struct client *client)
{
    close(client->sock);
    client->sock = -1;
}

/* The rank of a proved answer, or -1. */
static int read_answer(const struct serving *serving, const struct client *client, const unsigned char *answer,
                       size_t bytes, unsigned char rank_nonce[HOOP_AUTH_NONCE])
{
    struct hoop_reader reader = hoop_reader(answer, bytes);
    unsigned char mac[HOOP_AUTH_MAC], expected[HOOP_AUTH_MAC];
    const unsigned char *magic = hoop_get_view(&reader, MAGIC);
    const uint32_t ranks = (uint32_t)serving->ranks;
    const uint32_t rank = hoop_get_u32_range(&reader, 0, ranks - 1);

    hoop_get_u32_range(&reader, ranks, ranks);
    hoop_get_bytes(&reader, rank_nonce, HOOP_AUTH_NONCE);
    hoop_get_bytes(&reader, mac, sizeof mac);
    if (!hoop_reader_done(&reader) || memcmp(magic, answer_magic, MAGIC) != 0)
        return -1;
    code(expected, serving->key, answer_magic, client->nonce, rank_nonce, rank, ranks);
    return hoop_auth_equal(mac, expected, sizeof mac) ? (int)rank : -1;
}

static void give(struct serving *serving, struct client *client, int rank,
                 const unsigned char rank_nonce[HOOP_AUTH_NONCE])
{
    unsigned char gift[GIFT];

    memcpy(gift, gift_magic, MAGIC);
    code(gift + MAGIC, serving->key, gift_magic, client->nonce, rank_nonce, (uint32_t)rank, (uint32_t)serving->ranks);
    HOOP_FAULT_CUTS(GIVE, client->sock);
    if (hoop_unix_send(client->sock, gift, sizeof gift, serving->segment) != HOOP_OK) {
        drop(client);
        return;
    }
    serving->lifeline[rank] = client->sock;
    serving->missing--;
    client->sock = -1;
}

static void read_client(struct serving *serving, struct client *client)
{
    unsigned char answer[ANSWER], rank_nonce[HOOP_AUTH_NONCE];
    size_t bytes = 0;
    const enum hoop_status status = hoop_unix_recv(client->sock, answer, sizeof answer, &bytes, NULL);

    if (status == HOOP_AGAIN)
        return;
    const int rank = status == HOOP_OK ? read_answer(serving, client, answer, bytes, rank_nonce) : -1;
    if (rank >= 0 && rank != serving->leader && serving->lifeline[rank] < 0) {
        give(serving, client, rank, rank_nonce);
        return;
    }
    if (status == HOOP_OK)
        hoop_unix_send(client->sock, &refused, 1, -1);
    drop(client);
}

static struct client *free_slot(struct serving *serving)
{
    struct client *oldest = &serving->clients[0];

    for (int i = 0; i < SLOTS; i++) {
        struct client *client = &serving->clients[i];
        if (client->sock < 0)
            return client;
        if (client->since < oldest->since)
            oldest = client;
    }
    if (hoop_now() - oldest->since < FAIR_TIME)
        return NULL;
    drop(oldest);
    return oldest;
}

static void accept_clients(struct serving *serving)
{
    unsigned char challenge[CHALLENGE];

    for (int i = 0; i < SLOTS; i++) {
        struct client *client = free_slot(serving);
        if (client == NULL)
            return;
        const enum hoop_status status = hoop_unix_accept(serving->share->listener, &client->sock);
        if (status != HOOP_OK) {
            client->sock = -1;
            serving->short_of_descriptors = status != HOOP_AGAIN;
            return;
        }
        client->since = hoop_now();
        hoop_auth_random(client->nonce, sizeof client->nonce);
        memcpy(challenge, challenge_magic, MAGIC);
        memcpy(challenge + MAGIC, client->nonce, HOOP_AUTH_NONCE);
        if (!hoop_unix_same_user(client->sock) ||
            hoop_unix_send(client->sock, challenge, sizeof challenge, -1) != HOOP_OK)
            drop(client);
    }
}

static enum hoop_status missing_ranks(const struct serving *serving)
{
    char text[256] = "";
    size_t used = 0;

    for (int r = 0; r < serving->ranks && used + 16 < sizeof text; r++) {
        if (r == serving->leader || serving->lifeline[r] >= 0)
            continue;
        snprintf(text + used, sizeof text - used, "%s%d", used ? ", " : "", r);
        used += strlen(text + used);
    }
    return hoop_fail(HOOP_ERR_TIMEOUT,
                     "%d of this host's %d ranks did not come for the shared memory before the deadline: local rank %s",
                     serving->missing, serving->ranks, text);
}

/* One round of the loop: HOOP_OK (go on), or why it ends. */
static enum hoop_status serve_round(struct serving *serving, int cancel, uint64_t deadline)
{
    struct pollfd polls[2 + SLOTS];
    bool full = true;

    for (int i = 0; i < SLOTS; i++) {
        polls[2 + i] = (struct pollfd){.fd = serving->clients[i].sock, .events = POLLIN};
        full = full && serving->clients[i].sock >= 0;
    }
    const bool pause = full || serving->short_of_descriptors;
    polls[0] = (struct pollfd){.fd = pause ? -1 : serving->share->listener, .events = POLLIN};
    polls[1] = (struct pollfd){.fd = cancel, .events = POLLIN};
    serving->short_of_descriptors = false;
    if (poll(polls, 2 + SLOTS, hoop_poll_timeout(deadline, pause ? TICK_MS : 60000)) < 0 && errno != EINTR)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot wait for the ranks of this host");
    if (polls[1].revents)
        return hoop_fail(HOOP_ERR_ABORTED, "cancelled while the shared memory was given to the ranks of this host");
    for (int i = 0; i < SLOTS; i++)
        if (polls[2 + i].revents && polls[2 + i].fd >= 0)
            read_client(serving, &serving->clients[i]);
    if (pause || polls[0].revents)
        accept_clients(serving);
    return serving->missing && hoop_expired(deadline) ? missing_ranks(serving) : HOOP_OK;
}

enum hoop_status hoop_share_serve(struct hoop_share *share, const unsigned char key[32], int ranks, int leader,
                                  int segment, int cancel, int *lifeline, uint64_t deadline)
{
    struct serving serving = {.share = share,
                              .key = key,
                              .ranks = ranks,
                              .leader = leader,
                              .segment = segment,
                              .missing = ranks - 1,
                              .lifeline = lifeline};
    enum hoop_status status = HOOP_OK;

    for (int r = 0; r < ranks; r++)
        lifeline[r] = -1;
    for (int i = 0; i < SLOTS; i++)
        serving.clients[i].sock = -1;
    while (status == HOOP_OK && serving.missing)
        status = serve_round(&serving, cancel, deadline);
    for (int i = 0; i < SLOTS; i++)
        if (serving.clients[i].sock >= 0)
            drop(&serving.clients[i]);
    for (int r = 0; r < ranks && status != HOOP_OK; r++) {
        if (lifeline[r] >= 0)
            close(lifeline[r]);
        lifeline[r] = -1;
    }
    return status;
}

/* ---- the other ranks ---- */

struct fetching {
    const unsigned char *key;
    int ranks, rank, cancel;
    uint64_t deadline;
};

/* Wait for one message. HOOP_AGAIN: the connection has ended. */
static enum hoop_status next_message(const struct fetching *fetching, int sock, void *data, size_t size, size_t *bytes,
                                     int *passed)
{
    enum hoop_status status;

    do {
        status = hoop_unix_wait(sock, fetching->cancel, fetching->deadline);
        if (status == HOOP_OK)
            status = hoop_unix_recv(sock, data, size, bytes, passed);
    } while (status == HOOP_AGAIN);
    return status == HOOP_ERR_PEER ? HOOP_AGAIN : status;
}

static enum hoop_status send_answer(const struct fetching *fetching, int sock, const unsigned char *leader_nonce,
                                    const unsigned char *rank_nonce)
{
    unsigned char answer[ANSWER], mac[HOOP_AUTH_MAC];
    struct hoop_writer writer = hoop_writer(answer, sizeof answer);

    code(mac, fetching->key, answer_magic, leader_nonce, rank_nonce, (uint32_t)fetching->rank,
         (uint32_t)fetching->ranks);
    hoop_put_bytes(&writer, answer_magic, MAGIC);
    hoop_put_u32(&writer, (uint32_t)fetching->rank);
    hoop_put_u32(&writer, (uint32_t)fetching->ranks);
    hoop_put_bytes(&writer, rank_nonce, HOOP_AUTH_NONCE);
    hoop_put_bytes(&writer, mac, sizeof mac);
    return hoop_unix_send(sock, answer, sizeof answer, -1) == HOOP_OK ? HOOP_OK : HOOP_AGAIN;
}

/* The exchange on one connection. HOOP_AGAIN: the connection ended before its end. */
static enum hoop_status exchange(const struct fetching *fetching, int sock, int *segment)
{
    unsigned char challenge[CHALLENGE], gift[GIFT], expected[HOOP_AUTH_MAC], nonce[HOOP_AUTH_NONCE];
    const unsigned char *leader_nonce = challenge + MAGIC;
    size_t bytes = 0;

    enum hoop_status status = next_message(fetching, sock, challenge, sizeof challenge, &bytes, NULL);
    if (status != HOOP_OK)
        return status;
    if (bytes != sizeof challenge || memcmp(challenge, challenge_magic, MAGIC) != 0)
        return hoop_fail(HOOP_ERR_SETUP, "something else than hoop listens on the leader's Unix socket");
    hoop_auth_random(nonce, sizeof nonce);
    status = send_answer(fetching, sock, leader_nonce, nonce);
    if (status == HOOP_OK)
        status = next_message(fetching, sock, gift, sizeof gift, &bytes, segment);
    if (status != HOOP_OK)
        return status;
    code(expected, fetching->key, gift_magic, leader_nonce, nonce, (uint32_t)fetching->rank, (uint32_t)fetching->ranks);
    if (bytes == sizeof gift && *segment >= 0 && memcmp(gift, gift_magic, MAGIC) == 0 &&
        hoop_auth_equal(gift + MAGIC, expected, sizeof expected))
        return HOOP_OK;
    if (*segment >= 0)
        close(*segment);
    return hoop_fail(HOOP_ERR_SETUP,
                     "local rank %d of %d: the leader of this host refuses: it has another key, another number "
                     "of ranks, or has served this rank already",
                     fetching->rank, fetching->ranks);
}

enum hoop_status hoop_share_fetch(const char *name, const unsigned char key[32], int ranks, int rank, int cancel,
                                  int *segment, int *lifeline, uint64_t deadline)
{
    const struct fetching fetching = {.key = key, .ranks = ranks, .rank = rank, .cancel = cancel, .deadline = deadline};
    struct pollfd pause = {.fd = cancel, .events = POLLIN};
    int sock, taken = -1;

    enum hoop_status status = hoop_auth_start();
    if (status != HOOP_OK)
        return status;
    for (;;) {
        status = hoop_unix_connect(name, cancel, &sock, deadline);
        if (status != HOOP_OK) /* it listened when it told its name, so who is refused now follows from its death */
            return status == HOOP_ERR_SETUP ? HOOP_ERR_PEER : status;
        HOOP_FAULT_CUTS(FETCH, sock);
        if (hoop_unix_same_user(sock))
            status = exchange(&fetching, sock, &taken);
        else
            status = hoop_fail(HOOP_ERR_SETUP, "the Unix socket %.100s belongs to another user", name);
        if (status == HOOP_OK) {
            *segment = taken;
            *lifeline = sock;
            return HOOP_OK;
        }
        close(sock);
        if (status != HOOP_AGAIN)
            return status;
        if (hoop_expired(deadline))
            return hoop_fail(HOOP_ERR_TIMEOUT,
                             "the leader of this host did not give the shared memory before the deadline");
        poll(&pause, 1, hoop_poll_timeout(deadline, RETRY_MS)); /* dropped among strangers, or the leader is going */
    }
}
