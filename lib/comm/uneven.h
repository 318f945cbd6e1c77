// SPDX-License-Identifier: BSD-3-Clause
/* Blocks of different sizes: all_gatherv and all_to_allv as struct hoop_comm_call with a list of blocks. See uneven.c. */
#ifndef HOOP_COMM_UNEVEN_H
#define HOOP_COMM_UNEVEN_H

#include "comm/comm.h"
#include "plan/bind.h"

/* Where the blocks lie, in elements. Shared by all copies of a call: each keeps it, the last one that drops it frees it. */
struct hoop_comm_blocks {
    _Atomic int users;
    size_t largest;               /* elements of a block, of any rank; all_to_allv: as agreed for the running call */
    uint64_t hash;                /* of the counts, where all ranks know them */
    struct hoop_extent *in, *out; /* one a rank */
    struct hoop_extent extent[];
};

/* Empty extents for so many ranks, with one user; NULL: no memory. */
struct hoop_comm_blocks *hoop_blocks_new(size_t ranks);

/* NULL is allowed in both. Threads: any. */
void hoop_blocks_keep(struct hoop_comm_blocks *blocks);
void hoop_blocks_drop(struct hoop_comm_blocks *blocks);

/* Before the data of an all_to_allv: tell each other the counts; fill in the largest block, and in place as all have it.
 * Blocking, errors: as a collective; HOOP_ERR_MISMATCH names the pair of ranks that differ, on all ranks. */
enum hoop_status hoop_uneven_agree(struct hoop_comm_call *call);

#endif
