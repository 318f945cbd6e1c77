// SPDX-License-Identifier: BSD-3-Clause
/* The source sysfs: a copy of /sys (and of /proc/cpuinfo beside it, if there is one), read without hwloc.
 *
 * Packages, NUMA nodes and cores come from devices/system, PCI from source_sysfs_pci.c. Sets are read as masks, whose length is
 * capped. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "topo/sysfs.h"

enum { MOST_CPUS = 32768, MOST_NODES = 4096, MOST_PACKAGES = 1024 };

struct machine {
    struct hoop_sysfs sysfs;
    struct hoop_topo *topo;
    struct hoop_topo_cpu cpu; /* of the first processor in cpuinfo */
    char arch[32], vendor[64];
    hwloc_bitmap_t seen; /* CPUs whose core is known */
};

/* The number behind a prefix, "cpu12"; -1: it is no such name. */
static int number_behind(const char *name, const char *prefix, int most)
{
    char *end;

    if (strncmp(name, prefix, strlen(prefix)) != 0 || name[strlen(prefix)] < '0' || name[strlen(prefix)] > '9')
        return -1;
    const long value = strtol(name + strlen(prefix), &end, 10);
    return *end != '\0' || value >= most ? -1 : (int)value;
}

static bool read_mask(struct machine *machine, const char *folder, const char *file, hwloc_bitmap_t set)
{
    hwloc_bitmap_zero(set);
    return hoop_sysfs_read_in(&machine->sysfs, folder, file) > 0 && hoop_topo_parse_mask(machine->sysfs.text, set);
}

static int add(struct machine *machine, const struct hoop_topo_node *node, hwloc_const_bitmap_t cpus,
               hwloc_const_bitmap_t numas)
{
    const int added = hoop_topo_add(machine->topo, node, cpus, numas);
    const struct hoop_topo_link link = {.kind = node->kind == HOOP_TOPO_NUMA ? HOOP_TOPO_LINK_MEMORY
                                                                             : HOOP_TOPO_LINK_SOCKET,
                                        .a = node->parent,
                                        .b = added,
                                        .source = HOOP_TOPO_SYSFS};

    return added < 0 || (node->parent >= 0 && hoop_topo_join(machine->topo, &link) != HOOP_OK) ? -1 : added;
}

static int find(const struct machine *machine, enum hoop_topo_kind kind, int number)
{
    for (int i = 0; i < machine->topo->nodes; i++)
        if (machine->topo->place[i].node.kind == kind && machine->topo->place[i].node.number == number)
            return i;
    return -1;
}

/* Package and core of one CPU. A CPU that is off has no topology. */
static enum hoop_status read_cpu(void *user, const char *name)
{
    struct machine *machine = user;
    const int cpu = number_behind(name, "cpu", MOST_CPUS);
    char folder[64];
    enum hoop_status status = HOOP_OK;

    snprintf(folder, sizeof folder, "devices/system/cpu/cpu%d/topology", cpu);
    hwloc_bitmap_t core = cpu < 0 ? NULL : hwloc_bitmap_alloc();
    if (core == NULL)
        return cpu < 0 ? HOOP_OK : hoop_fail(HOOP_ERR_MEMORY, "no memory for a set of CPUs");
    if (read_mask(machine, folder, "thread_siblings", core)) {
        const int number = hoop_sysfs_read_in(&machine->sysfs, folder, "physical_package_id") > 0
                               ? number_behind(machine->sysfs.text, "", MOST_PACKAGES)
                               : -1;
        const struct hoop_topo_node node = {
            .kind = HOOP_TOPO_PACKAGE, .number = number, .parent = 0, .source = HOOP_TOPO_SYSFS, .cpu = machine->cpu};
        int package = number < 0 ? 0 : find(machine, HOOP_TOPO_PACKAGE, number);

        if (package < 0)
            package = add(machine, &node, NULL, NULL);
        if (package < 0 || hwloc_bitmap_set(machine->topo->place[package].cpus, (unsigned)cpu) != 0 ||
            hwloc_bitmap_set(machine->topo->place[0].cpus, (unsigned)cpu) != 0)
            status = HOOP_ERR_MEMORY;
        else if (!hwloc_bitmap_isset(machine->seen, (unsigned)cpu))
            status = hoop_topo_add_core(machine->topo, core);
        hwloc_bitmap_or(machine->seen, machine->seen, core);
    }
    hwloc_bitmap_free(core);
    return status;
}

static double memory_of(struct machine *machine, const char *folder)
{
    const char *total;

    if (hoop_sysfs_read_in(&machine->sysfs, folder, "meminfo") <= 0 ||
        (total = strstr(machine->sysfs.text, "MemTotal:")) == NULL)
        return 0;
    return (double)strtoul(total + strlen("MemTotal:"), NULL, 10) * 1024;
}

/* The package that holds all CPUs of a node; 0 (the machine): none does, or it has none. */
static int package_of(const struct machine *machine, hwloc_const_bitmap_t cpus)
{
    for (int i = 1; i < machine->topo->nodes && !hwloc_bitmap_iszero(cpus); i++)
        if (machine->topo->place[i].node.kind == HOOP_TOPO_PACKAGE &&
            hwloc_bitmap_isincluded(cpus, machine->topo->place[i].cpus))
            return i;
    return 0;
}

static enum hoop_status read_node(void *user, const char *name)
{
    struct machine *machine = user;
    const int number = number_behind(name, "node", MOST_NODES);
    char folder[64];

    snprintf(folder, sizeof folder, "devices/system/node/node%d", number);
    if (number < 0)
        return HOOP_OK;
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc(), numas = hwloc_bitmap_alloc();
    enum hoop_status status = cpus == NULL || numas == NULL || hwloc_bitmap_only(numas, (unsigned)number) != 0 ||
                                      hwloc_bitmap_set(machine->topo->place[0].numas, (unsigned)number) != 0
                                  ? hoop_fail(HOOP_ERR_MEMORY, "no memory for a set of CPUs")
                                  : HOOP_OK;
    if (status == HOOP_OK) {
        read_mask(machine, folder, "cpumap", cpus);
        const double memory = memory_of(machine, folder);
        const struct hoop_topo_node node = {.kind = HOOP_TOPO_NUMA,
                                            .number = number,
                                            .parent = package_of(machine, cpus),
                                            .source = HOOP_TOPO_SYSFS,
                                            .cpu = machine->cpu,
                                            .memory = {memory, memory > 0 ? HOOP_TOPO_SYSFS : HOOP_TOPO_UNKNOWN}};
        if (add(machine, &node, cpus, numas) < 0)
            status = HOOP_ERR_MEMORY;
        else
            machine->topo->place[0].node.memory.value += memory;
    }
    hwloc_bitmap_free(cpus);
    hwloc_bitmap_free(numas);
    return status;
}

/* The value of a line "key : value" of /proc/cpuinfo, up to the end of the line. */
static void cpuinfo(const char *text, const char *key, char *value, size_t size)
{
    const char *line = strstr(text, key), *colon = line == NULL ? NULL : strchr(line, ':');

    value[0] = '\0';
    if (colon != NULL)
        snprintf(value, size, "%.*s", (int)(strcspn(colon + 2, "\n") % 64), colon[1] == ' ' ? colon + 2 : "");
}

static void read_cpuinfo(struct machine *machine, int above)
{
    struct hoop_sysfs proc = {.root = above, .name = "/proc"};
    char number[64];

    /* The file is long; its first page tells of the first processor. */
    const int file = openat(above, "proc/cpuinfo", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, proc.text, 4096);
    if (file >= 0)
        close(file);
    if (got <= 0)
        return;
    proc.text[got] = '\0';
    cpuinfo(proc.text, "vendor_id", machine->vendor, sizeof machine->vendor);
    if (machine->vendor[0] != '\0')
        snprintf(machine->arch, sizeof machine->arch, "x86_64");
    cpuinfo(proc.text, "cpu family", number, sizeof number);
    machine->cpu.family = (int)strtol(number, NULL, 10);
    cpuinfo(proc.text, "model\t", number, sizeof number);
    machine->cpu.model = (int)strtol(number, NULL, 10);
    machine->cpu.vendor = machine->vendor;
    machine->cpu.arch = machine->arch;
}

static enum hoop_status read_machine(struct machine *machine)
{
    const struct hoop_topo_node node = {
        .kind = HOOP_TOPO_MACHINE, .parent = -1, .source = HOOP_TOPO_SYSFS, .cpu = machine->cpu};
    enum hoop_status status = add(machine, &node, NULL, NULL) < 0 ? HOOP_ERR_MEMORY : HOOP_OK;

    if (status == HOOP_OK)
        status = hoop_sysfs_list(&machine->sysfs, "devices/system/cpu", MOST_CPUS, read_cpu, machine);
    if (status == HOOP_OK)
        status = hoop_sysfs_list(&machine->sysfs, "devices/system/node", MOST_NODES, read_node, machine);
    if (status != HOOP_OK)
        return status;
    if (machine->topo->place[0].node.memory.value > 0)
        machine->topo->place[0].node.memory.source = HOOP_TOPO_SYSFS;
    for (int i = 1; i < machine->topo->nodes; i++)
        if (machine->topo->place[i].node.kind == HOOP_TOPO_NUMA)
            hwloc_bitmap_or(machine->topo->place[machine->topo->place[i].node.parent].numas,
                            machine->topo->place[machine->topo->place[i].node.parent].numas,
                            machine->topo->place[i].numas);
    if (hwloc_bitmap_copy(machine->topo->allowed, machine->topo->place[0].cpus) != 0)
        return hoop_fail(HOOP_ERR_MEMORY, "no memory for a set of CPUs");
    status = hoop_sysfs_read_pci(&machine->sysfs, machine->topo, false);
    if (status == HOOP_OK)
        status = hoop_sysfs_read_kfd(&machine->sysfs, machine->topo);
    snprintf(machine->topo->origin, sizeof machine->topo->origin, "%.150s, a copy of /sys", machine->sysfs.name);
    return status == HOOP_OK ? hoop_topo_seal(machine->topo) : status;
}

enum hoop_status hoop_topo_read_sysfs(struct hoop_topo **topo, const char *path)
{
    struct machine *machine = hoop_calloc(1, sizeof *machine);
    const int above = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum hoop_status status = HOOP_OK;

    if (machine == NULL || above < 0) {
        status = machine == NULL ? HOOP_ERR_MEMORY : hoop_fail_errno(HOOP_ERR_SYSTEM, "%s", path);
        hoop_free(machine);
        if (above >= 0)
            close(above);
        return status;
    }
    machine->sysfs.name = path;
    machine->sysfs.root = openat(above, faccessat(above, "sys/bus/pci", F_OK, 0) == 0 ? "sys" : ".",
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    machine->seen = hwloc_bitmap_alloc();
    if (machine->sysfs.root < 0 || faccessat(machine->sysfs.root, "devices/system/cpu", F_OK, 0) != 0)
        status = hoop_fail(HOOP_ERR_ARG,
                           "%s: not a copy of /sys: it has no sys/devices/system/cpu, nor devices/system/cpu", path);
    else if (machine->seen == NULL)
        status = hoop_fail(HOOP_ERR_MEMORY, "no memory for a set of CPUs");
    else
        status = hoop_topo_create(&machine->topo);
    if (status == HOOP_OK) {
        read_cpuinfo(machine, above);
        status = read_machine(machine);
    }
    if (status == HOOP_OK)
        *topo = machine->topo;
    else
        hoop_topo_free(machine->topo);
    hwloc_bitmap_free(machine->seen);
    if (machine->sysfs.root >= 0)
        close(machine->sysfs.root);
    close(above);
    hoop_free(machine);
    return status;
}

enum hoop_status hoop_topo_add_sysfs(struct hoop_topo *topo)
{
    struct hoop_sysfs *sysfs = hoop_calloc(1, sizeof *sysfs);
    enum hoop_status status = HOOP_OK;

    if (sysfs == NULL)
        return HOOP_ERR_MEMORY;
    sysfs->name = "/sys";
    sysfs->root = open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (sysfs->root >= 0) {
        status = hoop_sysfs_read_pci(sysfs, topo, true);
        if (status == HOOP_OK)
            status = hoop_sysfs_read_kfd(sysfs, topo);
        close(sysfs->root);
    }
    hoop_free(sysfs);
    return status;
}
