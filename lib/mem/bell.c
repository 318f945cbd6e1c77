// SPDX-License-Identifier: BSD-3-Clause
/* The bell's slow paths: the futex.
 *
 * The word may be shared by processes, so the futex is not a private one. A wake that comes late, meant for an earlier
 * arming, finds the word armed again and ends that sleep too early: harmless, since the sleeper looks again and arms
 * again. The other way round nothing can be lost: whoever takes the word from 1 to 0 also wakes.
 */
#include "mem/bell.h"

#ifndef HOOP_FUTEX_WAIT
#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "mem/letterbox.h"

/* Sleep while *word is 1, until the deadline (CLOCK_MONOTONIC). True: look at the word again. */
static bool futex_wait(_Atomic uint32_t *word, uint64_t deadline)
{
    const struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
                                   .tv_nsec = (long)(deadline % 1000000000u)};

    /* The BITSET form takes an absolute time, so an interrupted sleep goes on with what is left. */
    return syscall(SYS_futex, word, FUTEX_WAIT_BITSET, 1, &until, NULL, FUTEX_BITSET_MATCH_ANY) == 0 || errno == EINTR;
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static uint64_t deadline_in(uint64_t nanoseconds)
{
    const uint64_t now = hoop_now(), farthest = (uint64_t)INT32_MAX * 1000000000u;

    return now < farthest && nanoseconds < farthest - now ? now + nanoseconds : farthest;
}

#define HOOP_FUTEX_WAIT(word, deadline) futex_wait((word), (deadline))
#define HOOP_FUTEX_WAKE(word)           futex_wake(word)
#define HOOP_FUTEX_DEADLINE(from_now)   deadline_in(from_now)
#define HOOP_BELL_LETTER(bell)          hoop_letterbox_write(bell)
#endif

void hoop_bell_wake(struct hoop_bell *bell)
{
    const uint32_t armed = (uint32_t)HOOP_ATOMIC_EXCHANGE(&bell->armed, 0, acq_rel);

    if (armed == 1)
        HOOP_FUTEX_WAKE(&bell->armed);
    else if (armed != 0)
        HOOP_BELL_LETTER(bell);
}

static void arm(struct hoop_bell *bell, uint32_t how)
{
    HOOP_ATOMIC_STORE(&bell->armed, how, relaxed);
    HOOP_ATOMIC_FENCE();
}

void hoop_bell_arm(struct hoop_bell *bell)
{
    arm(bell, 1);
}

void hoop_bell_arm_letters(struct hoop_bell *bell)
{
    arm(bell, 2);
}

void hoop_bell_sleep(struct hoop_bell *bell, uint64_t nanoseconds)
{
    const uint64_t deadline = HOOP_FUTEX_DEADLINE(nanoseconds);

    while (HOOP_ATOMIC_LOAD(&bell->armed, acquire) == 1)
        if (!HOOP_FUTEX_WAIT(&bell->armed, deadline))
            break;
    hoop_bell_disarm(bell);
}

void hoop_bell_disarm(struct hoop_bell *bell)
{
    HOOP_ATOMIC_STORE(&bell->armed, 0, relaxed);
}
