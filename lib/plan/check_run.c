// SPDX-License-Identifier: BSD-3-Clause
/* The run: all lanes of all ranks on symbols, until every lane is through or none can go on.
 *
 * A lane runs until it has to wait: for room in a queue, for a message, for a chunk that is lent, for another lane.
 * Whoever ends the wait puts it back on the stack of lanes that are ready. When the stack is empty and lanes still
 * wait, they wait for each other, and the report shows the circle.
 */
#include <string.h>

#include "plan/check.h"
#include "plan/text.h"

enum outcome { DONE, WAITS };

struct run {
    struct proof *proof;
    struct thread *thread;
    struct rank_state *rank;
    uint32_t rank_number, lane;
};

static void make_ready(struct proof *proof, struct thread *thread)
{
    if (thread->queued)
        return;
    thread->queued = true;
    thread->wait = WAIT_NOT;
    proof->ready[proof->ready_count++] = (uint32_t)(thread - proof->thread);
}

static inline void wake(struct proof *proof, uint32_t thread, enum wait wait, uint32_t waits_for)
{
    struct thread *sleeper = &proof->thread[thread];

    if (sleeper->wait == wait && sleeper->waits_for == waits_for)
        make_ready(proof, sleeper);
}

static enum outcome wait_for(const struct run *run, enum wait wait, uint32_t waits_for)
{
    run->thread->wait = (uint8_t)wait;
    run->thread->waits_for = waits_for;
    if (wait == WAIT_LENT)
        run->rank->waiting_lent++;
    if (wait == WAIT_AFTER)
        run->rank->waiting_after++;
    return WAITS;
}

/* Wake the lanes of a rank that wait so; each looks again by itself. */
static void wake_rank(struct proof *proof, uint32_t rank, enum wait wait)
{
    for (uint32_t lane = 0; lane < proof->lanes; lane++) {
        struct thread *sleeper = &proof->thread[rank * proof->lanes + lane];

        if (sleeper->wait == wait)
            make_ready(proof, sleeper);
    }
}

/* ---- chunks ---- */

static inline uint32_t cell_number(const struct run *run, unsigned buffer, uint32_t chunk)
{
    return proof_cell(run->proof, run->rank, buffer, chunk, run->thread->slice);
}

/* What the chunk holds; a fault if that is nothing, or of an earlier slice. */
static inline struct cell read_cell(const struct run *run, unsigned buffer, uint32_t chunk)
{
    const struct proof *proof = run->proof;
    const struct cell cell = proof->cell[cell_number(run, buffer, chunk)];

    if (cell.expr == EXPR_UNDEFINED)
        proof_fault(run->proof, run->thread, "reads %s %u, which holds nothing yet", hoop_buffer_name(buffer), chunk);
    else if (cell.origin - run->thread->slice * proof->grid >= proof->grid)
        proof_fault(run->proof, run->thread, "reads %s %u, which still holds an earlier slice",
                    hoop_buffer_name(buffer), chunk);
    return cell;
}

static inline void write_cell(const struct run *run, unsigned buffer, uint32_t chunk, uint32_t expr, uint32_t origin)
{
    struct cell *cell = &run->proof->cell[cell_number(run, buffer, chunk)];

    cell->expr = expr;
    cell->origin = origin;
}

/* a: what comes in; b: what is there. */
static uint32_t combine(const struct run *run, const struct hoop_step *step, uint32_t a, uint32_t a_origin, uint32_t b,
                        uint32_t b_origin)
{
    const bool behind = (step->flags & HOOP_STEP_BEHIND) != 0;
    struct proof *proof = run->proof;

    if (a_origin != b_origin) {
        proof_fault(proof, run->thread, "adds data of chunk %u to data of chunk %u", a_origin % proof->grid,
                    b_origin % proof->grid);
        return a;
    }
    const uint32_t made = expr_combine(&proof->exprs, behind ? b : a, behind ? a : b);
    if (made == EXPR_OVERLAP) {
        proof_fault(proof, run->thread, "adds the part of rank %u a second time",
                    expr_common_rank(&proof->exprs, a, b));
        return a;
    }
    if (made == EXPR_NO_MEMORY) {
        proof->status = HOOP_ERR_MEMORY;
        proof_fault(proof, run->thread, "no memory for the proof");
        return a;
    }
    return made;
}

static enum outcome do_local(const struct run *run, const struct hoop_step *step)
{
    const uint32_t to = cell_number(run, step->to_buffer, step->to);

    if (run->proof->cell[to].lent > 0)
        return wait_for(run, WAIT_LENT, to);
    if (run->proof->barrier)
        return DONE;
    const struct cell from = read_cell(run, step->from_buffer, step->from);
    uint32_t expr = from.expr;
    if (step->kind == HOOP_STEP_REDUCE && !run->proof->failed) {
        const struct cell old = read_cell(run, step->to_buffer, step->to);

        if (!run->proof->failed)
            expr = combine(run, step, from.expr, from.origin, old.expr, old.origin);
    }
    write_cell(run, step->to_buffer, step->to, expr, from.origin);
    return DONE;
}

/* ---- messages ---- */

static inline uint32_t link_between(const struct run *run, uint32_t source, uint32_t destination)
{
    const struct proof *proof = run->proof;

    return proof->link_number[((size_t)run->lane * proof->ranks + source) * proof->ranks + destination];
}

static uint64_t *known_by_thread(const struct proof *proof, uint32_t thread)
{
    return &proof->known[(size_t)thread * proof->known_words];
}

static uint64_t *known_in_message(const struct proof *proof, size_t message)
{
    return &proof->known[((size_t)proof->ranks * proof->lanes + message) * proof->known_words];
}

/* What a SEND sends: the chunk, or what the receive before it has passed on without a store. */
static struct cell sent_cell(const struct run *run, const struct hoop_step *step)
{
    struct thread *thread = run->thread;
    struct cell cell;

    if (run->proof->barrier)
        return (struct cell){.origin = step->from_buffer == HOOP_TMP ? step->from % run->proof->grid : step->from};
    if (thread->passing == EXPR_UNDEFINED)
        return read_cell(run, step->from_buffer, step->from);
    cell = (struct cell){.expr = thread->passing, .origin = thread->passing_origin};
    thread->passing = EXPR_UNDEFINED;
    return cell;
}

static enum outcome do_send(const struct run *run, const struct hoop_step *step)
{
    struct proof *proof = run->proof;
    const uint32_t number = link_between(run, run->rank_number, (uint32_t)step->peer);
    struct link *link = &proof->link[number];

    if (link->count == proof->credit)
        return wait_for(run, WAIT_ROOM, number);
    const struct cell cell = sent_cell(run, step);
    uint32_t at = link->head + link->count++;
    if (at >= proof->credit)
        at -= proof->credit;
    struct message *message = &proof->message[(size_t)number * proof->credit + at];

    const bool joined = (step->flags & HOOP_STEP_JOINED) != 0;
    if (!joined)
        link->sent_depth = (run->thread->depth + 1) & 0x7fffffff;
    *message = (struct message){cell.expr, cell.origin, link->sent_depth, joined, NOT_LENT};
    if (proof->check->borrow && (step->flags & HOOP_STEP_STAGED) == 0) {
        message->lender = cell_number(run, step->from_buffer, step->from);
        proof->cell[message->lender].lent++;
    }
    if (run->thread->slice == 0 && message->depth > proof->depth)
        proof->depth = message->depth;
    if (proof->barrier)
        memcpy(known_in_message(proof, (size_t)number * proof->credit + at),
               known_by_thread(proof, (uint32_t)(run->thread - proof->thread)),
               proof->known_words * sizeof *proof->known);
    proof->check->messages += !joined;
    wake(proof, link->receiver, WAIT_DATA, number);
    return DONE;
}

/* Take the oldest message out of its queue. */
static struct message take_message(const struct run *run, uint32_t number)
{
    struct proof *proof = run->proof;
    struct link *link = &proof->link[number];
    const size_t at = (size_t)number * proof->credit + link->head;
    const struct message message = proof->message[at];

    link->head = link->head + 1 == proof->credit ? 0 : link->head + 1;
    link->count--;
    wake(proof, link->sender, WAIT_ROOM, number);
    if (message.lender != NOT_LENT && --proof->cell[message.lender].lent == 0) {
        const uint32_t lender = link->sender / proof->lanes;

        if (proof->rank[lender].waiting_lent > 0) {
            proof->rank[lender].waiting_lent = 0;
            wake_rank(proof, lender, WAIT_LENT);
        }
    }
    if (message.depth > run->thread->depth)
        run->thread->depth = message.depth;
    if (proof->barrier)
        for (uint32_t i = 0; i < proof->known_words; i++)
            known_by_thread(proof, (uint32_t)(run->thread - proof->thread))[i] |= known_in_message(proof, at)[i];
    return message;
}

/* Does the message fit the chunk it is received into, in slice and in size? */
static inline bool fits(const struct run *run, const struct hoop_step *step, const struct message *message)
{
    struct proof *proof = run->proof;
    const uint32_t slice = proof->barrier ? 0 : run->thread->slice, chunk = message->origin - slice * proof->grid;

    if (chunk >= proof->grid) {
        proof_fault(proof, run->thread, "receives data of another slice");
        return false;
    }
    if (message->joined != ((step->flags & HOOP_STEP_JOINED) != 0)) {
        proof_fault(proof, run->thread, "receives %s, which the sender sees otherwise",
                    message->joined ? "a further part of a message" : "the begin of a message");
        return false;
    }
    if (proof_class(proof, step->to_buffer, step->to) != proof_class(proof, HOOP_OUT, chunk)) {
        proof_fault(proof, run->thread, "receives data of chunk %u, which differs in size", chunk);
        return false;
    }
    return true;
}

static enum outcome do_receive(const struct run *run, const struct hoop_step *step)
{
    struct proof *proof = run->proof;
    const uint32_t number = link_between(run, (uint32_t)step->peer, run->rank_number);
    const uint32_t to = cell_number(run, step->to_buffer, step->to);
    const bool store = (step->flags & HOOP_STEP_NO_STORE) == 0;

    if (proof->link[number].count == 0)
        return wait_for(run, WAIT_DATA, number);
    if (proof->cell[to].lent > 0)
        return wait_for(run, WAIT_LENT, to);
    if ((step->flags & HOOP_STEP_FORWARD) != 0 && proof->credit > 1) { /* in one pass: only when it can go on */
        const uint32_t out = link_between(run, run->rank_number, (uint32_t)step[1].peer);

        if (proof->link[out].count == proof->credit)
            return wait_for(run, WAIT_ROOM, out);
    }
    const struct message message = take_message(run, number);
    uint32_t expr = message.expr;
    if (!fits(run, step, &message) || proof->barrier)
        return DONE;
    if (step->kind == HOOP_STEP_RECV_REDUCE) {
        const struct cell own = read_cell(run, step->from_buffer, step->from);

        if (!proof->failed)
            expr = combine(run, step, message.expr, message.origin, own.expr, own.origin);
    }
    write_cell(run, step->to_buffer, step->to, store ? expr : EXPR_UNDEFINED, message.origin);
    if (!store) {
        run->thread->passing = expr;
        run->thread->passing_origin = message.origin;
    }
    return DONE;
}

static enum outcome do_after(const struct run *run, const struct hoop_step *step)
{
    struct proof *proof = run->proof;
    struct thread *thread = run->thread;
    const struct thread *other = &proof->thread[run->rank_number * proof->lanes + (uint32_t)step->peer];

    if (other->slice < thread->slice || (other->slice == thread->slice && other->next <= step->to))
        return wait_for(run, WAIT_AFTER, (uint32_t)(other - proof->thread));
    if (thread->slice == 0) {
        const uint32_t depth = proof->depth_at[other->first_step + step->to];

        if (depth > thread->depth)
            thread->depth = depth;
    }
    return DONE;
}

/* ---- the lanes ---- */

static enum outcome do_step(const struct run *run, const struct hoop_step *step)
{
    switch (step->kind) {
    case HOOP_STEP_SEND:
        return do_send(run, step);
    case HOOP_STEP_RECV:
    case HOOP_STEP_RECV_REDUCE:
        return do_receive(run, step);
    case HOOP_STEP_AFTER:
        return do_after(run, step);
    default:
        return do_local(run, step);
    }
}

static bool finished(const struct proof *proof, const struct thread *thread)
{
    return thread->steps == 0 || thread->slice == proof->slices;
}

/* Wake the rank's lanes that wait for this one; it has done steps. */
static void wake_after(struct proof *proof, struct rank_state *rank, uint32_t number)
{
    const uint32_t first = number - number % proof->lanes;

    for (uint32_t i = first; i < first + proof->lanes; i++) {
        struct thread *sleeper = &proof->thread[i];

        if (sleeper->wait == WAIT_AFTER && sleeper->waits_for == number) {
            rank->waiting_after--;
            make_ready(proof, sleeper);
        }
    }
}

static void run_thread(struct proof *proof, uint32_t number)
{
    struct thread *thread = &proof->thread[number];
    const uint32_t rank = number / proof->lanes;
    const struct run run = {proof, thread, &proof->rank[rank], rank, number % proof->lanes};
    bool moved = false;

    thread->queued = false;
    while (!finished(proof, thread) && do_step(&run, &thread->step[thread->next]) == DONE && !proof->failed) {
        if (proof->depth_at != NULL && thread->slice == 0)
            proof->depth_at[thread->first_step + thread->next] = thread->depth;
        proof->check->steps++;
        if (++thread->next == thread->steps) {
            thread->next = 0;
            thread->slice++;
        }
        moved = true;
    }
    if (moved && run.rank->waiting_after > 0)
        wake_after(proof, run.rank, number);
}

/* ---- deadlock ---- */

/* The thread that must act before this one can go on. */
static uint32_t waits_on(const struct proof *proof, const struct thread *thread)
{
    if (thread->wait == WAIT_DATA)
        return proof->link[thread->waits_for].sender;
    if (thread->wait == WAIT_ROOM)
        return proof->link[thread->waits_for].receiver;
    if (thread->wait == WAIT_AFTER)
        return thread->waits_for;
    for (uint32_t i = 1; i <= proof->links; i++)
        for (uint32_t k = 0; k < proof->link[i].count; k++) {
            const uint32_t at = (proof->link[i].head + k) % proof->credit;

            if (proof->message[(size_t)i * proof->credit + at].lender == thread->waits_for)
                return proof->link[i].receiver;
        }
    return (uint32_t)(thread - proof->thread);
}

static const char *wait_text(const struct thread *thread)
{
    static const char *const texts[] = {
        [WAIT_NOT] = "has ended",
        [WAIT_ROOM] = "waits for room to send",
        [WAIT_DATA] = "waits for a message",
        [WAIT_LENT] = "waits for a lent chunk to be read",
        [WAIT_AFTER] = "waits for another lane",
    };

    return texts[thread->wait];
}

static void report_deadlock(struct proof *proof, uint32_t number)
{
    const uint32_t threads = proof->ranks * proof->lanes;
    char text[400] = "", step[HOOP_STEP_TEXT];
    size_t used = 0;
    uint32_t first;

    /* After that many hops it is in the circle, or before one that has ended. */
    for (uint32_t i = 0; i < threads; i++) {
        const uint32_t other = waits_on(proof, &proof->thread[number]);

        if (finished(proof, &proof->thread[other]))
            break;
        number = other;
    }
    first = number;
    do {
        const struct thread *thread = &proof->thread[number];

        if (finished(proof, thread)) {
            snprintf(text + used, sizeof text - used, "; rank %u lane %u has ended", number / proof->lanes,
                     number % proof->lanes);
            break;
        }
        hoop_step_text(&thread->step[thread->next], step);
        used += (size_t)snprintf(text + used, sizeof text - used, "; rank %u lane %u slice %u step %u (%s) %s",
                                 number / proof->lanes, number % proof->lanes, thread->slice, thread->next, step,
                                 wait_text(thread));
        number = waits_on(proof, thread);
    } while (number != first && used < sizeof text - 120);
    proof_fault(proof, NULL, "deadlock with %u credits%s%s", proof->credit, proof->check->borrow ? ", chunks lent" : "",
                text);
}

static void check_left_over(struct proof *proof)
{
    for (uint32_t i = 1; i <= proof->links && !proof->failed; i++)
        if (proof->link[i].count > 0)
            proof_fault(proof, NULL, "rank %u lane %u sends rank %u more messages than it receives: %u left over",
                        proof->link[i].sender / proof->lanes, proof->link[i].sender % proof->lanes,
                        proof->link[i].receiver / proof->lanes, proof->link[i].count);
}

void proof_run(struct proof *proof)
{
    const uint32_t threads = proof->ranks * proof->lanes;

    for (uint32_t i = threads; i-- > 0;)
        make_ready(proof, &proof->thread[i]);
    while (proof->ready_count > 0 && !proof->failed)
        run_thread(proof, proof->ready[--proof->ready_count]);
    for (uint32_t i = 0; i < threads && !proof->failed; i++)
        if (!finished(proof, &proof->thread[i]))
            report_deadlock(proof, i);
    if (!proof->failed)
        check_left_over(proof);
}
