// SPDX-License-Identifier: BSD-3-Clause
/* Ranks that outnumber processors: whoever goes by the rule ends evenly spread, in few moves, where it may run; and the thread truly goes, and is never left bound. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/spread.h"
#include "harness.h"

/* In place of the C library's: from call refuse_from on it fails, refuse_calls times. */
static int calls, refuse_from, refuse_calls;

int sched_setaffinity(pid_t process, size_t size, const cpu_set_t *set)
{
    calls++;
    if (refuse_calls > 0 && calls >= refuse_from && calls < refuse_from + refuse_calls) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_sched_setaffinity, process, size, set);
}

enum { RANKS_MOST = 40, PROCESSORS_MOST = 12, ROUNDS = 3000 };

static unsigned next(unsigned *state, unsigned below)
{
    *state = *state * 1103515245u + 12345;
    return (*state >> 16) % below;
}

/* The most and the least ranks that an allowed processor has. */
static void extremes(const struct hoop_spread_place *place, int ranks, const cpu_set_t *allowed, int *least, int *most)
{
    *least = ranks, *most = 0;
    for (int p = 0; p < CPU_SETSIZE; p++) {
        int count = 0;

        if (!CPU_ISSET((size_t)p, allowed))
            continue;
        for (int rank = 0; rank < ranks; rank++)
            count += place[rank].processor == p;
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
        int of[PROCESSORS_MOST], processors = 0, moves = 0, still = 0, least, most;
        struct hoop_spread_place place[RANKS_MOST] = {{0}};
        cpu_set_t allowed;

        CPU_ZERO(&allowed);
        for (int p = 0; p < PROCESSORS_MOST; p++)
            if (p == 0 || next(&state, 2)) {
                CPU_SET((size_t)(p * 50), &allowed);
                of[processors++] = p * 50;
            }
        for (int rank = 0; rank < ranks; rank++)
            place[rank].processor = of[next(&state, (unsigned)processors)];
        for (int rank = 0; still < ranks; rank = (rank + 1) % ranks, still++) {
            const int target = hoop_spread_target(place, ranks, rank, &allowed);
            if (target < 0)
                continue;
            ck_assert(CPU_ISSET((size_t)target, &allowed) && target != place[rank].processor);
            place[rank].processor = target;
            ck_assert_int_le(++moves, ranks);
            still = -1;
        }
        extremes(place, ranks, &allowed, &least, &most);
        ck_assert_msg(most - least <= 1, "round %d: %d to %d ranks on a processor", round, least, most);
    }
}
END_TEST

/* Ranks that others know nothing of count nowhere, and stay. */
START_TEST(unknown_ranks)
{
    const struct hoop_spread_place place[] = {{.processor = -1}, {.processor = 3},           {.processor = 3},
                                              {.processor = -1}, {.processor = CPU_SETSIZE}, {.processor = 3}};
    cpu_set_t allowed;

    CPU_ZERO(&allowed);
    CPU_SET(3, &allowed);
    CPU_SET(5, &allowed);
    ck_assert_int_eq(hoop_spread_target(place, 6, 5, &allowed), 5);
    for (int rank = 0; rank < 5; rank++) /* no place is known, or it is rank 5's turn */
        ck_assert_int_eq(hoop_spread_target(place, 6, rank, &allowed), -1);
    CPU_CLR(5, &allowed);
    ck_assert_int_eq(hoop_spread_target(place, 6, 5, &allowed), -1);
}
END_TEST

/* Who may use one processor only counts on it, but does not keep the others there. */
START_TEST(bound_ranks)
{
    struct hoop_spread_place place[] = {{.processor = 1}, {.processor = 1}, {.processor = 1, .bound = true}};
    cpu_set_t one, two;

    CPU_ZERO(&one);
    CPU_SET(1, &one);
    two = one;
    CPU_SET(4, &two);
    ck_assert_int_eq(hoop_spread_target(place, 3, 2, &one), -1);
    ck_assert_int_eq(hoop_spread_target(place, 3, 0, &two), -1); /* it is rank 1's turn */
    ck_assert_int_eq(hoop_spread_target(place, 3, 1, &two), 4);
    place[1].bound = true;
    ck_assert_int_eq(hoop_spread_target(place, 3, 0, &two), 4);
}
END_TEST

/* This thread as the last of three ranks on one processor, of two that it may use. */
struct three {
    struct hoop_board *board;
    struct hoop_spread spread;
    cpu_set_t one, two;
    int place[2];
};

static void set_up(struct three *three)
{
    const struct hoop_board_shape shape = {.ranks = 3, .lanes = 1, .ring = 12288, .flat = 100, .heap = 1 << 20};
    cpu_set_t all;
    int found = 0;

    *three = (struct three){.spread.on = true};
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (int p = 0; p < CPU_SETSIZE && found < 2; p++)
        if (CPU_ISSET((size_t)p, &all)) {
            CPU_SET((size_t)p, &three->two);
            three->place[found++] = p;
        }
    CPU_SET((size_t)three->place[0], &three->one);
    ck_assert_int_eq(hoop_board_create(&three->board, &shape, 2), HOOP_OK);
}

/* Look, until the system, which may move the thread at any time, has left it where it was put. The look's second binding and those
 * that follow it fail, `refusals` of them. */
static void look(struct three *three, int refusals)
{
    const struct hoop_spread before = three->spread;

    for (int i = 0; i < 1000 && three->spread.moves == before.moves; i++) {
        for (int rank = 0; rank < 2; rank++)
            atomic_store(&hoop_board_card(three->board, rank)->processor, three->place[0] + 1);
        refuse_calls = 0;
        ck_assert(sched_setaffinity(0, sizeof three->one, &three->one) == 0 &&
                  sched_setaffinity(0, sizeof three->two, &three->two) == 0);
        three->spread.next = 0;
        refuse_from = calls + 2;
        refuse_calls = refusals;
        hoop_spread_look(&three->spread, three->board);
    }
    refuse_calls = 0;
    ck_assert_uint_eq(three->spread.moves, before.moves + 1);
    ck_assert_int_eq(atomic_load(&hoop_board_card(three->board, 2)->processor), three->place[1] + 1);
}

/* It goes to the other one, and may still run on both. */
START_TEST(the_thread_goes)
{
    struct three three;
    cpu_set_t after;

    set_up(&three);
    look(&three, 0);
    ck_assert(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&after, &three.two));
    atomic_store(&hoop_board_card(three.board, 2)->processor, 0);
    three.spread = (struct hoop_spread){.on = false};
    hoop_spread_look(&three.spread, three.board);
    ck_assert_int_eq(atomic_load(&hoop_board_card(three.board, 2)->processor), 0);
    hoop_board_close(three.board);
}
END_TEST

/* Who may use one processor only says so. */
START_TEST(the_thread_is_bound)
{
    struct three three;

    set_up(&three);
    ck_assert_int_eq(sched_setaffinity(0, sizeof three.one, &three.one), 0);
    hoop_spread_look(&three.spread, three.board);
    ck_assert_int_eq(atomic_load(&hoop_board_card(three.board, 2)->processor), -(three.place[0] + 1));
    hoop_board_close(three.board);
}
END_TEST

/* Where it ran before is refused: it may run wherever the system lets it. Where that is refused, too, it is never moved again. */
START_TEST(the_thread_is_not_left_bound)
{
    struct three three;
    cpu_set_t after;

    set_up(&three);
    look(&three, 1);
    ck_assert(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_COUNT(&after) >= 2 && three.spread.on);
    look(&three, 2);
    ck_assert(!three.spread.on);
    hoop_board_close(three.board);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spread");
    TCase *tests = tcase_create("spread");
    cpu_set_t all;

    tcase_add_test(tests, ends_even);
    tcase_add_test(tests, unknown_ranks);
    tcase_add_test(tests, bound_ranks);
    if (sched_getaffinity(0, sizeof all, &all) == 0 && CPU_COUNT(&all) > 1) {
        tcase_add_test(tests, the_thread_goes);
        tcase_add_test(tests, the_thread_is_bound);
        tcase_add_test(tests, the_thread_is_not_left_bound);
    }
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
