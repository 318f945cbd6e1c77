// SPDX-License-Identifier: BSD-3-Clause
/* Publish, read, combine. */
#include "exec/flat.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "exec/direct.h"
#include "exec/staged.h"
#include "health/verdict.h"
#include "mem/last_cache.h"

enum {
    SLOT_STORES_LEAST = 1024, /* bytes: less than that is stored soon enough in any way */
    PAST_FOR = 64             /* stores, before it is looked again */
};

_Static_assert((int)HOOP_DIRECT_STREAM <= (int)HOOP_FLAT_BLOCK, "what passes the caches is put together in the block");

/* How many whole vectors' worth of memory that holds, of all ranks together. */
static size_t vectors(enum hoop_holds holds, size_t ranks)
{
    return holds == HOOP_WHOLE ? ranks : 1;
}

size_t hoop_flat_stream_least(size_t cache, size_t ranks, enum hoop_coll coll)
{
    const struct hoop_coll_shape *shape = hoop_coll_shape(coll);

    return cache / 4 * 3 / (vectors(shape->in, ranks) + vectors(shape->out, ranks));
}

enum hoop_status hoop_flat_init(struct hoop_flat *flat, struct hoop_board *board, size_t lend_least)
{
    const size_t ranks = (size_t)board->shape.ranks, cache = hoop_last_cache_bytes();

    *flat = (struct hoop_flat){.board = board,
                               .lend_least = lend_least,
                               .slot_stores = {.judge_every = 8, .slow_below = 3}, /* the clock would be felt */
                               .stage_stores = {.judge_every = 1, .slow_below = 6},
                               .inputs = hoop_calloc(ranks, sizeof(void *)),
                               .cursor = hoop_calloc(ranks, sizeof(void *)),
                               .outputs = hoop_calloc(ranks, sizeof(void *)),
                               .block = hoop_calloc_aligned(HOOP_LINE, 1, HOOP_FLAT_BLOCK)};
    for (int coll = 0; coll < HOOP_COLLS; coll++)
        flat->stream_least[coll] = hoop_flat_stream_least(cache, ranks, (enum hoop_coll)coll);
    return flat->inputs && flat->cursor && flat->outputs && flat->block ? HOOP_OK : HOOP_ERR_MEMORY;
}

void hoop_flat_free(struct hoop_flat *flat)
{
    hoop_free(flat->inputs);
    hoop_free(flat->cursor);
    hoop_free(flat->outputs);
    hoop_free(flat->block);
    *flat = (struct hoop_flat){0};
}

/* *last: the rank that has started least, if not all have. */
static bool all_started(struct hoop_flat *flat, uint64_t need, int *last)
{
    uint64_t floor = UINT64_MAX;

    if (flat->floor >= need)
        return true;
    for (int rank = 0; rank < flat->board->shape.ranks; rank++) {
        const uint64_t started =
            atomic_load_explicit(&hoop_board_card(flat->board, rank)->started, memory_order_acquire);
        if (started < floor) {
            floor = started;
            *last = rank;
        }
    }
    flat->floor = floor;
    return floor >= need;
}

enum hoop_status hoop_flat_await_start(struct hoop_flat *flat, uint64_t need, struct hoop_wait *wait)
{
    int last = -1;

    if (all_started(flat, need, &last))
        return HOOP_OK;
    hoop_wait_owe(wait); /* they may wait for our `started` as we do for theirs */
    while (!all_started(flat, need, &last)) {
        hoop_wait_for(wait, HOOP_AWAIT_START, last);
        enum hoop_status status = hoop_wait_step(wait);
        if (status != HOOP_OK)
            return status;
    }
    hoop_wait_moved(wait);
    return HOOP_OK;
}

void hoop_stores_copy(struct hoop_stores *stores, void *to, const void *from, size_t bytes)
{
    if (bytes == 0)
        return;
    if (stores->past_for > 0) {
        stores->past_for--;
        hoop_kernel_copy_past(to, from, bytes);
        hoop_kernel_copies_done();
        return;
    }
    if (stores->slow == 0 && ++stores->unjudged < stores->judge_every) {
        hoop_kernel_copy(to, from, bytes);
        return;
    }
    const uint64_t begin = hoop_now();
    hoop_kernel_copy(to, from, bytes);
    stores->unjudged = 0;
    stores->slow = bytes < (hoop_now() - begin) * stores->slow_below ? stores->slow + 1 : 0;
    if (stores->slow > 1)
        stores->past_for = PAST_FOR;
}

static void publish_vector(struct hoop_flat *flat, struct hoop_flat_slot *slot, const struct hoop_flat_call *call)
{
    if (call->published < SLOT_STORES_LEAST)
        hoop_kernel_copy(slot->data, call->in, call->published);
    else
        hoop_stores_copy(&flat->slot_stores, slot->data, call->in, call->published);
}

/* Fill our slot: with the offer if there is one, else with the vector. */
static enum hoop_status publish(struct hoop_flat *flat, const struct hoop_flat_call *call,
                                const struct hoop_offer *offer, struct hoop_wait *wait)
{
    struct hoop_flat_slot *slot = hoop_board_flat(flat->board, flat->board->rank, call->sequence);
    /* the slot was last used HOOP_FLAT_SLOTS calls ago; who has started the call after that one has read it */
    const uint64_t need = call->sequence > HOOP_FLAT_SLOTS - 1 ? call->sequence - (HOOP_FLAT_SLOTS - 1) : 0;

    enum hoop_status status = hoop_flat_await_start(flat, need, wait);
    if (status != HOOP_OK)
        return status;
    slot->tag = call->tag;
    if (offer)
        memcpy(slot->data, offer, sizeof *offer);
    else
        publish_vector(flat, slot, call);
    HOOP_FAULT_POINT(SLOT);
    atomic_store_explicit(&slot->word, call->sequence << 1 | (offer != NULL), memory_order_release);
    HOOP_FAULT_POINT(SLOT_MARKED);
    hoop_wait_owe(wait);
    return HOOP_OK;
}

enum hoop_status hoop_flat_put(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait)
{
    flat->way = HOOP_FLAT_LINES;
    return publish(flat, call, NULL, wait);
}

/* Wait for a rank's slot and give its data, and whether they are an offer. */
static enum hoop_status read_slot(struct hoop_flat *flat, const struct hoop_flat_call *call, int rank,
                                  struct hoop_wait *wait, bool *offered)
{
    const struct hoop_flat_slot *slot = hoop_board_flat(flat->board, rank, call->sequence);
    uint64_t word;

    while ((word = atomic_load_explicit(&slot->word, memory_order_acquire)) >> 1 != call->sequence) {
        hoop_wait_for(wait, HOOP_AWAIT_DATA, rank);
        enum hoop_status status = hoop_wait_step(wait);
        if (status != HOOP_OK)
            return status;
    }
    hoop_wait_moved(wait);
    if (slot->tag != call->tag) {
        const int own = flat->board->rank, a = rank < own ? rank : own, b = rank < own ? own : rank;
        return hoop_verdict_status(hoop_verdict_pass(
            flat->board, (struct hoop_verdict){HOOP_VERDICT_MISMATCH, a, b, (unsigned)call->sequence}));
    }
    flat->inputs[rank] = slot->data;
    *offered = word & 1;
    return HOOP_OK;
}

/* Read all ranks' slots, our own too; afterwards every rank is known to have started this call. */
static enum hoop_status read_all(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait,
                                 int *offers)
{
    *offers = 0;
    for (int rank = 0; rank < flat->board->shape.ranks; rank++) {
        bool offered;
        enum hoop_status status = read_slot(flat, call, rank, wait, &offered);
        if (status != HOOP_OK)
            return status;
        *offers += offered;
    }
    flat->floor = call->sequence;
    return HOOP_OK;
}

static void combine(struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    const int ranks = flat->board->shape.ranks;

    if (__builtin_expect(call->user != NULL, 0))
        hoop_user_reduce_many(call->user, call->out, flat->inputs, ranks,
                              call->user->element ? call->count / call->user->element : call->count, call->type);
    else if (call->op == HOOP_AVG)
        hoop_kernel_average_many(call->out, flat->inputs, ranks, call->count, call->type, ranks);
    else
        hoop_kernel_reduce_many(call->out, flat->inputs, ranks, call->count, call->type, call->op);
}

static void gather(struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    const size_t bytes = call->count * hoop_type_size(call->type);

    for (int rank = 0; rank < flat->board->shape.ranks; rank++)
        hoop_kernel_copy((unsigned char *)call->out + (size_t)rank * bytes, flat->inputs[rank], bytes);
}

static void skip_to_own_block(struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    const size_t skip = (size_t)flat->board->rank * call->count * hoop_type_size(call->type);

    for (int rank = 0; rank < flat->board->shape.ranks; rank++)
        flat->inputs[rank] = (const unsigned char *)flat->inputs[rank] + skip;
}

/* What the vectors in all slots make. */
static void finish(struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    switch (call->coll) {
    case HOOP_ALL_TO_ALL:
        skip_to_own_block(flat, call);
        gather(flat, call);
        break;
    case HOOP_ALL_GATHER:
    case HOOP_GATHER:
        gather(flat, call);
        break;
    case HOOP_REDUCE_SCATTER:
        skip_to_own_block(flat, call);
        combine(flat, call);
        break;
    case HOOP_ALL_REDUCE:
    case HOOP_REDUCE:
        combine(flat, call);
        break;
    default:
        break;
    }
}

enum hoop_status hoop_flat_take(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait)
{
    int offers;

    enum hoop_status status = read_all(flat, call, wait, &offers);
    if (status != HOOP_OK)
        return status;
    if (!call->in_place && call->root < 0 && call->user == NULL) /* apart from the output, and not written just now */
        flat->inputs[flat->board->rank] = call->in;
    finish(flat, call);
    return HOOP_OK;
}

/* Broadcast and scatter: the root's slot is all there is to read. */
static enum hoop_status take_from_root(struct hoop_flat *flat, const struct hoop_flat_call *call,
                                       const struct hoop_offer *offer, struct hoop_wait *wait)
{
    const size_t bytes = call->count * hoop_type_size(call->type);
    const bool at_root = flat->board->rank == call->root;
    bool offered = offer != NULL;
    enum hoop_status status;

    if (at_root) {
        status = publish(flat, call, offer, wait);
        flat->inputs[call->root] = offer ? (const void *)offer : call->in;
    } else {
        hoop_wait_owe(wait); /* the root may wait for our `started` */
        status = read_slot(flat, call, call->root, wait, &offered);
    }
    if (status != HOOP_OK)
        return status;
    if (offered && hoop_direct_locate(flat, call))
        return hoop_direct_run(flat, call, wait);
    if (offered)
        return hoop_staged_fits(flat, call) ? hoop_staged_run(flat, call, wait) : HOOP_AGAIN;
    const unsigned char *from = flat->inputs[call->root];
    if (call->coll == HOOP_SCATTER)
        from += (size_t)flat->board->rank * bytes;
    if (call->out != from)
        hoop_kernel_copy(call->out, from, bytes);
    return HOOP_OK;
}

enum hoop_status hoop_flat_run(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait)
{
    const struct hoop_coll_shape *shape = hoop_coll_shape(call->coll);
    const int ranks = flat->board->shape.ranks;
    const bool lendable = call->vector >= flat->lend_least, fits = call->published <= flat->board->shape.flat,
               at_root = !shape->rooted || flat->board->rank == call->root;
    struct hoop_offer own = {HOOP_NOWHERE, HOOP_NOWHERE}, *offer = fits ? NULL : &own;
    int offers;

    flat->way = HOOP_FLAT_LINES;
    if (hoop_flat_is_plain(flat, call)) {
        const enum hoop_status status = publish(flat, call, NULL, wait);
        return status == HOOP_OK && at_root ? hoop_flat_take(flat, call, wait) : status;
    }
    if (lendable && hoop_direct_offer(flat->board, call, &own))
        offer = &own;
    else if (lendable && at_root && hoop_staged_fits(flat, call)) {
        const enum hoop_status status = hoop_staged_offer(flat, call, &own);
        if (status != HOOP_OK)
            return status;
    }
    if (shape->in == HOOP_ROOT_ONLY)
        return take_from_root(flat, call, offer, wait);
    enum hoop_status status = publish(flat, call, offer, wait);
    if (status != HOOP_OK || (!at_root && !lendable))
        return status;
    status = read_all(flat, call, wait, &offers);
    if (status != HOOP_OK)
        return status;
    if (offers == ranks && hoop_direct_locate(flat, call))
        return hoop_direct_run(flat, call, wait);
    if (offers > 0)
        return offers == ranks && hoop_staged_fits(flat, call) ? hoop_staged_run(flat, call, wait) : HOOP_AGAIN;
    if (at_root)
        finish(flat, call);
    return HOOP_OK;
}
