// SPDX-License-Identifier: BSD-3-Clause
#include "exec/program.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

size_t hoop_program_bytes(const struct hoop_plan *plan)
{
    size_t bytes = plan->lanes * sizeof(struct hoop_device_lane);

    for (uint32_t l = 0; l < plan->lanes; l++)
        bytes += plan->lane[l].steps * sizeof(struct hoop_device_step);
    return bytes;
}

/* ---- which sends may be lent: those whose source no other lane overwrites ---- */

enum { NOBODY = -1, SEVERAL = -2 };

/* For each chunk of IN, OUT and TMP the one lane that writes it. In place IN is OUT. */
struct writers {
    int16_t *lane;
    uint32_t chunks;
    bool in_place;
};

static int16_t *writer_of(const struct writers *writers, uint8_t buffer, uint32_t chunk)
{
    const uint32_t place = writers->in_place && buffer == HOOP_IN ? HOOP_OUT : buffer;

    return &writers->lane[(size_t)place * writers->chunks + chunk];
}

static bool writes(const struct hoop_step *step)
{
    return step->kind != HOOP_STEP_SEND && step->kind != HOOP_STEP_AFTER;
}

static enum hoop_status find_writers(struct writers *writers, const struct hoop_plan *plan)
{
    writers->chunks = plan->grid > plan->tmp ? plan->grid : plan->tmp;
    writers->in_place = plan->problem.in_place;
    writers->lane = hoop_calloc(3 * (size_t)writers->chunks, sizeof *writers->lane);
    if (writers->lane == NULL)
        return HOOP_ERR_MEMORY;
    memset(writers->lane, 0xff, 3 * (size_t)writers->chunks * sizeof *writers->lane);
    for (uint32_t l = 0; l < plan->lanes; l++)
        for (uint32_t s = 0; s < plan->lane[l].steps; s++) {
            const struct hoop_step *step = &plan->lane[l].step[s];
            if (!writes(step))
                continue;
            int16_t *writer = writer_of(writers, step->to_buffer, step->to);
            *writer = *writer == NOBODY || *writer == (int16_t)l ? (int16_t)l : SEVERAL;
        }
    return HOOP_OK;
}

/* ---- writing ---- */

static struct hoop_device_step convert(const struct hoop_step *step, const struct writers *writers, uint32_t lane)
{
    struct hoop_device_step to = {.kind = step->kind,
                                  .to_buffer = step->to_buffer,
                                  .from_buffer = step->from_buffer,
                                  .flags = step->flags,
                                  .peer = step->peer,
                                  .to = step->to,
                                  .from = step->from};

    if (step->kind == HOOP_STEP_SEND) {
        const int16_t writer = *writer_of(writers, step->from_buffer, step->from);
        if (writer == NOBODY || writer == (int16_t)lane)
            to.flags |= HOOP_DEVICE_LEND;
    }
    return to;
}

static void mark_signals(const struct hoop_plan *plan, struct hoop_device_step *const *first)
{
    for (uint32_t l = 0; l < plan->lanes; l++)
        for (uint32_t s = 0; s < plan->lane[l].steps; s++) {
            const struct hoop_step *step = &plan->lane[l].step[s];
            if (step->kind == HOOP_STEP_AFTER)
                first[step->peer][step->to].flags |= HOOP_DEVICE_SIGNAL;
        }
}

enum hoop_status hoop_program_write(const struct hoop_plan *plan, uint64_t address, void *memory)
{
    struct hoop_device_step *first[HOOP_MAX_LANES];
    struct hoop_device_lane *lane = memory;
    struct hoop_device_step *step = (struct hoop_device_step *)(void *)(lane + plan->lanes);
    struct writers writers;

    enum hoop_status status = find_writers(&writers, plan);
    if (status != HOOP_OK)
        return status;
    for (uint32_t l = 0; l < plan->lanes; l++) {
        first[l] = step;
        lane[l] =
            (struct hoop_device_lane){.step = address + (uint64_t)((unsigned char *)step - (unsigned char *)memory),
                                      .steps = plan->lane[l].steps};
        for (uint32_t s = 0; s < plan->lane[l].steps; s++)
            *step++ = convert(&plan->lane[l].step[s], &writers, l);
    }
    mark_signals(plan, first);
    hoop_free(writers.lane);
    return HOOP_OK;
}

void hoop_program_bind(struct hoop_device_call *call, const struct hoop_plan *plan, const struct hoop_binding *binding,
                       enum hoop_type type, enum hoop_op op, size_t small)
{
    call->count = binding->count;
    call->slices = binding->slices;
    call->tmp_stride = binding->tmp_stride;
    call->quotient = binding->quotient;
    call->remainder = binding->remainder;
    call->short_quotient = binding->quotient / binding->slices;
    call->short_remainder = binding->quotient % binding->slices;
    call->long_quotient = (binding->quotient + 1) / binding->slices;
    call->long_remainder = (binding->quotient + 1) % binding->slices;
    call->grid = binding->grid;
    call->tmp_first = binding->tmp_first;
    call->chunks_per_block = binding->chunks_per_block;
    call->element = (uint32_t)binding->element;
    call->lanes = plan->lanes;
    call->type = (uint32_t)type;
    call->op = (uint32_t)(op == HOOP_AVG ? HOOP_SUM : op);
    call->flags = (binding->in_is_block ? HOOP_DEVICE_IN_IS_BLOCK : 0) |
                  (binding->out_is_block ? HOOP_DEVICE_OUT_IS_BLOCK : 0) |
                  (binding->empty_frames ? HOOP_DEVICE_EMPTY_FRAMES : 0) |
                  (binding->piece * binding->element <= small ? HOOP_DEVICE_SMALL_FRAMES : 0);
}

static struct hoop_device_block block_of(const struct hoop_binding *binding, struct hoop_extent extent)
{
    const size_t quotient = extent.count / binding->chunks_per_block, slices = binding->slices;

    return (struct hoop_device_block){.first = extent.first,
                                      .quotient = quotient,
                                      .remainder = extent.count % binding->chunks_per_block,
                                      .short_quotient = quotient / slices,
                                      .short_remainder = quotient % slices,
                                      .long_quotient = (quotient + 1) / slices,
                                      .long_remainder = (quotient + 1) % slices};
}

void hoop_program_blocks(const struct hoop_binding *binding, int ranks, struct hoop_device_block *block)
{
    for (int rank = 0; rank < ranks; rank++) {
        block[rank] = block_of(binding, binding->in_blocks[rank]);
        block[ranks + rank] = block_of(binding, binding->out_blocks[rank]);
    }
}

/* ---- messages ---- */

size_t hoop_program_queues(const struct hoop_device_message *message, size_t messages)
{
    size_t queues = messages > 0;

    for (size_t i = 1; i < messages; i++)
        queues += message[i].kind != message[i - 1].kind || message[i].peer != message[i - 1].peer;
    return queues;
}

uint64_t hoop_program_largest(const struct hoop_device_message *message, size_t messages)
{
    uint64_t most = 0;

    for (size_t i = 0; i < messages; i++)
        most = message[i].bytes > most ? message[i].bytes : most;
    return most;
}

uint32_t hoop_program_parts(uint64_t bytes, uint32_t most)
{
    const uint64_t parts = bytes / HOOP_DEVICE_PART + (bytes % HOOP_DEVICE_PART != 0);

    return parts == 0 ? 1 : parts < most ? (uint32_t)parts : most;
}

/* Three tables, each of whole lines. */
static size_t lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t hoop_program_messages_bytes(size_t messages, size_t queues)
{
    return lines(sizeof(struct hoop_device_exchange)) + lines(queues * sizeof(struct hoop_device_queue)) +
           lines(messages * sizeof(struct hoop_device_message));
}

void hoop_program_messages(const struct hoop_device_message *message, size_t messages, int parts, uint64_t address,
                           void *memory)
{
    const size_t queues = hoop_program_queues(message, messages), queue_at = lines(sizeof(struct hoop_device_exchange)),
                 message_at = queue_at + lines(queues * sizeof(struct hoop_device_queue));
    struct hoop_device_queue *queue = (void *)((unsigned char *)memory + queue_at);

    *(struct hoop_device_exchange *)memory =
        (struct hoop_device_exchange){.queue = address + queue_at,
                                      .message = address + message_at,
                                      .progress = address + hoop_program_messages_bytes(messages, queues),
                                      .queues = (uint32_t)queues,
                                      .parts = (uint32_t)parts};
    memcpy((unsigned char *)memory + message_at, message, messages * sizeof *message);
    for (uint32_t i = 0; i < messages; i++) {
        if (i > 0 && (message[i].kind != message[i - 1].kind || message[i].peer != message[i - 1].peer))
            queue++;
        else if (i > 0) {
            queue->end = i + 1;
            continue;
        }
        *queue = (struct hoop_device_queue){i, i + 1};
    }
}

struct hoop_device_pipe hoop_program_pipe(const struct hoop_device_link *link)
{
    return (struct hoop_device_pipe){.out_frames = link->out_frames,
                                     .out_head = link->out_head,
                                     .out_taken = link->out_taken,
                                     .in_frames = link->in_frames,
                                     .in_head = link->in_head,
                                     .in_taken = link->in_taken,
                                     .slot = hoop_device_slot(link->frame),
                                     .frame = link->frame,
                                     .slots = link->slots,
                                     .direct = link->direct,
                                     .relayed = link->relayed};
}

/* ---- reports ---- */

static uint64_t look(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

enum hoop_status hoop_program_verdict(const struct hoop_device_report *report, int *peer)
{
    bool aborted = false;

    for (int l = 0; l < HOOP_DEVICE_LANES; l++) {
        const struct hoop_device_lane_report *lane = &report->lane[l];
        const uint64_t verdict = look(&lane->verdict);
        if (verdict == HOOP_DEVICE_MISMATCH) {
            *peer = (int)(look(&lane->wait) >> 8);
            return hoop_fail(HOOP_ERR_MISMATCH,
                             "call %llu on the device: rank %d sent a frame of another call on lane %d (fingerprint "
                             "%016llx, expected %016llx)",
                             (unsigned long long)look(&lane->call), *peer, l, (unsigned long long)look(&lane->theirs),
                             (unsigned long long)look(&lane->ours));
        }
        if (verdict == HOOP_DEVICE_PAIR) {
            *peer = (int)(look(&lane->wait) >> 8);
            return hoop_fail(HOOP_ERR_MISMATCH, "rank %d sends %llu elements where this rank expects %llu", *peer,
                             (unsigned long long)look(&lane->theirs), (unsigned long long)look(&lane->ours));
        }
        aborted |= verdict == HOOP_DEVICE_ABORTED;
    }
    return aborted ? hoop_fail(HOOP_ERR_ABORTED, "the call was aborted on the device") : HOOP_OK;
}

bool hoop_program_pair(const struct hoop_device_report *report, struct hoop_program_pair *pair)
{
    for (int l = 0; l < HOOP_DEVICE_LANES; l++) {
        const struct hoop_device_lane_report *lane = &report->lane[l];
        if (look(&lane->verdict) != HOOP_DEVICE_PAIR)
            continue;
        *pair = (struct hoop_program_pair){.peer = (int)(look(&lane->wait) >> 8),
                                           .expected = look(&lane->ours),
                                           .sent = look(&lane->theirs),
                                           .expected_shape = (uint32_t)look(&lane->number),
                                           .sent_shape = (uint32_t)look(&lane->step)};
        return true;
    }
    return false;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

uint64_t hoop_program_standstill(const struct hoop_device_report *report, uint64_t *call)
{
    uint64_t hash = 1, earliest = UINT64_MAX;

    for (int l = 0; l < HOOP_DEVICE_LANES; l++) {
        const struct hoop_device_lane_report *lane = &report->lane[l];
        const uint64_t wait = look(&lane->wait), its = look(&lane->call);
        hash = mix(mix(mix(hash, its), look(&lane->finished)), wait ? look(&lane->step) + look(&lane->number) : 0);
        if (wait && its < earliest)
            earliest = its;
    }
    *call = earliest;
    return earliest == UINT64_MAX ? 0 : hash | 1;
}

bool hoop_program_runs(const struct hoop_device_report *report)
{
    for (int l = 0; l < HOOP_DEVICE_LANES; l++)
        if (look(&report->begun[l]) != look(&report->lane[l].finished) &&
            look(&report->lane[l].verdict) == HOOP_DEVICE_FINE)
            return true;
    return false;
}

uint64_t hoop_program_begun(const struct hoop_device_report *report)
{
    uint64_t latest = 0;

    for (int l = 0; l < HOOP_DEVICE_LANES; l++) {
        const uint64_t call = look(&report->lane[l].call);
        latest = call > latest ? call : latest;
    }
    return latest;
}

int hoop_program_waits(const struct hoop_device_report *report, char *text, size_t size)
{
    static const char *const what[] = {[HOOP_DEVICE_WAITS_FRAME] = "a frame of rank",
                                       [HOOP_DEVICE_WAITS_ROOM] = "room for a frame to rank",
                                       [HOOP_DEVICE_WAITS_LOAN] = "what was lent to rank",
                                       [HOOP_DEVICE_WAITS_LANE] = "its lane"};
    int lanes = 0;
    size_t used = 0;

    text[0] = '\0';
    for (int l = 0; l < HOOP_DEVICE_LANES; l++) {
        const struct hoop_device_lane_report *lane = &report->lane[l];
        const uint64_t wait = look(&lane->wait), step = look(&lane->step);
        const unsigned kind = (unsigned)(wait & 0xff);
        if (kind == HOOP_DEVICE_WAITS_NOT || kind > HOOP_DEVICE_WAITS_LANE)
            continue;
        const int more =
            snprintf(text + used, size - used, "%slane %d of call %llu waits at step %u, slice %u, for %s %u (%llu)",
                     lanes++ ? "; " : "", l, (unsigned long long)look(&lane->call), (unsigned)(step >> 32),
                     (unsigned)step, what[kind], (unsigned)(wait >> 8), (unsigned long long)look(&lane->number));
        used = more > 0 && (size_t)more < size - used ? used + (size_t)more : size - 1;
    }
    return lanes;
}
