// SPDX-License-Identifier: BSD-3-Clause
/* Agreement: the first line that differs is named with both values, whatever the length; digests see every parameter.
 */
#include "trainer/agree.h"

#include <stdio.h>
#include <string.h>

#include "trainer_check.h"

static char texts[3 * AGREE_TEXT];

/* Rank's text from lines, replacing what was there. */
static void put(int rank, const struct agree *agree)
{
    memcpy(texts + (size_t)rank * AGREE_TEXT, agree->text, AGREE_TEXT);
}

static struct agree lines(const char *data, int batch)
{
    struct agree agree = {0};

    agree_line(&agree, "version", "%d", 100);
    agree_line(&agree, "data", "%s", data);
    agree_line(&agree, "batch", "%d", batch);
    return agree;
}

START_TEST(equal_texts)
{
    const struct agree agree = lines("synthetic", 128);

    for (int rank = 0; rank < 3; rank++)
        put(rank, &agree);
    ck_assert_int_eq(agree_compare(texts, 3), TRAIN_OK);
}
END_TEST

static void check_difference(const struct agree *odd, int rank, const char *zero, const char *other)
{
    const struct agree usual = lines("synthetic", 128);
    char wanted[256];

    for (int i = 0; i < 3; i++)
        put(i, i == rank ? odd : &usual);
    train_fail_clear();
    ck_assert_int_eq(agree_compare(texts, 3), TRAIN_DISAGREE);
    snprintf(wanted, sizeof wanted, "rank 0 has \"%s\", rank %d has \"%s\"", zero, rank, other);
    ck_assert_msg(strstr(train_fail_text(), wanted), "\"%s\" does not say %s", train_fail_text(), wanted);
    ck_assert(!train_fail_is_untold());
}

START_TEST(first_difference_is_named)
{
    struct agree odd = lines("synthetic", 129);

    check_difference(&odd, 1, "batch=128", "batch=129");
    check_difference(&odd, 2, "batch=128", "batch=129");
    odd = lines("fashion-mnist", 12);
    check_difference(&odd, 2, "data=synthetic", "data=fashion-mnist");
    odd = lines("synthetic", 128);
    agree_line(&odd, "more", "%d", 1);
    check_difference(&odd, 1, "", "more=1");
}
END_TEST

/* Far too many lines: nothing is written outside, and a difference in any of them is seen. */
START_TEST(lines_that_do_not_fit)
{
    enum { LINES = 300 };

    for (int odd = -1; odd < LINES; odd += 13) {
        struct agree agree[2] = {0};

        for (int rank = 0; rank < 2; rank++)
            for (int i = 0; i < LINES; i++)
                agree_line(&agree[rank], "key", "a line that is long enough, number %d, %d", i, rank == 1 && i == odd);
        ck_assert_uint_lt(strnlen(agree[0].text, AGREE_TEXT), AGREE_TEXT);
        put(0, &agree[0]);
        put(1, &agree[1]);
        train_fail_clear();
        ck_assert_msg(agree_compare(texts, 2) == (odd < 0 ? TRAIN_OK : TRAIN_DISAGREE), "odd line %d", odd);
    }
}
END_TEST

START_TEST(long_line)
{
    struct agree agree = {0};
    char value[2000];

    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    agree_line(&agree, "key", "%s", value);
    ck_assert_uint_eq(agree.length, 511);
    ck_assert_int_eq(agree.text[510], '\n');
}
END_TEST

/* On one rank the digest itself: every parameter changes it. */
START_TEST(digests)
{
    struct hoop_comm *comm;
    struct model model;
    uint64_t before, after;

    ck_assert_int_eq(hoop_comm_init_rank(&comm, 1, NULL, 0), HOOP_OK);
    model_plan(&model, 2, (size_t[]){6, 5, 3}, ACTIVATION_RELU);
    float *values = calloc(model.values_count, sizeof *values);
    ck_assert_int_eq(model_make(&model, values, 1), TRAIN_OK);
    model_initialise(&model, 1);
    ck_assert_int_eq(agree_digests(&model, comm, &before), TRAIN_OK);
    for (int i = 0; i < model.tensors; i++)
        for (size_t k = 0; k < model.tensor[i].count; k++) {
            model.tensor[i].value[k] += 0.25f;
            ck_assert_int_eq(agree_digests(&model, comm, &after), TRAIN_OK);
            ck_assert_uint_ne(before, after);
            model.tensor[i].value[k] -= 0.25f;
            before = after;
        }
    model_free(&model);
    free(values);
    ck_assert_int_eq(hoop_comm_destroy(comm), HOOP_OK);
}
END_TEST

/* A failure of this rank before the exchange ends it with that code, and the others need not be stopped. */
START_TEST(early_failure)
{
    const struct agree agree = {0};
    struct hoop_comm *comm;

    train_fail_clear();
    ck_assert_int_eq(hoop_comm_init_rank(&comm, 1, NULL, 0), HOOP_OK);
    const int code = train_fail(TRAIN_DATA, "no data");
    ck_assert(train_fail_is_untold());
    ck_assert_int_eq(agree_exchange(&agree, code, comm), TRAIN_DATA);
    ck_assert(!train_fail_is_untold());
    ck_assert_str_eq(train_fail_text(), "no data");
    ck_assert_int_eq(hoop_comm_destroy(comm), HOOP_OK);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        equal_texts, first_difference_is_named, lines_that_do_not_fit, long_line, digests, early_failure, NULL};

    return run_tests("trainer agree", tests, 60);
}
