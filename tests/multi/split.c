// SPDX-License-Identifier: BSD-3-Clause
/* hoop_comm_split: every rank knows by a formula where it must end up; the new communicators work, apart and beside the parent. */
#include <check.h>
#include <stdlib.h>

#include "harness.h"

enum { CAP = 60 };

struct shape {
    int colors;    /* rank % colors; 0: every rank its own color */
    bool backward; /* keys in falling order */
    bool some_out; /* every third rank joins none */
};

static int color_of(const struct shape *shape, int rank)
{
    if (shape->some_out && rank % 3 == 1)
        return HOOP_NO_COLOR;
    return shape->colors ? rank % shape->colors : rank;
}

/* Sum the parent's rank numbers in the new communicator, and check the place in it. */
static enum hoop_status use(const struct shape *shape, int rank, int ranks, struct hoop_comm *split)
{
    int sum = rank, want = 0, before = 0, size = 0;
    enum hoop_status status = hoop_all_reduce(&sum, &sum, 1, HOOP_I32, HOOP_SUM, split, NULL);

    for (int other = 0; other < ranks; other++)
        if (color_of(shape, other) == color_of(shape, rank)) {
            want += other;
            size++;
            before += shape->backward ? other > rank : other < rank;
        }
    return status != HOOP_OK                                                                 ? status
           : sum == want && hoop_comm_rank(split) == before && hoop_comm_size(split) == size ? HOOP_OK
                                                                                             : HOOP_ERR_INTERNAL;
}

static int body(int rank, struct hoop_comm *comm, void *argument)
{
    const struct shape *shape = argument;
    const int ranks = hoop_comm_size(comm), color = color_of(shape, rank);
    struct hoop_comm *split = comm;

    enum hoop_status status = hoop_comm_split(comm, color, shape->backward ? -rank : 5, &split);
    if (status == HOOP_OK && (color == HOOP_NO_COLOR) != (split == NULL))
        status = HOOP_ERR_INTERNAL;
    for (int round = 0; status == HOOP_OK && round < 3; round++) {
        if (split)
            status = use(shape, rank, ranks, split);
        if (status == HOOP_OK)
            status = hoop_barrier(comm, NULL);
    }
    if (status == HOOP_OK)
        status = hoop_comm_destroy(split);
    return status != HOOP_OK || hoop_comm_destroy(comm) != HOOP_OK;
}

START_TEST(every_shape)
{
    for (int colors = 0; colors <= 3; colors++)
        for (int backward = 0; backward < 2; backward++)
            for (int some_out = 0; some_out < 2; some_out++) {
                struct shape shape = {colors, backward, some_out};
                harness_threads(_i, body, &shape);
            }
}
END_TEST

static int bad_color(int rank, struct hoop_comm *comm, void *argument)
{
    struct hoop_comm *split;

    (void)argument;
    (void)rank;
    if (hoop_comm_split(comm, -7, 0, &split) != HOOP_ERR_ARG || hoop_comm_split(comm, 0, 0, NULL) != HOOP_ERR_ARG)
        return 1;
    return hoop_comm_destroy(comm) != HOOP_OK; /* nothing happened */
}

START_TEST(wrong_arguments)
{
    harness_threads(2, bad_color, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("split");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, CAP);
    tcase_add_loop_test(tests, every_shape, 1, 8);
    tcase_add_test(tests, wrong_arguments);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
