// SPDX-License-Identifier: BSD-3-Clause
/* The choice of the algorithm: a pure function of values that all ranks agreed on. */
#ifndef HOOP_PLAN_CHOOSE_H
#define HOOP_PLAN_CHOOSE_H

#include "base/settings.h"
#include "hoop/plan.h"

enum hoop_reason {
    HOOP_BY_FORCE,  /* HOOP_ALGO names it */
    HOOP_BY_SIZE,   /* small enough for the flat exchange, HOOP_FLAT_MAX */
    HOOP_BY_COST,   /* least predicted time */
    HOOP_BY_MEASURE /* least time when tried, or its turn to be tried: HOOP_EFFORT, HOOP_WISDOM */
};

struct hoop_decision {
    const struct hoop_algo *algo, *inter, *intra; /* the latter NULL unless algo composes */
    enum hoop_reason reason;
};

/* Fill all but cores, groups and model from the settings. Errors: HOOP_ERR_SETUP (no such algorithm, or one that combines in an order
 * that HOOP_DETERMINISTIC forbids). */
enum hoop_status hoop_choice_set(struct hoop_choice *choice, const struct hoop_settings *settings);

/* The problem as the algorithm would get it: with the choice's groups, and with the parts that cost least, or are forced. */
struct hoop_problem hoop_choice_problem(const struct hoop_choice *choice, const struct hoop_algo *algo,
                                        const struct hoop_problem *problem, size_t vector);

/* May the algorithm do this problem, as far as the order of combining goes? */
bool hoop_choice_admits(const struct hoop_choice *choice, const struct hoop_algo *algo,
                        const struct hoop_problem *problem);

/* From how many bytes of the whole vector on ranks of one host work in each other's memory, if all buffers lie where all can reach
 * them; SIZE_MAX: never. */
size_t hoop_choice_direct_least(const struct hoop_choice *choice, int ranks);

/* Bytes that a rank would write into its flat slot, for a whole vector of `vector` bytes. */
size_t hoop_choice_published(const struct hoop_problem *problem, size_t vector);

/* The algorithm for a call of `vector` bytes, and why. Never fails: flat serves everything. Earlier algorithms win ties. */
struct hoop_decision hoop_choose(const struct hoop_choice *choice, const struct hoop_problem *problem, size_t vector);

/* The same among algorithms with rank_order; HOOP_ALGO counts only if it names one of them. */
struct hoop_decision hoop_choose_in_order(const struct hoop_choice *choice, const struct hoop_problem *problem,
                                          size_t vector);

#endif
