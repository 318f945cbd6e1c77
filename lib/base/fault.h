// SPDX-License-Identifier: BSD-3-Clause
/* Fault points: places (faults.def) where a test can let this process die, or dawdle, or something break, at a visit of its choice. They exist only in a build
 * configured with --enable-faults; in any other they are no code at all. */
#ifndef HOOP_BASE_FAULT_H
#define HOOP_BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum hoop_fault {
#define FAULT(name, breaks, text) HOOP_FAULT_##name,
#include "base/faults.def"
#undef FAULT
    HOOP_FAULTS_COUNT
};

#ifdef HOOP_FAULTS
#define HOOP_FAULT_POINT(name) ((void)hoop_fault_visit(HOOP_FAULT_##name))
/* The same, where what breaks is a call: true if it is to fail. */
#define HOOP_FAULT_FAILS(name) hoop_fault_visit(HOOP_FAULT_##name)
/* The same, where it is a connected socket, which ends as if the network, or the peer, had ended it. */
#define HOOP_FAULT_CUTS(name, sock) hoop_fault_cut(HOOP_FAULT_##name, sock)

enum hoop_fault_deed { HOOP_FAULT_KILL, HOOP_FAULT_DAWDLE, HOOP_FAULT_BREAK, HOOP_FAULT_DEEDS };

enum { HOOP_FAULT_DAWDLE_MS = 20 };

/* Count a visit; at the one that was set, do the deed: SIGKILL to this process, or a pause, or return true. Any thread. */
bool hoop_fault_visit(enum hoop_fault point);
void hoop_fault_cut(enum hoop_fault point, int sock);

/* From now on: do the deed at that visit (1, 2, …) of the point. Counts begin anew. Before any thread visits. */
void hoop_fault_set(enum hoop_fault point, uint64_t visit, enum hoop_fault_deed deed);

/* How often the point was visited. */
uint64_t hoop_fault_visits(enum hoop_fault point);
#else
#define HOOP_FAULT_POINT(name)      ((void)0)
#define HOOP_FAULT_FAILS(name)      false
#define HOOP_FAULT_CUTS(name, sock) ((void)0)
#endif

#endif
