// SPDX-License-Identifier: BSD-3-Clause
/* The conformance suite's entry. HOOP_TEST_SEED repeats a random run. */

#include "conform/conform.h"
#include "harness.h"

int main(void)
{
    Suite *suite = suite_create("conform");

    add_moving(suite);
    add_ending(suite);
    add_random(suite);
    add_apart(suite);
    return harness_suite(suite);
}
