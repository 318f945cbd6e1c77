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

enum hoop_status hoop_bind(struct hoop_binding *binding, const struct hoop_plan *plan, size_t count, size_t element,
                           size_t frame, size_t slices)
{
    const enum hoop_coll coll = plan->problem.coll;
    const struct hoop_coll_shape *shape = hoop_coll_shape(coll);
    const uint32_t ranks = shape->blocks ? (uint32_t)plan->problem.ranks : 1;

    if (coll == HOOP_BARRIER)
        count = 0;
    const enum hoop_status status = check_size(plan, ranks, count, element, frame);
    if (status != HOOP_OK)
        return status;
    *binding = (struct hoop_binding){
        .count = count,
        .element = element,
        .grid = plan->grid,
        .chunks_per_block = plan->grid / ranks,
        .tmp_first = plan->tmp_first,
        .in_is_block = shape->in == HOOP_OWN_BLOCK,
        .out_is_block = shape->out == HOOP_OWN_BLOCK,
        .empty_frames = coll == HOOP_BARRIER,
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
