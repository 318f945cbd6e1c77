// SPDX-License-Identifier: BSD-3-Clause
/* The layout of the OSU micro-benchmarks: isolated calls only, mean over the ranks of their own means. */
#include "bench.h"

#include <ctype.h>

void report_osu_head(const struct options *options, enum hoop_type type)
{
    const bool has_data = options->collective->shape != SHAPE_NONE;

    printf("# OSU hoop %s Latency Test v7.4\n", options->collective->osu_name);
    if (has_data) {
        printf("# Datatype: ");
        for (const char *c = data_type_name(type); *c != '\0'; c++)
            putchar(toupper((unsigned char)*c));
        printf(".\n%-10s", "# Size");
    } else {
        printf("# ");
    }
    printf("%*s%20s%20s%12s%20s%20s", has_data ? 20 : 18, "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)",
           "Iterations", "P50 Tail Lat(us)", "P99 Tail Lat(us)");
    if (has_data && options->checks > 0)
        printf("%20s", "Validation");
    printf("\n");
    fflush(stdout);
}

void report_osu_row(const struct row *row)
{
    const struct side *side = &row->sides[0];

    progress_clear();
    if (row->problem.collective->shape != SHAPE_NONE)
        printf("%-10zu", row->bytes);
    printf("%20.2f%20.2f%20.2f%12d%20.2f%20.2f", side->mean[0] * 1e6, side->mean[1] * 1e6, side->mean[2] * 1e6,
           row->iterations, side->p50 * 1e6, side->p99 * 1e6);
    if (side->wrong >= 0)
        printf("%20s", side->wrong == 0 ? "Pass" : "Fail");
    printf("\n");
    fflush(stdout);
}
