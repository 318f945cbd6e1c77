// SPDX-License-Identifier: BSD-3-Clause
/* Unique ids: bytes, text form, making one.
 *
 * Text: hoop1:ADDRESS:PORT:NONCE:SECRET:CHECKSUM, hexadecimal in lower case; there is exactly one text for an id, so
 * that a damaged one never reads as another. */
#include "boot/id.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "base/status.h"
#include "boot/boot.h"
#include "boot/rendezvous.h"
#include "wire/cursor.h"

enum {
    ID_VERSION = 1,
    EARLY = 128,  /* a bit beside the address family */
    CHECKED = 72, /* bytes that the checksum covers */
    CHECKSUM = 8,
    TAIL =
        1 + 2 * HOOP_ID_NONCE + 1 + 2 * HOOP_AUTH_KEY + 1 + 2 * CHECKSUM, /* characters of ":NONCE:SECRET:CHECKSUM" */
    HOST_TEXT = 48
};

static const char prefix[] = "hoop1:";

static void checksum(const unsigned char *bytes, unsigned char sum[CHECKSUM])
{
    unsigned char digest[16];

    hoop_auth_digest(digest, sizeof digest, bytes, CHECKED);
    memcpy(sum, digest, CHECKSUM);
}

void hoop_id_encode(const struct hoop_id *id, struct hoop_unique_id *bytes)
{
    struct hoop_writer writer = hoop_writer(bytes->bytes, sizeof bytes->bytes);
    unsigned char sum[CHECKSUM];

    memset(bytes, 0, sizeof *bytes);
    hoop_put_bytes(&writer, "HOOP", 4);
    hoop_put_u8(&writer, ID_VERSION);
    hoop_put_u8(&writer, (uint8_t)(id->address.family | (id->early ? EARLY : 0)));
    hoop_put_u16(&writer, id->address.port);
    hoop_put_bytes(&writer, id->address.host, sizeof id->address.host);
    hoop_put_bytes(&writer, id->nonce, sizeof id->nonce);
    hoop_put_bytes(&writer, id->secret, sizeof id->secret);
    checksum(bytes->bytes, sum);
    hoop_put_bytes(&writer, sum, sizeof sum);
}

enum hoop_status hoop_id_decode(const struct hoop_unique_id *bytes, struct hoop_id *id)
{
    struct hoop_reader reader = hoop_reader(bytes->bytes, sizeof bytes->bytes);
    unsigned char magic[4], version, sum[CHECKSUM], computed[CHECKSUM];
    struct hoop_id read = {0};

    const enum hoop_status status = hoop_auth_start();
    if (status != HOOP_OK)
        return status;
    hoop_get_bytes(&reader, magic, sizeof magic);
    version = hoop_get_u8(&reader);
    read.address.family = hoop_get_u8(&reader);
    read.early = (read.address.family & EARLY) != 0;
    read.address.family &= (uint8_t)~EARLY;
    read.address.port = hoop_get_u16_range(&reader, 1, UINT16_MAX);
    hoop_get_bytes(&reader, read.address.host, sizeof read.address.host);
    hoop_get_bytes(&reader, read.nonce, sizeof read.nonce);
    hoop_get_bytes(&reader, read.secret, sizeof read.secret);
    hoop_get_bytes(&reader, sum, sizeof sum);
    checksum(bytes->bytes, computed);
    if (reader.failed || memcmp(magic, "HOOP", 4) != 0 || !hoop_auth_equal(sum, computed, sizeof sum))
        return hoop_fail(HOOP_ERR_ARG,
                         "this is no unique id, or a damaged one: take it from hoop_unique_id_create or _parse");
    if (version != ID_VERSION || (read.address.family != 4 && read.address.family != 6))
        return hoop_fail(HOOP_ERR_ARG, "the unique id has version %d; this library knows version %d", version,
                         ID_VERSION);
    *id = read;
    return HOOP_OK;
}

void hoop_id_key(const struct hoop_id *id, const char *purpose, unsigned char key[HOOP_AUTH_KEY])
{
    hoop_auth_derive(key, id->secret, purpose, id->nonce, sizeof id->nonce);
}

void hoop_boot_key(const struct hoop_unique_id *bytes, const char *purpose, unsigned char key[32])
{
    struct hoop_id id = {0};

    hoop_id_decode(bytes, &id); /* callers have joined with it: it is valid */
    hoop_id_key(&id, purpose, key);
    hoop_auth_wipe(&id, sizeof id);
}

/* ---- text ---- */

static char *print_hex(char *to, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    *to = 0;
    return to;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const char *text, unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int high = hex_digit(text[2 * i]), low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);
        if (low < 0)
            return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* "10.0.0.1:40121" or "[fd00::1]:40121", length characters. */
static bool read_address(const char *text, size_t length, struct hoop_address *address)
{
    const char *colon = memrchr(text, ':', length);
    char host[HOST_TEXT];
    unsigned port = 0;

    if (colon == NULL || colon == text || (size_t)(text + length - colon) > 6)
        return false;
    for (const char *at = colon + 1; at < text + length; at++) {
        if (*at < '0' || *at > '9')
            return false;
        port = port * 10 + (unsigned)(*at - '0');
    }
    const bool bracket = text[0] == '[';
    if (bracket && colon[-1] != ']')
        return false;
    const char *from = text + bracket, *to = colon - bracket;
    if (to <= from || (size_t)(to - from) >= sizeof host || port < 1 || port > UINT16_MAX)
        return false;
    memcpy(host, from, (size_t)(to - from));
    host[to - from] = 0;
    if (hoop_address_parse(address, host) != HOOP_OK || (address->family == 6) != bracket)
        return false;
    address->port = (uint16_t)port;
    return true;
}

static void print(const struct hoop_id *id, const unsigned char sum[CHECKSUM], char text[HOOP_UNIQUE_ID_TEXT])
{
    char address[HOOP_ADDRESS_TEXT];

    hoop_address_print(&id->address, address);
    char *at = text + snprintf(text, HOOP_UNIQUE_ID_TEXT, "%s%s:", prefix, address);
    at = print_hex(at, id->nonce, sizeof id->nonce);
    *at++ = ':';
    at = print_hex(at, id->secret, sizeof id->secret);
    *at++ = ':';
    print_hex(at, sum, CHECKSUM);
}

enum hoop_status hoop_unique_id_print(const struct hoop_unique_id *bytes, char *text, size_t size)
{
    struct hoop_id id;
    char printed[HOOP_UNIQUE_ID_TEXT];

    if (bytes == NULL || text == NULL || size < HOOP_UNIQUE_ID_TEXT)
        return hoop_fail(HOOP_ERR_ARG, "hoop_unique_id_print needs an id and %d bytes of text, got %zu",
                         HOOP_UNIQUE_ID_TEXT, text ? size : 0);
    const enum hoop_status status = hoop_id_decode(bytes, &id);
    if (status != HOOP_OK)
        return status;
    if (id.early)
        return hoop_fail(HOOP_ERR_ARG,
                         "this unique id has no text: the ranks of an agreed place make it by themselves");
    print(&id, bytes->bytes + CHECKED, printed);
    memcpy(text, printed, strlen(printed) + 1);
    hoop_auth_wipe(&id, sizeof id);
    hoop_auth_wipe(printed, sizeof printed);
    return HOOP_OK;
}

/* Take the text apart; returns the name of the part that is wrong, or NULL. */
static const char *read_parts(const char *text, struct hoop_id *id, unsigned char sum[CHECKSUM])
{
    const size_t length = strnlen(text, HOOP_UNIQUE_ID_TEXT), head = sizeof prefix - 1;

    if (strncmp(text, prefix, head) != 0)
        return "beginning (hoop1: is expected)";
    if (length >= HOOP_UNIQUE_ID_TEXT || length < head + TAIL)
        return "length (is it cut off?)";
    const char *nonce = text + length - TAIL, *secret = nonce + 1 + 2 * HOOP_ID_NONCE;
    const char *sum_text = secret + 1 + 2 * HOOP_AUTH_KEY;
    if (!read_address(text + head, (size_t)(nonce - text) - head, &id->address))
        return "address and port";
    if (*nonce != ':' || !read_hex(nonce + 1, id->nonce, sizeof id->nonce))
        return "nonce";
    if (*secret != ':' || !read_hex(secret + 1, id->secret, sizeof id->secret))
        return "secret";
    if (*sum_text != ':' || !read_hex(sum_text + 1, sum, CHECKSUM))
        return "checksum";
    return NULL;
}

enum hoop_status hoop_unique_id_parse(struct hoop_unique_id *bytes, const char *text)
{
    struct hoop_id id = {0};
    struct hoop_unique_id encoded;
    unsigned char sum[CHECKSUM];
    char canonical[HOOP_UNIQUE_ID_TEXT];

    if (bytes == NULL || text == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_unique_id_parse needs an id and a text");
    enum hoop_status status = hoop_auth_start();
    if (status != HOOP_OK)
        return status;
    const char *wrong = read_parts(text, &id, sum);
    if (wrong == NULL) {
        hoop_id_encode(&id, &encoded);
        print(&id, sum, canonical);
        if (!hoop_auth_equal(sum, encoded.bytes + CHECKED, CHECKSUM) || strcmp(text, canonical) != 0)
            wrong = "checksum";
        else
            *bytes = encoded;
    }
    hoop_auth_wipe(&id, sizeof id);
    return wrong ? hoop_fail(HOOP_ERR_ARG, "unique id: wrong %s", wrong) : HOOP_OK;
}

/* ---- making ---- */

enum hoop_status hoop_id_create(struct hoop_unique_id *bytes, const char *host)
{
    struct hoop_id id = {0};

    enum hoop_status status = hoop_auth_start();
    if (status != HOOP_OK)
        return status;
    if (hoop_address_parse(&id.address, host) != HOOP_OK)
        return hoop_fail(HOOP_ERR_SETUP, "HOOP_ADDRESS=%.64s is no IPv4 or IPv6 address (names are not looked up)",
                         host);
    if (hoop_address_is_any(&id.address))
        return hoop_fail(HOOP_ERR_SETUP,
                         "HOOP_ADDRESS=%.64s is no place that the other ranks can connect to: give the "
                         "address of one interface of this host",
                         host);
    hoop_auth_random(id.nonce, sizeof id.nonce);
    hoop_auth_random(id.secret, sizeof id.secret);
    status = hoop_rendezvous_serve(&id);
    if (status == HOOP_OK)
        hoop_id_encode(&id, bytes);
    hoop_auth_wipe(&id, sizeof id);
    return status;
}

enum hoop_status hoop_unique_id_create(struct hoop_unique_id *bytes)
{
    struct hoop_settings settings;

    if (bytes == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_unique_id_create needs a place for the id");
    const enum hoop_status status = hoop_settings_read(&settings);
    return status == HOOP_OK ? hoop_id_create(bytes, settings.value[HOOP_SETTING_ADDRESS].word) : status;
}
