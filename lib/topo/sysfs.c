// SPDX-License-Identifier: BSD-3-Clause
/* Reading below a folder that stands for /sys. Copies come from strangers: every folder of a path is opened by itself, and neither
 * followed where it is a symbolic link nor read where it is no plain file. */
#include "topo/sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

/* Open the folder of a path below the root; *last receives where its last part begins. -1: not there. */
static int open_above(const struct hoop_sysfs *sysfs, const char *path, const char **last)
{
    int at = openat(sysfs->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (const char *slash; at >= 0 && (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        char part[256];
        const int above = at;

        if (slash == path)
            continue;
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        at = strcmp(part, "..") == 0 ? -1 : openat(above, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(above);
    }
    *last = path;
    return at;
}

int hoop_sysfs_read(struct hoop_sysfs *sysfs, const char *path)
{
    const char *last;
    struct stat about;
    ssize_t got;
    size_t used = 0;
    const int above = open_above(sysfs, path, &last);
    const int file = above < 0 ? -1 : openat(above, last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    sysfs->text[0] = '\0';
    if (above >= 0)
        close(above);
    if (file < 0)
        return -1;
    const bool plain = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    while (plain && used < sizeof sysfs->text - 1 &&
           (got = read(file, sysfs->text + used, sizeof sysfs->text - 1 - used)) > 0)
        used += (size_t)got;
    close(file);
    const bool whole = plain && used < sizeof sysfs->text - 1;
    if (!whole)
        used = 0;
    if (used > 0 && sysfs->text[used - 1] == '\n')
        used--;
    sysfs->text[used] = '\0';
    return whole ? (int)used : -1;
}

int hoop_sysfs_read_in(struct hoop_sysfs *sysfs, const char *folder, const char *file)
{
    char path[2 * HOOP_SYSFS_PATH];

    return snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path ? hoop_sysfs_read(sysfs, path) : -1;
}

/* Resolve a relative link text against the folder that the link lies in, by the text alone. */
static bool resolve(const char *folder, const char *link, char *to, size_t size)
{
    size_t used = strlen(folder);

    if (link[0] == '/' || used + strlen(link) + 2 > size)
        return false;
    memcpy(to, folder, used + 1);
    for (const char *end; *link != '\0'; link = *end == '/' ? end + 1 : end) {
        end = link + strcspn(link, "/");
        const size_t length = (size_t)(end - link);

        if (length == 0 || (length == 1 && link[0] == '.'))
            continue;
        if (length == 2 && strncmp(link, "..", 2) == 0) {
            if (used == 0)
                return false;
            while (used > 0 && to[--used] != '/') {
            }
        } else {
            if (used > 0)
                to[used++] = '/';
            memcpy(to + used, link, length);
            used += length;
        }
        to[used] = '\0';
    }
    return used > 0;
}

bool hoop_sysfs_link(const struct hoop_sysfs *sysfs, const char *path, char *to, size_t size)
{
    char link[HOOP_SYSFS_PATH], folder[HOOP_SYSFS_PATH];
    const char *last;
    const int above = open_above(sysfs, path, &last);
    const ssize_t length = above < 0 ? -1 : readlinkat(above, last, link, sizeof link - 1);

    if (above >= 0)
        close(above);
    if (length <= 0 || length == sizeof link - 1 || strlen(path) >= sizeof folder)
        return false;
    link[length] = '\0';
    snprintf(folder, sizeof folder, "%.*s", last > path ? (int)(last - path) - 1 : 0, path);
    return resolve(folder, link, to, size);
}

static int compare_texts(const void *a, const void *b)
{
    return hoop_topo_compare_names(*(char *const *)a, *(char *const *)b);
}

static enum hoop_status collect(DIR *folder, int most, char ***names, int *count)
{
    const struct dirent *entry;
    int room = 0;

    while ((entry = readdir(folder)) != NULL && *count < most) {
        if (entry->d_name[0] == '.')
            continue;
        if (*count == room) {
            char **bigger = hoop_realloc(*names, (size_t)(room = room > 0 ? room * 2 : 32), sizeof *bigger);
            if (bigger == NULL)
                return HOOP_ERR_MEMORY;
            *names = bigger;
        }
        (*names)[*count] = hoop_strdup(entry->d_name);
        if ((*names)[*count] == NULL)
            return HOOP_ERR_MEMORY;
        ++*count;
    }
    return HOOP_OK;
}

enum hoop_status hoop_sysfs_list(const struct hoop_sysfs *sysfs, const char *folder, int most,
                                 enum hoop_status (*visit)(void *user, const char *name), void *user)
{
    const char *last;
    const int above = open_above(sysfs, folder, &last);
    const int at = above < 0 ? -1 : openat(above, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *open = at < 0 ? NULL : fdopendir(at);
    char **names = NULL;
    int count = 0;

    if (above >= 0)
        close(above);
    if (open == NULL) {
        if (at >= 0)
            close(at);
        return HOOP_OK;
    }
    enum hoop_status status = collect(open, most, &names, &count);
    closedir(open);
    if (count > 0)
        qsort(names, (size_t)count, sizeof *names, compare_texts);
    for (int i = 0; i < count; i++) {
        if (status == HOOP_OK)
            status = visit(user, names[i]);
        hoop_free(names[i]);
    }
    hoop_free(names);
    return status;
}
