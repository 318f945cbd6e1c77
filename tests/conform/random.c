// SPDX-License-Identifier: BSD-3-Clause
/* Many random operations against a reference: what the counters say must be true of every byte.
 *
 * Size and tag of frame k of a direction follow from the seed, so the receiver may expect it before it is sent. Sources
 * are overwritten as soon as they are complete, so a transport that reads them later is caught; landings are checked as
 * soon as they are complete.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "conform/conform.h"

enum { SLOTS_MOST = 7, FRAME = 3000, BUFFERS = 16, OPERATIONS = 4000, SEEDS = 6 };

/* One direction as it should be. */
struct track {
    struct ends *ends;
    struct hoop_link *from, *to;
    uint64_t seed;
    unsigned char *source; /* BUFFERS × FRAME */
    unsigned char landing[BUFFERS][FRAME];
    uint64_t sent_done, spoiled; /* last seen; sources below have been overwritten */
    bool staged[BUFFERS];
    uint64_t checked;      /* receives whose data has been looked at */
    bool in_hand[BUFFERS]; /* received by peek: checked already */
};

static size_t bytes_of(const struct track *track, uint64_t number)
{
    uint64_t state = track->seed + number * 977;
    const uint64_t kind = draw(&state) % 4;

    return kind == 0   ? draw(&state) % 60
           : kind == 1 ? 900 + draw(&state) % 300
           : kind == 2 ? draw(&state) % (FRAME + 1)
                       : FRAME;
}

static uint64_t tag_of(const struct track *track, uint64_t number)
{
    uint64_t state = track->seed ^ number;

    return draw(&state);
}

/* A source that is complete may be overwritten, and is. */
static void spoil(struct track *track)
{
    ck_assert_uint_ge(track->from->sent_done, track->sent_done);
    ck_assert_uint_le(track->from->sent_done, track->from->sent);
    track->sent_done = track->from->sent_done;
    for (; track->spoiled < track->sent_done; track->spoiled++)
        memset(track->source + track->spoiled % BUFFERS * FRAME, 0xd5, FRAME);
}

static void check_landings(struct track *track, uint64_t seed)
{
    ck_assert_uint_le(track->to->received_done, track->to->received);
    ck_assert_uint_le(track->to->received_done, track->from->sent);
    for (; track->checked < track->to->received_done; track->checked++) {
        const uint64_t at = track->checked % BUFFERS;

        ck_assert_msg(track->in_hand[at] ||
                          pattern_holds(track->landing[at], bytes_of(track, track->checked), track->checked),
                      "%s, HOOP_TEST_SEED=%llu: frame %llu has wrong bytes", track->ends->fixture->name,
                      (unsigned long long)seed, (unsigned long long)track->checked);
    }
}

static void random_send(struct track *track, uint64_t *state)
{
    const struct hoop_transport *way = track->from->transport;
    const uint64_t number = track->from->sent;
    const size_t bytes = bytes_of(track, number);
    const unsigned flags = draw(state) % 3 == 0 ? HOOP_SEND_STAGED : 0;
    unsigned char *source = track->source + number % BUFFERS * FRAME;
    enum hoop_status status;

    if (number - track->sent_done >= BUFFERS)
        return;
    if (way->reserve && draw(state) % 3 == 0) {
        void *room;

        status = way->reserve(track->from, bytes, &room);
        if (status == HOOP_OK) {
            pattern_fill(room, bytes, number);
            status = way->commit(track->from, bytes, tag_of(track, number));
        }
    } else {
        pattern_fill(source, bytes, number);
        status = way->send(track->from, source, bytes, tag_of(track, number), flags);
        if (status == HOOP_OK && flags)
            memset(source, 0xd6, FRAME);
    }
    ck_assert_msg(status == HOOP_OK || status == HOOP_AGAIN, "status %d: %s", status, hoop_error_text());
    ck_assert_uint_eq(track->from->sent, number + (status == HOOP_OK));
}

static void random_receive(struct track *track, uint64_t *state)
{
    const struct hoop_transport *way = track->to->transport;
    const uint64_t number = track->to->received, at = number % BUFFERS;
    const size_t bytes = bytes_of(track, number);
    enum hoop_status status;

    if (number - track->checked >= BUFFERS)
        return;
    track->in_hand[at] = way->peek && track->to->received_done == number && draw(state) % 2;
    if (track->in_hand[at]) {
        const void *shown;

        status = way->peek(track->to, bytes, tag_of(track, number), &shown);
        if (status == HOOP_OK) {
            ck_assert(pattern_holds(shown, bytes, number));
            status = way->release(track->to);
        }
    } else {
        memset(track->landing[at], 0xee, FRAME);
        status = way->recv(track->to, track->landing[at], bytes, tag_of(track, number));
    }
    ck_assert_msg(status == HOOP_OK || status == HOOP_AGAIN, "status %d: %s", status, hoop_error_text());
    ck_assert_uint_eq(track->to->received, number + (status == HOOP_OK));
}

static void step(struct track *track, uint64_t *state, uint64_t seed)
{
    const uint64_t what = draw(state) % 5;

    if (what < 2)
        random_send(track, state);
    else if (what < 4)
        random_receive(track, state);
    else {
        struct hoop_domain *domain = track->ends->domain[draw(state) % 2];

        domain->transport->progress(domain);
    }
    spoil(track);
    check_landings(track, seed);
}

/* Let everything that was sent arrive. */
static void drain(struct track *track, uint64_t *state, uint64_t seed)
{
    for (int i = 0; track->to->received_done < track->from->sent; i++) {
        ck_assert_int_lt(i, 100000);
        if (track->to->received < track->from->sent)
            random_receive(track, state);
        else
            ends_settle(track->ends);
        ends_settle(track->ends);
        spoil(track);
        check_landings(track, seed);
    }
    for (int i = 0; track->from->sent_done < track->from->sent; i++) {
        ck_assert_int_lt(i, 1000);
        ends_settle(track->ends);
    }
}

static void run(const struct fixture *fixture, uint64_t seed)
{
    uint64_t state = seed;
    const int slots = 2 + (int)(draw(&state) % (SLOTS_MOST - 1)), directions = fixture->loops ? 1 : 2;
    struct track *track = calloc(2, sizeof *track);
    struct ends ends;

    ends_open(&ends, fixture, slots, FRAME, seed);
    for (int i = 0; i < directions; i++) {
        track[i].ends = &ends;
        track[i].from = ends.link[i];
        track[i].to = ends.link[1 - i];
        track[i].seed = draw(&state);
        track[i].source = ends.memory[i];
    }
    for (int i = 0; i < OPERATIONS; i++)
        step(&track[draw(&state) % (uint64_t)directions], &state, seed);
    if (draw(&state) % 2) {
        for (int i = 0; i < directions; i++)
            drain(&track[i], &state, seed);
    } else if (!fixture->loops) { /* one of them goes away in the midst of it */
        const int gone = (int)(draw(&state) % 2);
        struct hoop_link *left = ends.link[1 - gone];

        ends.link[gone]->transport->disconnect(ends.link[gone]);
        ends.link[gone] = NULL;
        memset(ends.memory[gone], 0xd7, MEMORY);
        for (int i = 0; i < 1000 && left->status == HOOP_OK; i++) {
            struct track *in = &track[gone];

            if (left->received == left->received_done) {
                const uint64_t number = left->received;
                left->transport->recv(left, in->landing[number % BUFFERS], bytes_of(in, number), tag_of(in, number));
            }
            ends_settle(&ends);
        }
        ck_assert_int_eq(left->status, HOOP_ERR_PEER);
        ck_assert_uint_eq(left->sent_done, left->sent);
        ck_assert_uint_eq(left->received_done, left->received);
    }
    ends_close(&ends);
    free(track);
}

START_TEST(random_operations)
{
    const uint64_t first = test_seed();

    for (uint64_t i = 0; i < SEEDS; i++)
        run(&fixtures[_i], first + i);
}
END_TEST

void add_random(Suite *suite)
{
    TCase *tests = tcase_create("random");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, random_operations, 0, fixture_count);
    suite_add_tcase(suite, tests);
}
