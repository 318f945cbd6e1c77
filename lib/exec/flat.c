// SPDX-License-Identifier: BSD-3-Clause
/* Publish, read, combine. */
#include "exec/flat.h"

#include "dtype/dtype.h"
#include "health/verdict.h"

size_t hoop_flat_bytes(const struct hoop_flat_call *call, int ranks)
{
    const size_t bytes = call->count * hoop_type_size(call->type);

    const struct hoop_coll_shape *shape = hoop_coll_shape(call->coll);

    if (call->coll == HOOP_BARRIER)
        return 0;
    if (!shape->blocks || shape->in == HOOP_OWN_BLOCK)
        return bytes;
    return bytes > SIZE_MAX / (size_t)ranks ? SIZE_MAX : bytes * (size_t)ranks;
}

void hoop_flat_ring_all(const struct hoop_board *board)
{
    atomic_thread_fence(memory_order_seq_cst);
    for (int rank = 0; rank < board->shape.ranks; rank++) {
        struct hoop_bell *bell = &hoop_board_card(board, rank)->bell;
        if (atomic_load_explicit(&bell->armed, memory_order_relaxed) && rank != board->rank)
            hoop_bell_wake(bell);
    }
}

static bool all_started(struct hoop_flat *flat, uint64_t need)
{
    uint64_t floor = UINT64_MAX;

    if (flat->floor >= need)
        return true;
    for (int rank = 0; rank < flat->board->shape.ranks; rank++) {
        const uint64_t started =
            atomic_load_explicit(&hoop_board_card(flat->board, rank)->started, memory_order_acquire);
        floor = started < floor ? started : floor;
    }
    flat->floor = floor;
    return floor >= need;
}

enum hoop_status hoop_flat_await_start(struct hoop_flat *flat, uint64_t need, struct hoop_wait *wait)
{
    if (all_started(flat, need))
        return HOOP_OK;
    hoop_flat_ring_all(flat->board); /* they may wait for our `started` as we do for theirs */
    while (!all_started(flat, need)) {
        enum hoop_status status = hoop_wait_step(wait);
        if (status != HOOP_OK)
            return status;
    }
    hoop_wait_moved(wait);
    return HOOP_OK;
}

static enum hoop_status publish(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait)
{
    struct hoop_flat_slot *slot = hoop_board_flat(flat->board, flat->board->rank, call->sequence);
    /* the slot was last used HOOP_FLAT_SLOTS calls ago; who has started the call after that one has read it */
    const uint64_t need = call->sequence > HOOP_FLAT_SLOTS - 1 ? call->sequence - (HOOP_FLAT_SLOTS - 1) : 0;

    enum hoop_status status = hoop_flat_await_start(flat, need, wait);
    if (status != HOOP_OK)
        return status;
    slot->tag = call->tag;
    hoop_kernel_copy(slot->data, call->in, hoop_flat_bytes(call, flat->board->shape.ranks));
    atomic_store_explicit(&slot->sequence, call->sequence, memory_order_release);
    hoop_flat_ring_all(flat->board);
    return HOOP_OK;
}

/* Wait for a rank's slot and give its data. */
static enum hoop_status read_slot(struct hoop_flat *flat, const struct hoop_flat_call *call, int rank,
                                  struct hoop_wait *wait, const unsigned char **data)
{
    const struct hoop_flat_slot *slot = hoop_board_flat(flat->board, rank, call->sequence);

    while (atomic_load_explicit(&slot->sequence, memory_order_acquire) != call->sequence) {
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
    *data = slot->data;
    return HOOP_OK;
}

/* Read all ranks' slots, our own too; afterwards every rank is known to have started this call. */
static enum hoop_status read_all(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait)
{
    for (int rank = 0; rank < flat->board->shape.ranks; rank++) {
        const unsigned char *data;
        enum hoop_status status = read_slot(flat, call, rank, wait, &data);
        if (status != HOOP_OK)
            return status;
        flat->inputs[rank] = data;
    }
    flat->floor = call->sequence;
    return HOOP_OK;
}

static void combine(struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    const int ranks = flat->board->shape.ranks;

    if (call->op == HOOP_AVG)
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

/* Broadcast and scatter: the root's slot is all there is to read. */
static enum hoop_status take_from_root(struct hoop_flat *flat, const struct hoop_flat_call *call,
                                       struct hoop_wait *wait)
{
    const size_t bytes = call->count * hoop_type_size(call->type);
    const unsigned char *from = call->in;

    if (flat->board->rank == call->root) {
        enum hoop_status status = publish(flat, call, wait);
        if (status != HOOP_OK)
            return status;
    } else {
        const unsigned char *data;
        hoop_flat_ring_all(flat->board); /* the root may wait for our `started` */
        enum hoop_status status = read_slot(flat, call, call->root, wait, &data);
        if (status != HOOP_OK)
            return status;
        from = data;
    }
    if (call->coll == HOOP_SCATTER)
        from += (size_t)flat->board->rank * bytes;
    if (call->out != from)
        hoop_kernel_copy(call->out, from, bytes);
    return HOOP_OK;
}

enum hoop_status hoop_flat_run(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait)
{
    if (hoop_coll_shape(call->coll)->in == HOOP_ROOT_ONLY)
        return take_from_root(flat, call, wait);
    enum hoop_status status = publish(flat, call, wait);
    if (status != HOOP_OK || (hoop_coll_shape(call->coll)->rooted && flat->board->rank != call->root))
        return status;
    status = read_all(flat, call, wait);
    if (status != HOOP_OK)
        return status;
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
    return HOOP_OK;
}
