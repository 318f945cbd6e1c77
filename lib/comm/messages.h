// SPDX-License-Identifier: BSD-3-Clause
/* Sends and receives on a communicator whose calls on device memory run as kernels. See messages.c. */
#ifndef HOOP_COMM_MESSAGES_H
#define HOOP_COMM_MESSAGES_H

#include "comm/comm.h"

#ifdef HOOP_CUDA

#include "mem/cuda.h"

struct hoop_messages;

/* Make this rank's table, to be told to all: its place in the board.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_messages_new(struct hoop_comm *comm, struct hoop_messages **messages, uint64_t *place);

/* place: of the table of each rank, `stride` bytes apart.   Errors: HOOP_ERR_SETUP (a place is none). */
enum hoop_status hoop_messages_start(struct hoop_messages *messages, const uint64_t *place, size_t stride);

/* NULL is allowed. */
void hoop_messages_free(struct hoop_messages *messages);

/* Do messages of the communicator go that way, whatever memory they are in? The same on all ranks. */
bool hoop_messages_take(const struct hoop_comm *comm);

/* As hoop_point_run, in memory of any kind.   Blocking, errors: likewise. */
enum hoop_status hoop_messages_run(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls);

/* Put messages that are all in device memory, and have the turn, into the stream.
 * Blocking: while peers are thousands of messages behind.   Errors: those of the public calls; concluded. */
enum hoop_status hoop_messages_launch(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls,
                                      hoop_cu_stream stream);

#else

static inline bool hoop_messages_take(const struct hoop_comm *comm)
{
    (void)comm;
    return false;
}

static inline enum hoop_status hoop_messages_run(struct hoop_comm *comm, const struct hoop_comm_call *call,
                                                 size_t calls)
{
    (void)comm, (void)call, (void)calls;
    return HOOP_ERR_INTERNAL;
}

#endif
#endif
