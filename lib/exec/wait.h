// SPDX-License-Identifier: BSD-3-Clause
/* Waiting for peers on one host, in steps: poll for a while, then yield the core between polls, then sleep until a peer
 * rings. With more ranks than cores polling is useless, since the peer needs our core to go on.
 *
 * The one who waits polls, calls hoop_wait_step when nothing moved, and hoop_wait_moved when something did. Every few
 * milliseconds a step also looks at what can go wrong: a verdict, a dead or silent peer, a peer that made another
 * call, a deadline; so every wait ends.
 */
#ifndef HOOP_EXEC_WAIT_H
#define HOOP_EXEC_WAIT_H

#include "exec/spread.h"
#include "mem/board.h"
#include "obs/recorder.h"

enum hoop_wait_phase { HOOP_WAIT_SPIN, HOOP_WAIT_YIELD, HOOP_WAIT_ARM, HOOP_WAIT_SLEEP };

struct hoop_wait {
    struct hoop_board *board;
    int spins, yields;    /* polls before the next phase */
    double late, timeout; /* seconds; timeout 0: never */
    int descriptor; /* to sleep on, besides the bell: readable when something has come from another host; -1: none */
    int letterbox;  /* by which the bell is rung then */
    /* of the running call */
    uint64_t sequence; /* 0: sends and receives, which have no number */
    bool kernels;      /* kernels wait: who has made the call, but whose stream has not come to it, is late, too */
    uint64_t begun;    /* when the present wait, in which nothing moved, was first looked at; 0: not yet */
    uint64_t next_look, next_report;
    struct hoop_where where;    /* what the next step waits for, as far as its caller says it */
    struct hoop_record *record; /* where that is noted, besides the card; NULL: nowhere */
    enum hoop_wait_phase phase;
    int polls;                 /* in this phase */
    struct hoop_spread spread; /* for ranks that take turns on a processor; on: by whoever prepares the wait */
    bool owes;                 /* something of ours was published, and sleepers have not been woken for it */
    /* figures */
    uint64_t sleeps;
};

/* Prepare for one communicator. spin: seconds to poll before yielding; crowded: ranks outnumber cores. */
void hoop_wait_init(struct hoop_wait *wait, struct hoop_board *board, double spin, bool crowded, double late,
                    double timeout);

/* Sleep on a descriptor, too: readable when something has come from another host. It stays the caller's and outlives the waits.
 * Errors: HOOP_ERR_SYSTEM. */
enum hoop_status hoop_wait_add(struct hoop_wait *wait, int descriptor);

/* Nobody waits any more. Legal for one that is all zero. */
void hoop_wait_free(struct hoop_wait *wait);

/* A call begins. */
static inline void hoop_wait_begin(struct hoop_wait *wait, uint64_t sequence)
{
    wait->sequence = sequence;
    wait->begun = 0;
    wait->phase = HOOP_WAIT_SPIN;
    wait->polls = 0;
}

/* Wake every rank that sleeps: something of ours has been published. */
void hoop_wait_ring(struct hoop_wait *wait);

/* The same, but later: at the next step of waiting, or hoop_wait_settle. Waking needs a fence, which stands still until what was
 * published has left this core. Meanwhile the peers' news, which are most often there already, can be on their way. */
static inline void hoop_wait_owe(struct hoop_wait *wait)
{
    wait->owes = true;
}

static inline void hoop_wait_settle(struct hoop_wait *wait)
{
    if (wait->owes)
        hoop_wait_ring(wait);
}

/* The next steps wait for that, of that peer. */
static inline void hoop_wait_for(struct hoop_wait *wait, enum hoop_await what, int peer)
{
    wait->where = (struct hoop_where){.what = what, .peer = peer};
}

/* Nothing moved: spend some time. Returns HOOP_OK (poll again) or the verdict's status. */
enum hoop_status hoop_wait_step(struct hoop_wait *wait);

/* Look at what can go wrong with the call, and report or fail what takes too long; a few times a second it does something. For those
 * who have another way to wait. */
void hoop_wait_look(struct hoop_wait *wait);

/* The end of a wait that had come to sleeping. */
void hoop_wait_rise(struct hoop_wait *wait);

/* Something moved: the next wait begins anew. */
static inline void hoop_wait_moved(struct hoop_wait *wait)
{
    if (__builtin_expect(wait->phase >= HOOP_WAIT_ARM, 0))
        hoop_wait_rise(wait);
    wait->phase = HOOP_WAIT_SPIN;
    wait->polls = 0;
    wait->begun = 0;
}

#endif
