// SPDX-License-Identifier: BSD-3-Clause
/* HOOP_EFFORT=measure and HOOP_WISDOM: choices by measured time. See tune.c. */
#ifndef HOOP_COMM_TUNE_H
#define HOOP_COMM_TUNE_H

#include "comm/comm.h"
#include "plan/explain.h"

/* Get ready, if the settings ask for it; rank 0 reads the wisdom. Errors: HOOP_ERR_SETUP, HOOP_ERR_MEMORY. */
enum hoop_status hoop_tune_open(struct hoop_comm *comm);

/* Tell all ranks what rank 0 has read. A collective. */
enum hoop_status hoop_tune_share(struct hoop_comm *comm);

/* The algorithm for a call: as measured, or the one whose turn it is to be measured, or the estimate. */
struct hoop_decision hoop_tune_select(struct hoop_comm *comm, const struct hoop_comm_call *call,
                                      const struct hoop_problem *problem, size_t vector);

/* The plan that was selected last took so long. The last of a row of trials makes the ranks settle on one. */
enum hoop_status hoop_tune_note(struct hoop_comm *comm, uint64_t ns);

/* Keep what was measured, on rank 0. A failure is only logged. */
void hoop_tune_save(struct hoop_comm *comm);

/* What is known of calls of a size, for an explanation; returns how many entries of `to` were filled. */
int hoop_tune_tell(const struct hoop_comm *comm, enum hoop_coll coll, size_t vector,
                   struct hoop_tuned to[HOOP_TUNED_MOST]);

void hoop_tune_free(struct hoop_comm *comm);

#endif
