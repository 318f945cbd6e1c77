// SPDX-License-Identifier: BSD-3-Clause
/* From plans and bindings to what the interpreter kernel gets: pure functions, which know no driver. */
#ifndef HOOP_EXEC_PROGRAM_H
#define HOOP_EXEC_PROGRAM_H

#include "exec/device/program.h"
#include "hoop/plan.h"
#include "hoop/transport.h"
#include "plan/bind.h"

/* Bytes of a plan in device memory. */
size_t hoop_program_bytes(const struct hoop_plan *plan);

/* Write the plan as it will lie at `address`, a multiple of 16, into memory of that many bytes.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_program_write(const struct hoop_plan *plan, uint64_t address, void *memory);

/* Fill in what a call takes from its plan and binding; buffers, blocks, state and tag are the caller's. Equal on all ranks: frames and
 * `small`, the most bytes of a piece that goes in words with flags (0 … HOOP_DEVICE_SMALL). */
void hoop_program_bind(struct hoop_device_call *call, const struct hoop_plan *plan, const struct hoop_binding *binding,
                       enum hoop_type type, enum hoop_op op, size_t small);

/* The blocks of a binding that has blocks of different sizes: of IN, one a rank, then of OUT. */
void hoop_program_blocks(const struct hoop_binding *binding, int ranks, struct hoop_device_block *block);

/* ---- messages: a list in which those of one peer and kind come one behind the other, in their order ---- */

/* How many queues the list has; the bytes of its largest message. */
size_t hoop_program_queues(const struct hoop_device_message *message, size_t messages);
uint64_t hoop_program_largest(const struct hoop_device_message *message, size_t messages);

/* Parts of a message of so many bytes, of at most `most`: as the kernel cuts it. */
uint32_t hoop_program_parts(uint64_t bytes, uint32_t most);

/* Bytes of the list with what leads to it, and write it as it will lie at `address`, a multiple of 16. Behind it the kernel has struct
 * hoop_device_progress[parts][queues]. */
size_t hoop_program_messages_bytes(size_t messages, size_t queues);
void hoop_program_messages(const struct hoop_device_message *message, size_t messages, int parts, uint64_t address,
                           void *memory);

/* A link as the kernel keeps it, with no frames carried yet. */
struct hoop_device_pipe hoop_program_pipe(const struct hoop_device_link *link);

/* What the kernel has reported: HOOP_OK; HOOP_ERR_MISMATCH (names lane, peer and fingerprints) with *peer; HOOP_ERR_ABORTED.
 * Errors beyond: none. Any thread, also while kernels run. */
enum hoop_status hoop_program_verdict(const struct hoop_device_report *report, int *peer);

/* Has a kernel found that a peer sends another message than this rank expects? Shapes: of struct hoop_device_message. Likewise. */
struct hoop_program_pair {
    int peer;
    uint64_t expected, sent; /* elements */
    uint32_t expected_shape, sent_shape;
};
bool hoop_program_pair(const struct hoop_device_report *report, struct hoop_program_pair *pair);

/* Where lanes stand that have been waiting since long, as one number which changes when any of them goes on; 0: none has. *call: the
 * number of the earliest of their calls. Any thread, also while kernels run. */
uint64_t hoop_program_standstill(const struct hoop_device_report *report, uint64_t *call);

/* The number of the latest call that a lane has begun. Likewise. */
uint64_t hoop_program_begun(const struct hoop_device_report *report);

/* Is any lane in a launch that it has neither done nor given up? Likewise. */
bool hoop_program_runs(const struct hoop_device_report *report);

/* For people: what each lane has been waiting for since long, or nothing if there is none; ends with NUL. Returns the number of such lanes. */
int hoop_program_waits(const struct hoop_device_report *report, char *text, size_t size);

#endif
