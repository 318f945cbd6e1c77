// SPDX-License-Identifier: BSD-3-Clause
/* A rank dies, or dawdles, or something breaks, at each of the library's fault points (base/faults.def), in a build with --enable-faults.
 *
 * A first run of each scenario counts how often every rank visits every point. Then, for each point, one of the ranks that come by there
 * and one of its visits are drawn, and the scenario runs again with that deed. TEST_FAULTS: how many drawings for each point (default 1);
 * TEST_SEED: to repeat them. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "harness.h"

#ifndef HOOP_FAULTS
int main(void)
{
    puts("skipped: this build has no fault points (configure --enable-faults)");
    return 77;
}
#else

enum { CAP = 60, RANKS = 3, FIRST_VICTIM = RANKS, CALLS = 3 };

enum way { SHM, RING, TCP, SHRINK, SHRINK_FAR, WAYS };

static const char *const way_name[] = {"shm", "ring by shm", "tcp", "shrink", "shrink by tcp"};

static const char *const fault_text[] = {
#define FAULT(name, breaks, text) text,
#include "base/faults.def"
#undef FAULT
};

static const bool fault_breaks[] = {
#define FAULT(name, breaks, text) breaks,
#include "base/faults.def"
#undef FAULT
};

/* What all processes share. */
struct scenario {
    enum way way;
    enum hoop_fault point; /* HOOP_FAULTS_COUNT: none, count only */
    int victim;
    uint64_t visit;
    enum hoop_fault_deed deed;
    uint64_t visits[RANKS + 1][HOOP_FAULTS_COUNT];
    int size[RANKS + 1]; /* of the communicator that served a rank to the end */
};

/* ---- ranks ---- */

static bool shrinks(const struct scenario *scenario)
{
    return scenario->way == SHRINK || scenario->way == SHRINK_FAR;
}

static void choose(const struct scenario *scenario)
{
    setenv("HOOP_TRANSPORTS", scenario->way == TCP || scenario->way == SHRINK_FAR ? "tcp" : "auto", 1);
    if (scenario->way == RING)
        setenv("HOOP_ALGO", "ring", 1);
    else
        unsetenv("HOOP_ALGO");
}

/* From here on visits count. */
static void begin(const struct scenario *scenario, int rank)
{
    if (scenario->point < HOOP_FAULTS_COUNT && scenario->victim == rank)
        hoop_fault_set(scenario->point, scenario->visit, scenario->deed);
    else
        hoop_fault_set(HOOP_FAULTS_COUNT, 0, HOOP_FAULT_KILL);
}

static enum hoop_status work(struct hoop_comm *comm)
{
    static const size_t counts[] = {1, 3000, 40000};
    static float data[40000];
    enum hoop_status status = HOOP_OK;

    for (int call = 0; call < CALLS * 3 && status == HOOP_OK; call++)
        status = hoop_all_reduce(data, data, counts[call % 3], HOOP_F32, HOOP_SUM, comm, NULL);
    return status;
}

/* One rank dies before; the others go on, as often as one more is lost. */
static enum hoop_status go_on(struct harness_rank *self, struct hoop_comm **comm)
{
    enum hoop_status status = HOOP_OK;

    if (self->rank == FIRST_VICTIM)
        raise(SIGKILL);
    while (status == HOOP_OK)
        status = work(*comm);
    begin(self->argument, self->rank);
    for (int tries = 0; tries < 3; tries++) {
        struct hoop_comm *smaller = NULL;
        status = hoop_comm_shrink(*comm, &smaller);
        if (status != HOOP_OK)
            return status;
        hoop_comm_destroy(*comm);
        *comm = smaller;
        status = work(*comm);
        if (status != HOOP_ERR_PEER)
            return status;
    }
    return status;
}

static int body(struct harness_rank *self)
{
    struct scenario *scenario = self->argument;
    enum hoop_status status;

    choose(scenario);
    if (!shrinks(scenario))
        begin(scenario, self->rank);
    struct hoop_comm *comm = harness_join(self);
    if (comm == NULL)
        return 0;
    status = shrinks(scenario) ? go_on(self, &comm) : work(comm);
    scenario->size[self->rank] = hoop_comm_size(comm);
    if (status == HOOP_OK && !shrinks(scenario))
        status = hoop_comm_finalize(comm);
    harness_tell(self, status, comm);
    hoop_comm_destroy(comm);
    for (int point = 0; point < HOOP_FAULTS_COUNT; point++)
        scenario->visits[self->rank][point] = hoop_fault_visits((enum hoop_fault)point);
    return 0;
}

/* ---- the test ---- */

static int ranks_of(const struct scenario *scenario)
{
    return shrinks(scenario) ? RANKS + 1 : RANKS;
}

static bool blames(const char *text, int victim)
{
    char name[32];

    snprintf(name, sizeof name, "rank %d ", victim);
    const char *at = strstr(text, name);
    return at && strstr(at, "died");
}

/* Is that communicator of the right size? Of those that live, the ones with the smallest are all of it. A larger one has served a rank to
 * the end: it had gone home when the others noticed the death, or all had. */
static bool is_whole(const struct scenario *scenario, const struct harness *harness, int size)
{
    int least = RANKS + 1, same = 0;

    for (int rank = 0; rank < RANKS; rank++)
        if (harness->code[rank] == 0 && scenario->size[rank] < least)
            least = scenario->size[rank];
    for (int rank = 0; rank < RANKS; rank++)
        same += harness->code[rank] == 0 && scenario->size[rank] == least;
    return size > least || same == least || least == RANKS;
}

/* Whoever did not die has what it was promised. */
static void judge(const struct scenario *scenario, const struct harness *harness, const char *text)
{
    const bool may_shrink = shrinks(scenario);
    int alive = 0;
    bool late = false; /* it died after its work, while others may have gone on, or gone home */

    for (int rank = 0; rank < RANKS; rank++) {
        alive += harness->code[rank] == 0;
        late |= harness->code[rank] != 0 && scenario->size[rank] > 0;
    }
    for (int rank = 0; rank < RANKS; rank++) {
        const struct harness_report *report = &harness->report[rank];
        const bool victim = rank == scenario->victim && scenario->point < HOOP_FAULTS_COUNT;
        if (harness->code[rank] != 0) {
            ck_assert_msg(victim && scenario->deed == HOOP_FAULT_KILL && harness->code[rank] == 128 + SIGKILL,
                          "%s: rank %d ended with %d", text, rank, harness->code[rank]);
            continue;
        }
        if (scenario->deed == HOOP_FAULT_BREAK) { /* nobody has died: whoever takes part to the end has a reason */
            ck_assert_msg(report->status == HOOP_OK || report->text[0] != 0,
                          "%s: rank %d fails with %d and says nothing", text, rank, report->status);
            continue;
        }
        if (report->status == HOOP_OK)
            ck_assert_msg(!may_shrink || late || is_whole(scenario, harness, scenario->size[rank]),
                          "%s: rank %d is one of %d, and %d live", text, rank, scenario->size[rank], alive);
        else
            ck_assert_msg(harness->code[scenario->victim] != 0 && !may_shrink && report->status == HOOP_ERR_PEER &&
                              blames(report->text, scenario->victim),
                          "%s: rank %d says: %d %s", text, rank, report->status, report->text);
    }
}

/* Returns whether the deed was done, as far as that shows. */
static bool play(struct scenario *scenario)
{
    static const char *const deeds[] = {"dies", "dawdles", "sees something break"};
    struct harness harness;
    char text[256];

    snprintf(text, sizeof text, "%s: rank %d %s at visit %llu of \"%s\"", way_name[scenario->way], scenario->victim,
             deeds[scenario->deed], (unsigned long long)scenario->visit,
             scenario->point < HOOP_FAULTS_COUNT ? fault_text[scenario->point] : "nothing");
    harness_start(&harness, ranks_of(scenario), body, scenario, CAP);
    ck_assert_msg(harness_wait(&harness), "%s: it hangs", text);
    judge(scenario, &harness, text);
    return scenario->point < HOOP_FAULTS_COUNT && harness.code[scenario->victim] != 0;
}

static unsigned random_below(unsigned *seed, unsigned limit)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (unsigned)((uint64_t)(*seed >> 8) * limit >> 24);
}

/* A rank that came by the point, from a random one on; -1: none did. */
static int draw_victim(const struct scenario *counted, enum hoop_fault point, unsigned *seed)
{
    const int from = (int)random_below(seed, RANKS);

    for (int i = 0; i < RANKS; i++)
        if (counted->visits[(from + i) % RANKS][point] > 0)
            return (from + i) % RANKS;
    return -1;
}

START_TEST(every_point)
{
    const char *wish = getenv("TEST_FAULTS"), *seed_text = getenv("TEST_SEED");
    const int rounds = wish ? (int)strtol(wish, NULL, 10) : 1;
    unsigned seed = seed_text ? (unsigned)strtoul(seed_text, NULL, 10) : (unsigned)getpid();
    const struct harness_traces before = harness_look(false);
    int played = 0, done = 0, points = 0;

    struct scenario *scenario = mmap(NULL, sizeof *scenario, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(scenario, MAP_FAILED);
    printf("TEST_SEED=%u\n", seed);
    fflush(stdout);
    *scenario = (struct scenario){.way = (enum way)_i, .point = HOOP_FAULTS_COUNT};
    play(scenario);
    const struct scenario counted = *scenario;
    for (int point = 0; point < HOOP_FAULTS_COUNT; point++) {
        const int victim = draw_victim(&counted, (enum hoop_fault)point, &seed);
        points += victim >= 0;
        for (int i = 0; i < rounds * HOOP_FAULT_DEEDS && victim >= 0; i++) {
            if (i % HOOP_FAULT_DEEDS == HOOP_FAULT_BREAK && !fault_breaks[point])
                continue;
            *scenario = counted;
            memset(scenario->size, 0, sizeof scenario->size);
            scenario->point = (enum hoop_fault)point;
            scenario->victim = i < HOOP_FAULT_DEEDS ? victim : draw_victim(&counted, scenario->point, &seed);
            scenario->visit = 1 + random_below(&seed, (unsigned)counted.visits[scenario->victim][point]);
            scenario->deed = (enum hoop_fault_deed)(i % HOOP_FAULT_DEEDS);
            done += play(scenario);
            played++;
        }
    }
    printf("%s: %d points, %d runs, a rank died in %d\n", way_name[_i], points, played, done);
    ck_assert_int_gt(done, 0);
    munmap(scenario, sizeof *scenario);
    harness_compare(&before);
}
END_TEST

int main(void)
{
    const char *wish = getenv("TEST_FAULTS");
    Suite *suite = suite_create("faults");
    TCase *tests = tcase_create("faults");

    tcase_set_timeout(tests, CAP + 60 * (wish ? strtod(wish, NULL) : 1));
    tcase_add_loop_test(tests, every_point, 0, WAYS);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
#endif
