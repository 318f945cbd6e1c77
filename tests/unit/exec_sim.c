// SPDX-License-Identifier: BSD-3-Clause
/* Every algorithm's plans, run by the executor over the virtual network, against the plain reference. */
#include <check.h>
#include <stdlib.h>

#include "harness.h"
#include "simulated.h"
#include "tsan.h"

enum { MOST_RANKS = 9 };

static void give(const struct hoop_case *c, int rank, void *in, void *data)
{
    (void)data;
    case_fill(c, rank, in);
}

static void take(const struct hoop_case *c, int rank, const void *out, void *data)
{
    const struct simulated *how = data;
    char text[512];

    ck_assert_msg(case_check(c, rank, out, text, sizeof text), "algo=%s channels=%d seed=%d %s", how->algo->name,
                  how->channels, (int)how->config->seed, text);
}

static void run_case(const struct hoop_case *c, const struct hoop_algo *algo, const struct hoop_groups *groups,
                     int channels, const struct hoop_sim_config *config)
{
    struct simulated how = {.algo = algo,
                            .groups = groups,
                            .channels = channels,
                            .frame = 64,
                            .config = config,
                            .give = give,
                            .take = take};

    how.data = &how;
    simulated_run(c, &how);
}

/* All ranks × collectives × in place × every step-th count, with the given network; first count, root and channels go round.
 * THIN: a third of the counts. */
static void run_grid(const struct hoop_algo *algo, const struct hoop_sim_config *config, size_t step)
{
    struct hoop_sim_config own = *config;
    unsigned turn = 0;

    step = THIN ? 3 * step + 1 : step;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        static const char *const sizes[] = {"2", "3", "4", "2,1"};
        struct hoop_groups *groups;

        ck_assert_int_eq(hoop_groups_cut(&groups, ranks, sizes[ranks % 4]), HOOP_OK);
        for (int coll = 0; coll < HOOP_COLLS; coll++)
            for (int in_place = 0; in_place < 2; in_place++)
                for (size_t count = (size_t)(ranks + coll + in_place) % step; count <= 71; count += step, turn++) {
                    const struct hoop_case c = {.coll = (enum hoop_coll)coll,
                                                .type = turn % 2 ? HOOP_F32 : HOOP_I64,
                                                .op = HOOP_SUM,
                                                .ranks = ranks,
                                                .root = case_rooted(&(struct hoop_case){.coll = (enum hoop_coll)coll})
                                                            ? (int)(turn % (unsigned)ranks)
                                                            : 0,
                                                .count = count == 71 ? 1000 : count,
                                                .in_place = in_place};
                    const struct hoop_problem p = {.coll = c.coll,
                                                   .ranks = ranks,
                                                   .root = c.root,
                                                   .in_place = c.in_place,
                                                   .channels = 1,
                                                   .groups = algo->composed ? groups : NULL};
                    if (!algo->applicable(&p) || (coll == HOOP_BARRIER && count > 0))
                        continue;
                    own.seed = turn;
                    run_case(&c, algo, p.groups, 1 + (int)(turn % 3), &own);
                }
        hoop_groups_free(groups);
    }
}

START_TEST(frames_copied)
{
    run_grid(hoop_algo_get(_i), &(struct hoop_sim_config){.shuffle = true}, 7);
}
END_TEST

START_TEST(frames_in_place)
{
    run_grid(hoop_algo_get(_i), &(struct hoop_sim_config){.shuffle = true, .in_place = true}, 2);
}
END_TEST

START_TEST(sends_lent)
{
    run_grid(hoop_algo_get(_i), &(struct hoop_sim_config){.shuffle = true, .in_place = true, .lend = true}, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executor on the virtual network");
    TCase *tests = tcase_create("all algorithms");
    int algos = 0;

    while (hoop_algo_get(algos))
        algos++;
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, frames_copied, 0, algos);
    tcase_add_loop_test(tests, frames_in_place, 0, algos);
    tcase_add_loop_test(tests, sends_lent, 0, algos);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
