// SPDX-License-Identifier: BSD-3-Clause
#include "run.h"

int main(int argc, char **argv)
{
    struct options options;

    options_parse(&options, argc, argv);
    return guard_run(&options);
}
