// SPDX-License-Identifier: BSD-3-Clause
/* Count the ranks of each processor, and move the last one of the fullest. */
#include "exec/spread.h"

#include <string.h>

#include "base/clock.h"

enum { RANKS_MOST = 1024 }; /* more on one host are left where they are */

static const uint64_t look_every = 2000000; /* ns */

int hoop_spread_target(const int *processor, int ranks, int own, const cpu_set_t *allowed)
{
    uint16_t count[CPU_SETSIZE] = {0};
    const int here = processor[own];
    int best = -1;

    if (here < 0 || here >= CPU_SETSIZE)
        return -1;
    for (int rank = 0; rank < ranks; rank++) {
        if (processor[rank] < 0 || processor[rank] >= CPU_SETSIZE)
            continue;
        if (rank > own && processor[rank] == here) /* it is that one's turn */
            return -1;
        count[processor[rank]]++;
    }
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, allowed) && count[i] + 1 < count[here] && (best < 0 || count[i] < count[best]))
            best = i;
    return best;
}

/* Bind the thread there and set it free again. True: it has gone. */
static bool move_to(int processor, const cpu_set_t *allowed)
{
    cpu_set_t single;

    CPU_ZERO(&single);
    CPU_SET((size_t)processor, &single);
    return sched_setaffinity(0, sizeof single, &single) == 0 && sched_setaffinity(0, sizeof *allowed, allowed) == 0;
}

void hoop_spread_look(struct hoop_spread *spread, struct hoop_board *board)
{
    struct hoop_card *own = hoop_board_card(board, board->rank);
    int processor[RANKS_MOST];
    cpu_set_t allowed;

    if (!spread->on || board->shape.ranks > RANKS_MOST || hoop_now() < spread->next)
        return;
    spread->next = hoop_now() + look_every;
    atomic_store_explicit(&own->processor, sched_getcpu() + 1, memory_order_relaxed);
    for (int rank = 0; rank < board->shape.ranks; rank++)
        processor[rank] = atomic_load_explicit(&hoop_board_card(board, rank)->processor, memory_order_relaxed) - 1;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) /* more processors than the set can hold */
        return;
    const int target = hoop_spread_target(processor, board->shape.ranks, board->rank, &allowed);
    if (target < 0 || !move_to(target, &allowed))
        return;
    atomic_store_explicit(&own->processor, target + 1, memory_order_relaxed);
    spread->moves++;
}
