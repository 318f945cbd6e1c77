// SPDX-License-Identifier: BSD-3-Clause
/* Offer, locate, work, let go. */
#include "exec/direct.h"

#include <sched.h>

#include "base/clock.h"
#include "base/status.h"
#include "dtype/dtype.h"
#include "health/monitor.h"
#include "health/verdict.h"

static const uint64_t patience = 100000000; /* ns that a living peer has to let go after a failure */

/* ---- who needs what of whom ---- */

static bool needs_in(const struct hoop_flat_call *call, int rank)
{
    return hoop_coll_shape(call->coll)->in == HOOP_ROOT_ONLY ? rank == call->root : call->coll != HOOP_GATHER;
}

static bool needs_out(const struct hoop_flat_call *call, int rank)
{
    return call->coll == HOOP_ALL_REDUCE ||
           ((call->coll == HOOP_REDUCE || call->coll == HOOP_GATHER) && rank == call->root);
}

static size_t held(const struct hoop_flat_call *call, enum hoop_holds holds)
{
    return holds == HOOP_OWN_BLOCK ? call->count * hoop_type_size(call->type) : call->vector;
}

bool hoop_direct_offer(const struct hoop_board *board, const struct hoop_flat_call *call, struct hoop_offer *offer)
{
    const struct hoop_coll_shape *shape = hoop_coll_shape(call->coll);
    const struct hoop_offer nothing = {HOOP_NOWHERE, HOOP_NOWHERE};
    size_t in = 0, out = 0;

    *offer = nothing;
    if (call->coll == HOOP_ALL_TO_ALL && call->in_place) /* blocks would change places under the readers' eyes */
        return false;
    if (call->user) /* its elements may not end where blocks do */
        return false;
    if ((needs_in(call, board->rank) && !hoop_board_owns(board, call->in, held(call, shape->in), &in)) ||
        (needs_out(call, board->rank) && !hoop_board_owns(board, call->out, held(call, shape->out), &out)))
        return false;
    *offer = (struct hoop_offer){in, out};
    return true;
}

/* Is it inside that rank's heap, as far as the call reaches? A peer's word is not taken on trust. */
bool hoop_direct_inside(const struct hoop_board *board, int rank, uint64_t offset, size_t bytes)
{
    const uint64_t from = hoop_board_heap_offset(board, rank), heap = board->shape.heap;

    return offset >= from && offset - from <= heap && bytes <= heap - (offset - from);
}

/* What the slot says, and whether it suffices. */
static bool read_offer(const struct hoop_flat *flat, const struct hoop_flat_call *call, int rank,
                       struct hoop_offer *offer)
{
    const struct hoop_board *board = flat->board;
    const struct hoop_coll_shape *shape = hoop_coll_shape(call->coll);

    memcpy(offer, flat->inputs[rank], sizeof *offer);
    return offer->in != HOOP_NOWHERE &&
           (!needs_in(call, rank) || hoop_direct_inside(board, rank, offer->in, held(call, shape->in))) &&
           (!needs_out(call, rank) || hoop_direct_inside(board, rank, offer->out, held(call, shape->out)));
}

bool hoop_direct_locate(struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    const struct hoop_board *board = flat->board;
    const bool from_root = hoop_coll_shape(call->coll)->in == HOOP_ROOT_ONLY;
    const int first = from_root ? call->root : 0, end = from_root ? call->root + 1 : board->shape.ranks;
    struct hoop_offer offer;

    for (int rank = first; rank < end; rank++)
        if (!read_offer(flat, call, rank, &offer))
            return false;
    for (int rank = first; rank < end; rank++) {
        memcpy(&offer, flat->inputs[rank], sizeof offer);
        flat->inputs[rank] = board->base + offer.in;
        flat->outputs[rank] = board->base + offer.out;
    }
    return true;
}

/* ---- moving and combining ---- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static enum hoop_status standing(const struct hoop_flat *flat)
{
    return hoop_verdict_stands(flat->board) ? hoop_verdict_status(hoop_verdict_get(flat->board)) : HOOP_OK;
}

static enum hoop_status copy(const struct hoop_flat *flat, const struct hoop_flat_call *call, void *to,
                             const void *from, size_t bytes)
{
    enum hoop_status status = HOOP_OK;

    if (to == from)
        return HOOP_OK;
    for (size_t at = 0; at < bytes && (status = standing(flat)) == HOOP_OK; at += HOOP_DIRECT_BLOCK) {
        const size_t step = least(bytes - at, HOOP_DIRECT_BLOCK);
        if (hoop_flat_streams(flat, call))
            hoop_kernel_copy_past((unsigned char *)to + at, (const unsigned char *)from + at, step);
        else
            hoop_kernel_copy((unsigned char *)to + at, (const unsigned char *)from + at, step);
    }
    return status;
}

/* Combine a block of all inputs, at the cursor, into one place. */
void hoop_direct_combine(const struct hoop_flat *flat, const struct hoop_flat_call *call, void *to, size_t count)
{
    const int ranks = flat->board->shape.ranks;

    if (call->op == HOOP_AVG)
        hoop_kernel_average_many(to, flat->cursor, ranks, count, call->type, ranks);
    else
        hoop_kernel_reduce_many(to, flat->cursor, ranks, count, call->type, call->op);
}

/* The same by a block of our own where the result is to pass the caches by. */
static void combine_past(struct hoop_flat *flat, const struct hoop_flat_call *call, void *to, size_t count)
{
    if (!hoop_flat_streams(flat, call)) {
        hoop_direct_combine(flat, call, to, count);
        return;
    }
    hoop_direct_combine(flat, call, flat->block, count);
    hoop_kernel_copy_past(to, flat->block, count * hoop_type_size(call->type));
}

/* The same into all outputs, `at` bytes from their start. An output may be an input: a block is read before it is written. */
static void combine_for_all(struct hoop_flat *flat, const struct hoop_flat_call *call, size_t at, size_t count)
{
    const int ranks = flat->board->shape.ranks, own = flat->board->rank;
    const size_t bytes = count * hoop_type_size(call->type);
    unsigned char *const to = (unsigned char *)flat->outputs[own] + at;

    if (hoop_flat_streams(flat, call)) {
        hoop_direct_combine(flat, call, flat->block, count);
        for (int rank = 0; rank < ranks; rank++)
            hoop_kernel_copy_past((unsigned char *)flat->outputs[rank] + at, flat->block, bytes);
        return;
    }
    if (ranks == 2 && call->op != HOOP_AVG) {
        hoop_kernel_reduce_two(to, (unsigned char *)flat->outputs[1 - own] + at, flat->cursor[0], flat->cursor[1],
                               count, call->type, call->op);
        return;
    }
    hoop_direct_combine(flat, call, to, count);
    for (int rank = 0; rank < ranks; rank++)
        if (rank != own)
            hoop_kernel_copy((unsigned char *)flat->outputs[rank] + at, to, bytes);
}

/* Elements [first, end) of the inputs, into all outputs at the same place, or into `to` from its start (not NULL). */
static enum hoop_status reduce(struct hoop_flat *flat, const struct hoop_flat_call *call, size_t first, size_t end,
                               unsigned char *to)
{
    const size_t element = hoop_type_size(call->type),
                 most = (hoop_flat_streams(flat, call) ? HOOP_DIRECT_STREAM : HOOP_DIRECT_BLOCK) / element;
    enum hoop_status status = HOOP_OK;

    for (size_t i = first; i < end && (status = standing(flat)) == HOOP_OK; i += most) {
        const size_t count = least(end - i, most);

        for (int rank = 0; rank < flat->board->shape.ranks; rank++)
            flat->cursor[rank] = (const unsigned char *)flat->inputs[rank] + i * element;
        if (to)
            combine_past(flat, call, to + (i - first) * element, count);
        else
            combine_for_all(flat, call, i * element, count);
    }
    return status;
}

size_t hoop_direct_slice(const struct hoop_flat *flat, const struct hoop_flat_call *call, size_t count, int rank)
{
    const size_t ranks = (size_t)flat->board->shape.ranks, line = HOOP_LINE / hoop_type_size(call->type);
    const size_t lines = (count + line - 1) / line;

    return least(count, (lines / ranks * (size_t)rank + least(lines % ranks, (size_t)rank)) * line);
}

/* ---- the collectives ---- */

static enum hoop_status reduce_own_slice(struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    const size_t first = hoop_direct_slice(flat, call, call->count, flat->board->rank),
                 end = hoop_direct_slice(flat, call, call->count, flat->board->rank + 1);

    if (call->coll == HOOP_ALL_REDUCE)
        return reduce(flat, call, first, end, NULL);
    return reduce(flat, call, first, end,
                  (unsigned char *)flat->outputs[call->root] + first * hoop_type_size(call->type));
}

/* Block `of` of each rank's input becomes the rank's block of our output. All begin with another rank. */
static enum hoop_status collect(struct hoop_flat *flat, const struct hoop_flat_call *call, int of)
{
    const int ranks = flat->board->shape.ranks;
    const size_t block = call->count * hoop_type_size(call->type);
    enum hoop_status status = HOOP_OK;

    for (int i = 0; i < ranks && status == HOOP_OK; i++) {
        const int rank = (flat->board->rank + i) % ranks;
        status = copy(flat, call, (unsigned char *)call->out + (size_t)rank * block,
                      (const unsigned char *)flat->inputs[rank] + (size_t)of * block, block);
    }
    return status;
}

static enum hoop_status work(struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    const size_t own = (size_t)flat->board->rank, block = call->count * hoop_type_size(call->type);

    switch (call->coll) {
    case HOOP_ALL_REDUCE:
    case HOOP_REDUCE:
        return reduce_own_slice(flat, call);
    case HOOP_REDUCE_SCATTER:
        return reduce(flat, call, own * call->count, (own + 1) * call->count, call->out);
    case HOOP_ALL_GATHER:
        return collect(flat, call, 0);
    case HOOP_ALL_TO_ALL:
        return collect(flat, call, flat->board->rank);
    case HOOP_GATHER:
        return copy(flat, call, (unsigned char *)flat->outputs[call->root] + own * block, call->in, block);
    case HOOP_BROADCAST:
        return copy(flat, call, call->out, flat->inputs[call->root], block);
    case HOOP_SCATTER:
        return copy(flat, call, call->out, (const unsigned char *)flat->inputs[call->root] + own * block, block);
    case HOOP_BARRIER:
    case HOOP_COLLS:
        break;
    }
    return hoop_fail(HOOP_ERR_INTERNAL, "%s cannot run in place of its peers", hoop_coll_name(call->coll));
}

/* ---- the end ---- */

static bool has_finished(const struct hoop_flat *flat, const struct hoop_flat_call *call, int rank)
{
    return atomic_load_explicit(&hoop_board_card(flat->board, rank)->finished, memory_order_acquire) >= call->sequence;
}

static enum hoop_status await_all(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait)
{
    for (int rank = 0; rank < flat->board->shape.ranks; rank++)
        while (!has_finished(flat, call, rank)) {
            hoop_wait_for(wait, HOOP_AWAIT_END, rank);
            enum hoop_status status = hoop_wait_step(wait);
            if (status != HOOP_OK)
                return status;
        }
    hoop_wait_moved(wait);
    return HOOP_OK;
}

/* Can the rank still write into our output? Who has not started the call yet sees the verdict before it writes. */
static bool may_write(const struct hoop_flat *flat, const struct hoop_flat_call *call, int rank)
{
    struct hoop_card *card = hoop_board_card(flat->board, rank);

    return atomic_load(&card->started) >= call->sequence && !has_finished(flat, call, rank) &&
           !hoop_health_gone(flat->board, rank);
}

/* The call has failed: our output is ours again only when nobody writes into it any more. */
static void take_back(const struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    const uint64_t deadline = hoop_now() + patience;

    if (!needs_out(call, flat->board->rank))
        return;
    HOOP_ATOMIC_FENCE();
    for (int rank = 0; rank < flat->board->shape.ranks; rank++)
        while (rank != flat->board->rank && may_write(flat, call, rank)) {
            if (hoop_now() > deadline) {
                hoop_board_detach(flat->board, call->out, call->vector);
                return;
            }
            sched_yield();
        }
}

enum hoop_status hoop_direct_run(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait)
{
    const int own = flat->board->rank;

    hoop_wait_settle(wait); /* the work may take long */
    enum hoop_status status = work(flat, call);
    flat->way = HOOP_FLAT_DIRECT;
    if (hoop_flat_streams(flat, call))
        hoop_kernel_copies_done();
    atomic_store_explicit(&hoop_board_card(flat->board, own)->finished, call->sequence, memory_order_release);
    hoop_wait_owe(wait);
    if (status == HOOP_OK && (needs_in(call, own) || needs_out(call, own)))
        status = await_all(flat, call, wait);
    HOOP_ATOMIC_FENCE();
    if (status ==
        HOOP_OK) /* who gave up has finished, too, and lent memory may have been taken back while we read it */
        status = standing(flat);
    if (status != HOOP_OK)
        take_back(flat, call);
    return status;
}
