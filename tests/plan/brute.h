// SPDX-License-Identifier: BSD-3-Clause
/* A second opinion on plans: they are executed on real arrays of integers, in a random order of lanes, by rules that
 * are written down here a second time and share nothing with the checker, the binder or the library's executor. */
#ifndef HOOP_TESTS_BRUTE_H
#define HOOP_TESTS_BRUTE_H

#include "hoop/plan.h"

struct brute {
    size_t count; /* elements of the vector, or of a rank's block */
    size_t slices;
    size_t credit; /* messages a link holds */
    bool borrow;   /* sends that are not staged are read by the receiver where they lie */
    bool keep;     /* FORWARD: receive only when the send can follow, in one pass */
    bool mix;      /* the operator is commutative but not associative, so another order shows */
    uint64_t seed; /* of the data and of the order of lanes */
    char fault[256];
};

/* Execute the plans of all ranks; false: brute->fault says what went wrong. */
bool brute_run(struct hoop_plan *const *plan, struct brute *brute);

#endif
