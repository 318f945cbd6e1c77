// SPDX-License-Identifier: BSD-3-Clause
/* What launchers say: answers of a PMI-1 key store, whole conversations of it, and lists of hosts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "boot/place.h"
#include "boot/pmi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void fields(const char *text)
{
    static const char *const names[] = {"cmd", "rc", "kvsname", "value"};
    char small[4], large[HOOP_PMI_LINE];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bool fits = hoop_pmi_field(text, names[i], small, sizeof small),
                   found = hoop_pmi_field(text, names[i], large, sizeof large);
        check(!fits || (found && strcmp(small, large) == 0));
        check(!found || (strchr(large, ' ') == NULL && strstr(text, large) != NULL));
    }
}

/* The bytes are all that the launcher says before it closes. */
static void conversation(const uint8_t *data, size_t bytes)
{
    char text[HOOP_PMI_VALUE] = "hoop1:x";
    int pair[2];

    if (bytes > 32768 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return;
    struct hoop_pmi pmi = {.fd = pair[1]};
    if (send(pair[0], data, bytes, MSG_DONTWAIT) == (ssize_t)bytes) {
        shutdown(pair[0], SHUT_WR);
        const enum hoop_status status = hoop_pmi_share(&pmi, false, "key", text, hoop_deadline(10));
        check(status == HOOP_OK || *hoop_error_text());
        check(memchr(text, 0, sizeof text) != NULL && pmi.used <= sizeof pmi.line);
    }
    close(pair[0]);
    close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1), host[HOOP_PLACE_HOST];
    struct hoop_place place;

    memcpy(text, data, bytes);
    text[bytes] = 0;
    fields(text);
    if (hoop_place_first_host(text, host))
        check(*host && strlen(host) < sizeof host && strpbrk(host, "[], ") == NULL);
    if (hoop_place_parse(&place, "HOOP_MEET", text) == HOOP_OK)
        check(place.port > 0 && *place.host && memchr(place.host, 0, sizeof place.host) != NULL);
    free(text);
    conversation(data, bytes);
    return 0;
}
