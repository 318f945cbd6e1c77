// SPDX-License-Identifier: BSD-3-Clause
/* Facts of the build and of the machine that decide how hoop runs: cores, memory and its limits, how ranks can share
 * memory. */
#include <errno.h>
#include <hoop.h>
#include <hoop/topo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "info.h"

#ifndef HOOP_BUILD_CFLAGS
#define HOOP_BUILD_CFLAGS ""
#endif
#ifndef HOOP_BUILD_SANITIZE
#define HOOP_BUILD_SANITIZE ""
#endif
#ifndef HOOP_BUILD_TRAINER
#define HOOP_BUILD_TRAINER 0
#endif

struct list {
    struct fact *facts;
    int count;
};

/* A new fact without a value, or the last one where the array is full. */
static struct fact *add(struct list *list, const char *key, const char *name)
{
    struct fact *fact = &list->facts[list->count < MOST_FACTS ? list->count++ : MOST_FACTS - 1];

    *fact = (struct fact){.key = key, .name = name, .unit = ""};
    return fact;
}

static struct fact *add_text(struct list *list, const char *key, const char *name, const char *text)
{
    struct fact *fact = add(list, key, name);

    snprintf(fact->value, sizeof(fact->value), "%s", text);
    return fact;
}

static struct fact *add_number(struct list *list, const char *key, const char *name, unsigned long long value,
                               const char *unit)
{
    struct fact *fact = add(list, key, name);

    snprintf(fact->value, sizeof(fact->value), "%llu", value);
    fact->unit = unit;
    fact->number = true;
    return fact;
}

__attribute__((format(printf, 2, 3))) static void note(struct fact *fact, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(fact->note, sizeof(fact->note), format, arguments);
    va_end(arguments);
}

int build_facts(struct fact facts[MOST_FACTS])
{
    struct list list = {facts, 0};
    const int version = hoop_version();
    struct fact *fact = add(&list, "version", "version");

    snprintf(fact->value, sizeof(fact->value), "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    if (version != HOOP_VERSION_MAJOR * 10000 + HOOP_VERSION_MINOR * 100 + HOOP_VERSION_PATCH)
        note(fact, "hoop-info itself was built for %d.%d.%d: two installations are mixed", HOOP_VERSION_MAJOR,
             HOOP_VERSION_MINOR, HOOP_VERSION_PATCH);
#if defined(__clang__)
    add_text(&list, "compiler", "compiler", "clang " __clang_version__);
#else
    add_text(&list, "compiler", "compiler", "gcc " __VERSION__);
#endif
    fact = add_text(&list, "compiler_flags", "compiler flags", HOOP_BUILD_CFLAGS);
#ifndef __OPTIMIZE__
    note(fact, "built without optimisation: slow");
#endif
    fact = add_text(&list, "sanitizers", "sanitizers", HOOP_BUILD_SANITIZE[0] != '\0' ? HOOP_BUILD_SANITIZE : "none");
    if (HOOP_BUILD_SANITIZE[0] != '\0')
        note(fact, "for tests: slow");
    add_text(&list, "trainer", "trainer", HOOP_BUILD_TRAINER ? "yes" : "no");
    return list.count;
}

/* ---- machine ---- */

static void add_cores(struct list *list)
{
    struct hoop_topo *topo = NULL;
    struct fact *fact;
    char text[sizeof(fact->value)];

    if (hoop_topo_detect(&topo) != HOOP_OK) {
        fact = add(list, "topology", "topology");
        note(fact, "%.200s", hoop_last_error(NULL));
        return;
    }
    add_text(list, "topology", "topology", hoop_topo_origin(topo));
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)hoop_topo_digest(topo));
    add_text(list, "topology_digest", "topology digest", text);
    add_number(list, "cores_allowed", "cores allowed", (unsigned long long)hoop_topo_cores(topo), "");
    fact = add_number(list, "cpus_allowed", "CPUs allowed", (unsigned long long)hoop_topo_cpus(topo), "");
    if (hoop_topo_cpu_list(topo, 0, text, sizeof(text)) == HOOP_OK)
        note(fact, "CPUs %.240s", text);
    add_number(list, "numa_nodes", "NUMA nodes", (unsigned long long)hoop_topo_count(topo, HOOP_TOPO_NUMA), "");
    add_number(list, "gpus", "GPUs", (unsigned long long)hoop_topo_count(topo, HOOP_TOPO_GPU), "");
    add_number(list, "nics", "network interfaces", (unsigned long long)hoop_topo_count(topo, HOOP_TOPO_NIC), "");
    hoop_topo_free(topo);
}

/* A field of /proc/meminfo in bytes; false if it is not there. */
static bool meminfo(const char *field, unsigned long long *bytes)
{
    char line[256];
    const size_t length = strlen(field);
    bool found = false;
    FILE *file = fopen("/proc/meminfo", "re");

    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, field, length) == 0 && line[length] == ':') {
            *bytes = strtoull(line + length + 1, NULL, 10) * 1024;
            found = true;
        }
    fclose(file);
    return found;
}

static void add_memory(struct list *list)
{
    unsigned long long bytes = 0, used = 0;

    if (meminfo("MemTotal", &bytes))
        add_number(list, "memory_bytes", "memory", bytes, "B");
    if (meminfo("MemAvailable", &bytes))
        add_number(list, "memory_available_bytes", "memory available", bytes, "B");
    const int limit = cgroup_memory(&bytes, &used);
    struct fact *fact;
    if (limit == 1) {
        fact = add_number(list, "cgroup_memory_limit_bytes", "cgroup memory limit", bytes, "B");
        note(fact, "%llu MiB of it are in use; shared buffers count", used >> 20);
    } else {
        fact = add_text(list, "cgroup_memory_limit_bytes", "cgroup memory limit", limit == 0 ? "none" : "");
    }
}

static void add_sharing(struct list *list)
{
    struct statvfs about;
    struct fact *fact;
    const int file = memfd_create("hoop-info", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    fact = add_text(list, "memfd", "memfd", file >= 0 ? "yes" : "no");
    if (file < 0)
        note(fact, "%s: ranks of this host cannot share memory", strerror(errno));
    else
        close(file);
    if (statvfs("/dev/shm", &about) == 0) {
        fact = add_number(list, "dev_shm_bytes", "/dev/shm", (unsigned long long)about.f_blocks * about.f_frsize, "B");
        note(fact, "not used by hoop; it need not be large");
    } else {
        fact = add(list, "dev_shm_bytes", "/dev/shm");
        note(fact, "%s; not used by hoop", strerror(errno));
    }
}

/* Yama's switch decides whether a process may read a sibling's memory. */
static void add_yama(struct list *list)
{
    static const char *const meanings[] = {
        "a process may read another's memory of the same user",
        "only a parent may read its children's memory, unless they allow it",
        "only root may read another process's memory",
        "no process may read another's memory",
    };
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    struct fact *fact;
    int scope = -1;

    if (file != NULL && fscanf(file, "%d", &scope) != 1)
        scope = -1;
    if (file != NULL)
        fclose(file);
    if (scope >= 0) {
        fact = add_number(list, "yama_ptrace_scope", "yama ptrace_scope", (unsigned long long)scope, "");
        note(fact, "%s", meanings[scope > 3 ? 3 : scope]);
    } else {
        fact = add_text(list, "yama_ptrace_scope", "yama ptrace_scope", file == NULL ? "absent" : "");
        if (file == NULL)
            note(fact, "%s", meanings[0]);
    }
}

static void add_limit(struct list *list, const char *key, const char *name, __rlimit_resource_t resource,
                      const char *unit)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) != 0)
        add(list, key, name);
    else if (limit.rlim_cur == RLIM_INFINITY)
        add_text(list, key, name, "unlimited");
    else
        add_number(list, key, name, limit.rlim_cur, unit);
}

int machine_facts(struct fact facts[MOST_FACTS])
{
    struct list list = {facts, 0};
    struct utsname system;

    if (uname(&system) == 0) {
        struct fact *fact = add(&list, "kernel", "kernel");
        snprintf(fact->value, sizeof(fact->value), "%s %s %s", system.sysname, system.release, system.machine);
    }
    add_cores(&list);
    add_memory(&list);
    add_sharing(&list);
    add_yama(&list);
    add_limit(&list, "memlock_limit_bytes", "locked memory limit", RLIMIT_MEMLOCK, "B");
    add_limit(&list, "open_files_limit", "open files limit", RLIMIT_NOFILE, "");
    return list.count;
}
