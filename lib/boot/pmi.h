// SPDX-License-Identifier: BSD-3-Clause
/* PMI-1: the key store of MPICH's hydra and of Slurm's srun --mpi=pmi2, over the descriptor that PMI_FD names.
 *
 * A line of text out, a line back, both of fields name=value. Slurm takes about 1 KiB a line, MPICH values up to 1023 bytes, so
 * what is put here stays far below. */
#ifndef HOOP_BOOT_PMI_H
#define HOOP_BOOT_PMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hoop.h"

enum {
    HOOP_PMI_LINE = 2048, /* bytes of an answer with its end */
    HOOP_PMI_SPACE = 256, /* bytes of the name of a key space, with NUL */
    HOOP_PMI_VALUE = 256  /* bytes of a value that is put, with NUL */
};

/* One process's connection to its launcher. Begin with {.fd = …}; the descriptor is never closed here: an MPI library of the same
 * process may use it too. */
struct hoop_pmi {
    int fd;
    bool greeted;
    uint64_t inode; /* of the descriptor when it was greeted */
    pid_t owner;
    char space[HOOP_PMI_SPACE];
    size_t used; /* bytes of line that have come */
    char line[HOOP_PMI_LINE];
};

/* Carry a text from one rank, the giver, to all others: a collective of the job.
 *
 * key    the same on all ranks, another for each call.   text   HOOP_PMI_VALUE bytes: the giver's, and what the others receive.
 * Blocking: until all ranks have called it, at most until deadline.   Threads: one at a time per connection.
 * Errors: HOOP_ERR_TIMEOUT, HOOP_ERR_PEER (the launcher has ended), HOOP_ERR_SETUP (it refuses, or answers something else),
 * HOOP_ERR_SYSTEM. */
enum hoop_status hoop_pmi_share(struct hoop_pmi *pmi, bool giver, const char *key, char *text, uint64_t deadline);

/* Take leave: hydra counts a process that has greeted and ends without it as failed, and kills the others. To be called at the end of
 * the process, since nothing can be asked afterwards. Does nothing in a child after fork, or where the descriptor was closed.
 * Blocking: until the launcher answers, at most a second. */
void hoop_pmi_finish(struct hoop_pmi *pmi);

/* The value of a field of an answer. False: there is none, or it does not fit size bytes with its NUL. */
bool hoop_pmi_field(const char *line, const char *name, char *value, size_t size);

#endif
