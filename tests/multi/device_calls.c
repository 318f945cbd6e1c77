// SPDX-License-Identifier: BSD-3-Clause
/* Calls on device memory that are more than one vector with a built-in operator: blocks of different sizes with gaps, messages, groups of
 * several calls, created operators, and staging memory that cannot be pinned in the board. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_help.h"
#include "harness.h"

enum { RANKS = 3, SPACE = 1 << 16, CAP = 60, GAP = 3, MARK = -77 };

struct place {
    struct cuda_help cuda;
    int *host, *device;
};

static void open_place(struct place *place, struct hoop_comm *comm)
{
    int ordinal = -1;

    ck_assert_int_eq(hoop_comm_device(comm, &ordinal), HOOP_OK);
    cuda_open(&place->cuda, ordinal, 1);
    place->host = cuda_host(&place->cuda, SPACE);
    place->device = cuda_device(&place->cuda, SPACE);
}

static void put(struct place *place, size_t count, hoop_cu_stream stream)
{
    cuda_copy(&place->cuda, place->device, place->host, count * sizeof(int), stream);
}

/* The call's outcome and what is in device memory then. */
static bool got(struct place *place, size_t count, hoop_cu_stream stream, enum hoop_status status,
                struct hoop_comm *comm)
{
    cuda_copy(&place->cuda, place->host, place->device, count * sizeof(int), stream);
    cuda_synchronize(&place->cuda, stream);
    if (status == HOOP_OK)
        status = hoop_comm_async_error(comm);
    if (status != HOOP_OK)
        fprintf(stderr, "rank %d: %s\n", hoop_comm_rank(comm), hoop_last_error(NULL));
    return status == HOOP_OK;
}

#define EXPECT(at, what)                                                                                \
    do {                                                                                                \
        const int is = (at), must = (what);                                                             \
        if (is != must) {                                                                               \
            fprintf(stderr, "line %d, rank %d: %s is %d, must be %d\n", __LINE__, rank, #at, is, must); \
            return 1;                                                                                   \
        }                                                                                               \
    } while (0)

static int value(int from, int to, size_t i)
{
    return from * 10000 + to * 1000 + (int)i;
}

/* Blocks of rank + 1 elements with gaps, which stay as they are. The send buffer is behind the receive buffer, or in it. */
static int gather_uneven(struct place *place, int rank, struct hoop_comm *comm, hoop_cu_stream stream, bool in_place)
{
    size_t counts[RANKS], first[RANKS], all = GAP;

    for (int r = 0; r < RANKS; r++) {
        const int from = RANKS - 1 - r; /* the last rank's block comes first */
        counts[from] = (size_t)from + 1;
        first[from] = all;
        all += counts[from] + GAP;
    }
    const size_t own = in_place ? first[rank] : all;
    for (size_t i = 0; i < all + RANKS; i++)
        place->host[i] = MARK;
    for (size_t i = 0; i < counts[rank]; i++)
        place->host[own + i] = value(rank, 0, i);
    put(place, all + RANKS, stream);
    const enum hoop_status status = hoop_all_gatherv(place->device + own, counts[rank], place->device, counts, first,
                                                     HOOP_I32, comm, (hoop_stream *)(void *)stream);
    if (!got(place, all, stream, status, comm))
        return 1;
    for (int r = 0; r < RANKS; r++) {
        for (size_t i = 0; i < counts[r]; i++)
            EXPECT(place->host[first[r] + i], value(r, 0, i));
        for (size_t i = 1; i <= GAP; i++)
            EXPECT(place->host[first[r] - i], MARK);
    }
    return 0;
}

/* Rank a sends rank b a + 2b elements: none from 0 to itself. */
static int exchange_uneven(struct place *place, int rank, struct hoop_comm *comm, hoop_cu_stream stream)
{
    size_t sent[RANKS], from[RANKS], received[RANKS], to[RANKS], out = 0, all;

    for (int r = 0; r < RANKS; r++) {
        received[r] = (size_t)(r + 2 * rank);
        to[r] = out + GAP;
        out += received[r] + GAP;
    }
    all = out;
    for (int r = 0; r < RANKS; r++) {
        sent[r] = (size_t)(rank + 2 * r);
        from[r] = all - out + 1;
        all += sent[r] + 1;
    }
    for (size_t i = 0; i <= all; i++)
        place->host[i] = MARK;
    for (int r = 0; r < RANKS; r++)
        for (size_t i = 0; i < sent[r]; i++)
            place->host[out + from[r] + i] = value(rank, r, i);
    put(place, all + 1, stream);
    const enum hoop_status status = hoop_all_to_allv(place->device + out, sent, from, place->device, received, to,
                                                     HOOP_I32, comm, (hoop_stream *)(void *)stream);
    if (!got(place, out, stream, status, comm))
        return 1;
    for (int r = 0; r < RANKS; r++) {
        for (size_t i = 0; i < received[r]; i++)
            EXPECT(place->host[to[r] + i], value(r, rank, i));
        EXPECT(place->host[to[r] - 1], MARK);
    }
    return 0;
}

/* A group of two sums, and a message to the next rank; the last rank receives its into host memory, if there is no stream. */
static int group_of_calls(struct place *place, int rank, struct hoop_comm *comm, hoop_cu_stream stream)
{
    enum { COUNT = 500 };
    hoop_stream *hoop = (hoop_stream *)(void *)stream;
    int *device = place->device, landed[COUNT];
    const int before = (rank + RANKS - 1) % RANKS;
    const bool to_host = rank == RANKS - 1 && stream == NULL;

    for (int i = 0; i < 4 * COUNT; i++)
        place->host[i] = i < 3 * COUNT ? value(rank, i / COUNT, (size_t)i) : MARK;
    put(place, 4 * COUNT, stream);
    hoop_group_start();
    hoop_all_reduce(device, device, COUNT, HOOP_I32, HOOP_SUM, comm, hoop);
    hoop_send(device + 2 * COUNT, COUNT, HOOP_I32, (rank + 1) % RANKS, comm, hoop);
    hoop_recv(to_host ? landed : device + 3 * COUNT, COUNT, HOOP_I32, before, comm, hoop);
    hoop_all_reduce(device + COUNT, device + COUNT, COUNT, HOOP_I32, HOOP_MAX, comm, hoop);
    const enum hoop_status status = hoop_group_end();
    if (!got(place, 4 * COUNT, stream, status, comm))
        return 1;
    for (int i = 0; i < COUNT; i++) {
        EXPECT(place->host[i], value(RANKS * (RANKS - 1) / 2, 0, (size_t)(RANKS * i)));
        EXPECT(place->host[COUNT + i], value(RANKS - 1, 1, (size_t)(COUNT + i)));
        EXPECT(to_host ? landed[i] : place->host[3 * COUNT + i], value(before, 2, (size_t)(2 * COUNT + i)));
    }
    return 0;
}

static void multiply_add(void *to, const void *left, const void *right, size_t count, enum hoop_type type,
                         void *context)
{
    const int *a = left, *b = right;
    int *c = to;

    (void)type;
    for (size_t i = 0; i < count; i++)
        c[i] = a[i] * *(int *)context + b[i];
}

/* Digits in rank order: shows that the user's function runs, and with every operand on its side. */
static int created_operators(struct place *place, int rank, struct hoop_comm *comm, hoop_cu_stream stream)
{
    enum { COUNT = 2000 };
    hoop_stream *hoop = (hoop_stream *)(void *)stream;
    int ten = 10, factor = rank + 2;
    enum hoop_op digits, times;

    if (hoop_op_user_create(&digits, multiply_add, &ten, 0, 0, comm) != HOOP_OK ||
        hoop_op_premul_create(&times, &factor, HOOP_I32, comm) != HOOP_OK)
        return 1;
    for (int i = 0; i < 2 * COUNT; i++)
        place->host[i] = rank + 1;
    put(place, 2 * COUNT, stream);
    enum hoop_status status = hoop_all_reduce(place->device, place->device, COUNT, HOOP_I32, digits, comm, hoop);
    if (status == HOOP_OK)
        status = hoop_all_reduce(place->device + COUNT, place->device + COUNT, COUNT, HOOP_I32, times, comm, hoop);
    if (!got(place, 2 * COUNT, stream, status, comm))
        return 1;
    for (int i = 0; i < COUNT; i++) {
        EXPECT(place->host[i], 123);
        EXPECT(place->host[COUNT + i], 1 * 2 + 2 * 3 + 3 * 4);
    }
    return hoop_op_destroy(digits, comm) == HOOP_OK && hoop_op_destroy(times, comm) == HOOP_OK ? 0 : 1;
}

static int all_calls(int rank, struct hoop_comm *comm, void *argument)
{
    struct hoop_stats stats = {.size = sizeof stats};
    struct place place;
    int failed = 0;

    open_place(&place, comm);
    for (int i = 0; i < 2 && !failed; i++) {
        hoop_cu_stream stream = i ? place.cuda.stream[0] : NULL;
        failed = gather_uneven(&place, rank, comm, stream, false) || gather_uneven(&place, rank, comm, stream, true) ||
                 exchange_uneven(&place, rank, comm, stream) || group_of_calls(&place, rank, comm, stream) ||
                 created_operators(&place, rank, comm, stream);
    }
    hoop_stats(comm, &stats);
    if (argument && strncmp(stats.last_plan, argument, strlen(argument)) != 0) {
        fprintf(stderr, "rank %d: the last call went %s\n", rank, stats.last_plan);
        failed = 1;
    }
    if (hoop_comm_destroy(comm) != HOOP_OK)
        failed = 1;
    cuda_close(&place.cuda);
    return failed;
}

static int in_process(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    return comm ? all_calls(self->rank, comm, self->argument) : 1;
}

static void settings(void)
{
    cuda_devices(3);
    setenv("FAKECUDA_DELAY", "20", 1);
    setenv("HOOP_DEVICE", "cuda", 1);
}

START_TEST(processes)
{
    settings();
    harness_run(RANKS, in_process, NULL, CAP);
}
END_TEST

START_TEST(threads)
{
    settings();
    harness_threads(RANKS, all_calls, NULL);
}
END_TEST

/* Memory of the board cannot be pinned: the driver's own is taken. */
START_TEST(nothing_can_be_registered)
{
    static char staged[] = "staged/";

    settings();
    setenv("HOOP_STAGED", "1", 1);
    setenv("FAKECUDA_REGISTER", "0", 1);
    harness_run(RANKS, in_process, staged, CAP);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("more calls on device memory");
    TCase *all = tcase_create("all");

    (void)argc;
    cuda_driver_or_skip(argv);
    tcase_set_timeout(all, CAP + 20);
    tcase_add_test(all, processes);
    tcase_add_test(all, threads);
    if (cuda_suits("nothing_can_be_registered", 3, true))
        tcase_add_test(all, nothing_can_be_registered);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
