// SPDX-License-Identifier: BSD-3-Clause
/* Inner side of the hierarchical algorithm: which parts it is made of, and their figures. */
#ifndef HOOP_ALGO_HIER_H
#define HOOP_ALGO_HIER_H

#include "hoop/plan.h"

enum hoop_hier_side { HOOP_HIER_INSIDE, HOOP_HIER_ACROSS };

static inline int hoop_hier_size(const struct hoop_groups *groups, int group)
{
    return groups->first[group + 1] - groups->first[group];
}

/* The algorithm of a part: the one asked for where it serves, else a usual one. */
const struct hoop_algo *hoop_hier_part(const struct hoop_problem *problem, enum hoop_hier_side side,
                                       enum hoop_coll coll, int ranks);

/* Does each rank carry its share across, not the leaders all? */
bool hoop_hier_shared(const struct hoop_problem *problem);

/* Chunks of a part's vector; of the whole vector where leaders cross. */
int hoop_hier_grid(const struct hoop_problem *problem, enum hoop_hier_side side, enum hoop_coll coll, int ranks);
int hoop_hier_leaders_grid(const struct hoop_problem *problem);

bool hoop_hier_applicable(const struct hoop_problem *problem);
struct hoop_cost hoop_hier_cost(const struct hoop_problem *problem);
struct hoop_crossing hoop_hier_cross(const struct hoop_problem *problem);

#endif
