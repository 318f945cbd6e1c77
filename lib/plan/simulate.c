// SPDX-License-Identifier: BSD-3-Clause
/* The simulator: the plans of all ranks on a virtual network, event by event, without data.
 *
 * Time is counted in whole picoseconds, and events of the same time keep their order, so a simulation always gives the same
 * figures. There are two kinds of events: a lane can go on, and the head of a message reaches its receiver's port. A lane
 * that cannot go on (no free slot, nothing received, another lane not far enough) is woken by whoever changes that.
 *
 * Memory: plans are kept as they are built, with the peer of a step replaced by the number of its link. Where the plans are
 * turned copies of each other (ring, flat, …), one rank can stand for all: what it sends to the rank d further is what it
 * receives from the rank d before, and a link goes from the rank to itself. They are copies, too, where the same bits of rank and
 * peers change (recdbl). With levels or groups the ranks of the first host
 * (or group) stand for those of all, if the plans are the same when turned by a host.
 */
#include <string.h>

#include "plan/simulate.h"

#include "base/alloc.h"
#include "base/status.h"

enum { SYMMETRIC_FROM = 2048, SLOTS_MOST = 64 };
static const uint64_t memory_most = (uint64_t)2 << 30;

static uint64_t duration(size_t bytes, double rate)
{
    return rate > 0 ? (uint64_t)((double)bytes * 1000 / rate + 0.5) : 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- events ---- */

static void push(struct hoop_simulator *sim, uint64_t time, uint32_t what)
{
    if (hoop_sim_push(&sim->queue, time, what) != HOOP_OK)
        sim->status = HOOP_ERR_MEMORY;
}

static void wake(struct hoop_simulator *sim, uint32_t lane, uint64_t time)
{
    push(sim, time, lane << 1);
}

/* ---- steps ---- */

/* Work on the rank's core, from now on or when it is free; returns its end. */
static uint64_t work(struct hoop_simulator *sim, const struct hoop_sim_lane *lane, uint64_t now, uint64_t ps)
{
    struct hoop_sim_rank *rank = &sim->rank[lane->rank];

    if (ps == 0)
        return now;
    rank->core_free = later(now, rank->core_free) + ps;
    return rank->core_free;
}

static size_t bytes_of(const struct hoop_simulator *sim, const struct hoop_sim_lane *lane, unsigned buffer,
                       uint32_t chunk)
{
    return hoop_bind_extent(&sim->binding, (enum hoop_buffer)buffer, chunk, lane->slice).count;
}

/* Bytes of the whole message that begins with the lane's step. */
static size_t bytes_of_message(const struct hoop_simulator *sim, const struct hoop_sim_lane *lane)
{
    const struct hoop_step *step = &lane->first[lane->step];
    const bool sends = step->kind == HOOP_STEP_SEND;
    const int32_t link = step->peer;
    size_t bytes = 0;

    for (;; step++) {
        if ((step->kind == HOOP_STEP_SEND) != sends || step->kind < HOOP_STEP_SEND ||
            step->kind > HOOP_STEP_RECV_REDUCE || step->peer != link)
            continue;
        bytes += bytes_of(sim, lane, sends ? step->from_buffer : step->to_buffer, sends ? step->from : step->to);
        if (!(step->flags & HOOP_SIM_MORE))
            return bytes;
    }
}

enum { BLOCKED = 0, DONE = 1 };

/* The message leaves when all uplinks on its way out are free, and keeps each busy as long as it takes there. */
static uint64_t pass_up(struct hoop_simulator *sim, const struct hoop_sim_link *link, struct hoop_sim_rank *rank,
                        size_t bytes, uint64_t now)
{
    const uint32_t number = (uint32_t)(rank - sim->rank), last = (uint32_t)sim->network.levels - 1;
    uint64_t start = later(now, rank->out_free);

    for (uint32_t level = link->level; level < last; level++)
        start = later(start, sim->unit[level][number / sim->size[level]].up_free);
    for (uint32_t level = link->level; level < last; level++) {
        struct hoop_sim_unit *unit = &sim->unit[level][number / sim->size[level]];
        unit->up_free = start + duration(bytes, sim->network.level[level].bandwidth);
        unit->sent += bytes;
    }
    rank->out_free = start + duration(bytes, sim->network.level[last].bandwidth);
    rank->sent += bytes;
    return start;
}

/* The same on the way in; returns when all of it is there. */
static uint64_t pass_down(struct hoop_simulator *sim, const struct hoop_sim_link *link, struct hoop_sim_rank *rank,
                          size_t bytes, uint64_t now)
{
    const uint32_t number = (uint32_t)(rank - sim->rank), last = (uint32_t)sim->network.levels - 1;
    uint64_t start = later(now, rank->in_free);

    for (uint32_t level = link->level; level < last; level++)
        start = later(start, sim->unit[level][number / sim->size[level]].down_free);
    for (uint32_t level = link->level; level < last; level++) {
        struct hoop_sim_unit *unit = &sim->unit[level][number / sim->size[level]];
        unit->down_free = start + duration(bytes, sim->network.level[level].bandwidth);
        unit->received += bytes;
    }
    rank->in_free = start + duration(bytes, sim->network.level[last].bandwidth);
    rank->received += bytes;
    return start + duration(bytes, sim->slowest[link->level]);
}

/* All parts of a message leave with the first. */
static int run_send(struct hoop_simulator *sim, struct hoop_sim_lane *lane, const struct hoop_step *step, uint64_t now,
                    uint64_t *end)
{
    const size_t bytes = step->flags & HOOP_STEP_JOINED ? 0 : bytes_of_message(sim, lane);
    const uint32_t number = (uint32_t)step->peer, slots = (uint32_t)sim->wish->slots;
    struct hoop_sim_link *link = &sim->link[number];
    struct hoop_sim_rank *rank = &sim->rank[lane->rank];
    uint64_t *slot = &sim->slot[(size_t)number * slots + link->sent % slots];

    if (step->flags & HOOP_STEP_JOINED || (bytes == 0 && !sim->binding.empty_frames))
        return DONE;
    if (link->sent - link->taken == slots) {
        link->sender_waits = true;
        return BLOCKED;
    }
    if (link->sent >= slots && *slot > now) { /* the credit is still on its way back */
        wake(sim, (uint32_t)(lane - sim->lane), *slot);
        return BLOCKED;
    }
    *end = work(sim, lane, now, sim->post);
    const uint64_t start = pass_up(sim, link, rank, bytes, *end);
    link->bytes += bytes;
    *slot = bytes;
    link->sent++;
    sim->wish->messages++;
    sim->wish->moved += bytes;
    sim->wish->load[link->level].messages++;
    sim->wish->load[link->level].moved += bytes;
    push(sim, start + sim->latency[link->level], number << 1 | 1);
    return DONE;
}

/* The head of the link's next message has come. */
static void arrive(struct hoop_simulator *sim, uint32_t number, uint64_t now)
{
    const uint32_t slots = (uint32_t)sim->wish->slots;
    struct hoop_sim_link *link = &sim->link[number];
    struct hoop_sim_rank *rank = &sim->rank[link->to];
    uint64_t *slot = &sim->slot[(size_t)number * slots + link->arrived % slots];

    *slot = pass_down(sim, link, rank, *slot, now);
    link->arrived++;
    if (link->receiver_waits) {
        link->receiver_waits = false;
        wake(sim, link->receiver, *slot);
    }
}

static int run_recv(struct hoop_simulator *sim, struct hoop_sim_lane *lane, const struct hoop_step *step, uint64_t now,
                    uint64_t *end)
{
    const size_t bytes = bytes_of(sim, lane, step->to_buffer, step->to);
    const uint32_t number = (uint32_t)step->peer, slots = (uint32_t)sim->wish->slots;
    struct hoop_sim_link *link = &sim->link[number];
    uint64_t *slot = &sim->slot[(size_t)number * slots + link->taken % slots];

    if (!link->open) {
        if (step->flags & HOOP_STEP_JOINED || (!sim->binding.empty_frames && bytes_of_message(sim, lane) == 0))
            return DONE; /* an empty message was not sent */
        if (link->taken == link->arrived) {
            link->receiver_waits = true;
            return BLOCKED;
        }
        if (*slot > now) {
            wake(sim, (uint32_t)(lane - sim->lane), *slot);
            return BLOCKED;
        }
    }
    *end = work(sim, lane, now, step->kind == HOOP_STEP_RECV_REDUCE ? duration(bytes, sim->wish->reduce) : 0);
    link->open = (step->flags & HOOP_SIM_MORE) != 0;
    if (link->open)
        return DONE;
    *slot = *end + sim->latency[link->level]; /* the credit is back at the sender */
    link->taken++;
    if (link->sender_waits) {
        link->sender_waits = false;
        wake(sim, link->sender, *slot);
    }
    return DONE;
}

static int run_after(struct hoop_simulator *sim, struct hoop_sim_lane *lane, const struct hoop_step *step)
{
    struct hoop_sim_rank *rank = &sim->rank[lane->rank];
    const struct hoop_sim_lane *other = &sim->lane[rank->first_lane + (uint32_t)step->peer];

    if (other->slice > lane->slice || (other->slice == lane->slice && other->step > step->to))
        return DONE;
    lane->parked = true;
    rank->parked++;
    return BLOCKED;
}

static int run_step(struct hoop_simulator *sim, struct hoop_sim_lane *lane, uint64_t now, uint64_t *end)
{
    const struct hoop_step *step = &lane->first[lane->step];
    const bool local = step->kind == HOOP_STEP_COPY || step->kind == HOOP_STEP_REDUCE;

    *end = now;
    if (step->kind == HOOP_STEP_SEND)
        return run_send(sim, lane, step, now, end);
    if (step->kind == HOOP_STEP_RECV || step->kind == HOOP_STEP_RECV_REDUCE)
        return run_recv(sim, lane, step, now, end);
    if (!local)
        return run_after(sim, lane, step);
    *end = work(sim, lane, now,
                duration(bytes_of(sim, lane, step->to_buffer, step->to),
                         step->kind == HOOP_STEP_COPY ? sim->wish->copy : sim->wish->reduce));
    return DONE;
}

/* The lane's step has ended. */
static void advance(struct hoop_simulator *sim, struct hoop_sim_lane *lane, uint64_t now)
{
    struct hoop_sim_rank *rank = &sim->rank[lane->rank];

    sim->wish->steps++;
    if (++lane->step == lane->steps) {
        lane->step = 0;
        lane->slice++;
    }
    for (uint32_t i = 0; rank->parked > 0 && i < rank->lanes; i++) {
        struct hoop_sim_lane *other = &sim->lane[rank->first_lane + i];
        if (other->parked) {
            other->parked = false;
            rank->parked--;
            wake(sim, rank->first_lane + i, now);
        }
    }
}

static void run_lane(struct hoop_simulator *sim, uint32_t number, uint64_t now)
{
    struct hoop_sim_lane *lane = &sim->lane[number];
    uint64_t end;

    if (lane->busy) {
        lane->busy = false;
        advance(sim, lane, now);
    }
    while (lane->slice < sim->binding.slices && run_step(sim, lane, now, &end) == DONE) {
        if (end > now) {
            lane->busy = true;
            wake(sim, number, end);
            return;
        }
        advance(sim, lane, now);
    }
    sim->now = later(sim->now, now);
    sim->lanes_done += lane->slice == sim->binding.slices && lane->steps > 0;
}

/* ---- what comes next is fetched from memory before its turn ---- */

/* Events that are known ahead, and how many of them before its turn an event's lane or link is there, and what that leads to. */
enum { AHEAD = 16, NEAR = 10, NEXT = 5 };

static void fetch_first(const struct hoop_simulator *sim, uint32_t what)
{
    if (what & 1) {
        __builtin_prefetch(&sim->link[what >> 1]);
        __builtin_prefetch(&sim->slot[(size_t)(what >> 1) * (size_t)sim->wish->slots]);
    } else {
        __builtin_prefetch(&sim->lane[what >> 1]);
    }
}

static const struct hoop_step *step_to_come(const struct hoop_sim_lane *lane)
{
    const uint32_t step = lane->step + lane->busy;

    return &lane->first[step < lane->steps ? step : 0];
}

static void fetch_second(const struct hoop_simulator *sim, uint32_t what)
{
    if (what & 1) {
        const struct hoop_sim_link *link = &sim->link[what >> 1];
        __builtin_prefetch(&sim->rank[link->to]);
    } else {
        const struct hoop_sim_lane *lane = &sim->lane[what >> 1];
        __builtin_prefetch(step_to_come(lane));
        __builtin_prefetch(&sim->rank[lane->rank]);
    }
}

static void fetch_third(const struct hoop_simulator *sim, uint32_t what)
{
    const struct hoop_step *step;

    if (what & 1)
        return;
    step = step_to_come(&sim->lane[what >> 1]);
    if (step->kind >= HOOP_STEP_SEND && step->kind <= HOOP_STEP_RECV_REDUCE) {
        __builtin_prefetch(&sim->link[step->peer]);
        __builtin_prefetch(&sim->slot[(size_t)step->peer * (size_t)sim->wish->slots]);
    }
}

/* ---- all events ---- */

static enum hoop_status run_event(struct hoop_simulator *sim, uint32_t what, uint64_t now, uint64_t most)
{
    if (what & 1)
        arrive(sim, what >> 1, now);
    else
        run_lane(sim, what >> 1, now);
    if (sim->wish->messages > most)
        return hoop_fail(HOOP_ERR_ARG,
                         "the simulation has more than %llu messages; larger slices or fewer bytes make less",
                         (unsigned long long)most);
    return sim->status;
}

/* All events of the earliest time, those that they make included. */
static enum hoop_status run_moment(struct hoop_simulator *sim, uint64_t now, uint64_t most)
{
    uint32_t ahead[AHEAD], first = 0, end = 0, second = 0, third = 0;
    enum hoop_status status = HOOP_OK;

    while (status == HOOP_OK) {
        while (end - first < AHEAD && hoop_sim_take(&sim->queue, &ahead[end % AHEAD]))
            fetch_first(sim, ahead[end++ % AHEAD]);
        if (first == end)
            break;
        for (; second < end && second - first < NEAR; second++)
            fetch_second(sim, ahead[second % AHEAD]);
        for (; third < end && third - first < NEXT; third++)
            fetch_third(sim, ahead[third % AHEAD]);
        status = run_event(sim, ahead[first++ % AHEAD], now, most);
    }
    return status;
}

static enum hoop_status run(struct hoop_simulator *sim)
{
    const uint64_t most = sim->wish->most ? sim->wish->most : (uint64_t)1 << 31;
    uint32_t lanes = 0;
    uint64_t now;

    for (uint32_t i = 0; i < sim->lanes; i++) {
        if (sim->lane[i].steps > 0) {
            wake(sim, i, 0);
            lanes++;
        }
    }
    while (sim->status == HOOP_OK && hoop_sim_earliest(&sim->queue, &now)) {
        const enum hoop_status status = run_moment(sim, now, most);
        if (status != HOOP_OK)
            return status;
        hoop_sim_end(&sim->queue);
    }
    if (sim->status == HOOP_OK && sim->lanes_done < lanes)
        return hoop_fail(HOOP_ERR_ARG, "the plans deadlock with %d slots a link", sim->wish->slots);
    return sim->status;
}

/* ---- the whole ---- */

static void tell(const struct hoop_simulator *sim, int ranks)
{
    struct hoop_simulation *wish = sim->wish;
    const uint64_t times = (uint64_t)ranks / sim->ranks;
    const int last = sim->network.levels - 1;

    wish->time = (double)sim->now / 1000;
    wish->steps *= times;
    wish->messages *= times;
    wish->moved *= times;
    wish->links = sim->links * times;
    wish->stood = (int)sim->ranks;
    for (uint32_t i = 0; i < sim->ranks; i++)
        wish->port_most = later(wish->port_most, later(sim->rank[i].sent, sim->rank[i].received));
    for (int level = 0; level <= last; level++) {
        struct hoop_level_load *load = &wish->load[level];
        load->messages *= times;
        load->moved *= times;
        for (uint32_t i = 0; level < last && i < sim->ranks / sim->size[level]; i++)
            load->most = later(load->most, later(sim->unit[level][i].sent, sim->unit[level][i].received));
    }
    wish->load[last].most = wish->port_most;
    for (uint32_t i = 0; i < sim->links; i++)
        wish->link_most = later(wish->link_most, sim->link[i].bytes);
    wish->memory = sim->memory + hoop_sim_queue_bytes(&sim->queue);
}

static enum hoop_status check_wish(const struct hoop_problem *problem, const struct hoop_simulation *wish)
{
    if (wish->slots < 1 || wish->slots > SLOTS_MOST || wish->frame < 1 ||
        (wish->network == NULL && (!(wish->bandwidth > 0) || !(wish->latency >= 0))) || !(wish->post >= 0) ||
        !(wish->copy >= 0) || !(wish->reduce >= 0))
        return hoop_fail(HOOP_ERR_ARG,
                         "a simulation needs 1 to %d slots, slices of 1 byte or more, a bandwidth of more "
                         "than 0, and no negative time or rate",
                         SLOTS_MOST);
    if (problem->ranks < 1 || problem->channels < 1)
        return hoop_fail(HOOP_ERR_ARG, "%d ranks in %d channels cannot be simulated", problem->ranks,
                         problem->channels);
    return HOOP_OK;
}

/* The levels, in the units of the simulator. */
static enum hoop_status set_network(struct hoop_simulator *sim, const struct hoop_problem *problem)
{
    const struct hoop_simulation *wish = sim->wish;
    int ranks = 1;

    sim->network = wish->network
                       ? *wish->network
                       : (struct hoop_network){1, {{"ranks", problem->ranks, wish->bandwidth, wish->latency}}};
    if (sim->network.levels < 1 || sim->network.levels > HOOP_LEVELS)
        return hoop_fail(HOOP_ERR_ARG, "a network of %d levels; 1 to %d are allowed", sim->network.levels, HOOP_LEVELS);
    for (int i = sim->network.levels; i-- > 0;) {
        const struct hoop_level *level = &sim->network.level[i];

        if (level->count < 1 || level->count > problem->ranks / ranks || !(level->bandwidth > 0) ||
            !(level->latency >= 0))
            return hoop_fail(HOOP_ERR_ARG,
                             "level %s of the network: %d units, %g GB/s and %g ns do not go for %d ranks", level->name,
                             level->count, level->bandwidth, level->latency, problem->ranks);
        sim->size[i] = (uint32_t)ranks;
        ranks *= level->count;
        sim->latency[i] = (uint64_t)(level->latency * 1000 + 0.5);
        sim->slowest[i] = level->bandwidth;
        if (i + 1 < sim->network.levels && sim->slowest[i + 1] < level->bandwidth)
            sim->slowest[i] = sim->slowest[i + 1];
    }
    return ranks == problem->ranks ? HOOP_OK
                                   : hoop_fail(HOOP_ERR_ARG, "the network has %d ranks, not %d", ranks, problem->ranks);
}

/* How many ranks have to be run. With levels a whole unit of the outermost has, since its ranks share the uplink. */
static enum hoop_status find_period(struct hoop_simulator *sim, const struct hoop_algo *algo,
                                    const struct hoop_problem *problem)
{
    const struct hoop_groups *groups = problem->groups;
    int period[2] = {1, 1};
    enum hoop_status status = HOOP_OK;

    if (groups != NULL && groups->equal)
        period[1] = groups->first[1];
    for (int i = sim->network.levels - 1; i-- > 0;)
        if (sim->network.level[i].count > 1)
            period[0] = period[1] = (int)sim->size[i];
    sim->ranks = (uint32_t)problem->ranks;
    for (int i = 0; i < 2 && status == HOOP_OK && !sim->wish->symmetric; i++) {
        if (i == 0 || period[1] > period[0])
            status = hoop_sim_turned(algo, problem, period[i], sim->wish->bytes, &sim->turn);
        sim->wish->symmetric = sim->turn != HOOP_SIM_NOT_TURNED;
        if (sim->wish->symmetric)
            sim->ranks = (uint32_t)period[i];
    }
    if (status == HOOP_OK && !sim->wish->symmetric && sim->wish->symmetry == 2)
        return hoop_fail(HOOP_ERR_ARG, "the plans of %s are no turned copies of each other", algo->name);
    return status;
}

enum hoop_status hoop_plan_simulate(const struct hoop_algo *algo, const struct hoop_problem *problem,
                                    struct hoop_simulation *simulation)
{
    enum hoop_status status = check_wish(problem, simulation);
    struct hoop_simulator sim = {.wish = simulation};

    if (status != HOOP_OK)
        return status;
    simulation->symmetric = false;
    simulation->steps = simulation->messages = simulation->moved = 0;
    simulation->port_most = simulation->link_most = 0;
    memset(simulation->load, 0, sizeof simulation->load);
    status = set_network(&sim, problem);
    sim.ranks = (uint32_t)problem->ranks;
    sim.post = (uint64_t)(simulation->post * 1000 + 0.5);
    if (status == HOOP_OK &&
        (simulation->symmetry > 0 || (simulation->symmetry == 0 && problem->ranks > SYMMETRIC_FROM)))
        status = find_period(&sim, algo, problem);
    if (status == HOOP_OK)
        status = hoop_sim_build(&sim, algo, problem, memory_most);
    if (status == HOOP_OK)
        status = run(&sim);
    if (status == HOOP_OK)
        tell(&sim, problem->ranks);
    hoop_sim_free(&sim);
    return status;
}
