// SPDX-License-Identifier: BSD-3-Clause
/* A program of somebody else: sees the installed headers and library only, and is valid C and C++.
 * Every rank adds its number plus one; the sum is known. Prints "rank R of N: SUM, library VERSION". */
#include <hoop.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char *call)
{
    fprintf(stderr, "%s: %s\n", call, hoop_last_error(NULL));
    return EXIT_FAILURE;
}

int main(void)
{
    struct hoop_comm *comm = NULL;
    double values[3] = {0, 0, 0};

    if (hoop_comm_init_env(&comm) != HOOP_OK)
        return failed("hoop_comm_init_env");
    const int rank = hoop_comm_rank(comm), ranks = hoop_comm_size(comm);
    for (int i = 0; i < 3; i++)
        values[i] = rank + 1 + i;
    if (hoop_all_reduce(values, values, 3, HOOP_F64, HOOP_SUM, comm, NULL) != HOOP_OK)
        return failed("hoop_all_reduce");
    const double sum = ranks * (ranks + 1) / 2;
    for (int i = 0; i < 3; i++)
        if (values[i] < sum + i * ranks || values[i] > sum + i * ranks) {
            fprintf(stderr, "rank %d: value %d is %g, not %g\n", rank, i, values[i], sum + i * ranks);
            return EXIT_FAILURE;
        }
    if (hoop_comm_destroy(comm) != HOOP_OK)
        return failed("hoop_comm_destroy");
    printf("rank %d of %d: %g, library %d\n", rank, ranks, values[0], hoop_version());
    return EXIT_SUCCESS;
}
