// SPDX-License-Identifier: BSD-3-Clause
/* Hierarchical: other algorithms' plans, one inside of each group of ranks and one across the groups.
 *
 * Idea: what is far is crossed by few, or by each with a part of the data. Equal groups of m ranks: all-reduce is a
 * reduce-scatter inside, an all-reduce of each part among the ranks of equal place, and an all-gather inside, so all ranks
 * carry data across at the same time, 1/m each; reduce-scatter is inside and then across, all-gather across and then inside,
 * both with one block for each group in a message. Else, and for broadcast and reduce, each group has a leader (its first
 * rank, or the root), and only leaders cross. The barrier is inside, across the leaders, and inside again.
 * Cost: the sum of the parts', those across on the 1/m that they carry; a bound, since each has its own busiest rank.
 * Depth: at most the sum.
 * Order: as the parts have it: first inside of each group, then group by group; once for each chunk, so all ranks get
 * the same bits.
 *
 * hier(inter,intra) names the parts. What does not serve a part is replaced there, as two-shot in an all-gather by flat.
 */
#include "algo/hier.h"

/* What the parts' peers and chunks are. */
struct view {
    const struct hoop_problem *problem;
    enum hoop_hier_side side;
    int place; /* across: of the ranks; -1: the leaders */
    int turn;  /* the inner plan's rank 0 is so far from the first */
    int parts;
    int first_chunk; /* -1: chunks are blocks, by rank */
};

static int root_group(const struct hoop_problem *p)
{
    return hoop_coll_shape(p->coll)->rooted ? p->groups->group[p->root] : 0;
}

static int leader_place(const struct hoop_problem *p, int group)
{
    return hoop_coll_shape(p->coll)->rooted && group == root_group(p) ? p->groups->place[p->root] : 0;
}

static int peer(const void *context, int i)
{
    const struct view *view = context;
    const struct hoop_problem *p = view->problem;
    const struct hoop_groups *g = p->groups;

    if (view->side == HOOP_HIER_INSIDE) {
        const int group = g->group[p->rank];
        return g->member[g->first[group] + (i + view->turn) % hoop_hier_size(g, group)];
    }
    const int group = (i + view->turn) % g->groups;
    return g->member[g->first[group] + (view->place < 0 ? leader_place(p, group) : view->place)];
}

static int chunk(const void *context, int number, int part)
{
    const struct view *view = context;
    const struct hoop_groups *g = view->problem->groups;

    if (view->first_chunk >= 0)
        return view->first_chunk + number * view->parts + part;
    if (view->side == HOOP_HIER_INSIDE) /* of the rank of that place, its equals' blocks in all groups */
        return g->member[g->first[part] + number];
    return g->member[g->first[number] + view->place];
}

static void compose(struct hoop_builder *b, const struct view *view, enum hoop_coll coll, struct hoop_sub sub)
{
    const struct hoop_problem *p = view->problem;
    const struct hoop_groups *g = p->groups;
    const int group = g->group[p->rank], place = g->place[p->rank];

    sub.coll = coll;
    sub.peer = peer;
    sub.chunk = chunk;
    sub.context = view;
    sub.parts = view->parts;
    if (view->side == HOOP_HIER_INSIDE) {
        sub.ranks = hoop_hier_size(g, group);
        sub.rank = (place - view->turn + sub.ranks) % sub.ranks;
    } else {
        sub.ranks = g->groups;
        sub.rank = (group - view->turn + sub.ranks) % sub.ranks;
        if (view->place < 0 && place != leader_place(p, group))
            sub.rank = -1;
    }
    if (sub.ranks == 1) { /* alone in its group */
        sub.ranks = 2;
        sub.rank = -1;
    }
    sub.algo = hoop_hier_part(p, view->side, coll, sub.ranks);
    hoop_compose(b, &sub);
}

static void all_reduce(struct hoop_builder *b, const struct hoop_problem *p)
{
    const int m = hoop_hier_size(p->groups, 0),
              parts = hoop_hier_grid(p, HOOP_HIER_ACROSS, HOOP_ALL_REDUCE, p->groups->groups),
              place = p->groups->place[p->rank], grid = m * parts;
    const struct view inside = {p, HOOP_HIER_INSIDE, 0, 0, parts, 0},
                      across = {p, HOOP_HIER_ACROSS, place, 0, 1, place * parts};

    hoop_grid(b, grid);
    compose(b, &inside, HOOP_REDUCE_SCATTER, (struct hoop_sub){.in_place = p->in_place, .out = HOOP_OUT});
    compose(b, &across, HOOP_ALL_REDUCE,
            (struct hoop_sub){.in_place = true, .in = HOOP_OUT, .out = HOOP_OUT, .tmp = grid});
    compose(b, &inside, HOOP_ALL_GATHER, (struct hoop_sub){.in_place = true, .in = HOOP_OUT, .out = HOOP_OUT});
}

static void in_blocks(struct hoop_builder *b, const struct hoop_problem *p)
{
    const int n = p->ranks;
    const struct view inside = {p, HOOP_HIER_INSIDE, 0, 0, p->groups->groups, -1},
                      across = {p, HOOP_HIER_ACROSS, p->groups->place[p->rank], 0, 1, -1};

    if (p->coll == HOOP_ALL_GATHER) {
        compose(b, &across, HOOP_ALL_GATHER, (struct hoop_sub){.in_place = p->in_place, .out = HOOP_OUT});
        compose(b, &inside, HOOP_ALL_GATHER, (struct hoop_sub){.in_place = true, .in = HOOP_OUT, .out = HOOP_OUT});
        return;
    }
    compose(b, &inside, HOOP_REDUCE_SCATTER, (struct hoop_sub){.out = HOOP_TMP, .out_shift = n});
    compose(b, &across, HOOP_REDUCE_SCATTER,
            (struct hoop_sub){.in = HOOP_TMP, .in_shift = n, .out = HOOP_OUT, .tmp = 2 * n});
    hoop_lanes_meet(b); /* the next slice of the sums lies where this one does */
}

/* Up to the leaders, across, and down again, as far as the collective asks for it. */
static void through_leaders(struct hoop_builder *b, const struct hoop_problem *p)
{
    const int group = p->groups->group[p->rank], groups = p->groups->groups, grid = hoop_hier_leaders_grid(p);
    const bool leads = p->groups->place[p->rank] == leader_place(p, group),
               alone = hoop_hier_size(p->groups, group) == 1;
    const bool up = p->coll != HOOP_BROADCAST, down = p->coll != HOOP_REDUCE;
    const bool holds_out = down || p->rank == p->root;
    const enum hoop_buffer sum = holds_out ? HOOP_OUT : HOOP_TMP; /* of a leader */
    struct view inside = {.problem = p, .side = HOOP_HIER_INSIDE, .turn = leader_place(p, group)};
    const struct view across = {.problem = p,
                                .side = HOOP_HIER_ACROSS,
                                .place = -1,
                                .turn = root_group(p),
                                .parts = grid / hoop_hier_grid(p, HOOP_HIER_ACROSS, p->coll, groups)};
    struct hoop_sub sub = {.in_place = p->in_place, .out = HOOP_OUT, .tmp = 2 * grid};

    hoop_grid(b, grid);
    if (up) {
        inside.parts = grid / hoop_hier_grid(p, HOOP_HIER_INSIDE, HOOP_REDUCE, 4);
        compose(b, &inside, HOOP_REDUCE,
                (struct hoop_sub){
                    .in_place = p->in_place && holds_out, .out = holds_out ? HOOP_OUT : HOOP_TMP, .out_shift = grid});
    }
    if (p->coll == HOOP_ALL_REDUCE) {
        for (int i = 0; i < grid && alone && !p->in_place; i++)
            hoop_lane_copy(hoop_lane_get(b, 0), HOOP_OUT, i, HOOP_IN, i);
        sub.in_place = true;
        sub.in = HOOP_OUT;
    } else if (up && !alone && leads) {
        sub.in_place = true;
        sub.in = sum;
        sub.in_shift = grid;
    }
    compose(b, &across, p->coll, sub);
    if (!holds_out) /* the next slice of the sum lies where this one does */
        hoop_lanes_meet(b);
    if (down) {
        inside.parts = grid / hoop_hier_grid(p, HOOP_HIER_INSIDE, HOOP_BROADCAST, 4);
        compose(b, &inside, HOOP_BROADCAST, (struct hoop_sub){.in_place = true, .in = HOOP_OUT, .out = HOOP_OUT});
    }
}

static void barrier(struct hoop_builder *b, const struct hoop_problem *p)
{
    const struct view inside = {.problem = p, .side = HOOP_HIER_INSIDE, .parts = 1},
                      across = {.problem = p, .side = HOOP_HIER_ACROSS, .place = -1, .parts = 1};
    const struct hoop_sub sub = {.out = HOOP_OUT};

    compose(b, &inside, HOOP_BARRIER, sub);
    compose(b, &across, HOOP_BARRIER, sub);
    compose(b, &inside, HOOP_BARRIER, sub);
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    if (p->coll == HOOP_BARRIER)
        barrier(b, p);
    else if (!hoop_hier_shared(p))
        through_leaders(b, p);
    else if (p->coll == HOOP_ALL_REDUCE)
        all_reduce(b, p);
    else
        in_blocks(b, p);
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_hier = {.name = "hier",
                                         .applicable = hoop_hier_applicable,
                                         .cost = hoop_hier_cost,
                                         .cross = hoop_hier_cross,
                                         .plan = plan,
                                         .any_root = true,
                                         .composed = true};
