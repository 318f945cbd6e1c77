// SPDX-License-Identifier: BSD-3-Clause
/* TCP sockets with deadlines, IPv4 and IPv6. All descriptors are non-blocking and close-on-exec; no call raises
 * SIGPIPE. */
#ifndef HOOP_WIRE_SOCK_H
#define HOOP_WIRE_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "hoop.h"

struct hoop_address {
    uint8_t family; /* 4 or 6 */
    uint16_t port;
    unsigned char host[16]; /* network order; IPv4 uses the first four, the others are 0 */
    uint32_t scope;         /* this machine's number of the interface, for a link-local IPv6 address; 0: none */
};

enum { HOOP_ADDRESS_TEXT = 80 }; /* bytes of "[host%scope]:port" with its final NUL */

/* Read a literal IPv4 or IPv6 host (no name, no port).   Errors: HOOP_ERR_ARG. */
enum hoop_status hoop_address_parse(struct hoop_address *address, const char *host);

/* "10.0.0.1:40121" or "[fd00::1]:40121". */
void hoop_address_print(const struct hoop_address *address, char text[HOOP_ADDRESS_TEXT]);

/* Stands for all of a machine's interfaces: no place to connect to. */
bool hoop_address_is_any(const struct hoop_address *address);

/* Listen on the address; port 0: a free one, told back in address->port.   Errors: HOOP_ERR_SYSTEM. */
enum hoop_status hoop_sock_listen(struct hoop_address *address, int *listener);

/* Take the next connection.
 * Returns HOOP_OK, HOOP_AGAIN (none there, or it has gone again), HOOP_ERR_SYSTEM (out of descriptors or memory).
 * Never blocks. */
enum hoop_status hoop_sock_accept(int listener, int *sock);

/* Connect.   Blocking: until connected, at most until deadline.
 * Errors: HOOP_ERR_TIMEOUT, HOOP_ERR_PEER (nobody listens there), HOOP_ERR_SYSTEM. */
enum hoop_status hoop_sock_connect(const struct hoop_address *address, int *sock, uint64_t deadline);

/* Begin to connect.
 * Returns HOOP_OK (connected), HOOP_AGAIN (under way: ask hoop_sock_connect_end when the socket is writable), or as
 * hoop_sock_connect; no socket is left then.  Never blocks. */
enum hoop_status hoop_sock_connect_begin(const struct hoop_address *address, int *sock);

/* How a connect that was under way has ended: HOOP_OK, or as hoop_sock_connect; the socket stays the caller's. */
enum hoop_status hoop_sock_connect_end(const struct hoop_address *address, int sock);

/* Wait until sock is readable (or has ended).   Errors: HOOP_ERR_TIMEOUT, HOOP_ERR_SYSTEM. */
enum hoop_status hoop_sock_wait(int sock, uint64_t deadline);

/* Send or receive exactly bytes.   Blocking: until done, at most until deadline.
 * Errors: HOOP_ERR_TIMEOUT, HOOP_ERR_PEER (the other end closed or died), HOOP_ERR_SYSTEM. */
enum hoop_status hoop_sock_send_all(int sock, const void *data, size_t bytes, uint64_t deadline);
enum hoop_status hoop_sock_recv_all(int sock, void *data, size_t bytes, uint64_t deadline);

/* Move what goes without blocking. *moved receives how much, which may be less than bytes.
 * Returns HOOP_OK (something moved, or bytes was 0), HOOP_AGAIN (nothing), HOOP_ERR_PEER (the other end closed or
 * died). Writes no error record: the caller knows better who the other end is. */
enum hoop_status hoop_sock_send_some(int sock, const void *data, size_t bytes, size_t *moved);
enum hoop_status hoop_sock_recv_some(int sock, void *data, size_t bytes, size_t *moved);

/* Let the connection send as fast as the peer takes it, by Reno, which every kernel has: for those between which there is no network.
 * Errors: none; a kernel that refuses keeps what it has.  Never blocks. */
void hoop_sock_unpace(int sock);

/* As hoop_sock_recv_some, into n parts one after the other. */
enum hoop_status hoop_sock_recv_parts(int sock, struct iovec *parts, int n, size_t *moved);

/* As hoop_sock_send_some, for the bytes of n (at most 4) parts one after the other, of which the first skip are left
 * out. */
enum hoop_status hoop_sock_send_parts(int sock, const struct iovec *parts, int n, size_t skip, size_t *moved);

#endif
