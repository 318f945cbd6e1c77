// SPDX-License-Identifier: BSD-3-Clause
/* The PMI-1 client against launchers that answer well, in pieces, in another order, wrongly, and not at all. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "boot/pmi.h"
#include "harness.h"

enum { RANKS = 3 };

/* ---- a launcher ---- */

struct launcher {
    int sock[RANKS];      /* its ends */
    bool slurm;           /* another order of fields, rc=0 in every answer, and in pieces of one byte */
    char value[2][256];   /* of the keys a and b */
    int puts, left, here; /* here: ranks in the barrier */
};

static void answer(const struct launcher *launcher, int rank, const char *text)
{
    const size_t bytes = strlen(text), piece = launcher->slurm ? 1 : bytes;

    for (size_t at = 0; at < bytes; at += piece)
        ck_assert_int_eq(write(launcher->sock[rank], text + at, piece), (ssize_t)piece);
}

static bool receive(int sock, char *line, size_t size)
{
    size_t used = 0;

    while (used + 1 < size && read(sock, line + used, 1) == 1)
        if (line[used++] == '\n') {
            line[used - 1] = 0;
            return true;
        }
    return false;
}

static int of_key(const char *line)
{
    char key[8] = "";

    ck_assert(hoop_pmi_field(line, "key", key, sizeof key));
    return key[0] == 'b';
}

static void serve_line(struct launcher *launcher, int rank, const char *line)
{
    char text[512];

    if (strncmp(line, "cmd=init ", 9) == 0)
        answer(launcher, rank,
               launcher->slurm ? "cmd=response_to_init rc=0 pmi_subversion=1 pmi_version=1\n"
                               : "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    if (strcmp(line, "cmd=get_my_kvsname") == 0)
        answer(launcher, rank,
               launcher->slurm ? "kvsname=7.0 rc=0 cmd=my_kvsname\n" : "cmd=my_kvsname kvsname=kvs_7\n");
    if (strncmp(line, "cmd=put ", 8) == 0) {
        ck_assert(hoop_pmi_field(line, "value", launcher->value[of_key(line)], sizeof launcher->value[0]));
        launcher->puts++;
        answer(launcher, rank, "cmd=put_result rc=0 msg=success\n");
    }
    if (strcmp(line, "cmd=barrier_in") == 0 && ++launcher->here == RANKS) {
        launcher->here = 0;
        for (int r = 0; r < RANKS; r++)
            answer(launcher, r, "cmd=barrier_out rc=0\n");
    }
    if (strcmp(line, "cmd=finalize") == 0) {
        launcher->left++;
        answer(launcher, rank, "cmd=finalize_ack rc=0\n");
    }
    if (strncmp(line, "cmd=get ", 8) == 0) {
        snprintf(text, sizeof text,
                 launcher->slurm ? "value=%s cmd=get_result rc=0\n" : "cmd=get_result rc=0 msg=success value=%s\n",
                 launcher->value[of_key(line)]);
        answer(launcher, rank, text);
    }
}

/* ---- all well ---- */

struct rank {
    pthread_t thread;
    struct hoop_pmi pmi;
    int rank;
    char text[2][HOOP_PMI_VALUE];
    enum hoop_status status[2];
};

static void *join(void *argument)
{
    struct rank *rank = argument;

    for (int i = 0; i < 2; i++) {
        if (rank->rank == 0)
            snprintf(rank->text[i], sizeof rank->text[i], "hoop1:127.0.0.1:%d", 4711 + i);
        rank->status[i] = hoop_pmi_share(&rank->pmi, rank->rank == 0, i ? "b" : "a", rank->text[i], hoop_deadline(20));
    }
    hoop_pmi_finish(&rank->pmi);
    hoop_pmi_finish(&rank->pmi); /* once only */
    shutdown(rank->pmi.fd, SHUT_WR);
    return NULL;
}

START_TEST(carries_a_text_twice)
{
    struct launcher launcher = {.slurm = _i == 1};
    struct rank rank[RANKS];
    char line[1024];
    int pair[2], open = RANKS;

    for (int r = 0; r < RANKS; r++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        launcher.sock[r] = pair[0];
        rank[r] = (struct rank){.pmi = {.fd = pair[1]}, .rank = r};
        ck_assert_int_eq(pthread_create(&rank[r].thread, NULL, join, &rank[r]), 0);
    }
    for (int r = 0; open > 0; r = (r + 1) % RANKS) { /* by turns: each asks as much as the others but rank 0 */
        if (launcher.sock[r] < 0)
            continue;
        char peek;
        const ssize_t there = recv(launcher.sock[r], &peek, 1, MSG_PEEK | MSG_DONTWAIT);
        if (there > 0 && receive(launcher.sock[r], line, sizeof line)) {
            serve_line(&launcher, r, line);
        } else if (there == 0) {
            launcher.sock[r] = -1 - launcher.sock[r];
            open--;
        }
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(rank[r].thread, NULL);
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(rank[r].status[i], HOOP_OK);
            ck_assert_str_eq(rank[r].text[i], i ? "hoop1:127.0.0.1:4712" : "hoop1:127.0.0.1:4711");
        }
        close(rank[r].pmi.fd);
        close(-1 - launcher.sock[r]);
    }
    ck_assert_int_eq(launcher.puts, 2);
    ck_assert_int_eq(launcher.left, RANKS);
}
END_TEST

/* ---- not well ---- */

/* All that the launcher says, at once; then it is silent, or gone. */
static const struct {
    const char *answers;
    bool closes;
    enum hoop_status status;
    const char *error;
} bad[] = {
    {"", true, HOOP_ERR_PEER, "has closed"},
    {"", false, HOOP_ERR_TIMEOUT, "did not answer init before the deadline"},
    {"cmd=response_to_init rc=0\ncmd=my_kv", true, HOOP_ERR_PEER, "has closed"},
    {"cmd=response_to_init rc=-1\n", false, HOOP_ERR_SETUP, "refuses init with code -1"},
    {"cmd=response_to_init rc=0\ncmd=my_kvsname\n", false, HOOP_ERR_SETUP, "does not tell its name"},
    {"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=get_result rc=0\n", false, HOOP_ERR_SETUP,
     "answers barrier_in by 'get_result', not barrier_out"},
    {"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=barrier_out\n", false, HOOP_ERR_TIMEOUT,
     "did not answer get"},
    {"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=barrier_out\ncmd=get_result rc=0\n", false,
     HOOP_ERR_SETUP, "has no value of key"},
    {"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=barrier_out\ncmd=get_result rc=1 msg=no_such_key\n",
     false, HOOP_ERR_SETUP, "refuses get with code 1"},
    {"\n", false, HOOP_ERR_SETUP, "answers init by '', not response_to_init"},
};

START_TEST(says_what_is_wrong)
{
    char text[HOOP_PMI_VALUE] = "";
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct hoop_pmi pmi = {.fd = pair[1]};
    const ssize_t bytes = (ssize_t)strlen(bad[_i].answers);
    ck_assert_int_eq(write(pair[0], bad[_i].answers, (size_t)bytes), bytes);
    if (bad[_i].closes)
        shutdown(pair[0], SHUT_WR);
    const enum hoop_status status = hoop_pmi_share(&pmi, false, "key", text, hoop_deadline(0.2));
    ck_assert_msg(status == bad[_i].status, "%d: %s", status, hoop_error_text());
    ck_assert_msg(strstr(hoop_error_text(), bad[_i].error) != NULL, "%s", hoop_error_text());
    close(pair[0]);
    close(pair[1]);
}
END_TEST

START_TEST(refuses_an_endless_line)
{
    static char line[HOOP_PMI_LINE];
    char text[HOOP_PMI_VALUE] = "";
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct hoop_pmi pmi = {.fd = pair[1]}, none = {.fd = pair[0]};
    memset(line, 'x', sizeof line);
    ck_assert_int_eq(write(pair[0], line, sizeof line), (ssize_t)sizeof line);
    ck_assert_int_eq(hoop_pmi_share(&pmi, false, "key", text, hoop_deadline(20)), HOOP_ERR_SETUP);
    ck_assert_ptr_nonnull(strstr(hoop_error_text(), "by a line of more than 2048 bytes"));
    close(pair[0]);
    close(pair[1]);
    ck_assert_int_eq(hoop_pmi_share(&none, false, "key", text, hoop_deadline(20)), HOOP_ERR_SETUP);
    ck_assert_ptr_nonnull(strstr(hoop_error_text(), "is no open descriptor"));
}
END_TEST

START_TEST(reads_fields)
{
    static const struct {
        const char *line, *name, *value; /* NULL: none */
    } cases[] = {
        {"cmd=a rc=0", "cmd", "a"},    {"cmd=a rc=0", "rc", "0"},
        {"cmd=a rc=0", "r", NULL},     {"xcmd=a cmd=b", "cmd", "b"},
        {"cmd=", "cmd", ""},           {"", "cmd", NULL},
        {"  cmd=a", "cmd", "a"},       {"value=a=b c=d", "value", "a=b"},
        {"cmd=12345678", "cmd", NULL}, {"cmd=1234567", "cmd", "1234567"},
        {"cmd", "cmd", NULL},
    };
    char value[8];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool found = hoop_pmi_field(cases[i].line, cases[i].name, value, sizeof value);
        ck_assert_msg(found == (cases[i].value != NULL) && (!found || strcmp(value, cases[i].value) == 0),
                      "'%s' %s: %s", cases[i].line, cases[i].name, found ? value : "none");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/pmi");
    TCase *tests = tcase_create("pmi");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, carries_a_text_twice, 0, 2);
    tcase_add_loop_test(tests, says_what_is_wrong, 0, sizeof bad / sizeof *bad);
    tcase_add_test(tests, refuses_an_endless_line);
    tcase_add_test(tests, reads_fields);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
