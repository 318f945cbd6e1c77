// SPDX-License-Identifier: BSD-3-Clause
/* What of a plan crosses from one group of ranks to another: how many messages of its longest chain, and how much data.
 *
 * An algorithm may have formulas for it (hier). Of the others the plans of all ranks are walked once, without data, and what
 * was found is noted with the groups. Beyond HOOP_CROSSING_MOST ranks it is estimated as if every rank were as likely a peer as any.
 */
#ifndef HOOP_PLAN_CROSSING_H
#define HOOP_PLAN_CROSSING_H

#include "hoop/plan.h"

enum { HOOP_CROSSING_MOST = 1024, HOOP_CROSSING_LEARNT = 256 };

/* What was found about the plans among groups, kept with them. */
enum { HOOP_NOTES_ALGOS = 32 };
struct hoop_notes {
    bool learnt; /* nothing more is walked than there is */
    struct hoop_note {
        struct hoop_crossing crossing;
        double hop, hop_across; /* of the model that weighed the chain; 0: not walked yet */
    } note[HOOP_NOTES_ALGOS][HOOP_COLLS];
};

/* Of the problem's groups, which are not NULL, with the algorithm's own cost; near and far are weighed by the model's hops. Notes
 * what it walks, so one at a time for the same groups. Never fails: without memory it is estimated. */
struct hoop_crossing hoop_crossing_of(const struct hoop_model *model, const struct hoop_algo *algo,
                                      const struct hoop_problem *problem, const struct hoop_cost *cost);

/* Walk all that can be asked for, so that no choice hangs on memory later. Beyond HOOP_CROSSING_LEARNT ranks nothing is walked, now or
 * later. Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_crossing_learn(const struct hoop_model *model, const struct hoop_groups *groups);

/* Walk the plans of all ranks. Errors: those of hoop_plan_build, HOOP_ERR_MEMORY. */
enum hoop_status hoop_crossing_walk(const struct hoop_model *model, const struct hoop_algo *algo,
                                    const struct hoop_problem *problem, struct hoop_crossing *crossing);

#endif
