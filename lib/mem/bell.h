// SPDX-License-Identifier: BSD-3-Clause
/* Doorbell: how a rank that waits for its peers sleeps in the kernel, and how they wake it.
 *
 * The sleeper arms the bell, looks once more whether what it waits for has come, and sleeps only if not. A peer
 * publishes its data first and then rings: a fence on both sides makes sure that either the peer sees the bell armed
 * or the sleeper sees the data. Ringing a bell that nobody armed costs a fence and one load.
 * One sleeper per bell; any number of peers.
 */
#ifndef HOOP_MEM_BELL_H
#define HOOP_MEM_BELL_H

#include <stdatomic.h>
#include <stdint.h>

#include "mem/atomic.h"

struct hoop_bell {
    /* The futex word. 1: its owner sleeps or is about to; 2: it does so on its letterbox; peers set it to 0 and wake. */
    _Alignas(64) _Atomic uint32_t armed;
    unsigned char letterbox[16]; /* its name: mem/letterbox.h */
};

/* After publishing: wake the sleeper if there is one. Never blocks. */
void hoop_bell_wake(struct hoop_bell *bell);

static inline void hoop_bell_ring(struct hoop_bell *bell)
{
    HOOP_ATOMIC_FENCE();
    if (HOOP_ATOMIC_LOAD(&bell->armed, relaxed))
        hoop_bell_wake(bell);
}

/* Say that the caller is about to sleep. It must then look once more before it calls hoop_bell_sleep. */
void hoop_bell_arm(struct hoop_bell *bell);

/* The same for a caller who is going to poll its letterbox instead. */
void hoop_bell_arm_letters(struct hoop_bell *bell);

/* Sleep until rung, at most `nanoseconds`; returns at once if it was rung since hoop_bell_arm. The bell is not armed
 * afterwards. May return early without a reason: the caller looks again in any case. */
void hoop_bell_sleep(struct hoop_bell *bell, uint64_t nanoseconds);

/* Do not sleep after all. */
void hoop_bell_disarm(struct hoop_bell *bell);

#endif
