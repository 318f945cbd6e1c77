// SPDX-License-Identifier: BSD-3-Clause
#include "comm/publish.h"

#include "base/fault.h"
#include "comm/uneven.h"

unsigned hoop_shown_coll(const struct hoop_comm_call *call)
{
    if (call->closing)
        return HOOP_SHOWN_FINALIZE;
    if (call->blocks == NULL)
        return call->coll;
    return call->coll == HOOP_ALL_GATHER ? HOOP_SHOWN_ALL_GATHERV : HOOP_SHOWN_ALL_TO_ALLV;
}

/* Its count: of an all_to_allv, where each rank has its own, the largest block as far as it is agreed. */
static size_t shown_count(const struct hoop_comm_call *call)
{
    return call->blocks && call->coll == HOOP_ALL_TO_ALL ? call->blocks->largest : call->count;
}

uint64_t hoop_publish(const struct hoop_comm_call *call)
{
    const bool in_place = call->in_place && call->blocks == NULL; /* else agreed otherwise, or nobody's business */
    const int root = call->blocks ? (int)(call->blocks->hash >> 33) : call->root;
    const uint64_t kind = hoop_call_pack((struct hoop_call_kind){hoop_shown_coll(call), (unsigned)call->type,
                                                                 (unsigned)call->op, in_place, call->device, root});

    const uint64_t tag = hoop_publish_kind(call->comm, kind, shown_count(call), call->element);
    HOOP_FAULT_POINT(CALL);
    return tag;
}

uint64_t hoop_comm_publish(const struct hoop_comm_call *call)
{
    struct hoop_comm *comm = call->comm;

    hoop_publish(call);
    struct hoop_record *noted = hoop_comm_record(call);
    hoop_record_name(noted, "kernel");
    noted->status = HOOP_OK; /* the device has it: how far it is with its calls is on the card */
    const struct hoop_card *card = hoop_board_card(comm->board, comm->rank);
    const struct hoop_call *record = &card->call[comm->sequence % HOOP_CALL_RECORDS];
    return hoop_publish_mix(hoop_publish_mix(1, record->kind), record->count);
}
