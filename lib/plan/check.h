// SPDX-License-Identifier: BSD-3-Clause
/* Inside of the checker: what its parts share. See check.c for the idea. */
#ifndef HOOP_PLAN_CHECK_H
#define HOOP_PLAN_CHECK_H

#include "hoop/plan.h"

/* ---- reduction expressions (check_expr.c) ----
 *
 * A value's history is an expression over the ranks' contributions: x3, or (x0 op x1) op x3, … Equal expressions
 * get equal numbers (hash-consing; a op b is b op a, unless operands must keep their sides), so comparing two histories is comparing two numbers, and the
 * set of ranks in an expression is made only once. 0 is the undefined value; 1 … ranks are the contributions. */

struct expr {
    uint32_t left, right;
    uint32_t parts;   /* contributions in it */
    uint32_t ordered; /* k: it is ((x0 op x1) op …) op x(k-1); 0: another order */
};

struct expr_table {
    struct expr *expr;
    uint64_t *set; /* words of 64 ranks each, `words` per expression */
    uint32_t *slot;
    uint32_t leaves, words, used, room, slots;
    bool strict; /* a op b is not b op a */
};

enum { EXPR_UNDEFINED = 0, EXPR_NO_MEMORY = UINT32_MAX, EXPR_OVERLAP = UINT32_MAX - 1 };

bool expr_table_open(struct expr_table *table, uint32_t ranks, bool strict);
void expr_table_close(struct expr_table *table);
/* The expression a op b; EXPR_OVERLAP if a contribution is in both, EXPR_NO_MEMORY. */
uint32_t expr_combine(struct expr_table *table, uint32_t a, uint32_t b);
/* A rank that is in both. */
uint32_t expr_common_rank(const struct expr_table *table, uint32_t a, uint32_t b);

/* ---- the state of a proof ---- */

/* What a chunk's slice holds. */
struct cell {
    uint32_t expr;
    uint32_t origin; /* slice * grid + chunk that the data are of */
    uint32_t lent;   /* sends that still read it */
};

struct message {
    uint32_t expr, origin;
    uint32_t depth : 31; /* length of the chain of messages that ends with it */
    uint32_t joined : 1; /* a further part of a bundle */
    uint32_t lender;     /* the cell it was lent from, or NOT_LENT */
};

enum { NOT_LENT = UINT32_MAX };

/* One direction between two ranks in one lane: a queue of at most `credit` messages. */
struct link {
    uint32_t sender, receiver; /* threads */
    uint32_t head, count;
    uint32_t sent_depth : 31; /* of the latest message, with all its parts */
};

enum wait { WAIT_NOT, WAIT_ROOM, WAIT_DATA, WAIT_LENT, WAIT_AFTER };

/* One lane of one rank. Thread number: rank * lanes + lane. */
struct thread {
    const struct hoop_step *step;
    uint32_t steps, next, slice;
    uint32_t depth;
    uint32_t passing; /* expression that goes on without being stored */
    uint32_t passing_origin;
    uint32_t waits_for;  /* link, cell or thread */
    uint32_t first_step; /* number of its step 0 in depth_at */
    uint8_t wait;        /* enum wait */
    bool queued;
};

struct rank_state {
    uint32_t first_cell;               /* IN slices, OUT slices, TMP */
    uint32_t alias_first, alias_count; /* chunks of IN that are OUT */
    uint32_t waiting_lent, waiting_after;
};

struct proof {
    struct hoop_plan *const *plan;
    struct hoop_check *check;
    struct hoop_problem problem; /* of rank 0 */
    uint32_t ranks, lanes, grid, tmp, slices, credit;
    uint32_t class_chunks; /* chunks c and d have equal size for every count if they are equal mod this */
    bool barrier, failed;
    enum hoop_status status;

    struct expr_table exprs;
    struct rank_state *rank;
    struct thread *thread;
    struct cell *cell;
    uint32_t *link_number; /* (lane * ranks + source) * ranks + destination; 0: no such link */
    struct link *link;     /* from 1 */
    struct message *message;
    uint32_t links;
    uint64_t *known; /* barrier: the ranks each thread knows to have entered, then those each message tells */
    uint32_t known_words;
    uint32_t *ready, ready_count; /* threads to run: a stack */
    uint32_t *depth_at;           /* depth after each step of slice 0, where plans use AFTER; else NULL */
    uint32_t depth;
};

/* Record the first fault: "rank 2 lane 0 slice 1 step 4 (recv 1 out 3): …". thread NULL: no place. */
void proof_fault(struct proof *proof, const struct thread *thread, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
/* The same for a place outside of the run. */
void proof_fault_at(struct proof *proof, uint32_t rank, uint32_t lane, uint32_t step, const char *format, ...)
    __attribute__((format(printf, 5, 6), cold));

static inline bool proof_in_blocks(const struct proof *proof)
{
    return hoop_coll_shape(proof->problem.coll)->blocks;
}

static inline uint32_t proof_class(const struct proof *proof, unsigned buffer, uint32_t chunk)
{
    if (buffer == HOOP_TMP)
        chunk %= proof->grid;
    return proof->class_chunks == proof->grid ? chunk : chunk % proof->class_chunks;
}

/* The cell of a buffer's chunk in a slice. */
static inline uint32_t proof_cell(const struct proof *proof, const struct rank_state *rank, unsigned buffer,
                                  uint32_t chunk, uint32_t slice)
{
    const uint32_t one_buffer = proof->grid * proof->slices;

    if (buffer == HOOP_TMP)
        return rank->first_cell + 2 * one_buffer + chunk;
    const bool out = buffer == HOOP_OUT || chunk - rank->alias_first < rank->alias_count;
    return rank->first_cell + (out ? one_buffer : 0) + slice * proof->grid + chunk;
}

/* Does the rank's IN or OUT have the chunk at all? */
bool proof_has_chunk(const struct proof *proof, uint32_t rank, enum hoop_buffer buffer, uint32_t chunk);

/* The parts of the proof; each stops at the first fault. */
void proof_check_shape(struct proof *proof);  /* check_shape.c: heads and steps, each by itself */
void proof_check_races(struct proof *proof);  /* check_race.c: lanes of a rank against each other */
void proof_run(struct proof *proof);          /* check_run.c: all ranks together */
void proof_check_result(struct proof *proof); /* check_result.c: what came of it, and its cost */

#endif
