// SPDX-License-Identifier: BSD-3-Clause
/* The interpreter: one kernel runs any plan. A lane is a block; its first thread walks through the lane's steps as the host
 * executor does (exec/host.c): it finds the pieces, waits for frames and room, and hands each piece of work to all threads, which
 * move and combine it; then it tells the peers. program.h has the data and how frames lie.
 *
 * Nothing is waited for without a look at the abort flag now and then. A block whose lane cannot go on says in the report
 * why and ends; what it leaves behind is not fit to go on with.
 *
 * All blocks of a launch must be resident at once, and those of other ranks' launches too: the host keeps to the limits.
 */
#ifndef __CUDACC__
#include <stdbool.h>
#endif

#include "exec/device/device.h"
#include "exec/device/program.h"
#include "hoop/plan.h"
#include "hoop/transport.h"

#include "exec/device/work.inc"

#include "exec/device/reduce.inc"

#include "exec/device/vector.inc"

#include "exec/device/lane.inc"

/* ---- pieces and frames ---- */

/* As hoop_bind_extent_of_block of plan/bind.c. */
XNOINLINE struct piece locate_in_block(const struct hoop_device_call *call, uint32_t buffer, uint32_t chunk,
                                       uint64_t slice)
{
    const uint32_t number = buffer == HOOP_TMP ? chunk % call->grid : chunk;
    const uint32_t block = number / call->chunks_per_block, i = number % call->chunks_per_block;
    const struct hoop_device_block *its =
        XP(const struct hoop_device_block, call->blocks) + (buffer == HOOP_IN ? 0 : call->ranks) + block;
    const bool longer = i < its->remainder;
    const uint64_t quotient = longer ? its->long_quotient : its->short_quotient;
    const uint64_t remainder = longer ? its->long_remainder : its->short_remainder;
    const bool larger = slice < remainder;
    const uint64_t first = its->first + i * its->quotient + (longer ? i : its->remainder) + slice * quotient +
                           (larger ? slice : remainder);
    struct piece piece;

    piece.data = buffer == HOOP_TMP ? call->tmp + (uint64_t)(chunk - call->tmp_first) * call->tmp_stride
                                    : (buffer == HOOP_IN ? call->in : call->out) + first * call->element;
    piece.bytes = (quotient + larger) * call->element;
    return piece;
}

/* As hoop_bind_extent of plan/bind.h, without divisions of 64 bits. */
XNOINLINE struct piece locate(const struct hoop_device_call *call, uint32_t buffer, uint32_t chunk, uint64_t slice)
{
    const uint32_t number = buffer == HOOP_TMP ? chunk % call->grid : chunk;
    const uint32_t block = number / call->chunks_per_block, i = number % call->chunks_per_block;
    const bool longer = i < call->remainder;
    const uint32_t own = buffer == HOOP_IN ? HOOP_DEVICE_IN_IS_BLOCK : HOOP_DEVICE_OUT_IS_BLOCK;
    uint64_t first = 0, count = call->quotient + longer;
    xg base = buffer == HOOP_IN ? call->in : call->out;
    struct piece piece;

    if (call->blocks)
        return locate_in_block(call, buffer, chunk, slice);
    if (buffer == HOOP_TMP) {
        base = call->tmp + (uint64_t)(chunk - call->tmp_first) * call->tmp_stride;
    } else {
        first = i * call->quotient + (longer ? i : call->remainder);
        if (!(call->flags & own))
            first += block * call->count;
    }
    if (call->slices > 1) {
        const uint64_t quotient = longer ? call->long_quotient : call->short_quotient;
        const uint64_t remainder = longer ? call->long_remainder : call->short_remainder;

        count = quotient + (slice < remainder);
        if (buffer != HOOP_TMP)
            first += slice * quotient + (slice < remainder ? slice : remainder);
    }
    piece.data = base + first * call->element;
    piece.bytes = count * call->element;
    return piece;
}

XDEVICE xg slot_of(xg frames, uint64_t number, const struct hoop_device_pipe *pipe)
{
    return frames + number % pipe->slots * pipe->slot;
}

XDEVICE xg small_area(xg slot, const struct hoop_device_pipe *pipe)
{
    return slot + HOOP_DEVICE_HEADER + pipe->frame + UNIT;
}

/* Frames of the link are words with flags. */
XDEVICE bool is_small(const struct hoop_device_call *call, const struct hoop_device_pipe *pipe)
{
    return (call->flags & HOOP_DEVICE_SMALL_FRAMES) && !pipe->relayed;
}

XDEVICE xg pipe_of(const struct hoop_device_call *call, const struct lane *lane, int32_t peer)
{
    return call->pipe + ((uint64_t)(uint32_t)peer * call->pipe_lanes + lane->number) * sizeof(struct hoop_device_pipe);
}

XDEVICE void write_header(xg at, uint64_t tag, uint64_t where)
{
    struct x16 header;

    header.low = tag;
    header.high = where;
    x_st16(at, header);
}

/* A launch that began only after the call had failed may not read what was lent in it: its owner has it back. */
XNOINLINE bool may_borrow(const struct hoop_device_call *call, struct lane *lane)
{
    if (lane->borrows++ == 0 && x_ld_acq(call->report + offsetof(struct hoop_device_report, abort)) != 0)
        return give_up(lane, HOOP_DEVICE_ABORTED);
    return true;
}

/* The next frame's data become the work's left side. Waits for it, but for small ones, which the threads wait for. */
XNOINLINE bool take_frame(const struct hoop_device_call *call, struct lane *lane, int32_t peer)
{
    const xg at = pipe_of(call, lane, peer);
    const struct hoop_device_pipe *pipe = XP(struct hoop_device_pipe, at);
    const uint64_t number = pipe->received;
    const xg slot = slot_of(pipe->in_frames, number, pipe);

    lane->in_pipe = at;
    lane->in_peer = (uint32_t)peer;
    if (is_small(call, pipe)) {
        lane->work.left = small_area(slot, pipe);
        lane->work.in_flag = number + 1;
        lane->work.step = (uint64_t)lane->step << 32 | (uint32_t)lane->slice;
        lane->work.wait = HOOP_DEVICE_WAITS_FRAME | (uint64_t)(uint32_t)peer << 8;
        return true;
    }
    if (!await_counter(call, lane, pipe->in_head, number + 1, HOOP_DEVICE_WAITS_FRAME, peer))
        return false;
    const struct x16 header = x_ld16(slot);
    if (header.low != lane->tag)
        return mismatch(lane, header.low, peer);
    lane->work.left = header.high < UNIT ? slot + HOOP_DEVICE_HEADER + header.high : header.high;
    return header.high < UNIT || may_borrow(call, lane);
}

/* Room for a frame becomes the work's other target. `like`: an address to whose offset from 16 it is best aligned. */
XNOINLINE bool make_frame(const struct hoop_device_call *call, struct lane *lane, int32_t peer, xg like)
{
    const xg at = pipe_of(call, lane, peer);
    const struct hoop_device_pipe *pipe = XP(struct hoop_device_pipe, at);

    if (!await_room(call, lane, at, peer))
        return false;
    const xg slot = slot_of(pipe->out_frames, pipe->sent, pipe);
    lane->out_pipe = at;
    if (is_small(call, pipe)) {
        lane->work.also = small_area(slot, pipe);
        lane->work.out_flag = pipe->sent + 1;
        x_st_flagged(lane->work.also, lane->tag, pipe->sent + 1);
        return true;
    }
    write_header(slot, lane->tag, like % UNIT);
    lane->work.also = slot + HOOP_DEVICE_HEADER + like % UNIT;
    return true;
}

/* ---- steps: each prepares the lane's work; false: the lane cannot go on ---- */

XDEVICE bool skipped(const struct hoop_device_call *call, struct piece piece)
{
    return piece.bytes == 0 && !(call->flags & HOOP_DEVICE_EMPTY_FRAMES);
}

XDEVICE void hand_out(const struct hoop_device_call *call, struct lane *lane, uint64_t bytes)
{
    lane->go = GO_WORK;
    lane->work.bytes = bytes;
    work_shape(&lane->work, call->element);
}

XNOINLINE bool prepare_local(const struct hoop_device_call *call, struct lane *lane,
                             const struct hoop_device_step *step)
{
    const struct piece to = locate(call, step->to_buffer, step->to, lane->slice);
    const struct piece from = locate(call, step->from_buffer, step->from, lane->slice);

    if (to.bytes == 0 || (to.data == from.data && step->kind == HOOP_STEP_COPY))
        return true;
    if (!await_loans(call, lane, to))
        return false;
    lane->work.to = to.data;
    lane->work.left = from.data;
    lane->work.right = step->kind == HOOP_STEP_REDUCE ? to.data : 0;
    hand_out(call, lane, to.bytes);
    return true;
}

/* May the piece be lent at all, as far as its owner goes? */
XDEVICE bool may_lend(const struct hoop_device_call *call, const struct lane *lane, const struct hoop_device_step *step,
                      uint64_t bytes)
{
    return (step->flags & (HOOP_DEVICE_LEND | HOOP_STEP_STAGED)) == HOOP_DEVICE_LEND && bytes >= call->lend &&
           !(call->flags & HOOP_DEVICE_SMALL_FRAMES) && lane->loans < LOANS;
}

/* What the peer has to add to addresses in that buffer, or HOOP_DEVICE_NOT_SEEN. */
XNOINLINE uint64_t view_of(const struct hoop_device_call *call, const struct lane *lane, uint32_t buffer, int32_t peer)
{
    const uint32_t keep = buffer == HOOP_IN ? HOOP_DEVICE_KEEP_IN : buffer == HOOP_OUT ? HOOP_DEVICE_KEEP_OUT : 0;
    const uint32_t row = buffer == HOOP_IN ? call->in_view : buffer == HOOP_OUT ? call->out_view : 0;

    if (XP(struct hoop_device_pipe, pipe_of(call, lane, peer))->direct)
        return call->flags & keep ? HOOP_DEVICE_NOT_SEEN : 0;
    return row ? *(XP(const uint64_t, call->views) + (uint64_t)(row - 1) * call->ranks + (uint32_t)peer)
               : HOOP_DEVICE_NOT_SEEN;
}

/* The peer gets the piece's address in place of data. */
XDEVICE void lend(struct lane *lane, struct piece piece, uint64_t view, int32_t peer)
{
    const struct hoop_device_pipe *pipe = XP(struct hoop_device_pipe, lane->out_pipe);
    struct loan *loan = &lane->loan[lane->loans++];

    loan->pipe = lane->out_pipe;
    loan->number = pipe->sent + 1;
    loan->piece = piece;
    loan->peer = peer;
    lane->lent++;
    write_header(slot_of(pipe->out_frames, pipe->sent, pipe), lane->tag, piece.data + view);
}

XNOINLINE bool prepare_send(const struct hoop_device_call *call, struct lane *lane, const struct hoop_device_step *step)
{
    const struct piece from = locate(call, step->from_buffer, step->from, lane->slice);

    if (skipped(call, from))
        return true;
    if (!make_frame(call, lane, step->peer, from.data))
        return false;
    if (may_lend(call, lane, step, from.bytes)) {
        const uint64_t view = view_of(call, lane, step->from_buffer, step->peer);

        if (view != HOOP_DEVICE_NOT_SEEN) {
            lend(lane, from, view, step->peer);
            return true;
        }
    }
    lane->work.left = from.data;
    hand_out(call, lane, from.bytes);
    return true;
}

/* A receive, also with a reduction, also sent on at once. */
XNOINLINE bool prepare_recv(const struct hoop_device_call *call, struct lane *lane, const struct hoop_device_step *step,
                            const struct hoop_device_step *next)
{
    const struct piece to = locate(call, step->to_buffer, step->to, lane->slice);
    const bool forward = (step->flags & HOOP_STEP_FORWARD) && !(call->flags & HOOP_DEVICE_NO_FORWARD);
    const bool store = !forward || !(step->flags & HOOP_STEP_NO_STORE);

    lane->taken = forward ? 2 : 1;
    if (skipped(call, to))
        return true;
    if (!take_frame(call, lane, step->peer) || (store && !await_loans(call, lane, to)))
        return false;
    if (forward && !make_frame(call, lane, next->peer, to.data))
        return false;
    lane->work.to = store ? to.data : 0;
    if (step->kind == HOOP_STEP_RECV_REDUCE)
        lane->work.right = locate(call, step->from_buffer, step->from, lane->slice).data;
    hand_out(call, lane, to.bytes);
    return true;
}

XDEVICE uint64_t progress_of(const struct lane *lane, uint64_t launches, uint64_t slice, uint32_t steps, uint32_t step)
{
    (void)lane;
    return (launches << 40) + slice * steps + step;
}

/* Lane `peer` has done step `to` of this slice. */
XNOINLINE bool prepare_after(const struct hoop_device_call *call, struct lane *lane,
                             const struct hoop_device_step *step)
{
    const uint64_t other = (uint64_t)(uint32_t)step->peer;
    const struct hoop_device_lane *program =
        XP(struct hoop_device_lane, call->lane + other * sizeof(struct hoop_device_lane));
    const xg progress =
        call->state + other * sizeof(struct hoop_device_state) + offsetof(struct hoop_device_state, progress);

    return await_counter(call, lane, progress,
                         progress_of(lane, lane->launches + 1, lane->slice, program->steps, step->to + 1),
                         HOOP_DEVICE_WAITS_LANE, step->peer);
}

XNOINLINE bool prepare_step(const struct hoop_device_call *call, struct lane *lane)
{
    const struct hoop_device_step *step = XP(struct hoop_device_step, lane->step_at) + lane->step;

    lane->work.to = lane->work.also = lane->work.left = lane->work.right = 0;
    lane->work.in_flag = lane->work.out_flag = 0;
    lane->in_pipe = lane->out_pipe = 0;
    lane->taken = 1;
    lane->go = GO_ON;
    switch (step->kind) {
    case HOOP_STEP_COPY:
    case HOOP_STEP_REDUCE:
        return prepare_local(call, lane, step);
    case HOOP_STEP_SEND:
        return prepare_send(call, lane, step);
    case HOOP_STEP_AFTER:
        return prepare_after(call, lane, step);
    default:
        return prepare_recv(call, lane, step, step + 1);
    }
}

/* ---- a lane ---- */

XNOINLINE void begin_lane(const struct hoop_device_call *call, struct lane *lane, uint64_t number)
{
    const struct hoop_device_state *state;

    lane->number = (uint32_t)number;
    lane->state = call->state + number * sizeof(struct hoop_device_state);
    lane->report =
        call->report + offsetof(struct hoop_device_report, lane) + number * sizeof(struct hoop_device_lane_report);
    state = XP(struct hoop_device_state, lane->state);
    lane->launches = state->launches;
    lane->tag = mixed(state->chain, call->tag);
    lane->slice = lane->step_at = 0;
    lane->step = lane->loans = lane->lent = lane->borrows = 0;
    lane->raised = 0;
    lane->work.tag = lane->tag;
    lane->work.abort = call->report + offsetof(struct hoop_device_report, abort);
    lane->work.report = lane->report;
    lane->work.raised = &lane->raised;
    REPORT(lane, call, call->number);
    x_st_rel(call->report + offsetof(struct hoop_device_report, begun) + number * sizeof(uint64_t), lane->launches + 1);
}

XNOINLINE void begin_program(const struct hoop_device_call *call, struct lane *lane)
{
    const struct hoop_device_lane *program =
        XP(struct hoop_device_lane, call->lane + lane->number * sizeof(struct hoop_device_lane));

    lane->step_at = program->step;
    lane->steps = program->steps;
    if (lane->steps == 0)
        lane->slice = call->slices;
}

/* A small frame without data: nobody has looked at its word yet. */
XDEVICE void await_empty(struct lane *lane)
{
    uint64_t tag;

    if (lane->in_pipe && lane->work.in_flag && lane->work.units == 0 &&
        await_flagged(&lane->work, lane->work.left, &tag) && tag != lane->tag)
        XRAISE(&lane->raised, RAISED_MISMATCH);
}

/* All threads have done their parts: tell the peers. False: some thread could not. */
XNOINLINE bool conclude_step(struct lane *lane)
{
    const uint32_t raised = XRAISED(&lane->raised);

    if (raised == RAISED_MISMATCH)
        return mismatch(lane, x_flagged_data(x_ld_halves(lane->work.left)), (int32_t)lane->in_peer);
    if (raised)
        return give_up(lane, HOOP_DEVICE_ABORTED);
    if (lane->out_pipe) {
        struct hoop_device_pipe *pipe = XP(struct hoop_device_pipe, lane->out_pipe);

        if (pipe->relayed)
            write_header(slot_of(pipe->out_frames, pipe->sent, pipe) + HOOP_DEVICE_HEADER_BYTES, lane->work.bytes, 0);
        pipe->sent++;
        if (lane->work.out_flag == 0)
            x_st_rel(pipe->out_head, pipe->sent);
    }
    if (lane->in_pipe) {
        struct hoop_device_pipe *pipe = XP(struct hoop_device_pipe, lane->in_pipe);

        x_st_rel(pipe->in_taken, ++pipe->received);
    }
    return true;
}

XNOINLINE void advance(struct lane *lane)
{
    const struct hoop_device_step *step = XP(struct hoop_device_step, lane->step_at) + lane->step;

    lane->step += lane->taken;
    if ((step->flags | step[lane->taken - 1].flags) & HOOP_DEVICE_SIGNAL)
        x_st_rel(lane->state + offsetof(struct hoop_device_state, progress),
                 progress_of(lane, lane->launches + 1, lane->slice, lane->steps, lane->step));
    if (lane->step == lane->steps) {
        lane->step = 0;
        lane->slice++;
    }
}

/* The lane's work is done: take the loans back, and leave the state as the next launch needs it; the first lane also that of plans' lanes
 * which this call does not have. Messages are no part of the chain of calls. */
XNOINLINE void end_lane(const struct hoop_device_call *call, struct lane *lane)
{
    struct piece all;

    all.data = 0;
    all.bytes = ~(uint64_t)0;
    if (!await_loans(call, lane, all))
        return;
    XROLLED for (uint32_t i = lane->number; i == lane->number || i < call->state_lanes;
                 i = i < call->lanes ? call->lanes : i + 1)
    {
        struct hoop_device_state *state =
            XP(struct hoop_device_state, call->state + i * sizeof(struct hoop_device_state));

        state->launches = lane->launches + 1;
        if (i < call->state_lanes)
            state->chain = lane->tag;
        if (i == lane->number && lane->lent) {
            state->lent += lane->lent;
            x_st_rel(call->report + offsetof(struct hoop_device_report, lent) + lane->number * sizeof(uint64_t),
                     state->lent);
        }
        if (lane->number != 0)
            break;
    }
    REPORT(lane, finished, lane->launches + 1);
}

#include "exec/device/message.inc"

/* Go on to the next piece of work for all threads, or to the lane's end. */
XNOINLINE void next_work(const struct hoop_device_call *call, struct lane *lane)
{
    XROLLED while (lane->slice < call->slices)
    {
        if (!prepare_step(call, lane) || (lane->go == GO_ON && !conclude_step(lane))) {
            lane->go = GO_NOWHERE;
            return;
        }
        if (lane->go == GO_WORK)
            return;
        advance(lane);
    }
    end_lane(call, lane);
    lane->go = GO_NOWHERE;
}

XDEVICE void begin_work(const struct hoop_device_call *call, struct lane *lane)
{
    if (call->flags & HOOP_DEVICE_MESSAGES) {
        begin_messages(call, lane);
        next_message(call, lane);
    } else {
        begin_program(call, lane);
        next_work(call, lane);
    }
}

XDEVICE void go_on(const struct hoop_device_call *call, struct lane *lane)
{
    if (call->flags & HOOP_DEVICE_MESSAGES) {
        next_message(call, lane);
    } else {
        advance(lane);
        next_work(call, lane);
    }
}

/* A launch of several ranks: copy the call of this block's rank to shared memory. */
XDEVICE void read_own(const struct hoop_device_call *team, struct hoop_device_call *own)
{
    *own = *XP(const struct hoop_device_call, team->lane + XBID / team->lanes * sizeof(struct hoop_device_call));
}

/* The bare copy or reduction. It is here and not in a kernel of its own, since it needs the code of all types and operators, which
 * would stand in the image twice. */
XDEVICE void begin_bare(const struct hoop_device_call *call, struct lane *lane)
{
    lane->work.to = call->out;
    lane->work.left = call->in;
    lane->work.right = call->tmp;
    lane->work.also = lane->work.in_flag = lane->work.out_flag = 0;
    hand_out(call, lane, call->count);
}

/* What one thread does between two barriers the others see as a whole. */
XKERNEL(hoop_interpret, struct hoop_device_call)
{
    XSHARED(struct lane, lane);
    XSHARED(struct hoop_device_call, own);
    const bool bare = argument.flags & HOOP_DEVICE_BARE, team = argument.flags & HOOP_DEVICE_TEAM;
    const uint64_t turn = XTID + (bare ? (uint64_t)XBID * XNT : 0), stride = bare ? (uint64_t)XNB * XNT : XNT;
    const struct hoop_device_call *call = team ? own : &argument;
    const uint32_t number = team ? XBID % argument.lanes : XBID;

    if (XTID == 0) {
        lane->go = GO_NOWHERE;
        if (team)
            read_own(&argument, own);
        if (bare) {
            begin_bare(call, lane);
        } else if (number < call->lanes) { /* ranks that call different things may have plans of different lanes */
            begin_lane(call, lane, call->first_lane + number);
            begin_work(call, lane);
        }
    }
    XROLLED for (;;)
    {
        XSYNC();
        if (lane->go != GO_WORK)
            break;
        run_work(&lane->work, call->type, call->op, turn, stride);
        if (bare)
            break;
        if (XTID == 0)
            await_empty(lane);
        XSYNC();
        if (XTID == 0) {
            lane->go = GO_NOWHERE;
            if (conclude_step(lane))
                go_on(call, lane);
        }
    }
}

#ifndef __CUDACC__
const struct hoop_device_kernel hoop_device_kernels[] = {
    XKERNEL_ROW(hoop_interpret, struct hoop_device_call),
    HOOP_DEVICE_VECTOR_ROWS{NULL, NULL, 0},
};
#endif
