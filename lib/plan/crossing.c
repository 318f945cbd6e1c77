// SPDX-License-Identifier: BSD-3-Clause
/* The walk: each lane goes through its steps with a clock that only messages move, by the model's time of a hop. A message carries
 * its sender's clock; who receives takes the later one. At the end the latest clock has gone along the longest chain. */
#include "plan/crossing.h"

#include "base/alloc.h"
#include "base/status.h"

/* A clock, and the messages along the chain that set it. */
struct mark {
    double time;
    uint32_t near, far;
};

struct message {
    struct mark mark; /* on arrival */
    uint32_t next;    /* on the same link; 0: none, else its number + 1 */
};

struct queue {
    uint32_t first, last, latest; /* messages that wait; the latest one posted. Number + 1 */
};

struct walk {
    const struct hoop_model *model;
    const struct hoop_groups *groups;
    struct hoop_plan **plan;
    int ranks, lanes;
    struct mark **done; /* by rank and lane: of each step */
    uint32_t *at;       /* by rank and lane: steps done */
    struct queue *link; /* by lane, receiver, sender */
    struct message *message;
    uint32_t messages;
};

static int lane_of(const struct walk *walk, int rank, int lane)
{
    return rank * walk->lanes + lane;
}

static struct queue *link_of(struct walk *walk, int lane, int from, int to)
{
    return &walk->link[((size_t)lane * (size_t)walk->ranks + (size_t)to) * (size_t)walk->ranks + (size_t)from];
}

static struct mark later(struct mark a, struct mark b)
{
    return b.time > a.time ? b : a;
}

/* What is joined leaves with the message before it. */
static void post(struct walk *walk, int rank, int lane, const struct hoop_step *step, struct mark mark)
{
    const bool far = walk->groups->group[rank] != walk->groups->group[step->peer];
    struct queue *link = link_of(walk, lane, rank, step->peer);
    struct message *message = &walk->message[walk->messages++];

    mark.time += far ? walk->model->hop_across : walk->model->hop;
    mark.near += !far;
    mark.far += far;
    if ((step->flags & HOOP_STEP_JOINED) && link->latest)
        mark = walk->message[link->latest - 1].mark;
    *message = (struct message){.mark = mark};
    link->latest = walk->messages;
    if (link->last)
        walk->message[link->last - 1].next = walk->messages;
    else
        link->first = walk->messages;
    link->last = walk->messages;
}

/* Takes the link's first message into the clock. False: there is none yet. */
static bool take(struct walk *walk, int rank, int lane, int peer, struct mark *clock)
{
    struct queue *link = link_of(walk, lane, peer, rank);

    if (link->first == 0)
        return false;
    const struct message *message = &walk->message[link->first - 1];
    *clock = later(*clock, message->mark);
    link->first = message->next;
    if (link->first == 0)
        link->last = 0;
    return true;
}

/* One step of a lane. False: it cannot go on yet. */
static bool advance(struct walk *walk, int rank, int lane)
{
    const struct hoop_lane_plan *program = &walk->plan[rank]->lane[lane];
    const int number = lane_of(walk, rank, lane);
    const uint32_t at = walk->at[number];
    struct mark clock = at > 0 ? walk->done[number][at - 1] : (struct mark){0};

    if (at == program->steps)
        return false;
    const struct hoop_step *step = &program->step[at];
    if (step->kind == HOOP_STEP_SEND)
        post(walk, rank, lane, step, clock);
    else if (step->kind == HOOP_STEP_RECV || step->kind == HOOP_STEP_RECV_REDUCE) {
        if (!take(walk, rank, lane, step->peer, &clock))
            return false;
    } else if (step->kind == HOOP_STEP_AFTER) {
        const int other = lane_of(walk, rank, step->peer);
        if (walk->at[other] <= step->to)
            return false;
        clock = later(clock, walk->done[other][step->to]);
    }
    walk->done[number][at] = clock;
    walk->at[number]++;
    return true;
}

static void go(struct walk *walk)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (int rank = 0; rank < walk->ranks; rank++)
            for (int lane = 0; lane < (int)walk->plan[rank]->lanes; lane++)
                while (advance(walk, rank, lane))
                    moved = true;
    }
}

static enum hoop_status open_walk(struct walk *walk, const struct hoop_algo *algo, struct hoop_problem problem)
{
    size_t steps = 0;
    uint32_t sends = 0;

    walk->plan = hoop_calloc((size_t)walk->ranks, sizeof(struct hoop_plan *));
    if (walk->plan == NULL)
        return HOOP_ERR_MEMORY;
    for (problem.rank = 0; problem.rank < problem.ranks; problem.rank++) {
        const enum hoop_status status = hoop_plan_build(&walk->plan[problem.rank], algo, &problem, false);
        if (status != HOOP_OK)
            return status;
        const struct hoop_plan *plan = walk->plan[problem.rank];
        walk->lanes = (int)plan->lanes > walk->lanes ? (int)plan->lanes : walk->lanes;
        for (uint32_t lane = 0; lane < plan->lanes; lane++) {
            steps += plan->lane[lane].steps;
            for (uint32_t i = 0; i < plan->lane[lane].steps; i++)
                sends += plan->lane[lane].step[i].kind == HOOP_STEP_SEND;
        }
    }
    const size_t lanes = (size_t)walk->ranks * (size_t)walk->lanes;
    walk->done = hoop_calloc(lanes + 1, sizeof(struct mark *));
    walk->at = hoop_calloc(lanes + 1, sizeof *walk->at);
    walk->link = hoop_calloc(lanes * (size_t)walk->ranks + 1, sizeof *walk->link);
    walk->message = hoop_calloc((size_t)sends + 1, sizeof *walk->message);
    struct mark *mark = walk->done ? hoop_calloc(steps + 1, sizeof *mark) : NULL;
    if (mark == NULL || walk->at == NULL || walk->link == NULL || walk->message == NULL) {
        hoop_free(mark);
        return HOOP_ERR_MEMORY;
    }
    for (int rank = 0; rank < walk->ranks; rank++)
        for (int lane = 0; lane < walk->lanes; lane++) {
            walk->done[lane_of(walk, rank, lane)] = mark;
            mark += lane < (int)walk->plan[rank]->lanes ? walk->plan[rank]->lane[lane].steps : 0;
        }
    return HOOP_OK;
}

static void close_walk(struct walk *walk)
{
    for (int rank = 0; walk->plan && rank < walk->ranks; rank++)
        hoop_plan_free(walk->plan[rank]);
    if (walk->done)
        hoop_free(walk->done[0]);
    hoop_free(walk->done);
    hoop_free(walk->plan);
    hoop_free(walk->at);
    hoop_free(walk->link);
    hoop_free(walk->message);
}

static void find_chain(const struct walk *walk, struct hoop_crossing *crossing)
{
    struct mark last = {0};

    for (int number = 0; number < walk->ranks * walk->lanes; number++)
        if (walk->at[number] > 0)
            last = later(last, walk->done[number][walk->at[number] - 1]);
    crossing->near = last.near;
    crossing->far = last.far;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

/* Data and messages across: of the busiest rank, and of the busiest group each way. */
static enum hoop_status find_data(const struct walk *walk, enum hoop_coll coll, struct hoop_crossing *crossing)
{
    const struct hoop_groups *groups = walk->groups;
    double *out = hoop_calloc(2 * (size_t)groups->groups, sizeof *out);

    if (out == NULL)
        return HOOP_ERR_MEMORY;
    double *const in = out + groups->groups;
    for (int rank = 0; rank < walk->ranks; rank++) {
        const struct hoop_plan *plan = walk->plan[rank];
        const double part = coll == HOOP_BARRIER ? 0 : 1.0 / plan->grid;
        double own = 0, messages = 0;

        for (uint32_t lane = 0; lane < plan->lanes; lane++)
            for (uint32_t i = 0; i < plan->lane[lane].steps; i++) {
                const struct hoop_step *step = &plan->lane[lane].step[i];
                if (step->kind != HOOP_STEP_SEND || groups->group[step->peer] == groups->group[rank])
                    continue;
                own += part;
                messages += !(step->flags & HOOP_STEP_JOINED);
                in[groups->group[step->peer]] += part;
            }
        out[groups->group[rank]] += own;
        crossing->volume = most(crossing->volume, own);
        crossing->messages = most(crossing->messages, messages);
        crossing->mean += messages / walk->ranks;
    }
    for (int group = 0; group < groups->groups; group++)
        crossing->load = most(crossing->load, most(out[group], in[group]));
    hoop_free(out);
    return HOOP_OK;
}

enum hoop_status hoop_crossing_walk(const struct hoop_model *model, const struct hoop_algo *algo,
                                    const struct hoop_problem *problem, struct hoop_crossing *crossing)
{
    struct walk walk = {.model = model, .groups = problem->groups, .ranks = problem->ranks};

    *crossing = (struct hoop_crossing){0};
    enum hoop_status status = open_walk(&walk, algo, *problem);
    if (status == HOOP_OK) {
        go(&walk);
        find_chain(&walk, crossing);
        status = find_data(&walk, problem->coll, crossing);
    }
    close_walk(&walk);
    return status;
}

/* ---- notes ---- */

/* Any rank is as likely a peer as any other, and every message of the chain crosses. */
static struct hoop_crossing estimate(const struct hoop_groups *groups, const struct hoop_cost *cost)
{
    const double size = (double)groups->ranks / groups->groups, share = (groups->ranks - size) / (groups->ranks - 1);

    return (struct hoop_crossing){.far = cost->depth,
                                  .volume = cost->volume * share,
                                  .load = size * cost->volume * share,
                                  .messages = cost->messages * share,
                                  .mean = cost->messages * share};
}

static struct hoop_note *note_of(const struct hoop_groups *groups, const struct hoop_algo *algo, enum hoop_coll coll)
{
    int i = 0;

    while (i < HOOP_NOTES_ALGOS && hoop_algo_get(i) != algo)
        i++;
    return i < HOOP_NOTES_ALGOS ? &groups->notes->note[i][coll] : NULL;
}

static enum hoop_status look(const struct hoop_model *model, const struct hoop_algo *algo,
                             const struct hoop_problem *problem, struct hoop_crossing *crossing)
{
    const struct hoop_problem plain = {
        .coll = problem->coll, .ranks = problem->ranks, .channels = 1, .groups = problem->groups};
    struct hoop_note *note = note_of(problem->groups, algo, problem->coll);
    enum hoop_status status = HOOP_OK;

    if (note == NULL || note->hop != model->hop || note->hop_across != model->hop_across) {
        status = hoop_crossing_walk(model, algo, algo->applicable(&plain) ? &plain : problem, crossing);
        if (status == HOOP_OK && note)
            *note = (struct hoop_note){*crossing, model->hop, model->hop_across};
        return status;
    }
    *crossing = note->crossing;
    return HOOP_OK;
}

struct hoop_crossing hoop_crossing_of(const struct hoop_model *model, const struct hoop_algo *algo,
                                      const struct hoop_problem *problem, const struct hoop_cost *cost)
{
    const int ranks_most = problem->groups->notes->learnt ? HOOP_CROSSING_LEARNT : HOOP_CROSSING_MOST;
    struct hoop_crossing crossing;

    if (algo->cross)
        return algo->cross(problem);
    if (problem->ranks <= ranks_most && look(model, algo, problem, &crossing) == HOOP_OK)
        return crossing;
    return estimate(problem->groups, cost);
}

enum hoop_status hoop_crossing_learn(const struct hoop_model *model, const struct hoop_groups *groups)
{
    struct hoop_problem problem = {.ranks = groups->ranks, .channels = 1, .groups = groups};
    const struct hoop_algo *algo;
    struct hoop_crossing crossing;
    enum hoop_status status = HOOP_OK;

    groups->notes->learnt = true;
    for (int i = 0; (algo = hoop_algo_get(i)) != NULL && groups->ranks <= HOOP_CROSSING_LEARNT; i++)
        for (int coll = 0; coll < HOOP_COLLS && status == HOOP_OK; coll++) {
            problem.coll = (enum hoop_coll)coll;
            if (algo->cross == NULL && algo->applicable(&problem))
                status = look(model, algo, &problem, &crossing);
        }
    return status;
}
