// SPDX-License-Identifier: BSD-3-Clause
/* Small tables for kernels, brought to device memory in the order of a stream.
 *
 * The copy reads pinned memory of the host at its own time, so each goes by way of a slot that is used again when the stream has passed
 * it. A copy that a capture recorded is repeated with every replay, so its slot is kept for good. */
#ifndef HOOP_EXEC_CUDA_BRING_H
#define HOOP_EXEC_CUDA_BRING_H

#include "mem/cuda.h"

struct hoop_cuda_bring;

/* Make it, with some slots of `room` bytes.   Errors: HOOP_ERR_MEMORY, the driver's. */
enum hoop_status hoop_cuda_bring_new(struct hoop_cuda_bring **bring, struct hoop_cuda *cuda, size_t room);

/* Free it; what was brought must have arrived. NULL is allowed. */
void hoop_cuda_bring_free(struct hoop_cuda_bring *bring);

/* Enqueue the copy; data is the caller's again on return. More pinned memory is taken where no slot is free, or none is large enough.
 * Errors: HOOP_ERR_MEMORY, the driver's. */
enum hoop_status hoop_cuda_bring(struct hoop_cuda_bring *bring, hoop_cu_address to, const void *data, size_t bytes,
                                 hoop_cu_stream stream);

#endif
