// SPDX-License-Identifier: BSD-3-Clause
/* Packing, spreading and telling of verdicts. */
#include "health/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KIND_BITS = 4, RANK_BITS = 20, A_AT = KIND_BITS, B_AT = A_AT + RANK_BITS, SEQUENCE_AT = B_AT + RANK_BITS };

/* Names of the collectives; this layer may not look into the plans. Order of enum hoop_coll, then what
 * else is published as a call. */
static const char *const coll_names[] = {"all_reduce",     "reduce",   "broadcast",   "all_gather",
                                         "reduce_scatter", "barrier",  "all_to_all",  "gather",
                                         "scatter",        "finalize", "all_gatherv", "all_to_allv"};
enum { FINALIZE_AT = 9, ALL_GATHERV_AT, ALL_TO_ALLV_AT };

struct hoop_verdict hoop_verdict_pass(struct hoop_board *board, struct hoop_verdict verdict)
{
    const uint64_t rank_mask = (1u << RANK_BITS) - 1;

    hoop_verdict_take(board, (uint64_t)verdict.kind | ((uint64_t)verdict.a & rank_mask) << A_AT |
                                 ((uint64_t)verdict.b & rank_mask) << B_AT |
                                 (uint64_t)(verdict.sequence & 0xffff) << SEQUENCE_AT);
    return hoop_verdict_get(board);
}

void hoop_verdict_take(struct hoop_board *board, uint64_t word)
{
    uint64_t none = 0;

    if (word == 0)
        return;
    atomic_compare_exchange_strong(&board->head->verdict, &none, word);
    for (int rank = 0; rank < board->shape.ranks; rank++)
        hoop_bell_ring(&hoop_board_card(board, rank)->bell);
}

uint64_t hoop_verdict_word(const struct hoop_board *board)
{
    return atomic_load(&board->head->verdict);
}

struct hoop_verdict hoop_verdict_get(const struct hoop_board *board)
{
    const uint64_t word = atomic_load(&board->head->verdict);
    const unsigned rank_mask = (1u << RANK_BITS) - 1, kind = (unsigned)word & ((1u << KIND_BITS) - 1);
    const struct hoop_verdict verdict = {.kind = (enum hoop_verdict_kind)kind,
                                         .a = (int)(word >> A_AT & rank_mask),
                                         .b = (int)(word >> B_AT & rank_mask),
                                         .sequence = (unsigned)(word >> SEQUENCE_AT & 0xffff)};

    if (kind > HOOP_VERDICT_DAMAGED || verdict.a >= board->shape.ranks || verdict.b >= board->shape.ranks ||
        (kind == HOOP_VERDICT_NONE && word != 0))
        return (struct hoop_verdict){.kind = HOOP_VERDICT_DAMAGED};
    return verdict;
}

enum hoop_status hoop_verdict_status(struct hoop_verdict verdict)
{
    switch (verdict.kind) {
    case HOOP_VERDICT_NONE:
        return HOOP_OK;
    case HOOP_VERDICT_DIED:
    case HOOP_VERDICT_SILENT:
    case HOOP_VERDICT_LEFT:
    case HOOP_VERDICT_FAILED:
        return HOOP_ERR_PEER;
    case HOOP_VERDICT_MISMATCH:
    case HOOP_VERDICT_PAIR:
        return HOOP_ERR_MISMATCH;
    case HOOP_VERDICT_ABORTED:
        return HOOP_ERR_ABORTED;
    case HOOP_VERDICT_LATE:
        return HOOP_ERR_TIMEOUT;
    case HOOP_VERDICT_DAMAGED:
        return HOOP_ERR_INTERNAL;
    }
    return HOOP_ERR_INTERNAL;
}

void hoop_call_text(const struct hoop_call *call, char *text, size_t size)
{
    const struct hoop_call_kind kind = hoop_call_unpack(call->kind);
    const char *coll = kind.coll < sizeof coll_names / sizeof *coll_names ? coll_names[kind.coll] : "unknown call";
    char root[24] = "", op[40] = "";

    if (kind.op != HOOP_OPS)
        snprintf(op, sizeof op, ", %s", hoop_op_name((enum hoop_op)kind.op));
    if (kind.op >= HOOP_OPS_CREATED) /* with its number, which may be what differs */
        snprintf(op + strlen(op), sizeof op - strlen(op), " %u", kind.op % 64);
    if (kind.coll == ALL_GATHERV_AT) /* the counts are too many to show: equal ones have equal hashes */
        snprintf(root, sizeof root, ", counts #%08x", (unsigned)kind.root);
    else if (kind.root >= 0 && kind.coll < FINALIZE_AT)
        snprintf(root, sizeof root, ", root %d", kind.root);
    if (kind.type >= HOOP_TYPES)
        snprintf(text, size, "%s", coll);
    else if (kind.coll == ALL_TO_ALLV_AT) /* each rank has counts of its own */
        snprintf(text, size, "%s of %s", coll, hoop_type_name((enum hoop_type)kind.type));
    else
        snprintf(text, size, "%s of %" PRIu64 " %s%s%s%s", coll, call->count, hoop_type_name((enum hoop_type)kind.type),
                 op, root, kind.in_place ? ", in place" : "");
}

/* The call that a rank published under this number; false if it has been overwritten or not been made. */
static bool published(const struct hoop_board *board, int rank, uint64_t sequence, struct hoop_call *call)
{
    const struct hoop_call *record = &hoop_board_card(board, rank)->call[sequence % HOOP_CALL_RECORDS];

    *call = (struct hoop_call){.sequence = __atomic_load_n(&record->sequence, __ATOMIC_ACQUIRE),
                               .fingerprint = __atomic_load_n(&record->fingerprint, __ATOMIC_ACQUIRE),
                               .count = __atomic_load_n(&record->count, __ATOMIC_ACQUIRE),
                               .kind = __atomic_load_n(&record->kind, __ATOMIC_ACQUIRE)};
    return call->sequence == sequence;
}

/* The ranks noticed at call `noticed` (modulo 2^16) that their calls differ: the first call that does, as far back as is known. Fills in
 * both calls; 0 if nothing is known. */
static uint64_t first_difference(const struct hoop_board *board, int a, int b, unsigned noticed,
                                 struct hoop_call found[2])
{
    const uint64_t of_a = hoop_card_started(hoop_board_card(board, a)),
                   of_b = hoop_card_started(hoop_board_card(board, b));
    const uint64_t both = of_a < of_b ? of_a : of_b;
    const uint64_t known =
        both + (uint64_t)(int64_t)(int16_t)(noticed - (unsigned)both); /* the number whose last 16 bits are told */
    const uint64_t newest = known < both ? known : both;
    uint64_t first = 0;

    for (uint64_t sequence = newest; sequence > 0 && newest - sequence < HOOP_CALL_RECORDS; sequence--) {
        struct hoop_call call[2];
        if (!published(board, a, sequence, &call[0]) || !published(board, b, sequence, &call[1]) ||
            call[0].fingerprint == call[1].fingerprint)
            continue;
        first = sequence;
        found[0] = call[0];
        found[1] = call[1];
    }
    return first;
}

static void mismatch_text(const struct hoop_board *board, struct hoop_verdict verdict, char *text, size_t size)
{
    char calls[2][160];
    struct hoop_call call[2];
    const uint64_t sequence = first_difference(board, verdict.a, verdict.b, verdict.sequence, call);

    if (sequence == 0) {
        snprintf(text, size,
                 "ranks %d and %d made different calls, noticed at call %u; the calls themselves are no longer known",
                 verdict.a, verdict.b, verdict.sequence);
        return;
    }
    struct hoop_call_kind kind[2];
    for (int i = 0; i < 2; i++) {
        hoop_call_text(&call[i], calls[i], sizeof calls[i]);
        kind[i] = hoop_call_unpack(call[i].kind);
    }
    for (int i = 0; i < 2 && kind[0].device != kind[1].device; i++) {
        const size_t used = strlen(calls[i]);
        snprintf(calls[i] + used, sizeof calls[i] - used, ", in %s memory", kind[i].device ? "device" : "host");
    }
    const bool sizes = kind[0].op >= HOOP_OPS_CREATED && strcmp(calls[0], calls[1]) == 0;
    snprintf(text, size,
             "mismatch at call %" PRIu64
             ": rank %d called %s; rank %d called %s%s. All ranks must make the same calls in the same "
             "order.",
             sequence, verdict.a, calls[0], verdict.b, calls[1], sizes ? " with elements of another size" : "");
}

void hoop_verdict_text(const struct hoop_board *board, struct hoop_verdict verdict, char *text, size_t size)
{
    const int process = hoop_board_card(board, verdict.a)->process;

    switch (verdict.kind) {
    case HOOP_VERDICT_NONE:
        snprintf(text, size, "no error");
        break;
    case HOOP_VERDICT_DIED:
        snprintf(text, size, "rank %d (process %d) died. Look at its own output and exit code for the reason.",
                 verdict.a, process);
        break;
    case HOOP_VERDICT_SILENT:
        if (atomic_load(&hoop_board_card(board, verdict.a)->started) == UINT64_MAX) {
            snprintf(text, size,
                     "the host of rank %d (process %d) shows no sign of life: it is down, or the network between the "
                     "hosts is cut "
                     "(a partition: each side names the other). HOOP_SILENT sets how long that is borne.",
                     verdict.a, process);
            break;
        }
        snprintf(
            text, size,
            "rank %d (process %d) shows no sign of life: it is stopped, dumping core, or cut off. HOOP_SILENT sets how "
            "long that is borne.",
            verdict.a, process);
        break;
    case HOOP_VERDICT_LEFT:
        snprintf(text, size, "rank %d left the communicator while other ranks still call on it", verdict.a);
        break;
    case HOOP_VERDICT_MISMATCH:
        mismatch_text(board, verdict, text, size);
        break;
    case HOOP_VERDICT_ABORTED:
        snprintf(text, size, "rank %d called hoop_comm_abort", verdict.a);
        break;
    case HOOP_VERDICT_PAIR:
        snprintf(text, size,
                 "rank %d sends another message than rank %d expects from it; that rank's own message shows both",
                 verdict.a, verdict.b);
        break;
    case HOOP_VERDICT_DAMAGED:
        snprintf(text, size,
                 "the memory that the ranks share has been written over; look for a wild pointer in the program");
        break;
    case HOOP_VERDICT_LATE:
        if (verdict.a == verdict.b) {
            snprintf(text, size,
                     "call %u of rank %d has not moved for longer than HOOP_TIMEOUT, though all ranks are in it",
                     verdict.sequence, verdict.a);
            break;
        }
        snprintf(text, size, "rank %d is late by more than HOOP_TIMEOUT; rank %d has waited for it in call %u",
                 verdict.a, verdict.b, verdict.sequence);
        break;
    case HOOP_VERDICT_FAILED:
        snprintf(text, size, "rank %d (process %d) failed inside a call; its own message has the reason", verdict.a,
                 process);
        break;
    }
}
