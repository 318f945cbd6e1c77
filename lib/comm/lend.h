// SPDX-License-Identifier: BSD-3-Clause
/* Device memory that peers of other processes may read where it is. See lend.c. */
#ifndef HOOP_COMM_LEND_H
#define HOOP_COMM_LEND_H

#include "comm/comm.h"
#include "exec/cuda.h"

struct hoop_lend;

/* Make this rank's table, to be told to all: its place in the board.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_lend_new(struct hoop_comm *comm, struct hoop_lend **lend, uint64_t *place);

/* place: of the table of each rank, `stride` bytes apart. Begin to open what peers offer.
 * Errors: HOOP_ERR_SETUP (a place is none), HOOP_ERR_SYSTEM. */
enum hoop_status hoop_lend_start(struct hoop_lend *lend, const uint64_t *place, size_t stride);

/* Close what is open of the peers' memory, and open no more; this rank's kernels must have ended. NULL is allowed. */
void hoop_lend_stop(struct hoop_lend *lend);

/* After stop. NULL is allowed. */
void hoop_lend_free(struct hoop_lend *lend);

/* Offer a whole allocation to the peers; returns its row, or -1: they will not get it (no room, no peer that would, no handle).
 * Threads: any. NULL is allowed, as below. */
int hoop_lend_offer(struct hoop_lend *lend, const void *memory, size_t bytes);

/* Take the offer of a row back. Peers close it soon; until is_open says that nobody has it open the memory may not be freed. Then the
 * row must be given back by vacate.   Threads: any. */
void hoop_lend_withdraw(struct hoop_lend *lend, int row);
bool hoop_lend_is_open(const struct hoop_lend *lend, int row);
void hoop_lend_vacate(struct hoop_lend *lend, int row);

/* On the thread that watches, now and then: what peers have offered, withdrawn or opened is taken care of by a thread that may wait for the
 * device; it also frees what peers have closed. */
void hoop_lend_look(struct hoop_lend *lend);

/* Before launches, in their order: let kernels know what peers have opened. Not while the stream is captured. */
enum hoop_status hoop_lend_tell(struct hoop_lend *lend, struct hoop_cuda_exec *exec, hoop_cu_stream stream);

/* Have kernels not been told yet of something that has changed? */
bool hoop_lend_has_news(const struct hoop_lend *lend);

/* The row of the offer that an address is in, as kernels know it (row + 1); 0: none. */
uint32_t hoop_lend_row(const struct hoop_lend *lend, const void *address);

#endif
