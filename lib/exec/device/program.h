// SPDX-License-Identifier: BSD-3-Clause
/* What the host and the kernels tell each other: plain data of fixed-width fields, the same for all compilers.
 *
 * A plan is uploaded once: its lanes and steps with symbolic chunks, and the kernel computes offsets by the binder's rule (plan/bind.h).
 * What a call adds (buffers, sizes, the call's shape) is the kernel's one argument. What goes on from call to call (how many
 * frames a link has carried, the fingerprint of all calls so far) lives in device memory, so a launch that was recorded in a
 * graph can be replayed any number of times, between others.
 *
 * Frames. Frame k of a link uses slot k mod slots. A slot begins with a header: the fingerprint, and where the data are: an
 * offset into the slot's room (as many bytes past 16 as the source, so that both can be moved by whole words), or an address
 * in the sender's buffer, which is lent until the counter of frames taken has passed it. Small frames come in words of 16
 * bytes instead: 8 of data (the first word: the fingerprint) with a flag in each half, which follows from k; a word whose flags are right
 * is complete, so one message takes one way over the bus and no counter is waited for. All frames of a call are small, or none, but for
 * those to and from other hosts: a thread of the host carries them on (exec/cuda_relay.h), which looks at counters; they are never small or
 * lent, and say in the header how many bytes they have.
 *
 * Messages. A launch may run a list of messages in the place of a plan. Those to one peer, and those from one, are a queue; the others go on
 * while it waits. The bytes of a message are cut into parts, of which each block has one, on its own link. The first frame of a part
 * also says how many elements of which type the message has (16 bytes behind the header), so there is always one, even if it is
 * empty; frames are never small. What is lent is all that is left of the part.
 */
#ifndef HOOP_EXEC_DEVICE_PROGRAM_H
#define HOOP_EXEC_DEVICE_PROGRAM_H

#include <stdint.h>

/* A step of a plan; kinds, buffers and the lower flags are those of hoop/plan.h. */
struct hoop_device_step {
    uint8_t kind, to_buffer, from_buffer, flags;
    int32_t peer;
    uint32_t to, from;
};

enum {
    HOOP_DEVICE_SIGNAL = 32, /* another lane waits for this step */
    HOOP_DEVICE_LEND = 64    /* SEND: no other lane overwrites the source, so it may be lent */
};

struct hoop_device_lane {
    uint64_t step; /* address of struct hoop_device_step[steps] */
    uint32_t steps, unused;
};

/* Where in a slot's header the bytes of a frame are that is relayed, in whole units. */
enum { HOOP_DEVICE_HEADER_BYTES = 32 };

/* A link's ends (struct hoop_device_link) and how many frames it has carried; a lane's block alone writes those. */
struct hoop_device_pipe {
    uint64_t out_frames, out_head, out_taken, in_frames, in_head, in_taken;
    uint64_t sent, received;
    uint64_t taken; /* of those sent, as far as known */
    uint64_t slot;  /* bytes */
    uint32_t frame, slots, direct, relayed;
};

/* What a lane keeps from call to call, one cache line. */
struct hoop_device_state {
    uint64_t launches; /* the same for all lanes between launches */
    uint64_t chain;    /* fingerprint of all calls so far; likewise */
    uint64_t progress; /* launches, slice and step, as far as other lanes may rely on it */
    uint64_t lent;     /* frames */
    uint64_t unused[4];
};

/* What a lane tells the host, in memory of the host, one cache line. */
struct hoop_device_lane_report {
    uint64_t verdict;      /* enum hoop_device_verdict, stored last */
    uint64_t ours, theirs; /* a mismatch: the fingerprints */
    uint64_t call;         /* number of the call that the lane is in or was in last */
    uint64_t finished;     /* launches that the lane has done */
    uint64_t wait;         /* 0, or since long for what: enum hoop_device_wait, peer << 8, */
    uint64_t step;         /* the step << 32 | the slice's lower half, */
    uint64_t number;       /* and the number of the frame (or step) */
};

/* PAIR: a message is not the one that was expected. The lane's report has the counts in ours and theirs, and what else the two say
 * (hoop_device_message's shape) in number and step. */
enum hoop_device_verdict { HOOP_DEVICE_FINE, HOOP_DEVICE_MISMATCH, HOOP_DEVICE_ABORTED, HOOP_DEVICE_PAIR };

enum hoop_device_wait {
    HOOP_DEVICE_WAITS_NOT,
    HOOP_DEVICE_WAITS_FRAME, /* for the peer to send */
    HOOP_DEVICE_WAITS_ROOM,  /* for the peer to take */
    HOOP_DEVICE_WAITS_LOAN,  /* for the peer to have read what was lent to it */
    HOOP_DEVICE_WAITS_LANE   /* for another lane of this rank */
};

/* Lanes of plans, and those of messages, which come after them. */
enum { HOOP_DEVICE_PLAN_LANES = 64, HOOP_DEVICE_MESSAGE_LANES = 2, HOOP_DEVICE_LANES = 66 };

struct hoop_device_report {
    uint64_t abort; /* not 0: whoever waits gives up */
    uint64_t unused[7];
    struct hoop_device_lane_report lane[HOOP_DEVICE_LANES];
    uint64_t begun[HOOP_DEVICE_LANES]; /* launches that each lane has begun */
    uint64_t lent[HOOP_DEVICE_LANES];  /* frames that each lane has lent so far, at the end of its launches */
};

/* Flags of a call. */
enum {
    HOOP_DEVICE_IN_IS_BLOCK = 1,
    HOOP_DEVICE_OUT_IS_BLOCK = 2,
    HOOP_DEVICE_EMPTY_FRAMES = 4,
    HOOP_DEVICE_SMALL_FRAMES = 8,
    HOOP_DEVICE_NO_FORWARD = 16, /* receive, then send: for tests */
    HOOP_DEVICE_KEEP_IN = 32,    /* peers do not reach the buffer under its own address */
    HOOP_DEVICE_TEAM =
        64, /* the calls of several ranks in one launch, `lanes` blocks each: an array of them at address `lane` */
    HOOP_DEVICE_KEEP_OUT = 128,
    HOOP_DEVICE_BARE = 256,    /* no plan: all blocks together, out = in op tmp; no tmp: a copy. count is in bytes */
    HOOP_DEVICE_MESSAGES = 512 /* no plan: messages; struct hoop_device_exchange is at address `lane` */
};

/* ---- messages ---- */

enum hoop_device_message_kind { HOOP_DEVICE_SEND, HOOP_DEVICE_RECV, HOOP_DEVICE_COPY };

/* Least bytes for each block that takes part in a message. */
enum { HOOP_DEVICE_PART = 65536 };

/* In an all_to_allv, beside the type: does the rank call in place, if it has anything to move? */
enum { HOOP_DEVICE_APART = 1 << 16, HOOP_DEVICE_IN_PLACE = 2 << 16, HOOP_DEVICE_PLACES = 3 << 16 };

struct hoop_device_message {
    uint64_t data;  /* what is sent, or where what is received is put */
    uint64_t to;    /* COPY */
    uint64_t count; /* elements; bytes: of all */
    uint64_t bytes;
    uint32_t kind, peer;
    uint32_t shape; /* enum hoop_type | HOOP_DEVICE_APART or HOOP_DEVICE_IN_PLACE */
    uint32_t view;  /* SEND: row + 1 of the data in views; 0: none */
    uint32_t keep;  /* SEND: as HOOP_DEVICE_KEEP_IN */
    uint32_t unused[3];
};

/* Messages first … end - 1, one after the other. */
struct hoop_device_queue {
    uint32_t first, end;
};

/* How far a block has come with a queue: the kernel's own. */
struct hoop_device_progress {
    uint64_t at, left; /* of its part of the message: the next byte of the message, bytes */
    uint64_t loan;     /* frames taken when the part has come back; 0: not lent */
    uint32_t message, stage;
};

struct hoop_device_exchange {
    uint64_t queue, message; /* addresses */
    uint64_t progress;       /* by block * queues + queue */
    uint32_t queues, parts;  /* parts: most of one message; equal at both ends */
};

/* In place of what a peer has to add to an address of ours: it does not reach that memory. */
#define HOOP_DEVICE_NOT_SEEN UINT64_MAX

/* A block with a count of its own, in elements: where it begins, and how chunks and slices cut it, as in a call. */
struct hoop_device_block {
    uint64_t first, quotient, remainder;
    uint64_t short_quotient, short_remainder, long_quotient, long_remainder;
    uint64_t unused;
};

/* Argument of the interpreter: one launch. Sizes are in elements. */
struct hoop_device_call {
    uint64_t lane;   /* struct hoop_device_lane[lanes] */
    uint64_t pipe;   /* struct hoop_device_pipe of (peer, lane) at peer * pipe_lanes + lane */
    uint64_t state;  /* struct hoop_device_state[state_lanes] */
    uint64_t report; /* struct hoop_device_report */
    uint64_t in, out, tmp;
    uint64_t blocks; /* struct hoop_device_block of IN, one a rank, then of OUT; 0: all blocks are as below */
    uint64_t tag;    /* fingerprint of this call by itself */
    uint64_t number; /* of the call, for reports */
    uint64_t lend;   /* least bytes of a piece that is lent */
    uint64_t
        views; /* by row * ranks + peer: what that peer has to add to addresses in memory of the row, or HOOP_DEVICE_NOT_SEEN */
    /* the binding */
    uint64_t count, slices, tmp_stride;
    uint64_t quotient, remainder;             /* of a block by its chunks */
    uint64_t short_quotient, short_remainder; /* of a chunk of quotient elements by slices */
    uint64_t long_quotient, long_remainder;   /* of one of quotient + 1 */
    uint32_t grid, tmp_first, chunks_per_block, element;
    uint32_t lanes, pipe_lanes, state_lanes, flags;
    uint32_t type, op;          /* enum hoop_type, enum hoop_op; an average is a sum here */
    uint32_t in_view, out_view; /* row + 1 of the buffers in views; 0: none */
    uint32_t ranks, first_lane; /* of the blocks: those of messages come after those of plans */
};

/* Argument of the kernels that work on one vector, all blocks together. */
struct hoop_device_vector {
    uint64_t to, left, right;
    uint64_t count;
    uint64_t factor; /* premultiply: bits of the scalar */
    uint64_t
        report; /* compare: address of a word that receives 1 + the number of an element that differs, if any does */
    uint32_t type, op; /* op: of the bare reduction, which the interpreter does (HOOP_DEVICE_BARE) */
    int32_t ranks;     /* divide */
    uint32_t seed;     /* fill, compare */
};

#endif
