// SPDX-License-Identifier: BSD-3-Clause
/* Work in each other's memory, and over stages, gives the same bits as the plans it stands for, leaves the rest of the memory alone, and lets go of
 * it when a call fails. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/flat.h"
#include "harness.h"
#include "hoop/plan.h"
#include "tsan.h"

enum { MOST = 3000001 * 4, EDGE = 64, CAP = 100 };

/* Any bits: also NaN, infinities, denormal numbers. The same for a given rank and call. */
static void fill(unsigned char *to, size_t bytes, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;

    for (size_t i = 0; i < bytes; i++) {
        if (i % 8 == 0)
            state = state * 6364136223846793005u + 1442695040888963407u;
        to[i] = (unsigned char)(state >> (i % 8 * 8));
    }
}

/* Ways to run a call. Of MIXED every other rank has ordinary memory. */
enum way { DIRECT, PLANS, STAGED, MIXED, WAYS };

static const char *const way_names[WAYS] = {"/shm/direct", "/shm/links/1ch/", "/shm/staged", "/shm/staged"};

struct ways {
    struct hoop_comm *comm[WAYS];
    unsigned char *memory[WAYS];
};

static int root_of(size_t count, int ranks)
{
    return (int)(count % (size_t)ranks);
}

static enum hoop_status call(enum hoop_coll coll, const void *in, void *out, size_t count, enum hoop_type type,
                             enum hoop_op op, struct hoop_comm *comm)
{
    switch (coll) {
    case HOOP_ALL_REDUCE:
        return hoop_all_reduce(in, out, count, type, op, comm, NULL);
    case HOOP_REDUCE:
        return hoop_reduce(in, out, count, type, op, hoop_comm_size(comm) - 1, comm, NULL);
    case HOOP_BROADCAST:
        return hoop_broadcast(in, out, count, type, root_of(count, hoop_comm_size(comm)), comm, NULL);
    default:
        return hoop_reduce_scatter(in, out, count / (size_t)hoop_comm_size(comm), type, op, comm, NULL);
    }
}

/* One case through all ways; their memory must then be the same from edge to edge. */
static int compare(struct ways *ways, enum hoop_coll coll, size_t count, enum hoop_type type, enum hoop_op op,
                   bool in_place, struct harness_rank *self)
{
    const size_t element = hoop_type_size(type), bytes = count * element, room = 2 * bytes + 3 * EDGE;
    const size_t block = count / (size_t)self->ranks * element;
    struct hoop_stats stats = {.size = sizeof stats};

    const bool stages = coll == HOOP_ALL_REDUCE || coll == HOOP_BROADCAST;

    for (int way = 0; way < (stages ? WAYS : STAGED); way++) {
        unsigned char *in = ways->memory[way] + EDGE, *out = in_place ? in : in + bytes + EDGE;

        if (in_place && coll == HOOP_REDUCE_SCATTER)
            out += (size_t)self->rank * block;
        memset(ways->memory[way], 0x5a, room);
        fill(in, bytes, (uint64_t)self->rank * 1000003 + count * 31 + (uint64_t)type * 7 + (uint64_t)op);
        if (call(coll, in, out, count, type, op, ways->comm[way]) != HOOP_OK)
            return harness_tell(self, HOOP_ERR_INTERNAL, ways->comm[way]);
        hoop_stats(ways->comm[way], &stats);
        /* of a broadcast only the root's memory matters */
        const bool mixed = way != MIXED || coll == HOOP_ALL_REDUCE || root_of(count, self->ranks) % 2;
        if (strstr(stats.last_plan, way_names[mixed ? way : DIRECT]) == NULL)
            return snprintf(self->report->text, sizeof self->report->text, "way %d took %s", way, stats.last_plan);
        if (memcmp(ways->memory[DIRECT], ways->memory[way], room) != 0)
            return snprintf(self->report->text, sizeof self->report->text,
                            "%s of %zu %s, %s, in place %d: bits of way %d differ", hoop_coll_name(coll), count,
                            hoop_type_name(type), hoop_op_name(op), in_place, way);
    }
    return 0;
}

static int open_ways(struct ways *ways, struct harness_rank *self)
{
    static const char *const least[WAYS] = {"64", "16T", "64", "64"};

    setenv("HOOP_ALGO", "twoshot", 1);
    setenv("HOOP_FLAT_MAX", "0", 1);
    setenv("HOOP_STAGE", "36K", 1); /* pieces of 9 KiB */
    for (int way = 0; way < WAYS; way++) {
        setenv("HOOP_DIRECT_MIN", least[way], 1);
        if (way == 0)
            ways->comm[0] = harness_join(self);
        if (ways->comm[0] == NULL ||
            (way > 0 && hoop_comm_split(ways->comm[0], 0, self->rank, &ways->comm[way]) != HOOP_OK))
            return 1;
        if (way == STAGED || (way == MIXED && self->rank % 2))
            ways->memory[way] = malloc(2 * MOST + 3 * EDGE);
        else if (hoop_mem_alloc(ways->comm[way], (void **)&ways->memory[way], 2 * MOST + 3 * EDGE) != HOOP_OK)
            return 1;
        if (ways->memory[way] == NULL)
            return 1;
    }
    return 0;
}

static int all_types(struct harness_rank *self)
{
    static const enum hoop_coll colls[] = {HOOP_ALL_REDUCE, HOOP_REDUCE_SCATTER, HOOP_BROADCAST, HOOP_ALL_REDUCE,
                                           HOOP_BROADCAST};
    static const size_t counts[] = {120, 131, 257, 1000, 4099, 40000};
    struct ways ways;
    unsigned turn = 0;
    int wrong = open_ways(&ways, self);

    for (int type = 0; type < HOOP_TYPES; type++)
        for (int op = 0; op < HOOP_OPS; op++)
            for (size_t i = 0; !wrong && i < 6 && hoop_op_accepts((enum hoop_op)op, (enum hoop_type)type); i++, turn++)
                wrong = compare(&ways, colls[turn % 5], counts[i], (enum hoop_type)type, (enum hoop_op)op, turn / 5 % 2,
                                self);
    for (int i = 0; !wrong && i < 4; i++) /* past the caches */
        wrong = compare(&ways, i < 2 ? HOOP_ALL_REDUCE : HOOP_BROADCAST, MOST / 4, HOOP_F32, HOOP_SUM, i % 2, self);
    if (wrong)
        return 1;
    free(ways.memory[STAGED]);
    if (self->rank % 2)
        free(ways.memory[MIXED]);
    for (int way = WAYS - 1; way > 0; way--)
        hoop_comm_destroy(ways.comm[way]);
    return hoop_comm_destroy(ways.comm[0]) == HOOP_OK ? 0 : 1;
}

START_TEST(same_bits_as_plans)
{
    harness_run(_i, all_types, NULL, CAP);
}
END_TEST

/* One call after the other from ordinary memory. The root is ahead of the others by a whole broadcast, for which its stage has room, and
 * must not stage what it reduces next over what they still have to fetch. */
enum { REPEATS = 200, HANDED_OUT = 448 << 10, REDUCED = 128 << 10 };

static int repeat(struct harness_rank *self)
{
    static unsigned char memory[HANDED_OUT], expected[HANDED_OUT], in[REDUCED], out[REDUCED];

    setenv("HOOP_STAGE", "512K", 1);
    setenv("HOOP_DIRECT_MIN", "64", 1);
    struct hoop_comm *comm = harness_join(self);
    if (comm == NULL)
        return 1;
    for (int i = 0; i < REPEATS; i++) {
        const int root = i / 50 % self->ranks;

        memset(expected, i, HANDED_OUT);
        memset(memory, self->rank == root ? i : i + 1, HANDED_OUT);
        memset(in, ~i, REDUCED);
        if (hoop_broadcast(memory, memory, HANDED_OUT, HOOP_U8, root, comm, NULL) != HOOP_OK ||
            hoop_all_reduce(in, out, REDUCED, HOOP_U8, HOOP_MAX, comm, NULL) != HOOP_OK)
            return harness_tell(self, HOOP_ERR_INTERNAL, comm);
        if (memcmp(memory, expected, HANDED_OUT) != 0 || memcmp(in, out, REDUCED) != 0)
            return snprintf(self->report->text, sizeof self->report->text, "turn %d has brought the wrong bytes", i);
    }
    return hoop_comm_destroy(comm) == HOOP_OK ? 0 : 1;
}

START_TEST(calls_follow_each_other)
{
    harness_run(_i, repeat, NULL, CAP);
}
END_TEST

/* Results pass a cache by from where the buffers of all ranks fill three quarters of it: of all_reduce one vector in and one out a rank, of
 * a gather no more than one of each together. */
START_TEST(what_passes_the_caches)
{
    static const struct {
        enum hoop_coll coll;
        size_t ranks, least;
    } cases[] = {{HOOP_ALL_REDUCE, 2, 6 << 20},     {HOOP_ALL_REDUCE, 8, 3 << 19}, {HOOP_ALL_TO_ALL, 4, 3 << 20},
                 {HOOP_REDUCE_SCATTER, 2, 8 << 20}, {HOOP_REDUCE, 3, 6 << 20},     {HOOP_BROADCAST, 3, 6 << 20},
                 {HOOP_ALL_GATHER, 5, 4 << 20},     {HOOP_GATHER, 8, 12 << 20},    {HOOP_SCATTER, 2, 12 << 20}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_uint_eq(hoop_flat_stream_least((size_t)32 << 20, cases[i].ranks, cases[i].coll), cases[i].least);
}
END_TEST

/* ---- a stopped rank must not write into memory that a failed call has given back ---- */

enum { READY = 1, GIVEN_BACK, LOOK_AGAIN };
static const size_t large = (size_t)64 << 20;

static int work_until_failure(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);
    unsigned char *in, *out;

    if (comm == NULL || hoop_mem_alloc(comm, (void **)&in, large) != HOOP_OK ||
        hoop_mem_alloc(comm, (void **)&out, large) != HOOP_OK)
        return 1;
    memset(in, self->rank + 1, large);
    enum hoop_status status = HOOP_OK;
    for (int i = 0; status == HOOP_OK; i++) {
        status = hoop_all_reduce(in, out, large, HOOP_U8, HOOP_SUM, comm, NULL);
        if (i == 1)
            atomic_store(&self->report->stage, READY);
    }
    if (self->rank == 1)
        return 0;
    memset(out, 0xee, large);
    harness_tell(self, status, comm);
    atomic_store(&self->report->stage, GIVEN_BACK);
    while (atomic_load(&self->report->stage) != LOOK_AGAIN)
        usleep(1000);
    for (size_t i = 0; i < large; i++)
        if (out[i] != 0xee)
            return snprintf(self->report->text, sizeof self->report->text, "byte %zu was written later", i) > 0;
    hoop_comm_destroy(comm);
    return 0;
}

START_TEST(late_writer)
{
    struct harness harness;

    setenv("HOOP_SILENT", "1", 1);
    harness_start(&harness, 2, work_until_failure, NULL, CAP);
    harness_stage(&harness, 0, READY);
    harness_stage(&harness, 1, READY);
    usleep((useconds_t)(3000 + 1700 * _i)); /* somewhere in a call */
    kill(harness.process[1], SIGSTOP);
    harness_stage(&harness, 0, GIVEN_BACK);
    ck_assert_int_eq(harness.report[0].status, HOOP_ERR_PEER);
    kill(harness.process[1], SIGCONT);
    usleep(200000);
    atomic_store(&harness.report[0].stage, LOOK_AGAIN);
    ck_assert_msg(harness_wait(&harness), "hangs");
    ck_assert_msg(harness.code[0] == 0, "rank 0: %s", harness.report[0].text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("direct");
    TCase *bits = tcase_create("bits"), *letting_go = tcase_create("letting go");

    tcase_set_timeout(bits, CAP);
    tcase_set_timeout(letting_go, CAP);
    tcase_add_test(bits, what_passes_the_caches);
    tcase_add_loop_test(bits, same_bits_as_plans, 2, 5);
    tcase_add_loop_test(bits, calls_follow_each_other, 2, 6);
    tcase_add_loop_test(letting_go, late_writer, 0, 3);
    if (!UNDER_TSAN) { /* it sees no race between processes, and is slow */
        suite_add_tcase(suite, bits);
        suite_add_tcase(suite, letting_go);
    }
    return harness_suite(suite);
}
