// SPDX-License-Identifier: BSD-3-Clause
/* See dataset.h. */
#include "dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail.h"
#include "idx.h"
#include "random.h"

#define FASHION_MNIST "/usr/share/datasets/fashion-mnist"

/* Load FOLDER/NAME.gz, or FOLDER/NAME if only that is there. */
static int load_file(struct idx *idx, const char *folder, const char *name)
{
    char path[4096];

    for (int packed = 1; packed >= 0; packed--) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s%s", folder, name, packed ? ".gz" : "") >= sizeof path)
            return train_fail(TRAIN_DATA, "the folder name %.60s... is too long", folder);
        if (access(path, F_OK) == 0)
            return idx_load(idx, path);
    }
    return train_fail(TRAIN_DATA, "%s/%s: neither it nor %s.gz is there", folder, name, name);
}

/* Load images and labels of one half and see that they belong together. */
static int load_half(struct dataset *dataset, const char *folder, const char *half_name, struct samples *half)
{
    struct idx images = {0}, labels = {0};
    char name[64];
    int code;

    snprintf(name, sizeof name, "%s-images-idx3-ubyte", half_name);
    code = load_file(&images, folder, name);
    if (code != TRAIN_OK)
        return code;
    half->pixels = images.data;
    half->count = images.size[0];
    const size_t inputs = images.bytes / images.size[0];
    if (images.dimensions != 3)
        return train_fail(TRAIN_DATA, "%s/%s: %d dimensions; images have 3 (count, rows, columns)", folder, name,
                          images.dimensions);
    if (dataset->inputs == 0)
        dataset->inputs = inputs;
    if (inputs != dataset->inputs)
        return train_fail(TRAIN_DATA, "%s/%s: images of %zu pixels; those to train on have %zu", folder, name, inputs,
                          dataset->inputs);

    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", half_name);
    code = load_file(&labels, folder, name);
    if (code != TRAIN_OK)
        return code;
    half->labels = labels.data;
    if (labels.dimensions != 1 || labels.bytes != half->count)
        return train_fail(TRAIN_DATA, "%s/%s: %zu labels in %d dimensions for %zu images", folder, name, labels.bytes,
                          labels.dimensions, half->count);
    return TRAIN_OK;
}

static int count_classes(struct dataset *dataset)
{
    int highest = 0;

    for (size_t i = 0; i < dataset->train.count; i++)
        if (dataset->train.labels[i] > highest)
            highest = dataset->train.labels[i];
    for (size_t i = 0; i < dataset->test.count; i++)
        if (dataset->test.labels[i] > highest)
            return train_fail(TRAIN_DATA,
                              "%s: test label %d of sample %zu never occurs among the labels to train on (0 to %d)",
                              dataset->name, dataset->test.labels[i], i, highest);
    dataset->classes = highest + 1;
    return TRAIN_OK;
}

/* Mean and deviation over all pixels, from whole-number sums: the same on every machine. */
static void normalise(struct dataset *dataset)
{
    const size_t pixels = dataset->train.count * dataset->inputs;
    uint64_t sum = 0, squares = 0;

    for (size_t i = 0; i < pixels; i++) {
        const uint32_t pixel = dataset->train.pixels[i];

        sum += pixel;
        squares += pixel * pixel;
    }
    const double mean = (double)sum / (double)pixels;
    const double variance = (double)squares / (double)pixels - mean * mean;
    const double deviation = variance > 1e-6 ? sqrt(variance) : 1;

    dataset->scale = (float)(1 / deviation);
    dataset->shift = (float)(-mean / deviation);
}

int dataset_load_folder(struct dataset *dataset, const char *folder)
{
    int code = load_half(dataset, folder, "train", &dataset->train);

    return code == TRAIN_OK ? load_half(dataset, folder, "t10k", &dataset->test) : code;
}

int dataset_known(const char *what)
{
    return !strcmp(what, "fashion-mnist") || !strcmp(what, "synthetic") || (!strncmp(what, "idx:", 4) && what[4]);
}

static int load_fashion_mnist(struct dataset *dataset)
{
    if (access(FASHION_MNIST, F_OK) != 0)
        return train_fail(
            TRAIN_DATA,
            "%s is not there: install the package dataset-fashion-mnist, or give --data synthetic or --data idx:FOLDER",
            FASHION_MNIST);
    return dataset_load_folder(dataset, FASHION_MNIST);
}

int dataset_load(struct dataset *dataset, const char *what, uint64_t seed)
{
    int code;

    *dataset = (struct dataset){0};
    snprintf(dataset->name, sizeof dataset->name, "%s", what);
    if (!strncmp(what, "idx:", 4))
        code = dataset_load_folder(dataset, what + 4);
    else
        code = !strcmp(what, "synthetic") ? dataset_synthesize(dataset, seed) : load_fashion_mnist(dataset);
    if (code == TRAIN_OK)
        code = count_classes(dataset);
    if (code == TRAIN_OK)
        normalise(dataset);
    return code;
}

void dataset_gather(const struct dataset *dataset, const struct samples *half, const uint32_t *samples, size_t count,
                    float *rows, uint8_t *labels)
{
    const size_t inputs = dataset->inputs;
    const float scale = dataset->scale, shift = dataset->shift;

    for (size_t i = 0; i < count; i++) {
        const uint8_t *pixels = half->pixels + samples[i] * inputs;
        float *row = rows + i * inputs;

        for (size_t j = 0; j < inputs; j++)
            row[j] = (float)pixels[j] * scale + shift;
        labels[i] = half->labels[samples[i]];
    }
}

uint64_t dataset_digest(const struct dataset *dataset)
{
    const struct samples *halves[] = {&dataset->train, &dataset->test};
    uint64_t result = 0;

    for (int i = 0; i < 2; i++) {
        result = digest(halves[i]->pixels, halves[i]->count * dataset->inputs, result);
        result = digest(halves[i]->labels, halves[i]->count, result);
    }
    return result;
}

void dataset_free(struct dataset *dataset)
{
    free(dataset->train.pixels);
    free(dataset->train.labels);
    free(dataset->test.pixels);
    free(dataset->test.labels);
    *dataset = (struct dataset){0};
}
