// SPDX-License-Identifier: BSD-3-Clause
/* How links begin and end: bad setups, bad addresses, no memory; wrong frames, peers that leave, coming back. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "conform/conform.h"
#include "transports/sim/sim.h"
#include "transports/transports.h"

enum { SLOTS = 3, FRAME = 5000, TAG = 77 };

static unsigned char landing[4][FRAME];

/* Everything is complete, the status stays, nothing is accepted any more. */
static void check_dead(struct ends *ends, int end, enum hoop_status status)
{
    struct hoop_link *link = ends->link[end];
    const struct hoop_transport *way = link->transport;
    const void *shown;
    void *room;

    ck_assert_msg(link->status == status, "%s: end %d: status %d, not %d", ends->fixture->name, end, link->status,
                  status);
    ck_assert_uint_eq(link->sent_done, link->sent);
    ck_assert_uint_eq(link->received_done, link->received);
    const uint64_t sent = link->sent, received = link->received;
    ck_assert_int_eq(way->send(link, landing[0], 1, TAG, 0), status);
    ck_assert_int_eq(way->recv(link, landing[0], 1, TAG), status);
    if (way->peek) {
        ck_assert_int_eq(way->peek(link, 1, TAG, &shown), status);
        ck_assert_int_eq(way->release(link), status);
        ck_assert_int_eq(way->reserve(link, 1, &room), status);
        ck_assert_int_eq(way->commit(link, 1, TAG), status);
    }
    ck_assert_uint_eq(link->sent, sent);
    ck_assert_uint_eq(link->received, received);
}

/* Drive an end until its link is dead: it expects a frame that never comes. */
static void wait_for_death(struct ends *ends, int end)
{
    struct hoop_link *link = ends->link[end];

    for (int i = 0; i < 1000 && link->status == HOOP_OK; i++) {
        if (link->received == link->received_done)
            link->transport->recv(link, landing[3], 1, TAG);
        ends_settle(ends);
    }
}

enum way_to_receive { AT_ONCE, EXPECTED, SHOWN, WAYS_TO_RECEIVE };

/* A frame of another size or tag: both ends die of it with the same cause, nothing is written. */
static void wrong_frame(const struct fixture *fixture, enum way_to_receive how, size_t bytes, uint64_t tag,
                        enum hoop_status status)
{
    struct ends ends;
    const void *shown;

    ends_open(&ends, fixture, SLOTS, FRAME, 1);
    struct hoop_link *from = ends.link[0], *to = ends.link[1];
    if (how == SHOWN && !to->transport->peek) {
        ends_close(&ends);
        return;
    }
    memset(landing[1], 0xee, FRAME);
    pattern_fill(ends.memory[0], FRAME, 3);
    if (how == EXPECTED) {
        ck_assert_int_eq(to->transport->recv(to, landing[1], bytes, tag), HOOP_OK);
        ck_assert_int_eq(to->transport->recv(to, landing[1], 99, TAG), HOOP_OK); /* waits behind it */
    }
    ck_assert_int_eq(push(&ends, 0, ends.memory[0], 2000, TAG, 0), HOOP_OK);
    ends_settle(&ends);
    if (how == AT_ONCE)
        ck_assert_int_eq(pull(&ends, 1, landing[1], bytes, tag), status);
    if (how == SHOWN)
        ck_assert_int_eq(to->transport->peek(to, bytes, tag, &shown), status);
    ck_assert_str_ne(hoop_error_text(), "");
    for (size_t i = 0; i < FRAME; i++)
        ck_assert_uint_eq(landing[1][i], 0xee);
    if (how != EXPECTED && status == HOOP_ERR_MISMATCH && !fixture->loops)
        ck_assert_msg(strstr(hoop_error_text(), "4d") && strstr(hoop_error_text(), "9999"), "both tags: %s",
                      hoop_error_text());
    check_dead(&ends, 1, status);
    wait_for_death(&ends, 0);
    check_dead(&ends, 0, status);
    ck_assert_uint_eq(from->sent, 1);
    ends_close(&ends);
}

START_TEST(wrong_size)
{
    for (int how = 0; how < WAYS_TO_RECEIVE; how++)
        for (int i = 0; i < 3; i++)
            wrong_frame(&fixtures[_i], (enum way_to_receive)how, (size_t[]){0, 1999, 2001}[i], TAG, HOOP_ERR_INTERNAL);
}
END_TEST

START_TEST(wrong_tag)
{
    for (int how = 0; how < WAYS_TO_RECEIVE; how++) {
        wrong_frame(&fixtures[_i], (enum way_to_receive)how, 2000, 0x9999, HOOP_ERR_MISMATCH);
        wrong_frame(&fixtures[_i], (enum way_to_receive)how, 1, 0x9999, HOOP_ERR_MISMATCH); /* the tag is told first */
    }
}
END_TEST

static void disconnect(struct ends *ends, int end)
{
    ends->link[end]->transport->disconnect(ends->link[end]);
    ends->link[end] = NULL;
}

/* The peer leaves: what was sent before arrives, except loans; then everything ends with HOOP_ERR_PEER. */
START_TEST(peer_leaves)
{
    struct ends ends;

    if (fixtures[_i].loops)
        return;
    for (int waits = 0; waits < 2; waits++) {
        ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 2);
        struct hoop_link *to = ends.link[1];
        pattern_fill(ends.memory[0], FRAME, 1);
        for (int i = 0; i < SLOTS; i++)
            ck_assert_int_eq(push(&ends, 0, ends.memory[0], FRAME, TAG, HOOP_SEND_STAGED), HOOP_OK);
        for (int i = 0; i < SLOTS; i++) /* these will never be received */
            ck_assert_int_eq(push(&ends, 1, ends.memory[1], FRAME, TAG, HOOP_SEND_STAGED), HOOP_OK);
        disconnect(&ends, 0);
        memset(ends.memory[0], 0xbb, FRAME);
        for (int i = 0; i < SLOTS; i++) {
            ck_assert_int_eq(pull(&ends, 1, landing[0], FRAME, TAG), HOOP_OK);
            ck_assert(pattern_holds(landing[0], FRAME, 1));
        }
        if (waits) {
            const enum hoop_status status = to->transport->recv(to, landing[0], 8, TAG);
            ck_assert(status == HOOP_OK || status == HOOP_ERR_PEER);
            ends_settle(&ends);
        } else {
            ck_assert_int_eq(push(&ends, 1, ends.memory[1], 8, TAG, 0), HOOP_ERR_PEER);
        }
        check_dead(&ends, 1, HOOP_ERR_PEER);
        ends_close(&ends);
    }
}
END_TEST

/* Frames that are taken only after their sender has hung up: nothing is held back for it, so who waits until all has left goes on. */
START_TEST(nothing_is_owed_to_who_left)
{
    struct ends ends;

    if (fixtures[_i].loops)
        return;
    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 2);
    for (int i = 0; i < SLOTS; i++)
        ck_assert_int_eq(push(&ends, 0, ends.memory[0], FRAME, TAG, HOOP_SEND_STAGED), HOOP_OK);
    disconnect(&ends, 0);
    ends_settle(&ends);
    for (int i = 0; i < SLOTS; i++)
        ck_assert_int_eq(pull(&ends, 1, landing[0], FRAME, TAG), HOOP_OK);
    ends_settle(&ends);
    struct hoop_domain *domain = ends.link[1]->domain;
    if (domain->transport->flush)
        ck_assert_int_eq(domain->transport->flush(domain), HOOP_OK);
    ends_close(&ends);
}
END_TEST

/* Receives that wait when the peer leaves; loans of a sender that leaves; a peer that never connected. */
START_TEST(peer_leaves_waiters)
{
    struct ends ends;

    if (fixtures[_i].loops)
        return;
    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 3);
    struct hoop_link *to = ends.link[1];
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(to->transport->recv(to, landing[i], 100, TAG), HOOP_OK);
    pattern_fill(ends.memory[0], FRAME, 4);
    ck_assert_int_eq(push(&ends, 0, ends.memory[0], 100, TAG, 0), HOOP_OK);
    wait_received(&ends, 1, 1);
    ck_assert_int_eq(push(&ends, 1, ends.memory[1], FRAME, TAG, 0), HOOP_OK); /* a loan where there are such */
    ck_assert_int_eq(push(&ends, 0, ends.memory[0], 100, TAG, 0), HOOP_OK);
    wait_received(&ends, 1, 2);
    ck_assert_int_eq(to->transport->recv(to, landing[2], 100, TAG), HOOP_OK);
    disconnect(&ends, 0);
    for (int i = 0; i < 3 && to->status == HOOP_OK; i++)
        ends_settle(&ends);
    ck_assert_int_eq(to->transport->progress(ends.domain[1]), HOOP_AGAIN); /* said once */
    check_dead(&ends, 1, HOOP_ERR_PEER);
    ends_close(&ends);
}
END_TEST

START_TEST(lender_leaves)
{
    struct ends ends;

    if (fixtures[_i].loops || !fixtures[_i].lends)
        return;
    for (int shown = 0; shown < 2; shown++) {
        const void *data;

        ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 4);
        struct hoop_link *to = ends.link[1];
        if (shown && !to->transport->peek) {
            ends_close(&ends);
            continue;
        }
        pattern_fill(ends.memory[0], FRAME, 4);
        ck_assert_int_eq(push(&ends, 0, ends.memory[0], FRAME, TAG, 0), HOOP_OK);
        ends_settle(&ends);
        if (shown)
            ck_assert_int_eq(to->transport->peek(to, FRAME, TAG, &data), HOOP_OK);
        disconnect(&ends, 0);
        memset(ends.memory[0], 0xbb, FRAME);
        if (shown)
            ck_assert_int_eq(to->transport->release(to), HOOP_ERR_PEER);
        else
            ck_assert_int_eq(pull(&ends, 1, landing[0], FRAME, TAG), HOOP_ERR_PEER);
        check_dead(&ends, 1, HOOP_ERR_PEER);
        ends_close(&ends);
    }
}
END_TEST

/* Frames may be sent, and the sender may leave again, before the peer connects. */
START_TEST(late_peer)
{
    struct ends ends;

    if (fixtures[_i].loops)
        return;
    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 5);
    struct hoop_link *early = ends_connect(&ends, 0, 1);
    pattern_fill(ends.memory[0], 300, 8);
    ck_assert_int_eq(early->transport->send(early, ends.memory[0], 300, TAG, HOOP_SEND_STAGED), HOOP_OK);
    early->transport->disconnect(early);
    struct hoop_link *first = ends.link[1];
    ends.link[1] = ends_connect(&ends, 1, 1);
    ck_assert_int_eq(pull(&ends, 1, landing[0], 300, TAG), HOOP_OK);
    ck_assert(pattern_holds(landing[0], 300, 8));
    ck_assert_int_eq(pull(&ends, 1, landing[0], 300, TAG), HOOP_ERR_PEER);
    check_dead(&ends, 1, HOOP_ERR_PEER);
    disconnect(&ends, 1);
    ends.link[1] = first;
    ends_close(&ends);
}
END_TEST

/* Both leave and come back, whatever was under way and however the link ended: the new link knows nothing of it. */
START_TEST(comes_back)
{
    struct ends ends;

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 6);
    for (int round = 0; round < 8; round++) {
        struct hoop_link *to = ends.link[1];

        for (uint64_t i = 0; i < 5; i++) {
            pattern_fill(ends.memory[0], FRAME, i);
            ck_assert_int_eq(push(&ends, 0, ends.memory[0], FRAME, TAG, 0), HOOP_OK);
            ck_assert_int_eq(pull(&ends, 1, landing[0], FRAME, TAG), HOOP_OK);
            ck_assert(pattern_holds(landing[0], FRAME, i));
            wait_sent(&ends, 0, i + 1);
        }
        if (round & 1)
            ck_assert_int_eq(push(&ends, 0, ends.memory[0], FRAME, TAG + 1, 0), HOOP_OK);
        if (round & 2) { /* a rank with itself meets the frame with the other tag at once */
            const bool meets = (round & 1) && fixtures[_i].loops;

            ck_assert_int_eq(to->transport->recv(to, landing[1], 10, TAG), meets ? HOOP_ERR_MISMATCH : to->status);
        }
        if (round & 4)
            ends_settle(&ends);
        disconnect(&ends, 0);
        if (fixtures[_i].loops) {
            ends.link[0] = ends.link[1] = ends_connect(&ends, 0, 0);
            continue;
        }
        disconnect(&ends, 1);
        const int sooner = round >> 1 & 1;
        ends.link[sooner] = ends_connect(&ends, sooner, 0);
        ends.link[1 - sooner] = ends_connect(&ends, 1 - sooner, 0);
    }
    ends_close(&ends);
}
END_TEST

/* ---- addresses ---- */

static void offer(struct ends *ends, const unsigned char *blob, size_t size)
{
    struct hoop_domain *domain = ends->domain[0];
    struct hoop_transport_cost cost;
    struct hoop_link *link = NULL;
    const int peer = ends->fixture->loops ? 0 : 1;
    const enum hoop_status status = domain->transport->cost(domain, blob, size, &cost);

    ck_assert(status == HOOP_OK || status == HOOP_ERR_ARG);
    const enum hoop_status connected = domain->transport->connect(domain, peer, 1, blob, size, &link);
    ck_assert(connected == HOOP_OK || connected == HOOP_ERR_ARG);
    ck_assert(connected != HOOP_OK || (status == HOOP_OK && cost.reachable));
    if (connected == HOOP_OK)
        domain->transport->disconnect(link);
}

START_TEST(addresses)
{
    unsigned char blob[HOOP_ADDRESS_MAX], bad[HOOP_ADDRESS_MAX];
    struct hoop_transport_cost cost;
    struct hoop_link *link;
    struct ends ends;
    size_t size;

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 7);
    struct hoop_domain *domain = ends.domain[0];
    const struct hoop_transport *way = domain->transport;
    ck_assert_int_eq(way->address(ends.domain[1], blob, &size), HOOP_OK);
    ck_assert_uint_le(size, HOOP_ADDRESS_MAX);
    ck_assert_int_eq(way->cost(domain, blob, size, &cost), HOOP_OK);
    ck_assert(cost.reachable && cost.gigabytes_per_second >= 0 && cost.nanoseconds >= 0);
    for (size_t cut = 0; cut < HOOP_ADDRESS_MAX; cut++) {
        unsigned char *exact = malloc(cut + 1); /* a reader past the end is seen by the sanitizer */

        memset(exact, 0, cut + 1);
        memcpy(exact, blob, cut < size ? cut : size);
        if (cut != size) {
            ck_assert_int_eq(way->cost(domain, exact, cut, &cost), HOOP_ERR_ARG);
            ck_assert_int_eq(way->connect(domain, fixtures[_i].loops ? 0 : 1, 1, exact, cut, &link), HOOP_ERR_ARG);
        }
        free(exact);
    }
    for (size_t bit = 0; bit < 8 * size; bit++) {
        memcpy(bad, blob, size);
        bad[bit / 8] ^= (unsigned char)(1 << bit % 8);
        offer(&ends, bad, size);
    }
    uint64_t seed = test_seed();
    for (int i = 0; i < 500; i++) {
        for (size_t k = 0; k < sizeof bad; k++)
            bad[k] = (unsigned char)draw(&seed);
        offer(&ends, bad, draw(&seed) % sizeof bad);
    }
    ends_close(&ends);
}
END_TEST

START_TEST(wrong_numbers)
{
    struct hoop_domain *domain = NULL;
    struct hoop_link *link;
    struct ends ends;

    ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 8);
    const struct hoop_transport *way = ends.domain[0]->transport;
    const int peer = fixtures[_i].loops ? 0 : 1;
    ck_assert_int_eq(way->probe(), HOOP_OK);
    ck_assert_int_eq(way->connect(ends.domain[0], peer, 0, NULL, 0, &link), HOOP_ERR_ARG); /* exists */
    ck_assert_int_eq(way->connect(ends.domain[0], peer, LANES, NULL, 0, &link), HOOP_ERR_ARG);
    ck_assert_int_eq(way->connect(ends.domain[0], peer, -1, NULL, 0, &link), HOOP_ERR_ARG);
    ck_assert_int_eq(way->connect(ends.domain[0], 2, 1, NULL, 0, &link), HOOP_ERR_ARG);
    ck_assert_int_eq(way->connect(ends.domain[0], -1, 1, NULL, 0, &link), HOOP_ERR_ARG);
    if (!fixtures[_i].loops)
        ck_assert_int_eq(way->connect(ends.domain[0], 0, 1, NULL, 0, &link), HOOP_ERR_ARG); /* itself */
    const struct hoop_domain_setup good = ends_setup(&ends, 0);
    struct hoop_domain_setup bad[7] = {good, good, good, good, good, good, good};
    bad[0].rank = good.ranks;
    bad[1].rank = -1;
    bad[2].lanes = 0;
    bad[3].slots = 1;
    bad[4].slots = 1 << 20;
    bad[5].frame = (size_t)1 << 40;
    bad[6].ranks = 0;
    for (int i = 0; i < 7; i++)
        ck_assert_msg(way->open(&bad[i], &domain) == HOOP_ERR_ARG, "%s: setup %d", fixtures[_i].name, i);
    ck_assert_ptr_null(domain);
    ends_close(&ends);
}
END_TEST

/* The N-th allocation fails, for every N: an error, nothing lost, and the same works with memory. */
START_TEST(no_memory)
{
    struct ends ends;
    bool failed = true;

    ends_create(&ends, &fixtures[_i], SLOTS, FRAME, 9);
    const struct hoop_domain_setup setup = ends_setup(&ends, 0), other = ends_setup(&ends, 1);
    const struct hoop_transport *way = fixtures[_i].transport;
    struct hoop_domain *peer;
    unsigned char blob[HOOP_ADDRESS_MAX];
    size_t size;
    ck_assert_int_eq(way->open(&other, &peer), HOOP_OK);
    ck_assert_int_eq(way->address(peer, blob, &size), HOOP_OK);
    for (long n = 1; failed; n++) {
        struct hoop_domain *domain;
        struct hoop_link *link;

        ck_assert_int_lt(n, 100);
        hoop_alloc_fail_at(n);
        enum hoop_status status = way->open(&setup, &domain);
        failed = status != HOOP_OK;
        if (status == HOOP_OK) {
            status = way->connect(domain, fixtures[_i].loops ? 0 : 1, 0, blob, size, &link);
            failed = status != HOOP_OK;
            if (status == HOOP_OK) {
                status = way->send(link, ends.memory[0], FRAME, TAG, HOOP_SEND_STAGED);
                failed = status != HOOP_OK;
                way->disconnect(link);
            }
            domain->transport->close(domain);
        }
        hoop_alloc_fail_at(0);
        ck_assert_msg(status == (failed ? HOOP_ERR_MEMORY : HOOP_OK), "%s: allocation %ld: %d", fixtures[_i].name, n,
                      status);
    }
    way->close(peer);
    ends_destroy(&ends);
}
END_TEST

/* ---- not over every fixture ---- */

START_TEST(every_transport_is_here)
{
    const struct hoop_transport *transport;
    const char *help;

    for (int i = 0; (transport = hoop_transport_get(i, &help)); i++) {
        int found = 0;

        for (int k = 0; k < fixture_count; k++)
            found += fixtures[k].transport == transport;
        ck_assert_msg(found > 0 || transport->send == NULL, "%s has no fixture",
                      transport->name); /* NULL: for kernels only */
        ck_assert_uint_eq(transport->size, sizeof(struct hoop_transport));
        ck_assert_str_ne(help, "");
        ck_assert_ptr_eq(hoop_transport_find(transport->name), transport);
    }
    ck_assert_ptr_null(hoop_transport_get(-1, NULL));
    ck_assert_ptr_null(hoop_transport_find("pigeon"));
    ck_assert_ptr_nonnull(strstr(hoop_error_text(), "self shm"));
}
END_TEST

/* A death in the simulation: what had not arrived is lost, all that wait learn it, both ends. */
START_TEST(killed_in_the_simulation)
{
    struct ends ends;

    if (fixtures[_i].transport != &hoop_transport_sim)
        return;
    for (int dead = 0; dead < 2; dead++) {
        ends_open(&ends, &fixtures[_i], SLOTS, FRAME, 10);
        ck_assert_int_eq(push(&ends, 0, ends.memory[0], FRAME, TAG, 0), HOOP_OK);
        for (int end = 0; end < 2; end++)
            ck_assert_int_eq(ends.link[end]->transport->recv(ends.link[end], landing[end], 64, TAG), HOOP_OK);
        hoop_sim_kill(ends.context[0], dead);
        ends_settle(&ends);
        for (int end = 0; end < 2; end++)
            wait_for_death(&ends, end);
        if (dead == 0) /* the frame that was under way did not come */
            check_dead(&ends, 1, HOOP_ERR_PEER);
        ck_assert_int_ne(ends.link[1]->status, HOOP_OK);
        check_dead(&ends, 0, ends.link[0]->status);
        ck_assert_int_ne(ends.link[0]->status, HOOP_OK);
        ends_close(&ends);
    }
}
END_TEST

START_TEST(clock_of_the_simulation)
{
    const struct hoop_sim_config config = {0};
    struct ends ends;

    for (int k = 0; k < fixture_count; k++)
        if (fixtures[k].transport == &hoop_transport_sim && !fixtures[k].lends)
            ends_open(&ends, &fixtures[k], SLOTS, FRAME, 11);
    /* 10 GB/s and 1500 ns: 5000 bytes occupy the link for 500 ns. Two frames, one behind the other. */
    ck_assert_int_eq(push(&ends, 0, ends.memory[0], FRAME, TAG, 0), HOOP_OK);
    ck_assert_int_eq(push(&ends, 0, ends.memory[0], FRAME, TAG, 0), HOOP_OK);
    ck_assert_uint_eq(hoop_sim_now(ends.context[0]), 0);
    ck_assert(hoop_sim_advance(ends.context[0]));
    ck_assert_uint_eq(hoop_sim_now(ends.context[0]), 500 + 1500);
    ck_assert(hoop_sim_advance(ends.context[0]));
    ck_assert_uint_eq(hoop_sim_now(ends.context[0]), 1000 + 1500);
    ck_assert(!hoop_sim_advance(ends.context[0]));
    ends_close(&ends);
    struct hoop_sim *sim;
    ck_assert_int_eq(hoop_sim_create(&sim, 0, &config), HOOP_ERR_ARG);
}
END_TEST

void add_ending(Suite *suite)
{
    TCase *tests = tcase_create("ending");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, wrong_size, 0, fixture_count);
    tcase_add_loop_test(tests, wrong_tag, 0, fixture_count);
    tcase_add_loop_test(tests, peer_leaves, 0, fixture_count);
    tcase_add_loop_test(tests, nothing_is_owed_to_who_left, 0, fixture_count);
    tcase_add_loop_test(tests, peer_leaves_waiters, 0, fixture_count);
    tcase_add_loop_test(tests, lender_leaves, 0, fixture_count);
    tcase_add_loop_test(tests, late_peer, 0, fixture_count);
    tcase_add_loop_test(tests, comes_back, 0, fixture_count);
    tcase_add_loop_test(tests, addresses, 0, fixture_count);
    tcase_add_loop_test(tests, wrong_numbers, 0, fixture_count);
    tcase_add_loop_test(tests, no_memory, 0, fixture_count);
    tcase_add_loop_test(tests, killed_in_the_simulation, 0, fixture_count);
    tcase_add_test(tests, every_transport_is_here);
    tcase_add_test(tests, clock_of_the_simulation);
    suite_add_tcase(suite, tests);
}
