// SPDX-License-Identifier: BSD-3-Clause
/* The simulator against what can be worked out by hand. */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "harness.h"
#include "hoop/plan.h"
#include "plan/simulate_queue.h"

static struct hoop_simulation network(size_t bytes)
{
    return (struct hoop_simulation){.bytes = bytes,
                                    .frame = (size_t)1 << 30,
                                    .slots = 4,
                                    .bandwidth = 10,
                                    .latency = 500,
                                    .post = 20,
                                    .reduce = 5,
                                    .symmetry = -1};
}

static void simulate(const char *algo, enum hoop_coll coll, int ranks, struct hoop_simulation *simulation)
{
    const struct hoop_problem problem = {.coll = coll, .ranks = ranks, .channels = 1};

    ck_assert_msg(hoop_plan_simulate(hoop_algo_find(algo), &problem, simulation) == HOOP_OK, "%s %d: %s", algo, ranks,
                  hoop_last_error(NULL));
}

/* 2(n-1) steps of post, chunk over the wire and latency; n-1 of them combine. */
START_TEST(ring_is_its_formula)
{
    for (int n = 2; n <= 40; n++)
        for (size_t chunk = 0; chunk < 100000; chunk = chunk * 7 + 1) {
            struct hoop_simulation it = network(chunk * (size_t)n);
            const double wire = (double)chunk / 10, sum = (double)chunk / 5, steps = chunk ? n - 1 : 0;
            simulate("ring", HOOP_ALL_REDUCE, n, &it);
            ck_assert_double_eq_tol(it.time, steps * (2 * (20 + wire + 500) + sum), 1e-3 * 4 * n + 1e-6);
            ck_assert_uint_eq(it.messages, (uint64_t)(steps * 2 * n));
            ck_assert_uint_eq(it.moved, 2 * (uint64_t)(n - 1) * (uint64_t)n * chunk);
            ck_assert_uint_eq(it.port_most, 2 * (uint64_t)(n - 1) * chunk);
        }
}
END_TEST

/* A round of halving or doubling is one message, whatever its number of chunks. */
START_TEST(bundles_are_one_message)
{
    for (int log = 1; log <= 6; log++)
        for (int symmetry = -1; symmetry <= 1; symmetry += 2) {
            const int n = 1 << log;
            struct hoop_simulation it = network(1000 * (size_t)n);
            double time = 0;
            it.symmetry = symmetry;
            for (int half = n / 2; half > 0; half /= 2)
                time += 2 * (20 + 500 + half * 100) + half * 200;
            simulate("rhd", HOOP_ALL_REDUCE, n, &it);
            ck_assert_double_eq_tol(it.time, time, 1e-3 * n);
            ck_assert_uint_eq(it.messages, (uint64_t)(2 * log * n));
            ck_assert_uint_eq(it.moved, 2 * (uint64_t)(n - 1) * (uint64_t)n * 1000);
        }
}
END_TEST

/* Full trees: the last child of each rank waits for both messages at its parent's port. */
START_TEST(tree_is_its_formula)
{
    for (int levels = 1; levels <= 7; levels++)
        for (size_t bytes = 1000; bytes < 1000000; bytes *= 9) {
            struct hoop_simulation it = network(bytes);
            simulate("tree", HOOP_BROADCAST, (2 << levels) - 1, &it);
            ck_assert_double_eq_tol(it.time, levels * (20 + 2 * (double)bytes / 10 + 500), 1e-3 * 4 * levels);
            ck_assert_uint_eq(it.links, (2u << levels) - 2);
            ck_assert_uint_eq(it.link_most, bytes);
        }
}
END_TEST

/* A chain is a pipeline: the first chunk goes all the way, the others follow one by one, and slices of all again. */
START_TEST(slices_follow_each_other)
{
    for (int n = 2; n <= 9; n++)
        for (size_t slices = 1; slices <= 20; slices++) {
            struct hoop_simulation it = network(8 * slices * 65536);
            const double wire = 6553.6;
            it.frame = 65536;
            simulate("chain", HOOP_BROADCAST, n, &it);
            ck_assert_double_eq_tol(it.time, (n - 1) * (20 + 500 + wire) + (double)(8 * slices - 1) * wire,
                                    0.1 + 1e-3 * 400);
            ck_assert_uint_eq(it.messages, 8 * slices * (size_t)(n - 1));
        }
}
END_TEST

/* With one slot the sender waits for the credit's way back: message and credit take turns. */
START_TEST(credit_is_waited_for)
{
    struct hoop_simulation it = network(10 * 65536);

    it.frame = 65536;
    it.slots = 1;
    simulate("flat", HOOP_BROADCAST, 2, &it);
    ck_assert_double_eq_tol(it.time, 10 * (20 + 6553.6 + 500) + 9 * 500, 0.1);
}
END_TEST

/* Everybody sends to rank 0, whose one port in takes one after the other. */
START_TEST(ports_are_shared)
{
    for (int n = 2; n <= 20; n++) {
        struct hoop_simulation it = network(1000000);
        it.reduce = 0;
        simulate("flat", HOOP_REDUCE, n, &it);
        ck_assert_double_eq_tol(it.time, 20 + 500 + (n - 1) * 100000.0, 0.1);
    }
}
END_TEST

/* Where one rank may stand for all it gives the same figures. */
START_TEST(symmetry_changes_nothing)
{
    static const char *const algos[] = {"ring", "flat", "tree", "recdbl"};

    for (int i = 0; i < 4; i++)
        for (int n = 2; n <= 33; n++) {
            struct hoop_simulation whole = network((size_t)n * 6000), one = whole;
            whole.frame = one.frame = 1000;
            whole.slots = one.slots = 2;
            one.symmetry = 1;
            simulate(algos[i], HOOP_ALL_REDUCE, n, &whole);
            simulate(algos[i], HOOP_ALL_REDUCE, n, &one);
            ck_assert(!whole.symmetric);
            if (i == 0)
                ck_assert(one.symmetric);
            if (i == 2 && n > 2)
                ck_assert(!one.symmetric);
            if (i == 3)
                ck_assert(one.symmetric == ((n & (n - 1)) == 0));
            if (i == 1 && n > 2) /* flat sums in rank order: rank 0 is not as the others */
                continue;
            ck_assert_double_eq_tol(one.time, whole.time, 1e-6);
            ck_assert_uint_eq(one.messages, whole.messages);
            ck_assert_uint_eq(one.steps, whole.steps);
            ck_assert_uint_eq(one.port_most, whole.port_most);
        }
}
END_TEST

/* The ranks of a host share its uplink: their messages to another host follow each other. */
START_TEST(uplinks_are_shared)
{
    for (int ranks = 1; ranks <= 12; ranks++) {
        struct hoop_simulation it = network(1000);
        const struct hoop_network levels = {2, {{"hosts", 2, 1, 5000}, {"ranks", ranks, 10, 500}}};
        it.network = &levels;
        it.reduce = 0;
        simulate("flat", HOOP_REDUCE, 2 * ranks, &it);
        ck_assert_double_eq_tol(it.time, 20 + 5000 + ranks * 1000.0, 0.1);
        ck_assert_uint_eq(it.load[0].messages, (uint64_t)ranks);
        ck_assert_uint_eq(it.load[0].moved, 1000 * (uint64_t)ranks);
        ck_assert_uint_eq(it.load[0].most, 1000 * (uint64_t)ranks);
        ck_assert_uint_eq(it.load[1].messages, (uint64_t)ranks - 1);
        ck_assert_uint_eq(it.load[1].most, 1000 * (uint64_t)(2 * ranks - 1));
    }
}
END_TEST

/* Each pair of ranks has the latency of the outermost level between them. */
START_TEST(levels_have_latencies)
{
    const struct hoop_network levels = {3, {{"hosts", 2, 100, 3000}, {"numa", 2, 100, 700}, {"ranks", 2, 100, 100}}};
    static const double latency[] = {0, 100, 700, 700, 3000, 3000, 3000, 3000};

    for (int root = 0; root < 8; root++) { /* a chain's last hop but one */
        struct hoop_simulation it = network(8);
        const struct hoop_problem problem = {.coll = HOOP_BROADCAST, .ranks = 8, .root = root, .channels = 1};
        double most = 0;
        for (int rank = 0; rank < 8; rank++)
            most = fmax(most, latency[rank ^ root] + 20 * ((rank + 8 - root) % 8));
        it.network = &levels;
        ck_assert_int_eq(hoop_plan_simulate(hoop_algo_find("flat"), &problem, &it), HOOP_OK);
        ck_assert_double_eq_tol(it.time, most + 0.08, 0.9);
    }
}
END_TEST

/* The ranks of one host may stand for those of all, and give the same figures. */
START_TEST(hosts_stand_for_hosts)
{
    static const char *const algos[] = {"ring", "rhd", "hier(rhd,twoshot)", "hier(ring,ring)", "hier(ring,flat)"};
    const struct hoop_algo *algo;

    for (int hosts = 2; hosts <= 9; hosts++)
        for (int ranks = 2; ranks <= 5; ranks++) {
            const struct hoop_network levels = {2, {{"hosts", hosts, 7, 2000}, {"ranks", ranks, 10, 300}}};
            struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .ranks = hosts * ranks, .channels = 1};
            struct hoop_simulation whole = network((size_t)problem.ranks * 5000), one;
            struct hoop_groups *groups;
            char size[8];

            snprintf(size, sizeof size, "%d", ranks);
            ck_assert_int_eq(hoop_groups_cut(&groups, problem.ranks, size), HOOP_OK);
            problem.groups = groups;
            whole.network = &levels;
            one = whole;
            one.symmetry = 2;
            ck_assert(hoop_algo_read(algos[_i], &algo, &problem.inter, &problem.intra));
            ck_assert_int_eq(hoop_plan_simulate(algo, &problem, &whole), HOOP_OK);
            ck_assert_msg(hoop_plan_simulate(algo, &problem, &one) == HOOP_OK, "%s", hoop_last_error(NULL));
            ck_assert(one.symmetric && one.stood == ranks && !whole.symmetric && whole.stood == problem.ranks);
            ck_assert_double_eq_tol(one.time, whole.time, 1e-6);
            ck_assert_uint_eq(one.messages, whole.messages);
            ck_assert_uint_eq(one.steps, whole.steps);
            ck_assert_uint_eq(one.load[0].moved, whole.load[0].moved);
            ck_assert_uint_eq(one.load[0].most, whole.load[0].most);
            one.bytes = (size_t)problem.ranks - 1; /* not a byte for each chunk: some are empty */
            ck_assert_int_eq(hoop_plan_simulate(algo, &problem, &one), HOOP_ERR_ARG);
            hoop_groups_free(groups);
        }
}
END_TEST

/* Hosts of two, four, eight, … can stand for others also where partners are found by flipping bits. */
START_TEST(flipped_hosts_stand_for_hosts)
{
    for (int hosts = 2; hosts <= 8; hosts++)
        for (int ranks = 2; ranks <= 4; ranks++) {
            const struct hoop_network levels = {2, {{"hosts", hosts, 7, 2000}, {"ranks", ranks, 10, 300}}};
            const bool powers = (hosts & (hosts - 1)) == 0 && ranks != 3;
            struct hoop_simulation whole = network(50000), one;

            whole.network = &levels;
            whole.frame = 3000;
            one = whole;
            one.symmetry = 1;
            simulate("recdbl", HOOP_ALL_REDUCE, hosts * ranks, &whole);
            simulate("recdbl", HOOP_ALL_REDUCE, hosts * ranks, &one);
            ck_assert(one.symmetric == powers && one.stood == (powers ? ranks : hosts * ranks));
            ck_assert_double_eq_tol(one.time, whole.time, 1e-6);
            ck_assert_uint_eq(one.messages, whole.messages);
            ck_assert_uint_eq(one.links, whole.links);
            ck_assert_uint_eq(one.load[0].moved, whole.load[0].moved);
            ck_assert_uint_eq(one.load[0].most, whole.load[0].most);
        }
}
END_TEST

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Events come out by their times, those of one time in the order in which they went in, also those that come meanwhile. */
START_TEST(events_keep_their_order)
{
    enum { EVENTS = 20000 };
    static uint64_t time[EVENTS];
    const uint64_t span = 1u << _i; /* few times with many events, and many with few */
    struct hoop_sim_queue queue = {0};
    uint32_t pushed = 0, taken = 0, last = 0;
    uint64_t now = 0, seed = 1;

    for (; pushed < 500; pushed++)
        ck_assert_int_eq(hoop_sim_push(&queue, time[pushed] = next_random(&seed) % span, pushed), HOOP_OK);
    for (uint64_t before = 0; hoop_sim_earliest(&queue, &now); before = now) {
        bool first = true;
        uint32_t what;
        ck_assert(taken == 0 || now > before);
        for (; hoop_sim_take(&queue, &what); last = what, first = false, taken++) {
            ck_assert(time[what] == now && (first || what > last));
            for (int k = (int)(next_random(&seed) % 3); k > 0 && pushed < EVENTS; k--, pushed++)
                ck_assert_int_eq(hoop_sim_push(&queue, time[pushed] = now + next_random(&seed) % span, pushed),
                                 HOOP_OK);
        }
        hoop_sim_end(&queue);
    }
    ck_assert_uint_eq(taken, pushed);
    hoop_sim_queue_free(&queue);
}
END_TEST

START_TEST(networks_are_read)
{
    static const char *const wrong[] = {"",
                                        "hosts:4",
                                        "hosts ranks:2",
                                        "hosts:0 ranks:2",
                                        "hosts:x ranks:2",
                                        "ranks:2@0",
                                        "ranks:2@1,-1",
                                        "ranks:2@1,",
                                        "ranks:2.5",
                                        "ranks:2@nan",
                                        "ranks:2x",
                                        "a:1 b:1 c:1 d:1 ranks:2",
                                        ":2 ranks:1"};
    struct hoop_network it = {.levels = 0};

    ck_assert_int_eq(hoop_network_read(&it, " hosts:4@12.5,1500\tnuma:2@33 ranks:8 "), HOOP_OK);
    ck_assert(it.levels == 3 && it.level[0].count == 4 && it.level[1].count == 2 && it.level[2].count == 8);
    ck_assert(it.level[0].bandwidth > 12.4 && it.level[0].bandwidth < 12.6 && it.level[0].latency > 1499);
    ck_assert(it.level[1].bandwidth > 32 && it.level[1].latency > 0 && it.level[1].latency < 1000);
    ck_assert_str_eq(it.level[1].name, "numa");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(hoop_network_read(&it, wrong[i]) == HOOP_ERR_ARG, "\"%s\"", wrong[i]);
    ck_assert_int_eq(it.levels, 3);
}
END_TEST

/* All algorithms end, send what their formulas say, and take longer for more. */
START_TEST(all_algorithms_run)
{
    const struct hoop_algo *algo;

    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++)
        for (int coll = 0; coll < HOOP_COLLS; coll++)
            for (int n = 2; n <= 19; n++) {
                const struct hoop_problem problem = {
                    .coll = (enum hoop_coll)coll, .ranks = n, .root = n / 2, .channels = 1};
                double before = 0;
                if (!algo->applicable(&problem))
                    continue;
                for (size_t bytes = 1000; bytes < 10000000; bytes *= 10) {
                    struct hoop_simulation it = network(bytes);
                    it.frame = 8192;
                    it.slots = 2;
                    it.symmetry = 0;
                    ck_assert_msg(hoop_plan_simulate(algo, &problem, &it) == HOOP_OK, "%s %s n=%d: %s", algo->name,
                                  hoop_coll_name(problem.coll), n, hoop_last_error(NULL));
                    ck_assert_msg(coll == HOOP_BARRIER || it.time > before, "%s %s n=%d", algo->name,
                                  hoop_coll_name(problem.coll), n);
                    before = it.time;
                }
            }
}
END_TEST

START_TEST(wrong_wishes_are_refused)
{
    const struct hoop_problem problem = {.coll = HOOP_ALL_REDUCE, .ranks = 8, .channels = 1};
    const struct hoop_algo *ring = hoop_algo_find("ring");
    struct hoop_simulation it = network(1000);

    it.slots = 0;
    ck_assert_int_eq(hoop_plan_simulate(ring, &problem, &it), HOOP_ERR_ARG);
    it = network(1000);
    it.bandwidth = NAN;
    ck_assert_int_eq(hoop_plan_simulate(ring, &problem, &it), HOOP_ERR_ARG);
    it = network(1000);
    it.most = 100;
    ck_assert_int_eq(hoop_plan_simulate(ring, &problem, &it), HOOP_ERR_ARG);
    it.most = 112;
    ck_assert_int_eq(hoop_plan_simulate(ring, &problem, &it), HOOP_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("simulate");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 120);
    tcase_add_test(all, ring_is_its_formula);
    tcase_add_test(all, bundles_are_one_message);
    tcase_add_test(all, tree_is_its_formula);
    tcase_add_test(all, slices_follow_each_other);
    tcase_add_test(all, credit_is_waited_for);
    tcase_add_test(all, ports_are_shared);
    tcase_add_test(all, symmetry_changes_nothing);
    tcase_add_test(all, uplinks_are_shared);
    tcase_add_test(all, levels_have_latencies);
    tcase_add_loop_test(all, hosts_stand_for_hosts, 0, 5);
    tcase_add_test(all, flipped_hosts_stand_for_hosts);
    tcase_add_loop_test(all, events_keep_their_order, 0, 20);
    tcase_add_test(all, networks_are_read);
    tcase_add_test(all, all_algorithms_run);
    tcase_add_test(all, wrong_wishes_are_refused);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
