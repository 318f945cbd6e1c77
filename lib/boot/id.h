// SPDX-License-Identifier: BSD-3-Clause
/* What a unique id holds. Its 128 bytes: magic, version, address, nonce, secret, checksum, zeros. */
#ifndef HOOP_BOOT_ID_H
#define HOOP_BOOT_ID_H

#include <stdbool.h>

#include "hoop.h"
#include "wire/auth.h"
#include "wire/sock.h"

enum { HOOP_ID_NONCE = 16 };

struct hoop_id {
    struct hoop_address address;        /* where the meeting is served */
    unsigned char nonce[HOOP_ID_NONCE]; /* tells the meetings of one server apart; not secret */
    unsigned char secret[HOOP_AUTH_KEY];
    bool early; /* every rank makes it by itself, and may come before the meeting is served; such an id has no text */
};

void hoop_id_encode(const struct hoop_id *id, struct hoop_unique_id *bytes);

/* Errors: HOOP_ERR_ARG (not a valid id). */
enum hoop_status hoop_id_decode(const struct hoop_unique_id *bytes, struct hoop_id *id);

/* As hoop_unique_id_create, to be met at this address of the host. */
enum hoop_status hoop_id_create(struct hoop_unique_id *bytes, const char *host);

/* As hoop_boot_key. */
void hoop_id_key(const struct hoop_id *id, const char *purpose, unsigned char key[HOOP_AUTH_KEY]);

#endif
