// SPDX-License-Identifier: BSD-3-Clause
/* Choices by measured time.
 *
 * With HOOP_EFFORT=measure the first calls of a collective, class and size (a power of two) try the best few algorithms by turns; they
 * are ordinary calls on the caller's data. After the last trial the ranks exchange their times, the slowest rank's counts, and so
 * all settle on the same algorithm. Which one a call tries depends only on the calls before it, which are the same on all ranks.
 *
 * Bits do not depend on time: where the order of combining shows, only algorithms that combine in rank order are tried, and used
 * meanwhile.
 *
 * What was settled is wisdom. Rank 0 reads it from HOOP_WISDOM when the communicator is made and tells all, as a table with a byte for
 * every kind of call, and writes it back at the end, together with what others have written meanwhile.
 */
#include "comm/tune.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "dtype/dtype.h"
#include "plan/machine.h"
#include "plan/wisdom.h"

enum {
    KEYS = HOOP_COLLS * HOOP_WISDOM_CLASSES * 2 * HOOP_WISDOM_SIZES,
    CANDIDATES = 4, /* that are tried */
    ROUNDS = 3,     /* the first warms up: it builds the plan and its links */
    TRIALS = 16     /* kinds of calls that may be under trial at the same time */
};

struct trial {
    bool open;
    int key, candidates, calls;
    const struct hoop_algo *candidate[CANDIDATES];
    double least[CANDIDATES]; /* ns */
};

struct hoop_tune {
    bool measure, settling;
    uint8_t settled[KEYS], measured[KEYS]; /* number of the algorithm in the list, from 1; was it measured here? */
    struct trial trial[TRIALS], *running;
    struct hoop_wisdom wisdom; /* rank 0: of the file, until all know it; then what was measured here */
    char path[HOOP_MACHINE_PATH];
};

/* ---- kinds of calls ---- */

static bool order_shows(const struct hoop_comm_call *call)
{
    const bool real = hoop_type_wide(call->type) == HOOP_F32 || call->type == HOOP_F64;
    const bool known = call->op == HOOP_SUM || call->op == HOOP_PROD || call->op == HOOP_AVG;

    if (call->comm->choice.deterministic || call->op >= HOOP_OPS)
        return true;
    return known && real;
}

static enum hoop_wisdom_class class_of(const struct hoop_comm_call *call)
{
    if (!hoop_coll_shape(call->coll)->sums)
        return HOOP_WISDOM_DATA;
    if (!order_shows(call))
        return HOOP_WISDOM_EXACT;
    return hoop_type_wide(call->type) != call->type ? HOOP_WISDOM_NARROW : HOOP_WISDOM_REAL;
}

static int key_of(enum hoop_coll coll, enum hoop_wisdom_class kind, bool in_place, int size)
{
    return (((int)coll * HOOP_WISDOM_CLASSES + (int)kind) * 2 + in_place) * HOOP_WISDOM_SIZES + size;
}

static bool bound(int key, int ranks)
{
    return key / HOOP_WISDOM_SIZES / 2 % HOOP_WISDOM_CLASSES >= HOOP_WISDOM_REAL && ranks > 2;
}

/* The problem as the algorithm gets it; false: it may not do this kind of call. */
static bool fits(const struct hoop_comm *comm, const struct hoop_algo *algo, int key, size_t vector,
                 const struct hoop_problem *problem, struct hoop_problem *its)
{
    *its = hoop_choice_problem(&comm->choice, algo, problem, vector);
    return algo->applicable(its) && hoop_choice_admits(&comm->choice, algo, problem) &&
           (algo->rank_order || !bound(key, comm->ranks));
}

static uint8_t number_of(const struct hoop_algo *algo)
{
    int i = 0;

    while (hoop_algo_get(i) != algo)
        i++;
    return (uint8_t)(i + 1);
}

/* ---- trials ---- */

/* The best few by prediction. */
static void find_candidates(const struct hoop_comm *comm, struct trial *trial, const struct hoop_problem *problem,
                            size_t vector)
{
    const struct hoop_choice *choice = &comm->choice;
    double time[CANDIDATES + 1];
    const struct hoop_algo *algo;
    struct hoop_problem its;

    trial->candidates = 0;
    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++) {
        if (!fits(comm, algo, trial->key, vector, problem, &its))
            continue;
        const double predicted =
            hoop_model_predict(&choice->model, algo, &its, vector, choice->frame, choice->cores).time;
        int at = trial->candidates;
        for (; at > 0 && time[at - 1] > predicted; at--)
            if (at < CANDIDATES) {
                time[at] = time[at - 1];
                trial->candidate[at] = trial->candidate[at - 1];
            }
        if (at < CANDIDATES) {
            time[at] = predicted;
            trial->candidate[at] = algo;
            trial->candidates += trial->candidates < CANDIDATES;
        }
    }
}

static struct trial *find_trial(struct hoop_comm *comm, int key, const struct hoop_problem *problem, size_t vector)
{
    struct hoop_tune *tune = comm->tune;
    struct trial *free = NULL;

    for (int i = 0; i < TRIALS; i++) {
        if (tune->trial[i].open && tune->trial[i].key == key)
            return &tune->trial[i];
        if (!tune->trial[i].open && free == NULL)
            free = &tune->trial[i];
    }
    if (free) {
        *free = (struct trial){.open = true, .key = key};
        find_candidates(comm, free, problem, vector);
    }
    return free;
}

static struct hoop_decision decide(const struct hoop_algo *algo, const struct hoop_problem *its)
{
    return (struct hoop_decision){algo, its->inter, its->intra, HOOP_BY_MEASURE};
}

struct hoop_decision hoop_tune_select(struct hoop_comm *comm, const struct hoop_comm_call *call,
                                      const struct hoop_problem *problem, size_t vector)
{
    struct hoop_tune *tune = comm->tune;
    const struct hoop_decision estimate = hoop_comm_decide(comm, problem, vector, false);
    struct hoop_problem its;

    tune->running = NULL;
    if (tune->settling || call->blocks || estimate.reason != HOOP_BY_COST || call->coll == HOOP_BARRIER)
        return estimate;
    const int key = key_of(call->coll, class_of(call), call->in_place, hoop_wisdom_size(vector));
    const struct hoop_algo *settled = tune->settled[key] ? hoop_algo_get(tune->settled[key] - 1) : NULL;
    if (settled && fits(comm, settled, key, vector, problem, &its))
        return decide(settled, &its);
    if (!tune->measure)
        return estimate;
    struct trial *trial = find_trial(comm, key, problem, vector);
    const struct hoop_algo *next = trial ? trial->candidate[trial->calls % trial->candidates] : NULL;
    if (next && fits(comm, next, key, vector, problem, &its)) {
        tune->running = trial;
        return decide(next, &its);
    }
    return bound(key, comm->ranks) ? hoop_choose_in_order(&comm->choice, problem, vector) : estimate;
}

/* ---- settling ---- */

static enum hoop_status remember(struct hoop_comm *comm, int key, const struct hoop_algo *algo, double ns)
{
    struct hoop_wisdom_line line = {.coll = (enum hoop_coll)(key / HOOP_WISDOM_SIZES / 2 / HOOP_WISDOM_CLASSES),
                                    .kind = (enum hoop_wisdom_class)(key / HOOP_WISDOM_SIZES / 2 % HOOP_WISDOM_CLASSES),
                                    .in_place = key / HOOP_WISDOM_SIZES % 2 != 0,
                                    .size = key % HOOP_WISDOM_SIZES,
                                    .ranks = comm->ranks,
                                    .cores = comm->choice.cores,
                                    .channels = comm->channels,
                                    .slice = comm->choice.frame,
                                    .algo = algo,
                                    .ns = (uint64_t)(ns + 0.5)};

    hoop_groups_text(line.groups, comm->groups);
    comm->tune->settled[key] = number_of(algo);
    comm->tune->measured[key] = 1;
    return hoop_wisdom_put(&comm->tune->wisdom, &line);
}

/* All ranks get the largest times, the same numbers to the bit, and draw the same conclusion. */
static enum hoop_status settle(struct hoop_comm *comm, struct trial *trial)
{
    struct hoop_tune *tune = comm->tune;
    double slowest[CANDIDATES] = {0};
    char plan[sizeof comm->stats.last_plan]; /* of the call that was tried, not of the exchange */
    int best = 0;
    const struct hoop_comm_call exchange = {.comm = comm,
                                            .coll = HOOP_ALL_REDUCE,
                                            .type = HOOP_F64,
                                            .op = HOOP_MAX,
                                            .root = -1,
                                            .count = (size_t)trial->candidates,
                                            .in = trial->least,
                                            .out = slowest};

    memcpy(plan, comm->stats.last_plan, sizeof plan);
    tune->settling = true;
    enum hoop_status status = hoop_comm_run_part(&exchange);
    tune->settling = false;
    memcpy(comm->stats.last_plan, plan, sizeof plan);
    if (status != HOOP_OK)
        return status;
    for (int i = 1; i < trial->candidates; i++)
        if (slowest[i] < slowest[best])
            best = i;
    trial->open = false;
    return remember(comm, trial->key, trial->candidate[best], slowest[best]);
}

enum hoop_status hoop_tune_note(struct hoop_comm *comm, uint64_t ns)
{
    struct trial *trial = comm->tune->running;

    comm->tune->running = NULL;
    if (trial == NULL)
        return HOOP_OK;
    const int i = trial->calls % trial->candidates, round = trial->calls / trial->candidates;
    if (round == 1 || (round > 1 && (double)ns < trial->least[i]))
        trial->least[i] = (double)ns;
    trial->calls++;
    return trial->calls < ROUNDS * trial->candidates ? HOOP_OK : settle(comm, trial);
}

/* ---- wisdom ---- */

static enum hoop_status find_path(struct hoop_comm *comm, const char *word)
{
    struct hoop_tune *tune = comm->tune;

    if (strcmp(word, "auto") == 0)
        return hoop_machine_path("wisdom", tune->path);
    snprintf(tune->path, sizeof tune->path, "%s", word);
    return HOOP_OK;
}

enum hoop_status hoop_tune_open(struct hoop_comm *comm)
{
    const struct hoop_setting_value *wisdom = &comm->settings.value[HOOP_SETTING_WISDOM];
    const bool measure = strcmp(comm->settings.value[HOOP_SETTING_EFFORT].word, "measure") == 0;
    bool missing = false;

    if (comm->ranks == 1 || (!measure && wisdom->empty))
        return HOOP_OK;
    comm->tune = hoop_calloc(1, sizeof *comm->tune);
    if (comm->tune == NULL)
        return HOOP_ERR_MEMORY;
    comm->tune->measure = measure;
    if (comm->rank > 0 || wisdom->empty)
        return HOOP_OK;
    const enum hoop_status status = find_path(comm, wisdom->word);
    const bool may_miss = measure || strcmp(wisdom->word, "auto") == 0;
    return status == HOOP_OK ? hoop_wisdom_load(&comm->tune->wisdom, comm->tune->path, may_miss ? &missing : NULL)
                             : status;
}

enum hoop_status hoop_tune_share(struct hoop_comm *comm)
{
    struct hoop_tune *tune = comm->tune;
    char groups[HOOP_GROUPS_TEXT];
    int algos = 0;

    hoop_groups_text(groups, comm->groups);
    if (tune == NULL || comm->settings.value[HOOP_SETTING_WISDOM].empty)
        return HOOP_OK;
    for (size_t i = 0; i < tune->wisdom.lines; i++) {
        const struct hoop_wisdom_line *line = &tune->wisdom.line[i];
        if (line->ranks == comm->ranks && line->cores == comm->choice.cores && line->channels == comm->channels &&
            line->slice == comm->choice.frame && strcmp(line->groups, groups) == 0)
            tune->settled[key_of(line->coll, line->kind, line->in_place, line->size)] = number_of(line->algo);
    }
    hoop_wisdom_free(&tune->wisdom);
    tune->settling = true;
    const enum hoop_status status = hoop_comm_run_part(&(struct hoop_comm_call){.comm = comm,
                                                                                .coll = HOOP_BROADCAST,
                                                                                .type = HOOP_U8,
                                                                                .op = HOOP_OPS,
                                                                                .root = 0,
                                                                                .count = KEYS,
                                                                                .in = tune->settled,
                                                                                .out = tune->settled});
    tune->settling = false;
    while (hoop_algo_get(algos))
        algos++;
    for (int key = 0; key < KEYS; key++)
        if (tune->settled[key] > algos)
            tune->settled[key] = 0;
    return status == HOOP_OK ? HOOP_OK : hoop_comm_conclude(comm, status);
}

void hoop_tune_save(struct hoop_comm *comm)
{
    const struct hoop_tune *tune = comm->tune;
    struct hoop_wisdom all = {NULL, 0, 0};
    bool missing;

    if (tune == NULL || tune->path[0] == 0 || tune->wisdom.lines == 0)
        return;
    enum hoop_status status = hoop_wisdom_load(&all, tune->path, &missing);
    for (size_t i = 0; i < tune->wisdom.lines && status == HOOP_OK; i++)
        status = hoop_wisdom_put(&all, &tune->wisdom.line[i]);
    if (status == HOOP_OK)
        status = hoop_wisdom_save(&all, tune->path);
    if (status != HOOP_OK)
        hoop_log(HOOP_LOG_WARN, comm->rank, "what was measured is not kept: %s", hoop_error_text());
    hoop_wisdom_free(&all);
}

void hoop_tune_free(struct hoop_comm *comm)
{
    if (comm->tune)
        hoop_wisdom_free(&comm->tune->wisdom);
    hoop_free(comm->tune);
    comm->tune = NULL;
}

/* ---- explaining ---- */

static uint64_t ns_of(const struct hoop_tune *tune, enum hoop_coll coll, const struct hoop_tuned *told, int size)
{
    for (size_t i = 0; i < tune->wisdom.lines; i++) {
        const struct hoop_wisdom_line *line = &tune->wisdom.line[i];
        if (line->coll == coll && line->size == size && line->in_place == told->in_place &&
            strcmp(hoop_wisdom_class_name(line->kind), told->kind) == 0)
            return line->ns;
    }
    return 0;
}

int hoop_tune_tell(const struct hoop_comm *comm, enum hoop_coll coll, size_t vector,
                   struct hoop_tuned to[HOOP_TUNED_MOST])
{
    const struct hoop_tune *tune = comm->tune;
    const int size = hoop_wisdom_size(vector);
    int told = 0;

    for (int i = 0; tune && i < 2 * HOOP_WISDOM_CLASSES; i++) {
        const int key = key_of(coll, (enum hoop_wisdom_class)(i / 2), i % 2, size);
        struct hoop_tuned *entry = &to[told];

        *entry = (struct hoop_tuned){.kind = hoop_wisdom_class_name((enum hoop_wisdom_class)(i / 2)),
                                     .in_place = i % 2 != 0};
        for (int t = 0; t < TRIALS; t++)
            if (tune->trial[t].open && tune->trial[t].key == key) {
                entry->trials = tune->trial[t].calls;
                entry->wanted = ROUNDS * tune->trial[t].candidates;
            }
        if (tune->settled[key]) {
            entry->algo = hoop_algo_get(tune->settled[key] - 1);
            entry->here = tune->measured[key] != 0;
            entry->ns = entry->here ? ns_of(tune, coll, entry, size) : 0;
        }
        told += entry->wanted > 0 || entry->algo;
    }
    return told;
}
