// SPDX-License-Identifier: BSD-3-Clause
/* Joining a job as its launcher says, and which launcher that is. hoop.h includes this file. */
#ifndef HOOP_LAUNCHER_H
#define HOOP_LAUNCHER_H

#include "hoop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Join as the launcher's environment says: that of hooprun (HOOP_RANK, HOOP_SIZE, HOOP_ID), torchrun, Open MPI's mpirun, PRRTE,
 * MPICH's mpiexec or Slurm's srun, and by hand. With none of them the process is rank 0 of 1.
 *
 * Where HOOP_ID is not set, rank 0 makes an id and the launcher's key store carries it (PMI-1, PMIx); where there is none, rank 0
 * serves at the place that the launcher tells, or HOOP_MEET, and all ranks must hold a secret: HOOP_SECRET or HOOP_SECRET_FILE.
 * Equal on all ranks: how many times each has called it.
 * Blocking: as hoop_comm_init_rank, and before that until the id has come, at most HOOP_INIT_TIMEOUT.   Threads: any; one at a time.
 * Errors: as hoop_comm_init_rank; HOOP_ERR_SETUP also where a group of variables is partly set (names the missing one) or no secret
 * can be had; HOOP_ERR_UNSUPPORTED (the launcher needs PMIx, which this build or host lacks). */
HOOP_API enum hoop_status hoop_comm_init_env(struct hoop_comm **comm);

/* What hoop_launcher_get tells. */
struct hoop_launcher {
    const char *name; /* static: "hooprun" (also by hand), "torchrun", "Open MPI", "PMI", "Slurm", "PMIx", "none" */
    int rank, ranks;  /* ranks 0: only the launcher's key store tells it */
    int local_rank, local_size; /* among the ranks of this host; -1: not told */
    const char *meeting;        /* how the ranks would meet, in words; valid until the thread's next call */
};

/* Which launcher's environment hoop_comm_init_env would go by. Asks nobody.
 *
 * launcher     filled on success.
 * Blocking: never, but for the file of HOOP_SECRET_FILE.   Threads: any, while nobody changes the environment.
 * Errors: HOOP_ERR_ARG; what hoop_comm_init_env would find wrong with it, above all HOOP_ERR_SETUP. */
HOOP_API enum hoop_status hoop_launcher_get(struct hoop_launcher *launcher);

#ifdef __cplusplus
}
#endif

#endif
