// SPDX-License-Identifier: BSD-3-Clause
/* What crosses groups: the counts of the plans against the formulas and the simulator, that predictions put algorithms in the order in
 * which the simulator does, and that what is composed is chosen where it wins. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "hoop/plan.h"
#include "plan/choose.h"
#include "plan/crossing.h"
#include "plan/model.h"

static const char *name_of(const struct hoop_algo *algo, const struct hoop_problem *p)
{
    static char text[2][160];
    static int turn;
    char name[HOOP_ALGO_TEXT], groups[HOOP_GROUPS_TEXT];

    turn = 1 - turn;
    hoop_algo_text(name, algo, p->inter, p->intra);
    hoop_groups_text(groups, p->groups);
    snprintf(text[turn], sizeof text[turn], "%s %s -n %d --groups %s", name, hoop_coll_name(p->coll), p->ranks, groups);
    return text[turn];
}

static struct hoop_groups *cut(int ranks, const char *sizes)
{
    struct hoop_groups *groups;

    ck_assert_int_eq(hoop_groups_cut(&groups, ranks, sizes), HOOP_OK);
    return groups;
}

static struct hoop_crossing walk(const struct hoop_model *model, const struct hoop_algo *algo,
                                 const struct hoop_problem *p)
{
    struct hoop_crossing crossing;

    ck_assert_msg(hoop_crossing_walk(model, algo, p, &crossing) == HOOP_OK, "%s: %s", name_of(algo, p),
                  hoop_last_error(NULL));
    return crossing;
}

/* With hops of equal length the chain is that of the formulas, which the checker has proved; i is the collective. */
START_TEST(chains_are_the_formulas)
{
    static const char *const sizes[] = {"2", "3", "3,2,1", "7"};
    struct hoop_problem p = {.coll = (enum hoop_coll)_i, .channels = 1};
    struct hoop_model model = hoop_model_builtin();
    const struct hoop_algo *algo;

    model.hop_across = model.hop;
    for (p.ranks = 2; p.ranks <= 20; p.ranks++)
        for (int s = 0; s < 4; s++) {
            struct hoop_groups *groups = cut(p.ranks, sizes[s]);

            p.groups = groups;
            for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++) {
                if (!algo->applicable(&p))
                    continue;
                const struct hoop_crossing crossing = walk(&model, algo, &p);
                const double chain = crossing.near + crossing.far, formula = algo->cost(&p).depth;
                ck_assert_msg(algo->composed ? chain <= formula : chain == formula, "%s: %g of %g", name_of(algo, &p),
                              chain, formula);
            }
            hoop_groups_free(groups);
        }
}
END_TEST

/* Formulas of what is composed are bounds of what its plans do, and exact for the data of equal groups. */
START_TEST(formulas_of_hier_are_bounds)
{
    static const char *const sizes[] = {"2", "4", "3,2", "5"};
    const struct hoop_algo *hier = hoop_algo_find("hier");
    const struct hoop_model model = hoop_model_builtin();
    struct hoop_problem p = {.channels = 1};
    int done = 0;

    for (p.ranks = 4; p.ranks <= 20; p.ranks += 4)
        for (int s = 0; s < 4; s++) {
            struct hoop_groups *groups = cut(p.ranks, sizes[s]);

            p.groups = groups;
            for (int coll = 0; coll <= HOOP_BARRIER; coll++)
                for (int part = -1; part < 0 || hoop_algo_get(part) != NULL; part++) {
                    p.coll = (enum hoop_coll)coll;
                    p.inter = hoop_algo_get(part);
                    if (!hier->applicable(&p))
                        continue;
                    const struct hoop_crossing plans = walk(&model, hier, &p), formula = hier->cross(&p);
                    ck_assert_msg(plans.volume <= formula.volume + 1e-9 && plans.load <= groups->groups * formula.load,
                                  "%s: %g of %g, %g of %g", name_of(hier, &p), plans.volume, formula.volume, plans.load,
                                  formula.load);
                    ck_assert(plans.near * model.hop + plans.far * model.hop_across <=
                              formula.near * model.hop + formula.far * model.hop_across + 1e-6);
                    done++;
                }
            hoop_groups_free(groups);
        }
    ck_assert_int_gt(done, 300);
}
END_TEST

/* Without bandwidth the simulator is the chain, and the uplinks carry the load. */
START_TEST(counts_are_the_simulation)
{
    static const int shapes[][2] = {{2, 2}, {2, 4}, {4, 2}, {3, 3}, {4, 4}, {2, 8}};
    struct hoop_problem p = {.coll = (enum hoop_coll)_i, .channels = 1};
    struct hoop_model model = hoop_model_builtin();
    const struct hoop_algo *algo;
    char size[16];

    model.hop = 200;
    model.hop_across = 1700;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const struct hoop_network network = {
            2, {{"groups", shapes[s][0], 1e12, 1700}, {"ranks", shapes[s][1], 1e12, 200}}};

        p.ranks = shapes[s][0] * shapes[s][1];
        snprintf(size, sizeof size, "%d", shapes[s][1]);
        struct hoop_groups *groups = cut(p.ranks, size);
        p.groups = groups;
        for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++) {
            struct hoop_simulation it = {
                .network = &network, .bytes = 5040u * (size_t)p.ranks, .frame = 1 << 30, .slots = 64, .symmetry = -1};
            if (!algo->applicable(&p) || algo->composed)
                continue;
            ck_assert_msg(hoop_plan_simulate(algo, &p, &it) == HOOP_OK, "%s", hoop_last_error(NULL));
            const struct hoop_crossing crossing = walk(&model, algo, &p);
            const double chain = 200 * crossing.near + 1700 * crossing.far, load = crossing.load * (double)it.bytes;
            ck_assert_msg(it.time >= chain - 1 && it.time <= chain + 1, "%s: %g, not %g", name_of(algo, &p), it.time,
                          chain);
            ck_assert_msg(_i == HOOP_BARRIER || (double)it.load[0].most <= load + p.ranks, "%s: %g, not %g",
                          name_of(algo, &p), (double)it.load[0].most, load);
            ck_assert_msg(_i == HOOP_BARRIER || (double)it.load[0].most >= load - p.ranks, "%s: %g, not %g",
                          name_of(algo, &p), (double)it.load[0].most, load);
        }
        hoop_groups_free(groups);
    }
}
END_TEST

/* ---- order ---- */

enum { CANDIDATES = 16 };

struct candidate {
    const struct hoop_algo *algo;
    struct hoop_problem problem;
    double predicted, simulated;
};

struct shape {
    int groups, size;
    double hop, hop_across, port, uplink;
};

static const struct shape shapes[] = {
    {2, 4, 300, 500, 10, 40},  {2, 8, 300, 500, 10, 20},  {4, 4, 300, 2000, 10, 25}, {8, 4, 300, 2000, 10, 10},
    {4, 8, 300, 5000, 10, 10}, {16, 4, 300, 2000, 10, 5}, {3, 5, 300, 3000, 8, 12},  {8, 8, 200, 10000, 12, 25},
};

static struct hoop_choice choice_of(const struct shape *shape, const struct hoop_groups *groups)
{
    struct hoop_choice choice = {.flat = hoop_algo_find("flat"),
                                 .groups = groups,
                                 .frame = 131072,
                                 .cores = groups->ranks,
                                 .model = hoop_model_builtin()};

    choice.model.hop = shape->hop;
    choice.model.hop_across = shape->hop_across;
    choice.model.copy = shape->port;
    choice.model.uplink = shape->uplink;
    return choice;
}

static double simulate(const struct shape *shape, const struct hoop_choice *choice, const struct hoop_algo *algo,
                       const struct hoop_problem *problem, size_t bytes)
{
    const struct hoop_network network = {
        2,
        {{"groups", shape->groups, shape->uplink, shape->hop_across}, {"ranks", shape->size, shape->port, shape->hop}}};
    struct hoop_simulation it = {.network = &network,
                                 .bytes = bytes,
                                 .frame = choice->frame,
                                 .slots = 4,
                                 .post = choice->model.post,
                                 .reduce = choice->model.reduce,
                                 .symmetry = -1};

    ck_assert_msg(hoop_plan_simulate(algo, problem, &it) == HOOP_OK, "%s", hoop_last_error(NULL));
    return it.time;
}

static int weigh(const struct shape *shape, const struct hoop_choice *choice, enum hoop_coll coll, size_t bytes,
                 struct candidate *candidate)
{
    const struct hoop_problem problem = {.coll = coll, .ranks = choice->groups->ranks, .channels = 1};
    const struct hoop_algo *algo;
    int candidates = 0;

    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++) {
        struct candidate *it = &candidate[candidates];

        it->algo = algo;
        it->problem = hoop_choice_problem(choice, algo, &problem, bytes);
        if (!algo->applicable(&it->problem))
            continue;
        it->predicted =
            hoop_model_predict(&choice->model, algo, &it->problem, bytes, choice->frame, choice->cores).time;
        it->simulated = simulate(shape, choice, algo, &it->problem, bytes);
        candidates++;
    }
    return candidates;
}

struct score {
    int pairs, kept, calls, wins, taken;
    double sum, worst;
};

/* Where something composed is clearly faster than all that knows no groups, is it chosen? */
static void wins(const struct candidate *candidate, int candidates, const struct candidate *chosen, struct score *score)
{
    double composed = 1e300, plain = 1e300;

    for (int i = 0; i < candidates; i++) {
        double *least = candidate[i].algo->composed ? &composed : &plain;
        *least = candidate[i].simulated < *least ? candidate[i].simulated : *least;
    }
    score->wins += 1.4 * composed < plain;
    score->taken += 1.4 * composed < plain && chosen->algo->composed;
}

/* All pairs that the simulator tells apart clearly, and the algorithm that is chosen. */
static void compare(const struct shape *shape, enum hoop_coll coll, size_t bytes, struct score *score)
{
    struct candidate candidate[CANDIDATES];
    char size[16];

    snprintf(size, sizeof size, "%d", shape->size);
    struct hoop_groups *groups = cut(shape->groups * shape->size, size);
    const struct hoop_choice choice = choice_of(shape, groups);
    const int candidates = weigh(shape, &choice, coll, bytes, candidate);
    int best = 0, chosen = 0;

    for (int a = 0; a < candidates; a++) {
        best = candidate[a].simulated < candidate[best].simulated ? a : best;
        chosen = candidate[a].predicted < candidate[chosen].predicted ? a : chosen;
        for (int b = 0; b < candidates; b++)
            if (candidate[a].simulated * 1.5 < candidate[b].simulated) {
                score->pairs++;
                score->kept += candidate[a].predicted < candidate[b].predicted;
            }
    }
    const double loss = candidate[chosen].simulated / candidate[best].simulated;
    const struct hoop_problem problem = {.coll = coll, .ranks = groups->ranks, .channels = 1};
    const struct hoop_decision decision = hoop_choose(&choice, &problem, bytes);
    ck_assert_ptr_eq(decision.algo, candidate[chosen].algo);
    score->calls++;
    score->sum += loss;
    score->worst = loss > score->worst ? loss : score->worst;
    wins(candidate, candidates, &candidate[chosen], score);
    hoop_groups_free(groups);
}

START_TEST(order_of_the_simulator)
{
    static const enum hoop_coll colls[] = {HOOP_ALL_REDUCE, HOOP_BROADCAST, HOOP_ALL_GATHER, HOOP_REDUCE_SCATTER};
    struct score score = {0};

    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t bytes = 4096; bytes <= (size_t)64 << 20; bytes *= 16)
            compare(&shapes[s], colls[_i], bytes, &score);
    printf("%s: %d of %d pairs in order; composed is chosen in %d of %d calls that it wins; %.2f times the least on "
           "average, %.2f at worst\n",
           hoop_coll_name(colls[_i]), score.kept, score.pairs, score.taken, score.wins, score.sum / score.calls,
           score.worst);
    ck_assert_int_ge(score.kept * 100, score.pairs * 93);
    ck_assert_int_ge(score.taken * 10, score.wins * 7);
    ck_assert_double_le(score.sum / score.calls, 1.3);
    ck_assert_double_le(score.worst, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crossing");
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, chains_are_the_formulas, 0, HOOP_COLLS);
    tcase_add_test(all, formulas_of_hier_are_bounds);
    tcase_add_loop_test(all, counts_are_the_simulation, 0, HOOP_COLLS);
    tcase_add_loop_test(all, order_of_the_simulator, 0, 4);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
