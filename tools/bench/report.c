// SPDX-License-Identifier: BSD-3-Clause
/* The table in the layout of nccl-tests, so that people's parsers keep working; p50, p99 and the plan come after its
 * own columns. */
#include "bench.h"

#include <string.h>

/* A number with the most decimals, of 2, 1 and 0, that fit the width; beyond that with an exponent. */
static const char *fitted(double value, int width, char text[32])
{
    for (int decimals = 2; decimals >= 0; decimals--)
        if (snprintf(text, 32, "%*.*f", width, decimals, value) <= width)
            return text;
    snprintf(text, 32, "%*.*e", width, width >= 7 ? 1 : 0, value);
    return text;
}

static void print_price_head(void)
{
    printf(
        "#  with --deterministic, after the plan: ordered p50 (us) and ratio out-of-place, the same in-place, plan\n");
}

static void print_iterations(const struct options *options)
{
    if (options->iterations > 0)
        printf("iters: %d ", options->iterations);
    else
        printf("iters: auto ");
}

void report_head(const struct options *options, const char *places)
{
    const int version = hoop_version();

    printf("# hoop-bench version %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
    printf("# Collective test starting: %s\n", options->collective->name);
    printf("# nThread 1 nGpus %d minBytes %zu maxBytes %zu step: %zu(%s) warmup iters: %d ", options->device != NULL,
           options->least, options->most, options->factor > 1 ? options->factor : options->step,
           options->factor > 1 ? "factor" : "bytes", options->warmups);
    print_iterations(options);
    printf("agg iters: 1 validation: %d graph: 0 unalign: 0\n#\n", options->checks);
    printf("# Using devices\n%s#\n", places);
    printf("# %10s  %12s  %8s  %6s  %6s  %33s  %33s  %21s  %21s\n", "", "", "", "", "", "out-of-place          ",
           "in-place             ", "isolated out-of-place", "isolated in-place");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s  %10s %10s  %10s %10s  %s\n", "size",
           "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong",
           "p50", "p99", "p50", "p99", "plan");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %5s  %7s  %6s  %6s  %5s  %10s %10s  %10s %10s\n", "(B)",
           "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)",
           "(us)", "(us)");
    if (options->deterministic)
        print_price_head();
    fflush(stdout);
}

static void print_side(const struct row *row, const struct side *side)
{
    char time[32], algorithm[32], bus[32];

    if (!side->present) {
        printf("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    printf("  %7s  %6s  %6s", fitted(side->time * 1e6, 7, time),
           fitted(side_algorithm_bandwidth(row, side) * 1e-9, 6, algorithm),
           fitted(side_bus_bandwidth(row, side) * 1e-9, 6, bus));
    if (side->wrong < 0)
        printf("  %6s", "N/A");
    else
        printf("  %6g", (double)side->wrong);
}

static void print_isolated(const struct side *side)
{
    char median[32], tail[32];

    if (side->present)
        printf("  %10s %10s", fitted(side->p50 * 1e6, 10, median), fitted(side->p99 * 1e6, 10, tail));
    else
        printf("  %10s %10s", "N/A", "N/A");
}

static void print_plan(const struct row *row)
{
    const struct side *in_place = &row->sides[1];

    printf("  %s", row->sides[0].plan[0] != '\0' ? row->sides[0].plan : "-");
    if (in_place->present && strcmp(in_place->plan, row->sides[0].plan) != 0)
        printf(",%s", in_place->plan);
}

static void print_prices(const struct row *row)
{
    const struct price *first = &row->sides[0].price, *second = &row->sides[1].price;
    char median[32], ratio[32];

    for (int i = 0; i < 2; i++) {
        const struct price *price = &row->sides[i].price;

        if (row->sides[i].present && price->present)
            printf("  %10s %6s", fitted(price->p50 * 1e6, 10, median), fitted(price->ratio, 6, ratio));
        else
            printf("  %10s %6s", "N/A", "N/A");
    }
    printf("  %s", first->plan);
    if (row->sides[1].present && strcmp(first->plan, second->plan) != 0)
        printf(",%s", second->plan);
}

void report_row(const struct row *row)
{
    const struct problem *p = &row->problem;
    const bool has_data = p->collective->shape != SHAPE_NONE;

    progress_clear();
    printf("%12zu  %12zu  %8s  %6s  %6d", row->bytes, p->count, has_data ? data_type_name(p->type) : "none",
           p->collective->reduces ? hoop_op_name(p->op) : "none", p->collective->rooted ? p->root : -1);
    print_side(row, &row->sides[0]);
    print_side(row, &row->sides[1]);
    print_isolated(&row->sides[0]);
    print_isolated(&row->sides[1]);
    print_plan(row);
    if (row->sides[0].price.present)
        print_prices(row);
    printf("\n");
    fflush(stdout);
}

void report_foot(const struct options *options, const struct totals *totals)
{
    printf("# Out of bounds values : %lld %s\n", totals->wrong, totals->wrong == 0 ? "OK" : "FAILED");
    printf("# Avg bus bandwidth    : %g\n#\n", totals->sides > 0 ? totals->bandwidth * 1e-9 / totals->sides : 0);
    printf("# Collective test concluded: %s\n", options->collective->name);
    fflush(stdout);
}
