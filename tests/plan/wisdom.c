// SPDX-License-Identifier: BSD-3-Clause
/* Wisdom files: what is written is read, later lines replace earlier ones, and every other text is refused with line and word. */
#include "plan/wisdom.h"
#include "harness.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "hoop-wisdom 2\n"
#define GOOD "all_reduce real out_of_place 1048576 4 2 131072 1 none twoshot 207400"

START_TEST(what_is_written_is_read)
{
    struct hoop_wisdom wisdom = {NULL, 0, 0}, again = {NULL, 0, 0};
    const struct hoop_algo *algo;
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++)
        for (int coll = 0; coll < HOOP_COLLS; coll++)
            for (int power = 0; power < HOOP_WISDOM_SIZES && coll != HOOP_BARRIER; power += 7) {
                const struct hoop_wisdom_line line = {.coll = (enum hoop_coll)coll,
                                                      .kind = (enum hoop_wisdom_class)(power % HOOP_WISDOM_CLASSES),
                                                      .in_place = power % 2 != 0,
                                                      .size = power,
                                                      .ranks = 2 + i,
                                                      .cores = 1 + i,
                                                      .channels = 1 + power % HOOP_MAX_CHANNELS,
                                                      .slice = 4096,
                                                      .groups = "3,2",
                                                      .algo = algo,
                                                      .ns = (uint64_t)1 << power};
                ck_assert_int_eq(hoop_wisdom_put(&wisdom, &line), HOOP_OK);
            }
    ck_assert_int_eq(hoop_wisdom_print(&wisdom, file), HOOP_OK);
    fclose(file);
    ck_assert_int_eq(hoop_wisdom_parse(&again, text, size), HOOP_OK);
    ck_assert_uint_eq(again.lines, wisdom.lines);
    for (size_t i = 0; i < wisdom.lines; i++) {
        const struct hoop_wisdom_line *a = &wisdom.line[i], *b = &again.line[i];
        ck_assert(a->coll == b->coll && a->kind == b->kind && a->in_place == b->in_place && a->size == b->size);
        ck_assert(a->ranks == b->ranks && a->cores == b->cores && a->channels == b->channels && a->slice == b->slice);
        ck_assert(a->algo == b->algo && a->ns == b->ns && strcmp(a->groups, b->groups) == 0);
    }
    free(text);
    hoop_wisdom_free(&wisdom);
    hoop_wisdom_free(&again);
}
END_TEST

START_TEST(later_lines_count)
{
    static const char text[] = HEAD GOOD "\n\n# remark\nbroadcast data in_place 1 2 2 4096 1 none tree 0\r\n"
                                         "all_reduce real out_of_place 1048576 4 2 131072 1 none flat 100 # faster\n"
                                         "all_reduce real out_of_place 1048576 4 2 131072 1 2 flat 100";
    struct hoop_wisdom wisdom = {NULL, 0, 0};

    ck_assert_int_eq(hoop_wisdom_parse(&wisdom, text, sizeof text - 1), HOOP_OK);
    ck_assert_uint_eq(wisdom.lines, 3); /* other groups are another matter */
    ck_assert_str_eq(wisdom.line[0].algo->name, "flat");
    ck_assert_uint_eq(wisdom.line[0].ns, 100);
    ck_assert_int_eq(wisdom.line[0].size, 20);
    ck_assert_str_eq(wisdom.line[0].groups, "none");
    ck_assert_int_eq(wisdom.line[1].coll, HOOP_BROADCAST);
    hoop_wisdom_free(&wisdom);
}
END_TEST

START_TEST(other_texts_are_refused)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "no wisdom"},
        {"hoop-wisdom 1\n", "line 1"},
        {"hoop-wisdom 2 x\n", "line 1"},
        {"hoop-model 1\n", "line 1"},
        {HEAD "all_reduced real out_of_place 1 4 2 4096 1 none flat 1", "line 2: all_reduced is no collective"},
        {HEAD "barrier data out_of_place 1 4 2 4096 1 none flat 1", "line 2: barrier is no collective"},
        {HEAD "\nall_reduce float out_of_place 1 4 2 4096 1 none flat 1", "line 3: float is no class"},
        {HEAD "all_reduce real place 1 4 2 4096 1 none flat 1", "line 2: place is no place"},
        {HEAD "all_reduce real in_place 3 4 2 4096 1 none flat 1", "line 2: 3 is no number of bytes"},
        {HEAD "all_reduce real in_place 0 4 2 4096 1 none flat 1", "line 2: 0 is no number of bytes"},
        {HEAD "all_reduce real in_place 281474976710656 4 2 4096 1 none flat 1", "line 2: 281474976710656 is no"},
        {HEAD "all_reduce real in_place 99999999999999999999999999 4 2 4096 1 none flat 1", "line 2: 9999999"},
        {HEAD "all_reduce real in_place 1 -4 2 4096 1 none flat 1", "line 2: -4 is no number of ranks"},
        {HEAD "all_reduce real in_place 1 4 0 4096 1 none flat 1", "line 2: 0 is no number of cores"},
        {HEAD "all_reduce real in_place 1 4 2 99999999 1 none flat 1", "line 2: 99999999 is no size of a slice"},
        {HEAD "all_reduce real in_place 1 4 2 4096 17 none flat 1", "line 2: 17 is no number of channels"},
        {HEAD "all_reduce real in_place 1 4 2 4096 1 none flatt 1", "line 2: flatt is no algorithm"},
        {HEAD "all_reduce real in_place 1 4 2 4096 1 none flat 1.5", "line 2: 1.5 is no number of nanoseconds"},
        {HEAD "all_reduce real in_place 1 4 2 4096 1 none flat", "line 2: number of nanoseconds is missing"},
        {HEAD "all_reduce real in_place 1 4 2 4096 1 flat 1", "line 2: flat is no groups"},
        {HEAD "all_reduce real in_place 1 4 2 4096 1 ,2 flat 1", "line 2: ,2 is no groups"},
        {HEAD "all_reduce real in_place 1 4 2 4096 1 ~12x flat 1", "line 2: ~12x is no groups"},
        {HEAD "all_reduce real in_place 1 4 2 4096 1 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1 flat 1", "line 2: 1,1,1"},
        {HEAD GOOD " 7", "line 2: 7 is no part of a line"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hoop_wisdom wisdom = {NULL, 0, 0};
        ck_assert_msg(hoop_wisdom_parse(&wisdom, cases[i].text, strlen(cases[i].text)) == HOOP_ERR_ARG,
                      "case %zu is taken", i);
        ck_assert_msg(strstr(hoop_last_error(NULL), cases[i].error), "case %zu: %s", i, hoop_last_error(NULL));
        hoop_wisdom_free(&wisdom);
    }
}
END_TEST

START_TEST(no_byte_ends_a_text_early)
{
    static const char text[] = HEAD "all_reduce real in_place 1 4 2 4096 1 2\0x flat 1";
    struct hoop_wisdom wisdom = {NULL, 0, 0};

    ck_assert_int_eq(hoop_wisdom_parse(&wisdom, text, sizeof text - 1), HOOP_ERR_ARG);
    ck_assert_ptr_nonnull(strstr(hoop_last_error(NULL), "is no groups"));
    hoop_wisdom_free(&wisdom);
}
END_TEST

START_TEST(sizes_are_powers_of_two)
{
    for (int power = 0; power < HOOP_WISDOM_SIZES; power++) {
        ck_assert_int_eq(hoop_wisdom_size((size_t)1 << power), power);
        ck_assert_int_eq(hoop_wisdom_size(((size_t)2 << power) - 1), power);
    }
    ck_assert_int_eq(hoop_wisdom_size(SIZE_MAX), HOOP_WISDOM_SIZES - 1);
    ck_assert_int_eq(hoop_wisdom_size(0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wisdom");
    TCase *all = tcase_create("all");

    tcase_add_test(all, what_is_written_is_read);
    tcase_add_test(all, later_lines_count);
    tcase_add_test(all, other_texts_are_refused);
    tcase_add_test(all, no_byte_ends_a_text_early);
    tcase_add_test(all, sizes_are_powers_of_two);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
