// SPDX-License-Identifier: BSD-3-Clause
/* What hoop_explain says is what the communicator does, for several sizes, ranks and constants. */
#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "hoop/plan.h"
#include "tsan.h"

static enum hoop_status call(const char *collective, float *buffer, size_t bytes, struct hoop_comm *comm)
{
    const size_t count = bytes / sizeof *buffer, block = count / (size_t)hoop_comm_size(comm);

    if (strcmp(collective, "all_reduce") == 0)
        return hoop_all_reduce(buffer, buffer, count, HOOP_F32, HOOP_SUM, comm, NULL);
    if (strcmp(collective, "broadcast") == 0)
        return hoop_broadcast(buffer, buffer, count, HOOP_F32, 0, comm, NULL);
    return hoop_all_gather(buffer + (size_t)hoop_comm_rank(comm) * block, buffer, block, HOOP_F32, comm, NULL);
}

/* The value of a field of the JSON text, up to one of the ends. */
static void field(const char *text, const char *name, const char *ends, char value[static 64])
{
    const char *at = strstr(text, name);

    snprintf(value, 64, "%s", at ? at + strlen(name) : "");
    value[strcspn(value, ends)] = 0;
}

static int compare(int rank, struct hoop_comm *comm, const char *collective, size_t bytes, float *buffer, char *text)
{
    char choice[64], calls[64], ran[HARNESS_PLAN];

    for (int i = 0; i < 3; i++)
        if (call(collective, buffer, bytes, comm) != HOOP_OK)
            return 1;
    harness_last_algorithm(comm, ran);
    if (hoop_explain(comm, collective, bytes, 1, text, HOOP_EXPLAIN_TEXT) != HOOP_OK)
        return 1;
    field(text, "\"choice\":\"", "\"", choice);
    field(text, "\"measured\":{\"calls\":", ",", calls);
    const bool timed = strstr(text, "HOOP_FLAT_MAX=4096 bytes") == NULL;
    if (strcmp(choice, ran) != 0 || strcmp(calls, timed ? "3" : "") != 0) {
        printf("rank %d, %s of %zu bytes: ran %s; explained %s, %s calls: %s\n", rank, collective, bytes, ran, choice,
               calls, text);
        return 1;
    }
    return 0;
}

static int explain_all(int rank, struct hoop_comm *comm)
{
    static const char *const collectives[] = {"all_reduce", "broadcast", "all_gather"};
    const size_t ranks = (size_t)hoop_comm_size(comm), most = ranks << 19;
    float *buffer = calloc(most, 1);
    char *text = malloc(HOOP_EXPLAIN_TEXT);
    int bad = 0;

    for (size_t i = 0; i < 3 && buffer && text; i++)
        for (size_t bytes = 4 * ranks; bytes <= most && bad == 0; bytes *= 4)
            bad = compare(rank, comm, collectives[i], bytes, buffer, text);
    bad |= hoop_explain(comm, "all_reduced", 8, 0, text, HOOP_EXPLAIN_TEXT) != HOOP_ERR_ARG;
    bad |= hoop_explain(comm, "barrier", 8, 0, text, 8) != HOOP_ERR_ARG;
    bad |= hoop_explain(comm, "barrier", 8, 0, text, HOOP_EXPLAIN_TEXT) != HOOP_OK;
    free(buffer);
    free(text);
    return bad;
}

static int body(int rank, struct hoop_comm *comm, void *argument)
{
    (void)argument;
    const int bad = explain_all(rank, comm);
    return hoop_comm_destroy(comm) != HOOP_OK || bad;
}

START_TEST(explained_as_done)
{
    harness_threads(2, body, NULL);
    harness_threads(5, body, NULL);
}
END_TEST

/* The constants of rank 0's file are what all ranks choose by. */
static int body_model(int rank, struct hoop_comm *comm, void *argument)
{
    char *text = malloc(HOOP_EXPLAIN_TEXT);
    int bad = explain_all(rank, comm);

    bad |= hoop_explain(comm, "all_reduce", (size_t)1 << 20, 1, text, HOOP_EXPLAIN_TEXT) != HOOP_OK;
    bad |= strstr(text, argument) == NULL;
    free(text);
    return hoop_comm_destroy(comm) != HOOP_OK || bad;
}

START_TEST(constants_from_a_file)
{
    char path[HARNESS_PATH];

    harness_file(path, "hoop-model 1\nhop 900000000\nhop_crowded 900000000\ncopy 1000\nreduce 1000\n");
    setenv("HOOP_MODEL", path, 1);
    harness_threads(3, body_model, "\"measured\":true,\"hop\":900000000.000");
    setenv("HOOP_MODEL", "/nonexistent/model", 1);
    struct hoop_comm *comms[3];
    for (int ranks = 1; ranks <= 3; ranks++) {
        ck_assert_int_eq(hoop_comm_init_all(comms, ranks), HOOP_ERR_SETUP);
        ck_assert_ptr_nonnull(strstr(hoop_last_error(NULL), "/nonexistent/model"));
    }
    unsetenv("HOOP_MODEL");
    unlink(path);
}
END_TEST

/* Where it is slow to cross groups, composed algorithms run; with links as within the groups they do not. */
START_TEST(links_across_groups_matter)
{
    char path[HARNESS_PATH];

    setenv("HOOP_GROUPS", "2", 1);
    harness_file(path, "hoop-model 1\nhop 300\nhop_crowded 300\nhop_across 10000000\nuplink 0.01\n");
    setenv("HOOP_MODEL", path, 1);
    harness_threads(4, body_model, "\"groups\":\"2\"");
    harness_threads(4, body_model, "\"choice\":\"hier(");
    unlink(path);
    setenv("HOOP_MODEL", "", 1);
    harness_threads(5, body_model, "\"groups\":\"2\"");
    setenv("HOOP_GROUPS", "none", 1);
    harness_threads(4, body_model, "\"groups\":\"none\"");
}
END_TEST

static int body_small(int rank, struct hoop_comm *comm, void *argument)
{
    char *text = malloc(HOOP_EXPLAIN_TEXT);
    float buffer[2] = {0};
    int bad = 0;

    (void)argument;
    for (size_t bytes = 4; bytes <= sizeof buffer && bad == 0; bytes += 4)
        bad = compare(rank, comm, "all_reduce", bytes, buffer, text);
    bad |= strstr(text, "\"because\":\"least predicted time") == NULL;
    free(text);
    return hoop_comm_destroy(comm) != HOOP_OK || bad;
}

/* Hosts of one kernel share its cores, so their ranks take turns; small vectors are chosen for by cost there, too. */
START_TEST(hosts_of_one_kernel)
{
    cpu_set_t all, one;

    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    setenv("HOOP_TRANSPORTS", "tcp", 1);
    harness_threads(4, body_model, "\"ranks\":4,\"cores\":1,");
    harness_threads(4, body_small, NULL);
    unsetenv("HOOP_TRANSPORTS");
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
END_TEST

/* HOOP_MODEL=auto: this machine's file in the cache, if it is there. */
START_TEST(constants_of_this_machine)
{
    char home[] = "/tmp/hoop-cache-XXXXXX", path[512], origin[600], text[600];
    struct hoop_model model = hoop_model_builtin();
    FILE *file;

    ck_assert_ptr_nonnull(mkdtemp(home));
    setenv("XDG_CACHE_HOME", home, 1);
    setenv("HOOP_MODEL", "auto", 1);
    ck_assert_int_eq(hoop_model_path(path, sizeof path), HOOP_OK);
    ck_assert_int_eq(strncmp(path, home, strlen(home)), 0);
    ck_assert_int_eq(hoop_model_current(&model, origin, sizeof origin), HOOP_OK);
    ck_assert(!model.measured && strstr(origin, "built in, since there is no") && strstr(origin, path));
    harness_threads(2, body_model, "\"measured\":false");

    model.hop = 123;
    ck_assert_int_eq(hoop_model_save(&model, path, "# a remark\n"), HOOP_OK);
    ck_assert_int_eq(hoop_model_current(&model, origin, sizeof origin), HOOP_OK);
    ck_assert_str_eq(origin, path);
    harness_threads(3, body_model, "\"measured\":true,\"hop\":123.000");

    ck_assert_ptr_nonnull(file = fopen(path, "w"));
    fputs("hoop-model 1\nhopp 4\n", file);
    fclose(file);
    ck_assert_int_eq(hoop_model_current(&model, origin, sizeof origin), HOOP_ERR_SETUP);
    harness_run(3, harness_refused, "line 2: hopp is no constant", 30); /* on every rank */
    snprintf(text, sizeof text, "rm -r %s", home);
    ck_assert_int_eq(system(text), 0);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    ck_assert_int_eq(hoop_model_path(path, sizeof path), HOOP_ERR_SETUP);
    ck_assert_ptr_nonnull(strstr(hoop_last_error(NULL), "XDG_CACHE_HOME"));
}
END_TEST

int main(void)
{
    setenv("HOOP_STAGE", "0", 1); /* else all_reduce needs no plan on one host */
    Suite *suite = suite_create("explain");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 120);
    tcase_add_test(all, explained_as_done);
    tcase_add_test(all, constants_from_a_file);
    tcase_add_test(all, links_across_groups_matter);
    tcase_add_test(all, hosts_of_one_kernel);
    if (!UNDER_TSAN) /* it does not follow threads that are started after a fork from several threads */
        tcase_add_test(all, constants_of_this_machine);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
