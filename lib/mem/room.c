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

/* The process's path in the version 2 tree, "" if it has none. */
static void own_group(char *path, size_t size)
{
    char line[4096];
    FILE *file = fopen("/proc/self/cgroup", "re");

    path[0] = 0;
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "0::", 3) == 0)
            snprintf(path, size, "%s", line + 3);
    }
    fclose(file);
}

static enum hoop_status check_group(const char *group, size_t bytes, const char *purpose)
{
    char path[PATH + 64];
    uint64_t most, used, idle = 0;

    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
    if (!read_number(path, "", &most))
        return HOOP_OK;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", group);
    if (!read_number(path, "", &used))
        return HOOP_OK;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.stat", group);
    read_number(path, "inactive_file ", &idle); /* cache that the kernel would drop first */
    used -= idle < used ? idle : used;
    if (used <= most && bytes <= most - used)
        return HOOP_OK;
    return hoop_fail(HOOP_ERR_MEMORY,
                     "%s needs %zu bytes, but the control group %s allows %" PRIu64 " and uses %" PRIu64
                     ". Raise its memory limit, or ask for less.",
                     purpose, bytes, group[0] ? group : "/", most, used);
}

enum hoop_status hoop_room_check(size_t bytes, const char *purpose)
{
    char group[PATH];
    uint64_t available;

    if (read_number("/proc/meminfo", "MemAvailable:", &available) && bytes / 1024 > available)
        return hoop_fail(HOOP_ERR_MEMORY,
                         "%s needs %zu bytes, but the machine has only %" PRIu64 " KiB available. Ask for less.",
                         purpose, bytes, available);
    own_group(group, sizeof group);
    for (;;) {
        enum hoop_status status = check_group(group, bytes, purpose);
        if (status != HOOP_OK)
            return status;
        char *slash = strrchr(group, '/');
        if (slash == NULL)
            return HOOP_OK;
        *slash = 0;
    }
}
