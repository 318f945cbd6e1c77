// SPDX-License-Identifier: BSD-3-Clause
/* Calls like one before take a short cut (lib/comm/again.c). A long random order of few different calls, at other buffers each time, gives
 * right results; wrong calls among them are refused as ever; a call that is like one of ours but not like the peers' is noticed. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "comm/comm.h"
#include "harness.h"
#include "tsan.h"

enum { CALLS = 3000, SPACE = 1 << 18, ROOM = 64 };

/* The same numbers on all ranks. */
static unsigned draw(uint64_t *state, unsigned below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % below;
}

static struct hoop_case draw_case(uint64_t *state, int ranks)
{
    static const size_t counts[] = {0, 1, 7, 300, 2000};
    static const struct {
        enum hoop_type type;
        enum hoop_op op;
    } kinds[] = {{HOOP_F32, HOOP_SUM}, {HOOP_I32, HOOP_SUM}, {HOOP_I32, HOOP_MAX}, {HOOP_F64, HOOP_AVG}};
    const unsigned kind = draw(state, 4);

    return (struct hoop_case){.coll = (enum hoop_coll)draw(state, HOOP_COLLS),
                              .type = kinds[kind].type,
                              .op = kinds[kind].op,
                              .ranks = ranks,
                              .root = (int)draw(state, 2) % ranks,
                              .count = counts[draw(state, 5)],
                              .in_place = draw(state, 2)};
}

struct memory {
    unsigned char *shared, *ordinary;
    hoop_stream *stream;
};

static uint64_t calls_of(const struct hoop_comm *comm)
{
    struct hoop_stats stats = {.size = sizeof stats};

    hoop_stats(comm, &stats);
    return stats.calls;
}

/* One call, at buffers of one kind or the other, now and then on a stream or in a group. */
static bool call(struct hoop_case *c, int rank, struct hoop_comm *comm, const struct memory *memory, uint64_t *state)
{
    unsigned char *base = (draw(state, 2) ? memory->shared : memory->ordinary) + 8 * (size_t)draw(state, 20);
    const bool in_place = c->in_place && (!case_rooted(c) || rank == c->root), on_stream = draw(state, 8) == 0,
               in_group = draw(state, 8) == 0;
    unsigned char *in = base + (in_place ? case_in_offset(c, rank) : 0),
                  *out = in_place ? base + case_out_offset(c, rank) : base + case_in_bytes(c) + ROOM;
    const uint64_t calls = calls_of(comm);
    char text[512];

    memset(base, 0x5a, case_in_bytes(c) + case_out_bytes(c) + 2 * (size_t)ROOM);
    c->turn = draw(state, 8);
    if (case_gives(c, rank))
        case_fill(c, rank, in);
    if (in_group)
        hoop_group_start();
    enum hoop_status status = case_call(c, in, out, comm, on_stream ? memory->stream : NULL);
    if (in_group) {
        const bool early = calls_of(comm) != calls;
        const enum hoop_status ended = hoop_group_end();
        if (early) {
            fprintf(stderr, "rank %d: a call inside a group has run at once\n", rank);
            return false;
        }
        status = status == HOOP_OK ? ended : status;
    }
    if (status == HOOP_OK && on_stream)
        status = hoop_stream_synchronize(memory->stream);
    if (status == HOOP_OK && (!case_gets(c, rank) || case_check(c, rank, out, text, sizeof text)))
        return true;
    fprintf(stderr, "rank %d: %s\n", rank, status == HOOP_OK ? text : hoop_last_error(NULL));
    return false;
}

/* A call like the last one, but for a buffer that is wrong on all ranks. */
static bool refused(const struct hoop_case *c, struct hoop_comm *comm, unsigned char *memory)
{
    if (c->coll == HOOP_BARRIER || c->count < 2 || case_rooted(c))
        return true;
    return case_call(c, NULL, memory, comm, NULL) == HOOP_ERR_ARG &&
           case_call(c, memory, NULL, comm, NULL) == HOOP_ERR_ARG &&
           case_call(c, memory + 4, memory, comm, NULL) == HOOP_ERR_ARG;
}

static int in_any_order(int rank, struct hoop_comm *comm, void *argument)
{
    const int ranks = hoop_comm_size(comm);
    struct memory memory = {.ordinary = malloc(SPACE)};
    uint64_t state = (uint64_t)ranks;

    (void)argument;
    HARNESS_EXPECT(hoop_mem_alloc(comm, (void **)&memory.shared, SPACE) == HOOP_OK);
    HARNESS_EXPECT(hoop_stream_create(&memory.stream) == HOOP_OK);
    for (unsigned i = 0; i < CALLS / (UNDER_TSAN ? 10 : 1); i++) {
        struct hoop_case c = draw_case(&state, ranks);
        if (i % 16 == 0) /* as if stores for the peers were slow here */
            comm->flat.slot_stores.past_for = draw(&state, 20);
        HARNESS_EXPECT(call(&c, rank, comm, &memory, &state));
        if (draw(&state, 4) == 0)
            HARNESS_EXPECT(refused(&c, comm, memory.ordinary));
        HARNESS_EXPECT(calls_of(comm) == i + 1);
    }
    hoop_stream_destroy(memory.stream);
    free(memory.ordinary);
    return hoop_comm_destroy(comm) != HOOP_OK;
}

START_TEST(many)
{
    harness_threads(_i, in_any_order, NULL);
}
END_TEST

static int one_differs(int rank, struct hoop_comm *comm, void *argument)
{
    const bool buffers_only = *(bool *)argument;
    float x[2] = {1, 2}, y[2];

    for (int i = 0; i < 5; i++)
        HARNESS_EXPECT(hoop_all_reduce(x, y, 2, HOOP_F32, HOOP_SUM, comm, NULL) == HOOP_OK);
    /* the long way on rank 1, or the short one in place, which all must make alike */
    const enum hoop_status status = hoop_all_reduce(x, rank == 1 && buffers_only ? x : y, 2, HOOP_F32,
                                                    rank == 1 && !buffers_only ? HOOP_MAX : HOOP_SUM, comm, NULL);
    const bool good = status == HOOP_ERR_MISMATCH && strstr(hoop_last_error(comm), "mismatch at call 6") != NULL;
    if (!good)
        fprintf(stderr, "rank %d: %s\n", rank, hoop_last_error(comm));
    HARNESS_EXPECT(hoop_all_reduce(x, y, 2, HOOP_F32, HOOP_SUM, comm, NULL) == HOOP_ERR_MISMATCH);
    hoop_comm_destroy(comm);
    return !good;
}

START_TEST(mismatch)
{
    bool buffers_only = _i;

    harness_threads(2, one_differs, &buffers_only);
}
END_TEST

static int after_fork(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);
    int x = 1, y = 0, status = 1;

    if (comm == NULL)
        return 1;
    HARNESS_EXPECT(hoop_all_reduce(&x, &y, 1, HOOP_I32, HOOP_SUM, comm, NULL) == HOOP_OK);
    const pid_t child = fork();
    if (child == 0)
        _exit(hoop_all_reduce(&x, &y, 1, HOOP_I32, HOOP_SUM, comm, NULL) != HOOP_ERR_UNSUPPORTED);
    HARNESS_EXPECT(waitpid(child, &status, 0) == child && status == 0);
    HARNESS_EXPECT(hoop_all_reduce(&x, &y, 1, HOOP_I32, HOOP_SUM, comm, NULL) == HOOP_OK && y == 2);
    HARNESS_EXPECT(hoop_comm_finalize(comm) == HOOP_OK);
    HARNESS_EXPECT(hoop_all_reduce(&x, &y, 1, HOOP_I32, HOOP_SUM, comm, NULL) == HOOP_ERR_ARG);
    return hoop_comm_destroy(comm) != HOOP_OK;
}

START_TEST(forked_and_finalized)
{
    harness_run(2, after_fork, NULL, 30);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calls like one before");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, many, 1, 5);
    tcase_add_loop_test(tests, mismatch, 0, 2);
    if (!UNDER_TSAN)
        tcase_add_test(tests, forked_and_finalized);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
