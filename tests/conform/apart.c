// SPDX-License-Identifier: BSD-3-Clause
/* The two ends in two threads, in two processes, and with a peer that writes anything anywhere into the shared
 * rings. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "conform/conform.h"
#include "mem/board.h"
#include "mem/ring.h"
#include "transports/transports.h"

enum { SLOTS = 3, FRAME = 6000, FRAMES = 3000, BUFFERS = 8, SCRIBBLES = 40000, TAG = 3 };
static const uint64_t very_long = 600ull * 1000000000u; /* ns: a lost wake-up ends in the test's time limit */

/* ---- streams both ways ---- */

struct stream {
    struct ends *ends;
    int end;
    struct hoop_bell *bell; /* of this end, to sleep on; NULL: yield */
    const char *failure;    /* NULL: all frames came and were right */
    unsigned char landing[FRAME];
};

static size_t stream_bytes(int from, uint64_t number)
{
    uint64_t state = number * 2 + (uint64_t)from;

    return draw(&state) % 3 == 0 ? draw(&state) % 64 : draw(&state) % (FRAME + 1);
}

/* Do what can be done now; true if something moved. */
static bool stream_step(struct stream *stream)
{
    struct hoop_link *link = stream->ends->link[stream->end];
    const struct hoop_transport *way = link->transport;
    const uint64_t out = link->sent, in = link->received_done;
    bool moved = way->progress(link->domain) == HOOP_OK;
    enum hoop_status status;

    if (out < FRAMES && out - link->sent_done < BUFFERS) {
        const size_t bytes = stream_bytes(stream->end, out);
        unsigned char *data = stream->ends->memory[stream->end] + out % BUFFERS * FRAME;

        pattern_fill(data, bytes, out);
        status = way->send(link, data, bytes, out, out % 5 ? 0 : HOOP_SEND_STAGED);
        moved |= status == HOOP_OK;
        if (status < 0)
            stream->failure = "send failed";
    }
    if (in < FRAMES && link->received == in) {
        const size_t bytes = stream_bytes(1 - stream->end, in);

        if (way->peek && in % 3) {
            const void *shown;

            status = way->peek(link, bytes, in, &shown);
            if (status == HOOP_OK && !pattern_holds(shown, bytes, in))
                stream->failure = "wrong bytes shown";
            if (status == HOOP_OK)
                status = way->release(link);
        } else {
            status = way->recv(link, stream->landing, bytes, in);
        }
        moved |= status == HOOP_OK;
        if (status < 0)
            stream->failure = "receiving failed";
    }
    if (link->received_done > in) {
        moved = true;
        if ((!way->peek || in % 3 == 0) && !pattern_holds(stream->landing, stream_bytes(1 - stream->end, in), in))
            stream->failure = "wrong bytes received";
    }
    return moved;
}

static bool stream_done(const struct stream *stream)
{
    const struct hoop_link *link = stream->ends->link[stream->end];

    return stream->failure || (link->sent_done == FRAMES && link->received_done == FRAMES);
}

static void *stream_run(void *argument)
{
    struct stream *stream = argument;

    while (!stream_done(stream)) {
        if (stream_step(stream))
            continue;
        if (!stream->bell) {
            sched_yield();
            continue;
        }
        hoop_bell_arm(stream->bell);
        if (stream_step(stream) || stream_done(stream))
            hoop_bell_disarm(stream->bell);
        else
            hoop_bell_sleep(stream->bell, very_long);
    }
    return NULL;
}

static void stream_prepare(struct stream *stream, struct ends *ends, int end)
{
    memset(stream, 0, sizeof *stream);
    stream->ends = ends;
    stream->end = end;
    if (ends->fixture->transport == &hoop_transport_shm)
        stream->bell = &hoop_board_card(ends->context[end], end)->bell;
}

START_TEST(two_threads)
{
    static struct stream stream[2];
    pthread_t thread;
    struct ends ends;

    if (fixtures[_i].loops)
        return;
    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 1);
    stream_prepare(&stream[0], &ends, 0);
    stream_prepare(&stream[1], &ends, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, stream_run, &stream[1]), 0);
    stream_run(&stream[0]);
    pthread_join(thread, NULL);
    for (int end = 0; end < 2; end++)
        ck_assert_msg(!stream[end].failure, "%s: end %d: %s: %s", fixtures[_i].name, end, stream[end].failure,
                      hoop_error_text());
    ends_close(&ends);
}
END_TEST

static void open_one(struct ends *ends, int end)
{
    const struct hoop_domain_setup setup = ends_setup(ends, end);

    ck_assert_int_eq(ends->fixture->transport->open(&setup, &ends->domain[end]), HOOP_OK);
    ck_assert_int_eq(ends->domain[end]->transport->connect(ends->domain[end], 1 - end, 0, NULL, 0, &ends->link[end]),
                     HOOP_OK);
}

static void close_one(struct ends *ends, int end)
{
    ends->link[end]->transport->disconnect(ends->link[end]);
    ends->domain[end]->transport->close(ends->domain[end]);
}

START_TEST(two_processes)
{
    static struct stream stream;
    struct ends ends;
    int status;

    if (fixtures[_i].transport != &hoop_transport_shm)
        return;
    ends_create(&ends, &fixtures[_i], SLOTS, FRAME, 1);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    const int end = child == 0;
    open_one(&ends, end);
    stream_prepare(&stream, &ends, end);
    stream_run(&stream);
    close_one(&ends, end);
    if (child == 0)
        _exit(stream.failure ? 1 : 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(!stream.failure && status == 0, "parent: %s (%s), child: %x",
                  stream.failure ? stream.failure : "well", hoop_error_text(), status);
    ends_destroy(&ends);
}
END_TEST

/* ---- a peer that lies ---- */

/* What a peer claims to lend must lie in its own heap, to the byte. */
START_TEST(lends_what_is_not_its_own)
{
    struct hoop_ring_producer liar;
    struct ends ends;

    if (fixtures[_i].transport != &hoop_transport_shm)
        return;
    for (int k = 0; k < 6; k++) {
        ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 1);
        struct hoop_board *board = ends.context[0];
        const uint64_t heap = hoop_board_heap_offset(board, 0), end = heap + board->shape.heap;
        const uint64_t offsets[] = {heap, end - FRAME, heap - 1, end - FRAME + 1, 0, UINT64_MAX - 100};
        struct hoop_link *link = ends.link[1];
        const void *shown = NULL;

        hoop_ring_produce(&liar, board->base + hoop_board_ring_offset(board, 1, 0, 0), SLOTS, FRAME);
        hoop_ring_head(&liar)->offset = offsets[k];
        hoop_ring_publish(&liar, HOOP_FRAME_DIRECT, FRAME, TAG);
        ck_assert_int_eq(link->transport->peek(link, FRAME, TAG, &shown), k < 2 ? HOOP_OK : HOOP_ERR_INTERNAL);
        const struct hoop_board *own = ends.context[1];
        ck_assert_ptr_eq(shown, k < 2 ? own->base + offsets[k] : NULL);
        ends_close(&ends);
    }
}
END_TEST

/* ---- scribbling ---- */

/* Overwrite a piece of one of the two rings; most of them in the headers and counters, half of them nearly right. */
static void scribble(const struct ends *ends, uint64_t *state)
{
    const struct hoop_board *board = ends->context[0];
    const int to = (int)(draw(state) % 2);
    const size_t headers = offsetof(struct hoop_ring, head) + (SLOTS + 1) * sizeof(struct hoop_frame_head);
    const size_t range = draw(state) % 8 ? headers : board->shape.ring;
    unsigned char *ring = board->base + hoop_board_ring_offset(board, to, 1 - to, 0);
    volatile unsigned char *at = ring + draw(state) % (range / 8) * 8;

    if (draw(state) % 2) {
        at[draw(state) % 8] ^= (unsigned char)(1u << draw(state) % 8);
        return;
    }
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)draw(state);
}

static void expect_sane(const struct hoop_link *link, enum hoop_status status)
{
    ck_assert_msg(status == HOOP_OK || status == HOOP_AGAIN || status == HOOP_ERR_INTERNAL || status == HOOP_ERR_PEER ||
                      status == HOOP_ERR_MISMATCH || status == HOOP_ERR_ARG,
                  "status %d", status);
    ck_assert_uint_le(link->sent_done, link->sent);
    ck_assert_uint_le(link->received_done, link->received);
}

/* Any operation; a dead link is dropped and made again, over whatever lies in the ring. */
static void operate(struct ends *ends, int end, uint64_t *state)
{
    static unsigned char landing[FRAME];
    struct hoop_link *link = ends->link[end];
    const struct hoop_transport *way = link->transport;
    const size_t bytes = (size_t[]){8, 48, 600, FRAME}[draw(state) % 4];
    const void *shown;
    void *room;

    switch (draw(state) % 5) {
    case 0:
        expect_sane(link, way->send(link, ends->memory[end], bytes, TAG, (unsigned)draw(state) % 2));
        break;
    case 1:
        if (way->reserve(link, bytes, &room) == HOOP_OK) {
            memset(room, 1, bytes);
            expect_sane(link, way->commit(link, bytes, TAG));
        }
        break;
    case 2:
        if (link->received == link->received_done && way->peek(link, bytes, TAG, &shown) == HOOP_OK) {
            for (size_t i = 0; i < bytes; i++)
                (void)((const volatile unsigned char *)shown)[i];
            expect_sane(link, way->release(link));
        }
        break;
    case 3:
        expect_sane(link, way->recv(link, landing, bytes, TAG));
        break;
    default:
        expect_sane(link, way->progress(ends->domain[end]));
    }
    if (link->status != HOOP_OK) {
        ck_assert_uint_eq(link->sent_done, link->sent);
        ck_assert_uint_eq(link->received_done, link->received);
        way->disconnect(link);
        ck_assert_int_eq(way->connect(ends->domain[end], 1 - end, 0, NULL, 0, &ends->link[end]), HOOP_OK);
    }
}

/* From a seed, in one thread: what is found can be repeated. */
START_TEST(scribbled_rings)
{
    uint64_t state = test_seed();
    struct ends ends;

    if (fixtures[_i].transport != &hoop_transport_shm)
        return;
    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 1);
    for (int i = 0; i < SCRIBBLES; i++) {
        operate(&ends, (int)(draw(&state) % 2), &state);
        if (draw(&state) % 16 == 0)
            scribble(&ends, &state);
    }
    ends_close(&ends);
}
END_TEST

/* By another process, at any moment. */
START_TEST(scribbling_process)
{
    uint64_t state = test_seed();
    struct ends ends;
    int status;

    if (fixtures[_i].transport != &hoop_transport_shm)
        return;
    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 1);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(60);
        for (;;)
            scribble(&ends, &state);
    }
    for (int i = 0; i < SCRIBBLES; i++)
        operate(&ends, (int)(draw(&state) % 2), &state);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ends_close(&ends);
}
END_TEST

void add_apart(Suite *suite)
{
    TCase *tests = tcase_create("apart");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, two_threads, 0, fixture_count);
    tcase_add_loop_test(tests, two_processes, 0, fixture_count);
    tcase_add_loop_test(tests, lends_what_is_not_its_own, 0, fixture_count);
    tcase_add_loop_test(tests, scribbled_rings, 0, fixture_count);
    tcase_add_loop_test(tests, scribbling_process, 0, fixture_count);
    suite_add_tcase(suite, tests);
}
