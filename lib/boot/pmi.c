// SPDX-License-Identifier: BSD-3-Clause
/* The client's side of PMI-1: greet, put, barrier, get. */
#include "boot/pmi.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "wire/auth.h"

enum { REQUEST = 800, COMMAND = 32 }; /* most bytes of a line out; of a command's name */

bool hoop_pmi_field(const char *line, const char *name, char *value, size_t size)
{
    const size_t length = strlen(name);

    for (const char *at = line; *at; at += strcspn(at, " "), at += *at == ' ') {
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        const char *from = at + length + 1;
        const size_t bytes = strcspn(from, " ");
        if (bytes >= size)
            return false;
        memcpy(value, from, bytes);
        value[bytes] = 0;
        return true;
    }
    return false;
}

/* ---- lines ---- */

static enum hoop_status await(const struct hoop_pmi *pmi, short events, const char *command, uint64_t deadline)
{
    struct pollfd one = {.fd = pmi->fd, .events = events};

    for (;;) {
        const int ready = poll(&one, 1, hoop_poll_timeout(deadline, 60000));
        if (ready > 0 && (one.revents & POLLNVAL))
            return hoop_fail(
                HOOP_ERR_SETUP,
                "PMI_FD=%d is no open descriptor: was the process started by another program, which closed it?",
                pmi->fd);
        if (ready > 0)
            return HOOP_OK;
        if (ready < 0 && errno != EINTR)
            return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot wait for the launcher at PMI_FD=%d", pmi->fd);
        if (ready == 0 && hoop_expired(deadline))
            return hoop_fail(HOOP_ERR_TIMEOUT,
                             "the launcher's key store (PMI_FD=%d) did not answer %s before the deadline "
                             "(HOOP_INIT_TIMEOUT): have all ranks come?",
                             pmi->fd, command);
    }
}

static enum hoop_status gone(const struct hoop_pmi *pmi)
{
    return hoop_fail(HOOP_ERR_PEER,
                     "the launcher's key store (PMI_FD=%d) has closed: the launcher has ended, or ends the job",
                     pmi->fd);
}

static enum hoop_status send_line(const struct hoop_pmi *pmi, const char *command, const char *line, uint64_t deadline)
{
    const size_t bytes = strlen(line);
    size_t sent = 0;

    while (sent < bytes) {
        const enum hoop_status status = await(pmi, POLLOUT, command, deadline);
        if (status != HOOP_OK)
            return status;
        const ssize_t moved = send(pmi->fd, line + sent, bytes - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (moved >= 0)
            sent += (size_t)moved;
        else if (errno == EPIPE || errno == ECONNRESET)
            return gone(pmi);
        else if (errno != EAGAIN && errno != EINTR)
            return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot ask the launcher at PMI_FD=%d", pmi->fd);
    }
    return HOOP_OK;
}

/* Take the first line that has come whole. */
static bool take_line(struct hoop_pmi *pmi, char answer[HOOP_PMI_LINE])
{
    const char *end = memchr(pmi->line, '\n', pmi->used);

    if (end == NULL)
        return false;
    const size_t bytes = (size_t)(end - pmi->line);
    memcpy(answer, pmi->line, bytes);
    answer[bytes] = 0;
    pmi->used -= bytes + 1;
    memmove(pmi->line, end + 1, pmi->used);
    return true;
}

static enum hoop_status receive_line(struct hoop_pmi *pmi, const char *command, char answer[HOOP_PMI_LINE],
                                     uint64_t deadline)
{
    while (!take_line(pmi, answer)) {
        if (pmi->used == sizeof pmi->line)
            return hoop_fail(HOOP_ERR_SETUP,
                             "the launcher's key store (PMI_FD=%d) answers %s by a line of more than %d bytes", pmi->fd,
                             command, HOOP_PMI_LINE);
        const enum hoop_status status = await(pmi, POLLIN, command, deadline);
        if (status != HOOP_OK)
            return status;
        const ssize_t moved = recv(pmi->fd, pmi->line + pmi->used, sizeof pmi->line - pmi->used, MSG_DONTWAIT);
        if (moved > 0)
            pmi->used += (size_t)moved;
        else if (moved == 0 || errno == ECONNRESET)
            return gone(pmi);
        else if (errno != EAGAIN && errno != EINTR)
            return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot hear the launcher at PMI_FD=%d", pmi->fd);
    }
    return HOOP_OK;
}

/* ---- commands ---- */

/* Ask, and see that the answer is the expected one and no refusal. request ends in a newline and begins with cmd=. */
static enum hoop_status ask(struct hoop_pmi *pmi, const char *request, const char *expected, char answer[HOOP_PMI_LINE],
                            uint64_t deadline)
{
    char command[COMMAND] = "", got[COMMAND] = "", code[16] = "0";

    hoop_pmi_field(request, "cmd", command, sizeof command);
    command[strcspn(command, "\n")] = 0;
    enum hoop_status status = send_line(pmi, command, request, deadline);
    if (status == HOOP_OK)
        status = receive_line(pmi, command, answer, deadline);
    if (status != HOOP_OK)
        return status;
    if (!hoop_pmi_field(answer, "cmd", got, sizeof got) || strcmp(got, expected) != 0)
        return hoop_fail(HOOP_ERR_SETUP, "the launcher's key store (PMI_FD=%d) answers %s by '%s', not %s", pmi->fd,
                         command, got, expected);
    if (hoop_pmi_field(answer, "rc", code, sizeof code) && strcmp(code, "0") != 0)
        return hoop_fail(HOOP_ERR_SETUP, "the launcher's key store (PMI_FD=%d) refuses %s with code %s", pmi->fd,
                         command, code);
    return HOOP_OK;
}

/* What tells a descriptor from another one of the same number; 0: closed. */
static uint64_t inode(int fd)
{
    struct stat about;

    return fstat(fd, &about) == 0 ? about.st_ino : 0;
}

static enum hoop_status greet(struct hoop_pmi *pmi, char answer[HOOP_PMI_LINE], uint64_t deadline)
{
    enum hoop_status status =
        ask(pmi, "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", answer, deadline);

    if (status == HOOP_OK)
        status = ask(pmi, "cmd=get_my_kvsname\n", "my_kvsname", answer, deadline);
    if (status != HOOP_OK)
        return status;
    if (!hoop_pmi_field(answer, "kvsname", pmi->space, sizeof pmi->space))
        return hoop_fail(HOOP_ERR_SETUP, "the launcher's key store (PMI_FD=%d) does not tell its name", pmi->fd);
    pmi->inode = inode(pmi->fd);
    pmi->owner = getpid();
    pmi->greeted = true;
    return HOOP_OK;
}

void hoop_pmi_finish(struct hoop_pmi *pmi)
{
    char answer[HOOP_PMI_LINE];

    if (pmi->greeted && pmi->owner == getpid() && inode(pmi->fd) == pmi->inode)
        ask(pmi, "cmd=finalize\n", "finalize_ack", answer, hoop_deadline(1));
    pmi->greeted = false;
}

static enum hoop_status put(struct hoop_pmi *pmi, const char *key, const char *text, char answer[HOOP_PMI_LINE],
                            uint64_t deadline)
{
    char request[REQUEST];
    const int bytes = snprintf(request, sizeof request, "cmd=put kvsname=%s key=%s value=%s\n", pmi->space, key, text);

    if (bytes >= REQUEST || text[strcspn(text, " \n")] != 0)
        return hoop_fail(HOOP_ERR_INTERNAL, "a PMI key space %s cannot hold %s", pmi->space, key);
    const enum hoop_status status = ask(pmi, request, "put_result", answer, deadline);
    hoop_auth_wipe(request, sizeof request);
    return status;
}

static enum hoop_status get(struct hoop_pmi *pmi, const char *key, char *text, char answer[HOOP_PMI_LINE],
                            uint64_t deadline)
{
    char request[REQUEST];

    snprintf(request, sizeof request, "cmd=get kvsname=%s key=%s\n", pmi->space, key);
    const enum hoop_status status = ask(pmi, request, "get_result", answer, deadline);
    if (status == HOOP_OK && !hoop_pmi_field(answer, "value", text, HOOP_PMI_VALUE))
        return hoop_fail(HOOP_ERR_SETUP, "the launcher's key store (PMI_FD=%d) has no value of %s", pmi->fd, key);
    return status;
}

enum hoop_status hoop_pmi_share(struct hoop_pmi *pmi, bool giver, const char *key, char *text, uint64_t deadline)
{
    char answer[HOOP_PMI_LINE];

    enum hoop_status status = pmi->greeted ? HOOP_OK : greet(pmi, answer, deadline);
    if (status == HOOP_OK && giver)
        status = put(pmi, key, text, answer, deadline);
    if (status == HOOP_OK)
        status = ask(pmi, "cmd=barrier_in\n", "barrier_out", answer, deadline);
    if (status == HOOP_OK && !giver)
        status = get(pmi, key, text, answer, deadline);
    hoop_auth_wipe(answer, sizeof answer);
    return status;
}
