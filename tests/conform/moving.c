// SPDX-License-Identifier: BSD-3-Clause
/* Frames on a healthy link: contents, order, credit, counters, loans, frames in place. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "conform/conform.h"

enum { SLOTS = 3, FRAME = 20000, TAG = 5 };
static const size_t sizes[] = {0, 1, 7, 47, 48, 49, 1023, 1024, 4096, FRAME};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static unsigned char landing[SIZES + SLOTS][FRAME];

/* Every size, staged and not, expected before it comes and after. */
START_TEST(contents)
{
    struct ends ends;
    uint64_t number = 0;

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 1);
    for (int way = 0; way < 8; way++)
        for (int i = 0; i < SIZES; i++, number++) {
            const int end = way & 1;
            const unsigned flags = way & 2 ? HOOP_SEND_STAGED : 0;
            const bool expected = way & 4;
            struct hoop_link *from = ends.link[end], *to = ends.link[1 - end];
            unsigned char *data = ends.memory[end];

            pattern_fill(data, sizes[i], number);
            memset(landing[0], 0xee, FRAME);
            if (expected)
                ck_assert_int_eq(to->transport->recv(to, landing[0], sizes[i], number), HOOP_OK);
            ck_assert_int_eq(from->transport->send(from, data, sizes[i], number, flags), HOOP_OK);
            if (flags)
                memset(data, 0xdd, sizes[i]);
            if (!expected)
                ck_assert_int_eq(pull(&ends, 1 - end, landing[0], sizes[i], number), HOOP_OK);
            wait_received(&ends, 1 - end, to->received);
            wait_sent(&ends, end, from->sent);
            ck_assert_msg(pattern_holds(landing[0], sizes[i], number), "%s: way %d, %zu bytes", fixtures[_i].name, way,
                          sizes[i]);
            ck_assert_msg(sizes[i] == FRAME || landing[0][sizes[i]] == 0xee, "%s: %zu bytes, one more was written",
                          fixtures[_i].name, sizes[i]);
            ck_assert_int_eq(from->status, HOOP_OK);
        }
    ck_assert_uint_eq(ends.link[0]->sent + (fixtures[_i].loops ? 0 : ends.link[1]->sent), number);
    ends_close(&ends);
}
END_TEST

/* As many frames as there are slots, no more; AGAIN takes nothing; room comes back one by one; order is kept. */
START_TEST(credit_and_order)
{
    struct ends ends;

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 2);
    struct hoop_link *from = ends.link[0], *to = ends.link[1];
    uint64_t in = 0, out = 0;

    for (int round = 0; round < 40; round++) {
        enum hoop_status status;
        unsigned char *data = ends.memory[0];

        ends_settle(&ends); /* room may have to travel */
        for (;;) {
            const uint64_t sent = from->sent, done = from->sent_done;

            data = ends.memory[0] + in % 16 * FRAME;
            pattern_fill(data, 100 + in % 1000, in);
            status = from->transport->send(from, data, 100 + in % 1000, TAG, in % 2 ? HOOP_SEND_STAGED : 0);
            if (status != HOOP_OK) {
                ck_assert_int_eq(status, HOOP_AGAIN);
                ck_assert_uint_eq(from->sent, sent);
                ck_assert_uint_eq(from->sent_done, done);
                break;
            }
            ck_assert_uint_eq(from->sent, ++in);
            ck_assert_uint_le(from->sent_done, from->sent);
        }
        ck_assert_uint_eq(in - out, SLOTS);
        for (int k = 0; k <= round % SLOTS; k++, out++) {
            ck_assert_int_eq(pull(&ends, 1, landing[0], 100 + out % 1000, TAG), HOOP_OK);
            ck_assert_msg(pattern_holds(landing[0], 100 + out % 1000, out), "%s: frame %llu", fixtures[_i].name,
                          (unsigned long long)out);
        }
        ck_assert_uint_eq(to->received_done, out);
    }
    ends_close(&ends);
}
END_TEST

/* Receives wait in order, as many as there are slots; none completes before its frame has come. */
START_TEST(expected_frames)
{
    struct ends ends;

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 3);
    struct hoop_link *to = ends.link[1];
    int posted = 0;

    while (to->transport->recv(to, landing[posted], 64, TAG) == HOOP_OK)
        ck_assert_int_le(++posted, SIZES + SLOTS);
    ck_assert_int_ge(posted, 1);
    ck_assert_uint_eq(to->received, (uint64_t)posted);
    ends_settle(&ends);
    ck_assert_uint_eq(to->received_done, 0);
    for (int i = 0; i < posted; i++) {
        pattern_fill(ends.memory[0], 64, (uint64_t)i);
        ck_assert_int_eq(push(&ends, 0, ends.memory[0], 64, TAG, HOOP_SEND_STAGED), HOOP_OK);
        wait_received(&ends, 1, (uint64_t)i + 1);
        ends_settle(&ends);
        ck_assert_uint_eq(to->received_done, (uint64_t)i + 1);
        ck_assert(pattern_holds(landing[i], 64, (uint64_t)i));
    }
    ck_assert_int_eq(to->transport->progress(ends.domain[1]), HOOP_AGAIN);
    ends_close(&ends);
}
END_TEST

/* A lent source stays lent until the peer has let go of it, and what is sent later does not change that. */
START_TEST(loans)
{
    struct ends ends;

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 4);
    struct hoop_link *from = ends.link[0];
    unsigned char *data = ends.memory[0];

    pattern_fill(data, FRAME, 1);
    ck_assert_int_eq(from->transport->send(from, data, FRAME, TAG, HOOP_SEND_STAGED), HOOP_OK);
    ck_assert_uint_eq(from->sent_done, 1);
    ck_assert_int_eq(from->transport->send(from, data, FRAME, TAG, 0), HOOP_OK);
    ck_assert_int_eq(from->transport->send(from, data, FRAME, TAG, HOOP_SEND_STAGED), HOOP_OK);
    ends_settle(&ends);
    ck_assert_uint_eq(from->sent_done, fixtures[_i].lends ? 1 : 3);
    ck_assert_int_eq(pull(&ends, 1, landing[0], FRAME, TAG), HOOP_OK);
    ends_settle(&ends);
    ck_assert_uint_eq(from->sent_done, fixtures[_i].lends ? 1 : 3);
    if (fixtures[_i].lends)
        pattern_fill(data, FRAME, 2); /* seen by the peer: it was not copied */
    ck_assert_int_eq(pull(&ends, 1, landing[1], FRAME, TAG), HOOP_OK);
    ck_assert(pattern_holds(landing[1], FRAME, fixtures[_i].lends ? 2 : 1));
    wait_sent(&ends, 0, 3);
    ck_assert_uint_eq(from->sent_done, 3);
    ck_assert_int_eq(pull(&ends, 1, landing[2], FRAME, TAG), HOOP_OK);
    ck_assert(pattern_holds(landing[2], FRAME, 1));
    ends_settle(&ends);
    ck_assert_uint_eq(from->sent_done, 3);
    ends_close(&ends);
}
END_TEST

static const void *peek_until(struct ends *ends, size_t bytes, uint64_t tag)
{
    struct hoop_link *link = ends->link[1];
    const void *data = NULL;

    for (int i = 0; i < 100000; i++) {
        const enum hoop_status status = link->transport->peek(link, bytes, tag, &data);

        if (status == HOOP_OK)
            return data;
        ck_assert_msg(status == HOOP_AGAIN, "peek returned %d: %s", status, hoop_error_text());
        ends_settle(ends);
    }
    return NULL;
}

/* reserve, commit, peek, release: contents, credit, counters, repeated calls. */
START_TEST(in_place)
{
    struct ends ends;
    void *room = NULL;
    const void *shown;

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 5);
    struct hoop_link *from = ends.link[0], *to = ends.link[1];
    const struct hoop_transport *way = from->transport;
    ck_assert(!way->reserve == !way->commit && !way->commit == !way->peek && !way->peek == !way->release);
    for (int lap = 0; way->reserve && lap < 5; lap++)
        for (int i = 0; i < SIZES; i++) {
            const uint64_t number = (uint64_t)(lap * SIZES + i);

            ck_assert_int_eq(way->peek(to, sizes[i], number, &shown), HOOP_AGAIN);
            ck_assert_int_eq(way->reserve(from, FRAME, &room), HOOP_OK);
            ck_assert_int_eq(way->reserve(from, sizes[i], &room), HOOP_OK);
            ck_assert_uint_eq((uintptr_t)room % 16, 0);
            pattern_fill(room, sizes[i], number);
            ck_assert_int_eq(way->commit(from, sizes[i], number), HOOP_OK);
            ck_assert_uint_eq(from->sent, number + 1);
            ck_assert_uint_eq(from->sent_done, number + 1);
            for (int again = 0; again < 2; again++)
                ck_assert(pattern_holds(peek_until(&ends, sizes[i], number), sizes[i], number));
            ck_assert_uint_eq(to->received_done, number);
            ck_assert_int_eq(way->release(to), HOOP_OK);
            ck_assert_uint_eq(to->received, number + 1);
            ck_assert_uint_eq(to->received_done, number + 1);
        }
    ends_settle(&ends); /* room may have to travel */
    for (int i = 0; way->reserve && i <= SLOTS; i++) {
        const enum hoop_status status = way->reserve(from, FRAME, &room);

        ck_assert_int_eq(status, i < SLOTS ? HOOP_OK : HOOP_AGAIN);
        if (status == HOOP_OK)
            ck_assert_int_eq(way->commit(from, FRAME / 2, TAG), HOOP_OK); /* less than was reserved */
    }
    for (int i = 0; way->reserve && i < SLOTS; i++)
        ck_assert_int_eq(pull(&ends, 1, landing[i], FRAME / 2, TAG), HOOP_OK);
    ends_close(&ends);
}
END_TEST

/* A lent buffer is shown where it lies, and is lent until release. */
START_TEST(in_place_loans)
{
    struct ends ends;

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 6);
    struct hoop_link *from = ends.link[0], *to = ends.link[1];
    if (from->transport->peek && fixtures[_i].lends) {
        pattern_fill(ends.memory[0], FRAME, 9);
        ck_assert_int_eq(push(&ends, 0, ends.memory[0], FRAME, TAG, 0), HOOP_OK);
        ck_assert(pattern_holds(peek_until(&ends, FRAME, TAG), FRAME, 9));
        ends_settle(&ends);
        ck_assert_uint_eq(from->sent_done, 0);
        ck_assert_int_eq(to->transport->release(to), HOOP_OK);
        wait_sent(&ends, 0, 1);
        ck_assert_uint_eq(from->sent_done, 1);
    }
    ends_close(&ends);
}
END_TEST

/* What a caller may do wrong is refused and changes nothing. */
START_TEST(misuse)
{
    struct ends ends;
    void *room;

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 7);
    struct hoop_link *from = ends.link[0], *to = ends.link[1];
    const struct hoop_transport *way = from->transport;
    ck_assert_int_eq(way->send(from, ends.memory[0], FRAME + 1, TAG, 0), HOOP_ERR_ARG);
    ck_assert_int_eq(way->recv(to, ends.memory[1], FRAME + 1, TAG), HOOP_ERR_ARG);
    if (way->reserve) {
        ck_assert_int_eq(way->reserve(from, FRAME + 1, &room), HOOP_ERR_ARG);
        ck_assert_int_eq(way->commit(from, 1, TAG), HOOP_ERR_ARG);
        ck_assert_int_eq(way->release(to), HOOP_ERR_ARG);
        ck_assert_int_eq(way->reserve(from, 10, &room), HOOP_OK);
        ck_assert_int_eq(way->commit(from, 11, TAG), HOOP_ERR_ARG);
        ck_assert_int_eq(way->send(from, ends.memory[0], 1, TAG, 0), HOOP_OK);
        ck_assert_int_eq(way->commit(from, 10, TAG), HOOP_ERR_ARG); /* the send has made it void */
        ck_assert_int_eq(pull(&ends, 1, landing[0], 1, TAG), HOOP_OK);
    }
    ck_assert_int_eq(from->status, HOOP_OK);
    ck_assert_int_eq(to->status, HOOP_OK);
    ck_assert_uint_eq(from->sent, way->reserve ? 1 : 0);
    ck_assert_uint_eq(to->received, way->reserve ? 1 : 0);
    ck_assert_int_eq(push(&ends, 0, ends.memory[0], FRAME, TAG, 0), HOOP_OK);
    ck_assert_int_eq(pull(&ends, 1, landing[0], FRAME, TAG), HOOP_OK);
    ends_close(&ends);
}
END_TEST

START_TEST(lanes_are_apart)
{
    struct ends ends;

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 8);
    struct hoop_link *other[2];
    other[0] = ends_connect(&ends, 0, 1);
    other[1] = fixtures[_i].loops ? other[0] : ends_connect(&ends, 1, 1);
    pattern_fill(ends.memory[0], 200, 1);
    pattern_fill(ends.memory[0] + 200, 200, 2);
    ck_assert_int_eq(push(&ends, 0, ends.memory[0], 200, TAG, 0), HOOP_OK);
    struct hoop_link *first[2] = {ends.link[0], ends.link[1]};
    ends.link[0] = other[0];
    ends.link[1] = other[1];
    ck_assert_int_eq(push(&ends, 0, ends.memory[0] + 200, 200, TAG + 1, 0), HOOP_OK);
    ck_assert_int_eq(pull(&ends, 1, landing[1], 200, TAG + 1), HOOP_OK);
    ends.link[0] = first[0];
    ends.link[1] = first[1];
    ck_assert_int_eq(pull(&ends, 1, landing[0], 200, TAG), HOOP_OK);
    ck_assert(pattern_holds(landing[0], 200, 1));
    ck_assert(pattern_holds(landing[1], 200, 2));
    other[0]->transport->disconnect(other[0]);
    if (other[1] != other[0])
        other[1]->transport->disconnect(other[1]);
    ck_assert_int_eq(ends.link[0]->status, HOOP_OK);
    ends_close(&ends);
}
END_TEST

START_TEST(describes_itself)
{
    struct ends ends;
    char text[200];

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 9);
    for (size_t size = 0; size < sizeof text; size++) {
        memset(text, 'x', sizeof text);
        ends.link[0]->transport->describe(ends.link[0], text, size);
        ck_assert(size == 0 || memchr(text, 0, size));
        for (size_t i = size; i < sizeof text; i++)
            ck_assert_int_eq(text[i], 'x');
    }
    ck_assert_ptr_nonnull(strstr(text, ends.link[0]->transport->name));
    ends_close(&ends);
}
END_TEST

void add_moving(Suite *suite)
{
    TCase *tests = tcase_create("moving");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, contents, 0, fixture_count);
    tcase_add_loop_test(tests, credit_and_order, 0, fixture_count);
    tcase_add_loop_test(tests, expected_frames, 0, fixture_count);
    tcase_add_loop_test(tests, loans, 0, fixture_count);
    tcase_add_loop_test(tests, in_place, 0, fixture_count);
    tcase_add_loop_test(tests, in_place_loans, 0, fixture_count);
    tcase_add_loop_test(tests, misuse, 0, fixture_count);
    tcase_add_loop_test(tests, lanes_are_apart, 0, fixture_count);
    tcase_add_loop_test(tests, describes_itself, 0, fixture_count);
    suite_add_tcase(suite, tests);
}
