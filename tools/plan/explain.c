// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan explain: the choice that a communicator on this machine would make, and why; with --topo also what the simulator
 * says of the candidates on that network. */
#include <hoop.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan_tool.h"

int explain_choice(const struct plan_options *options)
{
    struct hoop_problem problem;
    struct hoop_choice choice;
    char *text = malloc(HOOP_EXPLAIN_TEXT);

    if (text == NULL) {
        fprintf(stderr, "hoop-plan: no memory for the text\n");
        return 1;
    }
    if (!read_problem(options, options->ranks, &problem)) {
        free(text);
        return 1;
    }
    enum hoop_status status = hoop_choice_read(&choice);
    problem.channels = 1;
    choice.groups = problem.groups;
    if (options->cores > 0)
        choice.cores = options->cores;
    if (status == HOOP_OK)
        status = hoop_plan_explain(&choice, &problem, options->bytes, options->json, text, HOOP_EXPLAIN_TEXT);
    if (status != HOOP_OK)
        fprintf(stderr, "hoop-plan: %s\n", hoop_last_error(NULL));
    else
        fputs(text, stdout);
    free(text);
    if (status != HOOP_OK || fflush(stdout) != 0)
        return 1;
    return options->topo.levels > 0 && !options->json && options->ranks > 1 ? simulate_levels(options, &choice) : 0;
}
