// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fakecuda/test_kernels.h"

/* Words from `at` on become value, value + 1, ...; the grid's threads share the work. */
XKERNEL(fake_test_fill, struct fake_test)
{
    for (uint64_t i = XBID * XNT + XTID; i < argument.count; i += XNB * XNT)
        XP(uint64_t, argument.at)[i] = argument.value + i;
}

/* Copies words from `other` to `at`. */
XKERNEL(fake_test_copy, struct fake_test)
{
    for (uint64_t i = XBID * XNT + XTID; i < argument.count; i += XNB * XNT)
        XP(uint64_t, argument.at)[i] = XP(uint64_t, argument.other)[i];
}

/* Waits until the word at `at` is at least value, then stores value at `other` (unless 0). */
XKERNEL(fake_test_wait, struct fake_test)
{
    while (x_ld_acq(argument.at) < argument.value)
        XPOLL(argument.at);
    if (argument.other)
        x_st_rel(argument.other, argument.value);
}

/* Stores value at `at` so that waiting kernels see it. */
XKERNEL(fake_test_post, struct fake_test)
{
    if (XBID == 0 && XTID == 0)
        x_st_rel(argument.at, argument.value);
}

/* All blocks of the grid meet: each block counts itself up at at[block], and waits for all others. */
XKERNEL(fake_test_meet, struct fake_test)
{
    x_st_rel(argument.at + 8 * XBID, argument.value);
    for (uint64_t i = 0; i < XNB; i++)
        while (x_ld_acq(argument.at + 8 * i) < argument.value)
            XPOLL(argument.at + 8 * i);
}

/* A barrier carries words between a block's threads: at[i] gets what the next thread put into shared memory. */
struct fake_shared {
    uint64_t word[64];
};
XKERNEL(fake_test_turn, struct fake_test)
{
    XSHARED(struct fake_shared, shared);
    shared->word[XTID] = argument.value + XTID;
    XSYNC();
    XP(uint64_t, argument.at)[XTID] = shared->word[(XTID + 1) % XNT];
}

const struct hoop_device_kernel fake_test_kernels[] = {XKERNEL_ROW(fake_test_fill, struct fake_test),
                                                       XKERNEL_ROW(fake_test_copy, struct fake_test),
                                                       XKERNEL_ROW(fake_test_wait, struct fake_test),
                                                       XKERNEL_ROW(fake_test_post, struct fake_test),
                                                       XKERNEL_ROW(fake_test_meet, struct fake_test),
                                                       XKERNEL_ROW(fake_test_turn, struct fake_test),
                                                       {NULL, NULL, 0}};
