// SPDX-License-Identifier: BSD-3-Clause
/* The communicator: everything that one rank needs to call collectives, and how a call goes through it.
 *
 *     hoop_all_reduce …   collectives.c   checks the arguments, makes a struct hoop_comm_call
 *     hoop_all_gatherv …  uneven.c        the same with blocks of different sizes
 *     hoop_start          handle.c        the same with a call that was made before
 *                         again.c         a call like one before goes its way at once
 *     hoop_comm_submit    call.c          runs it now, or gives it to a stream; keeps the order of calls
 *     hoop_comm_run       call.c          publishes the call, chooses (select.c), runs flat or a plan, records the outcome
 *     hoop_comm_run_plan  planned.c       binds the plan, connects its links, drives the executor
 *
 * A communicator belongs to one rank. Its calls run one at a time, in the order in which they were made, whichever
 * threads and streams they come from.
 */
#ifndef HOOP_COMM_COMM_H
#define HOOP_COMM_COMM_H

#include <pthread.h>

#include "base/settings.h"
#include "base/status.h"
#include "comm/again.h"
#include "comm/hosts.h"
#include "dtype/dtype.h"
#include "exec/flat.h"
#include "exec/host.h"
#include "exec/wait.h"
#include "health/monitor.h"
#include "hoop/plan.h"
#include "hoop/transport.h"
#include "mem/heap.h"
#include "obs/recorder.h"
#include "plan/bind.h"
#include "plan/cache.h"
#include "plan/choose.h"

/* ACROSS: channels where there are several hosts and no setting says how many. */
enum { HOOP_LANES_A_CHANNEL = 4, HOOP_CHANNELS_ACROSS = 2, HOOP_FRAME_ACROSS = 512 * 1024 };

static inline int hoop_lanes_of(int channels)
{
    return channels * HOOP_LANES_A_CHANNEL + 1;
}

_Static_assert(sizeof(struct hoop_recorder) == HOOP_FLIGHT_BYTES, "the board has room for the recorder");

/* A collective as its caller asked for it. */
struct hoop_comm_call {
    struct hoop_comm *comm;
    uint64_t ticket;
    enum hoop_coll coll;
    bool closing;         /* the barrier of finalize */
    bool device;          /* the caller's buffers are device memory */
    bool staged;          /* … and in and out are the staging memory that stands for them */
    bool in_own, out_own; /* … and peers' devices do not reach it, even if they reach the device */
    enum hoop_type type;  /* HOOP_TYPES: none (barrier) */
    enum hoop_op op;      /* HOOP_OPS: none */
    int root;             /* -1: none */
    bool in_place;        /* as all ranks must agree; false for rooted collectives */
    size_t count;
    size_t element;                  /* bytes of one, where a created operator says so; 0: the type's */
    const struct hoop_user_op *user; /* filled in when the call runs; NULL: op is built in */
    const void *in;
    void *out;
    struct hoop_comm_blocks *blocks;    /* uneven.h: blocks of different sizes; NULL: equal ones */
    const struct hoop_comm_call *shown; /* what the peers are told that this is a part of; NULL: itself */
};

/* What else is published as a call, after the collectives; the names are in health/verdict.c. */
enum { HOOP_SHOWN_FINALIZE = HOOP_COLLS, HOOP_SHOWN_ALL_GATHERV, HOOP_SHOWN_ALL_TO_ALLV };

static inline size_t hoop_call_element(const struct hoop_comm_call *call)
{
    return call->element ? call->element : call->type == HOOP_TYPES ? 1 : hoop_type_size(call->type);
}

/* Elements of the collective's whole vector. */
size_t hoop_call_vector(const struct hoop_comm_call *call);

/* Bytes of it as far as the choice of the algorithm goes, equal on all ranks: blocks of different sizes count as if all were as large
 * as the largest. */
size_t hoop_call_judged(const struct hoop_comm_call *call);

/* Does this rank receive a combined vector, and how many elements of it? */
size_t hoop_call_combined(const struct hoop_comm_call *call);

/* Small types travel and are combined as f32, so that they are rounded once, at the end. Two summands need no such care. */
bool hoop_call_widens(const struct hoop_comm_call *call);

/* Memory that grows to what the largest call needed, in the heap, so that peers can read it. */
struct hoop_scratch {
    void *memory;
    size_t bytes;
};

/* How long plans took here, for hoop_explain: the latest calls of different collectives, sizes and algorithms. */
enum { HOOP_TIMINGS = 64 };

struct hoop_timing {
    const struct hoop_algo *algo; /* NULL: empty */
    enum hoop_coll coll;
    size_t vector;                    /* bytes of the whole vector */
    uint64_t calls, least_ns, sum_ns; /* waiting for late peers included */
};

/* Choices made before: to weigh all plans takes longer than a small call. */
enum { HOOP_CHOICES = 64 };

struct hoop_chosen {
    struct hoop_decision decision; /* algo NULL: empty */
    enum hoop_coll coll;
    size_t vector;
    bool in_place, uneven, in_order;
};

/* The name of the latest plan, as stats tell it, and what it is made of. */
struct hoop_plan_name {
    const struct hoop_algo *algo, *inter, *intra;
    int channels;
    size_t slices;
    char text[64];
};

struct hoop_comm {
    int rank, ranks;
    unsigned long forks; /* of the process when it was made: a forked child must not use it */
    struct hoop_settings settings;
    struct hoop_choice choice;
    struct hoop_groups *groups;  /* of the choice */
    struct hoop_decision chosen; /* of the call that runs */
    int channels, slots, lanes;  /* the last lane carries sends and receives */

    struct hoop_hosts hosts; /* hosts.h: where the ranks are */
    struct hoop_board
        *board; /* of this host; it has a card for every rank, of which those of other hosts are only noted */
    struct hoop_heap *heap;
    struct hoop_comm_device *device;  /* device.h: the rank's CUDA device; NULL: none */
    char device_reason[128];          /* why that one, or none */
    char device_way[960];             /* why calls on device memory are staged, or which path kernels take to whom */
    struct hoop_orders *orders;       /* device_order.h: of calls that run as kernels; NULL: by number */
    struct hoop_device_self *devices; /* device_meet.h: of each rank; NULL: this rank is alone */
    struct hoop_watch *watch;
    struct hoop_domain *domain;
    struct hoop_link **links;                         /* ranks * lanes */
    struct hoop_operator *operators[HOOP_OP_NUMBERS]; /* the created ones by number; NULL: none */
    hoop_stream *helper; /* runs this communicator's part of a group of several; NULL until needed */

    struct hoop_plan_cache plans;
    struct hoop_exec *exec;
    struct hoop_flat flat;
    struct hoop_wait wait;
    struct hoop_again again[HOOP_COLLS]; /* again.h: the latest small call of each collective */
    struct hoop_scratch tmp, wide_in, wide_out, counts;
    struct hoop_handle *handles;    /* persistent calls on it */
    uint64_t sequence, fingerprint; /* of the latest call */

    /* order of calls */
    pthread_mutex_t order;
    pthread_cond_t turn;
    uint64_t issued;
    _Atomic uint64_t served;
    _Atomic int waiting; /* threads that wait for their turn */

    /* outcome */
    pthread_mutex_t error_lock;
    _Atomic int error; /* enum hoop_status, the first one */
    char error_text[HOOP_ERROR_TEXT];
    bool finalized;
    double patience;                /* of hoop_comm_shrink: seconds for making the new communicator; 0: none is made */
    struct hoop_recorder *recorder; /* in the board */
    struct hoop_stats stats;
    struct hoop_timing timing[HOOP_TIMINGS];
    struct hoop_chosen choices[HOOP_CHOICES];
    struct hoop_plan_name name;
    struct hoop_tune *tune; /* tune.c: choices by measured time; NULL: none */
};

/* A message between two ranks goes through the same calls as a collective, under one of these as its coll. The root is the peer. */
enum { HOOP_POINT_SEND = HOOP_COLLS + 1, HOOP_POINT_RECV };

/* The calls of a group on one communicator: they have one turn. */
struct hoop_comm_batch {
    struct hoop_comm *comm;
    hoop_stream *stream;
    bool cuda; /* the stream is a CUDA stream, and all calls are on device memory */
    uint64_t ticket;
    size_t calls;
    struct hoop_comm_call call[];
};

/* ---- created operators, operators.c */

/* Does the operator of the call exist here, and take its elements? Fills in call->element.
 * Errors: HOOP_ERR_ARG (says what is wrong). */
enum hoop_status hoop_operator_check(const char *what, struct hoop_comm_call *call);

/* The operator of that value; NULL: there is none. */
const struct hoop_operator *hoop_operator_find(const struct hoop_comm *comm, enum hoop_op op);

/* The function, of one that is the user's; NULL: it is a premultiplied sum. */
const struct hoop_user_op *hoop_operator_user(const struct hoop_operator *created);

/* Is it the value of a premultiplied sum? */
bool hoop_operator_is_premul(enum hoop_op op);

/* to = from times the scalar of a premultiplied sum; to has elements of hoop_type_wide. */
void hoop_operator_multiply(const struct hoop_operator *created, void *to, const void *from, size_t count);

/* Its scalar in the wide type, as the lower bits of a word. */
uint64_t hoop_operator_factor(const struct hoop_operator *created);

void hoop_operators_free(struct hoop_comm *comm);

/* Take the call into the thread's group, if there is one. Returns HOOP_AGAIN if there is none, HOOP_OK if it was noted.
 * Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_group_note(const struct hoop_comm_call *call, hoop_stream *stream);

/* Is the thread inside a group? */
bool hoop_group_open(void);

/* Run a batch now, or give it to its stream, which frees it then. Errors: as hoop_comm_submit. */
enum hoop_status hoop_comm_submit_batch(struct hoop_comm_batch *batch);

/* Run sends and receives of one communicator, all together. `calls` of `call`; others among them are skipped.
 * Blocking: until all are done.   Errors: those of the public calls; the error is the communicator's then. */
enum hoop_status hoop_point_run(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls);

/* The same where both ends are in host memory. */
enum hoop_status hoop_point_run_on_host(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls);

/* Free a batch that is not given to a stream. */
void hoop_comm_batch_free(struct hoop_comm_batch *batch);

/* Note in the recorder that the call begins, and how it ended. Collectives have been published. */
struct hoop_record *hoop_comm_record(const struct hoop_comm_call *call);
void hoop_comm_recorded(struct hoop_record *record, enum hoop_status status);

/* Run one published call: alone, or as a step of another that has the turn. Errors: those of the public calls, not concluded yet. */
enum hoop_status hoop_comm_run_part(const struct hoop_comm_call *call);

/* The latest ticket will not be used, since the call could not be given to its stream: tell the peers, who make it, too. Returns the
 * status that stands. */
enum hoop_status hoop_comm_refuse(struct hoop_comm *comm, enum hoop_status status);

/* Run calls that have the turn: collectives in their order, then the messages. Errors: those of the public calls; concluded. */
enum hoop_status hoop_comm_run_calls(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls);

/* Wait until all calls before that ticket have ended; say that it has ended. */
void hoop_comm_wait_for_turn(struct hoop_comm *comm, uint64_t ticket);
void hoop_comm_end_turn(struct hoop_comm *comm, uint64_t ticket);

/* The end of a turn on the caller's thread, without lock or fence: as there is one call at a time, whoever could wait for it
 * has not begun. Should a program break that rule, the waiter looks again after a second. */
static inline void hoop_comm_end_turn_now(struct hoop_comm *comm, uint64_t ticket)
{
    atomic_store_explicit(&comm->served, ticket + 1, memory_order_release);
    if (atomic_load_explicit(&comm->waiting, memory_order_relaxed) > 0)
        hoop_comm_end_turn(comm, ticket);
}

/* Run a published call through slots or in each other's memory; it is shown in the record and the figures. HOOP_AGAIN: a plan
 * is needed, on all ranks.
 * Blocking: until done or a verdict.   Errors: the verdict's. */
enum hoop_status hoop_comm_run_flat(struct hoop_comm *comm, const struct hoop_flat_call *flat,
                                    struct hoop_record *record);

/* Show in the figures which of those ways the latest call went. */
void hoop_comm_name_flat(struct hoop_comm *comm, enum hoop_coll coll);

/* The same call by a plan, then. Errors: the call's, not concluded. */
enum hoop_status hoop_comm_run_instead(const struct hoop_comm_call *call, uint64_t tag, struct hoop_record *record);

/* Bytes that this rank's buffers of a call with equal blocks hold, a message included. */
void hoop_call_held(const struct hoop_comm_call *call, size_t *in, size_t *out);

/* Make a failure known to all ranks and give up the links. Returns the status that stands. */
enum hoop_status hoop_comm_conclude(struct hoop_comm *comm, enum hoop_status status);

/* Run the call now (stream NULL) or in the stream's order; *call is copied.
 * Errors: those of the public calls. */
enum hoop_status hoop_comm_submit(const struct hoop_comm_call *call, hoop_stream *stream);

/* Keep a checked call for hoop_start. Errors: HOOP_ERR_ARG (handle is NULL), HOOP_ERR_MEMORY. */
enum hoop_status hoop_handle_new(struct hoop_handle **handle, const struct hoop_comm_call *call, hoop_stream *stream);

/* Does a handle of the communicator use the operator? */
bool hoop_handle_uses(const struct hoop_comm *comm, enum hoop_op op);

/* The communicator goes away: its handles will say so. */
void hoop_handle_orphan_all(struct hoop_comm *comm);

/* Wait until all calls given to streams have ended. They are bounded, as all calls are. */
void hoop_comm_drain(struct hoop_comm *comm);

/* Is the communicator fit for a call? HOOP_OK, or its first error with its text as the thread's last error. */
enum hoop_status hoop_comm_usable(struct hoop_comm *comm, const char *what);

/* Keep the communicator's first error; the text is the thread's last error. Returns the status that stands. */
enum hoop_status hoop_comm_failed(struct hoop_comm *comm, enum hoop_status status);

/* Take a standing verdict over as the communicator's error. If it is that this rank has failed, the thread that failed does that. */
enum hoop_status hoop_comm_condemned(struct hoop_comm *comm);

/* Does the verdict say that this rank has failed? */
struct hoop_verdict;
bool hoop_comm_own_failure(const struct hoop_comm *comm, struct hoop_verdict verdict);

/* The number of the NUMA node that all these CPUs belong to; -1: unknown, or several. */
int hoop_comm_node(const uint64_t *cpus, int words);

/* Make the communicator's groups. node: of each rank.   Errors: HOOP_ERR_SETUP (HOOP_GROUPS is no such text), HOOP_ERR_MEMORY. */
enum hoop_status hoop_comm_group(struct hoop_comm *comm, const int *node);

/* The algorithm for a call of `vector` bytes. Never fails: flat serves everything.
 * in_order: one that combines in rank order with every operand on its side. */
struct hoop_decision hoop_comm_select(const struct hoop_comm *comm, const struct hoop_problem *problem, size_t vector,
                                      bool in_order);

/* The same for a call that is to run: remembers it. problem: as the call poses it, for one channel. */
struct hoop_decision hoop_comm_decide(struct hoop_comm *comm, const struct hoop_problem *problem, size_t vector,
                                      bool in_order);

/* Note how long a plan took. */
void hoop_comm_time(struct hoop_comm *comm, enum hoop_coll coll, size_t vector, const struct hoop_algo *algo,
                    uint64_t ns);

/* Run the call by the algorithm's plan; HOOP_AVG adds. Blocking: until done.   Errors: the call's; those of links are told to all. */
enum hoop_status hoop_comm_run_plan(const struct hoop_comm_call *call, const struct hoop_algo *algo, uint64_t tag);

/* The plan by which kernels run a call that has the turn, and its binding; shown in the figures.
 * vector: bytes of the whole vector as the caller has it, by which the choice is made.   Errors: as hoop_plan_build and hoop_bind. */
enum hoop_status hoop_comm_plan(const struct hoop_comm_call *call, size_t vector, int channels,
                                const struct hoop_plan **plan, struct hoop_binding *binding);

/* Tell the peers of a call that has the turn. Returns its fingerprint by itself. */
uint64_t hoop_comm_publish(const struct hoop_comm_call *call);

/* Make the scratch at least `bytes` large. Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_scratch_grow(struct hoop_comm *comm, struct hoop_scratch *scratch, size_t bytes);

/* Set-up of one rank, all but the calls: device, board, heap, watch, domain. See init.c.
 * parent: what the communicator is split off, on this rank; NULL: nothing. */
enum hoop_status hoop_comm_make(struct hoop_comm **comm, int ranks, const struct hoop_unique_id *id, int rank,
                                const struct hoop_comm *parent);
void hoop_comm_free(struct hoop_comm *comm);

/* Make the link to that rank and lane, by shared memory or tcp. Errors: as the transport's connect. */
enum hoop_status hoop_comm_connect(struct hoop_comm *comm, int peer, int lane, struct hoop_link **link);

/* Has all that was sent to other hosts left this process?  HOOP_AGAIN: not yet. */
enum hoop_status hoop_comm_flush(struct hoop_comm *comm);

/* A link to that peer ended without a reason. One verdict stands when this returns: that which another host has sent, if it comes
 * in time, else this one. */
void hoop_comm_lost(struct hoop_comm *comm, int peer, uint64_t sequence);

/* A mismatch stands: wait a moment for the call of a rank of another host, so that it can be shown. */
void hoop_comm_await_calls(const struct hoop_comm *comm);

/* Give up all links: peers can no longer take what was lent to them. Only for a communicator that is dead or done. */
void hoop_comm_drop_links(struct hoop_comm *comm);

/* How often this process has been forked from another that used hoop. */
unsigned long hoop_comm_forks(void);

#endif
