// SPDX-License-Identifier: BSD-3-Clause
/* PMIx: the key store of Open MPI's mpirun, PRRTE and srun --mpi=pmix, through libpmix.
 *
 * libpmix is loaded when a job was started by such a launcher, never linked: it brings libevent, munge and more along, which
 * all other programs would load for nothing, and one build serves machines with and without it. configure needs its headers, since
 * they say how its structs lie in memory. */
#ifndef HOOP_BOOT_PMIX_H
#define HOOP_BOOT_PMIX_H

#include <stdbool.h>
#include <stdint.h>

#include "hoop.h"

enum { HOOP_PMIX_VALUE = 256 }; /* bytes of a value, with NUL */

struct hoop_pmix_job {
    int rank, ranks;
    int local_rank, local_size; /* -1: not told */
};

/* Is there a libpmix to use?   Blocking: on loading it.   Threads: any.
 * Errors: HOOP_ERR_UNSUPPORTED (this build knows nothing of PMIx, or why the library cannot be loaded). */
enum hoop_status hoop_pmix_ready(void);

/* Connect to the launcher and learn which rank this is. Balance it with hoop_pmix_close: a process that ends without it counts as
 * failed.   Blocking: until the launcher's daemon on this host answers, within libpmix's own bounds.   Threads: one at a time.
 * Errors: HOOP_ERR_UNSUPPORTED, HOOP_ERR_SETUP (no launcher answers, or it tells no rank). */
enum hoop_status hoop_pmix_open(struct hoop_pmix_job *job);

/* Carry a text from one rank, the giver, to all others: a collective of the job.
 *
 * key    the same on all ranks, another for each call.   text   HOOP_PMIX_VALUE bytes: the giver's, and what others receive.
 * Blocking: until all ranks have called it, at most until deadline.   Threads: one at a time.
 * Errors: HOOP_ERR_TIMEOUT, HOOP_ERR_SETUP (the launcher refuses), HOOP_ERR_MEMORY. */
enum hoop_status hoop_pmix_share(int giver, bool mine, const char *key, char *text, uint64_t deadline);

void hoop_pmix_close(void);

#endif
