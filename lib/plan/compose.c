// SPDX-License-Identifier: BSD-3-Clause
/* Plans inside of plans: another algorithm's steps, with ranks, buffers and chunks given other names.
 *
 * Where one chunk of the inner plan is several of the outer one (parts), every inner step becomes so many steps, joined to one
 * message. They may not simply follow each other: where all send and then receive, one slot a link would not hold two
 * parts. So the inner program is cut into stretches of sends and the receives and local work behind them, and each stretch
 * runs part by part. A stretch has at most one message for each link and direction, so both ends of a link see the same
 * order, whatever the rest of their stretches. The parts are different memory, so no data can be mixed up by that; that
 * nobody waits in a circle is proved by the checker for what is composed.
 *
 * TMP chunks of the inner plan are renamed by the chunk whose data they hold: equal blocks of the inner vector are not
 * always equal pieces of the outer one, and a TMP chunk must have the size of what it holds.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/build.h"

enum { LANES_APART = 4 }; /* a communicator has so many for each channel */

struct composer {
    struct hoop_builder *outer;
    const struct hoop_sub *sub;
    struct hoop_builder inner;
    uint32_t *content;               /* by TMP chunk of the inner plan: the chunk whose data it holds */
    uint32_t *seen;                  /* by rank, sends then receives: the stretch that has a message with it */
    uint32_t stretch;                /* number of the latest one */
    uint32_t lane;                   /* of the outer plan that the inner one's lane 0 is */
    uint32_t *place[HOOP_MAX_LANES]; /* by inner step: the outer lane's number of its last part */
    uint32_t first[HOOP_MAX_LANES];  /* steps of the outer lane before */
};

static bool message(const struct hoop_step *step)
{
    return step->kind >= HOOP_STEP_SEND && step->kind <= HOOP_STEP_RECV_REDUCE;
}

static bool writes(const struct hoop_step *step)
{
    return step->kind != HOOP_STEP_SEND && step->kind != HOOP_STEP_AFTER;
}

static bool reads(const struct hoop_step *step)
{
    return step->kind != HOOP_STEP_RECV && step->kind != HOOP_STEP_AFTER;
}

/* Replace the TMP chunks of a lane's steps by those whose data they hold; received ones: as many as the number says. */
static void name_contents(const struct composer *it, struct hoop_lane *lane)
{
    for (uint32_t i = 0; i < lane->steps; i++) {
        struct hoop_step *step = &lane->step[i];
        const uint32_t tmp = step->to;

        if (reads(step) && step->from_buffer == HOOP_TMP)
            step->from = it->content[step->from];
        if (!writes(step) || step->to_buffer != HOOP_TMP)
            continue;
        step->to = step->kind == HOOP_STEP_RECV ? tmp % it->inner.grid : step->from;
        it->content[tmp] = step->to;
    }
}

/* Name one side of a step for the outer plan. */
static bool name_chunk(const struct composer *it, struct hoop_lane *lane, int part, uint8_t *buffer, uint32_t *chunk)
{
    const struct hoop_sub *sub = it->sub;
    int number = sub->chunk(sub->context, (int)*chunk, part);

    if (*buffer == HOOP_TMP) {
        number += sub->tmp;
    } else {
        const enum hoop_buffer to = *buffer == HOOP_IN ? sub->in : sub->out;

        if (to == HOOP_TMP)
            number += *buffer == HOOP_IN ? sub->in_shift : sub->out_shift;
        *buffer = (uint8_t)to;
    }
    *chunk = (uint32_t)number;
    return hoop_build_take_chunk(lane, (enum hoop_buffer) * buffer, number);
}

static void emit(const struct composer *it, struct hoop_lane *lane, struct hoop_step step, int part)
{
    if (it->outer->status != HOOP_OK)
        return;
    if (writes(&step) && !name_chunk(it, lane, part, &step.to_buffer, &step.to))
        return;
    if (reads(&step) && !name_chunk(it, lane, part, &step.from_buffer, &step.from))
        return;
    if (message(&step)) {
        step.peer = it->sub->peer(it->sub->context, step.peer);
        if (part > 0)
            step.flags |= HOOP_STEP_JOINED;
        if (step.peer < 0 || step.peer >= it->outer->problem->ranks || step.peer == it->outer->problem->rank) {
            hoop_build_object(it->outer, lane, "peer %d is not another rank", step.peer);
            return;
        }
    }
    hoop_build_append(lane, step);
}

/* Is there a message on the step's link in this stretch already? Notes it. */
static bool repeats(const struct composer *it, const struct hoop_step *step)
{
    uint32_t *seen = &it->seen[step->peer + (step->kind == HOOP_STEP_SEND ? 0 : it->sub->ranks)];
    const bool repeated = *seen == it->stretch;

    *seen = it->stretch;
    return repeated;
}

/* The end of the stretch that begins at step i. */
static uint32_t find_end(struct composer *it, const struct hoop_lane *lane, uint32_t i)
{
    it->stretch++;
    while (i < lane->steps && lane->step[i].kind == HOOP_STEP_SEND && !repeats(it, &lane->step[i]))
        i++;
    if (i < lane->steps && lane->step[i].kind == HOOP_STEP_SEND)
        return i;
    while (i < lane->steps && lane->step[i].kind != HOOP_STEP_SEND && lane->step[i].kind != HOOP_STEP_AFTER &&
           !(message(&lane->step[i]) && repeats(it, &lane->step[i])))
        i++;
    return i;
}

static void place_lane(struct composer *it, uint32_t number)
{
    const struct hoop_lane *from = &it->inner.lane[number];
    struct hoop_lane *to = &it->outer->lane[it->lane + number];

    for (uint32_t i = 0; i < from->steps;) {
        if (from->step[i].kind == HOOP_STEP_AFTER) {
            hoop_build_append(to, from->step[i]);
            it->place[number][i] = to->steps - 1;
            i++;
            continue;
        }
        const uint32_t end = find_end(it, from, i);
        for (int part = 0; part < it->sub->parts; part++)
            for (uint32_t s = i; s < end; s++) {
                emit(it, to, from->step[s], part);
                it->place[number][s] = to->steps - 1;
            }
        i = end;
    }
}

/* AFTER steps name inner steps until all lanes are placed. */
static void place_waits(const struct composer *it, uint32_t number)
{
    struct hoop_lane *lane = &it->outer->lane[it->lane + number];

    for (uint32_t i = it->first[number]; i < lane->steps; i++)
        if (lane->step[i].kind == HOOP_STEP_AFTER) {
            lane->step[i].to = it->place[lane->step[i].peer][lane->step[i].to];
            lane->step[i].peer += (int32_t)it->lane;
        }
}

/* The lanes of the inner plan begin when all that was written before is done. */
static void wait_for_all(struct composer *it)
{
    struct hoop_builder *outer = it->outer;
    const uint32_t before = outer->lanes;
    uint32_t steps[HOOP_MAX_LANES];

    for (uint32_t i = 0; i < before; i++)
        steps[i] = outer->lane[i].steps;
    for (uint32_t l = 0; l < it->inner.lanes; l++) {
        struct hoop_lane *lane = hoop_lane_get(outer, (int)(it->lane + l));

        for (uint32_t other = 0; other < before && outer->status == HOOP_OK; other++)
            if (other != it->lane + l && steps[other] > 0)
                hoop_build_append(
                    lane, (struct hoop_step){.kind = HOOP_STEP_AFTER, .peer = (int32_t)other, .to = steps[other] - 1});
        it->first[l] = lane->steps;
    }
}

void hoop_lanes_meet(struct hoop_builder *builder)
{
    for (uint32_t l = 0; l < builder->lanes; l++)
        for (uint32_t other = 0; other < builder->lanes; other++)
            if (other != l)
                hoop_lane_after(&builder->lane[l], &builder->lane[other]);
}

static void place_all(struct composer *it)
{
    struct hoop_builder *outer = it->outer;
    bool room = true;

    it->content = hoop_calloc(it->inner.tmp + 1, sizeof *it->content);
    it->seen = hoop_calloc(2 * (size_t)it->sub->ranks, sizeof *it->seen);
    for (uint32_t l = 0; l < it->inner.lanes; l++) {
        it->place[l] = hoop_calloc(it->inner.lane[l].steps + 1, sizeof *it->place[l]);
        room = room && it->place[l] != NULL;
    }
    if (!room || it->content == NULL || it->seen == NULL) {
        outer->status = HOOP_ERR_MEMORY;
        return;
    }
    wait_for_all(it);
    for (uint32_t l = 0; l < it->inner.lanes && outer->status == HOOP_OK; l++) {
        name_contents(it, &it->inner.lane[l]);
        place_lane(it, l);
    }
    for (uint32_t l = 0; l < it->inner.lanes && outer->status == HOOP_OK; l++)
        place_waits(it, l);
}

void hoop_compose(struct hoop_builder *builder, const struct hoop_sub *sub)
{
    const bool absent = sub->rank < 0;
    const struct hoop_problem seen = {.coll = sub->coll,
                                      .ranks = sub->ranks,
                                      .rank = absent ? 0 : sub->rank,
                                      .in_place = sub->in_place,
                                      .channels = 1};
    struct composer it = {.outer = builder, .sub = sub, .inner = {.algo = sub->algo}};

    if (builder->status != HOOP_OK)
        return;
    builder->status = hoop_build_write(&it.inner, &seen, builder->most_lanes);
    if (sub->coll != HOOP_BARRIER && builder->lanes + it.inner.lanes <= LANES_APART) /* it has no slices to overlap */
        it.lane = builder->lanes;
    if (builder->status == HOOP_OK && !absent)
        place_all(&it);
    for (uint32_t l = 0; l < it.inner.lanes; l++) {
        if (builder->status == HOOP_OK) /* all ranks have the same lanes */
            hoop_lane_get(builder, (int)(it.lane + l));
        hoop_free(it.place[l]);
        hoop_free(it.inner.lane[l].step);
    }
    hoop_free(it.content);
    hoop_free(it.seen);
}
