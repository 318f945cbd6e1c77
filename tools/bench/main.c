// SPDX-License-Identifier: BSD-3-Clause
#include "calibrate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACE_BYTES = 160 };

/* What a loop over all rows carries along. */
struct bench {
    const struct options *options;
    struct hoop_comm *comm, *ordered; /* ordered: with HOOP_DETERMINISTIC=1; NULL: nobody asked */
    int rank, ranks;
    struct workspace place, ordered_place;
    struct totals totals;
    FILE *json;
};

/* One line a rank: where it runs. Every rank tells its own; malloc'd. */
static char *gather_places(struct hoop_comm *comm, bool on_device)
{
    struct hoop_device device = {.size = sizeof(device), .bus = "0000:00:00", .name = "CPU"};
    int ordinal = 0;
    const int rank = hoop_comm_rank(comm), ranks = hoop_comm_size(comm);
    char own[PLACE_BYTES] = "", host[64] = "?";
    char *all = malloc((size_t)ranks * PLACE_BYTES + 1), *to = all;

    if (all == NULL)
        must(HOOP_ERR_MEMORY, "no memory for the names of the ranks", NULL);
    gethostname(host, sizeof(host) - 1);
    if (on_device)
        must(hoop_comm_device(comm, &ordinal), "hoop_comm_device", comm);
    if (on_device)
        must(hoop_device_info(ordinal, &device), "hoop_device_info", NULL);
    snprintf(own, sizeof(own), "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%.10s] %.48s\n", rank, 0,
             (int)getpid(), host, ordinal, device.bus, device.name);
    must(hoop_all_gather(own, all, PLACE_BYTES, HOOP_U8, comm, NULL), "gathering the names of the ranks", comm);
    for (int i = 0; i < ranks; i++) { /* to one string */
        const size_t length = strnlen(all + (size_t)i * PLACE_BYTES, PLACE_BYTES);

        memmove(to, all + (size_t)i * PLACE_BYTES, length);
        to += length;
    }
    *to = '\0';
    return all;
}

static size_t next_size(const struct options *options, size_t bytes)
{
    const size_t next = options->factor > 1 ? bytes * options->factor : bytes + options->step;

    return next / (options->factor > 1 ? options->factor : 1) < bytes || next <= bytes ? SIZE_MAX : next;
}

static int count_sizes(const struct options *options)
{
    int count = 0;

    if (options->collective->shape == SHAPE_NONE)
        return 1;
    for (size_t bytes = options->least; bytes <= options->most; bytes = next_size(options, bytes))
        count++;
    return count;
}

static void add_row(struct bench *b, const struct row *row)
{
    for (int i = 0; i < 2; i++) {
        const struct side *side = &row->sides[i];

        if (!side->present)
            continue;
        b->totals.sides++;
        b->totals.bandwidth += side_bus_bandwidth(row, side);
        b->totals.wrong += side->wrong > 0 ? side->wrong : 0;
    }
    b->totals.rows++;
}

/* All sizes of one type, operator and root. */
static void run_sizes(struct bench *b, struct problem problem)
{
    const struct options *options = b->options;

    for (size_t bytes = options->least; bytes <= options->most; bytes = next_size(options, bytes)) {
        struct row row = {.problem = problem, .bytes = bytes};

        row.problem.count = problem_count(&problem, bytes);
        progress_row(&row);
        measure_row(&b->place, &row);
        if (b->rank == 0) {
            options->osu ? report_osu_row(&row) : report_row(&row);
            report_json_row(b->json, &row, b->totals.rows == 0);
        }
        add_row(b, &row);
        if (problem.collective->shape == SHAPE_NONE)
            return;
    }
}

static void run_roots(struct bench *b, struct problem problem)
{
    const bool all = problem.collective->rooted && b->options->root < 0;
    const int first = all ? 0 : b->options->root, last = all ? b->ranks - 1 : first;

    for (problem.root = first; problem.root <= last; problem.root++)
        run_sizes(b, problem);
}

static void run_all(struct bench *b)
{
    const struct options *options = b->options;
    struct problem problem = {.collective = options->collective, .comm = b->comm, .rank = b->rank, .ranks = b->ranks};

    for (int type = 0; type < HOOP_TYPES; type++) {
        if (!(options->types & 1u << type))
            continue;
        problem.type = (enum hoop_type)type;
        if (b->rank == 0 && options->osu)
            report_osu_head(options, problem.type);
        for (int op = 0; op < HOOP_OPS; op++) {
            problem.op = (enum hoop_op)op;
            if (options_choose(options, type, op))
                run_roots(b, problem);
        }
    }
}

/* A second communicator of the same ranks, which combines in rank order. */
static void open_ordered(struct bench *b)
{
    setenv("HOOP_DETERMINISTIC", "1", 1);
    must(hoop_comm_split(b->comm, 0, b->rank, &b->ordered), "a communicator with HOOP_DETERMINISTIC=1", NULL);
    workspace_open(&b->ordered_place, b->options, b->ordered);
    b->place.ordered = &b->ordered_place;
}

static void open_bench(struct bench *b)
{
    const struct options *options = b->options;
    const int roots = options->collective->rooted && options->root < 0 ? b->ranks : 1;
    char *places;

    if (options->root >= b->ranks) {
        if (b->rank == 0)
            fprintf(stderr, "hoop-bench: -r %d: there are %d ranks\n", options->root, b->ranks);
        exit(2);
    }
    workspace_open(&b->place, options, b->comm);
    if (options->deterministic)
        open_ordered(b);
    places = gather_places(b->comm, options->device != NULL);
    progress_open(b->rank, count_sizes(options) * options_pairs(options) * roots);
    if (b->rank == 0) {
        b->json = report_json_open(options, b->ranks);
        if (!options->osu)
            report_head(options, places);
    }
    free(places);
}

static void close_bench(struct bench *b)
{
    workspace_close(&b->place);
    if (b->ordered) {
        workspace_close(&b->ordered_place);
        must(hoop_comm_destroy(b->ordered), "finalize", NULL);
    }
    must(hoop_comm_finalize(b->comm), "finalize", b->comm);
    if (b->rank == 0) {
        if (!b->options->osu)
            report_foot(b->options, &b->totals);
        report_json_close(b->json, &b->totals);
    }
    hoop_comm_destroy(b->comm);
}

int main(int argc, char **argv)
{
    struct options options;
    struct bench bench = {.options = &options};

    options_parse(&options, argc, argv);
    if (options.deterministic)
        setenv("HOOP_DETERMINISTIC", "0", 1);
    if (options.device)
        setenv("HOOP_DEVICE", options.device, 1);
    must(hoop_comm_init_env(&bench.comm), "joining the other ranks", NULL);
    bench.rank = hoop_comm_rank(bench.comm);
    bench.ranks = hoop_comm_size(bench.comm);
    if (options.calibrate) {
        calibrate(&options, bench.comm);
        must(hoop_comm_destroy(bench.comm), "finalize", NULL);
        return EXIT_SUCCESS;
    }
    open_bench(&bench);
    run_all(&bench);
    close_bench(&bench);
    return bench.totals.wrong > 0 ? EXIT_WRONG_VALUES : EXIT_SUCCESS;
}
