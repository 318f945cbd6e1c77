// SPDX-License-Identifier: BSD-3-Clause
/* Device memory that outlives its communicator, because peers may still write or read there. See device_grave.c. */
#ifndef HOOP_COMM_DEVICE_GRAVE_H
#define HOOP_COMM_DEVICE_GRAVE_H

#include "comm/comm.h"

#ifdef HOOP_CUDA

struct hoop_comm_device;

/* Take over what of the dead communicator's device is left: its domains, the buffers that peers have open, the board, and one use of the
 * device. The communicator has none of them afterwards.   Errors: HOOP_ERR_MEMORY: all stays where it was. */
enum hoop_status hoop_device_bury(struct hoop_comm *comm);

/* Free what is buried as far as all peers have left their communicators or died. own: of a communicator whose end this is, or NULL; peers in
 * other processes get a moment for it.   Threads: any. */
struct hoop_board;
void hoop_device_graves_look(const struct hoop_board *own);

#else

static inline void hoop_device_graves_look(const struct hoop_board *own)
{
    (void)own;
}

#endif
#endif
