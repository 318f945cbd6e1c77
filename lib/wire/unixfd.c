// SPDX-License-Identifier: BSD-3-Clause
/* Unix sockets and SCM_RIGHTS. */
#include "wire/unixfd.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "wire/auth.h"

enum {
    POLL_CAP = 60000, /* milliseconds of one poll */
    RETRY_MS = 2,     /* pause before a full queue is tried again */
    MOST_PASSED = 8   /* descriptors of one message that are received, to be closed, beside the one that is wanted */
};

static const char socket_file[] = "/socket";

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* The kernel's form of a name; returns its size. An abstract name begins with NUL there, with '@' here. */
static socklen_t to_kernel(const char *name, struct sockaddr_un *address)
{
    const size_t length = strnlen(name, sizeof address->sun_path - 1);

    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, name, length);
    if (name[0] == '@')
        address->sun_path[0] = 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (name[0] != '@'));
}

static bool listen_on(int sock, const char *name)
{
    struct sockaddr_un address;
    const socklen_t size = to_kernel(name, &address);

    return bind(sock, (struct sockaddr *)&address, size) == 0 && listen(sock, SOMAXCONN) == 0;
}

static bool listen_abstract(int sock, char name[HOOP_UNIX_NAME])
{
    unsigned char random[16];
    int used = snprintf(name, HOOP_UNIX_NAME, "@hoop-");

    hoop_auth_random(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        used += snprintf(name + used, HOOP_UNIX_NAME - (size_t)used, "%02x", random[i]);
    return listen_on(sock, name);
}

static bool listen_in_folder(int sock, char name[HOOP_UNIX_NAME])
{
    static const char *const parents[] = {"/tmp", "/var/tmp", "/dev/shm"};

    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++) {
        snprintf(name, HOOP_UNIX_NAME, "%s/hoop-XXXXXX", parents[i]);
        if (mkdtemp(name) == NULL) /* makes it with mode 0700 */
            continue;
        const size_t used = strlen(name);
        snprintf(name + used, HOOP_UNIX_NAME - used, "%s", socket_file);
        if (listen_on(sock, name))
            return true;
        const int error = errno;
        hoop_unix_unlink(name);
        errno = error;
    }
    return false;
}

enum hoop_status hoop_unix_listen(bool in_folder, int *listener, char name[HOOP_UNIX_NAME])
{
    const enum hoop_status status = hoop_auth_start();
    if (status != HOOP_OK)
        return status;
    const int sock = open_socket();
    if (sock < 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot open a Unix socket");
    if ((in_folder || !listen_abstract(sock, name)) && !listen_in_folder(sock, name)) {
        hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot listen on a Unix socket, neither on an abstract name nor in /tmp, "
                                         "/var/tmp or /dev/shm");
        close(sock);
        return HOOP_ERR_SYSTEM;
    }
    *listener = sock;
    return HOOP_OK;
}

void hoop_unix_unlink(const char *name)
{
    char folder[HOOP_UNIX_NAME];
    const size_t length = strnlen(name, HOOP_UNIX_NAME - 1), tail = sizeof socket_file - 1;

    if (name[0] != '/' || length <= tail)
        return;
    unlink(name);
    memcpy(folder, name, length - tail);
    folder[length - tail] = 0;
    rmdir(folder);
}

enum hoop_status hoop_unix_accept(int listener, int *sock)
{
    const int taken = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (taken >= 0) {
        *sock = taken;
        return HOOP_OK;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot accept a connection");
    return HOOP_AGAIN;
}

/* Wait once for sock (-1: only for time to pass), at most cap milliseconds. HOOP_AGAIN: those are over, the deadline
 * not. */
static enum hoop_status wait_for(int sock, int cancel, int cap, uint64_t deadline)
{
    struct pollfd wait[2] = {{.fd = sock, .events = POLLIN}, {.fd = cancel, .events = POLLIN}};

    if (poll(wait, 2, hoop_poll_timeout(deadline, cap)) < 0 && errno != EINTR)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot wait for a Unix socket");
    if (wait[1].revents)
        return hoop_fail(HOOP_ERR_ABORTED, "cancelled while waiting for another process of this host");
    if (wait[0].revents)
        return HOOP_OK;
    if (hoop_expired(deadline))
        return hoop_fail(HOOP_ERR_TIMEOUT, "another process of this host does not answer before the deadline");
    return HOOP_AGAIN;
}

enum hoop_status hoop_unix_wait(int sock, int cancel, uint64_t deadline)
{
    enum hoop_status status;

    do
        status = wait_for(sock, cancel, POLL_CAP, deadline);
    while (status == HOOP_AGAIN);
    return status;
}

enum hoop_status hoop_unix_connect(const char *name, int cancel, int *sock, uint64_t deadline)
{
    struct sockaddr_un address;
    const socklen_t size = to_kernel(name, &address);
    const int made = open_socket();
    enum hoop_status status = HOOP_AGAIN;

    if (made < 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot open a Unix socket");
    while (status == HOOP_AGAIN) {
        if (connect(made, (struct sockaddr *)&address, size) == 0) {
            *sock = made;
            return HOOP_OK;
        }
        if (errno == EAGAIN || errno == EINTR)
            status = wait_for(-1, cancel, RETRY_MS, deadline); /* its queue is full */
        else if (errno == ECONNREFUSED || errno == ENOENT || errno == EACCES)
            status = hoop_fail_errno(HOOP_ERR_SETUP,
                                     "cannot connect to the Unix socket %.100s: its process has ended, or runs in "
                                     "another network name space (container) of this host",
                                     name);
        else
            status = hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot connect to the Unix socket %.100s", name);
    }
    close(made);
    return status;
}

bool hoop_unix_same_user(int sock)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof peer && peer.uid == geteuid();
}

enum hoop_status hoop_unix_send(int sock, const void *data, size_t bytes, int passed)
{
    _Alignas(struct cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (passed >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof passed);
        memcpy(CMSG_DATA(head), &passed, sizeof passed);
    }
    if (sendmsg(sock, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        return HOOP_OK;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ETOOMANYREFS ? HOOP_AGAIN : HOOP_ERR_PEER;
}

/* Collect the descriptors of a message: the first is kept, others are closed. Returns how many came. */
static int take_descriptors(struct msghdr *message, int *kept)
{
    int count = 0;

    *kept = -1;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= head->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
            int one;
            memcpy(&one, CMSG_DATA(head) + at, sizeof one);
            if (count++ == 0)
                *kept = one;
            else
                close(one);
        }
    }
    return count;
}

enum hoop_status hoop_unix_recv(int sock, void *data, size_t size, size_t *bytes, int *passed)
{
    _Alignas(struct cmsghdr) unsigned char control[CMSG_SPACE(MOST_PASSED * sizeof(int))];
    struct iovec part = {.iov_base = data, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int kept;

    const ssize_t got = recvmsg(sock, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? HOOP_AGAIN : HOOP_ERR_PEER;
    const int count = take_descriptors(&message, &kept);
    const bool bad = (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) || count > 1;
    if (kept >= 0 && (bad || passed == NULL || got == 0)) {
        close(kept);
        kept = -1;
    }
    if (bad)
        return hoop_fail(HOOP_ERR_ARG, "a message on a Unix socket is too long or brings too many descriptors");
    if (got == 0)
        return HOOP_ERR_PEER; /* the end: nobody sends empty messages */
    *bytes = (size_t)got;
    if (passed)
        *passed = kept;
    return HOOP_OK;
}
