// SPDX-License-Identifier: BSD-3-Clause
/* Loss and accuracy over the steps, drawn as SVG. Memory is bounded: steps are averaged into a fixed number of bins. */
#ifndef TRAINER_PICTURE_H
#define TRAINER_PICTURE_H

#include <stddef.h>

enum { PICTURE_BINS = 400, PICTURE_TESTS = 256 };

struct picture_bin {
    double loss, accuracy; /* sums */
    size_t count;
};

struct picture_test {
    double step, loss, accuracy;
};

struct picture {
    char title[256];
    size_t steps, steps_per_epoch, done; /* planned, and the last one seen */
    struct picture_bin bin[PICTURE_BINS];
    struct picture_test test[PICTURE_TESTS]; /* beyond that number every other one is dropped, the last is kept */
    int tests;
};

void picture_step(struct picture *picture, size_t step, double loss, double accuracy);
void picture_test(struct picture *picture, size_t step, double loss, double accuracy);

/* Write the picture. Returns 0 or an exit code with the reason recorded. */
int picture_write(const struct picture *picture, const char *path);

#endif
