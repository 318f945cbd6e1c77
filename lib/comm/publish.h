// SPDX-License-Identifier: BSD-3-Clause
/* Telling the peers what this rank calls, before any data.
 *
 * The record says it in full, for whoever has to report that calls differ; the fingerprint, which is on every frame and in every
 * slot, says it in a word. It covers all calls so far: two ranks that made different calls which neither could notice (each the root
 * of its own broadcast) notice it at their next call.
 */
#ifndef HOOP_COMM_PUBLISH_H
#define HOOP_COMM_PUBLISH_H

#include "comm/comm.h"

static inline uint64_t hoop_publish_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* Publish the next call of a communicator whose turn it is. kind: of hoop_call_pack; element: bytes of one, where a created operator
 * says so, else 0. Returns the fingerprint. */
static inline uint64_t hoop_publish_kind(struct hoop_comm *comm, uint64_t kind, size_t count, size_t element)
{
    const uint64_t sequence = ++comm->sequence,
                   counted = hoop_publish_mix(hoop_publish_mix(comm->fingerprint, kind), count),
                   fingerprint = (element ? hoop_publish_mix(counted, element) : counted) | 1;
    struct hoop_card *card = hoop_board_card(comm->board, comm->rank);
    struct hoop_call *record = &card->call[sequence % HOOP_CALL_RECORDS];

    comm->fingerprint = fingerprint;
    __atomic_store_n(&record->sequence, sequence, __ATOMIC_RELAXED);
    __atomic_store_n(&record->count, count, __ATOMIC_RELAXED);
    __atomic_store_n(&record->kind, kind, __ATOMIC_RELAXED);
    __atomic_store_n(&record->fingerprint, fingerprint, __ATOMIC_RELAXED);
    atomic_store_explicit(&card->started, sequence, memory_order_release);
    return fingerprint;
}

/* The number under which a call is known to the peers. */
unsigned hoop_shown_coll(const struct hoop_comm_call *call);

/* The same of a call. */
uint64_t hoop_publish(const struct hoop_comm_call *call);

#endif
