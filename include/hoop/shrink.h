// SPDX-License-Identifier: BSD-3-Clause
/* Going on after a failure. hoop.h includes this file. */
#ifndef HOOP_SHRINK_H
#define HOOP_SHRINK_H

#include "hoop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* After a failure: the ranks that live agree on who they are and form a smaller communicator, in their old order.
 *
 * comm         one that has failed (a call on it, or hoop_comm_async_error, has said so). It stays as it is, and has to be destroyed.
 * smaller      receives the new communicator, also of this rank alone; unchanged on failure. Its hoop_comm_rank and hoop_comm_size are new.
 * A rank counts as dead when its process has ended, when it has destroyed comm, or when it has shown no sign of life for HOOP_SILENT. Ranks
 * that die meanwhile are left out, too; then all survivors begin again, and all get the same new communicator.
 * Where the network between hosts is cut, each side takes the other for dead and goes on by itself: a program for which that matters compares
 * the new size with what it needs, more than half of the old one, say.
 * Equal on all ranks: nothing; but all ranks that live must call it. A communicator can be shrunk once; the new one again.
 * Blocking: until all that live have called it and have the new one. Ranks that live and do not call it end it after HOOP_INIT_TIMEOUT.
 * Threads: one call at a time per communicator.
 * Errors: HOOP_ERR_ARG (nothing has failed; shrunk before), HOOP_ERR_UNSUPPORTED (more than 4096 ranks), HOOP_ERR_TIMEOUT (names the ranks that did not call it),
 * HOOP_ERR_PEER (the others took this rank for dead), HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM. */
HOOP_API enum hoop_status hoop_comm_shrink(struct hoop_comm *comm, struct hoop_comm **smaller);

#ifdef __cplusplus
}
#endif
#endif
