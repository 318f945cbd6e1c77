// SPDX-License-Identifier: BSD-3-Clause
#include "algo/order.h"

void hoop_algo_sum_in_order(struct hoop_lane *lane, const struct hoop_problem *p, int chunk, int spare)
{
    const enum hoop_buffer early = p->in_place ? HOOP_TMP : HOOP_OUT; /* gathers the ranks before mine */
    const int at = p->in_place ? spare : chunk;

    if (p->rank == 0) {
        hoop_lane_recv_reduce_behind(lane, 1, HOOP_OUT, chunk, HOOP_IN, chunk);
    } else if (p->rank == 1) {
        hoop_lane_recv_reduce(lane, 0, HOOP_OUT, chunk, HOOP_IN);
    } else {
        hoop_lane_recv(lane, 0, early, at);
        for (int rank = 1; rank < p->rank; rank++)
            hoop_lane_recv_reduce_behind(lane, rank, early, at, early, at);
        if (p->in_place)
            hoop_lane_combine(lane, HOOP_OUT, chunk, HOOP_TMP, at);
        else
            hoop_lane_combine_behind(lane, HOOP_OUT, chunk, HOOP_IN, chunk);
    }
    for (int rank = p->rank < 2 ? 2 : p->rank + 1; rank < p->ranks; rank++)
        hoop_lane_recv_reduce_behind(lane, rank, HOOP_OUT, chunk, HOOP_OUT, chunk);
}
