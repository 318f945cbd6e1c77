// SPDX-License-Identifier: BSD-3-Clause
/* What launchers say: the variables by which they tell a rank who it is, answers of a PMI-1 key store, whole conversations of it, and lists of
 * hosts. A line of the text whose first character names a variable sets it to the rest. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "boot/launch.h"
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

/* Those of the launchers, and those beside them; none that names a file. */
static const char *const variables[] = {
#define LAUNCHER(name, rank, size, local_rank, local_size, hosts, marker, store, place, job) \
    rank, size, local_rank, local_size, hosts, marker,
#include "boot/launchers.def"
#undef LAUNCHER
    "HOOP_ID",     "HOOP_MEET",           "HOOP_SECRET",  "HOOP_INSECURE", "MASTER_ADDR",
    "MASTER_PORT", "SLURM_STEP_NODELIST", "SLURM_JOB_ID", "PMI_FD"};

enum { VARIABLES = sizeof variables / sizeof *variables, FIRST = '0' };

/* Only one launcher's variables are there or none; numbers are in range. */
static void environment(char *text)
{
    struct hoop_launch launch = {.ranks = -7};
    char how[HOOP_LAUNCH_HOW];

    for (char *line; (line = strsep(&text, "\n")) != NULL;)
        if (*line >= FIRST && *line < FIRST + VARIABLES && *variables[*line - FIRST] != '\0')
            setenv(variables[*line - FIRST], line + 1, 1);
    if (hoop_launch_find(&launch) == HOOP_OK) {
        check(launch.ranks >= 0 && launch.rank >= 0 && (launch.ranks == 0 || launch.rank < launch.ranks));
        check(launch.local_rank >= -1 && (launch.local_size < 0 || launch.local_rank < launch.local_size));
        hoop_launch_describe(&launch, how);
        check(*how != '\0' && strlen(how) < sizeof how);
    } else {
        check(launch.ranks == -7 && *hoop_error_text() != '\0');
    }
    for (int i = 0; i < VARIABLES; i++)
        if (*variables[i] != '\0')
            unsetenv(variables[i]);
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
    environment(text);
    free(text);
    conversation(data, bytes);
    return 0;
}
