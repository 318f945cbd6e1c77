// SPDX-License-Identifier: BSD-3-Clause
/* Calls on device memory that are captured into graphs and replayed between others, and several communicators on the same devices, in
 * streams of their own and in another order on each rank. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_space.h"
#include "harness.h"

enum { CAP = 60, REPLAYS = 100 };

/* ---- graphs ---- */

/* What is captured: each call has its own part of the space. */
static const struct hoop_case captured[] = {
    {.coll = HOOP_ALL_REDUCE, .type = HOOP_F32, .op = HOOP_SUM, .count = 3000, .in_place = true},
    {.coll = HOOP_ALL_TO_ALL, .type = HOOP_I32, .count = 300},
    {.coll = HOOP_REDUCE_SCATTER, .type = HOOP_F64, .op = HOOP_AVG, .count = 700},
    {.coll = HOOP_BROADCAST, .type = HOOP_U8, .count = 5000, .root = 1}};
enum { CAPTURED = sizeof captured / sizeof *captured, PART = SPACE / CAPTURED };

static struct hoop_case case_of(int i, int ranks, int turn)
{
    struct hoop_case c = captured[i];

    c.ranks = ranks;
    c.turn = (unsigned)turn;
    return c;
}

static size_t out_of(const struct hoop_case *c, int i)
{
    return (size_t)i * PART + (c->in_place ? 0 : case_in_bytes(c));
}

static enum hoop_status call_all(struct rank_space *space, struct hoop_comm *comm, hoop_cu_stream stream)
{
    enum hoop_status status = HOOP_OK;

    for (int i = 0; i < CAPTURED && status == HOOP_OK; i++) {
        const struct hoop_case c = case_of(i, hoop_comm_size(comm), 0);
        status = case_call(&c, space->device + (size_t)i * PART, space->device + out_of(&c, i), comm,
                           (hoop_stream *)(void *)stream);
    }
    return status;
}

/* New inputs for all ranks, then either the graph or the same calls; and the results. */
static enum hoop_status turn(struct rank_space *space, int rank, struct hoop_comm *comm, hoop_cu_graph_exec graph,
                             int number, char *text, size_t size)
{
    hoop_cu_stream stream = space->cuda.stream[0];
    enum hoop_status status = HOOP_OK;

    memset(space->host, 0xa5, SPACE);
    for (int i = 0; i < CAPTURED; i++) {
        const struct hoop_case c = case_of(i, hoop_comm_size(comm), number);
        if (case_gives(&c, rank))
            case_fill(&c, rank, space->host + (size_t)i * PART);
    }
    cuda_copy(&space->cuda, space->device, space->host, SPACE, stream);
    if (graph)
        cuda_replay(&space->cuda, graph, stream);
    else
        status = call_all(space, comm, stream);
    cuda_copy(&space->cuda, space->host, space->device, SPACE, stream);
    cuda_synchronize(&space->cuda, stream);
    if (status == HOOP_OK)
        status = hoop_comm_async_error(comm);
    if (status != HOOP_OK)
        snprintf(text, size, "turn %d: %s", number, hoop_last_error(comm));
    for (int i = 0; i < CAPTURED && status == HOOP_OK; i++) {
        const struct hoop_case c = case_of(i, hoop_comm_size(comm), number);
        if (!case_check(&c, rank, space->host + out_of(&c, i), text, size))
            status = HOOP_ERR_INTERNAL;
    }
    return status;
}

static enum hoop_status replay(int rank, struct hoop_comm *comm, char *text, size_t size)
{
    struct rank_space space;

    space_open(&space, comm);
    cuda_capture(&space.cuda, space.cuda.stream[0]);
    enum hoop_status status = call_all(&space, comm, space.cuda.stream[0]);
    hoop_cu_graph_exec graph = cuda_captured(&space.cuda, space.cuda.stream[0]);
    if (status != HOOP_OK)
        snprintf(text, size, "captured: %s", hoop_last_error(NULL));
    for (int number = 0; number < REPLAYS && status == HOOP_OK; number++)
        status = turn(&space, rank, comm, number % 5 == 3 ? NULL : graph, number, text, size);
    cuda_forget(&space.cuda, graph);
    if (status == HOOP_OK)
        status = hoop_comm_destroy(comm);
    if (status == HOOP_OK)
        space_close(&space);
    return status;
}

/* ---- several communicators ---- */

enum { COMMS = 3, COUNT = 2000, TURNS = 30 };

/* Communicators a and c have the first stream, b the second; in a stream all ranks have the same order, between the streams each its own. */
static enum hoop_status call_in(struct rank_space *space, struct hoop_comm *comm, int which)
{
    int *part = (int *)(void *)space->device + which * COUNT;

    return hoop_all_reduce(part, part, COUNT, HOOP_I32, HOOP_SUM, comm,
                           (hoop_stream *)(void *)space->cuda.stream[which % 2]);
}

static enum hoop_status side_by_side(struct rank_space *space, int rank, struct hoop_comm **comm, char *text,
                                     size_t size)
{
    const int ranks = hoop_comm_size(comm[0]);
    int *host = (int *)(void *)space->host;
    enum hoop_status status = HOOP_OK;

    for (int i = 0; i < COMMS * COUNT; i++)
        host[i] = 1;
    cuda_copy(&space->cuda, space->device, host, COMMS * COUNT * sizeof(int), NULL);
    for (int number = 0; number < TURNS && status == HOOP_OK; number++) {
        static const int orders[3][COMMS] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}};
        const int *order = orders[(number + rank) % 3];
        for (int i = 0; i < COMMS && status == HOOP_OK; i++)
            status = call_in(space, comm[order[i]], order[i]);
        if (number % 4 != 3 || status != HOOP_OK)
            continue;
        for (int i = 0; i < 2; i++) /* sums must not overflow: begin again */
            cuda_synchronize(&space->cuda, space->cuda.stream[i]);
        cuda_copy(&space->cuda, host, space->device, COMMS * COUNT * sizeof(int), NULL);
        for (int i = 0; i < COMMS * COUNT; i++) {
            if (host[i] != ranks * ranks * ranks * ranks) {
                snprintf(text, size, "turn %d, communicator %d: %d is not %d to the power of 4", number, i / COUNT,
                         host[i], ranks);
                status = HOOP_ERR_INTERNAL;
            }
            host[i] = 1;
        }
        cuda_copy(&space->cuda, space->device, host, COMMS * COUNT * sizeof(int), NULL);
    }
    for (int i = 0; i < 2; i++)
        cuda_synchronize(&space->cuda, space->cuda.stream[i]);
    return status;
}

static enum hoop_status several(int rank, struct hoop_comm *first, char *text, size_t size)
{
    struct hoop_comm *comm[COMMS] = {first};
    struct rank_space space;

    enum hoop_status status = hoop_comm_split(first, 0, -rank, &comm[1]); /* in reverse */
    if (status == HOOP_OK)
        status = hoop_comm_split(first, 0, rank, &comm[2]);
    if (status != HOOP_OK) {
        snprintf(text, size, "%s", hoop_last_error(NULL));
        return status;
    }
    space_open(&space, first);
    status = side_by_side(&space, rank, comm, text, size);
    for (int i = COMMS - 1; i >= 0 && status == HOOP_OK; i--)
        status = hoop_comm_destroy(comm[i]);
    if (status == HOOP_OK)
        space_close(&space);
    return status;
}

/* ---- ranks ---- */

typedef enum hoop_status (*body)(int rank, struct hoop_comm *comm, char *text, size_t size);
static const body bodies[] = {replay, several};

static int as_process(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);
    struct harness_report *report = self->report;

    return comm == NULL || !space_goes(comm, "kernel") ||
           (*(const body *)self->argument)(self->rank, comm, report->text, sizeof report->text) != HOOP_OK;
}

static int as_thread(int rank, struct hoop_comm *comm, void *argument)
{
    char text[1024] = "";
    const bool good = space_goes(comm, "kernel") && (*(const body *)argument)(rank, comm, text, sizeof text) == HOOP_OK;

    if (!good)
        fprintf(stderr, "rank %d: %s\n", rank, text);
    return !good;
}

static void settings(void)
{
    cuda_devices(4);
    setenv("FAKECUDA_DELAY", "20", 1);
    setenv("HOOP_DEVICE", "cuda", 1);
    setenv("HOOP_SLICE", "4K", 1);
}

START_TEST(processes)
{
    body what = bodies[_i % 2];

    settings();
    harness_run(2 + _i / 2, as_process, &what, CAP);
}
END_TEST

START_TEST(threads)
{
    body what = bodies[_i % 2];

    settings();
    harness_threads(2 + _i / 2, as_thread, &what);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("graphs and communicators on devices");
    TCase *all = tcase_create("all");

    (void)argc;
    cuda_driver_or_skip(argv);
    tcase_set_timeout(all, CAP + 20);
    tcase_add_loop_test(all, processes, 0, 6);
    tcase_add_loop_test(all, threads, 0, 6);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
