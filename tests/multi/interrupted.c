// SPDX-License-Identifier: BSD-3-Clause
/* Large calls in each other's memory, or over stages, that are broken off in the middle, by an abort from another thread or by the death of a rank:
 * each rank's call either fails, or has succeeded with the right data in every byte. Many repetitions at random moments. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "exec/direct.h"
#include "harness.h"
#include "mem/board.h"
#include "tsan.h"

enum { CAP = 100, TURNS = 2, WARM = 1, DELAY = 500 /* us */ };

static unsigned next(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return *state >> 16;
}

/* Slow elements, and one line more than whole blocks: the first rank has a block more to do than the others, as long as they do
 * the rest, so it may stop while they are behind their last look at the verdict. */
static void make_uneven(struct hoop_case *c, size_t blocks)
{
    c->coll = blocks % 2 ? HOOP_ALL_REDUCE : HOOP_REDUCE;
    c->type = HOOP_F8E4M3;
    c->count = (size_t)c->ranks * blocks * HOOP_DIRECT_BLOCK + HOOP_LINE;
}

/* A call by its number; all ranks draw the same. */
static struct hoop_case draw(unsigned number, int ranks)
{
    static const enum hoop_coll colls[] = {HOOP_ALL_REDUCE, HOOP_REDUCE_SCATTER, HOOP_ALL_GATHER, HOOP_ALL_TO_ALL,
                                           HOOP_REDUCE,     HOOP_BROADCAST,      HOOP_GATHER,     HOOP_SCATTER};
    static const size_t bytes[] = {50000, 200000, 1000000, 4000000};
    unsigned state = number * 2654435761u + 1;
    struct hoop_case c = {.coll = colls[number / 8 % 8], .type = HOOP_U64, .op = HOOP_SUM, .ranks = ranks};

    c.count = bytes[next(&state) % 4] / 8 - next(&state) % 512;
    if (hoop_coll_shape(c.coll)->blocks)
        c.count /= (size_t)ranks;
    if (number % 8)
        make_uneven(&c, 1 + next(&state) % 2);
    c.root = case_rooted(&c) ? (int)(next(&state) % (unsigned)ranks) : 0;
    c.in_place = next(&state) % 3 == 0 && c.coll != HOOP_ALL_TO_ALL && !case_rooted(&c);
    return c;
}

/* Every other all-reduce is of ordinary memory. */
static bool ordinary(unsigned number, const struct hoop_case *c)
{
    return c->coll == HOOP_ALL_REDUCE && number / 2 % 2;
}

/* What a rank works with: inputs that change from call to call, and what must come out. */
struct bench {
    struct hoop_case c;
    int rank;
    bool ordinary;               /* memory of malloc */
    size_t room;                 /* bytes of each of the buffers below */
    unsigned char *memory, *out; /* of hoop_mem_alloc, or ordinary */
    unsigned char *in[TURNS], *want[TURNS];
    char text[256]; /* what is wrong */
};

static bool open_bench(struct bench *bench, struct hoop_comm *comm)
{
    const size_t in = case_in_bytes(&bench->c), out = case_out_bytes(&bench->c);

    bench->room = ((in > out ? in : out) / HOOP_LINE + 1) * HOOP_LINE;
    if (bench->ordinary)
        bench->memory = malloc((TURNS + 1) * bench->room);
    else if (hoop_mem_alloc(comm, (void **)&bench->memory, (TURNS + 1) * bench->room) != HOOP_OK)
        return false;
    if (bench->memory == NULL)
        return false;
    bench->out = bench->memory + TURNS * bench->room;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        bench->in[turn] = bench->memory + turn * bench->room;
        bench->want[turn] = malloc(bench->room);
        if (bench->want[turn] == NULL)
            return false;
    }
    return true;
}

static void close_bench(struct bench *bench)
{
    for (unsigned turn = 0; turn < TURNS; turn++)
        free(bench->want[turn]);
    if (bench->ordinary)
        free(bench->memory);
}

/* One call; what it must give is known, or (first) is told by the plain reference. */
static enum hoop_status call(struct bench *bench, unsigned turn, bool first, struct hoop_comm *comm)
{
    struct hoop_case c = bench->c;
    unsigned char *out = bench->out, *in = bench->in[turn];
    const size_t bytes = case_out_bytes(&c);

    c.turn = turn;
    if (first)
        case_fill(&c, bench->rank, in);
    if (c.in_place) {
        memset(out, 0xee, bench->room);
        memcpy(out + case_in_offset(&c, bench->rank), in, case_in_bytes(&c));
        in = out + case_in_offset(&c, bench->rank);
        out += case_out_offset(&c, bench->rank);
    } else {
        memset(out, 0xee, bytes);
    }
    const enum hoop_status status = case_call(&c, in, out, comm, NULL);
    if (status != HOOP_OK || !case_gets(&c, bench->rank))
        return status;
    if (first) {
        memcpy(bench->want[turn], out, bytes);
        case_check(&c, bench->rank, out, bench->text, sizeof bench->text);
    } else if (memcmp(bench->want[turn], out, bytes) != 0) {
        char words[160];
        case_text(&c, words, sizeof words);
        snprintf(bench->text, sizeof bench->text, "success with wrong data: %s", words);
    }
    return status;
}

static bool ran(const struct hoop_comm *comm, const char *protocol)
{
    char name[HARNESS_PLAN];

    harness_last_plan(comm, name);
    return strstr(name, protocol) != NULL;
}

/* Call until it fails. warm: called when all works. */
static enum hoop_status keep_calling(struct bench *bench, struct hoop_comm *comm, void (*warm)(void *), void *context)
{
    enum hoop_status status = HOOP_OK;

    for (unsigned i = 0; status == HOOP_OK && bench->text[0] == 0; i++) {
        status = call(bench, i % TURNS, i < TURNS, comm);
        if (i == 0 && status == HOOP_OK && !ran(comm, bench->ordinary ? "/shm/staged" : "/shm/direct"))
            snprintf(bench->text, sizeof bench->text, "the call runs neither in the peers' memory nor over stages");
        if (i == TURNS - 1)
            warm(context);
    }
    return status;
}

/* ---- abort ---- */

struct aborter {
    pthread_t thread;
    struct hoop_comm *comm;
    useconds_t delay;
    bool acts, started;
};

static void *abort_later(void *argument)
{
    const struct aborter *aborter = argument;

    usleep(aborter->delay);
    hoop_comm_abort(aborter->comm);
    return NULL;
}

static void start_aborter(void *context)
{
    struct aborter *aborter = context;

    if (aborter->acts)
        aborter->started = pthread_create(&aborter->thread, NULL, abort_later, aborter) == 0;
}

static int until_abort(int rank, struct hoop_comm *comm, void *argument)
{
    const unsigned number = *(unsigned *)argument;
    const int ranks = hoop_comm_size(comm);
    unsigned state = number * 7919u + 5;
    struct bench bench = {.c = draw(number, ranks), .rank = rank};
    struct aborter aborter = {.comm = comm, .acts = (int)(next(&state) % (unsigned)ranks) == rank};

    bench.ordinary = ordinary(number, &bench.c);
    aborter.delay = next(&state) % DELAY;
    const enum hoop_status status =
        open_bench(&bench, comm) ? keep_calling(&bench, comm, start_aborter, &aborter) : HOOP_ERR_MEMORY;
    const bool good = status == HOOP_ERR_ABORTED && bench.text[0] == 0;
    if (!good)
        fprintf(stderr, "round %u, rank %d of %d: status %d, %s\n", number, rank, ranks, status,
                bench.text[0] ? bench.text : hoop_last_error(comm));
    if (!good && !aborter.started)
        hoop_comm_abort(comm);
    if (aborter.started)
        pthread_join(aborter.thread, NULL);
    hoop_comm_destroy(comm);
    close_bench(&bench);
    return good ? 0 : 1;
}

START_TEST(abort_in_the_middle)
{
    for (unsigned round = 0; round < 70; round++) {
        unsigned number = (unsigned)_i * 70 + round;
        harness_threads(2 + (int)round % 3, until_abort, &number);
    }
}
END_TEST

/* ---- death ---- */

static void mark_warm(void *context)
{
    atomic_store(&((struct harness_rank *)context)->report->stage, WARM);
}

static int until_death(struct harness_rank *self)
{
    struct bench bench = {.c = draw(*(unsigned *)self->argument, self->ranks), .rank = self->rank};
    struct hoop_comm *comm = harness_join(self);

    bench.ordinary = ordinary(*(unsigned *)self->argument, &bench.c);
    if (comm == NULL || !open_bench(&bench, comm))
        return 1;
    harness_tell(self, keep_calling(&bench, comm, mark_warm, self), comm);
    if (bench.text[0])
        snprintf(self->report->text, sizeof self->report->text, "%s", bench.text);
    hoop_comm_destroy(comm);
    close_bench(&bench);
    return bench.text[0] || self->report->status != HOOP_ERR_PEER ? 1 : 0;
}

START_TEST(death_in_the_middle)
{
    for (unsigned round = 0; round < 5; round++) {
        unsigned number = (unsigned)_i * 5 + round, state = number;
        const int ranks = 2 + (int)round % 3, victim = (int)(next(&state) % (unsigned)ranks);
        struct harness harness;

        harness_start(&harness, ranks, until_death, &number, CAP);
        for (int rank = 0; rank < ranks; rank++)
            harness_stage(&harness, rank, WARM);
        usleep(next(&state) % DELAY);
        kill(harness.process[victim], SIGKILL);
        ck_assert_msg(harness_wait(&harness), "round %u hangs", number);
        for (int rank = 0; rank < ranks; rank++)
            ck_assert_msg(rank == victim || harness.code[rank] == 0, "round %u, rank %d of %d: status %d, %s", number,
                          rank, ranks, harness.report[rank].status, harness.report[rank].text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interrupted");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, CAP);
    tcase_add_loop_test(all, abort_in_the_middle, 0, 4);
    tcase_add_loop_test(all, death_in_the_middle, 0, 4);
    if (!UNDER_TSAN) /* ranks read memory that others lend, by a protocol that it cannot see between processes */
        suite_add_tcase(suite, all);
    return harness_suite(suite);
}
