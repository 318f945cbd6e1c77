// SPDX-License-Identifier: BSD-3-Clause
/* A machine's fingerprint: architecture, model of the processor, number of CPUs and NUMA nodes. Two machines of one fingerprint may
 * share measured figures. The kernel is left out: it changes often, and its part in the figures little. */
#include "plan/machine.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"

/* The value of the first line "key   : value" of /proc/cpuinfo whose key is one of two; words parted by one blank. */
static void read_processor(char *text, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    size_t used = 0;

    text[0] = 0;
    while (file && text[0] == 0 && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (colon == NULL || (strncmp(line, "model name", 10) != 0 && strncmp(line, "CPU part", 8) != 0))
            continue;
        for (const char *at = colon + 1; *at && used + 1 < size; at++)
            if (*at > ' ' && *at < 0x7f)
                text[used++] = *at;
            else if (used > 0 && text[used - 1] != ' ')
                text[used++] = ' ';
        while (used > 0 && text[used - 1] == ' ')
            used--;
        text[used] = 0;
    }
    if (file)
        fclose(file);
    if (text[0] == 0)
        snprintf(text, size, "unknown processor");
}

/* Numbers in a list such as "0-1,4". */
static int count_list(const char *path)
{
    FILE *file = fopen(path, "re");
    int count = 0, first, last, read = 0;
    char mark = ',';

    while (file && mark == ',' && fscanf(file, "%d", &first) == 1) {
        last = first;
        read = fscanf(file, "%c", &mark);
        if (read == 1 && mark == '-') {
            if (fscanf(file, "%d", &last) != 1 || last < first)
                break;
            read = fscanf(file, "%c", &mark);
        }
        count += last - first + 1;
        if (read != 1)
            break;
    }
    if (file)
        fclose(file);
    return count > 0 ? count : 1;
}

void hoop_machine_text(char *text, size_t size)
{
    struct utsname system;
    char processor[128];
    const int nodes = count_list("/sys/devices/system/node/online");
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    if (uname(&system) != 0)
        snprintf(system.machine, sizeof system.machine, "unknown");
    read_processor(processor, sizeof processor);
    snprintf(text, size, "%s, %s, %ld CPU%s, %d NUMA node%s", system.machine, processor, cpus, cpus == 1 ? "" : "s",
             nodes, nodes == 1 ? "" : "s");
}

enum hoop_status hoop_machine_path(const char *kind, char path[HOOP_MACHINE_PATH])
{
    char text[HOOP_MACHINE_TEXT], name[64];
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    hoop_machine_text(text, sizeof text);
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    snprintf(name, sizeof name, "%s-%016" PRIx64, kind, hash);
    return hoop_file_cache_path(name, path, HOOP_MACHINE_PATH);
}
