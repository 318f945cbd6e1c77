// SPDX-License-Identifier: BSD-3-Clause
/* Stage, sum, fetch; piece after piece. A broadcast needs no sum. */
#include "exec/staged.h"

#include "base/fault.h"
#include "base/status.h"
#include "exec/direct.h"
#include "health/verdict.h"

enum {
    STRIDE = 2048, /* bytes that are worked on while the next are on their way from the other side: see prefetch */
    PIECES = 4,    /* that a stage holds, one behind the other */
    /* Bytes of a broadcast: so few that the others soon begin to fetch, so many that they do not wait for each. With 2 to 8 ranks on two
     * processors 64 to 256 KiB took the same time, 512 KiB up to 1.4 times as long. */
    BROADCAST_PIECE = 65536
};

_Static_assert((int)STRIDE <= (int)HOOP_FLAT_BLOCK, "what passes the caches is put together in the block");

/* A part of the vector that is on the stages at one time. */
struct piece {
    size_t first, count; /* elements of the vector */
    size_t at;           /* bytes from the start of each stage */
    uint64_t number;     /* of all pieces on this communicator */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t element_of(const struct hoop_flat_call *call)
{
    return hoop_type_size(call->type);
}

/* Elements of a piece that is not the last. */
static size_t piece_most(const struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    const size_t part = flat->board->shape.stage / PIECES,
                 bytes = call->coll == HOOP_BROADCAST ? least(part, BROADCAST_PIECE) : part;

    return bytes / element_of(call);
}

static struct piece piece_at(const struct hoop_flat *flat, const struct hoop_flat_call *call, size_t first)
{
    const size_t stage = flat->board->shape.stage, count = least(call->count - first, piece_most(flat, call)),
                 bytes = count * element_of(call);

    return (struct piece){first, count, flat->staged_at + bytes > stage ? 0 : flat->staged_at, flat->pieces + 1};
}

/* Pieces follow each other on the stages, so that a line is written again only when it has left the first caches. */
static void end_piece(struct hoop_flat *flat, const struct hoop_flat_call *call, const struct piece *piece)
{
    const size_t end = piece->at + piece->count * element_of(call);

    flat->staged_at = (end + HOOP_LINE - 1) / HOOP_LINE * HOOP_LINE;
}

static unsigned char *stage_of(const struct hoop_flat *flat, const struct piece *piece, int rank,
                               enum hoop_stage_half stage)
{
    return hoop_board_stage(flat->board, rank, stage) + piece->at;
}

static const unsigned char *input(const struct hoop_flat_call *call, const struct piece *piece)
{
    return (const unsigned char *)call->in + piece->first * element_of(call);
}

static unsigned char *output(const struct hoop_flat_call *call, const struct piece *piece)
{
    return (unsigned char *)call->out + piece->first * element_of(call);
}

bool hoop_staged_fits(const struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    return (call->coll == HOOP_ALL_REDUCE || call->coll == HOOP_BROADCAST) && call->user == NULL && flat->stages &&
           call->published > flat->board->shape.flat;
}

/* ---- stage ---- */

/* What the others read: all but what this rank sums by itself. */
static void stage(struct hoop_flat *flat, const struct hoop_flat_call *call, const struct piece *piece)
{
    const int own = flat->board->rank;
    const bool sums = call->coll == HOOP_ALL_REDUCE;
    const size_t element = element_of(call), bytes = piece->count * element,
                 first = sums ? hoop_direct_slice(flat, call, piece->count, own) * element : bytes,
                 end = sums ? hoop_direct_slice(flat, call, piece->count, own + 1) * element : bytes;
    unsigned char *to = stage_of(flat, piece, own, HOOP_STAGE_IN);
    const unsigned char *from = input(call, piece);

    hoop_stores_copy(&flat->stage_stores, to, from, first);
    hoop_stores_copy(&flat->stage_stores, to + end, from + end, bytes - end);
}

static size_t stage_offset(const struct hoop_board *board, int rank, enum hoop_stage_half stage)
{
    return (size_t)(hoop_board_stage(board, rank, stage) - board->base);
}

static enum hoop_status reserve(struct hoop_flat *flat)
{
    struct hoop_board *board = flat->board;
    enum hoop_status status = HOOP_OK;

    for (int half = 0; half < HOOP_STAGES && status == HOOP_OK && !flat->has_stages; half++)
        status = hoop_board_reserve(board, stage_offset(board, board->rank, (enum hoop_stage_half)half),
                                    board->shape.stage, "the stage of an all_reduce");
    flat->has_stages = status == HOOP_OK;
    return status;
}

/* All have reserved theirs. */
static void populate(struct hoop_flat *flat)
{
    struct hoop_board *board = flat->board;

    for (int rank = 0; rank < board->shape.ranks && !flat->sees_stages; rank++)
        for (int half = 0; half < HOOP_STAGES; half++)
            hoop_board_populate(board, stage_offset(board, rank, (enum hoop_stage_half)half), board->shape.stage);
    flat->sees_stages = true;
}

enum hoop_status hoop_staged_offer(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_offer *offer)
{
    const struct piece piece = piece_at(flat, call, 0);
    size_t in;

    enum hoop_status status = reserve(flat);
    if (status != HOOP_OK)
        return status;
    flat->lends_input = hoop_board_owns(flat->board, call->in, call->vector, &in);
    *offer = (struct hoop_offer){flat->lends_input ? in : HOOP_NOWHERE, HOOP_NOWHERE};
    if (!flat->lends_input)
        stage(flat, call, &piece);
    return HOOP_OK;
}

/* ---- sum ---- */

/* Ask for lines in time; the processor by itself fetches too few ahead for what is as far away as another's stage. */
static void prefetch(const unsigned char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += HOOP_LINE)
        __builtin_prefetch(from + at);
}

/* Where a rank's part of the piece is to be read. */
static const unsigned char *summand(const struct hoop_flat *flat, const struct hoop_flat_call *call,
                                    const struct piece *piece, int rank)
{
    const unsigned char *lent = flat->inputs[rank];

    if (rank == flat->board->rank)
        return input(call, piece);
    return lent ? lent + piece->first * element_of(call) : stage_of(flat, piece, rank, HOOP_STAGE_IN);
}

static void sum_block(struct hoop_flat *flat, const struct hoop_flat_call *call, unsigned char *out,
                      unsigned char *staged, size_t count)
{
    const size_t bytes = count * element_of(call);

    if (hoop_flat_streams(flat, call)) {
        hoop_direct_combine(flat, call, flat->block, count);
        hoop_kernel_copy_past(out, flat->block, bytes);
        out = flat->block;
    } else {
        hoop_direct_combine(flat, call, out, count);
    }
    if (flat->stage_stores.past_for > 0)
        hoop_kernel_copy_past(staged, out, bytes);
    else
        hoop_kernel_copy(staged, out, bytes);
}

static void sum_own_slice(struct hoop_flat *flat, const struct hoop_flat_call *call, const struct piece *piece)
{
    const int own = flat->board->rank;
    const size_t element = element_of(call), most = STRIDE / element,
                 end = hoop_direct_slice(flat, call, piece->count, own + 1);
    unsigned char *out = output(call, piece), *staged = stage_of(flat, piece, own, HOOP_STAGE_OUT);

    for (size_t i = hoop_direct_slice(flat, call, piece->count, own); i < end; i += most) {
        const size_t next = end - i > most ? least((end - i - most) * element, STRIDE) : 0;

        for (int rank = 0; rank < flat->board->shape.ranks; rank++) {
            flat->cursor[rank] = summand(flat, call, piece, rank) + i * element;
            prefetch((const unsigned char *)flat->cursor[rank] + STRIDE, next);
        }
        sum_block(flat, call, out + i * element, staged + i * element, least(end - i, most));
    }
    hoop_kernel_copies_done();
}

/* ---- fetch ---- */

/* Wait until the rank has staged, or summed, the piece. */
static enum hoop_status await(const struct hoop_flat *flat, int rank, bool summed, uint64_t number,
                              struct hoop_wait *wait)
{
    struct hoop_card *card = hoop_board_card(flat->board, rank);
    const _Atomic uint64_t *news = summed ? &card->summed : &card->staged;

    if (atomic_load_explicit(news, memory_order_acquire) >= number)
        return HOOP_OK;
    while (atomic_load_explicit(news, memory_order_acquire) < number) {
        hoop_wait_for(wait, HOOP_AWAIT_DATA, rank);
        enum hoop_status status = hoop_wait_step(wait);
        if (status != HOOP_OK)
            return status;
    }
    hoop_wait_moved(wait);
    return HOOP_OK;
}

static void take(const struct hoop_flat *flat, const struct hoop_flat_call *call, unsigned char *to,
                 const unsigned char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += STRIDE) {
        const size_t step = least(bytes - at, STRIDE);

        prefetch(from + at + STRIDE, least(bytes - at - step, STRIDE));
        if (hoop_flat_streams(flat, call))
            hoop_kernel_copy_past(to + at, from + at, step);
        else
            hoop_kernel_copy(to + at, from + at, step);
    }
}

/* Each rank begins with its right neighbour, so that not all read from the same one. */
static enum hoop_status fetch(const struct hoop_flat *flat, const struct hoop_flat_call *call,
                              const struct piece *piece, struct hoop_wait *wait)
{
    const int ranks = flat->board->shape.ranks;
    const size_t element = element_of(call);

    for (int i = 1; i < ranks; i++) {
        const int rank = (flat->board->rank + i) % ranks;
        const size_t first = hoop_direct_slice(flat, call, piece->count, rank) * element,
                     end = hoop_direct_slice(flat, call, piece->count, rank + 1) * element;
        const unsigned char *from = stage_of(flat, piece, rank, HOOP_STAGE_OUT) + first;
        unsigned char *to = output(call, piece) + first;

        enum hoop_status status = await(flat, rank, true, piece->number, wait);
        if (status != HOOP_OK)
            return status;
        take(flat, call, to, from, end - first);
    }
    return HOOP_OK;
}

/* ---- broadcast ---- */

/* Wait until all have fetched the piece from the root's stage. */
static enum hoop_status await_fetched(const struct hoop_flat *flat, uint64_t number, struct hoop_wait *wait)
{
    enum hoop_status status = HOOP_OK;

    for (int rank = 0; rank < flat->board->shape.ranks && status == HOOP_OK; rank++)
        if (rank != flat->board->rank)
            status = await(flat, rank, true, number, wait);
    return status;
}

/* The root may be ahead of the others by so many pieces that the place of the next is free for certain, wherever the first one was. */
static uint64_t ahead(const struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    const size_t piece = (piece_most(flat, call) * element_of(call) + HOOP_LINE - 1) / HOOP_LINE * HOOP_LINE,
                 held = flat->board->shape.stage / piece;

    return held > 2 ? held - 1 : 1;
}

/* The root's part. */
static enum hoop_status hand_out(struct hoop_flat *flat, const struct hoop_flat_call *call, const struct piece *piece,
                                 struct hoop_wait *wait)
{
    struct hoop_card *card = hoop_board_card(flat->board, flat->board->rank);
    enum hoop_status status = HOOP_OK;

    if (piece->first > 0) { /* the first piece was staged with the offer */
        const uint64_t most = ahead(flat, call);
        status = piece->number > most ? await_fetched(flat, piece->number - most, wait) : HOOP_OK;
        if (status != HOOP_OK)
            return status;
        hoop_wait_settle(wait); /* the copy may take long */
        stage(flat, call, piece);
        atomic_store_explicit(&card->staged, piece->number, memory_order_release);
        hoop_wait_owe(wait);
    }
    atomic_store_explicit(&card->summed, piece->number, memory_order_release); /* for roots to come */
    return HOOP_OK;
}

/* The others' part. Only the root waits for it. */
static enum hoop_status fetch_from_root(struct hoop_flat *flat, const struct hoop_flat_call *call,
                                        const struct piece *piece, struct hoop_wait *wait)
{
    struct hoop_card *card = hoop_board_card(flat->board, flat->board->rank);

    enum hoop_status status = piece->first > 0 ? await(flat, call->root, false, piece->number, wait) : HOOP_OK;
    if (status != HOOP_OK)
        return status;
    hoop_wait_settle(wait);
    take(flat, call, output(call, piece), stage_of(flat, piece, call->root, HOOP_STAGE_IN),
         piece->count * element_of(call));
    atomic_store_explicit(&card->summed, piece->number, memory_order_release);
    hoop_bell_ring(&hoop_board_card(flat->board, call->root)->bell);
    return HOOP_OK;
}

static enum hoop_status broadcast_piece(struct hoop_flat *flat, const struct hoop_flat_call *call,
                                        const struct piece *piece, struct hoop_wait *wait)
{
    return flat->board->rank == call->root ? hand_out(flat, call, piece, wait)
                                           : fetch_from_root(flat, call, piece, wait);
}

/* The root's own result, and nobody is to be on its stage when it goes on. */
static enum hoop_status end_broadcast(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait)
{
    if (flat->board->rank != call->root)
        return HOOP_OK;
    hoop_wait_settle(wait);
    if (call->out != call->in)
        take(flat, call, call->out, call->in, call->vector);
    return await_fetched(flat, flat->pieces, wait);
}

/* ---- the call ---- */

static enum hoop_status await_stages(const struct hoop_flat *flat, const struct piece *piece, struct hoop_wait *wait)
{
    enum hoop_status status = HOOP_OK;

    for (int rank = 0; rank < flat->board->shape.ranks && status == HOOP_OK; rank++)
        status = await(flat, rank, false, piece->number, wait);
    return status;
}

static enum hoop_status run_piece(struct hoop_flat *flat, const struct hoop_flat_call *call, const struct piece *piece,
                                  struct hoop_wait *wait)
{
    struct hoop_card *card = hoop_board_card(flat->board, flat->board->rank);
    enum hoop_status status = HOOP_OK;

    if (piece->first > 0) { /* the first piece was staged with the offer */
        if (!flat->lends_input)
            stage(flat, call, piece);
        atomic_store_explicit(&card->staged, piece->number, memory_order_release);
        hoop_wait_owe(wait);
        status = await_stages(flat, piece, wait);
        if (status != HOOP_OK)
            return status;
    }
    hoop_wait_settle(wait); /* the sum may take long */
    sum_own_slice(flat, call, piece);
    HOOP_FAULT_POINT(STAGED);
    atomic_store_explicit(&card->summed, piece->number, memory_order_release);
    hoop_wait_owe(wait);
    return fetch(flat, call, piece, wait);
}

/* Turn the offers into addresses: NULL where the stage is to be read. A peer's word is not taken on trust. */
static enum hoop_status locate(struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    for (int rank = 0; rank < flat->board->shape.ranks; rank++) {
        struct hoop_offer offer;

        memcpy(&offer, flat->inputs[rank], sizeof offer);
        flat->inputs[rank] = NULL;
        if (offer.in == HOOP_NOWHERE)
            continue;
        if (!hoop_direct_inside(flat->board, rank, offer.in, call->vector))
            return hoop_fail(HOOP_ERR_INTERNAL, "rank %d offers an input outside its heap", rank);
        flat->inputs[rank] = flat->board->base + offer.in;
    }
    return HOOP_OK;
}

/* What the root's slot holds must say that there is something on its stage. */
static enum hoop_status locate_root(const struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    struct hoop_offer offer;

    memcpy(&offer, flat->inputs[call->root], sizeof offer);
    if (offer.in != HOOP_NOWHERE)
        return hoop_fail(HOOP_ERR_INTERNAL, "rank %d offers an input outside its heap", call->root);
    return HOOP_OK;
}

/* Before the first piece. */
static enum hoop_status begin(struct hoop_flat *flat, const struct hoop_flat_call *call)
{
    if (call->coll == HOOP_BROADCAST)
        return locate_root(flat, call);
    enum hoop_status status = locate(flat, call);
    flat->lends_input = flat->inputs[flat->board->rank] != NULL;
    if (status == HOOP_OK)
        status = reserve(flat);
    populate(flat);
    return status;
}

enum hoop_status hoop_staged_run(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait)
{
    const bool sums = call->coll == HOOP_ALL_REDUCE;
    enum hoop_status status = begin(flat, call);

    flat->way = HOOP_FLAT_STAGED;
    for (size_t first = 0; first < call->count && status == HOOP_OK;) {
        const struct piece piece = piece_at(flat, call, first);

        flat->pieces = piece.number;
        status = sums ? run_piece(flat, call, &piece, wait) : broadcast_piece(flat, call, &piece, wait);
        first += piece.count;
        end_piece(flat, call, &piece);
    }
    if (status == HOOP_OK && !sums)
        status = end_broadcast(flat, call, wait);
    if (hoop_flat_streams(flat, call))
        hoop_kernel_copies_done();
    HOOP_ATOMIC_FENCE();
    if (status == HOOP_OK && hoop_verdict_stands(flat->board)) /* what a rank lent may have been taken back */
        status = hoop_verdict_status(hoop_verdict_get(flat->board));
    return status;
}
