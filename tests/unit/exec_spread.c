// SPDX-License-Identifier: BSD-3-Clause
/* Ranks that outnumber processors: whoever goes by the rule ends evenly spread, in few moves, where it may run; and the thread truly goes. */
#include <check.h>
#include <sched.h>
#include <stdlib.h>

#include "exec/spread.h"
#include "harness.h"

enum { RANKS_MOST = 40, PROCESSORS_MOST = 12, ROUNDS = 3000 };

static unsigned next(unsigned *state, unsigned below)
{
    *state = *state * 1103515245u + 12345;
    return (*state >> 16) % below;
}

/* The most and the least ranks that an allowed processor has. */
static void extremes(const int *processor, int ranks, const cpu_set_t *allowed, int *least, int *most)
{
    *least = ranks, *most = 0;
    for (int p = 0; p < CPU_SETSIZE; p++) {
        int count = 0;

        if (!CPU_ISSET((size_t)p, allowed))
            continue;
        for (int rank = 0; rank < ranks; rank++)
            count += processor[rank] == p;
        *least = count < *least ? count : *least;
        *most = count > *most ? count : *most;
    }
}

/* From any placement: nobody needs to move twice. */
START_TEST(ends_even)
{
    unsigned state = 7;

    for (int round = 0; round < ROUNDS; round++) {
        const int ranks = 1 + (int)next(&state, RANKS_MOST);
        int processor[RANKS_MOST], of[PROCESSORS_MOST], processors = 0, moves = 0, still = 0, least, most;
        cpu_set_t allowed;

        CPU_ZERO(&allowed);
        for (int p = 0; p < PROCESSORS_MOST; p++)
            if (p == 0 || next(&state, 2)) {
                CPU_SET((size_t)(p * 50), &allowed);
                of[processors++] = p * 50;
            }
        for (int rank = 0; rank < ranks; rank++)
            processor[rank] = of[next(&state, (unsigned)processors)];
        for (int rank = 0; still < ranks; rank = (rank + 1) % ranks, still++) {
            const int target = hoop_spread_target(processor, ranks, rank, &allowed);
            if (target < 0)
                continue;
            ck_assert(CPU_ISSET((size_t)target, &allowed) && target != processor[rank]);
            processor[rank] = target;
            ck_assert_int_le(++moves, ranks);
            still = -1;
        }
        extremes(processor, ranks, &allowed, &least, &most);
        ck_assert_msg(most - least <= 1, "round %d: %d to %d ranks on a processor", round, least, most);
    }
}
END_TEST

/* Ranks that others know nothing of count nowhere, and stay. */
START_TEST(unknown_ranks)
{
    const int processor[] = {-1, 3, 3, -1, CPU_SETSIZE, 3};
    cpu_set_t allowed;

    CPU_ZERO(&allowed);
    CPU_SET(3, &allowed);
    CPU_SET(5, &allowed);
    ck_assert_int_eq(hoop_spread_target(processor, 6, 5, &allowed), 5);
    for (int rank = 0; rank < 5; rank++) /* no place is known, or it is rank 5's turn */
        ck_assert_int_eq(hoop_spread_target(processor, 6, rank, &allowed), -1);
    CPU_CLR(5, &allowed);
    ck_assert_int_eq(hoop_spread_target(processor, 6, 5, &allowed), -1);
}
END_TEST

/* This thread as the last of three ranks on one processor: it goes to the other one, and may still run on both. */
START_TEST(the_thread_goes)
{
    const struct hoop_board_shape shape = {.ranks = 3, .lanes = 1, .ring = 12288, .flat = 100, .heap = 1 << 20};
    struct hoop_spread spread = {.on = true};
    struct hoop_board *board = NULL;
    cpu_set_t all, two, one, after;
    int place[2], found = 0;

    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&two);
    CPU_ZERO(&one);
    for (int p = 0; p < CPU_SETSIZE && found < 2; p++)
        if (CPU_ISSET((size_t)p, &all)) {
            CPU_SET((size_t)p, &two);
            place[found++] = p;
        }
    CPU_SET((size_t)place[0], &one);
    ck_assert_int_eq(hoop_board_create(&board, &shape, 2), HOOP_OK);
    /* until the system, which may move the thread at any time, has left it where it was put */
    for (int i = 0; i < 1000 && spread.moves == 0; i++) {
        for (int rank = 0; rank < 2; rank++)
            atomic_store(&hoop_board_card(board, rank)->processor, place[0] + 1);
        ck_assert(sched_setaffinity(0, sizeof one, &one) == 0 && sched_setaffinity(0, sizeof two, &two) == 0);
        spread.next = 0;
        hoop_spread_look(&spread, board);
    }
    ck_assert_uint_eq(spread.moves, 1);
    ck_assert_int_eq(atomic_load(&hoop_board_card(board, 2)->processor), place[1] + 1);
    ck_assert(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&after, &two));
    atomic_store(&hoop_board_card(board, 2)->processor, 0);
    spread = (struct hoop_spread){.on = false};
    hoop_spread_look(&spread, board);
    ck_assert_int_eq(atomic_load(&hoop_board_card(board, 2)->processor), 0);
    hoop_board_close(board);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spread");
    TCase *tests = tcase_create("spread");
    cpu_set_t all;

    tcase_add_test(tests, ends_even);
    tcase_add_test(tests, unknown_ranks);
    if (sched_getaffinity(0, sizeof all, &all) == 0 && CPU_COUNT(&all) > 1)
        tcase_add_test(tests, the_thread_goes);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
