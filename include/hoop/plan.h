// SPDX-License-Identifier: BSD-3-Clause
/* Plans: what an algorithm returns, and what can be done with it.
 *
 * An algorithm is a pure function: problem in, plan out. A plan is one rank's part of a collective: lanes of
 * steps on symbolic chunks. It knows no pointer, byte count, element type or wire.
 *
 * Lane    an in-order program; the lanes of a rank run side by side.
 * Chunk   part of a buffer on a grid of G chunks. The grid spans the collective's whole vector: the ranks' blocks
 *         one after the other where there are blocks, else the one vector; hoop_coll_shape tells what a rank's IN and
 *         OUT hold of it. IN and OUT use the same chunk numbers, but for all_to_all: there a block of IN belongs to
 *         the rank that it goes to, a block of OUT to the rank that it comes from. The barrier's chunks are all empty.
 *         TMP has chunk numbers of its own: TMP chunk t holds as many elements as chunk t mod G of the grid, one slice
 *         of it at a time.
 * Match   the k-th send on (source, destination, lane) meets the k-th receive there. No tags. Both name chunks of
 *         equal size.
 * Bundle  a message of several chunks: a send, and further ones to the same peer in the same lane that are joined to it.
 *         The data of all parts are there when the first is sent, so a bundle is one message on its way, in cost and in the
 *         simulator; an executor may move its parts one by one. It is a list of chunks, since slices cut each chunk
 *         by itself. Both ends agree on where bundles begin.
 * Slice   slice s is the s-th part of every chunk; each lane runs its whole program once for slice 0, then for
 *         slice 1, and so on. TMP is reused from slice to slice: what slice s left there is not read by slice s + 1.
 * Empty   a chunk's slice of no elements is skipped by every step, at both ends of a message. The barrier's are not:
 *         its messages are sent with zero bytes.
 *
 * Chunk i of G over N elements begins at element i * (N div G) + min(i, N mod G); blocks are equal, and each block is
 * cut that way. Slices cut a chunk by the same rule.
 */
#ifndef HOOP_PLAN_H
#define HOOP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "hoop.h"

#ifdef __cplusplus
extern "C" {
#endif

enum hoop_coll {
    HOOP_ALL_REDUCE,
    HOOP_REDUCE,
    HOOP_BROADCAST,
    HOOP_ALL_GATHER,
    HOOP_REDUCE_SCATTER,
    HOOP_BARRIER,
    HOOP_ALL_TO_ALL,
    HOOP_GATHER,
    HOOP_SCATTER,
    HOOP_COLLS
};

/* How much of the collective's whole vector a rank's buffer holds. */
enum hoop_holds {
    HOOP_WHOLE,     /* all of it */
    HOOP_OWN_BLOCK, /* the rank's block */
    HOOP_ROOT_ONLY  /* all of it on the root, nothing elsewhere */
};

/* What a collective looks like; the same for every algorithm. */
struct hoop_coll_shape {
    bool blocks; /* the vector is made of a block for each rank, and a call's count is that of a block */
    bool rooted; /* there is a root; in place is the root's matter alone */
    bool sums;   /* the ranks' parts are combined */
    enum hoop_holds in, out;
};

enum hoop_buffer { HOOP_IN, HOOP_OUT, HOOP_TMP };

/* Steps an author writes: the first six. HOOP_STEP_AFTER orders lanes. The rest is made by the fuse pass. */
enum hoop_step_kind {
    HOOP_STEP_COPY,        /* to = from */
    HOOP_STEP_REDUCE,      /* to = from op to */
    HOOP_STEP_SEND,        /* from -> peer */
    HOOP_STEP_RECV,        /* to = received */
    HOOP_STEP_RECV_REDUCE, /* to = received op from */
    HOOP_STEP_AFTER,       /* wait until lane `peer` has done step `to` of the same slice */
    HOOP_STEP_KINDS
};

/* Flags of a step. FORWARD and NO_STORE permit, they do not demand: doing the two steps one after the other, with the
 * store, is always right. With one slot a link it is even needed: who holds a received frame until there is room to
 * send it on may wait in a circle. With two slots or more both ways are proved. JOINED tells where messages begin; who moves
 * each part by itself need not look at it. */
enum {
    HOOP_STEP_STAGED = 1,  /* SEND: copy the data out at once instead of lending the buffer to the peer */
    HOOP_STEP_FORWARD = 2, /* RECV, RECV_REDUCE: the next step sends the same chunk; one pass may do both (fuse) */
    HOOP_STEP_NO_STORE =
        4,                /* with FORWARD: `to` is overwritten before it is read again and need not be stored (fuse) */
    HOOP_STEP_JOINED = 8, /* SEND, RECV, RECV_REDUCE: a further part of the bundle on this link */
    HOOP_STEP_BEHIND =
        16 /* REDUCE, RECV_REDUCE: what comes in is the right operand, for operators that do not commute */
};

struct hoop_step {
    uint8_t kind;      /* enum hoop_step_kind */
    uint8_t to_buffer; /* enum hoop_buffer */
    uint8_t from_buffer;
    uint8_t flags;
    int32_t peer;      /* rank; for AFTER the lane */
    uint32_t to, from; /* chunk numbers; for AFTER `to` is the step's index in its lane as the author counted it */
};

struct hoop_lane_plan {
    uint32_t steps; /* number of steps */
    struct hoop_step *step;
};

struct hoop_notes;

/* Ranks in groups of such as are near each other: of a NUMA node, a socket, a host. Equal on all ranks; read-only but for the notes,
 * so choices by the same groups are made one at a time. */
struct hoop_groups {
    int ranks, groups;
    bool equal;               /* as many ranks in each group */
    const int *group;         /* number of each rank's group; groups are numbered by their first ranks */
    const int *place;         /* of each rank in its group, in rank order */
    const int *first;         /* group g is member[first[g]] … member[first[g + 1] - 1]; groups + 1 of them */
    const int *member;        /* ranks, group by group */
    struct hoop_notes *notes; /* the library's own, of what it found out about plans among these groups */
};

/* Orders of ranks in which channels go from rank to rank, such that links of the machine are used well: neighbours in an order are near
 * each other, and so are its last and first. Equal on all ranks; read-only. */
struct hoop_orders {
    int ranks, orders;
    const int
        *rank; /* order i has rank[i * ranks] … rank[(i + 1) * ranks - 1]; channel c takes order c modulo orders */
};

struct hoop_algo;

/* What a plan is made for. Equal on all ranks but for `rank`. */
struct hoop_problem {
    enum hoop_coll coll;
    int ranks, rank;
    int root; /* where there is a root: authors see 0 here, since rooted plans are written for root 0 and relabelled
                        (not those of an algorithm with any_root); elsewhere 0 */
    bool in_place; /* OUT is IN (where one of them is the rank's block: that block of the other; rooted: so on the root,
                        and the other ranks' plans do not depend on it) */
    bool
        uneven; /* all_to_all: the blocks differ in size, and only the two ranks concerned know it, so each block must go whole
                        and straight from one to the other. Only `applicable` looks at it */
    int channels; /* copies of the program side by side, each on its own part of every chunk; 1 … HOOP_MAX_CHANNELS */
    const struct hoop_groups *groups; /* NULL: none. Must outlive the plan */
    const struct hoop_orders
        *orders; /* for algorithms that are `ordered`; NULL: in the order of numbers. Must outlive the plan.
                                         Only hoop_plan_build looks at it: authors see places in the order as ranks */
    const struct hoop_algo *inter,
        *intra; /* the parts of an algorithm that composes others, across and inside of groups;
                                              NULL: as it sees fit */
};

enum { HOOP_MAX_CHANNELS = 16, HOOP_MAX_LANES = 64 };

/* A finished plan of one rank. Owned by whoever built it; freed by hoop_plan_free. Read-only once built. */
struct hoop_plan {
    const struct hoop_algo *algo;
    struct hoop_problem problem; /* with the true root */
    uint32_t grid;               /* G, all channels together */
    uint32_t tmp;                /* TMP chunks */
    uint32_t tmp_first;          /* the first one that a step names; those before it need no memory */
    uint32_t lanes;
    struct hoop_lane_plan lane[]; /* lanes entries */
};

/* What the algorithm promises, per rank (the largest over ranks), for a vector of grid chunks all of size 1/G.
 * The checker compares it with the plan. Sizes are parts of the collective's whole vector; the barrier's are 0.
 * A bundle is one message. With C channels there are C times as many messages and joined parts; the rest stays. */
struct hoop_cost {
    double messages; /* most messages sent by one rank */
    double volume;   /* most data sent by one rank, in vectors */
    double reduced;  /* most data reduced by one rank, in vectors */
    double depth; /* longest chain of messages of which each is sent after the one before was received, in lane order */
    double joined; /* most parts sent by one rank beyond the first ones of its messages */
};

/* What of a plan crosses from one group of ranks to another. */
struct hoop_crossing {
    double near, far; /* messages of the longest chain inside of groups, and across */
    double volume;    /* most data that one rank sends across, in vectors */
    double load;      /* most data that leaves one group, or enters it */
    double messages;  /* most that one rank sends across */
    double mean;      /* of all ranks */
};

struct hoop_builder;
struct hoop_lane;

/* An algorithm: one file of lib/algo, one line of lib/algo/algos.def. */
struct hoop_algo {
    const char *name;
    /* May this algorithm solve the problem? Looks at coll, ranks, in_place, groups, inter and intra only. */
    bool (*applicable)(const struct hoop_problem *problem);
    /* The formulas of the file's head. */
    struct hoop_cost (*cost)(const struct hoop_problem *problem);
    /* What crosses the problem's groups. NULL: it is counted in the plans. */
    struct hoop_crossing (*cross)(const struct hoop_problem *problem);
    /* Write the plan of problem->rank. Pure: same problem, same plan. Returns hoop_builder_status. */
    enum hoop_status (*plan)(struct hoop_builder *builder, const struct hoop_problem *problem);
    /* plan and cost see the true root and rank, to keep the order of ranks; false: they see root 0, relabelled. */
    bool any_root;
    /* Every combined chunk of every plan is ((x0 op x1) op x2) …, whoever combines, and with every operand on its side, so that
     * operators that do not commute can use it: the checker holds it to that. */
    bool rank_order;
    /* Made of others' plans: the formulas are bounds, which a plan may stay below. */
    bool composed;
    /* Ranks whose numbers are neighbours exchange most: each channel's ranks stand in the problem's orders. Not with any_root or
     * rank_order. */
    bool ordered;
};

/* ---- writing a plan: builder calls keep the first error and do nothing after it
 * Blocking: never.   Threads: one at a time per builder.   Errors: told by hoop_builder_status. */

/* A new lane. All ranks number their lanes alike: lane l of one rank talks to lane l of others. */
HOOP_API struct hoop_lane *hoop_lane(struct hoop_builder *builder);
/* Set the grid, before the first step: chunks of the whole vector (with blocks: a multiple of ranks).
 * Without it the grid is 1 (with blocks: ranks). */
HOOP_API void hoop_grid(struct hoop_builder *builder, int chunks);
/* to = from. */
HOOP_API void hoop_lane_copy(struct hoop_lane *lane, enum hoop_buffer to, int to_chunk, enum hoop_buffer from,
                             int from_chunk);
/* to = from op to. */
HOOP_API void hoop_lane_combine(struct hoop_lane *lane, enum hoop_buffer to, int to_chunk, enum hoop_buffer from,
                                int from_chunk);
/* Send a chunk; the peer may read it from the buffer until it says so, so a later step that overwrites it waits. */
HOOP_API void hoop_lane_send(struct hoop_lane *lane, int peer, enum hoop_buffer from, int chunk);
/* Send a chunk that is copied out at once: needed where waiting for the peer would close a cycle. */
HOOP_API void hoop_lane_send_staged(struct hoop_lane *lane, int peer, enum hoop_buffer from, int chunk);
/* to = received. */
HOOP_API void hoop_lane_recv(struct hoop_lane *lane, int peer, enum hoop_buffer to, int chunk);
/* to = received op from, with the same chunk number on both sides; _at names both. */
HOOP_API void hoop_lane_recv_reduce(struct hoop_lane *lane, int peer, enum hoop_buffer to, int chunk,
                                    enum hoop_buffer from);
HOOP_API void hoop_lane_recv_reduce_at(struct hoop_lane *lane, int peer, enum hoop_buffer to, int to_chunk,
                                       enum hoop_buffer from, int from_chunk);
/* The same with the operands' sides changed: to = to op from, and to = from op received. */
HOOP_API void hoop_lane_combine_behind(struct hoop_lane *lane, enum hoop_buffer to, int to_chunk, enum hoop_buffer from,
                                       int from_chunk);
HOOP_API void hoop_lane_recv_reduce_behind(struct hoop_lane *lane, int peer, enum hoop_buffer to, int to_chunk,
                                           enum hoop_buffer from, int from_chunk);
/* The lane's latest send or receive is a further part of the message before it to or from the same peer in this lane. What
 * is sent must have been there when that message's first part was sent; the other end joins its step, too. */
HOOP_API void hoop_lane_join(struct hoop_lane *lane);
/* The lane goes on only when `other` has done everything written to it so far (of the same slice). */
HOOP_API void hoop_lane_after(struct hoop_lane *lane, const struct hoop_lane *other);
/* The lane of that number, made if there are not as many yet. */
HOOP_API struct hoop_lane *hoop_lane_get(struct hoop_builder *builder, int number);

/* Every lane goes on only when all have done everything written so far (of the same slice). */
HOOP_API void hoop_lanes_meet(struct hoop_builder *builder);

/* A plan inside of a plan: another algorithm's solution among some of the ranks, on some of the chunks. */
struct hoop_sub {
    const struct hoop_algo *algo;
    enum hoop_coll coll;
    bool in_place;
    int ranks, rank; /* of the inner plan; its root is 0. rank -1: this one takes no part */
    int parts;       /* chunks of the plan for each of the inner one: every inner step becomes so many, one message */
    /* The rank that the inner plan's rank i is, and the chunk that a part of its chunk is. TMP chunks of the inner plan go
     * by the chunk whose data they hold. */
    int (*peer)(const void *context, int i);
    int (*chunk)(const void *context, int chunk, int part);
    const void *context;
    enum hoop_buffer in, out;     /* what is the inner plan's IN and OUT here */
    int in_shift, out_shift, tmp; /* added to the chunk's number where that is TMP; and for the inner plan's TMP */
};

/* Write the inner plan behind what was written so far; all of it begins when that is done. It gets lanes of its own while the
 * plan has no more than four with them, so that slices overlap: one is here while the next is before; else it begins with lane 0.
 * Where the inner plan is proved for one slot a link, the parts keep to that: sends and the receives that follow them go part
 * by part. */
HOOP_API void hoop_compose(struct hoop_builder *builder, const struct hoop_sub *sub);
/* HOOP_OK, or the first error of the calls before. */
HOOP_API enum hoop_status hoop_builder_status(const struct hoop_builder *builder);

/* ---- plans as values ---- */

/* Build, relabel for root and channels, and fuse the plan of one rank.
 *
 * plan      receives the plan; free it with hoop_plan_free.
 * fuse      false: leave the author's steps as they are (for the checker's comparison).
 * Blocking: never.   Threads: any.
 * Errors: HOOP_ERR_ARG (not applicable, bad problem, or the author wrote a wrong step: says which), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_plan_build(struct hoop_plan **plan, const struct hoop_algo *algo,
                                          const struct hoop_problem *problem, bool fuse);

/* Free a plan; NULL is allowed.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API void hoop_plan_free(struct hoop_plan *plan);

/* The algorithms in the order of algos.def; NULL past the end.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const struct hoop_algo *hoop_algo_get(int i);
/* The algorithm of that name, or NULL.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const struct hoop_algo *hoop_algo_find(const char *name);
/* One line for people about algorithm i; "" past the end.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const char *hoop_algo_help(int i);

/* Read the name of an algorithm as users type it: "ring", or with its parts "hier(ring,twoshot)".
 *
 * algo, inter, intra   receive it; the parts are NULL where the text has none.
 * Blocking: never.   Threads: any.   Errors: false, and nothing is changed, if there is no such algorithm. */
HOOP_API bool hoop_algo_read(const char *text, const struct hoop_algo **algo, const struct hoop_algo **inter,
                             const struct hoop_algo **intra);

enum { HOOP_ALGO_TEXT = 64 };

/* Write that text; always ends with NUL.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API void hoop_algo_text(char text[HOOP_ALGO_TEXT], const struct hoop_algo *algo, const struct hoop_algo *inter,
                             const struct hoop_algo *intra);

/* Make groups. Free them with hoop_groups_free.
 *
 * ranks   1 or more.   label   one number a rank; ranks of the same number are a group.
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_groups_new(struct hoop_groups **groups, int ranks, const int *label);

/* Make groups of neighbouring ranks by their sizes: "4" for groups of 4, "3,2" for 3 and 2 by turns; the last one may be
 * smaller.
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_ARG (no such text), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_groups_cut(struct hoop_groups **groups, int ranks, const char *sizes);

/* Groups in words without blanks: "none" for NULL, sizes as hoop_groups_cut reads them where the groups are neighbours in few sizes, else
 * "~" and a hash of which rank is where. Equal texts for the same number of ranks: equal groups, up to a hash's chance.
 * Always ends with NUL.   Blocking: never.   Threads: any.   Errors: none. */
enum { HOOP_GROUPS_TEXT = 32 };
HOOP_API void hoop_groups_text(char text[HOOP_GROUPS_TEXT], const struct hoop_groups *groups);

/* Free groups; NULL is allowed.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API void hoop_groups_free(struct hoop_groups *groups);

/* Names as users type them: "all_reduce", …; -1 for a text that is none.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const char *hoop_coll_name(enum hoop_coll coll);
HOOP_API int hoop_coll_find(const char *name);
/* Its shape, in static storage; that of a value that is none is all false.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const struct hoop_coll_shape *hoop_coll_shape(enum hoop_coll coll);

/* Write the text form:
 *
 *     plan ring all_reduce ranks 4 rank 1 root 0 in_place 0 channels 1 grid 4 tmp 0 lanes 1
 *     lane 0
 *       send 2 in 1
 *       recv_reduce 0 out 0 in 0 forward no_store
 *
 * A step: kind, peer where there is one, to buffer and chunk where there are, from buffer and chunk where there are, flags.
 * Blocking: on the file.   Threads: any.   Errors: HOOP_ERR_SYSTEM (the file's error). */
HOOP_API enum hoop_status hoop_plan_print(const struct hoop_plan *plan, FILE *file);

/* Read the text form of one plan; any text is safe to give.
 *
 * text, size   need not end with NUL.
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_ARG (names line and word), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_plan_parse(struct hoop_plan **plan, const char *text, size_t size);

/* ---- proof ---- */

struct hoop_check {
    int slices;     /* 1 or more */
    int credit;     /* messages a link holds before the sender waits, 1 or more */
    bool borrow;    /* sends that are not staged lend their source: a step that overwrites it waits for the receiver,
                          also a step of another lane */
    bool skip_cost; /* do not compare with the algorithm's formulas */
    bool again;     /* the same plans have passed in another mode: steps are not looked at by themselves once more */
    /* results */
    uint64_t steps; /* steps executed */
    uint64_t messages;
    bool rank_order; /* the reduction expression of every chunk is ((x0 op x1) op x2) … */
    struct hoop_cost cost;
    char fault[512]; /* what is wrong, with rank, lane, step; "" if nothing */
};

/* Prove that plan[0 … ranks - 1], the plans of all ranks in rank order, together solve their problem.
 *
 * Executes them symbolically under the given credit, slices and borrow mode and checks that sends and receives pair up,
 * nothing deadlocks, nothing undefined is read, nothing is added twice, IN is written only in place, lanes are
 * race-free, TMP stays in its size and may be reused by the next slice, every rank's OUT is what the collective
 * promises with the same reduction expression on all ranks (that in rank order if the algorithm says so), and the cost is the algorithm's own formula. With a
 * credit of 2 or more a FORWARD step waits until its SEND can go, too (the executor may do either).
 * Blocking: never.   Threads: any.
 * Errors: HOOP_ERR_ARG (a plan is wrong: check->fault tells), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_plan_check(struct hoop_plan *const *plan, struct hoop_check *check);

/* ---- choice: which algorithm, how long it may take, and why ---- */

/* Constants of the cost model; the list with ranges and help is lib/plan/model.def. Times in ns, rates in GB/s, which is
 * bytes per ns. Plain data. */
struct hoop_model {
    double hop, hop_crowded, post, slot, copy, reduce, hop_across, post_across, uplink;
    bool measured; /* read from a file, not built in */
    bool derived;  /* from a machine's topology */
};

/* What a call is predicted to cost, in ns. time is the sum of the others. */
struct hoop_prediction {
    double time;
    double hops;     /* the longest chain of messages */
    double messages; /* work for messages and slices */
    double copy, reduce;
    double across; /* data that cross from group to group; copy has the rest. 0 without groups */
};

/* The constants that are compiled in.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API struct hoop_model hoop_model_builtin(void);

/* Predict the time of a call, from the algorithm's formulas:
 *
 *     depth * hop + crowd * (messages * post + (moved / frame + joined) * slot + moved / copy + reduced / reduce)
 *
 * where crowd is 1, or ranks / cores where ranks outnumber cores and take turns. A pure function; it grows with bytes.
 * If the problem has groups, messages of the longest chain that cross take hop_across, each is the work of post_across (with crowd, of
 * as many as ranks send on the average, if those are more), and what a rank sends across takes the longer of two times: its own to move
 * that, and that of its group's uplink for what all in it send across.
 * problem  solved by the algorithm.
 * bytes    of the collective's whole vector (of all ranks together where there are blocks).
 * frame    bytes of one slice, 1 or more.   cores  that the ranks share, 1 or more.
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API struct hoop_prediction hoop_model_predict(const struct hoop_model *model, const struct hoop_algo *algo,
                                                   const struct hoop_problem *problem, size_t bytes, size_t frame,
                                                   int cores);

/* Read the text of a model file (its form is in lib/plan/model.c); any text is safe to give. *model is unchanged on failure.
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_ARG (names line and word). */
HOOP_API enum hoop_status hoop_model_parse(struct hoop_model *model, const char *text, size_t size);

/* Write a model file.   Blocking: on the file.   Threads: any.   Errors: HOOP_ERR_SYSTEM (the file's error). */
HOOP_API enum hoop_status hoop_model_print(const struct hoop_model *model, FILE *file);

/* Read a model file of at most 64 KiB. *model is unchanged on failure.
 * Blocking: on the file.   Threads: any.   Errors: HOOP_ERR_SETUP (names file, line and word), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_model_load(struct hoop_model *model, const char *path);

/* Write a model file in one step, in place of what was there, with the machine it is for as a remark.
 *
 * remarks   more lines of remarks, each beginning with '#' and ending with a line break, or NULL.
 * Blocking: on the file.   Threads: any.   Errors: HOOP_ERR_SYSTEM (names the file), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_model_save(const struct hoop_model *model, const char *path, const char *remarks);

/* Where this machine's measured constants lie: $XDG_CACHE_HOME/hoop/model-HASH, or in $HOME/.cache. The hash is that of
 * hoop_machine_text.   Blocking: on files of /proc and /sys.   Threads: any.   Errors: HOOP_ERR_SETUP (no home, or size too small). */
HOOP_API enum hoop_status hoop_model_path(char *path, size_t size);

/* The constants by which a communicator made now by this process as rank 0 would judge: those that HOOP_MODEL names.
 *
 * origin, size   receives where they come from, in words: "built in", or the file.
 * Blocking: on that file.   Threads: any.   Errors: HOOP_ERR_SETUP (names setting or file), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_model_current(struct hoop_model *model, char *origin, size_t size);

/* This machine as far as measured figures go: "x86_64, Some Processor 9, 8 CPUs, 1 NUMA node"; cut off at size.
 * Blocking: on files of /proc and /sys.   Threads: any.   Errors: none. */
HOOP_API void hoop_machine_text(char *text, size_t size);

/* Constant i of the model, in the order of lib/plan/model.def: its name, unit, help and place; false past the end.
 * Blocking: never.   Threads: any.   Errors: none. */
struct hoop_constant {
    const char *name, *unit, *help;
    size_t offset; /* of the double in struct hoop_model */
    double least, most;
};
HOOP_API bool hoop_constant_get(int i, struct hoop_constant *constant);

/* What the choice depends on beside the call; equal on all ranks of a communicator. Plain data. */
struct hoop_choice {
    const struct hoop_algo *flat;   /* serves every collective */
    const struct hoop_algo *forced; /* HOOP_ALGO; NULL: by cost. Where it cannot serve a collective, cost decides */
    const struct hoop_algo *inter, *intra; /* the forced one's parts; NULL: by cost */
    const struct hoop_groups *groups; /* HOOP_GROUPS, or the machine's; NULL: none. Costs count what crosses them */
    size_t frame, flat_max;           /* HOOP_SLICE; HOOP_FLAT_MAX */
    size_t direct_min;                /* HOOP_DIRECT_MIN; 0: by ranks and cores */
    size_t stage;            /* HOOP_STAGE; 0: all_reduce takes a plan where buffers are out of the others' reach */
    int cores;               /* that the ranks may run on, all together */
    bool deterministic;      /* HOOP_DETERMINISTIC: what combines, combines in rank order */
    bool far;                /* ranks are on several hosts: nobody sees a board that all share */
    struct hoop_model model; /* HOOP_MODEL, or the built-in one */
};

/* What a communicator made now on this machine would choose by: settings from the environment, the cores of this process,
 * the constants of HOOP_MODEL's file.
 * Blocking: on that file.   Threads: any.   Errors: HOOP_ERR_SETUP (names setting or file). */
HOOP_API enum hoop_status hoop_choice_read(struct hoop_choice *choice);

/* Explain a call without a communicator: the text of hoop_explain (hoop.h) for the same choice.
 *
 * problem   its rank and in_place hardly matter; channels 1.
 * bytes     of the collective's whole vector.
 * json      one object instead of text for people.
 * text, size  receives the explanation with a final NUL; HOOP_EXPLAIN_TEXT bytes are always enough.
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_ARG (bad problem, or size too small: says what is needed). */
HOOP_API enum hoop_status hoop_plan_explain(const struct hoop_choice *choice, const struct hoop_problem *problem,
                                            size_t bytes, bool json, char *text, size_t size);

/* What kernels on the GPUs of recorded machines would choose by. Plain data but for the groups. */
struct hoop_topo;
struct hoop_topo_channels;

struct hoop_gpu_choice {
    struct hoop_choice choice;
    struct hoop_groups *groups; /* the hosts, or GPUs near one CPU where rings go from CPU to CPU; NULL: none */
    int ranks;                  /* a rank for each GPU of each host */
};

/* Make the choice of `hosts` hosts with GPUs, each the machine of that topology (hoop/topo.h).
 *
 * gpus    receives it; hoop_groups_free its groups in the end. Its settings are those of hoop_choice_read, its constants follow from the
 *         rings that hoop_topo_search finds, and from NCCL's figures for a hop; none is fitted to a machine.
 * rings   receives those rings, over the hosts.
 * Blocking: computes for some seconds on large machines.   Threads: any.
 * Errors: those of hoop_choice_read and hoop_topo_search; HOOP_ERR_ARG (no place for a result). */
HOOP_API enum hoop_status hoop_gpu_choice_make(struct hoop_gpu_choice *gpus, const struct hoop_topo *topo, int hosts,
                                               struct hoop_topo_channels *rings);

/* ---- simulation ---- */

/* A network in levels, the outermost first and the ranks last: `count` hosts, in each of them `count` NUMA nodes, in each of them
 * `count` ranks. A unit (a host, …) is joined to the rest by one uplink, which its ranks share; that of a rank is its port.
 * A message takes the latency of the outermost level whose units it leaves and passes the uplinks of that level and all
 * below, out of the sender's and into the receiver's. */
enum { HOOP_LEVELS = 4, HOOP_LEVEL_NAME = 16 };

struct hoop_level {
    char name[HOOP_LEVEL_NAME];
    int count;        /* in a unit of the level before */
    double bandwidth; /* of a unit's uplink each way, GB/s, more than 0 */
    double latency;   /* ns between ranks of different units, 0 or more */
};

struct hoop_network {
    int levels; /* 1 … HOOP_LEVELS */
    struct hoop_level level[HOOP_LEVELS];
};

/* Read a network from words "hosts:4@25,2000 numa:2 ranks:4": name, count, and where they are given the uplink's GB/s and the
 * latency in ns; else those of the levels called hosts, sockets, numa and ranks, or as for hosts. The ranks come last.
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_ARG (names the word). */
HOOP_API enum hoop_status hoop_network_read(struct hoop_network *network, const char *text);

/* What passed a level. */
struct hoop_level_load {
    uint64_t messages, moved; /* that crossed it, and no level before it; moved in bytes */
    uint64_t most;            /* bytes through the busiest uplink of the level, one way */
};

/* A run on a virtual network. Every rank has one port in and one out, which all its links share, and one core. A message takes
 * post on the sender's core, its bytes at the bandwidth of the sender's port out, the latency, and the bandwidth of the
 * receiver's port in (both at once where they are free); a link holds `slots` messages until its receiver has taken them.
 * A bundle is one message: it leaves with its first part, and is taken when its last part is. */
struct hoop_simulation {
    const struct hoop_network *network; /* levels; NULL: one, of the ports below */
    size_t bytes;                       /* of the collective's whole vector */
    size_t frame;                       /* bytes of one slice */
    int slots;                          /* of a link, 1 … 64 */
    double bandwidth;                   /* of a port each way, GB/s, more than 0; not used with a network */
    double latency, post;               /* ns, 0 or more; the latency is not used with a network */
    double copy, reduce;                /* GB/s; 0: takes no time */
    uint64_t most;                      /* messages; more are an error. 0: 2^31 */
    int symmetry; /* one rank, or one unit of the outermost level (or one group), stands for all, if the plans are turned copies
                             of each other: 0: for more than 2048 ranks, 1: always, 2: always, or it is an error; -1: never */
    /* results */
    bool symmetric; /* fewer ranks stood for all: */
    int stood;      /* so many of them were run */
    struct hoop_level_load load[HOOP_LEVELS];
    double time;                     /* ns until the last rank is done */
    uint64_t steps, messages, moved; /* of all ranks; moved in bytes */
    uint64_t links;                  /* that carried messages: pairs of ranks and lanes */
    uint64_t port_most;              /* bytes through the busiest port, one way */
    uint64_t link_most;              /* bytes over the busiest link */
    uint64_t memory;                 /* bytes that the simulation took */
};

/* Run the plans of all ranks on a virtual network, without data.
 *
 * problem  its rank is ignored.   simulation  parameters in, results out.
 * Blocking: for as long as it computes, roughly half a second per million messages.   Threads: any.
 * Errors: HOOP_ERR_ARG (bad problem or parameter, too many messages, or the plans deadlock), HOOP_ERR_MEMORY (also where 2 GiB
 * would not do: says so). */
HOOP_API enum hoop_status hoop_plan_simulate(const struct hoop_algo *algo, const struct hoop_problem *problem,
                                             struct hoop_simulation *simulation);

#ifdef __cplusplus
}
#endif
#endif
