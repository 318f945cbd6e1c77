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
    char name[HOOP_ALGO_TEXT];

    if (tally->faults++ == FAULTS_SHOWN)
        fprintf(stderr, "hoop-plan: more faults are counted, but not shown\n");
    if (tally->faults > FAULTS_SHOWN)
        return;
    clear_progress(tally);
    hoop_algo_text(name, algo, problem->inter, problem->intra);
    fprintf(stderr, "WRONG %s %s -n %d --root %d --channels %d%s", name, hoop_coll_name(problem->coll), problem->ranks,
            problem->root, problem->channels, problem->in_place ? " --in-place" : "");
    if (problem->groups != NULL) {
        fprintf(stderr, " --groups ");
        for (int g = 0; g < problem->groups->groups; g++)
            fprintf(stderr, "%s%d", g > 0 ? "," : "", problem->groups->first[g + 1] - problem->groups->first[g]);
    }
    fprintf(stderr, ", %d slices, %s:\n      %s\n", check->slices, mode->text, check->fault);
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
    struct hoop_problem problem;
    struct hoop_cost cost = {0};
    struct tally tally;
    bool good = true;

    if (!read_problem(options, options->ranks, &problem))
        return 1;
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

/* In place or not, all channels and roots of a problem. *any: it was one for the algorithm. */
static bool prove_ways(struct tally *tally, const struct hoop_algo *algo, struct hoop_problem problem, bool *any)
{
    struct hoop_cost cost;

    *any = false;
    for (int in_place = 0; in_place <= last_place(problem.coll); in_place++)
        for (int channels = 1; channels <= (problem.ranks <= CHANNELS_UP_TO ? CHANNELS_MOST : 1); channels++) {
            problem.in_place = in_place != 0;
            problem.channels = channels;
            if (!algo->applicable(&problem))
                continue;
            *any = true;
            if (!prove_roots(tally, algo, problem, &cost))
                return false;
        }
    return true;
}

/* The next two parts by turns that can solve the problem; false: none can. */
static bool choose_parts(const struct hoop_algo *algo, struct hoop_problem *problem, unsigned *turn)
{
    unsigned algos = 1; /* and the composing algorithm's own choice */

    while (hoop_algo_get((int)algos - 1) != NULL)
        algos++;
    for (unsigned i = 0; i < algos * algos; i++) {
        ++*turn;
        problem->inter = hoop_algo_get((int)(*turn % algos));
        problem->intra = hoop_algo_get((int)(*turn / algos % algos));
        if (algo->applicable(problem))
            return true;
    }
    return false;
}

/* A composing algorithm: over several groupings of the ranks, each with other parts. */
static bool prove_groups(struct tally *tally, const struct hoop_algo *algo, struct hoop_problem problem, unsigned *turn,
                         bool *any)
{
    static const char *const sizes[] = {"2", "4", "3", "2,1", "3,2,1", "8", "1,4", "5", "16", "7,9"};
    enum { SIZES = sizeof sizes / sizeof sizes[0], ALL_UP_TO = 20 };
    bool good = true;

    *any = false;
    for (int i = 0; i < SIZES && good; i++) {
        struct hoop_groups *groups;
        bool one = false;

        if (problem.ranks > ALL_UP_TO && i != problem.ranks % SIZES)
            continue;
        if (hoop_groups_cut(&groups, problem.ranks, sizes[i]) != HOOP_OK)
            return false;
        problem.groups = groups;
        if (choose_parts(algo, &problem, turn))
            good = prove_ways(tally, algo, problem, &one);
        *any = *any || one;
        hoop_groups_free(groups);
    }
    return good;
}

static bool prove_pair(struct tally *tally, const struct hoop_algo *algo, enum hoop_coll coll, int most)
{
    const struct tally before = *tally;
    unsigned turn = 0;
    int least = 0;

    tally->rank_order = true;
    for (int ranks = 1; ranks <= most; ranks++) {
        const struct hoop_problem problem = {.coll = coll, .ranks = ranks, .channels = 1};
        bool any;

        if (!(algo->composed ? prove_groups(tally, algo, problem, &turn, &any)
                             : prove_ways(tally, algo, problem, &any)))
            return false;
        if (least == 0 && any)
            least = ranks;
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
