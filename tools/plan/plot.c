// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan simulate --table --svg: time against ranks, both on logarithmic scales, one panel a size, one line an algorithm. */
#include <errno.h>
#include <hoop.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan_tool.h"

enum { PANEL = 330, HEIGHT = 300, LEFT = 56, TOP = 64, GAP = 26, BOTTOM = 96 };

static const char *const colours[] = {"#4269d0", "#c98500", "#e05252", "#3a9a78", "#8a5cc4", "#8a6d3b",
                                      "#d1588f", "#596673", "#111111", "#17a2b8", "#7fae1b", "#ff7f50"};

struct scale {
    double low, high; /* log10 of time in us */
    int rows;
};

static double x_of(const struct scale *scale, size_t panel, int n)
{
    const double width = PANEL - LEFT - GAP;

    return (double)(panel * PANEL) + LEFT + (scale->rows > 1 ? width * n / (scale->rows - 1) : width / 2);
}

static double y_of(const struct scale *scale, double time)
{
    return TOP + HEIGHT * (scale->high - log10(time)) / (scale->high - scale->low);
}

/* Whole decades around all times of a panel. */
static struct scale scale_of(const struct table *table, size_t size)
{
    struct scale scale = {INFINITY, -INFINITY, table->rows};

    for (int n = 0; n < table->rows; n++)
        for (int a = 0; a < table->columns; a++)
            if (table->time[size][n][a] > 0) {
                scale.low = fmin(scale.low, floor(log10(table->time[size][n][a])));
                scale.high = fmax(scale.high, ceil(log10(table->time[size][n][a])));
            }
    if (scale.low >= scale.high)
        scale =
            (struct scale){scale.low < INFINITY ? scale.low : 0, scale.low < INFINITY ? scale.low + 1 : 1, table->rows};
    return scale;
}

static void axes(FILE *file, const struct table *table, const struct scale *scale, size_t size)
{
    const double left = (double)(size * PANEL) + LEFT, right = (double)((size + 1) * PANEL) - GAP;
    const size_t bytes = table->size[size];
    const unsigned shift = bytes >= 1 << 20 ? 20 : bytes >= 1024 ? 10 : 0;

    fprintf(file, "<text x=\"%g\" y=\"%d\" class=\"size\">%zu %s</text>\n", left, TOP - 12, bytes >> shift,
            shift == 20   ? "MiB"
            : shift == 10 ? "KiB"
                          : "bytes");
    for (double decade = scale->low; decade <= scale->high; decade++) {
        const double y = y_of(scale, pow(10, decade));
        fprintf(file, "<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\"/>", left, right, y, y);
        fprintf(file, "<text class=\"tick\" text-anchor=\"end\" x=\"%g\" y=\"%g\">%g</text>\n", left - 6, y + 4,
                pow(10, decade));
    }
    for (int n = 0; n<table->rows; n += table->rows> 8 ? 2 : 1)
        fprintf(file, "<text class=\"tick\" text-anchor=\"middle\" x=\"%g\" y=\"%d\">%d</text>\n", x_of(scale, size, n),
                TOP + HEIGHT + 18, 2 << n);
    fprintf(file, "<text class=\"tick\" text-anchor=\"middle\" x=\"%g\" y=\"%d\">ranks</text>\n", (left + right) / 2,
            TOP + HEIGHT + 36);
}

static void lines(FILE *file, const struct table *table, const struct scale *scale, size_t size)
{
    for (int a = 0; a < table->columns; a++) {
        const char *colour = colours[(size_t)a % (sizeof colours / sizeof *colours)];
        fprintf(file, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"", colour);
        for (int n = 0; n < table->rows; n++)
            if (table->time[size][n][a] > 0)
                fprintf(file, "%.1f,%.1f ", x_of(scale, size, n), y_of(scale, table->time[size][n][a]));
        fprintf(file, "\"/>\n");
        for (int n = 0; n < table->rows; n++)
            if (table->time[size][n][a] > 0)
                fprintf(file, "<circle r=\"3\" fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\"/>\n", colour, x_of(scale, size, n),
                        y_of(scale, table->time[size][n][a]));
    }
}

static void legend(FILE *file, const struct table *table)
{
    for (int a = 0; a < table->columns; a++) {
        const int x = LEFT + a % 7 * 180, y = TOP + HEIGHT + 60 + a / 7 * 20;
        fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"18\" height=\"4\" fill=\"%s\"/>", x, y - 6,
                colours[(size_t)a % (sizeof colours / sizeof *colours)]);
        fprintf(file, "<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", x + 24, y, table->column[a].name);
    }
}

bool plot_table(const struct table *table, const struct plan_options *options)
{
    FILE *file = fopen(options->svg, "w");

    if (file == NULL) {
        fprintf(stderr, "hoop-plan: %s: %s\n", options->svg, strerror(errno));
        return false;
    }
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\">\n<style>text{font-family:"
            "sans-serif;fill:#222}.head{font-size:16px}.size{font-size:14px;font-weight:bold}.tick{font-size:11px}"
            ".name{font-size:13px}.grid{stroke:#ddd}</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            TABLE_SIZES * PANEL, TOP + HEIGHT + BOTTOM);
    char levels[256];
    const struct hoop_network network = network_of(options, 2 << (table->rows - 1));
    network_text(&network, levels, sizeof levels);
    fprintf(file, "<text class=\"head\" x=\"%d\" y=\"26\">Simulated time of %s in us; up to %s (GB/s, ns)</text>\n",
            LEFT, hoop_coll_name((enum hoop_coll)options->coll), levels);
    for (size_t size = 0; size < TABLE_SIZES; size++) {
        const struct scale scale = scale_of(table, size);
        axes(file, table, &scale, size);
        lines(file, table, &scale, size);
    }
    legend(file, table);
    fprintf(file, "</svg>\n");
    const bool bad = ferror(file) != 0;
    if (fclose(file) != 0 || bad) {
        fprintf(stderr, "hoop-plan: %s cannot be written\n", options->svg);
        return false;
    }
    return true;
}
