// SPDX-License-Identifier: BSD-3-Clause
/* libsodium behind the few calls that hoop needs. */
#include "wire/auth.h"

#include <sodium.h>
#include <string.h>

#include "base/status.h"

_Static_assert(HOOP_AUTH_KEY >= crypto_generichash_KEYBYTES_MIN && HOOP_AUTH_KEY <= crypto_generichash_KEYBYTES_MAX,
               "key size");

enum hoop_status hoop_auth_start(void)
{
    if (sodium_init() < 0)
        return hoop_fail(HOOP_ERR_SYSTEM, "libsodium does not start: the system gives no random numbers");
    return HOOP_OK;
}

void hoop_auth_random(void *to, size_t bytes)
{
    randombytes_buf(to, bytes);
}

void hoop_auth_mac(unsigned char mac[HOOP_AUTH_MAC], const unsigned char key[HOOP_AUTH_KEY],
                   const struct hoop_auth_part *parts, int n)
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, key, HOOP_AUTH_KEY, HOOP_AUTH_MAC);
    for (int i = 0; i < n; i++)
        crypto_generichash_update(&state, parts[i].data, parts[i].bytes);
    crypto_generichash_final(&state, mac, HOOP_AUTH_MAC);
    sodium_memzero(&state, sizeof state);
}

bool hoop_auth_equal(const void *a, const void *b, size_t bytes)
{
    return sodium_memcmp(a, b, bytes) == 0;
}

void hoop_auth_derive(unsigned char derived[HOOP_AUTH_KEY], const unsigned char key[HOOP_AUTH_KEY], const char *purpose,
                      const void *salt, size_t salt_bytes)
{
    /* The NUL behind the purpose ends it, so that purpose and salt cannot run into each other. */
    const struct hoop_auth_part parts[] = {
        {"hoop derive", sizeof "hoop derive"}, {purpose, strlen(purpose) + 1}, {salt, salt_bytes}};

    hoop_auth_mac(derived, key, parts, 3);
}

void hoop_auth_digest(unsigned char *digest, size_t digest_bytes, const void *data, size_t bytes)
{
    crypto_generichash(digest, digest_bytes, data, bytes, NULL, 0);
}

void hoop_auth_wipe(void *secret, size_t bytes)
{
    sodium_memzero(secret, bytes);
}
