// SPDX-License-Identifier: BSD-3-Clause
/* Broadcasts and gathers of device memory by the devices' copy engines. See device_copy.c. */
#ifndef HOOP_COMM_DEVICE_COPY_H
#define HOOP_COMM_DEVICE_COPY_H

#include "comm/comm.h"

/* Is the call made by copies? The same on all ranks. */
bool hoop_copies_take(const struct hoop_comm_call *call);

/* Make such a call, which has the turn; returns with the result.
 * at_once: it has no stream, and comes behind the default stream; else what it reads is there.
 * Errors: those of the public calls; concluded. */
enum hoop_status hoop_copies_run(const struct hoop_comm_call *call, bool at_once);

#endif
