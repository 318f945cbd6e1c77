// SPDX-License-Identifier: BSD-3-Clause
/* Double binary tree: two trees over the same ranks, each with half of the vector.
 *
 * Idea: in one binary tree half of the ranks are leaves and send little. A second tree in which those are the inner
 * ranks carries the other half, so every rank sends the same. All-reduce goes up and down both trees at once, in four
 * lanes. For broadcast and reduce the root stands outside: the trees join the others, and each tree's head is tied
 * to the root, which then moves no more than one vector.
 * Tree: count members from 0 and let b be the lowest bit of r that is set. Parent: r without b, plus 2b; without the
 * 2b if that is no member. Children: r - b/2 and r + b/2, with b halved again until the latter is a member. Member 0
 * is the head, with one child, the highest power of two. The second tree counts from the other end (even number of
 * members) or begins one later (odd).
 * Cost: all-reduce 4 messages, 2 vectors, 1 added, for any n from 4; broadcast and reduce 2 messages, 1 vector.
 * Depth: 2 ceil(log2 n); broadcast and reduce 1 + ceil(log2 (n-1)).
 * Order: own + first child's + second child's; all ranks get the heads' bits.
 */
#include "hoop/plan.h"

struct place {
    int parent, child[2], children; /* ranks; parent < 0: none */
};

static bool applicable(const struct hoop_problem *p)
{
    return p->ranks > 1 && (p->coll == HOOP_ALL_REDUCE || p->coll == HOOP_REDUCE || p->coll == HOOP_BROADCAST);
}

static int log2_ceiling(int n)
{
    int log = 0;

    while (1 << log < n)
        log++;
    return log;
}

static struct hoop_cost cost(const struct hoop_problem *p)
{
    const int n = p->ranks;
    const double messages = n < 4 ? n : 4;

    switch (p->coll) {
    case HOOP_ALL_REDUCE:
        return (struct hoop_cost){messages, messages / 2, n == 2 ? 0.5 : 1, 2 * log2_ceiling(n), 0};
    case HOOP_REDUCE:
        return (struct hoop_cost){2, 1, 1, 1 + log2_ceiling(n - 1), 0};
    default:
        return (struct hoop_cost){2, 1, 0, 1 + log2_ceiling(n - 1), 0};
    }
}

/* The place of member r among `members`, in members' numbers. */
static struct place find_member(int members, int r)
{
    struct place place = {.parent = -1};

    if (r == 0) {
        if (members > 1)
            place.child[place.children++] = (1 << log2_ceiling(members)) / 2;
        return place;
    }
    const int lowest = r & -r;
    int half = lowest / 2;

    place.parent = (r - lowest) | 2 * lowest;
    if (place.parent >= members)
        place.parent = r - lowest;
    if (half > 0)
        place.child[place.children++] = r - half;
    while (half > 0 && r + half >= members)
        half /= 2;
    if (half > 0)
        place.child[place.children++] = r + half;
    return place;
}

/* A member's number in its tree, and the member with that number. */
static int number_of(int members, int tree, int member)
{
    return tree == 0 ? member : members % 2 == 0 ? members - 1 - member : (member + members - 1) % members;
}

static int member_of(int members, int tree, int number)
{
    return tree == 0 ? number : members % 2 == 0 ? members - 1 - number : (number + 1) % members;
}

/* My place in one of the two trees, in ranks; with the root outside where there is one. */
static struct place find_place(const struct hoop_problem *p, int tree)
{
    const int outside = p->coll == HOOP_ALL_REDUCE ? 0 : 1, members = p->ranks - outside;
    struct place place;

    if (p->rank < outside)
        return (struct place){.parent = -1, .child = {outside + member_of(members, tree, 0)}, .children = 1};
    place = find_member(members, number_of(members, tree, p->rank - outside));
    if (place.parent >= 0)
        place.parent = outside + member_of(members, tree, place.parent);
    else if (outside > 0)
        place.parent = 0;
    for (int i = 0; i < place.children; i++)
        place.child[i] = outside + member_of(members, tree, place.child[i]);
    return place;
}

/* Collect the children's sums and mine of chunk `tree`; the root keeps the whole in `sum`. */
static void up(struct hoop_lane *lane, const struct place *place, int tree, enum hoop_buffer sum)
{
    enum hoop_buffer mine = HOOP_IN;

    for (int i = 0; i < place->children; i++) {
        hoop_lane_recv_reduce(lane, place->child[i], sum, tree, mine);
        mine = sum;
    }
    if (place->parent >= 0)
        hoop_lane_send(lane, place->parent, mine, tree);
}

/* Hand down what the root has in `from`. */
static void down(struct hoop_lane *lane, const struct place *place, int tree, enum hoop_buffer from)
{
    if (place->parent >= 0) {
        hoop_lane_recv(lane, place->parent, HOOP_OUT, tree);
        from = HOOP_OUT;
    }
    for (int i = 0; i < place->children; i++)
        hoop_lane_send(lane, place->child[i], from, tree);
}

static void walk(struct hoop_builder *b, const struct hoop_problem *p, int tree)
{
    const struct place place = find_place(p, tree);
    struct hoop_lane *lane = hoop_lane(b);

    if (p->coll == HOOP_ALL_REDUCE) {
        struct hoop_lane *way_down = hoop_lane(b);

        up(lane, &place, tree, HOOP_OUT);
        hoop_lane_after(way_down, lane);
        down(way_down, &place, tree, HOOP_OUT);
    } else if (p->coll == HOOP_REDUCE) {
        up(lane, &place, tree, p->rank == 0 ? HOOP_OUT : HOOP_TMP);
    } else {
        down(lane, &place, tree, HOOP_IN);
        if (p->rank == 0 && !p->in_place)
            hoop_lane_copy(lane, HOOP_OUT, tree, HOOP_IN, tree);
    }
}

static enum hoop_status plan(struct hoop_builder *b, const struct hoop_problem *p)
{
    hoop_grid(b, 2);
    walk(b, p, 0);
    walk(b, p, 1);
    return hoop_builder_status(b);
}

const struct hoop_algo hoop_algo_dbtree = {
    .name = "dbtree", .applicable = applicable, .cost = cost, .plan = plan, .ordered = true};
