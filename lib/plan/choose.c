// SPDX-License-Identifier: BSD-3-Clause
/* Choice of the algorithm: HOOP_ALGO if it serves the collective, the flat exchange for small vectors, else the least
 * predicted time. With HOOP_DETERMINISTIC only algorithms are looked at that combine in rank order; of two ranks all do,
 * since a op b is b op a to the bit. Between hosts a message is dear, and the flat exchange has most: it is weighed like any. */
#include "plan/choose.h"

#include <float.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "plan/model.h"

enum {
    DIRECT_LEAST = 1024, /* bytes; below, a vector is copied as soon as an address is read */
    SLICE = 128 * 1024
};

/* Does the algorithm combine anything in an order of its own? */
static bool reorders(const struct hoop_algo *algo)
{
    struct hoop_problem problem = {.channels = 1};

    if (algo->rank_order)
        return false;
    for (int coll = 0; coll < HOOP_COLLS; coll++)
        for (problem.ranks = 3; problem.ranks <= 16; problem.ranks++) {
            problem.coll = (enum hoop_coll)coll;
            if (hoop_coll_shape(problem.coll)->sums && algo->applicable(&problem))
                return true;
        }
    return false;
}

static enum hoop_status forbid(const struct hoop_algo *forced)
{
    const struct hoop_algo *algo;
    char names[256] = "";
    size_t used = 0;

    for (int i = 0; (algo = hoop_algo_get(i)) != NULL && used < sizeof names; i++)
        if (algo->rank_order)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s, ", algo->name);
    return hoop_fail(
        HOOP_ERR_SETUP,
        "HOOP_ALGO=%s and HOOP_DETERMINISTIC=1 exclude each other: %s combines the ranks' parts in another "
        "order than theirs. Give HOOP_ALGO=%sor auto, or HOOP_DETERMINISTIC=0",
        forced->name, forced->name, names);
}

enum hoop_status hoop_choice_set(struct hoop_choice *choice, const struct hoop_settings *settings)
{
    const char *algo = settings->value[HOOP_SETTING_ALGO].word;
    const bool automatic = strcmp(algo, "auto") == 0;

    choice->flat = hoop_algo_find("flat");
    choice->forced = choice->inter = choice->intra = NULL;
    if (!automatic)
        hoop_algo_read(algo, &choice->forced, &choice->inter, &choice->intra);
    choice->frame =
        settings->value[HOOP_SETTING_SLICE].empty ? SLICE : hoop_setting_size(settings, HOOP_SETTING_SLICE) / 64 * 64;
    choice->flat_max = hoop_setting_size(settings, HOOP_SETTING_FLAT_MAX);
    choice->direct_min =
        settings->value[HOOP_SETTING_DIRECT_MIN].empty ? 0 : hoop_setting_size(settings, HOOP_SETTING_DIRECT_MIN);
    choice->stage = hoop_setting_size(settings, HOOP_SETTING_STAGE);
    choice->deterministic = hoop_setting_number(settings, HOOP_SETTING_DETERMINISTIC) > 0;
    if (choice->forced == NULL && !automatic)
        return hoop_fail(HOOP_ERR_SETUP,
                         "HOOP_ALGO=%s: there is no such algorithm. hoop-plan list names them; auto chooses", algo);
    return choice->deterministic && choice->forced && reorders(choice->forced) ? forbid(choice->forced) : HOOP_OK;
}

bool hoop_choice_admits(const struct hoop_choice *choice, const struct hoop_algo *algo,
                        const struct hoop_problem *problem)
{
    return !choice->deterministic || algo->rank_order || problem->ranks <= 2 || !hoop_coll_shape(problem->coll)->sums;
}

enum hoop_status hoop_choice_read(struct hoop_choice *choice)
{
    struct hoop_settings settings;
    struct hoop_choice read = {.model = hoop_model_builtin(), .cores = 1};
    cpu_set_t set;

    enum hoop_status status = hoop_settings_read(&settings);
    if (status == HOOP_OK)
        status = hoop_choice_set(&read, &settings);
    if (status == HOOP_OK)
        status = hoop_model_choose(&read.model, settings.value[HOOP_SETTING_MODEL].word, NULL, 0);
    if (status != HOOP_OK)
        return status;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        read.cores = CPU_COUNT(&set);
    *choice = read;
    return HOOP_OK;
}

/* It takes one meeting more than the flat slots, which is dear where ranks have to take turns on the cores. */
size_t hoop_choice_direct_least(const struct hoop_choice *choice, int ranks)
{
    if (choice->forced && choice->forced != choice->flat && choice->forced != hoop_algo_find("twoshot"))
        return SIZE_MAX;
    if (choice->direct_min > 0)
        return choice->direct_min;
    return choice->cores < ranks ? choice->flat_max + 1 : DIRECT_LEAST;
}

size_t hoop_choice_published(const struct hoop_problem *problem, size_t vector)
{
    return hoop_coll_shape(problem->coll)->in == HOOP_OWN_BLOCK ? vector / (size_t)problem->ranks : vector;
}

static double predict(const struct hoop_choice *choice, const struct hoop_algo *algo,
                      const struct hoop_problem *problem, size_t vector)
{
    return hoop_model_predict(&choice->model, algo, problem, vector, choice->frame, choice->cores).time;
}

/* Costs of parts add up, so the best inside and the best across can be looked for one after the other. */
static void find_part(const struct hoop_choice *choice, const struct hoop_algo *algo, struct hoop_problem *problem,
                      const struct hoop_algo **part, size_t vector)
{
    const struct hoop_algo *candidate, *best = NULL;
    double least = DBL_MAX;

    for (int i = 0; (candidate = hoop_algo_get(i)) != NULL; i++) {
        *part = candidate;
        if (!algo->applicable(problem))
            continue;
        const double time = predict(choice, algo, problem, vector);
        if (time < least) {
            least = time;
            best = candidate;
        }
    }
    *part = best;
}

struct hoop_problem hoop_choice_problem(const struct hoop_choice *choice, const struct hoop_algo *algo,
                                        const struct hoop_problem *problem, size_t vector)
{
    struct hoop_problem its = *problem;

    its.groups = choice->groups;
    its.inter = its.intra = NULL;
    if (!algo->composed || !algo->applicable(&its))
        return its;
    if (algo == choice->forced && choice->inter != NULL) {
        its.inter = choice->inter;
        its.intra = choice->intra;
        return its;
    }
    find_part(choice, algo, &its, &its.intra, vector);
    find_part(choice, algo, &its, &its.inter, vector);
    return its;
}

static struct hoop_decision decide(const struct hoop_algo *algo, const struct hoop_problem *problem,
                                   enum hoop_reason reason)
{
    return (struct hoop_decision){algo, problem->inter, problem->intra, reason};
}

static struct hoop_decision choose(const struct hoop_choice *choice, const struct hoop_problem *problem, size_t vector,
                                   bool in_order)
{
    struct hoop_decision best = {.algo = choice->flat, .reason = HOOP_BY_COST};
    double least = DBL_MAX;

    if (choice->forced) {
        const struct hoop_problem its = hoop_choice_problem(choice, choice->forced, problem, vector);
        if (choice->forced->applicable(&its) && hoop_choice_admits(choice, choice->forced, problem) &&
            (!in_order || choice->forced->rank_order))
            return decide(choice->forced, &its, HOOP_BY_FORCE);
    }
    if (!choice->far && hoop_choice_published(problem, vector) <= choice->flat_max)
        return (struct hoop_decision){.algo = choice->flat, .reason = HOOP_BY_SIZE};
    for (int i = 0; hoop_algo_get(i) != NULL; i++) {
        const struct hoop_algo *algo = hoop_algo_get(i);
        const struct hoop_problem its = hoop_choice_problem(choice, algo, problem, vector);
        if (!algo->applicable(&its) || !hoop_choice_admits(choice, algo, problem) || (in_order && !algo->rank_order))
            continue;
        const double time = predict(choice, algo, &its, vector);
        if (time < least) {
            least = time;
            best = decide(algo, &its, HOOP_BY_COST);
        }
    }
    return best;
}

struct hoop_decision hoop_choose(const struct hoop_choice *choice, const struct hoop_problem *problem, size_t vector)
{
    return choose(choice, problem, vector, false);
}

struct hoop_decision hoop_choose_in_order(const struct hoop_choice *choice, const struct hoop_problem *problem,
                                          size_t vector)
{
    return choose(choice, problem, vector, true);
}
