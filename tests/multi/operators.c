// SPDX-License-Identifier: BSD-3-Clause
/* Created operators: premultiplied sums and functions of the user, over ranks, algorithms, types, sizes and places. All data are
 * such that results are known to the bit. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype/dtype.h"
#include "harness.h"
#include "hoop/plan.h"

enum { MOST_RANKS = 5, COUNTS = 6, MOST = 1300, ELEMENT_MOST = 24, SPACE = 2 * MOST_RANKS * MOST * ELEMENT_MOST + 256 };

static const size_t counts[COUNTS] = {0, 1, 5, 33, 260, MOST};
static const enum hoop_coll colls[] = {HOOP_ALL_REDUCE, HOOP_REDUCE, HOOP_REDUCE_SCATTER};
enum { COLLS = sizeof colls / sizeof colls[0] };

/* ---- one call ---- */

struct call {
    enum hoop_coll coll;
    enum hoop_op op;
    enum hoop_type type;
    size_t count, element; /* element: bytes */
    int ranks, rank, root;
    bool in_place;
    unsigned char *in, *out;
};

static bool scatters(const struct call *c)
{
    return c->coll == HOOP_REDUCE_SCATTER;
}

/* Elements that a rank puts in, and the first one of which it gets the result. */
static size_t given(const struct call *c)
{
    return scatters(c) ? c->count * (size_t)c->ranks : c->count;
}

static size_t first_got(const struct call *c)
{
    return scatters(c) ? c->count * (size_t)c->rank : 0;
}

static bool receives(const struct call *c)
{
    return c->coll != HOOP_REDUCE || c->rank == c->root;
}

/* Where the buffers lie in `base`; what must not be touched is marked. */
static void lay_out(struct call *c, unsigned char *base)
{
    const size_t in_bytes = given(c) * c->element;
    const bool in_place = c->in_place && receives(c);

    memset(base, 0xa5, in_bytes + (c->count + 1) * c->element + 64);
    c->in = base;
    c->out = in_place ? base + first_got(c) * c->element : base + in_bytes + 16;
}

static enum hoop_status make(const struct call *c, struct hoop_comm *comm, hoop_stream *stream)
{
    switch (c->coll) {
    case HOOP_ALL_REDUCE:
        return hoop_all_reduce(c->in, c->out, c->count, c->type, c->op, comm, stream);
    case HOOP_REDUCE:
        return hoop_reduce(c->in, c->out, c->count, c->type, c->op, c->root, comm, stream);
    default:
        return hoop_reduce_scatter(c->in, c->out, c->count, c->type, c->op, comm, stream);
    }
}

static bool complain(const struct call *c, const char *what, size_t i)
{
    fprintf(stderr, "%s ranks=%d rank=%d root=%d op=%s type=%s element=%zu count=%zu in_place=%d algo=%s: %s %zu: %s\n",
            hoop_coll_name(c->coll), c->ranks, c->rank, c->root, hoop_op_name(c->op), hoop_type_name(c->type),
            c->element, c->count, c->in_place, getenv("HOOP_ALGO"), what, i, hoop_last_error(NULL));
    return false;
}

/* expect(i) writes what element i of the whole vector must be. */
typedef void (*expect)(const struct call *c, size_t i, void *to);

static bool right(const struct call *c, expect expected)
{
    unsigned char want[ELEMENT_MOST];

    for (size_t i = 0; receives(c) && i < c->count; i++) {
        expected(c, first_got(c) + i, want);
        if (memcmp(want, c->out + i * c->element, c->element) != 0)
            return complain(c, "element", i);
    }
    if (c->out[(receives(c) ? c->count : 0) * c->element] != 0xa5 && !c->in_place)
        return complain(c, "written behind", c->count);
    return true;
}

/* ---- premultiplied sums ---- */

static bool is_real(enum hoop_type type)
{
    return hoop_type_wide(type) == HOOP_F32 || type == HOOP_F64;
}

static void put(enum hoop_type type, void *to, double real, int64_t whole)
{
    const float narrow = (float)real;
    const size_t size = hoop_type_size(type);

    if (type == HOOP_F64)
        memcpy(to, &real, sizeof real);
    else if (is_real(type))
        hoop_kernel_narrow(to, &narrow, 1, type);
    else
        for (size_t byte = 0; byte < size; byte++) /* in the machine's order */
            ((unsigned char *)to)[__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? byte : size - 1 - byte] =
                (unsigned char)((uint64_t)whole >> 8 * byte);
}

/* Reals: exact until the last rounding. Integers wrap. */
static int64_t value_of(int rank, size_t i)
{
    return (int64_t)(((size_t)rank * 5 + i * 3 + i / 7) % 7) - 3;
}

static double real_factor(int rank)
{
    return (rank + 1) * 0.5;
}

static int64_t whole_factor(int rank)
{
    return rank % 2 ? -45 * (int64_t)rank - 1 : 0x0123456789abcdef + rank;
}

static void expect_sum(const struct call *c, size_t i, void *to)
{
    double real = 0;
    uint64_t whole = 0;

    for (int rank = 0; rank < c->ranks; rank++) {
        real += real_factor(rank) * (double)value_of(rank, i);
        whole += (uint64_t)whole_factor(rank) * (uint64_t)value_of(rank, i);
    }
    put(c->type, to, real, (int64_t)whole);
}

static bool try_sum(struct call *c, struct hoop_comm *comm, unsigned char *base)
{
    c->element = hoop_type_size(c->type);
    lay_out(c, base);
    for (size_t i = 0; i < given(c); i++)
        put(c->type, c->in + i * c->element, (double)value_of(c->rank, i), value_of(c->rank, i));
    return make(c, comm, NULL) == HOOP_OK ? right(c, expect_sum) : complain(c, "status", 0);
}

/* One operator a type. */
static int sums_body(int rank, struct hoop_comm *comm, void *argument)
{
    const int ranks = hoop_comm_size(comm);
    unsigned char *own = malloc(SPACE), *shared;
    unsigned turn = 0;

    (void)argument;
    HARNESS_EXPECT(hoop_mem_alloc(comm, (void **)&shared, SPACE) == HOOP_OK);
    for (int type = 0; type < HOOP_TYPES; type++) {
        unsigned char scalar[8] = {0};
        enum hoop_op op;

        if (!hoop_op_accepts(HOOP_PROD, (enum hoop_type)type))
            continue;
        put((enum hoop_type)type, scalar, real_factor(rank), whole_factor(rank));
        HARNESS_EXPECT(hoop_op_premul_create(&op, scalar, (enum hoop_type)type, comm) == HOOP_OK);
        memset(scalar, 0xff, sizeof scalar); /* it was copied */
        for (int k = 0; k < COLLS * 2 * COUNTS; k++, turn++) {
            struct call c = {.coll = colls[k % COLLS],
                             .op = op,
                             .type = (enum hoop_type)type,
                             .count = counts[k / COLLS / 2],
                             .ranks = ranks,
                             .rank = rank,
                             .root = (int)(turn % (unsigned)ranks),
                             .in_place = k / COLLS % 2};
            HARNESS_EXPECT(try_sum(&c, comm, turn % 3 ? own : shared));
        }
        if (type % 2)
            HARNESS_EXPECT(hoop_op_destroy(op, comm) == HOOP_OK);
    }
    free(own);
    HARNESS_EXPECT(hoop_mem_free(comm, shared) == HOOP_OK && hoop_comm_destroy(comm) == HOOP_OK);
    return 0;
}

/* Loop index: number of ranks. Number 0 is the automatic choice; with and without the flat exchange. */
static int algo_count(void)
{
    int algos = 0;

    while (hoop_algo_get(algos))
        algos++;
    return algos;
}

static void choose(int i, bool flat)
{
    const struct hoop_algo *algo = i > 0 ? hoop_algo_get(i - 1) : NULL;

    setenv("HOOP_ALGO", algo ? algo->name : "auto", 1);
    setenv("HOOP_SLICE", "4K", 1); /* so that large counts take many slices */
    setenv("HOOP_CHANNELS", i % 2 ? "1" : "2", 1);
    setenv("HOOP_FLAT_MAX", flat ? "4K" : "0", 1);
}

START_TEST(premultiplied)
{
    for (int i = 0; i <= algo_count(); i++) {
        choose(i, i % 3 != 2);
        harness_threads(_i, sums_body, NULL);
    }
}
END_TEST

/* Numbers for which every rounding shows: products and sums in f32 (f64: in f64), in rank order, and one rounding at the end. */
struct exact {
    enum hoop_type type;
    unsigned char in[MOST_RANKS][MOST * 8], factor[MOST_RANKS][8], out[MOST_RANKS][MOST * 8];
};

static double read_real(enum hoop_type type, const void *from, size_t i)
{
    float narrow;
    double real;

    if (type == HOOP_F64) {
        memcpy(&real, (const unsigned char *)from + 8 * i, 8);
        return real;
    }
    hoop_kernel_widen(&narrow, (const unsigned char *)from + i * hoop_type_size(type), 1, type);
    return (double)narrow;
}

static int exact_body(int rank, struct hoop_comm *comm, void *argument)
{
    struct exact *exact = argument;
    enum hoop_op op;

    HARNESS_EXPECT(hoop_op_premul_create(&op, exact->factor[rank], exact->type, comm) == HOOP_OK);
    HARNESS_EXPECT(hoop_all_reduce(exact->in[rank], exact->out[rank], MOST, exact->type, op, comm, NULL) == HOOP_OK);
    HARNESS_EXPECT(hoop_comm_destroy(comm) == HOOP_OK);
    return 0;
}

static void check_exact(const struct exact *exact, int ranks)
{
    for (size_t i = 0; i < MOST; i++) {
        unsigned char want[8];
        double sum = 0;

        for (int rank = 0; rank < ranks; rank++) {
            double part = read_real(exact->type, exact->in[rank], i) * read_real(exact->type, exact->factor[rank], 0);
            part = exact->type == HOOP_F64 ? part : (double)(float)part;
            sum = rank == 0 ? part : exact->type == HOOP_F64 ? sum + part : (double)((float)sum + (float)part);
        }
        put(exact->type, want, sum, 0);
        for (int rank = 0; rank < ranks; rank++)
            ck_assert_msg(
                memcmp(want, exact->out[rank] + i * hoop_type_size(exact->type), hoop_type_size(exact->type)) == 0,
                "type=%s ranks=%d rank=%d element=%zu", hoop_type_name(exact->type), ranks, rank, i);
    }
}

START_TEST(rounded_once)
{
    static struct exact exact;
    uint64_t state = 7;

    exact.type = (enum hoop_type)_i;
    if (!is_real(exact.type))
        return;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (int way = 0; way < 3; way++) {
            setenv("HOOP_ALGO", way == 2 ? "twoshot" : "flat", 1);
            setenv("HOOP_FLAT_MAX", way == 0 ? "64K" : "0", 1);
            for (int rank = 0; rank < ranks; rank++)
                for (size_t i = 0; i <= MOST; i++) {
                    state = state * 6364136223846793005u + 1442695040888963407u;
                    put(exact.type, i < MOST ? exact.in[rank] + i * hoop_type_size(exact.type) : exact.factor[rank],
                        ((double)(state >> 11) / 0x1p53 - 0.5) * 40, 0);
                }
            harness_threads(ranks, exact_body, &exact);
            check_exact(&exact, ranks);
        }
}
END_TEST

/* ---- functions of the user ---- */

/* What a function is handed; it counts what is wrong with its calls. */
struct context {
    enum hoop_type type;
    size_t calls, wrong;
};

static void note(void *data, size_t count, enum hoop_type type)
{
    struct context *context = data;

    context->calls++;
    context->wrong += count == 0 || type != context->type;
}

/* Upper triangular matrices modulo 2^32: the product is associative and does not commute. */
struct matrix {
    uint32_t a, b, c;
};

static struct matrix product(struct matrix x, struct matrix y)
{
    return (struct matrix){x.a * y.a, x.a * y.b + x.b * y.c, x.c * y.c};
}

static void multiply(void *to, const void *left, const void *right, size_t count, enum hoop_type type, void *context)
{
    note(context, count, type);
    for (size_t i = 0; i < count; i++) {
        struct matrix x, y;

        memcpy(&x, (const unsigned char *)left + i * sizeof x, sizeof x);
        memcpy(&y, (const unsigned char *)right + i * sizeof y, sizeof y);
        x = product(x, y);
        memcpy((unsigned char *)to + i * sizeof x, &x, sizeof x);
    }
}

static struct matrix matrix_of(int rank, size_t i)
{
    const uint32_t mixed = (uint32_t)(i * 2654435761u) + (uint32_t)rank * 40503u;

    return (struct matrix){mixed | 1, mixed >> 3, (mixed >> 7) | 1};
}

static void expect_product(const struct call *c, size_t i, void *to)
{
    struct matrix all = matrix_of(0, i);

    for (int rank = 1; rank < c->ranks; rank++)
        all = product(all, matrix_of(rank, i));
    memcpy(to, &all, sizeof all);
}

static void fill_matrix(const struct call *c, size_t i, void *to)
{
    const struct matrix own = matrix_of(c->rank, i);

    memcpy(to, &own, sizeof own);
}

/* Sum, greatest and parity at once: commutes. */
struct summary {
    uint64_t sum, most, parity;
};

static struct summary join(struct summary x, struct summary y)
{
    return (struct summary){x.sum + y.sum, x.most > y.most ? x.most : y.most, x.parity ^ y.parity};
}

static void summarize(void *to, const void *left, const void *right, size_t count, enum hoop_type type, void *context)
{
    note(context, count, type);
    for (size_t i = 0; i < count; i++) {
        struct summary x, y;

        memcpy(&x, (const unsigned char *)left + i * sizeof x, sizeof x);
        memcpy(&y, (const unsigned char *)right + i * sizeof y, sizeof y);
        x = join(x, y);
        memcpy((unsigned char *)to + i * sizeof x, &x, sizeof x);
    }
}

static struct summary summary_of(int rank, size_t i)
{
    const uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15u * ((uint64_t)rank + 1);

    return (struct summary){mixed, mixed >> 5, mixed << 1};
}

static void expect_summary(const struct call *c, size_t i, void *to)
{
    struct summary all = summary_of(0, i);

    for (int rank = 1; rank < c->ranks; rank++)
        all = join(all, summary_of(rank, i));
    memcpy(to, &all, sizeof all);
}

static void fill_summary(const struct call *c, size_t i, void *to)
{
    const struct summary own = summary_of(c->rank, i);

    memcpy(to, &own, sizeof own);
}

/* Of a type: the left operand, which is that of rank 0 in the end. */
static void take_left(void *to, const void *left, const void *right, size_t count, enum hoop_type type, void *context)
{
    (void)right;
    note(context, count, type);
    if (to != left)
        memmove(to, left, count * hoop_type_size(type));
}

static void fill_rank(const struct call *c, size_t i, void *to)
{
    put(c->type, to, (double)c->rank + (double)(i % 5), c->rank + (int64_t)(i % 5));
}

static void expect_left(const struct call *c, size_t i, void *to)
{
    put(c->type, to, (double)(i % 5), (int64_t)(i % 5));
}

static const struct kind {
    hoop_op_function function;
    size_t element;
    bool commutes;
    enum hoop_type type;
    void (*fill)(const struct call *c, size_t i, void *to);
    expect expected;
} kinds[] = {
    {multiply, sizeof(struct matrix), false, HOOP_U8, fill_matrix, expect_product},
    {summarize, sizeof(struct summary), true, HOOP_U8, fill_summary, expect_summary},
    {take_left, 0, false, HOOP_BF16, fill_rank, expect_left},
    {take_left, 0, false, HOOP_I64, fill_rank, expect_left},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Is the algorithm that HOOP_ALGO names one that must not run such a call? */
static bool forbidden(const struct call *c, const struct kind *kind)
{
    const struct hoop_algo *algo = hoop_algo_find(getenv("HOOP_ALGO"));
    const bool in_place = c->in_place && c->coll != HOOP_REDUCE && c->count > 0;
    const struct hoop_problem problem = {.coll = c->coll, .ranks = c->ranks, .in_place = in_place, .channels = 1};

    return !kind->commutes && c->ranks > 1 && algo && !algo->rank_order && algo->applicable(&problem);
}

static bool try_function(struct call *c, const struct kind *kind, struct hoop_comm *comm, unsigned char *base)
{
    lay_out(c, base);
    for (size_t i = 0; i < given(c); i++)
        kind->fill(c, i, c->in + i * c->element);
    const enum hoop_status status = make(c, comm, NULL);
    if (forbidden(c, kind))
        return (status == HOOP_ERR_ARG && strstr(hoop_last_error(NULL), getenv("HOOP_ALGO"))) ||
               complain(c, "not refused", 0);
    return status == HOOP_OK ? right(c, kind->expected) : complain(c, "status", 0);
}

static int functions_body(int rank, struct hoop_comm *comm, void *argument)
{
    const int ranks = hoop_comm_size(comm);
    unsigned char *own = malloc(SPACE), *shared;
    unsigned turn = 0;

    (void)argument;
    HARNESS_EXPECT(hoop_mem_alloc(comm, (void **)&shared, SPACE) == HOOP_OK);
    for (int number = 0; number < KINDS; number++) {
        const struct kind *kind = &kinds[number];
        struct context context = {.type = kind->type};
        enum hoop_op op;

        HARNESS_EXPECT(hoop_op_user_create(&op, kind->function, &context, kind->element, kind->commutes, comm) ==
                       HOOP_OK);
        for (int k = 0; k < COLLS * 2 * COUNTS; k++, turn++) {
            struct call c = {.coll = colls[k % COLLS],
                             .op = op,
                             .type = kind->type,
                             .count = counts[k / COLLS / 2],
                             .element = kind->element ? kind->element : hoop_type_size(kind->type),
                             .ranks = ranks,
                             .rank = rank,
                             .root = (int)(turn % (unsigned)ranks),
                             .in_place = k / COLLS % 2};
            HARNESS_EXPECT(try_function(&c, kind, comm, turn % 3 ? own : shared));
        }
        HARNESS_EXPECT(context.wrong == 0 && (ranks > 1 || context.calls == 0));
        HARNESS_EXPECT(hoop_op_destroy(op, comm) == HOOP_OK);
    }
    free(own);
    HARNESS_EXPECT(hoop_mem_free(comm, shared) == HOOP_OK && hoop_comm_destroy(comm) == HOOP_OK);
    return 0;
}

START_TEST(functions)
{
    for (int i = 0; i <= algo_count(); i++)
        for (int flat = 0; flat < 2; flat++) {
            choose(i, flat);
            harness_threads(_i, functions_body, NULL);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("created operators");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 200);
    tcase_add_loop_test(tests, premultiplied, 1, MOST_RANKS + 1);
    tcase_add_loop_test(tests, rounded_once, 0, HOOP_TYPES);
    tcase_add_loop_test(tests, functions, 1, MOST_RANKS + 1);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
