// SPDX-License-Identifier: BSD-3-Clause
/* Ranks of one process that share a device launch their kernels together (exec/cuda_team.h). */
#ifndef HOOP_COMM_DEVICE_TEAM_H
#define HOOP_COMM_DEVICE_TEAM_H

#include "comm/comm.h"

#ifdef HOOP_CUDA

/* The rank that makes the team of this rank's device: the first one on it; -1: this rank is alone there. */
int hoop_device_team_maker(const struct hoop_comm *comm);

/* Make it, and enter it; the others of the process enter it by *id.   Errors: as hoop_cuda_team_new. */
enum hoop_status hoop_device_team_make(struct hoop_comm *comm, uint64_t *id);

/* Enter the team, if this rank has not made it, and launch with it from now on; after hoop_kernels_new.   Errors: HOOP_ERR_INTERNAL. */
enum hoop_status hoop_device_team_enter(struct hoop_comm *comm, uint64_t id);

/* This rank's kernels have ended. */
void hoop_device_team_leave(struct hoop_comm *comm);

#endif

/* Does a call on device memory wait in the calling thread for other ranks of the process? */
bool hoop_device_team_waits(const struct hoop_comm *comm);

/* Another thread is going to launch a batch in whose stream a call waits. The default stream of this thread would be that of the other one
 * there: the batch gets a stream that stands in for it, and comes behind what it holds. rejoin, when the batch has been launched: it comes
 * behind the batch. Errors: the driver's. */
enum hoop_status hoop_device_team_replace(struct hoop_comm_batch *batch, bool *replaced);
enum hoop_status hoop_device_team_rejoin(const struct hoop_comm *comm);

#endif
