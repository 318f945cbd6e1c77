// SPDX-License-Identifier: BSD-3-Clause
/* Which communicators the processes of a job have. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "status.h"

static const char memory_name[] = "/memfd:hoop (deleted)";

/* The parent and the state letter of a process. False: it is gone. */
static bool read_stat(pid_t process, pid_t *parent, char *state)
{
    char path[64], line[512];
    int ppid;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    const bool got = fgets(line, sizeof(line), file) != NULL;
    fclose(file);
    const char *end = got ? strrchr(line, ')') : NULL; /* the name before it may hold anything */
    if (end == NULL || sscanf(end + 1, " %c %d", state, &ppid) != 2)
        return false;
    *parent = ppid;
    return true;
}

static bool descends(pid_t process, pid_t job)
{
    char state;

    while (process > 1 && process != job)
        if (!read_stat(process, &process, &state))
            return false;
    return process == job;
}

static void *grow(void *list, size_t count, size_t size)
{
    void *more = realloc(list, (count + 1) * size);

    if (more == NULL)
        fputs("hoop-status: no memory\n", stderr);
    return more;
}

static struct found *add(struct finds *finds, int descriptor, const struct stat *file)
{
    struct found *more = grow(finds->found, finds->count, sizeof(*more));

    if (more == NULL)
        return NULL;
    finds->found = more;
    finds->found[finds->count] =
        (struct found){.device = file->st_dev, .inode = file->st_ino, .descriptor = descriptor};
    return &finds->found[finds->count++];
}

static bool add_holder(struct found *found, pid_t process)
{
    if (found->holders > 0 && found->holder[found->holders - 1] == process)
        return true;
    pid_t *more = grow(found->holder, found->holders, sizeof(*more));
    if (more == NULL)
        return false;
    found->holder = more;
    found->holder[found->holders++] = process;
    return true;
}

/* A descriptor of a process is the memory of a communicator. */
static bool note(struct finds *finds, const char *path, pid_t process)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct found *found = NULL;
    struct stat file;

    if (descriptor < 0)
        return true; /* closed meanwhile */
    if (fstat(descriptor, &file) < 0) {
        close(descriptor);
        return true;
    }
    for (size_t i = 0; i < finds->count && found == NULL; i++)
        if (finds->found[i].device == file.st_dev && finds->found[i].inode == file.st_ino)
            found = &finds->found[i];
    if (found)
        close(descriptor);
    else
        found = add(finds, descriptor, &file);
    return found && add_holder(found, process);
}

static bool look_into(struct finds *finds, pid_t process)
{
    char path[64], link[512], target[64];
    bool fine = true;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)process);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        finds->unreadable += errno == EACCES;
        return true;
    }
    for (const struct dirent *entry; fine && (entry = readdir(folder)) != NULL;) {
        snprintf(link, sizeof(link), "%s/%s", path, entry->d_name);
        const ssize_t size = readlink(link, target, sizeof(target) - 1);
        if (size <= 0)
            continue;
        target[size] = '\0';
        if (strcmp(target, memory_name) == 0)
            fine = note(finds, link, process);
    }
    closedir(folder);
    return fine;
}

bool find_processes(struct finds *finds, pid_t job)
{
    char state;
    pid_t parent;
    bool fine = true;

    if (job > 0 && !read_stat(job, &parent, &state)) {
        fprintf(stderr, "hoop-status: there is no process %d here\n", (int)job);
        return false;
    }
    DIR *folder = opendir("/proc");
    if (folder == NULL) {
        perror("hoop-status: /proc");
        return false;
    }
    for (const struct dirent *entry; fine && (entry = readdir(folder)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        const pid_t process = (pid_t)strtol(entry->d_name, NULL, 10);
        if (process != getpid() && (job == 0 || descends(process, job)))
            fine = look_into(finds, process);
    }
    closedir(folder);
    return fine;
}

bool find_file(struct finds *finds, const char *path)
{
    struct stat file;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);

    if (descriptor < 0 || fstat(descriptor, &file) < 0) {
        fprintf(stderr,
                "hoop-status: %s: %s; give the PID of hooprun or of a rank, or a file that HOOP_FLIGHT has made\n",
                path, strerror(errno));
        if (descriptor >= 0)
            close(descriptor);
        return false;
    }
    return add(finds, descriptor, &file) != NULL;
}

void find_free(struct finds *finds)
{
    for (size_t i = 0; i < finds->count; i++) {
        close(finds->found[i].descriptor);
        free(finds->found[i].holder);
    }
    free(finds->found);
    *finds = (struct finds){.found = NULL};
}

const char *process_state(const struct found *found, const struct hoop_flight_rank *rank)
{
    char state;
    pid_t parent;

    if (found->holders == 0 || !rank->here || rank->process == 0)
        return "";
    if (!read_stat(rank->process, &parent, &state))
        return "gone";
    return state == 'T' || state == 't' ? "stopped" : state == 'Z' || state == 'X' ? "ended" : "";
}

const char *state_name(enum hoop_flight_state state)
{
    static const char *const names[] = {"absent", "outside", "inside", "waiting", "failed", "left"};

    return names[state];
}
