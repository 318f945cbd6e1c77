// SPDX-License-Identifier: BSD-3-Clause
/* Host streams: a queue of calls and the thread that runs them in order. */
#ifndef HOOP_EXEC_STREAM_H
#define HOOP_EXEC_STREAM_H

#include <stdbool.h>

#include "hoop.h"

/* Append a job: run(data) is called on the stream's thread after all earlier jobs, then data is freed with hoop_free (it must come
 * from base/alloc.h). Errors: HOOP_ERR_ARG (no stream), HOOP_ERR_MEMORY; data is not freed then.   Threads: any. */
enum hoop_status hoop_stream_enqueue(struct hoop_stream *stream, enum hoop_status (*run)(void *data), void *data);

/* Is it a living host stream? The pointer may be anything, such as a CUDA stream.   Threads: any. */
bool hoop_stream_is_host(const hoop_stream *stream);

#endif
