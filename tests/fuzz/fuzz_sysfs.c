// SPDX-License-Identifier: BSD-3-Clause
/* The walk through a copy of /sys: a text makes a folder, and whatever it holds is read or refused; what is read is a tree whose links are
 * between nodes of it. A line is a file "devices/…/class=0x030200", or a symbolic link "bus/pci/devices/0000:01:00.0>../../../devices/…". */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/sysfs.h"

enum { MOST_LINES = 64, MOST_DEPTH = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Only below the folder: no empty parts, no "." and "..". */
static bool is_inside(const char *path)
{
    int depth = 0;

    for (const char *at = path;; at++) {
        const size_t length = strcspn(at, "/");

        if (length == 0 || length > 64 || (at[0] == '.' && (length == 1 || (length == 2 && at[1] == '.'))) ||
            depth++ == MOST_DEPTH)
            return false;
        at += length;
        if (*at == '\0')
            return true;
    }
}

static void make_folders(int root, char *path)
{
    for (char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdirat(root, path, 0700);
        *slash = '/';
    }
}

static void make_entry(int root, char *line)
{
    char *end = line + strcspn(line, "=>");
    const char kind = *end;

    if (kind == '\0')
        return;
    *end++ = '\0';
    if (!is_inside(line))
        return;
    make_folders(root, line);
    if (kind == '>') {
        if (symlinkat(end, root, line) != 0)
            return;
    } else {
        const int file = openat(root, line, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file < 0)
            return;
        check(write(file, end, strlen(end)) == (ssize_t)strlen(end));
        close(file);
    }
}

static int forget(const char *path, const struct stat *about, int what, struct FTW *where)
{
    (void)about, (void)what, (void)where;
    return remove(path);
}

static void walk(const struct hoop_topo *topo)
{
    const struct hoop_topo_node *node;

    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++) {
        check((node->parent < 0) == (i == 0));
        for (int j = 0; j < i; j++)
            check(hoop_topo_path_class(topo, i, j) == hoop_topo_path_class(topo, j, i));
    }
    for (int i = 0; hoop_topo_link(topo, i) != NULL; i++)
        check(hoop_topo_link(topo, i)->a < hoop_topo_link(topo, i)->b &&
              hoop_topo_node(topo, hoop_topo_link(topo, i)->b) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char folder[] = "/dev/shm/hoop-fuzz-XXXXXX", *text = malloc(bytes + 1), *rest = text;
    struct hoop_topo *topo = NULL;

    check(text != NULL && mkdtemp(folder) != NULL);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    const int root = open(folder, O_DIRECTORY | O_CLOEXEC);
    check(root >= 0);
    for (int line = 0; line < MOST_LINES && rest != NULL; line++)
        make_entry(root, strsep(&rest, "\n"));
    close(root);
    if (hoop_topo_read_sysfs(&topo, folder) == HOOP_OK)
        walk(topo);
    hoop_topo_free(topo);
    nftw(folder, forget, 16, FTW_DEPTH | FTW_PHYS);
    free(text);
    return 0;
}
