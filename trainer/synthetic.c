// SPDX-License-Identifier: BSD-3-Clause
/* Synthetic images: something to learn that needs no package.
 *
 * A class is a sum of three soft discs at fixed places. A sample is its class's pattern, shifted by up to three pixels
 * each way, faded, under noise, and mixed with some of another class's pattern. Whole numbers only, so every machine
 * makes the same bytes. */
#include <stdlib.h>

#include "dataset.h"
#include "fail.h"
#include "random.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, DISCS = 3, TRAIN = 12000, TEST = 2000, SHIFT = 3, NOISE = 90 };

/* Draws of one sample, by index: the pixels' noise comes after these. */
enum draw { DRAW_LABEL, DRAW_OTHER, DRAW_DOWN, DRAW_RIGHT, DRAW_STRENGTH, DRAW_MIX, DRAW_PIXELS };

static void draw_disc(int pattern[PIXELS], int row, int column, int radius)
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const int away = (y - row) * (y - row) + (x - column) * (x - column);

            if (away < radius * radius)
                pattern[y * SIDE + x] += 200 * (radius * radius - away) / (radius * radius);
        }
}

static void draw_patterns(int pattern[CLASSES][PIXELS], uint64_t seed)
{
    const struct random_key key = {.seed = seed, .stream = RANDOM_SYNTHETIC};
    uint64_t index = 0;

    for (int class = 0; class < CLASSES; class ++)
        for (int disc = 0; disc < DISCS; disc++) {
            const int row = 5 + (int)random_below(&key, index++, SIDE - 10);
            const int column = 5 + (int)random_below(&key, index++, SIDE - 10);

            draw_disc(pattern[class], row, column, 4 + (int)random_below(&key, index++, 5));
        }
}

/* A pattern's pixel after a shift; 0 outside. */
static int shifted(const int pattern[PIXELS], int y, int x)
{
    return y >= 0 && y < SIDE && x >= 0 && x < SIDE ? pattern[y * SIDE + x] : 0;
}

static uint8_t draw_sample(const int pattern[CLASSES][PIXELS], uint64_t seed, uint32_t number, uint8_t *pixels)
{
    const struct random_key key = {.seed = seed, .stream = RANDOM_SYNTHETIC, .epoch = number + 1};
    const int label = (int)random_below(&key, DRAW_LABEL, CLASSES);
    const int other = (int)random_below(&key, DRAW_OTHER, CLASSES);
    const int down = (int)random_below(&key, DRAW_DOWN, 2 * SHIFT + 1) - SHIFT;
    const int right = (int)random_below(&key, DRAW_RIGHT, 2 * SHIFT + 1) - SHIFT;
    const int strength = 40 + (int)random_below(&key, DRAW_STRENGTH, 61); /* percent */
    const int mixed = (int)random_below(&key, DRAW_MIX, 41);              /* percent of the other pattern */

    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const uint64_t at = (uint64_t)(y * SIDE + x);
            const int noise = (int)random_below(&key, DRAW_PIXELS + at, NOISE);
            const int value = noise + (shifted(pattern[label], y - down, x - right) * strength +
                                       shifted(pattern[other], y + right, x + down) * mixed) /
                                          100;

            pixels[at] = (uint8_t)(value > 255 ? 255 : value);
        }
    return (uint8_t)label;
}

static int draw_half(struct samples *half, size_t count, uint32_t first, const int pattern[CLASSES][PIXELS],
                     uint64_t seed)
{
    half->pixels = malloc(count * PIXELS);
    half->labels = malloc(count);
    if (!half->pixels || !half->labels)
        return train_fail(TRAIN_RESOURCE, "no memory for %zu synthetic images", count);
    half->count = count;
    for (size_t i = 0; i < count; i++)
        half->labels[i] = draw_sample(pattern, seed, first + (uint32_t)i, half->pixels + i * PIXELS);
    return TRAIN_OK;
}

int dataset_synthesize(struct dataset *dataset, uint64_t seed)
{
    int(*pattern)[PIXELS] = calloc(CLASSES, sizeof *pattern);
    int code;

    if (!pattern)
        return train_fail(TRAIN_RESOURCE, "no memory for synthetic patterns");
    draw_patterns(pattern, seed);
    dataset->inputs = PIXELS;
    code = draw_half(&dataset->train, TRAIN, 0, (const int(*)[PIXELS])pattern, seed);
    if (code == TRAIN_OK)
        code = draw_half(&dataset->test, TEST, TRAIN, (const int(*)[PIXELS])pattern, seed);
    free(pattern);
    return code;
}
