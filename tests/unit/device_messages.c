// SPDX-License-Identifier: BSD-3-Clause
/* Messages in the interpreter kernel without a driver: random groups of sends and receives, run by threads over links in plain memory; a
 * message that is not the one expected, and a peer that does not come. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "exec/program.h"
#include "harness.h"

enum {
    MOST = 8,
    PARTS = 3,
    SLOTS = 3,
    FRAME = 4096,
    FIRST_LANE = 1,
    LANES = FIRST_LANE + PARTS,
    GROUP = 200,
    GUARD = 8
};

struct rank {
    struct hoop_device_call call;
    struct hoop_device_message message[GROUP];
    size_t messages;
    void *list;
    struct hoop_device_state state[LANES];
    struct hoop_device_report report;
    struct hoop_device_pipe pipe[MOST * LANES];
};

struct counters {
    uint64_t head, taken, unused[6];
};

static struct machine {
    int ranks;
    struct rank rank[MOST];
    unsigned char *frames[MOST][MOST][PARTS]; /* of receiver, sender */
    struct counters counters[MOST][MOST][PARTS];
} machine;

static void connect(int rank, int peer, int part, bool direct)
{
    struct machine *m = &machine;
    const struct hoop_device_link link = {.out_frames = device_address(m->frames[peer][rank][part]),
                                          .out_head = device_address(&m->counters[peer][rank][part].head),
                                          .out_taken = device_address(&m->counters[rank][peer][part].taken),
                                          .in_frames = device_address(m->frames[rank][peer][part]),
                                          .in_head = device_address(&m->counters[rank][peer][part].head),
                                          .in_taken = device_address(&m->counters[peer][rank][part].taken),
                                          .frame = FRAME,
                                          .slots = SLOTS,
                                          .direct = direct};

    m->rank[rank].pipe[peer * LANES + FIRST_LANE + part] = hoop_program_pipe(&link);
}

static void machine_open(int ranks, bool direct)
{
    memset(&machine, 0, sizeof machine);
    machine.ranks = ranks;
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++)
            for (int part = 0; part < PARTS && a != b; part++)
                machine.frames[a][b][part] = calloc(1, hoop_device_landing(FRAME, SLOTS));
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++)
            for (int part = 0; part < PARTS && a != b; part++)
                connect(a, b, part, direct);
}

static void machine_close(void)
{
    for (int a = 0; a < machine.ranks; a++)
        for (int b = 0; b < machine.ranks; b++)
            for (int part = 0; part < PARTS; part++)
                free(machine.frames[a][b][part]);
}

/* ---- groups ---- */

static uint64_t state;

static unsigned draw(unsigned end)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % end;
}

/* Empty, tiny, some frames, more than all slots hold, several parts. */
static size_t draw_bytes(void)
{
    static const unsigned ends[] = {1, 40, 3 * FRAME, 6 * FRAME, 3 * HOOP_DEVICE_PART};

    return draw(ends[draw(5)]);
}

static unsigned char mark(unsigned from, unsigned to, unsigned number, size_t i)
{
    return (unsigned char)(from * 31 + to * 57 + number * 101 + i % 251);
}

static unsigned char *take(size_t bytes, unsigned shift)
{
    unsigned char *memory = malloc(bytes + GUARD + 16);

    memset(memory, 0xa5, bytes + GUARD + 16);
    return memory + shift;
}

static struct hoop_device_message *add(int rank, enum hoop_device_message_kind kind, int peer, size_t bytes)
{
    struct rank *r = &machine.rank[rank];
    struct hoop_device_message *message = &r->message[r->messages++];

    ck_assert_uint_lt(r->messages, GROUP);
    *message = (struct hoop_device_message){.data = device_address(take(bytes, draw(16))),
                                            .count = bytes,
                                            .bytes = bytes,
                                            .kind = kind,
                                            .peer = (uint32_t)peer,
                                            .shape = HOOP_U8,
                                            .keep = draw(3) == 0};
    message->unused[0] = (uint32_t)(message->data % 16); /* not the kernel's: what is to be freed */
    return message;
}

/* Queues in an order of their own on each rank. */
static void draw_queues(const unsigned char messages[MOST][MOST], size_t bytes[MOST][MOST][4])
{
    for (int rank = 0; rank < machine.ranks; rank++) {
        const unsigned turn = draw(97), step = 2 * draw(8) + 1;
        machine.rank[rank].messages = 0;
        for (unsigned i = 0; i < 16; i++) {
            const unsigned queue = (turn + step * i) % 16, peer = queue / 2;
            const bool sends = queue % 2;
            for (unsigned k = 0;
                 (int)peer < machine.ranks && k < messages[sends ? rank : (int)peer][sends ? (int)peer : rank]; k++) {
                if ((int)peer == rank && sends)
                    continue; /* a copy stands for both */
                struct hoop_device_message *message =
                    add(rank,
                        (int)peer == rank ? HOOP_DEVICE_COPY
                        : sends           ? HOOP_DEVICE_SEND
                                          : HOOP_DEVICE_RECV,
                        (int)peer, bytes[sends ? rank : (int)peer][sends ? (int)peer : rank][k]);
                if (message->kind == HOOP_DEVICE_COPY)
                    message->to = device_address(take(message->bytes, message->unused[0]));
                if (message->kind != HOOP_DEVICE_RECV)
                    for (size_t at = 0; at < message->bytes; at++)
                        ((unsigned char *)(uintptr_t)message->data)[at] = mark((unsigned)rank, peer, k, at);
            }
        }
    }
}

static void draw_group(void)
{
    unsigned char messages[MOST][MOST];
    size_t bytes[MOST][MOST][4];

    for (int a = 0; a < machine.ranks; a++)
        for (int b = 0; b < machine.ranks; b++) {
            messages[a][b] = (unsigned char)draw(machine.ranks > 4 ? 3 : 5);
            for (int k = 0; k < 4; k++)
                bytes[a][b][k] = draw_bytes();
        }
    draw_queues(messages, bytes);
}

static void prepare(int rank)
{
    struct rank *r = &machine.rank[rank];
    const size_t queues = hoop_program_queues(r->message, r->messages),
                 bytes = hoop_program_messages_bytes(r->messages, queues);

    r->list = aligned_alloc(64, (bytes + queues * PARTS * sizeof(struct hoop_device_progress) + 63) / 64 * 64);
    hoop_program_messages(r->message, r->messages, PARTS, device_address(r->list), r->list);
    r->call =
        (struct hoop_device_call){.lane = device_address(r->list),
                                  .pipe = device_address(r->pipe),
                                  .state = device_address(r->state),
                                  .report = device_address(&r->report),
                                  .tag = 5,
                                  .number = 0,
                                  .lend = 1000,
                                  .lanes = hoop_program_parts(hoop_program_largest(r->message, r->messages), PARTS),
                                  .element = 1,
                                  .pipe_lanes = LANES,
                                  .state_lanes = FIRST_LANE,
                                  .first_lane = FIRST_LANE,
                                  .flags = HOOP_DEVICE_MESSAGES,
                                  .ranks = (uint32_t)machine.ranks};
}

static void forget(int rank)
{
    struct rank *r = &machine.rank[rank];

    for (size_t i = 0; i < r->messages; i++) {
        free((unsigned char *)(uintptr_t)r->message[i].data - r->message[i].unused[0]);
        if (r->message[i].to)
            free((unsigned char *)(uintptr_t)r->message[i].to - r->message[i].unused[0]);
    }
    free(r->list);
}

/* Without ck_assert for each byte, which takes long. */
static size_t first_wrong(const struct hoop_device_message *message, const unsigned char *data, int rank,
                          unsigned number)
{
    size_t at = 0;

    while (at < message->bytes && data[at] == mark(message->peer, (unsigned)rank, number, at))
        at++;
    return at;
}

static void check_rank(int rank, int seed)
{
    const struct rank *r = &machine.rank[rank];
    unsigned number = 0;
    int peer;

    ck_assert_msg(hoop_program_verdict(&r->report, &peer) == HOOP_OK, "seed %d: %s", seed, hoop_last_error(NULL));
    for (size_t i = 0; i < r->messages; i++) {
        const struct hoop_device_message *message = &r->message[i];
        const unsigned char *data = (void *)(uintptr_t)(message->to ? message->to : message->data);
        number = i > 0 && message[-1].kind == message->kind && message[-1].peer == message->peer ? number + 1 : 0;
        const size_t wrong =
            message->kind == HOOP_DEVICE_SEND ? message->bytes : first_wrong(message, data, rank, number);
        ck_assert_msg(wrong == message->bytes,
                      "seed %d, %d ranks: message %u from %u to %d, of %zu bytes, differs at byte %zu", seed,
                      machine.ranks, number, message->peer, rank, (size_t)message->bytes, wrong);
        ck_assert_msg(memcmp(data + message->bytes, "\xa5\xa5\xa5\xa5\xa5\xa5\xa5\xa5", GUARD) == 0,
                      "seed %d: written behind a message", seed);
    }
    ck_assert_uint_eq(r->state[FIRST_LANE].chain, 0); /* messages are not in the order of calls */
}

static void begin(struct launch *launch[MOST], int threads)
{
    for (int rank = 0; rank < machine.ranks; rank++) {
        prepare(rank);
        launch[rank] =
            launch_begin("hoop_interpret", &machine.rank[rank].call, (int)machine.rank[rank].call.lanes, threads);
    }
}

START_TEST(random_groups)
{
    struct launch *launch[MOST];

    state = (uint64_t)_i + 1;
    machine_open(2 + _i % (MOST - 1), _i % 2);
    for (int group = 0; group < 3; group++) {
        draw_group();
        begin(launch, 1 + (_i + group) % 3);
        for (int rank = 0; rank < machine.ranks; rank++)
            launch_end(launch[rank]);
        for (int rank = 0; rank < machine.ranks; rank++) {
            check_rank(rank, _i);
            forget(rank);
        }
    }
    machine_close();
}
END_TEST

/* ---- what goes wrong ---- */

static void pause_until(bool (*over)(void))
{
    for (int i = 0; i < 20000 && !over(); i++)
        usleep(1000);
}

static void abort_all(struct launch *launch[MOST])
{
    for (int rank = 0; rank < machine.ranks; rank++)
        __atomic_store_n(&machine.rank[rank].report.abort, 1, __ATOMIC_RELEASE);
    for (int rank = 0; rank < machine.ranks; rank++)
        launch_end(launch[rank]);
}

static bool told(void)
{
    struct hoop_program_pair pair;

    return hoop_program_pair(&machine.rank[1].report, &pair);
}

/* Another count, another type, a message where none is expected to be empty, in place or not. */
static const struct {
    size_t sent, expected;
    uint32_t sent_shape, expected_shape;
    bool good;
} pairs[] = {{100, 101, HOOP_U8, HOOP_U8, false},
             {100, 100, HOOP_U8, HOOP_I8, false},
             {0, 100, HOOP_U8, HOOP_U8, false},
             {70000, 0, HOOP_U8, HOOP_U8, false},
             {5, 5, HOOP_U8 | HOOP_DEVICE_APART, HOOP_U8 | HOOP_DEVICE_IN_PLACE, false},
             {0, 0, HOOP_U8, HOOP_U8 | HOOP_DEVICE_IN_PLACE, true}};

START_TEST(messages_differ)
{
    struct hoop_program_pair pair = {0};
    struct launch *launch[MOST];

    state = 1;
    machine_open(2, _i % 2);
    add(0, HOOP_DEVICE_SEND, 1, pairs[_i].sent)->shape = pairs[_i].sent_shape;
    add(1, HOOP_DEVICE_RECV, 0, pairs[_i].expected)->shape = pairs[_i].expected_shape;
    begin(launch, 2);
    if (pairs[_i].good) {
        for (int rank = 0; rank < 2; rank++)
            launch_end(launch[rank]);
        ck_assert(!told());
    } else {
        pause_until(told);
        abort_all(launch);
        ck_assert(hoop_program_pair(&machine.rank[1].report, &pair));
        ck_assert_int_eq(pair.peer, 0);
        ck_assert_uint_eq(pair.sent, pairs[_i].sent);
        ck_assert_uint_eq(pair.expected, pairs[_i].expected);
        ck_assert_uint_eq(pair.sent_shape, pairs[_i].sent_shape);
        ck_assert_uint_eq(pair.expected_shape, pairs[_i].expected_shape);
    }
    for (int rank = 0; rank < 2; rank++)
        forget(rank);
    machine_close();
}
END_TEST

static bool waits(void)
{
    char text[512];

    return hoop_program_waits(&machine.rank[0].report, text, sizeof text) > 0;
}

/* A peer that does not come: the kernel says what it waits for, and an abort ends it; also in the middle of a long message. */
START_TEST(absent_peer)
{
    static const char *const what[] = {"for a frame of rank 1", "for room for a frame to rank 1",
                                       "for what was lent to rank 1"};
    struct launch *launch[MOST];
    char text[512];
    int peer;

    state = 1;
    machine_open(2, _i == 2);
    add(0, _i == 0 ? HOOP_DEVICE_RECV : HOOP_DEVICE_SEND, 1, 20 * FRAME)->keep = 0;
    begin(launch, 2);
    pause_until(waits);
    hoop_program_waits(&machine.rank[0].report, text, sizeof text);
    ck_assert_msg(strstr(text, what[_i]) != NULL, "%s", text);
    abort_all(launch);
    ck_assert_int_eq(hoop_program_verdict(&machine.rank[0].report, &peer), HOOP_ERR_ABORTED);
    for (int rank = 0; rank < 2; rank++)
        forget(rank);
    machine_close();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("messages in the interpreter kernel");
    TCase *tests = tcase_create("without a driver");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, random_groups, 0, 28);
    tcase_add_loop_test(tests, messages_differ, 0, sizeof pairs / sizeof *pairs);
    tcase_add_loop_test(tests, absent_peer, 0, 3);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
