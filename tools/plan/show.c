// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan list and print, and what the other commands share. */
#include <errno.h>
#include <hoop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_tool.h"

bool is_rooted(enum hoop_coll coll)
{
    return hoop_coll_shape(coll)->rooted;
}

bool read_problem(const struct plan_options *options, int ranks, struct hoop_problem *problem)
{
    static struct hoop_groups *groups;

    char units[16] = "";
    const char *sizes = options->group_sizes;

    if (sizes == NULL && options->topo.levels > 0) {
        const struct hoop_network network = network_of(options, ranks);
        if (group_of(&network) > 0) {
            snprintf(units, sizeof units, "%d", group_of(&network));
            sizes = units;
        }
    }
    if (groups != NULL && groups->ranks != ranks) {
        hoop_groups_free(groups);
        groups = NULL;
    }
    *problem = (struct hoop_problem){.coll = (enum hoop_coll)options->coll,
                                     .ranks = ranks,
                                     .root = options->root == ALL_ROOTS ? 0 : options->root,
                                     .in_place = options->in_place,
                                     .channels = options->channels,
                                     .inter = options->inter,
                                     .intra = options->intra};
    if (sizes != NULL && groups == NULL && hoop_groups_cut(&groups, ranks, sizes) != HOOP_OK) {
        fprintf(stderr, "hoop-plan: %s\n", hoop_last_error(NULL));
        return false;
    }
    problem->groups = groups;
    return true;
}

void free_plans(struct hoop_plan **plan, int ranks)
{
    for (int i = 0; i < ranks; i++)
        hoop_plan_free(plan[i]);
}

bool build_plans(struct hoop_plan **plan, const struct hoop_algo *algo, struct hoop_problem problem, bool fuse)
{
    for (problem.rank = 0; problem.rank < problem.ranks; problem.rank++)
        if (hoop_plan_build(&plan[problem.rank], algo, &problem, fuse) != HOOP_OK) {
            fprintf(stderr, "hoop-plan: %s\n", hoop_last_error(NULL));
            free_plans(plan, problem.rank);
            return false;
        }
    return true;
}

/* Print the collectives that the algorithm does, of those that sum or of the others; says how many. */
static int list_collectives(const struct hoop_algo *algo, const struct hoop_groups *groups, bool sums)
{
    int listed = 0;

    for (int coll = 0; coll < HOOP_COLLS; coll++) {
        const struct hoop_problem problem = {.coll = (enum hoop_coll)coll, .ranks = 4, .channels = 1, .groups = groups};

        if (hoop_coll_shape(problem.coll)->sums == sums && algo->applicable(&problem)) {
            printf(" %s", hoop_coll_name(problem.coll));
            listed++;
        }
    }
    return listed;
}

int list_algorithms(void)
{
    const struct hoop_algo *algo;
    struct hoop_groups *groups;

    if (hoop_groups_cut(&groups, 4, "2") != HOOP_OK)
        return 1;
    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++) {
        printf("%-8s %s\n        ", algo->name, hoop_algo_help(i));
        if (list_collectives(algo, groups, true) > 0 && algo->rank_order)
            printf(" (sums in rank order)");
        list_collectives(algo, groups, false);
        printf("\n");
    }
    hoop_groups_free(groups);
    return fflush(stdout) == 0 ? 0 : 1;
}

static bool print_rank(const struct plan_options *options, int rank, FILE *file)
{
    struct hoop_problem problem;
    struct hoop_plan *plan;

    if (!read_problem(options, options->ranks, &problem))
        return false;
    problem.rank = rank;
    enum hoop_status status = hoop_plan_build(&plan, options->algo, &problem, !options->unfused);

    if (status == HOOP_OK) {
        status = hoop_plan_print(plan, file);
        hoop_plan_free(plan);
    }
    if (status != HOOP_OK)
        fprintf(stderr, "hoop-plan: %s\n", hoop_last_error(NULL));
    return status == HOOP_OK;
}

int print_plans(const struct plan_options *options)
{
    const int first = options->rank == ALL_RANKS ? 0 : options->rank;
    const int last = options->rank == ALL_RANKS ? options->ranks - 1 : options->rank;
    FILE *file = options->output == NULL ? stdout : fopen(options->output, "w");
    bool good = true;

    if (file == NULL) {
        fprintf(stderr, "hoop-plan: %s: %s\n", options->output, strerror(errno));
        return 1;
    }
    for (int rank = first; rank <= last && good; rank++)
        good = print_rank(options, rank, file);
    if (file != stdout && fclose(file) != 0)
        good = false;
    return good ? 0 : 1;
}
