// SPDX-License-Identifier: BSD-3-Clause
/* A network that exists only in one process and in a virtual clock.
 *
 * Every rank opens a sim domain with the network as its context. A frame leaves when its link (from, to, lane) is
 * free, occupies it for bytes / bandwidth and arrives a latency later. Time passes only when nothing else can: a
 * progress() call that finds nothing to do counts as idle, and when as many of them as there are ranks come in a row,
 * the next frame arrives and the clock jumps there. With `shuffle` any frame that is next on its link may be the next
 * to arrive, drawn by the seed, so one test with many seeds sees many interleavings.
 *
 * Driven from one thread the network is deterministic. It may be used from several threads (a lock protects it).
 */
#ifndef HOOP_TRANSPORTS_SIM_H
#define HOOP_TRANSPORTS_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "hoop.h"

struct hoop_sim;

struct hoop_sim_config {
    uint64_t seed;
    bool shuffle;  /* arrivals in any order that keeps each link a FIFO, and at any time */
    bool in_place; /* offer reserve, commit, peek and release */
    bool lend;     /* a send that is not staged is read from the sender's memory only when it is received */
    double gigabytes_per_second; /* of every link; 0: no limit */
    double nanoseconds;          /* latency of every link */
    /* If set: the figures of one link, preset with the two above. Pure. */
    void (*link)(void *context, int from, int to, double *gigabytes_per_second, double *nanoseconds);
    void *context;
};

/* Make the network of `ranks` ranks. *config is copied.
 * Errors: HOOP_ERR_ARG, HOOP_ERR_MEMORY. */
enum hoop_status hoop_sim_create(struct hoop_sim **sim, int ranks, const struct hoop_sim_config *config);

/* Free it; all its domains must have been closed. NULL is allowed. */
void hoop_sim_destroy(struct hoop_sim *sim);

/* Virtual nanoseconds since the network was made. */
uint64_t hoop_sim_now(struct hoop_sim *sim);

/* Let the next frame arrive without waiting for idle calls. False: no frame is on its way (then ranks that all wait are
 * deadlocked). */
bool hoop_sim_advance(struct hoop_sim *sim);

/* Rank `rank` dies now: its frames that have not arrived are lost, its links and those to it end with HOOP_ERR_PEER. */
void hoop_sim_kill(struct hoop_sim *sim, int rank);

#endif
