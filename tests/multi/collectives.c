// SPDX-License-Identifier: BSD-3-Clause
/* Every collective with every algorithm on shared memory, as the public interface gives it, against the plain reference:
 * n = 1 … 9 ranks, which stay for all cases of one n. As processes; a smaller grid also as threads of one process. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "harness.h"
#include "tsan.h"

enum { SMALL = 71, MOST = 65537, SPACE = 9 * MOST * 16 + 64 };

struct grid {
    size_t first, step;    /* of the small counts */
    size_t large;          /* this count too, and 1000; 0: no large ones */
    bool all_types;        /* sample types and operators instead of f32 sum and i64 sum */
    hoop_stream **streams; /* one a rank, or NULL: blocking calls */
};

struct buffers {
    unsigned char *shared, *own; /* of hoop_mem_alloc and malloc */
};

static enum hoop_status run_case(const struct hoop_case *c, int rank, struct hoop_comm *comm, hoop_stream *stream,
                                 unsigned char *base, char *text, size_t size)
{
    const size_t in_bytes = case_in_bytes(c), out_bytes = case_out_bytes(c);
    const bool rooted = case_rooted(c);
    const bool in_place = c->in_place && (!rooted || rank == c->root);
    unsigned char *in = base + (in_place ? case_in_offset(c, rank) : 0);
    unsigned char *out = in_place ? base + case_out_offset(c, rank) : base + in_bytes + 64;

    memset(base, 0xa5, in_bytes + out_bytes + 128);
    if (case_gives(c, rank))
        case_fill(c, rank, in);
    enum hoop_status status = case_call(c, in, out, comm, stream);
    if (status == HOOP_OK && stream)
        status = hoop_stream_synchronize(stream);
    if (status != HOOP_OK) {
        char words[160];
        case_text(c, words, sizeof words);
        snprintf(text, size, "%s: %s", words, hoop_last_error(comm));
        return status;
    }
    return !case_gets(c, rank) || case_check(c, rank, out, text, size) ? HOOP_OK : HOOP_ERR_INTERNAL;
}

/* Can peers reach the rank's buffers? All, none, or some: each of that once in four cases but the first. */
static bool kind_of_buffer(unsigned turn, int rank)
{
    return turn % 4 < 2 || (turn % 4 == 2 && (turn / 4 + (unsigned)rank) % 3 > 0);
}

/* All cases of one communicator. `turn` makes the choices that go round; equal on all ranks. */
static enum hoop_status run_grid(const struct grid *grid, int rank, struct hoop_comm *comm, char *text, size_t size)
{
    const size_t large[] = {1000, grid->large};
    const int ranks = hoop_comm_size(comm);
    hoop_stream *stream = grid->streams ? grid->streams[rank] : NULL;
    struct buffers buffers = {.own = malloc(2 * SPACE)};
    unsigned turn = 0;
    enum hoop_status status = hoop_mem_alloc(comm, (void **)&buffers.shared, 2 * SPACE);

    for (int coll = 0; status == HOOP_OK && coll < HOOP_COLLS; coll++)
        for (int in_place = 0; status == HOOP_OK && in_place < 2; in_place++)
            for (size_t i = grid->first; status == HOOP_OK && i < SMALL + (grid->large ? 2 : 0);
                 i = i < SMALL && i + grid->step > SMALL ? SMALL : i + (i < SMALL ? grid->step : 1), turn++) {
                struct hoop_case c = {.coll = (enum hoop_coll)coll,
                                      .type = grid->all_types ? (enum hoop_type)(turn % HOOP_TYPES)
                                              : turn % 2      ? HOOP_F32
                                                              : HOOP_I64,
                                      .op = grid->all_types ? (enum hoop_op)(turn / HOOP_TYPES % HOOP_OPS) : HOOP_SUM,
                                      .ranks = ranks,
                                      .root = (int)(turn % (unsigned)ranks),
                                      .count = i < SMALL ? i : large[i - SMALL],
                                      .in_place = in_place};
                unsigned char *base = kind_of_buffer(turn, rank) ? buffers.shared : buffers.own;
                if (!hoop_op_accepts(c.op, c.type))
                    c.op = !hoop_op_accepts(HOOP_SUM, c.type) ? HOOP_MINLOC + turn / HOOP_TYPES % 2 : HOOP_SUM;
                status =
                    run_case(&c, rank, comm, stream, base + (hoop_type_size(c.type) == 1 ? turn % 5 : 0), text, size);
            }
    free(buffers.own);
    if (status == HOOP_OK)
        status = hoop_mem_free(comm, buffers.shared);
    return status;
}

static int process_body(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    if (comm == NULL)
        return 1;
    if (run_grid(self->argument, self->rank, comm, self->report->text, sizeof self->report->text) != HOOP_OK)
        return 1;
    return hoop_comm_destroy(comm) == HOOP_OK ? 0 : harness_tell(self, HOOP_ERR_INTERNAL, NULL);
}

static int thread_body(int rank, struct hoop_comm *comm, void *argument)
{
    char text[1024] = "";
    const enum hoop_status status = run_grid(argument, rank, comm, text, sizeof text);

    if (status != HOOP_OK)
        fprintf(stderr, "rank %d: %s\n", rank, text);
    return status == HOOP_OK && hoop_comm_destroy(comm) == HOOP_OK ? 0 : 1;
}

/* Loop index: rank count × algorithm, where number 0 is the automatic choice. */
static int algo_count(void)
{
    int count = 0;

    while (hoop_algo_get(count))
        count++;
    return count;
}

static void choose(int i, int ranks)
{
    const struct hoop_algo *algo = i > 0 ? hoop_algo_get(i - 1) : NULL;

    static const char *const groups[] = {"2", "3", "4", "2,1", "1,3"};

    setenv("HOOP_ALGO", algo ? algo->name : "auto", 1);
    setenv("HOOP_GROUPS", groups[ranks % 5], 1); /* for those that look at them */
    setenv("HOOP_SLICE", "4K", 1);               /* so that the large counts take many slices */
    setenv("HOOP_CHANNELS", i % 2 ? "1" : "2", 1);
    setenv("HOOP_DIRECT_MIN", algo ? "16T" : "64", 1); /* plans, or in each other's memory wherever that is possible */
}

/* Many slices do with all; the most elements with the automatic choice are enough. */
static size_t large_count(int algo)
{
    return algo == 0 ? MOST : THIN ? 4099 : 10007;
}

/* Every small count with the automatic choice, every step-th with each algorithm. THIN: a third of that. */
static struct grid small_counts(int algo, int ranks, size_t step)
{
    step = (algo ? step : 1) * (THIN ? 3 : 1);
    return (struct grid){.first = (size_t)(ranks + algo) % step, .step = step, .large = large_count(algo)};
}

START_TEST(processes)
{
    const struct harness_traces before = harness_look(false);

    for (int algo = 0; algo <= algo_count(); algo++) {
        const struct grid grid = small_counts(algo, _i, 4);
        choose(algo, _i);
        harness_run(_i, process_body, (void *)(uintptr_t)&grid, 100);
    }
    harness_compare(&before);
}
END_TEST

START_TEST(processes_all_types)
{
    for (int algo = 0; algo <= algo_count(); algo++) {
        struct grid grid = small_counts(algo, _i, 2);
        grid.all_types = true;
        choose(algo, _i);
        harness_run(_i, process_body, (void *)(uintptr_t)&grid, 100);
    }
}
END_TEST

START_TEST(threads)
{
    const struct grid grid = {.step = THIN ? 23 : 7, .all_types = true, .large = _i <= 3 ? MOST : 0};

    for (int algo = 0; algo <= algo_count(); algo++) {
        choose(algo, _i);
        harness_threads(_i, thread_body, (void *)(uintptr_t)&grid);
    }
}
END_TEST

START_TEST(threads_on_streams)
{
    hoop_stream *streams[HARNESS_MOST];
    const struct grid grid = {.step = 5, .all_types = true, .large = MOST, .streams = streams};

    unsetenv("HOOP_ALGO");
    for (int rank = 0; rank < _i; rank++)
        ck_assert_int_eq(hoop_stream_create(&streams[rank]), HOOP_OK);
    harness_threads(_i, thread_body, (void *)(uintptr_t)&grid);
    for (int rank = 0; rank < _i; rank++)
        ck_assert_int_eq(hoop_stream_destroy(streams[rank]), HOOP_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("collectives on shared memory");
    TCase *in_processes = tcase_create("processes"), *in_threads = tcase_create("threads");

    tcase_set_timeout(in_processes, 200);
    tcase_set_timeout(in_threads, 200);
    tcase_add_loop_test(in_processes, processes, 1, 10);
    tcase_add_loop_test(in_processes, processes_all_types, 2, 5);
    tcase_add_loop_test(in_threads, threads, 1, 10);
    tcase_add_loop_test(in_threads, threads_on_streams, 1, 5);
    if (!UNDER_TSAN) /* it sees no race between processes, and is slow */
        suite_add_tcase(suite, in_processes);
    suite_add_tcase(suite, in_threads);
    return harness_suite(suite);
}
