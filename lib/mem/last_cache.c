// SPDX-License-Identifier: BSD-3-Clause
/* From /sys/devices/system/cpu/cpu0/cache; the index with the highest level counts. */
#include "mem/last_cache.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { INDEXES = 8 };

/* A number and the letter behind it, if there is one. */
static bool read_number(int index, const char *name, size_t *number, char *unit)
{
    char path[96];

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    *unit = 0;
    const bool found = fscanf(file, "%zu%c", number, unit) >= 1;
    fclose(file);
    return found;
}

size_t hoop_last_cache_bytes(void)
{
    size_t bytes = 0, highest = 0;

    for (int index = 0; index < INDEXES; index++) {
        size_t level, size;
        char unit;
        if (!read_number(index, "level", &level, &unit) || level <= highest ||
            !read_number(index, "size", &size, &unit) || size == 0)
            continue;
        highest = level;
        bytes = size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
    }
    if (bytes == 0) {
        const long told = sysconf(_SC_LEVEL3_CACHE_SIZE);
        bytes = told > 0 ? (size_t)told : (size_t)16 << 20;
    }
    return bytes;
}
