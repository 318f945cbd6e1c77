// SPDX-License-Identifier: BSD-3-Clause
/* Every collective with every type and operator on 2 to 8 GPUs of the fake driver, as processes (IPC) and as threads (peer access).
 *
 * In `make check` each case runs on one number of GPUs as processes and on another as threads, so that every case and every number is
 * met; `make check-grid` (TEST_GRID=full) runs every case on every number. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_space.h"
#include "harness.h"

enum { FEWEST = 2, MOST = 8, NUMBERS = MOST - FEWEST + 1, CAP = 200 };

/* What a run takes of the grid. */
struct grid {
    unsigned offset; /* cases k with (k + offset) % NUMBERS == ranks - FEWEST; NUMBERS: all */
};

static struct grid sample(unsigned offset)
{
    const char *which = getenv("TEST_GRID");

    return (struct grid){which && strcmp(which, "full") == 0 ? NUMBERS : offset};
}

static bool in_grid(const struct grid *grid, unsigned k, int ranks)
{
    return grid->offset == NUMBERS || (k + grid->offset) % NUMBERS == (unsigned)(ranks - FEWEST);
}

/* ---- the cases ---- */

static bool combines(enum hoop_coll coll)
{
    return coll == HOOP_ALL_REDUCE || coll == HOOP_REDUCE || coll == HOOP_REDUCE_SCATTER;
}

/* What else there is to vary goes by the number of the case, with periods that have nothing in common with NUMBERS. */
static struct hoop_case make_case(int coll, int type, int op, unsigned k, int ranks)
{
    static const size_t counts[] = {1000, 1, 77};

    return (struct hoop_case){.coll = (enum hoop_coll)coll,
                              .type = (enum hoop_type)type,
                              .op = (enum hoop_op)op,
                              .ranks = ranks,
                              .root = (int)(k / NUMBERS % (unsigned)ranks),
                              .count = counts[k % 3],
                              .in_place = k / 3 % 2,
                              .turn = k};
}

static enum hoop_status run_grid(const struct grid *grid, struct rank_space *space, int rank, struct hoop_comm *comm,
                                 char *text, size_t size)
{
    const int ranks = hoop_comm_size(comm);
    enum hoop_status status = HOOP_OK;
    unsigned k = 0;

    for (int coll = 0; coll < HOOP_COLLS; coll++)
        for (int type = 0; type < HOOP_TYPES; type++)
            for (int op = 0; op < (combines((enum hoop_coll)coll) ? HOOP_OPS : 1); op++) {
                if (combines((enum hoop_coll)coll) && !hoop_op_accepts((enum hoop_op)op, (enum hoop_type)type))
                    continue;
                const struct hoop_case c = make_case(coll, type, op, k, ranks);
                if (status == HOOP_OK && in_grid(grid, k, ranks))
                    status = space_run(&c, (enum way)(k / 2 % WAYS), space, rank, comm, text, size);
                k++;
            }
    return status;
}

/* ---- ranks ---- */

static int as_process(struct harness_rank *self)
{
    struct rank_space space;
    struct hoop_comm *comm = harness_join(self);

    if (comm == NULL)
        return 1;
    space_open(&space, comm);
    if (!space_goes(comm, "kernel") ||
        run_grid(self->argument, &space, self->rank, comm, self->report->text, sizeof self->report->text) != HOOP_OK)
        return 1;
    if (hoop_comm_destroy(comm) != HOOP_OK)
        return harness_tell(self, HOOP_ERR_INTERNAL, NULL);
    space_close(&space);
    return 0;
}

static int as_thread(int rank, struct hoop_comm *comm, void *argument)
{
    struct rank_space space;
    char text[1024] = "";

    space_open(&space, comm);
    if (!space_goes(comm, "kernel") || run_grid(argument, &space, rank, comm, text, sizeof text) != HOOP_OK ||
        hoop_comm_destroy(comm) != HOOP_OK) {
        fprintf(stderr, "rank %d: %s\n", rank, text);
        return 1;
    }
    space_close(&space);
    return 0;
}

static void settings(void)
{
    cuda_devices(MOST);
    setenv("HOOP_DEVICE", "cuda", 1);
    setenv("HOOP_SLICE", "4K", 1);
}

START_TEST(processes)
{
    struct grid grid = sample(0);

    settings();
    harness_run(_i, as_process, &grid, CAP);
}
END_TEST

START_TEST(threads)
{
    struct grid grid = sample(3);

    settings();
    harness_threads(_i, as_thread, &grid);
}
END_TEST

/* Barriers within blocks are real, and all devices see memory at the same addresses: what ThreadSanitizer needs to find races. */
START_TEST(several_threads_a_block)
{
    struct grid grid = sample(5);

    settings();
    setenv("FAKECUDA_THREADS", "4", 1);
    setenv("FAKECUDA_FLAT", "1", 1);
    harness_threads(_i, as_thread, &grid);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("collectives x types x operators on devices");
    TCase *all = tcase_create("all");

    (void)argc;
    cuda_driver_or_skip(argv);
    tcase_set_timeout(all, CAP + 20);
    tcase_add_loop_test(all, processes, FEWEST, MOST + 1);
    tcase_add_loop_test(all, threads, FEWEST, MOST + 1);
    tcase_add_loop_test(all, several_threads_a_block, FEWEST, FEWEST + 3);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
