// SPDX-License-Identifier: BSD-3-Clause
/* The server's side of one meeting. */
#include "boot/meeting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "wire/sock.h"

#define LINGER 5000000000u /* ns that ranks have to read the verdict */
#define HOLD   100000000u  /* ns that "my peer is gone" waits for the death that it only follows from */

enum { SPARE_DESCRIPTORS = 16 }; /* that the process may need beside one per rank */

enum state { WAITING, SETTING_UP, OVER };

struct outgoing {
    unsigned char head[HOOP_MESSAGE_HEAD], mac[HOOP_AUTH_MAC];
    const unsigned char *body; /* the meeting's table or verdict */
    size_t bytes, sent;
};

struct member {
    int sock; /* -1: gone, or not yet there */
    bool joined, reported, home;
    struct hoop_seal seal;
    struct outgoing queue[2]; /* table, verdict */
    int first, queued;
    size_t received;
    unsigned char incoming[HOOP_VERDICT_MAX];
};

struct hoop_meeting {
    unsigned char nonce[HOOP_ID_NONCE], key[HOOP_AUTH_KEY];
    enum state state;
    int ranks, joined, reported;
    struct member *members;       /* ranks; NULL: nobody came yet, or all are gone */
    struct hoop_boot_blob *blobs; /* ranks */
    unsigned char *table;
    uint64_t deadline; /* of the state; of reading the verdict once it is over */

    /* What the first one that came says; all others must agree. */
    uint32_t first_rank, version;
    uint64_t digest;
    char agreed[HOOP_AGREED_TEXT];

    /* A report that only follows from a death which is not seen yet. */
    uint64_t held_until;
    char held_text[HOOP_ERROR_TEXT];

    enum hoop_status status;
    char text[HOOP_ERROR_TEXT];
    unsigned char verdict[HOOP_VERDICT_BODY];
    size_t verdict_bytes;
};

struct hoop_meeting *hoop_meeting_create(const struct hoop_id *id)
{
    struct hoop_meeting *meeting = hoop_calloc(1, sizeof *meeting);

    if (meeting == NULL)
        return NULL;
    memcpy(meeting->nonce, id->nonce, sizeof meeting->nonce);
    hoop_id_key(id, "meeting", meeting->key);
    meeting->deadline = meeting->held_until = UINT64_MAX;
    return meeting;
}

static void free_members(struct hoop_meeting *meeting)
{
    for (int r = 0; meeting->members && r < meeting->ranks; r++)
        if (meeting->members[r].sock >= 0)
            close(meeting->members[r].sock);
    hoop_free(meeting->members);
    hoop_free(meeting->blobs);
    hoop_free(meeting->table);
    meeting->members = NULL;
    meeting->blobs = NULL;
    meeting->table = NULL;
}

void hoop_meeting_destroy(struct hoop_meeting *meeting)
{
    free_members(meeting);
    hoop_auth_wipe(meeting, sizeof *meeting);
    hoop_free(meeting);
}

void hoop_meeting_forget(struct hoop_meeting *meeting)
{
    for (int r = 0; meeting->members && r < meeting->ranks; r++)
        if (meeting->members[r].sock >= 0)
            close(meeting->members[r].sock);
}

bool hoop_meeting_is(const struct hoop_meeting *meeting, const unsigned char nonce[HOOP_ID_NONCE])
{
    return memcmp(meeting->nonce, nonce, HOOP_ID_NONCE) == 0;
}

const unsigned char *hoop_meeting_key(const struct hoop_meeting *meeting)
{
    return meeting->key;
}

bool hoop_meeting_finished(const struct hoop_meeting *meeting)
{
    return meeting->state == OVER && meeting->members == NULL;
}

/* ---- sending ---- */

static void died(struct hoop_meeting *meeting, int rank);

static void flush(struct hoop_meeting *meeting, int rank)
{
    struct member *member = &meeting->members[rank];

    while (member->sock >= 0 && member->first < member->queued) {
        struct outgoing *out = &member->queue[member->first];
        const size_t whole = sizeof out->head + out->bytes + sizeof out->mac;
        const struct iovec parts[] = {
            {out->head, sizeof out->head}, {(void *)(uintptr_t)out->body, out->bytes}, {out->mac, sizeof out->mac}};
        size_t moved;
        const enum hoop_status status = hoop_sock_send_parts(member->sock, parts, 3, out->sent, &moved);
        if (status == HOOP_AGAIN)
            return;
        if (status != HOOP_OK) {
            died(meeting, rank);
            return;
        }
        out->sent += moved;
        if (out->sent == whole)
            member->first++;
    }
}

static void post(struct hoop_meeting *meeting, int rank, enum hoop_message type, const unsigned char *body,
                 size_t bytes)
{
    struct member *member = &meeting->members[rank];

    if (member->sock < 0 || member->queued == 2)
        return;
    struct outgoing *out = &member->queue[member->queued++];
    out->body = body;
    out->bytes = bytes;
    out->sent = 0;
    hoop_seal_message(&member->seal, type, body, bytes, out->head, out->mac);
    flush(meeting, rank);
}

/* To all; last to those of the server's own process, which may end the process as soon as they know. */
static void post_all(struct hoop_meeting *meeting, enum hoop_message type, const unsigned char *body, size_t bytes)
{
    for (int home = 0; home <= 1; home++)
        for (int r = 0; r < meeting->ranks; r++)
            if (meeting->members[r].joined && meeting->members[r].home == (home != 0))
                post(meeting, r, type, body, bytes);
}

/* One small message to a fresh connection, whose buffer is empty: it goes at once or the other end is gone. */
static bool send_now(int sock, struct hoop_seal *seal, enum hoop_message type, const void *body, size_t bytes)
{
    unsigned char head[HOOP_MESSAGE_HEAD], mac[HOOP_AUTH_MAC];
    const struct iovec parts[] = {{head, sizeof head}, {(void *)(uintptr_t)body, bytes}, {mac, sizeof mac}};
    size_t moved;

    hoop_seal_message(seal, type, body, bytes, head, mac);
    return hoop_sock_send_parts(sock, parts, 3, 0, &moved) == HOOP_OK && moved == sizeof head + bytes + sizeof mac;
}

static void refuse(int sock, struct hoop_seal *seal, enum hoop_status status, const char *text)
{
    unsigned char body[HOOP_VERDICT_BODY];

    send_now(sock, seal, HOOP_VERDICT, body, hoop_verdict_write(body, status, text));
    close(sock);
}

/* ---- verdicts ---- */

void hoop_meeting_conclude(struct hoop_meeting *meeting, enum hoop_status status, const char *text)
{
    if (meeting->state == OVER)
        return;
    meeting->state = OVER;
    meeting->status = status;
    snprintf(meeting->text, sizeof meeting->text, "%s", text);
    meeting->deadline = hoop_now() + LINGER;
    meeting->verdict_bytes = hoop_verdict_write(meeting->verdict, status, meeting->text);
    if (meeting->members)
        post_all(meeting, HOOP_VERDICT, meeting->verdict, meeting->verdict_bytes);
}

static void died(struct hoop_meeting *meeting, int rank)
{
    char text[128];

    close(meeting->members[rank].sock);
    meeting->members[rank].sock = -1;
    snprintf(text, sizeof text,
             meeting->state == WAITING ? "rank %d died before all %d ranks had joined"
                                       : "rank %d of %d died during set-up",
             rank, meeting->ranks);
    hoop_meeting_conclude(meeting, HOOP_ERR_PEER, text);
}

static bool is_open(const struct hoop_meeting *meeting, int rank)
{
    const struct member *member = &meeting->members[rank];

    return meeting->state == WAITING ? !member->joined : !member->reported;
}

/* "1, 3-5, 7": the ranks that have not joined (waiting) or not reported (setting up). */
static void open_ranks(const struct hoop_meeting *meeting, char *text, size_t size)
{
    size_t used = 0;

    text[0] = 0;
    for (int r = 0; r < meeting->ranks && used + 32 < size; r++) {
        if (!is_open(meeting, r))
            continue;
        const int from = r;
        while (r + 1 < meeting->ranks && is_open(meeting, r + 1))
            r++;
        snprintf(text + used, size - used, "%s%d", used ? ", " : "", from);
        used += strlen(text + used);
        if (r > from)
            snprintf(text + used, size - used, "%s%d", r > from + 1 ? "-" : ", ", r);
        used += strlen(text + used);
    }
    if (used + 32 >= size)
        snprintf(text + used, size - used, ", …");
}

static void too_late(struct hoop_meeting *meeting)
{
    char ranks[512], text[HOOP_ERROR_TEXT];
    const int count = meeting->ranks - (meeting->state == WAITING ? meeting->joined : meeting->reported);

    open_ranks(meeting, ranks, sizeof ranks);
    snprintf(text, sizeof text,
             meeting->state == WAITING
                 ? "%d of %d ranks did not join before the deadline (HOOP_INIT_TIMEOUT): missing %s %s. Are "
                   "they running, with the same id?"
                 : "%d of %d ranks did not finish their set-up before the deadline (HOOP_INIT_TIMEOUT): "
                   "%s %s",
             count, meeting->ranks, count == 1 ? "rank" : "ranks", ranks);
    hoop_meeting_conclude(meeting, HOOP_ERR_TIMEOUT, text);
}

/* ---- joining ---- */

static enum hoop_status open_for(struct hoop_meeting *meeting, const struct hoop_hello *hello)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < hello->ranks + (rlim_t)SPARE_DESCRIPTORS)
        return hoop_fail(HOOP_ERR_SETUP,
                         "the process that serves the rendezvous may open %" PRIu64
                         " files, too few for %u ranks: raise its limit (ulimit -n)",
                         (uint64_t)limit.rlim_cur, (unsigned)hello->ranks);
    meeting->ranks = (int)hello->ranks;
    meeting->members = hoop_calloc(hello->ranks, sizeof *meeting->members);
    meeting->blobs = hoop_calloc(hello->ranks, sizeof *meeting->blobs);
    if (meeting->members == NULL || meeting->blobs == NULL) {
        hoop_free(meeting->members);
        meeting->members = NULL;
        return HOOP_ERR_MEMORY;
    }
    for (int r = 0; r < meeting->ranks; r++)
        meeting->members[r].sock = -1;
    meeting->first_rank = hello->rank;
    meeting->version = hello->version;
    meeting->digest = hello->digest;
    memcpy(meeting->agreed, hello->agreed, sizeof meeting->agreed);
    return HOOP_OK;
}

/* The first word in which two texts "A=1 B=2 …" differ. */
static void name_difference(const struct hoop_meeting *meeting, const struct hoop_hello *hello)
{
    const char *ours = meeting->agreed, *theirs = hello->agreed;

    for (;;) {
        const size_t our_length = strcspn(ours, " "), their_length = strcspn(theirs, " ");
        if (our_length != their_length || strncmp(ours, theirs, our_length) != 0) {
            hoop_fail(
                HOOP_ERR_SETUP,
                "settings differ: rank %u has HOOP_%.*s, rank %u has HOOP_%.*s; set it to the same value on all ranks",
                (unsigned)meeting->first_rank, (int)our_length, ours, (unsigned)hello->rank, (int)their_length, theirs);
            return;
        }
        ours += our_length;
        theirs += their_length;
        if (*ours == 0 || *theirs == 0)
            break;
        ours++;
        theirs++;
    }
    hoop_fail(HOOP_ERR_SETUP, "settings differ between rank %u and rank %u", (unsigned)meeting->first_rank,
              (unsigned)hello->rank);
}

static enum hoop_status fits(const struct hoop_meeting *meeting, const struct hoop_hello *hello)
{
    const unsigned first = meeting->first_rank, rank = hello->rank;

    if (hello->version != meeting->version)
        return hoop_fail(HOOP_ERR_SETUP, "versions of hoop differ: rank %u has %u, rank %u has %u", first,
                         (unsigned)meeting->version, rank, (unsigned)hello->version);
    if (hello->ranks != (uint32_t)meeting->ranks)
        return hoop_fail(HOOP_ERR_SETUP, "sizes differ: rank %u was started as one of %d ranks, rank %u as one of %u",
                         first, meeting->ranks, rank, (unsigned)hello->ranks);
    if (hello->digest != meeting->digest) {
        name_difference(meeting, hello);
        return HOOP_ERR_SETUP;
    }
    if (meeting->members[rank].joined)
        return hoop_fail(HOOP_ERR_SETUP, "rank %u joined twice: two processes were started as rank %u of %d", rank,
                         rank, meeting->ranks);
    return HOOP_OK;
}

static void send_table(struct hoop_meeting *meeting)
{
    const size_t most = (size_t)meeting->ranks * sizeof *meeting->blobs;

    meeting->table = hoop_calloc(most, 1);
    if (meeting->table == NULL) {
        hoop_meeting_conclude(meeting, HOOP_ERR_MEMORY, hoop_error_text());
        return;
    }
    meeting->state = SETTING_UP;
    post_all(meeting, HOOP_TABLE, meeting->table, hoop_table_write(meeting->table, meeting->blobs, meeting->ranks));
}

static void admit(struct hoop_meeting *meeting, int sock, struct hoop_seal *seal, const struct hoop_hello *hello)
{
    struct member *member = &meeting->members[hello->rank];
    const uint64_t now = hoop_now();

    if (!send_now(sock, seal, HOOP_WELCOME, NULL, 0)) {
        close(sock); /* gone already; it may come again */
        return;
    }
    member->sock = sock;
    member->joined = true;
    member->home = hello->home;
    member->seal = *seal;
    meeting->blobs[hello->rank] = hello->blob;
    if (hello->milliseconds < UINT64_MAX / 2000000 && now + hello->milliseconds * 1000000 < meeting->deadline)
        meeting->deadline = now + hello->milliseconds * 1000000;
    if (++meeting->joined == meeting->ranks)
        send_table(meeting);
}

void hoop_meeting_join(struct hoop_meeting *meeting, int sock, const struct hoop_seal *proved,
                       const struct hoop_hello *hello)
{
    struct hoop_seal seal = *proved;
    enum hoop_status status = HOOP_OK;

    if (meeting->state == OVER && meeting->status != HOOP_OK) {
        refuse(sock, &seal, meeting->status, meeting->text);
        return;
    }
    if (meeting->state != WAITING) {
        hoop_fail(HOOP_ERR_SETUP,
                  "this id is used already: %d ranks have joined with it; each communicator needs a new id",
                  meeting->ranks);
        refuse(sock, &seal, HOOP_ERR_SETUP, hoop_error_text());
        return;
    }
    if (meeting->members == NULL)
        status = open_for(meeting, hello);
    if (status == HOOP_OK)
        status = fits(meeting, hello);
    if (status == HOOP_OK) {
        admit(meeting, sock, &seal, hello);
        return;
    }
    char text[HOOP_ERROR_TEXT];
    snprintf(text, sizeof text, "%s", hoop_error_text());
    refuse(sock, &seal, status, text);
    hoop_meeting_conclude(meeting, status, text);
}

/* ---- reports ---- */

static void reported(struct hoop_meeting *meeting, int rank, enum hoop_status status, const char *text)
{
    char told[HOOP_ERROR_TEXT];

    meeting->members[rank].reported = true;
    meeting->reported++;
    snprintf(told, sizeof told, "rank %d: %.*s", rank, (int)sizeof told - 32, text);
    if (status == HOOP_ERR_PEER && meeting->held_until == UINT64_MAX) {
        memcpy(meeting->held_text, told, sizeof told);
        meeting->held_until = hoop_now() + HOLD;
    } else if (status != HOOP_OK && status != HOOP_ERR_PEER) {
        hoop_meeting_conclude(meeting, status, told);
    } else if (meeting->reported == meeting->ranks && meeting->held_until == UINT64_MAX) {
        hoop_meeting_conclude(meeting, HOOP_OK, "");
    }
}

/* A whole report in the member's buffer, if it is one: false: it breaks the protocol. */
static bool take_report(struct hoop_meeting *meeting, int rank, size_t bytes)
{
    struct member *member = &meeting->members[rank];
    const unsigned char *body = member->incoming + HOOP_MESSAGE_HEAD;
    enum hoop_status status;
    char text[HOOP_ERROR_TEXT];

    if (!hoop_seal_check(&member->seal, member->incoming, body, bytes, body + bytes) ||
        !hoop_verdict_read(body, bytes, &status, text))
        return false;
    reported(meeting, rank, status, text);
    return true;
}

static void receive(struct hoop_meeting *meeting, int rank)
{
    struct member *member = &meeting->members[rank];
    size_t moved, bytes;
    unsigned type;

    for (;;) {
        /* Once it is over, or the rank has reported, nothing that comes counts but the end. */
        const bool wanted = meeting->state == SETTING_UP && !member->reported;
        if (!wanted)
            member->received = 0;
        const enum hoop_status status = hoop_sock_recv_some(member->sock, member->incoming + member->received,
                                                            sizeof member->incoming - member->received, &moved);
        if (status == HOOP_AGAIN)
            return;
        if (status != HOOP_OK || meeting->state == WAITING) {
            died(meeting, rank);
            return;
        }
        member->received += moved;
        if (!wanted || member->received < HOOP_MESSAGE_HEAD)
            continue;
        hoop_message_head(member->incoming, &type, &bytes);
        if (type != HOOP_REPORT || bytes > HOOP_VERDICT_BODY ||
            (member->received == HOOP_MESSAGE_HEAD + bytes + HOOP_AUTH_MAC && !take_report(meeting, rank, bytes)) ||
            member->received > HOOP_MESSAGE_HEAD + bytes + HOOP_AUTH_MAC) {
            died(meeting, rank); /* it talks nonsense: as good as dead */
            return;
        }
    }
}

/* ---- polling ---- */

int hoop_meeting_entries(const struct hoop_meeting *meeting)
{
    return meeting->members ? meeting->ranks : 0;
}

void hoop_meeting_watch(const struct hoop_meeting *meeting, struct pollfd *entries, int n)
{
    for (int r = 0; r < n; r++) {
        const struct member *member = &meeting->members[r];
        entries[r] = (struct pollfd){.fd = member->sock, .events = POLLIN};
        if (member->first < member->queued)
            entries[r].events |= POLLOUT;
    }
}

void hoop_meeting_ready(struct hoop_meeting *meeting, const struct pollfd *entries, int n)
{
    for (int r = 0; r < n && meeting->members; r++) {
        if (entries[r].fd < 0 || entries[r].revents == 0 || entries[r].fd != meeting->members[r].sock)
            continue;
        if (entries[r].revents & POLLOUT)
            flush(meeting, r);
        if (entries[r].revents & ~POLLOUT && meeting->members[r].sock >= 0)
            receive(meeting, r);
    }
}

uint64_t hoop_meeting_tick(struct hoop_meeting *meeting)
{
    bool connected = false;

    if (meeting->state != OVER && hoop_expired(meeting->held_until))
        hoop_meeting_conclude(meeting, HOOP_ERR_PEER, meeting->held_text);
    if (meeting->state != OVER && hoop_expired(meeting->deadline))
        too_late(meeting);
    if (meeting->state != OVER)
        return meeting->held_until < meeting->deadline ? meeting->held_until : meeting->deadline;
    if (meeting->members == NULL)
        return UINT64_MAX;
    for (int r = 0; r < meeting->ranks; r++)
        connected |= meeting->members[r].sock >= 0;
    if (connected && !hoop_expired(meeting->deadline))
        return meeting->deadline;
    free_members(meeting);
    return UINT64_MAX;
}
