// SPDX-License-Identifier: BSD-3-Clause
/* Device memory that peers' kernels read where it is: of hoop_mem_alloc between processes, any that is reached between threads; given
 * back and taken again, not reached, and let go of when calls fail in the middle. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cases.h"
#include "cuda_help.h"
#include "harness.h"

enum { RANKS = 3, COUNT = 30001, SPACE = 1 << 20, CAP = 60 };

struct place {
    struct cuda_help cuda;
    struct hoop_comm *comm;
    int rank;
    unsigned char *host;
};

static void open_place(struct place *place, int rank, struct hoop_comm *comm)
{
    int ordinal = -1;

    *place = (struct place){.comm = comm, .rank = rank};
    ck_assert_int_eq(hoop_comm_device(comm, &ordinal), HOOP_OK);
    cuda_open(&place->cuda, ordinal, 1);
    place->host = cuda_host(&place->cuda, SPACE);
}

/* Frames that this rank has lent to its peers. */
static unsigned long lent(const struct hoop_comm *comm)
{
    char *text = malloc(HOOP_EXPLAIN_TEXT), *at;
    unsigned long frames = 0;

    if (hoop_explain(comm, "all_reduce", 4096, 1, text, HOOP_EXPLAIN_TEXT) == HOOP_OK &&
        (at = strstr(text, "\"lent\":")) != NULL)
        frames = strtoul(at + 7, NULL, 10);
    free(text);
    return frames;
}

static bool tells(const struct hoop_comm *comm, const char *words)
{
    char *text = malloc(HOOP_EXPLAIN_TEXT);
    const bool found =
        hoop_explain(comm, "all_reduce", 4096, 0, text, HOOP_EXPLAIN_TEXT) == HOOP_OK && strstr(text, words) != NULL;

    free(text);
    return found;
}

/* One call, from one buffer into another or the same. */
static int call(struct place *place, const struct hoop_case *c, unsigned char *in, unsigned char *out)
{
    struct hoop_comm *comm = place->comm;
    hoop_cu_stream stream = place->cuda.stream[0];
    char text[256];

    in += in == out ? case_in_offset(c, place->rank) : 0;
    out += in == out ? case_out_offset(c, place->rank) : 0;
    memset(place->host, 0xa5, SPACE);
    if (case_gives(c, place->rank))
        case_fill(c, place->rank, place->host);
    cuda_copy(&place->cuda, in, place->host, case_in_bytes(c), stream);
    cuda_synchronize(&place->cuda, stream);
    HARNESS_EXPECT(case_call(c, in, out, comm, (hoop_stream *)(void *)stream) == HOOP_OK);
    cuda_copy(&place->cuda, place->host, out, case_out_bytes(c), stream);
    cuda_synchronize(&place->cuda, stream);
    HARNESS_EXPECT(hoop_comm_async_error(comm) == HOOP_OK);
    if (case_gets(c, place->rank) && !case_check(c, place->rank, place->host, text, sizeof text)) {
        fprintf(stderr, "rank %d: %s\n", place->rank, text);
        hoop_comm_abort(comm);
        return 1;
    }
    return 0;
}

static int calls(struct place *place, unsigned char *in, unsigned char *out)
{
    static const enum hoop_coll colls[] = {HOOP_ALL_REDUCE,     HOOP_ALL_GATHER, HOOP_ALL_TO_ALL, HOOP_BROADCAST,
                                           HOOP_REDUCE_SCATTER, HOOP_GATHER,     HOOP_SCATTER};
    int failed = 0;

    for (unsigned i = 0; i < 7 && !failed; i++) {
        const struct hoop_case c = {.coll = colls[i],
                                    .type = HOOP_I32,
                                    .op = HOOP_SUM,
                                    .ranks = RANKS,
                                    .root = (int)(i % RANKS),
                                    .count = COUNT,
                                    .in_place = in == out,
                                    .turn = i};
        failed = call(place, &c, in, out);
    }
    return failed;
}

/* Wait until the peers have opened what this rank offers: calls lend then. All ranks make the same number of rounds. */
static int calls_until_lent(struct place *place, unsigned char *in, unsigned char *out, int *rounds)
{
    struct hoop_comm *comm = place->comm;
    const uint64_t deadline = hoop_deadline(CAP / 2.0);
    const unsigned long before = lent(comm);

    for (*rounds = 1;; ++*rounds) {
        int done, all = 0;
        if (calls(place, in, out) != 0)
            return 1;
        done = lent(comm) > before;
        HARNESS_EXPECT(hoop_all_reduce(&done, &all, 1, HOOP_I32, HOOP_MIN, comm, NULL) == HOOP_OK);
        if (all)
            return 0;
        HARNESS_EXPECT(!hoop_expired(deadline));
    }
}

/* Memory of the communicator, several times taken and given back; in its middle, too. */
static int memory_of_hoop(int rank, struct hoop_comm *comm, void *argument)
{
    struct place place;
    void *in = NULL, *out = NULL;
    int failed = 0, rounds;

    (void)argument;
    open_place(&place, rank, comm);
    for (int i = 0; i < 3 && !failed; i++) {
        HARNESS_EXPECT(hoop_mem_alloc(comm, &in, SPACE) == HOOP_OK && hoop_mem_alloc(comm, &out, SPACE) == HOOP_OK);
        unsigned char *from = (unsigned char *)in + 4 * i, *to = (unsigned char *)out + 64;
        failed = calls_until_lent(&place, from, to, &rounds) || calls(&place, to, to) || calls(&place, from, to);
        HARNESS_EXPECT(hoop_mem_free(comm, in) == HOOP_OK && hoop_mem_free(comm, out) == HOOP_OK);
    }
    failed |= hoop_comm_destroy(comm) != HOOP_OK;
    cuda_close(&place.cuda);
    return failed;
}

/* Of the program itself: threads lend what other devices reach, no other; processes do not. */
static int memory_of_program(int rank, struct hoop_comm *comm, void *argument)
{
    const bool processes = argument != NULL;
    struct hoop_cuda_block block;
    struct place place;

    HARNESS_EXPECT(tells(comm, processes ? "only memory of hoop_mem_alloc is read in place"
                                         : "memory of pools and of virtual addresses goes through slots"));
    open_place(&place, rank, comm);
    unsigned char *buffer = cuda_device(&place.cuda, 2 * SPACE);
    int failed = calls(&place, buffer, buffer + SPACE) || calls(&place, buffer, buffer);
    HARNESS_EXPECT(failed || (lent(comm) > 0) == !processes);
    HARNESS_EXPECT(hoop_cuda_block_alloc(place.cuda.cuda, 2 * SPACE, &block) == HOOP_OK);
    unsigned char *mapped = (unsigned char *)(uintptr_t)block.address;
    const unsigned long before = lent(comm);
    failed |= calls(&place, mapped, mapped + SPACE) || calls(&place, mapped, mapped);
    HARNESS_EXPECT(failed || lent(comm) == before);
    failed |= hoop_comm_destroy(comm) != HOOP_OK;
    HARNESS_EXPECT(hoop_cuda_block_free(place.cuda.cuda, &block) == HOOP_OK);
    cuda_close(&place.cuda);
    return failed;
}

static const harness_thread_body bodies[] = {memory_of_hoop, memory_of_program};

static int of_process(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    return comm ? bodies[*(int *)self->argument](self->rank, comm, self) : 1;
}

static const char *const algorithms[] = {"auto", "ring", "twoshot", "pairwise"};

static void settings(const char *algorithm)
{
    cuda_devices(3);
    setenv("HOOP_DEVICE", "cuda", 1);
    setenv("HOOP_ALGO", algorithm, 1);
}

START_TEST(read_where_it_is)
{
    int which = _i % 2;

    settings(algorithms[_i / 2]);
    harness_run(RANKS, of_process, &which, CAP);
    harness_threads(RANKS, bodies[which], NULL);
}
END_TEST

/* Peers cannot open it: through slots. */
static int not_opened(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);
    struct place place;
    void *in = NULL, *out = NULL;

    if (comm == NULL)
        return 1;
    open_place(&place, self->rank, comm);
    HARNESS_EXPECT(hoop_mem_alloc(comm, &in, SPACE) == HOOP_OK && hoop_mem_alloc(comm, &out, SPACE) == HOOP_OK);
    for (int i = 0; i < 5; i++)
        if (calls(&place, in, out) != 0)
            return 1;
    HARNESS_EXPECT(lent(comm) == 0);
    HARNESS_EXPECT(hoop_comm_destroy(comm) == HOOP_OK); /* with the buffers */
    cuda_close(&place.cuda);
    return 0;
}

START_TEST(opening_fails)
{
    settings("auto");
    setenv("FAKECUDA_FAIL", "cuIpcOpenMemHandle:3+=2", 1); /* the landing areas have been opened by then */
    harness_run(RANKS, not_opened, NULL, CAP);
}
END_TEST

/* ---- failures in the middle ---- */

/* Whoever is told gives its memory back at once: nobody may read there any more. */
static int give_back_at_once(int rank, struct hoop_comm *comm, void *argument)
{
    struct place place;

    (void)argument;
    open_place(&place, rank, comm);
    struct cuda_help own = {.cuda = NULL};
    cuda_open(&own, rank, 0);
    float *buffer = cuda_device(&own, SPACE);
    for (int i = 0; i < 50; i++) {
        if (rank == 1 && i == 20)
            hoop_comm_abort(comm);
        if (hoop_all_reduce(buffer, buffer, SPACE / 4, HOOP_F32, HOOP_SUM, comm,
                            (hoop_stream *)(void *)place.cuda.stream[0]) != HOOP_OK)
            break;
    }
    while (hoop_comm_async_error(comm) == HOOP_OK)
        usleep(100);
    const enum hoop_status status = hoop_comm_async_error(comm);
    cuda_close(&own); /* frees; what a kernel still reads there faults */
    cuda_synchronize(&place.cuda, place.cuda.stream[0]);
    hoop_comm_destroy(comm);
    cuda_close(&place.cuda);
    return status == HOOP_ERR_ABORTED ? 0 : 1;
}

START_TEST(abort_with_lent_memory)
{
    settings(algorithms[_i % 4]);
    harness_threads(RANKS, give_back_at_once, NULL);
}
END_TEST

static void sleep_in_stream(void *data)
{
    (void)data;
    usleep(300000);
}

/* A kernel that begins only after the call has failed, and its sender has its memory back, does not read there. */
static int come_too_late(int rank, struct hoop_comm *comm, void *argument)
{
    struct place place;
    struct cuda_help own = {.cuda = NULL};

    (void)argument;
    open_place(&place, rank, comm);
    cuda_open(&own, rank, 0);
    float *buffer = cuda_device(&own, SPACE);
    hoop_cu_stream stream = place.cuda.stream[0];
    if (rank == 2) {
        hoop_cuda_enter(place.cuda.cuda);
        place.cuda.cuda->driver->cuLaunchHostFunc(stream, sleep_in_stream, NULL);
        hoop_cuda_leave(place.cuda.cuda);
    }
    hoop_broadcast(buffer, buffer, SPACE / 4, HOOP_F32, 0, comm, (hoop_stream *)(void *)stream);
    if (rank == 1) {
        usleep(100000);
        hoop_comm_abort(comm);
    }
    while (hoop_comm_async_error(comm) == HOOP_OK)
        usleep(100);
    if (rank == 0)
        cuda_close(&own);
    cuda_synchronize(&place.cuda, stream); /* fails if a kernel has read what is gone */
    hoop_comm_destroy(comm);
    if (rank != 0)
        cuda_close(&own);
    cuda_close(&place.cuda);
    return 0;
}

START_TEST(kernel_after_the_failure)
{
    settings("flat");
    harness_threads(RANKS, come_too_late, NULL);
}
END_TEST

static bool is_stopped(long process)
{
    char path[64], state = 0;

    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (file)
        fclose(file);
    return state == 'T';
}

/* Rank 1 stands still, so nobody knows whether its kernels read what was lent to them. It gets a second to say that they do not, before
 * rank 0 learns of the failure and may free its memory; rank 0 has caused it, so nothing else can take that long. */
static int stand_still(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);
    struct place place;
    void *buffer = NULL;

    if (comm == NULL)
        return 1;
    open_place(&place, self->rank, comm);
    HARNESS_EXPECT(hoop_mem_alloc(comm, &buffer, SPACE) == HOOP_OK && calls(&place, buffer, buffer) == 0);
    self->report->at = (uint64_t)getpid();
    harness_meet(self, 1);
    if (self->rank == 0) {
        const pid_t still = (pid_t)self->reports[1].at;
        kill(still, SIGSTOP);
        while (!is_stopped(still))
            usleep(1000);
        const uint64_t begun = hoop_now();
        hoop_comm_abort(comm);
        const enum hoop_status status = hoop_comm_async_error(comm);
        const uint64_t waited = hoop_now() - begun;
        kill(still, SIGCONT);
        HARNESS_EXPECT(status == HOOP_ERR_ABORTED && waited > 900000000);
    }
    while (hoop_comm_async_error(comm) == HOOP_OK)
        usleep(1000);
    hoop_comm_destroy(comm);
    cuda_close(&place.cuda);
    return 0;
}

START_TEST(the_error_waits_for_peers)
{
    settings("auto");
    harness_run(RANKS, stand_still, NULL, CAP);
}
END_TEST

static int die_in_the_middle(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);
    struct place place;
    void *buffer = NULL;
    int rounds;

    if (comm == NULL)
        return 1;
    open_place(&place, self->rank, comm);
    HARNESS_EXPECT(hoop_mem_alloc(comm, &buffer, SPACE) == HOOP_OK);
    if (calls_until_lent(&place, buffer, buffer, &rounds) != 0)
        return 1;
    harness_meet(self, 1);
    for (int i = 0; i < 1000; i++) {
        if (self->rank == 1 && i == 10)
            raise(SIGKILL);
        if (hoop_all_reduce(buffer, buffer, SPACE / 4, HOOP_F32, HOOP_SUM, comm,
                            (hoop_stream *)(void *)place.cuda.stream[0]) != HOOP_OK)
            break;
    }
    cuda_synchronize(&place.cuda, place.cuda.stream[0]);
    harness_tell(self, hoop_comm_async_error(comm), comm);
    const bool good = hoop_mem_free(comm, buffer) == HOOP_OK;
    hoop_comm_destroy(comm);
    cuda_close(&place.cuda);
    return good && self->report->status == HOOP_ERR_PEER && strstr(self->report->text, "rank 1") ? 0 : 1;
}

START_TEST(death_with_lent_memory)
{
    struct harness harness;

    settings("auto");
    harness_start(&harness, RANKS, die_in_the_middle, NULL, CAP);
    ck_assert(harness_wait(&harness));
    for (int rank = 0; rank < RANKS; rank += 2)
        ck_assert_msg(harness.code[rank] == 0, "rank %d: %s", rank, harness.report[rank].text);
}
END_TEST

/* ---- what failed communicators leave ---- */

static size_t free_bytes(const struct cuda_help *help)
{
    size_t left = 0, all;

    ck_assert_int_eq(hoop_cuda_enter(help->cuda), HOOP_OK);
    ck_assert_int_eq(help->cuda->driver->cuMemGetInfo(&left, &all), 0);
    hoop_cuda_leave(help->cuda);
    return left;
}

START_TEST(nothing_stays_of_threads)
{
    struct cuda_help own[RANKS];
    struct hoop_comm *comm[RANKS];
    size_t before[RANKS];
    void *buffer;

    settings("auto");
    for (int rank = 0; rank < RANKS; rank++) {
        cuda_open(&own[rank], rank, 0);
        before[rank] = free_bytes(&own[rank]);
    }
    ck_assert_int_eq(hoop_comm_init_all(comm, RANKS), HOOP_OK);
    for (int rank = 0; rank < RANKS; rank++) {
        ck_assert_int_eq(hoop_mem_alloc(comm[rank], &buffer, SPACE), HOOP_OK);
        ck_assert_uint_lt(free_bytes(&own[rank]), before[rank]);
    }
    hoop_comm_abort(comm[1]);
    for (int rank = 0; rank < RANKS; rank++)
        hoop_comm_destroy(comm[rank]);
    for (int rank = 0; rank < RANKS; rank++) {
        ck_assert_uint_eq(free_bytes(&own[rank]), before[rank]);
        cuda_close(&own[rank]);
    }
}
END_TEST

/* Peers of other processes may come to their end later: then it is freed with the next communicator. */
static int leave_nothing(struct harness_rank *self)
{
    const uint64_t deadline = hoop_deadline(CAP / 2.0);
    struct cuda_help own;
    struct place place;
    void *buffer = NULL;
    int rounds;

    cuda_open(&own, self->rank, 0);
    const size_t before = free_bytes(&own);
    struct hoop_comm *comm = harness_join(self), *next;
    if (comm == NULL)
        return 1;
    open_place(&place, self->rank, comm);
    HARNESS_EXPECT(hoop_mem_alloc(comm, &buffer, SPACE) == HOOP_OK);
    if (calls_until_lent(&place, buffer, buffer, &rounds) != 0)
        return 1;
    HARNESS_EXPECT(free_bytes(&own) < before);
    hoop_barrier(comm, NULL); /* who leaves it last may see the failure already */
    hoop_comm_abort(comm);
    while (hoop_comm_async_error(comm) == HOOP_OK)
        usleep(1000);
    hoop_comm_destroy(comm);
    cuda_close(&place.cuda);
    while (free_bytes(&own) != before && !hoop_expired(deadline)) {
        usleep(1000);
        if (hoop_comm_init_rank(&next, 1, NULL, 0) == HOOP_OK)
            hoop_comm_destroy(next);
    }
    const bool same = free_bytes(&own) == before;
    if (!same)
        fprintf(stderr, "rank %d: %zu bytes were free, and are %zu\n", self->rank, before, free_bytes(&own));
    cuda_close(&own);
    return same ? 0 : 1;
}

START_TEST(nothing_stays_of_processes)
{
    settings("auto");
    harness_run(RANKS, leave_nothing, NULL, CAP);
}
END_TEST

/* Peers open what they are offered when they get to it. What is given back meanwhile is freed when they have done, and not before: the fake
 * driver ends a process that frees what another one is opening. */
static int give_back_while_peers_open(struct harness_rank *self)
{
    const uint64_t deadline = hoop_deadline(CAP / 2.0);
    struct hoop_comm *comm = harness_join(self);
    struct cuda_help own = {.cuda = NULL};

    if (comm == NULL)
        return 1;
    cuda_open(&own, self->rank, 0);
    const size_t before = free_bytes(&own);
    for (useconds_t i = 0; i < 12; i++) {
        void *buffer = NULL;
        HARNESS_EXPECT(hoop_mem_alloc(comm, &buffer, SPACE) == HOOP_OK);
        usleep(1000 * i);
        HARNESS_EXPECT(hoop_mem_free(comm, buffer) == HOOP_OK);
        while (free_bytes(&own) != before && !hoop_expired(deadline))
            usleep(1000);
        HARNESS_EXPECT(free_bytes(&own) == before);
    }
    HARNESS_EXPECT(hoop_barrier(comm, NULL) == HOOP_OK && hoop_comm_destroy(comm) == HOOP_OK);
    cuda_close(&own);
    return 0;
}

START_TEST(given_back_while_peers_open)
{
    settings("auto");
    setenv("FAKECUDA_OPENING", "20", 1);
    harness_run(RANKS, give_back_while_peers_open, NULL, CAP);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("device memory that is lent");
    TCase *all = tcase_create("all");

    (void)argc;
    cuda_driver_or_skip(argv);
    tcase_set_timeout(all, CAP + 20);
    if (cuda_suits("read_where_it_is", RANKS, false))
        tcase_add_loop_test(all, read_where_it_is, 0, 8);
    if (cuda_suits("opening_fails", RANKS, true))
        tcase_add_test(all, opening_fails);
    if (cuda_suits("given_back_while_peers_open", RANKS, true))
        tcase_add_test(all, given_back_while_peers_open);
    tcase_add_loop_test(all, abort_with_lent_memory, 0, 4);
    tcase_add_test(all, kernel_after_the_failure);
    if (cuda_suits("the_error_waits_for_peers", RANKS, false)) /* ranks that share a device are staged */
        tcase_add_test(all, the_error_waits_for_peers);
    tcase_add_test(all, death_with_lent_memory);
    if (cuda_suits("nothing_stays", RANKS, true)) { /* others may use a real device */
        tcase_add_test(all, nothing_stays_of_threads);
        tcase_add_test(all, nothing_stays_of_processes);
    }
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
