// SPDX-License-Identifier: BSD-3-Clause
/* The planner's explanation of a choice. */
#ifndef HOOP_PLAN_EXPLAIN_H
#define HOOP_PLAN_EXPLAIN_H

#include "hoop/plan.h"

/* How long calls of the same collective, size and algorithm took on this rank. */
struct hoop_measured {
    uint64_t calls; /* 0: none were measured */
    uint64_t least_ns, mean_ns;
};

/* As hoop_plan_explain, with what was measured of plans, measured[0], and of work in each other's memory, measured[1] (NULL: there is
 * no communicator that could have). */
enum hoop_status hoop_explain_write(const struct hoop_choice *choice, const struct hoop_problem *problem, size_t bytes,
                                    const struct hoop_measured *measured, bool json, char *text, size_t size);

#endif
