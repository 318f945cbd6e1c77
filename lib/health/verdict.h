// SPDX-License-Identifier: BSD-3-Clause
/* The verdict: the one cause for which a communicator is dead, the same on every rank.
 *
 * It is one 64-bit word on the board. Who notices a failure writes its verdict there if the word is still 0; the first
 * one stands, and everybody who waits reads it. So all ranks name the same culprit, and the errors that a failure
 * causes in turn do not hide it.
 */
#ifndef HOOP_HEALTH_VERDICT_H
#define HOOP_HEALTH_VERDICT_H

#include "mem/board.h"

enum hoop_verdict_kind {
    HOOP_VERDICT_NONE,
    HOOP_VERDICT_DIED,     /* rank a's process is gone */
    HOOP_VERDICT_SILENT,   /* rank a's process shows no sign of life */
    HOOP_VERDICT_LEFT,     /* rank a destroyed its communicator while others still called on it */
    HOOP_VERDICT_MISMATCH, /* ranks a and b made different calls */
    HOOP_VERDICT_ABORTED,  /* rank a called hoop_comm_abort */
    HOOP_VERDICT_LATE, /* rank a was late by more than HOOP_TIMEOUT; b noticed. a == b: nobody is late, yet nothing moves */
    HOOP_VERDICT_FAILED, /* rank a failed by itself (no memory, a bug) inside a call */
    HOOP_VERDICT_PAIR,   /* rank a sends another message than rank b expects */
    HOOP_VERDICT_DAMAGED /* the word holds no verdict: somebody wrote over the shared memory */
};

struct hoop_verdict {
    enum hoop_verdict_kind kind;
    int a, b;
    unsigned sequence; /* of the call, modulo 2^16 */
};

/* Write the verdict if there is none yet, and wake every rank. Returns the one that stands. */
struct hoop_verdict hoop_verdict_pass(struct hoop_board *board, struct hoop_verdict verdict);

/* The verdict's word as it stands on the board, and one that comes from another host's: it stands here if none did. */
uint64_t hoop_verdict_word(const struct hoop_board *board);
void hoop_verdict_take(struct hoop_board *board, uint64_t word);

/* The standing verdict; kind HOOP_VERDICT_NONE if there is none. */
struct hoop_verdict hoop_verdict_get(const struct hoop_board *board);

static inline bool hoop_verdict_stands(const struct hoop_board *board)
{
    return atomic_load_explicit(&board->head->verdict, memory_order_relaxed) != 0;
}

/* The status that calls return under this verdict. */
enum hoop_status hoop_verdict_status(struct hoop_verdict verdict);

/* The sentence for hoop_last_error, as rank `board->rank` sees it. */
void hoop_verdict_text(const struct hoop_board *board, struct hoop_verdict verdict, char *text, size_t size);

/* "all_reduce of 1024 float32, sum, in place" */
void hoop_call_text(const struct hoop_call *call, char *text, size_t size);

#endif
