// SPDX-License-Identifier: BSD-3-Clause
/* Binding a plan to a size: see bind.h. */
#include "plan/bind.h"

#include "base/status.h"

enum { TMP_ALIGNMENT = 64 };

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* Bytes of the whole vector must be a size_t, so that no element number or offset below it can overflow. */
static enum hoop_status check_size(const struct hoop_plan *plan, size_t blocks, size_t count, size_t element,
                                   size_t frame)
{
    size_t total;

    if (element == 0 || frame < element)
        return hoop_fail(HOOP_ERR_ARG, "a frame of %zu bytes cannot hold one element of %zu bytes", frame, element);
    if (__builtin_mul_overflow(count, blocks, &total) || __builtin_mul_overflow(total, element, &total))
        return hoop_fail(HOOP_ERR_ARG, "%s of %zu blocks of %zu elements of %zu bytes: more bytes than a size_t counts",
                         hoop_coll_name(plan->problem.coll), blocks, count, element);
    return HOOP_OK;
}

static void cut(struct hoop_binding *binding, size_t frame, size_t slices)
{
    const size_t largest = binding->quotient + (binding->remainder != 0);
    const size_t needed = divide_up(largest, frame / binding->element);

    if (slices > largest) /* none would be empty in the largest chunk */
        slices = largest;
    if (slices < needed)
        slices = needed;
    binding->slices = slices == 0 ? 1 : slices;
    binding->piece = divide_up(largest, binding->slices);
}

/* All but the places of the blocks. */
static enum hoop_status bind_shape(struct hoop_binding *binding, const struct hoop_plan *plan, size_t count,
                                   size_t element, size_t frame, size_t slices)
{
    const struct hoop_coll_shape *shape = hoop_coll_shape(plan->problem.coll);
    const uint32_t ranks = shape->blocks ? (uint32_t)plan->problem.ranks : 1;

    *binding = (struct hoop_binding){
        .count = count,
        .element = element,
        .grid = plan->grid,
        .chunks_per_block = plan->grid / ranks,
        .tmp_first = plan->tmp_first,
        .in_is_block = shape->in == HOOP_OWN_BLOCK,
        .out_is_block = shape->out == HOOP_OWN_BLOCK,
        .empty_frames = plan->problem.coll == HOOP_BARRIER,
    };
    binding->quotient = count / binding->chunks_per_block;
    binding->remainder = count % binding->chunks_per_block;
    cut(binding, frame, slices);

    size_t stride = binding->piece * element;
    if (__builtin_add_overflow(stride, (size_t)TMP_ALIGNMENT - 1, &stride))
        return hoop_fail(HOOP_ERR_MEMORY, "a temporary chunk of %zu elements of %zu bytes has no room", binding->piece,
                         element);
    binding->tmp_stride = stride & ~((size_t)TMP_ALIGNMENT - 1);
    if (__builtin_mul_overflow(binding->tmp_stride, (size_t)(plan->tmp - plan->tmp_first), &binding->tmp_bytes))
        return hoop_fail(HOOP_ERR_MEMORY, "%u temporary chunks of %zu bytes have no room", plan->tmp - plan->tmp_first,
                         binding->tmp_stride);
    return HOOP_OK;
}

enum hoop_status hoop_bind(struct hoop_binding *binding, const struct hoop_plan *plan, size_t count, size_t element,
                           size_t frame, size_t slices)
{
    const enum hoop_coll coll = plan->problem.coll;

    if (coll == HOOP_BARRIER)
        count = 0;
    const enum hoop_status status =
        check_size(plan, hoop_coll_shape(coll)->blocks ? (size_t)plan->problem.ranks : 1, count, element, frame);
    return status == HOOP_OK ? bind_shape(binding, plan, count, element, frame, slices) : status;
}

/* ---- blocks of different sizes ---- */

/* Does a step of an all_to_all move a block between this rank and the one that it is for? */
static bool moves_straight(const struct hoop_plan *plan, const struct hoop_step *step)
{
    const uint32_t each = plan->grid / (uint32_t)plan->problem.ranks, own = (uint32_t)plan->problem.rank;

    switch ((enum hoop_step_kind)step->kind) {
    case HOOP_STEP_SEND:
        return step->from_buffer == HOOP_IN && step->from / each == (uint32_t)step->peer;
    case HOOP_STEP_RECV:
        return step->to_buffer == HOOP_OUT && step->to / each == (uint32_t)step->peer;
    case HOOP_STEP_COPY:
        return step->to_buffer == HOOP_OUT && step->from_buffer == HOOP_IN && step->to == step->from &&
               step->to / each == own;
    default:
        return step->kind == HOOP_STEP_AFTER;
    }
}

static enum hoop_status check_plan(const struct hoop_plan *plan)
{
    const enum hoop_coll coll = plan->problem.coll;
    bool good = coll == HOOP_ALL_GATHER || coll == HOOP_ALL_TO_ALL;

    for (uint32_t l = 0; coll == HOOP_ALL_TO_ALL && l < plan->lanes; l++)
        for (uint32_t s = 0; s < plan->lane[l].steps; s++)
            good &= moves_straight(plan, &plan->lane[l].step[s]);
    return good ? HOOP_OK
                : hoop_fail(HOOP_ERR_UNSUPPORTED, "%s by %s cannot have blocks of different sizes",
                            hoop_coll_name(coll), plan->algo->name);
}

static enum hoop_status check_blocks(const struct hoop_extent *extent, int ranks, size_t largest, size_t element)
{
    size_t end;

    for (int rank = 0; rank < ranks; rank++) {
        if (extent[rank].count > largest)
            return hoop_fail(HOOP_ERR_ARG, "block %d of %zu elements is larger than the largest, %zu", rank,
                             extent[rank].count, largest);
        if (__builtin_add_overflow(extent[rank].first, extent[rank].count, &end) ||
            __builtin_mul_overflow(end, element, &end))
            return hoop_fail(HOOP_ERR_ARG, "block %d of %zu elements of %zu bytes ends beyond what a size_t counts",
                             rank, extent[rank].count, element);
    }
    return HOOP_OK;
}

enum hoop_status hoop_bind_blocks(struct hoop_binding *binding, const struct hoop_plan *plan,
                                  const struct hoop_extent *in, const struct hoop_extent *out, size_t largest,
                                  size_t element, size_t frame, size_t slices)
{
    enum hoop_status status = check_plan(plan);

    if (status == HOOP_OK)
        status = check_size(plan, 1, largest, element, frame);
    if (status == HOOP_OK)
        status = check_blocks(in, plan->problem.ranks, largest, element);
    if (status == HOOP_OK)
        status = check_blocks(out, plan->problem.ranks, largest, element);
    if (status == HOOP_OK)
        status = bind_shape(binding, plan, largest, element, frame, slices);
    if (status != HOOP_OK)
        return status;
    binding->in_blocks = in;
    binding->out_blocks = out;
    return HOOP_OK;
}

struct hoop_extent hoop_bind_extent_of_block(const struct hoop_binding *binding, enum hoop_buffer buffer,
                                             uint32_t block, uint32_t i, size_t slice)
{
    const struct hoop_extent whole = (buffer == HOOP_IN ? binding->in_blocks : binding->out_blocks)[block];
    const struct hoop_extent chunk = hoop_part(whole.count, binding->chunks_per_block, i);
    struct hoop_extent piece = hoop_part(chunk.count, binding->slices, slice);

    piece.first = buffer == HOOP_TMP ? 0 : piece.first + chunk.first + whole.first;
    return piece;
}
