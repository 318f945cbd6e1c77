// SPDX-License-Identifier: BSD-3-Clause
/* Collectives in each other's memory: for ranks of one host whose buffers all lie where all can reach them.
 *
 * Everybody knows where everybody's buffers are (flat.h). Reducing collectives take two shots in one: rank i reduces slice
 * i of the vector straight from all inputs and stores it straight into all outputs. The others copy from where data lie
 * to where they belong. Then each rank says that it has finished, and who lent memory returns when all have.
 *
 * Nobody may write into a rank's buffers after its call has returned, also when the call fails because a peer died
 * or stopped: a rank then waits until the living have let go, and takes its output off the board if one does not.
 *
 * Gives the same bits as the plans that sum in rank order (flat, twoshot); only time would change without it.
 */
#ifndef HOOP_EXEC_DIRECT_H
#define HOOP_EXEC_DIRECT_H

#include "exec/flat.h"

/* Bytes that are worked on between two looks at the verdict, by which they stay in the first cache. Those that pass the caches by
 * are put together in a block so small that loads and stores of several are under way at once: with 512 bytes 16 MiB took
 * 1.4 ms, with 16 KiB 2.0. */
enum { HOOP_DIRECT_BLOCK = 16384, HOOP_DIRECT_STREAM = 512 };

/* Can this rank lend what the call needs of it? Then *offer tells where that is. */
bool hoop_direct_offer(const struct hoop_board *board, const struct hoop_flat_call *call, struct hoop_offer *offer);

/* Turn the offers, to which flat->inputs point, into the addresses of inputs and outputs. false: they do not suffice to run the
 * call in each other's memory, and nothing has changed; all ranks get the same answer. */
bool hoop_direct_locate(struct hoop_flat *flat, const struct hoop_flat_call *call);

/* Is [offset, offset + bytes) of the board inside that rank's heap? */
bool hoop_direct_inside(const struct hoop_board *board, int rank, uint64_t offset, size_t bytes);

/* The first of `count` elements that belongs to the rank's slice. Slices end with cache lines, which two ranks would else fight for. */
size_t hoop_direct_slice(const struct hoop_flat *flat, const struct hoop_flat_call *call, size_t count, int rank);

/* Combine `count` elements of all inputs, at flat->cursor, into one place, which may be one of the inputs. */
void hoop_direct_combine(const struct hoop_flat *flat, const struct hoop_flat_call *call, void *to, size_t count);

/* Run the call; only after hoop_direct_locate.
 * Blocking: until done or a verdict.   Errors: the verdict's. Afterwards no peer touches this rank's buffers. */
enum hoop_status hoop_direct_run(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait);

#endif
