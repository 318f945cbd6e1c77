// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan check: one problem, or the whole round. */
#include <hoop.h>
#include <pthread.h>
#include <stdatomic.h>
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
    struct timespec begin;
};

/* What all threads share: the right to write, and when the progress was shown last. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static struct timespec shown;
static uint64_t faults_shown;

static double seconds_since(const struct timespec *then)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

static void begin_tally(struct tally *tally)
{
    *tally = (struct tally){.rank_order = true};
    clock_gettime(CLOCK_MONOTONIC, &tally->begin);
}

static bool on_terminal(void)
{
    return isatty(STDERR_FILENO) == 1;
}

static void show_progress(const struct tally *tally, const struct hoop_algo *algo, const struct hoop_problem *problem)
{
    if (!on_terminal() || pthread_mutex_trylock(&writing) != 0)
        return;
    if (seconds_since(&shown) >= 0.1) {
        clock_gettime(CLOCK_MONOTONIC, &shown);
        fprintf(stderr, "\r%-8s %-14s %3d ranks  %6.1f million steps\033[K", algo->name, hoop_coll_name(problem->coll),
                problem->ranks, (double)tally->steps / 1e6);
    }
    pthread_mutex_unlock(&writing);
}

static void clear_progress(void)
{
    if (on_terminal())
        fprintf(stderr, "\r\033[K");
}

static void report(struct tally *tally, const struct hoop_algo *algo, const struct hoop_problem *problem,
                   const struct mode *mode, const struct hoop_check *check)
{
    char name[HOOP_ALGO_TEXT];

    tally->faults++;
    pthread_mutex_lock(&writing);
    if (faults_shown++ >= FAULTS_SHOWN) {
        if (faults_shown == FAULTS_SHOWN + 1)
            fprintf(stderr, "hoop-plan: more faults are counted, but not shown\n");
        pthread_mutex_unlock(&writing);
        return;
    }
    clear_progress();
    hoop_algo_text(name, algo, problem->inter, problem->intra);
    fprintf(stderr, "WRONG %s %s -n %d --root %d --channels %d%s", name, hoop_coll_name(problem->coll), problem->ranks,
            problem->root, problem->channels, problem->in_place ? " --in-place" : "");
    if (problem->groups != NULL) {
        fprintf(stderr, " --groups ");
        for (int g = 0; g < problem->groups->groups; g++)
            fprintf(stderr, "%s%d", g > 0 ? "," : "", problem->groups->first[g + 1] - problem->groups->first[g]);
    }
    fprintf(stderr, ", %d slices, %s:\n      %s\n", check->slices, mode->text, check->fault);
    pthread_mutex_unlock(&writing);
}

/* Run the plans in one mode with 1 to 3 slices. */
static bool prove_mode(struct tally *tally, const struct hoop_algo *algo, const struct hoop_problem *problem,
                       const struct mode *mode, struct hoop_plan *const *plan, bool *again, struct hoop_cost *cost)
{
    for (int slices = 1; slices <= mode->slices; slices++) {
        struct hoop_check check = {.slices = slices, .credit = mode->credit, .borrow = mode->borrow, .again = *again};
        const enum hoop_status status = hoop_plan_check(plan, &check);

        tally->runs++;
        tally->steps += check.steps;
        tally->messages += check.messages;
        if (status == HOOP_ERR_MEMORY) {
            fprintf(stderr, "hoop-plan: %s\n", hoop_last_error(NULL));
            return false;
        }
        *again = status == HOOP_OK;
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
    bool good = plan != NULL, built = false, again = false;

    for (int i = 0; i < MODES && good; i++) {
        if (i == 0 || modes[i].fuse != modes[i - 1].fuse) {
            if (built)
                free_plans(plan, problem.ranks);
            built = good = build_plans(plan, algo, problem, modes[i].fuse);
            again = false;
            tally->plans += good ? (uint64_t)problem.ranks : 0;
        }
        good = good && prove_mode(tally, algo, &problem, &modes[i], plan, &again, cost);
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
    clear_progress();
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

/* One algorithm and collective. *least: the fewest ranks for which there was a problem; 0: there was none. */
static bool prove_pair(struct tally *tally, const struct hoop_algo *algo, enum hoop_coll coll, int most, int *least)
{
    unsigned turn = 0;

    *least = 0;
    for (int ranks = 1; ranks <= most; ranks++) {
        const struct hoop_problem problem = {.coll = coll, .ranks = ranks, .channels = 1};
        bool any;

        if (!(algo->composed ? prove_groups(tally, algo, problem, &turn, &any)
                             : prove_ways(tally, algo, problem, &any)))
            return false;
        if (*least == 0 && any)
            *least = ranks;
    }
    return true;
}

/* The pairs, for threads that each take the next one; told in the order of the list. */
struct job {
    const struct hoop_algo *algo;
    enum hoop_coll coll;
    struct tally tally;
    int least;
    bool good, done;
};

struct round {
    struct job *job;
    int jobs, most;
    _Atomic int next;
    pthread_cond_t finished; /* with `writing`: a job is done */
};

static void *work(void *argument)
{
    struct round *round = argument;
    int i;

    while ((i = atomic_fetch_add(&round->next, 1)) < round->jobs) {
        struct job *job = &round->job[i];
        begin_tally(&job->tally);
        const bool good = prove_pair(&job->tally, job->algo, job->coll, round->most, &job->least);
        pthread_mutex_lock(&writing);
        job->good = good;
        job->done = true;
        pthread_cond_signal(&round->finished);
        pthread_mutex_unlock(&writing);
    }
    return NULL;
}

/* Tell of a job and add its tally to the whole. */
static void tell_job(const struct job *job, int most, struct tally *whole)
{
    const struct tally *tally = &job->tally;

    clear_progress();
    if (job->least > 0)
        printf("%-8s %-14s %d-%d ranks  %8llu plans  %10llu steps  %s%s\n", job->algo->name, hoop_coll_name(job->coll),
               job->least, most, (unsigned long long)tally->plans, (unsigned long long)tally->steps,
               order_text(tally, job->coll), tally->faults > 0 ? "  WRONG" : "");
    fflush(stdout);
    whole->problems += tally->problems;
    whole->plans += tally->plans;
    whole->runs += tally->runs;
    whole->steps += tally->steps;
    whole->messages += tally->messages;
    whole->faults += tally->faults;
}

/* A thread for each core but this one, which only waits and tells. */
static bool prove_jobs(struct round *round, struct tally *whole)
{
    enum { THREADS_MOST = 16 };
    pthread_t thread[THREADS_MOST];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = 0;
    bool good = true;

    while (threads < THREADS_MOST && threads < cores && pthread_create(&thread[threads], NULL, work, round) == 0)
        threads++;
    if (threads == 0)
        work(round);
    pthread_mutex_lock(&writing);
    for (int i = 0; i < round->jobs; i++) {
        while (!round->job[i].done)
            pthread_cond_wait(&round->finished, &writing);
        tell_job(&round->job[i], round->most, whole);
        good = good && round->job[i].good;
    }
    pthread_mutex_unlock(&writing);
    while (threads > 0)
        pthread_join(thread[--threads], NULL);
    return good;
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
    struct round round = {.most = options->most, .finished = PTHREAD_COND_INITIALIZER};
    int algos = 0;

    begin_tally(&tally);
    while (hoop_algo_get(algos) != NULL)
        algos++;
    round.job = calloc((size_t)(algos * HOOP_COLLS), sizeof *round.job);
    if (round.job == NULL) {
        fprintf(stderr, "hoop-plan: no memory\n");
        return 1;
    }
    for (int i = 0; i < algos; i++)
        for (int coll = 0; coll < HOOP_COLLS; coll++)
            if ((options->algo == NULL || options->algo == hoop_algo_get(i)) &&
                (options->coll < 0 || options->coll == coll))
                round.job[round.jobs++] = (struct job){.algo = hoop_algo_get(i), .coll = (enum hoop_coll)coll};
    const bool good = prove_jobs(&round, &tally);
    free(round.job);
    if (!good)
        return 1;
    if (prove_total(&tally, options->most))
        printf("every collective of 1 to %d ranks has an algorithm\n", options->most);
    print_total(&tally);
    return tally.faults == 0 && fflush(stdout) == 0 ? 0 : 1;
}
