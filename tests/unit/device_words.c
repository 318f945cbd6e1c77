// SPDX-License-Identifier: BSD-3-Clause
/* Words of small frames: whatever order a bus brings their halves in, data count only when all of them are there. */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exec/device/device.h"
#include "harness.h"

static void ring(xg address)
{
    (void)address;
}

_Thread_local struct hoop_device_emulation hoop_device_emulation = {.ring = ring};

static const uint64_t numbers[] = {1,
                                   2,
                                   7,
                                   UINT32_MAX - 5ull,
                                   UINT32_MAX - 4ull,
                                   UINT32_MAX,
                                   1ull << 32,
                                   (1ull << 33) - 5,
                                   5ull << 32,
                                   (5ull << 32) + 12345,
                                   1ull << 40};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static xg at(struct x16 *place)
{
    return (xg)(uintptr_t)place;
}

START_TEST(data_need_both_flags)
{
    const uint64_t number = numbers[_i], data = 0x0123456789abcdefull;
    struct x16 whole, part;

    memset(&whole, 0, sizeof whole);
    ck_assert(!x_is_flagged(x_ld_halves(at(&whole)), number)); /* as the area is at first */
    x_st_flagged(at(&whole), data, number);
    ck_assert(x_is_flagged(x_ld_halves(at(&whole)), number));
    ck_assert_uint_eq(x_flagged_data(x_ld_halves(at(&whole))), data);
    for (uint64_t old = number > 64 ? number - 64 : 0; old < number; old++) {
        if (old > 0)
            x_st_flagged(at(&part), ~data, old);
        else
            memset(&part, 0, sizeof part);
        const struct x16 low = {whole.low, part.high}, high = {part.low, whole.high};
        ck_assert(!x_is_flagged(part, number));
        ck_assert(!x_is_flagged(low, number));
        ck_assert(!x_is_flagged(high, number));
    }
}
END_TEST

/* No flag is that of empty memory; none is repeated in a place, which gets every 2nd to 64th frame, for billions of frames. */
START_TEST(flags_differ)
{
    for (int i = 0; i < NUMBERS; i++)
        for (uint64_t near = 0; near < 1000; near++) {
            const uint64_t number = numbers[i] + near;
            ck_assert_uint_ne(x_flag(number), 0);
            for (uint64_t bits = 1; bits < 33; bits++) {
                const uint64_t later = number + (1ull << bits);
                ck_assert_msg(x_flag(number) != x_flag(later), "%#lx and %#lx", (unsigned long)number,
                              (unsigned long)later);
            }
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("words of small frames");
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, data_need_both_flags, 0, NUMBERS);
    tcase_add_test(all, flags_differ);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
