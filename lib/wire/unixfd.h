// SPDX-License-Identifier: BSD-3-Clause
/* Unix sockets that pass descriptors. Messages keep their boundaries (SOCK_SEQPACKET), so a message is there whole
 * or not at all. All descriptors, received ones too, are close-on-exec; sockets are non-blocking.
 *
 * The name is random: "@hoop-…" in the abstract name space, which dies with its owner, or where that does not exist a
 * path in a new folder of mode 0700. It is no secret: who connects must still be checked (hoop_unix_same_user, auth.h).
 */
#ifndef HOOP_WIRE_UNIXFD_H
#define HOOP_WIRE_UNIXFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hoop.h"

enum { HOOP_UNIX_NAME = 108 }; /* bytes of a name, with its final NUL */

/* Listen. in_folder: use a path at once (for tests).   Errors: HOOP_ERR_SYSTEM. */
enum hoop_status hoop_unix_listen(bool in_folder, int *listener, char name[HOOP_UNIX_NAME]);

/* Remove what a listener's path left in the file system; nothing for an abstract name. Connections live on. */
void hoop_unix_unlink(const char *name);

/* As hoop_sock_accept. */
enum hoop_status hoop_unix_accept(int listener, int *sock);

/* Connect.   Blocking: while the listener's queue is full, at most until deadline or until cancel (-1: none) is
 * readable. Errors: HOOP_ERR_TIMEOUT, HOOP_ERR_ABORTED (cancel), HOOP_ERR_SETUP (nobody listens on that name here),
 * HOOP_ERR_SYSTEM. */
enum hoop_status hoop_unix_connect(const char *name, int cancel, int *sock, uint64_t deadline);

/* Is the process at the other end of the same user?  (The kernel's word, as of its connect or listen.) */
bool hoop_unix_same_user(int sock);

/* Send one message, with a descriptor (-1: none), which stays the caller's.
 * Returns HOOP_OK, HOOP_AGAIN (no room), HOOP_ERR_PEER (no error record).  Never blocks. */
enum hoop_status hoop_unix_send(int sock, const void *data, size_t bytes, int passed);

/* Receive one message of at most size bytes and at most one descriptor (*passed: owned by the caller; -1: none came).
 * passed == NULL: descriptors are not wanted and closed.
 * Returns HOOP_OK, HOOP_AGAIN (none there), HOOP_ERR_PEER (the other end closed; no error record), HOOP_ERR_ARG (longer
 * than size, or more than one descriptor; all of them are closed).  Never blocks. */
enum hoop_status hoop_unix_recv(int sock, void *data, size_t size, size_t *bytes, int *passed);

/* Wait until sock is readable.   Errors: HOOP_ERR_TIMEOUT, HOOP_ERR_ABORTED (cancel is readable), HOOP_ERR_SYSTEM. */
enum hoop_status hoop_unix_wait(int sock, int cancel, uint64_t deadline);

#endif
