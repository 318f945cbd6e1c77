// SPDX-License-Identifier: BSD-3-Clause
/* Two promises about bits, with inputs for which every other order of combining shows: limits, subnormals, infinities, NaN,
 * and numbers that cancel.
 *
 * HOOP_DETERMINISTIC=1: results are those of a plain fold in rank order, whatever the number of ranks, the algorithm, the size, how
 * the vector is cut into calls, slices and channels, the memory, in place or not, and the transport.
 * Without it: an algorithm gives the same bits on all ranks and in every run. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype/dtype.h"
#include "harness.h"
#include "hoop/plan.h"
#include "simulated.h"
#include "tsan.h"
#include "unit/dtype_reference.h"

enum { MOST_RANKS = 16, MOST_COUNT = 6007, TYPES = 6, OPS = 3, COUNTS = 3 };

static const enum hoop_type types[TYPES] = {HOOP_F32, HOOP_F64, HOOP_F16, HOOP_BF16, HOOP_F8E4M3, HOOP_F8E5M2};
static const enum hoop_op ops[OPS] = {HOOP_SUM, HOOP_PROD, HOOP_AVG};
static const size_t counts[COUNTS] = {3, 130, MOST_COUNT};

/* Inputs of all ranks and what combining them in rank order gives. Shared by all ranks of a run, read only. */
struct question {
    enum hoop_type type;
    enum hoop_op op;
    size_t count, bytes;
    unsigned char *in[MOST_RANKS], *want;
};

struct questions {
    int ranks;
    struct question of[TYPES * OPS * COUNTS];
};

/* Corners and random numbers; every fourth element is taken back by a later rank up to its last bits. */
static void fill(struct question *q, int ranks, uint64_t seed)
{
    const size_t size = hoop_type_size(q->type);

    for (int rank = 0; rank < ranks; rank++) {
        q->in[rank] = malloc(q->bytes);
        reference_fill(q->in[rank], q->count, q->type, &seed);
    }
    for (size_t i = 0; ranks > 2 && i < q->count; i += 4) {
        const int giver = (int)(i / 4 % (size_t)(ranks - 1));
        unsigned char *taken = q->in[ranks - 1] + i * size;

        memcpy(taken, q->in[giver] + i * size, size);
        taken[size - 1] ^= 0x80; /* the sign */
    }
}

static void answer(struct question *q, int ranks)
{
    q->want = malloc(q->bytes);
    if (ranks == 1)
        memcpy(q->want, q->in[0], q->bytes);
    else
        reference_reduce(q->want, (const unsigned char *const *)q->in, ranks, q->count, q->type, q->op,
                         q->op == HOOP_AVG ? ranks : 0);
}

static struct questions *ask(int ranks)
{
    struct questions *all = calloc(1, sizeof *all);

    all->ranks = ranks;
    for (int i = 0; i < TYPES * OPS * COUNTS; i++) {
        struct question *q = &all->of[i];
        q->type = types[i % TYPES];
        q->op = ops[i / TYPES % OPS];
        q->count = counts[i / TYPES / OPS];
        q->bytes = q->count * hoop_type_size(q->type);
        fill(q, ranks, (uint64_t)(ranks * 1000 + i));
        answer(q, ranks);
    }
    return all;
}

static void forget(struct questions *all)
{
    for (int i = 0; i < TYPES * OPS * COUNTS; i++) {
        for (int rank = 0; rank < all->ranks; rank++)
            free(all->of[i].in[rank]);
        free(all->of[i].want);
    }
    free(all);
}

static uint64_t hash(const void *data, size_t bytes)
{
    uint64_t value = 14695981039346656037u;

    for (size_t i = 0; i < bytes; i++)
        value = (value ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return value;
}

/* ---- the ways to ask ---- */

enum way { WHOLE, IN_PLACE, IN_PIECES, REDUCED, SCATTERED, WAYS };
static const char *const way_names[WAYS] = {"all_reduce", "all_reduce in place", "all_reduce in pieces", "reduce",
                                            "reduce_scatter"};

static enum hoop_status in_pieces(const struct question *q, const unsigned char *in, unsigned char *out,
                                  struct hoop_comm *comm)
{
    const size_t cuts[] = {0, q->count / 7, q->count / 2, q->count};
    const size_t size = hoop_type_size(q->type);
    enum hoop_status status = HOOP_OK;

    for (int i = 0; i < 3 && status == HOOP_OK; i++)
        status = hoop_all_reduce(in + cuts[i] * size, out + cuts[i] * size, cuts[i + 1] - cuts[i], q->type, q->op, comm,
                                 NULL);
    return status;
}

/* Make the call; *got, *bytes: the part of the result that this rank has, and *first: where in the whole it belongs. */
static enum hoop_status call(const struct question *q, enum way way, struct hoop_comm *comm, unsigned char *in,
                             unsigned char *out, size_t *first, size_t *bytes)
{
    const size_t ranks = (size_t)hoop_comm_size(comm), rank = (size_t)hoop_comm_rank(comm), block = q->count / ranks;
    const int root = (int)(q->count % ranks);

    *first = 0;
    *bytes = q->bytes;
    switch (way) {
    case WHOLE:
        return hoop_all_reduce(in, out, q->count, q->type, q->op, comm, NULL);
    case IN_PLACE:
        memcpy(out, in, q->bytes);
        return hoop_all_reduce(out, out, q->count, q->type, q->op, comm, NULL);
    case IN_PIECES:
        return in_pieces(q, in, out, comm);
    case REDUCED:
        *bytes = root == (int)rank ? q->bytes : 0;
        return hoop_reduce(in, out, q->count, q->type, q->op, root, comm, NULL);
    default:
        *bytes = block * hoop_type_size(q->type);
        *first = rank * *bytes;
        return hoop_reduce_scatter(in, out, block, q->type, q->op, comm, NULL);
    }
}

/* All questions in all ways on one communicator. want: compare with the fold; else only hash. Returns the hash of all results, or 0
 * with a text. */
static uint64_t ask_all(const struct questions *all, struct hoop_comm *comm, bool compare, char text[static 512])
{
    const int rank = hoop_comm_rank(comm);
    unsigned char *own = malloc(2 * MOST_COUNT * 8), *shared = NULL;
    uint64_t sum = 1;

    enum hoop_status status = hoop_mem_alloc(comm, (void **)&shared, 2 * MOST_COUNT * 8);
    for (int i = 0; status == HOOP_OK && i < TYPES * OPS * COUNTS * WAYS && sum != 0; i++) {
        const struct question *q = &all->of[i / WAYS];
        const enum way way = (enum way)(i % WAYS);
        unsigned char *in = i / WAYS % 2 ? own : shared, *out = (i + i / WAYS / 2) % 3 ? shared : own;
        size_t first, bytes;

        out += MOST_COUNT * 8;
        memcpy(in, q->in[rank], q->bytes);
        status = call(q, way, comm, in, out, &first, &bytes);
        if (status == HOOP_OK && compare && memcmp(out, q->want + first, bytes) != 0) {
            snprintf(text, 512, "%s of %zu %s, %s: hash %016llx, the fold in rank order has %016llx", way_names[way],
                     q->count, hoop_type_name(q->type), hoop_op_name(q->op), (unsigned long long)hash(out, bytes),
                     (unsigned long long)hash(q->want + first, bytes));
            sum = 0;
        } else if (way < REDUCED) { /* all ranks have these */
            sum = (sum * 31 + hash(out, bytes)) | 1;
        }
    }
    if (status != HOOP_OK) {
        snprintf(text, 512, "%s", hoop_last_error(comm));
        sum = 0;
    }
    free(own);
    hoop_mem_free(comm, shared);
    return sum;
}

/* ---- level 2 ---- */

static const struct {
    const char *algo, *flat_max, *slice, *channels;
} configurations[] = {{"auto", "4K", "128K", "1"},  {"auto", "0", "8K", "2"},    {"flat", "0", "4K", "1"},
                      {"flat", "64K", "128K", "1"}, {"twoshot", "0", "4K", "3"}, {"twoshot", "0", "128K", "1"}};

static void configure(size_t i)
{
    setenv("HOOP_DETERMINISTIC", "1", 1);
    setenv("HOOP_ALGO", configurations[i].algo, 1);
    setenv("HOOP_FLAT_MAX", configurations[i].flat_max, 1);
    setenv("HOOP_SLICE", configurations[i].slice, 1);
    setenv("HOOP_CHANNELS", configurations[i].channels, 1);
}

static int compare_thread(int rank, struct hoop_comm *comm, void *argument)
{
    char text[512] = "";
    const uint64_t sum = ask_all(argument, comm, true, text);

    if (sum == 0)
        fprintf(stderr, "HOOP_ALGO=%s HOOP_FLAT_MAX=%s HOOP_SLICE=%s HOOP_CHANNELS=%s, rank %d of %d: %s\n",
                getenv("HOOP_ALGO"), getenv("HOOP_FLAT_MAX"), getenv("HOOP_SLICE"), getenv("HOOP_CHANNELS"), rank,
                hoop_comm_size(comm), text);
    return hoop_comm_destroy(comm) != HOOP_OK || sum == 0;
}

static int compare_process(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    return comm == NULL || compare_thread(self->rank, comm, self->argument);
}

START_TEST(as_a_fold_in_threads)
{
    struct questions *all = ask(_i);

    for (size_t i = 0; i < sizeof configurations / sizeof *configurations; i++) {
        configure(i);
        harness_threads(_i, compare_thread, all);
    }
    forget(all);
}
END_TEST

START_TEST(as_a_fold_in_processes)
{
    struct questions *all = ask(_i);

    for (size_t i = 0; i < sizeof configurations / sizeof *configurations; i++) {
        configure(i);
        harness_run(_i, compare_process, all, 100);
    }
    forget(all);
}
END_TEST

/* Small types are carried as the communicator carries them: as f32, rounded once. */
struct simulation {
    const struct question *question;
    const struct hoop_algo *algo;
};

static void give(const struct hoop_case *c, int rank, void *in, void *data)
{
    const struct question *q = ((const struct simulation *)data)->question;

    if (c->type == q->type)
        memcpy(in, q->in[rank], q->bytes);
    else
        hoop_kernel_widen(in, q->in[rank], q->count, q->type);
}

static void take(const struct hoop_case *c, int rank, const void *out, void *data)
{
    const struct simulation *simulation = data;
    const struct question *q = simulation->question;
    unsigned char *got = malloc(q->bytes + MOST_COUNT * sizeof(float));
    const size_t size = hoop_type_size(q->type);
    const size_t first = c->coll == HOOP_REDUCE_SCATTER ? (size_t)rank * c->count : 0;

    memcpy(got, out, c->count * hoop_type_size(c->type));
    if (q->op == HOOP_AVG && c->ranks > 1)
        hoop_kernel_divide(got, c->count, c->type, c->ranks);
    if (c->type != q->type)
        hoop_kernel_narrow(got, (const float *)(const void *)got, c->count, q->type);
    ck_assert_msg(memcmp(got, q->want + first * size, c->count * size) == 0,
                  "%s on the virtual network, %s of %zu %s, %s, %d ranks, rank %d: not the fold in rank order",
                  simulation->algo->name, hoop_coll_name(c->coll), c->count, hoop_type_name(q->type),
                  hoop_op_name(q->op), c->ranks, rank);
    free(got);
}

static void simulate(const struct hoop_algo *algo, const struct question *q, int ranks, unsigned turn)
{
    static const enum hoop_coll colls[] = {HOOP_ALL_REDUCE, HOOP_REDUCE, HOOP_REDUCE_SCATTER};
    const struct hoop_sim_config config = {.seed = turn, .shuffle = true, .in_place = turn % 3, .lend = turn % 3 == 2};
    struct simulation simulation = {q, algo};
    const struct simulated how = {.algo = algo,
                                  .channels = 1 + (int)(turn % 3),
                                  .frame = turn % 4 ? 4096 : 1024,
                                  .config = &config,
                                  .give = give,
                                  .take = take,
                                  .data = &simulation};

    for (int i = 0; i < 3; i++) {
        const struct hoop_case c = {.coll = colls[i],
                                    .type = hoop_type_wide(q->type),
                                    .op = q->op,
                                    .ranks = ranks,
                                    .root = i == 1 ? (int)turn % ranks : 0,
                                    .count = i == 2 ? q->count / (size_t)ranks : q->count,
                                    .in_place = turn % 2};
        const struct hoop_problem problem = {.coll = c.coll, .ranks = ranks, .in_place = c.in_place, .channels = 1};
        if (algo->applicable(&problem) && (i < 2 || q->count % (size_t)ranks == 0 || c.count > 0))
            simulated_run(&c, &how);
    }
}

START_TEST(as_a_fold_on_a_virtual_network)
{
    struct questions *all = ask(_i);
    const struct hoop_algo *algo;
    unsigned turn = 0;

    for (int a = 0; (algo = hoop_algo_get(a)) != NULL; a++)
        for (int i = 0; i < TYPES * OPS * COUNTS && (algo->rank_order || _i == 2); i++, turn++)
            if (_i > 1) /* a rank alone runs no plan */
                simulate(algo, &all->of[i], _i, turn);
    forget(all);
}
END_TEST

START_TEST(other_orders_are_refused)
{
    struct hoop_comm *comms[3];
    const struct hoop_algo *algo;

    setenv("HOOP_DETERMINISTIC", "1", 1);
    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++) {
        bool sums = false;
        for (int coll = 0; coll < HOOP_COLLS; coll++) {
            const struct hoop_problem problem = {.coll = (enum hoop_coll)coll, .ranks = 4, .channels = 1};
            sums |= hoop_coll_shape(problem.coll)->sums && algo->applicable(&problem);
        }
        setenv("HOOP_ALGO", algo->name, 1);
        const enum hoop_status status = hoop_comm_init_all(comms, 3);
        const bool bad = sums && !algo->rank_order;
        ck_assert_msg(status == (bad ? HOOP_ERR_SETUP : HOOP_OK), "%s", algo->name);
        if (bad) {
            ck_assert_ptr_nonnull(strstr(hoop_last_error(NULL), "HOOP_ALGO="));
            ck_assert_ptr_nonnull(strstr(hoop_last_error(NULL), "HOOP_DETERMINISTIC=1"));
        }
        for (int rank = 0; rank < 3 && !bad; rank++) {
            hoop_comm_abort(comms[rank]);
            hoop_comm_destroy(comms[rank]);
        }
    }
    setenv("HOOP_DETERMINISTIC", "2", 1);
    unsetenv("HOOP_ALGO");
    ck_assert_int_eq(hoop_comm_init_all(comms, 1), HOOP_ERR_SETUP);
}
END_TEST

/* ---- level 1 ---- */

struct run {
    const struct questions *questions;
    uint64_t sum[MOST_RANKS];
};

static int hash_all(int rank, struct hoop_comm *comm, void *argument)
{
    struct run *run = argument;
    char text[512] = "";

    run->sum[rank] = ask_all(run->questions, comm, false, text);
    if (run->sum[rank] == 0)
        fprintf(stderr, "rank %d: %s\n", rank, text);
    return hoop_comm_destroy(comm) != HOOP_OK || run->sum[rank] == 0;
}

START_TEST(the_same_on_all_ranks_and_in_every_run)
{
    const struct hoop_algo *algo = hoop_algo_get(_i);
    static const int sizes[] = {3, 7, 4, 16}; /* THIN: the first two */

    setenv("HOOP_ALGO", algo->name, 1);
    setenv("HOOP_FLAT_MAX", "0", 1);
    setenv("HOOP_SLICE", "4K", 1);
    for (size_t i = 0; i < (THIN ? 2 : sizeof sizes / sizeof *sizes); i++) {
        struct questions *all = ask(sizes[i]);
        struct run run = {.questions = all};
        uint64_t sum = 0;
        for (int repeat = 0; repeat < 2; repeat++) {
            harness_threads(sizes[i], hash_all, &run);
            sum = repeat == 0 ? run.sum[0] : sum;
            for (int rank = 0; rank < sizes[i]; rank++)
                ck_assert_msg(run.sum[rank] == sum, "%s: run %d of %d ranks: rank %d has other bits", algo->name,
                              repeat, sizes[i], rank);
        }
        forget(all);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("determinism");
    TCase *tests = tcase_create("bits");
    int algos = 0;

    while (hoop_algo_get(algos))
        algos++;
    tcase_set_timeout(tests, 120);
    /* THIN: up to 5 ranks, and threads of the most */
    const int end = THIN ? 6 : MOST_RANKS + 1;
    tcase_add_loop_test(tests, as_a_fold_in_threads, 1, end);
    if (!UNDER_TSAN) { /* it sees no race between processes, and is slow */
        tcase_add_loop_test(tests, as_a_fold_in_threads, THIN ? MOST_RANKS : end, MOST_RANKS + 1);
        tcase_add_loop_test(tests, as_a_fold_in_processes, 2, 4);
        tcase_add_loop_test(tests, as_a_fold_on_a_virtual_network, 1, end);
        tcase_add_loop_test(tests, the_same_on_all_ranks_and_in_every_run, 0, algos);
    }
    tcase_add_test(tests, other_orders_are_refused);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
