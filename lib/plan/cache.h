// SPDX-License-Identifier: BSD-3-Clause
/* Plan cache of one communicator and rank: plans by algorithm and problem. A hit takes no lock and no memory. */
#ifndef HOOP_PLAN_CACHE_H
#define HOOP_PLAN_CACHE_H

#include "hoop/plan.h"

/* A zeroed struct is an empty cache. One thread at a time. */
struct hoop_plan_cache {
    struct hoop_plan **slot; /* open hash, NULL where empty */
    uint32_t slots, plans;
    uint64_t built; /* misses so far */
};

/* The fused plan of the problem, built if it is not there yet.
 *
 * plan   receives it; it belongs to the cache and stays valid until hoop_plan_cache_clear.
 * Errors: as hoop_plan_build; the cache is as before then. */
enum hoop_status hoop_plan_cache_get(struct hoop_plan_cache *cache, const struct hoop_algo *algo,
                                     const struct hoop_problem *problem, const struct hoop_plan **plan);

/* Free all plans; the cache is empty and usable again. */
void hoop_plan_cache_clear(struct hoop_plan_cache *cache);

#endif
