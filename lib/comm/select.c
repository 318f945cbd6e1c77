// SPDX-License-Identifier: BSD-3-Clause
/* Choice of the algorithm, how long it took, and the explanation of both.
 *
 * The choice itself is lib/plan/choose.c, by the cost model of lib/plan/model.c; here it gets this communicator's values.
 * Calls that run a plan are timed, and those of 64 KiB and more in each other's memory, as of algorithm NULL (smaller ones and the flat
 * exchange are not: reading the clock would be felt there).
 */
#include <string.h>

#include "comm/device.h"
#ifdef HOOP_CUDA
#include "comm/kernel.h"
#endif
#include "comm/tune.h"
#include "plan/explain.h"

struct hoop_decision hoop_comm_select(const struct hoop_comm *comm, const struct hoop_problem *problem, size_t vector,
                                      bool in_order)
{
    return in_order ? hoop_choose_in_order(&comm->choice, problem, vector)
                    : hoop_choose(&comm->choice, problem, vector);
}

/* The entry of a size, which another size may hold. */
static unsigned place_of(enum hoop_coll coll, size_t vector, const struct hoop_algo *algo)
{
    const uint64_t key = ((uint64_t)vector << 4 | (uint64_t)coll) ^ (uint64_t)(uintptr_t)algo << 32;

    return (unsigned)(key * 0x9e3779b97f4a7c15u >> 58) % HOOP_TIMINGS;
}

struct hoop_decision hoop_comm_decide(struct hoop_comm *comm, const struct hoop_problem *problem, size_t vector,
                                      bool in_order)
{
    struct hoop_chosen *chosen = &comm->choices[place_of(problem->coll, vector, NULL) % HOOP_CHOICES];

    if (chosen->decision.algo == NULL || chosen->coll != problem->coll || chosen->vector != vector ||
        chosen->in_place != problem->in_place || chosen->uneven != problem->uneven || chosen->in_order != in_order)
        *chosen = (struct hoop_chosen){.decision = hoop_comm_select(comm, problem, vector, in_order),
                                       .coll = problem->coll,
                                       .vector = vector,
                                       .in_place = problem->in_place,
                                       .uneven = problem->uneven,
                                       .in_order = in_order};
    return chosen->decision;
}

void hoop_comm_time(struct hoop_comm *comm, enum hoop_coll coll, size_t vector, const struct hoop_algo *algo,
                    uint64_t ns)
{
    struct hoop_timing *timing = &comm->timing[place_of(coll, vector, algo)];

    if (timing->algo != algo || timing->coll != coll || timing->vector != vector)
        *timing = (struct hoop_timing){.algo = algo, .coll = coll, .vector = vector, .least_ns = ns};
    timing->calls++;
    timing->sum_ns += ns;
    if (ns < timing->least_ns)
        timing->least_ns = ns;
}

static struct hoop_measured measured(const struct hoop_comm *comm, enum hoop_coll coll, size_t vector,
                                     const struct hoop_algo *algo)
{
    const struct hoop_timing *timing = &comm->timing[place_of(coll, vector, algo)];

    if (timing->calls == 0 || timing->algo != algo || timing->coll != coll || timing->vector != vector)
        return (struct hoop_measured){0};
    return (struct hoop_measured){timing->calls, timing->least_ns, timing->sum_ns / timing->calls};
}

static void tell_device(const struct hoop_comm *comm, struct hoop_device_way *device)
{
    *device = (struct hoop_device_way){.ordinal = -1, .why = comm->device_reason};
#ifdef HOOP_CUDA
    if (comm->device == NULL)
        return;
    *device =
        (struct hoop_device_way){.ordinal = comm->device->cuda->device.ordinal,
                                 .name = comm->device->cuda->device.name,
                                 .lent = comm->device->kernels ? hoop_cuda_exec_lent(comm->device->kernels->exec) : 0,
                                 .way = comm->device->kernels ? "kernel" : "staged",
                                 .why = comm->device_way};
#endif
}

enum hoop_status hoop_explain(const struct hoop_comm *comm, const char *collective, size_t bytes, int json, char *text,
                              size_t size)
{
    const int coll = collective ? hoop_coll_find(collective) : -1;

    if (comm == NULL || coll < 0)
        return hoop_fail(HOOP_ERR_ARG, "hoop_explain: %s",
                         comm == NULL ? "the communicator is NULL"
                                      : "there is no such collective; give all_reduce, "
                                        "reduce, broadcast, …");
    const struct hoop_problem problem = {.coll = (enum hoop_coll)coll, .ranks = comm->ranks, .channels = 1};
    struct hoop_experience experience = {.kinds = 0};
    const struct hoop_algo *algo = hoop_comm_select(comm, &problem, coll == HOOP_BARRIER ? 0 : bytes, false).algo;

    experience.plans = measured(comm, problem.coll, bytes, algo);
    experience.direct = measured(comm, problem.coll, bytes, NULL);
    tell_device(comm, &experience.device);
    experience.kinds = hoop_tune_tell(comm, problem.coll, bytes, experience.tuned);
    return hoop_explain_write(&comm->choice, &problem, bytes, &experience, json != 0, text, size);
}
