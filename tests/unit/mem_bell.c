// SPDX-License-Identifier: BSD-3-Clause
/* The bell on the real kernel: it wakes, across processes too; it ends in time; it does not sleep when it was rung. */
#include "harness.h"
#include "mem/bell.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "mem/letterbox.h"

enum { ROUNDS = 2000 };
static const uint64_t very_long = 600ull * 1000000000u; /* a lost wake-up ends in the test's own time limit */

struct table {
    struct hoop_bell bell[2];
    _Alignas(64) _Atomic uint32_t turn; /* counts up; even: rank 0 moves */
};

static void play(struct table *table, uint32_t rank)
{
    for (uint32_t round = rank; round < ROUNDS; round += 2) {
        while (atomic_load(&table->turn) != round) {
            hoop_bell_arm(&table->bell[rank]);
            if (atomic_load(&table->turn) == round)
                hoop_bell_disarm(&table->bell[rank]);
            else
                hoop_bell_sleep(&table->bell[rank], very_long);
        }
        atomic_store_explicit(&table->turn, round + 1, memory_order_release);
        hoop_bell_ring(&table->bell[1 - rank]);
    }
}

static struct table *table;

static void *play_one(void *unused)
{
    play(table, 1);
    return unused;
}

static void set_table(void)
{
    table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(table != MAP_FAILED);
}

START_TEST(wakes_a_thread)
{
    pthread_t thread;

    set_table();
    ck_assert_int_eq(pthread_create(&thread, NULL, play_one, NULL), 0);
    play(table, 0);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(table->turn, ROUNDS);
}
END_TEST

START_TEST(wakes_a_process)
{
    int status;

    set_table();
    const pid_t child = fork();
    if (child == 0) {
        play(table, 1);
        _exit(0);
    }
    play(table, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(table->turn, ROUNDS);
}
END_TEST

START_TEST(ends_in_time)
{
    struct hoop_bell bell = {0};
    const uint64_t before = hoop_now();

    hoop_bell_arm(&bell);
    hoop_bell_sleep(&bell, 20000000);
    ck_assert_uint_ge(hoop_now() - before, 20000000);
    ck_assert_uint_eq(bell.armed, 0);
}
END_TEST

START_TEST(does_not_sleep_when_rung)
{
    struct hoop_bell bell = {0};

    hoop_bell_arm(&bell);
    hoop_bell_ring(&bell);
    hoop_bell_sleep(&bell, very_long);
    hoop_bell_sleep(&bell, UINT64_MAX); /* not armed */
    ck_assert_uint_eq(bell.armed, 0);
}
END_TEST

/* By letters, as one who waits for sockets, too; from another process. */
START_TEST(wakes_by_letters)
{
    struct pollfd news = {.events = POLLIN};

    set_table();
    struct hoop_bell *bell = &table->bell[0];
    ck_assert_int_eq(hoop_letterbox_open(bell, &news.fd), HOOP_OK);
    for (int round = 0; round < 3; round++) {
        hoop_bell_arm_letters(bell);
        ck_assert_int_eq(poll(&news, 1, 0), 0);
        const pid_t child = fork();
        if (child == 0) {
            hoop_bell_ring(bell);
            hoop_bell_ring(bell); /* not armed any more: no second letter */
            _exit(0);
        }
        ck_assert_int_eq(poll(&news, 1, -1), 1);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        ck_assert_uint_eq(bell->armed, 0);
        char letter[2];
        ck_assert_int_eq(read(news.fd, letter, sizeof letter), 1);
        ck_assert_int_eq(poll(&news, 1, 0), 0);
    }
    for (int i = 0; i < 10; i++)
        hoop_letterbox_write(bell);
    hoop_letterbox_empty(news.fd);
    ck_assert_int_eq(poll(&news, 1, 0), 0);
    close(news.fd);
    hoop_letterbox_write(bell); /* to nobody */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bell");
    TCase *tests = tcase_create("bell");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, wakes_a_thread);
    tcase_add_test(tests, wakes_a_process);
    tcase_add_test(tests, ends_in_time);
    tcase_add_test(tests, does_not_sleep_when_rung);
    tcase_add_test(tests, wakes_by_letters);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
