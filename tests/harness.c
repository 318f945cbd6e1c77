// SPDX-License-Identifier: BSD-3-Clause
#include "harness.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* A process that makes the id and serves it until it is killed: the test itself stays without threads, so that ranks can be
 * forked from it at any time (a sanitizer's allocator may be locked by a thread that the child does not have). */
static pid_t keep_id(struct hoop_unique_id *id)
{
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    const pid_t keeper = fork();
    ck_assert_int_ge(keeper, 0);
    if (keeper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (hoop_unique_id_create(id) != HOOP_OK)
            fprintf(stderr, "%s\n", hoop_last_error(NULL));
        else if (write(ends[1], id, sizeof *id) == sizeof *id)
            for (;;)
                pause();
        _exit(1);
    }
    close(ends[1]);
    const ssize_t got = read(ends[0], id, sizeof *id);
    close(ends[0]);
    ck_assert_msg(got == sizeof *id, "no unique id");
    return keeper;
}

void harness_start(struct harness *harness, int ranks, harness_body body, void *argument, double cap)
{
    const size_t bytes = (size_t)ranks * sizeof *harness->report;

    memset(harness, 0, sizeof *harness);
    harness->ranks = harness->left = ranks;
    harness->cap = cap;
    harness->report = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(harness->report, MAP_FAILED);
    fflush(NULL);
    harness->keeper = keep_id(&harness->id);
    for (int rank = 0; rank < ranks; rank++) {
        harness->code[rank] = -1;
        harness->process[rank] = fork();
        ck_assert_int_ge(harness->process[rank], 0);
        if (harness->process[rank] == 0) {
            struct harness_rank self = {rank, ranks, &harness->id, argument, &harness->report[rank], harness->report};
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            exit(body(&self));
        }
    }
}

static void collect(struct harness *harness, int flags)
{
    for (int rank = 0; rank < harness->ranks; rank++) {
        int status;
        if (harness->code[rank] >= 0 || waitpid(harness->process[rank], &status, flags) != harness->process[rank])
            continue;
        harness->code[rank] = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        harness->left--;
    }
}

bool harness_wait(struct harness *harness)
{
    const uint64_t deadline = hoop_deadline(harness->cap);

    while (harness->left > 0 && !hoop_expired(deadline)) {
        collect(harness, WNOHANG);
        usleep(1000);
    }
    const bool in_time = harness->left == 0;
    for (int rank = 0; rank < harness->ranks; rank++)
        if (harness->code[rank] < 0)
            kill(harness->process[rank], SIGKILL);
    collect(harness, 0);
    kill(harness->keeper, SIGKILL);
    waitpid(harness->keeper, NULL, 0);
    return in_time;
}

void harness_stage(struct harness *harness, int rank, int stage)
{
    const uint64_t deadline = hoop_deadline(harness->cap);

    while (atomic_load(&harness->report[rank].stage) < stage) {
        ck_assert_msg(!hoop_expired(deadline), "rank %d did not reach stage %d: %s", rank, stage,
                      harness->report[rank].text);
        usleep(500);
    }
}

void harness_meet(const struct harness_rank *rank, int stage)
{
    atomic_store(&rank->report->stage, stage);
    for (int i = 0; i < rank->ranks; i++)
        while (atomic_load(&rank->reports[i].stage) < stage)
            usleep(500);
}

void harness_run(int ranks, harness_body body, void *argument, double cap)
{
    struct harness harness;

    harness_start(&harness, ranks, body, argument, cap);
    const bool in_time = harness_wait(&harness);
    for (int rank = 0; rank < ranks; rank++)
        ck_assert_msg(in_time && harness.code[rank] == 0, "%d ranks: rank %d ended with %d%s: %s", ranks, rank,
                      harness.code[rank], in_time ? "" : " (cap reached)", harness.report[rank].text);
}

/* ---- threads ---- */

struct threaded {
    pthread_t thread;
    int rank, code;
    struct hoop_comm *comm;
    void *argument;
    harness_thread_body body;
};

static void *run_thread(void *argument)
{
    struct threaded *self = argument;

    self->code = self->body(self->rank, self->comm, self->argument);
    return NULL;
}

void harness_threads(int ranks, harness_thread_body body, void *argument)
{
    struct hoop_comm *comms[HARNESS_MOST];
    struct threaded thread[HARNESS_MOST];

    ck_assert_msg(hoop_comm_init_all(comms, ranks) == HOOP_OK, "%d ranks: %s", ranks, hoop_last_error(NULL));
    for (int rank = 0; rank < ranks; rank++) {
        thread[rank] = (struct threaded){.rank = rank, .comm = comms[rank], .argument = argument, .body = body};
        ck_assert_int_eq(pthread_create(&thread[rank].thread, NULL, run_thread, &thread[rank]), 0);
    }
    for (int rank = 0; rank < ranks; rank++)
        pthread_join(thread[rank].thread, NULL);
    for (int rank = 0; rank < ranks; rank++)
        ck_assert_msg(thread[rank].code == 0, "%d ranks as threads: rank %d returned %d", ranks, rank,
                      thread[rank].code);
}

/* ---- in a rank ---- */

int harness_tell(struct harness_rank *rank, enum hoop_status status, const struct hoop_comm *comm)
{
    rank->report->at = hoop_now();
    rank->report->status = status;
    snprintf(rank->report->text, sizeof rank->report->text, "%s", hoop_last_error(comm));
    return 1;
}

struct hoop_comm *harness_join(struct harness_rank *rank)
{
    struct hoop_comm *comm = NULL;
    enum hoop_status status = hoop_comm_init_rank(&comm, rank->ranks, rank->id, rank->rank);

    if (status != HOOP_OK)
        harness_tell(rank, status, NULL);
    return comm;
}

int harness_refused(struct harness_rank *rank)
{
    struct hoop_comm *comm = harness_join(rank);

    return comm != NULL || rank->report->status != HOOP_ERR_SETUP || strstr(rank->report->text, rank->argument) == NULL;
}

void harness_last_plan(const struct hoop_comm *comm, char name[HARNESS_PLAN])
{
    struct hoop_stats stats = {.size = sizeof stats};

    name[0] = 0;
    if (hoop_stats(comm, &stats) == HOOP_OK)
        snprintf(name, HARNESS_PLAN, "%s", stats.last_plan);
}

void harness_last_algorithm(const struct hoop_comm *comm, char name[HARNESS_PLAN])
{
    harness_last_plan(comm, name);
    name[strcspn(name, "/")] = 0;
}

/* ---- in the test ---- */

void harness_file(char path[HARNESS_PATH], const char *text)
{
    snprintf(path, HARNESS_PATH, "/tmp/hoop-test-XXXXXX");
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    if (text == NULL)
        unlink(path);
    else
        ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
}

int harness_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);

    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- traces ---- */

static int count_entries(const char *folder)
{
    int count = 0;
    struct dirent *entry;
    DIR *list = opendir(folder);

    while (list && (entry = readdir(list)) != NULL)
        count += entry->d_name[0] != '.';
    if (list)
        closedir(list);
    return count;
}

/* Sockets of a list of /proc/net, but not those of closed connections that only wait for stray packets. */
static int count_sockets(const char *path)
{
    char line[512];
    int count = 0;
    FILE *file = fopen(path, "re");

    while (file && fgets(line, sizeof line, file))
        count += strstr(line, " 06 ") == NULL;
    if (file)
        fclose(file);
    return count;
}

static struct harness_traces count_traces(bool alone)
{
    return (struct harness_traces){.shm = alone ? count_entries("/dev/shm") : 0,
                                   .tmp = alone ? count_entries("/tmp") : 0,
                                   .sockets =
                                       alone ? count_sockets("/proc/net/unix") + count_sockets("/proc/net/tcp") : 0,
                                   .descriptors = count_entries("/proc/self/fd"),
                                   .alone = alone};
}

/* lo of a new network namespace is down; the rendezvous listens on it. */
static bool raise_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    const int socket_of_any_kind = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (socket_of_any_kind < 0)
        return false;
    request.ifr_flags = IFF_UP;
    const bool up = ioctl(socket_of_any_kind, SIOCSIFFLAGS, &request) == 0;
    close(socket_of_any_kind);
    return up;
}

static bool set_apart(void)
{
    /* The network last: a process that got it but not the rest would sit there with lo down. */
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("hoop-test", "/tmp", "tmpfs", 0, "size=16m") == 0 &&
           mount("hoop-test", "/dev/shm", "tmpfs", 0, "size=64k") == 0 && unshare(CLONE_NEWNET) == 0 &&
           raise_loopback();
}

struct harness_traces harness_look(bool makes_ids)
{
    struct hoop_unique_id id;
    const bool alone = set_apart();

    if (makes_ids) { /* what a process keeps from its first id on is not a leak */
        ck_assert_int_eq(hoop_unique_id_create(&id), HOOP_OK);
        usleep(50000);
    }
    return count_traces(alone);
}

void harness_compare(const struct harness_traces *before)
{
    struct harness_traces now = count_traces(before->alone);

    for (int tries = 0; tries < 2000;
         tries++, now = count_traces(before->alone)) { /* the kernel may still be tidying up */
        if (now.shm == before->shm && now.tmp == before->tmp && now.sockets <= before->sockets &&
            now.descriptors <= before->descriptors)
            break;
        usleep(1000);
    }
    ck_assert_int_eq(now.shm, before->shm);
    ck_assert_int_eq(now.tmp, before->tmp);
    ck_assert_int_le(now.sockets, before->sockets);
    ck_assert_int_le(now.descriptors, before->descriptors);
    ck_assert_msg(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a child process is left");
}
