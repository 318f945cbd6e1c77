// SPDX-License-Identifier: BSD-3-Clause
/* The simulator's events, by time; those of one time in the order in which they came.
 *
 * Thousands of ranks that do the same do it at the same time, so there are far fewer times than events: events are kept in one
 * list for each time, which a hash finds, and only the times are in a heap. Lists are made of lots of one cache line. Who takes
 * events sees the next ones of that time before their turn, and can have their memory fetched.
 */
#ifndef HOOP_PLAN_SIMULATE_QUEUE_H
#define HOOP_PLAN_SIMULATE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { HOOP_SIM_LOT = 15 };

struct hoop_sim_lot {
    uint32_t next; /* also of the free ones; 0: none */
    uint32_t what[HOOP_SIM_LOT];
};

/* A time at which something is to happen. */
struct hoop_sim_moment {
    uint64_t time;
    uint32_t first, last;   /* lots */
    uint32_t taken, filled; /* of the first, of the last */
    uint32_t next;          /* with the same hash, or free; 0: none */
};

struct hoop_sim_time {
    uint64_t time;
    uint32_t moment;
};

/* All zero: empty. Entries 0 of lots and moments are not used. */
struct hoop_sim_queue {
    struct hoop_sim_lot *lot;
    struct hoop_sim_moment *moment;
    struct hoop_sim_time *heap;
    uint32_t *place; /* first moment of each hash */
    uint32_t lots, lot_room, free_lot, moments, moment_room, free_moment, times;
    uint32_t latest; /* moment that the latest event went to */
};

/* Add an event; its time is not before that of the moment taken from. HOOP_ERR_MEMORY: it was not added. */
enum hoop_status hoop_sim_push(struct hoop_sim_queue *queue, uint64_t time, uint32_t what);

/* The earliest time that has not been ended; false: none. */
bool hoop_sim_earliest(const struct hoop_sim_queue *queue, uint64_t *time);

/* Take the next event of the earliest time; false: none is left, but some may come. */
bool hoop_sim_take(struct hoop_sim_queue *queue, uint32_t *what);

/* The earliest time, from which all has been taken, is over. */
void hoop_sim_end(struct hoop_sim_queue *queue);

size_t hoop_sim_queue_bytes(const struct hoop_sim_queue *queue);
void hoop_sim_queue_free(struct hoop_sim_queue *queue);

#endif
