// SPDX-License-Identifier: BSD-3-Clause
/* Agreed places: lists of hosts, secrets in files, and ranks that come before rank 0 serves. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "boot/id.h"
#include "boot/place.h"
#include "harness.h"
#include "wire/sock.h"

START_TEST(finds_the_first_host)
{
    static const struct {
        const char *list, *host; /* NULL: malformed */
    } cases[] = {
        {"n1", "n1"},
        {"n1,n2", "n1"},
        {"n[1-4]", "n1"},
        {"n[007-9,12],m", "n007"},
        {"127.0.0.[2-3]", "127.0.0.2"},
        {"r[1-2]n[3,4]", "r1n3"},
        {"n[4]x", "n4x"},
        {"a-b.c_d", "a-b.c_d"},
        {"", NULL},
        {",n", NULL},
        {"n[", NULL},
        {"n[]", NULL},
        {"n[1", NULL},
        {"n[a]", NULL},
        {"n]", NULL},
        {"n[1[2]]", NULL},
        {"n 1", NULL},
    };
    char host[HOOP_PLACE_HOST], list[600];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool good = hoop_place_first_host(cases[i].list, host);
        ck_assert_msg(good == (cases[i].host != NULL) && (!good || strcmp(host, cases[i].host) == 0), "'%s': %s",
                      cases[i].list, good ? host : "malformed");
    }
    for (size_t bytes = HOOP_PLACE_HOST - 3; bytes < HOOP_PLACE_HOST + 3; bytes++) {
        memset(list, 'a', bytes);
        list[bytes] = 0;
        ck_assert_msg(hoop_place_first_host(list, host) == (bytes < HOOP_PLACE_HOST), "%zu", bytes);
        snprintf(list + bytes - 2, sizeof list - bytes, "[12-13]");
        ck_assert_msg(hoop_place_first_host(list, host) == (bytes < HOOP_PLACE_HOST), "%zu with digits", bytes);
    }
}
END_TEST

static enum hoop_status key_of(const char *path, unsigned char key[HOOP_PLACE_KEY])
{
    struct hoop_settings settings;
    const char *from;

    clearenv();
    setenv("HOOP_SECRET_FILE", path, 1);
    ck_assert_int_eq(hoop_settings_read(&settings), HOOP_OK);
    return hoop_place_key(&settings, key, &from);
}

START_TEST(takes_a_secret_of_a_private_file)
{
    unsigned char key[HOOP_PLACE_KEY], same[HOOP_PLACE_KEY];
    char path[] = "/tmp/hoop-secret-XXXXXX";
    static const char secret[] = "0123456789abcdef0123456789abcdef\n";
    const int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, secret, sizeof secret - 1), sizeof secret - 1);
    ck_assert_int_eq(key_of(path, key), HOOP_OK);
    ck_assert_int_eq(ftruncate(file, 32), 0); /* the line's end does not count */
    ck_assert_int_eq(key_of(path, same), HOOP_OK);
    ck_assert_mem_eq(key, same, sizeof key);
    for (int mode = 0601; mode < 0700; mode = mode == 0607 ? 0610 : mode + (mode < 0610 ? 1 : 010)) {
        ck_assert_int_eq(fchmod(file, (mode_t)mode), 0);
        ck_assert_msg(key_of(path, key) == HOOP_ERR_SETUP && strstr(hoop_error_text(), "others may know"), "mode %o",
                      mode);
    }
    ck_assert_int_eq(fchmod(file, 0600), 0);
    ck_assert_int_eq(ftruncate(file, 31), 0);
    ck_assert_int_eq(key_of(path, key), HOOP_ERR_SETUP);
    ck_assert_int_eq(ftruncate(file, 5000), 0);
    ck_assert_int_eq(key_of(path, key), HOOP_ERR_SETUP);
    close(file);
    unlink(path);
}
END_TEST

/* A port that was free a moment ago. */
static uint16_t free_port(void)
{
    struct hoop_address address;
    int sock;

    ck_assert_int_eq(hoop_address_parse(&address, "127.0.0.1"), HOOP_OK);
    address.port = 0;
    ck_assert_int_eq(hoop_sock_listen(&address, &sock), HOOP_OK);
    close(sock);
    return address.port;
}

START_TEST(all_make_the_same_id)
{
    const struct hoop_place place = {.host = "127.0.0.1", .port = free_port()};
    unsigned char key[HOOP_PLACE_KEY] = {1};
    struct hoop_unique_id mine, served, other;
    struct hoop_id first, second;
    char text[HOOP_UNIQUE_ID_TEXT];

    ck_assert_int_eq(hoop_place_id(&place, key, "a", false, &mine), HOOP_OK);
    ck_assert_int_eq(hoop_place_id(&place, key, "a", true, &served), HOOP_OK);
    ck_assert_mem_eq(&mine, &served, sizeof mine);
    ck_assert_int_eq(hoop_unique_id_print(&mine, text, sizeof text), HOOP_ERR_ARG);

    /* another job, or another key, is another secret */
    ck_assert_int_eq(hoop_id_decode(&mine, &first), HOOP_OK);
    ck_assert(first.early && first.address.port == place.port);
    ck_assert_int_eq(hoop_place_id(&place, key, "b", true, &other), HOOP_OK); /* the same server */
    ck_assert_int_eq(hoop_id_decode(&other, &second), HOOP_OK);
    ck_assert_mem_ne(first.secret, second.secret, sizeof first.secret);
    ck_assert_mem_ne(first.nonce, second.nonce, sizeof first.nonce);
    key[5] = 1;
    ck_assert_int_eq(hoop_place_id(&place, key, "a", false, &other), HOOP_OK);
    ck_assert_int_eq(hoop_id_decode(&other, &second), HOOP_OK);
    ck_assert_mem_ne(first.secret, second.secret, sizeof first.secret);
    ck_assert_mem_eq(first.nonce, second.nonce, sizeof first.nonce);
}
END_TEST

/* ---- ranks that come early ---- */

struct guest {
    pthread_t thread;
    struct hoop_unique_id id;
    enum hoop_status status;
};

static void *come_early(void *argument)
{
    struct guest *guest = argument;
    struct hoop_comm *comm = NULL;

    guest->status = hoop_comm_init_rank(&comm, 2, &guest->id, 1);
    hoop_comm_destroy(comm);
    return NULL;
}

/* Nobody listens; then a server that knows of another meeting only; then the right one. */
START_TEST(waits_until_it_is_served)
{
    const struct hoop_place place = {.host = "127.0.0.1", .port = free_port()};
    const unsigned char key[HOOP_PLACE_KEY] = {2};
    struct hoop_unique_id other, id;
    struct hoop_comm *comm = NULL;
    struct guest guest = {.status = HOOP_OK};

    clearenv();
    ck_assert_int_eq(hoop_place_id(&place, key, "second", false, &guest.id), HOOP_OK);
    ck_assert_int_eq(pthread_create(&guest.thread, NULL, come_early, &guest), 0);
    usleep(50000); /* it may have been refused by then, or not: both must do */
    ck_assert_int_eq(hoop_place_id(&place, key, "first", true, &other), HOOP_OK);
    usleep(50000);
    ck_assert_int_eq(hoop_place_id(&place, key, "second", true, &id), HOOP_OK);
    ck_assert_msg(hoop_comm_init_rank(&comm, 2, &id, 0) == HOOP_OK, "%s", hoop_error_text());
    hoop_comm_destroy(comm);
    pthread_join(guest.thread, NULL);
    ck_assert_int_eq(guest.status, HOOP_OK);
}
END_TEST

START_TEST(nobody_serves)
{
    struct hoop_place place = {.host = "127.0.0.1", .port = free_port()};
    const unsigned char key[HOOP_PLACE_KEY] = {0};
    struct hoop_unique_id id;
    struct hoop_comm *comm;

    clearenv();
    setenv("HOOP_INIT_TIMEOUT", "0.1", 1);
    ck_assert_int_eq(hoop_place_id(&place, key, "a", false, &id), HOOP_OK);
    ck_assert_int_eq(hoop_comm_init_rank(&comm, 2, &id, 1), HOOP_ERR_TIMEOUT);
    ck_assert_msg(strstr(hoop_error_text(), "rank 0 does not serve the meeting at 127.0.0.1:") != NULL, "%s",
                  hoop_error_text());
    snprintf(place.host, sizeof place.host, "192.0.2.77"); /* of nobody's network */
    ck_assert_int_eq(hoop_place_id(&place, key, "a", true, &id), HOOP_ERR_SETUP);
    ck_assert_ptr_nonnull(strstr(hoop_error_text(), "HOOP_MEET=ADDRESS:PORT"));
    snprintf(place.host, sizeof place.host, "no such host");
    ck_assert_int_eq(hoop_place_id(&place, key, "a", true, &id), HOOP_ERR_SETUP);
    ck_assert_ptr_nonnull(strstr(hoop_error_text(), "the host no such host"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/place");
    TCase *tests = tcase_create("place");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, finds_the_first_host);
    tcase_add_test(tests, takes_a_secret_of_a_private_file);
    tcase_add_test(tests, all_make_the_same_id);
    tcase_add_test(tests, waits_until_it_is_served);
    tcase_add_test(tests, nobody_serves);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
