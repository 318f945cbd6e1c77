// SPDX-License-Identifier: BSD-3-Clause
/* The messages of a meeting, as bytes.
 *
 *     server -> rank   challenge  magic, protocol, server's nonce                  (the only bytes a stranger gets)
 *     rank -> server   hello      magic, protocol, size, id's nonce, rank's nonce, body, code
 *     server -> rank   welcome, table, verdict; or a verdict at any time; or reject (no code: the keys differ)
 *     rank -> server   report
 *
 * After the hello every message is: type, size of the body, body, code. The code (auth.h) covers who sends, both
 * nonces, the message's number and its bytes, so nothing can be replayed, reordered or taken from another connection.
 */
#ifndef HOOP_BOOT_MESSAGE_H
#define HOOP_BOOT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "boot/boot.h"
#include "boot/id.h"
#include "wire/auth.h"

enum {
    HOOP_PROTOCOL = 1,
    HOOP_RANKS_MAX = 1048576,
    HOOP_AGREED_TEXT = 768, /* bytes of the settings' text, with NUL */

    HOOP_CHALLENGE = 8 + 2 + HOOP_AUTH_NONCE,
    HOOP_HELLO_HEAD = 8 + 2 + 2 + HOOP_ID_NONCE + HOOP_AUTH_NONCE,
    HOOP_HELLO_BODY = 4 + 4 + 4 + 8 + 8 + 1 + 2 + HOOP_AGREED_TEXT + 2 + HOOP_BOOT_BLOB, /* most */
    HOOP_HELLO_MAX = HOOP_HELLO_HEAD + HOOP_HELLO_BODY + HOOP_AUTH_MAC,

    HOOP_MESSAGE_HEAD = 1 + 4,
    HOOP_VERDICT_BODY = 4 + 2 + HOOP_ERROR_TEXT, /* most, of a verdict and a report */
    HOOP_VERDICT_MAX = HOOP_MESSAGE_HEAD + HOOP_VERDICT_BODY + HOOP_AUTH_MAC
};

enum hoop_message { HOOP_WELCOME = 1, HOOP_TABLE, HOOP_VERDICT, HOOP_REPORT, HOOP_REJECT };

/* Why a client is turned away that has not proved the key. */
enum hoop_reject { HOOP_REJECT_SECRET = 1, HOOP_REJECT_UNKNOWN };

/* State of one authenticated connection at one end. */
struct hoop_seal {
    unsigned char key[HOOP_AUTH_KEY];
    unsigned char server_nonce[HOOP_AUTH_NONCE], client_nonce[HOOP_AUTH_NONCE];
    bool server; /* this end is the server */
    uint64_t sent, received;
};

struct hoop_hello {
    unsigned char id_nonce[HOOP_ID_NONCE];
    unsigned char client_nonce[HOOP_AUTH_NONCE];
    uint32_t rank, ranks, version;
    uint64_t digest;       /* of the AGREED settings */
    uint64_t milliseconds; /* until the rank's deadline; UINT64_MAX: it has none */
    bool home;             /* the rank is in the server's own process */
    char agreed[HOOP_AGREED_TEXT];
    struct hoop_boot_blob blob;
};

void hoop_challenge_write(unsigned char message[HOOP_CHALLENGE], const unsigned char nonce[HOOP_AUTH_NONCE]);

/* Errors: HOOP_ERR_SETUP (no challenge, or another protocol). */
enum hoop_status hoop_challenge_read(const unsigned char message[HOOP_CHALLENGE], unsigned char nonce[HOOP_AUTH_NONCE]);

/* Write a hello with its code; returns its bytes (at most HOOP_HELLO_MAX). */
size_t hoop_hello_write(unsigned char *message, const struct hoop_hello *hello, const struct hoop_seal *seal);

/* How long is the hello that begins with these bytes? 0: cannot tell yet (fewer than HOOP_HELLO_HEAD bytes that may be
 * one); SIZE_MAX: this is no hello of this protocol. */
size_t hoop_hello_size(const unsigned char *message, size_t bytes);

/* Take a whole hello apart; false: malformed. Believe nothing of it before hoop_hello_proved. */
bool hoop_hello_read(const unsigned char *message, size_t bytes, struct hoop_hello *hello);

/* Does the hello's code fit the seal's key and nonces? */
bool hoop_hello_proved(const unsigned char *message, size_t bytes, const struct hoop_seal *seal);

/* Make head and code of the next message to send; the body travels between them. */
void hoop_seal_message(struct hoop_seal *seal, enum hoop_message type, const void *body, size_t bytes,
                       unsigned char head[HOOP_MESSAGE_HEAD], unsigned char mac[HOOP_AUTH_MAC]);

/* Type and body size of a message that has come. */
void hoop_message_head(const unsigned char head[HOOP_MESSAGE_HEAD], unsigned *type, size_t *bytes);

/* Is this the next message of the other end? */
bool hoop_seal_check(struct hoop_seal *seal, const unsigned char head[HOOP_MESSAGE_HEAD], const void *body,
                     size_t bytes, const unsigned char mac[HOOP_AUTH_MAC]);

/* Body of a verdict or report; returns its bytes. */
size_t hoop_verdict_write(unsigned char body[HOOP_VERDICT_BODY], enum hoop_status status, const char *text);
bool hoop_verdict_read(const void *body, size_t bytes, enum hoop_status *status, char text[HOOP_ERROR_TEXT]);

/* Body of a table: what each rank has said, one after the other. write: returns its bytes, body has room for `ranks` whole blobs. read: false:
 * malformed, or not of so many ranks. */
size_t hoop_table_write(unsigned char *body, const struct hoop_boot_blob *table, int ranks);
bool hoop_table_read(const void *body, size_t bytes, struct hoop_boot_blob *table, int ranks);

#endif
