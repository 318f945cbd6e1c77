// SPDX-License-Identifier: BSD-3-Clause
/* A program for hooprun --survivors: it sums until so few ranks are left as its argument says, and then some times more.
 *
 * Each rank gives the number that it had at first, so a sum tells whether those that take part are those that live. */
#include <hoop.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 3000, MORE = 30 };

static int self; /* the rank at first */

static int fail(const char *what)
{
    fprintf(stderr, "survivor: rank %d: %s: %s\n", self, what, hoop_last_error(NULL));
    return 1;
}

/* The old ranks of those that are there, in order. */
static enum hoop_status look_around(struct hoop_comm *comm, int *members)
{
    return hoop_all_gather(&self, members, sizeof self, HOOP_U8, comm, NULL);
}

/* One sum; HOOP_ERR_INTERNAL if it is wrong. */
static enum hoop_status sum(struct hoop_comm *comm, const int *members)
{
    static int64_t data[COUNT];
    int64_t want = 0;

    for (int i = 0; i < hoop_comm_size(comm); i++)
        want += members[i];
    for (int i = 0; i < COUNT; i++)
        data[i] = self;
    const enum hoop_status status = hoop_all_reduce(data, data, COUNT, HOOP_I64, HOOP_SUM, comm, NULL);
    for (int i = 0; i < COUNT && status == HOOP_OK; i++)
        if (data[i] != want)
            return HOOP_ERR_INTERNAL;
    return status;
}

/* Sum with those that are there; HOOP_OK: to the end. */
static enum hoop_status work(struct hoop_comm *comm, int least)
{
    int members[1024];
    enum hoop_status status = look_around(comm, members);

    if (status == HOOP_OK)
        printf("survivor: rank %d is one of %d\n", self, hoop_comm_size(comm));
    fflush(stdout);
    for (int i = 0; status == HOOP_OK && (i < MORE || hoop_comm_size(comm) > least); i++)
        status = sum(comm, members);
    return status;
}

int main(int argc, char **argv)
{
    struct hoop_comm *comm, *smaller;
    enum hoop_status status;

    if (argc != 2)
        return 2;
    if (hoop_comm_init_env(&comm) != HOOP_OK)
        return fail("joining");
    self = hoop_comm_rank(comm);
    if (hoop_comm_size(comm) > 1024)
        return fail("too many ranks");
    while ((status = work(comm, (int)strtol(argv[1], NULL, 10))) == HOOP_ERR_PEER) {
        printf("survivor: rank %d saw: %s\n", self, hoop_last_error(comm));
        if (hoop_comm_shrink(comm, &smaller) != HOOP_OK)
            return fail("shrinking");
        hoop_comm_destroy(comm);
        comm = smaller;
    }
    if (status != HOOP_OK)
        return fail(status == HOOP_ERR_INTERNAL ? "a wrong sum" : "summing");
    if (hoop_comm_destroy(comm) != HOOP_OK)
        return fail("parting");
    printf("survivor: rank %d is done\n", self);
    return 0;
}
