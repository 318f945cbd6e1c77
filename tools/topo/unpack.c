// SPDX-License-Identifier: BSD-3-Clause
/* Archives with a copy of /sys, as hwloc-gather-topology makes them: unpacked by tar into a folder of our own, which goes when the
 * machine was read. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "show.h"

enum { MOST_BYTES_A_FILE = 16 << 20, MOST_SECONDS = 30 };

static bool is_archive(const char *path)
{
    static const struct {
        int at;
        const char *bytes;
        size_t length;
    } kinds[] = {{0, "\x1f\x8b", 2},
                 {0,
                  "\xfd"
                  "7zXZ",
                  5},
                 {0, "BZh", 3},
                 {0, "\x28\xb5\x2f\xfd", 4},
                 {257, "ustar", 5}};
    char head[512] = "";
    struct stat about;
    const int file = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    const ssize_t got = file < 0 ? -1 : read(file, head, sizeof head);

    if (file >= 0)
        close(file);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (got > 300 && memcmp(head + kinds[i].at, kinds[i].bytes, kinds[i].length) == 0)
            return true;
    return false;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int set_mode(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about;
    (void)walk;
    return kind == FTW_D ? chmod(path, 0700) : 0; /* copies of /sys have folders that forbid writing */
}

static void remove_all(const char *folder)
{
    nftw(folder, set_mode, 16, FTW_PHYS);
    nftw(folder, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

static bool run_tar(const char *path, const char *folder)
{
    const struct rlimit bytes = {MOST_BYTES_A_FILE, MOST_BYTES_A_FILE}, seconds = {MOST_SECONDS, MOST_SECONDS};
    int outcome;
    const pid_t child = fork();

    if (child == 0) {
        const int nothing = open("/dev/null", O_RDWR);
        if (nothing < 0 || dup2(nothing, STDERR_FILENO) < 0 || setrlimit(RLIMIT_FSIZE, &bytes) != 0 ||
            setrlimit(RLIMIT_CPU, &seconds) != 0)
            _exit(126);
        execlp("tar", "tar", "--no-same-owner", "-C", folder, "-xf", path, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &outcome, 0) != child)
        return false;
    return WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0;
}

/* Copies lie in the archive's root or in a folder of it. */
static enum hoop_status load_from(struct hoop_topo **topo, const char *path, const char *folder)
{
    char pattern[4096];
    glob_t found = {0};
    enum hoop_status status;

    snprintf(pattern, sizeof pattern, "%s/sys/devices", folder);
    if (access(pattern, F_OK) == 0)
        return hoop_topo_load(topo, folder);
    snprintf(pattern, sizeof pattern, "%s/*/sys/devices", folder);
    if (glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1) {
        found.gl_pathv[0][strlen(found.gl_pathv[0]) - strlen("/sys/devices")] = '\0';
        status = hoop_topo_load(topo, found.gl_pathv[0]);
    } else {
        fprintf(stderr,
                "hoop-topo: %s: the archive holds no copy of /sys (sys/devices, or in one folder FOLDER/sys/devices)\n",
                path);
        status = HOOP_ERR_ARG;
    }
    globfree(&found);
    return status;
}

enum hoop_status load_archive(struct hoop_topo **topo, const char *path, bool *reported)
{
    const char *where = getenv("TMPDIR");
    char folder[4000];
    enum hoop_status status = HOOP_ERR_SYSTEM;

    *reported = false;
    if (!is_archive(path))
        return hoop_topo_load(topo, path);
    snprintf(folder, sizeof folder, "%s/hoop-topo-XXXXXX", where != NULL && *where != '\0' ? where : "/tmp");
    *reported = true;
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return status;
    }
    if (!run_tar(path, folder)) {
        fprintf(stderr, "hoop-topo: %s: tar cannot unpack it (or is missing, or a file in it is larger than %d MiB)\n",
                path, MOST_BYTES_A_FILE >> 20);
    } else {
        status = load_from(topo, path, folder);
        if (status != HOOP_OK && status != HOOP_ERR_ARG)
            *reported = false;
    }
    remove_all(folder);
    return status;
}
