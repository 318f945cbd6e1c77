// SPDX-License-Identifier: BSD-3-Clause
/* See boot_ranks.h. */
#include "boot_ranks.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int before;
struct hoop_unique_id id;
struct hoop_id parts;

int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

void meeting_begin(void)
{
    clearenv();
    ck_assert_msg(hoop_unique_id_create(&id) == HOOP_OK, "%s", hoop_error_text());
    ck_assert_int_eq(hoop_id_decode(&id, &parts), HOOP_OK);
    before = open_descriptors();
}

/* The server closes its ends a moment after the ranks have closed theirs. */
void meeting_end(void)
{
    const uint64_t cap = hoop_deadline(20);

    while (open_descriptors() != before && !hoop_expired(cap))
        usleep(2000);
    ck_assert_int_eq(open_descriptors(), before);
}

static void fill(struct hoop_boot_blob *blob, int rank)
{
    memset(blob, 0, sizeof *blob);
    blob->size = (uint16_t)(rank % 3 == 0 ? HOOP_BOOT_BLOB : rank % 3 == 1 ? 0 : rank * 7 % 500);
    for (int i = 0; i < blob->size; i++)
        blob->data[i] = (unsigned char)(rank * 31 + i);
}

static bool table_is_right(const struct hoop_boot_blob *table, int ranks)
{
    struct hoop_boot_blob expected;

    for (int r = 0; r < ranks; r++) {
        fill(&expected, r);
        if (table[r].size != expected.size || memcmp(table[r].data, expected.data, expected.size) != 0)
            return false;
    }
    return true;
}

static void act(struct rank *self, struct hoop_boot *boot)
{
    const uint64_t deadline = hoop_deadline(self->timeout);

    if (self->met)
        pthread_barrier_wait(self->met);
    if (self->deed == DIE)
        return;
    if (self->deed == STALL) { /* alive, but never reports: until the verdict comes */
        self->early = hoop_sock_wait(hoop_boot_descriptor(boot), hoop_deadline(30)) == HOOP_OK;
        return;
    }
    const enum hoop_status mine = self->deed == FAIL ? HOOP_ERR_MEMORY : self->deed == BLAME ? HOOP_ERR_PEER : HOOP_OK;
    self->status = hoop_boot_agree(boot, mine, "as the test wants", deadline);
    snprintf(self->text, sizeof self->text, "%s", self->status == HOOP_OK ? "" : hoop_error_text());
}

static void *live(void *argument)
{
    struct rank *self = argument;
    struct hoop_settings settings;
    struct hoop_boot_blob mine, table[RANKS];
    struct hoop_boot *boot = NULL;

    hoop_settings_read(&settings);
    if (self->slots)
        hoop_setting_parse(HOOP_SETTING_SLOTS, self->slots, &settings.value[HOOP_SETTING_SLOTS]);
    fill(&mine, self->rank);
    self->status =
        hoop_boot_join(&boot, self->id, self->ranks, self->rank, &settings, &mine, table, hoop_deadline(self->timeout));
    snprintf(self->text, sizeof self->text, "%s", self->status == HOOP_OK ? "" : hoop_error_text());
    self->joined = self->status == HOOP_OK;
    if (self->joined && !table_is_right(table, self->ranks))
        self->status = HOOP_ERR_INTERNAL;
    else if (self->joined)
        act(self, boot);
    hoop_boot_close(boot);
    return NULL;
}

/* Ranks 0 … n - 1 with nothing special about them. */
void plain(struct rank *ranks, int n)
{
    for (int r = 0; r < n; r++)
        ranks[r] = (struct rank){.id = &id, .rank = r, .ranks = n, .timeout = 30};
}

void start(struct rank *ranks, int n)
{
    for (int r = 0; r < n; r++)
        ck_assert_int_eq(pthread_create(&ranks[r].thread, NULL, live, &ranks[r]), 0);
}

void finish(struct rank *ranks, int n)
{
    for (int r = 0; r < n; r++)
        pthread_join(ranks[r].thread, NULL);
}

void run(struct rank *ranks, int n)
{
    start(ranks, n);
    finish(ranks, n);
}

void all_got(const struct rank *ranks, int n, enum hoop_status status, const char *text)
{
    for (int r = 0; r < n; r++) {
        ck_assert_msg(ranks[r].status == status, "rank %d: status %d: %s", ranks[r].rank, ranks[r].status,
                      ranks[r].text);
        ck_assert_msg(text == NULL || strcmp(ranks[r].text, text) == 0, "rank %d: %s", ranks[r].rank, ranks[r].text);
    }
}

/* ---- raw clients ---- */

int raw_connect(struct hoop_seal *seal)
{
    unsigned char challenge[HOOP_CHALLENGE];
    int sock;

    ck_assert_msg(hoop_sock_connect(&parts.address, &sock, hoop_deadline(30)) == HOOP_OK, "%s", hoop_error_text());
    memset(seal, 0, sizeof *seal);
    ck_assert_int_eq(hoop_sock_recv_all(sock, challenge, sizeof challenge, hoop_deadline(30)), HOOP_OK);
    ck_assert_int_eq(hoop_challenge_read(challenge, seal->server_nonce), HOOP_OK);
    hoop_auth_random(seal->client_nonce, sizeof seal->client_nonce);
    hoop_id_key(&parts, "meeting", seal->key);
    return sock;
}

void raw_hello(struct hoop_hello *hello, int rank, int ranks)
{
    struct hoop_settings settings;

    ck_assert_int_eq(hoop_settings_read(&settings), HOOP_OK);
    memset(hello, 0, sizeof *hello);
    memcpy(hello->id_nonce, parts.nonce, sizeof hello->id_nonce);
    hello->rank = (uint32_t)rank;
    hello->ranks = (uint32_t)ranks;
    hello->version = (uint32_t)hoop_version();
    hello->digest = hoop_settings_digest(&settings);
    hello->milliseconds = 30000;
    hoop_settings_agreed_text(&settings, hello->agreed, sizeof hello->agreed);
    fill(&hello->blob, rank);
}

void send_hello(int sock, const struct hoop_hello *hello, const struct hoop_seal *seal)
{
    unsigned char message[HOOP_HELLO_MAX];
    const size_t bytes = hoop_hello_write(message, hello, seal);

    ck_assert_int_eq(hoop_sock_send_all(sock, message, bytes, hoop_deadline(30)), HOOP_OK);
}

/* The next message: its type; its body (of size bytes at most) if it is properly sealed. */
unsigned raw_receive(int sock, struct hoop_seal *seal, unsigned char *body, size_t size, size_t *bytes)
{
    unsigned char head[HOOP_MESSAGE_HEAD], mac[HOOP_AUTH_MAC];
    unsigned type;

    if (hoop_sock_recv_all(sock, head, sizeof head, hoop_deadline(30)) != HOOP_OK)
        return 0;
    hoop_message_head(head, &type, bytes);
    ck_assert_uint_le(*bytes, size);
    ck_assert_int_eq(hoop_sock_recv_all(sock, body, *bytes, hoop_deadline(30)), HOOP_OK);
    ck_assert_int_eq(hoop_sock_recv_all(sock, mac, sizeof mac, hoop_deadline(30)), HOOP_OK);
    if (type != HOOP_REJECT)
        ck_assert_msg(hoop_seal_check(seal, head, body, *bytes, mac), "message %u", type);
    return type;
}

/* Join as a rank that then does as it likes. */
int raw_join(struct hoop_seal *seal, int rank, int ranks)
{
    unsigned char none[1];
    struct hoop_hello hello;
    const int sock = raw_connect(seal);
    size_t bytes;

    raw_hello(&hello, rank, ranks);
    send_hello(sock, &hello, seal);
    ck_assert_uint_eq(raw_receive(sock, seal, none, sizeof none, &bytes), HOOP_WELCOME);
    return sock;
}
