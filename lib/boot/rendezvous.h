// SPDX-License-Identifier: BSD-3-Clause
/* The rendezvous server: one thread per listening address of this process serves all meetings of the ids made here. */
#ifndef HOOP_BOOT_RENDEZVOUS_H
#define HOOP_BOOT_RENDEZVOUS_H

#include <stdbool.h>

#include "boot/id.h"
#include "hoop.h"

/* Serve the meeting of id at its address; port 0: a free one, told back. The meeting is served until the process ends.
 * Blocking: no longer than a socket takes to open.   Threads: any.   Errors: HOOP_ERR_SYSTEM, HOOP_ERR_MEMORY. */
enum hoop_status hoop_rendezvous_serve(struct hoop_id *id);

/* Does this process serve the meeting?   Threads: any. */
bool hoop_rendezvous_is_home(const struct hoop_id *id);

#endif
