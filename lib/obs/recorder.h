// SPDX-License-Identifier: BSD-3-Clause
/* Recorder: the latest operations of a rank, for reports after a failure and for whoever looks at a running job. It lies in the memory
 * that the ranks of a host share, so it can be read when its rank cannot be asked any more. A fixed ring, one writer, no locks, no
 * pointers: a reader may see the entry that is being written half done, which a report can bear. */
#ifndef HOOP_OBS_RECORDER_H
#define HOOP_OBS_RECORDER_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "hoop.h"

enum { HOOP_RECORDS = 1024, HOOP_RECORD_PLAN = 8 };

/* What a rank waits for. */
enum hoop_await {
    HOOP_AWAIT_NOTHING,
    HOOP_AWAIT_START, /* that the peer begins the call, or one before it */
    HOOP_AWAIT_DATA,  /* what the peer sends */
    HOOP_AWAIT_ROOM,  /* that the peer takes what was sent to it */
    HOOP_AWAIT_END,   /* that the peer has done with this rank's memory */
    HOOP_AWAIT_LANE,  /* another lane of its own */
    HOOP_AWAIT_AWAY   /* that the network takes what was sent */
};

/* And in which step of a plan, counted from 1 (0: no plan runs); in a word, so that it is written and read as a whole. */
struct hoop_where {
    enum hoop_await what;
    int peer; /* -1: nobody */
    unsigned lane, step, slice;
};

static inline uint64_t hoop_where_pack(struct hoop_where where)
{
    const uint64_t peer = (uint64_t)(where.peer + 1), step = where.step < 0xffff ? where.step : 0xffff,
                   slice = where.slice < 0xffff ? where.slice : 0xffff;

    return (uint64_t)where.what | (uint64_t)(where.lane & 0xff) << 3 | peer << 11 | step << 32 | slice << 48;
}

static inline struct hoop_where hoop_where_unpack(uint64_t word)
{
    return (struct hoop_where){.what = (enum hoop_await)(word & 7),
                               .lane = (unsigned)(word >> 3 & 0xff),
                               .peer = (int)(word >> 11 & 0x1fffff) - 1,
                               .step = (unsigned)(word >> 32 & 0xffff),
                               .slice = (unsigned)(word >> 48)};
}

/* Times are of CLOCK_MONOTONIC, in ns, as exact as the kernel's tick (1 to 10 ms): reading more would be felt in small calls. */
struct hoop_record {
    _Alignas(64) uint64_t sequence; /* of the call; 0: a message between two ranks */
    uint64_t count;
    uint64_t begun, ended;       /* ended 0: not yet, or too soon to say */
    uint64_t where;              /* hoop_where_pack of the latest wait that was long enough to sleep; 0: none */
    char plan[HOOP_RECORD_PLAN]; /* name of the algorithm, the rest zero */
    int32_t root;
    int16_t status; /* enum hoop_status; HOOP_AGAIN: under way */
    uint8_t coll, type, op, in_place, device;
};

_Static_assert(sizeof(struct hoop_record) == 64, "an entry is a cache line");

struct hoop_recorder {
    _Atomic uint64_t next;
    struct hoop_record record[HOOP_RECORDS];
};

/* The entry of an operation that begins; valid until HOOP_RECORDS later ones have begun. */
static inline struct hoop_record *hoop_record_begin(struct hoop_recorder *recorder)
{
    const uint64_t next = atomic_load_explicit(&recorder->next, memory_order_relaxed);

    atomic_store_explicit(&recorder->next, next + 1, memory_order_relaxed);
    return &recorder->record[next % HOOP_RECORDS];
}

static inline void hoop_record_name(struct hoop_record *record, const char *plan)
{
    memset(record->plan, 0, sizeof record->plan);
    memcpy(record->plan, plan, strnlen(plan, sizeof record->plan));
}

#endif
