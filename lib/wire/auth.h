// SPDX-License-Identifier: BSD-3-Clause
/* Authentication: random bytes, keyed message codes and derived keys, by libsodium (keyed BLAKE2b).
 *
 * Both ends of a connection hold the same key. Each chooses a nonce, and every message carries a code over the role of
 * its sender, both nonces and its bytes: this proves the key to the other end, and a recorded message is worth nothing
 * on another connection. The bytes themselves are not hidden.
 */
#ifndef HOOP_WIRE_AUTH_H
#define HOOP_WIRE_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "hoop.h"

enum { HOOP_AUTH_KEY = 32, HOOP_AUTH_NONCE = 32, HOOP_AUTH_MAC = 32 }; /* bytes */

struct hoop_auth_part {
    const void *data;
    size_t bytes;
};

/* Make the functions below ready. Cheap when done before.   Threads: any.
 * Errors: HOOP_ERR_SYSTEM (no random numbers). */
enum hoop_status hoop_auth_start(void);

void hoop_auth_random(void *to, size_t bytes);

/* The code of the parts, one after the other. Parts of varying length must be told apart by the caller's format. */
void hoop_auth_mac(unsigned char mac[HOOP_AUTH_MAC], const unsigned char key[HOOP_AUTH_KEY],
                   const struct hoop_auth_part *parts, int n);

/* Compare in a time that does not depend on the content. */
bool hoop_auth_equal(const void *a, const void *b, size_t bytes);

/* A key for one purpose; keys of different purposes (or salts) tell nothing about each other or the main key. */
void hoop_auth_derive(unsigned char derived[HOOP_AUTH_KEY], const unsigned char key[HOOP_AUTH_KEY], const char *purpose,
                      const void *salt, size_t salt_bytes);

/* The first bytes (16 … 64) of an unkeyed digest. */
void hoop_auth_digest(unsigned char *digest, size_t digest_bytes, const void *data, size_t bytes);

/* Overwrite a secret that is no longer needed. */
void hoop_auth_wipe(void *secret, size_t bytes);

#endif
