// SPDX-License-Identifier: BSD-3-Clause
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/settings.h"

enum hoop_status hoop_file_read(const char *what, const char *path, size_t most, char **text, size_t *size,
                                bool *missing)
{
    FILE *file = fopen(path, "re");

    *text = NULL;
    *size = 0;
    if (missing)
        *missing = file == NULL && errno == ENOENT;
    if (file == NULL)
        return missing && *missing ? HOOP_OK
                                   : hoop_fail_errno(HOOP_ERR_SETUP, "the %s %s cannot be opened", what, path);
    char *memory = hoop_calloc(1, most + 2);
    enum hoop_status status = memory ? HOOP_OK : HOOP_ERR_MEMORY;
    if (memory) {
        *size = fread(memory, 1, most + 1, file);
        if (ferror(file))
            status = hoop_fail_errno(HOOP_ERR_SETUP, "the %s %s cannot be read", what, path);
        else if (*size > most)
            status =
                hoop_fail(HOOP_ERR_SETUP, "the %s %s has more than the %zu bytes that are allowed", what, path, most);
    }
    fclose(file);
    if (status == HOOP_OK)
        *text = memory;
    else
        hoop_free(memory);
    return status;
}

/* Make the folder of a path, and before it, `depth` of its parents. Those that are there already are fine. */
static void make_folders(const char *path, int depth)
{
    char folder[PATH_MAX];
    const char *end = strrchr(path, '/');

    if (end == NULL || end == path || (size_t)(end - path) >= sizeof folder)
        return;
    memcpy(folder, path, (size_t)(end - path));
    folder[end - path] = 0;
    if (depth > 0)
        make_folders(folder, depth - 1);
    (void)mkdir(folder, 0700); /* if it is needed and missing, opening the file will say so */
}

static bool write_all(int descriptor, const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(descriptor, text, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

enum hoop_status hoop_file_replace(const char *what, const char *path, const char *text, size_t size)
{
    char fresh[PATH_MAX];

    if ((size_t)snprintf(fresh, sizeof fresh, "%s.XXXXXX", path) >= sizeof fresh)
        return hoop_fail(HOOP_ERR_SYSTEM, "the path of the %s is too long: %.200s…", what, path);
    make_folders(path, 1);
    const int descriptor = mkostemp(fresh, O_CLOEXEC);
    if (descriptor < 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "the %s %s cannot be written", what, path);
    const bool written = write_all(descriptor, text, size);
    const int cause = errno;
    const bool closed = close(descriptor) == 0;
    if (written && closed && rename(fresh, path) == 0)
        return HOOP_OK;
    if (!written)
        errno = cause;
    const enum hoop_status status = hoop_fail_errno(HOOP_ERR_SYSTEM, "the %s %s cannot be written", what, path);
    unlink(fresh);
    return status;
}

enum hoop_status hoop_file_cache_path(const char *name, char *path, size_t size)
{
    const char *cache = hoop_environment("XDG_CACHE_HOME"), *home = hoop_environment("HOME");
    int length = -1;

    if (cache && *cache == '/')
        length = snprintf(path, size, "%s/hoop/%s", cache, name);
    else if (home && *home == '/')
        length = snprintf(path, size, "%s/.cache/hoop/%s", home, name);
    if (length < 0)
        return hoop_fail(HOOP_ERR_SETUP,
                         "there is no place for %s: neither XDG_CACHE_HOME nor HOME holds an absolute path", name);
    if ((size_t)length >= size)
        return hoop_fail(HOOP_ERR_SETUP, "the path of %s has %d bytes, more than the %zu allowed", name, length,
                         size - 1);
    return HOOP_OK;
}
