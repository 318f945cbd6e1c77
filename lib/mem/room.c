// SPDX-License-Identifier: BSD-3-Clause
/* Memory limits from /proc/meminfo and the control group tree. */
#include "mem/room.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum { PATH = 4200 };

/* The number that follows `key` at the start of a line (key "": the file's first number); false if there is none ("max", no file). */
static bool read_number(const char *path, const char *key, uint64_t *number)
{
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            found = sscanf(line + strlen(key), "%" SCNu64, number) == 1;
    fclose(file);
    return found;
}

/* Where limits are, in version 2 of control groups and in version 1. */
struct tree {
    const char *line; /* of /proc/self/cgroup: what ends before the path */
    const char *root, *most, *used;
    const char *idle; /* in memory.stat: cache that the kernel would drop first */
};

static const struct tree trees[] = {
    {"0::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

/* The process's path in that tree, "" if it has none. */
static void own_group(const struct tree *tree, char *path, size_t size)
{
    char line[4096];
    FILE *file = fopen("/proc/self/cgroup", "re");

    path[0] = 0;
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file)) {
        const char *found = strstr(line, tree->line);
        line[strcspn(line, "\n")] = 0;
        if (found == line || (found && tree->line[0] == ':'))
            snprintf(path, size, "%s", found + strlen(tree->line));
    }
    fclose(file);
}

static enum hoop_status check_group(const struct tree *tree, const char *group, size_t bytes, const char *purpose)
{
    char path[PATH + 64];
    uint64_t most, used, idle = 0;

    snprintf(path, sizeof path, "%s%s/%s", tree->root, group, tree->most);
    if (!read_number(path, "", &most))
        return HOOP_OK;
    snprintf(path, sizeof path, "%s%s/%s", tree->root, group, tree->used);
    if (!read_number(path, "", &used))
        return HOOP_OK;
    snprintf(path, sizeof path, "%s%s/memory.stat", tree->root, group);
    read_number(path, tree->idle, &idle);
    used -= idle < used ? idle : used;
    if (used <= most && bytes <= most - used)
        return HOOP_OK;
    return hoop_fail(HOOP_ERR_MEMORY,
                     "%s needs %zu bytes, but the control group %s allows %" PRIu64 " and uses %" PRIu64
                     ". Raise its memory limit, or ask for less.",
                     purpose, bytes, group[0] ? group : "/", most, used);
}

/* The process's group and all that enclose it. */
static enum hoop_status check_tree(const struct tree *tree, size_t bytes, const char *purpose)
{
    char group[PATH];

    own_group(tree, group, sizeof group);
    for (;;) {
        const enum hoop_status status = check_group(tree, group, bytes, purpose);
        char *slash = strrchr(group, '/');
        if (status != HOOP_OK || slash == NULL)
            return status;
        *slash = 0;
    }
}

enum hoop_status hoop_room_check(size_t bytes, const char *purpose)
{
    uint64_t available;
    enum hoop_status status = HOOP_OK;

    if (read_number("/proc/meminfo", "MemAvailable:", &available) && bytes / 1024 > available)
        return hoop_fail(HOOP_ERR_MEMORY,
                         "%s needs %zu bytes, but the machine has only %" PRIu64 " KiB available. Ask for less.",
                         purpose, bytes, available);
    for (size_t i = 0; i < sizeof trees / sizeof *trees && status == HOOP_OK; i++)
        status = check_tree(&trees[i], bytes, purpose);
    return status;
}
