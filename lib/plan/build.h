// SPDX-License-Identifier: BSD-3-Clause
/* Inside of the builder: what the author's calls fill in, shared by build.c and fuse.c. */
#ifndef HOOP_PLAN_BUILD_H
#define HOOP_PLAN_BUILD_H

#include "hoop/plan.h"

struct hoop_lane {
    struct hoop_builder *builder;
    struct hoop_step *step;
    uint32_t number, steps, room;
};

struct hoop_builder {
    const struct hoop_algo *algo;
    const struct hoop_problem *problem; /* as the author sees it */
    enum hoop_status status;            /* the first error; its text is the thread's last error */
    uint32_t grid, tmp, lanes, most_lanes;
    struct hoop_lane spare; /* what the author gets when there are no more lanes */
    struct hoop_lane lane[HOOP_MAX_LANES];
};

/* Is chunk c of IN the same memory as chunk c of OUT on this rank? grid and rank as in the plan's own numbers. */
bool hoop_plan_aliased(const struct hoop_problem *problem, uint32_t grid, uint32_t chunk);

/* Find plan->tmp_first once all steps are stored. */
void hoop_plan_find_tmp(struct hoop_plan *plan);

/* Mark what can be done in one pass: sets FORWARD and NO_STORE of the author's steps.
 * Errors: HOOP_ERR_MEMORY; the steps are unchanged then. */
enum hoop_status hoop_plan_fuse(struct hoop_builder *builder);

#endif
