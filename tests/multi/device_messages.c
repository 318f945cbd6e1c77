// SPDX-License-Identifier: BSD-3-Clause
/* Messages and all_to_allv on device memory as kernels: random groups whose ends lie in memory of any kind, the host's results, graphs,
 * messages that differ, and what ends the wait for a peer. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_help.h"
#include "harness.h"

enum { MOST = 8, MESSAGES = 60, SPACE = 1 << 18 /* elements */, CAP = 60, GAP = 3, MARK = -77 };

struct place {
    struct cuda_help cuda;
    struct hoop_comm *comm;
    int rank, ranks;
    int *host, *device; /* what is sent, then what is received; each SPACE elements */
};

static void open_place(struct place *place, int rank, struct hoop_comm *comm)
{
    int ordinal = -1;

    *place = (struct place){.comm = comm, .rank = rank, .ranks = hoop_comm_size(comm)};
    ck_assert_int_eq(hoop_comm_device(comm, &ordinal), HOOP_OK);
    cuda_open(&place->cuda, ordinal, 1);
    place->host = cuda_host(&place->cuda, 2 * SPACE * sizeof(int));
    place->device = cuda_device(&place->cuda, 2 * SPACE * sizeof(int));
}

static bool went(const struct hoop_comm *comm, const char *way)
{
    char name[HARNESS_PLAN];

    harness_last_plan(comm, name);
    if (strncmp(name, way, strlen(way)) != 0)
        fprintf(stderr, "rank %d: the last call went %s, not %s\n", hoop_comm_rank(comm), name, way);
    return strncmp(name, way, strlen(way)) == 0;
}

static unsigned draw(uint64_t *state, unsigned end)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % end;
}

/* ---- random groups ---- */

/* All ranks draw the same messages, and each an order of its own in which those of one peer and direction keep theirs. */
struct message {
    int from, to, device[2]; /* of the two ends */
    size_t count, at;        /* its place, the same in all buffers */
    bool called[2];
};

struct schedule {
    int messages;
    struct message message[MESSAGES];
    size_t used;
};

/* Empty, a few, several slots, several parts. */
static size_t draw_count(uint64_t *state)
{
    static const unsigned ends[] = {1, 20, 3000, 8000, 50000};

    return draw(state, ends[draw(state, 20) ? draw(state, 4) : 4]);
}

/* mixed: ends in host memory, too; to itself, where a group has both ends. */
static void draw_schedule(struct schedule *schedule, int ranks, uint64_t seed, bool mixed)
{
    uint64_t state = seed * 2654435761u + 1;

    memset(schedule, 0, sizeof *schedule);
    for (int i = 0; i < MESSAGES / 2 + (int)draw(&state, MESSAGES / 2); i++) {
        struct message *message = &schedule->message[schedule->messages];
        *message = (struct message){.from = (int)draw(&state, (unsigned)ranks),
                                    .to = (int)draw(&state, (unsigned)ranks),
                                    .device = {1, 1},
                                    .count = draw_count(&state),
                                    .at = schedule->used};
        if (mixed)
            for (int end = 0; end < 2; end++)
                message->device[end] = draw(&state, 3) > 0;
        if (schedule->used + message->count + GAP > SPACE)
            break;
        schedule->used += message->count + GAP;
        schedule->messages++;
    }
}

static int value(const struct message *message, size_t i, uint64_t seed)
{
    return (int)(seed * 1000003u + (unsigned)message->from * 70001u + (unsigned)message->to * 9001u + message->at + i);
}

static void fill(struct place *place, const struct schedule *schedule, uint64_t seed, hoop_cu_stream stream)
{
    for (size_t i = 0; i < 2 * SPACE; i++)
        place->host[i] = MARK;
    for (int k = 0; k < schedule->messages; k++) {
        const struct message *message = &schedule->message[k];
        for (size_t i = 0; i < message->count && message->from == place->rank; i++)
            place->host[message->at + i] = value(message, i, seed);
    }
    cuda_copy(&place->cuda, place->device, place->host, 2 * SPACE * sizeof(int), stream);
    if (stream)
        cuda_synchronize(&place->cuda, stream); /* host ends use the buffer, too */
}

/* Has an earlier message of its pair an end that has not been called yet? */
static bool must_wait(const struct schedule *schedule, int k, int end)
{
    for (int before = 0; before < k; before++)
        if (!schedule->message[before].called[end] && schedule->message[before].from == schedule->message[k].from &&
            schedule->message[before].to == schedule->message[k].to)
            return true;
    return false;
}

static enum hoop_status call_end(struct place *place, struct message *message, int end, hoop_cu_stream stream)
{
    int *data = (message->device[end] ? place->device : place->host) + message->at + (end ? SPACE : 0);
    hoop_stream *hoop = (hoop_stream *)(void *)stream;

    message->called[end] = true;
    return end ? hoop_recv(data, message->count, HOOP_I32, message->from, place->comm, hoop)
               : hoop_send(data, message->count, HOOP_I32, message->to, place->comm, hoop);
}

static enum hoop_status call_all(struct place *place, struct schedule *schedule, uint64_t seed, hoop_cu_stream stream)
{
    uint64_t state = seed * 97 + (unsigned)place->rank;
    enum hoop_status status = hoop_group_start();
    int left = 0;

    for (int k = 0; k < schedule->messages; k++)
        left += (schedule->message[k].from == place->rank) + (schedule->message[k].to == place->rank);
    while (left > 0 && status == HOOP_OK) {
        const int k = (int)draw(&state, (unsigned)schedule->messages), end = (int)draw(&state, 2);
        struct message *message = &schedule->message[k];
        if ((end ? message->to : message->from) != place->rank || message->called[end] || must_wait(schedule, k, end))
            continue;
        status = call_end(place, message, end, stream);
        left--;
    }
    const enum hoop_status ended = hoop_group_end();
    return status == HOOP_OK ? ended : status;
}

static int check(struct place *place, const struct schedule *schedule, uint64_t seed, hoop_cu_stream stream)
{
    struct hoop_comm *comm = place->comm;
    int *landed = malloc(SPACE * sizeof(int));

    cuda_copy(&place->cuda, landed, place->device + SPACE, SPACE * sizeof(int), stream);
    cuda_synchronize(&place->cuda, stream);
    HARNESS_EXPECT(hoop_comm_async_error(comm) == HOOP_OK);
    for (int k = 0; k < schedule->messages; k++) {
        const struct message *message = &schedule->message[k];
        const int *data = (message->device[1] ? landed : place->host + SPACE) + message->at;
        for (size_t i = 0; i < message->count + GAP; i++) {
            const int is = data[i];
            const int must = i < message->count && message->to == place->rank ? value(message, i, seed) : MARK;
            if (is == must)
                continue;
            fprintf(stderr, "seed %d, rank %d: element %zu of message %d, %zu from %d to %d, is %d, must be %d\n",
                    (int)seed, place->rank, i, k, message->count, message->from, message->to, is, must);
            hoop_comm_abort(comm);
            return 1;
        }
    }
    free(landed);
    return 0;
}

static int random_groups(int rank, struct hoop_comm *comm, void *argument)
{
    const uint64_t seed = (uint64_t) * (const int *)argument * 100;
    struct schedule *schedule = malloc(sizeof *schedule);
    struct place place;
    int failed = 0;

    open_place(&place, rank, comm);
    for (unsigned i = 0; i < 4 && !failed; i++) {
        hoop_cu_stream stream = i % 2 ? place.cuda.stream[0] : NULL;
        draw_schedule(schedule, place.ranks, seed + i, stream == NULL);
        fill(&place, schedule, seed + i, stream);
        HARNESS_EXPECT(call_all(&place, schedule, seed + i, stream) == HOOP_OK);
        failed = check(&place, schedule, seed + i, stream);
        HARNESS_EXPECT(failed || went(comm, "messages/kernel"));
    }
    free(schedule);
    failed |= hoop_comm_destroy(comm) != HOOP_OK;
    cuda_close(&place.cuda);
    return failed;
}

/* Without groups, collectives between: a token goes round; what is sent first is taken last. */
static int one_by_one(int rank, struct hoop_comm *comm, void *argument)
{
    const int ranks = hoop_comm_size(comm), next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    struct place place;

    (void)argument;
    open_place(&place, rank, comm);
    hoop_stream *stream = (hoop_stream *)(void *)place.cuda.stream[0];
    place.host[0] = rank;
    cuda_copy(&place.cuda, place.device, place.host, sizeof(int), place.cuda.stream[0]);
    for (int turn = 0; turn < 20; turn++) {
        HARNESS_EXPECT(hoop_send(place.device, 1, HOOP_I32, next, comm, stream) == HOOP_OK);
        HARNESS_EXPECT(hoop_all_reduce(place.device + 8, place.device + 8, 1000, HOOP_I32, HOOP_MAX, comm, stream) ==
                       HOOP_OK);
        HARNESS_EXPECT(hoop_recv(place.device, 1, HOOP_I32, before, comm, stream) == HOOP_OK);
    }
    cuda_copy(&place.cuda, place.host, place.device, sizeof(int), place.cuda.stream[0]);
    cuda_synchronize(&place.cuda, place.cuda.stream[0]);
    HARNESS_EXPECT(place.host[0] == (rank + 20 * (ranks - 1)) % ranks);
    const int failed = hoop_comm_destroy(comm) != HOOP_OK;
    cuda_close(&place.cuda);
    return failed;
}

/* ---- all_to_allv ---- */

/* Counts of all pairs, many of them 0; offsets of a rank's blocks, in place the same for both buffers. */
struct counts {
    size_t count[MOST][MOST];
    size_t from[MOST], to[MOST], sent[MOST], received[MOST];
};

static void draw_counts(struct counts *counts, int rank, int ranks, uint64_t seed, bool in_place)
{
    uint64_t state = seed * 77 + 5;
    size_t from = 0, to = 0;

    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++)
            counts->count[a][b] = draw(&state, 4) ? draw_count(&state) % 15000 : 0;
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < a && in_place; b++)
            counts->count[a][b] = counts->count[b][a];
    for (int r = 0; r < ranks; r++) {
        counts->from[r] = from;
        counts->to[r] = in_place ? from : to;
        counts->sent[r] = counts->count[rank][r];
        counts->received[r] = counts->count[r][rank];
        from += counts->sent[r] + GAP;
        to += counts->received[r] + GAP;
    }
}

static int exchange_once(struct place *place, uint64_t seed, bool in_place, hoop_cu_stream stream)
{
    struct hoop_comm *comm = place->comm;
    const size_t out = in_place ? 0 : SPACE;
    int *landed = malloc(2 * SPACE * sizeof(int));
    struct counts c;

    draw_counts(&c, place->rank, place->ranks, seed, in_place);
    for (size_t i = 0; i < 2 * SPACE; i++)
        place->host[i] = (int)(seed + (unsigned)place->rank * 1000000 + i);
    cuda_copy(&place->cuda, place->device, place->host, 2 * SPACE * sizeof(int), stream);
    cuda_synchronize(&place->cuda, stream);
    HARNESS_EXPECT(hoop_all_to_allv(place->host, c.sent, c.from, place->host + out, c.received, c.to, HOOP_I32, comm,
                                    NULL) == HOOP_OK);
    HARNESS_EXPECT(hoop_all_to_allv(place->device, c.sent, c.from, place->device + out, c.received, c.to, HOOP_I32,
                                    comm, (hoop_stream *)(void *)stream) == HOOP_OK);
    HARNESS_EXPECT(went(comm, "messages/kernel"));
    cuda_copy(&place->cuda, landed, place->device, 2 * SPACE * sizeof(int), stream);
    cuda_synchronize(&place->cuda, stream);
    HARNESS_EXPECT(hoop_comm_async_error(comm) == HOOP_OK);
    for (size_t i = 0; i < 2 * SPACE; i++)
        if (landed[i] != place->host[i]) {
            fprintf(stderr, "seed %d, rank %d, in place %d: element %zu is %d, on the host %d\n", (int)seed,
                    place->rank, in_place, i, landed[i], place->host[i]);
            hoop_comm_abort(comm);
            return 1;
        }
    free(landed);
    return 0;
}

static int as_on_the_host(int rank, struct hoop_comm *comm, void *argument)
{
    struct place place;
    int failed = 0;

    open_place(&place, rank, comm);
    for (unsigned i = 0; i < 4 && !failed; i++)
        failed = exchange_once(&place, (uint64_t) * (const int *)argument * 10 + i, i >= 2,
                               i % 2 ? place.cuda.stream[0] : NULL);
    failed |= hoop_comm_destroy(comm) != HOOP_OK;
    cuda_close(&place.cuda);
    return failed;
}

/* ---- graphs ---- */

static enum hoop_status calls_of_graph(struct place *place, size_t count, hoop_cu_stream stream)
{
    const int next = (place->rank + 1) % place->ranks, before = (place->rank + place->ranks - 1) % place->ranks;
    hoop_stream *hoop = (hoop_stream *)(void *)stream;
    size_t sent[MOST] = {0}, received[MOST] = {0}, from[MOST] = {0}, to[MOST] = {0};

    sent[next] = received[before] = count;
    hoop_group_start();
    hoop_send(place->device, count, HOOP_I32, next, place->comm, hoop);
    hoop_recv(place->device + SPACE, count, HOOP_I32, before, place->comm, hoop);
    const enum hoop_status status = hoop_group_end();
    return status == HOOP_OK ? hoop_all_to_allv(place->device + SPACE, sent, from, place->device, received, to,
                                                HOOP_I32, place->comm, hoop)
                             : status;
}

/* Every turn takes the data two ranks on. */
static int replay(int rank, struct hoop_comm *comm, void *argument)
{
    enum { TURNS = 24, COUNT = 20000 };
    struct place place;

    (void)argument;
    open_place(&place, rank, comm);
    hoop_cu_stream stream = place.cuda.stream[0];
    for (int i = 0; i < COUNT; i++)
        place.host[i] = rank * COUNT + i;
    cuda_copy(&place.cuda, place.device, place.host, COUNT * sizeof(int), stream);
    cuda_capture(&place.cuda, stream);
    const enum hoop_status status = calls_of_graph(&place, COUNT, stream);
    hoop_cu_graph_exec graph = cuda_captured(&place.cuda, stream);
    HARNESS_EXPECT(status == HOOP_OK);
    for (int turn = 0; turn < TURNS; turn++)
        if (turn % 5 == 3)
            HARNESS_EXPECT(calls_of_graph(&place, COUNT, stream) == HOOP_OK);
        else
            cuda_replay(&place.cuda, graph, stream);
    cuda_copy(&place.cuda, place.host, place.device, COUNT * sizeof(int), stream);
    cuda_synchronize(&place.cuda, stream);
    HARNESS_EXPECT(hoop_comm_async_error(comm) == HOOP_OK);
    const int from = (rank + 2 * TURNS * (place.ranks - 1)) % place.ranks;
    for (int i = 0; i < COUNT; i++)
        HARNESS_EXPECT(place.host[i] == from * COUNT + i);
    cuda_forget(&place.cuda, graph);
    const int failed = hoop_comm_destroy(comm) != HOOP_OK;
    cuda_close(&place.cuda);
    return failed;
}

/* ---- ranks ---- */

static const harness_thread_body bodies[] = {random_groups, one_by_one, as_on_the_host, replay};

struct job {
    int seed; /* first: what bodies get */
    harness_thread_body body;
};

static int of_process(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    return comm ? ((const struct job *)self->argument)->body(self->rank, comm, self->argument) : 1;
}

static void settings(int devices)
{
    cuda_devices(devices);
    setenv("HOOP_DEVICE", "cuda", 1);
    setenv("HOOP_SLICE", "4K", 1);
}

/* 2 to 8 ranks, by turns processes and threads. */
START_TEST(as_kernels)
{
    struct job job = {_i, bodies[_i % 4]};
    const int ranks = 2 + _i * 3 % 7;

    settings(ranks);
    if (_i % 3 == 0)
        setenv("FAKECUDA_DELAY", "20", 1);
    if (_i / 4 % 2)
        harness_threads(ranks, job.body, &job);
    else
        harness_run(ranks, of_process, &job, CAP);
}
END_TEST

/* Devices without peer access: by way of the host's memory. */
START_TEST(through_the_host)
{
    struct job job = {_i, bodies[_i % 4]};

    settings(3);
    setenv("FAKECUDA_PEERS", "all=none", 1);
    harness_threads(3, job.body, &job);
}
END_TEST

/* ---- what goes wrong ---- */

enum wrong { COUNTS, TYPES, EXCHANGE, IN_PLACE, WRONGS };

static enum hoop_status call_wrong(struct place *place, enum wrong wrong, hoop_stream *stream)
{
    const size_t sent[3] = {5, place->rank == 0 && wrong == EXCHANGE ? 7 : 5, 5}, received[3] = {5, 5, 5},
                 at[3] = {0, 10, 20};
    const bool in_place = wrong == IN_PLACE && place->rank == 0;

    if (wrong == EXCHANGE || wrong == IN_PLACE)
        return hoop_all_to_allv(place->device, sent, at, place->device + (in_place ? 0 : SPACE), received, at, HOOP_I32,
                                place->comm, stream);
    if (place->rank == 0)
        return hoop_send(place->device, 40000, HOOP_I32, 1, place->comm, stream);
    if (place->rank == 1)
        return hoop_recv(place->device, wrong == COUNTS ? 39999 : 40000, wrong == COUNTS ? HOOP_I32 : HOOP_F32, 0,
                         place->comm, stream);
    return hoop_recv(place->device, 1, HOOP_I32, 1, place->comm, stream); /* nobody sends it */
}

static bool told(enum wrong wrong, int rank, const char *text)
{
    static const char *const words[][2] = {{"sends 40000", "receives 39999"},
                                           {"int32", "float"},
                                           {"rank 0 sends 7", "to rank 1, which expects 5"},
                                           {"in place", "rank 0"}};

    if (wrong == IN_PLACE) /* who notices first tells it */
        return strstr(text, "rank ") != NULL;
    return rank != 1 ? strstr(text, "rank 0") && strstr(text, "rank 1")
                     : strstr(text, words[wrong][0]) && strstr(text, words[wrong][1]);
}

struct trial {
    enum wrong wrong;
    bool stream;
};

static int differ(struct harness_rank *self)
{
    const struct trial *trial = self->argument;
    struct hoop_comm *comm = harness_join(self);
    struct place place;

    if (comm == NULL)
        return 1;
    open_place(&place, self->rank, comm);
    hoop_cu_stream stream = trial->stream ? place.cuda.stream[0] : NULL;
    enum hoop_status status = call_wrong(&place, trial->wrong, (hoop_stream *)(void *)stream);
    cuda_synchronize(&place.cuda, stream);
    if (status == HOOP_OK)
        status = hoop_comm_async_error(comm);
    if (status == HOOP_OK) /* whoever was told late */
        status = hoop_comm_finalize(comm);
    harness_tell(self, status, comm);
    const bool good = status == HOOP_ERR_MISMATCH && told(trial->wrong, self->rank, self->report->text);
    hoop_comm_destroy(comm);
    cuda_close(&place.cuda);
    return good ? 0 : 1;
}

START_TEST(messages_that_differ)
{
    struct trial trial = {(enum wrong)(_i % WRONGS), _i / WRONGS};

    settings(3);
    harness_run(3, differ, &trial, CAP);
}
END_TEST

/* Nobody receives the end of a group of long messages: a limit of time, an abort, or the death of the peer ends it. */
enum end { TIMEOUT, ABORT, DEATH, ENDS };

static int wait_in_vain(struct harness_rank *self)
{
    static const enum hoop_status must[] = {HOOP_ERR_TIMEOUT, HOOP_ERR_ABORTED, HOOP_ERR_PEER};
    const enum end end = *(const enum end *)self->argument;
    struct hoop_comm *comm = harness_join(self);
    struct place place;

    if (comm == NULL)
        return 1;
    open_place(&place, self->rank, comm);
    hoop_stream *stream = (hoop_stream *)(void *)place.cuda.stream[0];
    hoop_group_start();
    hoop_send(place.device, 60000, HOOP_I32, 1 - self->rank, comm, stream);
    hoop_recv(place.device + SPACE, 60000, HOOP_I32, 1 - self->rank, comm, stream);
    if (self->rank == 0)
        hoop_send(place.device, 60000, HOOP_I32, 1, comm, stream);
    enum hoop_status status = hoop_group_end();
    if (self->rank == 1) {
        cuda_synchronize(&place.cuda, place.cuda.stream[0]);
        if (end == DEATH)
            _exit(0);
        usleep(20000);
        if (end == ABORT)
            hoop_comm_abort(comm);
        while (hoop_comm_async_error(comm) == HOOP_OK)
            usleep(1000);
    }
    cuda_synchronize(&place.cuda, place.cuda.stream[0]);
    status = status == HOOP_OK ? hoop_comm_async_error(comm) : status;
    harness_tell(self, status, comm);
    hoop_comm_destroy(comm);
    cuda_close(&place.cuda);
    return status == must[end] ? 0 : 1;
}

START_TEST(nobody_receives)
{
    enum end end = (enum end)_i;

    settings(2);
    if (end == TIMEOUT)
        setenv("HOOP_TIMEOUT", "0.3", 1);
    harness_run(2, wait_in_vain, &end, CAP);
}
END_TEST

/* Ranks that share a GPU: staged, and hoop_explain says so. */
static int on_one_gpu(int rank, struct hoop_comm *comm, void *argument)
{
    char *text = malloc(HOOP_EXPLAIN_TEXT);
    struct place place;

    (void)argument;
    open_place(&place, rank, comm);
    HARNESS_EXPECT(hoop_explain(comm, "all_to_all", 4096, 0, text, HOOP_EXPLAIN_TEXT) == HOOP_OK);
    HARNESS_EXPECT(strstr(text, "messages are staged") != NULL);
    place.host[0] = rank;
    cuda_copy(&place.cuda, place.device, place.host, sizeof(int), NULL);
    hoop_group_start();
    hoop_send(place.device, 1, HOOP_I32, 1 - rank, comm, NULL);
    hoop_recv(place.device + 4, 1, HOOP_I32, 1 - rank, comm, NULL);
    HARNESS_EXPECT(hoop_group_end() == HOOP_OK);
    cuda_copy(&place.cuda, place.host, place.device + 4, sizeof(int), NULL);
    HARNESS_EXPECT(place.host[0] == 1 - rank);
    free(text);
    const int failed = exchange_once(&place, 5, false, place.cuda.stream[0]) || hoop_comm_destroy(comm) != HOOP_OK;
    cuda_close(&place.cuda);
    return failed;
}

START_TEST(one_gpu_for_two)
{
    settings(1);
    setenv("HOOP_SHARED_GPU", "1", 1);
    harness_threads(2, on_one_gpu, NULL);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("messages as kernels");
    TCase *all = tcase_create("all");

    (void)argc;
    cuda_driver_or_skip(argv);
    if (!cuda_suits("messages as kernels", MOST, true))
        return 77;
    tcase_set_timeout(all, CAP + 20);
    tcase_add_loop_test(all, as_kernels, 0, 16);
    tcase_add_loop_test(all, through_the_host, 0, 4);
    tcase_add_loop_test(all, messages_that_differ, 0, 2 * WRONGS);
    tcase_add_loop_test(all, nobody_receives, 0, ENDS);
    tcase_add_test(all, one_gpu_for_two);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
