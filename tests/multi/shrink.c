// SPDX-License-Identifier: BSD-3-Clause
/* hoop_comm_shrink: whoever dies, before or meanwhile, the survivors get one smaller communicator that works, in their old order.
 * Hosts here are groups of ranks that pass for such (HOOP_HOST): shared memory inside, tcp between. test_hosts.sh has real ones. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

enum { CAP = 60, READY = 1, MOST_VICTIMS = 4 };

struct deaths {
    int victims, victim[MOST_VICTIMS];
    int late, after;   /* a rank that dies in shrink (-1: none), so many us after it has begun */
    bool stops;        /* victims are stopped, not killed */
    const char *hosts; /* a letter for each rank's; NULL: all are on one */
};

static bool is_victim(const struct deaths *deaths, int rank)
{
    for (int i = 0; i < deaths->victims; i++)
        if (deaths->victim[i] == rank)
            return true;
    return false;
}

static void die(int signal)
{
    (void)signal;
    raise(SIGKILL);
}

static void die_after(int microseconds)
{
    const struct sigaction action = {.sa_handler = die};

    sigaction(SIGALRM, &action, NULL);
    ualarm((useconds_t)microseconds + 1, 0);
}

/* The members' old ranks, gathered: each is there once, in order, and no victim is. */
static enum hoop_status use(const struct harness_rank *self, struct hoop_comm *smaller)
{
    const struct deaths *deaths = self->argument;
    int members[HARNESS_MOST], sum = self->rank, want = 0;
    const int size = hoop_comm_size(smaller);

    enum hoop_status status = hoop_all_gather(&self->rank, members, sizeof(int), HOOP_U8, smaller, NULL);
    if (status == HOOP_OK)
        status = hoop_all_reduce(&sum, &sum, 1, HOOP_I32, HOOP_SUM, smaller, NULL);
    if (status != HOOP_OK)
        return status;
    for (int i = 0; i < size; i++) {
        want += members[i];
        if (is_victim(deaths, members[i]) || (i > 0 && members[i] <= members[i - 1]))
            return HOOP_ERR_INTERNAL;
    }
    const int least = self->ranks - deaths->victims - (deaths->late >= 0);
    return sum == want && members[hoop_comm_rank(smaller)] == self->rank && size >= least &&
                   size <= self->ranks - deaths->victims
               ? HOOP_OK
               : HOOP_ERR_INTERNAL;
}

/* The rank that dies late may have been in: then the new communicator fails, and is shrunk once more. */
static enum hoop_status go_on(struct harness_rank *self, struct hoop_comm *comm)
{
    const struct deaths *deaths = self->argument;
    struct hoop_comm *smaller;

    for (int i = 0; i < 3; i++) {
        enum hoop_status status = hoop_comm_shrink(comm, &smaller);
        if (status != HOOP_OK)
            return status;
        hoop_comm_destroy(comm);
        comm = smaller;
        status = use(self, comm);
        if (status != HOOP_ERR_PEER)
            return status == HOOP_OK ? hoop_comm_destroy(comm) : status;
        if (deaths->late < 0)
            return status;
    }
    return HOOP_ERR_INTERNAL;
}

static struct hoop_comm *join(struct harness_rank *self)
{
    const struct deaths *deaths = self->argument;

    if (deaths->hosts)
        setenv("HOOP_HOST", (char[]){deaths->hosts[self->rank], 0}, 1);
    return harness_join(self);
}

static int body(struct harness_rank *self)
{
    const struct deaths *deaths = self->argument;
    struct hoop_comm *comm = join(self), *none;
    float data[1000] = {0};
    enum hoop_status status = HOOP_OK;

    if (comm == NULL)
        return 1;
    if (hoop_comm_shrink(comm, &none) != HOOP_ERR_ARG) /* nothing has failed */
        return harness_tell(self, HOOP_ERR_INTERNAL, comm);
    atomic_store(&self->report->stage, READY);
    while (status == HOOP_OK)
        status = hoop_all_reduce(data, data, 1000, HOOP_F32, HOOP_SUM, comm, NULL);
    if (self->rank == deaths->late)
        die_after(deaths->after);
    status = go_on(self, comm);
    harness_tell(self, status, NULL);
    return status == HOOP_OK ? 0 : 1;
}

struct game {
    struct harness harness;
    const struct deaths *deaths;
    char text[128];
};

static void begin(struct game *game, int ranks, const struct deaths *deaths)
{
    struct harness *harness = &game->harness;

    game->deaths = deaths;
    snprintf(game->text, sizeof game->text, "ranks %d, hosts %s, victims %d: %d %d, late %d after %d us", ranks,
             deaths->hosts ? deaths->hosts : "one", deaths->victims, deaths->victim[0], deaths->victim[1], deaths->late,
             deaths->after);
    harness_start(harness, ranks, body, (void *)(uintptr_t)deaths, CAP);
    for (int rank = 0; rank < ranks; rank++)
        harness_stage(harness, rank, READY);
    for (int i = 0; i < deaths->victims; i++)
        kill(harness->process[deaths->victim[i]], deaths->stops ? SIGSTOP : SIGKILL);
}

static void end(struct game *game)
{
    const struct deaths *deaths = game->deaths;
    struct harness *harness = &game->harness;

    for (int rank = 0; deaths->stops && rank < harness->ranks; rank++)
        while (!is_victim(deaths, rank) && harness->report[rank].at == 0)
            usleep(10000);
    for (int i = 0; deaths->stops && i < deaths->victims; i++)
        kill(harness->process[deaths->victim[i]], SIGKILL);
    ck_assert_msg(harness_wait(harness), "%s: the survivors hang", game->text);
    for (int rank = 0; rank < harness->ranks; rank++)
        if (!is_victim(deaths, rank) && rank != deaths->late)
            ck_assert_msg(harness->code[rank] == 0, "%s: rank %d: %d %s", game->text, rank,
                          harness->report[rank].status, harness->report[rank].text);
}

static void run(int ranks, const struct deaths *deaths)
{
    struct game game;

    begin(&game, ranks, deaths);
    end(&game);
}

START_TEST(one_dies)
{
    const struct harness_traces before = harness_look(false);

    setenv("HOOP_SILENT", "600", 1); /* the dead are not waited for until they are silent */
    for (int ranks = 2; ranks <= 8; ranks++)
        for (int victim = 0; victim<ranks; victim += ranks> 4 ? ranks - 1 : 1)
            run(ranks, &(struct deaths){.victims = 1, .victim = {victim}, .late = -1});
    harness_compare(&before);
}
END_TEST

START_TEST(two_die_at_once)
{
    setenv("HOOP_SILENT", "600", 1);
    for (int ranks = 3; ranks <= 8; ranks += 2) {
        run(ranks, &(struct deaths){.victims = 2, .victim = {0, 1}, .late = -1});
        run(ranks, &(struct deaths){.victims = 2, .victim = {1, ranks - 1}, .late = -1});
    }
}
END_TEST

/* The first of the survivors, or another one, dies at some moment of the agreement or of making. */
START_TEST(one_dies_meanwhile)
{
    static const int after[] = {0, 2000};

    for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        for (int late = 1; late < 4; late += 2)
            run(5, &(struct deaths){.victims = 1, .victim = {0}, .late = late, .after = after[i]});
}
END_TEST

/* On one host, and on several, where the first ranks of two are stopped. */
START_TEST(stopped_ranks_are_left_out)
{
    static const struct deaths one = {.victims = 2, .victim = {0, 2}, .late = -1, .stops = true},
                               several = {.victims = 2, .victim = {0, 2}, .late = -1, .stops = true, .hosts = "aabbc"};
    struct game game[2];

    setenv("HOOP_SILENT", "2", 1);
    begin(&game[0], 4, &one);
    begin(&game[1], 5, &several);
    end(&game[0]);
    end(&game[1]);
}
END_TEST

/* A rank; a host's first; the whole of one, also that of rank 0; all firsts; all but one rank. */
START_TEST(one_dies_of_several_hosts)
{
    static const struct deaths cases[] = {
        {.victims = 1, .victim = {3}, .late = -1, .hosts = "aabb"},
        {.victims = 1, .victim = {2}, .late = -1, .hosts = "aabb"},
        {.victims = 1, .victim = {0}, .late = -1, .hosts = "aabb"},
        {.victims = 2, .victim = {2, 3}, .late = -1, .hosts = "aabbcc"},
        {.victims = 2, .victim = {0, 1}, .late = -1, .hosts = "aabbcc"},
        {.victims = 3, .victim = {0, 2, 4}, .late = -1, .hosts = "aabbcc"},
        {.victims = 4, .victim = {0, 1, 2, 4}, .late = -1, .hosts = "abbcca"},
        {.victims = 4, .victim = {0, 1, 2, 3}, .late = -1, .hosts = "aabbc"},
        {.victims = 1, .victim = {0}, .late = -1, .hosts = "abcd"},
    };
    const struct harness_traces before = harness_look(false);

    setenv("HOOP_SILENT", "600", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run((int)strlen(cases[i].hosts), &cases[i]);
    harness_compare(&before);
}
END_TEST

START_TEST(one_of_several_hosts_dies_meanwhile)
{
    setenv("HOOP_SILENT", "600", 1);
    run(6, &(struct deaths){.victims = 1, .victim = {0}, .late = 1, .after = 3000, .hosts = "aabbcc"});
    run(6, &(struct deaths){.victims = 1, .victim = {2}, .late = 3, .after = 12000, .hosts = "abcabc"});
}
END_TEST

static int do_not_come(struct harness_rank *self)
{
    struct hoop_comm *comm = join(self), *smaller;

    if (comm == NULL)
        return 1;
    if (self->rank == 0)
        hoop_comm_abort(comm);
    while (hoop_comm_async_error(comm) == HOOP_OK)
        usleep(1000);
    if (self->rank == 2) {
        while (self->reports[0].at == 0 || self->reports[1].at == 0)
            usleep(1000);
        hoop_comm_destroy(comm);
        return 0;
    }
    harness_tell(self, hoop_comm_shrink(comm, &smaller), NULL);
    hoop_comm_destroy(comm);
    return 0;
}

START_TEST(who_does_not_come_is_named)
{
    struct harness harness;

    setenv("HOOP_INIT_TIMEOUT", "0.5", 1);
    harness_start(&harness, 3, do_not_come, &(struct deaths){.hosts = _i ? "abb" : NULL}, CAP);
    ck_assert(harness_wait(&harness));
    for (int rank = 0; rank < 2; rank++) {
        ck_assert_int_eq(harness.report[rank].status, HOOP_ERR_TIMEOUT);
        ck_assert_msg(strstr(harness.report[rank].text, "have not called it within HOOP_INIT_TIMEOUT: 2"), "%s",
                      harness.report[rank].text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shrink");
    TCase *tests = tcase_create("shrink");

    tcase_set_timeout(tests, 2 * CAP);
    tcase_add_test(tests, one_dies);
    tcase_add_test(tests, two_die_at_once);
    tcase_add_test(tests, one_dies_meanwhile);
    tcase_add_test(tests, stopped_ranks_are_left_out);
    tcase_add_test(tests, one_dies_of_several_hosts);
    tcase_add_test(tests, one_of_several_hosts_dies_meanwhile);
    tcase_add_loop_test(tests, who_does_not_come_is_named, 0, 2);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
