// SPDX-License-Identifier: BSD-3-Clause
/* The binder: from symbolic chunks to elements.
 *
 * A plan names chunks; a call brings a count. The binder cuts the vector (where there are blocks: each rank's
 * block) into the grid's chunks and each chunk into slices, so that every piece fits one frame of a link. Blocks may also lie
 * anywhere and have counts of their own (hoop_bind_blocks); then each is cut by itself, into slices as the largest needs. All cuts
 * follow one rule: part i of p over N elements begins at i * (N div p) + min(i, N mod p). Nothing here can overflow
 * once hoop_bind has accepted the sizes.
 */
#ifndef HOOP_PLAN_BIND_H
#define HOOP_PLAN_BIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hoop/plan.h"

/* Elements first … first + count - 1. */
struct hoop_extent {
    size_t first, count;
};

/* A plan's shape bound to a size. Plain data, no ownership; equal on all ranks but for tmp_bytes. */
struct hoop_binding {
    size_t count;               /* elements of the vector; of one block where there are blocks */
    size_t element;             /* bytes of one element */
    size_t slices;              /* 1 or more */
    size_t piece;               /* most elements of one slice of one chunk; 0: the vector is empty */
    size_t tmp_stride;          /* bytes from one TMP chunk to the next, a multiple of 64 */
    size_t tmp_bytes;           /* bytes of all TMP chunks that are used */
    size_t quotient, remainder; /* count over chunks_per_block */
    uint32_t grid, tmp_first;
    uint32_t chunks_per_block;      /* of one rank's block where there are blocks; else the grid */
    bool in_is_block, out_is_block; /* the buffer holds this rank's block only: its elements are numbered within it */
    const struct hoop_extent *in_blocks, *out_blocks; /* one a rank, if they have counts of their own; else NULL */
    bool empty_frames;                                /* barrier: pieces of 0 elements are sent all the same */
};

/* Bind a plan to a call.
 *
 * count     elements of the vector; of one rank's block where there are blocks; ignored for the barrier.
 * element   bytes of one element, 1 or more.
 * frame     most bytes of one piece, element or more; equal on all ranks.
 * slices    least number of slices wanted, 1 or more; equal on all ranks. More are made where the frame needs it, and
 *           fewer where the largest chunk has fewer elements.
 * Errors: HOOP_ERR_ARG (whole vector larger than SIZE_MAX bytes, frame smaller than an element), HOOP_ERR_MEMORY (TMP
 * larger than SIZE_MAX bytes). */
enum hoop_status hoop_bind(struct hoop_binding *binding, const struct hoop_plan *plan, size_t count, size_t element,
                           size_t frame, size_t slices);

/* The same for blocks of different sizes.
 *
 * in, out   where each rank's block lies in the buffer, in elements: both lists have an entry for every rank and must outlive
 *           the binding. Where the buffer holds only this rank's block, an entry's first is where that begins.
 *           all_gather: both give every rank's count. all_to_all: the counts that this rank sends and receives.
 * largest   elements of the largest block of any rank; equal on all ranks, as element, frame and slices.
 * Errors: as hoop_bind; HOOP_ERR_ARG if a block ends beyond SIZE_MAX bytes or is larger than `largest`; HOOP_ERR_UNSUPPORTED if
 * the plan is not of an all_gather, nor of an all_to_all that moves every block whole and straight to whom it is for (others would
 * not know its size). */
enum hoop_status hoop_bind_blocks(struct hoop_binding *binding, const struct hoop_plan *plan,
                                  const struct hoop_extent *in, const struct hoop_extent *out, size_t largest,
                                  size_t element, size_t frame, size_t slices);

/* Slice of part i of a block that has its own count. */
struct hoop_extent hoop_bind_extent_of_block(const struct hoop_binding *binding, enum hoop_buffer buffer,
                                             uint32_t block, uint32_t i, size_t slice);

/* Part i of p over total elements. */
static inline struct hoop_extent hoop_part(size_t total, size_t parts, size_t i)
{
    const size_t quotient = total / parts, remainder = total % parts;

    return (struct hoop_extent){i * quotient + (i < remainder ? i : remainder), quotient + (i < remainder)};
}

/* Elements of one slice of a chunk of IN or OUT (0 … grid - 1), counted from the start of the caller's buffer; where
 * that holds only this rank's block (such as all_gather's IN) from the start of the block, in place too,
 * since the caller's pointer then points at the block inside the big buffer. A TMP chunk: the elements from the
 * chunk's start, which lies at hoop_bind_tmp_offset. */
static inline struct hoop_extent hoop_bind_extent(const struct hoop_binding *binding, enum hoop_buffer buffer,
                                                  uint32_t chunk, size_t slice)
{
    const uint32_t number = buffer == HOOP_TMP ? chunk % binding->grid : chunk;
    const uint32_t block = number / binding->chunks_per_block, i = number % binding->chunks_per_block;
    const bool longer = i < binding->remainder;
    struct hoop_extent extent = {0, binding->quotient + longer};
    size_t first = 0;

    if (binding->out_blocks)
        return hoop_bind_extent_of_block(binding, buffer, block, i, slice);
    if (buffer != HOOP_TMP) {
        first = i * binding->quotient + (longer ? i : binding->remainder);
        if (!(buffer == HOOP_IN ? binding->in_is_block : binding->out_is_block))
            first += block * binding->count;
    }
    if (binding->slices > 1) {
        extent = hoop_part(extent.count, binding->slices, slice);
        if (buffer == HOOP_TMP) /* one slice at a time: each begins where the chunk begins */
            extent.first = 0;
    }
    extent.first += first;
    return extent;
}

/* Bytes from the start of TMP to its chunk, one that a step names. */
static inline size_t hoop_bind_tmp_offset(const struct hoop_binding *binding, uint32_t chunk)
{
    return (chunk - binding->tmp_first) * binding->tmp_stride;
}

#endif
