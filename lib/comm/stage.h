// SPDX-License-Identifier: BSD-3-Clause
/* Calls on device memory through host buffers: what is sent is copied into staging memory, the ordinary host path runs on that, and
 * what was received is copied back. It needs nothing of the devices but copies, so it works wherever there is a driver. */
#ifndef HOOP_COMM_STAGE_H
#define HOOP_COMM_STAGE_H

#include "comm/comm.h"

struct hoop_stage;

/* The staging of a communicator is made at its first call on device memory. NULL is allowed. */
void hoop_stage_free(struct hoop_stage *stage);

/* Run calls (some on device memory) that have the turn, and return when the results are there. They follow what has been given to
 * the legacy default stream.
 * Errors: those of the public calls; concluded. */
enum hoop_status hoop_stage_run(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls);

/* Put calls, all on device memory, in the order of a CUDA stream (batch->stream); returns at once. batch has its ticket and stays the
 * caller's.
 * Errors: HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM: the turn will not be taken. */
enum hoop_status hoop_stage_submit(struct hoop_comm_batch *batch);

/* Wait until the streams have passed all that was given to them; after the calls have ended. NULL is allowed. */
void hoop_stage_drain(struct hoop_stage *stage);

#endif
