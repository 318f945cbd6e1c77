// SPDX-License-Identifier: BSD-3-Clause
/* See picture.h. Two panels over one step axis: loss on a logarithmic scale above, accuracy below. */
#include "picture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fail.h"

enum { WIDTH = 900, HEIGHT = 640, LEFT = 80, RIGHT = 870, TICKS = 24, SMOOTH = 8 };

#define TRAIN_COLOUR  "#2a6fb0"
#define SINGLE_COLOUR "#b9d3ea"
#define TEST_COLOUR   "#c8501e"

/* One panel: where it is, which values it shows, and at which it has lines. */
struct panel {
    FILE *file;
    double top, bottom; /* pixels */
    double low, high;   /* values */
    double steps;       /* at the right edge */
    int logarithmic;
};

static double across(const struct panel *panel, double step)
{
    return LEFT + (RIGHT - LEFT) * step / panel->steps;
}

static double down(const struct panel *panel, double value)
{
    const double kept = fmin(fmax(value, panel->low), panel->high);
    const double part = panel->logarithmic ? log(kept / panel->low) / log(panel->high / panel->low)
                                           : (kept - panel->low) / (panel->high - panel->low);

    return panel->bottom - (panel->bottom - panel->top) * part;
}

void picture_step(struct picture *picture, size_t step, double loss, double accuracy)
{
    struct picture_bin *bin = &picture->bin[(step - 1) * PICTURE_BINS / picture->steps];

    if (!isfinite(loss))
        return;
    bin->loss += loss;
    bin->accuracy += accuracy;
    bin->count++;
    picture->done = step;
}

void picture_test(struct picture *picture, size_t step, double loss, double accuracy)
{
    if (!isfinite(loss))
        return;
    if (picture->tests == PICTURE_TESTS) {
        picture->tests /= 2;
        for (int i = 0; i < picture->tests; i++)
            picture->test[i] = picture->test[2 * i + 1];
    }
    picture->test[picture->tests++] = (struct picture_test){(double)step, loss, accuracy};
}

/* The step in the middle of a bin. */
static double bin_step(const struct picture *picture, int i)
{
    return (i + 0.5) * (double)picture->steps / PICTURE_BINS;
}

/* The mean of the steps in bins i - reach to i + reach, of loss or accuracy. */
static double mean_around(const struct picture *picture, int i, int reach, int loss)
{
    double sum = 0, count = 0;

    if (reach > i) /* as many on both sides, so that the steep beginning is not bent */
        reach = i;
    for (int k = i - reach; k <= i + reach && k < PICTURE_BINS; k++) {
        sum += loss ? picture->bin[k].loss : picture->bin[k].accuracy;
        count += (double)picture->bin[k].count;
    }
    return sum / count;
}

/* A line through the bins' means, each over 2 × reach + 1 bins. */
static void draw_curve(const struct picture *picture, const struct panel *panel, int loss, int reach, const char *style)
{
    fprintf(panel->file, "<polyline fill=\"none\" stroke-linejoin=\"round\" %s points=\"", style);
    for (int i = 0; i < PICTURE_BINS; i++)
        if (picture->bin[i].count > 0)
            fprintf(panel->file, "%.1f,%.1f ", across(panel, bin_step(picture, i)),
                    down(panel, mean_around(picture, i, reach, loss)));
    fputs("\"/>\n", panel->file);
}

static void draw_tests(const struct picture *picture, const struct panel *panel, int loss)
{
    fputs("<polyline fill=\"none\" stroke=\"" TEST_COLOUR "\" stroke-width=\"1.5\" points=\"", panel->file);
    for (int i = 0; i < picture->tests; i++)
        fprintf(panel->file, "%.1f,%.1f ", across(panel, picture->test[i].step),
                down(panel, loss ? picture->test[i].loss : picture->test[i].accuracy));
    fputs("\"/>\n", panel->file);
    for (int i = 0; i < picture->tests; i++)
        fprintf(panel->file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"" TEST_COLOUR "\"/>\n",
                across(panel, picture->test[i].step),
                down(panel, loss ? picture->test[i].loss : picture->test[i].accuracy));
}

static void draw_text(FILE *file, double x, double y, const char *style, const char *text)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
    for (; *text; text++)
        if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '&')
            fputs("&amp;", file);
        else
            fputc((unsigned char)*text < ' ' ? '?' : *text, file);
    fputs("</text>\n", file);
}

static void draw_level(const struct panel *panel, double value, const char *label)
{
    const double y = down(panel, value);

    fprintf(panel->file, "<path d=\"M%d %.1fH%d\" stroke=\"#dddddd\"/>\n", LEFT, y, RIGHT);
    draw_text(panel->file, LEFT - 8, y + 4, "text-anchor=\"end\"", label);
}

/* Levels 1, 2 and 5 of every power of ten that the panel shows. */
static void draw_logarithmic_levels(const struct panel *panel)
{
    static const double leading[] = {1, 2, 5};
    char label[32];

    for (int power = -6; power <= 6; power++)
        for (int i = 0; i < 3; i++) {
            const double value = leading[i] * pow(10, power);

            if (value < panel->low * 0.999 || value > panel->high * 1.001)
                continue;
            snprintf(label, sizeof label, "%g", value);
            draw_level(panel, value, label);
        }
}

static void draw_percent_levels(const struct panel *panel)
{
    const double between = panel->high - panel->low <= 0.31 ? 0.05 : 0.1;
    char label[32];

    for (double value = panel->low; value < panel->high + between / 2; value += between) {
        snprintf(label, sizeof label, "%.0f %%", value * 100);
        draw_level(panel, value, label);
    }
}

/* A round distance that gives at most `most` ticks. */
static double tick_distance(double range, int most)
{
    double distance = 1;

    for (int i = 0; range / distance > most; i++)
        distance *= i % 3 == 1 ? 2.5 : 2; /* 1 2 5 10 20 50 … */
    return distance;
}

static void draw_steps(const struct picture *picture, const struct panel *panel, int labels)
{
    const double distance = tick_distance(panel->steps, 10);
    char label[32];

    for (size_t i = 1; picture->steps_per_epoch && i * picture->steps_per_epoch <= (size_t)panel->steps && i <= TICKS;
         i++)
        fprintf(panel->file, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#bbbbbb\" stroke-dasharray=\"3 4\"/>\n",
                across(panel, (double)(i * picture->steps_per_epoch)), panel->top, panel->bottom);
    fprintf(panel->file, "<path d=\"M%d %.1fV%.1fH%d\" fill=\"none\" stroke=\"#333333\"/>\n", LEFT, panel->top,
            panel->bottom, RIGHT);
    for (double step = 0; labels && step <= panel->steps; step += distance) {
        snprintf(label, sizeof label, "%.0f", step);
        fprintf(panel->file, "<path d=\"M%.1f %.1fv5\" stroke=\"#333333\"/>\n", across(panel, step), panel->bottom);
        draw_text(panel->file, across(panel, step), panel->bottom + 19, "text-anchor=\"middle\"", label);
    }
}

/* One legend entry: a line in the curve's style, maybe a dot, and the words. Returns where the next begins. */
static double draw_legend(FILE *file, double x, double y, const char *style, int dot, const char *text)
{
    fprintf(file, "<path d=\"M%.1f %.1fh26\" %s/>\n", x, y - 4, style);
    if (dot)
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"" TEST_COLOUR "\"/>\n", x + 13, y - 4);
    draw_text(file, x + 32, y, "", text);
    return x + 32 + 7.2 * (double)strlen(text) + 14;
}

static void draw_legends(FILE *file, double y, const char *single, const char *mean, const char *test)
{
    double x = LEFT + 12;

    x = draw_legend(file, x, y, "stroke=\"" SINGLE_COLOUR "\" stroke-width=\"1.5\"", 0, single);
    x = draw_legend(file, x, y, "stroke=\"" TRAIN_COLOUR "\" stroke-width=\"2.5\"", 0, mean);
    draw_legend(file, x, y, "stroke=\"" TEST_COLOUR "\" stroke-width=\"1.5\"", 1, test);
}

/* Smallest and largest of the curves: of loss, or of accuracy. */
static void value_range(const struct picture *picture, int loss, double *low, double *high)
{
    *low = HUGE_VAL;
    *high = -HUGE_VAL;
    for (int i = 0; i < PICTURE_BINS; i++)
        if (picture->bin[i].count) {
            const double value =
                (loss ? picture->bin[i].loss : picture->bin[i].accuracy) / (double)picture->bin[i].count;

            *low = fmin(*low, value);
            *high = fmax(*high, value);
        }
    for (int i = 0; i < picture->tests; i++) {
        const double value = loss ? picture->test[i].loss : picture->test[i].accuracy;

        *low = fmin(*low, value);
        *high = fmax(*high, value);
    }
}

static void draw_loss(const struct picture *picture, struct panel panel)
{
    double low, high;

    value_range(picture, 1, &low, &high);
    panel.low = low < high ? fmax(low * 0.9, 1e-6) : 0.1;
    panel.high = low < high ? fmin(high * 1.15, 1e6) : 10;
    panel.logarithmic = 1;
    draw_logarithmic_levels(&panel);
    draw_steps(picture, &panel, 0);
    draw_curve(picture, &panel, 1, 0, "stroke=\"" SINGLE_COLOUR "\" stroke-width=\"1.5\"");
    draw_curve(picture, &panel, 1, SMOOTH, "stroke=\"" TRAIN_COLOUR "\" stroke-width=\"2.5\"");
    draw_tests(picture, &panel, 1);
    draw_text(panel.file, 22, (panel.top + panel.bottom) / 2, "text-anchor=\"middle\" transform=\"rotate(-90 22 185)\"",
              "loss (log scale)");
    draw_legends(panel.file, panel.top - 10, "training loss of the batches", "smoothed", "test loss");
}

/* The lower end is chosen so that the test values fill the panel; the first steps may begin below it. */
static void draw_accuracy(const struct picture *picture, struct panel panel)
{
    char label[96];
    double least = 1;

    for (int i = 0; i < picture->tests; i++)
        least = fmin(least, picture->test[i].accuracy);
    panel.low = fmax(0, floor((least - 0.08) * 10) / 10);
    panel.high = 1;
    draw_percent_levels(&panel);
    draw_steps(picture, &panel, 1);
    draw_curve(picture, &panel, 0, 0, "stroke=\"" SINGLE_COLOUR "\" stroke-width=\"1.5\"");
    draw_curve(picture, &panel, 0, SMOOTH, "stroke=\"" TRAIN_COLOUR "\" stroke-width=\"2.5\"");
    draw_tests(picture, &panel, 0);
    draw_text(panel.file, 22, (panel.top + panel.bottom) / 2, "text-anchor=\"middle\" transform=\"rotate(-90 22 455)\"",
              "accuracy");
    draw_text(panel.file, (LEFT + RIGHT) / 2, panel.bottom + 40, "text-anchor=\"middle\"",
              "step (dashed: end of an epoch)");
    snprintf(label, sizeof label, "test accuracy");
    if (picture->tests)
        snprintf(label, sizeof label, "test accuracy, at the end %.2f %%",
                 picture->test[picture->tests - 1].accuracy * 100);
    draw_legends(panel.file, panel.top - 10, "training accuracy of the batches", "smoothed", label);
}

int picture_write(const struct picture *picture, const char *path)
{
    FILE *file = fopen(path, "we");

    if (!file)
        return train_fail(TRAIN_RESOURCE, "%s: %s", path, strerror(errno));
    const struct panel panel = {.file = file, .steps = picture->done ? (double)picture->done : 1};
    struct panel loss = panel, accuracy = panel;

    loss.top = 85;
    loss.bottom = 285;
    accuracy.top = 335;
    accuracy.bottom = 575;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"13\" fill=\"#222222\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"white\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_text(file, WIDTH / 2.0, 34, "text-anchor=\"middle\" font-size=\"17\"", picture->title);
    draw_loss(picture, loss);
    draw_accuracy(picture, accuracy);
    fputs("</svg>\n", file);
    const int failed = ferror(file);
    if (fclose(file) != 0 || failed)
        return train_fail(TRAIN_RESOURCE, "%s: could not be written: %s", path, strerror(errno));
    return TRAIN_OK;
}
