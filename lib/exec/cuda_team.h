// SPDX-License-Identifier: BSD-3-Clause
/* Ranks of one process on one device: their calls run in one launch.
 *
 * Kernels that wait for each other must all be resident, and two launches of one device need not be: the second may wait for the end of
 * the first. So the ranks of a team hand their calls together, and the last one that comes launches all of them, as one cooperative
 * launch, which the device begins only when it has room for all blocks. The launch waits for what each rank's stream held before, and
 * each rank's stream goes on behind it. Who comes earlier waits for the others: on the host, in the call.
 */
#ifndef HOOP_EXEC_CUDA_TEAM_H
#define HOOP_EXEC_CUDA_TEAM_H

#include "exec/device/program.h"
#include "exec/wait.h"
#include "mem/cuda.h"

struct hoop_cuda_team;

enum { HOOP_CUDA_TEAM_MOST = 64 };

/* Make a team of `seats` ranks, whose executors each hold the lanes that they launch; others of the process enter it by *id. The maker has
 * entered it.   Errors: HOOP_ERR_UNSUPPORTED (the device has no cooperative launches), HOOP_ERR_MEMORY, the driver's. */
enum hoop_status hoop_cuda_team_new(struct hoop_cuda_team **team, struct hoop_cuda *cuda, int seats, uint64_t *id);

/* Errors: HOOP_ERR_INTERNAL: there is none. */
enum hoop_status hoop_cuda_team_enter(struct hoop_cuda_team **team, uint64_t id);

/* The last one that leaves frees it; its launches must have ended. NULL is allowed. */
void hoop_cuda_team_leave(struct hoop_cuda_team *team);

/* Launch this seat's call together with those of all others, behind what is in the stream; what is given to the stream from now on comes
 * behind the launch. wait: looks for what can go wrong meanwhile.
 * Blocking: until all have come.   Errors: HOOP_ERR_ABORTED (a verdict stands), the driver's. */
enum hoop_status hoop_cuda_team_launch(struct hoop_cuda_team *team, int seat, const struct hoop_device_call *call,
                                       int threads, hoop_cu_stream stream, struct hoop_wait *wait);

#endif
