// SPDX-License-Identifier: BSD-3-Clause
/* Lanes of one rank against each other: two steps that touch the same chunk, one of them writing, must be ordered by
 * their lane or by AFTER, or their order would depend on timing.
 *
 * Each lane carries a clock: for every lane of the rank, how many of its steps are known to be over. A step adds one
 * to the lane's own; AFTER takes over what the other lane knew after the step it waited for. For every chunk the last
 * write and each lane's last read are kept; a new touch must know of those that it conflicts with. Any order of the
 * lanes that AFTER allows shows a race if there is one. IN and OUT differ from slice to slice, TMP is the same memory
 * again, so IN and OUT are looked at in slice 0 and TMP in all.
 */
#include <string.h>

#include "base/alloc.h"
#include "plan/check.h"
#include "plan/text.h"

struct touch {
    uint32_t lane; /* of the last write, numbered from 1; 0: none */
    uint32_t time;
};

struct race {
    struct proof *proof;
    const struct hoop_plan *plan;
    uint32_t rank, lanes, places;
    uint32_t *clock;     /* lanes × lanes */
    uint32_t *done;      /* steps each lane has done, all slices together */
    struct touch *write; /* one a place */
    uint32_t *read;      /* place × lanes: time of the lane's last read */
    uint32_t *moment;    /* clocks that AFTER steps left: lane, time, then the clock */
    uint32_t moments, moments_most;
};

/* IN, OUT and TMP chunks of a slice in one row. */
static uint32_t place_of(const struct race *race, unsigned buffer, uint32_t chunk)
{
    const struct rank_state *rank = &race->proof->rank[race->rank];

    if (buffer == HOOP_TMP)
        return 2 * race->proof->grid + chunk;
    const bool out = buffer == HOOP_OUT || chunk - rank->alias_first < rank->alias_count;
    return (out ? race->proof->grid : 0) + chunk;
}

static bool reads_from(const struct hoop_step *step)
{
    return step->kind != HOOP_STEP_RECV && step->kind != HOOP_STEP_AFTER;
}

static bool writes_to(const struct hoop_step *step)
{
    return step->kind != HOOP_STEP_SEND && step->kind != HOOP_STEP_AFTER;
}

/* Does any chunk belong to two lanes, and how many AFTER steps are there? Uses write[].lane as the owner. */
static bool any_shared(struct race *race)
{
    bool shared = false;

    for (uint32_t lane = 0; lane < race->lanes; lane++)
        for (uint32_t i = 0; i < race->plan->lane[lane].steps; i++) {
            const struct hoop_step *step = &race->plan->lane[lane].step[i];
            uint32_t place[2], places = 0;

            if (step->kind == HOOP_STEP_AFTER)
                race->moments_most++;
            if (reads_from(step))
                place[places++] = place_of(race, step->from_buffer, step->from);
            if (writes_to(step))
                place[places++] = place_of(race, step->to_buffer, step->to);
            while (places-- > 0) {
                struct touch *owner = &race->write[place[places]];

                shared = shared || (owner->lane != 0 && owner->lane != lane + 1);
                owner->lane = lane + 1;
            }
        }
    return shared;
}

static void conflict(const struct race *race, uint32_t lane, uint32_t step, uint32_t other, uint32_t time)
{
    char text[HOOP_STEP_TEXT];
    const uint32_t other_step = (time - 1) % race->plan->lane[other].steps;

    hoop_step_text(&race->plan->lane[other].step[other_step], text);
    proof_fault_at(race->proof, race->rank, lane, step, "races with lane %u step %u (%s): neither is after the other",
                   other, other_step, text);
}

static void touch_place(const struct race *race, uint32_t lane, uint32_t step, uint32_t place, bool write)
{
    const uint32_t *clock = &race->clock[lane * race->lanes];
    struct touch *last = &race->write[place];
    uint32_t *read = &race->read[(size_t)place * race->lanes];

    if (last->lane != 0 && last->lane != lane + 1 && last->time > clock[last->lane - 1])
        conflict(race, lane, step, last->lane - 1, last->time);
    if (!write) {
        read[lane] = race->done[lane] + 1;
        return;
    }
    for (uint32_t other = 0; other < race->lanes; other++)
        if (other != lane && read[other] > clock[other])
            conflict(race, lane, step, other, read[other]);
    *last = (struct touch){lane + 1, race->done[lane] + 1};
}

/* Take over what the other lane knew when it had done `time` steps, and that it has. */
static void join(const struct race *race, uint32_t lane, uint32_t other, uint32_t time)
{
    uint32_t *clock = &race->clock[lane * race->lanes];
    const uint32_t width = race->lanes + 2;

    if (clock[other] < time)
        clock[other] = time;
    for (uint32_t i = 0; i < race->moments; i++) {
        const uint32_t *moment = &race->moment[(size_t)i * width];

        if (moment[0] != other || moment[1] > time)
            continue;
        for (uint32_t k = 0; k < race->lanes; k++)
            if (clock[k] < moment[2 + k])
                clock[k] = moment[2 + k];
    }
}

/* One step of a lane; false: it has to wait for another lane. */
static bool do_step(struct race *race, uint32_t lane)
{
    const struct hoop_lane_plan *program = &race->plan->lane[lane];
    const uint32_t slice = race->done[lane] / program->steps, i = race->done[lane] % program->steps;
    const struct hoop_step *step = &program->step[i];

    if (step->kind == HOOP_STEP_AFTER) {
        const uint32_t other = (uint32_t)step->peer;
        const uint32_t time = slice * race->plan->lane[other].steps + step->to + 1;
        uint32_t *moment = &race->moment[(size_t)race->moments * (race->lanes + 2)];

        if (race->done[other] < time)
            return false;
        join(race, lane, other, time);
        moment[0] = lane;
        moment[1] = race->done[lane] + 1;
        memcpy(moment + 2, &race->clock[lane * race->lanes], race->lanes * sizeof *moment);
        race->moments++;
    }
    if (reads_from(step) && (slice == 0 || step->from_buffer == HOOP_TMP))
        touch_place(race, lane, i, place_of(race, step->from_buffer, step->from), false);
    if (step->kind == HOOP_STEP_REDUCE && (slice == 0 || step->to_buffer == HOOP_TMP))
        touch_place(race, lane, i, place_of(race, step->to_buffer, step->to), false);
    if (writes_to(step) && (slice == 0 || step->to_buffer == HOOP_TMP))
        touch_place(race, lane, i, place_of(race, step->to_buffer, step->to), true);
    race->clock[lane * race->lanes + lane] = ++race->done[lane];
    return true;
}

static void run_lanes(struct race *race)
{
    bool moved = true;

    while (moved && !race->proof->failed) {
        moved = false;
        for (uint32_t lane = 0; lane < race->lanes; lane++)
            while (race->done[lane] < race->plan->lane[lane].steps * race->proof->slices && !race->proof->failed &&
                   do_step(race, lane))
                moved = true;
    }
    for (uint32_t lane = 0; lane < race->lanes; lane++)
        if (race->done[lane] < race->plan->lane[lane].steps * race->proof->slices)
            proof_fault_at(race->proof, race->rank, lane, race->done[lane] % race->plan->lane[lane].steps,
                           "deadlock: lanes of this rank wait for each other");
}

static bool open_race(struct race *race)
{
    const size_t lanes = race->lanes;

    race->clock = hoop_calloc(lanes * lanes, sizeof *race->clock);
    race->done = hoop_calloc(lanes, sizeof *race->done);
    race->read = hoop_calloc(race->places * lanes, sizeof *race->read);
    race->moment =
        hoop_calloc((size_t)race->moments_most * race->proof->slices * (lanes + 2) + 1, sizeof *race->moment);
    return race->clock != NULL && race->done != NULL && race->read != NULL && race->moment != NULL;
}

static void check_rank(struct proof *proof, uint32_t rank)
{
    struct race race = {.proof = proof, .plan = proof->plan[rank], .rank = rank, .lanes = proof->plan[rank]->lanes};

    race.places = 2 * proof->grid + race.plan->tmp;
    race.write = hoop_calloc(race.places, sizeof *race.write);
    if (race.write == NULL) {
        proof->status = HOOP_ERR_MEMORY;
    } else if (any_shared(&race)) {
        memset(race.write, 0, race.places * sizeof *race.write);
        if (open_race(&race))
            run_lanes(&race);
        else
            proof->status = HOOP_ERR_MEMORY;
    }
    if (proof->status != HOOP_OK)
        proof_fault(proof, NULL, "no memory for the proof");
    hoop_free(race.clock);
    hoop_free(race.done);
    hoop_free(race.read);
    hoop_free(race.moment);
    hoop_free(race.write);
}

void proof_check_races(struct proof *proof)
{
    if (proof->barrier) /* nothing but empty chunks */
        return;
    for (uint32_t rank = 0; rank < proof->ranks && !proof->failed; rank++)
        if (proof->plan[rank]->lanes > 1)
            check_rank(proof, rank);
}
