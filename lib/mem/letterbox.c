// SPDX-License-Identifier: BSD-3-Clause
#include "mem/letterbox.h"

#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/status.h"

enum { LETTERS = 64 }; /* thrown away at once; more come back with the next look */

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* The first NUL makes it a name that no file system holds. */
static socklen_t address_of(const struct hoop_bell *bell, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, bell->letterbox, sizeof bell->letterbox);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + sizeof bell->letterbox);
}

enum hoop_status hoop_letterbox_open(struct hoop_bell *bell, int *box)
{
    struct sockaddr_un address;
    const int sock = open_socket();

    if (sock < 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot open the socket by which ranks of this host wake each other");
    if (getrandom(bell->letterbox, sizeof bell->letterbox, 0) != (ssize_t)sizeof bell->letterbox ||
        bind(sock, (struct sockaddr *)&address, address_of(bell, &address)) != 0) {
        hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot name the socket by which ranks of this host wake each other");
        close(sock);
        return HOOP_ERR_SYSTEM;
    }
    *box = sock;
    return HOOP_OK;
}

void hoop_letterbox_write(const struct hoop_bell *bell)
{
    struct sockaddr_un address;
    const socklen_t size = address_of(bell, &address);
    const int sock = open_socket();

    if (sock < 0)
        return; /* the sleeper looks after a few milliseconds by itself */
    sendto(sock, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address, size);
    close(sock);
}

void hoop_letterbox_empty(int box)
{
    char letter;

    for (int i = 0; i < LETTERS && recv(box, &letter, 1, MSG_DONTWAIT) >= 0; i++)
        ;
}
