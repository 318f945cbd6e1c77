// SPDX-License-Identifier: BSD-3-Clause
/* Random kills: a rank of 2 to 8, by shared memory, by tcp or by both, dies somewhere in a call. Every survivor names it, and nothing is left.
 *
 * TEST_KILLS: how many (by hand: 1000); TEST_SEED: to repeat what has failed. How soon the survivors knew is printed and not judged: on a
 * machine that has more to do it says nothing. Sockets lead over loopback; those of "shm and tcp" between two groups of ranks that
 * pass for hosts. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

enum { CAP = 60, READY = 1, LEAST_RANKS = 2, MOST_RANKS = 8, KILLS = 24, READY_AFTER = 5 };
enum { LONG_MS = 50 }; /* a kill that took longer is printed by itself */

enum way { SHM, TCP, BOTH, WAYS };

static const char *const way_name[] = {"shm", "tcp", "shm and tcp"};

struct shot {
    enum way way;
    int ranks, victim;
    size_t count; /* elements of the calls */
    unsigned delay_us;
};

/* ---- one ---- */

static void choose_way(const struct shot *shot, int rank)
{
    setenv("HOOP_TRANSPORTS", shot->way == TCP ? "tcp" : "auto", 1);
    if (shot->way == BOTH)
        setenv("HOOP_HOST", rank % 2 ? "odd" : "even", 1);
    else
        unsetenv("HOOP_HOST");
}

static int keep_calling(struct harness_rank *self)
{
    const struct shot *shot = self->argument;
    float *data = calloc(shot->count, sizeof *data);
    enum hoop_status status = HOOP_OK;

    choose_way(shot, self->rank);
    struct hoop_comm *comm = harness_join(self);
    if (comm == NULL || data == NULL)
        return 1;
    for (int call = 0; status == HOOP_OK; call++) {
        if (call == READY_AFTER)
            atomic_store(&self->report->stage, READY);
        status = hoop_all_reduce(data, data, shot->count, HOOP_F32, HOOP_SUM, comm, NULL);
    }
    harness_tell(self, status, comm);
    hoop_comm_destroy(comm);
    free(data);
    return 0;
}

static bool blames(const char *text, int victim)
{
    char name[48];
    const char *cause = strstr(text, ": "); /* behind "rank N: ", which names the speaker */

    snprintf(name, sizeof name, "rank %d (process ", victim);
    return cause && strstr(cause, name) && strstr(cause, "died");
}

/* What came of all kills on one way. */
struct tally {
    double *ms; /* of each kill: after how many ms the slowest survivor knew */
    size_t kills, survivors, wrong;
};

static void judge(const struct shot *shot, const char *text, const struct harness *harness, uint64_t killed,
                  struct tally *tally)
{
    double slowest = 0;

    for (int rank = 0; rank < shot->ranks; rank++) {
        const struct harness_report *report = &harness->report[rank];
        if (rank == shot->victim)
            continue;
        const double ms = ((double)report->at - (double)killed) / 1e6;
        slowest = ms > slowest ? ms : slowest;
        tally->survivors++;
        if (report->status == HOOP_ERR_PEER && blames(report->text, shot->victim))
            continue;
        tally->wrong++;
        printf("%s: rank %d says: %d %s\n", text, rank, report->status, report->text);
    }
    if (slowest > LONG_MS)
        printf("%s: %.1f ms\n", text, slowest);
    tally->ms[tally->kills++] = slowest;
}

static void shoot(const struct shot *shot, struct tally *tally)
{
    struct harness harness;
    char text[128];

    snprintf(text, sizeof text, "%s, %d ranks, %zu floats, rank %d after %u us", way_name[shot->way], shot->ranks,
             shot->count, shot->victim, shot->delay_us);
    harness_start(&harness, shot->ranks, keep_calling, (void *)(uintptr_t)shot, CAP);
    for (int rank = 0; rank < shot->ranks; rank++)
        harness_stage(&harness, rank, READY);
    usleep(shot->delay_us);
    const uint64_t killed = hoop_now();
    kill(harness.process[shot->victim], SIGKILL);
    ck_assert_msg(harness_wait(&harness), "%s: the survivors hang", text);
    judge(shot, text, &harness, killed, tally);
}

/* ---- many ---- */

static unsigned random_below(unsigned *seed, unsigned limit)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (unsigned)((uint64_t)(*seed >> 8) * limit >> 24);
}

static struct shot draw(unsigned *seed)
{
    static const size_t counts[] = {1, 1000, 20000, 300000};
    struct shot shot = {.way = (enum way)random_below(seed, WAYS)};

    shot.ranks = LEAST_RANKS + (int)random_below(seed, MOST_RANKS - LEAST_RANKS + 1);
    shot.victim = (int)random_below(seed, (unsigned)shot.ranks);
    shot.count = counts[random_below(seed, sizeof counts / sizeof *counts)];
    shot.delay_us = random_below(seed, 5000);
    return shot;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_tally(enum way way, struct tally *tally)
{
    double *ms = tally->ms;
    const size_t count = tally->kills;

    if (count == 0)
        return;
    qsort(ms, count, sizeof *ms, by_size);
    printf("%-11s %4zu kills, %zu of %zu survivors named the rank; the slowest knew after %.1f ms (p50), %.1f (p90), "
           "%.1f (p99), %.1f (most)\n",
           way_name[way], count, tally->survivors - tally->wrong, tally->survivors, ms[count / 2], ms[count * 9 / 10],
           ms[count * 99 / 100], ms[count - 1]);
}

START_TEST(random_kills)
{
    const char *wish = getenv("TEST_KILLS"), *seed_text = getenv("TEST_SEED");
    const size_t kills = wish ? strtoul(wish, NULL, 10) : KILLS;
    unsigned seed = seed_text ? (unsigned)strtoul(seed_text, NULL, 10) : (unsigned)getpid();
    const struct harness_traces before = harness_look(false);
    struct tally tally[WAYS] = {0};
    size_t wrong = 0;

    printf("TEST_SEED=%u\n", seed);
    fflush(stdout);
    for (int way = 0; way < WAYS; way++)
        ck_assert_ptr_nonnull(tally[way].ms = calloc(kills + 1, sizeof(double)));
    for (size_t i = 0; i < kills; i++) {
        const struct shot shot = draw(&seed);
        shoot(&shot, &tally[shot.way]);
    }
    for (int way = 0; way < WAYS; way++) {
        print_tally((enum way)way, &tally[way]);
        wrong += tally[way].wrong;
        free(tally[way].ms);
    }
    ck_assert_msg(wrong == 0, "%zu survivors do not name the rank that died; TEST_SEED repeats it", wrong);
    harness_compare(&before);
    puts(before.alone ? "left behind: no process, descriptor or socket, nothing in /dev/shm and /tmp"
                      : "left behind: no process or descriptor (sockets and files could not be told from others')");
}
END_TEST

int main(void)
{
    const char *wish = getenv("TEST_KILLS");
    Suite *suite = suite_create("kills");
    TCase *tests = tcase_create("kills");

    tcase_set_timeout(tests, CAP + (wish ? strtod(wish, NULL) : KILLS) * 2);
    tcase_add_test(tests, random_kills);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
