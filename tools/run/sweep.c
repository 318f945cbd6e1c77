// SPDX-License-Identifier: BSD-3-Clause
/* End all descendants. Children of a subreaper's children become its own when their parents die, so killing the
 * children again and again until none is left reaches every descendant, whatever group or session it moved to. A
 * child's number cannot be taken by a stranger before we have reaped it, so the right processes are hit. */
#include "run.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The parent of a process by /proc, or -1. The name in parentheses may hold anything, so it is skipped from the end. */
static pid_t parent_of(const char *number)
{
    char path[288], text[512];
    const char *after;
    size_t got;
    int parent;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%s/stat", number);
    if ((file = fopen(path, "re")) == NULL)
        return -1;
    got = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[got] = '\0';
    if ((after = strrchr(text, ')')) == NULL || sscanf(after + 1, " %*c %d", &parent) != 1)
        return -1;
    return parent;
}

/* Send SIGKILL to every child; returns how many there are. */
static int kill_children(void)
{
    const pid_t self = getpid();
    DIR *processes = opendir("/proc");
    int count = 0;

    if (processes == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        if (isdigit((unsigned char)entry->d_name[0]) && parent_of(entry->d_name) == self) {
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
            count++;
        }
    }
    closedir(processes);
    return count;
}

int sweep_children(double seconds)
{
    const struct timespec moment = {0, 1000 * 1000};

    for (const double end = now_seconds() + seconds;;) {
        pid_t pid;
        int left;

        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (pid < 0 && errno == ECHILD)
            return 0;
        left = kill_children();
        if (now_seconds() > end)
            return left;
        nanosleep(&moment, NULL); /* they need a moment to die; SIGCHLD is blocked and waited for elsewhere */
    }
}
