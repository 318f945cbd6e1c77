// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan simulate: runs plans on a virtual network and prints what came out, or a table over ranks and sizes. */
#include <errno.h>
#include <hoop.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_tool.h"

/* More messages than this in one cell of the table take too long. */
static const double cell_most = 8e6;

static struct hoop_problem problem_of(const struct plan_options *options, int ranks)
{
    struct hoop_problem problem;

    read_problem(options, ranks, &problem);
    return problem;
}

/* The wish, with the results of an earlier run, if any, forgotten. */
static struct hoop_simulation wish_of(const struct plan_options *options, size_t bytes)
{
    struct hoop_simulation wish = options->network;

    wish.bytes = bytes;
    return wish;
}

/* ---- one problem ---- */

static bool print_run(const struct plan_options *options, const struct hoop_algo *algo)
{
    const struct hoop_problem problem = problem_of(options, options->ranks);
    struct hoop_simulation it = wish_of(options, options->bytes);
    char name[HOOP_ALGO_TEXT];

    if (hoop_plan_simulate(algo, &problem, &it) != HOOP_OK) {
        fprintf(stderr, "hoop-plan: %s: %s\n", algo->name, hoop_last_error(NULL));
        return false;
    }
    const double busy = it.time > 0 ? 100 * (double)it.port_most / it.bandwidth / it.time : 0;
    hoop_algo_text(name, algo, problem.inter, problem.intra);
    printf("%-8s %14.3f %12" PRIu64 " %12" PRIu64 " %16" PRIu64 " %10" PRIu64 " %14" PRIu64 " %6.1f %14" PRIu64
           " %6" PRIu64 "%s\n",
           name, it.time / 1000, it.steps, it.messages, it.moved, it.links, it.port_most, busy, it.link_most,
           it.memory >> 20, it.symmetric ? "  by symmetry: one rank stands for all" : "");
    return true;
}

static int simulate_one(const struct plan_options *options)
{
    const struct hoop_problem problem = problem_of(options, options->ranks);
    const struct hoop_simulation *network = &options->network;
    const struct hoop_algo *algo;
    bool good = false; /* with all, it is enough that one could be simulated */

    printf("%s of %zu bytes, %d ranks; ports of %g GB/s each way, latency %g ns, %g ns a message, slices of %zu bytes, "
           "%d slots\n",
           hoop_coll_name(problem.coll), options->bytes, options->ranks, network->bandwidth, network->latency,
           network->post, network->frame, network->slots);
    printf("%-8s %14s %12s %12s %16s %10s %14s %6s %14s %6s\n", "plan", "time us", "steps", "messages", "bytes moved",
           "links", "busiest port", "busy %", "busiest link", "MiB");
    if (options->algo)
        return print_run(options, options->algo) && fflush(stdout) == 0 ? 0 : 1;
    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++)
        if (algo->applicable(&problem))
            good = print_run(options, algo) || good;
    return good && fflush(stdout) == 0 ? 0 : 1;
}

/* ---- the table ---- */

static bool affordable(const struct hoop_algo *algo, const struct hoop_problem *problem,
                       const struct hoop_simulation *wish)
{
    const struct hoop_cost cost = algo->cost(problem);

    return problem->ranks * (cost.messages + cost.volume * (double)wish->bytes / (double)wish->frame) <= cell_most;
}

static double simulate_cell(const struct plan_options *options, const struct hoop_algo *algo, int ranks, size_t bytes)
{
    const struct hoop_problem problem = problem_of(options, ranks);
    struct hoop_simulation it = wish_of(options, bytes);

    if (!algo->applicable(&problem) || !affordable(algo, &problem, &it) ||
        hoop_plan_simulate(algo, &problem, &it) != HOOP_OK)
        return -1;
    return it.time / 1000;
}

static void print_row(const struct table *table, size_t size, int n)
{
    int best = -1;

    printf("%10zu %6d", table->size[size], 2 << n);
    for (int a = 0; a < table->algos; a++) {
        const double time = table->time[size][n][a];
        if (time < 0)
            printf(" %13s", "-");
        else
            printf(" %13.2f", time);
        if (time >= 0 && (best < 0 || time < table->time[size][n][best]))
            best = a;
    }
    printf("  %s\n", best < 0 ? "-" : table->algo[best]->name);
}

static int simulate_table(const struct plan_options *options)
{
    static struct table table = {.size = {64, 65536, 1 << 20, 64 << 20}};
    const struct hoop_problem problem = problem_of(options, 2);
    const struct hoop_algo *algo;

    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++)
        if (table.algos < TABLE_ALGOS && algo->applicable(&problem) && (options->algo == NULL || options->algo == algo))
            table.algo[table.algos++] = algo;
    printf("%s, us; ports of %g GB/s each way, latency %g ns, %g ns a message; -: not simulated\n%10s %6s",
           hoop_coll_name(problem.coll), options->network.bandwidth, options->network.latency, options->network.post,
           "bytes", "ranks");
    for (int a = 0; a < table.algos; a++)
        printf(" %13s", table.algo[a]->name);
    printf("  least\n");
    while (table.rows < TABLE_ROWS && 2 << table.rows <= (options->ranks > 1 ? options->ranks : 1024))
        table.rows++;
    for (size_t size = 0; size < TABLE_SIZES; size++)
        for (int n = 0; n < table.rows; n++) {
            for (int a = 0; a < table.algos; a++)
                table.time[size][n][a] = simulate_cell(options, table.algo[a], 2 << n, table.size[size]);
            print_row(&table, size, n);
            fflush(stdout);
        }
    if (options->svg && !plot_table(&table, options))
        return 1;
    return fflush(stdout) == 0 ? 0 : 1;
}

int simulate_plans(const struct plan_options *options)
{
    return options->table ? simulate_table(options) : simulate_one(options);
}
