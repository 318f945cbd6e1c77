// SPDX-License-Identifier: BSD-3-Clause
/* Plan cache: an open hash of plans with linear probing, at most half full. Plans are never dropped one by one, so
 * there are no gaps to care for. */
#include "plan/cache.h"

#include "base/alloc.h"

enum { SLOTS_FIRST = 32 };

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
}

static uint64_t hash_problem(const struct hoop_algo *algo, const struct hoop_problem *problem)
{
    uint64_t hash = mix(0, (uint64_t)(uintptr_t)algo);

    hash = mix(hash, (uint64_t)(uintptr_t)problem->inter ^ (uint64_t)(uintptr_t)problem->intra << 20);
    hash = mix(hash, (uint64_t)problem->ranks << 32 | (uint32_t)problem->rank);
    return mix(hash, (uint64_t)problem->root << 16 | (uint64_t)problem->channels << 8 | (uint64_t)problem->coll << 1 |
                         (uint64_t)problem->in_place);
}

static bool same_problem(const struct hoop_problem *a, const struct hoop_problem *b)
{
    return a->coll == b->coll && a->ranks == b->ranks && a->rank == b->rank && a->root == b->root &&
           a->in_place == b->in_place && a->channels == b->channels && a->groups == b->groups &&
           a->orders == b->orders && a->inter == b->inter && a->intra == b->intra;
}

/* The slot of the plan, or the empty one where it belongs. The table has empty slots. */
static uint32_t find(const struct hoop_plan_cache *cache, const struct hoop_algo *algo,
                     const struct hoop_problem *problem)
{
    uint32_t i = (uint32_t)hash_problem(algo, problem) & (cache->slots - 1);

    while (cache->slot[i] != NULL && !(cache->slot[i]->algo == algo && same_problem(&cache->slot[i]->problem, problem)))
        i = (i + 1) & (cache->slots - 1);
    return i;
}

static enum hoop_status grow(struct hoop_plan_cache *cache)
{
    struct hoop_plan_cache wider = {.slots = cache->slots == 0 ? SLOTS_FIRST : 2 * cache->slots};

    wider.slot = hoop_calloc(wider.slots, sizeof *wider.slot);
    if (wider.slot == NULL)
        return HOOP_ERR_MEMORY;
    for (uint32_t i = 0; i < cache->slots; i++)
        if (cache->slot[i] != NULL)
            wider.slot[find(&wider, cache->slot[i]->algo, &cache->slot[i]->problem)] = cache->slot[i];
    hoop_free(cache->slot);
    cache->slot = wider.slot;
    cache->slots = wider.slots;
    return HOOP_OK;
}

enum hoop_status hoop_plan_cache_get(struct hoop_plan_cache *cache, const struct hoop_algo *algo,
                                     const struct hoop_problem *problem, const struct hoop_plan **plan)
{
    struct hoop_problem key = *problem; /* as the builder stores it */
    enum hoop_status status = HOOP_OK;

    if (!hoop_coll_shape(key.coll)->rooted)
        key.root = 0;
    if (key.coll == HOOP_BARRIER)
        key.in_place = false;
    if (cache->slots == 0)
        status = grow(cache);
    if (status != HOOP_OK)
        return status;
    uint32_t i = find(cache, algo, &key);
    if (cache->slot[i] == NULL) {
        if (2 * (cache->plans + 1) > cache->slots) {
            status = grow(cache);
            if (status != HOOP_OK)
                return status;
            i = find(cache, algo, &key);
        }
        status = hoop_plan_build(&cache->slot[i], algo, &key, true);
        if (status != HOOP_OK)
            return status;
        cache->plans++;
        cache->built++;
    }
    *plan = cache->slot[i];
    return HOOP_OK;
}

void hoop_plan_cache_clear(struct hoop_plan_cache *cache)
{
    for (uint32_t i = 0; i < cache->slots; i++)
        hoop_plan_free(cache->slot[i]);
    hoop_free(cache->slot);
    *cache = (struct hoop_plan_cache){0};
}
