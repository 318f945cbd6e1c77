// SPDX-License-Identifier: BSD-3-Clause
/* Unique ids: the text form is exact, one wrong character is seen, and keys are what they should be. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "boot/boot.h"
#include "boot/id.h"
#include "harness.h"

static void example(struct hoop_unique_id *unique, const char *host, uint16_t port)
{
    struct hoop_id id = {0};

    ck_assert_int_eq(hoop_auth_start(), HOOP_OK);
    ck_assert_int_eq(hoop_address_parse(&id.address, host), HOOP_OK);
    id.address.port = port;
    for (size_t i = 0; i < sizeof id.nonce; i++)
        id.nonce[i] = (unsigned char)(i * 17);
    for (size_t i = 0; i < sizeof id.secret; i++)
        id.secret[i] = (unsigned char)(255 - i * 5);
    hoop_id_encode(&id, unique);
}

START_TEST(text_round_trip)
{
    static const struct {
        const char *host;
        uint16_t port;
        const char *begins;
    } cases[] = {
        {"127.0.0.1", 1, "hoop1:127.0.0.1:1:"},
        {"10.200.30.4", 65535, "hoop1:10.200.30.4:65535:"},
        {"::1", 40121, "hoop1:[::1]:40121:"},
        {"fd12:3456:789a:bcde:f012:3456:789a:bcde", 65535, "hoop1:[fd12:3456:789a:bcde:f012:3456:789a:bcde]:65535:"}};
    struct hoop_unique_id id, again;
    char text[HOOP_UNIQUE_ID_TEXT];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        example(&id, cases[i].host, cases[i].port);
        ck_assert_int_eq(hoop_unique_id_print(&id, text, sizeof text), HOOP_OK);
        ck_assert_msg(strncmp(text, cases[i].begins, strlen(cases[i].begins)) == 0, "%s", text);
        for (const char *at = text; *at; at++)
            ck_assert(*at > ' ' && *at < 0x7f);
        memset(&again, 0xff, sizeof again);
        ck_assert_msg(hoop_unique_id_parse(&again, text) == HOOP_OK, "%s: %s", text, hoop_error_text());
        ck_assert_mem_eq(&again, &id, sizeof id);
    }
}
END_TEST

static void must_refuse(const char *text, const char *what, size_t at)
{
    struct hoop_unique_id id, untouched;

    memset(&id, 0x55, sizeof id);
    untouched = id;
    ck_assert_msg(hoop_unique_id_parse(&id, text) == HOOP_ERR_ARG, "%s at %zu: %s", what, at, text);
    ck_assert(strncmp(hoop_error_text(), "unique id: wrong ", 17) == 0);
    ck_assert_mem_eq(&id, &untouched, sizeof id);
}

START_TEST(every_wrong_character_is_seen)
{
    static const char *const hosts[] = {"10.200.30.4", "fd12::5"};
    struct hoop_unique_id id;
    char text[HOOP_UNIQUE_ID_TEXT], wrong[HOOP_UNIQUE_ID_TEXT + 1];

    for (int i = 0; i < 2; i++) {
        example(&id, hosts[i], 40121);
        ck_assert_int_eq(hoop_unique_id_print(&id, text, sizeof text), HOOP_OK);
        const size_t length = strlen(text);
        for (size_t at = 0; at < length; at++) {
            memcpy(wrong, text, sizeof text);
            for (int c = 1; c < 256; c++) {
                wrong[at] = (char)c;
                if (wrong[at] != text[at])
                    must_refuse(wrong, "change", at);
            }
            memcpy(wrong, text, sizeof text);
            wrong[at] = 0;
            must_refuse(wrong, "cut", at);
            memcpy(wrong + at, text + at + 1, length - at);
            must_refuse(wrong, "left out", at);
            memcpy(wrong, text, sizeof text);
            memmove(wrong + at + 1, wrong + at, length - at + 1);
            must_refuse(wrong, "doubled", at);
        }
        snprintf(wrong, sizeof wrong, "%s ", text);
        must_refuse(wrong, "blank", length);
    }
}
END_TEST

START_TEST(every_wrong_bit_of_the_bytes_is_seen)
{
    struct hoop_unique_id id;
    struct hoop_id read;
    char text[HOOP_UNIQUE_ID_TEXT];

    example(&id, "10.0.0.1", 40121);
    for (size_t bit = 0; bit < 8 * 80; bit++) { /* all that is used */
        id.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ck_assert_msg(hoop_unique_id_print(&id, text, sizeof text) == HOOP_ERR_ARG, "bit %zu", bit);
        ck_assert_int_eq(hoop_id_decode(&id, &read), HOOP_ERR_ARG);
        id.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    ck_assert_int_eq(hoop_unique_id_print(&id, text, sizeof text - 1), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_unique_id_print(&id, text, sizeof text), HOOP_OK);
    memset(&id, 0, sizeof id);
    ck_assert_int_eq(hoop_unique_id_print(&id, text, sizeof text), HOOP_ERR_ARG);
}
END_TEST

START_TEST(created_ids_differ_in_all_that_counts)
{
    struct hoop_unique_id a, b;
    struct hoop_id read_a, read_b;
    unsigned char key_a[32], key_b[32], other[32];

    ck_assert_msg(hoop_unique_id_create(&a) == HOOP_OK, "%s", hoop_error_text());
    ck_assert_int_eq(hoop_unique_id_create(&b), HOOP_OK);
    ck_assert_int_eq(hoop_id_decode(&a, &read_a), HOOP_OK);
    ck_assert_int_eq(hoop_id_decode(&b, &read_b), HOOP_OK);
    ck_assert(memcmp(read_a.nonce, read_b.nonce, sizeof read_a.nonce) != 0);
    ck_assert(memcmp(read_a.secret, read_b.secret, sizeof read_a.secret) != 0);
    hoop_boot_key(&a, "share", key_a);
    hoop_boot_key(&b, "share", key_b);
    hoop_boot_key(&a, "tcp", other);
    ck_assert(memcmp(key_a, key_b, 32) != 0 && memcmp(key_a, other, 32) != 0);
    hoop_boot_key(&a, "share", other);
    ck_assert_mem_eq(key_a, other, 32);
}
END_TEST

START_TEST(bad_addresses_are_refused)
{
    static const char *const bad[] = {"localhost", "0.0.0.0", "::", "203.0.113.7"}; /* the last is of no machine */
    struct hoop_unique_id id;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("HOOP_ADDRESS", bad[i], 1);
        ck_assert_msg(hoop_unique_id_create(&id) == (i < 3 ? HOOP_ERR_SETUP : HOOP_ERR_SYSTEM), "%s", bad[i]);
        ck_assert_msg(strstr(hoop_error_text(), bad[i]) != NULL, "%s", hoop_error_text());
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/id");
    TCase *tests = tcase_create("id");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, text_round_trip);
    tcase_add_test(tests, every_wrong_character_is_seen);
    tcase_add_test(tests, every_wrong_bit_of_the_bytes_is_seen);
    tcase_add_test(tests, created_ids_differ_in_all_that_counts);
    tcase_add_test(tests, bad_addresses_are_refused);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
