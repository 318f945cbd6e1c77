// SPDX-License-Identifier: BSD-3-Clause
/* Ranks that outnumber the processors of their host, spread evenly over them.
 *
 * A rank that waits sleeps, and the kernel's scheduler sees a processor with little to do, not one rank where two should be: four ranks
 * on two processors stay three on one and one on the other for as long as a job runs, and every call takes as long as three take
 * in turn. So each rank notes on its card which processor it runs on. Now and then, while it waits, it looks at the others' notes;
 * if its processor has two ranks more than another one that it may use, the last of them that may leave goes there: it binds its thread
 * to that one, and at once sets it free again. Where it runs from then on is the scheduler's affair, as before.
 *
 * Nothing depends on it but time. HOOP_SPREAD=0 leaves it off.
 */
#ifndef HOOP_EXEC_SPREAD_H
#define HOOP_EXEC_SPREAD_H

#include <sched.h>

#include "mem/board.h"

struct hoop_spread {
    bool on;
    uint64_t next; /* when it is looked again */
    uint64_t moves;
};

struct hoop_spread_place {
    int processor; /* negative: not known */
    bool bound;    /* it may use no other */
};

/* Where should a rank go that runs at place[own]? allowed: processors that it may use.
 * Returns a processor, or -1 to stay.   A pure function. */
int hoop_spread_target(const struct hoop_spread_place *place, int ranks, int own, const cpu_set_t *allowed);

/* Called by the thread that waits: look, and perhaps move it; does nothing but every few milliseconds, or if it is off.
 * Blocking: for the time of a system call.   Errors: none; what cannot be moved stays. */
void hoop_spread_look(struct hoop_spread *spread, struct hoop_board *board);

#endif
