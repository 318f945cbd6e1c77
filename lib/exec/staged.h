// SPDX-License-Identifier: BSD-3-Clause
/* The direct all-reduce and broadcast (direct.h) for buffers that peers cannot reach: each rank lends a stage on the board instead.
 *
 * The vector is taken piece by piece. Of a piece each rank puts onto its stage what the others sum, that is all but its own
 * slice; sums its slice from the others' stages and its own input, into its output and onto its stage; and fetches the other slices of
 * the result. So an element is copied twice, as it must be if nobody reaches the other's memory, and a stage is so small that it
 * stays in the caches. A rank whose input lies on the board lends that instead.
 *
 * One stage for the inputs and one for the results suffice: a rank stages the next piece only when it has all results of the
 * last one, so that nobody reads its stage any more, and writes results only when all have staged, and so have fetched the last ones.
 *
 * Of a broadcast the root puts all pieces onto its stage, and the others fetch them. It may be ahead by as many as the stage holds; it
 * returns when all have fetched the last one, so that nobody reads its stage after a call of either kind.
 *
 * Only the rank itself touches its buffers. Gives the same bits as direct.h.
 */
#ifndef HOOP_EXEC_STAGED_H
#define HOOP_EXEC_STAGED_H

#include "exec/flat.h"

/* Can the call run this way? All ranks get the same answer. */
bool hoop_staged_fits(const struct hoop_flat *flat, const struct hoop_flat_call *call);

/* Stage the first piece, if peers cannot read the input where it is, and fill in the offer.
 * Errors: HOOP_ERR_MEMORY (no pages for the stage). */
enum hoop_status hoop_staged_offer(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_offer *offer);

/* Run the call, when all have offered. flat->inputs point to the offers.
 * Blocking: until done or a verdict.   Errors: the verdict's. */
enum hoop_status hoop_staged_run(struct hoop_flat *flat, const struct hoop_flat_call *call, struct hoop_wait *wait);

#endif
