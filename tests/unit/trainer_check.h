// SPDX-License-Identifier: BSD-3-Clause
/* What the trainer's test programs share: their main. */
#ifndef TESTS_UNIT_TRAINER_CHECK_H
#define TESTS_UNIT_TRAINER_CHECK_H

#include <check.h>
#include <stdlib.h>

#include "trainer/fail.h"

/* Run one suite with the tests of the NULL-ended list. */
static inline int run_tests(const char *name, const TTest *const *tests, double seconds)
{
    Suite *suite = suite_create(name);
    TCase *all = tcase_create(name);

    tcase_set_timeout(all, seconds);
    for (; *tests; tests++)
        tcase_add_test(all, *tests);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
