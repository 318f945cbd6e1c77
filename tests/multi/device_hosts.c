// SPDX-License-Identifier: BSD-3-Clause
/* Calls on device memory of ranks on several hosts, as kernels whose frames a thread of the host carries over the network (exec/cuda_relay.h).
 *
 * Ranks on one machine are on several hosts if HOOP_TRANSPORTS=tcp says so, or HOOP_HOST: then those of a host still have their own ways,
 * and one plan goes both. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device_space.h"
#include "harness.h"
#include "hoop/shrink.h"
#include "tsan.h"

enum { MOST = 4, CAP = 100 };

/* ---- hosts ---- */

static void settings(void)
{
    cuda_devices(MOST);
    setenv("HOOP_DEVICE", "cuda", 1);
}

static void every_rank_a_host(void)
{
    settings();
    setenv("HOOP_TRANSPORTS", "tcp", 1);
}

/* Ranks 0 and 1 on one host, 2 and 3 on another; before they join. */
static void two_a_host(int rank)
{
    setenv("HOOP_HOST", rank < 2 ? "left" : "right", 1);
}

static enum hoop_status end_well(struct rank_space *space, struct hoop_comm *comm, char *text, size_t size)
{
    const enum hoop_status status = hoop_comm_destroy(comm);

    if (status == HOOP_OK)
        space_close(space);
    else
        snprintf(text, size, "the end: %s", hoop_last_error(NULL));
    return status;
}

/* ---- collectives ---- */

/* Each with types of several sizes, small ones that are widened and pairs among them; vectors that fit a word, that are cut into slices,
 * and that are empty for some. */
static const struct {
    enum hoop_type type;
    enum hoop_op op;
    size_t count;
} shapes[] = {{HOOP_F32, HOOP_SUM, 1},    {HOOP_I32, HOOP_MAX, 3000}, {HOOP_U8, HOOP_SUM, 77},
              {HOOP_F64, HOOP_AVG, 5000}, {HOOP_BF16, HOOP_SUM, 700}, {HOOP_F8E5M2, HOOP_MIN, 3},
              {HOOP_U64, HOOP_BXOR, 12},  {HOOP_F16, HOOP_PROD, 900}, {HOOP_I8, HOOP_SUM, 20000}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static enum hoop_status run_all(struct rank_space *space, int rank, struct hoop_comm *comm, char *text, size_t size)
{
    const int ranks = hoop_comm_size(comm);
    enum hoop_status status = HOOP_OK;
    unsigned k = 0;

    for (int coll = 0; coll < HOOP_COLLS; coll++)
        for (int i = coll % 2; i < SHAPES && status == HOOP_OK; i += THIN ? 4 : 2, k++) {
            const struct hoop_case c = {.coll = (enum hoop_coll)coll,
                                        .type = shapes[i].type,
                                        .op = shapes[i].op,
                                        .ranks = ranks,
                                        .root = (int)k % ranks,
                                        .count = shapes[i].count,
                                        .in_place = k / 2 % 2,
                                        .turn = k};
            if (hoop_op_accepts(c.op, c.type))
                status = space_run(&c, (enum way)(k % WAYS), space, rank, comm, text, size);
        }
    return status;
}

/* Blocks of 0, 300, 600, … elements of rank 0, 1, 2, …; and what rank a has for b in an all_to_allv is a * 10 + b * 200 of them. */
static enum hoop_status run_uneven(struct rank_space *space, int rank, struct hoop_comm *comm, char *text, size_t size)
{
    enum { PART = SPACE / 2, SCALE = 300 };
    const int ranks = hoop_comm_size(comm);
    size_t counts[MOST], from[MOST] = {0}, to[MOST], gets[MOST], sent_at[MOST], got_at[MOST];
    int *host = (int *)(void *)space->host;
    size_t sent = 0, got = 0, all = 0;

    for (int r = 0; r < ranks; r++) {
        counts[r] = (size_t)(SCALE * r);
        from[r] = all;
        all += counts[r];
        to[r] = (size_t)(rank * 10 + r * 200);
        gets[r] = (size_t)(r * 10 + rank * 200);
        sent_at[r] = sent;
        got_at[r] = got;
        sent += to[r];
        got += gets[r];
    }
    for (size_t i = 0; i < SPACE / sizeof *host; i++)
        host[i] = 1000 * rank + (int)(i % 1000);
    cuda_copy(&space->cuda, space->device, host, SPACE, NULL);
    enum hoop_status status =
        hoop_all_gatherv(space->device, counts[rank], space->device + PART, counts, from, HOOP_I32, comm, NULL);
    cuda_copy(&space->cuda, host, space->device + PART, all * sizeof *host, NULL);
    for (int r = 0; r < ranks; r++)
        for (size_t i = 0; i < counts[r]; i++)
            if (status == HOOP_OK && host[from[r] + i] != 1000 * r + (int)(i % 1000)) {
                snprintf(text, size, "all_gatherv: element %zu of rank %d is %d", i, r, host[from[r] + i]);
                return HOOP_ERR_INTERNAL;
            }
    if (status == HOOP_OK)
        status = hoop_all_to_allv(space->device, to, sent_at, space->device + PART, gets, got_at, HOOP_I32, comm, NULL);
    cuda_copy(&space->cuda, host, space->device + PART, got * sizeof *host, NULL);
    for (int r = 0; r < ranks; r++) { /* of what rank r sends, our block lies behind those of the ranks before us */
        size_t before = 0;
        for (int b = 0; b < rank; b++)
            before += (size_t)(r * 10 + b * 200);
        for (size_t i = 0; i < gets[r]; i++)
            if (status == HOOP_OK && host[got_at[r] + i] != 1000 * r + (int)((before + i) % 1000)) {
                snprintf(text, size, "all_to_allv: element %zu of rank %d is %d", i, r, host[got_at[r] + i]);
                return HOOP_ERR_INTERNAL;
            }
    }
    if (status != HOOP_OK)
        snprintf(text, size, "blocks of different sizes: %s", hoop_last_error(comm));
    return status;
}

/* Messages between hosts are staged. */
static enum hoop_status run_messages(const struct rank_space *space, int rank, struct hoop_comm *comm, char *text,
                                     size_t size)
{
    const int ranks = hoop_comm_size(comm);

    hoop_group_start();
    hoop_send(space->device, 500, HOOP_I32, (rank + 1) % ranks, comm, NULL);
    hoop_recv(space->device + SPACE / 2, 500, HOOP_I32, (rank + ranks - 1) % ranks, comm, NULL);
    const enum hoop_status status = hoop_group_end();
    if (status != HOOP_OK)
        snprintf(text, size, "messages: %s", hoop_last_error(comm));
    return status;
}

static enum hoop_status collectives(int rank, struct hoop_comm *comm, char *text, size_t size)
{
    struct rank_space space;

    space_open(&space, comm);
    enum hoop_status status = run_all(&space, rank, comm, text, size);
    if (status == HOOP_OK)
        status = run_uneven(&space, rank, comm, text, size);
    if (status == HOOP_OK)
        status = run_messages(&space, rank, comm, text, size);
    return status == HOOP_OK ? end_well(&space, comm, text, size) : status;
}

/* ---- graphs ---- */

/* A call that is captured and replayed, with the same call made by itself between replays. */
static enum hoop_status graphs(int rank, struct hoop_comm *comm, char *text, size_t size)
{
    enum { COUNT = 3000, TURNS = 12 };
    const int ranks = hoop_comm_size(comm);
    struct rank_space space;

    space_open(&space, comm);
    hoop_cu_stream stream = space.cuda.stream[0];
    int *host = (int *)(void *)space.host;
    cuda_capture(&space.cuda, stream);
    enum hoop_status status =
        hoop_all_reduce(space.device, space.device, COUNT, HOOP_I32, HOOP_SUM, comm, (hoop_stream *)(void *)stream);
    hoop_cu_graph_exec graph = cuda_captured(&space.cuda, stream);
    for (int turn = 0; turn < TURNS && status == HOOP_OK; turn++) {
        for (int i = 0; i < COUNT; i++)
            host[i] = i + turn + rank;
        cuda_copy(&space.cuda, space.device, host, COUNT * sizeof *host, stream);
        if (turn % 4 == 3)
            status = hoop_all_reduce(space.device, space.device, COUNT, HOOP_I32, HOOP_SUM, comm,
                                     (hoop_stream *)(void *)stream);
        else
            cuda_replay(&space.cuda, graph, stream);
        cuda_copy(&space.cuda, host, space.device, COUNT * sizeof *host, stream);
        cuda_synchronize(&space.cuda, stream);
        for (int i = 0; i < COUNT && status == HOOP_OK; i++)
            if (host[i] != ranks * (i + turn) + ranks * (ranks - 1) / 2) {
                snprintf(text, size, "turn %d: element %d is %d", turn, i, host[i]);
                return HOOP_ERR_INTERNAL;
            }
    }
    cuda_forget(&space.cuda, graph);
    if (status != HOOP_OK)
        snprintf(text, size, "a graph: %s", hoop_last_error(comm));
    return status == HOOP_OK ? end_well(&space, comm, text, size) : status;
}

/* ---- ranks that end well ---- */

typedef enum hoop_status (*body)(int rank, struct hoop_comm *comm, char *text, size_t size);

static bool goes_right(struct hoop_comm *comm)
{
    return space_goes(comm, "kernel") && space_tells(comm, "by cuda_net") &&
           space_tells(comm, "messages are staged: the ranks are on several hosts");
}

static int as_thread(int rank, struct hoop_comm *comm, void *argument)
{
    char text[1024] = "";
    const bool good = goes_right(comm) && (*(const body *)argument)(rank, comm, text, sizeof text) == HOOP_OK;

    if (!good) {
        fprintf(stderr, "rank %d: %s\n", rank, text);
        hoop_comm_abort(comm);
    }
    return !good;
}

static int as_process(struct harness_rank *self)
{
    two_a_host(self->rank);
    struct hoop_comm *comm = harness_join(self);
    struct harness_report *report = self->report;

    return comm == NULL || !goes_right(comm) || !space_tells(comm, "by cuda_ipc") ||
           (*(const body *)self->argument)(self->rank, comm, report->text, sizeof report->text) != HOOP_OK;
}

START_TEST(hosts_of_one_rank)
{
    body what = collectives;

    every_rank_a_host();
    setenv("HOOP_SLICE", "4K", 1);
    setenv("HOOP_SLOTS", "2", 1);
    harness_threads(_i, as_thread, &what);
}
END_TEST

/* What ThreadSanitizer needs to see all: real barriers in blocks, and memory at one address. */
START_TEST(several_threads_a_block)
{
    body what = collectives;

    every_rank_a_host();
    setenv("HOOP_SLICE", "4K", 1);
    setenv("FAKECUDA_THREADS", "3", 1);
    setenv("FAKECUDA_FLAT", "1", 1);
    harness_threads(2, as_thread, &what);
}
END_TEST

START_TEST(hosts_of_two_ranks)
{
    body what = collectives;

    settings();
    if (_i)
        setenv("HOOP_ALGO", "ring", 1);
    else
        setenv("HOOP_SLICE", "4K", 1);
    harness_run(MOST, as_process, &what, CAP);
}
END_TEST

START_TEST(replays)
{
    body what = graphs;

    if (_i) {
        settings();
        harness_run(MOST, as_process, &what, CAP);
    } else {
        every_rank_a_host();
        harness_threads(3, as_thread, &what);
    }
}
END_TEST

/* ---- ranks that do not ---- */

/* Rank 3, the second of its host, dies, aborts or calls something else while the others' kernels wait for it. */
enum deed { DIES, ABORTS, DIFFERS };
static const struct {
    enum hoop_status status;
    const char *words;
} deeds[] = {[DIES] = {HOOP_ERR_PEER, "rank 3"},
             [ABORTS] = {HOOP_ERR_ABORTED, "rank 3"},
             [DIFFERS] = {HOOP_ERR_MISMATCH, "all_reduce of 2000 float"}};

/* Those that are left go on as kernels. */
static enum hoop_status go_on(struct hoop_comm *failed, struct rank_space *space, char *text, size_t size)
{
    struct hoop_comm *comm = NULL;

    enum hoop_status status = hoop_comm_shrink(failed, &comm);
    if (status != HOOP_OK) {
        snprintf(text, size, "shrinking: %s", hoop_last_error(NULL));
        return status;
    }
    const struct hoop_case c = {
        .coll = HOOP_ALL_REDUCE, .type = HOOP_F32, .op = HOOP_SUM, .ranks = hoop_comm_size(comm), .count = 3000};
    status = c.ranks == MOST - 1 && space_goes(comm, "kernel") ? HOOP_OK : HOOP_ERR_INTERNAL;
    if (status == HOOP_OK)
        status = space_run(&c, IN_STREAM, space, hoop_comm_rank(comm), comm, text, size);
    if (status == HOOP_OK)
        status = hoop_comm_destroy(comm);
    return status;
}

static int misbehave(struct harness_rank *self)
{
    const enum deed deed = *(const enum deed *)self->argument;
    const bool culprit = self->rank == MOST - 1;
    struct rank_space space;

    two_a_host(self->rank);
    struct hoop_comm *comm = harness_join(self);
    if (comm == NULL)
        return 1;
    space_open(&space, comm);
    hoop_stream *stream = (hoop_stream *)(void *)space.cuda.stream[0];
    for (int i = 0; i < 3; i++)
        HARNESS_EXPECT(hoop_all_reduce(space.device, space.device, 5000, HOOP_F32, HOOP_SUM, comm, NULL) == HOOP_OK);
    harness_meet(self, 1);
    if (culprit && deed == DIES)
        raise(SIGKILL);
    if (culprit && deed == ABORTS)
        hoop_comm_abort(comm);
    hoop_all_reduce(space.device, space.device, culprit && deed == DIFFERS ? 2000 : 5000, HOOP_F32, HOOP_SUM, comm,
                    stream);
    cuda_synchronize(&space.cuda, space.cuda.stream[0]);
    enum hoop_status status = hoop_comm_async_error(comm);
    if (status == HOOP_OK) /* whoever was told late */
        status = hoop_comm_finalize(comm);
    harness_tell(self, status, comm);
    bool good = status == deeds[deed].status && strstr(self->report->text, deeds[deed].words);
    if (good && deed == DIES)
        good = go_on(comm, &space, self->report->text, sizeof self->report->text) == HOOP_OK;
    hoop_comm_destroy(comm);
    space_close(&space);
    return good ? 0 : 1;
}

START_TEST(culprits_are_named)
{
    enum deed deed = (enum deed)_i;
    struct harness harness;

    settings();
    harness_start(&harness, MOST, misbehave, &deed, CAP);
    ck_assert(harness_wait(&harness));
    for (int rank = 0; rank < MOST; rank++)
        if (rank < MOST - 1 || deed != DIES)
            ck_assert_msg(harness.code[rank] == 0, "rank %d: %s", rank, harness.report[rank].text);
}
END_TEST

/* Memory that the driver does not give is no reason to fail: calls are staged, and say why. */
static int without_path(struct harness_rank *self)
{
    struct rank_space space;
    char text[1024] = "";

    if (self->rank == 1)
        setenv("FAKECUDA_MAPPED_PATH", "3", 1);
    struct hoop_comm *comm = harness_join(self);
    if (comm == NULL)
        return 1;
    HARNESS_EXPECT(space_goes(comm, "staged") && space_tells(comm, "cuda_net"));
    HARNESS_EXPECT(space_tells(comm, "a pattern that rank 1 wrote for rank 0 is corrupt"));
    space_open(&space, comm);
    const struct hoop_case c = {
        .coll = HOOP_ALL_REDUCE, .type = HOOP_F32, .op = HOOP_SUM, .ranks = self->ranks, .count = 3000};
    HARNESS_EXPECT(space_run(&c, IN_STREAM, &space, self->rank, comm, text, sizeof text) == HOOP_OK);
    hoop_comm_destroy(comm);
    space_close(&space);
    return 0;
}

START_TEST(no_path)
{
    every_rank_a_host();
    harness_run(2, without_path, NULL, CAP);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("devices on several hosts");
    TCase *all = tcase_create("all");

    (void)argc;
    cuda_driver_or_skip(argv);
    if (!cuda_suits("device_hosts", MOST, true))
        return 77;
    tcase_set_timeout(all, CAP + 20);
    tcase_add_loop_test(all, hosts_of_one_rank, 2, MOST + 1);
    tcase_add_test(all, several_threads_a_block);
    tcase_add_loop_test(all, hosts_of_two_ranks, 0, 2);
    tcase_add_loop_test(all, replays, 0, 2);
    tcase_add_loop_test(all, culprits_are_named, 0, 3);
    tcase_add_test(all, no_path);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
