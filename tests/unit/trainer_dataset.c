// SPDX-License-Identifier: BSD-3-Clause
/* Data sets: folders of IDX files that belong together or not, normalisation, synthetic data. */
#include "trainer/dataset.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer_check.h"

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "trainer_dataset.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                        "t10k-labels-idx1-ubyte"};
    char path[256];

    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* Images of 2 × 3 pixels (columns otherwise), pixel i of all is i × 10; label i is i % classes. */
static void write_half(const char *half, int images, int labels, int columns, int classes)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte", folder, half);
    FILE *file = fopen(path, "w");
    fwrite((uint8_t[]){0, 0, 8, 3, 0, 0, 0, (uint8_t)images, 0, 0, 0, 2, 0, 0, 0, (uint8_t)columns}, 1, 16, file);
    for (int i = 0; i < images * 2 * columns; i++)
        fputc(i * 10 % 256, file);
    fclose(file);
    snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte", folder, half);
    file = fopen(path, "w");
    fwrite((uint8_t[]){0, 0, 8, 1, 0, 0, 0, (uint8_t)labels}, 1, 8, file);
    for (int i = 0; i < labels; i++)
        fputc(i % classes, file);
    fclose(file);
}

static int load(struct dataset *dataset)
{
    char what[128];

    snprintf(what, sizeof what, "idx:%s", folder);
    train_fail_clear();
    return dataset_load(dataset, what, 1);
}

START_TEST(folder_loads)
{
    struct dataset dataset;
    float rows[2 * 6];
    uint8_t labels[2];
    double sum = 0, squares = 0;

    make_folder();
    write_half("train", 9, 9, 3, 4);
    write_half("t10k", 5, 5, 3, 3);
    ck_assert_int_eq(load(&dataset), TRAIN_OK);
    ck_assert_uint_eq(dataset.inputs, 6);
    ck_assert_int_eq(dataset.classes, 4);
    ck_assert_uint_eq(dataset.train.count, 9);
    ck_assert_uint_eq(dataset.test.count, 5);
    for (int i = 0; i < 9 * 6; i++) {
        const double input = (double)(dataset.train.pixels[i] * dataset.scale + dataset.shift);

        sum += input;
        squares += input * input;
    }
    ck_assert_double_eq_tol(sum / 54, 0, 1e-5);
    ck_assert_double_eq_tol(squares / 54, 1, 1e-5);
    dataset_gather(&dataset, &dataset.train, (uint32_t[]){7, 2}, 2, rows, labels);
    ck_assert_int_eq(labels[0], 3);
    ck_assert_int_eq(labels[1], 2);
    for (int i = 0; i < 6; i++) {
        ck_assert_float_eq(rows[i], dataset.train.pixels[7 * 6 + i] * dataset.scale + dataset.shift);
        ck_assert_float_eq(rows[6 + i], dataset.train.pixels[2 * 6 + i] * dataset.scale + dataset.shift);
    }
    dataset_free(&dataset);
    remove_folder();
}
END_TEST

static void check_refused(const char *reason)
{
    struct dataset dataset;

    ck_assert_int_eq(load(&dataset), TRAIN_DATA);
    ck_assert_msg(strstr(train_fail_text(), reason), "\"%s\" does not say \"%s\"", train_fail_text(), reason);
    dataset_free(&dataset);
}

START_TEST(folder_does_not_fit_together)
{
    make_folder();
    check_refused("neither it nor");
    write_half("train", 9, 8, 3, 4);
    write_half("t10k", 5, 5, 3, 3);
    check_refused("8 labels in 1 dimensions for 9 images");
    write_half("train", 9, 9, 3, 4);
    write_half("t10k", 5, 5, 4, 3);
    check_refused("images of 8 pixels; those to train on have 6");
    write_half("t10k", 5, 5, 3, 5);
    check_refused("test label 4 of sample 4 never occurs");
    remove_folder();
}
END_TEST

START_TEST(names)
{
    ck_assert(dataset_known("fashion-mnist") && dataset_known("synthetic") && dataset_known("idx:x"));
    ck_assert(!dataset_known("idx:") && !dataset_known("mnist") && !dataset_known(""));
}
END_TEST

START_TEST(synthetic_repeats)
{
    struct dataset one, same, other;
    int count[10] = {0};

    ck_assert_int_eq(dataset_load(&one, "synthetic", 1), TRAIN_OK);
    ck_assert_int_eq(dataset_load(&same, "synthetic", 1), TRAIN_OK);
    ck_assert_int_eq(dataset_load(&other, "synthetic", 2), TRAIN_OK);
    ck_assert_uint_eq(dataset_digest(&one), dataset_digest(&same));
    ck_assert_uint_ne(dataset_digest(&one), dataset_digest(&other));
    ck_assert_int_eq(one.classes, 10);
    for (size_t i = 0; i < one.train.count; i++)
        count[one.train.labels[i]]++;
    for (int i = 0; i < 10; i++)
        ck_assert_msg(abs(count[i] - 1200) < 250, "class %d has %d samples", i, count[i]);
    dataset_free(&one);
    dataset_free(&same);
    dataset_free(&other);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {folder_loads, folder_does_not_fit_together, names, synthetic_repeats, NULL};

    return run_tests("trainer dataset", tests, 60);
}
