// SPDX-License-Identifier: BSD-3-Clause
/* The same figures as JSON: times in microseconds, bandwidths in GB/s, as in the table. */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

FILE *report_json_open(const struct options *options, int ranks)
{
    FILE *file;
    const int version = hoop_version();

    if (options->json == NULL)
        return NULL;
    if ((file = fopen(options->json, "we")) == NULL) {
        fprintf(stderr, "hoop-bench: --json %s: %s\n", options->json, strerror(errno));
        exit(EXIT_LIBRARY);
    }
    fprintf(file, "{\n  \"program\": \"hoop-bench\",\n  \"version\": \"%d.%d.%d\",\n", version / 10000,
            version / 100 % 100, version % 100);
    fprintf(file, "  \"collective\": \"%s\",\n  \"ranks\": %d,\n", options->collective->name, ranks);
    fprintf(file, "  \"memory\": \"%s\",\n  \"dirty\": %s,\n  \"warmup_iterations\": %d,\n  \"results\": [",
            options->device     ? "device"
            : options->ordinary ? "malloc"
                                : "hoop_mem_alloc",
            options->dirty ? "true" : "false", options->warmups);
    return file;
}

static void write_side(FILE *file, const char *name, const struct row *row, const struct side *side)
{
    fprintf(file, ",\n      \"%s\": ", name);
    if (!side->present) {
        fprintf(file, "null");
        return;
    }
    if (side->time > 0)
        fprintf(file, "{\"time\": %.3f, \"alg_bw\": %.6g, \"bus_bw\": %.6g, ", side->time * 1e6,
                side_algorithm_bandwidth(row, side) * 1e-9, side_bus_bandwidth(row, side) * 1e-9);
    else /* only isolated calls were measured */
        fprintf(file, "{\"time\": null, \"alg_bw\": null, \"bus_bw\": null, ");
    if (side->wrong < 0)
        fprintf(file, "\"nwrong\": null, ");
    else
        fprintf(file, "\"nwrong\": %lld, ", side->wrong);
    fprintf(file, "\"p50\": %.3f, \"p99\": %.3f, \"max\": %.3f, ", side->p50 * 1e6, side->p99 * 1e6, side->most * 1e6);
    if (side->price.present)
        fprintf(file, "\"deterministic\": {\"p50\": %.3f, \"ratio\": %.4g, \"plan\": \"%s\"}, ", side->price.p50 * 1e6,
                side->price.ratio, side->price.plan);
    fprintf(file, "\"mean\": %.3f, \"plan\": \"%s\"}", side->mean[0] * 1e6, side->plan);
}

void report_json_row(FILE *file, const struct row *row, bool first)
{
    const struct problem *p = &row->problem;

    if (file == NULL)
        return;
    fprintf(file, "%s\n    {\"size\": %zu, \"count\": %zu, \"type\": \"%s\", \"redop\": \"%s\", \"root\": %d",
            first ? "" : ",", row->bytes, p->count, data_type_name(p->type),
            p->collective->reduces ? hoop_op_name(p->op) : "none", p->collective->rooted ? p->root : -1);
    write_side(file, "out_of_place", row, &row->sides[0]);
    write_side(file, "in_place", row, &row->sides[1]);
    fprintf(file, ",\n      \"actual_iterations\": %d, \"experiment_name\": \"hoop-bench\"}", row->iterations);
}

void report_json_close(FILE *file, const struct totals *totals)
{
    if (file == NULL)
        return;
    fprintf(file, "\n  ],\n  \"out_of_bounds\": {\"count\": %lld, \"okay\": %s},\n", totals->wrong,
            totals->wrong == 0 ? "true" : "false");
    fprintf(file, "  \"average_bus_bandwidth\": {\"bandwidth\": %.6g}\n}\n",
            totals->sides > 0 ? totals->bandwidth * 1e-9 / totals->sides : 0);
    if (ferror(file) | fclose(file)) {
        fprintf(stderr, "hoop-bench: the JSON file could not be written: %s\n", strerror(errno));
        exit(EXIT_LIBRARY);
    }
}
