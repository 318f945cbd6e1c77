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

/* Keep the author's first mistake, told with the algorithm, the problem and the place. lane NULL: no place. */
__attribute__((format(printf, 3, 4), cold)) void
hoop_build_object(struct hoop_builder *builder, const struct hoop_lane *lane, const char *format, ...);

/* Append a step whose chunks the lane's buffers can have; nothing after an error. */
void hoop_build_append(struct hoop_lane *lane, struct hoop_step step);

/* Is the chunk one that the buffer can have? Grows TMP. */
bool hoop_build_take_chunk(struct hoop_lane *lane, enum hoop_buffer buffer, int chunk);

/* Let the algorithm write the problem as it sees it into an empty builder, whose lanes the caller frees. */
enum hoop_status hoop_build_write(struct hoop_builder *builder, const struct hoop_problem *seen, uint32_t most_lanes);

/* Is chunk c of IN the same memory as chunk c of OUT on this rank? grid and rank as in the plan's own numbers. */
bool hoop_plan_aliased(const struct hoop_problem *problem, uint32_t grid, uint32_t chunk);

/* Find plan->tmp_first once all steps are stored. */
void hoop_plan_find_tmp(struct hoop_plan *plan);

/* Mark what can be done in one pass: sets FORWARD and NO_STORE of the author's steps.
 * Errors: HOOP_ERR_MEMORY; the steps are unchanged then. */
enum hoop_status hoop_plan_fuse(struct hoop_builder *builder);

#endif
