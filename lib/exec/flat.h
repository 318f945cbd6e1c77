// SPDX-License-Identifier: BSD-3-Clause
/* The flat algorithm by hand, for small vectors on one host: every rank writes its vector into a slot of its own, with the
 * call's number and fingerprint in the same cache line, and reads the slots of those whose data it needs. One hop, no
 * acknowledgement, no reset.
 *
 * Each rank has HOOP_FLAT_SLOTS slots, used in turn by the call's number. A slot may be written again when every rank has
 * finished the call that used it last, which shows in the numbers of the calls that the ranks have started.
 *
 * From lend_least bytes on a rank whose buffers peers can reach puts into its slot where they lie, instead of the vector. If
 * all have done so, they work in each other's memory (direct.h). If not, an all-reduce or a broadcast goes over stages (staged.h).
 *
 * Gives the same bits as the plan of algorithm "flat"; only time would change without it.
 */
#ifndef HOOP_EXEC_FLAT_H
#define HOOP_EXEC_FLAT_H

#include "dtype/dtype.h"
#include "exec/wait.h"
#include "hoop/plan.h"

/* Where a rank's buffers lie on the board: 0 if the call does not need it, HOOP_NOWHERE if peers cannot reach it. */
struct hoop_offer {
    uint64_t in, out;
};

#define HOOP_NOWHERE UINT64_MAX

enum { HOOP_FLAT_BLOCK = 2048 };

enum hoop_flat_way { HOOP_FLAT_LINES, HOOP_FLAT_DIRECT, HOOP_FLAT_STAGED };

/* Stores into lines that peers have read and will read. Such a store must first take the line from the peer's cache. Between some
 * cores that takes so long, one line after the other, that it is better to write past the caches and let the peer read from memory:
 * by three to five times on two cores without a common cache; on others it is slower. So the time of ordinary stores decides. */
struct hoop_stores {
    unsigned judge_every, slow_below; /* copies; bytes a nanosecond */
    unsigned unjudged;                /* copies since the last one whose time was taken */
    unsigned slow;                    /* of those the latest ones that took long */
    unsigned past_for;                /* copies that are still to be made past the caches */
};

/* Copy so. Whoever sees a release store that follows sees the copy. */
void hoop_stores_copy(struct hoop_stores *stores, void *to, const void *from, size_t bytes);

struct hoop_flat {
    struct hoop_board *board;
    size_t lend_least;               /* bytes of the whole vector; SIZE_MAX: never */
    size_t stream_least[HOOP_COLLS]; /* bytes of the whole vector from which results pass the caches by */
    enum hoop_flat_way way;          /* of the latest call */
    /* staged.h */
    uint64_t pieces;  /* of vectors so far, the same on all ranks */
    size_t staged_at; /* where on the stages the next one goes, the same on all ranks */
    bool has_stages;  /* there are pages behind this rank's */
    bool sees_stages; /* and all ranks' are mapped */
    struct hoop_stores slot_stores, stage_stores;
    bool stages;         /* staged.h may be used */
    bool lends_input;    /* peers read this rank's input where it is */
    uint64_t floor;      /* every rank is known to have started this call */
    const void **inputs; /* one a rank, as all that follow */
    const void **cursor;
    void **outputs;
    unsigned char *block; /* HOOP_FLAT_BLOCK bytes of our own */
};

struct hoop_flat_call {
    enum hoop_coll coll;
    enum hoop_type type;
    enum hoop_op op;
    const struct hoop_user_op *user; /* instead of op, which then only moves in slots; NULL: op */
    int root;
    bool in_place;
    size_t count;     /* as the caller of the collective gave it; bytes where elements have a size of their own */
    size_t vector;    /* bytes of the whole vector */
    size_t published; /* bytes that a rank with data puts into its slot */
    const void *in;
    void *out;
    uint64_t sequence, tag;
};

/* Bytes of the whole vector from which results are better stored past a last cache of `cache` bytes: where the buffers of all ranks
 * that the call touches, each of which its owner writes or reads between two calls, fill three quarters of it. Pages fall on a cache's
 * sets at random, so of 16 ways some should overflow long before all are full: at a half one line in a thousand, at three quarters
 * one in fifty, at the whole one in ten (reckoned, not counted); and strangers may use it, too. On 2 processors of 32 MiB all_reduce
 * and all_to_all took the same time with either kind of stores at 5/8 to 3/4, and with ordinary ones 1.2 to 1.5 times as long at the
 * whole. Broadcast gained with 2 ranks only, all_gather now and then; reduce_scatter gained nothing up to the whole. */
size_t hoop_flat_stream_least(size_t cache, size_t ranks, enum hoop_coll coll);

/* Does the call store its results past the caches? */
static inline bool hoop_flat_streams(const struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    return call->vector >= flat->stream_least[call->coll];
}

/* Prepare for one communicator. Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_flat_init(struct hoop_flat *flat, struct hoop_board *board, size_t lend_least);
void hoop_flat_free(struct hoop_flat *flat);

/* Run the call. HOOP_AGAIN: not all ranks' buffers can be reached and the vectors do not fit into slots, or only some ranks put
 * them there: nothing was done, run a plan. All ranks get the same answer.
 * Blocking: until done or a verdict.   Errors: the verdict's; a tag that differs passes the verdict. */
enum hoop_status hoop_flat_run(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait);

/* Can the call only go through slots, with something from every rank? Then its two halves may be called apart, so that the caller can do
 * what nobody waits for between them: to put this rank's vector, and, on ranks that get a result, to take it from all.
 * Blocking and errors: as hoop_flat_run. */
static inline bool hoop_flat_is_plain(const struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    return call->vector < flat->lend_least && call->published <= flat->board->shape.flat &&
           hoop_coll_shape(call->coll)->in != HOOP_ROOT_ONLY;
}

enum hoop_status hoop_flat_put(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait);
enum hoop_status hoop_flat_take(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait);

/* Wait until every rank has started call `need` or a later one.
 * Blocking: until then or a verdict.   Errors: the verdict's. */
enum hoop_status hoop_flat_await_start(struct hoop_flat *flat, uint64_t need, struct hoop_wait *wait);

#endif
