// SPDX-License-Identifier: BSD-3-Clause
/* hoop-bench --calibrate: measure the constants of the cost model on this machine.
 *
 * Every algorithm runs several collectives of several sizes, on two stages: by as many ranks as there are cores, each with one,
 * and by all ranks where they share cores (if they do not by themselves, all on one core). In each of several rounds every
 * algorithm gets its turn, on a communicator that HOOP_ALGO forces to it. The constants are those that explain all times
 * best (fit.c); how much they differ between rounds is shown with them.
 */
#include "calibrate.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 4 << 20 };
#define MOVED_MOST (64.0 * 1048576) /* bytes that all ranks may move in one call */

static const size_t sizes[] = {256, 16384, 131072, 1048576, LARGEST};
static const char *const names[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"};

struct calibration {
    const struct options *options; /* sizes and memory of the buffers */
    struct hoop_comm *comm;        /* of all ranks */
    int rank, ranks, cores;        /* rank 0 keeps the books */
    size_t frame;
    struct trial *trial;
    int trials, rounds, round, next; /* next: of this round */
};

/* ---- cores ---- */

/* The cores that a communicator knows of. */
static int cores_of(const struct hoop_comm *comm)
{
    char *text = must_have(malloc(HOOP_EXPLAIN_TEXT));
    int cores = 1;

    must(hoop_explain(comm, "barrier", 0, 1, text, HOOP_EXPLAIN_TEXT), "explaining", comm);
    const char *at = strstr(text, "\"cores\":");
    if (at)
        cores = (int)strtol(at + strlen("\"cores\":"), NULL, 10);
    free(text);
    return cores > 0 ? cores : 1;
}

/* Bring all ranks onto one core. False, on all ranks, if one could not go there. */
static bool crowd_together(struct hoop_comm *comm, cpu_set_t *before)
{
    int32_t cpu = 0, moved;
    cpu_set_t one;

    CPU_ZERO(before);
    if (sched_getaffinity(0, sizeof(*before), before) != 0)
        CPU_SET(0, before);
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET((size_t)cpu, before))
        cpu++;
    must(hoop_broadcast(&cpu, &cpu, 1, HOOP_I32, 0, comm, NULL), "telling the core", comm);
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    moved = sched_setaffinity(0, sizeof(one), &one) == 0;
    must(hoop_all_reduce(&moved, &moved, 1, HOOP_I32, HOOP_MIN, comm, NULL), "agreeing on the core", comm);
    return moved != 0;
}

/* ---- measuring ---- */

/* The trial whose turn it is: made in the first round, met again in the others. */
static struct trial *next_trial(struct calibration *c, const struct trial *wanted)
{
    if (c->next == TRIALS_MOST)
        return NULL;
    struct trial *trial = &c->trial[c->next++];
    if (c->next > c->trials) {
        *trial = *wanted;
        fit_weigh(trial, c->frame);
        c->trials = c->next;
    }
    return trial;
}

static void measure_size(struct calibration *c, struct workspace *w, struct problem *p, const struct trial *wanted)
{
    const struct hoop_cost cost = wanted->algo->cost(&wanted->problem);
    struct trial *trial;

    if (cost.volume * (double)wanted->bytes * p->ranks > MOVED_MOST || (trial = next_trial(c, wanted)) == NULL)
        return;
    p->count = problem_count(p, wanted->bytes);
    trial->time[c->round] = 1e9 * measure_quartile(w, p);
}

/* All collectives and sizes that the algorithm does. */
static void measure_algo(struct calibration *c, struct hoop_comm *base, const struct hoop_algo *algo)
{
    struct hoop_comm *comm = NULL;
    struct workspace workspace;

    setenv("HOOP_ALGO", algo->name, 1);
    must(hoop_comm_split(base, 0, 0, &comm), "a communicator for one algorithm", NULL);
    workspace_open(&workspace, c->options, comm);
    workspace.gate = base; /* the same for all algorithms: how ranks leave a barrier shows in the call behind it */
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct problem p = {.comm = comm,
                            .rank = hoop_comm_rank(comm),
                            .ranks = hoop_comm_size(comm),
                            .type = HOOP_F32,
                            .op = HOOP_SUM};
        struct trial wanted = {.algo = algo, .cores = cores_of(comm)};

        wanted.problem =
            (struct hoop_problem){.coll = (enum hoop_coll)hoop_coll_find(names[i]), .ranks = p.ranks, .channels = 1};
        for (p.collective = collectives; strcmp(p.collective->name, names[i]) != 0;)
            p.collective++;
        for (size_t s = 0; algo->applicable(&wanted.problem) && s < sizeof(sizes) / sizeof(*sizes); s++) {
            wanted.bytes = sizes[s];
            measure_size(c, &workspace, &p, &wanted);
        }
    }
    workspace_close(&workspace);
    must(hoop_comm_destroy(comm), "parting", NULL);
}

/* All algorithms by the first `members` ranks, on a communicator of their own, which knows where they run now; the others wait. */
static void measure_all(struct calibration *c, int members)
{
    const struct hoop_algo *algo;
    struct hoop_comm *base = NULL;

    unsetenv("HOOP_ALGO");
    must(hoop_comm_split(c->comm, c->rank < members ? 0 : HOOP_NO_COLOR, c->rank, &base), "splitting", NULL);
    for (int i = 0; base && (algo = hoop_algo_get(i)) != NULL; i++)
        measure_algo(c, base, algo);
    must(hoop_comm_destroy(base), "parting", NULL);
    must(hoop_barrier(c->comm, NULL), "waiting for those who measure", c->comm);
}

/* As many ranks as there are cores. */
static void measure_apart(struct calibration *c)
{
    const int members = c->ranks < c->cores ? c->ranks : c->cores;

    if (members > 1)
        measure_all(c, members);
}

static void measure_crowded(struct calibration *c)
{
    cpu_set_t before;

    if (c->ranks > c->cores) {
        measure_all(c, c->ranks);
        return;
    }
    if (crowd_together(c->comm, &before))
        measure_all(c, c->ranks);
    sched_setaffinity(0, sizeof(before), &before);
}

/* ---- the result ---- */

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Of the rounds, too, a low one. */
static void choose_times(struct calibration *c)
{
    for (int i = 0; i < c->trials; i++) {
        double sorted[ROUNDS_MOST];

        memcpy(sorted, c->trial[i].time, sizeof(sorted));
        qsort(sorted, (size_t)c->rounds, sizeof(*sorted), by_size);
        c->trial[i].chosen = sorted[c->rounds / 4];
    }
}

static double constant_of(const struct hoop_model *model, const struct hoop_constant *constant)
{
    return *(const double *)(const void *)((const char *)model + constant->offset);
}

static void print_constants(const struct calibration *c, const struct hoop_model *model, FILE *to)
{
    const struct hoop_model standard = hoop_model_builtin();
    struct hoop_constant constant;

    fprintf(to, "# %-12s %12s %12s %12s %12s  %s\n", "constant", "measured", "least", "most", "built in", "of what");
    for (int i = 0; hoop_constant_get(i, &constant); i++) {
        double of_round[ROUNDS_MOST] = {0};

        for (int round = 0; round < c->rounds; round++) {
            const struct hoop_model by_round = fit_model(c->trial, c->trials, round);
            of_round[round] = constant_of(&by_round, &constant);
        }
        qsort(of_round, (size_t)c->rounds, sizeof(*of_round), by_size);
        fprintf(to, "# %-12s %12.3f %12.3f %12.3f %12.3f  %s, %s\n", constant.name, constant_of(model, &constant),
                of_round[0], of_round[c->rounds - 1], constant_of(&standard, &constant), constant.unit, constant.help);
    }
}

static void print_judgement(const char *whose, const struct judgement *judgement)
{
    const struct trial *chosen = judgement->worst_chosen, *fastest = judgement->worst_fastest;

    printf(
        "# %s constants: predictions are off by a factor of %.2f on average; of %d choices %d are the fastest that was "
        "measured, and all together take %.2f times as long",
        whose, judgement->error, judgement->choices, judgement->best, judgement->mean);
    if (chosen)
        printf(", at worst %.2f times (%s of %zu bytes, %d ranks on %d cores: %s instead of %s)", judgement->worst,
               hoop_coll_name(chosen->problem.coll), chosen->bytes, chosen->problem.ranks, chosen->cores,
               chosen->algo->name, fastest->algo->name);
    printf("\n");
}

static void save(const struct calibration *c, const struct hoop_model *model, const char *path)
{
    char own[512], *remarks = NULL;
    size_t size = 0;
    FILE *file = must_have(open_memstream(&remarks, &size));

    fprintf(file, "# hoop-bench --calibrate, %d ranks on %d cores, %d rounds of %d trials\n", c->ranks, c->cores,
            ROUNDS, c->trials);
    print_constants(c, model, file);
    fclose(file);
    if (*path == '\0') {
        must(hoop_model_path(own, sizeof(own)), "the place of the file", NULL);
        path = own;
    }
    must(hoop_model_save(model, path, remarks), "saving", NULL);
    printf("# saved as %s\n# in force with HOOP_MODEL=%s\n", path, path == own ? "auto" : path);
    free(remarks);
}

/* On rank 0. */
static void conclude(struct calibration *c)
{
    const struct hoop_model standard = hoop_model_builtin();
    struct judgement judgement;

    choose_times(c);
    const struct hoop_model model = fit_model(c->trial, c->trials, -1);
    print_constants(c, &model, stdout);
    judgement = fit_judge(c->trial, c->trials, &standard, c->frame);
    print_judgement("built-in", &judgement);
    judgement = fit_judge(c->trial, c->trials, &model, c->frame);
    print_judgement("measured", &judgement);
    save(c, &model, c->options->calibrate);
}

/* What the communicators that are made from here on shall be like. */
static void set_stage(void)
{
    unsetenv("HOOP_MODEL");
    unsetenv("HOOP_SLICE");
    setenv("HOOP_FLAT_MAX", "0", 1);
    setenv("HOOP_CHANNELS", "1", 1);
    setenv("HOOP_DETERMINISTIC", "0", 1);
}

void calibrate(const struct options *options, struct hoop_comm *comm)
{
    struct options buffers = *options;
    struct calibration c = {
        .options = &buffers, .comm = comm, .rank = hoop_comm_rank(comm), .ranks = hoop_comm_size(comm)};
    char machine[256];

    if (c.ranks < 2) {
        fputs("hoop-bench: --calibrate needs 2 ranks or more, best more than there are cores: hooprun -n 4 hoop-bench "
              "--calibrate\n",
              stderr);
        exit(2);
    }
    buffers.most = LARGEST;
    c.cores = cores_of(comm);
    c.frame = 128 << 10;
    c.rounds = options->iterations == 0            ? ROUNDS
               : options->iterations < ROUNDS_MOST ? options->iterations
                                                   : ROUNDS_MOST;
    c.trial = must_have(calloc(TRIALS_MOST, sizeof(*c.trial)));
    hoop_machine_text(machine, sizeof(machine));
    set_stage();
    if (c.rank == 0)
        printf("# hoop-bench --calibrate: %d ranks on %d cores of %s\n", c.ranks, c.cores, machine);
    for (c.round = 0; c.round < c.rounds; c.round++) {
        c.next = 0;
        measure_apart(&c);
        measure_crowded(&c);
        if (c.rank == 0)
            printf("# round %d of %d: %d trials\n", c.round + 1, c.rounds, c.trials);
        fflush(stdout);
    }
    if (c.rank == 0)
        conclude(&c);
    free(c.trial);
}
