// SPDX-License-Identifier: BSD-3-Clause
/* The Fashion-MNIST package as it is installed. Skipped where it is not. */
#include <stdio.h>
#include <unistd.h>

#include "trainer/dataset.h"
#include "trainer_check.h"

#define PACKAGE "/usr/share/datasets/fashion-mnist"

enum { SKIPPED = 77 }; /* what the test runner takes for "skipped" */

START_TEST(package)
{
    struct dataset dataset;
    int count[10] = {0};

    ck_assert_int_eq(dataset_load(&dataset, "fashion-mnist", 1), TRAIN_OK);
    ck_assert_uint_eq(dataset.train.count, 60000);
    ck_assert_uint_eq(dataset.test.count, 10000);
    ck_assert_uint_eq(dataset.inputs, 784);
    ck_assert_int_eq(dataset.classes, 10);
    for (size_t i = 0; i < dataset.test.count; i++)
        count[dataset.test.labels[i]]++;
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(count[i], 1000);
    /* the mean and deviation that its users quote: 0.2860 and 0.3530 of 255 */
    ck_assert_double_eq_tol(1 / (double)dataset.scale / 255, 0.3530, 5e-5);
    ck_assert_double_eq_tol(-(double)dataset.shift / (double)dataset.scale / 255, 0.2860, 5e-5);
    dataset_free(&dataset);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {package, NULL};

    if (access(PACKAGE, F_OK) != 0) {
        puts("skipped: " PACKAGE " is not there (package dataset-fashion-mnist)");
        return SKIPPED;
    }
    return run_tests("trainer fashion", tests, 60);
}
