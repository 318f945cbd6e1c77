// SPDX-License-Identifier: BSD-3-Clause
#include "comm/again.h"

#include <string.h>

#include "base/clock.h"
#include "comm/publish.h"
#include "health/verdict.h"

static uint64_t kind_of(const struct hoop_comm_call *call, bool in_place)
{
    return hoop_call_pack((struct hoop_call_kind){(unsigned)call->coll, (unsigned)call->type, (unsigned)call->op,
                                                  in_place, false, call->root});
}

void hoop_again_keep(const struct hoop_comm_call *call, const struct hoop_flat_call *flat)
{
    struct hoop_comm *comm = call->comm;
    const struct hoop_coll_shape *shape = hoop_coll_shape(call->coll);
    struct hoop_again *again = &comm->again[call->coll];
    const size_t skip = (size_t)comm->rank * call->count * hoop_call_element(call);

    if (call->closing || call->shown || call->user || call->blocks || call->device || comm->device ||
        call->op > HOOP_OPS || comm->tune)
        return;
    *again = (struct hoop_again){.holds = true,
                                 .type = call->type,
                                 .op = call->op,
                                 .root = call->root,
                                 .count = call->count,
                                 .rooted = shape->rooted,
                                 .plain = hoop_flat_is_plain(&comm->flat, flat),
                                 .receives = !shape->rooted || comm->rank == call->root,
                                 .in_skip = shape->in == HOOP_OWN_BLOCK ? skip : 0,
                                 .out_skip = shape->out == HOOP_OWN_BLOCK ? skip : 0,
                                 .kind = {kind_of(call, false), kind_of(call, true)},
                                 .flat = *flat};
    if (call->coll != HOOP_BARRIER)
        hoop_call_held(call, &again->in_bytes, &again->out_bytes);
}

/* Not NULL unless empty, and either the very same place in the whole vector or apart; as collectives.c checks with more words. */
static inline bool good_buffers(const struct hoop_again *again, uintptr_t in, uintptr_t out, bool same)
{
    return (in != 0 || again->in_bytes == 0) && (out != 0 || again->out_bytes == 0) &&
           (same || again->in_bytes == 0 || again->out_bytes == 0 || in >= out + again->out_bytes ||
            out >= in + again->in_bytes);
}

/* Is the communicator fit for a call, and has this one its turn? Only then nobody else writes what is kept. */
static inline bool is_free(const struct hoop_comm *comm)
{
    return comm->forks == hoop_comm_forks() && comm->error == HOOP_OK && !comm->finalized &&
           !hoop_verdict_stands(comm->board) &&
           atomic_load_explicit(&comm->served, memory_order_acquire) == comm->issued && !hoop_group_open();
}

static inline bool is_like(const struct hoop_again *again, const struct hoop_comm_call *call)
{
    return again->holds && again->count == call->count && again->type == call->type && again->op == call->op &&
           again->root == call->root;
}

static inline struct hoop_record *note(struct hoop_comm *comm, const struct hoop_comm_call *call, bool in_place)
{
    struct hoop_record *record = hoop_record_begin(comm->recorder);

    *record = (struct hoop_record){.status = HOOP_AGAIN,
                                   .sequence = comm->sequence,
                                   .plan = "flat",
                                   .begun = hoop_now_coarse(),
                                   .count = call->count,
                                   .root = call->root,
                                   .coll = (uint8_t)call->coll,
                                   .type = (uint8_t)call->type,
                                   .op = (uint8_t)call->op,
                                   .in_place = in_place};
    comm->wait.record = record;
    return record;
}

/* Through slots. What nobody waits for is done while the peers' vectors are on their way. */
static enum hoop_status run_plain(const struct hoop_comm_call *call, const struct hoop_again *again)
{
    struct hoop_comm *comm = call->comm;

    comm->wait.record = NULL; /* not begun yet */
    hoop_wait_begin(&comm->wait, comm->sequence);
    enum hoop_status status = hoop_flat_put(&comm->flat, &again->flat, &comm->wait);
    struct hoop_record *record = note(comm, call, again->flat.in_place);
    hoop_comm_name_flat(comm, call->coll);
    if (status == HOOP_OK && again->receives)
        status = hoop_flat_take(&comm->flat, &again->flat, &comm->wait);
    hoop_wait_settle(&comm->wait);
    record->status = (int16_t)status;
    return status;
}

/* In each other's memory, if these buffers allow it. */
static enum hoop_status run_lent(const struct hoop_comm_call *call, const struct hoop_again *again)
{
    struct hoop_record *record = note(call->comm, call, again->flat.in_place);

    enum hoop_status status = hoop_comm_run_flat(call->comm, &again->flat, record);
    if (status == HOOP_AGAIN) {
        struct hoop_comm_call checked = *call;
        checked.in = again->flat.in;
        checked.out = again->flat.out;
        checked.in_place = again->flat.in_place;
        status = hoop_comm_run_instead(&checked, again->flat.tag, record);
    }
    record->status = (int16_t)status;
    return status;
}

enum hoop_status hoop_again_run(const struct hoop_comm_call *call)
{
    struct hoop_comm *comm = call->comm;

    if (comm == NULL || !is_free(comm))
        return HOOP_AGAIN;
    struct hoop_again *again = &comm->again[call->coll];
    if (!is_like(again, call))
        return HOOP_AGAIN;
    const void *in = again->in_bytes ? call->in : NULL;
    void *out = again->out_bytes ? call->out : NULL;
    const bool same = (uintptr_t)in - again->in_skip == (uintptr_t)out - again->out_skip,
               in_place = same && call->count > 0 && !again->rooted;
    if (!good_buffers(again, (uintptr_t)in, (uintptr_t)out, same))
        return HOOP_AGAIN;

    const uint64_t ticket = comm->issued++;
    again->flat.in = in;
    again->flat.out = out;
    again->flat.in_place = in_place;
    again->flat.tag = hoop_publish_kind(comm, again->kind[in_place], call->count, 0);
    again->flat.sequence = comm->sequence;
    enum hoop_status status = again->plain ? run_plain(call, again) : run_lent(call, again);
    if (__builtin_expect(status == HOOP_OK, 1)) {
        comm->stats.calls++;
        comm->stats.bytes += again->flat.vector;
    } else {
        status = hoop_comm_conclude(comm, status);
    }
    hoop_comm_end_turn_now(comm, ticket);
    return status;
}
