// SPDX-License-Identifier: BSD-3-Clause
/* Sends, receives and groups: patterns whose results are known, one thread that is many ranks, misuse, mismatch and death. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum { CAP = 60, MOST = 300000 };

static unsigned char mark(int from, int to, size_t i)
{
    return (unsigned char)((size_t)from * 31 + (size_t)to * 7 + i % 253);
}

static void fill(unsigned char *data, size_t bytes, int from, int to)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = mark(from, to, i);
}

static bool check(const unsigned char *data, size_t bytes, int from, int to)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != mark(from, to, i))
            return false;
    return true;
}

/* ---- everyone to everyone, itself too, in one group ---- */

struct exchange {
    size_t bytes; /* of a message from rank a to b: bytes + a - b */
    bool shared;  /* buffers of hoop_mem_alloc */
    bool with_collective;
};

static int exchange(int rank, struct hoop_comm *comm, void *argument)
{
    const struct exchange *e = argument;
    const int ranks = hoop_comm_size(comm);
    const size_t room = e->bytes + 16;
    unsigned char *out, *in;
    int sum = rank, total = ranks * (ranks - 1) / 2;
    bool right = true;

    if (e->shared) {
        if (hoop_mem_alloc(comm, (void **)&out, (size_t)ranks * room) != HOOP_OK ||
            hoop_mem_alloc(comm, (void **)&in, (size_t)ranks * room) != HOOP_OK)
            return 1;
    } else {
        out = malloc((size_t)ranks * room);
        in = malloc((size_t)ranks * room);
    }
    hoop_group_start();
    for (int peer = 0; peer < ranks; peer++) {
        fill(out + (size_t)peer * room, e->bytes + 8 + (size_t)rank - (size_t)peer, rank, peer);
        hoop_send(out + (size_t)peer * room, e->bytes + 8 + (size_t)rank - (size_t)peer, HOOP_U8, peer, comm, NULL);
    }
    if (e->with_collective)
        hoop_all_reduce(&sum, &sum, 1, HOOP_I32, HOOP_SUM, comm, NULL);
    for (int peer = ranks - 1; peer >= 0; peer--)
        hoop_recv(in + (size_t)peer * room, e->bytes + 8 + (size_t)peer - (size_t)rank, HOOP_U8, peer, comm, NULL);
    enum hoop_status status = hoop_group_end();
    for (int peer = 0; peer < ranks; peer++)
        right &= check(in + (size_t)peer * room, e->bytes + 8 + (size_t)peer - (size_t)rank, peer, rank);
    if (!e->shared) {
        free(out);
        free(in);
    }
    if (status != HOOP_OK)
        fprintf(stderr, "%s\n", hoop_last_error(comm));
    return status != HOOP_OK || !right || (e->with_collective && sum != total) || hoop_comm_destroy(comm) != HOOP_OK;
}

START_TEST(everyone_to_everyone)
{
    static const size_t bytes[] = {0, 40, 5000, MOST};

    for (size_t i = 0; i < 4; i++)
        for (int shared = 0; shared < 2; shared++)
            for (int with_collective = 0; with_collective < 2; with_collective++) {
                struct exchange e = {bytes[i], shared, with_collective};
                harness_threads(_i, exchange, &e);
            }
}
END_TEST

/* ---- without groups: a token round the ring, several messages of one pair stay in order, collectives between ---- */

static int round_the_ring(int rank, struct hoop_comm *comm, void *argument)
{
    const int ranks = hoop_comm_size(comm), next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    int64_t token = 1, value = 0;
    enum hoop_status status = HOOP_OK;

    (void)argument;
    for (int turn = 0; status == HOOP_OK && turn < 50; turn++) {
        if (rank == 0)
            status = hoop_send(&token, 1, HOOP_I64, next, comm, NULL);
        if (status == HOOP_OK)
            status = hoop_recv(&value, 1, HOOP_I64, before, comm, NULL);
        token = value + 1;
        if (status == HOOP_OK && rank != 0)
            status = hoop_send(&token, 1, HOOP_I64, next, comm, NULL);
        if (status == HOOP_OK && turn % 7 == 0)
            status = hoop_barrier(comm, NULL);
        if (rank == 0 && value != (turn + 1) * (int64_t)ranks)
            status = HOOP_ERR_INTERNAL;
        if (rank == 0)
            token = value + 1;
    }
    return status != HOOP_OK || hoop_comm_destroy(comm) != HOOP_OK;
}

START_TEST(token_ring)
{
    harness_threads(_i, round_the_ring, NULL);
}
END_TEST

/* ---- one thread is all ranks ---- */

START_TEST(one_thread_many_ranks)
{
    enum { RANKS = 4, COUNT = 70000 };
    struct hoop_comm *comm[RANKS];
    float *data = malloc(sizeof(float) * RANKS * COUNT);
    int seen[RANKS];

    ck_assert_int_eq(hoop_comm_init_all(comm, RANKS), HOOP_OK);
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < (size_t)RANKS * COUNT; i++)
            data[i] = (float)(i / COUNT + 1);
        hoop_group_start();
        for (int rank = 0; rank < RANKS; rank++)
            ck_assert_int_eq(
                hoop_all_reduce(data + rank * COUNT, data + rank * COUNT, COUNT, HOOP_F32, HOOP_SUM, comm[rank], NULL),
                HOOP_OK);
        hoop_group_start(); /* groups nest */
        for (int rank = 0; rank < RANKS; rank++) {
            hoop_send(&round, 1, HOOP_I32, (rank + 1) % RANKS, comm[rank], NULL);
            hoop_recv(&seen[rank], 1, HOOP_I32, (rank + RANKS - 1) % RANKS, comm[rank], NULL);
            seen[rank] = -1;
        }
        ck_assert_int_eq(hoop_group_end(), HOOP_OK);
        ck_assert_int_eq(seen[0], -1); /* not run yet */
        ck_assert_msg(hoop_group_end() == HOOP_OK, "%s", hoop_last_error(NULL));
        for (size_t i = 0; i < (size_t)RANKS * COUNT; i++)
            ck_assert(data[i] == 10);
        for (int rank = 0; rank < RANKS; rank++)
            ck_assert_int_eq(seen[rank], round);
    }
    hoop_group_start();
    for (int rank = 0; rank < RANKS; rank++)
        hoop_barrier(comm[rank], NULL);
    ck_assert_int_eq(hoop_group_end(), HOOP_OK);
    for (int rank = 0; rank < RANKS;
         rank++) { /* finalize is collective; abort lets one thread destroy one after the other */
        hoop_comm_abort(comm[rank]);
        hoop_comm_destroy(comm[rank]);
    }
    free(data);
}
END_TEST

/* ---- misuse ---- */

static int misuse(int rank, struct hoop_comm *comm, void *argument)
{
    hoop_stream *a = NULL, *b = NULL;
    int x = 0;
    bool right = hoop_group_end() == HOOP_ERR_ARG && hoop_send(&x, 1, HOOP_I32, rank, comm, NULL) == HOOP_ERR_ARG &&
                 hoop_send(&x, 1, HOOP_I32, 99, comm, NULL) == HOOP_ERR_ARG &&
                 hoop_recv(NULL, 1, HOOP_I32, 1 - rank, comm, NULL) == HOOP_ERR_ARG &&
                 hoop_recv(&x, 1, (enum hoop_type)77, 1 - rank, comm, NULL) == HOOP_ERR_ARG;

    (void)argument;
    right = right && hoop_stream_create(&a) == HOOP_OK && hoop_stream_create(&b) == HOOP_OK;
    hoop_group_start();
    hoop_barrier(comm, a);
    hoop_barrier(comm, b);
    right = right && hoop_group_end() == HOOP_ERR_ARG; /* two streams, and nothing has run */
    hoop_group_start();
    hoop_barrier(comm, a);
    hoop_send(&rank, 1, HOOP_I32, 1 - rank, comm, a);
    hoop_recv(&x, 1, HOOP_I32, 1 - rank, comm, a);
    right = right && hoop_group_end() == HOOP_OK && hoop_stream_synchronize(a) == HOOP_OK && x == 1 - rank;
    right = right && hoop_stream_destroy(a) == HOOP_OK && hoop_stream_destroy(b) == HOOP_OK;
    return !right || hoop_comm_destroy(comm) != HOOP_OK;
}

START_TEST(wrong_use)
{
    harness_threads(2, misuse, NULL);
}
END_TEST

/* ---- failures ---- */

static int other_message(struct harness_rank *self)
{
    static char data[200000];
    const size_t count = *(const size_t *)self->argument;
    struct hoop_comm *comm = harness_join(self);

    if (comm == NULL)
        return 1;
    enum hoop_status status = self->rank == 0 ? hoop_send(data, count, HOOP_U8, 1, comm, NULL)
                                              : hoop_recv(data, count + 1, HOOP_U8, 0, comm, NULL);
    if (status == HOOP_OK)
        status = hoop_barrier(comm, NULL);
    harness_tell(self, status, comm);
    hoop_comm_destroy(comm);
    return 0;
}

START_TEST(messages_that_differ)
{
    static const size_t counts[] = {0, 3, 100000};
    char words[64];

    for (size_t i = 0; i < 3; i++) {
        struct harness harness;
        harness_start(&harness, 2, other_message, (void *)(uintptr_t)&counts[i], CAP);
        ck_assert(harness_wait(&harness));
        snprintf(words, sizeof words, "rank 0 sends %zu uint8 where rank 1 receives %zu uint8", counts[i],
                 counts[i] + 1);
        ck_assert_int_eq(harness.report[0].status, HOOP_ERR_MISMATCH);
        ck_assert_int_eq(harness.report[1].status, HOOP_ERR_MISMATCH);
        ck_assert_msg(strstr(harness.report[1].text, words) != NULL, "%s", harness.report[1].text);
    }
}
END_TEST

static int wait_for_the_dead(struct harness_rank *self)
{
    char byte;
    struct hoop_comm *comm = harness_join(self);

    if (comm == NULL)
        return 1;
    atomic_store(&self->report->stage, 1);
    if (self->rank == 1) {
        sleep(CAP);
        return 1;
    }
    harness_tell(self, hoop_recv(&byte, 1, HOOP_U8, 1, comm, NULL), comm);
    hoop_comm_destroy(comm);
    return 0;
}

START_TEST(receive_from_the_dead)
{
    struct harness harness;

    harness_start(&harness, 3, wait_for_the_dead, NULL, CAP);
    for (int rank = 0; rank < 3; rank++)
        harness_stage(&harness, rank, 1);
    usleep(20000);
    kill(harness.process[1], SIGKILL);
    ck_assert(harness_wait(&harness));
    for (int rank = 0; rank < 3; rank += 2)
        ck_assert_msg(harness.report[rank].status == HOOP_ERR_PEER &&
                          strstr(harness.report[rank].text, "rank 1 (process"),
                      "rank %d: %s", rank, harness.report[rank].text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("messages and groups");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, CAP);
    tcase_add_loop_test(tests, everyone_to_everyone, 1, 8);
    tcase_add_loop_test(tests, token_ring, 2, 6);
    tcase_add_test(tests, one_thread_many_ranks);
    tcase_add_test(tests, wrong_use);
    tcase_add_test(tests, messages_that_differ);
    tcase_add_test(tests, receive_from_the_dead);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
