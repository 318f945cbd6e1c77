// SPDX-License-Identifier: BSD-3-Clause
/* Last part of the proof: every rank's OUT is what the collective promises, by the same expression on all ranks, in
 * rank order where the algorithm declares it, and the work done is what the algorithm's formulas say. */
#include <math.h>

#include "plan/check.h"

/* The expression that OUT's chunk must have: all ranks' contributions, or the one of the rank it comes from. */
static bool right_expr(const struct proof *proof, uint32_t chunk, uint32_t expr)
{
    switch (proof->problem.coll) {
    case HOOP_BROADCAST:
    case HOOP_SCATTER:
        return expr == (uint32_t)proof->problem.root + 1;
    case HOOP_ALL_GATHER:
    case HOOP_GATHER:
    case HOOP_ALL_TO_ALL:
        return expr == chunk / proof->class_chunks + 1;
    default:
        return proof->exprs.expr[expr].parts == proof->ranks;
    }
}

/* The chunk of the inputs whose data OUT's chunk must hold: the same, but for all_to_all this rank's block. */
static uint32_t right_origin(const struct proof *proof, uint32_t rank, uint32_t chunk)
{
    return proof->problem.coll == HOOP_ALL_TO_ALL ? rank * proof->class_chunks + chunk % proof->class_chunks : chunk;
}

/* One rank's OUT chunk in all slices. *expr: as found before on another rank, 0 if on none. */
static void check_chunk(struct proof *proof, uint32_t rank, uint32_t chunk, uint32_t *expr)
{
    for (uint32_t slice = 0; slice < proof->slices && !proof->failed; slice++) {
        const uint32_t number = proof_cell(proof, &proof->rank[rank], HOOP_OUT, chunk, slice);
        const struct cell *cell = &proof->cell[number];

        if (cell->expr == EXPR_UNDEFINED)
            proof_fault(proof, NULL, "rank %u out %u slice %u holds nothing in the end", rank, chunk, slice);
        else if (cell->origin != slice * proof->grid + right_origin(proof, rank, chunk))
            proof_fault(proof, NULL, "rank %u out %u slice %u holds data of chunk %u in the end", rank, chunk, slice,
                        cell->origin % proof->grid);
        else if (!right_expr(proof, chunk, cell->expr))
            proof_fault(proof, NULL, "rank %u out %u slice %u has the parts of %u ranks in the end, or the wrong one",
                        rank, chunk, slice, proof->exprs.expr[cell->expr].parts);
        else if (*expr != 0 && *expr != cell->expr)
            proof_fault(proof, NULL, "rank %u out %u slice %u is summed in another order than elsewhere", rank, chunk,
                        slice);
        *expr = cell->expr;
    }
}

static void check_data(struct proof *proof)
{
    const struct hoop_algo *algo = proof->plan[0]->algo;
    const bool sums = hoop_coll_shape(proof->problem.coll)->sums;
    bool ordered = true;

    for (uint32_t chunk = 0; chunk < proof->grid; chunk++) {
        uint32_t expr = 0;

        for (uint32_t rank = 0; rank < proof->ranks && !proof->failed; rank++)
            if (proof_has_chunk(proof, rank, HOOP_OUT, chunk))
                check_chunk(proof, rank, chunk, &expr);
        ordered = ordered && (!sums || proof->exprs.expr[expr].ordered == proof->ranks);
    }
    proof->check->rank_order = ordered;
    if (!ordered && !proof->failed && algo && algo->rank_order)
        proof_fault(proof, NULL, "the sums are not in rank order, as %s says that all of its are", algo->name);
}

/* No rank may leave before it knows, by messages, that all have entered. */
static void check_barrier(struct proof *proof)
{
    for (uint32_t rank = 0; rank < proof->ranks; rank++)
        for (uint32_t other = 0; other < proof->ranks; other++) {
            bool known = false;

            for (uint32_t lane = 0; lane < proof->lanes; lane++) {
                const size_t thread = (size_t)rank * proof->lanes + lane;

                known = known || (proof->known[thread * proof->known_words + other / 64] >> other % 64 & 1) != 0;
            }
            if (!known && other != rank)
                proof_fault(proof, NULL, "rank %u may leave the barrier before rank %u has entered", rank, other);
        }
    proof->check->rank_order = true;
}

static void count_rank(const struct proof *proof, uint32_t rank, struct hoop_cost *most)
{
    uint32_t sends = 0, joined = 0, reductions = 0;

    for (uint32_t lane = 0; lane < proof->plan[rank]->lanes; lane++) {
        const struct hoop_lane_plan *program = &proof->plan[rank]->lane[lane];

        for (uint32_t i = 0; i < program->steps; i++) {
            sends += program->step[i].kind == HOOP_STEP_SEND;
            joined += program->step[i].kind == HOOP_STEP_SEND && (program->step[i].flags & HOOP_STEP_JOINED) != 0;
            reductions += program->step[i].kind == HOOP_STEP_REDUCE || program->step[i].kind == HOOP_STEP_RECV_REDUCE;
        }
    }
    const double part = proof->barrier ? 0 : 1.0 / proof->grid;
    most->messages = fmax(most->messages, sends - joined);
    most->joined = fmax(most->joined, joined);
    most->volume = fmax(most->volume, sends * part);
    most->reduced = fmax(most->reduced, reductions * part);
}

static void compare(struct proof *proof, const char *what, double plan, double formula)
{
    const struct hoop_problem *problem = &proof->plan[0]->problem;
    /* channels in orders of their own load other ranks most */
    const bool bound = proof->plan[0]->algo->composed || (problem->orders != NULL && problem->channels > 1);

    if (plan - formula > 1e-9 * (1 + fabs(formula)) || (!bound && formula - plan > 1e-9 * (1 + fabs(formula))))
        proof_fault(proof, NULL, "%s is %g, the algorithm's formula says %s%g", what, plan, bound ? "at most " : "",
                    formula);
}

/* The formulas of an algorithm that sees root 0 are for root 0. */
static void check_cost(struct proof *proof)
{
    const struct hoop_algo *algo = proof->plan[0]->algo;
    struct hoop_cost *cost = &proof->check->cost;
    struct hoop_problem problem = proof->problem;

    *cost = (struct hoop_cost){.depth = proof->depth};
    for (uint32_t rank = 0; rank < proof->ranks; rank++)
        count_rank(proof, rank, cost);
    if (proof->check->skip_cost || algo == NULL)
        return;
    if (!algo->any_root)
        problem.root = 0;
    if (!algo->applicable(&problem)) /* a plan from a text, which does not know its groups */
        return;
    const struct hoop_cost formula = algo->cost(&problem);
    compare(proof, "the most messages of a rank", cost->messages, formula.messages * problem.channels);
    compare(proof, "the most joined parts of a rank", cost->joined, formula.joined * problem.channels);
    compare(proof, "the most data sent by a rank", cost->volume, formula.volume);
    compare(proof, "the most data reduced by a rank", cost->reduced, formula.reduced);
    compare(proof, "the longest chain of messages", cost->depth, formula.depth);
}

void proof_check_result(struct proof *proof)
{
    if (proof->barrier)
        check_barrier(proof);
    else
        check_data(proof);
    if (!proof->failed)
        check_cost(proof);
}
