// SPDX-License-Identifier: BSD-3-Clause
/* Reading recorded machines: files that are none, are cut off or changed, and memory that runs out. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "harness.h"
#include "topo/model.h"

static enum hoop_topo_form form; /* what the last text was taken for */
static char box_path[4096];      /* tests/unit/topo/box.xml */

START_TEST(texts_that_are_refused)
{
    static const struct {
        const char *text, *says;
        enum hoop_status status;
    } cases[] = {
        {"", "neither XML of hwloc", HOOP_ERR_ARG},
        {"<", "neither XML of hwloc", HOOP_ERR_ARG},
        {"<!-- <topology> ", "neither XML of hwloc", HOOP_ERR_ARG},
        {"<topologyx version=\"2.0\">", "neither XML of hwloc", HOOP_ERR_ARG},
        {"<?xml version=\"1.0\"?><!-- a --><graphs version=\"1\">", "graph file of NCCL", HOOP_ERR_ARG},
        {"<?xml version=\"1.0\"?><!-- a --><system version=\"1\">", "", HOOP_OK},
        {"<topology version=\"9.0\">", "format 9", HOOP_ERR_UNSUPPORTED},
        {"<topology version=\"2.0\"/>", "", HOOP_OK},
        {"<?xml version='1.0'?>\n<!DOCTYPE topology>\n<topology version='2.0'>\n</topology >\n", "", HOOP_OK},
        {"<topology a='<'/>", "invalid token", HOOP_ERR_ARG},
        {"<topology a=1/>", "invalid token", HOOP_ERR_ARG},
        {"<topology a='1'b='2'/>", "invalid token", HOOP_ERR_ARG},
        {"<topology version=", "unclosed token", HOOP_ERR_ARG},
        {"<topology><a><b></a></b></topology>", ":1: not well-formed XML: mismatched tag", HOOP_ERR_ARG},
        {"<topology>\n</topology>\n<a/>", ":3: not well-formed XML: junk after", HOOP_ERR_ARG},
        {"<topology></topology", "unclosed token", HOOP_ERR_ARG},
        {"<topology>", "no element found", HOOP_ERR_ARG},
        {"<topology /", "unclosed token", HOOP_ERR_ARG},
        {"<topology><!-- </topology>", "unclosed token", HOOP_ERR_ARG},
        {"<topology><></topology>", "invalid token", HOOP_ERR_ARG},
        {"<!DOCTYPE topology [<!ENTITY a 'b'>]><topology/>", "declares entities", HOOP_ERR_ARG},
        {"<!DOCTYPE topology [ ]><topology/>", "declares entities", HOOP_ERR_ARG},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const enum hoop_status status = hoop_topo_recognize(cases[i].text, "file", &form);

        ck_assert_msg(status == cases[i].status, "%s: %d, %s", cases[i].text, status, hoop_error_text());
        ck_assert_msg(status == HOOP_OK || strstr(hoop_error_text(), cases[i].says) != NULL, "%s: %s", cases[i].text,
                      hoop_error_text());
    }
}
END_TEST

START_TEST(nesting_is_limited)
{
    static char text[16384];

    for (int depth = 127; depth <= 129; depth++) {
        char *at = text + snprintf(text, sizeof(text), "<topology version=\"2.0\">");

        for (int i = 1; i < depth; i++)
            at += snprintf(at, 64, "<object type=\"Group\">");
        for (int i = 1; i < depth; i++)
            at += snprintf(at, 64, "</object>");
        snprintf(at, 64, "</topology>");
        ck_assert_msg((hoop_topo_recognize(text, "file", &form) == HOOP_OK) == (depth <= 128), "depth=%d: %s", depth,
                      hoop_error_text());
    }
}
END_TEST

START_TEST(files_that_are_refused)
{
    static const char *const paths[] = {"/dev",       "/dev/null",        "/dev/zero", "/no/such/file",
                                        "synthetic:", "synthetic:pony:2", ""};
    struct hoop_topo *topo = NULL;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const enum hoop_status status = hoop_topo_load(&topo, paths[i]);
        ck_assert_msg(status < 0 && topo == NULL, "%s: %d", paths[i], status);
    }
    ck_assert_int_eq(hoop_topo_load(NULL, "/"), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_topo_load(&topo, NULL), HOOP_ERR_ARG);
}
END_TEST

static char box[65536];
static size_t box_size;

static void read_box(void)
{
    FILE *file = fopen(box_path, "r");

    ck_assert_ptr_nonnull(file);
    box_size = fread(box, 1, sizeof(box), file);
    fclose(file);
    ck_assert(box_size > 1000 && box_size < sizeof(box));
}

static enum hoop_status load_bytes(int file, const char *path, const char *bytes, size_t size)
{
    struct hoop_topo *topo = NULL;

    ck_assert_int_eq(ftruncate(file, 0), 0);
    ck_assert_int_eq(pwrite(file, bytes, size, 0), (ssize_t)size);
    const enum hoop_status status = hoop_topo_load(&topo, path);
    ck_assert((status == HOOP_OK) == (topo != NULL));
    hoop_topo_free(topo);
    return status;
}

/* The box cut off after every byte of its head, then after every 97th: refused, never a crash. Parser 0 is hwloc's own. */
START_TEST(cut_files)
{
    char path[64] = "/tmp/hoop-topo-XXXXXX";
    const int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    unlink(path);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    setenv("HWLOC_LIBXML", _i == 0 ? "0" : "1", 1);
    read_box();
    for (size_t cut = 0; cut < box_size - 1; cut += cut < 256 ? 1 : 97)
        ck_assert_msg(load_bytes(file, path, box, cut) == HOOP_ERR_ARG, "cut=%zu: %s", cut, hoop_error_text());
    ck_assert_int_eq(load_bytes(file, path, box, box_size), HOOP_OK);
    close(file);
}
END_TEST

/* One byte of the box changed to one that XML looks at: refused or not, the walk stays inside the text. (What hwloc makes of
 * a well-formed file with nonsense in it is its own affair.) */
START_TEST(changed_files)
{
    unsigned seed = 7;
    int refused = 0;

    read_box();
    char *text = malloc(box_size + 1); /* exact, so that a sanitizer sees a step beyond */
    ck_assert_ptr_nonnull(text);
    for (int round = 0; round < 3000; round++) {
        seed = seed * 1103515245u + 12345u;
        memcpy(text, box, box_size);
        text[box_size] = '\0';
        text[(size_t)(seed >> 4) % box_size] = "\"'<>/=! "[seed >> 28 & 7];
        refused += hoop_topo_recognize(text, "box", &form) != HOOP_OK;
    }
    free(text);
    ck_assert_int_gt(refused, 1000);
    ck_assert_int_lt(refused, 3000);
}
END_TEST

/* What of NCCL's files is refused, and what is left out with a remark. */
START_TEST(nccl_texts)
{
    static const struct {
        const char *text, *says; /* the error, or the remark; NULL: there is none */
        enum hoop_status status;
    } cases[] = {
        {"<system version='1'/>", NULL, HOOP_OK},
        {"<system version='3'/>", "version \"3\"", HOOP_ERR_UNSUPPORTED},
        {"<system/>", "version \"\"", HOOP_ERR_UNSUPPORTED},
        {"<system version='2'><cpu numaid='0' host_hash='0x1'/><cpu numaid='1' host_hash='0x2'/></system>",
         "several hosts", HOOP_ERR_UNSUPPORTED},
        {"<system version='1'><cpu numaid='0' affinity='f,g'/></system>", "affinity \"f,g\"", HOOP_OK},
        {"<system version='1'><cpu numaid='0' affinity='123456789'/></system>", "no mask", HOOP_OK},
        {"<system version='1'><cpu numaid='0'><pci busid='0:0:20.0'/></cpu></system>", "no bus id", HOOP_OK},
        {"<system version='1'><cpu numaid='0'><pci busid='0:0:0.0' link_speed='16 gt'/></cpu></system>", "\"16 gt\"",
         HOOP_OK},
        {"<system version='1'><cpu numaid='0'><pci busid='0:0:0.0'><gpu><nvlink target='0:1:0.0' "
         "count='1'/></gpu></pci>"
         "</cpu></system>",
         "not in the file", HOOP_OK},
        {"<system version='1'><cpu numaid='0'><pci busid='0:0:0.0'><gpu><xgmi target='x' count='1'/></gpu></pci></cpu>"
         "</system>",
         "is no bus id", HOOP_OK},
        {"<system version='1'><cpu numaid='0'></system>", "mismatched tag", HOOP_ERR_ARG},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hoop_topo *topo = NULL;
        const enum hoop_status status = hoop_topo_read_nccl(&topo, cases[i].text, "file");
        const char *said = status == HOOP_OK ? hoop_topo_note(topo, 0) : hoop_error_text();

        ck_assert_msg(status == cases[i].status, "%s: %d, %s", cases[i].text, status, hoop_error_text());
        ck_assert_msg(cases[i].says == NULL ? said == NULL : said != NULL && strstr(said, cases[i].says) != NULL,
                      "%s: %s", cases[i].text, said);
        hoop_topo_free(topo);
    }
}
END_TEST

START_TEST(memory_runs_out)
{
    static const char *const files[] = {"box.xml", "nccl.xml"};
    char path[4200];
    bool done = false;

    snprintf(path, sizeof path, "%.*s/%s", (int)(strlen(box_path) - strlen("/box.xml")), box_path, files[_i]);
    for (long n = 1; !done; n++) {
        struct hoop_topo *topo = NULL;

        ck_assert_int_lt(n, 2000);
        hoop_alloc_fail_at(n);
        const enum hoop_status status = hoop_topo_load(&topo, path);
        done = hoop_alloc_fail_at(0) < n;
        ck_assert_msg(done ? status == HOOP_OK : status == HOOP_ERR_MEMORY && topo == NULL, "n=%ld: %d", n, status);
        hoop_topo_free(topo);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("topo files");
    TCase *tests = tcase_create("topo");
    const char *folder = getenv("TEST_SOURCE");

    snprintf(box_path, sizeof(box_path), "%s/tests/unit/topo/box.xml", folder != NULL ? folder : ".");
    tcase_add_test(tests, texts_that_are_refused);
    tcase_add_test(tests, nesting_is_limited);
    tcase_add_test(tests, files_that_are_refused);
    tcase_add_test(tests, nccl_texts);
    tcase_add_loop_test(tests, cut_files, 0, 2);
    tcase_add_test(tests, changed_files);
    tcase_add_loop_test(tests, memory_runs_out, 0, 2);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
