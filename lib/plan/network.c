// SPDX-License-Identifier: BSD-3-Clause
/* Networks in levels, from a line of text: see hoop/plan.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "hoop/plan.h"

/* What the levels are where nothing is said. Round figures of current machines: two NUMA nodes of a socket, two sockets, hosts on
 * 200 Gbit/s. */
static const struct hoop_level standard[] = {
    {"hosts", 1, 25, 2000},
    {"sockets", 1, 30, 500},
    {"numa", 1, 40, 300},
    {"ranks", 1, 10, 200},
};

static double read_real(const char **at, bool *good)
{
    char *end;

    errno = 0;
    const double value = strtod(*at, &end);
    *good = *good && end > *at && errno == 0 && value >= 0 && value <= 1e12;
    *at = end;
    return value;
}

static bool read_level(struct hoop_level *level, const char **text)
{
    const char *at = *text;
    const size_t name = strcspn(at, ": \t");
    bool good = name > 0 && name < HOOP_LEVEL_NAME && at[name] == ':';

    if (!good)
        return false;
    *level = standard[0];
    for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++)
        if (strlen(standard[i].name) == name && memcmp(standard[i].name, at, name) == 0)
            *level = standard[i];
    memset(level->name, 0, sizeof level->name);
    memcpy(level->name, at, name);
    at += name + 1;
    const double count = read_real(&at, &good);
    if (good && *at == '@') {
        at++;
        level->bandwidth = read_real(&at, &good);
        if (good && *at == ',') {
            at++;
            level->latency = read_real(&at, &good);
        }
    }
    good = good && count >= 1 && count <= 1 << 20 && count == (int)count && level->bandwidth > 0 &&
           (*at == ' ' || *at == '\t' || *at == '\0');
    level->count = good ? (int)count : 1;
    *text = at;
    return good;
}

enum hoop_status hoop_network_read(struct hoop_network *network, const char *text)
{
    struct hoop_network read = {.levels = 0};
    const char *at = text;

    for (at += strspn(at, " \t"); *at != '\0'; at += strspn(at, " \t")) {
        const char *word = at;

        if (read.levels == HOOP_LEVELS || !read_level(&read.level[read.levels++], &at))
            return hoop_fail(HOOP_ERR_ARG,
                             "network \"%s\": \"%.*s\" is no level; give up to %d such as hosts:4, or hosts:4@25,2000 "
                             "with the GB/s of an uplink and the ns of latency",
                             text, (int)strcspn(word, " \t"), word, HOOP_LEVELS);
    }
    if (read.levels == 0 || strcmp(read.level[read.levels - 1].name, "ranks") != 0)
        return hoop_fail(HOOP_ERR_ARG, "network \"%s\": the last level is ranks, such as ranks:8", text);
    *network = read;
    return HOOP_OK;
}
