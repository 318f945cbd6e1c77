// SPDX-License-Identifier: BSD-3-Clause
/* Fault points: places (faults.def) where a test can let this process die, or dawdle, at a visit of its choice. They exist only in a build
 * configured with --enable-faults; in any other they are no code at all. */
#ifndef HOOP_BASE_FAULT_H
#define HOOP_BASE_FAULT_H

#include <stdint.h>

enum hoop_fault {
#define FAULT(name, text) HOOP_FAULT_##name,
#include "base/faults.def"
#undef FAULT
    HOOP_FAULTS_COUNT
};

#ifdef HOOP_FAULTS
#define HOOP_FAULT_POINT(name) hoop_fault_visit(HOOP_FAULT_##name)

enum hoop_fault_deed { HOOP_FAULT_KILL, HOOP_FAULT_DAWDLE, HOOP_FAULT_DEEDS };

enum { HOOP_FAULT_DAWDLE_MS = 20 };

/* Count a visit; at the one that was set, do the deed: SIGKILL to this process, or a pause. Any thread. */
void hoop_fault_visit(enum hoop_fault point);

/* From now on: do the deed at that visit (1, 2, …) of the point. Counts begin anew. Before any thread visits. */
void hoop_fault_set(enum hoop_fault point, uint64_t visit, enum hoop_fault_deed deed);

/* How often the point was visited. */
uint64_t hoop_fault_visits(enum hoop_fault point);
#else
#define HOOP_FAULT_POINT(name) ((void)0)
#endif

#endif
