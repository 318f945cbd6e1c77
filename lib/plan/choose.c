// SPDX-License-Identifier: BSD-3-Clause
/* Choice of the algorithm: HOOP_ALGO if it serves the collective, the flat exchange for small vectors, else the least
 * predicted time. */
#include "plan/choose.h"

#include <float.h>
#include <sched.h>
#include <string.h>

#include "base/status.h"

enum hoop_status hoop_choice_set(struct hoop_choice *choice, const struct hoop_settings *settings)
{
    const char *algo = settings->value[HOOP_SETTING_ALGO].word;
    const bool automatic = strcmp(algo, "auto") == 0;

    choice->flat = hoop_algo_find("flat");
    choice->forced = automatic ? NULL : hoop_algo_find(algo);
    choice->frame = hoop_setting_size(settings, HOOP_SETTING_SLICE) / 64 * 64;
    choice->flat_max = hoop_setting_size(settings, HOOP_SETTING_FLAT_MAX);
    if (choice->forced == NULL && !automatic)
        return hoop_fail(HOOP_ERR_SETUP,
                         "HOOP_ALGO=%s: there is no such algorithm. hoop-plan list names them; auto chooses", algo);
    return HOOP_OK;
}

enum hoop_status hoop_choice_read(struct hoop_choice *choice)
{
    struct hoop_settings settings;
    struct hoop_choice read = {.model = hoop_model_builtin(), .cores = 1};
    cpu_set_t set;

    enum hoop_status status = hoop_settings_read(&settings);
    if (status == HOOP_OK)
        status = hoop_choice_set(&read, &settings);
    if (status == HOOP_OK && !settings.value[HOOP_SETTING_MODEL].empty)
        status = hoop_model_load(&read.model, settings.value[HOOP_SETTING_MODEL].word);
    if (status != HOOP_OK)
        return status;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        read.cores = CPU_COUNT(&set);
    *choice = read;
    return HOOP_OK;
}

size_t hoop_choice_published(const struct hoop_problem *problem, size_t vector)
{
    return hoop_coll_shape(problem->coll)->in == HOOP_OWN_BLOCK ? vector / (size_t)problem->ranks : vector;
}

struct hoop_decision hoop_choose(const struct hoop_choice *choice, const struct hoop_problem *problem, size_t vector)
{
    struct hoop_decision best = {choice->flat, HOOP_BY_COST};
    const struct hoop_algo *algo;
    double least = DBL_MAX;

    if (choice->forced && choice->forced->applicable(problem))
        return (struct hoop_decision){choice->forced, HOOP_BY_FORCE};
    if (hoop_choice_published(problem, vector) <= choice->flat_max)
        return (struct hoop_decision){choice->flat, HOOP_BY_SIZE};
    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++) {
        if (!algo->applicable(problem))
            continue;
        const double time =
            hoop_model_predict(&choice->model, algo, problem, vector, choice->frame, choice->cores).time;
        if (time < least) {
            least = time;
            best.algo = algo;
        }
    }
    return best;
}
