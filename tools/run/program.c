// SPDX-License-Identifier: BSD-3-Clause
/* What is run: the program's path, and the environment of each rank. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0, or why the path cannot be executed. */
static int executable(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    return access(path, X_OK) == 0 ? 0 : errno;
}

/* The first executable file of that name along PATH; *why keeps the most telling reason against one. */
static char *search(const char *name, const char *path, int *why)
{
    for (const char *part = path; part != NULL; part = (part = strchr(part, ':')) != NULL ? part + 1 : NULL) {
        const size_t length = strcspn(part, ":");
        char *candidate;
        int refused;

        if (asprintf(&candidate, "%.*s%s%s", (int)length, part, length > 0 ? "/" : "", name) < 0)
            return NULL;
        refused = executable(candidate);
        if (refused == 0)
            return candidate;
        if (refused != ENOENT && refused != ENOTDIR && refused != EISDIR)
            *why = refused;
        free(candidate);
    }
    return NULL;
}

char *program_find(const char *name, int *code)
{
    const char *path = getenv("PATH");
    int why = ENOENT;
    char *found = NULL;

    if (strchr(name, '/') == NULL) {
        found = search(name, path != NULL ? path : "/usr/bin:/bin", &why);
    } else {
        why = executable(name);
        found = why == 0 ? strdup(name) : NULL;
    }
    if (found != NULL)
        return found;
    *code = why == ENOENT || why == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    if (strchr(name, '/') != NULL)
        output_error("%s: %s. Nothing was started.", name, strerror(why));
    else if (*code == EXIT_NOT_FOUND)
        output_error("%s: not found along PATH (for a program in this folder give ./%s). Nothing was started.", name,
                     name);
    else
        output_error("%s: found along PATH, but: %s. Nothing was started.", name, strerror(why));
    return NULL;
}

/* True if the entry "NAME=value" is one of the variables that hooprun sets. */
static bool is_own(const char *entry)
{
    static const char *const own[] = {"HOOP_RANK", "HOOP_SIZE", "HOOP_LOCAL_RANK", "HOOP_LOCAL_SIZE",
                                      "HOOP_HOST", "HOOP_ID",   "HOOP_RESTART",    "HOOPRUN_TERMINAL"};

    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
        const size_t length = strlen(own[i]);

        if (strncmp(entry, own[i], length) == 0 && entry[length] == '=')
            return true;
    }
    return false;
}

/* Where the next variable and its text go. */
struct block {
    char **entry, *text;
    size_t left;
};

static void add(struct block *block, const char *name, const char *value)
{
    const size_t length = (size_t)snprintf(block->text, block->left, "%s=%s", name, value) + 1;

    if (length > block->left)
        return; /* cannot be: the id has a bounded size */
    *block->entry++ = block->text;
    block->text += length;
    block->left -= length;
}

static void add_number(struct block *block, const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    add(block, name, text);
}

/* Each entry of --hosts is a host of its own, whatever it shares with others. */
static void add_host(struct block *block, const struct options *options, int rank)
{
    const struct host *host = hosts_of(options, rank);
    char text[300];

    add_number(block, "HOOP_LOCAL_RANK", host ? rank - host->first : rank);
    add_number(block, "HOOP_LOCAL_SIZE", host ? host->ranks : options->ranks);
    if (host == NULL)
        return;
    snprintf(text, sizeof(text), "%d:%s", (int)(host - options->host), host->name);
    add(block, "HOOP_HOST", text);
}

char **program_environment(const struct job *job, int rank, const char *id)
{
    enum { ADDED = 10, ADDED_BYTES = 1536 };
    size_t count = 0;
    char **environment;
    struct block block;

    while (environ[count] != NULL)
        count++;
    environment = malloc((count + ADDED + 1) * sizeof(*environment) + ADDED_BYTES);
    if (environment == NULL)
        return NULL;
    block = (struct block){environment, (char *)&environment[count + ADDED + 1], ADDED_BYTES};
    for (char **entry = environ; *entry != NULL; entry++)
        if (!is_own(*entry))
            *block.entry++ = *entry;
    add_number(&block, "HOOP_RANK", rank);
    add_number(&block, "HOOP_SIZE", job->ranks);
    add_number(&block, "HOOP_RESTART", job->restart);
    add_host(&block, job->options, rank);
    add(&block, "HOOP_ID", id);
    if (getenv("OMP_NUM_THREADS") == NULL)
        add(&block, "OMP_NUM_THREADS", "1");
    if (getenv("OPENBLAS_NUM_THREADS") == NULL)
        add(&block, "OPENBLAS_NUM_THREADS", "1");
    if (isatty(STDERR_FILENO))
        add(&block, "HOOPRUN_TERMINAL", "1");
    *block.entry = NULL;
    return environment;
}
