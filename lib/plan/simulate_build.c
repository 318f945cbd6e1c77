// SPDX-License-Identifier: BSD-3-Clause
/* Making the simulator's state: plans rank by rank, and a number for every link that they name. */
#include "base/alloc.h"
#include "base/status.h"
#include "plan/simulate.h"

/* ---- symmetry ---- */

/* From a rank to another, and back, in a way that is the same for all that are turned copies. */
static uint32_t ahead_of(enum hoop_sim_turn turn, uint32_t n, uint32_t from, uint32_t to)
{
    return turn == HOOP_SIM_FLIPPED ? to ^ from : (to + n - from) % n;
}

static uint32_t rank_ahead(enum hoop_sim_turn turn, uint32_t n, uint32_t from, uint32_t ahead)
{
    return turn == HOOP_SIM_FLIPPED ? from ^ ahead : (from + ahead) % n;
}

static uint32_t peer_ahead(enum hoop_sim_turn turn, const struct hoop_plan *plan, const struct hoop_step *step)
{
    return ahead_of(turn, (uint32_t)plan->problem.ranks, (uint32_t)plan->problem.rank, (uint32_t)step->peer);
}

static bool same_turned(enum hoop_sim_turn turn, const struct hoop_plan *a, const struct hoop_plan *b)
{
    if (a->lanes != b->lanes)
        return false;
    for (uint32_t l = 0; l < a->lanes; l++) {
        if (a->lane[l].steps != b->lane[l].steps)
            return false;
        for (uint32_t s = 0; s < a->lane[l].steps; s++) {
            const struct hoop_step *x = &a->lane[l].step[s], *y = &b->lane[l].step[s];
            const bool message = x->kind >= HOOP_STEP_SEND && x->kind <= HOOP_STEP_RECV_REDUCE;
            if (x->kind != y->kind)
                return false;
            if (message && peer_ahead(turn, a, x) != peer_ahead(turn, b, y))
                return false;
        }
    }
    return true;
}

/* One rank against those in its place in other periods. */
static enum hoop_status turned_from(const struct hoop_algo *algo, const struct hoop_problem *problem, int rank,
                                    int period, size_t bytes, enum hoop_sim_turn turn, bool *turned)
{
    const int periods = problem->ranks / period, sample[] = {1, periods / 2, periods - 1};
    struct hoop_problem mine = *problem;
    struct hoop_plan *first, *other;

    mine.rank = rank;
    enum hoop_status status = hoop_plan_build(&first, algo, &mine, false);
    if (status != HOOP_OK)
        return status;
    *turned = bytes == 0 || bytes >= first->grid;
    for (int i = 0; i < 3 && status == HOOP_OK && *turned; i++) {
        mine.rank = rank + sample[i] * period;
        status = hoop_plan_build(&other, algo, &mine, false);
        if (status != HOOP_OK)
            break;
        *turned = same_turned(turn, first, other);
        hoop_plan_free(other);
    }
    hoop_plan_free(first);
    return status;
}

static bool power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

/* Bits are flipped within powers of two only: then no two places of a period become one. */
static bool may_turn(enum hoop_sim_turn turn, int ranks, int period)
{
    return ranks > period && ranks % period == 0 &&
           (turn == HOOP_SIM_MOVED || (power_of_two(ranks) && power_of_two(period)));
}

enum hoop_status hoop_sim_turned(const struct hoop_algo *algo, const struct hoop_problem *problem, int period,
                                 size_t bytes, enum hoop_sim_turn *turn)
{
    static const enum hoop_sim_turn turns[] = {HOOP_SIM_MOVED, HOOP_SIM_FLIPPED};
    const int sample[] = {0, 1, period / 2, period - 1};
    enum hoop_status status = HOOP_OK;

    *turn = HOOP_SIM_NOT_TURNED;
    for (int t = 0; t < 2 && status == HOOP_OK && *turn == HOOP_SIM_NOT_TURNED; t++) {
        bool turned = may_turn(turns[t], problem->ranks, period);
        for (int i = 0; i < 4 && status == HOOP_OK && turned; i++)
            if (sample[i] < period && (i == 0 || sample[i] > sample[i - 1]))
                status = turned_from(algo, problem, sample[i], period, bytes, turns[t], &turned);
        if (status == HOOP_OK && turned)
            *turn = turns[t];
    }
    return status;
}

/* ---- links ---- */

static size_t place_of(const struct hoop_simulator *sim, uint64_t key)
{
    size_t place = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (sim->places - 1);

    while (sim->number[place] != 0 && sim->key[place] != key)
        place = (place + 1) & (sim->places - 1);
    return place;
}

static enum hoop_status widen(struct hoop_simulator *sim)
{
    const size_t old_places = sim->places, room = sim->link_room ? 2 * sim->link_room : 1024;
    uint64_t *old_key = sim->key;
    uint32_t *old_number = sim->number;
    struct hoop_sim_link *link = hoop_realloc(sim->link, room, sizeof *link);

    if (link == NULL)
        return HOOP_ERR_MEMORY;
    sim->link = link;
    sim->key = hoop_calloc(2 * room, sizeof *sim->key);
    sim->number = hoop_calloc(2 * room, sizeof *sim->number);
    if (sim->key == NULL || sim->number == NULL) {
        hoop_free(old_key);
        hoop_free(old_number);
        return HOOP_ERR_MEMORY;
    }
    sim->places = 2 * room;
    sim->link_room = room;
    for (size_t i = 0; i < old_places; i++) {
        if (old_number[i] == 0)
            continue;
        const size_t place = place_of(sim, old_key[i]);
        sim->key[place] = old_key[i];
        sim->number[place] = old_number[i];
    }
    hoop_free(old_key);
    hoop_free(old_number);
    return HOOP_OK;
}

/* The number of the link with these ends, made when it is first seen. */
static enum hoop_status find_link(struct hoop_simulator *sim, uint64_t key, uint32_t *number)
{
    if (sim->links == sim->link_room) {
        const enum hoop_status status = widen(sim);
        if (status != HOOP_OK)
            return status;
    }
    const size_t place = place_of(sim, key);
    if (sim->number[place] == 0) {
        sim->key[place] = key;
        sim->link[sim->links] = (struct hoop_sim_link){.sender = UINT32_MAX, .receiver = UINT32_MAX};
        sim->number[place] = ++sim->links;
    }
    *number = sim->number[place] - 1;
    return HOOP_OK;
}

/* The outermost level whose units a message leaves. */
static uint32_t crossed(const struct hoop_simulator *sim, uint32_t from, uint32_t to)
{
    uint32_t level = 0;

    while (level + 1 < (uint32_t)sim->network.levels && from / sim->size[level] == to / sim->size[level])
        level++;
    return level;
}

/* Replace the peers of a lane's messages by their links. */
static enum hoop_status name_links(struct hoop_simulator *sim, const struct hoop_plan *plan, uint32_t l, uint32_t lane)
{
    const uint32_t n = (uint32_t)plan->problem.ranks, rank = (uint32_t)plan->problem.rank;
    int32_t last_peer[2] = {-1, -1};
    uint32_t last[2] = {0, 0};

    for (uint32_t s = 0; s < plan->lane[l].steps; s++) {
        struct hoop_step *step = &plan->lane[l].step[s];
        const bool sends = step->kind == HOOP_STEP_SEND;
        if (!sends && step->kind != HOOP_STEP_RECV && step->kind != HOOP_STEP_RECV_REDUCE)
            continue;
        if (step->peer != last_peer[sends]) {
            const uint32_t peer = (uint32_t)step->peer, from = sends ? rank : peer, to = sends ? peer : rank;
            const uint32_t sender = from % sim->ranks,
                           ahead = ahead_of(sim->turn, n, from, to); /* sender: from, if none is spared */
            const uint64_t key = ((uint64_t)sender * n + ahead) * HOOP_MAX_LANES + l;
            const enum hoop_status status = find_link(sim, key, &last[sends]);
            if (status != HOOP_OK)
                return status;
            last_peer[sends] = step->peer;
            sim->link[last[sends]].level = crossed(sim, sender, rank_ahead(sim->turn, n, sender, ahead));
            *(sends ? &sim->link[last[1]].sender : &sim->link[last[0]].receiver) = lane;
            if (!sends)
                sim->link[last[0]].to = sim->lane[lane].rank;
        }
        step->peer = (int32_t)last[sends];
        uint32_t *before = sends ? &sim->link[last[1]].last_sent : &sim->link[last[0]].last_received;
        if (step->flags & HOOP_STEP_JOINED)
            plan->lane[l].step[*before].flags |= HOOP_SIM_MORE;
        *before = s;
    }
    return HOOP_OK;
}

/* ---- plans ---- */

static enum hoop_status spend(struct hoop_simulator *sim, uint64_t bytes, uint64_t most)
{
    sim->memory += bytes;
    if (sim->memory <= most)
        return HOOP_OK;
    return hoop_fail(HOOP_ERR_MEMORY, "plans and links of so many ranks need more than %llu MiB",
                     (unsigned long long)(most >> 20));
}

static uint64_t plan_bytes(const struct hoop_plan *plan)
{
    uint64_t bytes = sizeof *plan;

    for (uint32_t l = 0; l < plan->lanes; l++)
        bytes += sizeof plan->lane[l] + plan->lane[l].steps * sizeof(struct hoop_step);
    return bytes;
}

static enum hoop_status add_rank(struct hoop_simulator *sim, const struct hoop_algo *algo,
                                 const struct hoop_problem *problem, uint32_t rank, uint64_t most)
{
    struct hoop_problem mine = *problem;

    mine.rank = (int)rank;
    enum hoop_status status = hoop_plan_build(&sim->plan[rank], algo, &mine, false);
    if (status != HOOP_OK)
        return status;
    const struct hoop_plan *plan = sim->plan[rank];
    const uint64_t bytes = plan_bytes(plan);
    if (rank == 0 && bytes * sim->ranks > most) /* do not begin what will not end */
        return spend(sim, bytes * sim->ranks, most);
    if (rank == 0) {
        sim->lane = hoop_calloc((size_t)sim->ranks * plan->lanes, sizeof *sim->lane);
        if (sim->lane == NULL)
            return HOOP_ERR_MEMORY;
    }
    if (plan->lanes != sim->plan[0]->lanes)
        return hoop_fail(HOOP_ERR_INTERNAL, "plans of ranks 0 and %u have %u and %u lanes", rank, sim->plan[0]->lanes,
                         plan->lanes);
    sim->rank[rank].first_lane = sim->lanes;
    sim->rank[rank].lanes = plan->lanes;
    for (uint32_t l = 0; l < plan->lanes && status == HOOP_OK; l++) {
        sim->lane[sim->lanes] =
            (struct hoop_sim_lane){.first = plan->lane[l].step, .steps = plan->lane[l].steps, .rank = rank};
        status = name_links(sim, plan, l, sim->lanes++);
    }
    return status == HOOP_OK ? spend(sim, bytes + plan->lanes * sizeof *sim->lane, most) : status;
}

enum hoop_status hoop_sim_build(struct hoop_simulator *sim, const struct hoop_algo *algo,
                                const struct hoop_problem *problem, uint64_t most)
{
    const bool blocks = hoop_coll_shape(problem->coll)->blocks;
    const size_t slots = (size_t)sim->wish->slots;

    for (int level = 0; level + 1 < sim->network.levels; level++) {
        const size_t units = sim->ranks / sim->size[level];
        sim->unit[level] = hoop_calloc(units ? units : 1, sizeof *sim->unit[level]);
        if (sim->unit[level] == NULL)
            return HOOP_ERR_MEMORY;
    }
    sim->plan = hoop_calloc(sim->ranks, sizeof *sim->plan);
    sim->rank = hoop_calloc(sim->ranks, sizeof *sim->rank);
    enum hoop_status status = sim->plan && sim->rank ? HOOP_OK : HOOP_ERR_MEMORY;
    for (uint32_t rank = 0; rank < sim->ranks && status == HOOP_OK; rank++) {
        status = add_rank(sim, algo, problem, rank, most);
        if (status == HOOP_OK && sim->link_room * (sizeof *sim->link + slots * 8 + 24) + sim->memory > most)
            status = spend(sim, most, most);
    }
    if (status == HOOP_OK)
        status = spend(sim, sim->links * (sizeof *sim->link + slots * sizeof *sim->slot), most);
    for (uint32_t i = 0; i < sim->links && status == HOOP_OK; i++)
        if (sim->link[i].sender == UINT32_MAX || sim->link[i].receiver == UINT32_MAX)
            status = hoop_fail(HOOP_ERR_ARG, "algorithm %s: a link has only one end that uses it", algo->name);
    if (status != HOOP_OK)
        return status;
    sim->slot = hoop_calloc((size_t)sim->links * slots + 1, sizeof *sim->slot);
    if (sim->slot == NULL)
        return HOOP_ERR_MEMORY;
    size_t bytes = sim->wish->bytes;
    if (sim->wish->symmetric) /* who stands for all must have chunks of the same size as all */
        bytes = (bytes + sim->plan[0]->grid - 1) / sim->plan[0]->grid * sim->plan[0]->grid;
    return hoop_bind(&sim->binding, sim->plan[0], blocks ? bytes / (size_t)problem->ranks : bytes, 1, sim->wish->frame,
                     1);
}

void hoop_sim_free(struct hoop_simulator *sim)
{
    for (uint32_t i = 0; sim->plan && i < sim->ranks; i++)
        hoop_plan_free(sim->plan[i]);
    for (int level = 0; level < HOOP_LEVELS; level++)
        hoop_free(sim->unit[level]);
    hoop_free(sim->plan);
    hoop_free(sim->rank);
    hoop_free(sim->lane);
    hoop_free(sim->link);
    hoop_free(sim->slot);
    hoop_sim_queue_free(&sim->queue);
    hoop_free(sim->key);
    hoop_free(sim->number);
}
