// SPDX-License-Identifier: BSD-3-Clause
/* Writing, reading and sealing the messages of a meeting. */
#include "boot/message.h"

#include <string.h>

#include "wire/cursor.h"

enum { MAGIC = 8 };

static const char challenge_magic[] = "hoopmeet", hello_magic[] = "hoopjoin";
static const char role_server[] = "server", role_client[] = "client";

void hoop_challenge_write(unsigned char message[HOOP_CHALLENGE], const unsigned char nonce[HOOP_AUTH_NONCE])
{
    struct hoop_writer writer = hoop_writer(message, HOOP_CHALLENGE);

    hoop_put_bytes(&writer, challenge_magic, MAGIC);
    hoop_put_u16(&writer, HOOP_PROTOCOL);
    hoop_put_bytes(&writer, nonce, HOOP_AUTH_NONCE);
}

enum hoop_status hoop_challenge_read(const unsigned char message[HOOP_CHALLENGE], unsigned char nonce[HOOP_AUTH_NONCE])
{
    struct hoop_reader reader = hoop_reader(message, HOOP_CHALLENGE);
    const unsigned char *magic = hoop_get_view(&reader, MAGIC);
    const unsigned protocol = hoop_get_u16(&reader);

    hoop_get_bytes(&reader, nonce, HOOP_AUTH_NONCE);
    if (magic == NULL || memcmp(magic, challenge_magic, MAGIC) != 0)
        return hoop_fail(HOOP_ERR_SETUP, "something else than hoop listens there");
    if (protocol != HOOP_PROTOCOL)
        return hoop_fail(HOOP_ERR_SETUP, "it speaks protocol %u, this library (version %d) protocol %d", protocol,
                         hoop_version(), HOOP_PROTOCOL);
    return HOOP_OK;
}

/* ---- hello ---- */

static void hello_code(unsigned char mac[HOOP_AUTH_MAC], const unsigned char *message, size_t bytes,
                       const struct hoop_seal *seal)
{
    const struct hoop_auth_part parts[] = {{role_client, sizeof role_client},
                                           {seal->server_nonce, HOOP_AUTH_NONCE},
                                           {seal->client_nonce, HOOP_AUTH_NONCE},
                                           {message, bytes}};

    hoop_auth_mac(mac, seal->key, parts, 4);
}

static void put_body(struct hoop_writer *writer, const struct hoop_hello *hello)
{
    hoop_put_u32(writer, hello->rank);
    hoop_put_u32(writer, hello->ranks);
    hoop_put_u32(writer, hello->version);
    hoop_put_u64(writer, hello->digest);
    hoop_put_u64(writer, hello->milliseconds);
    hoop_put_u8(writer, hello->home);
    hoop_put_text(writer, hello->agreed);
    hoop_put_u16(writer, hello->blob.size);
    hoop_put_bytes(writer, hello->blob.data, hello->blob.size);
}

size_t hoop_hello_write(unsigned char *message, const struct hoop_hello *hello, const struct hoop_seal *seal)
{
    unsigned char body[HOOP_HELLO_BODY];
    struct hoop_writer inner = hoop_writer(body, sizeof body);
    struct hoop_writer writer = hoop_writer(message, HOOP_HELLO_MAX);
    unsigned char mac[HOOP_AUTH_MAC];

    put_body(&inner, hello);
    hoop_put_bytes(&writer, hello_magic, MAGIC);
    hoop_put_u16(&writer, HOOP_PROTOCOL);
    hoop_put_u16(&writer, (uint16_t)hoop_writer_used(&inner));
    hoop_put_bytes(&writer, hello->id_nonce, HOOP_ID_NONCE);
    hoop_put_bytes(&writer, seal->client_nonce, HOOP_AUTH_NONCE);
    hoop_put_bytes(&writer, body, hoop_writer_used(&inner));
    hello_code(mac, message, hoop_writer_used(&writer), seal);
    hoop_put_bytes(&writer, mac, sizeof mac);
    return hoop_writer_used(&writer);
}

size_t hoop_hello_size(const unsigned char *message, size_t bytes)
{
    struct hoop_reader reader = hoop_reader(message, bytes);

    if (bytes && memcmp(message, hello_magic, bytes < MAGIC ? bytes : MAGIC) != 0)
        return SIZE_MAX;
    if (bytes < HOOP_HELLO_HEAD)
        return 0;
    hoop_get_view(&reader, MAGIC);
    hoop_get_u16_range(&reader, HOOP_PROTOCOL, HOOP_PROTOCOL);
    const size_t body = hoop_get_u16_range(&reader, 0, HOOP_HELLO_BODY);
    return reader.failed ? SIZE_MAX : HOOP_HELLO_HEAD + body + HOOP_AUTH_MAC;
}

bool hoop_hello_read(const unsigned char *message, size_t bytes, struct hoop_hello *hello)
{
    if (bytes < HOOP_HELLO_HEAD + HOOP_AUTH_MAC || hoop_hello_size(message, bytes) != bytes)
        return false;

    struct hoop_reader reader = hoop_reader(message, bytes - HOOP_AUTH_MAC);
    hoop_get_view(&reader, MAGIC + 2 + 2);
    hoop_get_bytes(&reader, hello->id_nonce, sizeof hello->id_nonce);
    hoop_get_bytes(&reader, hello->client_nonce, sizeof hello->client_nonce);
    hello->rank = hoop_get_u32_range(&reader, 0, HOOP_RANKS_MAX - 1);
    hello->ranks = hoop_get_u32_range(&reader, 1, HOOP_RANKS_MAX);
    hello->version = hoop_get_u32(&reader);
    hello->digest = hoop_get_u64(&reader);
    hello->milliseconds = hoop_get_u64(&reader);
    hello->home = hoop_get_u8_range(&reader, 0, 1) != 0;
    hoop_get_text(&reader, hello->agreed, sizeof hello->agreed);
    hello->blob.size = hoop_get_u16_range(&reader, 0, HOOP_BOOT_BLOB);
    hoop_get_bytes(&reader, hello->blob.data, hello->blob.size);
    return hoop_reader_done(&reader) && hello->rank < hello->ranks;
}

bool hoop_hello_proved(const unsigned char *message, size_t bytes, const struct hoop_seal *seal)
{
    unsigned char mac[HOOP_AUTH_MAC];

    hello_code(mac, message, bytes - HOOP_AUTH_MAC, seal);
    return hoop_auth_equal(mac, message + bytes - HOOP_AUTH_MAC, sizeof mac);
}

/* ---- messages after the hello ---- */

static void message_code(unsigned char mac[HOOP_AUTH_MAC], const struct hoop_seal *seal, bool from_server,
                         uint64_t number, const unsigned char head[HOOP_MESSAGE_HEAD], const void *body, size_t bytes)
{
    unsigned char count[8];
    struct hoop_writer writer = hoop_writer(count, sizeof count);
    const struct hoop_auth_part parts[] = {{from_server ? role_server : role_client, sizeof role_server},
                                           {seal->server_nonce, HOOP_AUTH_NONCE},
                                           {seal->client_nonce, HOOP_AUTH_NONCE},
                                           {count, sizeof count},
                                           {head, HOOP_MESSAGE_HEAD},
                                           {body, bytes}};

    hoop_put_u64(&writer, number + 1); /* the hello was number 0 of its direction */
    hoop_auth_mac(mac, seal->key, parts, 6);
}

void hoop_seal_message(struct hoop_seal *seal, enum hoop_message type, const void *body, size_t bytes,
                       unsigned char head[HOOP_MESSAGE_HEAD], unsigned char mac[HOOP_AUTH_MAC])
{
    struct hoop_writer writer = hoop_writer(head, HOOP_MESSAGE_HEAD);

    hoop_put_u8(&writer, (uint8_t)type);
    hoop_put_u32(&writer, (uint32_t)bytes);
    message_code(mac, seal, seal->server, seal->sent++, head, body, bytes);
}

void hoop_message_head(const unsigned char head[HOOP_MESSAGE_HEAD], unsigned *type, size_t *bytes)
{
    struct hoop_reader reader = hoop_reader(head, HOOP_MESSAGE_HEAD);

    *type = hoop_get_u8(&reader);
    *bytes = hoop_get_u32(&reader);
}

bool hoop_seal_check(struct hoop_seal *seal, const unsigned char head[HOOP_MESSAGE_HEAD], const void *body,
                     size_t bytes, const unsigned char mac[HOOP_AUTH_MAC])
{
    unsigned char expected[HOOP_AUTH_MAC];

    message_code(expected, seal, !seal->server, seal->received++, head, body, bytes);
    return hoop_auth_equal(expected, mac, sizeof expected);
}

size_t hoop_verdict_write(unsigned char body[HOOP_VERDICT_BODY], enum hoop_status status, const char *text)
{
    struct hoop_writer writer = hoop_writer(body, HOOP_VERDICT_BODY);
    char cut[HOOP_ERROR_TEXT] = "";

    strncat(cut, text, sizeof cut - 1);
    hoop_put_u32(&writer, (uint32_t) - (int)status);
    hoop_put_text(&writer, cut);
    return hoop_writer_used(&writer);
}

bool hoop_verdict_read(const void *body, size_t bytes, enum hoop_status *status, char text[HOOP_ERROR_TEXT])
{
    struct hoop_reader reader = hoop_reader(body, bytes);
    const int code = (int)hoop_get_u32_range(&reader, 0, (uint32_t) - (int)HOOP_ERR_INTERNAL);

    hoop_get_text(&reader, text, HOOP_ERROR_TEXT);
    *status = (enum hoop_status) - code;
    return hoop_reader_done(&reader);
}

size_t hoop_table_write(unsigned char *body, const struct hoop_boot_blob *table, int ranks)
{
    struct hoop_writer writer = hoop_writer(body, (size_t)ranks * sizeof *table);

    for (int r = 0; r < ranks; r++) {
        hoop_put_u16(&writer, table[r].size);
        hoop_put_bytes(&writer, table[r].data, table[r].size);
    }
    return hoop_writer_used(&writer);
}

bool hoop_table_read(const void *body, size_t bytes, struct hoop_boot_blob *table, int ranks)
{
    struct hoop_reader reader = hoop_reader(body, bytes);

    for (int r = 0; r < ranks; r++) {
        table[r].size = hoop_get_u16_range(&reader, 0, HOOP_BOOT_BLOB);
        hoop_get_bytes(&reader, table[r].data, table[r].size);
    }
    return hoop_reader_done(&reader);
}
