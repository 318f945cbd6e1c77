// SPDX-License-Identifier: BSD-3-Clause
/* Created operators: what must be equal on all ranks, what is refused, how they begin and end. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* Its results do not matter here. */
static void keep_left(void *to, const void *left, const void *right, size_t count, enum hoop_type type, void *context)
{
    (void)context, (void)right, (void)type;
    if (to != left)
        memmove(to, left, count);
}

/* ---- what differs between ranks ---- */

struct difference {
    enum { ORDER, SIZE, SIDES, BUILT_IN } what;
    size_t count;
    const char *words[2]; /* that the report holds */
};

static enum hoop_op create_differently(const struct difference *difference, int rank, struct hoop_comm *comm)
{
    const bool odd = rank == 1;
    const float two = 2;
    enum hoop_op sum = HOOP_SUM, function = HOOP_SUM;

    if (difference->what == ORDER && odd)
        hoop_op_user_create(&function, keep_left, NULL, 0, 1, comm);
    hoop_op_premul_create(&sum, &two, HOOP_F32, comm);
    if (difference->what == ORDER)
        return sum;
    if (difference->what == BUILT_IN)
        return odd ? HOOP_SUM : sum;
    hoop_op_user_create(&function, keep_left, NULL, difference->what == SIZE ? odd ? 8 : 4 : 0,
                        difference->what == SIDES ? odd : 1, comm);
    return function;
}

static int differing_body(int rank, struct hoop_comm *comm, void *argument)
{
    const struct difference *difference = argument;
    const enum hoop_op op = create_differently(difference, rank, comm);
    const enum hoop_type type = difference->what == SIZE ? HOOP_U8 : HOOP_F32;
    unsigned char *buffer = calloc(2 * difference->count, 8);

    enum hoop_status status =
        hoop_all_reduce(buffer, buffer + 8 * difference->count, difference->count, type, op, comm, NULL);
    if (status == HOOP_OK) /* noticed by the others; told at the next call */
        status = hoop_barrier(comm, NULL);
    const char *text = hoop_last_error(comm);
    free(buffer);
    if (status != HOOP_ERR_MISMATCH || !strstr(text, difference->words[0]) || !strstr(text, difference->words[1])) {
        fprintf(stderr, "rank %d: status %d: %s\n", rank, status, text);
        return 1;
    }
    hoop_comm_destroy(comm);
    return 0;
}

START_TEST(differences_are_noticed)
{
    static const struct difference differences[] = {
        {ORDER, 0, {"premul 0", "premul 1"}},
        {SIZE, 0, {"user 1", "elements of another size"}},
        {SIDES, 0, {"user 1", "user_in_order 1"}},
        {BUILT_IN, 0, {"premul 0", "sum"}},
    };

    unsetenv("HOOP_ALGO");
    unsetenv("HOOP_FLAT_MAX");
    for (size_t i = 0; i < sizeof differences / sizeof differences[0]; i++)
        for (size_t count = 3; count <= 30000; count *= 10000) {
            struct difference difference = differences[i];
            difference.count = count;
            harness_threads(3, differing_body, &difference);
        }
}
END_TEST

/* ---- life ---- */

static int limits_body(int rank, struct hoop_comm *comm, void *argument)
{
    enum hoop_op op[64], more = HOOP_SUM;
    const int32_t three = 3;

    (void)rank, (void)argument;
    for (int i = 0; i < 64; i++) {
        HARNESS_EXPECT((i % 2 ? hoop_op_premul_create(&op[i], &three, HOOP_I32, comm)
                              : hoop_op_user_create(&op[i], keep_left, NULL, 4096, i % 4, comm)) == HOOP_OK);
        HARNESS_EXPECT((int)op[i] >= HOOP_OPS_CREATED && (int)op[i] < HOOP_OPS_END);
        for (int other = 0; other < i; other++)
            HARNESS_EXPECT(op[other] != op[i]);
    }
    HARNESS_EXPECT(hoop_op_premul_create(&more, &three, HOOP_I32, comm) == HOOP_ERR_ARG && more == HOOP_SUM);
    HARNESS_EXPECT(hoop_op_destroy(op[41], comm) == HOOP_OK && hoop_op_destroy(op[41], comm) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_op_premul_create(&more, &three, HOOP_I32, comm) == HOOP_OK && more == op[41]);
    HARNESS_EXPECT(strcmp(hoop_op_name(op[1]), "premul") == 0 && strcmp(hoop_op_name(op[0]), "user_in_order") == 0);
    HARNESS_EXPECT(strcmp(hoop_op_name(op[2]), "user") == 0 && !hoop_op_accepts(op[1], HOOP_I32));
    HARNESS_EXPECT(strcmp(hoop_op_name((enum hoop_op)(HOOP_OPS + 1)), "?") == 0);
    HARNESS_EXPECT(hoop_comm_destroy(comm) == HOOP_OK); /* with all of them */
    return 0;
}

START_TEST(numbers)
{
    for (int ranks = 1; ranks <= 2; ranks++)
        harness_threads(ranks, limits_body, NULL);
}
END_TEST

static int wrong_body(int rank, struct hoop_comm *comm, void *argument)
{
    struct hoop_comm *half = NULL;
    enum hoop_op sum, function, none = HOOP_SUM;
    float x[8] = {1}, y[8];

    (void)argument;
    HARNESS_EXPECT(hoop_op_premul_create(NULL, x, HOOP_F32, comm) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_op_premul_create(&none, NULL, HOOP_F32, comm) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_op_premul_create(&none, x, HOOP_F32_I32, comm) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_op_premul_create(&none, x, HOOP_TYPES, comm) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_op_premul_create(&none, x, HOOP_F32, NULL) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_op_user_create(&none, NULL, NULL, 0, 1, comm) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_op_user_create(&none, keep_left, NULL, 4097, 1, comm) == HOOP_ERR_ARG && none == HOOP_SUM);
    HARNESS_EXPECT(hoop_op_premul_create(&sum, x, HOOP_F32, comm) == HOOP_OK);
    HARNESS_EXPECT(hoop_op_user_create(&function, keep_left, NULL, 8, 1, comm) == HOOP_OK);
    HARNESS_EXPECT(hoop_all_reduce(x, y, 1, HOOP_F64, sum, comm, NULL) == HOOP_ERR_ARG);
    HARNESS_EXPECT(strstr(hoop_last_error(NULL), "float") && strstr(hoop_last_error(NULL), "double"));
    HARNESS_EXPECT(hoop_all_reduce(x, y, 1, HOOP_F32, function, comm, NULL) == HOOP_ERR_ARG);
    HARNESS_EXPECT(strstr(hoop_last_error(NULL), "8 bytes"));
    HARNESS_EXPECT(hoop_reduce_scatter(x, y, SIZE_MAX / 8, HOOP_U8, function, comm, NULL) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_all_reduce(x, (char *)x + 8, 2, HOOP_U8, function, comm, NULL) ==
                   HOOP_ERR_ARG); /* they overlap */
    HARNESS_EXPECT(hoop_all_reduce(x, y, 1, HOOP_F32, (enum hoop_op)(sum + 5), comm, NULL) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_all_reduce(x, y, 1, HOOP_F32, (enum hoop_op)(HOOP_OPS + 3), comm, NULL) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_all_reduce(x, y, 1, HOOP_F32, HOOP_OPS_END, comm, NULL) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_comm_split(comm, 0, rank, &half) == HOOP_OK);
    HARNESS_EXPECT(hoop_all_reduce(x, y, 1, HOOP_F32, sum, half, NULL) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_op_destroy(sum, half) == HOOP_ERR_ARG && hoop_op_destroy(HOOP_SUM, comm) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_op_destroy(sum, NULL) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_comm_destroy(half) == HOOP_OK);
    HARNESS_EXPECT(hoop_all_reduce(x, y, 1, HOOP_F32, sum, comm, NULL) == HOOP_OK && y[0] == 2); /* nothing happened */
    HARNESS_EXPECT(hoop_op_destroy(sum, comm) == HOOP_OK);
    HARNESS_EXPECT(hoop_all_reduce(x, y, 1, HOOP_F32, sum, comm, NULL) == HOOP_ERR_ARG);
    HARNESS_EXPECT(hoop_comm_destroy(comm) == HOOP_OK);
    return 0;
}

START_TEST(wrong_uses)
{
    unsetenv("HOOP_ALGO");
    harness_threads(2, wrong_body, NULL);
}
END_TEST

/* Streams, groups and handles: destroying waits for the first, and refuses inside of the second and under the third. */
static int ending_body(int rank, struct hoop_comm *comm, void *argument)
{
    static const size_t large = 50000;
    int64_t *x = malloc(3 * large * sizeof *x), *y = malloc(3 * large * sizeof *y);
    const int64_t factor = rank + 1;
    hoop_stream *stream;
    struct hoop_handle *handle;
    enum hoop_op op;

    (void)argument;
    for (size_t i = 0; i < 3 * large; i++)
        x[i] = (int64_t)i;
    HARNESS_EXPECT(hoop_stream_create(&stream) == HOOP_OK);
    HARNESS_EXPECT(hoop_op_premul_create(&op, &factor, HOOP_I64, comm) == HOOP_OK);
    for (size_t k = 0; k < 3; k++)
        HARNESS_EXPECT(hoop_all_reduce(x + k * large, y + k * large, large, HOOP_I64, op, comm, stream) == HOOP_OK);
    HARNESS_EXPECT(hoop_op_destroy(op, comm) == HOOP_OK);
    for (size_t i = 0; i < 3 * large; i++)
        HARNESS_EXPECT(y[i] == 6 * x[i]);
    HARNESS_EXPECT(hoop_op_premul_create(&op, &factor, HOOP_I64, comm) == HOOP_OK);
    HARNESS_EXPECT(hoop_group_start() == HOOP_OK);
    for (size_t k = 0; k < 3; k++)
        HARNESS_EXPECT(hoop_all_reduce(x + k, y + k, 1, HOOP_I64, op, comm, NULL) == HOOP_OK);
    HARNESS_EXPECT(hoop_op_destroy(op, comm) == HOOP_ERR_ARG && strstr(hoop_last_error(NULL), "group"));
    HARNESS_EXPECT(hoop_group_end() == HOOP_OK && y[0] == 0 && y[1] == 6 && y[2] == 12);
    HARNESS_EXPECT(hoop_all_reduce_init(x, y, 3, HOOP_I64, op, comm, NULL, &handle) == HOOP_OK);
    HARNESS_EXPECT(hoop_op_destroy(op, comm) == HOOP_ERR_ARG && strstr(hoop_last_error(NULL), "handle"));
    x[2] = 100;
    HARNESS_EXPECT(hoop_start(handle) == HOOP_OK && y[2] == 600);
    HARNESS_EXPECT(hoop_handle_free(handle) == HOOP_OK && hoop_op_destroy(op, comm) == HOOP_OK);
    HARNESS_EXPECT(hoop_stream_destroy(stream) == HOOP_OK && hoop_comm_destroy(comm) == HOOP_OK);
    free(x);
    free(y);
    return 0;
}

START_TEST(ending)
{
    harness_threads(3, ending_body, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rules of created operators");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 200);
    tcase_add_test(tests, differences_are_noticed);
    tcase_add_test(tests, numbers);
    tcase_add_test(tests, wrong_uses);
    tcase_add_test(tests, ending);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
