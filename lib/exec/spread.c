// SPDX-License-Identifier: BSD-3-Clause
/* Count the ranks of each processor, and move the last one of the fullest that may leave it. */
#include "exec/spread.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

enum { RANKS_MOST = 1024 }; /* more on one host are left where they are */

static const uint64_t look_every = 2000000; /* ns */

int hoop_spread_target(const struct hoop_spread_place *place, int ranks, int own, const cpu_set_t *allowed)
{
    uint16_t count[CPU_SETSIZE] = {0};
    const int here = place[own].processor;
    int best = -1;

    if (here < 0 || here >= CPU_SETSIZE)
        return -1;
    for (int rank = 0; rank < ranks; rank++) {
        const int there = place[rank].processor;
        if (there < 0 || there >= CPU_SETSIZE)
            continue;
        if (rank > own && there == here && !place[rank].bound) /* it is that one's turn */
            return -1;
        count[there]++;
    }
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, allowed) && count[i] + 1 < count[here] && (best < 0 || count[i] < count[best]))
            best = i;
    return best;
}

/* Let the thread run where it might before. What the system has taken away meanwhile, of a cpuset, it refuses if nothing is left; of all
 * processors that there could be it grants those that it has for us. */
static bool set_free(const cpu_set_t *allowed)
{
    cpu_set_t any;

    memset(&any, 0xff, sizeof any);
    return sched_setaffinity(0, sizeof *allowed, allowed) == 0 || sched_setaffinity(0, sizeof any, &any) == 0;
}

/* Bind the thread there and set it free again. True: it has gone. */
static bool move_to(struct hoop_spread *spread, int rank, int processor, const cpu_set_t *allowed)
{
    cpu_set_t single;

    CPU_ZERO(&single);
    CPU_SET((size_t)processor, &single);
    if (sched_setaffinity(0, sizeof single, &single) != 0)
        return false;
    if (!set_free(allowed)) {
        spread->on = false;
        hoop_log(HOOP_LOG_WARN, rank,
                 "a thread that was moved to processor %d to spread the ranks stays bound to it: %s. It is not moved "
                 "again; HOOP_SPREAD=0 leaves all where they are.",
                 processor, strerror(errno));
    }
    return true;
}

static struct hoop_spread_place place_of(struct hoop_board *board, int rank)
{
    const int noted = atomic_load_explicit(&hoop_board_card(board, rank)->processor, memory_order_relaxed);

    return (struct hoop_spread_place){(noted < 0 ? -noted : noted) - 1, noted < 0};
}

void hoop_spread_look(struct hoop_spread *spread, struct hoop_board *board)
{
    struct hoop_card *own = hoop_board_card(board, board->rank);
    struct hoop_spread_place place[RANKS_MOST];
    cpu_set_t allowed;

    if (!spread->on || board->shape.ranks > RANKS_MOST || hoop_now() < spread->next)
        return;
    spread->next = hoop_now() + look_every;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) /* more processors than the set can hold */
        return;
    const int here = sched_getcpu() + 1;
    atomic_store_explicit(&own->processor, CPU_COUNT(&allowed) > 1 ? here : -here, memory_order_relaxed);
    for (int rank = 0; rank < board->shape.ranks; rank++)
        place[rank] = place_of(board, rank);
    const int target = hoop_spread_target(place, board->shape.ranks, board->rank, &allowed);
    if (target < 0 || !move_to(spread, board->rank, target, &allowed))
        return;
    atomic_store_explicit(&own->processor, target + 1, memory_order_relaxed);
    spread->moves++;
}
