// SPDX-License-Identifier: BSD-3-Clause
/* Copies in the place of kernels: HOOP_COPIES. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_space.h"
#include "harness.h"

enum { CAP = 60 };

static void settings(int ranks)
{
    cuda_devices(ranks);
    setenv("FAKECUDA_DELAY", "20", 1);
    setenv("HOOP_DEVICE", "cuda", 1);
    setenv("HOOP_SLICE", "4K", 1);
}

/* What moves data grid_goes by copies, if it is large and all can open what they read, and each rank says so. */
static int by_copies(int rank, struct hoop_comm *comm, bool can)
{
    enum { BYTES = 30000 };
    struct rank_space space;
    char text[1024] = "", plan[HARNESS_PLAN];
    int failed = 0;

    space_open(&space, comm);
    for (int coll = 0; coll < HOOP_COLLS && !failed; coll++)
        for (int way = 0; way < WAYS && !failed; way++) {
            const struct hoop_case c = {.coll = (enum hoop_coll)coll,
                                        .type = HOOP_I32,
                                        .op = HOOP_SUM,
                                        .ranks = hoop_comm_size(comm),
                                        .root = way % hoop_comm_size(comm),
                                        .count = BYTES / sizeof(int32_t),
                                        .in_place = way % 2,
                                        .turn = (unsigned)way};
            const bool moves =
                !hoop_coll_shape(c.coll)->sums && coll != HOOP_BARRIER && !(coll == HOOP_ALL_TO_ALL && way % 2);
            failed = space_run(&c, (enum way)way, &space, rank, comm, text, sizeof text) != HOOP_OK;
            harness_last_plan(comm, plan);
            if (!failed && (strcmp(plan, "copies") == 0) != (moves && can)) {
                fprintf(stderr, "rank %d: collective %d went by %s\n", rank, coll, plan);
                failed = 1;
            }
        }
    if (text[0])
        fprintf(stderr, "rank %d: %s\n", rank, text);
    if (!failed &&
        !space_tells(comm, can ? "HOOP_COPIES=20000 bytes and more go by copies" : "HOOP_COPIES=20000 has no effect"))
        failed = 1;
    if (hoop_comm_destroy(comm) != HOOP_OK)
        failed = 1;
    space_close(&space);
    return failed;
}

/* Rank 0 sends from memory that only its own device reaches: all take the kernel. */
static bool not_from_mapped(int rank, struct hoop_comm *comm)
{
    enum { BYTES = 40000 };
    struct rank_space space;
    struct hoop_cuda_block block = {0};
    char plan[HARNESS_PLAN];

    space_open(&space, comm);
    ck_assert_int_eq(hoop_cuda_block_alloc(space.cuda.cuda, BYTES, &block), HOOP_OK);
    memset(space.host, 7 + rank, BYTES);
    cuda_copy(&space.cuda, (void *)(uintptr_t)block.address, space.host, BYTES, NULL);
    const enum hoop_status status =
        hoop_broadcast((void *)(uintptr_t)block.address, space.device, BYTES, HOOP_U8, 0, comm, NULL);
    cuda_copy(&space.cuda, space.host, space.device, BYTES, NULL);
    harness_last_plan(comm, plan);
    bool good = status == HOOP_OK && strcmp(plan, "copies") != 0;
    for (int i = 0; i < BYTES; i++)
        good &= space.host[i] == 7;
    ck_assert_int_eq(hoop_cuda_block_free(space.cuda.cuda, &block), HOOP_OK);
    space_close(&space);
    return good;
}

static int copies_of_thread(int rank, struct hoop_comm *comm, void *argument)
{
    (void)argument;
    return not_from_mapped(rank, comm) ? by_copies(rank, comm, true) : 1;
}

static int copies_of_process(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    return comm ? by_copies(self->rank, comm, false) : 1;
}

START_TEST(large_ones_by_copies)
{
    settings(_i == 2 ? 1 : 3);
    setenv("HOOP_COPIES", "20000", 1);
    setenv("HOOP_SHARED_GPU", "1", 1);
    if (_i == 1)
        setenv("FAKECUDA_PEERS", "0-1=none", 1);
    if (_i == 0)
        harness_run(3, copies_of_process, NULL, CAP);
    harness_threads(3, copies_of_thread, NULL);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("copies of device memory");
    TCase *all = tcase_create("all");

    (void)argc;
    cuda_driver_or_skip(argv);
    if (!cuda_suits("copies of device memory", 3, true))
        return 77;
    tcase_set_timeout(all, CAP + 20);
    tcase_add_loop_test(all, large_ones_by_copies, 0, 3);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
