// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan explain --topo FILE for a machine with GPUs: what kernels on them would choose, and the bandwidth that comes of it. */
#include <hoop.h>
#include <hoop/topo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_tool.h"

/* Parts of the vector that have to pass each rank, as nccl-tests count. */
static double bus_factor(enum hoop_coll coll, int ranks)
{
    const double n = ranks;

    switch (coll) {
    case HOOP_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case HOOP_REDUCE:
    case HOOP_BROADCAST:
        return 1;
    default:
        return (n - 1) / n;
    }
}

/* GB/s of rings, whose rates are known, or of what HOOP_ALGO names; 0: it does not do the collective. */
static double bus_bandwidth(const struct hoop_choice *choice, const struct hoop_problem *problem, size_t bytes,
                            const struct hoop_algo *algo)
{
    if (algo->composed || !algo->applicable(problem))
        return 0;
    const double time = hoop_model_predict(&choice->model, algo, problem, bytes, choice->frame, choice->cores).time;
    return bus_factor(problem->coll, problem->ranks) * (double)bytes / time;
}

static void tell_rings(const struct hoop_topo_channels *rings)
{
    printf("rings      %d of %.4g GB/s on %d host%s, worst way %s, limited by %s%s\n", rings->channels,
           rings->gigabytes_per_second, rings->hosts, rings->hosts == 1 ? "" : "s", hoop_topo_hop_name(rings->worst),
           rings->channel[0].limit, rings->assumed ? " (some speeds are assumed)" : "");
}

static int tell(const struct plan_options *options, const struct hoop_gpu_choice *gpus,
                const struct hoop_topo_channels *rings, char *text)
{
    const struct hoop_problem problem = {.coll = (enum hoop_coll)options->coll,
                                         .ranks = gpus->ranks,
                                         .in_place = options->in_place,
                                         .channels = 1,
                                         .groups = gpus->groups};
    const struct hoop_algo *algo = gpus->choice.forced != NULL ? gpus->choice.forced : hoop_algo_find("ring");
    const double bus = bus_bandwidth(&gpus->choice, &problem, options->bytes, algo);

    if (hoop_plan_explain(&gpus->choice, &problem, options->bytes, options->json, text, HOOP_EXPLAIN_TEXT) != HOOP_OK) {
        fprintf(stderr, "hoop-plan: %s\n", hoop_last_error(NULL));
        return 1;
    }
    if (options->json) {
        const size_t end = strlen(text) - 2; /* of the last brace and the line's end */

        printf("%.*s,\"bus_bandwidth\":%.4g,\"rings\":%d,\"ring_bandwidth\":%.4g%s", (int)end, text, bus,
               rings->channels, rings->gigabytes_per_second, text + end);
    } else {
        fputs(text, stdout);
        tell_rings(rings);
        if (bus > 0)
            printf("predicted  %s: bus bandwidth %.4g GB/s\n", algo->name, bus);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

/* As many hosts as the ranks need; 0: they do not go up evenly, as is told. */
static int hosts_of(const struct plan_options *options, int gpus)
{
    if (options->ranks_of_topo || options->ranks % gpus == 0)
        return options->ranks_of_topo ? 1 : options->ranks / gpus;
    fprintf(stderr, "hoop-plan: -n %d: the machine has %d GPUs; give a multiple of that\n", options->ranks, gpus);
    return 0;
}

int explain_gpus(const struct plan_options *options, bool *done)
{
    static struct hoop_topo_channels rings;
    struct hoop_topo *topo = NULL;
    struct hoop_gpu_choice gpus;
    char *text = malloc(HOOP_EXPLAIN_TEXT);
    int code = 1;

    *done = true;
    if (text == NULL || hoop_topo_load(&topo, options->machine) != HOOP_OK) {
        fprintf(stderr, "hoop-plan: %s\n", text == NULL ? "no memory for the text" : hoop_last_error(NULL));
        free(text);
        return 1;
    }
    const int count = hoop_topo_count(topo, HOOP_TOPO_GPU), hosts = count < 2 ? 0 : hosts_of(options, count);
    *done = count >= 2;
    if (hosts > 0) {
        if (hoop_gpu_choice_make(&gpus, topo, hosts, &rings) == HOOP_OK) {
            code = tell(options, &gpus, &rings, text);
            hoop_groups_free(gpus.groups);
        } else {
            fprintf(stderr, "hoop-plan: %s\n", hoop_last_error(NULL));
        }
    }
    hoop_topo_free(topo);
    free(text);
    return code;
}
