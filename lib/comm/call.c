// SPDX-License-Identifier: BSD-3-Clause
/* One call: its turn, its publication, its run and its outcome. */
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "comm/device_call.h"
#include "comm/publish.h"
#include "comm/tune.h"
#include "comm/uneven.h"
#include "exec/stream.h"
#include "health/verdict.h"

/* Bytes of a vector from which reading the clock is not felt. */
enum { TIMED_LEAST = 65536 };

size_t hoop_call_vector(const struct hoop_comm_call *call)
{
    return hoop_coll_shape(call->coll)->blocks && call->blocks == NULL ? call->count * (size_t)call->comm->ranks
                                                                       : call->count;
}

size_t hoop_call_judged(const struct hoop_comm_call *call)
{
    size_t elements;

    if (call->blocks == NULL)
        return hoop_call_vector(call) * hoop_call_element(call);
    if (__builtin_mul_overflow(call->blocks->largest, (size_t)call->comm->ranks, &elements) ||
        elements > SIZE_MAX / hoop_call_element(call))
        return SIZE_MAX;
    return elements * hoop_call_element(call);
}

/* ---- numerics around a plan ---- */

size_t hoop_call_combined(const struct hoop_comm_call *call)
{
    switch (call->coll) {
    case HOOP_ALL_REDUCE:
    case HOOP_REDUCE_SCATTER:
        return call->count;
    case HOOP_REDUCE:
        return call->root == call->comm->rank ? call->count : 0;
    default:
        return 0;
    }
}

static bool reduces(const struct hoop_comm_call *call)
{
    return call->op != HOOP_OPS;
}

static enum hoop_status run_and_divide(const struct hoop_comm_call *call, const struct hoop_algo *algo, uint64_t tag)
{
    enum hoop_status status = hoop_comm_run_plan(call, algo, tag);

    if (status == HOOP_OK && call->op == HOOP_AVG)
        hoop_kernel_divide(call->out, hoop_call_combined(call), call->type, call->comm->ranks);
    return status;
}

bool hoop_call_widens(const struct hoop_comm_call *call)
{
    return reduces(call) && call->user == NULL && hoop_type_wide(call->type) != call->type && call->op != HOOP_MIN &&
           call->op != HOOP_MAX && (call->comm->ranks > 2 || call->op == HOOP_AVG);
}

static enum hoop_status run_wide(const struct hoop_comm_call *call, const struct hoop_algo *algo, uint64_t tag)
{
    struct hoop_comm *comm = call->comm;
    const size_t sent = hoop_call_vector(call), got = hoop_call_combined(call);
    struct hoop_comm_call wide = *call;

    enum hoop_status status = hoop_scratch_grow(comm, &comm->wide_in, sent * sizeof(float));
    if (status == HOOP_OK)
        status = hoop_scratch_grow(comm, &comm->wide_out, got * sizeof(float));
    if (status != HOOP_OK)
        return status;
    hoop_kernel_widen(comm->wide_in.memory, call->in, sent, call->type);
    wide.type = HOOP_F32;
    wide.in = comm->wide_in.memory;
    wide.out = got ? comm->wide_out.memory : NULL;
    wide.in_place = false;
    status = run_and_divide(&wide, algo, tag);
    if (status == HOOP_OK)
        hoop_kernel_narrow(call->out, wide.out, got, call->type);
    return status;
}

/* ---- the ways a call can take ---- */

static void run_alone(const struct hoop_comm_call *call)
{
    if (call->op == HOOP_LAND || call->op == HOOP_LOR || call->op == HOOP_LXOR)
        hoop_kernel_reduce_many(call->out, &call->in, 1, call->count, call->type, call->op);
    else if (call->blocks)
        hoop_kernel_copy((unsigned char *)call->out + call->blocks->out[0].first * hoop_call_element(call),
                         (const unsigned char *)call->in + call->blocks->in[0].first * hoop_call_element(call),
                         call->blocks->out[0].count * hoop_call_element(call));
    else if (call->in != call->out && call->coll != HOOP_BARRIER)
        hoop_kernel_copy(call->out, call->in, call->count * hoop_call_element(call));
}

/* What ran, as stats tell it, of one length to be copied at once: in each other's memory what is combined is combined in slices,
 * as the plan of two-shot does, and the rest goes from each to each. */
enum { WAY_NAME = 24 };
void hoop_comm_name_flat(struct hoop_comm *comm, enum hoop_coll coll)
{
    static const char ways[][2][WAY_NAME] = {[HOOP_FLAT_LINES] = {"flat/shm/lines", "flat/shm/lines"},
                                             [HOOP_FLAT_DIRECT] = {"flat/shm/direct", "twoshot/shm/direct"},
                                             [HOOP_FLAT_STAGED] = {"flat/shm/staged", "twoshot/shm/staged"}};

    memcpy(comm->stats.last_plan, ways[comm->flat.way][hoop_coll_shape(coll)->sums], WAY_NAME);
}

enum hoop_status hoop_comm_run_flat(struct hoop_comm *comm, const struct hoop_flat_call *flat,
                                    struct hoop_record *record)
{
    const bool timed = flat->vector >= TIMED_LEAST && flat->vector >= comm->flat.lend_least;
    const uint64_t begin = timed ? hoop_now() : 0;

    hoop_wait_begin(&comm->wait, comm->sequence);
    const enum hoop_status status = hoop_flat_run(&comm->flat, flat, &comm->wait);
    hoop_wait_settle(&comm->wait);
    if (comm->flat.way != HOOP_FLAT_LINES) {
        hoop_record_name(record, comm->flat.way == HOOP_FLAT_DIRECT ? "direct" : "staged");
        if (timed && status == HOOP_OK)
            hoop_comm_time(comm, flat->coll, flat->vector, NULL, hoop_now() - begin);
    }
    hoop_comm_name_flat(comm, flat->coll);
    return status;
}

/* Through slots or in each other's memory; HOOP_AGAIN: a plan is needed. */
static enum hoop_status run_flat(const struct hoop_comm_call *call, size_t vector, size_t published, uint64_t tag,
                                 struct hoop_record *record)
{
    struct hoop_comm *comm = call->comm;
    const struct hoop_flat_call flat = {.coll = call->coll,
                                        .type = call->type == HOOP_TYPES ? HOOP_U8 : call->type,
                                        .op = call->op,
                                        .user = call->user,
                                        .root = call->root,
                                        .in_place = call->in_place,
                                        .count = call->element ? call->count * call->element : call->count,
                                        .vector = vector,
                                        .published = published,
                                        .in = call->in,
                                        .out = call->out,
                                        .sequence = comm->sequence,
                                        .tag = tag};

    const enum hoop_status status = hoop_comm_run_flat(comm, &flat, record);
    if (status == HOOP_OK)
        hoop_again_keep(call, &flat);
    return status;
}

/* By a plan, over links. */
static enum hoop_status run_planned(const struct hoop_comm_call *call, const struct hoop_algo *algo, size_t vector,
                                    uint64_t tag)
{
    struct hoop_comm *comm = call->comm;

    if (comm->sequence > HOOP_RUN_AHEAD) {
        enum hoop_status status = hoop_flat_await_start(&comm->flat, comm->sequence - HOOP_RUN_AHEAD, &comm->wait);
        if (status != HOOP_OK)
            return status;
    }
    hoop_wait_ring(&comm->wait); /* ranks that run ahead may wait for us to have started */
    const uint64_t begin = hoop_now();
    const enum hoop_status status =
        hoop_call_widens(call) ? run_wide(call, algo, tag) : run_and_divide(call, algo, tag);
    const uint64_t ns = hoop_now() - begin;
    if (status == HOOP_OK && call->blocks == NULL)
        hoop_comm_time(comm, call->coll, vector, algo, ns);
    return status == HOOP_OK && comm->tune ? hoop_tune_note(comm, ns) : status;
}

static struct hoop_problem problem_of(const struct hoop_comm_call *call)
{
    return (struct hoop_problem){.coll = call->coll,
                                 .ranks = call->comm->ranks,
                                 .in_place = call->in_place,
                                 .channels = 1,
                                 .uneven = call->blocks && call->coll == HOOP_ALL_TO_ALL};
}

/* What needs no plan comes first, since to weigh the plans would take as long as such a call. */
static struct hoop_decision select_for(const struct hoop_comm_call *call, const struct hoop_problem *problem,
                                       size_t vector)
{
    if (call->user) /* not measured: how long it takes is the function's business */
        return hoop_comm_decide(call->comm, problem, vector, !call->user->commutes);
    return call->comm->tune ? hoop_tune_select(call->comm, call, problem, vector)
                            : hoop_comm_decide(call->comm, problem, vector, false);
}

enum hoop_status hoop_comm_run_instead(const struct hoop_comm_call *call, uint64_t tag, struct hoop_record *record)
{
    const struct hoop_problem problem = problem_of(call);
    const size_t vector = hoop_call_judged(call);

    call->comm->chosen = select_for(call, &problem, vector);
    hoop_record_name(record, call->comm->chosen.algo->name);
    return run_planned(call, call->comm->chosen.algo, vector, tag);
}

static enum hoop_status run_together(const struct hoop_comm_call *call, uint64_t tag, struct hoop_record *record)
{
    struct hoop_comm *comm = call->comm;
    const struct hoop_choice *choice = &comm->choice;
    const struct hoop_problem problem = problem_of(call);
    const size_t vector = hoop_call_judged(call), published = hoop_coll_shape(call->coll)->in == HOOP_OWN_BLOCK
                                                                  ? call->count * hoop_call_element(call)
                                                                  : vector;
    const bool even = call->blocks == NULL && comm->hosts.count == 1,
               direct = even && call->user == NULL && vector >= comm->flat.lend_least,
               small = even && published <= choice->flat_max, weigh = !direct && (choice->forced || !small);

    comm->chosen = weigh ? select_for(call, &problem, vector) : (struct hoop_decision){.algo = choice->flat};
    const struct hoop_algo *algo = comm->chosen.algo;

    hoop_record_name(record, algo->name);
    if (direct || (small && algo == choice->flat)) {
        const enum hoop_status status = run_flat(call, vector, published, tag, record);
        if (status != HOOP_AGAIN)
            return status;
        return hoop_comm_run_instead(call, tag, record);
    }
    hoop_wait_begin(&comm->wait, comm->sequence);
    return run_planned(call, algo, vector, tag);
}

static enum hoop_status run_any(const struct hoop_comm_call *call, uint64_t tag, struct hoop_record *record)
{
    if (call->comm->ranks > 1)
        return run_together(call, tag, record);
    run_alone(call);
    return HOOP_OK;
}

/* ---- created operators ---- */

/* Multiply into scratch, then it is a sum; of small types in f32, rounded at the end. */
static enum hoop_status run_premultiplied(const struct hoop_comm_call *call, const struct hoop_operator *created,
                                          uint64_t tag, struct hoop_record *record)
{
    struct hoop_comm *comm = call->comm;
    const enum hoop_type wide = hoop_type_wide(call->type);
    const size_t sent = hoop_call_vector(call), got = hoop_call_combined(call), element = hoop_type_size(wide);
    struct hoop_comm_call sum = *call;

    enum hoop_status status = hoop_scratch_grow(comm, &comm->wide_in, sent * element);
    if (status == HOOP_OK && wide != call->type)
        status = hoop_scratch_grow(comm, &comm->wide_out, got * element);
    if (status != HOOP_OK)
        return status;
    hoop_operator_multiply(created, comm->wide_in.memory, call->in, sent);
    sum.type = wide;
    sum.op = HOOP_SUM;
    sum.in_place = false;
    sum.in = comm->wide_in.memory;
    if (wide != call->type)
        sum.out = got ? comm->wide_out.memory : NULL;
    status = run_any(&sum, tag, record);
    if (status == HOOP_OK && wide != call->type)
        hoop_kernel_narrow(call->out, sum.out, got, call->type);
    return status;
}

static enum hoop_status run_created(const struct hoop_comm_call *call, uint64_t tag, struct hoop_record *record)
{
    const struct hoop_operator *created = hoop_operator_find(call->comm, call->op);
    struct hoop_comm_call with = *call;

    if (created == NULL)
        return hoop_fail(HOOP_ERR_ARG, "operator %d was destroyed before a call with it has run", (int)call->op);
    with.user = hoop_operator_user(created);
    return with.user ? run_any(&with, tag, record) : run_premultiplied(call, created, tag, record);
}

/* A call that failed by itself must not leave the others waiting. */
enum hoop_status hoop_comm_conclude(struct hoop_comm *comm, enum hoop_status status)
{
    const struct hoop_verdict own = {HOOP_VERDICT_FAILED, comm->rank, comm->rank, (unsigned)comm->sequence};

    hoop_wait_moved(&comm->wait);
    hoop_comm_drop_links(comm); /* whatever is lent to peers is void from here on */
    HOOP_FAULT_POINT(CONCLUDE);
    if (!hoop_verdict_stands(comm->board))
        hoop_verdict_pass(comm->board, own);
    atomic_store_explicit(&hoop_board_card(comm->board, comm->rank)->finished, UINT64_MAX,
                          memory_order_release); /* behind the verdict: it only says that we touch nothing more */
    hoop_watch_spread(comm->watch);
    const struct hoop_verdict verdict = hoop_verdict_get(comm->board);
    if (hoop_comm_own_failure(comm, verdict)) /* our own text tells more */
        return hoop_comm_failed(comm, status);
    return hoop_comm_condemned(comm);
}

struct hoop_record *hoop_comm_record(const struct hoop_comm_call *call)
{
    struct hoop_comm *comm = call->comm;
    struct hoop_record *record = hoop_record_begin(comm->recorder);

    *record = (struct hoop_record){.status = HOOP_AGAIN,
                                   .sequence = (int)call->coll > HOOP_COLLS ? 0 : comm->sequence,
                                   .begun = hoop_now_coarse(),
                                   .count = call->count,
                                   .root = call->root,
                                   .coll = (uint8_t)hoop_shown_coll(call),
                                   .type = (uint8_t)call->type,
                                   .op = (uint8_t)call->op,
                                   .in_place = call->in_place,
                                   .device = call->device};
    comm->wait.record = record;
    return record;
}

void hoop_comm_recorded(struct hoop_record *record, enum hoop_status status)
{
    record->ended = hoop_now_coarse();
    record->status = (int16_t)status;
}

enum hoop_status hoop_comm_run_part(const struct hoop_comm_call *call)
{
    enum hoop_status status = HOOP_OK;
    const uint64_t tag = hoop_publish(call->shown ? call->shown : call);
    struct hoop_record *record = hoop_comm_record(call);
    status = call->op > HOOP_OPS ? run_created(call, tag, record) : run_any(call, tag, record);
    hoop_comm_recorded(record, status);
    return status;
}

/* An all_to_allv: first the counts, then the data. */
static enum hoop_status run_agreed(const struct hoop_comm_call *call)
{
    struct hoop_comm_call agreed = *call;
    const enum hoop_status status = hoop_uneven_agree(&agreed);

    return status == HOOP_OK ? hoop_comm_run_part(&agreed) : status;
}

static enum hoop_status run(const struct hoop_comm_call *call)
{
    struct hoop_comm *comm = call->comm;
    enum hoop_status status = hoop_comm_usable(comm, "collective");

    if (status != HOOP_OK)
        return status;
    if (call->device && !call->staged)
        return hoop_device_run(comm, call, 1);
    if ((int)call->coll > HOOP_COLLS)
        return hoop_point_run(comm, call, 1);
    status =
        call->blocks && call->coll == HOOP_ALL_TO_ALL && comm->ranks > 1 ? run_agreed(call) : hoop_comm_run_part(call);
    if (status != HOOP_OK)
        return hoop_comm_conclude(comm, status);
    comm->stats.calls += !call->closing;
    comm->stats.bytes += hoop_call_vector(call) * hoop_call_element(call);
    return HOOP_OK;
}

/* ---- order ---- */

void hoop_comm_wait_for_turn(struct hoop_comm *comm, uint64_t ticket)
{
    if (atomic_load(&comm->served) == ticket)
        return;
    pthread_mutex_lock(&comm->order);
    atomic_fetch_add(&comm->waiting, 1);
    while (atomic_load(&comm->served) != ticket) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++; /* see hoop_comm_end_turn_now */
        pthread_cond_timedwait(&comm->turn, &comm->order, &until);
    }
    atomic_fetch_sub(&comm->waiting, 1);
    pthread_mutex_unlock(&comm->order);
}

void hoop_comm_end_turn(struct hoop_comm *comm, uint64_t ticket)
{
    pthread_mutex_lock(&comm->order);
    atomic_store(&comm->served, ticket + 1);
    pthread_cond_broadcast(&comm->turn);
    pthread_mutex_unlock(&comm->order);
}

/* On a stream's thread. Destroy may wait for the end of this turn and free the communicator, so the turn ends under the lock
 * and nothing is touched afterwards. */
static enum hoop_status take_turn(void *data)
{
    const struct hoop_comm_call *call = data;
    struct hoop_comm *comm = call->comm;
    const uint64_t ticket = call->ticket;

    hoop_comm_wait_for_turn(comm, ticket);
    const enum hoop_status status = run(call);
    hoop_blocks_drop(call->blocks);
    hoop_comm_end_turn(comm, ticket);
    return status;
}

static enum hoop_status take_turn_now(const struct hoop_comm_call *call)
{
    hoop_comm_wait_for_turn(call->comm, call->ticket);
    const enum hoop_status status = run(call);
    hoop_comm_end_turn_now(call->comm, call->ticket);
    return status;
}

enum hoop_status hoop_comm_run_calls(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls)
{
    enum hoop_status status = HOOP_OK;
    size_t messages = 0;

    for (size_t i = 0; i < calls; i++)
        if (call[i].device && !call[i].staged)
            return hoop_device_run(comm, call, calls);
    for (size_t i = 0; status == HOOP_OK && i < calls; i++)
        if ((int)call[i].coll <= HOOP_COLLS)
            status = run(&call[i]);
        else
            messages++;
    return status == HOOP_OK && messages > 0 ? hoop_point_run(comm, call, calls) : status;
}

static void drop_blocks(struct hoop_comm_batch *batch)
{
    for (size_t i = 0; i < batch->calls; i++) {
        hoop_blocks_drop(batch->call[i].blocks);
        batch->call[i].blocks = NULL;
    }
}

void hoop_comm_batch_free(struct hoop_comm_batch *batch)
{
    if (batch)
        drop_blocks(batch);
    hoop_free(batch);
}

static enum hoop_status take_turn_of_batch(void *data)
{
    struct hoop_comm_batch *batch = data;
    struct hoop_comm *comm = batch->comm;
    const uint64_t ticket = batch->ticket;

    hoop_comm_wait_for_turn(comm, ticket);
    const enum hoop_status status = hoop_comm_run_calls(comm, batch->call, batch->calls);
    drop_blocks(batch);
    hoop_comm_end_turn(comm, ticket);
    return status;
}

/* A call could not be given to its stream. The peers make it and would wait for this rank. */
enum hoop_status hoop_comm_refuse(struct hoop_comm *comm, enum hoop_status status)
{
    comm->issued--;
    hoop_verdict_pass(comm->board, (struct hoop_verdict){HOOP_VERDICT_FAILED, comm->rank, comm->rank, 0});
    return hoop_comm_failed(comm, status);
}

enum hoop_status hoop_comm_submit_batch(struct hoop_comm_batch *batch)
{
    if (batch->cuda) {
        const enum hoop_status status = hoop_device_submit(batch);
        hoop_comm_batch_free(batch);
        return status;
    }
    batch->ticket = batch->comm->issued++;
    if (batch->stream == NULL) {
        enum hoop_status status = take_turn_of_batch(batch);
        hoop_comm_batch_free(batch);
        return status;
    }
    enum hoop_status status = hoop_stream_enqueue(batch->stream, take_turn_of_batch, batch);
    if (status != HOOP_OK) {
        status = hoop_comm_refuse(batch->comm, status);
        hoop_comm_batch_free(batch);
    }
    return status;
}

void hoop_comm_drain(struct hoop_comm *comm)
{
    hoop_comm_wait_for_turn(comm, comm->issued);
    pthread_mutex_lock(&comm->order); /* whoever ended the last turn has let go of it */
    pthread_mutex_unlock(&comm->order);
}

/* One call in a CUDA stream: a batch of one. */
static enum hoop_status submit_alone(const struct hoop_comm_call *call, hoop_stream *stream)
{
    struct hoop_comm_batch *batch = hoop_calloc(1, sizeof *batch + sizeof *batch->call);

    if (batch == NULL) {
        call->comm->issued++;
        return hoop_comm_refuse(call->comm, HOOP_ERR_MEMORY);
    }
    *batch = (struct hoop_comm_batch){.comm = call->comm, .stream = stream, .cuda = true, .calls = 1};
    batch->call[0] = *call;
    hoop_blocks_keep(call->blocks);
    return hoop_comm_submit_batch(batch);
}

enum hoop_status hoop_comm_submit(const struct hoop_comm_call *call, hoop_stream *stream)
{
    struct hoop_comm *comm = call->comm;
    struct hoop_comm_call ticketed = *call;

    if (comm->device) {
        const enum hoop_status status = hoop_device_look(&ticketed, stream);
        if (status != HOOP_OK)
            return status;
    }
    enum hoop_status status = call->closing ? HOOP_AGAIN : hoop_group_note(&ticketed, stream);
    if (status != HOOP_AGAIN)
        return status;
    if (ticketed.device && stream)
        return submit_alone(&ticketed, stream);
    if (stream == NULL) {
        ticketed.ticket = comm->issued++;
        return take_turn_now(&ticketed);
    }
    ticketed.ticket = comm->issued++;
    struct hoop_comm_call *kept = hoop_calloc(1, sizeof *kept);
    if (kept == NULL)
        return hoop_comm_refuse(comm, HOOP_ERR_MEMORY);
    *kept = ticketed;
    hoop_blocks_keep(kept->blocks);
    status = hoop_stream_enqueue(stream, take_turn, kept);
    if (status != HOOP_OK) {
        status = hoop_comm_refuse(comm, status);
        hoop_blocks_drop(kept->blocks);
        hoop_free(kept);
    }
    return status;
}
