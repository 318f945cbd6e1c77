// SPDX-License-Identifier: BSD-3-Clause
/* The conformance suite's entry. HOOP_TEST_SEED repeats a random run. */
#include <stdlib.h>

#include "conform/conform.h"

int main(void)
{
    Suite *suite = suite_create("conform");

    add_moving(suite);
    add_ending(suite);
    add_random(suite);
    add_apart(suite);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
