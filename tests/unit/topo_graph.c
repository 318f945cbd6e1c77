// SPDX-License-Identifier: BSD-3-Clause
/* The topology graph: order, digest, paths, affinity lists, binding. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "topo/model.h"
#include "tsan.h"

static char box_path[4096]; /* tests/unit/topo/box.xml */

static struct hoop_topo *load(const char *path)
{
    struct hoop_topo *topo = NULL;
    const enum hoop_status status = hoop_topo_load(&topo, path);

    ck_assert_msg(status == HOOP_OK, "%s: %s", path, hoop_error_text());
    return topo;
}

static int node(const struct hoop_topo *topo, const char *label)
{
    for (int i = 0; hoop_topo_node(topo, i) != NULL; i++)
        if (strcmp(hoop_topo_node(topo, i)->label, label) == 0)
            return i;
    ck_abort_msg("no node %s", label);
    return -1;
}

/* ---- order and digest ---- */

enum { NODES = 12 };

/* A small machine; parents by place in this table. */
static const struct hoop_topo_node machine[NODES] = {
    {.kind = HOOP_TOPO_MACHINE, .parent = -1, .source = HOOP_TOPO_SYNTHETIC},
    {.kind = HOOP_TOPO_PACKAGE, .number = 1, .parent = 0},
    {.kind = HOOP_TOPO_PACKAGE, .number = 0, .parent = 0},
    {.kind = HOOP_TOPO_NUMA, .number = 8, .parent = 1},
    {.kind = HOOP_TOPO_NUMA, .number = 0, .parent = 2},
    {.kind = HOOP_TOPO_HOST_BRIDGE, .parent = 4, .bus = {.known = true, .bus = 0}},
    {.kind = HOOP_TOPO_HOST_BRIDGE, .parent = 3, .bus = {.known = true, .domain = 0x10000}},
    {.kind = HOOP_TOPO_GPU, .parent = 6, .bus = {.known = true, .domain = 0x10000, .device = 3}, .name = "gpu"},
    {.kind = HOOP_TOPO_GPU, .parent = 5, .bus = {.known = true, .device = 3}},
    {.kind = HOOP_TOPO_NIC, .parent = 5, .bus = {.known = true, .device = 1}, .name = "mlx5_10", .rdma = true},
    {.kind = HOOP_TOPO_NIC,
     .parent = 6,
     .bus = {.known = true, .domain = 0x10000, .device = 9},
     .name = "mlx5_9",
     .rdma = true},
    {.kind = HOOP_TOPO_NIC, .parent = 5, .bus = {.known = true, .device = 0}, .name = "eno1"},
};

static const char *const machine_labels[NODES] = {"Machine", "Package1", "Package0", "NUMA8", "NUMA0", "Host0",
                                                  "Host1",   "GPU1",     "GPU0",     "NIC1",  "NIC0",  "NIC2"};

/* Build the machine with its nodes added in that order; order[k] = -1 ends it. */
static struct hoop_topo *build(const struct hoop_topo_node *nodes, const int *order)
{
    struct hoop_topo *topo = NULL;
    int place[NODES];

    ck_assert_int_eq(hoop_topo_create(&topo), HOOP_OK);
    for (int k = 0; k < NODES; k++) {
        struct hoop_topo_node one = nodes[order[k]];
        hwloc_bitmap_t numas = hwloc_bitmap_alloc();

        if (one.kind == HOOP_TOPO_NUMA)
            hwloc_bitmap_set(numas, (unsigned)one.number);
        one.parent = one.parent < 0 ? -1 : place[one.parent];
        place[order[k]] = hoop_topo_add(topo, &one, NULL, numas);
        hwloc_bitmap_free(numas);
        ck_assert_int_eq(place[order[k]], k);
        if (one.parent >= 0) {
            const struct hoop_topo_link link = {.kind = HOOP_TOPO_LINK_PCI, .a = k, .b = one.parent};
            ck_assert_int_eq(hoop_topo_join(topo, &link), HOOP_OK);
        }
    }
    ck_assert_int_eq(hoop_topo_seal(topo), HOOP_OK);
    return topo;
}

/* An order in which parents come first: of the nodes that may come next, always a random one. */
static void shuffle(int *order, unsigned seed)
{
    bool done[NODES] = {false};

    for (int k = 0; k < NODES;) {
        const int i = (int)((seed = seed * 1103515245u + 12345u) >> 16) % NODES;

        if (done[i] || (machine[i].parent >= 0 && !done[machine[i].parent]))
            continue;
        done[i] = true;
        order[k++] = i;
    }
}

static const int straight[NODES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

START_TEST(order_of_input_does_not_matter)
{
    struct hoop_topo *first = build(machine, straight);

    for (unsigned seed = 1; seed <= 50; seed++) {
        int order[NODES];

        shuffle(order, seed);
        struct hoop_topo *topo = build(machine, order);
        ck_assert_msg(hoop_topo_digest(topo) == hoop_topo_digest(first), "seed=%u", seed);
        for (int i = 0; i < NODES; i++) {
            ck_assert_str_eq(topo->place[i].node.label, first->place[i].node.label);
            ck_assert_int_eq(topo->place[i].node.parent, first->place[i].node.parent);
            ck_assert_int_eq(topo->place[i].node.uplink, first->place[i].node.uplink);
        }
        hoop_topo_free(topo);
    }
    hoop_topo_free(first);
}
END_TEST

START_TEST(labels_and_parents)
{
    struct hoop_topo *topo = build(machine, straight);

    for (int i = 0; i < NODES; i++) {
        const struct hoop_topo_node *one = hoop_topo_node(topo, node(topo, machine_labels[i]));

        ck_assert_msg(one->kind == machine[i].kind && one->bus.domain == machine[i].bus.domain, "%s", one->label);
        ck_assert_str_eq(one->name, machine[i].name == NULL ? "" : machine[i].name);
        if (machine[i].parent < 0)
            continue;
        ck_assert_str_eq(hoop_topo_node(topo, one->parent)->label, machine_labels[machine[i].parent]);
        const struct hoop_topo_link *up = hoop_topo_link(topo, one->uplink);
        ck_assert_ptr_nonnull(up);
        ck_assert(up->a < up->b && up->a == one->parent);
    }
    ck_assert_int_eq(hoop_topo_find(topo, HOOP_TOPO_NUMA, 8), node(topo, "NUMA8"));
    ck_assert_int_eq(hoop_topo_find(topo, HOOP_TOPO_NUMA, 1), -1);
    ck_assert_int_eq(hoop_topo_count(topo, HOOP_TOPO_NIC), 3);
    ck_assert_ptr_null(hoop_topo_node(topo, NODES));
    ck_assert_ptr_null(hoop_topo_node(topo, -1));
    ck_assert_ptr_null(hoop_topo_link(topo, NODES - 1));
    hoop_topo_free(topo);
}
END_TEST

static uint64_t digest_with(struct hoop_topo_node *changed, const struct hoop_topo_node *back)
{
    struct hoop_topo *topo = build(changed - (back - machine), straight);
    const uint64_t digest = hoop_topo_digest(topo);

    *changed = *back;
    hoop_topo_free(topo);
    return digest;
}

START_TEST(digest_is_of_the_machine)
{
    struct hoop_topo_node nodes[NODES];
    struct hoop_topo *topo = build(machine, straight);
    const uint64_t same = hoop_topo_digest(topo);

    hoop_topo_free(topo);
    memcpy(nodes, machine, sizeof(nodes));
    nodes[7].name = "other";
    ck_assert(digest_with(&nodes[7], &machine[7]) == same);
    nodes[0].memory = (struct hoop_topo_fact){1e9, HOOP_TOPO_HWLOC};
    ck_assert(digest_with(&nodes[0], &machine[0]) == same);
    nodes[7].device = 0x20b0;
    ck_assert(digest_with(&nodes[7], &machine[7]) != same);
    nodes[8].bus.function = 1;
    ck_assert(digest_with(&nodes[8], &machine[8]) != same);
    nodes[10].parent = 5;
    ck_assert(digest_with(&nodes[10], &machine[10]) != same);
    nodes[11].rdma = true;
    ck_assert(digest_with(&nodes[11], &machine[11]) != same);
    nodes[3].number = 2;
    ck_assert(digest_with(&nodes[3], &machine[3]) != same);
    ck_assert(digest_with(&nodes[3], &machine[3]) == same);
}
END_TEST

/* ---- names and kinds ---- */

START_TEST(names_in_reading_order)
{
    static const char *const sorted[] = {"",     "a",     "a2",   "a10",      "a10b",
                                         "b1p2", "b1p10", "b2p1", "rdmap9s0", "rdmap16s27"};
    const int count = (int)(sizeof(sorted) / sizeof(sorted[0]));

    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            const int got = hoop_topo_compare_names(sorted[i], sorted[j]);
            ck_assert_msg((got > 0) - (got < 0) == (i > j) - (i < j), "%s %s", sorted[i], sorted[j]);
        }
}
END_TEST

START_TEST(kinds_of_devices)
{
    static const struct {
        struct hoop_topo_identity identity;
        enum hoop_topo_kind kind;
        bool rdma;
    } cases[] = {
        {{0x10de, 0x2330, 0x0302, false, false}, HOOP_TOPO_GPU, false},
        {{0x10de, 0x2204, 0x0300, false, false}, HOOP_TOPO_GPU, false},
        {{0x10de, 0x1af1, 0x0680, false, false}, HOOP_TOPO_SWITCH, false},
        {{0, 0, 0, false, true}, HOOP_TOPO_SWITCH, false},
        {{0x10de, 0x10f0, 0x0403, false, false}, HOOP_TOPO_PCI_DEVICE, false}, /* sound of a graphics card */
        {{0x1002, 0x74a1, 0x1200, false, false}, HOOP_TOPO_GPU, false},
        {{0x1002, 0x7408, 0x0380, false, false}, HOOP_TOPO_GPU, false},
        {{0x1002, 0x515e, 0x0300, false, false}, HOOP_TOPO_PCI_DEVICE, false}, /* console */
        {{0x1a03, 0x2000, 0x0300, false, false}, HOOP_TOPO_PCI_DEVICE, false},
        {{0x1d0f, 0x1111, 0x0300, false, false}, HOOP_TOPO_PCI_DEVICE, false},
        {{0x8086, 0x0bd5, 0x0380, false, false}, HOOP_TOPO_GPU, false},
        {{0x8086, 0x9a49, 0x0300, false, false}, HOOP_TOPO_PCI_DEVICE, false}, /* part of the CPU */
        {{0x15b3, 0x1021, 0x0207, true, false}, HOOP_TOPO_NIC, true},
        {{0x15b3, 0x1021, 0x0207, false, false}, HOOP_TOPO_NIC, true},
        {{0x15b3, 0x101b, 0x0200, true, false}, HOOP_TOPO_NIC, true},
        {{0x15b3, 0x6746, 0x0c06, true, false}, HOOP_TOPO_NIC, true},
        {{0x17db, 0x0501, 0x0200, false, false}, HOOP_TOPO_NIC, true},
        {{0x1af4, 0x1041, 0x0200, false, false}, HOOP_TOPO_NIC, false},
        {{0x144d, 0xa824, 0x0108, false, false}, HOOP_TOPO_PCI_DEVICE, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool rdma = !cases[i].rdma;
        const enum hoop_topo_kind kind = hoop_topo_classify(&cases[i].identity, &rdma);

        ck_assert_msg(kind == cases[i].kind && rdma == cases[i].rdma, "%04x:%04x class %04x: %s, rdma %d",
                      cases[i].identity.vendor, cases[i].identity.device, cases[i].identity.pci_class,
                      hoop_topo_kind_name(kind), rdma);
    }
}
END_TEST

/* ---- paths ---- */

START_TEST(classes_of_the_box)
{
    static const struct {
        const char *a, *b, *path;
    } cases[] = {
        {"GPU0", "GPU0", "X"},           {"GPU0", "NIC0", "PIX"},    {"GPU0", "GPU1", "PXB"},
        {"GPU1", "NIC0", "PXB"},         {"GPU0", "GPU2", "NODE"},   {"GPU0", "GPU3", "SYS"},
        {"GPU3", "NIC1", "PHB"},         {"NIC2", "PCI0", "PHB"},    {"NUMA0", "GPU0", "PHB"},
        {"NUMA1", "GPU0", "SYS"},        {"NUMA0", "NUMA1", "SYS"},  {"NUMA1", "NIC2", "PHB"},
        {"Host0", "GPU0", "PHB"},        {"Bridge1", "GPU0", "PIX"}, {"Bridge1", "GPU1", "PXB"},
        {"Package0", "Package1", "SYS"}, {"NUMA0", "Machine", "?"},
    };
    struct hoop_topo *topo = load(box_path);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int a = node(topo, cases[i].a), b = node(topo, cases[i].b);
        const char *there = hoop_topo_class_name(hoop_topo_path_class(topo, a, b));
        const char *back = hoop_topo_class_name(hoop_topo_path_class(topo, b, a));

        ck_assert_msg(strcmp(there, cases[i].path) == 0 && strcmp(back, there) == 0, "%s %s: %s, back %s, not %s",
                      cases[i].a, cases[i].b, there, back, cases[i].path);
    }
    ck_assert_int_eq(hoop_topo_path_class(topo, 0, 1000), HOOP_TOPO_CLASS_UNKNOWN);
    ck_assert_int_eq(hoop_topo_path_class(topo, -1, 0), HOOP_TOPO_CLASS_UNKNOWN);
    hoop_topo_free(topo);
}
END_TEST

START_TEST(fabric_of_the_box)
{
    struct hoop_topo *topo = load(box_path);
    struct hoop_topo_fact count = {0}, speed = {0};

    ck_assert(hoop_topo_fabric(topo, node(topo, "GPU1"), node(topo, "GPU0"), &count, &speed));
    ck_assert(count.value == 4 && count.source == HOOP_TOPO_DEVICE_ID);
    ck_assert(speed.value == 100 && speed.source == HOOP_TOPO_HWLOC_XML);
    ck_assert(!hoop_topo_fabric(topo, node(topo, "GPU0"), node(topo, "GPU2"), NULL, NULL));
    ck_assert(!hoop_topo_fabric(topo, node(topo, "GPU0"), node(topo, "GPU0"), NULL, NULL));
    ck_assert(!hoop_topo_fabric(topo, node(topo, "GPU0"), node(topo, "NIC0"), NULL, NULL));
    hoop_topo_free(topo);
}
END_TEST

START_TEST(facts_of_the_box)
{
    struct hoop_topo *topo = load(box_path);
    const struct hoop_topo_node *gpu = hoop_topo_node(topo, node(topo, "GPU0"));
    const struct hoop_topo_node *nic = hoop_topo_node(topo, node(topo, "NIC0"));
    const struct hoop_topo_link *link = hoop_topo_link(topo, gpu->uplink);

    ck_assert_str_eq(gpu->name, "nvml0");
    ck_assert_str_eq(gpu->names, "nvml0,cuda0");
    ck_assert_int_eq(gpu->source, HOOP_TOPO_HWLOC_XML);
    ck_assert_int_eq(gpu->memory_numa.source, HOOP_TOPO_UNKNOWN);
    ck_assert_str_eq(nic->names, "mlx5_2,ib0");
    ck_assert(nic->rdma && nic->vendor == 0x15b3 && nic->device == 0x101b && nic->pci_class == 0x0207);
    ck_assert(link->current && link->kind == HOOP_TOPO_LINK_PCI && link->gigabytes_per_second.value > 31.5);
    ck_assert_int_eq(link->width.source, HOOP_TOPO_UNKNOWN);
    link = hoop_topo_link(topo, nic->uplink);
    ck_assert(!link->current && link->gigabytes_per_second.source == HOOP_TOPO_UNKNOWN);
    ck_assert_str_eq(hoop_topo_node(topo, node(topo, "Package0"))->model, "Example 9000");
    ck_assert(hoop_topo_node(topo, node(topo, "NUMA1"))->memory.value == 68719476736.0);
    hoop_topo_free(topo);
}
END_TEST

/* ---- lists and binding ---- */

START_TEST(affinity_lists)
{
    struct hoop_topo *topo = load("synthetic:pack:2 [numa] core:2 pu:2(indexes=0,4,1,5,2,6,3,7)");
    char text[64];

    ck_assert_int_eq(hoop_topo_cpu_list(topo, node(topo, "NUMA0"), text, sizeof(text)), HOOP_OK);
    ck_assert_str_eq(text, "0-1,4-5");
    ck_assert_int_eq(hoop_topo_cpu_list(topo, node(topo, "Package1"), text, sizeof(text)), HOOP_OK);
    ck_assert_str_eq(text, "2-3,6-7");
    ck_assert_int_eq(hoop_topo_numa_list(topo, 0, text, sizeof(text)), HOOP_OK);
    ck_assert_str_eq(text, "0-1");
    hwloc_bitmap_clr_range(topo->allowed, 3, 5);
    ck_assert_int_eq(hoop_topo_cpu_list(topo, 0, text, sizeof(text)), HOOP_OK);
    ck_assert_str_eq(text, "0-2,6-7");
    ck_assert_int_eq(hoop_topo_cpu_list(topo, 0, text, 7), HOOP_ERR_ARG);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(hoop_topo_cpu_list(topo, 0, text, 8), HOOP_OK);
    ck_assert_int_eq(hoop_topo_cpu_list(topo, 99, text, sizeof(text)), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_topo_cpus(topo), 5);
    ck_assert_int_eq(hoop_topo_cores(topo), 4);
    hwloc_bitmap_zero(topo->allowed);
    ck_assert_int_eq(hoop_topo_cpu_list(topo, 0, text, sizeof(text)), HOOP_OK);
    ck_assert_str_eq(text, "");
    hoop_topo_free(topo);
}
END_TEST

/* Up to as many ranks as cores: every allowed CPU belongs to exactly one rank, no rank is without. More: all ranks
 * have one core, and cores differ by at most one rank. */
START_TEST(binding_shares_the_cores)
{
    struct hoop_topo *topo = load("synthetic:pack:2 core:3 pu:2");
    int cpus[16], count;

    hwloc_bitmap_clr(topo->allowed, 2); /* half a core */
    hwloc_bitmap_clr_range(topo->allowed, 4, 5);
    ck_assert_int_eq(hoop_topo_cores(topo), 5);
    for (int ranks = 1; ranks <= 12; ranks++) {
        int users[12] = {0}, last = -1;

        for (int rank = 0; rank < ranks; rank++) {
            ck_assert_int_eq(hoop_topo_bind_core(topo, rank, ranks, cpus, 16, &count), HOOP_OK);
            ck_assert_msg(count >= 1, "rank %d of %d has no CPU", rank, ranks);
            ck_assert_msg(ranks > 5 || cpus[0] > last, "rank %d of %d is out of order", rank, ranks);
            last = cpus[count - 1];
            for (int i = 0; i < count; i++)
                users[cpus[i]]++;
        }
        for (int cpu = 0; cpu < 12; cpu++) {
            const bool allowed = hwloc_bitmap_isset(topo->allowed, (unsigned)cpu) == 1;
            const int least = !allowed ? 0 : ranks <= 5 ? 1 : ranks / 5;
            const int most = !allowed ? 0 : ranks <= 5 ? 1 : (ranks + 4) / 5;

            ck_assert_msg(users[cpu] >= least && users[cpu] <= most, "ranks=%d cpu=%d: %d ranks", ranks, cpu,
                          users[cpu]);
        }
    }
    ck_assert_int_eq(hoop_topo_bind_core(topo, 0, 1, cpus, 2, &count), HOOP_OK);
    ck_assert_int_eq(count, 2);
    ck_assert_int_eq(hoop_topo_bind_core(topo, 1, 1, cpus, 16, &count), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_topo_bind_core(topo, -1, 1, cpus, 16, &count), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_topo_bind_core(topo, 0, 0, cpus, 16, &count), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_topo_bind_core(topo, 0, 1, cpus, 0, &count), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_topo_bind_core(NULL, 0, 1, cpus, 1, &count), HOOP_ERR_ARG);
    hwloc_bitmap_zero(topo->allowed);
    ck_assert_int_eq(hoop_topo_bind_core(topo, 0, 1, cpus, 16, &count), HOOP_ERR_UNSUPPORTED);
    hoop_topo_free(topo);
}
END_TEST

/* ---- the machine that runs ---- */

START_TEST(this_machine)
{
    struct hoop_topo *topo = NULL, *again = NULL;
    int cpus[1024], count = 0;

    ck_assert_msg(hoop_topo_detect(&topo) == HOOP_OK, "%s", hoop_error_text());
    ck_assert_int_eq(hoop_topo_node(topo, 0)->kind, HOOP_TOPO_MACHINE);
    ck_assert_int_ge(hoop_topo_count(topo, HOOP_TOPO_NUMA), 1);
    ck_assert_int_ge(hoop_topo_cores(topo), 1);
    ck_assert_int_ge(hoop_topo_cpus(topo), hoop_topo_cores(topo));
    ck_assert_int_eq(hoop_topo_bind_core(topo, 0, 1, cpus, 1024, &count), HOOP_OK);
    ck_assert_int_eq(count, hoop_topo_cpus(topo));
    ck_assert_int_eq(hoop_topo_detect(&again), HOOP_OK);
    ck_assert(hoop_topo_digest(topo) == hoop_topo_digest(again));
    hoop_topo_free(again);
    hoop_topo_free(topo);
    ck_assert_int_eq(hoop_topo_detect(NULL), HOOP_ERR_ARG);
}
END_TEST

/* A process that may use fewer CPUs sees the same machine, shorter lists and fewer cores. */
START_TEST(this_machine_with_one_cpu)
{
    struct hoop_topo *all = NULL, *one = NULL;
    cpu_set_t before, first;
    char text[64], expected[16];
    int cpu = 0;

    ck_assert_int_eq(hoop_topo_detect(&all), HOOP_OK);
    ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
    while (!CPU_ISSET((size_t)cpu, &before))
        cpu++;
    CPU_ZERO(&first);
    CPU_SET((size_t)cpu, &first);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(first), &first), 0);
    ck_assert_int_eq(hoop_topo_detect(&one), HOOP_OK);
    ck_assert(hoop_topo_digest(all) == hoop_topo_digest(one));
    ck_assert_int_eq(hoop_topo_cpus(one), 1);
    ck_assert_int_eq(hoop_topo_cpu_list(one, 0, text, sizeof(text)), HOOP_OK);
    snprintf(expected, sizeof(expected), "%d", cpu);
    ck_assert_str_eq(text, expected);
    hoop_topo_free(one);
    hoop_topo_free(all);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("topo graph");
    TCase *tests = tcase_create("topo");
    const char *source = getenv("TEST_SOURCE");

    snprintf(box_path, sizeof(box_path), "%s/tests/unit/topo/box.xml", source != NULL ? source : ".");
    tcase_add_test(tests, order_of_input_does_not_matter);
    tcase_add_test(tests, labels_and_parents);
    tcase_add_test(tests, digest_is_of_the_machine);
    tcase_add_test(tests, names_in_reading_order);
    tcase_add_test(tests, kinds_of_devices);
    tcase_add_test(tests, classes_of_the_box);
    tcase_add_test(tests, fabric_of_the_box);
    tcase_add_test(tests, facts_of_the_box);
    tcase_add_test(tests, affinity_lists);
    tcase_add_test(tests, binding_shares_the_cores);
    tcase_add_test(tests, this_machine);
    if (!UNDER_TSAN)
        tcase_add_test(tests, this_machine_with_one_cpu);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
