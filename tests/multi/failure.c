// SPDX-License-Identifier: BSD-3-Clause
/* What happens when ranks die, stop, come late or leave (they disagree: mismatch.c): every other rank's call ends, names the same culprit, and
 * nothing is left behind. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cases.h"
#include "harness.h"
#include "tsan.h"

enum { CAP = 60, VICTIM_READY = 1 };

/* ---- bodies ---- */

struct load {
    size_t count; /* elements of each call */
    size_t held;  /* bytes that rank 1 holds */
    bool forked;  /* each rank has a child that outlives it */
    bool idle;    /* ranks sleep between calls */
    int calls;    /* before the body ends by itself */
};

/* Call until something fails; report that. */
static int keep_calling(struct harness_rank *self)
{
    const struct load *load = self->argument;
    struct hoop_comm *comm = harness_join(self);
    void *memory = NULL, *held = NULL;

    if (comm == NULL)
        return 1;
    if (load->held && self->rank == 1) {
        held = mmap(NULL, load->held, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        ck_assert_ptr_ne(held, MAP_FAILED);
    }
    if (load->forked && fork() == 0) {
        sleep(CAP);
        _exit(0);
    }
    enum hoop_status status = hoop_mem_alloc(comm, &memory, load->count * sizeof(float) + 1);
    for (int call = 0; status == HOOP_OK && call < load->calls; call++) {
        status = hoop_all_reduce(memory, memory, load->count, HOOP_F32, HOOP_MAX, comm, NULL);
        if (call == 10)
            atomic_store(&self->report->stage, VICTIM_READY);
        if (load->idle)
            usleep(1000);
    }
    harness_tell(self, status, comm);
    if (status != HOOP_OK && hoop_barrier(comm, NULL) != status) /* later calls tell the same */
        self->report->status = HOOP_ERR_INTERNAL;
    hoop_comm_destroy(comm);
    return 0;
}

/* All survivors name the victim with this status, in words that hold `word`. Returns the slowest, in ms after `since`. */
static double check_survivors(const struct harness *harness, int victim, enum hoop_status status, const char *word,
                              uint64_t since)
{
    char name[32];
    double slowest = 0;

    snprintf(name, sizeof name, "rank %d", victim);
    for (int rank = 0; rank < harness->ranks; rank++) {
        const struct harness_report *report = &harness->report[rank];
        if (rank == victim)
            continue;
        const double ms = ((double)report->at - (double)since) / 1e6;
        slowest = ms > slowest ? ms : slowest;
        const char *cause = strstr(report->text, ": "); /* behind "rank N: ", which names the speaker */
        ck_assert_msg(report->status == status, "rank %d: status %d, must be %d: %s", rank, report->status, status,
                      report->text);
        ck_assert_msg(cause && strstr(cause, name) && strstr(cause, word), "rank %d blames: %s", rank, report->text);
    }
    return slowest;
}

/* ---- death ---- */

static void kill_one(int ranks, int victim, struct load load)
{
    struct harness harness;

    harness_start(&harness, ranks, keep_calling, &load, CAP);
    for (int rank = 0; rank < ranks; rank++)
        harness_stage(&harness, rank, VICTIM_READY);
    usleep((useconds_t)(victim * 1700)); /* somewhere in a call */
    const uint64_t killed = hoop_now();
    kill(harness.process[victim], SIGKILL);
    ck_assert_msg(harness_wait(&harness), "the survivors hang");
    ck_assert_int_eq(harness.code[victim], 128 + SIGKILL);
    const double slowest = check_survivors(&harness, victim, HOOP_ERR_PEER, "died", killed);
    printf("kill -9 of rank %d of %d, %zu floats%s%s: slowest survivor knew after %.1f ms\n", victim, ranks, load.count,
           load.held ? ", memory held" : "", load.forked ? ", forked child" : "", slowest);
}

START_TEST(kill_any_rank)
{
    static const size_t counts[] = {2, 20000, 3000000};
    const struct harness_traces before = harness_look(false);

    for (size_t i = 0; i < 3; i++)
        for (int ranks = 2; ranks <= 5; ranks += 3)
            for (int victim = 0; victim < ranks; victim += 2)
                kill_one(ranks, victim, (struct load){.count = counts[i], .calls = 1 << 30});
    kill_one(3, 1, (struct load){.count = 2, .idle = true, .calls = 1 << 30});
    harness_compare(&before);
}
END_TEST

START_TEST(kill_with_memory_held)
{
    const char *gigabytes = getenv("TEST_GIGABYTES"); /* for a long run: 8 */
    const size_t held = (size_t)(gigabytes ? strtol(gigabytes, NULL, 10) : 1) << 30;

    kill_one(2, 1, (struct load){.count = 2, .held = held, .calls = 1 << 30});
}
END_TEST

START_TEST(kill_with_forked_child)
{
    kill_one(3, 1, (struct load){.count = 2, .forked = true, .calls = 1 << 30});
}
END_TEST

static int exit_early(struct harness_rank *self)
{
    if (self->rank == 1) {
        struct hoop_comm *comm = harness_join(self);
        _exit(comm ? 7 : 1);
    }
    return keep_calling(self);
}

START_TEST(exit_without_destroy)
{
    struct harness harness;
    struct load load = {.count = 5, .calls = 1 << 30};

    harness_start(&harness, 3, exit_early, &load, CAP);
    ck_assert(harness_wait(&harness));
    ck_assert_int_eq(harness.code[1], 7);
    check_survivors(&harness, 1, HOOP_ERR_PEER, "died", 0);
}
END_TEST

static int leave_early(struct harness_rank *self)
{
    struct load load = {.count = 5, .calls = self->rank == 2 ? 0 : 1 << 30};

    self->argument = &load;
    if (self->rank != 2)
        return keep_calling(self);
    struct hoop_comm *comm = harness_join(self);
    if (comm == NULL)
        return 1;
    hoop_comm_abort(comm);
    hoop_comm_destroy(comm);
    return 0;
}

START_TEST(abort_on_one_rank)
{
    struct harness harness;

    harness_start(&harness, 3, leave_early, NULL, CAP);
    ck_assert(harness_wait(&harness));
    check_survivors(&harness, 2, HOOP_ERR_ABORTED, "abort", 0);
}
END_TEST

/* Two die at once, or one dies while another aborts: one of them is named, the same one by all of a host. */
static int abort_when_told(struct harness_rank *self)
{
    struct load load = {.count = 20000, .calls = 1 << 30};
    struct hoop_comm *comm;

    self->argument = &load;
    if (self->rank != 1)
        return keep_calling(self);
    comm = harness_join(self);
    if (comm == NULL)
        return 1;
    float *data = calloc(load.count, sizeof *data);
    for (int call = 0; call < 20; call++)
        hoop_all_reduce(data, data, load.count, HOOP_F32, HOOP_MAX, comm, NULL);
    atomic_store(&self->report->stage, VICTIM_READY);
    while (atomic_load(&self->reports[0].stage) == 0 || atomic_load(&self->reports[2].stage) == 0)
        usleep(100);
    free(data);
    hoop_comm_abort(comm);
    hoop_comm_destroy(comm);
    return 0;
}

static void two_at_once(bool aborts, const char *transports)
{
    struct load load = {.count = 20000, .calls = 1 << 30};
    struct harness harness;

    setenv("HOOP_TRANSPORTS", transports, 1);
    harness_start(&harness, 4, aborts ? abort_when_told : keep_calling, &load, CAP);
    for (int rank = 0; rank < 4; rank++)
        harness_stage(&harness, rank, VICTIM_READY);
    if (!aborts)
        kill(harness.process[1], SIGKILL);
    kill(harness.process[2], SIGKILL);
    ck_assert_msg(harness_wait(&harness), "the survivors hang");
    for (int rank = 0; rank < 4; rank += 3) {
        const struct harness_report *report = &harness.report[rank];
        const char *cause = strstr(report->text, ": ");
        const bool first = cause && strstr(cause, aborts ? "rank 1 called hoop_comm_abort" : "rank 1 (process "),
                   second = cause && strstr(cause, "rank 2 (process ");
        ck_assert_msg(report->status == (first && aborts ? HOOP_ERR_ABORTED : HOOP_ERR_PEER) && (first || second),
                      "%s: rank %d: %d %s", transports, rank, report->status, report->text);
    }
    if (strcmp(transports, "shm") == 0)
        ck_assert_str_eq(strchr(harness.report[0].text, ':'), strchr(harness.report[3].text, ':'));
}

START_TEST(two_causes_at_once)
{
    const struct harness_traces before = harness_look(false);

    two_at_once(false, "shm");
    two_at_once(true, "shm");
    two_at_once(false, "tcp");
    two_at_once(true, "tcp");
    harness_compare(&before);
}
END_TEST

/* ---- silence ---- */

START_TEST(stopped_rank)
{
    struct harness harness;
    struct load load = {.count = 5, .calls = 1 << 30};

    setenv("HOOP_SILENT", "1", 1);
    harness_start(&harness, 3, keep_calling, &load, CAP);
    for (int rank = 0; rank < 3; rank++)
        harness_stage(&harness, rank, VICTIM_READY);
    kill(harness.process[1], SIGSTOP);
    const uint64_t stopped = hoop_now(), deadline = hoop_deadline(CAP);
    while (harness.report[0].text[0] == 0 && !hoop_expired(deadline))
        usleep(1000);
    kill(harness.process[1], SIGKILL);
    ck_assert(harness_wait(&harness));
    printf("SIGSTOP with HOOP_SILENT=1: known after %.0f ms\n",
           check_survivors(&harness, 1, HOOP_ERR_PEER, "no sign of life", stopped));
}
END_TEST

START_TEST(stopped_for_a_short_time)
{
    struct harness harness;
    struct load load = {.count = 5, .calls = 200, .idle = true};

    harness_start(&harness, 3, keep_calling, &load, CAP);
    for (int rank = 0; rank < 3; rank++)
        harness_stage(&harness, rank, VICTIM_READY);
    kill(harness.process[1], SIGSTOP);
    usleep(700000);
    kill(harness.process[1], SIGCONT);
    ck_assert(harness_wait(&harness));
    for (int rank = 0; rank < 3; rank++)
        ck_assert_msg(harness.report[rank].status == HOOP_OK, "rank %d: %s", rank, harness.report[rank].text);
}
END_TEST

/* ---- lateness ---- */

static int come_late(struct harness_rank *self)
{
    char line[512], path[] = "/tmp/hoop-late-XXXXXX";
    bool reported = false;
    FILE *log = NULL;

    if (self->rank == 0) { /* catch our own log */
        const int file = mkstemp(path);
        dup2(file, STDERR_FILENO);
        log = fdopen(file, "r");
        unlink(path);
    }
    struct hoop_comm *comm = harness_join(self);
    if (comm == NULL)
        return 1;
    if (self->rank == 2)
        usleep(2000000);
    const enum hoop_status status = hoop_barrier(comm, NULL);
    if (log) {
        rewind(log);
        while (fgets(line, sizeof line, log))
            reported |= strstr(line, "have not made it yet: 2") != NULL;
    }
    harness_tell(self, status, comm);
    const bool as_expected = self->argument ? status == HOOP_ERR_TIMEOUT : status == HOOP_OK && (!log || reported);
    hoop_comm_destroy(comm);
    return as_expected ? 0 : 1;
}

START_TEST(late_rank_is_reported)
{
    setenv("HOOP_LATE", "0.5", 1);
    harness_run(3, come_late, NULL, CAP);
}
END_TEST

START_TEST(late_rank_fails_with_timeout)
{
    struct harness harness;

    setenv("HOOP_TIMEOUT", "1", 1);
    harness_start(&harness, 3, come_late, &harness, CAP);
    ck_assert(harness_wait(&harness));
    check_survivors(&harness, 2, HOOP_ERR_TIMEOUT, "late", 0);
}
END_TEST

static int stay_away(struct harness_rank *self)
{
    if (self->rank == 2)
        return 0;
    return harness_join(self) == NULL ? 0 : 1;
}

START_TEST(missing_rank_at_init)
{
    struct harness harness;

    setenv("HOOP_INIT_TIMEOUT", "1.5", 1);
    harness_start(&harness, 4, stay_away, NULL, CAP);
    ck_assert(harness_wait(&harness));
    for (int rank = 0; rank < 4; rank++) {
        const struct harness_report *report = &harness.report[rank];
        ck_assert_int_eq(harness.code[rank], 0);
        ck_assert_msg(rank == 2 || (report->status == HOOP_ERR_TIMEOUT && strstr(report->text, "2")), "%s",
                      report->text);
    }
}
END_TEST

/* ---- the end ---- */

static int finalize_and_exit(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    if (comm == NULL)
        return 1;
    const enum hoop_status status = hoop_comm_finalize(comm);
    if (self->rank == 1)
        _exit(status == HOOP_OK ? 0 : 1); /* without destroy, while the others may still be in finalize */
    return status == HOOP_OK && hoop_comm_destroy(comm) == HOOP_OK ? 0 : harness_tell(self, status, comm);
}

START_TEST(exit_after_finalize_blames_nobody)
{
    for (int round = 0; round < 30; round++)
        harness_run(3, finalize_and_exit, NULL, CAP);
}
END_TEST

/* Calls wait on a stream when a peer dies; then the communicator is destroyed before the stream. */
static int destroy_with_calls_queued(struct harness_rank *self)
{
    static float data[300000];
    struct hoop_comm *comm = harness_join(self);
    hoop_stream *stream;

    if (comm == NULL || hoop_stream_create(&stream) != HOOP_OK)
        return 1;
    if (self->rank == 1)
        raise(SIGKILL);
    int queued = 0; /* none if the death is known already */
    while (queued < 20 && hoop_all_reduce(data, data, 300000, HOOP_F32, HOOP_MAX, comm, stream) == HOOP_OK)
        queued++;
    hoop_comm_destroy(comm);
    const enum hoop_status status = hoop_stream_destroy(stream);
    return status == (queued ? HOOP_ERR_PEER : HOOP_OK) ? 0 : harness_tell(self, status, NULL);
}

START_TEST(destroy_before_the_stream)
{
    struct harness harness;

    for (int round = 0; round < 10; round++) {
        harness_start(&harness, 3, destroy_with_calls_queued, NULL, CAP);
        ck_assert(harness_wait(&harness));
        ck_assert_int_eq(harness.code[0], 0);
        ck_assert_int_eq(harness.code[2], 0);
    }
}
END_TEST

static int just_destroy(int rank, struct hoop_comm *comm, void *argument)
{
    (void)rank;
    (void)argument;
    return hoop_barrier(comm, NULL) != HOOP_OK || hoop_comm_destroy(comm) != HOOP_OK;
}

static int no_memory_for_the_stream(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);
    hoop_stream *stream;
    float x[4] = {0};

    if (comm == NULL || hoop_stream_create(&stream) != HOOP_OK)
        return 1;
    if (self->rank == 1)
        hoop_alloc_fail_at(1);
    enum hoop_status status = hoop_all_reduce(x, x, 4, HOOP_F32, HOOP_SUM, comm, stream);
    hoop_alloc_fail_at(0);
    if (status == HOOP_OK)
        status = hoop_stream_synchronize(stream);
    harness_tell(self, status, comm);
    hoop_comm_destroy(comm);
    hoop_stream_destroy(stream);
    return 0;
}

START_TEST(peers_learn_what_never_came_to_its_stream)
{
    struct harness harness;

    harness_start(&harness, 3, no_memory_for_the_stream, NULL, CAP);
    ck_assert(harness_wait(&harness));
    ck_assert_int_eq(harness.report[1].status, HOOP_ERR_MEMORY);
    check_survivors(&harness, 1, HOOP_ERR_PEER, "failed", 0);
}
END_TEST

START_TEST(many_communicators_leave_nothing)
{
    const struct harness_traces before = harness_look(true);

    for (int round = 0; round < 200; round++)
        harness_threads(3, just_destroy, NULL);
    harness_compare(&before);
}
END_TEST

/* A long transfer that moves all the time is not late, however long it takes. */
static int move_slowly(struct harness_rank *self)
{
    const size_t count = (size_t)48 << 20;
    unsigned char *data = malloc(count);
    struct hoop_comm *comm = harness_join(self);
    enum hoop_status status = HOOP_OK;

    if (comm == NULL || data == NULL)
        return 1;
    memset(data, self->rank, count);
    for (int call = 0; status == HOOP_OK && call < 8; call++)
        status = hoop_broadcast(data, data, count, HOOP_U8, 0, comm, NULL);
    free(data);
    return status == HOOP_OK && hoop_comm_destroy(comm) == HOOP_OK ? 0 : harness_tell(self, status, comm);
}

START_TEST(moving_is_not_late)
{
    setenv("HOOP_TIMEOUT", "2", 1); /* far above one wait, also on a busy machine; the whole takes longer there */
    harness_run(2, move_slowly, NULL, CAP);
}
END_TEST

/* ---- misuse ---- */

/* The parent's communicator is refused; one of its own works. */
static int in_the_child(struct hoop_comm *parents, void *memory)
{
    struct hoop_comm *own[1];

    if (hoop_barrier(parents, NULL) != HOOP_ERR_UNSUPPORTED || strstr(hoop_last_error(NULL), "fork") == NULL)
        return 1;
    if (hoop_mem_free(parents, memory) != HOOP_ERR_UNSUPPORTED || hoop_comm_destroy(parents) != HOOP_ERR_UNSUPPORTED)
        return 2;
    harness_threads(3, just_destroy, NULL);
    return hoop_comm_init_all(own, 1) == HOOP_OK && hoop_comm_destroy(own[0]) == HOOP_OK ? 0 : 3;
}

static int fork_after_init(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);
    int code;

    if (comm == NULL)
        return 1;
    unsigned char *memory;
    if (hoop_mem_alloc(comm, (void **)&memory, 100) != HOOP_OK)
        return harness_tell(self, HOOP_ERR_INTERNAL, NULL);
    memory[99] = 7;
    const pid_t child = fork();
    if (child == 0)
        _exit(in_the_child(comm, memory));
    if (waitpid(child, &code, 0) != child || code != 0 || memory[99] != 7)
        return harness_tell(self, HOOP_ERR_INTERNAL, NULL);
    const enum hoop_status status = hoop_barrier(comm, NULL);
    return status == HOOP_OK && hoop_comm_destroy(comm) == HOOP_OK ? 0 : harness_tell(self, status, comm);
}

START_TEST(forked_child_is_refused)
{
    harness_run(2, fork_after_init, NULL, CAP);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("failures");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 150);
    tcase_add_test(tests, kill_any_rank);
    tcase_add_test(tests, kill_with_memory_held);
    tcase_add_test(tests, kill_with_forked_child);
    tcase_add_test(tests, exit_without_destroy);
    tcase_add_test(tests, abort_on_one_rank);
    tcase_add_test(tests, two_causes_at_once);
    tcase_add_test(tests, stopped_rank);
    tcase_add_test(tests, stopped_for_a_short_time);
    tcase_add_test(tests, late_rank_is_reported);
    tcase_add_test(tests, late_rank_fails_with_timeout);
    tcase_add_test(tests, missing_rank_at_init);
    tcase_add_test(tests, exit_after_finalize_blames_nobody);
    tcase_add_test(tests, destroy_before_the_stream);
    tcase_add_test(tests, peers_learn_what_never_came_to_its_stream);
    tcase_add_test(tests, many_communicators_leave_nothing);
    tcase_add_test(tests, moving_is_not_late);
    if (!UNDER_TSAN)
        tcase_add_test(tests, forked_child_is_refused);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
