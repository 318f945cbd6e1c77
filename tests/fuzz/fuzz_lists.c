// SPDX-License-Identifier: BSD-3-Clause
/* Short texts that people write: networks of the simulator, groups of ranks, filters of interfaces, ports, hooprun's list of hosts. Each is read or refused
 * with a reason, and what is read is in range. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/run/run.h"
#include "base/status.h"
#include "hoop/plan.h"
#include "wire/iface.h"

enum { RANKS = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

void output_error(const char *format, ...) /* of hooprun, which tells what went wrong while ranks are started */
{
    (void)format;
}

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void network(const char *text)
{
    struct hoop_network read;

    if (hoop_network_read(&read, text) != HOOP_OK) {
        check(*hoop_error_text() != '\0');
        return;
    }
    check(read.levels >= 1 && read.levels <= HOOP_LEVELS);
    for (int i = 0; i < read.levels; i++)
        check(read.level[i].count >= 1 && read.level[i].bandwidth > 0 && read.level[i].latency >= 0 &&
              memchr(read.level[i].name, 0, HOOP_LEVEL_NAME) != NULL);
}

static void groups(const char *text)
{
    struct hoop_groups *read = NULL;
    char name[HOOP_GROUPS_TEXT];

    if (hoop_groups_cut(&read, RANKS, text) == HOOP_OK) {
        hoop_groups_text(name, read);
        check(strlen(name) > 0 && strlen(name) < sizeof name && strchr(name, ' ') == NULL);
    }
    hoop_groups_free(read);
}

static void interfaces(const char *text)
{
    struct hoop_iface list[2] = {
        {.name = "eth0", .address = {.family = 4, .host = {10, 1, 2, 3}}, .prefix = 24, .running = true},
        {.name = "lo", .address = {.family = 6, .host = {[15] = 1}}, .prefix = 128, .loopback = true, .running = true}};
    int count = 2;

    if (hoop_iface_choose(list, &count, text) == HOOP_OK)
        check(count >= 0 && count <= 2 && (count == 0 || *list[0].name != '\0'));
    else
        check(*hoop_error_text() != '\0');
}

static void ports(const char *text)
{
    uint16_t first = 0, last = 0;
    char again[16];

    if (!hoop_ports_read(text, &first, &last)) {
        check(first == 0 && last == 0);
        return;
    }
    snprintf(again, sizeof again, "%u-%u", first, last);
    check(first >= 1 && last >= first && strspn(text, "0123456789-") == strlen(text));
    check(hoop_ports_read(again, &first, &last));
}

static void hosts(const char *text)
{
    struct options options = {.ranks = 0};
    int first = 0, entries = 1;

    if (hosts_parse(&options, text) == NULL)
        for (int i = 0; i < options.hosts; i++) {
            const struct host *host = &options.host[i];
            check(host->first == first && host->ranks >= 1 && *host->name != '\0' && strpbrk(host->name, ",:") == NULL);
            check(hosts_of(&options, first) == host);
            first += host->ranks;
        }
    check(options.hosts == 0 || (first == options.host_ranks && first <= MOST_RANKS));
    for (const char *at = text; *at != '\0'; at++)
        entries += *at == ',';
    for (int i = 0; i < entries && options.host != NULL; i++)
        free(options.host[i].name);
    free(options.host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);

    check(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    network(text);
    groups(text);
    interfaces(text);
    ports(text);
    hosts(text);
    free(text);
    return 0;
}
