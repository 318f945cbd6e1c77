// SPDX-License-Identifier: BSD-3-Clause
#include "measure.h"

#include <mpi.h>
#include <stdlib.h>

static void all_reduce(void *context, const float *send, float *recv, size_t count)
{
    (void)context;
    MPI_Allreduce(send, recv, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); /* errors end the program */
}

static void barrier(void *context)
{
    (void)context;
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    struct measure m;
    struct measure_peer peer = {NULL, all_reduce, barrier, NULL, NULL};
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
