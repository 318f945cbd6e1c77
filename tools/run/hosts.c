// SPDX-License-Identifier: BSD-3-Clause
/* Ranks on other hosts: the list of --hosts, and how a rank is started there.
 *
 * A rank is started by a command of --rsh, which gets the host and then what is to be run. Of ssh and its like, which join the rest to one
 * line for a shell there and pass on no variables, the line sets them, quoted; the id, which is a secret, is no argument that others
 * could see but the first line of the rank's input. Any other command is taken to run its arguments as they are, with our variables
 * (ip netns exec, chroot, nsenter).
 */
#include "run.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_NAME = 256, WORDS = 16 };

/* One entry of the list: "name" or "name:ranks". Returns its length in the text, 0 if it is malformed. */
static size_t read_entry(const char *text, struct host *host)
{
    const size_t length = strcspn(text, ","), name = strcspn(text, ":,");
    char *end;

    host->ranks = 1;
    if (name == 0 || name >= HOST_NAME)
        return 0;
    if (text[name] == ':') {
        const long ranks = strtol(text + name + 1, &end, 10);
        if (end != text + length || ranks < 1 || ranks > MOST_RANKS)
            return 0;
        host->ranks = (int)ranks;
    }
    host->name = strndup(text, name);
    return host->name ? length : 0;
}

const char *hosts_parse(struct options *options, const char *text)
{
    size_t count = 1;

    for (const char *at = text; *at; at++)
        count += *at == ',';
    options->host = calloc(count, sizeof(*options->host));
    if (options->host == NULL)
        return "no memory";
    for (size_t i = 0; i < count; i++) {
        struct host *host = &options->host[i];
        const size_t length = read_entry(text, host);
        if (length == 0)
            return "give names with commas, each with a number of ranks if it is not 1: a,b:4";
        host->first = options->host_ranks;
        options->host_ranks += host->ranks;
        if (options->host_ranks > MOST_RANKS)
            return "too many ranks";
        text += length + (text[length] == ',');
    }
    options->hosts = (int)count;
    return NULL;
}

const struct host *hosts_of(const struct options *options, int rank)
{
    for (int i = 0; i < options->hosts; i++)
        if (rank < options->host[i].first + options->host[i].ranks)
            return &options->host[i];
    return NULL;
}

/* ---- the command ---- */

/* Does the command take a line for a shell? */
static bool is_shell(const char *word)
{
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

    return strcmp(name, "ssh") == 0 || strcmp(name, "rsh") == 0;
}

bool hosts_by_shell(const struct options *options)
{
    char first[HOST_NAME];

    snprintf(first, sizeof(first), "%.*s", (int)strcspn(options->rsh, " "), options->rsh);
    return is_shell(first);
}

static void quote(FILE *out, const char *text)
{
    fputs(" '", out);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    fputc('\'', out);
}

/* What the shell over there is to do. malloc'd. */
static char *shell_line(const struct options *options, char *const *environment)
{
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);

    if (out == NULL)
        return NULL;
    fputs("IFS= read -r HOOP_ID && export HOOP_ID && exec env", out);
    for (; *environment; environment++)
        if (strncmp(*environment, "HOOP_", 5) == 0 && strncmp(*environment, "HOOP_ID=", 8) != 0 &&
            strncmp(*environment, "HOOP_SECRET=", 12) != 0) /* HOOP_ID does without */
            quote(out, *environment);
    for (char *const *argument = options->program; *argument; argument++)
        quote(out, *argument);
    return fclose(out) == 0 ? line : (free(line), NULL);
}

char **hosts_command(const struct options *options, int rank, char *const *environment)
{
    const bool by_shell = hosts_by_shell(options);
    char *line = by_shell ? shell_line(options, environment) : NULL;
    const size_t word_bytes = strlen(options->rsh) + 1, line_bytes = line ? strlen(line) + 1 : 0;
    size_t arguments = 0, used = 0;

    while (options->program[arguments])
        arguments++;
    const size_t places = WORDS + 1 + arguments + 1;
    char **command = calloc(1, places * sizeof(*command) + word_bytes + line_bytes); /* the texts behind the array */
    if (command == NULL || (by_shell && line == NULL)) {
        free(line);
        free(command);
        return NULL;
    }
    char *words = (char *)(command + places), *rest = words, *copy = words + word_bytes;
    memcpy(words, options->rsh, word_bytes);
    for (char *word; used < WORDS && (word = strsep(&rest, " ")) != NULL;)
        if (*word)
            command[used++] = word;
    command[used++] = hosts_of(options, rank)->name;
    if (by_shell)
        command[used] = memcpy(copy, line, line_bytes);
    else
        memcpy(command + used, options->program, arguments * sizeof(*command));
    free(line);
    return command;
}

/* ---- where they meet ---- */

/* An address of this machine that others may reach; false: none was found. */
static bool find_address(char *text, size_t size)
{
    struct ifaddrs *all;
    bool found = false;

    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one != NULL && !found; one = one->ifa_next)
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && (one->ifa_flags & IFF_RUNNING) &&
            !(one->ifa_flags & IFF_LOOPBACK))
            found = getnameinfo(one->ifa_addr, sizeof(struct sockaddr_in), text, (socklen_t)size, NULL, 0,
                                NI_NUMERICHOST) == 0;
    freeifaddrs(all);
    return found;
}

bool hosts_meet(void)
{
    char address[64];

    if (getenv("HOOP_ADDRESS") != NULL)
        return true;
    if (!find_address(address, sizeof(address))) {
        output_error("--hosts: this host has no address that others could reach; set HOOP_ADDRESS to one");
        return false;
    }
    return setenv("HOOP_ADDRESS", address, 1) == 0;
}
