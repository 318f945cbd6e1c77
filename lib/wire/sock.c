// SPDX-License-Identifier: BSD-3-Clause
/* Thin layer over the socket calls: EINTR, deadlines and clear errors in one place. */
#include "wire/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"

enum { POLL_CAP = 60000 }; /* milliseconds of one poll */

/* ---- addresses ---- */

enum hoop_status hoop_address_parse(struct hoop_address *address, const char *host)
{
    struct hoop_address parsed = {.family = 4};

    if (inet_pton(AF_INET, host, parsed.host) != 1) {
        parsed.family = 6;
        if (inet_pton(AF_INET6, host, parsed.host) != 1)
            return hoop_fail(HOOP_ERR_ARG, "'%.64s' is no IPv4 or IPv6 address", host);
    }
    *address = parsed;
    return HOOP_OK;
}

void hoop_address_print(const struct hoop_address *address, char text[HOOP_ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "?", scope[16] = "";

    inet_ntop(address->family == 6 ? AF_INET6 : AF_INET, address->host, host, sizeof host);
    if (address->scope)
        snprintf(scope, sizeof scope, "%%%u", (unsigned)address->scope);
    snprintf(text, HOOP_ADDRESS_TEXT, address->family == 6 ? "[%s%s]:%u" : "%s%s:%u", host, scope,
             (unsigned)address->port);
}

bool hoop_address_is_any(const struct hoop_address *address)
{
    static const unsigned char any[16];

    return memcmp(address->host, any, sizeof any) == 0;
}

/* The kernel's form of an address; returns its size. */
static socklen_t to_kernel(const struct hoop_address *address, struct sockaddr_storage *storage)
{
    memset(storage, 0, sizeof *storage);
    if (address->family == 6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)storage;
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(address->port);
        in6->sin6_scope_id = address->scope;
        memcpy(&in6->sin6_addr, address->host, 16);
        return sizeof *in6;
    }
    struct sockaddr_in *in = (struct sockaddr_in *)storage;
    in->sin_family = AF_INET;
    in->sin_port = htons(address->port);
    memcpy(&in->sin_addr, address->host, 4);
    return sizeof *in;
}

static uint16_t port_of(const struct sockaddr_storage *storage)
{
    return storage->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)storage)->sin6_port)
                                          : ntohs(((const struct sockaddr_in *)storage)->sin_port);
}

static int open_socket(const struct hoop_address *address)
{
    return socket(address->family == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Messages are small and answered at once: waiting for more to send would only delay them. */
static void send_at_once(int sock)
{
    const int on = 1;

    setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void hoop_sock_unpace(int sock)
{
    static const char name[] = "reno";

    setsockopt(sock, IPPROTO_TCP, TCP_CONGESTION, name, sizeof name - 1);
}

/* ---- making connections ---- */

enum hoop_status hoop_sock_listen(struct hoop_address *address, int *listener)
{
    struct sockaddr_storage storage;
    char text[HOOP_ADDRESS_TEXT];
    const int on = 1;
    socklen_t size = to_kernel(address, &storage);
    const int sock = open_socket(address);

    hoop_address_print(address, text);
    if (sock < 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot open a socket to listen on %s", text);
    if (address->family == 6)
        setsockopt(sock, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (address->port != 0) /* connections of an earlier run on this port may still be fading */
        setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(sock, (struct sockaddr *)&storage, size) != 0 || listen(sock, SOMAXCONN) != 0) {
        hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot listen on %s", text);
        close(sock);
        return HOOP_ERR_SYSTEM;
    }
    size = sizeof storage;
    if (getsockname(sock, (struct sockaddr *)&storage, &size) != 0) {
        hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot learn the port of the socket that listens on %s", text);
        close(sock);
        return HOOP_ERR_SYSTEM;
    }
    address->port = port_of(&storage);
    *listener = sock;
    return HOOP_OK;
}

enum hoop_status hoop_sock_accept(int listener, int *sock)
{
    const int taken = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (taken >= 0) {
        send_at_once(taken);
        *sock = taken;
        return HOOP_OK;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot accept a connection");
    return HOOP_AGAIN; /* the client is gone, or a passing fault of its network */
}

static enum hoop_status connect_failed(const struct hoop_address *address, int error)
{
    char text[HOOP_ADDRESS_TEXT];

    hoop_address_print(address, text);
    errno = error;
    return hoop_fail_errno(error == ECONNREFUSED ? HOOP_ERR_PEER : HOOP_ERR_SYSTEM, "cannot connect to %s", text);
}

enum hoop_status hoop_sock_connect_begin(const struct hoop_address *address, int *sock)
{
    struct sockaddr_storage storage;
    const socklen_t size = to_kernel(address, &storage);
    const int made = open_socket(address);

    if (made < 0)
        return connect_failed(address, errno);
    const bool connected = connect(made, (struct sockaddr *)&storage, size) == 0;
    if (!connected && errno != EINPROGRESS && errno != EINTR) {
        const int error = errno;
        close(made);
        return connect_failed(address, error);
    }
    send_at_once(made);
    *sock = made;
    return connected ? HOOP_OK : HOOP_AGAIN;
}

enum hoop_status hoop_sock_connect_end(const struct hoop_address *address, int sock)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    return error == 0 ? HOOP_OK : connect_failed(address, error);
}

enum hoop_status hoop_sock_connect(const struct hoop_address *address, int *sock, uint64_t deadline)
{
    char text[HOOP_ADDRESS_TEXT];
    int made;
    enum hoop_status status = hoop_sock_connect_begin(address, &made);

    if (status == HOOP_AGAIN) {
        struct pollfd wait = {.fd = made, .events = POLLOUT};
        while (poll(&wait, 1, hoop_poll_timeout(deadline, POLL_CAP)) <= 0) {
            if (hoop_expired(deadline)) {
                close(made);
                hoop_address_print(address, text);
                return hoop_fail(HOOP_ERR_TIMEOUT, "%s does not answer before the deadline", text);
            }
        }
        status = hoop_sock_connect_end(address, made);
        if (status != HOOP_OK)
            close(made);
    }
    if (status == HOOP_OK)
        *sock = made;
    return status;
}

/* ---- moving bytes ---- */

static enum hoop_status wait_for(int sock, short events, uint64_t deadline)
{
    struct pollfd wait = {.fd = sock, .events = events};

    for (;;) {
        const int ready = poll(&wait, 1, hoop_poll_timeout(deadline, POLL_CAP));
        if (ready > 0)
            return HOOP_OK;
        if (ready < 0 && errno != EINTR)
            return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot wait for a socket");
        if (hoop_expired(deadline))
            return hoop_fail(HOOP_ERR_TIMEOUT, "the other end of a connection does not answer before the deadline");
    }
}

enum hoop_status hoop_sock_wait(int sock, uint64_t deadline)
{
    return wait_for(sock, POLLIN, deadline);
}

/* What a send or recv that moved nothing means. */
static enum hoop_status moved_nothing(ssize_t result)
{
    if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS))
        return HOOP_AGAIN;
    return HOOP_ERR_PEER;
}

enum hoop_status hoop_sock_send_some(int sock, const void *data, size_t bytes, size_t *moved)
{
    *moved = 0;
    if (bytes == 0)
        return HOOP_OK;
    const ssize_t result = send(sock, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (result <= 0)
        return moved_nothing(result);
    *moved = (size_t)result;
    return HOOP_OK;
}

enum hoop_status hoop_sock_send_parts(int sock, const struct iovec *parts, int n, size_t skip, size_t *moved)
{
    struct iovec left[4];
    struct msghdr message = {.msg_iov = left};

    for (int i = 0; i < n; i++) {
        const size_t gone = skip < parts[i].iov_len ? skip : parts[i].iov_len;
        skip -= gone;
        if (gone < parts[i].iov_len)
            left[message.msg_iovlen++] = (struct iovec){(char *)parts[i].iov_base + gone, parts[i].iov_len - gone};
    }
    *moved = 0;
    if (message.msg_iovlen == 0)
        return HOOP_OK;
    const ssize_t result = sendmsg(sock, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (result <= 0)
        return moved_nothing(result);
    *moved = (size_t)result;
    return HOOP_OK;
}

enum hoop_status hoop_sock_recv_some(int sock, void *data, size_t bytes, size_t *moved)
{
    *moved = 0;
    if (bytes == 0)
        return HOOP_OK;
    const ssize_t result = recv(sock, data, bytes, MSG_DONTWAIT);
    if (result <= 0)
        return moved_nothing(result);
    *moved = (size_t)result;
    return HOOP_OK;
}

enum hoop_status hoop_sock_recv_parts(int sock, struct iovec *parts, int n, size_t *moved)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)n};

    *moved = 0;
    const ssize_t result = recvmsg(sock, &message, MSG_DONTWAIT);
    if (result <= 0)
        return moved_nothing(result);
    *moved = (size_t)result;
    return HOOP_OK;
}

enum hoop_status hoop_sock_send_all(int sock, const void *data, size_t bytes, uint64_t deadline)
{
    const unsigned char *at = data;
    size_t moved;

    for (; bytes > 0; at += moved, bytes -= moved) {
        enum hoop_status status = hoop_sock_send_some(sock, at, bytes, &moved);
        if (status == HOOP_AGAIN)
            status = wait_for(sock, POLLOUT, deadline);
        else if (status == HOOP_ERR_PEER)
            return hoop_fail(HOOP_ERR_PEER, "the other end of a connection closed it");
        if (status != HOOP_OK)
            return status;
    }
    return HOOP_OK;
}

enum hoop_status hoop_sock_recv_all(int sock, void *data, size_t bytes, uint64_t deadline)
{
    unsigned char *at = data;
    size_t moved;

    for (; bytes > 0; at += moved, bytes -= moved) {
        enum hoop_status status = hoop_sock_recv_some(sock, at, bytes, &moved);
        if (status == HOOP_AGAIN)
            status = wait_for(sock, POLLIN, deadline);
        else if (status == HOOP_ERR_PEER)
            return hoop_fail(HOOP_ERR_PEER, "the other end of a connection closed it");
        if (status != HOOP_OK)
            return status;
    }
    return HOOP_OK;
}
