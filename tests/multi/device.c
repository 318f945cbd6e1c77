// SPDX-License-Identifier: BSD-3-Clause
/* Calls on device memory: every collective, in place and not, with all types and operators by turns, at once, in
 * CUDA streams, as handles and in groups; as processes and as threads; and what is refused. */
#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device_space.h"
#include "harness.h"

enum { CAP = 60 };

/* ---- every collective ---- */

static enum hoop_status run_grid(struct rank_space *space, int rank, struct hoop_comm *comm, char *text, size_t size)
{
    static const size_t counts[] = {0, 1, 7, 1000, 3001};
    const int ranks = hoop_comm_size(comm);
    enum hoop_status status = HOOP_OK;
    unsigned turn = 0;

    for (int coll = 0; status == HOOP_OK && coll < HOOP_COLLS; coll++)
        for (int in_place = 0; in_place < 2; in_place++)
            for (size_t i = 0; status == HOOP_OK && i < 2 * sizeof counts / sizeof *counts; i++, turn++) {
                struct hoop_case c = {.coll = (enum hoop_coll)coll,
                                      .type = (enum hoop_type)(turn * 7 % HOOP_TYPES),
                                      .op = (enum hoop_op)(turn * 5 % HOOP_OPS),
                                      .ranks = ranks,
                                      .root = (int)(turn % (unsigned)ranks),
                                      .count = counts[i / 2],
                                      .in_place = in_place,
                                      .turn = turn};
                if (!hoop_op_accepts(c.op, c.type))
                    c.op = !hoop_op_accepts(HOOP_SUM, c.type) ? HOOP_MINLOC + turn % 2 : HOOP_SUM;
                status = space_run(&c, (enum way)(turn / 2 % WAYS), space, rank, comm, text, size);
            }
    return status;
}

static int run_process(struct harness_rank *self, struct hoop_comm *comm, const char *way)
{
    struct rank_space space;

    space_open(&space, comm);
    if (!space_goes(comm, way))
        return 1;
    if (run_grid(&space, self->rank, comm, self->report->text, sizeof self->report->text) != HOOP_OK)
        return 1;
    if (hoop_comm_destroy(comm) != HOOP_OK)
        return harness_tell(self, HOOP_ERR_INTERNAL, NULL);
    space_close(&space);
    return 0;
}

static int grid_of_process(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    return comm ? run_process(self, comm, self->argument) : 1;
}

static int grid_of_thread(int rank, struct hoop_comm *comm, void *argument)
{
    struct rank_space space;
    char text[1024] = "";

    space_open(&space, comm);
    if (!space_goes(comm, argument))
        return 1;
    const enum hoop_status status = run_grid(&space, rank, comm, text, sizeof text);
    if (status != HOOP_OK)
        fprintf(stderr, "rank %d: %s\n", rank, text);
    if (status != HOOP_OK || hoop_comm_destroy(comm) != HOOP_OK)
        return 1;
    space_close(&space);
    return 0;
}

static void settings(int ranks)
{
    cuda_devices(ranks);
    setenv("FAKECUDA_DELAY", "20", 1);
    setenv("HOOP_DEVICE", "cuda", 1);
    setenv("HOOP_SLICE", "4K", 1);
}

static char kernel[] = "kernel", staged[] = "staged";

START_TEST(every_collective_of_processes)
{
    settings(_i);
    harness_run(_i, grid_of_process, kernel, CAP);
    setenv("HOOP_STAGED", "1", 1);
    harness_run(_i, grid_of_process, staged, CAP);
}
END_TEST

START_TEST(every_collective_of_threads)
{
    settings(_i);
    harness_threads(_i, grid_of_thread, kernel);
    setenv("HOOP_STAGED", "1", 1);
    harness_threads(_i, grid_of_thread, staged);
}
END_TEST

/* All on one or two GPUs: only if it is asked for. Threads launch together, processes exchange through the host. */
START_TEST(one_gpu_for_all)
{
    settings(_i < 5 ? 1 : 2);
    setenv("HOOP_SHARED_GPU", "1", 1);
    if (_i == 3)
        harness_run(_i, grid_of_process, staged, CAP);
    harness_threads(_i, grid_of_thread, kernel);
}
END_TEST

/* A team that cannot be resident at once, or cannot be launched at once, is none. */
static const struct no_team {
    const char *setting, *value;
    int ranks;
    char *way;
} no_teams[] = {{"FAKECUDA_SMS", "6", 3, kernel}, /* 4 lanes each, 12 blocks */
                {"FAKECUDA_SMS", "5", 3, staged},
                {"FAKECUDA_COOPERATIVE", "0", 2, staged}};
enum { NO_TEAMS = sizeof no_teams / sizeof *no_teams };

START_TEST(no_room_for_all)
{
    settings(1);
    setenv("HOOP_SHARED_GPU", "1", 1);
    setenv(no_teams[_i].setting, no_teams[_i].value, 1);
    harness_threads(no_teams[_i].ranks, grid_of_thread, no_teams[_i].way);
}
END_TEST

static atomic_bool gate;

static void wait_at_gate(void *unused)
{
    (void)unused;
    while (!atomic_load(&gate))
        usleep(100);
}

/* One thread that makes the calls of all ranks puts them into a group, or it would wait for itself. Threads of the library launch
 * them, which have default streams of their own. */
START_TEST(one_gpu_and_one_thread)
{
    enum { RANKS = 3, COUNT = 500 };
    hoop_cu_stream own = (hoop_cu_stream)(uintptr_t)HOOP_CU_STREAM_PER_THREAD;
    struct hoop_comm *comm[RANKS];
    struct rank_space space[RANKS];

    settings(1);
    setenv("HOOP_SHARED_GPU", "1", 1);
    ck_assert_int_eq(hoop_comm_init_all(comm, RANKS), HOOP_OK);
    for (int rank = 0; rank < RANKS; rank++)
        space_open(&space[rank], comm[rank]);
    ck_assert_int_eq(hoop_cuda_enter(space[0].cuda.cuda), HOOP_OK);
    space[0].cuda.cuda->driver->cuLaunchHostFunc(own, wait_at_gate, NULL);
    for (int rank = 0; rank < RANKS; rank++) {
        for (int i = 0; i < COUNT; i++)
            ((int *)(void *)space[rank].host)[i] = rank + i;
        cuda_copy(&space[rank].cuda, space[rank].device, space[rank].host, COUNT * sizeof(int), own);
    }
    for (int turn = 0; turn < 50; turn++) { /* more than may be under way */
        ck_assert_int_eq(hoop_group_start(), HOOP_OK);
        for (int rank = 0; rank < RANKS; rank++)
            ck_assert_int_eq(
                hoop_all_reduce(space[rank].device, space[rank].device, COUNT, HOOP_I32, HOOP_MAX, comm[rank],
                                turn % 3 == 0 ? (hoop_stream *)(void *)own
                                              : (hoop_stream *)(void *)space[rank].cuda.stream[turn % 3 - 1]),
                HOOP_OK);
        ck_assert_int_eq(hoop_group_end(), HOOP_OK);
        atomic_store(&gate, true);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        cuda_copy(&space[rank].cuda, space[rank].host, space[rank].device, COUNT * sizeof(int), own);
        cuda_synchronize(&space[rank].cuda, own);
        for (int i = 0; i < COUNT; i++)
            ck_assert_int_eq(((int *)(void *)space[rank].host)[i], RANKS - 1 + i);
    }
    hoop_cuda_leave(space[0].cuda.cuda);
    for (int rank = 0; rank < RANKS; rank++)
        ck_assert_int_eq(hoop_comm_abort(comm[rank]), HOOP_OK);
    for (int rank = 0; rank < RANKS; rank++) {
        hoop_comm_destroy(comm[rank]);
        space_close(&space[rank]);
    }
}
END_TEST

/* Calls on the default streams of two threads, which have one handle, follow each other. */
struct two_calls {
    struct hoop_comm *comm;
    void *device;
};

static void *second_call(void *argument)
{
    const struct two_calls *calls = argument;

    return (void *)(uintptr_t)hoop_all_reduce(calls->device, calls->device, 30, HOOP_I32, HOOP_SUM, calls->comm,
                                              (hoop_stream *)(uintptr_t)HOOP_CU_STREAM_PER_THREAD);
}

static int two_threads(int rank, struct hoop_comm *comm, void *argument)
{
    const hoop_cu_stream own = (hoop_cu_stream)(uintptr_t)HOOP_CU_STREAM_PER_THREAD;
    struct rank_space space;
    pthread_t thread;
    void *status;

    (void)argument;
    space_open(&space, comm);
    ck_assert_int_eq(hoop_cuda_enter(space.cuda.cuda), HOOP_OK);
    if (rank == 0)
        space.cuda.cuda->driver->cuLaunchHostFunc(own, wait_at_gate, NULL);
    hoop_cuda_leave(space.cuda.cuda);
    HARNESS_EXPECT(hoop_all_reduce(space.device, space.device, 20, HOOP_I32, HOOP_SUM, comm,
                                   (hoop_stream *)(void *)own) == HOOP_OK);
    struct two_calls calls = {comm, space.device};
    pthread_create(&thread, NULL, second_call, &calls);
    pthread_join(thread, &status);
    HARNESS_EXPECT((enum hoop_status)(uintptr_t)status == HOOP_OK);
    if (rank == 0) {
        usleep(20000); /* in which the second kernel would run, if it did not wait */
        atomic_store(&gate, true);
    }
    HARNESS_EXPECT(hoop_comm_destroy(comm) == HOOP_OK);
    space_close(&space);
    return 0;
}

START_TEST(default_streams_of_two_threads)
{
    settings(2);
    harness_threads(2, two_threads, NULL);
}
END_TEST

/* What several ranks launch together cannot be in the graph of one. */
static int captured(int rank, struct hoop_comm *comm, void *argument)
{
    struct rank_space space;
    hoop_cu_result (*begin)(hoop_cu_stream, int);

    (void)rank;
    (void)argument;
    space_open(&space, comm);
    *(void **)&begin = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuStreamBeginCapture_v2");
    ck_assert_int_eq(hoop_cuda_enter(space.cuda.cuda), HOOP_OK);
    ck_assert_int_eq(begin(space.cuda.stream[0], HOOP_CU_CAPTURE_RELAXED), HOOP_CU_SUCCESS);
    hoop_cuda_leave(space.cuda.cuda);
    const enum hoop_status status = hoop_all_reduce(space.device, space.device, 10, HOOP_F32, HOOP_SUM, comm,
                                                    (hoop_stream *)(void *)space.cuda.stream[0]);
    const bool told = strstr(hoop_last_error(NULL), "shares its GPU") != NULL;
    const bool good = hoop_all_reduce(space.device, space.device, 10, HOOP_F32, HOOP_SUM, comm, NULL) == HOOP_OK;
    if (hoop_comm_destroy(comm) != HOOP_OK)
        return 1;
    space_close(&space);
    return status == HOOP_ERR_UNSUPPORTED && told && good ? 0 : 1;
}

START_TEST(one_gpu_and_a_graph)
{
    settings(1);
    setenv("HOOP_SHARED_GPU", "1", 1);
    harness_threads(2, captured, NULL);
}
END_TEST

/* A rank of the team that never comes: who waits for it on the host learns why. */
static int left_alone(int rank, struct hoop_comm *comm, void *argument)
{
    struct rank_space space;

    (void)argument;
    space_open(&space, comm);
    const enum hoop_status status = rank == 0 ? hoop_comm_abort(comm)
                                              : hoop_all_reduce(space.device, space.device, 10, HOOP_F32, HOOP_SUM,
                                                                comm, (hoop_stream *)(void *)space.cuda.stream[0]);
    hoop_comm_destroy(comm);
    space_close(&space);
    return status == (rank == 0 ? HOOP_OK : HOOP_ERR_ABORTED) ? 0 : 1;
}

START_TEST(one_gpu_and_nobody_comes)
{
    settings(1);
    setenv("HOOP_SHARED_GPU", "1", 1);
    harness_threads(3, left_alone, NULL);
}
END_TEST

/* ---- paths that kernels cannot take: the reason is told, and another is taken, or calls go through the host ---- */

/* What every rank tells of its paths. */
static const struct bad_path {
    const char *settings[3], *way, *reason;
    bool of_processes, only_0; /* only rank 0 tells it */
} bad_paths[] = {
    {{"FAKECUDA_PEERS=all=none"}, kernel, "by cuda_host (not by pci_p2p: CUDA device", false, false},
    {{"FAKECUDA_PEERS=all=none"}, kernel, "by cuda_host (not by cuda_ipc: cuIpcOpenMemHandle", true, false},
    {{"FAKECUDA_PEERS=0>1=none"}, kernel, "rank 1 by cuda_host (not by pci_p2p: CUDA device 0", false, true},
    {{"FAKECUDA_PEERS=1>0=none"}, kernel, "by cuda_host (not by pci_p2p: rank 1 says: CUDA", false, true},
    {{"FAKECUDA_PEERS=1-2=none"}, kernel, "rank 1 by cuda_ipc, rank 2 by cuda_ipc", true, true},
    {{"FAKECUDA_PEERS=0-1=flip,1-2=flip,0-2=lose"}, kernel, "is corrupt", false, false},
    {{"FAKECUDA_PEERS=0-1=lose,1-2=flip,0-2=flip"}, kernel, "is corrupt", true, false},
    {{"FAKECUDA_IPC=0"}, kernel, " by cuda_ipc", true, false}, /* by descriptor */
    {{"FAKECUDA_IPC=0", "FAKECUDA_PEERS=0-1=none"}, kernel, "rank 1 by cuda_host (not by cuda_ipc: cuMem", true, true},
    {{"FAKECUDA_IPC=0", "FAKECUDA_VMM=0"}, kernel, "by cuda_host (not by cuda_ipc: cuIpcGetMemHandle", true, false},
    {{"FAKECUDA_IPC=0", "FAKECUDA_VMM=0", "FAKECUDA_REGISTER=0"}, staged, "cuda_host: CUDA device", true, false},
    {{"FAKECUDA_PEERS=all=none", "FAKECUDA_MAPPED_PATH=3"}, staged, "cuda_host: a pattern that rank", false, false},
    {{"FAKECUDA_PEERS=1-2=none", "FAKECUDA_MAPPED_PATH=2"}, staged, "cuda_host: a pattern that rank", true, false},
    {{"FAKECUDA_NO_BINARY=1"}, staged, "device code", true, false},
    {{"HOOP_STAGED=1"}, staged, "HOOP_STAGED=1", true, false},
};
enum { BAD_PATHS = sizeof bad_paths / sizeof *bad_paths };

static int bad_path_of_thread(int rank, struct hoop_comm *comm, void *argument)
{
    const struct bad_path *bad = argument;

    return (rank > 0 && bad->only_0) || space_tells(comm, bad->reason)
               ? grid_of_thread(rank, comm, (void *)(uintptr_t)bad->way)
               : 1;
}

static int bad_path_of_process(struct harness_rank *self)
{
    const struct bad_path *bad = self->argument;

    struct hoop_comm *comm = harness_join(self);

    if (comm == NULL || (!(self->rank > 0 && bad->only_0) && !space_tells(comm, bad->reason)))
        return 1;
    if (bad->way == kernel)
        return run_process(self, comm, kernel);
    return space_goes(comm, bad->way) && hoop_comm_destroy(comm) == HOOP_OK ? 0 : 1;
}

START_TEST(paths_that_are_bad)
{
    struct bad_path bad = bad_paths[_i];

    settings(3);
    for (int i = 0; i < 3; i++)
        if (bad.settings[i])
            putenv((char *)(uintptr_t)bad.settings[i]);
    if (bad.of_processes)
        harness_run(3, bad_path_of_process, &bad, CAP);
    else
        harness_threads(3, bad_path_of_thread, &bad);
}
END_TEST

/* ---- devices that only their own process sees, all with the same number there ---- */

static int alone_with_device(struct harness_rank *self)
{
    char number[8];

    snprintf(number, sizeof number, "%d", self->rank);
    setenv("CUDA_VISIBLE_DEVICES", number, 1);
    struct hoop_comm *comm = harness_join(self);
    return comm && space_tells(comm, self->argument) ? run_process(self, comm, kernel) : 1;
}

START_TEST(devices_that_peers_do_not_see)
{
    static char ipc[] = " by cuda_ipc", host[] = "by cuda_host (not by cuda_ipc: ";

    settings(3);
    setenv("HOOP_DEVICE", "cuda:0", 1);
    harness_run(3, alone_with_device, ipc, CAP);
    setenv("FAKECUDA_PEERS", "all=none", 1);
    harness_run(3, alone_with_device, host, CAP);
}
END_TEST

/* Parts of a GPU (MIG) have its bus id, and each a UUID of its own: they are devices, but there is no path between them. */
START_TEST(parts_of_one_gpu)
{
    static char host[] = "by cuda_host";

    settings(2);
    setenv("FAKECUDA_MACHINE",
           "device bus=0000:03:00.0 instance=1 uuid=1;device bus=0000:03:00.0 instance=1 uuid=2;peer all none", 1);
    setenv("HOOP_DEVICE", "cuda:0", 1);
    harness_run(2, alone_with_device, host, CAP);
}
END_TEST

/* ---- what is refused ---- */

static int refused_at_init(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    return comm == NULL && self->report->status == HOOP_ERR_SETUP && strstr(self->report->text, "ranks 0") &&
                   strstr(self->report->text, "and 1") && strstr(self->report->text, "HOOP_SHARED_GPU=1")
               ? 0
               : 1;
}

START_TEST(one_gpu_is_refused)
{
    settings(1);
    if (_i) /* the same part of a GPU */
        setenv("FAKECUDA_MACHINE", "device bus=0000:03:00.0 instance=1 uuid=1", 1);
    harness_run(2, refused_at_init, NULL, CAP);
}
END_TEST

#define REFUSED(call, words)                                                                      \
    do {                                                                                          \
        ck_assert_int_eq((call), HOOP_ERR_ARG);                                                   \
        ck_assert_msg(strstr(hoop_last_error(NULL), words) != NULL, "%s", hoop_last_error(NULL)); \
    } while (0)

START_TEST(wrong_streams_and_buffers)
{
    struct hoop_comm *comm[2];
    struct rank_space space, other;
    hoop_stream *host_stream;
    float host[4] = {0};

    settings(2);
    ck_assert_int_eq(hoop_comm_init_all(comm, 2), HOOP_OK);
    space_open(&space, comm[0]);
    space_open(&other, comm[1]);
    ck_assert_int_eq(hoop_stream_create(&host_stream), HOOP_OK);
    hoop_stream *stream = (hoop_stream *)(void *)space.cuda.stream[0],
                *wrong = (hoop_stream *)(void *)other.cuda.stream[0];
    REFUSED(hoop_all_reduce(space.device, space.device, 4, HOOP_F32, HOOP_SUM, comm[0], host_stream),
            "hoop_stream_create");
    REFUSED(hoop_all_reduce(host, host, 4, HOOP_F32, HOOP_SUM, comm[0], stream), "host memory");
    REFUSED(hoop_all_reduce(host, space.device, 4, HOOP_F32, HOOP_SUM, comm[0], NULL), "one kind");
    REFUSED(hoop_all_reduce(other.device, other.device, 4, HOOP_F32, HOOP_SUM, comm[0], NULL), "device 1");
    REFUSED(hoop_all_reduce(space.device, space.device, 4, HOOP_F32, HOOP_SUM, comm[0], wrong), "device 1");
    REFUSED(hoop_send(host, 4, HOOP_F32, 1, comm[0], stream), "host memory");
    ck_assert_int_eq(hoop_stream_destroy(host_stream), HOOP_OK);
    ck_assert_int_eq(hoop_comm_async_error(comm[0]), HOOP_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(hoop_comm_abort(comm[i]), HOOP_OK);
    for (int i = 0; i < 2; i++)
        hoop_comm_destroy(comm[i]);
    space_close(&space);
    space_close(&other);
}
END_TEST

/* One rank gives device memory, the other host memory: both learn it, with both kinds. */
static int kinds_that_differ(struct harness_rank *self)
{
    struct rank_space space;
    struct hoop_comm *comm = harness_join(self);

    if (comm == NULL)
        return 1;
    space_open(&space, comm);
    unsigned char *buffer = self->rank == 0 ? space.device : space.host;
    enum hoop_status status = hoop_all_reduce(buffer, buffer, 100, HOOP_I32, HOOP_SUM, comm, NULL);
    if (status == HOOP_OK) /* whoever was told late */
        status = hoop_comm_finalize(comm);
    harness_tell(self, status, comm);
    const bool told = strstr(self->report->text, "in device memory") && strstr(self->report->text, "in host memory");
    hoop_comm_destroy(comm);
    return status == HOOP_ERR_MISMATCH && told ? 0 : 1;
}

START_TEST(kinds_of_memory_differ)
{
    settings(2);
    setenv("HOOP_STAGED", _i ? "1" : "0", 1);
    harness_run(2, kinds_that_differ, NULL, CAP);
}
END_TEST

/* ---- a rank that dies while others wait in a stream ---- */

static int survive(struct harness_rank *self)
{
    struct rank_space space;
    struct hoop_comm *comm = harness_join(self);

    if (comm == NULL)
        return 1;
    space_open(&space, comm);
    hoop_barrier(comm, NULL); /* all have joined; who leaves it last may see the death already */
    if (self->rank == 1)
        raise(SIGKILL);
    const enum hoop_status given = hoop_all_reduce(space.device, space.device, 1000, HOOP_F32, HOOP_SUM, comm,
                                                   (hoop_stream *)(void *)space.cuda.stream[0]);
    cuda_synchronize(&space.cuda, space.cuda.stream[0]);
    const enum hoop_status status = hoop_comm_async_error(comm);
    harness_tell(self, status, comm);
    hoop_comm_destroy(comm);
    space_close(&space);
    return (given == HOOP_OK || given == HOOP_ERR_PEER) && status == HOOP_ERR_PEER &&
                   strstr(self->report->text, "rank 1")
               ? 0
               : 1;
}

START_TEST(death_of_a_rank)
{
    struct harness harness;

    settings(3);
    setenv("HOOP_STAGED", _i ? "1" : "0", 1);
    harness_start(&harness, 3, survive, NULL, CAP);
    ck_assert(harness_wait(&harness));
    ck_assert_int_eq(harness.code[1], 128 + SIGKILL);
    for (int rank = 0; rank < 3; rank += 2)
        ck_assert_msg(harness.code[rank] == 0, "rank %d: %s", rank, harness.report[rank].text);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("device memory");
    TCase *all = tcase_create("all");

    (void)argc;
    cuda_driver_or_skip(argv);
    tcase_set_timeout(all, CAP + 20);
    tcase_add_loop_test(all, every_collective_of_processes, 1, 5);
    tcase_add_loop_test(all, every_collective_of_threads, 1, 5);
    tcase_add_loop_test(all, one_gpu_for_all, 2, 6);
    if (cuda_suits("no_room_for_all", 1, true))
        tcase_add_loop_test(all, no_room_for_all, 0, NO_TEAMS);
    tcase_add_test(all, one_gpu_and_one_thread);
    if (cuda_suits("default_streams_of_two_threads", 2, false))
        tcase_add_test(all, default_streams_of_two_threads);
    tcase_add_test(all, one_gpu_and_nobody_comes);
    tcase_add_test(all, one_gpu_and_a_graph);
    if (cuda_suits("paths_that_are_bad", 3, true)) {
        tcase_add_loop_test(all, paths_that_are_bad, 0, BAD_PATHS);
        tcase_add_test(all, devices_that_peers_do_not_see);
        tcase_add_test(all, parts_of_one_gpu);
    }
    tcase_add_loop_test(all, one_gpu_is_refused, 0, cuda_is_fake() ? 2 : 1);
    if (cuda_suits("wrong_streams_and_buffers", 2, false))
        tcase_add_test(all, wrong_streams_and_buffers);
    tcase_add_loop_test(all, kinds_of_memory_differ, 0, 2);
    tcase_add_loop_test(all, death_of_a_rank, 0, 2);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
