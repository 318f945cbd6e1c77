// SPDX-License-Identifier: BSD-3-Clause
/* The checker: proves that the plans of all ranks together solve their problem.
 *
 * It executes them on symbols. A chunk's slice holds an expression over the ranks' contributions (check_expr.c) and
 * the chunk that it belongs to. Lanes run one after the other until they block; since a lane is in order and a queue
 * has one sender and one receiver, whatever can happen happens in every order of running them: one run stands for
 * all timings. What could still depend on timing, two lanes of a rank at one chunk, is excluded by itself
 * (check_race.c). So one run proves the absence of deadlock under the given credit, and the result.
 *
 * The parts: check_shape.c looks at every step by itself; check_race.c at the lanes of each rank; check_run.c runs;
 * check_result.c compares what came of it with what the collective promises and with the algorithm's own formulas.
 */
#include "plan/check.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/build.h"
#include "plan/text.h"

enum { CELLS_MOST = 1 << 28, LINK_NUMBERS_MOST = 1 << 28 };

void proof_fault_at(struct proof *proof, uint32_t rank, uint32_t lane, uint32_t step, const char *format, ...)
{
    char *fault = proof->check->fault, text[HOOP_STEP_TEXT];
    const size_t size = sizeof proof->check->fault;
    va_list arguments;

    if (proof->failed)
        return;
    proof->failed = true;
    hoop_step_text(&proof->plan[rank]->lane[lane].step[step], text);
    const int used = snprintf(fault, size, "rank %u lane %u step %u (%s): ", rank, lane, step, text);
    va_start(arguments, format);
    vsnprintf(fault + used, size - (size_t)used, format, arguments);
    va_end(arguments);
}

void proof_fault(struct proof *proof, const struct thread *thread, const char *format, ...)
{
    char what[400];
    va_list arguments;

    if (proof->failed)
        return;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (thread == NULL) {
        proof->failed = true;
        snprintf(proof->check->fault, sizeof proof->check->fault, "%s", what);
        return;
    }
    const uint32_t number = (uint32_t)(thread - proof->thread);
    proof_fault_at(proof, number / proof->lanes, number % proof->lanes, thread->next, "slice %u: %s", thread->slice,
                   what);
}

bool proof_has_chunk(const struct proof *proof, uint32_t rank, enum hoop_buffer buffer, uint32_t chunk)
{
    const struct hoop_coll_shape *shape = hoop_coll_shape(proof->problem.coll);

    if (buffer == HOOP_TMP)
        return chunk < proof->plan[rank]->tmp;
    if (chunk >= proof->grid)
        return false;
    switch (buffer == HOOP_IN ? shape->in : shape->out) {
    case HOOP_OWN_BLOCK:
        return chunk / proof->class_chunks == rank;
    case HOOP_ROOT_ONLY:
        return rank == (uint32_t)proof->problem.root;
    default:
        return true;
    }
}

/* ---- setting up ---- */

static void set_aliases(const struct proof *proof, uint32_t rank, struct rank_state *state)
{
    struct hoop_problem problem = proof->problem;

    problem.rank = (int)rank;
    for (uint32_t chunk = 0; chunk < proof->grid; chunk++) {
        if (!hoop_plan_aliased(&problem, proof->grid, chunk))
            continue;
        if (state->alias_count++ == 0)
            state->alias_first = chunk;
    }
}

/* The cells of every rank, with each rank's contribution in its IN. */
static bool open_cells(struct proof *proof)
{
    const uint64_t each = 2 * (uint64_t)proof->grid * proof->slices + proof->tmp;

    if (each * proof->ranks > CELLS_MOST) {
        proof_fault(proof, NULL, "too large to check: %u ranks with %u chunks in %u slices", proof->ranks, proof->grid,
                    proof->slices);
        return true;
    }
    proof->rank = hoop_calloc(proof->ranks, sizeof *proof->rank);
    proof->cell = hoop_calloc((size_t)each * proof->ranks, sizeof *proof->cell);
    if (proof->rank == NULL || proof->cell == NULL)
        return false;
    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        struct rank_state *state = &proof->rank[rank];

        state->first_cell = (uint32_t)each * rank;
        set_aliases(proof, rank, state);
        for (uint32_t chunk = 0; chunk < proof->grid && !proof->barrier; chunk++) {
            if (!proof_has_chunk(proof, rank, HOOP_IN, chunk))
                continue;
            for (uint32_t slice = 0; slice < proof->slices; slice++)
                proof->cell[proof_cell(proof, state, HOOP_IN, chunk, slice)] =
                    (struct cell){.expr = rank + 1, .origin = slice * proof->grid + chunk};
        }
    }
    return true;
}

static bool open_threads(struct proof *proof)
{
    const uint32_t threads = proof->ranks * proof->lanes;
    uint32_t steps = 0;
    bool after = false;

    proof->thread = hoop_calloc(threads + 1, sizeof *proof->thread);
    proof->ready = hoop_calloc(threads + 1, sizeof *proof->ready);
    if (proof->thread == NULL || proof->ready == NULL)
        return false;
    for (uint32_t rank = 0; rank < proof->ranks; rank++)
        for (uint32_t lane = 0; lane < proof->plan[rank]->lanes; lane++) {
            const struct hoop_lane_plan *program = &proof->plan[rank]->lane[lane];

            proof->thread[rank * proof->lanes + lane] =
                (struct thread){.step = program->step, .steps = program->steps, .first_step = steps};
            steps += program->steps;
            for (uint32_t i = 0; i < program->steps && proof->lanes > 1 && !after; i++)
                after = program->step[i].kind == HOOP_STEP_AFTER;
        }
    if (after)
        proof->depth_at = hoop_calloc(steps, sizeof *proof->depth_at);
    return !after || proof->depth_at != NULL;
}

/* The number of the link that a message step uses; made when first met. */
static uint32_t *find_link(const struct proof *proof, uint32_t rank, uint32_t lane, const struct hoop_step *step)
{
    const uint32_t peer = (uint32_t)step->peer;
    const bool send = step->kind == HOOP_STEP_SEND;
    const size_t source = send ? rank : peer, destination = send ? peer : rank;

    return &proof->link_number[((size_t)lane * proof->ranks + source) * proof->ranks + destination];
}

static bool open_links(struct proof *proof)
{
    const uint64_t numbers = (uint64_t)proof->lanes * proof->ranks * proof->ranks;

    if (numbers > LINK_NUMBERS_MOST) {
        proof_fault(proof, NULL, "too large to check: %u ranks with %u lanes", proof->ranks, proof->lanes);
        return true;
    }
    proof->link_number = hoop_calloc((size_t)numbers + 1, sizeof *proof->link_number);
    if (proof->link_number == NULL)
        return false;
    for (int pass = 0; pass < 2; pass++) { /* count them, then fill them in */
        for (uint32_t t = 0; t < proof->ranks * proof->lanes; t++)
            for (uint32_t i = 0; i < proof->thread[t].steps; i++) {
                const struct hoop_step *step = &proof->thread[t].step[i];
                const uint32_t rank = t / proof->lanes, lane = t % proof->lanes;

                if (step->kind == HOOP_STEP_COPY || step->kind == HOOP_STEP_REDUCE || step->kind == HOOP_STEP_AFTER)
                    continue;
                uint32_t *number = find_link(proof, rank, lane, step);
                if (*number == 0)
                    *number = ++proof->links;
                if (pass == 1) {
                    const uint32_t peer = (uint32_t)step->peer * proof->lanes + lane;
                    const bool send = step->kind == HOOP_STEP_SEND;

                    proof->link[*number].sender = send ? t : peer;
                    proof->link[*number].receiver = send ? peer : t;
                }
            }
        if (pass == 0)
            proof->link = hoop_calloc((size_t)proof->links + 1, sizeof *proof->link);
        if (proof->link == NULL)
            return false;
    }
    proof->message = hoop_calloc(((size_t)proof->links + 1) * proof->credit, sizeof *proof->message);
    return proof->message != NULL;
}

static bool open_known(struct proof *proof)
{
    const size_t threads = (size_t)proof->ranks * proof->lanes;

    if (!proof->barrier)
        return true;
    proof->known_words = (proof->ranks + 63) / 64;
    proof->known =
        hoop_calloc((threads + ((size_t)proof->links + 1) * proof->credit) * proof->known_words, sizeof *proof->known);
    if (proof->known == NULL)
        return false;
    for (size_t t = 0; t < threads; t++) {
        const size_t rank = t / proof->lanes;

        proof->known[t * proof->known_words + rank / 64] |= (uint64_t)1 << rank % 64;
    }
    return true;
}

static void close_proof(struct proof *proof)
{
    expr_table_close(&proof->exprs);
    hoop_free(proof->rank);
    hoop_free(proof->thread);
    hoop_free(proof->cell);
    hoop_free(proof->link_number);
    hoop_free(proof->link);
    hoop_free(proof->message);
    hoop_free(proof->known);
    hoop_free(proof->ready);
    hoop_free(proof->depth_at);
}

/* ---- the proof ---- */

static bool open_proof(struct proof *proof)
{
    const struct hoop_algo *algo = proof->plan[0]->algo;
    const bool strict = algo != NULL && algo->rank_order; /* then operands keep their sides, too */

    return expr_table_open(&proof->exprs, proof->ranks, strict) && open_cells(proof) &&
           (proof->failed || open_threads(proof)) && (proof->failed || open_links(proof)) &&
           (proof->failed || open_known(proof));
}

static enum hoop_status prove(struct proof *proof)
{
    proof_check_shape(proof);
    if (proof->failed)
        return proof->status;
    if (!open_proof(proof))
        return HOOP_ERR_MEMORY;
    if (!proof->failed)
        proof_check_races(proof);
    if (!proof->failed)
        proof_run(proof);
    if (!proof->failed)
        proof_check_result(proof);
    return proof->status;
}

enum hoop_status hoop_plan_check(struct hoop_plan *const *plan, struct hoop_check *check)
{
    struct proof proof = {
        .plan = plan,
        .check = check,
        .problem = plan[0]->problem,
        .ranks = (uint32_t)plan[0]->problem.ranks,
        .grid = plan[0]->grid,
        .slices = (uint32_t)check->slices,
        .credit = (uint32_t)check->credit,
        .barrier = plan[0]->problem.coll == HOOP_BARRIER,
    };

    check->steps = check->messages = 0;
    check->rank_order = false;
    check->cost = (struct hoop_cost){0};
    check->fault[0] = '\0';
    if (check->slices < 1 || check->slices > 1 << 16 || check->credit < 1 || check->credit > 1 << 16)
        return hoop_fail(HOOP_ERR_ARG, "a check with %d slices and %d credits; 1 to 65536 are allowed", check->slices,
                         check->credit);
    const enum hoop_status status = prove(&proof);
    close_proof(&proof);
    if (status != HOOP_OK)
        return status;
    if (proof.failed)
        return hoop_fail(HOOP_ERR_ARG, "the plan of %s for %s is wrong: %s",
                         plan[0]->algo != NULL ? plan[0]->algo->name : "a text", hoop_coll_name(proof.problem.coll),
                         check->fault);
    return HOOP_OK;
}
