// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan simulate: runs plans on a virtual network and prints what came out, or a table over ranks and sizes. */
#include <errno.h>
#include <hoop.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "plan_tool.h"

/* More messages than this in one cell of the table take too long. */
static const double cell_most = 1e6;

static struct hoop_problem problem_of(const struct plan_options *options, int ranks)
{
    struct hoop_problem problem;

    read_problem(options, ranks, &problem);
    return problem;
}

/* The wish, with the results of an earlier run, if any, forgotten. */
static struct hoop_simulation wish_of(const struct plan_options *options, const struct hoop_network *network,
                                      size_t bytes)
{
    struct hoop_simulation wish = options->network;

    wish.network = network;
    wish.bytes = bytes;
    return wish;
}

/* ---- one problem ---- */

/* Results of the algorithms, for the second table. */
struct runs {
    struct hoop_simulation run[TABLE_COLUMNS];
    char name[TABLE_COLUMNS][HOOP_ALGO_TEXT];
    int runs;
};

static double busy(const struct hoop_simulation *it, uint64_t bytes, double bandwidth)
{
    return it->time > 0 ? 100 * (double)bytes / bandwidth / it->time : 0;
}

static void print_stood(const struct hoop_simulation *it)
{
    if (it->symmetric && it->stood == 1)
        printf("  by symmetry: one rank stands for all");
    else if (it->symmetric)
        printf("  by symmetry: %d ranks stand for all", it->stood);
    printf("\n");
}

static bool print_run(const struct plan_options *options, const struct hoop_network *network,
                      const struct hoop_algo *algo, const struct hoop_problem *problem, struct runs *runs)
{
    struct hoop_simulation it = wish_of(options, network, options->bytes);
    char name[HOOP_ALGO_TEXT];

    hoop_algo_text(name, algo, problem->inter, problem->intra);
    if (hoop_plan_simulate(algo, problem, &it) != HOOP_OK) {
        fprintf(stderr, "hoop-plan: %s: %s\n", name, hoop_last_error(NULL));
        return false;
    }
    printf("%-20s %14.3f %12" PRIu64 " %12" PRIu64 " %16" PRIu64 " %10" PRIu64 " %14" PRIu64 " %6.1f %14" PRIu64
           " %6" PRIu64,
           name, it.time / 1000, it.steps, it.messages, it.moved, it.links, it.port_most,
           busy(&it, it.port_most, network->level[network->levels - 1].bandwidth), it.link_most, it.memory >> 20);
    print_stood(&it);
    if (runs->runs < TABLE_COLUMNS) {
        runs->run[runs->runs] = it;
        memcpy(runs->name[runs->runs++], name, sizeof name);
    }
    return true;
}

/* What crossed each level, and how busy its busiest uplink was. */
static void print_levels(const struct hoop_network *network, const struct runs *runs)
{
    if (network->levels == 1)
        return;
    printf("\n%-20s %-10s %12s %16s %14s %6s\n", "plan", "level", "messages", "bytes moved", "busiest uplink",
           "busy %");
    for (int i = 0; i < runs->runs; i++)
        for (int k = 0; k < network->levels; k++) {
            const struct hoop_level_load *load = &runs->run[i].load[k];
            printf("%-20s %-10s %12" PRIu64 " %16" PRIu64 " %14" PRIu64 " %6.1f\n", runs->name[i],
                   network->level[k].name, load->messages, load->moved, load->most,
                   busy(&runs->run[i], load->most, network->level[k].bandwidth));
        }
}

/* The pairs that hier is shown with where none is asked for: few messages, least data across, rings. */
static const char *const pairs[] = {"hier(tree,tree)", "hier(rhd,twoshot)", "hier(ring,ring)"};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

/* All algorithms, or the one asked for; those that compose with several pairs of parts. */
static int list_columns(const struct plan_options *options, const struct hoop_problem *problem, struct column *column)
{
    const struct hoop_algo *algo;
    int columns = 0;

    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++)
        for (int k = 0; k < (algo->composed && options->inter == NULL ? PAIRS : 1); k++) {
            struct column it = {algo, options->inter, options->intra, ""};
            struct hoop_problem its = *problem;

            if (algo->composed && options->inter == NULL)
                hoop_algo_read(pairs[k], &it.algo, &it.inter, &it.intra);
            its.inter = it.inter;
            its.intra = it.intra;
            if ((options->algo != NULL && options->algo != algo) || !algo->applicable(&its) || columns == TABLE_COLUMNS)
                continue;
            hoop_algo_text(it.name, it.algo, it.inter, it.intra);
            column[columns++] = it;
        }
    return columns;
}

static int simulate_one(const struct plan_options *options)
{
    static struct runs runs;
    struct hoop_problem problem = problem_of(options, options->ranks);
    const struct hoop_network network = network_of(options, options->ranks);
    const struct hoop_simulation *wish = &options->network;
    struct column column[TABLE_COLUMNS] = {{options->algo, options->inter, options->intra, ""}};
    const int columns = options->algo ? 1 : list_columns(options, &problem, column);
    char levels[256];
    bool good = false; /* with all, it is enough that one could be simulated */

    network_text(&network, levels, sizeof levels);
    printf("%s of %zu bytes, %d ranks; %s (GB/s, ns), %g ns a message, slices of %zu bytes, %d slots\n",
           hoop_coll_name(problem.coll), options->bytes, options->ranks, levels, wish->post, wish->frame, wish->slots);
    printf("%-20s %14s %12s %12s %16s %10s %14s %6s %14s %6s\n", "plan", "time us", "steps", "messages", "bytes moved",
           "links", "busiest port", "busy %", "busiest link", "MiB");
    for (int i = 0; i < columns; i++) {
        problem.inter = column[i].inter;
        problem.intra = column[i].intra;
        good = print_run(options, &network, column[i].algo, &problem, &runs) || good;
        fflush(stdout);
    }
    print_levels(&network, &runs);
    return good && fflush(stdout) == 0 ? 0 : 1;
}

/* ---- the table ---- */

/* A cell that is too large as a whole may do if some ranks can stand for all. */
static double simulate_cell(const struct plan_options *options, const struct column *column, int ranks, size_t bytes)
{
    const struct hoop_network network = network_of(options, ranks);
    struct hoop_problem problem = problem_of(options, ranks);
    struct hoop_simulation it = wish_of(options, &network, bytes);

    problem.inter = column->inter;
    problem.intra = column->intra;
    if (!column->algo->applicable(&problem))
        return -1;
    const struct hoop_cost cost = column->algo->cost(&problem);
    if (ranks * (cost.messages + cost.joined + cost.volume * (double)bytes / (double)it.frame) > cell_most)
        it.symmetry = 2;
    it.most = (uint64_t)cell_most;
    return hoop_plan_simulate(column->algo, &problem, &it) == HOOP_OK ? it.time / 1000 : -1;
}

static void print_row(const struct table *table, size_t size, int n)
{
    int best = -1;

    printf("%10zu %6d", table->size[size], 2 << n);
    for (int a = 0; a < table->columns; a++) {
        const double time = table->time[size][n][a];
        const int width = (int)strlen(table->column[a].name) > 13 ? (int)strlen(table->column[a].name) : 13;
        if (time < 0)
            printf(" %*s", width, "-");
        else
            printf(" %*.2f", width, time);
        if (time >= 0 && (best < 0 || time < table->time[size][n][best]))
            best = a;
    }
    printf("  %s\n", best < 0 ? "-" : table->column[best].name);
}

static int simulate_table(const struct plan_options *options)
{
    static struct table table = {.size = {64, 65536, 1 << 20, 64 << 20}};
    const int most = options->ranks > 1 ? options->ranks : 1024;
    const struct hoop_network network = network_of(options, most);
    const struct hoop_problem problem = problem_of(options, most);
    char levels[256];

    table.columns = list_columns(options, &problem, table.column);
    network_text(&network, levels, sizeof levels);
    printf("%s, us; up to %s (GB/s, ns), %g ns a message; -: not simulated\n%10s %6s", hoop_coll_name(problem.coll),
           levels, options->network.post, "bytes", "ranks");
    for (int a = 0; a < table.columns; a++)
        printf(" %13s", table.column[a].name);
    printf("  least\n");
    while (table.rows < TABLE_ROWS && 2 << table.rows <= most)
        table.rows++;
    for (size_t size = 0; size < TABLE_SIZES; size++)
        for (int n = 0; n < table.rows; n++) {
            for (int a = 0; a < table.columns; a++)
                table.time[size][n][a] = simulate_cell(options, &table.column[a], 2 << n, table.size[size]);
            print_row(&table, size, n);
            fflush(stdout);
        }
    if (options->svg && !plot_table(&table, options))
        return 1;
    return fflush(stdout) == 0 ? 0 : 1;
}

/* ---- what explain adds ---- */

/* Candidates on the levels; times in us, negative: too large. */
struct levels {
    const struct hoop_network *network;
    struct column column[TABLE_COLUMNS];
    double time[TABLE_COLUMNS];
    int columns, best;
};

static void text_levels(const struct levels *it)
{
    char words[256];

    network_text(it->network, words, sizeof words);
    printf("simulated  on %s (GB/s, ns), us; -: too large\n", words);
    for (int i = 0; i < it->columns; i++)
        if (it->time[i] < 0)
            printf("  %-20s %12s\n", it->column[i].name, "-");
        else
            printf("%c %-20s %12.3f\n", i == it->best ? '*' : ' ', it->column[i].name, it->time[i]);
}

/* A further field of the object that explains. */
static void json_levels(const struct levels *it)
{
    printf(",\"simulated\":{\"levels\":[");
    for (int i = 0; i < it->network->levels; i++) {
        const struct hoop_level *level = &it->network->level[i];
        printf("%s{\"name\":", i > 0 ? "," : "");
        hoop_json_string(stdout, level->name);
        printf(",\"count\":%d,\"bandwidth\":%g,\"latency_ns\":%g}", level->count, level->bandwidth, level->latency);
    }
    printf("],\"candidates\":[");
    for (int i = 0; i < it->columns; i++) {
        printf("%s{\"algorithm\":\"%s\",\"ns\":", i > 0 ? "," : "", it->column[i].name);
        if (it->time[i] < 0)
            printf("null}");
        else
            printf("%.0f}", it->time[i] * 1000);
    }
    if (it->best < 0)
        printf("],\"least\":null}");
    else
        printf("],\"least\":\"%s\"}", it->column[it->best].name);
}

void simulate_levels(const struct plan_options *options, const struct hoop_choice *choice)
{
    const struct hoop_network network = network_of(options, options->ranks);
    const struct hoop_problem problem = problem_of(options, options->ranks);
    struct levels it = {.network = &network, .best = -1};
    struct plan_options all = *options;

    all.algo = all.inter = all.intra = NULL;
    all.network.frame = choice->frame;
    all.network.post = choice->model.post;
    all.network.copy = choice->model.copy;
    all.network.reduce = choice->model.reduce;
    it.columns = list_columns(&all, &problem, it.column);
    for (int i = 0; i < it.columns; i++) {
        it.time[i] = simulate_cell(&all, &it.column[i], options->ranks, options->bytes);
        if (it.time[i] >= 0 && (it.best < 0 || it.time[i] < it.time[it.best]))
            it.best = i;
    }
    (options->json ? json_levels : text_levels)(&it);
}

int simulate_plans(const struct plan_options *options)
{
    return options->table ? simulate_table(options) : simulate_one(options);
}
