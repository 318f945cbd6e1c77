// SPDX-License-Identifier: BSD-3-Clause
/* Where the buffers of staged calls lie in staging memory.
 *
 * Each call gets a place for what it sends and one for what it receives; where the two overlap, since the call is in place, one
 * place has both, with the same distance between them. Blocks of different sizes are put one behind the other, so that
 * gaps between them take no room and, above all, are not overwritten by the copy back.
 */
#include "comm/stage_layout.h"
#include "base/alloc.h"
#include "comm/uneven.h"

enum { ALIGNMENT = 256 };

/* ---- pieces ---- */

static enum hoop_status reserve(struct hoop_pieces *pieces, size_t most)
{
    pieces->piece = hoop_calloc(most ? most : 1, sizeof *pieces->piece);
    return pieces->piece ? HOOP_OK : HOOP_ERR_MEMORY;
}

/* Pieces that continue each other on both sides are one copy. */
static void add(struct hoop_pieces *pieces, uintptr_t device, size_t offset, size_t bytes)
{
    struct hoop_piece *last = pieces->pieces ? &pieces->piece[pieces->pieces - 1] : NULL;

    if (bytes == 0)
        return;
    if (last && last->device + last->bytes == device && last->offset + last->bytes == offset)
        last->bytes += bytes;
    else
        pieces->piece[pieces->pieces++] = (struct hoop_piece){device, offset, bytes};
}

/* ---- calls with equal blocks ---- */

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void lay_even(struct hoop_layout *layout, const struct hoop_comm_call *call, struct hoop_staged_call *staged)
{
    const uintptr_t in = (uintptr_t)call->in, out = (uintptr_t)call->out;
    size_t in_bytes, out_bytes;

    hoop_call_held(call, &in_bytes, &out_bytes);
    const bool together = in_bytes > 0 && out_bytes > 0 && in < out + out_bytes && out < in + in_bytes;
    if (together) {
        const uintptr_t begin = in < out ? in : out,
                        end = in + in_bytes > out + out_bytes ? in + in_bytes : out + out_bytes;
        staged->in = layout->bytes + (in - begin);
        staged->out = layout->bytes + (out - begin);
        layout->bytes += aligned(end - begin);
    } else {
        staged->in = layout->bytes;
        staged->out = layout->bytes + aligned(in_bytes);
        layout->bytes += aligned(in_bytes) + aligned(out_bytes);
    }
    add(&layout->in, in, staged->in, in_bytes);
    add(&layout->out, out, staged->out, out_bytes);
}

/* ---- blocks of different sizes ---- */

/* Put blocks one behind the other; returns their elements. */
static size_t pack(const struct hoop_extent *from, struct hoop_extent *to, int ranks)
{
    size_t next = 0;

    for (int rank = 0; rank < ranks; rank++) {
        to[rank] = (struct hoop_extent){next, from[rank].count};
        next += from[rank].count;
    }
    return next;
}

static void add_blocks(struct hoop_pieces *pieces, uintptr_t device, const struct hoop_extent *from, size_t offset,
                       const struct hoop_extent *to, int ranks, size_t element)
{
    for (int rank = 0; rank < ranks; rank++)
        add(pieces, device + from[rank].first * element, offset + to[rank].first * element, from[rank].count * element);
}

static enum hoop_status lay_uneven(struct hoop_layout *layout, const struct hoop_comm_call *call,
                                   struct hoop_staged_call *staged)
{
    const struct hoop_comm_blocks *blocks = call->blocks;
    const int ranks = call->comm->ranks, rank = call->comm->rank;
    const size_t element = hoop_call_element(call);
    const bool gather = call->coll == HOOP_ALL_GATHER;
    const uintptr_t in = (uintptr_t)call->in, out = (uintptr_t)call->out;
    struct hoop_comm_blocks *packed = hoop_blocks_new((size_t)ranks);

    if (packed == NULL)
        return HOOP_ERR_MEMORY;
    packed->largest = blocks->largest;
    packed->hash = blocks->hash;
    const size_t received = pack(blocks->out, packed->out, ranks) * element;
    const bool in_place = gather ? in == out + blocks->out[rank].first * element : call->in_place;
    staged->blocks = packed;
    staged->out = layout->bytes;
    layout->bytes += aligned(received);
    if (gather) {
        for (int r = 0; r < ranks; r++)
            packed->in[r] = blocks->in[r];
        const size_t own = blocks->in[rank].count * element;
        staged->in = in_place ? staged->out + packed->out[rank].first * element : layout->bytes;
        layout->bytes += in_place ? 0 : aligned(own);
        add(&layout->in, in, staged->in, own);
    } else {
        const size_t sent = pack(blocks->in, packed->in, ranks) * element;
        staged->in = in_place ? staged->out : layout->bytes;
        layout->bytes += in_place ? 0 : aligned(sent);
        add_blocks(&layout->in, in, blocks->in, staged->in, packed->in, ranks, element);
    }
    add_blocks(&layout->out, out, blocks->out, staged->out, packed->out, ranks, element);
    return HOOP_OK;
}

/* ---- all calls ---- */

static size_t most_pieces(const struct hoop_comm_call *call, size_t calls)
{
    size_t pieces = 0;

    for (size_t i = 0; i < calls; i++)
        pieces += call[i].blocks ? (size_t)call[i].comm->ranks : 1;
    return pieces;
}

enum hoop_status hoop_layout_make(struct hoop_layout *layout, const struct hoop_comm_call *call, size_t calls)
{
    const size_t pieces = most_pieces(call, calls);

    *layout = (struct hoop_layout){.calls = calls, .call = hoop_calloc(calls, sizeof *layout->call)};
    enum hoop_status status = layout->call ? reserve(&layout->in, pieces) : HOOP_ERR_MEMORY;
    if (status == HOOP_OK)
        status = reserve(&layout->out, pieces);
    for (size_t i = 0; status == HOOP_OK && i < calls; i++) {
        if (!call[i].device)
            continue;
        if (call[i].blocks)
            status = lay_uneven(layout, &call[i], &layout->call[i]);
        else
            lay_even(layout, &call[i], &layout->call[i]);
    }
    if (status != HOOP_OK)
        hoop_layout_free(layout);
    return status;
}

void hoop_layout_apply(const struct hoop_layout *layout, void *memory, struct hoop_comm_call *call)
{
    for (size_t i = 0; i < layout->calls; i++) {
        const struct hoop_staged_call *staged = &layout->call[i];
        if (!call[i].device)
            continue;
        call[i].staged = true;
        call[i].in = call[i].in ? (unsigned char *)memory + staged->in : NULL;
        call[i].out = call[i].out ? (unsigned char *)memory + staged->out : NULL;
        call[i].blocks = staged->blocks;
    }
}

void hoop_layout_free(struct hoop_layout *layout)
{
    for (size_t i = 0; layout->call && i < layout->calls; i++)
        hoop_blocks_drop(layout->call[i].blocks);
    hoop_free(layout->call);
    hoop_free(layout->in.piece);
    hoop_free(layout->out.piece);
    *layout = (struct hoop_layout){.bytes = 0};
}
