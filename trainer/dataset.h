// SPDX-License-Identifier: BSD-3-Clause
/* A labelled set of images in memory, as unsigned bytes; rows become normalised floats when a batch is gathered. */
#ifndef TRAINER_DATASET_H
#define TRAINER_DATASET_H

#include <stddef.h>
#include <stdint.h>

enum { DATASET_CLASSES_MOST = 256 };

/* One half: the samples to train on, or those to test with. */
struct samples {
    size_t count;
    uint8_t *pixels; /* count × inputs */
    uint8_t *labels; /* count, each below classes */
};

struct dataset {
    char name[256]; /* for people: "fashion-mnist", "synthetic", "idx:/some/folder" */
    size_t inputs;  /* pixels of a sample */
    int classes;
    float scale, shift; /* input = pixel × scale + shift: mean 0 and deviation 1 over all pixels to train on */
    struct samples train, test;
};

/* Load what the option --data names: "fashion-mnist", "synthetic" or "idx:FOLDER". The seed is for synthetic data.
 * Returns 0 or an exit code with the reason recorded. Free it in both cases. */
int dataset_load(struct dataset *dataset, const char *what, uint64_t seed);

/* Whether --data may be `what`. */
int dataset_known(const char *what);

/* Read train-images-idx3-ubyte, train-labels-idx1-ubyte and the two t10k- files, with .gz or without, from a folder. */
int dataset_load_folder(struct dataset *dataset, const char *folder);

/* Make ten blurred, shifted and noisy patterns of 28 × 28 pixels: 12,000 to train on, 2,000 to test with. */
int dataset_synthesize(struct dataset *dataset, uint64_t seed);

/* Write the normalised inputs and the labels of count samples as rows. */
void dataset_gather(const struct dataset *dataset, const struct samples *half, const uint32_t *samples, size_t count,
                    float *rows, uint8_t *labels);

/* A digest of all pixels and labels. */
uint64_t dataset_digest(const struct dataset *dataset);

void dataset_free(struct dataset *dataset);

#endif
