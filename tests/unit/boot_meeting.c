// SPDX-License-Identifier: BSD-3-Clause
/* The rendezvous: ranks are threads, or raw clients that speak its messages badly on purpose. Every test ends with
 * as many open descriptors as it began with. Times are caps against hanging, or deadlines that are meant to pass. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/meeting.h"
#include "boot_ranks.h"
#include "harness.h"
#include "tsan.h"

START_TEST(all_ranks_meet)
{
    const int n = _i;
    struct rank ranks[RANKS];

    plain(ranks, n);
    run(ranks, n);
    all_got(ranks, n, HOOP_OK, NULL);
}
END_TEST

START_TEST(used_id_is_refused)
{
    struct rank ranks[3];
    char first[HOOP_ERROR_TEXT];

    plain(ranks, 2);
    run(ranks, 2);
    all_got(ranks, 2, HOOP_OK, NULL);
    plain(ranks, 2);
    run(ranks, 2);
    all_got(ranks, 2, HOOP_ERR_SETUP,
            "this id is used already: 2 ranks have joined with it; each communicator needs a new id");

    ck_assert_int_eq(hoop_unique_id_create(&id), HOOP_OK); /* of a meeting that failed: its verdict again */
    plain(ranks, 2);
    ranks[1].deed = FAIL;
    run(ranks, 2);
    all_got(ranks, 2, HOOP_ERR_MEMORY, "rank 1: as the test wants");
    memcpy(first, ranks[0].text, sizeof first);
    plain(ranks, 2);
    run(ranks, 2);
    all_got(ranks, 2, HOOP_ERR_MEMORY, first);
}
END_TEST

START_TEST(duplicate_rank)
{
    struct rank ranks[3];

    plain(ranks, 3);
    ranks[2].rank = 1;
    run(ranks, 3);
    all_got(ranks, 3, HOOP_ERR_SETUP, "rank 1 joined twice: two processes were started as rank 1 of 3");
}
END_TEST

START_TEST(other_size)
{
    struct rank ranks[3];

    plain(ranks, 3);
    ranks[2].ranks = 4;
    run(ranks, 3);
    all_got(ranks, 3, HOOP_ERR_SETUP, ranks[0].text);
    ck_assert_msg(strstr(ranks[0].text, "sizes differ: rank ") && strstr(ranks[0].text, "rank 2 ") &&
                      strstr(ranks[0].text, "one of 3") && strstr(ranks[0].text, "one of 4"),
                  "%s", ranks[0].text);
}
END_TEST

START_TEST(settings_differ)
{
    struct rank ranks[2];

    plain(ranks, 2);
    ranks[1].slots = "9";
    run(ranks, 2);
    all_got(ranks, 2, HOOP_ERR_SETUP, ranks[0].text);
    ck_assert_msg(strstr(ranks[0].text, "rank 0 has HOOP_SLOTS=4") && strstr(ranks[0].text, "rank 1 has HOOP_SLOTS=9"),
                  "%s", ranks[0].text);
}
END_TEST

START_TEST(other_version)
{
    struct rank ranks[3];
    struct hoop_seal seal;
    struct hoop_hello hello;
    enum hoop_status status;
    unsigned char body[HOOP_VERDICT_BODY];
    char text[HOOP_ERROR_TEXT];
    size_t bytes;

    plain(ranks, 3);
    start(ranks, 2);
    const int sock = raw_connect(&seal);
    raw_hello(&hello, 2, 3);
    hello.version = 999999;
    send_hello(sock, &hello, &seal);
    unsigned type = raw_receive(sock, &seal, body, sizeof body, &bytes);
    if (type == HOOP_WELCOME) /* it came first, the others contradict it */
        type = raw_receive(sock, &seal, body, sizeof body, &bytes);
    ck_assert_uint_eq(type, HOOP_VERDICT);
    ck_assert(hoop_verdict_read(body, bytes, &status, text));
    ck_assert_int_eq(status, HOOP_ERR_SETUP);
    ck_assert_msg(strstr(text, "versions of hoop differ") && strstr(text, "rank 2 has 999999"), "%s", text);
    finish(ranks, 2);
    all_got(ranks, 2, HOOP_ERR_SETUP, text);
    close(sock);
}
END_TEST

START_TEST(wrong_secret_disturbs_nobody)
{
    struct rank ranks[3];
    struct hoop_unique_id forged;
    struct hoop_id other = parts;

    other.secret[5] ^= 1;
    hoop_id_encode(&other, &forged);
    plain(ranks, 2);
    ranks[2] = (struct rank){.id = &forged, .rank = 1, .ranks = 2, .timeout = 30};
    run(&ranks[2], 1);
    run(ranks, 2);
    all_got(ranks, 2, HOOP_OK, NULL);
    ck_assert_int_eq(ranks[2].status, HOOP_ERR_SETUP);
    ck_assert_msg(strstr(ranks[2].text, "refuses the secret") != NULL, "%s", ranks[2].text);

    other.nonce[0] ^= 1;
    hoop_id_encode(&other, &forged);
    run(&ranks[2], 1);
    ck_assert_int_eq(ranks[2].status, HOOP_ERR_SETUP);
    ck_assert_msg(strstr(ranks[2].text, "knows nothing of this id") != NULL, "%s", ranks[2].text);
}
END_TEST

START_TEST(missing_ranks_are_named)
{
    struct rank ranks[2];
    struct hoop_seal seal;

    const int patient = raw_join(&seal, 1, 9); /* the first to come has more time than the test */
    plain(ranks, 2);
    for (int i = 0; i < 2; i++) {
        ranks[i].ranks = 9;
        ranks[i].rank = i * 3 + 4; /* 4 7 */
        ranks[i].timeout = i == 0 ? 0.3 : 3600;
    }
    run(ranks, 2);
    all_got(
        ranks, 2, HOOP_ERR_TIMEOUT,
        "6 of 9 ranks did not join before the deadline (HOOP_INIT_TIMEOUT): missing ranks 0, 2, 3, 5, 6, 8. Are they "
        "running, with the same id?");
    close(patient);
}
END_TEST

START_TEST(death_before_all_have_joined)
{
    struct rank ranks[2];
    struct hoop_seal seal;

    plain(ranks, 2);
    ranks[0].ranks = ranks[1].ranks = 4;
    const int sock = raw_join(&seal, 2, 4);
    start(ranks, 2);
    close(sock);
    finish(ranks, 2);
    all_got(ranks, 2, HOOP_ERR_PEER, "rank 2 died before all 4 ranks had joined");
}
END_TEST

START_TEST(death_during_setup)
{
    for (int n = 2; n <= 5; n++) {
        struct rank ranks[5];
        pthread_barrier_t met;

        ck_assert_int_eq(hoop_unique_id_create(&id), HOOP_OK);
        pthread_barrier_init(&met, NULL, (unsigned)n);
        plain(ranks, n);
        for (int r = 0; r < n; r++)
            ranks[r].met = &met;
        ranks[0].deed = DIE;
        if (n > 3)
            ranks[2].deed = STALL; /* learns it from the descriptor */
        run(ranks, n);
        char text[64];
        snprintf(text, sizeof text, "rank 0 of %d died during set-up", n);
        for (int r = 1; r < n; r++) {
            if (ranks[r].deed == STALL)
                ck_assert(ranks[r].early);
            else
                all_got(&ranks[r], 1, HOOP_ERR_PEER, text);
        }
        pthread_barrier_destroy(&met);
    }
}
END_TEST

START_TEST(first_failure_is_the_verdict)
{
    struct rank ranks[4];

    plain(ranks, 4);
    ranks[2].deed = FAIL;
    run(ranks, 4);
    all_got(ranks, 4, HOOP_ERR_MEMORY, "rank 2: as the test wants");
}
END_TEST

START_TEST(death_outranks_the_complaint_about_it)
{
    struct rank ranks[3];
    pthread_barrier_t met;

    /* Rank 1 reports that a peer is gone; the server sees rank 0's death only afterwards. */
    plain(ranks, 3);
    pthread_barrier_init(&met, NULL, 2);
    ranks[1].deed = BLAME;
    ranks[0].deed = DIE;
    ranks[0].met = ranks[1].met = &met;
    run(ranks, 3);
    all_got(&ranks[1], 2, HOOP_ERR_PEER, "rank 0 of 3 died during set-up");
    pthread_barrier_destroy(&met);

    ck_assert_int_eq(hoop_unique_id_create(&id), HOOP_OK); /* nobody died: the complaint is the verdict */
    plain(ranks, 3);
    ranks[1].deed = BLAME;
    run(ranks, 3);
    all_got(ranks, 3, HOOP_ERR_PEER, "rank 1: as the test wants");
}
END_TEST

START_TEST(unfinished_setup_is_named)
{
    struct rank ranks[3];

    plain(ranks, 3);
    for (int r = 0; r < 3; r++)
        ranks[r].timeout = 0.4;
    ranks[1].deed = STALL;
    run(ranks, 3);
    ck_assert(ranks[1].early);
    ranks[1] = ranks[2];
    all_got(ranks, 3, HOOP_ERR_TIMEOUT,
            "1 of 3 ranks did not finish their set-up before the deadline (HOOP_INIT_TIMEOUT): rank 1");
}
END_TEST

/* Strangers of many kinds; those that stay are in held. Returns how many. */
static int annoy(int *held)
{
    static const char *const talk[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                       "\x16\x03\x01\x02",
                                       "h",
                                       "hoopjoin",
                                       "hoopjoin\1\0\xff\xff",
                                       "hoopmeet",
                                       "\0\0\0\0\0\0\0\0"};
    unsigned char noise[4096], message[HOOP_HELLO_MAX];
    struct hoop_hello hello;
    struct hoop_seal seal;
    int kept = 0;
    size_t moved;

    for (size_t i = 0; i < sizeof talk / sizeof *talk; i++) {
        held[kept] = raw_connect(&seal);
        hoop_sock_send_all(held[kept], talk[i], i == 6 ? 8 : strlen(talk[i]), hoop_deadline(30));
        kept++;
    }
    for (int i = 0; i < 270; i++) /* connect and hold: more than the server has slots */
        ck_assert_int_eq(hoop_sock_connect(&parts.address, &held[kept++], hoop_deadline(30)), HOOP_OK);
    ck_assert_int_eq(hoop_sock_connect(&parts.address, &held[kept], hoop_deadline(30)), HOOP_OK);
    hoop_auth_random(noise, sizeof noise);
    hoop_sock_send_some(held[kept++], noise, sizeof noise, &moved);

    raw_hello(&hello, 0, 2); /* a good hello, cut at every byte, or with one bit changed */
    memset(&seal, 0, sizeof seal);
    hoop_id_key(&parts, "meeting", seal.key);
    const size_t whole = hoop_hello_write(message, &hello, &seal);
    for (size_t cut = 0; cut < whole; cut += 97) {
        int sock;
        ck_assert_int_eq(hoop_sock_connect(&parts.address, &sock, hoop_deadline(30)), HOOP_OK);
        hoop_sock_send_some(sock, message, cut, &moved);
        close(sock);
    }
    return kept;
}

START_TEST(strangers_disturb_nobody)
{
    struct rank ranks[4];
    int held[320];

    const int kept = annoy(held);
    plain(ranks, 4);
    run(ranks, 4);
    all_got(ranks, 4, HOOP_OK, NULL);
    for (int i = 0; i < kept; i++)
        close(held[i]);
}
END_TEST

START_TEST(stale_or_changed_hellos_are_rejected)
{
    unsigned char message[HOOP_HELLO_MAX], body[HOOP_VERDICT_BODY];
    struct hoop_hello hello;
    struct hoop_seal first, second;
    struct rank ranks[2];
    size_t bytes;

    const int recorded = raw_connect(&first);
    raw_hello(&hello, 0, 2);
    const size_t whole = hoop_hello_write(message, &hello, &first);
    const int replayed = raw_connect(&second); /* the same bytes on another connection */
    ck_assert_int_eq(hoop_sock_send_all(replayed, message, whole, hoop_deadline(30)), HOOP_OK);
    ck_assert_uint_eq(raw_receive(replayed, &second, body, sizeof body, &bytes), HOOP_REJECT);
    ck_assert_uint_eq(body[0], HOOP_REJECT_SECRET);
    message[HOOP_HELLO_HEAD] ^= 1; /* rank 1 instead of 0 */
    ck_assert_int_eq(hoop_sock_send_all(recorded, message, whole, hoop_deadline(30)), HOOP_OK);
    ck_assert_uint_eq(raw_receive(recorded, &first, body, sizeof body, &bytes), HOOP_REJECT);
    close(recorded);
    close(replayed);
    plain(ranks, 2);
    run(ranks, 2);
    all_got(ranks, 2, HOOP_OK, NULL);
}
END_TEST

START_TEST(nonsense_of_a_rank_counts_as_its_death)
{
    struct rank ranks[2];
    struct hoop_seal seal;
    unsigned char nonsense[100] = {HOOP_REPORT, 63, 0, 0, 0}; /* right in form, wrong in code */

    plain(ranks, 2);
    ranks[0].ranks = ranks[1].ranks = 3;
    const int sock = raw_join(&seal, 2, 3);
    start(ranks, 2);
    ck_assert_int_eq(hoop_sock_wait(sock, hoop_deadline(30)), HOOP_OK); /* the table */
    ck_assert_int_eq(hoop_sock_send_all(sock, nonsense, sizeof nonsense, hoop_deadline(30)), HOOP_OK);
    finish(ranks, 2);
    all_got(ranks, 2, HOOP_ERR_PEER, "rank 2 of 3 died during set-up");
    close(sock);
}
END_TEST

/* Read what is there, 100 bytes at most; the meeting's loop in between. */
static size_t sip(struct hoop_meeting *meeting, int sock, unsigned char *to)
{
    struct pollfd entries[64];
    const int n = hoop_meeting_entries(meeting);
    size_t moved = 0;

    ck_assert(hoop_meeting_tick(meeting) > 0);
    hoop_meeting_watch(meeting, entries, n);
    ck_assert_int_ge(poll(entries, (nfds_t)n, 0), 0);
    hoop_meeting_ready(meeting, entries, n);
    hoop_sock_recv_some(sock, to, 100, &moved);
    return moved;
}

START_TEST(large_table_and_verdict_reach_a_slow_reader)
{
    enum { MANY = 60 };
    static unsigned char stream[MANY * sizeof(struct hoop_boot_blob) + 2 * HOOP_VERDICT_MAX];
    struct hoop_meeting *meeting = hoop_meeting_create(&parts);
    struct hoop_hello hello;
    struct hoop_seal seals[MANY];
    int pairs[MANY][2];
    const int small = 2048;
    unsigned type;
    size_t bytes, at = 0, got = 0, moved;

    for (int r = 0; r < MANY; r++) { /* no server: the meeting alone, over socket pairs that hold little */
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pairs[r]), 0);
        setsockopt(pairs[r][1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        seals[r] = (struct hoop_seal){.server = true};
        raw_hello(&hello, r, MANY);
        hoop_meeting_join(meeting, pairs[r][1], &seals[r], &hello);
    }
    while (got < 1000)
        got += sip(meeting, pairs[0][0], stream + got);
    close(pairs[1][0]); /* rank 1 dies while rank 0 has read but the beginning of the table */
    for (int idle = 0; idle < 3; idle = moved ? 0 : idle + 1)
        got += moved = sip(meeting, pairs[0][0], stream + got);

    seals[0].server = false;
    static const unsigned expected[] = {HOOP_WELCOME, HOOP_TABLE, HOOP_VERDICT};
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_le(at + HOOP_MESSAGE_HEAD, got);
        hoop_message_head(stream + at, &type, &bytes);
        ck_assert_uint_eq(type, expected[i]);
        const unsigned char *body = stream + at + HOOP_MESSAGE_HEAD;
        ck_assert_uint_le(at + HOOP_MESSAGE_HEAD + bytes + HOOP_AUTH_MAC, got);
        ck_assert(hoop_seal_check(&seals[0], stream + at, body, bytes, body + bytes));
        if (type == HOOP_TABLE)
            ck_assert_uint_gt(bytes, 10000);
        at += HOOP_MESSAGE_HEAD + bytes + HOOP_AUTH_MAC;
    }
    ck_assert_uint_eq(at, got);
    ck_assert(!hoop_meeting_finished(meeting));
    for (int r = 0; r < MANY; r++)
        if (r != 1)
            close(pairs[r][0]);
    sip(meeting, -1, stream);
    hoop_meeting_tick(meeting);
    ck_assert(hoop_meeting_finished(meeting)); /* it keeps nothing once all are gone */
    hoop_meeting_destroy(meeting);
}
END_TEST

/* A process that makes an id and then only serves it; returns its pid, the id in id and parts. */
static pid_t fork_server(void)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct hoop_unique_id made;
        if (hoop_unique_id_create(&made) == HOOP_OK && write(ends[1], &made, sizeof made) == sizeof made)
            pause();
        _exit(1);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &id, sizeof id), sizeof id);
    close(ends[0]);
    ck_assert_int_eq(hoop_id_decode(&id, &parts), HOOP_OK);
    return child;
}

START_TEST(server_that_dies_is_reported)
{
    struct rank rank;
    struct hoop_seal seal;
    pthread_barrier_t met;
    const pid_t child = fork_server();

    before = open_descriptors();
    pthread_barrier_init(&met, NULL, 2);
    rank = (struct rank){.id = &id, .rank = 0, .ranks = 2, .timeout = 30, .met = &met};
    const int sock = raw_join(&seal, 1, 2);
    start(&rank, 1);
    pthread_barrier_wait(&met); /* both have joined */
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    finish(&rank, 1);
    ck_assert_int_eq(rank.status, HOOP_ERR_PEER);
    ck_assert_msg(strstr(rank.text, "rank 0: the process that serves the rendezvous at 127.0.0.1:") &&
                      strstr(rank.text, " has ended"),
                  "%s", rank.text);
    close(sock);
    rank.met = NULL;
    run(&rank, 1);
    ck_assert_int_eq(rank.status, HOOP_ERR_PEER);
    ck_assert_msg(strstr(rank.text, "nobody serves the rendezvous at 127.0.0.1:") != NULL, "%s", rank.text);
    pthread_barrier_destroy(&met);
    meeting_end();
}
END_TEST

#if !UNDER_TSAN
START_TEST(forked_child_serves_for_itself)
{
    const uint16_t own_port = parts.address.port;
    struct rank ranks[2];
    const struct hoop_unique_id mine = id;
    const pid_t child = fork_server();

    ck_assert_uint_ne(parts.address.port, own_port);
    plain(ranks, 2);
    run(ranks, 2);
    all_got(ranks, 2, HOOP_OK, NULL);
    id = mine; /* and the parent's server still serves its own */
    run(ranks, 2);
    all_got(ranks, 2, HOOP_OK, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
END_TEST
#endif

START_TEST(bad_arguments)
{
    struct hoop_settings settings;
    struct hoop_boot_blob blob = {0}, table[2];
    struct hoop_unique_id none = {{0}};
    struct hoop_boot *boot = NULL;

    ck_assert_int_eq(hoop_settings_read(&settings), HOOP_OK);
    ck_assert_int_eq(hoop_boot_join(&boot, &id, 0, 0, &settings, &blob, table, hoop_deadline(1)), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_boot_join(&boot, &id, 2, 2, &settings, &blob, table, hoop_deadline(1)), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_boot_join(&boot, &id, 2, -1, &settings, &blob, table, hoop_deadline(1)), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_boot_join(&boot, &none, 2, 0, &settings, &blob, table, hoop_deadline(1)), HOOP_ERR_ARG);
    ck_assert_ptr_null(boot);
    hoop_boot_close(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/meeting");
    TCase *tests = tcase_create("meeting");

    tcase_add_checked_fixture(tests, meeting_begin, meeting_end);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, all_ranks_meet, 1, 10);
    tcase_add_test(tests, used_id_is_refused);
    tcase_add_test(tests, duplicate_rank);
    tcase_add_test(tests, other_size);
    tcase_add_test(tests, settings_differ);
    tcase_add_test(tests, other_version);
    tcase_add_test(tests, wrong_secret_disturbs_nobody);
    tcase_add_test(tests, missing_ranks_are_named);
    tcase_add_test(tests, death_before_all_have_joined);
    tcase_add_test(tests, death_during_setup);
    tcase_add_test(tests, first_failure_is_the_verdict);
    tcase_add_test(tests, death_outranks_the_complaint_about_it);
    tcase_add_test(tests, unfinished_setup_is_named);
    tcase_add_test(tests, strangers_disturb_nobody);
    tcase_add_test(tests, stale_or_changed_hellos_are_rejected);
    tcase_add_test(tests, nonsense_of_a_rank_counts_as_its_death);
    tcase_add_test(tests, large_table_and_verdict_reach_a_slow_reader);
#if !UNDER_TSAN
    tcase_add_test(tests, forked_child_serves_for_itself);
#endif
    tcase_add_test(tests, bad_arguments);
    suite_add_tcase(suite, tests);
    tests = tcase_create("other process"); /* forks before this process has threads */
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, server_that_dies_is_reported);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
