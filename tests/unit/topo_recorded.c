// SPDX-License-Identifier: BSD-3-Clause
/* Recorded machines against answer tables, where a collection of them is at hand.
 *
 * The collection is a folder with hwloc/NAME.xml and expected/hwloc.NAME.xml.tsv, nccl/… and rccl/… likewise: in
 * $HOOP_TOPOLOGIES, or shared/topologies beside the source folder. Rows of a table: "D label busid …" devices, "M label …" PCI
 * classes (the first M row names the columns; topo_tables.sh compares those of NCCL and RCCL), "L label …" the fabric: for
 * hwloc NVLink as "NV:<MB/s>" direct or "NVS:<MB/s>" through switches; for the others the number of links, "s18" for links into
 * switches, "self12" for links that name their own GPU. Without the collection the test is skipped. */
#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "hoop/topo.h"

enum { MOST_COLUMNS = 128, SKIPPED = 77 };

static glob_t tables;

struct row {
    char line[16384];
    char *cell[MOST_COLUMNS];
    int cells;
};

static bool read_row(FILE *file, struct row *row)
{
    char *at = row->line;

    if (fgets(row->line, sizeof(row->line), file) == NULL)
        return false;
    row->line[strcspn(row->line, "\n")] = '\0';
    for (row->cells = 0; at != NULL && row->cells < MOST_COLUMNS;)
        row->cell[row->cells++] = strsep(&at, "\t");
    return true;
}

static int node(const struct hoop_topo *topo, const char *label)
{
    for (int i = 0; hoop_topo_node(topo, i) != NULL; i++)
        if (strcmp(hoop_topo_node(topo, i)->label, label) == 0)
            return i;
    ck_abort_msg("no node %s", label);
    return -1;
}

static void check_device(const struct hoop_topo *topo, const struct row *row)
{
    const struct hoop_topo_node *found = hoop_topo_node(topo, node(topo, row->cell[1]));
    char bus[32], name[64];

    snprintf(bus, sizeof(bus), "%04x:%02x:%02x.%x", found->bus.domain, found->bus.bus, found->bus.device,
             found->bus.function);
    ck_assert_str_eq(bus, row->cell[2]);
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(row->cell[3], ","), row->cell[3]);
    if (found->kind == HOOP_TOPO_NIC)
        ck_assert_str_eq(found->name, name);
}

static void check_classes(const struct hoop_topo *topo, const struct row *head, const struct row *row)
{
    ck_assert_int_eq(row->cells, head->cells + 1);
    for (int i = 1; i < head->cells; i++) {
        const int a = node(topo, row->cell[1]), b = node(topo, head->cell[i]);
        const char *got = hoop_topo_class_name(hoop_topo_path_class(topo, a, b));

        ck_assert_msg(strcmp(got, row->cell[i + 1]) == 0, "%s %s: %s, not %s", row->cell[1], head->cell[i], got,
                      row->cell[i + 1]);
    }
}

/* Only NVLink: the XGMI matrices of these files cannot tell a direct link from a relayed one. */
static void check_fabric(const struct hoop_topo *topo, const struct row *row)
{
    const int a = node(topo, row->cell[1]);

    for (int i = 2; i < row->cells; i++) {
        const int b = hoop_topo_find(topo, HOOP_TOPO_GPU, i - 2);
        struct hoop_topo_fact speed = {0};
        const bool joined = hoop_topo_fabric(topo, a, b, NULL, &speed);
        const char *colon = strchr(row->cell[i], ':');
        const double expected = colon != NULL ? strtod(colon + 1, NULL) / 1000 : 0;

        if (a != b)
            ck_assert_msg(joined == (colon != NULL) && speed.value == expected, "%s GPU%d: %d %g GB/s, not %s",
                          row->cell[1], i - 2, joined, speed.value, row->cell[i]);
    }
}

/* The GPU that a table of NCCL calls GPU`number`: by its "dev". */
static int dev(const struct hoop_topo *topo, int number)
{
    const struct hoop_topo_node *found;

    for (int i = 0; (found = hoop_topo_node(topo, i)) != NULL; i++)
        if (found->kind == HOOP_TOPO_GPU && found->ordinal.source == HOOP_TOPO_NCCL_XML &&
            found->ordinal.value == number)
            return i;
    ck_abort_msg("no GPU with dev %d", number);
    return -1;
}

static void check_links(const struct hoop_topo *topo, const struct row *row)
{
    for (int i = 2; i < row->cells; i++) {
        struct hoop_topo_fact count = {0};
        const char *cell = row->cell[i][0] == 's' && row->cell[i][1] != 'e' ? row->cell[i] + 1 : row->cell[i];
        const int a = dev(topo, (int)strtol(row->cell[1] + 3, NULL, 10)), b = dev(topo, i - 2);
        const long expected = strtol(cell, NULL, 10); /* 0 for "X" and "self12" */

        hoop_topo_fabric(topo, a, b, &count, NULL);
        ck_assert_msg(count.value == (double)expected, "%s, GPU%d: %g links, not %s", row->cell[1], i - 2, count.value,
                      row->cell[i]);
    }
}

static bool says(const struct hoop_topo *topo, const char *text)
{
    for (int i = 0; hoop_topo_note(topo, i) != NULL; i++)
        if (strstr(hoop_topo_note(topo, i), text) != NULL)
            return true;
    return false;
}

/* Only the links: names and classes are compared with what hoop-topo prints. */
static void check_nccl_table(const struct hoop_topo *topo, FILE *file)
{
    static struct row row;
    bool self = false;

    while (read_row(file, &row))
        if (strcmp(row.cell[0], "L") == 0) {
            check_links(topo, &row);
            for (int i = 2; i < row.cells; i++)
                self |= strncmp(row.cell[i], "self", 4) == 0;
        }
    ck_assert_int_eq(self, says(topo, "that GPU itself"));
}

static void check_table(const struct hoop_topo *topo, FILE *file)
{
    static struct row head, row;
    int devices = 0, classes = 0;

    head.cells = 0;
    while (read_row(file, &row)) {
        if (strcmp(row.cell[0], "D") == 0) {
            check_device(topo, &row);
            devices++;
        } else if (strcmp(row.cell[0], "M") == 0 && head.cells == 0) {
            head = row;
            for (int i = 0; i < head.cells; i++)
                head.cell[i] = head.line + (row.cell[i] - row.line);
        } else if (strcmp(row.cell[0], "M") == 0) {
            check_classes(topo, &head, &row);
            classes++;
        } else if (strcmp(row.cell[0], "L") == 0 &&
                   hoop_topo_node(topo, hoop_topo_find(topo, HOOP_TOPO_GPU, 0))->vendor == 0x10de) {
            check_fabric(topo, &row);
        }
    }
    ck_assert_int_gt(devices, 0);
    ck_assert_int_eq(classes, devices);
}

START_TEST(recorded_machine)
{
    const char *table = tables.gl_pathv[_i], *name = strrchr(table, '/') + 1, *dot = strchr(name, '.');
    char path[8192];
    struct hoop_topo *topo = NULL;

    const int folder = (int)(strrchr(table, '/') - table) - (int)sizeof("expected") + 1;
    snprintf(path, sizeof(path), "%.*s%.*s/%.*s", folder, table, (int)(dot - name), name, (int)strlen(dot + 1) - 4,
             dot + 1);
    const enum hoop_status status = hoop_topo_load(&topo, path);
    if (strstr(path, ".v3.xml") != NULL && status == HOOP_ERR_UNSUPPORTED) {
        ck_assert(strstr(hoop_error_text(), "format 3") != NULL);
        return;
    }
    ck_assert_msg(status == HOOP_OK, "%s: %s", path, hoop_error_text());
    FILE *file = fopen(table, "r");
    ck_assert_ptr_nonnull(file);
    if (strncmp(name, "hwloc.", 6) == 0)
        check_table(topo, file);
    else
        check_nccl_table(topo, file);
    fclose(file);
    hoop_topo_free(topo);
}
END_TEST

int main(void)
{
    const char *given = getenv("HOOP_TOPOLOGIES"), *source = getenv("TEST_SOURCE");
    char pattern[4096];

    if (given != NULL)
        snprintf(pattern, sizeof(pattern), "%s/expected/*.tsv", given);
    else
        snprintf(pattern, sizeof(pattern), "%s/../shared/topologies/expected/*.tsv", source != NULL ? source : ".");
    if (glob(pattern, 0, NULL, &tables) != 0) {
        printf("no recorded machines: %s does not exist; set HOOP_TOPOLOGIES to the folder that has them\n", pattern);
        return SKIPPED;
    }
    Suite *suite = suite_create("recorded topologies");
    TCase *tests = tcase_create("recorded topologies");
    tcase_add_loop_test(tests, recorded_machine, 0, (int)tables.gl_pathc);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    globfree(&tables);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
