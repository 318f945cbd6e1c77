// SPDX-License-Identifier: BSD-3-Clause
/* Allocation that can be made to fail, the arena, error records and deadlines. */
#include <check.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/status.h"
#include "harness.h"

static bool all_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

START_TEST(chosen_allocation_fails_once)
{
    for (long n = 1; n <= 4; n++) {
        hoop_alloc_fail_at(n);
        for (long i = 1; i <= 5; i++) {
            void *memory = hoop_calloc(3, 7);
            ck_assert_msg((memory == NULL) == (i == n), "fail at %ld, allocation %ld", n, i);
            ck_assert(memory == NULL || all_zero(memory, 21));
            hoop_free(memory);
        }
        ck_assert_int_eq(hoop_alloc_fail_at(0), 5);
    }
    ck_assert_ptr_null(hoop_calloc(SIZE_MAX / 2, 3));
    ck_assert_ptr_nonnull(strstr(hoop_error_text(), "does not fit"));
}
END_TEST

START_TEST(arena_objects_are_apart_and_stay)
{
    enum { OBJECTS = 300 };
    struct hoop_arena arena = {0};
    unsigned char *objects[OBJECTS];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < OBJECTS; i++) {
            const size_t bytes = (size_t)i * 7 % 600;
            objects[i] = hoop_arena_take(&arena, bytes, 1);
            ck_assert_ptr_nonnull(objects[i]);
            ck_assert_uint_eq((uintptr_t)objects[i] % 16, 0);
            ck_assert(all_zero(objects[i], bytes));
            memset(objects[i], i & 0xff, bytes);
        }
        for (int i = 0; i < OBJECTS; i++)
            for (size_t at = 0; at < (size_t)i * 7 % 600; at++)
                ck_assert_msg(objects[i][at] == (i & 0xff), "object %d, byte %zu", i, at);
        hoop_arena_clear(&arena);
        ck_assert_ptr_null(arena.head);
    }
    ck_assert_ptr_null(hoop_arena_take(&arena, SIZE_MAX / 2, 16));
    hoop_arena_clear(&arena);
}
END_TEST

static void *other_thread(void *argument)
{
    (void)argument;
    ck_assert_str_eq(hoop_error_text(), "");
    hoop_fail(HOOP_ERR_ARG, "of the other");
    return NULL;
}

START_TEST(error_records_belong_to_their_thread)
{
    pthread_t thread;

    ck_assert_int_eq(hoop_fail(HOOP_ERR_PEER, "rank %d", 3), HOOP_ERR_PEER);
    ck_assert_int_eq(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_str_eq(hoop_error_text(), "rank 3");
    for (int status = -20; status <= 5; status++)
        ck_assert_msg(*hoop_strerror((enum hoop_status)status), "status %d", status);
    ck_assert_str_eq(hoop_strerror((enum hoop_status) - 11), "unknown status");
}
END_TEST

START_TEST(deadlines_round_to_the_safe_side)
{
    ck_assert_uint_eq(hoop_deadline(0), UINT64_MAX);
    ck_assert(!hoop_expired(UINT64_MAX));
    ck_assert(hoop_expired(hoop_now()));
    ck_assert(!hoop_expired(hoop_now() + 3600 * UINT64_C(1000000000)));
    ck_assert_int_eq(hoop_poll_timeout(UINT64_MAX, 500), 500);
    ck_assert_int_eq(hoop_poll_timeout(hoop_now(), 500), 0);
    ck_assert_int_ge(hoop_poll_timeout(hoop_now() + 3600 * UINT64_C(1000000000), 10000000), 3599000); /* never early */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base/memory");
    TCase *tests = tcase_create("base");

    tcase_add_test(tests, chosen_allocation_fails_once);
    tcase_add_test(tests, arena_objects_are_apart_and_stay);
    tcase_add_test(tests, error_records_belong_to_their_thread);
    tcase_add_test(tests, deadlines_round_to_the_safe_side);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
