// SPDX-License-Identifier: BSD-3-Clause
/* Two ends of every kind of link. A new transport gets a fixture here, and the whole suite. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "conform/conform.h"
#include "mem/board.h"
#include "mem/ring.h"
#include "transports/sim/sim.h"
#include "transports/tcp/tcp.h"
#include "transports/transports.h"

/* ---- self ---- */

static enum hoop_status create_nothing(struct ends *ends)
{
    ends->context[0] = ends->context[1] = NULL;
    return HOOP_OK;
}

static void destroy_nothing(struct ends *ends)
{
    (void)ends;
}

/* ---- shm: two boards over one segment ---- */

static enum hoop_status create_boards(struct ends *ends)
{
    const struct hoop_board_shape shape = {
        .ranks = 2, .lanes = LANES, .ring = hoop_ring_bytes(ends->slots, ends->frame), .flat = 4096, .heap = MEMORY};
    struct hoop_board *board[2];
    enum hoop_status status = hoop_board_create(&board[0], &shape, 0);

    if (status != HOOP_OK)
        return status;
    status = hoop_board_attach(&board[1], &shape, 1, dup(board[0]->descriptor));
    for (int end = 0; end < 2 && status == HOOP_OK; end++) {
        ends->context[end] = board[end];
        status = hoop_board_reserve(board[end], hoop_board_heap_offset(board[end], end), MEMORY, "the test's buffers");
    }
    return status;
}

static void destroy_boards(struct ends *ends)
{
    hoop_board_close(ends->context[1]);
    hoop_board_close(ends->context[0]);
}

static unsigned char *board_memory(struct ends *ends, int end)
{
    const struct hoop_board *board = ends->context[end];

    return board->base + hoop_board_heap_offset(board, end);
}

/* ---- sim ---- */

static enum hoop_status create_sim(struct ends *ends, struct hoop_sim_config config)
{
    struct hoop_sim *sim;

    config.seed = ends->seed;
    const enum hoop_status status = hoop_sim_create(&sim, ends->fixture->loops ? 1 : 2, &config);
    ends->context[0] = ends->context[1] = sim;
    return status;
}

static enum hoop_status create_plain_sim(struct ends *ends)
{
    return create_sim(ends, (struct hoop_sim_config){.gigabytes_per_second = 10, .nanoseconds = 1500});
}

static enum hoop_status create_lending_sim(struct ends *ends)
{
    return create_sim(ends, (struct hoop_sim_config){.lend = true, .nanoseconds = 1});
}

static enum hoop_status create_shuffled_sim(struct ends *ends)
{
    return create_sim(ends, (struct hoop_sim_config){.lend = true, .in_place = true, .shuffle = true});
}

static void destroy_sim(struct ends *ends)
{
    hoop_sim_destroy(ends->context[0]);
}

/* ---- tcp ---- */

static enum hoop_status create_tcp(struct ends *ends)
{
    static struct hoop_tcp_setup setup = {.key = "of the test", .interfaces = ""};

    ends->context[0] = ends->context[1] = &setup;
    return HOOP_OK;
}

const struct fixture fixtures[] = {
    {"self", &hoop_transport_self, true, true, false, create_nothing, destroy_nothing, NULL},
    {"shm", &hoop_transport_shm, false, true, false, create_boards, destroy_boards, board_memory},
    {"shm, private memory", &hoop_transport_shm, false, false, false, create_boards, destroy_boards, NULL},
    {"tcp", &hoop_transport_tcp, false, false, false, create_tcp, destroy_nothing, NULL},
    {"sim", &hoop_transport_sim, false, false, false, create_plain_sim, destroy_sim, NULL},
    {"sim, lending", &hoop_transport_sim, false, true, false, create_lending_sim, destroy_sim, NULL},
    {"sim, shuffled, in place", &hoop_transport_sim, false, true, true, create_shuffled_sim, destroy_sim, NULL},
};
const int fixture_count = sizeof fixtures / sizeof fixtures[0];

/* ---- ends ---- */

struct hoop_domain_setup ends_setup(const struct ends *ends, int end)
{
    return (struct hoop_domain_setup){.rank = ends->fixture->loops ? 0 : end,
                                      .ranks = ends->fixture->loops ? 1 : 2,
                                      .lanes = LANES,
                                      .frame = ends->frame,
                                      .slots = ends->slots,
                                      .context = ends->context[end]};
}

void ends_create(struct ends *ends, const struct fixture *fixture, int slots, size_t frame, uint64_t seed)
{
    *ends = (struct ends){.fixture = fixture, .seed = seed, .slots = slots, .frame = frame};
    ck_assert_msg(fixture->create(ends) == HOOP_OK, "%s: %s", fixture->name, hoop_error_text());
    for (int end = 0; end < 2; end++) {
        ends->memory[end] = fixture->memory ? fixture->memory(ends, end) : malloc(MEMORY);
        ck_assert_ptr_nonnull(ends->memory[end]);
    }
}

void ends_destroy(struct ends *ends)
{
    for (int end = 0; end < 2; end++)
        if (!ends->fixture->memory)
            free(ends->memory[end]);
    ends->fixture->destroy(ends);
}

struct hoop_link *ends_connect(struct ends *ends, int end, int lane)
{
    const int peer = ends->fixture->loops ? 0 : 1 - end;
    unsigned char blob[HOOP_ADDRESS_MAX];
    struct hoop_link *link = NULL;
    size_t size = 0;

    ck_assert_int_eq(ends->domain[1 - end]->transport->address(ends->domain[1 - end], blob, &size), HOOP_OK);
    ck_assert_msg(ends->domain[end]->transport->connect(ends->domain[end], peer, lane, blob, size, &link) == HOOP_OK,
                  "%s: %s", ends->fixture->name, hoop_error_text());
    ck_assert_ptr_nonnull(link);
    ck_assert_int_eq(link->status, HOOP_OK);
    ck_assert_int_eq(link->peer, peer);
    ck_assert_int_eq(link->lane, lane);
    ck_assert_uint_eq(link->frame, ends->frame);
    ck_assert_uint_eq(link->sent + link->sent_done + link->received + link->received_done, 0);
    return link;
}

void ends_open(struct ends *ends, const struct fixture *fixture, int slots, size_t frame, uint64_t seed)
{
    ends_create(ends, fixture, slots, frame, seed);
    for (int end = 0; end < (fixture->loops ? 1 : 2); end++) {
        const struct hoop_domain_setup setup = ends_setup(ends, end);

        ck_assert_msg(fixture->transport->open(&setup, &ends->domain[end]) == HOOP_OK, "%s: %s", fixture->name,
                      hoop_error_text());
    }
    if (fixture->loops)
        ends->domain[1] = ends->domain[0];
    ends->link[0] = ends_connect(ends, 0, 0);
    ends->link[1] = fixture->loops ? ends->link[0] : ends_connect(ends, 1, 0);
}

void ends_close(struct ends *ends)
{
    for (int end = 0; end < (ends->fixture->loops ? 1 : 2); end++) {
        if (ends->link[end])
            ends->link[end]->transport->disconnect(ends->link[end]);
        ends->domain[end]->transport->close(ends->domain[end]);
    }
    ends_destroy(ends);
}

static void progress_both(struct ends *ends)
{
    for (int end = 0; end < 2; end++) {
        const enum hoop_status status = ends->domain[end]->transport->progress(ends->domain[end]);

        ck_assert_msg(status == HOOP_OK || status == HOOP_AGAIN, "progress returned %d", status);
    }
}

void ends_settle(struct ends *ends)
{
    for (int i = 0; i < 200; i++)
        progress_both(ends);
}

void wait_sent(struct ends *ends, int end, uint64_t least)
{
    const struct hoop_link *link = ends->link[end];

    for (int i = 0; link->sent_done < least && link->status == HOOP_OK; i++) {
        ck_assert_int_lt(i, 100000);
        progress_both(ends);
    }
}

void wait_received(struct ends *ends, int end, uint64_t least)
{
    const struct hoop_link *link = ends->link[end];

    for (int i = 0; link->received_done < least && link->status == HOOP_OK; i++) {
        ck_assert_int_lt(i, 100000);
        progress_both(ends);
    }
}

enum hoop_status push(struct ends *ends, int end, const void *data, size_t bytes, uint64_t tag, unsigned flags)
{
    struct hoop_link *link = ends->link[end];

    for (int i = 0; i < 100000; i++) {
        const enum hoop_status status = link->transport->send(link, data, bytes, tag, flags);

        if (status != HOOP_AGAIN)
            return status;
        progress_both(ends);
    }
    return HOOP_AGAIN;
}

enum hoop_status pull(struct ends *ends, int end, void *data, size_t bytes, uint64_t tag)
{
    struct hoop_link *link = ends->link[end];

    for (int i = 0; i < 100000; i++) {
        const enum hoop_status status = link->transport->recv(link, data, bytes, tag);

        if (status == HOOP_OK)
            wait_received(ends, end, link->received);
        if (status != HOOP_AGAIN)
            return status == HOOP_OK ? link->status : status;
        progress_both(ends);
    }
    return HOOP_AGAIN;
}

/* ---- data ---- */

void pattern_fill(unsigned char *data, size_t bytes, uint64_t number)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(number * 131 + i * 7 + (i >> 8) + 1);
}

bool pattern_holds(const unsigned char *data, size_t bytes, uint64_t number)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != (unsigned char)(number * 131 + i * 7 + (i >> 8) + 1))
            return false;
    return true;
}

uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t test_seed(void)
{
    const char *given = getenv("HOOP_TEST_SEED");

    return given ? strtoull(given, NULL, 0) : hoop_now();
}
