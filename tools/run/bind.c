// SPDX-License-Identifier: BSD-3-Clause
/* Cores for ranks: the allowed processors, ordered by package and core, so that hardware threads of one core stay
 * together; then consecutive cores for consecutive ranks. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CPUS = 8 * CPU_SETSIZE };

struct cpu {
    int package, core, number;
};

/* A fact of the processor from sysfs, or otherwise what the caller thinks. */
static int cpu_fact(int number, const char *fact, int otherwise)
{
    char path[96];
    int value = otherwise;
    FILE *file;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", number, fact);
    if ((file = fopen(path, "re")) == NULL)
        return otherwise;
    if (fscanf(file, "%d", &value) != 1 || value < 0)
        value = otherwise;
    fclose(file);
    return value;
}

static int by_place(const void *left, const void *right)
{
    const struct cpu *a = left, *b = right;

    if (a->package != b->package)
        return a->package < b->package ? -1 : 1;
    if (a->core != b->core)
        return a->core < b->core ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* The processors that this process may use, in order; *count of them. malloc'd; NULL: errno. */
static struct cpu *allowed_cpus(int *count)
{
    cpu_set_t allowed[8];
    struct cpu *cpus;

    memset(allowed, 0, sizeof(allowed));
    if (sched_getaffinity(0, sizeof(allowed), allowed) != 0)
        return NULL;
    if ((cpus = malloc((size_t)CPU_COUNT_S(sizeof(allowed), allowed) * sizeof(*cpus))) == NULL)
        return NULL;
    *count = 0;
    for (int number = 0; number < MOST_CPUS; number++)
        if (CPU_ISSET_S((size_t)number, sizeof(allowed), allowed))
            cpus[(*count)++] =
                (struct cpu){cpu_fact(number, "physical_package_id", 0), cpu_fact(number, "core_id", number), number};
    qsort(cpus, (size_t)*count, sizeof(*cpus), by_place);
    return cpus;
}

static bool same_core(const struct cpu *a, const struct cpu *b)
{
    return a->package == b->package && a->core == b->core;
}

/* Rank r of n has cores r·c/n to (r+1)·c/n; with more ranks than cores, core r mod c. */
static bool core_is_for(int core, int cores, int rank, int ranks)
{
    if (ranks > cores)
        return core == rank % cores;
    return core >= (int)((long)rank * cores / ranks) && core < (int)((long)(rank + 1) * cores / ranks);
}

cpu_set_t (*bind_cores(int ranks))[8]
{
    int count = 0, cores = 0, core = -1;
    struct cpu *cpus = allowed_cpus(&count);
    cpu_set_t(*sets)[8] = calloc((size_t)ranks, sizeof(*sets));

    if (cpus == NULL || sets == NULL) {
        output_error("--bind core: cannot tell which processors are allowed: %s", strerror(errno));
        free(cpus);
        free(sets);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        cores += i == 0 || !same_core(&cpus[i - 1], &cpus[i]);
    for (int i = 0; i < count; i++) {
        core += i == 0 || !same_core(&cpus[i - 1], &cpus[i]);
        for (int rank = 0; rank < ranks; rank++)
            if (core_is_for(core, cores, rank, ranks))
                CPU_SET_S((size_t)cpus[i].number, sizeof(*sets), sets[rank]);
    }
    free(cpus);
    return sets;
}
