// SPDX-License-Identifier: BSD-3-Clause
/* Where the buffers of staged calls lie in staging memory, and what is to be copied in and back. See stage_layout.c. */
#ifndef HOOP_COMM_STAGE_LAYOUT_H
#define HOOP_COMM_STAGE_LAYOUT_H

#include "comm/comm.h"

/* One copy between device memory and a place in staging memory. */
struct hoop_piece {
    uintptr_t device;
    size_t offset, bytes;
};

struct hoop_pieces {
    size_t pieces;
    struct hoop_piece *piece;
};

struct hoop_staged_call {
    size_t in, out;                  /* places */
    struct hoop_comm_blocks *blocks; /* of the places; NULL: equal ones */
};

struct hoop_layout {
    size_t bytes, calls;
    struct hoop_staged_call *call;
    struct hoop_pieces in, out; /* to be copied before and after the calls */
};

/* Lay out the calls that are on device memory. The layout is the caller's until hoop_layout_free.
 * Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_layout_make(struct hoop_layout *layout, const struct hoop_comm_call *call, size_t calls);

/* Turn copies of the same calls into calls on staging memory at `memory`. Their blocks belong to the layout. */
void hoop_layout_apply(const struct hoop_layout *layout, void *memory, struct hoop_comm_call *call);

void hoop_layout_free(struct hoop_layout *layout);

#endif
