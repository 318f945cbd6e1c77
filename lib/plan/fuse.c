// SPDX-License-Identifier: BSD-3-Clause
/* The fuse pass: which receives can be sent on in the same pass over the data, and which of those need not be stored.
 *
 * FORWARD is plain: a RECV or RECV_REDUCE whose next step sends the same chunk. NO_STORE asks what becomes of the
 * chunk after that SEND. Where only one lane touches it, that lane's next touch decides: a plain overwrite, or the
 * end of the program for a TMP chunk, means that nobody misses the store. Where a second lane touches it, the answer
 * is known if the first lane is through with it and the second begins, after waiting for that very SEND, by
 * overwriting it (a tree's way down). Everything else is stored.
 *
 * Each lane is walked backwards with a table of what comes next for every chunk, so the pass is linear in the steps.
 */
#include "base/alloc.h"
#include "plan/build.h"

enum next { END, WRITE, READ }; /* a chunk's next touch in the lane: none, a plain overwrite, one that reads */

enum { NOBODY = 0, MANY = 255 };

struct touch {
    uint8_t first, second; /* lanes that touch the chunk, numbered from 1 */
    uint8_t next;          /* enum next, of the lane being walked */
};

struct pass {
    const struct hoop_builder *builder;
    struct touch *touch; /* one a location */
};

/* IN, OUT and TMP chunks in one row; aliased IN chunks are their OUT chunks. */
static uint32_t location(const struct hoop_builder *builder, unsigned buffer, uint32_t chunk)
{
    const uint32_t grid = builder->grid;

    if (buffer == HOOP_TMP)
        return 2 * grid + chunk;
    return buffer == HOOP_OUT || hoop_plan_aliased(builder->problem, grid, chunk) ? grid + chunk : chunk;
}

static bool reads(const struct hoop_step *step)
{
    return step->kind != HOOP_STEP_RECV && step->kind != HOOP_STEP_AFTER;
}

static bool writes(const struct hoop_step *step)
{
    return step->kind != HOOP_STEP_SEND && step->kind != HOOP_STEP_AFTER;
}

static void note_lane(struct touch *touch, uint32_t lane)
{
    const uint8_t name = (uint8_t)(lane + 1);

    if (touch->first == NOBODY || touch->first == name)
        touch->first = name;
    else if (touch->second == NOBODY || touch->second == name)
        touch->second = name;
    else
        touch->second = MANY;
}

/* Does the step, as its first touch of the location, read it? */
static bool step_reads(const struct pass *pass, const struct hoop_step *step, uint32_t place)
{
    return (reads(step) && location(pass->builder, step->from_buffer, step->from) == place) ||
           (step->kind == HOOP_STEP_REDUCE && location(pass->builder, step->to_buffer, step->to) == place);
}

static bool step_writes(const struct pass *pass, const struct hoop_step *step, uint32_t place)
{
    return writes(step) && location(pass->builder, step->to_buffer, step->to) == place;
}

/* Does `other` wait for step `send` of `lane` and then overwrite the location before it reads it? */
static bool overwritten_after(const struct pass *pass, const struct hoop_lane *other, uint32_t lane, uint32_t send,
                              uint32_t place)
{
    bool waited = false;

    for (uint32_t i = 0; i < other->steps; i++) {
        const struct hoop_step *step = &other->step[i];

        if (step->kind == HOOP_STEP_AFTER) {
            waited = waited || ((uint32_t)step->peer == lane && step->to >= send);
            continue;
        }
        if (step_reads(pass, step, place))
            return false;
        if (step_writes(pass, step, place))
            return waited;
    }
    return false;
}

/* Is the location overwritten, or worthless, before anyone reads it after step `send` of the lane? */
static bool dead(const struct pass *pass, uint32_t lane, uint32_t send, uint32_t place, enum next next)
{
    const struct touch *touch = &pass->touch[place];

    if (touch->second == NOBODY)
        return next == WRITE || (next == END && place >= 2 * pass->builder->grid);
    if (touch->second == MANY || next != END)
        return false;
    const uint32_t other = (touch->first == lane + 1 ? touch->second : touch->first) - 1u;
    return overwritten_after(pass, &pass->builder->lane[other], lane, send, place);
}

static void fuse_lane(const struct pass *pass, uint32_t number)
{
    const struct hoop_builder *builder = pass->builder;
    const struct hoop_lane *lane = &builder->lane[number];
    enum next after_send = END; /* of the chunk that the step just walked sends */

    for (uint32_t i = lane->steps; i-- > 0;) {
        struct hoop_step *step = &lane->step[i];
        const uint32_t from = location(builder, step->from_buffer, step->from);
        const uint32_t to = location(builder, step->to_buffer, step->to);
        const bool received = step->kind == HOOP_STEP_RECV || step->kind == HOOP_STEP_RECV_REDUCE;
        const struct hoop_step *following = i + 1 < lane->steps ? &step[1] : NULL;

        if (step->kind == HOOP_STEP_AFTER)
            continue;
        if (received && following != NULL && following->kind == HOOP_STEP_SEND &&
            location(builder, following->from_buffer, following->from) == to) {
            step->flags |= HOOP_STEP_FORWARD;
            if (dead(pass, number, i + 1, to, after_send))
                step->flags |= HOOP_STEP_NO_STORE;
        }
        if (step->kind == HOOP_STEP_SEND)
            after_send = pass->touch[from].next;
        if (writes(step))
            pass->touch[to].next = step->kind == HOOP_STEP_REDUCE ? READ : WRITE;
        if (reads(step))
            pass->touch[from].next = READ;
    }
    for (uint32_t i = 0; i < lane->steps; i++) { /* the next lane begins with an empty table */
        pass->touch[location(builder, lane->step[i].from_buffer, lane->step[i].from)].next = END;
        if (lane->step[i].kind != HOOP_STEP_AFTER)
            pass->touch[location(builder, lane->step[i].to_buffer, lane->step[i].to)].next = END;
    }
}

enum hoop_status hoop_plan_fuse(struct hoop_builder *builder)
{
    const struct pass pass = {
        .builder = builder,
        .touch = hoop_calloc(2 * (size_t)builder->grid + builder->tmp, sizeof(struct touch)),
    };

    if (pass.touch == NULL)
        return HOOP_ERR_MEMORY;
    for (uint32_t lane = 0; lane < builder->lanes; lane++)
        for (uint32_t i = 0; i < builder->lane[lane].steps; i++) {
            const struct hoop_step *step = &builder->lane[lane].step[i];

            if (reads(step))
                note_lane(&pass.touch[location(builder, step->from_buffer, step->from)], lane);
            if (writes(step))
                note_lane(&pass.touch[location(builder, step->to_buffer, step->to)], lane);
        }
    for (uint32_t lane = 0; lane < builder->lanes; lane++)
        fuse_lane(&pass, lane);
    hoop_free(pass.touch);
    return HOOP_OK;
}
