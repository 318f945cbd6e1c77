// SPDX-License-Identifier: BSD-3-Clause
/* Sharing a segment: every rank gets the very segment and a lifeline; strangers, wrong keys, cancelling and deadlines
 * leave nothing open. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "boot/share.h"
#include "harness.h"
#include "wire/auth.h"
#include "wire/unixfd.h"

enum { RANKS = 9 };

static const unsigned char key[32] = {1, 2, 3};
static int before;

struct fetcher {
    pthread_t thread;
    const char *name;
    unsigned char key[32];
    int ranks, rank, cancel, segment, lifeline;
    double timeout;
    enum hoop_status status;
    char text[HOOP_ERROR_TEXT];
};

static int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void begin(void)
{
    ck_assert_int_eq(hoop_auth_start(), HOOP_OK);
    before = open_descriptors();
}

static void end(void)
{
    ck_assert_int_eq(open_descriptors(), before);
}

static void must(enum hoop_status status)
{
    ck_assert_msg(status == HOOP_OK, "status %d: %s", status, hoop_error_text());
}

static struct hoop_share *open_share(void)
{
    struct hoop_share *share = NULL;

    must(hoop_share_open(&share));
    ck_assert(strlen(hoop_share_name(share)) < HOOP_SHARE_NAME);
    return share;
}

static int make_segment(const char *content)
{
    const int segment = memfd_create("segment", MFD_CLOEXEC);

    ck_assert_int_ge(segment, 0);
    ck_assert_int_eq(pwrite(segment, content, strlen(content), 0), (ssize_t)strlen(content));
    return segment;
}

static void *fetch(void *argument)
{
    struct fetcher *self = argument;

    self->segment = self->lifeline = -7;
    self->status = hoop_share_fetch(self->name, self->key, self->ranks, self->rank, self->cancel, &self->segment,
                                    &self->lifeline, hoop_deadline(self->timeout));
    snprintf(self->text, sizeof self->text, "%s", hoop_error_text());
    return NULL;
}

static void start(struct fetcher *fetchers, const struct hoop_share *share, int ranks, int leader)
{
    for (int r = 0; r < ranks; r++) {
        fetchers[r] =
            (struct fetcher){.name = hoop_share_name(share), .ranks = ranks, .rank = r, .cancel = -1, .timeout = 30};
        memcpy(fetchers[r].key, key, sizeof key);
        if (r != leader)
            ck_assert_int_eq(pthread_create(&fetchers[r].thread, NULL, fetch, &fetchers[r]), 0);
    }
}

/* Everyone but the leader has the segment, and a lifeline to the leader. */
static void finish(struct fetcher *fetchers, int ranks, int leader, int *lifeline)
{
    char text[8] = "", byte;

    for (int r = 0; r < ranks; r++) {
        if (r == leader) {
            ck_assert_int_eq(lifeline[r], -1);
            continue;
        }
        pthread_join(fetchers[r].thread, NULL);
        ck_assert_msg(fetchers[r].status == HOOP_OK, "rank %d: %s", r, fetchers[r].text);
        ck_assert_int_eq(pread(fetchers[r].segment, text, 5, 0), 5);
        ck_assert_str_eq(text, "hello");
        ck_assert(fcntl(fetchers[r].segment, F_GETFD) & fcntl(fetchers[r].lifeline, F_GETFD) &
                  fcntl(lifeline[r], F_GETFD) & FD_CLOEXEC);
        ck_assert(fcntl(fetchers[r].lifeline, F_GETFL) & fcntl(lifeline[r], F_GETFL) & O_NONBLOCK);
        ck_assert_int_eq(recv(lifeline[r], &byte, 1, 0), -1); /* alive */
        close(fetchers[r].lifeline);
        ck_assert_int_eq(recv(lifeline[r], &byte, 1, 0), 0); /* this very rank's end has gone */
        close(fetchers[r].segment);
        close(lifeline[r]);
    }
}

START_TEST(every_rank_gets_the_segment)
{
    for (int leader = 0; leader<_i; leader += _i> 4 ? 4 : 1) {
        struct fetcher fetchers[RANKS];
        int lifeline[RANKS];
        struct hoop_share *share = open_share();
        const int segment = make_segment("hello");

        start(fetchers, share, _i, leader);
        must(hoop_share_serve(share, key, _i, leader, segment, -1, lifeline, hoop_deadline(30)));
        finish(fetchers, _i, leader, lifeline);
        hoop_share_close(share);
        close(segment);
    }
}
END_TEST

START_TEST(strangers_disturb_nobody)
{
    enum { HELD = 80 }; /* more than there are slots */
    struct fetcher fetchers[4], wrong;
    int lifeline[4], held[HELD];
    struct hoop_share *share = open_share();
    const int segment = make_segment("hello");
    static const char noise[4096] = "noise";

    for (int i = 0; i < HELD; i++) {
        must(hoop_unix_connect(hoop_share_name(share), -1, &held[i], hoop_deadline(30)));
        if (i < 20 && i % 3) /* the others hold their slots and say nothing */
            hoop_unix_send(held[i], noise, i % 3 == 1 ? 1 : sizeof noise, i % 2 ? segment : -1);
        if (i < 20 && i % 7 == 0) {
            close(held[i]);
            held[i] = -1;
        }
    }
    wrong = (struct fetcher){.name = hoop_share_name(share), .ranks = 4, .rank = 1, .cancel = -1, .timeout = 30};
    ck_assert_int_eq(pthread_create(&wrong.thread, NULL, fetch, &wrong), 0);
    start(fetchers, share, 4, 0);
    must(hoop_share_serve(share, key, 4, 0, segment, -1, lifeline, hoop_deadline(30)));
    finish(fetchers, 4, 0, lifeline);
    hoop_share_close(share);
    pthread_join(wrong.thread, NULL);
    /* refused, or its turn did not come before the socket closed */
    ck_assert_msg(wrong.status == HOOP_ERR_SETUP || wrong.status == HOOP_ERR_PEER, "%d: %s", wrong.status, wrong.text);
    ck_assert(wrong.segment == -7 && wrong.lifeline == -7);
    for (int i = 0; i < HELD; i++)
        if (held[i] >= 0)
            close(held[i]);
    close(segment);
}
END_TEST

START_TEST(wrong_answers_are_refused)
{
    static const struct {
        int ranks, rank;
        unsigned char first;
    } cases[] = {{3, 1, 9}, {3, 0, 1}, {4, 1, 1}, {3, 3, 1}}; /* key; the leader's rank; size; rank out of range */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fetcher wrong = {.ranks = cases[i].ranks, .rank = cases[i].rank, .cancel = -1, .timeout = 30};
        int lifeline[3];
        struct hoop_share *share = open_share();
        const int segment = make_segment("hello");

        memcpy(wrong.key, key, sizeof key);
        wrong.key[0] = cases[i].first;
        wrong.name = hoop_share_name(share);
        ck_assert_int_eq(pthread_create(&wrong.thread, NULL, fetch, &wrong), 0);
        ck_assert_int_eq(hoop_share_serve(share, key, 3, 0, segment, -1, lifeline, hoop_deadline(0.3)),
                         HOOP_ERR_TIMEOUT);
        ck_assert_str_eq(hoop_error_text(),
                         "2 of this host's 3 ranks did not come for the shared memory before the deadline: "
                         "local rank 1, 2");
        pthread_join(wrong.thread, NULL);
        ck_assert_msg(wrong.status == HOOP_ERR_SETUP && strstr(wrong.text, "refuses"), "case %zu: %d: %s", i,
                      wrong.status, wrong.text);
        hoop_share_close(share);
        close(segment);
    }
}
END_TEST

START_TEST(failure_closes_what_was_given)
{
    struct fetcher fetcher;
    int lifeline[3];
    char byte;
    struct hoop_share *share = open_share();
    const int segment = make_segment("hello");

    fetcher = (struct fetcher){.name = hoop_share_name(share), .ranks = 3, .rank = 2, .cancel = -1, .timeout = 30};
    memcpy(fetcher.key, key, sizeof key);
    ck_assert_int_eq(pthread_create(&fetcher.thread, NULL, fetch, &fetcher), 0);
    ck_assert_int_eq(hoop_share_serve(share, key, 3, 0, segment, -1, lifeline, hoop_deadline(0.3)), HOOP_ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(hoop_error_text(), "local rank 1"));
    pthread_join(fetcher.thread, NULL);
    must(fetcher.status);
    for (int r = 0; r < 3; r++)
        ck_assert_int_eq(lifeline[r], -1);
    ck_assert_int_eq(recv(fetcher.lifeline, &byte, 1, 0), 0);
    close(fetcher.lifeline);
    close(fetcher.segment);
    hoop_share_close(share);
    close(segment);
}
END_TEST

START_TEST(both_sides_can_be_cancelled)
{
    struct fetcher fetcher;
    int lifeline[2], ends[2];
    struct hoop_share *share = open_share();
    const int segment = make_segment("hello");

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    fetcher = (struct fetcher){.name = hoop_share_name(share), .ranks = 2, .rank = 1, .cancel = ends[0], .timeout = 30};
    ck_assert_int_eq(pthread_create(&fetcher.thread, NULL, fetch, &fetcher), 0); /* nobody serves it */
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    pthread_join(fetcher.thread, NULL);
    ck_assert_int_eq(fetcher.status, HOOP_ERR_ABORTED);
    ck_assert_int_eq(hoop_share_serve(share, key, 2, 0, segment, ends[0], lifeline, hoop_deadline(30)),
                     HOOP_ERR_ABORTED);
    ck_assert_int_eq(lifeline[1], -1);
    fetcher.cancel = -1;
    fetcher.timeout = 0.05;
    fetch(&fetcher);
    ck_assert_int_eq(fetcher.status, HOOP_ERR_TIMEOUT);
    char name[HOOP_SHARE_NAME];
    memcpy(name, hoop_share_name(share), sizeof name);
    hoop_share_close(share);
    fetcher.name = name;
    fetcher.timeout = 30;
    fetch(&fetcher);
    ck_assert_int_eq(fetcher.status, HOOP_ERR_PEER); /* nobody listens there any more */
    ck_assert_ptr_nonnull(strstr(fetcher.text, "its process has ended"));
    close(ends[0]);
    close(ends[1]);
    close(segment);
}
END_TEST

START_TEST(lifeline_ends_with_the_process)
{
    int lifeline[2], own = -1;
    char byte;
    struct hoop_share *share = open_share();
    const int segment = make_segment("hello");
    const pid_t child = fork();

    if (child == 0) {
        int taken;
        if (hoop_share_fetch(hoop_share_name(share), key, 2, 1, -1, &taken, &own, hoop_deadline(30)) == HOOP_OK)
            pause();
        _exit(1);
    }
    must(hoop_share_serve(share, key, 2, 0, segment, -1, lifeline, hoop_deadline(30)));
    kill(child, SIGKILL);
    must(hoop_unix_wait(lifeline[1], -1, hoop_deadline(30)));
    const ssize_t got = recv(lifeline[1], &byte, 1, 0); /* reset: it died before it read the gift */
    ck_assert_msg(got == 0 || (got < 0 && errno == ECONNRESET), "%zd: %s", got, strerror(errno));
    waitpid(child, NULL, 0);
    close(lifeline[1]);
    hoop_share_close(share);
    hoop_share_close(NULL);
    close(segment);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/share");
    TCase *tests = tcase_create("share");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, every_rank_gets_the_segment, 1, RANKS + 1);
    tcase_add_test(tests, strangers_disturb_nobody);
    tcase_add_test(tests, wrong_answers_are_refused);
    tcase_add_test(tests, failure_closes_what_was_given);
    tcase_add_test(tests, both_sides_can_be_cancelled);
    tcase_add_test(tests, lifeline_ends_with_the_process);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
