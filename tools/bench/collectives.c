// SPDX-License-Identifier: BSD-3-Clause
/* The collectives as a table, with the sizes and bandwidth factors that nccl-tests made customary. */
#include "bench.h"

#include <stdlib.h>

static double factor_both_ways(int ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

static double factor_one_way(int ranks)
{
    return 1.0 * (ranks - 1) / ranks;
}

static double factor_one(int ranks)
{
    (void)ranks;
    return 1;
}

static enum hoop_status run_all_reduce(const struct problem *p, const void *send, void *recv)
{
    return hoop_all_reduce(send, recv, p->count, p->type, p->op, p->comm, NULL);
}

static enum hoop_status run_reduce(const struct problem *p, const void *send, void *recv)
{
    return hoop_reduce(send, recv, p->count, p->type, p->op, p->root, p->comm, NULL);
}

static enum hoop_status run_broadcast(const struct problem *p, const void *send, void *recv)
{
    return hoop_broadcast(send, recv, p->count, p->type, p->root, p->comm, NULL);
}

static enum hoop_status run_all_gather(const struct problem *p, const void *send, void *recv)
{
    return hoop_all_gather(send, recv, p->count, p->type, p->comm, NULL);
}

static enum hoop_status run_reduce_scatter(const struct problem *p, const void *send, void *recv)
{
    return hoop_reduce_scatter(send, recv, p->count, p->type, p->op, p->comm, NULL);
}

static enum hoop_status run_all_to_all(const struct problem *p, const void *send, void *recv)
{
    return hoop_all_to_all(send, recv, p->count, p->type, p->comm, NULL);
}

/* For the calls with lists: every block of the same size. The list is kept from call to call. */
static const size_t *equal_counts(const struct problem *p)
{
    static size_t *counts;
    static int ranks;

    if (ranks != p->ranks)
        counts = must_have(realloc(counts, (size_t)p->ranks * sizeof *counts));
    if (ranks != p->ranks || counts[0] != p->count)
        for (int rank = 0; rank < p->ranks; rank++)
            counts[rank] = p->count;
    ranks = p->ranks;
    return counts;
}

static enum hoop_status run_all_gatherv(const struct problem *p, const void *send, void *recv)
{
    return hoop_all_gatherv(send, p->count, recv, equal_counts(p), NULL, p->type, p->comm, NULL);
}

static enum hoop_status run_all_to_allv(const struct problem *p, const void *send, void *recv)
{
    const size_t *counts = equal_counts(p);

    return hoop_all_to_allv(send, counts, NULL, recv, counts, NULL, p->type, p->comm, NULL);
}

static enum hoop_status run_gather(const struct problem *p, const void *send, void *recv)
{
    return hoop_gather(send, recv, p->count, p->type, p->root, p->comm, NULL);
}

static enum hoop_status run_scatter(const struct problem *p, const void *send, void *recv)
{
    return hoop_scatter(send, recv, p->count, p->type, p->root, p->comm, NULL);
}

static enum hoop_status run_barrier(const struct problem *p, const void *send, void *recv)
{
    (void)send;
    (void)recv;
    return hoop_barrier(p->comm, NULL);
}

const struct collective collectives[] = {
    {"all_reduce", "Allreduce", SHAPE_SAME, true, false, factor_both_ways, run_all_reduce},
    {"reduce", "Reduce", SHAPE_SAME, true, true, factor_one, run_reduce},
    {"broadcast", "Broadcast", SHAPE_SAME, false, true, factor_one, run_broadcast},
    {"all_gather", "Allgather", SHAPE_GATHER, false, false, factor_one_way, run_all_gather},
    {"reduce_scatter", "Reduce_scatter", SHAPE_SCATTER, true, false, factor_one_way, run_reduce_scatter},
    {"all_to_all", "Alltoall", SHAPE_EXCHANGE, false, false, factor_one_way, run_all_to_all},
    {"all_gatherv", "Allgatherv", SHAPE_GATHER, false, false, factor_one_way, run_all_gatherv},
    {"all_to_allv", "Alltoallv", SHAPE_EXCHANGE, false, false, factor_one_way, run_all_to_allv},
    {"gather", "Gather", SHAPE_GATHER, false, true, factor_one_way, run_gather},
    {"scatter", "Scatter", SHAPE_SCATTER, false, true, factor_one_way, run_scatter},
    {"barrier", "Barrier", SHAPE_NONE, false, false, factor_one, run_barrier},
    {NULL, NULL, SHAPE_NONE, false, false, NULL, NULL},
};

size_t problem_send_elements(const struct problem *problem)
{
    const enum shape shape = problem->collective->shape;

    return shape == SHAPE_SCATTER || shape == SHAPE_EXCHANGE ? problem->count * (size_t)problem->ranks : problem->count;
}

size_t problem_recv_elements(const struct problem *problem)
{
    const enum shape shape = problem->collective->shape;

    return shape == SHAPE_GATHER || shape == SHAPE_EXCHANGE ? problem->count * (size_t)problem->ranks : problem->count;
}

size_t problem_count(const struct problem *problem, size_t bytes)
{
    const size_t size = hoop_type_size(problem->type);

    switch (problem->collective->shape) {
    case SHAPE_SAME:
        return bytes / size;
    case SHAPE_GATHER:
    case SHAPE_SCATTER:
    case SHAPE_EXCHANGE:
        return bytes / size / (size_t)problem->ranks / (16 / size) * (16 / size);
    case SHAPE_NONE:
        return 0;
    }
    return 0;
}

double side_algorithm_bandwidth(const struct row *row, const struct side *side)
{
    return side->time > 0 ? (double)row->bytes / side->time : 0;
}

double side_bus_bandwidth(const struct row *row, const struct side *side)
{
    return side_algorithm_bandwidth(row, side) * row->problem.collective->factor(row->problem.ranks);
}
