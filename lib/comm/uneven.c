// SPDX-License-Identifier: BSD-3-Clause
/* Collectives with a count of its own for each block: all_gatherv and all_to_allv.
 *
 * Their blocks lie where the caller says, so a call carries a list of extents for each buffer; plans stay as they are, since the
 * binder (plan/bind.h) cuts each block by itself. All ranks know all counts of an all_gatherv. In an all_to_allv each knows its own,
 * so the ranks first tell each other what they send and what they expect: that shows every pair that differs to everybody, and
 * gives the largest block, by which all cut their slices alike.
 */
#include "comm/uneven.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "health/verdict.h"

void hoop_blocks_keep(struct hoop_comm_blocks *blocks)
{
    if (blocks)
        atomic_fetch_add(&blocks->users, 1);
}

void hoop_blocks_drop(struct hoop_comm_blocks *blocks)
{
    if (blocks && atomic_fetch_sub(&blocks->users, 1) == 1)
        hoop_free(blocks);
}

static const char *name_of(const struct hoop_comm_call *call)
{
    return call->coll == HOOP_ALL_GATHER ? "all_gatherv" : "all_to_allv";
}

/* ---- the caller's lists ---- */

/* Counts and displacements of one buffer as the caller gave them. */
struct list {
    const char *name;
    const void *base;
    const size_t *count, *displacement; /* displacement NULL: one after the other */
};

struct hoop_comm_blocks *hoop_blocks_new(size_t ranks)
{
    struct hoop_comm_blocks *blocks = hoop_calloc(1, sizeof *blocks + 2 * ranks * sizeof *blocks->extent);

    if (blocks == NULL)
        return NULL;
    atomic_store(&blocks->users, 1);
    blocks->in = blocks->extent;
    blocks->out = blocks->extent + ranks;
    return blocks;
}

/* Fill in where the blocks lie. *total receives the sum of the counts. */
static enum hoop_status read_list(const struct hoop_comm_call *call, const struct list *list,
                                  struct hoop_extent *extent, size_t *total)
{
    const size_t element = hoop_type_size(call->type);
    const char *what = name_of(call);
    size_t next = 0, bytes;

    *total = 0;
    for (int rank = 0; rank < call->comm->ranks; rank++) {
        const size_t count = list->count[rank], first = list->displacement ? list->displacement[rank] : next;
        uintptr_t end;
        if (__builtin_add_overflow(first, count, &next) || __builtin_mul_overflow(next, element, &bytes) ||
            __builtin_add_overflow((uintptr_t)list->base, bytes, &end) ||
            __builtin_add_overflow(*total, count, total) || *total > SIZE_MAX / element)
            return hoop_fail(
                HOOP_ERR_ARG,
                "%s: block %d of the %s buffer, %zu elements of %s at element %zu, ends beyond the address space", what,
                rank, list->name, count, hoop_type_name(call->type), first);
        extent[rank] = (struct hoop_extent){first, count};
    }
    if (list->base == NULL && *total > 0)
        return hoop_fail(HOOP_ERR_ARG, "%s: the %s buffer is NULL", what, list->name);
    return HOOP_OK;
}

static enum hoop_status check_lists(const struct hoop_comm_call *call, const struct list *in, const struct list *out)
{
    const char *what = name_of(call);

    enum hoop_status status = hoop_comm_usable(call->comm, what);
    if (status != HOOP_OK)
        return status;
    if ((unsigned)call->type >= HOOP_TYPES)
        return hoop_fail(HOOP_ERR_ARG, "%s: type %d is no enum hoop_type", what, (int)call->type);
    if (in->count == NULL || out->count == NULL)
        return hoop_fail(HOOP_ERR_ARG, "%s: the list of the %s buffer's counts is NULL", what,
                         in->count == NULL ? in->name : out->name);
    return HOOP_OK;
}

/* ---- overlaps ---- */

/* A block in bytes. */
struct span {
    uintptr_t begin, end;
    int rank;
};

static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    return (x->begin > y->begin) - (x->begin < y->begin);
}

static struct span span_of(const void *base, size_t element, const struct hoop_extent *extent, int rank)
{
    const uintptr_t begin = (uintptr_t)base + extent->first * element;

    return (struct span){begin, begin + extent->count * element, rank};
}

/* Sort the blocks that hold something. Returns how many there are, or -1: two of them overlap. */
static int sort_spans(const struct hoop_comm_call *call, struct span *span)
{
    const size_t element = hoop_type_size(call->type);
    int spans = 0;
    bool sorted = true;

    for (int rank = 0; rank < call->comm->ranks; rank++) {
        if (call->blocks->out[rank].count == 0)
            continue;
        span[spans] = span_of(call->out, element, &call->blocks->out[rank], rank);
        sorted &= spans == 0 || span[spans - 1].end <= span[spans].begin;
        spans++;
    }
    if (!sorted)
        qsort(span, (size_t)spans, sizeof *span, by_begin);
    for (int i = 1; i < spans; i++)
        if (span[i].begin < span[i - 1].end) {
            hoop_fail(HOOP_ERR_ARG, "%s: blocks %d and %d of the receive buffer overlap", name_of(call),
                      span[i - 1].rank, span[i].rank);
            return -1;
        }
    return spans;
}

/* The span that the block overlaps, or NULL. */
static const struct span *find_overlap(const struct span *span, int spans, struct span block)
{
    int low = 0, high = spans; /* the first span that ends after the block's begin */

    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (span[middle].end > block.begin)
            high = middle;
        else
            low = middle + 1;
    }
    return block.begin < block.end && low < spans && span[low].begin < block.end ? &span[low] : NULL;
}

/* Nothing that is received may lie where something else is received or sent. */
static enum hoop_status check_overlaps(const struct hoop_comm_call *call, bool in_place)
{
    const int ranks = call->comm->ranks;
    const bool one = call->coll == HOOP_ALL_GATHER; /* block to send */
    struct span few[32], *span = ranks <= 32 ? few : hoop_calloc((size_t)ranks, sizeof *span);
    enum hoop_status status = HOOP_OK;

    if (span == NULL)
        return HOOP_ERR_MEMORY;
    const int spans = sort_spans(call, span);
    if (spans < 0)
        status = HOOP_ERR_ARG;
    for (int rank = one ? call->comm->rank : 0; status == HOOP_OK && !in_place && rank < ranks;
         rank += one ? ranks : 1) {
        const struct span block = span_of(call->in, hoop_type_size(call->type), &call->blocks->in[rank], rank);
        const struct span *overlap = find_overlap(span, spans, block);
        if (overlap)
            status =
                hoop_fail(HOOP_ERR_ARG,
                          "%s: block %d of the send buffer and block %d of the receive buffer overlap without being in "
                          "place",
                          name_of(call), rank, overlap->rank);
    }
    if (span != few)
        hoop_free(span);
    return status;
}

/* ---- making the calls ---- */

static uint64_t hash_counts(const struct hoop_extent *extent, int ranks)
{
    uint64_t hash = 0;

    for (int rank = 0; rank < ranks; rank++) {
        hash = (hash ^ extent[rank].count) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* All ranks know all counts; where the blocks lie, and whether the own one is there already, is each rank's matter: where it is,
 * the plan's copy finds nothing to do. */
static enum hoop_status check_gather(struct hoop_comm_call *call, const struct list *out)
{
    struct hoop_comm_blocks *blocks = call->blocks;
    const int rank = call->comm->rank, ranks = call->comm->ranks;
    const size_t own = call->count;

    enum hoop_status status = read_list(call, out, blocks->out, &call->count);
    if (status != HOOP_OK)
        return status;
    if (own != out->count[rank])
        return hoop_fail(HOOP_ERR_ARG, "all_gatherv: rank %d gives %zu elements, but counts[%d] is %zu", rank, own,
                         rank, out->count[rank]);
    if (call->in == NULL && own > 0)
        return hoop_fail(HOOP_ERR_ARG, "all_gatherv: the send buffer is NULL");
    for (int r = 0; r < ranks; r++) {
        const size_t count = blocks->out[r].count;
        blocks->in[r] = (struct hoop_extent){0, count};
        blocks->largest = count > blocks->largest ? count : blocks->largest;
    }
    blocks->hash = hash_counts(blocks->out, ranks);
    const size_t element = hoop_type_size(call->type);
    return check_overlaps(call, (uintptr_t)call->in == (uintptr_t)call->out + blocks->out[rank].first * element);
}

static bool same_places(const struct hoop_comm_blocks *blocks, int ranks)
{
    for (int rank = 0; rank < ranks; rank++)
        if (blocks->in[rank].count != blocks->out[rank].count ||
            (blocks->in[rank].count > 0 && blocks->in[rank].first != blocks->out[rank].first))
            return false;
    return true;
}

static enum hoop_status check_exchange(struct hoop_comm_call *call, const struct list *in, const struct list *out)
{
    struct hoop_comm_blocks *blocks = call->blocks;
    const int rank = call->comm->rank;
    size_t sent = 0;

    enum hoop_status status = read_list(call, in, blocks->in, &sent);
    if (status == HOOP_OK)
        status = read_list(call, out, blocks->out, &call->count);
    if (status != HOOP_OK)
        return status;
    if (in->count[rank] != out->count[rank])
        return hoop_fail(HOOP_ERR_ARG, "all_to_allv: rank %d sends itself %zu elements, but expects %zu", rank,
                         in->count[rank], out->count[rank]);
    call->in_place = call->in == call->out && same_places(blocks, call->comm->ranks);
    return check_overlaps(call, call->in_place);
}

/* Check the call and give it its blocks; on failure it has none. */
static enum hoop_status make(struct hoop_comm_call *call, const struct list *in, const struct list *out)
{
    enum hoop_status status = check_lists(call, in, out);

    if (status != HOOP_OK)
        return status;
    call->blocks = hoop_blocks_new((size_t)call->comm->ranks);
    if (call->blocks == NULL)
        return HOOP_ERR_MEMORY;
    status = call->coll == HOOP_ALL_GATHER ? check_gather(call, out) : check_exchange(call, in, out);
    if (status != HOOP_OK) {
        hoop_blocks_drop(call->blocks);
        call->blocks = NULL;
    }
    return status;
}

static enum hoop_status run(struct hoop_comm_call call, struct list in, struct list out, hoop_stream *stream)
{
    enum hoop_status status = make(&call, &in, &out);

    if (status == HOOP_OK)
        status = hoop_comm_submit(&call, stream);
    else if (status == HOOP_ERR_MEMORY) { /* the peers make the call and would wait for this rank */
        hoop_verdict_pass(call.comm->board,
                          (struct hoop_verdict){HOOP_VERDICT_FAILED, call.comm->rank, call.comm->rank, 0});
        status = hoop_comm_failed(call.comm, status);
    }
    hoop_blocks_drop(call.blocks);
    return status;
}

static enum hoop_status prepare(struct hoop_comm_call call, struct list in, struct list out, hoop_stream *stream,
                                struct hoop_handle **handle)
{
    enum hoop_status status = make(&call, &in, &out);

    if (status == HOOP_OK)
        status = hoop_handle_new(handle, &call, stream);
    hoop_blocks_drop(call.blocks);
    return status;
}

#define GATHER                                                               \
    (struct hoop_comm_call){.comm = comm,                                    \
                            .coll = HOOP_ALL_GATHER,                         \
                            .type = type,                                    \
                            .op = HOOP_OPS,                                  \
                            .root = -1,                                      \
                            .count = count,                                  \
                            .in = send,                                      \
                            .out = recv},                                    \
        (struct list){"receive", recv, counts, displacements}, (struct list) \
    {                                                                        \
        "receive", recv, counts, displacements                               \
    }

enum hoop_status hoop_all_gatherv(const void *send, size_t count, void *recv, const size_t *counts,
                                  const size_t *displacements, enum hoop_type type, struct hoop_comm *comm,
                                  hoop_stream *stream)
{
    return run(GATHER, stream);
}

enum hoop_status hoop_all_gatherv_init(const void *send, size_t count, void *recv, const size_t *counts,
                                       const size_t *displacements, enum hoop_type type, struct hoop_comm *comm,
                                       hoop_stream *stream, struct hoop_handle **handle)
{
    return prepare(GATHER, stream, handle);
}

#define EXCHANGE                                                                                                   \
    (struct hoop_comm_call){                                                                                       \
        .comm = comm, .coll = HOOP_ALL_TO_ALL, .type = type, .op = HOOP_OPS, .root = -1, .in = send, .out = recv}, \
        (struct list){"send", send, send_counts, send_displacements}, (struct list)                                \
    {                                                                                                              \
        "receive", recv, recv_counts, recv_displacements                                                           \
    }

enum hoop_status hoop_all_to_allv(const void *send, const size_t *send_counts, const size_t *send_displacements,
                                  void *recv, const size_t *recv_counts, const size_t *recv_displacements,
                                  enum hoop_type type, struct hoop_comm *comm, hoop_stream *stream)
{
    return run(EXCHANGE, stream);
}

enum hoop_status hoop_all_to_allv_init(const void *send, const size_t *send_counts, const size_t *send_displacements,
                                       void *recv, const size_t *recv_counts, const size_t *recv_displacements,
                                       enum hoop_type type, struct hoop_comm *comm, hoop_stream *stream,
                                       struct hoop_handle **handle)
{
    return prepare(EXCHANGE, stream, handle);
}

/* ---- what the ranks of an all_to_allv tell each other ---- */

/* A rank's row: where its data lies, then what it sends to each rank, then what it expects of each. */
enum { NOTHING, APART, IN_PLACE };

static size_t row_size(const struct hoop_comm *comm)
{
    return 2 * (size_t)comm->ranks + 1;
}

static void write_row(const struct hoop_comm_call *call, uint64_t *row)
{
    const size_t ranks = (size_t)call->comm->ranks;
    bool any = false;

    for (size_t rank = 0; rank < ranks; rank++) {
        row[1 + rank] = call->blocks->in[rank].count;
        row[1 + ranks + rank] = call->blocks->out[rank].count;
        any |= row[1 + rank] > 0 || row[1 + ranks + rank] > 0;
    }
    row[0] = !any ? NOTHING : call->in_place ? IN_PLACE : APART;
}

/* All ranks see the same rows, so all refuse alike; nobody leaves before all have seen them. */
static enum hoop_status refuse(const struct hoop_comm_call *call, int a, int b, const char *why)
{
    struct hoop_comm *comm = call->comm;
    struct hoop_comm_call barrier = {
        .comm = comm, .shown = call, .coll = HOOP_BARRIER, .type = HOOP_TYPES, .op = HOOP_OPS, .root = -1};

    hoop_comm_run_part(&barrier); /* if that fails, the reason stays this one */
    const enum hoop_status status = hoop_comm_failed(comm, hoop_fail(HOOP_ERR_MISMATCH, "%s", why));
    hoop_verdict_pass(comm->board, (struct hoop_verdict){HOOP_VERDICT_PAIR, a, b, (unsigned)comm->sequence});
    return status;
}

/* In place is agreed among those that have anything to move. */
static enum hoop_status agree_place(struct hoop_comm_call *call, const uint64_t *rows)
{
    const int ranks = call->comm->ranks;
    int first[3] = {ranks, ranks, ranks};
    char why[200];

    for (int rank = ranks - 1; rank >= 0; rank--)
        first[rows[(size_t)rank * row_size(call->comm)] % 3] = rank;
    call->in_place = first[IN_PLACE] < ranks;
    if (first[IN_PLACE] == ranks || first[APART] == ranks)
        return HOOP_OK;
    snprintf(why, sizeof why, "all_to_allv: rank %d calls in place, rank %d does not; all ranks must alike",
             first[IN_PLACE], first[APART]);
    return refuse(call, first[IN_PLACE], first[APART], why);
}

static enum hoop_status agree_counts(const struct hoop_comm_call *call, const uint64_t *rows)
{
    const size_t ranks = (size_t)call->comm->ranks, size = row_size(call->comm);
    uint64_t largest = 0;
    char why[320];

    for (size_t from = 0; from < ranks; from++)
        for (size_t to = 0; to < ranks; to++) {
            const uint64_t sent = rows[from * size + 1 + to], expected = rows[to * size + 1 + ranks + from];
            largest = sent > largest ? sent : largest;
            if (sent == expected)
                continue;
            snprintf(why, sizeof why,
                     "all_to_allv: rank %zu sends %llu %s to rank %zu, which expects %llu from it; compare "
                     "send_counts[%zu] of "
                     "the one with recv_counts[%zu] of the other",
                     from, (unsigned long long)sent, hoop_type_name(call->type), to, (unsigned long long)expected, to,
                     from);
            return refuse(call, (int)from, (int)to, why);
        }
    call->blocks->largest = (size_t)largest;
    return HOOP_OK;
}

enum hoop_status hoop_uneven_agree(struct hoop_comm_call *call)
{
    struct hoop_comm *comm = call->comm;
    const size_t size = row_size(comm);

    enum hoop_status status = hoop_scratch_grow(comm, &comm->counts, (size_t)comm->ranks * size * sizeof(uint64_t));
    if (status != HOOP_OK)
        return status;
    uint64_t *rows = comm->counts.memory, *own = rows + (size_t)comm->rank * size;
    const struct hoop_comm_call exchange = {.comm = comm,
                                            .shown = call,
                                            .coll = HOOP_ALL_GATHER,
                                            .type = HOOP_U64,
                                            .op = HOOP_OPS,
                                            .root = -1,
                                            .in_place = true,
                                            .count = size,
                                            .in = own,
                                            .out = rows};
    call->blocks->largest = 0; /* not known yet, also to those who compare calls */
    write_row(call, own);
    status = hoop_comm_run_part(&exchange);
    if (status == HOOP_OK)
        status = agree_place(call, rows);
    return status == HOOP_OK ? agree_counts(call, rows) : status;
}
