// SPDX-License-Identifier: BSD-3-Clause
/* all_gatherv and all_to_allv against a plain picture of what the receive buffer must hold, gaps included: random counts with many
 * zeros, blocks in any order with gaps, all types, every algorithm, as calls, handles, groups and on streams. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "harness.h"
#include "hoop/plan.h"
#include "tsan.h"

enum { MOST = 8, SPACE = 4 << 20, CAP = 100 };

/* ---- random numbers that all ranks draw alike ---- */

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static unsigned char content(int from, int to, size_t i, unsigned turn)
{
    return (unsigned char)((size_t)from * 29 + (size_t)to * 53 + i % 251 + i / 251 + turn * 7);
}

/* ---- one case ---- */

/* What rank from sends to rank to, in elements; of an all_gatherv the first row holds the counts. */
struct shape {
    bool to_all, in_place;
    enum hoop_type type;
    int ranks;
    unsigned turn;
    size_t count[MOST][MOST];
};

/* One rank's buffer: where block i lies. */
struct side {
    size_t count[MOST], first[MOST], elements;
    bool packed; /* in rank order without gaps: no displacements are given */
};

static size_t between(const struct shape *shape, int from, int to)
{
    return shape->to_all ? shape->count[from][to] : shape->count[0][from];
}

/* Lay the blocks out: packed, or in a random order with gaps. */
static void lay_out(struct side *side, int ranks, uint64_t *state)
{
    int order[MOST];
    const int way = (int)(draw(state) % 3);

    for (int i = 0; i < ranks; i++)
        order[i] = i;
    for (int i = ranks - 1; way == 2 && i > 0; i--) {
        const int j = (int)(draw(state) % (unsigned)(i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    side->packed = way == 0;
    side->elements = 0;
    for (int i = 0; i < ranks; i++) {
        side->elements += way ? draw(state) % 7 : 0;
        side->first[order[i]] = side->elements;
        side->elements += side->count[order[i]];
    }
    side->elements += 3;
}

static void fill(const struct shape *shape, const struct side *side, int rank, unsigned char *buffer)
{
    const size_t element = hoop_type_size(shape->type);

    for (int to = 0; to < shape->ranks; to++)
        for (size_t i = 0; i < side->count[to] * element; i++)
            buffer[side->first[to] * element + i] = content(rank, to, i, shape->turn);
}

/* The receive buffer as it must be: what came, and what was there before. */
static bool right(const struct shape *shape, const struct side *side, int rank, const unsigned char *buffer)
{
    const size_t element = hoop_type_size(shape->type), bytes = side->elements * element;
    unsigned char *want = malloc(bytes);
    bool good = true;

    memset(want, 0xa5, bytes);
    for (int from = 0; from < shape->ranks; from++)
        for (size_t i = 0; i < side->count[from] * element; i++)
            want[side->first[from] * element + i] = content(from, shape->to_all ? rank : 0, i, shape->turn);
    for (size_t i = 0; good && i < bytes; i++)
        if (want[i] != buffer[i]) {
            good = false;
            fprintf(stderr, "%s of %s, %d ranks%s, turn %u: rank %d, byte %zu is %d, must be %d\n",
                    shape->to_all ? "all_to_allv" : "all_gatherv", hoop_type_name(shape->type), shape->ranks,
                    shape->in_place ? ", in place" : "", shape->turn, rank, i, buffer[i], want[i]);
        }
    free(want);
    return good;
}

/* ---- the four ways to make a call ---- */

enum way { CALL, HANDLE, GROUP, STREAM, WAYS };

struct call {
    const struct shape *shape;
    const unsigned char *send;
    unsigned char *recv;
    struct side in, out;
    struct hoop_comm *comm;
};

static enum hoop_status make(const struct call *call, hoop_stream *stream, struct hoop_handle **handle)
{
    const struct shape *shape = call->shape;
    const int rank = hoop_comm_rank(call->comm);
    struct side in = call->in, out = call->out; /* whose lists are gone when this returns */
    const size_t *from = in.packed ? NULL : in.first, *to = out.packed ? NULL : out.first;
    enum hoop_status status;

    if (shape->to_all)
        status = handle ? hoop_all_to_allv_init(call->send, in.count, from, call->recv, out.count, to, shape->type,
                                                call->comm, stream, handle)
                        : hoop_all_to_allv(call->send, in.count, from, call->recv, out.count, to, shape->type,
                                           call->comm, stream);
    else
        status = handle ? hoop_all_gatherv_init(call->send, out.count[rank], call->recv, out.count, to, shape->type,
                                                call->comm, stream, handle)
                        : hoop_all_gatherv(call->send, out.count[rank], call->recv, out.count, to, shape->type,
                                           call->comm, stream);
    memset(&in, 0xff, sizeof in);
    memset(&out, 0xff, sizeof out);
    __asm__ volatile("" : : "r"(&in), "r"(&out) : "memory");
    return status;
}

static enum hoop_status run(const struct call *call, enum way way, hoop_stream *stream)
{
    struct hoop_handle *handle = NULL;
    enum hoop_status status;

    switch (way) {
    case HANDLE:
        status = make(call, NULL, &handle);
        if (status == HOOP_OK)
            status = hoop_start(handle);
        hoop_handle_free(handle);
        return status;
    case GROUP:
        hoop_group_start();
        status = make(call, NULL, NULL);
        if (status == HOOP_OK)
            status = hoop_barrier(call->comm, NULL);
        return status == HOOP_OK ? hoop_group_end() : status;
    case STREAM:
        status = make(call, stream, &handle);
        if (status == HOOP_OK)
            status = hoop_start(handle);
        hoop_handle_free(handle);
        return status == HOOP_OK ? hoop_stream_synchronize(stream) : status;
    default:
        return make(call, NULL, NULL);
    }
}

/* ---- random cases ---- */

/* Mostly nothing; else up to a size that is large now and then, but never more than the buffers hold. */
static size_t draw_count(uint64_t *state, size_t most)
{
    static const size_t sizes[] = {3, 40, 900, 5000, SIZE_MAX};
    const size_t size = sizes[draw(state) % 5];

    return draw(state) % 5 < 2 ? 0 : draw(state) % ((size < most ? size : most) + 1);
}

static void draw_shape(struct shape *shape, int ranks, unsigned turn, uint64_t *state)
{
    *shape = (struct shape){.to_all = draw(state) % 2,
                            .in_place = draw(state) % 3 == 0,
                            .type = (enum hoop_type)(turn % HOOP_TYPES),
                            .ranks = ranks,
                            .turn = turn};
    const size_t most = ((size_t)1 << (turn % 9 == 0 ? 21 : 16)) / hoop_type_size(shape->type) / (size_t)ranks;
    for (int from = 0; from < ranks; from++)
        for (int to = 0; to < ranks; to++)
            shape->count[from][to] =
                shape->to_all && shape->in_place && to < from ? shape->count[to][from] : draw_count(state, most);
}

/* Lay the rank's buffers out, fill them, call, compare. */
static enum hoop_status one(const struct shape *shape, int rank, struct hoop_comm *comm, hoop_stream *stream,
                            unsigned char *base, uint64_t seed)
{
    struct call call = {.shape = shape, .comm = comm, .recv = base};
    const size_t element = hoop_type_size(shape->type);
    uint64_t own = seed + (uint64_t)rank; /* where blocks lie is each rank's matter */
    const bool in_place = shape->in_place && (shape->to_all || draw(&own) % 2);

    for (int peer = 0; peer < shape->ranks; peer++) {
        call.in.count[peer] = shape->to_all ? between(shape, rank, peer) : peer == 0 ? between(shape, rank, 0) : 0;
        call.out.count[peer] = between(shape, peer, rank);
    }
    lay_out(&call.out, shape->ranks, &own);
    memset(base, 0xa5, call.out.elements * element);
    if (!in_place) {
        unsigned char *send = base + (call.out.elements + draw(&own) % 9) * element;
        lay_out(&call.in, shape->ranks, &own);
        if (!shape->to_all)
            call.in.first[0] = 0;
        fill(shape, &call.in, rank, send);
        call.send = send;
    } else if (shape->to_all) {
        call.in = call.out;
        fill(shape, &call.in, rank, base);
        call.send = base;
    } else {
        call.send = base + call.out.first[rank] * element;
        call.in.first[0] = call.out.first[rank];
        fill(shape, &call.in, rank, base);
    }
    enum hoop_status status = run(&call, (enum way)(shape->turn % WAYS), stream);
    if (status == HOOP_OK && !right(shape, &call.out, rank, base))
        status = HOOP_ERR_INTERNAL;
    return status;
}

struct grid {
    uint64_t seed;
    unsigned turns;
};

static enum hoop_status run_grid(const struct grid *grid, int rank, struct hoop_comm *comm)
{
    uint64_t state = grid->seed;
    hoop_stream *stream = NULL;
    unsigned char *shared = NULL, *own = malloc(SPACE + 64);
    enum hoop_status status = hoop_stream_create(&stream);

    if (status == HOOP_OK)
        status = hoop_mem_alloc(comm, (void **)&shared, SPACE + 64);
    for (unsigned turn = 0; status == HOOP_OK && turn < grid->turns; turn++) {
        struct shape shape;
        draw_shape(&shape, hoop_comm_size(comm), turn, &state);
        const size_t odd = hoop_type_size(shape.type) == 1 ? turn % 5 : 0;
        status = one(&shape, rank, comm, stream, (draw(&state) % 3 ? shared : own) + odd, draw(&state) * 64);
        if (status < HOOP_OK)
            fprintf(stderr, "turn %u: %s\n", turn, hoop_last_error(comm));
    }
    free(own);
    hoop_stream_destroy(stream);
    return status == HOOP_OK ? hoop_comm_destroy(comm) : status;
}

static int thread_body(int rank, struct hoop_comm *comm, void *argument)
{
    return run_grid(argument, rank, comm) != HOOP_OK;
}

static int process_body(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    return comm == NULL || run_grid(self->argument, self->rank, comm) != HOOP_OK;
}

/* Number 0: the automatic choice. False: no algorithm of that number is any use here. */
static bool choose(int i, int ranks)
{
    const struct hoop_algo *algo = i > 0 ? hoop_algo_get(i - 1) : NULL;
    struct hoop_problem problem = {.coll = HOOP_ALL_GATHER, .ranks = ranks, .channels = 1};
    bool useful = algo == NULL || algo->applicable(&problem);

    problem.coll = HOOP_ALL_TO_ALL;
    useful = useful || algo->applicable(&problem);
    setenv("HOOP_ALGO", algo ? algo->name : "auto", 1);
    setenv("HOOP_SLICE", "4K", 1);
    setenv("HOOP_CHANNELS", i % 2 ? "1" : "3", 1);
    return useful;
}

START_TEST(threads)
{
    for (int i = 0; i == 0 || hoop_algo_get(i - 1); i++)
        if (choose(i, _i)) {
            struct grid grid = {(uint64_t)(i * 100 + _i), 126};
            harness_threads(_i, thread_body, &grid);
        }
}
END_TEST

START_TEST(processes)
{
    for (int i = 0; i == 0 || hoop_algo_get(i - 1); i++)
        if (choose(i, _i)) {
            struct grid grid = {(uint64_t)(i * 1000 + _i), 70};
            harness_run(_i, process_body, &grid, CAP);
        }
}
END_TEST

/* ---- displacements beyond 2^32 ---- */

static int far(int rank, struct hoop_comm *comm, void *argument)
{
    const size_t room = (size_t)9 << 30, first[2] = {((size_t)8 << 30) + 5, ((size_t)5 << 30) + 1},
                 count[2] = {3000, 70000};
    unsigned char *memory =
        mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool good = memory != MAP_FAILED;

    (void)argument;
    for (size_t i = 0; good && i < count[rank]; i++)
        memory[i] = content(rank, 0, i, 0);
    good = good && hoop_all_gatherv(memory, count[rank], memory, count, first, HOOP_U8, comm, NULL) == HOOP_OK;
    for (int from = 0; good && from < 2; from++)
        for (size_t i = 0; i < count[from]; i++)
            good &= memory[first[from] + i] == content(from, 0, i, 0);
    if (memory != MAP_FAILED)
        munmap(memory, room);
    return hoop_comm_destroy(comm) != HOOP_OK || !good;
}

START_TEST(far_displacements)
{
    harness_threads(2, far, NULL);
}
END_TEST

/* ---- ranks that differ ---- */

enum difference { COUNTS, PAIR, PLACE, TYPE, NAME, DIFFERENCES };

/* What every rank must get, and part of its text. */
static const char *const words[DIFFERENCES] = {
    [COUNTS] = "counts #",
    [PAIR] = "rank 1 sends 4 int32 to rank 2, which expects 3 from it",
    [PLACE] = "all_to_allv: rank 0 calls in place, rank 1 does not",
    [TYPE] = "all_to_allv of",
    [NAME] = "called all_gatherv of 9 int32",
};

static int differ(int rank, struct hoop_comm *comm, void *argument)
{
    const enum difference difference = *(const enum difference *)argument;
    const bool odd = rank == 1;
    int x[32] = {0}, y[32];
    size_t equal[3] = {3, 3, 3}, other[3] = {3, 2, 4};
    enum hoop_status status;

    if (difference == COUNTS)
        status = hoop_all_gatherv(x, odd ? 2 : 3, y, odd ? other : equal, NULL, HOOP_I32, comm, NULL);
    else if (difference == PAIR)
        status = hoop_all_to_allv(x, odd ? (size_t[]){3, 3, 4} : equal, NULL, y, equal, NULL, HOOP_I32, comm, NULL);
    else if (difference == PLACE)
        status = hoop_all_to_allv(x, equal, NULL, odd ? y : x, equal, NULL, HOOP_I32, comm, NULL);
    else if (difference == TYPE)
        status = hoop_all_to_allv(x, equal, NULL, y, equal, NULL, odd ? HOOP_F32 : HOOP_I32, comm, NULL);
    else
        status = odd ? hoop_all_gather(x, y, 3, HOOP_I32, comm, NULL)
                     : hoop_all_gatherv(x, 3, y, equal, NULL, HOOP_I32, comm, NULL);
    for (int i = 0; status == HOOP_OK && i < 100; i++) /* who returned before the others looked learns it now */
        status = hoop_barrier(comm, NULL);
    const bool good = status == HOOP_ERR_MISMATCH && strstr(hoop_last_error(comm), words[difference]) != NULL;
    if (!good)
        fprintf(stderr, "rank %d: %d: %s\n", rank, status, hoop_last_error(comm));
    hoop_comm_destroy(comm);
    return !good;
}

START_TEST(calls_that_differ)
{
    enum difference difference = (enum difference)_i;

    setenv("HOOP_ALGO", "auto", 1);
    for (int flat = 0; flat < 2; flat++) {
        setenv("HOOP_FLAT_MAX", flat ? "4K" : "0", 1);
        for (int round = 0; round < 10; round++)
            harness_threads(3, differ, &difference);
    }
}
END_TEST

/* ---- no memory ---- */

/* Where the list cannot be kept the others learn it. */
static int no_memory(struct harness_rank *self)
{
    const size_t counts[3] = {1, 1, 1};
    struct hoop_comm *comm = harness_join(self);
    int x = 0, y[3];

    if (comm == NULL)
        return 1;
    if (self->rank == 1)
        hoop_alloc_fail_at(1);
    enum hoop_status status = hoop_all_gatherv(&x, 1, y, counts, NULL, HOOP_I32, comm, NULL);
    hoop_alloc_fail_at(0);
    hoop_comm_destroy(comm);
    return status != (self->rank == 1 ? HOOP_ERR_MEMORY : HOOP_ERR_PEER);
}

START_TEST(no_memory_for_the_list)
{
    harness_run(3, no_memory, NULL, CAP);
}
END_TEST

/* ---- wrong arguments ---- */

static int misuse(int rank, struct hoop_comm *comm, void *argument)
{
    int x[16] = {0}, y[16] = {0};
    const size_t two[2] = {2, 2}, none[2] = {0, 0}, huge[2] = {SIZE_MAX / 2, SIZE_MAX / 2}, over[2] = {0, 1},
                 far_off[2] = {0, SIZE_MAX - 1}, uneven[2] = {2, 5}, other[2] = {5, 2};
    const size_t *const no = NULL;
    bool good = true;

    (void)argument;
#define REFUSED(call) good &= (call) == HOOP_ERR_ARG || (fprintf(stderr, "not refused: %s\n", #call), false)
    REFUSED(hoop_all_gatherv(x, 3, y, two, no, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_gatherv(x, 2, y, NULL, no, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_gatherv(x, 2, NULL, two, no, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_gatherv(NULL, 2, y, two, no, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_gatherv(x, 2, y, two, no, (enum hoop_type)99, comm, NULL));
    REFUSED(hoop_all_gatherv(x, 2, y, two, no, HOOP_I32, NULL, NULL));
    REFUSED(hoop_all_gatherv(x, 2, y, two, over, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_gatherv(x, 2, y, two, far_off, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_gatherv(x, SIZE_MAX / 2, y, huge, no, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_gatherv(y + 1, 2, y, two, no, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_to_allv(x, two, no, x, two, over, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_to_allv(x, two, no, x + 3, two, no, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_to_allv(x, NULL, no, y, two, no, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_to_allv(x, two, no, y, NULL, no, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_to_allv(NULL, two, no, y, two, no, HOOP_I32, comm, NULL));
    REFUSED(hoop_all_to_allv(x, rank ? uneven : other, no, y, two, no, HOOP_I32, comm, NULL)); /* to itself */
#undef REFUSED
    /* nothing of that has reached the others */
    good &= hoop_all_gatherv(NULL, 0, NULL, none, no, HOOP_F64, comm, NULL) == HOOP_OK &&
            hoop_all_to_allv(NULL, none, no, NULL, none, no, HOOP_F64, comm, NULL) == HOOP_OK &&
            hoop_all_to_allv(x, two, no, y, two, no, HOOP_I32, comm, NULL) == HOOP_OK;
    return hoop_comm_destroy(comm) != HOOP_OK || !good;
}

START_TEST(wrong_arguments)
{
    harness_threads(2, misuse, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("blocks of different sizes");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, CAP);
    tcase_add_loop_test(tests, threads, 1, MOST + 1);
    if (!UNDER_TSAN) {
        tcase_add_loop_test(tests, processes, 2, 6);
        tcase_add_test(tests, far_displacements);
        tcase_add_test(tests, no_memory_for_the_list);
    }
    tcase_add_loop_test(tests, calls_that_differ, 0, DIFFERENCES);
    tcase_add_test(tests, wrong_arguments);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
