// SPDX-License-Identifier: BSD-3-Clause
/* Composed plans: every pair of parts over many groupings, proved and executed on integers; groups themselves; the names of
 * composed algorithms; and that what crosses groups is as little as the composition promises. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "brute.h"
#include "harness.h"
#include "plan/cache.h"
#include "plans.h"

enum { MOST = 9 };

static const char *const sizes[] = {"2", "3", "4", "2,1", "1,3", "3,2,1"};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static const char *name_of(const struct hoop_problem *p, const char *groups)
{
    static char text[200];
    char algo[HOOP_ALGO_TEXT];

    hoop_algo_text(algo, hoop_algo_find("hier"), p->inter, p->intra);
    snprintf(text, sizeof text, "%s %s -n %d --root %d --channels %d%s --groups %s", algo, hoop_coll_name(p->coll),
             p->ranks, p->root, p->channels, p->in_place ? " --in-place" : "", groups);
    return text;
}

static void prove_and_execute(const struct hoop_problem *problem, const char *groups, unsigned turn)
{
    const struct hoop_algo *hier = hoop_algo_find("hier");
    struct hoop_plan *plan[PLANS_MOST];

    for (int fuse = 0; fuse < 2; fuse++) {
        struct hoop_check check = {.slices = 2, .credit = 1 + (fuse && turn % 2), .borrow = turn % 3 > 0};
        struct brute brute = {.count = 3 + turn % 40,
                              .slices = 1 + turn % 3,
                              .credit = 1,
                              .borrow = turn % 2 != 0,
                              .mix = turn % 5 == 0,
                              .seed = turn};

        ck_assert_msg(plans_build(plan, hier, *problem, fuse), "%s: %s", name_of(problem, groups),
                      hoop_last_error(NULL));
        ck_assert_msg(hoop_plan_check(plan, &check) == HOOP_OK, "%s: %s", name_of(problem, groups), check.fault);
        ck_assert_msg(brute_run(plan, &brute), "%s: %s", name_of(problem, groups), brute.fault);
        plans_free(plan, problem->ranks);
    }
}

/* All pairs of parts; i is the collective. */
START_TEST(all_parts)
{
    const struct hoop_algo *hier = hoop_algo_find("hier");
    struct hoop_problem p = {.coll = (enum hoop_coll)_i};
    unsigned turn = 0, done = 0;

    for (p.ranks = 3; p.ranks <= MOST; p.ranks++)
        for (int s = 0; s < SIZES; s++) {
            struct hoop_groups *groups;

            ck_assert_int_eq(hoop_groups_cut(&groups, p.ranks, sizes[s]), HOOP_OK);
            p.groups = groups;
            for (int a = -1; a < 0 || hoop_algo_get(a) != NULL; a++)
                for (int b = -1; b < 0 || hoop_algo_get(b) != NULL; b++, turn++) {
                    p.inter = hoop_algo_get(a);
                    p.intra = hoop_algo_get(b);
                    p.in_place = _i != HOOP_BARRIER && turn % 2 != 0;
                    p.channels = turn % 5 == 4 ? 2 : 1;
                    p.root = plans_rooted(p.coll) ? (int)(turn % (unsigned)p.ranks) : 0;
                    if (!hier->applicable(&p))
                        continue;
                    prove_and_execute(&p, sizes[s], turn);
                    done++;
                }
            hoop_groups_free(groups);
        }
    ck_assert_int_eq(done > 50, _i <= HOOP_BARRIER);
}
END_TEST

/* Ranks of a group need not be neighbours. */
START_TEST(scattered_groups)
{
    static const int labels[][8] = {{0, 1, 0, 1, 0, 1, 0, 1}, {7, 3, 3, 7, 1, 1, 7, 3}, {5, 5, 0, 2, 0, 2, 2, 5}};
    struct hoop_problem p = {.coll = (enum hoop_coll)(_i % HOOP_COLLS), .ranks = 8, .channels = 1};
    struct hoop_groups *groups;

    ck_assert_int_eq(hoop_groups_new(&groups, 8, labels[_i / HOOP_COLLS]), HOOP_OK);
    p.groups = groups;
    if (hoop_algo_find("hier")->applicable(&p))
        for (p.root = 0; p.root < (plans_rooted(p.coll) ? 8 : 1); p.root++)
            prove_and_execute(&p, "scattered", (unsigned)p.root);
    else
        ck_assert(p.coll > HOOP_BARRIER || !groups->equal);
    hoop_groups_free(groups);
}
END_TEST

START_TEST(groups_are_lists)
{
    static const int label[] = {9, 4, 9, 4, 4, 1};
    static const int member[] = {0, 2, 1, 3, 4, 5}, group[] = {0, 1, 0, 1, 1, 2}, place[] = {0, 0, 1, 1, 2, 0},
                     first[] = {0, 2, 5, 6};
    struct hoop_groups *groups = NULL;

    ck_assert_int_eq(hoop_groups_new(&groups, 6, label), HOOP_OK);
    ck_assert(groups->ranks == 6 && groups->groups == 3 && !groups->equal);
    ck_assert_mem_eq(groups->member, member, sizeof member);
    ck_assert_mem_eq(groups->group, group, sizeof group);
    ck_assert_mem_eq(groups->place, place, sizeof place);
    ck_assert_mem_eq(groups->first, first, sizeof first);
    hoop_groups_free(groups);
    ck_assert_int_eq(hoop_groups_cut(&groups, 7, "3,1"), HOOP_OK);
    ck_assert(groups->groups == 3 && groups->first[1] == 3 && groups->first[2] == 4 && groups->first[3] == 7);
    hoop_groups_free(groups);
    for (int i = 0; i < 7; i++) {
        static const char *const wrong[] = {"", "0", "2,", "a", "3;1", ",2", "-1"};
        if (i == 2) /* ends in a comma: begins again */
            continue;
        ck_assert_msg(hoop_groups_cut(&groups, 4, wrong[i]) == HOOP_ERR_ARG, "\"%s\"", wrong[i]);
    }
}
END_TEST

/* Equal texts, equal groups: every way to put 6 ranks into up to 3 groups; and the texts are those of the setting. */
START_TEST(groups_in_words)
{
    static const char *const words[] = {"1", "2", "4", "3,2", "2,1,1", "6", "5,1,1"};
    static char text[729][HOOP_GROUPS_TEXT];
    static int number[729][6];
    int made = 0;

    hoop_groups_text(text[0], NULL);
    ck_assert_str_eq(text[0], "none");
    for (int code = 0; code < 729; code++) {
        struct hoop_groups *groups;
        int label[6];

        for (int rank = 0, rest = code; rank < 6; rank++, rest /= 3)
            label[rank] = rest % 3;
        ck_assert_int_eq(hoop_groups_new(&groups, 6, label), HOOP_OK);
        hoop_groups_text(text[made], groups);
        memcpy(number[made++], groups->group, sizeof number[0]);
        hoop_groups_free(groups);
    }
    for (int a = 0; a < made; a++)
        for (int b = 0; b < a; b++)
            ck_assert_msg((strcmp(text[a], text[b]) == 0) == (memcmp(number[a], number[b], sizeof number[a]) == 0),
                          "%s and %s", text[a], text[b]);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct hoop_groups *groups;

        ck_assert_int_eq(hoop_groups_cut(&groups, 13, words[i]), HOOP_OK);
        hoop_groups_text(text[0], groups);
        ck_assert_str_eq(text[0], words[i]);
        hoop_groups_free(groups);
    }
}
END_TEST

START_TEST(names)
{
    static const char *const wrong[] = {"hier(",           "hier(ring",        "hier(ring,",
                                        "hier(ring,rang)", "hier(ring,ring))", "ring(ring,ring)",
                                        "hier(hier,ring)", "hier(,ring)",      ""};
    const struct hoop_algo *algo = NULL, *inter, *intra;
    char text[HOOP_ALGO_TEXT];

    ck_assert(hoop_algo_read("hier(ring,twoshot)", &algo, &inter, &intra));
    ck_assert(algo == hoop_algo_find("hier") && inter == hoop_algo_find("ring") && intra == hoop_algo_find("twoshot"));
    hoop_algo_text(text, algo, inter, intra);
    ck_assert_str_eq(text, "hier(ring,twoshot)");
    ck_assert(hoop_algo_read("hier", &algo, &inter, &intra) && inter == NULL && intra == NULL);
    ck_assert(hoop_algo_read("dbtree", &algo, &inter, &intra) && algo == hoop_algo_find("dbtree"));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(!hoop_algo_read(wrong[i], &algo, &inter, &intra), "%s", wrong[i]);
}
END_TEST

/* Data that leave a group: with equal groups each rank carries its share, else the leader all. */
START_TEST(little_crosses)
{
    static const struct {
        enum hoop_coll coll;
        const char *name, *sizes;
        int ranks, root;
        double vectors; /* that one rank sends to other groups, at most */
    } cases[] = {
        {HOOP_ALL_REDUCE, "hier(ring,twoshot)", "4", 16, 0, 2 * 0.75 / 4},
        {HOOP_ALL_REDUCE, "hier(rhd,ring)", "8", 32, 0, 2 * 0.75 / 8},
        {HOOP_ALL_REDUCE, "hier(ring,tree)", "4", 16, 0, 2 * 0.75},
        {HOOP_ALL_REDUCE, "hier(rhd,tree)", "4,3", 14, 0, 2 * 0.75},
        {HOOP_ALL_GATHER, "hier(bruck,flat)", "4", 16, 0, 0.75 / 4},
        {HOOP_REDUCE_SCATTER, "hier(rhd,twoshot)", "4", 16, 0, 0.75 / 4},
        {HOOP_BROADCAST, "hier(chain,tree)", "4,3", 14, 5, 1},
        {HOOP_REDUCE, "hier(chain,chain)", "4", 16, 5, 1},
    };
    struct hoop_problem p = {.coll = cases[_i].coll, .ranks = cases[_i].ranks, .root = cases[_i].root, .channels = 1};
    const struct hoop_algo *algo;
    struct hoop_groups *groups;
    struct hoop_plan *plan;
    double most = 0;

    ck_assert_int_eq(hoop_groups_cut(&groups, p.ranks, cases[_i].sizes), HOOP_OK);
    p.groups = groups;
    ck_assert(hoop_algo_read(cases[_i].name, &algo, &p.inter, &p.intra));
    for (p.rank = 0; p.rank < p.ranks; p.rank++) {
        int sent = 0;

        ck_assert_msg(hoop_plan_build(&plan, algo, &p, true) == HOOP_OK, "%s", hoop_last_error(NULL));
        for (uint32_t l = 0; l < plan->lanes; l++)
            for (uint32_t s = 0; s < plan->lane[l].steps; s++) {
                const struct hoop_step *step = &plan->lane[l].step[s];
                sent += step->kind == HOOP_STEP_SEND && groups->group[step->peer] != groups->group[p.rank];
            }
        most = (double)sent / plan->grid > most ? (double)sent / plan->grid : most;
        hoop_plan_free(plan);
    }
    ck_assert_double_eq_tol(most, cases[_i].vectors, 1e-9);
    hoop_groups_free(groups);
}
END_TEST

/* The cache keeps plans of other parts and groups apart. */
START_TEST(cached_by_parts)
{
    struct hoop_plan_cache cache = {0};
    struct hoop_groups *twos, *fours;
    const struct hoop_plan *a, *b, *c, *again;
    struct hoop_problem p = {.coll = HOOP_ALL_REDUCE, .ranks = 8, .channels = 1};
    const struct hoop_algo *hier = hoop_algo_find("hier");

    ck_assert_int_eq(hoop_groups_cut(&twos, 8, "2"), HOOP_OK);
    ck_assert_int_eq(hoop_groups_cut(&fours, 8, "4"), HOOP_OK);
    p.groups = twos;
    ck_assert_int_eq(hoop_plan_cache_get(&cache, hier, &p, &a), HOOP_OK);
    p.groups = fours;
    ck_assert_int_eq(hoop_plan_cache_get(&cache, hier, &p, &b), HOOP_OK);
    p.inter = hoop_algo_find("ring");
    ck_assert_int_eq(hoop_plan_cache_get(&cache, hier, &p, &c), HOOP_OK);
    p.groups = twos;
    p.inter = NULL;
    ck_assert_int_eq(hoop_plan_cache_get(&cache, hier, &p, &again), HOOP_OK);
    ck_assert(a != b && b != c && a != c && again == a && cache.built == 3);
    hoop_plan_cache_clear(&cache);
    hoop_groups_free(twos);
    hoop_groups_free(fours);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("composed plans");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, all_parts, 0, HOOP_COLLS);
    tcase_add_loop_test(tests, scattered_groups, 0, 3 * HOOP_COLLS);
    tcase_add_test(tests, groups_are_lists);
    tcase_add_test(tests, groups_in_words);
    tcase_add_test(tests, names);
    tcase_add_loop_test(tests, little_crosses, 0, 8);
    tcase_add_test(tests, cached_by_parts);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
