// SPDX-License-Identifier: BSD-3-Clause
/* Launchers: which rank this process is, from the variables that its launcher set, and how the ranks get their common id.
 *
 * launchers.def names each launcher's variables; the first launcher of the list whose variables are there wins. The id, which holds the
 * secret, comes from HOOP_ID; or rank 0 makes one and puts it into the launcher's key store; or all ranks make the same one of an
 * agreed place and a secret that they hold (place.h). Where none of these is possible it is an error. */
#ifndef HOOP_BOOT_LAUNCH_H
#define HOOP_BOOT_LAUNCH_H

#include <stdbool.h>

#include "boot/place.h"
#include "hoop.h"

enum hoop_launch_way {
    HOOP_LAUNCH_ALONE, /* one rank needs no id */
    HOOP_LAUNCH_ID,    /* HOOP_ID */
    HOOP_LAUNCH_PMI,
    HOOP_LAUNCH_PMIX,
    HOOP_LAUNCH_PLACE
};

enum { HOOP_LAUNCH_JOB = 512, HOOP_LAUNCH_HOW = 512 };

struct hoop_launch {
    const char *launcher;       /* "hooprun", "torchrun", …; "none": started by hand, rank 0 of 1. Static */
    int rank, ranks;            /* ranks 0: PMIx tells it when the ranks meet */
    int local_rank, local_size; /* among the ranks of this host; -1: not told */
    bool one_host;              /* all ranks are on one, as the launcher says */
    enum hoop_launch_way way;
    int pmi_fd;
    struct hoop_place place;
    const char *place_from, *key_from; /* static */
    unsigned char key[HOOP_PLACE_KEY];
    char job[HOOP_LAUNCH_JOB];
    struct hoop_unique_id id; /* of HOOP_LAUNCH_ID; else after hoop_launch_meet */
};

/* Find out from the environment; asks nobody.
 * Blocking: never, but for a file that HOOP_SECRET_FILE names.   Threads: any, while nobody changes the environment.
 * Errors: HOOP_ERR_SETUP (a group of variables is partly set: names the missing one; a value is no number or out of
 * range; nothing carries an id or a secret to all ranks; a setting is wrong). *launch is unchanged then. */
enum hoop_status hoop_launch_find(struct hoop_launch *launch);

/* Get the id, and ranks where it was 0: a collective of the job's ranks, unless there is one rank or HOOP_ID.
 * Blocking: until rank 0 has made it and it has come, at most HOOP_INIT_TIMEOUT, but for the resolver of names and libpmix.
 * Threads: any; one at a time.
 * Errors: HOOP_ERR_SETUP, HOOP_ERR_TIMEOUT, HOOP_ERR_PEER, HOOP_ERR_UNSUPPORTED, HOOP_ERR_SYSTEM, HOOP_ERR_MEMORY. */
enum hoop_status hoop_launch_meet(struct hoop_launch *launch);

/* The way in words: "by HOOP_ID", "by the key store at PMI_FD=9", … */
void hoop_launch_describe(const struct hoop_launch *launch, char how[HOOP_LAUNCH_HOW]);

#endif
