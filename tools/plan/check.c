// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan check: one problem, or the whole round. */
#include <hoop.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "plan_tool.h"

enum { SLICES_MOST = 3, ROOTS_ALL_UP_TO = 16, CHANNELS_UP_TO = 16, CHANNELS_MOST = 3, FAULTS_SHOWN = 20 };

/* How plans are executed in a proof. What the author wrote is looked at once; the fused plan, which is what runs, in
 * all ways and slices. */
static const struct mode {
    const char *text;
    bool fuse, borrow;
    int credit, slices; /* 1 to so many */
} modes[] = {
    {"as written, one slot a link, buffers lent", false, true, 1, 1},
    {"fused, one slot a link, sends staged", true, false, 1, SLICES_MOST},
    {"fused, one slot a link, buffers lent", true, true, 1, SLICES_MOST},
    {"fused, two slots a link, received frames kept until they can go on", true, true, 2, SLICES_MOST},
};
enum { MODES = sizeof modes / sizeof modes[0] };

struct tally {
    uint64_t problems, plans, runs, steps, messages, faults;
    bool rank_order; /* of all that were proved */
    struct timespec begin, shown;
    bool terminal;
};

static double seconds_since(const struct timespec *then)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

static void begin_tally(struct tally *tally)
{
    *tally = (struct tally){.rank_order = true, .terminal = isatty(STDERR_FILENO) == 1};
    clock_gettime(CLOCK_MONOTONIC, &tally->begin);
    tally->shown = tally->begin;
}

static void show_progress(struct tally *tally, const struct hoop_algo *algo, const struct hoop_problem *problem)
{
    if (!tally->terminal || seconds_since(&tally->shown) < 0.1)
        return;
    clock_gettime(CLOCK_MONOTONIC, &tally->shown);
    fprintf(stderr, "\r%-8s %-14s %3d ranks  %6.1f million steps\033[K", algo->name, hoop_coll_name(problem->coll),
            problem->ranks, (double)tally->steps / 1e6);
}

static void clear_progress(const struct tally *tally)
{
    if (tally->terminal)
        fprintf(stderr, "\r\033[K");
}

static void report(struct tally *tally, const struct hoop_algo *algo, const struct hoop_problem *problem,
                   const struct mode *mode, const struct hoop_check *check)
{
    if (tally->faults++ == FAULTS_SHOWN)
        fprintf(stderr, "hoop-plan: more faults are counted, but not shown\n");
    if (tally->faults > FAULTS_SHOWN)
        return;
    clear_progress(tally);
    fprintf(stderr, "WRONG %s %s -n %d --root %d --channels %d%s, %d slices, %s:\n      %s\n", algo->name,
            hoop_coll_name(problem->coll), problem->ranks, problem->root, problem->channels,
            problem->in_place ? " --in-place" : "", check->slices, mode->text, check->fault);
}

/* Run the plans in one mode with 1 to 3 slices. */
static bool prove_mode(struct tally *tally, const struct hoop_algo *algo, const struct hoop_problem *problem,
                       const struct mode *mode, struct hoop_plan *const *plan, struct hoop_cost *cost)
{
    for (int slices = 1; slices <= mode->slices; slices++) {
        struct hoop_check check = {.slices = slices, .credit = mode->credit, .borrow = mode->borrow};
        const enum hoop_status status = hoop_plan_check(plan, &check);

        tally->runs++;
        tally->steps += check.steps;
        tally->messages += check.messages;
        if (status == HOOP_ERR_MEMORY) {
            fprintf(stderr, "hoop-plan: %s\n", hoop_last_error(NULL));
            return false;
        }
        if (status != HOOP_OK)
            report(tally, algo, problem, mode, &check);
        else
            tally->rank_order = tally->rank_order && check.rank_order;
        *cost = check.cost;
    }
    return true;
}

/* Prove one problem in all modes. false: it could not be done at all. */
static bool prove(struct tally *tally, const struct hoop_algo *algo, struct hoop_problem problem,
                  struct hoop_cost *cost)
{
    struct hoop_plan **plan = calloc((size_t)problem.ranks, sizeof(struct hoop_plan *));
    bool good = plan != NULL, built = false;

    for (int i = 0; i < MODES && good; i++) {
        if (i == 0 || modes[i].fuse != modes[i - 1].fuse) {
            if (built)
                free_plans(plan, problem.ranks);
            built = good = build_plans(plan, algo, problem, modes[i].fuse);
            tally->plans += good ? (uint64_t)problem.ranks : 0;
        }
        good = good && prove_mode(tally, algo, &problem, &modes[i], plan, cost);
    }
    if (built)
        free_plans(plan, problem.ranks);
    free(plan);
    tally->problems++;
    show_progress(tally, algo, &problem);
    return good;
}

/* Prove for the roots: all of them for few ranks, else the first, the middle and the last. */
static bool prove_roots(struct tally *tally, const struct hoop_algo *algo, struct hoop_problem problem,
                        struct hoop_cost *cost)
{
    const int ranks = problem.ranks, roots = is_rooted(problem.coll) ? ranks : 1;

    for (problem.root = 0; problem.root < roots; problem.root++) {
        if (ranks > ROOTS_ALL_UP_TO && problem.root != 0 && problem.root != ranks / 2 && problem.root != ranks - 1)
            continue;
        if (!prove(tally, algo, problem, cost))
            return false;
    }
    return true;
}

/* In place or not makes two cases; the barrier has one. */
static int last_place(enum hoop_coll coll)
{
    return coll == HOOP_BARRIER ? 0 : 1;
}

static const char *order_text(const struct tally *tally, enum hoop_coll coll)
{
    if (!hoop_coll_shape(coll)->sums)
        return "no sums";
    return tally->rank_order ? "sums in rank order" : "sums in its own order";
}

static void print_total(const struct tally *tally)
{
    printf("%s: %llu problems, %llu plans, %llu runs, %llu steps, %llu messages, %llu faults, %.2f seconds\n",
           tally->faults == 0 ? "proved" : "WRONG", (unsigned long long)tally->problems,
           (unsigned long long)tally->plans, (unsigned long long)tally->runs, (unsigned long long)tally->steps,
           (unsigned long long)tally->messages, (unsigned long long)tally->faults, seconds_since(&tally->begin));
}

int check_one(const struct plan_options *options)
{
    struct hoop_problem problem = {
        .coll = (enum hoop_coll)options->coll, .ranks = options->ranks, .channels = options->channels};
    struct hoop_cost cost = {0};
    struct tally tally;
    bool good = true;

    begin_tally(&tally);
    const int last = last_place(problem.coll);
    for (int in_place = options->in_place ? last : 0; in_place <= last && good; in_place++) {
        problem.in_place = in_place != 0;
        if (options->root == ALL_ROOTS) {
            good = prove_roots(&tally, options->algo, problem, &cost);
        } else {
            problem.root = options->root;
            good = prove(&tally, options->algo, problem, &cost);
        }
    }
    clear_progress(&tally);
    if (!good)
        return 1;
    printf("%s %s of %d ranks: a rank sends at most %g messages, %g vectors, and adds %g; chain of %g messages; %s\n",
           options->algo->name, hoop_coll_name(problem.coll), problem.ranks, cost.messages, cost.volume, cost.reduced,
           cost.depth, order_text(&tally, problem.coll));
    print_total(&tally);
    return tally.faults == 0 && fflush(stdout) == 0 ? 0 : 1;
}

/* ---- the whole round ---- */

static bool prove_pair(struct tally *tally, const struct hoop_algo *algo, enum hoop_coll coll, int most)
{
    const struct tally before = *tally;
    struct hoop_cost cost;
    int least = 0;

    tally->rank_order = true;
    for (int ranks = 1; ranks <= most; ranks++)
        for (int in_place = 0; in_place <= last_place(coll); in_place++)
            for (int channels = 1; channels <= (ranks <= CHANNELS_UP_TO ? CHANNELS_MOST : 1); channels++) {
                const struct hoop_problem problem = {
                    .coll = coll, .ranks = ranks, .in_place = in_place != 0, .channels = channels};

                if (!algo->applicable(&problem))
                    continue;
                if (least == 0)
                    least = ranks;
                if (!prove_roots(tally, algo, problem, &cost))
                    return false;
            }
    clear_progress(tally);
    if (least > 0)
        printf("%-8s %-14s %d-%d ranks  %8llu plans  %10llu steps  %s%s\n", algo->name, hoop_coll_name(coll), least,
               most, (unsigned long long)(tally->plans - before.plans),
               (unsigned long long)(tally->steps - before.steps), order_text(tally, coll),
               tally->faults > before.faults ? "  WRONG" : "");
    fflush(stdout);
    return true;
}

/* Is there an algorithm for every collective and number of ranks? */
static bool prove_total(struct tally *tally, int most)
{
    bool total = true;

    for (int coll = 0; coll < HOOP_COLLS; coll++)
        for (int ranks = 1; ranks <= most; ranks++) {
            const struct hoop_problem problem = {.coll = (enum hoop_coll)coll, .ranks = ranks, .channels = 1};
            bool any = false;

            for (int i = 0; hoop_algo_get(i) != NULL && !any; i++)
                any = hoop_algo_get(i)->applicable(&problem);
            if (!any) {
                fprintf(stderr, "WRONG no algorithm does %s of %d ranks\n", hoop_coll_name(problem.coll), ranks);
                tally->faults++;
                total = false;
            }
        }
    return total;
}

int check_all(const struct plan_options *options)
{
    struct tally tally;

    begin_tally(&tally);
    for (int i = 0; hoop_algo_get(i) != NULL; i++)
        for (int coll = 0; coll < HOOP_COLLS; coll++) {
            if (options->algo != NULL && options->algo != hoop_algo_get(i))
                continue;
            if (options->coll >= 0 && options->coll != coll)
                continue;
            if (!prove_pair(&tally, hoop_algo_get(i), (enum hoop_coll)coll, options->most))
                return 1;
        }
    if (prove_total(&tally, options->most))
        printf("every collective of 1 to %d ranks has an algorithm\n", options->most);
    print_total(&tally);
    return tally.faults == 0 && fflush(stdout) == 0 ? 0 : 1;
}
