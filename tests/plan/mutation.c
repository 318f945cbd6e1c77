// SPDX-License-Identifier: BSD-3-Clause
/* Who checks the checker? One field of one step of a correct plan is changed, or a step dropped, doubled or swapped
 * with the next; the checker must object, or the changed plans must still work when they are executed on integers in
 * many random orders. Changes that can never be harmless are listed as such and must all be caught. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "brute.h"
#include "harness.h"
#include "plans.h"
#include "tsan.h"

enum change { KIND, PEER, TO_CHUNK, FROM_CHUNK, TO_BUFFER, FROM_BUFFER, FLAG, DROPPED, DOUBLED, SWAPPED, CHANGES };

static const char *const names[CHANGES] = {
    [KIND] = "kind",
    [PEER] = "peer",
    [TO_CHUNK] = "chunk written",
    [FROM_CHUNK] = "chunk read",
    [TO_BUFFER] = "buffer written",
    [FROM_BUFFER] = "buffer read",
    [FLAG] = "flag",
    [DROPPED] = "dropped step",
    [DOUBLED] = "doubled step",
    [SWAPPED] = "swapped steps",
};

/* May this change of a step be harmless at all? */
static bool may_be_harmless(enum change change, enum hoop_coll coll, uint8_t kind)
{
    switch (change) {
    case KIND: /* empty messages can be added as well as stored */
        return coll == HOOP_BARRIER;
    case PEER:
    case TO_CHUNK:
    case FROM_CHUNK:
        return false;
    case DROPPED: /* the wait may follow from other steps, too */
        return kind == HOOP_STEP_AFTER;
    case DOUBLED: /* the same again */
        return kind == HOOP_STEP_AFTER || kind == HOOP_STEP_COPY;
    default: /* IN is OUT in place; staging more than needed; independent steps swapped */
        return true;
    }
}

struct count {
    unsigned long tried, harmless;
};

static struct count counts[CHANGES];

/* Does any way of checking object? The cost formula is left out: it would hide what the rest misses. */
static bool checker_objects(struct hoop_plan *const *plan)
{
    for (int slices = 1; slices <= 3; slices++)
        for (int credit = 1; credit <= 2; credit++)
            for (int borrow = 0; borrow <= 1; borrow++) {
                struct hoop_check check = {
                    .slices = slices, .credit = credit, .borrow = borrow != 0, .skip_cost = true};

                if (hoop_plan_check(plan, &check) != HOOP_OK)
                    return true;
            }
    return false;
}

/* Execute in many ways; false with the fault if one fails. */
static bool still_works(struct hoop_plan *const *plan, char *fault, size_t size)
{
    for (unsigned seed = 0; seed < 24; seed++) {
        const bool keep = seed % 4 == 3;
        struct brute brute = {.count = 3 + 7 * (seed % 3),
                              .slices = 1 + seed / 2 % 3,
                              .credit = keep ? 2 : 1,
                              .borrow = seed % 2 != 0,
                              .keep = keep,
                              .mix = seed % 5 == 4,
                              .seed = seed};

        if (!brute_run(plan, &brute)) {
            snprintf(fault, size, "%s", brute.fault);
            return false;
        }
    }
    return true;
}

static void judge(struct hoop_plan *const *plan, enum change change, uint8_t kind, uint32_t rank, uint32_t lane,
                  uint32_t step)
{
    char fault[256] = "";

    counts[change].tried++;
    if (checker_objects(plan))
        return;
    const bool works = still_works(plan, fault, sizeof fault);
    const struct hoop_problem *problem = &plan[0]->problem;

    counts[change].harmless++;
    ck_assert_msg(works && may_be_harmless(change, problem->coll, kind),
                  "%s of rank %u lane %u step %u in %s %s -n %d%s: the checker is silent; executed: %s", names[change],
                  rank, lane, step, plan[0]->algo->name, hoop_coll_name(problem->coll), problem->ranks,
                  problem->in_place ? " --in-place" : "", works ? "works" : fault);
}

/* Change one field of the step to each value that is near, and judge each. */
static void change_fields(struct hoop_plan **plan, uint32_t rank, uint32_t lane, uint32_t i)
{
    struct hoop_step *step = &plan[rank]->lane[lane].step[i];
    const struct hoop_step good = *step;
    const uint32_t chunks = plan[rank]->grid + plan[rank]->tmp;

#define TRY(change, field, value, condition)               \
    do {                                                   \
        if ((condition) && good.field != (value)) {        \
            step->field = (value);                         \
            judge(plan, change, good.kind, rank, lane, i); \
            *step = good;                                  \
        }                                                  \
    } while (0)

    const bool has_peer = good.kind != HOOP_STEP_COPY && good.kind != HOOP_STEP_REDUCE;
    const bool has_to = good.kind != HOOP_STEP_SEND, after = good.kind == HOOP_STEP_AFTER;
    const bool has_from = good.kind != HOOP_STEP_RECV && !after;

    for (uint8_t kind = 0; kind <= HOOP_STEP_KINDS; kind++)
        TRY(KIND, kind, kind, true);
    for (int peer = -1; peer <= plan[rank]->problem.ranks; peer++)
        TRY(PEER, peer, peer, has_peer && !after);
    for (uint32_t chunk = 0; chunk <= chunks; chunk++) {
        TRY(TO_CHUNK, to, chunk, has_to && !after);
        TRY(FROM_CHUNK, from, chunk, has_from);
    }
    for (uint8_t buffer = 0; buffer <= HOOP_TMP + 1; buffer++) {
        TRY(TO_BUFFER, to_buffer, buffer, has_to && !after);
        TRY(FROM_BUFFER, from_buffer, buffer, has_from);
    }
    for (uint8_t bit = 0; bit < 5; bit++)
        TRY(FLAG, flags, (uint8_t)(good.flags ^ 1u << bit), true);
#undef TRY
}

/* Drop, double and swap; the lane's steps are restored after each. */
static void change_order(struct hoop_plan **plan, uint32_t rank, uint32_t lane, uint32_t i)
{
    struct hoop_lane_plan *program = &plan[rank]->lane[lane];
    struct hoop_step *good = program->step, *changed = malloc((program->steps + 1) * sizeof *good);
    const uint32_t steps = program->steps;

    program->step = changed;
    memcpy(changed, good, i * sizeof *good);
    memcpy(changed + i, good + i + 1, (steps - i - 1) * sizeof *good);
    program->steps = steps - 1;
    judge(plan, DROPPED, good[i].kind, rank, lane, i);

    memcpy(changed, good, (i + 1) * sizeof *good);
    memcpy(changed + i + 1, good + i, (steps - i) * sizeof *good);
    program->steps = steps + 1;
    judge(plan, DOUBLED, good[i].kind, rank, lane, i);

    program->steps = steps;
    if (i + 1 < steps) {
        memcpy(changed, good, steps * sizeof *good);
        changed[i] = good[i + 1];
        changed[i + 1] = good[i];
        judge(plan, SWAPPED, good[i].kind, rank, lane, i);
    }
    program->step = good;
    free(changed);
}

static void mutate(const struct hoop_algo *algo, struct hoop_problem problem, bool fuse)
{
    struct hoop_plan *plan[PLANS_MOST];

    ck_assert(plans_build(plan, algo, problem, fuse));
    ck_assert(!checker_objects(plan));
    for (int rank = 0; rank < problem.ranks; rank++)
        for (uint32_t lane = 0; lane < plan[rank]->lanes; lane++)
            for (uint32_t i = 0; i < plan[rank]->lane[lane].steps; i++) {
                change_fields(plan, (uint32_t)rank, lane, i);
                change_order(plan, (uint32_t)rank, lane, i);
            }
    plans_free(plan, problem.ranks);
}

/* Every algorithm and collective of 2 to 6 ranks, with two channels at 3; i numbers them. THIN: to 4 ranks. */
START_TEST(mutants)
{
    const struct hoop_algo *algo = hoop_algo_get(_i / HOOP_COLLS);
    struct hoop_problem problem = {.coll = (enum hoop_coll)(_i % HOOP_COLLS), .channels = 1};

    struct hoop_groups *groups;

    memset(counts, 0, sizeof counts);
    for (problem.ranks = 2; problem.ranks <= (THIN ? 4 : 6); problem.ranks++)
        for (int in_place = 0; in_place <= (problem.coll != HOOP_BARRIER); in_place++) {
            problem.in_place = in_place != 0;
            problem.channels = problem.ranks == 3 ? 2 : 1;
            problem.root = plans_rooted(problem.coll) ? 1 : 0;
            ck_assert_int_eq(hoop_groups_cut(&groups, problem.ranks, problem.ranks % 2 ? "2,1" : "2"), HOOP_OK);
            problem.groups = algo->composed ? groups : NULL;
            if (algo->applicable(&problem))
                mutate(algo, problem, true);
            if (algo->applicable(&problem) && problem.ranks < 5)
                mutate(algo, problem, false);
            hoop_groups_free(groups);
        }
    for (int change = 0; change < CHANGES && counts[KIND].tried > 0; change++) {
        printf("%-8s %-14s %-15s %6lu changes, %5lu harmless\n", algo->name, hoop_coll_name(problem.coll),
               names[change], counts[change].tried, counts[change].harmless);
        ck_assert_uint_gt(counts[change].tried, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mutation of plans");
    TCase *tests = tcase_create("all");
    int algos = 0;

    while (hoop_algo_get(algos) != NULL)
        algos++;
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, mutants, 0, algos * HOOP_COLLS);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
