// SPDX-License-Identifier: BSD-3-Clause
#include "measure.h"

#include <hoop.h>
#include <stdio.h>

static void all_reduce(void *context, const float *send, float *recv, size_t count)
{
    if (hoop_all_reduce(send, recv, count, HOOP_F32, HOOP_SUM, context, NULL) != HOOP_OK)
        measure_fail(&(struct measure){.rank = hoop_comm_rank(context)}, "all_reduce", hoop_last_error(context));
}

static void barrier(void *context)
{
    if (hoop_barrier(context, NULL) != HOOP_OK)
        measure_fail(&(struct measure){.rank = hoop_comm_rank(context)}, "barrier", hoop_last_error(context));
}

static const char *plan(void *context)
{
    static struct hoop_stats stats;

    stats.size = sizeof(stats);
    return hoop_stats(context, &stats) == HOOP_OK ? stats.last_plan : "";
}

static float *buffer(const struct measure *m, struct hoop_comm *comm)
{
    void *memory;

    if (m->ordinary)
        return measure_ordinary(m);
    if (hoop_mem_alloc(comm, &memory, measure_room(m)) != HOOP_OK)
        measure_fail(m, "hoop_mem_alloc", hoop_last_error(NULL));
    return memory;
}

int main(int argc, char **argv)
{
    struct measure m;
    struct hoop_comm *comm;
    struct measure_peer peer;
    char title[64];

    measure_begin(&m, argc, argv);
    if (hoop_comm_init_env(&comm) != HOOP_OK)
        measure_fail(&m, "hoop_comm_init_env", hoop_last_error(NULL));
    measure_join(&m, hoop_comm_rank(comm), hoop_comm_size(comm));
    snprintf(title, sizeof(title), "hoop %d.%d.%d", hoop_version() / 10000, hoop_version() / 100 % 100,
             hoop_version() % 100);
    measure_title(&m, title);
    peer = (struct measure_peer){comm, all_reduce, barrier, buffer(&m, comm), buffer(&m, comm)};
    measure_sizes(&m, &peer, plan);
    if (hoop_comm_destroy(comm) != HOOP_OK)
        measure_fail(&m, "hoop_comm_destroy", hoop_last_error(NULL));
    return 0;
}
