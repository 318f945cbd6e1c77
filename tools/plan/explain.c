// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan explain: the choice that a communicator on this machine would make, and why; with --topo also what the simulator
 * says of the candidates on that network. */
#include <hoop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_tool.h"

/* The levels that --topo describes are what the choice reckons with. */
static void apply_levels(const struct plan_options *options, struct hoop_choice *choice)
{
    const struct hoop_network network = network_of(options, options->ranks);
    int outer = 0;

    while (outer + 1 < network.levels && network.level[outer].count == 1)
        outer++;
    choice->model.hop_across = network.level[outer].latency > 1 ? network.level[outer].latency : 1;
    choice->model.uplink = network.level[outer].bandwidth;
}

static void print_explanation(const struct plan_options *options, const struct hoop_choice *choice, const char *text)
{
    const bool simulated = options->topo.levels > 0 && options->ranks > 1;
    const size_t end = strlen(text) - 2; /* of JSON: the last brace and the line's end */

    if (!simulated) {
        fputs(text, stdout);
    } else if (options->json) {
        fwrite(text, 1, end, stdout);
        simulate_levels(options, choice);
        fputs(text + end, stdout);
    } else {
        fputs(text, stdout);
        simulate_levels(options, choice);
    }
}

int explain_choice(const struct plan_options *options)
{
    struct hoop_problem problem;
    struct hoop_choice choice;
    bool done = false;

    if (options->machine != NULL) {
        const int code = explain_gpus(options, &done);
        if (done)
            return code;
    }
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
    if (options->topo.levels > 0)
        apply_levels(options, &choice);
    if (status == HOOP_OK)
        status = hoop_plan_explain(&choice, &problem, options->bytes, options->json, text, HOOP_EXPLAIN_TEXT);
    if (status != HOOP_OK)
        fprintf(stderr, "hoop-plan: %s\n", hoop_last_error(NULL));
    else
        print_explanation(options, &choice, text);
    free(text);
    return status == HOOP_OK && fflush(stdout) == 0 ? 0 : 1;
}
