// SPDX-License-Identifier: BSD-3-Clause
/* What hoop-status reads: files of HOOP_FLIGHT and the memory of running ranks, which may hold anything. An odd first byte: the rest is the file.
 * Else a sound board of 1 to 4 ranks, over which the rest writes: a part (head, or card or recorder of a rank), a place in it, a
 * value. What is taken can be asked for everything, and every answer is in range. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"
#include "hoop/flight.h"
#include "mem/board.h"
#include "obs/recorder.h"

enum { PATCH = 11, RECORDS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_call(const struct hoop_flight_call *call)
{
    check(strlen(call->what) < sizeof call->what && strlen(call->plan) < sizeof call->plan);
    check(strlen(call->wait) < sizeof call->wait && (call->age >= 0 || call->age == -1));
    check((call->seconds >= 0 || call->seconds == -1) && hoop_strerror(call->status) != NULL);
}

static void ask_all(const struct hoop_flight *flight)
{
    struct hoop_flight_facts facts;
    char why[128];

    hoop_flight_ask(flight, &facts);
    check(facts.ranks >= 1 && strlen(facts.verdict) < sizeof facts.verdict);
    if (facts.ranks > 64)
        return; /* time */
    for (int rank = -1; rank <= facts.ranks; rank++) {
        const bool is_one = rank >= 0 && rank < facts.ranks;
        struct hoop_flight_rank one;
        struct hoop_flight_call call;

        check((hoop_flight_rank(flight, rank, &one) == HOOP_OK) == is_one);
        if (!is_one)
            continue;
        check(one.waits_for >= -1 && one.waits_for < facts.ranks && one.state <= HOOP_FLIGHT_LEFT);
        check_call(&one.call);
        for (int back = -1; back <= RECORDS; back++)
            if (hoop_flight_call(flight, rank, back, &call) == HOOP_OK)
                check_call(&call);
    }
    int *late = calloc((size_t)facts.ranks, sizeof *late);
    check(late != NULL);
    const int count = hoop_flight_late(flight, late, why, sizeof why);
    check(count >= 0 && count <= facts.ranks && strlen(why) > 0 && strlen(why) < sizeof why);
    for (int i = 0; i < count; i++)
        check(late[i] >= 0 && late[i] < facts.ranks);
    free(late);
}

/* The part of the board that a number names. */
static unsigned char *part_of(const struct hoop_board *board, unsigned number, size_t *size)
{
    const int rank = (int)(number / 2 % (unsigned)board->shape.ranks);

    if (number == 0) {
        *size = sizeof(struct hoop_board_head);
        return board->base;
    }
    *size = number % 2 ? sizeof(struct hoop_card)
                       : offsetof(struct hoop_recorder, record) + RECORDS * sizeof(struct hoop_record);
    return number % 2 ? (unsigned char *)hoop_board_card(board, rank) : hoop_board_flight(board, rank);
}

/* A board of so many ranks, written over. Returns its bytes, *size of them. */
static unsigned char *damaged(int ranks, const uint8_t *data, size_t bytes, size_t *size)
{
    static uint64_t magic;
    const struct hoop_board_shape shape = {.ranks = ranks, .lanes = 1, .ring = 4096, .flat = 4096, .heap = 4096};
    struct hoop_board *real, board;

    if (magic == 0) { /* of this version */
        check(hoop_board_create(&real, &shape, 0) == HOOP_OK);
        magic = real->head->magic;
        hoop_board_close(real);
    }
    const struct hoop_board_head head = {.magic = magic, .shape = shape};
    check(hoop_board_picture(&board, &head) == HOOP_OK);
    *size = board.flat_at;
    board.base = hoop_calloc_aligned(HOOP_LINE, board.flat_at, 1);
    check(board.base != NULL);
    memcpy(board.base, &head, sizeof head);
    for (; bytes >= PATCH; data += PATCH, bytes -= PATCH) {
        size_t room;
        unsigned char *part = part_of(&board, data[0], &room);
        uint16_t at;

        memcpy(&at, data + 1, sizeof at);
        memcpy(part + at % (room / 8) * 8, data + 3, 8);
    }
    return board.base;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const int file = memfd_create("fuzz", MFD_CLOEXEC);
    struct hoop_flight *flight = NULL;
    unsigned char *board = NULL;
    size_t size = bytes > 0 ? bytes - 1 : 0;

    if (bytes == 0 || file < 0)
        return 0;
    if (data[0] % 2 == 0)
        board = damaged(1 + data[0] / 2 % 4, data + 1, bytes - 1, &size);
    check(write(file, board ? board : data + 1, size) == (ssize_t)size);
    if (hoop_flight_open(&flight, file) == HOOP_OK)
        ask_all(flight);
    else
        check(*hoop_error_text() != '\0');
    hoop_flight_close(flight);
    hoop_free(board);
    close(file);
    return 0;
}
