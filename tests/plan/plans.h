// SPDX-License-Identifier: BSD-3-Clause
/* All plans of a problem at once, for the tests. */
#ifndef HOOP_TESTS_PLANS_H
#define HOOP_TESTS_PLANS_H

#include <stdlib.h>

#include "hoop/plan.h"

enum { PLANS_MOST = 256 };

static inline bool plans_rooted(enum hoop_coll coll)
{
    return coll == HOOP_REDUCE || coll == HOOP_BROADCAST || coll == HOOP_GATHER || coll == HOOP_SCATTER;
}

/* Build the plans of all ranks; false: none is left. */
static inline bool plans_build(struct hoop_plan **plan, const struct hoop_algo *algo, struct hoop_problem problem,
                               bool fuse)
{
    for (problem.rank = 0; problem.rank < problem.ranks; problem.rank++)
        if (hoop_plan_build(&plan[problem.rank], algo, &problem, fuse) != HOOP_OK) {
            while (problem.rank-- > 0)
                hoop_plan_free(plan[problem.rank]);
            return false;
        }
    return true;
}

static inline void plans_free(struct hoop_plan **plan, int ranks)
{
    for (int i = 0; i < ranks; i++)
        hoop_plan_free(plan[i]);
}

#endif
