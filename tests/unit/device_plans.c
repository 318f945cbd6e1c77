// SPDX-License-Identifier: BSD-3-Clause
/* The interpreter kernel without a driver: the plans of all algorithms, run by threads over links in plain memory, against the plain
 * reference. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "device.h"
#include "dtype/dtype.h"
#include "exec/program.h"
#include "harness.h"

enum { MOST = 8, LANES = 16, SLOTS = 3, GUARD = 64 };

/* One rank's end: everything that the host keeps for its kernel. */
struct rank {
    struct hoop_plan *plan;
    struct hoop_binding binding;
    struct hoop_device_call call;
    void *program;
    unsigned char *in, *out, *tmp, *block;
    struct hoop_device_state state[LANES];
    struct hoop_device_report report;
    struct hoop_device_pipe pipe[MOST * LANES];
};

struct counters {
    uint64_t head, taken, unused[6];
};

/* A group of ranks and the memory between them. */
struct machine {
    int ranks;
    uint32_t frame;
    bool direct;
    struct rank *rank;
    unsigned char *frames[MOST][MOST][LANES];    /* of receiver, sender */
    struct counters counters[MOST][MOST][LANES]; /* polled by the first: head of what comes, taken of what goes */
};

static struct machine *machine_new(int ranks, uint32_t frame, bool direct)
{
    struct machine *m = calloc(1, sizeof *m);

    m->ranks = ranks;
    m->frame = frame;
    m->direct = direct;
    m->rank = calloc((size_t)ranks, sizeof *m->rank);
    return m;
}

static void machine_free(struct machine *m)
{
    for (int a = 0; a < m->ranks; a++)
        for (int b = 0; b < m->ranks; b++)
            for (int l = 0; l < LANES; l++)
                free(m->frames[a][b][l]);
    free(m->rank);
    free(m);
}

static unsigned char *frames_of(struct machine *m, int to, int from, int lane)
{
    if (m->frames[to][from][lane] == NULL)
        m->frames[to][from][lane] = calloc(1, hoop_device_landing(m->frame, SLOTS));
    return m->frames[to][from][lane];
}

static void connect(struct machine *m, int rank, int peer, int lane)
{
    struct hoop_device_pipe *pipe = &m->rank[rank].pipe[peer * LANES + lane];
    const struct hoop_device_link link = {.out_frames = device_address(frames_of(m, peer, rank, lane)),
                                          .out_head = device_address(&m->counters[peer][rank][lane].head),
                                          .out_taken = device_address(&m->counters[rank][peer][lane].taken),
                                          .in_frames = device_address(frames_of(m, rank, peer, lane)),
                                          .in_head = device_address(&m->counters[rank][peer][lane].head),
                                          .in_taken = device_address(&m->counters[peer][rank][lane].taken),
                                          .frame = m->frame,
                                          .slots = SLOTS,
                                          .direct = m->direct};

    if (pipe->slots == 0)
        *pipe = hoop_program_pipe(&link);
}

static void connect_plan(struct machine *m, int rank)
{
    const struct hoop_plan *plan = m->rank[rank].plan;

    ck_assert_uint_le(plan->lanes, LANES);
    for (uint32_t l = 0; l < plan->lanes; l++)
        for (uint32_t s = 0; s < plan->lane[l].steps; s++)
            if (plan->lane[l].step[s].kind >= HOOP_STEP_SEND && plan->lane[l].step[s].kind <= HOOP_STEP_RECV_REDUCE)
                connect(m, rank, plan->lane[l].step[s].peer, (int)l);
}

/* How to run a case. */
struct way {
    const struct hoop_algo *algo;
    const struct hoop_groups *groups;
    int channels, threads;
    size_t small;
    bool forward;
    uint64_t tag;
};

static void make_plan(struct machine *m, const struct hoop_case *c, const struct way *way, int rank)
{
    struct rank *r = &m->rank[rank];
    const bool in_place = c->in_place && (!case_rooted(c) || rank == c->root);
    const struct hoop_problem problem = {.coll = c->coll,
                                         .ranks = c->ranks,
                                         .rank = rank,
                                         .root = c->root,
                                         .in_place = in_place,
                                         .channels = way->channels,
                                         .groups = way->groups};

    ck_assert_int_eq(hoop_plan_build(&r->plan, way->algo, &problem, true), HOOP_OK);
    ck_assert_int_eq(hoop_bind(&r->binding, r->plan, c->count, hoop_type_size(c->type), m->frame, 1), HOOP_OK);
    const size_t bytes = hoop_program_bytes(r->plan);
    r->program = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    ck_assert_int_eq(hoop_program_write(r->plan, device_address(r->program), r->program), HOOP_OK);
    connect_plan(m, rank);
}

static void make_buffers(struct machine *m, const struct hoop_case *c, int rank)
{
    struct rank *r = &m->rank[rank];
    const bool in_place = c->in_place && (!case_rooted(c) || rank == c->root);
    const size_t in_bytes = case_in_bytes(c), out_bytes = case_out_bytes(c),
                 larger = in_bytes > out_bytes ? in_bytes : out_bytes;

    r->block = malloc(2 * larger + GUARD);
    memset(r->block, 0xa5, 2 * larger + GUARD);
    r->tmp = aligned_alloc(64, (r->binding.tmp_bytes + 127) / 64 * 64);
    r->in = r->block + (in_place ? case_in_offset(c, rank) : 0);
    r->out = in_place ? r->block + case_out_offset(c, rank) : r->block + larger;
    if (case_gives(c, rank))
        case_fill(c, rank, r->in);
}

static void prepare(struct machine *m, const struct hoop_case *c, const struct way *way, int rank)
{
    struct rank *r = &m->rank[rank];

    make_plan(m, c, way, rank);
    make_buffers(m, c, rank);
    r->call = (struct hoop_device_call){.lane = device_address(r->program),
                                        .pipe = device_address(r->pipe),
                                        .state = device_address(r->state),
                                        .report = device_address(&r->report),
                                        .in = device_address(r->in),
                                        .out = device_address(r->out),
                                        .tmp = device_address(r->tmp),
                                        .tag = way->tag,
                                        .number = 1,
                                        .lend = 32,
                                        .pipe_lanes = LANES,
                                        .state_lanes = LANES};
    hoop_program_bind(&r->call, r->plan, &r->binding, c->type, c->op, way->small);
    if (!way->forward)
        r->call.flags |= HOOP_DEVICE_NO_FORWARD;
}

static void forget(struct rank *r)
{
    hoop_plan_free(r->plan);
    free(r->program);
    free(r->block);
    free(r->tmp);
}

static void check_results(struct machine *m, const struct hoop_case *c, const struct way *way)
{
    char text[512];

    for (int rank = 0; rank < c->ranks; rank++) {
        int peer;
        struct rank *r = &m->rank[rank];
        ck_assert_msg(hoop_program_verdict(&r->report, &peer) == HOOP_OK, "%s", hoop_last_error(NULL));
        if (c->op == HOOP_AVG && hoop_coll_shape(c->coll)->sums && case_gets(c, rank))
            hoop_kernel_divide(r->out, c->count, c->type, c->ranks);
        if (case_gets(c, rank))
            ck_assert_msg(case_check(c, rank, r->out, text, sizeof text),
                          "algo=%s channels=%d threads=%d small=%zu direct=%d forward=%d: %s", way->algo->name,
                          way->channels, way->threads, way->small, m->direct, way->forward, text);
        for (int l = 1; l < LANES; l++)
            ck_assert(r->state[l].launches == r->state[0].launches && r->state[l].chain == r->state[0].chain);
    }
}

static void run_ranks(struct machine *m, int threads)
{
    struct launch *launch[MOST];

    for (int rank = 0; rank < m->ranks; rank++)
        launch[rank] = launch_begin("hoop_interpret", &m->rank[rank].call, (int)m->rank[rank].call.lanes, threads);
    for (int rank = 0; rank < m->ranks; rank++)
        launch_end(launch[rank]);
}

static void run_case(struct machine *m, const struct hoop_case *c, const struct way *way)
{
    for (int rank = 0; rank < c->ranks; rank++)
        prepare(m, c, way, rank);
    run_ranks(m, way->threads);
    check_results(m, c, way);
    for (int rank = 0; rank < c->ranks; rank++)
        forget(&m->rank[rank]);
}

static bool solves(const struct hoop_case *c, const struct hoop_algo *algo, const struct hoop_groups *groups)
{
    const struct hoop_problem p = {.coll = c->coll,
                                   .ranks = c->ranks,
                                   .root = c->root,
                                   .in_place = c->in_place,
                                   .channels = 1,
                                   .groups = algo->composed ? groups : NULL};

    return algo->applicable(&p);
}

/* All collectives, in place and not, on one machine from call to call, so that counters go on; ways go round. */
static void run_machine(const struct hoop_algo *algo, int ranks, bool direct, unsigned *turn)
{
    static const size_t counts[] = {0, 1, 7, 100, 1000};
    struct machine *m = machine_new(ranks, 256, direct);
    struct hoop_groups *groups;

    ck_assert_int_eq(hoop_groups_cut(&groups, ranks, ranks % 2 ? "2,1" : "2"), HOOP_OK);
    for (int coll = 0; coll < HOOP_COLLS; coll++)
        for (int in_place = 0; in_place < 2; in_place++)
            for (int i = 0; i < 2; i++, ++*turn) {
                const enum hoop_type type = (enum hoop_type)(*turn % HOOP_TYPES);
                enum hoop_op op = (enum hoop_op)(*turn / 3 % HOOP_OPS);
                while (!hoop_op_accepts(op, type))
                    op = (enum hoop_op)((op + 1) % HOOP_OPS);
                struct hoop_case c = {.coll = (enum hoop_coll)coll,
                                      .type = type,
                                      .op = op,
                                      .ranks = ranks,
                                      .count = coll == HOOP_BARRIER ? 0 : counts[*turn % 5],
                                      .in_place = in_place,
                                      .turn = *turn};
                if (case_rooted(&c))
                    c.root = (int)(*turn % (unsigned)ranks);
                if (hoop_type_wide(type) != type && c.op != HOOP_MIN && c.op != HOOP_MAX)
                    c.op = HOOP_MAX; /* sums of them go by f32, which is not the kernel's business */
                const struct way way = {.algo = algo,
                                        .groups = algo->composed ? groups : NULL,
                                        .channels = 1 + (int)(*turn % 2),
                                        .threads = *turn % 4 == 3 ? 3 : 1,
                                        .small = *turn % 3 ? 0 : 256,
                                        .forward = *turn % 5 != 0,
                                        .tag = 17 + *turn};
                if (solves(&c, algo, groups))
                    run_case(m, &c, &way);
            }
    hoop_groups_free(groups);
    machine_free(m);
}

START_TEST(algorithms)
{
    unsigned turn = (unsigned)_i;

    for (int ranks = 2; ranks <= MOST; ranks++)
        for (int direct = 0; direct < 2; direct++)
            run_machine(hoop_algo_get(_i), ranks, direct, &turn);
}
END_TEST

/* One algorithm with all types and operators, small frames and slots. */
START_TEST(types_and_operators)
{
    const enum hoop_type type = (enum hoop_type)_i;
    struct machine *m = machine_new(3, 512, true);

    for (int op = 0; op < HOOP_OPS; op++)
        for (int small = 0; small < 2; small++) {
            const struct hoop_case c = {.coll = HOOP_ALL_REDUCE,
                                        .type = type,
                                        .op = (enum hoop_op)op,
                                        .ranks = 3,
                                        .count = 37 + 40 * (size_t)op};
            const struct way way = {.algo = hoop_algo_find("ring"),
                                    .channels = 1,
                                    .threads = 2,
                                    .small = small ? 512 : 0,
                                    .forward = true,
                                    .tag = 5};
            if (hoop_op_accepts(c.op, type) && (hoop_type_wide(type) == type || c.op == HOOP_MIN || c.op == HOOP_MAX))
                run_case(m, &c, &way);
        }
    machine_free(m);
}
END_TEST

static const struct hoop_case sum = {
    .coll = HOOP_ALL_REDUCE, .type = HOOP_F32, .op = HOOP_SUM, .ranks = 3, .count = 500};

/* The same launch again and again, as a graph replays it, between others: counters and fingerprints go on by themselves. */
START_TEST(replays)
{
    struct machine *m = machine_new(3, 512, _i);
    const struct hoop_case other = {.coll = HOOP_ALL_GATHER, .type = HOOP_I64, .ranks = 3, .count = 9};
    const struct way way = {
        .algo = hoop_algo_find("ring"), .channels = 2, .threads = 1, .small = _i ? 512 : 0, .forward = true, .tag = 5};
    const struct way other_way = {.algo = hoop_algo_find("flat"), .channels = 1, .threads = 1, .small = 512, .tag = 6};
    struct rank kept[3];

    for (int rank = 0; rank < 3; rank++)
        prepare(m, &sum, &way, rank);
    for (int i = 0; i < 100; i++) {
        for (int rank = 0; rank < 3; rank++)
            memset(m->rank[rank].out, 0, case_out_bytes(&sum));
        run_ranks(m, 1);
        check_results(m, &sum, &way);
        if (i % 10 != 0)
            continue;
        for (int rank = 0; rank < 3; rank++)
            kept[rank] = m->rank[rank];
        run_case(m, &other, &other_way);
        for (int rank = 0; rank < 3; rank++) { /* what belongs to the call, back */
            struct rank *r = &m->rank[rank];
            r->plan = kept[rank].plan;
            r->binding = kept[rank].binding;
            r->call = kept[rank].call;
            r->program = kept[rank].program;
            r->in = kept[rank].in;
            r->out = kept[rank].out;
            r->tmp = kept[rank].tmp;
            r->block = kept[rank].block;
        }
    }
    ck_assert_uint_eq(m->rank[0].state[0].launches, 110);
    for (int rank = 0; rank < 3; rank++)
        forget(&m->rank[rank]);
    machine_free(m);
}
END_TEST

static void pause_until(bool (*over)(struct machine *m), struct machine *m)
{
    for (int i = 0; i < 20000 && !over(m); i++)
        usleep(1000);
}

static bool any_mismatch(struct machine *m)
{
    int peer;

    for (int rank = 0; rank < m->ranks; rank++)
        if (hoop_program_verdict(&m->rank[rank].report, &peer) == HOOP_ERR_MISMATCH)
            return true;
    return false;
}

static bool waits(struct machine *m)
{
    char text[512];

    return hoop_program_waits(&m->rank[0].report, text, sizeof text) > 0;
}

static void abort_all(struct machine *m)
{
    for (int rank = 0; rank < m->ranks; rank++)
        __atomic_store_n(&m->rank[rank].report.abort, 1, __ATOMIC_RELEASE);
}

/* A rank that makes another call is found out before its data are used. */
START_TEST(other_calls)
{
    struct machine *m = machine_new(3, 512, false);
    struct way way = {
        .algo = hoop_algo_find("ring"), .channels = 1, .threads = 2, .small = _i ? 512 : 0, .forward = true, .tag = 5};
    struct launch *launch[3];
    int peer = -1, found = 0;

    for (int rank = 0; rank < 3; rank++) {
        way.tag = rank == 1 ? 6 : 5;
        prepare(m, &sum, &way, rank);
        m->rank[rank].call.number = 77;
    }
    for (int rank = 0; rank < 3; rank++)
        launch[rank] = launch_begin("hoop_interpret", &m->rank[rank].call, (int)m->rank[rank].call.lanes, 2);
    pause_until(any_mismatch, m);
    abort_all(m);
    for (int rank = 0; rank < 3; rank++)
        launch_end(launch[rank]);
    for (int rank = 0; rank < 3; rank++) {
        const enum hoop_status status = hoop_program_verdict(&m->rank[rank].report, &peer);
        forget(&m->rank[rank]);
        if (status != HOOP_ERR_MISMATCH)
            continue;
        found++;
        ck_assert_msg(rank == 1 || peer == 1, "rank %d blames rank %d", rank, peer);
        ck_assert_ptr_nonnull(strstr(hoop_last_error(NULL), "call 77"));
    }
    ck_assert_int_ge(found, 1);
    machine_free(m);
}
END_TEST

/* A rank that does not come: the others say what they wait for, and an abort ends them. */
START_TEST(absent_peer)
{
    struct machine *m = machine_new(3, 512, false);
    const struct way way = {
        .algo = hoop_algo_find("ring"), .channels = 1, .threads = 3, .small = _i ? 512 : 0, .forward = true, .tag = 5};
    struct launch *launch[2];
    char text[512];
    int peer;

    for (int rank = 0; rank < 3; rank++)
        prepare(m, &sum, &way, rank);
    for (int rank = 0; rank < 2; rank++)
        launch[rank] = launch_begin("hoop_interpret", &m->rank[rank].call, (int)m->rank[rank].call.lanes, 3);
    pause_until(waits, m);
    ck_assert_int_ge(hoop_program_waits(&m->rank[0].report, text, sizeof text), 1);
    ck_assert_msg(strstr(text, "for a frame of rank 2") != NULL, "%s", text);
    abort_all(m);
    for (int rank = 0; rank < 2; rank++) {
        launch_end(launch[rank]);
        ck_assert_int_eq(hoop_program_verdict(&m->rank[rank].report, &peer), HOOP_ERR_ABORTED);
    }
    for (int rank = 0; rank < 3; rank++)
        forget(&m->rank[rank]);
    machine_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interpreter kernel");
    TCase *tests = tcase_create("without a driver");
    int algos = 0;

    while (hoop_algo_get(algos))
        algos++;
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, algorithms, 0, algos);
    tcase_add_loop_test(tests, types_and_operators, 0, HOOP_TYPES);
    tcase_add_loop_test(tests, replays, 0, 2);
    tcase_add_loop_test(tests, other_calls, 0, 2);
    tcase_add_loop_test(tests, absent_peer, 0, 2);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
