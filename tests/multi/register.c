// SPDX-License-Identifier: BSD-3-Clause
/* Calls on registered memory: every collective gives the same as on ordinary memory, large ones lend instead of copying, and the
 * memory is ordinary again afterwards, also after the communicator's death. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "comm/comm.h"
#include "harness.h"
#include "mem/ring.h"
#include "tsan.h"

enum { CAP = 100, PAGE = 4096, SPACE = 2 * 5 * 9001 * 8 + 8 * PAGE };

/* ---- every collective ---- */

static enum hoop_status run_case(const struct hoop_case *c, int rank, struct hoop_comm *comm, unsigned char *base)
{
    const bool in_place = c->in_place && (!case_rooted(c) || rank == c->root);
    const size_t in_bytes = case_in_bytes(c), out_bytes = case_out_bytes(c);
    unsigned char *in = base + (in_place ? case_in_offset(c, rank) : 0);
    unsigned char *out = in_place ? base + case_out_offset(c, rank) : base + in_bytes + 64;
    char text[512];

    memset(base, 0xa5, in_bytes + out_bytes + 64);
    if (case_gives(c, rank))
        case_fill(c, rank, in);
    enum hoop_status status = case_call(c, in, out, comm, NULL);
    if (status == HOOP_OK && case_gets(c, rank) && !case_check(c, rank, out, text, sizeof text)) {
        fprintf(stderr, "%s\n", text);
        status = HOOP_ERR_INTERNAL;
    }
    return status;
}

/* The registered range begins and ends anywhere; buffers lie in it, reach over its edges, or lie beside it. Now and then one rank
 * has not registered what others have. */
static enum hoop_status run_grid(int rank, struct hoop_comm *comm)
{
    static const size_t counts[] = {1, 300, 4096, 9001};
    const int ranks = hoop_comm_size(comm);
    unsigned char *memory = malloc(SPACE + 2 * PAGE);
    enum hoop_status status = HOOP_OK;
    unsigned turn = 0;

    for (int coll = 0; status == HOOP_OK && coll < HOOP_COLLS; coll++)
        for (int in_place = 0; status == HOOP_OK && in_place < 2; in_place++)
            for (int i = 0; status == HOOP_OK && i < 4; i++, turn++) {
                const struct hoop_case c = {.coll = (enum hoop_coll)coll,
                                            .type = turn % 2   ? HOOP_F32
                                                    : turn % 3 ? HOOP_U8
                                                               : HOOP_I64,
                                            .ranks = ranks,
                                            .root = (int)turn % ranks,
                                            .count = counts[i],
                                            .in_place = in_place,
                                            .turn = turn};
                unsigned char *const from = memory + turn * 331 % 3000;
                unsigned char *const base = memory + (turn % 3 == 0 ? 0 : turn % 3 == 1 ? 2 * PAGE : 5000 + turn % 7);
                const bool registers = (int)(turn % 7) != rank;
                if (registers)
                    status = hoop_register(comm, from, SPACE - turn % 2 * (SPACE / 2) - turn * 77 % 3000);
                if (status == HOOP_OK)
                    status = run_case(&c, rank, comm, base);
                if (status == HOOP_OK && registers)
                    status = hoop_deregister(comm, from);
            }
    if (status != HOOP_OK)
        fprintf(stderr, "turn %u: %s\n", turn, hoop_last_error(NULL));
    free(memory);
    return status == HOOP_OK ? hoop_comm_destroy(comm) : status;
}

static int grid_of_process(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    return comm == NULL || run_grid(self->rank, comm) != HOOP_OK;
}

static int grid_of_thread(int rank, struct hoop_comm *comm, void *argument)
{
    (void)argument;
    return run_grid(rank, comm) != HOOP_OK;
}

START_TEST(every_collective)
{
    const struct hoop_algo *algo;

    setenv("HOOP_SLICE", "16K", 1);
    for (int i = -1; i < (UNDER_TSAN ? 1 : 0) || (!UNDER_TSAN && hoop_algo_get(i)); i++) { /* TSan is slow */
        algo = i < 0 ? NULL : hoop_algo_get(i);
        setenv("HOOP_ALGO", algo ? algo->name : "auto", 1);
        if (i % 2 || UNDER_TSAN)
            harness_threads(_i, grid_of_thread, NULL);
        else
            harness_run(_i, grid_of_process, NULL, CAP);
    }
}
END_TEST

/* ---- lending ---- */

/* Frames on the rings of this communicator that lent memory. */
static int lent_frames(const struct hoop_comm *comm)
{
    const struct hoop_board *board = comm->board;
    int lent = 0;

    for (int to = 0; to < comm->ranks; to++)
        for (int from = 0; from < comm->ranks; from++)
            for (int lane = 0; lane < comm->lanes; lane++) {
                struct hoop_ring *ring =
                    (struct hoop_ring *)(board->base + hoop_board_ring_offset(board, to, from, lane));
                for (int i = 0; i <= comm->slots; i++) {
                    const uint64_t word = atomic_load(&ring->head[i].word);
                    lent += word >> 32 > 0 && (word >> 28 & 15) == HOOP_FRAME_DIRECT;
                }
            }
    return lent;
}

struct lending {
    bool registered;
    size_t odd; /* bytes from the start of a page */
};

static int lend(struct harness_rank *self)
{
    enum { COUNT = 1 << 18 };
    const struct lending *lending = self->argument;
    struct hoop_comm *comm = harness_join(self);
    unsigned char *memory = aligned_alloc(PAGE, 2 * PAGE + COUNT * sizeof(float));
    float *x = (float *)(void *)(memory + lending->odd);
    enum hoop_status status = HOOP_OK;

    if (comm == NULL || memory == NULL)
        return 1;
    if (lending->registered)
        status = hoop_register(comm, x, COUNT * sizeof(float));
    for (int turn = 0; status == HOOP_OK && turn < 3; turn++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)(i % 1000 + turn);
        status = hoop_all_reduce(x, x, COUNT, HOOP_F32, HOOP_SUM, comm, NULL);
        for (int i = 0; i < COUNT; i++)
            if (status == HOOP_OK && x[i] != (float)(self->ranks * (i % 1000 + turn)))
                status = HOOP_ERR_INTERNAL;
    }
    if (status != HOOP_OK)
        return harness_tell(self, status, comm);
    if ((lent_frames(comm) > 0) != lending->registered)
        return harness_tell(self, HOOP_ERR_INTERNAL, NULL);
    status = hoop_barrier(comm, NULL);
    hoop_comm_destroy(comm);
    free(memory);
    return status != HOOP_OK;
}

START_TEST(large_vectors_are_lent)
{
    setenv("HOOP_SLICE", "64K", 1);
    setenv("HOOP_ALGO", "ring", 1);
    for (int registered = 0; registered < 2; registered++)
        for (size_t odd = 0; odd < 48; odd += 20) {
            struct lending lending = {registered, odd};
            harness_run(_i, lend, &lending, CAP);
        }
}
END_TEST

/* Where all ranks' whole buffers are registered they are worked on in place. */
static int in_place_of_all(int rank, struct hoop_comm *comm, void *argument)
{
    enum { COUNT = 1 << 16 };
    struct hoop_stats stats = {.size = sizeof stats};
    int *x = aligned_alloc(PAGE, COUNT * sizeof(int));
    bool good = true;

    (void)argument;
    for (int registered = 0; good && registered < 3; registered++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = i + rank;
        if (registered == 1)
            good = hoop_register(comm, x, COUNT * sizeof(int)) == HOOP_OK;
        good = good && hoop_all_reduce(x, x, COUNT, HOOP_I32, HOOP_MAX, comm, NULL) == HOOP_OK;
        for (int i = 0; i < COUNT; i++)
            good &= x[i] == i + hoop_comm_size(comm) - 1;
        hoop_stats(comm, &stats);
        good &= (strcmp(stats.last_plan, "twoshot/shm/direct") == 0) == (registered == 1);
        if (registered == 1)
            good &= hoop_deregister(comm, x) == HOOP_OK;
    }
    good &= hoop_comm_destroy(comm) == HOOP_OK;
    free(x);
    return !good;
}

START_TEST(worked_on_in_place)
{
    setenv("HOOP_ALGO", "auto", 1);
    harness_threads(_i, in_place_of_all, NULL);
}
END_TEST

/* ---- the end ---- */

/* A child process cannot see that memory is ordinary; but what it writes there does not arrive. */
static bool is_private(volatile unsigned char *byte)
{
    int status = 1;

    *byte = 7;
    const pid_t child = fork();
    if (child == 0) {
        *byte = 8;
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && status == 0 && *byte == 7;
}

enum ending { DESTROY, ABORT, DEREGISTER_DEAD, PEER_DIES, FORKED, ENDINGS };

static int end(struct harness_rank *self)
{
    const enum ending ending = *(const enum ending *)self->argument;
    const size_t bytes = 64 * PAGE;
    struct hoop_comm *comm = harness_join(self);
    unsigned char *memory = malloc(bytes);
    bool good = comm != NULL && memory != NULL;
    int status;

    memset(memory, 1, bytes);
    good = good && hoop_register(comm, memory, bytes) == HOOP_OK && !is_private(memory + 2 * PAGE);
    memset(memory, 1, bytes);
    good = good && hoop_all_reduce(memory, memory, bytes, HOOP_U8, HOOP_SUM, comm, NULL) == HOOP_OK;
    if (ending == PEER_DIES) {
        harness_meet(self, 1);
        if (self->rank == 1)
            kill(getpid(), SIGKILL);
        do
            memset(memory, 1, bytes);
        while (hoop_all_reduce(memory, memory, bytes, HOOP_U8, HOOP_SUM, comm, NULL) == HOOP_OK);
        memset(memory, self->ranks, bytes);
    }
    if (ending == ABORT || ending == DEREGISTER_DEAD) {
        harness_meet(self, 1);
        hoop_comm_abort(comm);
    }
    if (ending == FORKED) {
        const pid_t child = fork();
        if (child == 0)
            _exit(hoop_deregister(comm, memory) == HOOP_ERR_UNSUPPORTED &&
                          hoop_register(comm, &status, 4) == HOOP_ERR_UNSUPPORTED &&
                          hoop_comm_destroy(comm) == HOOP_ERR_UNSUPPORTED
                      ? 0
                      : 1);
        good = good && waitpid(child, &status, 0) == child && status == 0;
    }
    if (ending == DEREGISTER_DEAD)
        good = good && hoop_register(comm, &status, 4) == HOOP_ERR_ABORTED &&
               hoop_deregister(comm, memory) == HOOP_OK && hoop_deregister(comm, memory) == HOOP_ERR_ARG &&
               hoop_deregister(comm, NULL) == HOOP_OK;
    if (comm)
        hoop_comm_destroy(comm);
    for (size_t i = 0; i < bytes; i++)
        good &= memory[i] == self->ranks;
    good = good && is_private(memory + 2 * PAGE);
    free(memory);
    return !good;
}

START_TEST(ordinary_again)
{
    enum ending ending = (enum ending)_i;
    struct harness harness;

    setenv("HOOP_ALGO", "auto", 1);
    harness_start(&harness, 3, end, &ending, CAP);
    ck_assert(harness_wait(&harness));
    for (int rank = 0; rank < 3; rank++)
        ck_assert_int_eq(harness.code[rank], ending == PEER_DIES && rank == 1 ? 128 + SIGKILL : 0);
}
END_TEST

START_TEST(wrong_arguments)
{
    struct hoop_comm *comm = NULL;
    unsigned char *memory = malloc(8 * PAGE);
    void *shared = NULL;

    ck_assert_int_eq(hoop_comm_init_all(&comm, 1), HOOP_OK);
    ck_assert_int_eq(hoop_register(NULL, memory, 10), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_register(comm, NULL, 10), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_register(comm, memory, 0), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_register(comm, memory, SIZE_MAX), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_register(comm, memory, (size_t)1 << 46), HOOP_ERR_ARG); /* far more than is mapped */
    ck_assert_int_eq(hoop_mem_alloc(comm, &shared, 100), HOOP_OK);
    ck_assert_int_eq(hoop_register(comm, shared, 100), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_deregister(comm, shared), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_deregister(NULL, memory), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_register(comm, memory, 8 * PAGE), HOOP_OK);
    ck_assert_int_eq(hoop_mem_free(comm, memory), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_deregister(comm, memory + PAGE), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_comm_destroy(comm), HOOP_OK);
    free(memory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calls on registered memory");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, CAP);
    tcase_add_loop_test(tests, every_collective, 1, 5);
    tcase_add_loop_test(tests, worked_on_in_place, 2, 4);
    if (!UNDER_TSAN) {
        tcase_add_loop_test(tests, large_vectors_are_lent, 2, 5);
        tcase_add_loop_test(tests, ordinary_again, 0, ENDINGS);
    }
    tcase_add_test(tests, wrong_arguments);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
