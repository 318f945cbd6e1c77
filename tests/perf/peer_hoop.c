// SPDX-License-Identifier: BSD-3-Clause
#include "measure.h"

#include <hoop.h>
#include <stdint.h>
#include <stdio.h>

static enum hoop_status call(enum measure_call what, const float *send, float *recv, size_t count,
                             struct hoop_comm *comm)
{
    const size_t block = count / (size_t)hoop_comm_size(comm);

    switch (what) {
    case BROADCAST:
        return hoop_broadcast(send, hoop_comm_rank(comm) == 0 ? (float *)(uintptr_t)send : recv, count, HOOP_F32, 0,
                              comm, NULL);
    case ALL_GATHER:
        return hoop_all_gather(send, recv, block, HOOP_F32, comm, NULL);
    case REDUCE_SCATTER:
        return hoop_reduce_scatter(send, recv, block, HOOP_F32, HOOP_SUM, comm, NULL);
    case ALL_TO_ALL:
        return hoop_all_to_all(send, recv, block, HOOP_F32, comm, NULL);
    default:
        return hoop_all_reduce(send, recv, count, HOOP_F32, HOOP_SUM, comm, NULL);
    }
}

static void run(void *context, enum measure_call what, const float *send, float *recv, size_t count)
{
    if (call(what, send, recv, count, context) != HOOP_OK)
        measure_fail(&(struct measure){.rank = hoop_comm_rank(context)}, "the call", hoop_last_error(context));
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
    peer = (struct measure_peer){comm, run, barrier, buffer(&m, comm), buffer(&m, comm)};
    measure_sizes(&m, &peer, plan);
    if (hoop_comm_destroy(comm) != HOOP_OK)
        measure_fail(&m, "hoop_comm_destroy", hoop_last_error(NULL));
    return 0;
}
