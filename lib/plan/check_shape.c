// SPDX-License-Identifier: BSD-3-Clause
/* First part of the proof: every step by itself. Heads agree; chunks, peers and lanes exist; IN is written only where
 * it is OUT; the two sides of a step have equal size for every count; flags stand where they may. Then the bundles of
 * each lane: a joined part has a message before it on its link, and what it sends was there when that began, so that all
 * parts can travel as one. */
#include "base/alloc.h"
#include "plan/build.h"
#include "plan/check.h"

static bool same_head(const struct hoop_plan *a, const struct hoop_plan *b)
{
    return a->algo == b->algo && a->problem.coll == b->problem.coll && a->problem.ranks == b->problem.ranks &&
           a->problem.root == b->problem.root && a->problem.in_place == b->problem.in_place &&
           a->problem.channels == b->problem.channels && a->problem.groups == b->problem.groups && a->grid == b->grid;
}

static bool check_heads(struct proof *proof)
{
    if (proof->grid == 0 || (proof_in_blocks(proof) && proof->grid % proof->ranks != 0)) {
        proof_fault(proof, NULL, "a grid of %u chunks for %u ranks", proof->grid, proof->ranks);
        return false;
    }
    proof->class_chunks = proof_in_blocks(proof) ? proof->grid / proof->ranks : proof->grid;
    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        const struct hoop_plan *plan = proof->plan[rank];

        if (!same_head(plan, proof->plan[0]) || plan->problem.rank != (int)rank) {
            proof_fault(proof, NULL, "the plan in place %u is one of rank %d and another problem or grid", rank,
                        plan->problem.rank);
            return false;
        }
        if (plan->lanes > proof->lanes)
            proof->lanes = plan->lanes;
        if (plan->tmp > proof->tmp)
            proof->tmp = plan->tmp;
    }
    return true;
}

struct place {
    struct proof *proof;
    uint32_t rank, lane, step;
};

static bool check_chunk(const struct place *at, unsigned buffer, uint32_t chunk)
{
    if (buffer <= HOOP_TMP && proof_has_chunk(at->proof, at->rank, (enum hoop_buffer)buffer, chunk))
        return true;
    proof_fault_at(at->proof, at->rank, at->lane, at->step, "this rank has no such chunk (grid %u, tmp %u)",
                   at->proof->grid, at->proof->plan[at->rank]->tmp);
    return false;
}

static bool check_operands(const struct place *at, const struct hoop_step *step, bool to, bool from)
{
    struct proof *proof = at->proof;
    struct hoop_problem problem = proof->problem;

    problem.rank = (int)at->rank;
    if ((to && !check_chunk(at, step->to_buffer, step->to)) ||
        (from && !check_chunk(at, step->from_buffer, step->from)))
        return false;
    if (to && step->to_buffer == HOOP_IN && !hoop_plan_aliased(&problem, proof->grid, step->to)) {
        proof_fault_at(proof, at->rank, at->lane, at->step, "writes the caller's input");
        return false;
    }
    if (to && from &&
        proof_class(proof, step->to_buffer, step->to) != proof_class(proof, step->from_buffer, step->from)) {
        proof_fault_at(proof, at->rank, at->lane, at->step, "the two chunks differ in size");
        return false;
    }
    return true;
}

static bool check_peer(const struct place *at, const struct hoop_step *step)
{
    if (step->peer >= 0 && step->peer < (int)at->proof->ranks && step->peer != (int)at->rank)
        return true;
    proof_fault_at(at->proof, at->rank, at->lane, at->step, "the peer is not another rank");
    return false;
}

static bool check_after(const struct place *at, const struct hoop_step *step)
{
    const struct hoop_plan *plan = at->proof->plan[at->rank];

    if (step->peer >= 0 && step->peer < (int)plan->lanes && step->peer != (int)at->lane &&
        step->to < plan->lane[step->peer].steps)
        return true;
    proof_fault_at(at->proof, at->rank, at->lane, at->step, "waits for a step that is not in another lane");
    return false;
}

/* FORWARD needs a SEND of the same chunk as the next step. */
static bool forwards(const struct place *at, const struct hoop_step *step)
{
    const struct hoop_lane_plan *lane = &at->proof->plan[at->rank]->lane[at->lane];
    struct hoop_problem problem = at->proof->problem;

    problem.rank = (int)at->rank;
    if (at->step + 1 >= lane->steps || step[1].kind != HOOP_STEP_SEND || step[1].from != step->to)
        return false;
    if (step[1].from_buffer == step->to_buffer)
        return true;
    return step[1].from_buffer != HOOP_TMP && step->to_buffer != HOOP_TMP &&
           hoop_plan_aliased(&problem, at->proof->grid, step->to);
}

static bool check_flags(const struct place *at, const struct hoop_step *step)
{
    const bool received = step->kind == HOOP_STEP_RECV || step->kind == HOOP_STEP_RECV_REDUCE;
    const bool reduces = step->kind == HOOP_STEP_REDUCE || step->kind == HOOP_STEP_RECV_REDUCE;
    const unsigned allowed = (step->kind == HOOP_STEP_SEND ? HOOP_STEP_STAGED | HOOP_STEP_JOINED : 0u) |
                             (received ? HOOP_STEP_FORWARD | HOOP_STEP_NO_STORE | HOOP_STEP_JOINED : 0u) |
                             (reduces ? HOOP_STEP_BEHIND : 0u);
    const bool forward = (step->flags & HOOP_STEP_FORWARD) != 0;

    if ((step->flags & ~allowed) == 0 && (!forward || forwards(at, step)) &&
        (forward || (step->flags & HOOP_STEP_NO_STORE) == 0))
        return true;
    proof_fault_at(at->proof, at->rank, at->lane, at->step, "a flag that this step cannot have");
    return false;
}

static bool check_step(const struct place *at, const struct hoop_step *step)
{
    switch (step->kind) {
    case HOOP_STEP_COPY:
    case HOOP_STEP_REDUCE:
        return check_operands(at, step, true, true) && check_flags(at, step);
    case HOOP_STEP_SEND:
        return check_peer(at, step) && check_operands(at, step, false, true) && check_flags(at, step);
    case HOOP_STEP_RECV:
        return check_peer(at, step) && check_operands(at, step, true, false) && check_flags(at, step);
    case HOOP_STEP_RECV_REDUCE:
        return check_peer(at, step) && check_operands(at, step, true, true) && check_flags(at, step);
    case HOOP_STEP_AFTER:
        return check_after(at, step) && check_flags(at, step);
    default:
        proof_fault_at(at->proof, at->rank, at->lane, at->step, "no such kind of step");
        return false;
    }
}

/* ---- bundles ---- */

/* Times are numbers of steps, counted through all lanes, so that tables need not be cleared. */
struct bundles {
    struct proof *proof;
    uint32_t *begun;   /* by rank, sends then receives: when the latest message to or from it began */
    uint32_t *written; /* by IN, OUT and TMP chunk: when it was written last */
    uint32_t now;
};

static uint32_t written_place(const struct proof *proof, uint32_t rank, unsigned buffer, uint32_t chunk)
{
    struct hoop_problem problem = proof->problem;

    problem.rank = (int)rank;
    if (buffer == HOOP_TMP)
        return 2 * proof->grid + chunk;
    return chunk + (buffer == HOOP_OUT || hoop_plan_aliased(&problem, proof->grid, chunk) ? proof->grid : 0);
}

static void check_lane_bundles(struct bundles *it, uint32_t rank, uint32_t lane)
{
    struct proof *proof = it->proof;
    const struct hoop_lane_plan *program = &proof->plan[rank]->lane[lane];
    const uint32_t before = it->now;
    uint32_t waited = before; /* when the lane last waited for another: what it sends then may be new */

    for (uint32_t i = 0; i < program->steps && !proof->failed; i++) {
        const struct hoop_step *step = &program->step[i];
        const bool sends = step->kind == HOOP_STEP_SEND;

        it->now++;
        if (step->kind == HOOP_STEP_AFTER) {
            waited = it->now;
            continue;
        }
        if (sends || step->kind == HOOP_STEP_RECV || step->kind == HOOP_STEP_RECV_REDUCE) {
            uint32_t *begun = &it->begun[(sends ? 0 : proof->ranks) + (uint32_t)step->peer];

            if ((step->flags & HOOP_STEP_JOINED) == 0)
                *begun = it->now;
            else if (*begun <= before)
                proof_fault_at(proof, rank, lane, i, "there is no message that it could be joined to");
            else if (sends && (*begun < waited ||
                               *begun < it->written[written_place(proof, rank, step->from_buffer, step->from)]))
                proof_fault_at(proof, rank, lane, i,
                               "it is joined to a message that began before these data were there");
        }
        if (!sends)
            it->written[written_place(proof, rank, step->to_buffer, step->to)] = it->now;
    }
}

static bool any_joined(const struct hoop_lane_plan *lane)
{
    for (uint32_t i = 0; i < lane->steps; i++)
        if (lane->step[i].flags & HOOP_STEP_JOINED)
            return true;
    return false;
}

static void check_bundles(struct proof *proof)
{
    struct bundles it = {.proof = proof};

    for (uint32_t rank = 0; rank < proof->ranks && !proof->failed; rank++)
        for (uint32_t lane = 0; lane < proof->plan[rank]->lanes && !proof->failed; lane++) {
            if (!any_joined(&proof->plan[rank]->lane[lane]))
                continue;
            if (it.begun == NULL)
                it.begun = hoop_calloc(2 * (size_t)proof->ranks, sizeof *it.begun);
            if (it.written == NULL)
                it.written = hoop_calloc(2 * (size_t)proof->grid + proof->tmp, sizeof *it.written);
            if (it.begun != NULL && it.written != NULL) {
                check_lane_bundles(&it, rank, lane);
                continue;
            }
            proof->status = HOOP_ERR_MEMORY;
            proof_fault(proof, NULL, "no memory for the proof");
        }
    hoop_free(it.begun);
    hoop_free(it.written);
}

void proof_check_shape(struct proof *proof)
{
    if (!check_heads(proof) || proof->check->again)
        return;
    for (uint32_t rank = 0; rank < proof->ranks; rank++)
        for (uint32_t lane = 0; lane < proof->plan[rank]->lanes; lane++)
            for (uint32_t step = 0; step < proof->plan[rank]->lane[lane].steps; step++)
                if (!check_step(&(struct place){proof, rank, lane, step}, &proof->plan[rank]->lane[lane].step[step]))
                    return;
    check_bundles(proof);
}
