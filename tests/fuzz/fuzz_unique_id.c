// SPDX-License-Identifier: BSD-3-Clause
/* Unique ids: any text either is refused or is exactly what its id prints as; any id survives the way through its
 * text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "boot/id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Bytes as they come: refused or printable. */
static void raw(const uint8_t *data, size_t bytes)
{
    struct hoop_unique_id id = {{0}};
    char text[HOOP_UNIQUE_ID_TEXT];

    memcpy(id.bytes, data, bytes < sizeof id.bytes ? bytes : sizeof id.bytes);
    if (hoop_unique_id_print(&id, text, sizeof text) == HOOP_OK)
        check(strlen(text) < sizeof text);
}

/* Fields as they come: always a good id. */
static void cooked(const uint8_t *data, size_t bytes)
{
    struct hoop_id id = {0};
    struct hoop_unique_id made, read;
    char text[HOOP_UNIQUE_ID_TEXT];

    if (bytes < 3 + sizeof id.address.host)
        return;
    id.address.family = data[0] & 1 ? 6 : 4;
    id.address.port = (uint16_t)(data[1] << 8 | data[2] | 1);
    memcpy(id.address.host, data + 3, id.address.family == 6 ? 16 : 4);
    memcpy(id.secret, data, bytes < sizeof id.secret ? bytes : sizeof id.secret);
    hoop_id_encode(&id, &made);
    check(hoop_unique_id_print(&made, text, sizeof text) == HOOP_OK);
    check(hoop_unique_id_parse(&read, text) == HOOP_OK);
    check(memcmp(&read, &made, sizeof read) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hoop_unique_id id;
    char *text = calloc(bytes + 1, 1), again[HOOP_UNIQUE_ID_TEXT];

    check(hoop_auth_start() == HOOP_OK);
    if (bytes)
        memcpy(text, data, bytes);
    if (hoop_unique_id_parse(&id, text) == HOOP_OK) {
        check(hoop_unique_id_print(&id, again, sizeof again) == HOOP_OK);
        check(strcmp(text, again) == 0);
    }
    free(text);
    raw(data, bytes);
    cooked(data, bytes);
    return 0;
}
