// SPDX-License-Identifier: BSD-3-Clause
/* Sockets, descriptor passing and authentication. Every test ends with as many open descriptors as it began with. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "harness.h"
#include "wire/auth.h"
#include "wire/give.h"
#include "wire/sock.h"
#include "wire/unixfd.h"

static int before;

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
    ck_assert_int_eq(hoop_auth_start(), HOOP_OK); /* may keep a descriptor for random numbers */
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

static uint64_t soon(void)
{
    return hoop_deadline(30); /* a cap against hanging, not an expectation */
}

/* ---- authentication ---- */

START_TEST(codes_depend_on_every_bit)
{
    unsigned char key[HOOP_AUTH_KEY] = {1}, message[40] = {2}, mac[HOOP_AUTH_MAC], other[HOOP_AUTH_MAC];
    struct hoop_auth_part parts[2] = {{message, 10}, {message + 10, 30}};
    const struct hoop_auth_part whole = {message, 40};

    hoop_auth_mac(mac, key, parts, 2);
    hoop_auth_mac(other, key, &whole, 1);
    ck_assert(hoop_auth_equal(mac, other, sizeof mac));
    for (size_t bit = 0; bit < 8 * sizeof message; bit++) {
        message[bit / 8] ^= (unsigned char)(1 << bit % 8);
        hoop_auth_mac(other, key, parts, 2);
        ck_assert_msg(!hoop_auth_equal(mac, other, sizeof mac), "message bit %zu", bit);
        message[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t bit = 0; bit < 8 * sizeof key; bit++) {
        key[bit / 8] ^= (unsigned char)(1 << bit % 8);
        hoop_auth_mac(other, key, parts, 2);
        ck_assert_msg(!hoop_auth_equal(mac, other, sizeof mac), "key bit %zu", bit);
        key[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t bit = 0; bit < 8 * sizeof mac; bit++) {
        memcpy(other, mac, sizeof mac);
        other[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ck_assert(!hoop_auth_equal(mac, other, sizeof mac));
    }
}
END_TEST

START_TEST(derived_keys_differ)
{
    const unsigned char key[HOOP_AUTH_KEY] = {7};
    unsigned char derived[4][HOOP_AUTH_KEY], again[HOOP_AUTH_KEY];

    hoop_auth_derive(derived[0], key, "meeting", "s", 1);
    hoop_auth_derive(derived[1], key, "share", "s", 1);
    hoop_auth_derive(derived[2], key, "meeting", "t", 1);
    hoop_auth_derive(derived[3], key, "meetings", "", 0); /* not "meeting" with the salt run into it */
    hoop_auth_derive(again, key, "meeting", "s", 1);
    ck_assert(hoop_auth_equal(again, derived[0], sizeof again));
    for (int i = 0; i < 4; i++) {
        ck_assert(!hoop_auth_equal(derived[i], key, sizeof key));
        for (int j = 0; j < i; j++)
            ck_assert_msg(!hoop_auth_equal(derived[i], derived[j], sizeof key), "%d and %d", i, j);
    }
}
END_TEST

/* ---- TCP ---- */

START_TEST(addresses_read_and_print)
{
    static const struct {
        const char *host, *printed;
    } good[] = {
        {"127.0.0.1", "127.0.0.1:80"}, {"10.1.2.3", "10.1.2.3:80"}, {"::1", "[::1]:80"}, {"fd00::5", "[fd00::5]:80"}};
    static const char *const bad[] = {"", "localhost", "1.2.3", "1.2.3.4.5", "256.0.0.1", "::g", "1.2.3.4:5", " ::1"};
    struct hoop_address address;
    char text[HOOP_ADDRESS_TEXT];

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        must(hoop_address_parse(&address, good[i].host));
        address.port = 80;
        hoop_address_print(&address, text);
        ck_assert_str_eq(text, good[i].printed);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(hoop_address_parse(&address, bad[i]) == HOOP_ERR_ARG, "%s", bad[i]);
}
END_TEST

static void *echo(void *argument)
{
    unsigned char byte;

    while (hoop_sock_recv_all(*(int *)argument, &byte, 1, soon()) == HOOP_OK)
        if (hoop_sock_send_all(*(int *)argument, &byte, 1, soon()) != HOOP_OK)
            break;
    return NULL;
}

static bool listens(const char *host, struct hoop_address *address, int *listener)
{
    must(hoop_address_parse(address, host));
    address->port = 0;
    const enum hoop_status status = hoop_sock_listen(address, listener);
    if (status != HOOP_OK && address->family == 6)
        return false; /* a machine without IPv6 */
    must(status);
    ck_assert_uint_ne(address->port, 0);
    return true;
}

static void check_flags(int sock)
{
    ck_assert(fcntl(sock, F_GETFD) & FD_CLOEXEC);
    ck_assert(fcntl(sock, F_GETFL) & O_NONBLOCK);
}

START_TEST(connects_and_talks)
{
    static const char *const hosts[] = {"127.0.0.1", "::1"};
    unsigned char sent[300], received[300];
    struct hoop_address address;
    int listener, client, server;
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        if (!listens(hosts[i], &address, &listener))
            continue;
        must(hoop_sock_connect(&address, &client, soon()));
        must(hoop_sock_wait(listener, soon()));
        must(hoop_sock_accept(listener, &server));
        check_flags(listener);
        check_flags(client);
        check_flags(server);
        pthread_create(&thread, NULL, echo, &server);
        hoop_auth_random(sent, sizeof sent);
        must(hoop_sock_send_all(client, sent, sizeof sent, soon()));
        must(hoop_sock_recv_all(client, received, sizeof received, soon()));
        ck_assert_mem_eq(sent, received, sizeof sent);
        shutdown(client, SHUT_WR);
        pthread_join(thread, NULL);
        close(server);
        ck_assert_int_eq(hoop_sock_recv_all(client, received, 1, soon()), HOOP_ERR_PEER);
        close(client);
        close(listener);
        ck_assert_int_eq(hoop_sock_connect(&address, &client, soon()), HOOP_ERR_PEER); /* nobody is there now */
    }
}
END_TEST

START_TEST(deadlines_end_waits)
{
    struct hoop_address address;
    unsigned char byte;
    int listener, client, server;
    static unsigned char flood[1 << 20];

    ck_assert(listens("127.0.0.1", &address, &listener));
    must(hoop_sock_connect(&address, &client, soon()));
    must(hoop_sock_wait(listener, soon()));
    must(hoop_sock_accept(listener, &server));
    ck_assert_int_eq(hoop_sock_accept(listener, &server), HOOP_AGAIN);
    ck_assert_int_eq(hoop_sock_recv_all(client, &byte, 1, hoop_deadline(0.02)), HOOP_ERR_TIMEOUT);
    ck_assert_int_eq(hoop_sock_wait(client, hoop_deadline(0.02)), HOOP_ERR_TIMEOUT);
    enum hoop_status status = HOOP_OK;
    for (int i = 0; i < 64 && status == HOOP_OK; i++) /* nobody reads: the buffers fill up */
        status = hoop_sock_send_all(client, flood, sizeof flood, hoop_deadline(0.02));
    ck_assert_int_eq(status, HOOP_ERR_TIMEOUT);
    close(client);
    close(server);
    close(listener);
}
END_TEST

START_TEST(parts_arrive_as_one_from_any_offset)
{
    char a[] = "ab", b[] = "", c[] = "cdef", received[8];
    const struct iovec parts[] = {{a, 2}, {b, 0}, {c, 4}};
    int pair[2];
    size_t moved;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    for (size_t skip = 0; skip <= 6; skip++) {
        must(hoop_sock_send_parts(pair[0], parts, 3, skip, &moved));
        ck_assert_uint_eq(moved, 6 - skip);
        if (moved) {
            must(hoop_sock_recv_all(pair[1], received, moved, soon()));
            ck_assert_mem_eq(received, &"abcdef"[skip], moved);
        }
    }
    close(pair[0]);
    close(pair[1]);
}
END_TEST

/* ---- Unix sockets ---- */

static void connect_pair(bool in_folder, int *client, int *server)
{
    char name[HOOP_UNIX_NAME];
    struct stat status;
    int listener;

    must(hoop_unix_listen(in_folder, &listener, name));
    ck_assert(name[0] == (in_folder ? '/' : '@'));
    must(hoop_unix_connect(name, -1, client, soon()));
    must(hoop_unix_accept(listener, server));
    check_flags(*client);
    check_flags(*server);
    ck_assert(hoop_unix_same_user(*client) && hoop_unix_same_user(*server));
    if (in_folder) {
        char folder[HOOP_UNIX_NAME];
        memcpy(folder, name, sizeof folder);
        *strrchr(folder, '/') = 0;
        ck_assert_int_eq(stat(folder, &status), 0);
        ck_assert_uint_eq(status.st_mode & 0777, 0700);
        hoop_unix_unlink(name);
        ck_assert_int_eq(stat(folder, &status), -1);
    }
    close(listener);
    int none;
    ck_assert_int_eq(hoop_unix_connect(name, -1, &none, soon()), HOOP_ERR_SETUP);
}

START_TEST(passes_a_descriptor)
{
    for (int in_folder = 0; in_folder <= 1; in_folder++) {
        char text[8];
        int client, server, ends[2], passed = -1;
        size_t bytes;

        connect_pair(in_folder != 0, &client, &server);
        ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
        ck_assert_int_eq(hoop_unix_recv(client, text, sizeof text, &bytes, &passed), HOOP_AGAIN);
        must(hoop_unix_send(server, "take", 4, ends[1]));
        must(hoop_unix_wait(client, -1, soon()));
        must(hoop_unix_recv(client, text, sizeof text, &bytes, &passed));
        ck_assert_uint_eq(bytes, 4);
        ck_assert_mem_eq(text, "take", 4);
        ck_assert(fcntl(passed, F_GETFD) & FD_CLOEXEC);
        ck_assert_int_eq(write(passed, "x", 1), 1);
        ck_assert_int_eq(read(ends[0], text, 1), 1);
        must(hoop_unix_send(server, "none", 4, -1));
        int none = 5;
        must(hoop_unix_recv(client, text, sizeof text, &bytes, &none));
        ck_assert_int_eq(none, -1);
        must(hoop_unix_send(server, "away", 4, ends[1])); /* not wanted: closed on arrival */
        must(hoop_unix_recv(client, text, sizeof text, &bytes, NULL));
        close(server);
        ck_assert_int_eq(hoop_unix_recv(client, text, sizeof text, &bytes, NULL), HOOP_ERR_PEER);
        close(client);
        close(passed);
        close(ends[0]);
        close(ends[1]);
    }
}
END_TEST

/* Send n copies of a descriptor with one message, as hoop_unix_send never does. */
static void send_many(int sock, int passed, size_t n)
{
    _Alignas(struct cmsghdr) unsigned char control[CMSG_SPACE(32 * sizeof(int))] = {0};
    struct iovec part = {.iov_base = (char[]){"many"}, .iov_len = 4};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(n * sizeof(int));
    for (size_t i = 0; i < n; i++)
        memcpy(CMSG_DATA(head) + i * sizeof(int), &passed, sizeof passed);
    ck_assert_int_eq(sendmsg(sock, &message, MSG_NOSIGNAL), 4);
}

START_TEST(refuses_too_much_and_keeps_nothing)
{
    static const size_t many[] = {2, 8, 9, 32};
    char text[4];
    int client, server, passed = -1;
    size_t bytes;

    connect_pair(false, &client, &server);
    const int open = open_descriptors();
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        send_many(server, STDERR_FILENO, many[i]);
        ck_assert_int_eq(hoop_unix_recv(client, text, sizeof text, &bytes, &passed), HOOP_ERR_ARG);
        ck_assert_msg(open_descriptors() == open, "%zu descriptors", many[i]);
    }
    must(hoop_unix_send(server, "too long", 8, STDERR_FILENO));
    ck_assert_int_eq(hoop_unix_recv(client, text, sizeof text, &bytes, &passed), HOOP_ERR_ARG);
    ck_assert_int_eq(open_descriptors(), open);
    must(hoop_unix_send(server, "well", 4, -1)); /* the connection is still good */
    must(hoop_unix_recv(client, text, sizeof text, &bytes, &passed));
    close(client);
    close(server);
}
END_TEST

START_TEST(waiting_can_be_cancelled)
{
    int client, server, ends[2];

    connect_pair(false, &client, &server);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(hoop_unix_wait(client, ends[0], hoop_deadline(0.02)), HOOP_ERR_TIMEOUT);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    ck_assert_int_eq(hoop_unix_wait(client, ends[0], soon()), HOOP_ERR_ABORTED);
    close(client);
    close(server);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(gives_to_who_has_the_key)
{
    struct hoop_giver *giver;
    unsigned char wrong[HOOP_AUTH_KEY], key[HOOP_AUTH_KEY];
    char name[HOOP_UNIX_NAME], text[8] = "";
    int ends[2], got = -1, sock;

    const int open = open_descriptors();
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    must(hoop_giver_open(&giver, ends[1]));
    memcpy(key, hoop_giver_key(giver), sizeof key);
    snprintf(name, sizeof name, "%s", hoop_giver_name(giver));
    memcpy(wrong, key, sizeof wrong);
    wrong[31] ^= 1;
    must(hoop_unix_connect(name, -1, &sock, soon())); /* says nothing: others are served all the same */
    ck_assert_int_eq(hoop_gift_fetch(name, wrong, &got, soon()), HOOP_ERR_SETUP);
    for (int i = 0; i < 3; i++) {
        must(hoop_gift_fetch(name, key, &got, soon()));
        ck_assert_int_eq(write(got, "word", 5), 5);
        close(got);
        ck_assert_int_eq(read(ends[0], text, sizeof text), 5);
        ck_assert_str_eq(text, "word");
    }
    close(sock);
    hoop_giver_close(giver);
    ck_assert_int_eq(hoop_gift_fetch(name, key, &got, soon()), HOOP_ERR_SETUP);
    close(ends[0]);
    ck_assert_int_eq(open_descriptors(), open);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire/socket");
    TCase *tests = tcase_create("socket");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, codes_depend_on_every_bit);
    tcase_add_test(tests, derived_keys_differ);
    tcase_add_test(tests, addresses_read_and_print);
    tcase_add_test(tests, connects_and_talks);
    tcase_add_test(tests, deadlines_end_waits);
    tcase_add_test(tests, parts_arrive_as_one_from_any_offset);
    tcase_add_test(tests, passes_a_descriptor);
    tcase_add_test(tests, refuses_too_much_and_keeps_nothing);
    tcase_add_test(tests, waiting_can_be_cancelled);
    tcase_add_test(tests, gives_to_who_has_the_key);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
