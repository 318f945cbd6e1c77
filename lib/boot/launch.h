// SPDX-License-Identifier: BSD-3-Clause
/* Launchers: which rank this process is, from the variables that its launcher set.
 *
 * launchers.def names each launcher's variables; the first launcher of the list whose variables are there wins. */
#ifndef HOOP_BOOT_LAUNCH_H
#define HOOP_BOOT_LAUNCH_H

#include <stdbool.h>

#include "hoop.h"

struct hoop_launch {
    const char *launcher; /* "hooprun", "torchrun", …; "none": started by hand, rank 0 of 1. Static */
    int rank, ranks;
    int local_rank, local_size; /* among the ranks of this host; -1: not told */
    bool has_id;                /* id is valid; always true for ranks > 1 */
    struct hoop_unique_id id;
};

/* Find out from the environment.
 * Blocking: never.   Threads: any, while nobody changes the environment.
 * Errors: HOOP_ERR_SETUP (a group of variables is partly set: names the missing one; a value is no number or out of
 * range; a launcher's ranks have no HOOP_ID to meet by). *launch is unchanged then. */
enum hoop_status hoop_launch_find(struct hoop_launch *launch);

#endif
