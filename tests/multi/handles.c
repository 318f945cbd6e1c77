// SPDX-License-Identifier: BSD-3-Clause
/* Persistent handles: each start does what the ordinary call would do with what the buffers hold then, and a handle may be
 * freed, and outlive its communicator, at any time. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cases.h"
#include "harness.h"
#include "tsan.h"

enum { CAP = 60, STARTS = 4, COUNTS = 5, SPACE = 2 * 5 * 9001 * 16 + 4096 };

static const size_t counts[COUNTS] = {0, 1, 33, 700, 9001};

/* ---- every collective, restarted with other contents ---- */

/* A call with its buffers. */
struct place {
    struct hoop_case c;
    unsigned char *base, *in, *out;
};

static struct place lay_out(const struct hoop_case *c, int rank, unsigned char *base)
{
    const bool in_place = c->in_place && (!case_rooted(c) || rank == c->root);

    return (struct place){*c, base, base + (in_place ? case_in_offset(c, rank) : 0),
                          in_place ? base + case_out_offset(c, rank) : base + case_in_bytes(c) + 64};
}

static void refill(struct place *place, int rank, unsigned turn)
{
    memset(place->base, 0xa5, case_in_bytes(&place->c) + case_out_bytes(&place->c) + 128);
    place->c.turn = turn;
    if (case_gives(&place->c, rank))
        case_fill(&place->c, rank, place->in);
}

static bool right(const struct place *place, int rank)
{
    char text[512];

    if (!case_gets(&place->c, rank) || case_check(&place->c, rank, place->out, text, sizeof text))
        return true;
    fprintf(stderr, "turn %u: %s\n", place->c.turn, text);
    return false;
}

/* Start the handle again and again. Now and then one rank makes the ordinary call instead, and another call goes between. */
static bool restart(struct place *place, int rank, struct hoop_comm *comm, hoop_stream *stream,
                    struct hoop_handle *handle)
{
    for (unsigned turn = 0; turn < STARTS; turn++) {
        const bool ordinary = (int)turn % 5 == rank;
        int sum = rank + (int)turn;

        refill(place, rank, turn);
        enum hoop_status status =
            ordinary ? case_call(&place->c, place->in, place->out, comm, stream) : hoop_start(handle);
        if (status == HOOP_OK && turn % 2)
            status = hoop_all_reduce(&sum, &sum, 1, HOOP_I32, HOOP_SUM, comm, NULL);
        if (status == HOOP_OK && stream)
            status = hoop_stream_synchronize(stream);
        if (status != HOOP_OK)
            fprintf(stderr, "rank %d: %s\n", rank, hoop_last_error(comm));
        if (status != HOOP_OK || !right(place, rank))
            return false;
    }
    return true;
}

struct options {
    bool on_stream, shared;
};

static int every_collective(int rank, struct hoop_comm *comm, void *argument)
{
    const struct options *options = argument;
    const int ranks = hoop_comm_size(comm);
    hoop_stream *stream = NULL;
    unsigned char *base = NULL;
    unsigned turn = 0;
    bool good =
        options->shared ? hoop_mem_alloc(comm, (void **)&base, SPACE) == HOOP_OK : (base = malloc(SPACE)) != NULL;

    good = good && (!options->on_stream || hoop_stream_create(&stream) == HOOP_OK);
    for (int coll = 0; good && coll < HOOP_COLLS; coll++)
        for (int in_place = 0; good && in_place < 2; in_place++)
            for (size_t i = 0; good && i < COUNTS; i++, turn++) {
                struct hoop_handle *handle = NULL;
                struct hoop_case c = {.coll = (enum hoop_coll)coll,
                                      .type = (enum hoop_type)(turn % HOOP_TYPES),
                                      .ranks = ranks,
                                      .root = (int)turn % ranks,
                                      .count = counts[i],
                                      .in_place = in_place};
                if (!hoop_op_accepts(c.op, c.type))
                    c.op = HOOP_MINLOC;
                struct place place = lay_out(&c, rank, base);
                good = case_init(&c, place.in, place.out, comm, stream, &handle) == HOOP_OK &&
                       restart(&place, rank, comm, stream, handle) && hoop_handle_free(handle) == HOOP_OK;
            }
    good &= hoop_stream_destroy(stream) == HOOP_OK;
    if (!options->shared)
        free(base);
    return !good || hoop_comm_destroy(comm) != HOOP_OK;
}

START_TEST(restarted)
{
    for (int on_stream = 0; on_stream < 2; on_stream++)
        for (int shared = 0; shared < 2; shared++) {
            struct options options = {on_stream, shared};
            harness_threads(_i, every_collective, &options);
        }
}
END_TEST

/* ---- streams and groups ---- */

static int64_t power(int64_t base, int exponent)
{
    return exponent ? base * power(base, exponent - 1) : 1;
}

/* Several starts wait on the stream, in order; the handle is freed before they have run. */
static int queued(int rank, struct hoop_comm *comm, void *argument)
{
    const int ranks = hoop_comm_size(comm), starts = 9;
    hoop_stream *stream = NULL;
    struct hoop_handle *handle = NULL;
    int64_t x[300];
    bool good = hoop_stream_create(&stream) == HOOP_OK;

    (void)argument;
    (void)rank;
    for (int i = 0; i < 300; i++)
        x[i] = i;
    good = good && hoop_all_reduce_init(x, x, 300, HOOP_I64, HOOP_SUM, comm, stream, &handle) == HOOP_OK;
    for (int i = 0; good && i < starts; i++)
        good = hoop_start(handle) == HOOP_OK;
    good = hoop_handle_free(handle) == HOOP_OK && good;
    good = hoop_stream_destroy(stream) == HOOP_OK && good;
    for (int i = 0; i < 300; i++)
        good &= x[i] == i * power(ranks, starts);
    return !good || hoop_comm_destroy(comm) != HOOP_OK;
}

START_TEST(starts_queue_on_a_stream)
{
    harness_threads(_i, queued, NULL);
}
END_TEST

/* One thread is all ranks; what is made inside a group does not run. */
START_TEST(in_groups)
{
    enum { RANKS = 4, COUNT = 5000 };
    struct hoop_comm *comm[RANKS];
    struct hoop_handle *sum[RANKS], *spread[RANKS];
    int64_t *x = malloc(sizeof(int64_t) * RANKS * COUNT), y[RANKS];

    ck_assert_int_eq(hoop_comm_init_all(comm, RANKS), HOOP_OK);
    hoop_group_start();
    for (int rank = 0; rank < RANKS; rank++) {
        int64_t *own = x + rank * COUNT;
        ck_assert_int_eq(hoop_all_reduce_init(own, own, COUNT, HOOP_I64, HOOP_SUM, comm[rank], NULL, &sum[rank]),
                         HOOP_OK);
        ck_assert_int_eq(hoop_broadcast_init(&y[rank], &y[rank], 1, HOOP_I64, 2, comm[rank], NULL, &spread[rank]),
                         HOOP_OK);
        x[rank * COUNT] = y[rank] = -7;
    }
    ck_assert_int_eq(hoop_group_end(), HOOP_OK);
    for (int rank = 0; rank < RANKS; rank++)
        ck_assert(x[rank * COUNT] == -7 && y[rank] == -7);
    for (int turn = 0; turn < 20; turn++) {
        for (int i = 0; i < RANKS * COUNT; i++)
            x[i] = turn + i % COUNT;
        hoop_group_start();
        for (int rank = 0; rank < RANKS; rank++) {
            y[rank] = rank + turn;
            ck_assert_int_eq(hoop_start(sum[rank]), HOOP_OK);
            if (turn % 3 == 0)
                ck_assert_int_eq(hoop_barrier(comm[rank], NULL), HOOP_OK);
            ck_assert_int_eq(hoop_start(spread[rank]), HOOP_OK);
        }
        ck_assert_int_eq(x[0], turn); /* not run yet */
        ck_assert_msg(hoop_group_end() == HOOP_OK, "%s", hoop_last_error(NULL));
        for (int i = 0; i < RANKS * COUNT; i++)
            ck_assert_int_eq(x[i], RANKS * (turn + i % COUNT));
        for (int rank = 0; rank < RANKS; rank++)
            ck_assert_int_eq(y[rank], 2 + turn);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        hoop_handle_free(sum[rank]);
        hoop_comm_abort(comm[rank]);
        hoop_comm_destroy(comm[rank]);
        hoop_handle_free(spread[rank]);
    }
    free(x);
}
END_TEST

/* ---- life ---- */

/* Handles are freed in every order around the end of the communicator. */
static int outlive(int rank, struct hoop_comm *comm, void *argument)
{
    struct hoop_handle *handle[6] = {NULL};
    int x[6] = {rank, rank, rank, rank, rank, rank};
    bool good = true;

    (void)argument;
    for (int i = 0; i < 6; i++)
        good &= hoop_all_reduce_init(&x[i], &x[i], 1, HOOP_I32, HOOP_SUM, comm, NULL, &handle[i]) == HOOP_OK;
    good &= hoop_handle_free(handle[5]) == HOOP_OK && hoop_handle_free(handle[0]) == HOOP_OK &&
            hoop_handle_free(handle[3]) == HOOP_OK && hoop_handle_free(NULL) == HOOP_OK;
    good &= hoop_start(handle[1]) == HOOP_OK && hoop_comm_finalize(comm) == HOOP_OK &&
            hoop_start(handle[1]) == HOOP_ERR_ARG && strstr(hoop_last_error(NULL), "finalized") != NULL;
    good &= hoop_comm_destroy(comm) == HOOP_OK;
    for (int i = 1; i < 5; i++)
        if (i != 3) {
            good &=
                hoop_start(handle[i]) == HOOP_ERR_ARG &&
                strstr(hoop_last_error(NULL), "the communicator of this handle of all_reduce was destroyed") != NULL;
            good &= hoop_handle_free(handle[i]) == HOOP_OK;
        }
    return !good;
}

START_TEST(freed_around_destroy)
{
    harness_threads(_i, outlive, NULL);
}
END_TEST

static int die(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);
    struct hoop_handle *handle;
    static float x[100000];

    if (comm == NULL || hoop_all_reduce_init(x, x, 100000, HOOP_F32, HOOP_SUM, comm, NULL, &handle) != HOOP_OK)
        return 1;
    enum hoop_status status = hoop_start(handle);
    atomic_store(&self->report->stage, 1);
    if (self->rank == 1)
        sleep(CAP);
    while (status == HOOP_OK)
        status = hoop_start(handle);
    if (hoop_start(handle) != status || hoop_start(handle) != HOOP_ERR_PEER)
        return 1;
    harness_tell(self, status, comm);
    hoop_comm_destroy(comm);
    return hoop_start(handle) != HOOP_ERR_ARG || hoop_handle_free(handle) != HOOP_OK;
}

START_TEST(dead_peer)
{
    struct harness harness;

    harness_start(&harness, 3, die, NULL, CAP);
    for (int rank = 0; rank < 3; rank++)
        harness_stage(&harness, rank, 1);
    kill(harness.process[1], SIGKILL);
    ck_assert(harness_wait(&harness));
    for (int rank = 0; rank < 3; rank += 2)
        ck_assert_msg(harness.code[rank] == 0 && harness.report[rank].status == HOOP_ERR_PEER &&
                          strstr(harness.report[rank].text, "rank 1 (process") != NULL,
                      "rank %d, code %d: %s", rank, harness.code[rank], harness.report[rank].text);
}
END_TEST

/* ---- misuse ---- */

START_TEST(wrong_arguments)
{
    struct hoop_comm *comm = NULL;
    struct hoop_handle *handle = (struct hoop_handle *)&comm, *before = handle;
    int x[4] = {0};

    ck_assert_int_eq(hoop_comm_init_all(&comm, 1), HOOP_OK);
    ck_assert_int_eq(hoop_start(NULL), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_barrier_init(comm, NULL, NULL), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_barrier_init(NULL, NULL, &handle), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_all_reduce_init(x, x + 1, 3, HOOP_I32, HOOP_SUM, comm, NULL, &handle), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_broadcast_init(x, x, 3, HOOP_I32, 1, comm, NULL, &handle), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_reduce_scatter_init(x, NULL, 3, HOOP_I32, HOOP_SUM, comm, NULL, &handle), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_all_gather_init(x, x, 3, (enum hoop_type)99, comm, NULL, &handle), HOOP_ERR_ARG);
    hoop_alloc_fail_at(1);
    ck_assert_int_eq(hoop_barrier_init(comm, NULL, &handle), HOOP_ERR_MEMORY);
    hoop_alloc_fail_at(0);
    ck_assert_ptr_eq(handle, before);
    ck_assert_int_eq(hoop_comm_destroy(comm), HOOP_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("persistent handles");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 2 * CAP);
    tcase_add_loop_test(tests, restarted, 1, 5);
    tcase_add_loop_test(tests, starts_queue_on_a_stream, 1, 5);
    tcase_add_test(tests, in_groups);
    tcase_add_loop_test(tests, freed_around_destroy, 1, 4);
    if (!UNDER_TSAN)
        tcase_add_test(tests, dead_peer);
    tcase_add_test(tests, wrong_arguments);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
