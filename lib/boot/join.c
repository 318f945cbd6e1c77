// SPDX-License-Identifier: BSD-3-Clause
/* A rank's side of a meeting: connect, prove the key, wait for the answers. */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/status.h"
#include "boot/boot.h"
#include "boot/message.h"
#include "boot/rendezvous.h"
#include "wire/cursor.h"
#include "wire/iface.h"
#include "wire/sock.h"

#define GRACE 1000000000u /* ns after the deadline: the server answers at the deadline, and knows who is missing */

enum { RETRY_MS = 20 }; /* pause after the server dropped an unfinished connection */

struct hoop_boot {
    int sock, rank, ranks;
    bool early; /* the meeting may not be served yet */
    struct hoop_seal seal;
    char server[HOOP_ADDRESS_TEXT];
};

static uint64_t later(uint64_t deadline)
{
    return deadline > UINT64_MAX - GRACE ? UINT64_MAX : deadline + GRACE;
}

/* HOOP_AGAIN stands for a lost connection until it is known what that means; here it means the server's death. */
static enum hoop_status lost(const struct hoop_boot *boot)
{
    return hoop_fail(HOOP_ERR_PEER, "rank %d: the process that serves the rendezvous at %s has ended", boot->rank,
                     boot->server);
}

static enum hoop_status moved(const struct hoop_boot *boot, enum hoop_status status)
{
    if (status == HOOP_ERR_PEER)
        return HOOP_AGAIN;
    if (status == HOOP_ERR_TIMEOUT)
        return hoop_fail(HOOP_ERR_TIMEOUT,
                         "rank %d: the rendezvous at %s gave no answer before the deadline (HOOP_INIT_TIMEOUT)",
                         boot->rank, boot->server);
    return status;
}

/* The deadline of an early rank. */
static enum hoop_status nobody(const struct hoop_boot *boot)
{
    return hoop_fail(HOOP_ERR_TIMEOUT,
                     "rank %d: rank 0 does not serve the meeting at %s before the deadline (HOOP_INIT_TIMEOUT): does "
                     "it run, on that "
                     "host? HOOP_MEET=ADDRESS:PORT, the same on all ranks, names another place",
                     boot->rank, boot->server);
}

static enum hoop_status receive_bytes(const struct hoop_boot *boot, void *to, size_t bytes, uint64_t deadline)
{
    return moved(boot, hoop_sock_recv_all(boot->sock, to, bytes, deadline));
}

/* ---- messages ---- */

static enum hoop_status rejected(const struct hoop_boot *boot, unsigned why)
{
    if (boot->early && why == HOOP_REJECT_UNKNOWN)
        return HOOP_AGAIN; /* an earlier meeting is served there */
    return hoop_fail(HOOP_ERR_SETUP,
                     why == HOOP_REJECT_UNKNOWN
                         ? "rank %d: the process at %s knows nothing of this id: it is of an earlier run, "
                           "or was used long ago"
                         : "rank %d: the rendezvous at %s refuses the secret: this id is not the one that "
                           "it made",
                     boot->rank, boot->server);
}

/* Receive one message. *body is new memory (hoop_free), or NULL if the body is empty.   HOOP_AGAIN: the connection
 * is lost. */
static enum hoop_status receive(struct hoop_boot *boot, unsigned *type, unsigned char **body, size_t *bytes,
                                uint64_t deadline)
{
    const size_t most = (size_t)boot->ranks * sizeof(struct hoop_boot_blob) + HOOP_VERDICT_BODY;
    unsigned char head[HOOP_MESSAGE_HEAD], mac[HOOP_AUTH_MAC];

    *body = NULL;
    enum hoop_status status = receive_bytes(boot, head, sizeof head, deadline);
    if (status != HOOP_OK)
        return status;
    hoop_message_head(head, type, bytes);
    if (*bytes > most)
        return hoop_fail(HOOP_ERR_SETUP, "rank %d: the rendezvous at %s sends a message of %zu bytes", boot->rank,
                         boot->server, *bytes);
    if (*bytes && (*body = hoop_calloc(*bytes, 1)) == NULL)
        return HOOP_ERR_MEMORY;
    status = receive_bytes(boot, *body, *bytes, deadline);
    if (status == HOOP_OK)
        status = receive_bytes(boot, mac, sizeof mac, deadline);
    if (status == HOOP_OK && *type == HOOP_REJECT)
        status = rejected(boot, *bytes ? (*body)[0] : 0);
    else if (status == HOOP_OK && !hoop_seal_check(&boot->seal, head, *body, *bytes, mac))
        status = hoop_fail(HOOP_ERR_SETUP, "rank %d: who answers at %s does not hold this id's secret", boot->rank,
                           boot->server);
    if (status != HOOP_OK) {
        hoop_free(*body);
        *body = NULL;
    }
    return status;
}

/* A verdict as this rank's own error (or success). */
static enum hoop_status judged(const struct hoop_boot *boot, const unsigned char *body, size_t bytes)
{
    enum hoop_status status;
    char text[HOOP_ERROR_TEXT];

    if (!hoop_verdict_read(body, bytes, &status, text))
        return hoop_fail(HOOP_ERR_INTERNAL, "rank %d: the rendezvous at %s sends a malformed verdict", boot->rank,
                         boot->server);
    return status == HOOP_OK ? HOOP_OK : hoop_fail(status, "%s", text);
}

/* Receive messages up to one of the type that is awaited, or a verdict that is a failure.
 * *body, *bytes: as receive, on success. */
static enum hoop_status await(struct hoop_boot *boot, enum hoop_message awaited, unsigned char **body, size_t *bytes,
                              uint64_t deadline)
{
    for (;;) {
        unsigned type;
        enum hoop_status status = receive(boot, &type, body, bytes, deadline);
        if (status != HOOP_OK)
            return status;
        if (type == (unsigned)awaited)
            return HOOP_OK;
        if (type == HOOP_VERDICT)
            status = judged(boot, *body, *bytes);
        hoop_free(*body);
        *body = NULL;
        if (status != HOOP_OK)
            return status;
        if (type != HOOP_WELCOME && type != HOOP_TABLE)
            return hoop_fail(HOOP_ERR_INTERNAL, "rank %d: the rendezvous at %s sends message %u out of turn",
                             boot->rank, boot->server, type);
    }
}

/* ---- joining ---- */

static enum hoop_status greet(struct hoop_boot *boot, struct hoop_hello *hello, uint64_t deadline)
{
    unsigned char challenge[HOOP_CHALLENGE], message[HOOP_HELLO_MAX], *body;
    size_t bytes;
    enum hoop_status status = receive_bytes(boot, challenge, sizeof challenge, deadline);

    if (status != HOOP_OK)
        return status;
    if (hoop_challenge_read(challenge, boot->seal.server_nonce) != HOOP_OK) {
        char why[256] = "";
        strncat(why, hoop_error_text(), sizeof why - 1);
        return hoop_fail(HOOP_ERR_SETUP, "rank %d: no rendezvous of this id at %s: %s", boot->rank, boot->server, why);
    }
    const uint64_t now = hoop_now();
    hello->milliseconds = deadline == UINT64_MAX ? UINT64_MAX : deadline > now ? (deadline - now) / 1000000 : 0;
    hoop_auth_random(boot->seal.client_nonce, sizeof boot->seal.client_nonce);
    bytes = hoop_hello_write(message, hello, &boot->seal);
    status = moved(boot, hoop_sock_send_all(boot->sock, message, bytes, deadline));
    HOOP_FAULT_CUTS(HELLO, boot->sock);
    if (status == HOOP_OK || status == HOOP_AGAIN) /* a server that closed may have said why */
        status = await(boot, HOOP_WELCOME, &body, &bytes, deadline);
    return status;
}

/* Connect until the server has taken the hello: under a flood of strangers it may drop unfinished connections. */
static enum hoop_status enter(struct hoop_boot *boot, const struct hoop_id *id, struct hoop_hello *hello,
                              uint64_t deadline)
{
    for (;;) {
        enum hoop_status status = hoop_sock_connect(&id->address, &boot->sock, deadline);
        if (status == HOOP_ERR_PEER && boot->early && !hoop_expired(deadline)) {
            poll(NULL, 0, hoop_poll_timeout(deadline, RETRY_MS));
            continue;
        }
        if (boot->early && (status == HOOP_ERR_PEER || status == HOOP_ERR_TIMEOUT))
            return nobody(boot);
        if (status == HOOP_ERR_PEER)
            return hoop_fail(
                HOOP_ERR_PEER,
                "rank %d: nobody serves the rendezvous at %s: the process that made the id has ended, or the "
                "address is another host's",
                boot->rank, boot->server);
        if (status != HOOP_OK)
            return moved(boot, status);
        boot->seal.sent = boot->seal.received = 0;
        status = greet(boot, hello, deadline);
        if (status == HOOP_OK)
            return HOOP_OK;
        close(boot->sock);
        boot->sock = -1;
        if (status != HOOP_AGAIN)
            return status;
        poll(NULL, 0, hoop_poll_timeout(deadline, RETRY_MS));
        if (hoop_expired(deadline))
            return boot->early ? nobody(boot) : moved(boot, HOOP_ERR_TIMEOUT);
    }
}

static enum hoop_status read_table(const struct hoop_boot *boot, const unsigned char *body, size_t bytes,
                                   struct hoop_boot_blob *table)
{
    if (!hoop_table_read(body, bytes, table, boot->ranks))
        return hoop_fail(HOOP_ERR_INTERNAL, "rank %d: the rendezvous at %s sends a malformed table", boot->rank,
                         boot->server);
    return HOOP_OK;
}

static enum hoop_status meet(struct hoop_boot *boot, const struct hoop_id *id, struct hoop_hello *hello,
                             struct hoop_boot_blob *table, uint64_t deadline)
{
    unsigned char *body;
    size_t bytes;

    enum hoop_status status = enter(boot, id, hello, deadline);
    if (status != HOOP_OK)
        return status;
    status = await(boot, HOOP_TABLE, &body, &bytes, later(deadline));
    if (status == HOOP_OK) {
        status = read_table(boot, body, bytes, table);
        hoop_free(body);
    }
    return status == HOOP_AGAIN ? lost(boot) : status;
}

static void fill_hello(struct hoop_hello *hello, const struct hoop_id *id, int ranks, int rank,
                       const struct hoop_settings *settings, const struct hoop_boot_blob *mine)
{
    memset(hello, 0, sizeof *hello);
    memcpy(hello->id_nonce, id->nonce, sizeof hello->id_nonce);
    hello->rank = (uint32_t)rank;
    hello->ranks = (uint32_t)ranks;
    hello->version = (uint32_t)hoop_version();
    hello->digest = hoop_settings_digest(settings);
    hello->home = hoop_rendezvous_is_home(id);
    hoop_settings_agreed_text(settings, hello->agreed, sizeof hello->agreed);
    hello->blob = *mine;
}

enum hoop_status hoop_boot_join(struct hoop_boot **joined, const struct hoop_unique_id *unique, int ranks, int rank,
                                const struct hoop_settings *settings, const struct hoop_boot_blob *mine,
                                struct hoop_boot_blob *table, uint64_t deadline)
{
    struct hoop_hello hello;
    struct hoop_id id;

    if (ranks < 1 || ranks > HOOP_RANKS_MAX)
        return hoop_fail(HOOP_ERR_ARG, "%d ranks: 1 to %d are possible", ranks, HOOP_RANKS_MAX);
    if (rank < 0 || rank >= ranks)
        return hoop_fail(HOOP_ERR_ARG, "rank %d of %d: ranks are numbered 0 to %d", rank, ranks, ranks - 1);
    if (mine->size > HOOP_BOOT_BLOB)
        return hoop_fail(HOOP_ERR_INTERNAL, "a blob of %u bytes: %d are possible", (unsigned)mine->size,
                         HOOP_BOOT_BLOB);
    enum hoop_status status = hoop_id_decode(unique, &id);
    if (status != HOOP_OK)
        return status;
    struct hoop_boot *boot = hoop_calloc(1, sizeof *boot);
    if (boot == NULL)
        return HOOP_ERR_MEMORY;
    boot->sock = -1;
    boot->rank = rank;
    boot->ranks = ranks;
    boot->early = id.early;
    hoop_address_print(&id.address, boot->server);
    hoop_id_key(&id, "meeting", boot->seal.key);
    fill_hello(&hello, &id, ranks, rank, settings, mine);
    status = meet(boot, &id, &hello, table, deadline);
    hoop_auth_wipe(&id, sizeof id);
    if (status == HOOP_OK)
        *joined = boot;
    else
        hoop_boot_close(boot);
    return status;
}

/* ---- after joining ---- */

int hoop_boot_descriptor(const struct hoop_boot *boot)
{
    return boot->sock;
}

static enum hoop_status send_report(struct hoop_boot *boot, enum hoop_status mine, const char *text, uint64_t deadline)
{
    unsigned char body[HOOP_VERDICT_BODY], head[HOOP_MESSAGE_HEAD], mac[HOOP_AUTH_MAC], message[HOOP_VERDICT_MAX];
    struct hoop_writer writer = hoop_writer(message, sizeof message);
    const size_t bytes = hoop_verdict_write(body, mine, text);

    hoop_seal_message(&boot->seal, HOOP_REPORT, body, bytes, head, mac);
    hoop_put_bytes(&writer, head, sizeof head);
    hoop_put_bytes(&writer, body, bytes);
    hoop_put_bytes(&writer, mac, sizeof mac);
    return moved(boot, hoop_sock_send_all(boot->sock, message, hoop_writer_used(&writer), deadline));
}

enum hoop_status hoop_boot_agree(struct hoop_boot *boot, enum hoop_status mine, const char *text, uint64_t deadline)
{
    unsigned char *body;
    size_t bytes;
    char own[HOOP_ERROR_TEXT] = "";

    HOOP_FAULT_POINT(AGREE);
    if (mine != HOOP_OK)
        strncat(own, text ? text : hoop_error_text(), sizeof own - 1);
    enum hoop_status status = send_report(boot, mine, own, later(deadline));
    if (status == HOOP_OK || status == HOOP_AGAIN) /* the verdict may have come before the server closed */
        status = await(boot, HOOP_VERDICT, &body, &bytes, later(deadline));
    if (status == HOOP_AGAIN) /* ABORTED: what this rank did was called off because the server had gone */
        return mine == HOOP_OK || mine == HOOP_ERR_ABORTED ? lost(boot)
                                                           : hoop_fail(mine, "rank %d: %s", boot->rank, own);
    if (status != HOOP_OK)
        return status;
    status = judged(boot, body, bytes);
    hoop_free(body);
    return status;
}

void hoop_boot_close(struct hoop_boot *boot)
{
    if (boot == NULL)
        return;
    if (boot->sock >= 0)
        close(boot->sock);
    hoop_auth_wipe(boot, sizeof *boot);
    hoop_free(boot);
}

bool hoop_boot_goes_far(const struct hoop_unique_id *unique)
{
    struct hoop_id id;
    const bool far = hoop_id_decode(unique, &id) == HOOP_OK && !hoop_address_is_loopback(&id.address);

    hoop_auth_wipe(&id, sizeof id);
    return far;
}
