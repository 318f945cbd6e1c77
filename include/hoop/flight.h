// SPDX-License-Identifier: BSD-3-Clause
/* What the ranks of a communicator on one host do, seen from outside: for programs that look at a running, hung or failed job, as
 * hoop-status does.
 *
 * Each rank keeps its latest operations, and what it waits for, in the memory that the ranks of its host share. A snapshot of that is taken
 * through the descriptor that every rank has of it (/proc/PID/fd/N, which shows as "/memfd:hoop") without disturbing anybody, or read
 * from the file that a communicator wrote when it failed (setting HOOP_FLIGHT). Of ranks on other hosts only their calls are known, and
 * those only when they stand still.
 */
#ifndef HOOP_FLIGHT_H
#define HOOP_FLIGHT_H

#include "hoop.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hoop_flight; /* a snapshot; never changes */

enum hoop_flight_state {
    HOOP_FLIGHT_ABSENT,  /* has not come yet */
    HOOP_FLIGHT_OUTSIDE, /* in no call: its program does something else */
    HOOP_FLIGHT_INSIDE,  /* in a call, and not seen to wait; of a rank on another host: it has made this call */
    HOOP_FLIGHT_WAITING, /* in a call, and it has waited long enough to sleep */
    HOOP_FLIGHT_FAILED,  /* its latest call has failed */
    HOOP_FLIGHT_LEFT     /* has left in peace */
};

/* One operation. */
struct hoop_flight_call {
    uint64_t sequence;       /* 1, 2, 3, …; 0: a message between two ranks */
    enum hoop_status status; /* HOOP_AGAIN: under way */
    int device;              /* 1: given to the rank's device, which works on its own */
    double age, seconds;     /* since it began; that it took. -1: unknown. As exact as the kernel's tick, 1 to 10 ms */
    char what[160];          /* "all_reduce of 1024 float32, sum" */
    char plan[16];           /* the algorithm: "ring"; "" if unknown */
    char wait
        [96]; /* its latest wait that was long enough to sleep: "data from rank 3 in step 5 of lane 0"; "" if none */
};

struct hoop_flight_rank {
    enum hoop_flight_state state;
    int process;                  /* pid as the rank itself sees it; 0: unknown */
    int here;                     /* 1: on this host */
    int waits_for;                /* the rank that it waits for; -1: none */
    double waits;                 /* seconds that it has; -1: unknown */
    uint64_t operations;          /* that its recorder has seen */
    struct hoop_flight_call call; /* the latest */
};

struct hoop_flight_facts {
    int ranks;
    int dumped;        /* 1: read from a file */
    char verdict[512]; /* why the communicator has failed; "" if it has not */
};

/* Take a snapshot.
 *
 * flight       receives it, owned by the caller until hoop_flight_close; unchanged on failure.
 * descriptor   open for reading: the shared memory, or a file that was written; stays the caller's.
 * Blocking: reads some hundred KiB.   Threads: any.
 * Errors: HOOP_ERR_ARG (it is neither, or of another version of hoop), HOOP_ERR_SYSTEM, HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_flight_open(struct hoop_flight **flight, int descriptor);

/* Free it. NULL is allowed.
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API void hoop_flight_close(struct hoop_flight *flight);

/* The communicator as a whole.
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API void hoop_flight_ask(const struct hoop_flight *flight, struct hoop_flight_facts *facts);

/* One rank of it.
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_ARG (there is no such rank). */
HOOP_API enum hoop_status hoop_flight_rank(const struct hoop_flight *flight, int rank, struct hoop_flight_rank *facts);

/* An operation of a rank of this host: back 0 is the latest, 1 the one before, …
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_ARG (no such rank, or it is not known so far back). */
HOOP_API enum hoop_status hoop_flight_call(const struct hoop_flight *flight, int rank, int back,
                                           struct hoop_flight_call *call);

/* Who keeps the others waiting?
 *
 * late    ranks entries (hoop_flight_facts), receive the numbers of those ranks.
 * why     receives a sentence that says how that is known, or why nobody is late; cut to size bytes.
 * Returns how many they are.
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API int hoop_flight_late(const struct hoop_flight *flight, int *late, char *why, size_t size);

#ifdef __cplusplus
}
#endif
#endif
