// SPDX-License-Identifier: BSD-3-Clause
/* Ranks that get less than they need: no memory at any one allocation, few descriptors, a tiny /dev/shm, a memory cgroup. Whatever it is, the
 * work is right or fails on all ranks that need it with an error that says something; nobody hangs, crashes or leaves anything behind.
 *
 * TEST_STRIDE: which allocations fail, every one (1) or every so many (default: 7 by shm, 41 by tcp;
 * from a different one on each time). */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "harness.h"

enum { CAP = 60, RANKS = 3, POOR = 1, WRONG = 9, PATH = 256 };

struct want {
    const char *transports;
    long allocation;    /* of rank POOR's, the one that fails; 0: none */
    int descriptors;    /* that ranks may open beyond those that they have; -1: as many as they like */
    bool all;           /* … all ranks, not only POOR */
    size_t memory;      /* bytes to allocate in the board; 0: none */
    const char *cgroup; /* to enter; NULL: none */
};

/* ---- a rank ---- */

/* more < 0: take the limit off again. */
static void limit_descriptors(int more)
{
    struct rlimit limit;
    const int first = dup(0); /* the lowest free one */

    close(first);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = more < 0 ? limit.rlim_max : (rlim_t)(first + more);
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void enter(const char *cgroup)
{
    char path[2 * PATH];

    snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
    FILE *file = fopen(path, "w");
    if (file == NULL || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file) != 0)
        _exit(WRONG);
}

/* Sums through slots and by a plan; 0, or WRONG. */
static int sum(struct hoop_comm *comm, enum hoop_status *status)
{
    static const size_t counts[] = {1, 3000, 100000};
    static float data[100000];
    const int ranks = hoop_comm_size(comm);

    for (int call = 0; call < 6 && *status == HOOP_OK; call++) {
        const size_t count = counts[call % 3];
        for (size_t i = 0; i < count; i++)
            data[i] = (float)(hoop_comm_rank(comm) + (int)(i % 5));
        *status = hoop_all_reduce(data, data, count, HOOP_F32, HOOP_SUM, comm, NULL);
        for (size_t i = 0; i < count && *status == HOOP_OK; i++)
            if (data[i] != (float)(ranks * (ranks - 1) / 2 + ranks * (int)(i % 5)))
                return WRONG;
    }
    return 0;
}

static int work(struct harness_rank *self)
{
    const struct want *want = self->argument;
    struct hoop_comm *comm;
    void *memory = NULL;
    int code = 0;

    setenv("HOOP_TRANSPORTS", want->transports, 1);
    if (want->cgroup)
        enter(want->cgroup);
    if (want->descriptors >= 0 && (want->all || self->rank == POOR))
        limit_descriptors(want->descriptors);
    if (self->rank == POOR)
        hoop_alloc_fail_at(want->allocation);
    enum hoop_status status = hoop_comm_init_rank(&comm, self->ranks, self->id, self->rank);
    if (status == HOOP_OK) {
        if (want->memory > 0)
            status = hoop_mem_alloc(comm, &memory, want->memory);
        if (want->memory > 0 && status == HOOP_ERR_MEMORY) { /* and the communicator is as good as before */
            harness_tell(self, status, NULL);
            status = HOOP_OK;
        }
        code = sum(comm, &status);
        if (want->memory == 0 || status != HOOP_OK)
            harness_tell(self, status, comm);
        hoop_comm_destroy(comm);
    } else {
        harness_tell(self, status, NULL);
    }
    atomic_store(&self->report->stage, (int)hoop_alloc_fail_at(0));
    limit_descriptors(-1); /* what looks for leaks at the end opens files */
    return code;
}

/* ---- the tests ---- */

/* Run it; every rank has ended well, or with a reason. Returns how many ranks were well. */
static int serve(const struct want *want, struct harness *harness)
{
    char what[160];
    int well = 0;

    snprintf(what, sizeof what, "%s, allocation %ld, %d descriptors%s", want->transports, want->allocation,
             want->descriptors, want->all ? " for all" : "");
    harness_start(harness, RANKS, work, (void *)(uintptr_t)want, CAP);
    ck_assert_msg(harness_wait(harness), "%s: a rank hangs", what);
    for (int rank = 0; rank < RANKS; rank++) {
        const struct harness_report *report = &harness->report[rank];
        ck_assert_msg(harness->code[rank] == 0, "%s: rank %d ended with %d: %s", what, rank, harness->code[rank],
                      report->text);
        ck_assert_msg(report->status == HOOP_OK || report->text[0] != 0, "%s: rank %d fails with %d and says nothing",
                      what, rank, report->status);
        well += report->status == HOOP_OK;
    }
    return well;
}

START_TEST(any_allocation_fails)
{
    const struct harness_traces before = harness_look(false);
    const char *wish = getenv("TEST_STRIDE");
    const long stride = wish ? strtol(wish, NULL, 10) : _i == 0 ? 7 : 41;
    struct want want = {.transports = _i == 0 ? "shm" : "tcp", .descriptors = -1};
    struct harness harness;
    long failed = 0, borne = 0;

    setenv("HOOP_INIT_TIMEOUT", "0.2", 1); /* who fails before it joins is not awaited for long */
    for (want.allocation = 1 + (long)getpid() % stride;; want.allocation += stride) {
        const int well = serve(&want, &harness);
        if (atomic_load(&harness.report[POOR].stage) < want.allocation)
            break; /* there are no more */
        failed += well < RANKS;
        borne += well == RANKS;
    }
    printf("%s: %ld allocations, every %ld. failed: in %ld cases calls did, in %ld none\n", want.transports,
           want.allocation, stride, failed, borne);
    ck_assert_int_gt(failed, 0);
    harness_compare(&before);
}
END_TEST

START_TEST(few_descriptors)
{
    const struct harness_traces before = harness_look(false);
    struct want want = {.transports = _i == 0 ? "shm" : "tcp", .all = true};
    struct harness harness;
    int well = 0;

    setenv("HOOP_INIT_TIMEOUT", "0.2", 1);
    for (want.descriptors = 0; want.descriptors <= 40; want.descriptors += _i == 0 ? 3 : 6) {
        well = serve(&want, &harness);
        ck_assert_msg(want.descriptors > 0 || well == 0, "no descriptor is needed");
    }
    want.all = false;
    for (want.descriptors = 1; want.descriptors <= 25; want.descriptors += 11)
        serve(&want, &harness);
    want.descriptors = 60;
    unsetenv("HOOP_INIT_TIMEOUT");
    well = serve(&want, &harness);
    ck_assert_msg(well == RANKS, "60 descriptors are not enough: %s", harness.report[POOR].text);
    harness_compare(&before);
}
END_TEST

/* Shared memory has no name there and takes no room of it. */
START_TEST(tiny_dev_shm)
{
    const struct harness_traces before = harness_look(false);
    struct harness harness;

    if (!before.alone || mount("none", "/dev/shm", "tmpfs", 0, "size=64k") != 0) {
        puts("left out: no /dev/shm of its own can be made here");
        return;
    }
    ck_assert_int_eq(serve(&(struct want){.transports = "shm", .descriptors = -1, .memory = (size_t)8 << 20}, &harness),
                     RANKS);
    umount("/dev/shm");
    harness_compare(&before);
}
END_TEST

/* ---- a memory cgroup ---- */

static bool write_to(const char *folder, const char *name, const char *text)
{
    char path[2 * PATH];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int file = open(path, O_WRONLY | O_CLOEXEC); /* makes none: that folder may be no cgroup */
    if (file < 0)
        return false;
    const bool written = write(file, text, strlen(text)) == (ssize_t)strlen(text);
    close(file);
    return written;
}

/* One with a limit, of version 2 or 1. */
static bool make_cgroup(char cgroup[PATH], const char *limit)
{
    static const char *const roots[][2] = {{"/sys/fs/cgroup", "memory.max"},
                                           {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}};

    for (int i = 0; i < 2; i++) {
        snprintf(cgroup, PATH, "%s/hoop-test-%d", roots[i][0], (int)getpid());
        if (mkdir(cgroup, 0755) != 0)
            continue;
        if (write_to(cgroup, roots[i][1], limit))
            return true;
        rmdir(cgroup);
    }
    return false;
}

/* What does not fit is refused; nobody is killed for it. */
START_TEST(memory_cgroup)
{
    char cgroup[PATH];
    struct harness harness;
    const struct want want = {.transports = "shm", .descriptors = -1, .memory = (size_t)1 << 30, .cgroup = cgroup};

    if (!make_cgroup(cgroup, "536870912")) {
        printf("left out: no memory cgroup can be made here: %s\n", strerror(errno));
        return;
    }
    serve(&want, &harness);
    for (int tries = 0; tries < 1000 && rmdir(cgroup) != 0; tries++)
        usleep(1000);
    for (int rank = 0; rank < RANKS; rank++)
        ck_assert_msg(harness.report[rank].status == HOOP_ERR_MEMORY &&
                          strstr(harness.report[rank].text, "the control group ") != NULL,
                      "rank %d: %d %s", rank, harness.report[rank].status, harness.report[rank].text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scarce");
    TCase *tests = tcase_create("scarce");

    tcase_set_timeout(tests, 4 * CAP);
    tcase_add_loop_test(tests, any_allocation_fails, 0, 2);
    tcase_add_loop_test(tests, few_descriptors, 0, 2);
    tcase_add_test(tests, tiny_dev_shm);
    tcase_add_test(tests, memory_cgroup);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
