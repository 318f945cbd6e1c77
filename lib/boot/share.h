// SPDX-License-Identifier: BSD-3-Clause
/* Sharing: how the leader of a host gives its shared segment to the host's other ranks.
 *
 * The leader listens on a Unix socket with a random name, which travels in its blob. Every other rank connects, both
 * sides prove that they hold the key (and the kernel says that both are the same user), and the leader passes the
 * segment's descriptor. The connection stays open as a lifeline: it ends when the process behind it ends (recv then
 * returns 0, or ECONNRESET if that process had not read everything).
 */
#ifndef HOOP_BOOT_SHARE_H
#define HOOP_BOOT_SHARE_H

#include <stdint.h>

#include "hoop.h"

struct hoop_share; /* a listening Unix socket with a random name */

enum { HOOP_SHARE_NAME = 108 }; /* bytes of a name, with its final NUL */

/* Make the listening socket. Owned by the caller until hoop_share_close.
 * Blocking: never.   Errors: HOOP_ERR_SYSTEM, HOOP_ERR_MEMORY. */
enum hoop_status hoop_share_open(struct hoop_share **share);

/* The name, for hoop_share_fetch in other processes of this host: printable, shorter than HOOP_SHARE_NAME; lives as
 * long as share. */
const char *hoop_share_name(const struct hoop_share *share);

/* Close it; nothing named is left. NULL is allowed. Never blocks. */
void hoop_share_close(struct hoop_share *share);

/* Pass the segment to every rank but the leader. Strangers and wrong keys are turned away and disturb nothing.
 *
 * ranks     how many share the segment, numbered 0 … ranks - 1 (the host's own numbering); leader is one of them.
 * segment   descriptor of the segment; stays the caller's.
 * cancel    descriptor: give up when it is readable; -1: none.
 * lifeline  ranks entries, receive the connections (close-on-exec, non-blocking; owned by the caller); -1 for the
 *           leader. On failure all are -1 and closed.
 * Blocking: until all have it, at most until deadline.
 * Errors: HOOP_ERR_TIMEOUT (names the ranks that did not come), HOOP_ERR_ABORTED (cancelled), HOOP_ERR_SYSTEM,
 * HOOP_ERR_MEMORY. */
enum hoop_status hoop_share_serve(struct hoop_share *share, const unsigned char key[32], int ranks, int leader,
                                  int segment, int cancel, int *lifeline, uint64_t deadline);

/* Get the segment from the leader that listens on name.
 *
 * rank                this rank, in the numbering that the leader uses.
 * segment, lifeline   receive the segment's descriptor and the connection (both close-on-exec, owned by the caller; the
 *                     lifeline is non-blocking); unchanged on failure. The caller checks what it got (size, seals).
 * cancel              as for hoop_share_serve.
 * Blocking: until it is there, at most until deadline.
 * Errors: HOOP_ERR_TIMEOUT, HOOP_ERR_ABORTED (cancelled), HOOP_ERR_PEER (the leader went away, or its socket
 * is not visible from here), HOOP_ERR_SETUP (wrong key or user), HOOP_ERR_SYSTEM. */
enum hoop_status hoop_share_fetch(const char *name, const unsigned char key[32], int ranks, int rank, int cancel,
                                  int *segment, int *lifeline, uint64_t deadline);

#endif
