// SPDX-License-Identifier: BSD-3-Clause
/* Choice of the algorithm by a simple cost model.
 *
 *     time = chain * hop + messages * post + moved / copy rate + reduced / reduce rate
 *
 * with the algorithm's own formulas for the four. The chain of dependent messages counts once with the first slice of
 * the data and is pipelined after that. Where ranks outnumber cores they take turns: the work of all of them adds up, and
 * each hop costs a change of context. The constants are of one current server core; they only have to rank the
 * algorithms, and all ranks use the same ones.
 */
#include <float.h>

#include "comm/comm.h"

static const double hop = 0.4e-6, hop_crowded = 8e-6, post = 0.15e-6, copy_rate = 8e9, reduce_rate = 6e9;

static double seconds(const struct hoop_terrain *terrain, const struct hoop_cost *cost, size_t bytes, size_t frame)
{
    const double crowd = terrain->ranks > terrain->cores ? (double)terrain->ranks / terrain->cores : 1;
    const double vector = (double)bytes, slices = vector * cost->volume / (double)frame;
    const double chain = cost->depth * (crowd > 1 ? hop_crowded : hop);

    return chain + crowd * ((cost->messages + slices) * post + cost->volume * vector / copy_rate +
                            cost->reduced * vector / reduce_rate);
}

const struct hoop_algo *hoop_comm_select(const struct hoop_terrain *terrain, const struct hoop_problem *problem,
                                         size_t vector, size_t published, const struct hoop_choice *choice)
{
    const struct hoop_algo *best = choice->flat, *algo;
    double least = DBL_MAX;

    if (choice->forced && choice->forced->applicable(problem))
        return choice->forced;
    if (published <= choice->flat_max)
        return best;
    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++) {
        if (!algo->applicable(problem))
            continue;
        const struct hoop_cost cost = algo->cost(problem);
        const double time = seconds(terrain, &cost, vector, choice->frame);
        if (time < least) {
            least = time;
            best = algo;
        }
    }
    return best;
}
