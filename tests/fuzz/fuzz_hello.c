// SPDX-License-Identifier: BSD-3-Clause
/* What a rendezvous reads from strangers: any bytes as hello, challenge, verdict; and what a rank reads from it: the table. A hello that is taken has all values
 * in range and is written again as the same bytes but for its code. */
#include <stdlib.h>
#include <string.h>

#include "boot/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void hello(const uint8_t *data, size_t bytes)
{
    struct hoop_hello read;
    struct hoop_seal seal = {.server = true};
    unsigned char again[HOOP_HELLO_MAX];
    const size_t whole = hoop_hello_size(data, bytes);

    check(whole == 0 || whole == SIZE_MAX || (whole >= HOOP_HELLO_HEAD && whole <= HOOP_HELLO_MAX));
    if (!hoop_hello_read(data, bytes, &read))
        return;
    check(whole == bytes && read.rank < read.ranks && read.ranks <= HOOP_RANKS_MAX && read.blob.size <= HOOP_BOOT_BLOB);
    check(strlen(read.agreed) < sizeof read.agreed);
    memcpy(seal.client_nonce, read.client_nonce, sizeof seal.client_nonce);
    check(hoop_hello_write(again, &read, &seal) == bytes);
    check(memcmp(again, data, bytes - HOOP_AUTH_MAC) == 0);
    check(hoop_hello_proved(again, bytes, &seal));
}

/* The same body behind a good head, so that the fuzzer need not find the head first. */
static void hello_body(const uint8_t *data, size_t bytes)
{
    unsigned char message[HOOP_HELLO_MAX] = "hoopjoin\1";
    const size_t body = bytes < HOOP_HELLO_BODY ? bytes : HOOP_HELLO_BODY;

    message[10] = (unsigned char)body;
    message[11] = (unsigned char)(body >> 8);
    if (body)
        memcpy(message + HOOP_HELLO_HEAD, data, body);
    hello(message, HOOP_HELLO_HEAD + body + HOOP_AUTH_MAC);
}

/* A table for three ranks is read to its last byte and written again as it was, or refused. */
static void table(const uint8_t *data, size_t bytes)
{
    static struct hoop_boot_blob blobs[3];
    static unsigned char again[sizeof blobs];

    if (!hoop_table_read(data, bytes, blobs, 3))
        return;
    for (int i = 0; i < 3; i++)
        check(blobs[i].size <= HOOP_BOOT_BLOB);
    check(hoop_table_write(again, blobs, 3) == bytes && memcmp(again, data, bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    unsigned char challenge[HOOP_CHALLENGE] = {0}, nonce[HOOP_AUTH_NONCE];
    enum hoop_status status;
    char text[HOOP_ERROR_TEXT];

    check(hoop_auth_start() == HOOP_OK);
    hello(data, bytes);
    table(data, bytes);
    hello_body(data, bytes);
    if (bytes)
        memcpy(challenge, data, bytes < sizeof challenge ? bytes : sizeof challenge);
    hoop_challenge_read(challenge, nonce);
    if (hoop_verdict_read(data, bytes, &status, text))
        check(status <= HOOP_OK && status >= HOOP_ERR_INTERNAL && strlen(text) < sizeof text);
    return 0;
}
