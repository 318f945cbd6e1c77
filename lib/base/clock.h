// SPDX-License-Identifier: BSD-3-Clause
/* Monotonic time and deadlines, in nanoseconds. */
#ifndef HOOP_BASE_CLOCK_H
#define HOOP_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t hoop_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The same as exact as the kernel's tick, for a fifth of the price. */
static inline uint64_t hoop_now_coarse(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A deadline `seconds` from now; 0 and less: never. */
static inline uint64_t hoop_deadline(double seconds)
{
    return seconds <= 0 ? UINT64_MAX : hoop_now() + (uint64_t)(seconds * 1e9);
}

static inline bool hoop_expired(uint64_t deadline)
{
    return deadline != UINT64_MAX && hoop_now() >= deadline;
}

/* Milliseconds until the deadline for poll(): 0 if it passed, at most `cap`. */
static inline int hoop_poll_timeout(uint64_t deadline, int cap)
{
    const uint64_t now = hoop_now();

    if (deadline <= now)
        return 0;
    const uint64_t left = (deadline - now + 999999) / 1000000;
    return left < (uint64_t)cap ? (int)left : cap;
}

#endif
