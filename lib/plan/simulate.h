// SPDX-License-Identifier: BSD-3-Clause
/* Inner side of the simulator: its state (simulate.c runs it, simulate_build.c makes it). Times in picoseconds. */
#ifndef HOOP_PLAN_SIMULATE_H
#define HOOP_PLAN_SIMULATE_H

#include "hoop/plan.h"
#include "plan/bind.h"
#include "plan/simulate_queue.h"

/* Set in the simulator's own copies of steps: a joined part follows on the same link. */
enum { HOOP_SIM_MORE = 0x80 };

/* How a rank's plan is made of that of one which stands for it: its peers are moved on by as much as it, or the same bits change. */
enum hoop_sim_turn { HOOP_SIM_NOT_TURNED, HOOP_SIM_MOVED, HOOP_SIM_FLIPPED };

struct hoop_sim_rank {
    uint64_t out_free, in_free, core_free; /* when port and core are free */
    uint64_t sent, received;               /* bytes */
    uint32_t first_lane, lanes, parked;
};

/* The uplink of a unit, both ways. */
struct hoop_sim_unit {
    uint64_t up_free, down_free; /* when */
    uint64_t sent, received;     /* bytes */
};

struct hoop_sim_lane {
    const struct hoop_step *first;
    size_t slice;
    uint32_t steps, step, rank;
    bool busy;   /* its step ends when it is woken */
    bool parked; /* waits for another lane */
};

/* A link's slots hold the bytes of a message that is on its way, then when it has come, then when its credit is back. */
struct hoop_sim_link {
    uint32_t sender, receiver; /* lanes */
    uint32_t to;               /* rank of the receiver */
    uint32_t level;            /* that it crosses */
    uint32_t sent, arrived, taken;
    bool sender_waits, receiver_waits;
    bool open;                         /* its receiver has begun to take a message */
    uint32_t last_sent, last_received; /* while it is made: the steps that use it, of the lane looked at */
    uint64_t bytes;
};

struct hoop_simulator {
    struct hoop_simulation *wish;
    struct hoop_binding binding;
    struct hoop_network network;
    uint32_t size[HOOP_LEVELS];              /* ranks in a unit of the level */
    struct hoop_sim_unit *unit[HOOP_LEVELS]; /* those of the ranks that are run; not for the last level, the ports */
    uint64_t latency[HOOP_LEVELS], post, now;
    double slowest[HOOP_LEVELS]; /* uplink of the level and those below */
    struct hoop_plan **plan;
    struct hoop_sim_rank *rank;
    struct hoop_sim_lane *lane;
    struct hoop_sim_link *link;
    uint64_t *slot;
    struct hoop_sim_queue queue; /* what: lane << 1, or link << 1 | 1 */
    size_t link_room;
    uint32_t ranks, lanes, links, lanes_done; /* ranks: that are run, fewer if they stand for all */
    enum hoop_sim_turn turn;
    uint64_t memory;
    enum hoop_status status;

    /* while it is made: links by their ends, an open hash of number + 1 */
    uint64_t *key;
    uint32_t *number;
    size_t places;
};

/* Are the plans copies of each other, turned by so many ranks, and how? Looks at some of them. Not if there are fewer bytes
 * than chunks: then some are empty and some are not. */
enum hoop_status hoop_sim_turned(const struct hoop_algo *algo, const struct hoop_problem *problem, int period,
                                 size_t bytes, enum hoop_sim_turn *turn);

/* Make plans, lanes and links. Errors: those of hoop_plan_build and hoop_bind; HOOP_ERR_MEMORY (more than `most` bytes). */
enum hoop_status hoop_sim_build(struct hoop_simulator *sim, const struct hoop_algo *algo,
                                const struct hoop_problem *problem, uint64_t most);
void hoop_sim_free(struct hoop_simulator *sim);

#endif
