// SPDX-License-Identifier: BSD-3-Clause
/* What several algorithms write alike: a sum in rank order. */
#ifndef HOOP_ALGO_ORDER_H
#define HOOP_ALGO_ORDER_H

#include "hoop/plan.h"

/* OUT's chunk = ((x0 + x1) + x2) + … of all ranks' messages, one from each, every operand on its side; mine is in IN.
 *
 * Rank 0 and 1 begin with their own part; a later rank first gathers what comes before it, and in place it does so in
 * TMP, since its own part lies where the sum will be.
 * spare   a TMP chunk of the same size as `chunk`; used in place only. */
void hoop_algo_sum_in_order(struct hoop_lane *lane, const struct hoop_problem *problem, int chunk, int spare);

#endif
