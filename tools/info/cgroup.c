// SPDX-License-Identifier: BSD-3-Clause
/* Memory limits of control groups: each group above counts too, so the tightest on the way up to the root holds. A
 * group that a container's own view leaves out cannot be read; the groups above it can. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

static const unsigned long long no_limit = 1ull << 62; /* version 1 writes a huge number for none */

/* How one version of cgroups lays its files out. */
struct layout {
    const char *mount, *limit, *usage;
};

static const struct layout version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"};
static const struct layout version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current"};

/* 1: a number; 0: "max"; -1: no such file. */
static int read_number(const char *folder, const char *group, const char *name, unsigned long long *value)
{
    char path[4096 + 64], text[64], *end;
    FILE *file;

    if (snprintf(path, sizeof(path), "%s%s/%s", folder, group, name) >= (int)sizeof(path) ||
        (file = fopen(path, "re")) == NULL)
        return -1;
    const bool got = fgets(text, sizeof(text), file) != NULL;
    fclose(file);
    if (!got)
        return -1;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return end != text && errno == 0 && *value < no_limit ? 1 : 0;
}

/* The tightest limit of the group and those above it. */
static int tightest(const struct layout *layout, char *group, unsigned long long *bytes, unsigned long long *used)
{
    int found = -1;

    for (;;) {
        unsigned long long limit = 0;
        const int got = read_number(layout->mount, group, layout->limit, &limit);

        if (got == 1 && (found != 1 || limit < *bytes)) {
            *bytes = limit;
            if (read_number(layout->mount, group, layout->usage, used) < 0)
                *used = 0;
        }
        found = got > found ? got : found;
        char *slash = strrchr(group, '/');
        if (slash == NULL)
            return found;
        *slash = '\0';
    }
}

int cgroup_memory(unsigned long long *bytes, unsigned long long *used)
{
    char line[4096];
    int found = -1;
    FILE *file = fopen("/proc/self/cgroup", "re");

    if (file == NULL)
        return -1;
    while (fgets(line, sizeof(line), file) != NULL) {
        unsigned long long limit = 0, now = 0;
        char *first = strchr(line, ':'), *second = first == NULL ? NULL : strchr(first + 1, ':');

        if (second == NULL)
            continue;
        *second = '\0';
        second[1 + strcspn(second + 1, "\n")] = '\0';
        const bool two = second == first + 1;
        if (!two && strstr(first + 1, "memory") == NULL)
            continue;
        const int got = tightest(two ? &version_2 : &version_1, second + 1, &limit, &now);
        if (got == 1 && (found != 1 || limit < *bytes)) {
            *bytes = limit;
            *used = now;
        }
        found = got > found ? got : found;
    }
    fclose(file);
    return found;
}
