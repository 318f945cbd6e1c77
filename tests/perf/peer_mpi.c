// SPDX-License-Identifier: BSD-3-Clause
#include "measure.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

/* Errors end the program. */
static void run(void *context, enum measure_call what, const float *send, float *recv, size_t count)
{
    const struct measure *m = context;
    const int block = (int)(count / (size_t)m->ranks);

    switch (what) {
    case BROADCAST:
        MPI_Bcast(m->rank == 0 ? (float *)(uintptr_t)send : recv, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
    case ALL_GATHER:
        MPI_Allgather(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(send, recv, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ALL_TO_ALL:
        MPI_Alltoall(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    default:
        MPI_Allreduce(send, recv, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void barrier(void *context)
{
    (void)context;
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    struct measure m;
    struct measure_peer peer = {&m, run, barrier, NULL, NULL};
    char title[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int rank, ranks, length;

    measure_begin(&m, argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    measure_join(&m, rank, ranks);
    MPI_Get_library_version(title, &length);
    measure_title(&m, title);
    peer.send = measure_ordinary(&m);
    peer.recv = measure_ordinary(&m);
    measure_sizes(&m, &peer, NULL);
    MPI_Finalize();
    return 0;
}
