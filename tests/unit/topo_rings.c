// SPDX-License-Identifier: BSD-3-Clause
/* The search for rings and chains: properties that hold on every machine, on a few made up here and on all recorded ones of NCCL and
 * RCCL where a collection is at hand ($HOOP_TOPOLOGIES, or shared/topologies beside the source folder). Prints a table of what it finds.
 *
 * Each channel visits every GPU once; no link carries more than its budget; together they stay below the bound, which rings of recorded
 * machines reach, and reach at least what one ring could; no way is worse than needed (a search of its own, exhaustive, finds no ring over better ones); and neither
 * the order of a file nor NCCL's numbers change which devices follow each other. */
#include <check.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "topo/network.h"

static glob_t files;

/* ---- machines of our own ---- */

enum { TEXT = 65536 };

static void put(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(char *text, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list values;

    va_start(values, format);
    vsnprintf(text + used, TEXT - used, format, values);
    va_end(values);
}

/* n GPUs, two on each CPU, with links(i, j) XGMI links between each two. */
static void describe(char *text, int n, int (*links)(int i, int j))
{
    text[0] = '\0';
    put(text, "<system version='2'>\n");
    for (int i = 0; i < n; i++) {
        if (i % 2 == 0)
            put(text, "<cpu numaid='%d' affinity='%x' vendor='AuthenticAMD' familyid='175' modelid='1'>\n", i / 2,
                1 << i);
        put(text,
            "<pci busid='0000:%02x:00.0' class='0x038000' vendor='0x1002' device='0x740c' link_speed='16.0 GT/s' "
            "link_width='16'>\n<gpu dev=\"%d\">\n",
            16 + i, i);
        for (int j = 0; j < n; j++)
            if (i != j && links(i, j) > 0)
                put(text, "<xgmi target='0000:%02x:00.0' count='%d' tclass='0x038000'/>\n", 16 + j, links(i, j));
        put(text, "</gpu></pci>\n%s", i % 2 == 1 || i == n - 1 ? "</cpu>\n" : "");
    }
    put(text, "</system>\n");
}

static int all_to_all(int i, int j)
{
    (void)i;
    (void)j;
    return 1;
}

static int circle(int i, int j)
{
    const int apart = abs(i - j);

    return apart == 1 || apart == 5; /* of six */
}

/* Of eight, each with three neighbours. The narrowest cut lets 108 GB/s through, but every ring uses six of the links 0-1 1-5 2-3 3-7 4-5 6-7 0-6
 * 0-6, so all together carry 8 · 2 · 36 / 6. */
static int three_neighbours(int i, int j)
{
    static const uint8_t joined[8] = {0x46, 0x29, 0x19, 0x86, 0x64, 0x92, 0x91, 0x68};

    return joined[i] >> j & 1;
}

static int no_link(int i, int j)
{
    (void)i;
    (void)j;
    return 0;
}

static int pairs(int i, int j)
{
    return i / 2 == j / 2 ? 4 : (i + j) % 3 == 0 ? 2 : (i + j) % 5 == 0;
}

/* ---- a second opinion ---- */

/* Is there a ring (or chain) through all GPUs over ways that are nearer than `hop` and have at least that budget? By sets. */
static bool exists(const struct hoop_net *net, enum hoop_topo_shape shape, int hop, int budget)
{
    const int n = net->gpus;
    uint32_t *ends =
        calloc((size_t)1 << n, sizeof *ends); /* by visited set: where a way from GPU 0 (a chain: any) may end */
    bool found = false;

    ck_assert_ptr_nonnull(ends);
    for (int i = 0; i < (shape == HOOP_TOPO_RING ? 1 : n); i++)
        ends[1u << i] = 1u << i;
    for (uint32_t set = 1; set < 1u << n; set++)
        for (int from = 0; from < n; from++)
            for (int to = 0; ends[set] >> from & 1 && to < n; to++) {
                const struct hoop_net_path *path = &net->path[from][to];
                bool good = from != to && path->edges > 0 && (int)path->hop < hop;

                for (int k = 0; good && k < path->edges; k++)
                    good = net->edge[path->edge[k]].budget >= budget;
                if (good && !(set >> to & 1))
                    ends[set | 1u << to] |= 1u << to;
                found |= good && to == 0 && shape == HOOP_TOPO_RING && set == (1u << n) - 1;
            }
    if (shape == HOOP_TOPO_CHAIN)
        found = ends[(1u << n) - 1] != 0;
    free(ends);
    return found;
}

/* ---- the properties ---- */

static int gpu_of(const struct hoop_net *net, int node)
{
    for (int i = 0; i < net->gpus; i++)
        if (net->vertex[i].node == node)
            return i;
    return -1;
}

static void charge(struct hoop_net *net, const struct hoop_net_path *path, int bandwidth)
{
    for (int i = 0; i < path->edges; i++)
        net->edge[path->edge[i]].budget -= bandwidth;
}

static void check_channels(struct hoop_net *net, enum hoop_topo_shape shape, const struct hoop_topo_channels *found,
                           const char *name)
{
    const int n = net->gpus, bandwidth = (int)(found->gigabytes_per_second * 1000 + 0.5);

    for (int i = 0; i < found->channels; i++) {
        const int *node = found->channel[i].node;
        uint32_t visited = 0;

        for (int j = 0; j < n; j++)
            visited |= 1u << gpu_of(net, node[j]);
        ck_assert_msg(visited == (1u << n) - 1, "%s: channel %d visits %x", name, i, visited);
        for (int j = 0; j < n - (shape == HOOP_TOPO_CHAIN); j++) {
            const int a = gpu_of(net, node[j]), b = gpu_of(net, node[(j + 1) % n]);

            ck_assert_msg(net->path[a][b].hop <= found->worst, "%s: channel %d hop %d is %d", name, i, j,
                          net->path[a][b].hop);
            charge(net, &net->path[a][b], bandwidth);
            if (shape == HOOP_TOPO_CHAIN)
                charge(net, &net->path[b][a], bandwidth);
        }
        ck_assert_msg(found->channel[i].limit[0] != '\0', "%s: channel %d has no limit", name, i);
    }
    for (int i = 0; i < net->edges; i++)
        ck_assert_msg(net->edge[i].budget >= 0, "%s: edge %d is over its budget by %d MB/s", name, i,
                      -net->edge[i].budget);
}

/* The search's own figures against each other and against the second opinion. */
static void check_figures(const struct hoop_net *net, enum hoop_topo_shape shape,
                          const struct hoop_topo_channels *found, const char *name)
{
    const double all = found->channels * found->gigabytes_per_second;

    ck_assert_msg(found->channels >= 1 && found->channels <= HOOP_TOPO_SEARCH_CHANNELS, "%s: %d channels", name,
                  found->channels);
    ck_assert_msg(all <= found->bound + 1e-6 && all >= found->single - 1e-6, "%s: %g not from %g to %g", name, all,
                  found->single, found->bound);
    ck_assert_msg(!exists(net, shape, (int)found->worst, 1), "%s: there is a way without hops of class %d", name,
                  found->worst);
    if (shape == HOOP_TOPO_RING && found->worst == HOOP_TOPO_HOP_FABRIC)
        ck_assert_msg(!exists(net, shape, HOOP_TOPO_HOP_PIX, (int)(all * 1000) + 1),
                      "%s: one ring alone carries more than %g", name, all);
}

/* A channel's ends: what passes the port in, out, or a tree's both, with the parts of a host in two binary trees. */
static void charge_ports(struct hoop_net *net, const struct hoop_topo_wanted *wanted,
                         const struct hoop_topo_channel *channel, int bandwidth, const char *name)
{
    const bool tree = wanted->shape == HOOP_TOPO_CHAIN;
    const int halves = !tree ? 2 : wanted->hosts < 4 ? wanted->hosts : 4;

    for (int end = 0; end < 2; end++) {
        const int gpu = gpu_of(net, channel->node[end == 0 ? 0 : net->gpus - 1]);
        int port = 0;

        while (port < net->ports && net->port[port].node != channel->port[end])
            port++;
        ck_assert_msg((port < net->ports) == (end == 0 || !tree), "%s: end %d has port %d", name, end, port);
        if (port == net->ports)
            continue;
        const struct hoop_net_path *path = &net->way_out[gpu][port];
        ck_assert_msg(path->edges > 0 && path->hop <= channel->worst_port, "%s: end %d goes a way of class %d", name,
                      end, path->hop);
        for (int i = 0; i < path->edges; i++) {
            net->edge[path->edge[i]].budget -= end == 1 || tree ? bandwidth * halves / 2 : 0;
            net->edge[path->edge[i] ^ 1].budget -= end == 0 ? bandwidth * halves / 2 : 0;
        }
    }
}

/* Over several hosts: all GPUs once, from port to port, within the budgets and the bound. */
static void check_hosts(const struct hoop_topo *topo, const char *name, const struct hoop_topo_wanted *wanted)
{
    static struct hoop_topo_channels found;
    static struct hoop_net net;
    const enum hoop_status made = hoop_net_make(&net, topo, wanted);

    ck_assert_int_eq(hoop_topo_search(topo, wanted, &found), made);
    if (made != HOOP_OK)
        return;
    const double all = found.channels * found.gigabytes_per_second;
    ck_assert_msg(found.channels >= 1 && all <= found.bound + 1e-6 && all >= found.single - 1e-6, "%s: %g of %g", name,
                  all, found.bound);
    for (int i = 0; i < found.channels; i++) {
        uint32_t visited = 0;

        for (int j = 0; j < net.gpus; j++)
            visited |= 1u << gpu_of(&net, found.channel[i].node[j]);
        ck_assert_msg(visited == (1u << net.gpus) - 1, "%s: channel %d visits %x", name, i, visited);
        const int bandwidth = (int)(found.gigabytes_per_second * 1000 + 0.5);
        for (int j = 0; j + 1 < net.gpus; j++) {
            const int a = gpu_of(&net, found.channel[i].node[j]), b = gpu_of(&net, found.channel[i].node[j + 1]);

            charge(&net, &net.path[a][b], bandwidth);
            if (wanted->shape == HOOP_TOPO_CHAIN)
                charge(&net, &net.path[b][a], bandwidth);
        }
        charge_ports(&net, wanted, &found.channel[i], bandwidth, name);
    }
    for (int i = 0; i < net.edges; i++)
        ck_assert_msg(net.edge[i].budget >= 0, "%s: edge %d is over its budget by %d MB/s", name, i,
                      -net.edge[i].budget);
    printf("%-36s %s over %d hosts: %2d x %6.2f = %6.1f GB/s, bound %6.1f, ratio %.2f, to ports %s\n", name,
           wanted->shape == HOOP_TOPO_RING ? "rings " : "chains", wanted->hosts, found.channels,
           found.gigabytes_per_second, all, found.bound, all / found.bound, hoop_topo_hop_name(found.worst_port));
}

static void check_all_hosts(const struct hoop_topo *topo, const char *name)
{
    check_hosts(topo, name, &(struct hoop_topo_wanted){.shape = HOOP_TOPO_RING, .hosts = 2});
    check_hosts(topo, name, &(struct hoop_topo_wanted){.shape = HOOP_TOPO_CHAIN, .hosts = 4});
}

static enum hoop_status search(const struct hoop_topo *topo, enum hoop_topo_shape shape,
                               struct hoop_topo_channels *found)
{
    return hoop_topo_search(topo, &(struct hoop_topo_wanted){.shape = shape, .hosts = 1}, found);
}

static struct hoop_topo *load(const char *text, const char *name)
{
    struct hoop_topo *topo = NULL;

    ck_assert_msg(hoop_topo_read_nccl(&topo, text, name) == HOOP_OK, "%s: %s", name, hoop_error_text());
    return topo;
}

/* The same machine with its CPUs in reverse order and its GPUs numbered from behind. */
static char *turned(const char *text, int gpus)
{
    const size_t size = strlen(text) + 64;
    char *out = calloc(1, size);
    const char *end = strstr(text, "</system>"), *from = strstr(text, "<cpu "), *at = end;

    ck_assert(out != NULL && end != NULL && from != NULL);
    strncat(out, text, (size_t)(from - text));
    while (at > from) { /* the block that ends at `at` begins at the last <cpu before it */
        const char *begin = at - 1;
        while (strncmp(begin, "<cpu ", 5) != 0)
            begin--;
        strncat(out, begin, (size_t)(at - begin));
        at = begin;
    }
    strncat(out, end, size - strlen(out) - 1);
    for (char *gpu = out; (gpu = strstr(gpu, "<gpu dev=\"")) != NULL; gpu++) {
        char *number = gpu + strlen("<gpu dev=\"");
        const long dev = strtol(number, NULL, 10), other = gpus - 1 - dev;

        if (dev < 10 && other < 10)
            *number = (char)('0' + other);
    }
    return out;
}

static void same_devices(const struct hoop_topo *a, const struct hoop_topo_channels *one, const struct hoop_topo *b,
                         const struct hoop_topo_channels *other, const char *name)
{
    ck_assert_int_eq(one->channels, other->channels);
    ck_assert(one->gigabytes_per_second == other->gigabytes_per_second);
    for (int i = 0; i < one->channels; i++)
        for (int j = 0; j < one->devices; j++)
            ck_assert_msg(hoop_topo_same_bus(&hoop_topo_node(a, one->channel[i].node[j])->bus,
                                             &hoop_topo_node(b, other->channel[i].node[j])->bus),
                          "%s: channel %d differs at %d after renumbering", name, i, j);
}

static void check_shape(const char *text, const char *name, enum hoop_topo_shape shape)
{
    static struct hoop_topo_channels found, again;
    static struct hoop_net net;
    struct hoop_topo *topo = load(text, name);
    const int gpus = hoop_topo_count(topo, HOOP_TOPO_GPU);

    if (gpus < 2) {
        ck_assert_int_eq(search(topo, shape, &found), HOOP_ERR_UNSUPPORTED);
        printf("%-36s no GPU in the file\n", name);
        hoop_topo_free(topo);
        return;
    }
    ck_assert_msg(search(topo, shape, &found) == HOOP_OK, "%s: %s", name, hoop_error_text());
    ck_assert_int_eq(hoop_net_make(&net, topo, &(struct hoop_topo_wanted){.hosts = 1}), HOOP_OK);
    check_figures(&net, shape, &found, name);
    check_channels(&net, shape, &found, name);
    printf("%-36s %s %2d x %6.2f = %6.1f GB/s, bound %6.1f, ratio %.2f, one alone %6.1f, worst hop %s%s\n", name,
           shape == HOOP_TOPO_RING ? "rings " : "chains", found.channels, found.gigabytes_per_second,
           found.channels * found.gigabytes_per_second, found.bound,
           found.channels * found.gigabytes_per_second / found.bound, found.single, hoop_topo_hop_name(found.worst),
           found.assumed ? " (some speed assumed)" : "");
    if (shape == HOOP_TOPO_RING) {
        char *text_turned = turned(text, gpus);
        struct hoop_topo *other = load(text_turned, name);

        ck_assert_int_eq(search(other, shape, &again), HOOP_OK);
        same_devices(topo, &found, other, &again, name);
        hoop_topo_free(other);
        free(text_turned);
    }
    hoop_topo_free(topo);
}

START_TEST(made_up_machines)
{
    static const struct {
        const char *name;
        int gpus;
        int (*links)(int, int);
        double rings; /* GB/s, 36 a link; 0: not checked */
    } machines[] = {
        {"2 GPUs, 1 link", 2, all_to_all, 36},
        {"3 GPUs, all to all", 3, all_to_all, 72},
        {"4 GPUs, all to all", 4, all_to_all, 108},
        {"8 GPUs, all to all", 8, all_to_all, 252},
        {"6 GPUs in a circle", 6, circle, 72},
        {"4 GPUs without links", 4, no_link, 0},
        {"7 GPUs, uneven links", 7, pairs, 0},
        {"16 GPUs, uneven links", 16, pairs, 0},
        {"8 GPUs, 3 neighbours", 8, three_neighbours, 96},
    };
    static char text[TEXT];
    static struct hoop_topo_channels found;

    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        describe(text, machines[i].gpus, machines[i].links);
        for (int shape = 0; shape < HOOP_TOPO_SHAPES; shape++)
            check_shape(text, machines[i].name, (enum hoop_topo_shape)shape);
        struct hoop_topo *topo = load(text, machines[i].name);
        ck_assert_int_eq(search(topo, HOOP_TOPO_RING, &found), HOOP_OK);
        const double all = found.channels * found.gigabytes_per_second;
        ck_assert_msg(machines[i].rings == 0 || all > found.bound - 1e-6, "%s: bound %g", machines[i].name,
                      found.bound);
        ck_assert_msg(machines[i].rings == 0 || (all > machines[i].rings - 0.1 && all < machines[i].rings + 0.1),
                      "%s: %g, not %g", machines[i].name, all, machines[i].rings);
        hoop_topo_free(topo);
    }
}
END_TEST

START_TEST(what_cannot_be_searched)
{
    static struct hoop_topo_channels found;
    static char text[TEXT];

    describe(text, 17, no_link);
    struct hoop_topo *topo = load(text, "17 GPUs");
    ck_assert_int_eq(search(topo, HOOP_TOPO_RING, &found), HOOP_ERR_UNSUPPORTED);
    ck_assert(strstr(hoop_error_text(), "17 GPUs") != NULL);
    ck_assert_int_eq(search(topo, HOOP_TOPO_SHAPES, &found), HOOP_ERR_ARG);
    ck_assert_int_eq(search(NULL, HOOP_TOPO_RING, &found), HOOP_ERR_ARG);
    ck_assert_int_eq(search(topo, HOOP_TOPO_RING, NULL), HOOP_ERR_ARG);
    hoop_topo_free(topo);
}
END_TEST

START_TEST(recorded_machines)
{
    const char *path = files.gl_pathv[_i], *name = strrchr(path, '/') + 1;
    char *text = NULL;
    size_t size;

    if (strstr(name, ".graph.") != NULL)
        return;
    ck_assert_int_eq(hoop_file_read("topology", path, 1 << 20, &text, &size, NULL), HOOP_OK);
    for (int shape = 0; shape < HOOP_TOPO_SHAPES; shape++)
        check_shape(text, name, (enum hoop_topo_shape)shape);
    struct hoop_topo *topo = load(text, name);
    if (hoop_topo_count(topo, HOOP_TOPO_GPU) >= 2) {
        static struct hoop_topo_channels found;

        ck_assert_int_eq(search(topo, HOOP_TOPO_RING, &found), HOOP_OK);
        ck_assert_msg(found.channels * found.gigabytes_per_second > found.bound - 1e-6,
                      "%s: not all that can be: bound %g", name, found.bound);
    }
    check_all_hosts(topo, name);
    hoop_topo_free(topo);
    hoop_free(text);
}
END_TEST

/* Two GPUs and a port on each of four switches: every ring begins and ends next to a port; only some devices wanted; no port left. */
START_TEST(several_hosts)
{
    static struct hoop_topo_channels found;
    const char *source = getenv("TEST_SOURCE");
    struct hoop_topo *topo = NULL;
    bool shown[64] = {false};
    char path[4096];

    snprintf(path, sizeof path, "%s/tests/unit/topo/a100x8.xml", source != NULL ? source : ".");
    ck_assert_msg(hoop_topo_load(&topo, path) == HOOP_OK, "%s", hoop_error_text());
    check_all_hosts(topo, "8 A100, 4 ports");
    struct hoop_topo_wanted wanted = {.shape = HOOP_TOPO_RING, .hosts = 3};
    ck_assert_int_eq(hoop_topo_search(topo, &wanted, &found), HOOP_OK);
    ck_assert_int_eq(found.channels, 4);
    ck_assert_int_eq((int)(found.gigabytes_per_second + 0.5), 24);
    ck_assert_int_eq(found.worst_port, HOOP_TOPO_HOP_PIX);
    for (int i = 0; i < 4; i++) {
        shown[hoop_topo_find(topo, HOOP_TOPO_GPU, i)] = true;
        shown[hoop_topo_find(topo, HOOP_TOPO_NIC, i)] = i == 3;
    }
    wanted.shown = shown;
    ck_assert_int_eq(hoop_topo_search(topo, &wanted, &found), HOOP_OK);
    ck_assert_int_eq(found.devices, 4);
    ck_assert_int_eq(found.channels * (int)(found.gigabytes_per_second + 0.5),
                     16); /* the port is on the other CPU: AMD's link */
    ck_assert_int_eq(found.worst_port, HOOP_TOPO_HOP_SYS);
    shown[hoop_topo_find(topo, HOOP_TOPO_NIC, 3)] = false;
    ck_assert_int_eq(hoop_topo_search(topo, &wanted, &found), HOOP_ERR_UNSUPPORTED);
    wanted.hosts = 0;
    ck_assert_int_eq(hoop_topo_search(topo, &wanted, &found), HOOP_ERR_ARG);
    hoop_topo_free(topo);
}
END_TEST

static void find_files(void)
{
    const char *given = getenv("HOOP_TOPOLOGIES"), *source = getenv("TEST_SOURCE");
    char pattern[4096];

    for (int i = 0; i < 2; i++) {
        if (given != NULL)
            snprintf(pattern, sizeof pattern, "%s/%s/*.xml", given, i == 0 ? "nccl" : "rccl");
        else
            snprintf(pattern, sizeof pattern, "%s/../shared/topologies/%s/*.xml", source != NULL ? source : ".",
                     i == 0 ? "nccl" : "rccl");
        glob(pattern, i == 0 ? 0 : GLOB_APPEND, NULL, &files);
    }
    if (files.gl_pathc == 0)
        printf("no recorded machines: %s has none; set HOOP_TOPOLOGIES to the folder that has them\n", pattern);
}

int main(void)
{
    find_files();
    Suite *suite = suite_create("rings");
    TCase *tests = tcase_create("rings");
    tcase_add_test(tests, made_up_machines);
    tcase_add_test(tests, what_cannot_be_searched);
    tcase_add_test(tests, several_hosts);
    if (files.gl_pathc > 0)
        tcase_add_loop_test(tests, recorded_machines, 0, (int)files.gl_pathc);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    globfree(&files);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
