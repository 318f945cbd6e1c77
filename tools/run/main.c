// SPDX-License-Identifier: BSD-3-Clause
#include "run.h"

int main(int argc, char **argv)
{
    static struct options options; /* with all that it points to as long as the program lives */

    options_parse(&options, argc, argv);
    return guard_run(&options);
}
