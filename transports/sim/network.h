// SPDX-License-Identifier: BSD-3-Clause
/* Inside of the virtual network: pipes, what flies in them, and the clock. All functions want the lock held. */
#ifndef HOOP_TRANSPORTS_SIM_NETWORK_H
#define HOOP_TRANSPORTS_SIM_NETWORK_H

#include <pthread.h>
#include <stddef.h>

#include "transports/sim/sim.h"

struct sim_frame {
    uint64_t arrival; /* when, in virtual nanoseconds */
    uint64_t order;   /* of sending, over the whole network: decides between equal arrivals */
    uint64_t tag;
    size_t bytes;
    const void *data; /* the copy, or the sender's memory */
    void *copy;       /* NULL: lent */
    bool lost;        /* lent by a sender that is gone: the memory must not be touched */
};

/* One direction of one link. Made by the end that connects first, freed by the end that disconnects last. */
struct sim_pipe {
    int from, to, lane, slots;
    size_t frame_bytes;
    double gigabytes_per_second, nanoseconds;
    uint64_t free_at, last_arrival;
    struct sim_frame *frame;           /* circle of slots */
    int first, count, arrived;         /* the oldest frame; all; those that have arrived */
    uint64_t taken;                    /* frames received so far */
    enum hoop_status sender, receiver; /* HOOP_OK, or why that end has given up */
    bool joined[2], left[2];           /* [0] sender, [1] receiver */
    int heap_at;                       /* place in the heap of flying pipes, -1: nothing flies */
    struct sim_pipe *next;             /* of those that lead to `to` */
};

struct hoop_sim {
    pthread_mutex_t lock;
    struct hoop_sim_config config;
    int ranks, open, idle; /* open: domains; idle: progress calls in a row that found nothing */
    uint64_t now, random, order;
    bool *dead;               /* by rank */
    struct sim_pipe **into;   /* by rank: pipes that lead to it */
    struct sim_pipe **flying; /* heap by arrival of the next frame */
    int flying_count, flying_room;
};

enum sim_end { SIM_SENDER, SIM_RECEIVER };

/* The pipe whose `end` nobody has used, made if there is none.
 * Errors: HOOP_ERR_ARG (the ends differ in slots or frame), HOOP_ERR_MEMORY. */
enum hoop_status sim_pipe_join(struct hoop_sim *sim, struct sim_pipe *shape, enum sim_end end, struct sim_pipe **pipe);

/* This end is done with the pipe; it may be gone afterwards. */
void sim_pipe_leave(struct hoop_sim *sim, struct sim_pipe *pipe, enum sim_end end);

/* The sender gives up: what it lent is lost. Only the first cause counts. */
void sim_pipe_stop(struct sim_pipe *pipe, enum hoop_status cause);

/* Put a frame on its way; there must be room. Takes over `copy`. */
void sim_pipe_push(struct hoop_sim *sim, struct sim_pipe *pipe, const void *data, void *copy, size_t bytes,
                   uint64_t tag);

/* The oldest frame that has arrived, or NULL. */
struct sim_frame *sim_pipe_look(struct sim_pipe *pipe);

/* Drop the oldest frame, which has arrived. */
void sim_pipe_take(struct hoop_sim *sim, struct sim_pipe *pipe);

/* Let one frame arrive; false if none flies. */
bool sim_deliver(struct hoop_sim *sim);

/* A progress call ends: time may pass. */
void sim_tick(struct hoop_sim *sim, bool moved);

#endif
