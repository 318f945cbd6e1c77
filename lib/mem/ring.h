// SPDX-License-Identifier: BSD-3-Clause
/* Ring: a FIFO of frames in shared memory, one producer, one consumer.
 *
 * A frame is a header line and, beyond HOOP_RING_INLINE bytes, a slot of payload or an offset to memory that the
 * consumer can reach itself (direct). The header's first word holds sequence number, kind and size, and is written
 * last: the consumer polls the line that it needs anyway, and an empty ring costs one load. The producer learns from
 * the consumer's counter which slots are free again; it reads that line only when the credit that it knows of is used
 * up. Nothing is ever reset: numbers run on, and zero-filled memory is an empty ring.
 *
 * There is one header more than slots, so the producer always has room for a last frame that says why it closes.
 * An end that hangs up writes down where its next connection starts; a ring may be used again once both have.
 *
 * Each end keeps its own numbers in local memory (the views below). What the peer writes is read once, checked and
 * only then used: a broken peer gives an error, never an access outside the ring.
 */
#ifndef HOOP_MEM_RING_H
#define HOOP_MEM_RING_H

#include <stddef.h>
#include <stdint.h>

#include "hoop.h"
#include "mem/atomic.h"

enum {
    HOOP_RING_INLINE = 48,              /* bytes that fit the header line */
    HOOP_RING_SLOTS_MAX = 4096,         /* most slots of a ring */
    HOOP_RING_FRAME_MAX = (1 << 28) - 1 /* most bytes of one frame */
};

enum hoop_frame_kind { HOOP_FRAME_SLOT, HOOP_FRAME_INLINE, HOOP_FRAME_DIRECT, HOOP_FRAME_CLOSE };

struct hoop_frame_head {
    _Alignas(64) _Atomic uint64_t word; /* sequence << 32 | kind << 28 | bytes (CLOSE: cause); written last */
    _Atomic uint64_t tag;
    union {
        unsigned char data[HOOP_RING_INLINE];
        _Atomic uint64_t offset; /* DIRECT */
    };
};

/* The shared part. `state` is closings << 8 | cause: how often this end has hung up, and why it gave up since. */
struct hoop_ring {
    _Alignas(128) _Atomic uint64_t producer_state;
    _Atomic uint64_t base[2];                /* sequence from which connection k starts, at k modulo 2 */
    _Alignas(128) _Atomic uint64_t consumed; /* sequence of the last frame taken << 32 | the consumer's state */
    _Alignas(128) struct hoop_frame_head head[];
};

struct hoop_ring_producer {
    struct hoop_ring *ring;
    unsigned char *room;  /* first payload slot */
    size_t stride, frame; /* bytes from slot to slot; most bytes of a frame */
    uint32_t slots, head_at, room_at;
    uint32_t sent, seen; /* sequence of the last frame published; of the last known to be taken */
    uint32_t closings, closed;
};

struct hoop_ring_consumer {
    struct hoop_ring *ring;
    unsigned char *room;
    size_t stride, frame;
    uint32_t slots, head_at, room_at;
    uint32_t taken; /* sequence of the last frame taken */
    uint32_t closings, closed;
};

/* A header as the consumer read and checked it. */
struct hoop_frame {
    enum hoop_frame_kind kind;
    size_t bytes;
    uint64_t tag;
    uint64_t offset;  /* DIRECT; not checked: the ring does not know what it counts from */
    const void *data; /* SLOT, INLINE: the bytes, valid until hoop_ring_take; a broken peer may still change them */
};

/* Bytes of a ring, a multiple of 4096; 0 if slots or frame are out of range. Its memory is aligned to 128. */
size_t hoop_ring_bytes(int slots, size_t frame);

/* View zero-filled memory of hoop_ring_bytes(slots, frame), or a ring that both ends have hung up. */
void hoop_ring_produce(struct hoop_ring_producer *producer, void *memory, int slots, size_t frame);
void hoop_ring_consume(struct hoop_ring_consumer *consumer, void *memory, int slots, size_t frame);

/* Tell the peer that this end gives up, and why (HOOP_ERR_PEER: left; HOOP_ERR_MISMATCH; HOOP_ERR_INTERNAL). Only the
 * first cause counts. The consumer still gets what was sent before. */
void hoop_ring_give_up_sending(struct hoop_ring_producer *producer, enum hoop_status cause);
void hoop_ring_give_up_taking(struct hoop_ring_consumer *consumer, enum hoop_status cause);

/* End the view: gives up with HOOP_ERR_PEER and prepares the ring for the next connection. */
void hoop_ring_hang_up_sending(struct hoop_ring_producer *producer);
void hoop_ring_hang_up_taking(struct hoop_ring_consumer *consumer);

/* Read the consumer's counter.
 * HOOP_OK, the consumer's cause for giving up (HOOP_ERR_PEER, HOOP_ERR_MISMATCH, HOOP_ERR_INTERNAL), or
 * HOOP_ERR_INTERNAL: the counter is impossible. `seen` is valid in any case. */
enum hoop_status hoop_ring_refresh(struct hoop_ring_producer *producer);

/* HOOP_OK if the producer has not given up or hung up, else its cause: what was read from a direct frame before this
 * call is then not to be trusted. */
enum hoop_status hoop_ring_lender_status(struct hoop_ring_consumer *consumer);

/* A cause as a number that fits in a header, and back; an impossible number is HOOP_ERR_INTERNAL. */
static inline uint32_t hoop_ring_cause(enum hoop_status status)
{
    return (uint32_t) - (int)status;
}

static inline enum hoop_status hoop_ring_cause_status(uint32_t cause)
{
    if (cause == hoop_ring_cause(HOOP_ERR_MISMATCH))
        return HOOP_ERR_MISMATCH;
    return cause == hoop_ring_cause(HOOP_ERR_PEER) ? HOOP_ERR_PEER : HOOP_ERR_INTERNAL;
}

/* Is there room for one frame? HOOP_OK, HOOP_AGAIN or as hoop_ring_refresh. */
static inline enum hoop_status hoop_ring_room(struct hoop_ring_producer *producer)
{
    if (producer->sent - producer->seen < producer->slots)
        return HOOP_OK;

    const enum hoop_status status = hoop_ring_refresh(producer);
    if (status != HOOP_OK)
        return status;
    return producer->sent - producer->seen < producer->slots ? HOOP_OK : HOOP_AGAIN;
}

/* Where the next frame's payload goes, `frame` bytes; only after hoop_ring_room. */
static inline void *hoop_ring_slot(struct hoop_ring_producer *producer)
{
    return producer->room + producer->room_at * producer->stride;
}

/* The next frame's header: its `data` (INLINE) or `offset` (DIRECT) is to be filled before hoop_ring_publish. */
static inline struct hoop_frame_head *hoop_ring_head(struct hoop_ring_producer *producer)
{
    return &producer->ring->head[producer->head_at];
}

static inline uint32_t hoop_ring_turn(uint32_t index, uint32_t count)
{
    return index + 1 == count ? 0 : index + 1;
}

/* Publish the next frame; only after hoop_ring_room, with its payload in place. */
static inline void hoop_ring_publish(struct hoop_ring_producer *producer, enum hoop_frame_kind kind, size_t bytes,
                                     uint64_t tag)
{
    struct hoop_frame_head *head = hoop_ring_head(producer);
    const uint64_t word = (uint64_t)++producer->sent << 32 | (uint64_t)kind << 28 | (uint64_t)bytes;

    HOOP_ATOMIC_STORE(&head->tag, tag, relaxed);
    HOOP_ATOMIC_STORE(&head->word, word, release);
    producer->head_at = hoop_ring_turn(producer->head_at, producer->slots + 1);
    producer->room_at = hoop_ring_turn(producer->room_at, producer->slots);
}

/* Look at the next frame; it stays until hoop_ring_take.
 * HOOP_OK, HOOP_AGAIN (none has come), the producer's cause for giving up, or HOOP_ERR_INTERNAL: the header is
 * impossible. */
static inline enum hoop_status hoop_ring_look(struct hoop_ring_consumer *consumer, struct hoop_frame *frame)
{
    struct hoop_frame_head *head = &consumer->ring->head[consumer->head_at];
    const uint64_t word = HOOP_ATOMIC_LOAD(&head->word, acquire);
    const uint32_t ahead = (uint32_t)(word >> 32) - (consumer->taken + 1), kind = (uint32_t)word >> 28;

    if (ahead != 0)
        return (int32_t)ahead < 0 ? HOOP_AGAIN : HOOP_ERR_INTERNAL;
    frame->bytes = (size_t)(word & HOOP_RING_FRAME_MAX);
    if (kind == HOOP_FRAME_CLOSE)
        return hoop_ring_cause_status((uint32_t)frame->bytes);
    if (frame->bytes > consumer->frame || kind > HOOP_FRAME_CLOSE ||
        (kind == HOOP_FRAME_INLINE && frame->bytes > HOOP_RING_INLINE))
        return HOOP_ERR_INTERNAL;
    frame->kind = (enum hoop_frame_kind)kind;
    frame->tag = HOOP_ATOMIC_LOAD(&head->tag, relaxed);
    frame->data = kind == HOOP_FRAME_INLINE ? head->data : consumer->room + consumer->room_at * consumer->stride;
    frame->offset = kind == HOOP_FRAME_DIRECT ? HOOP_ATOMIC_LOAD(&head->offset, relaxed) : 0;
    return HOOP_OK;
}

/* Give the frame that hoop_ring_look showed back to the producer. */
static inline void hoop_ring_take(struct hoop_ring_consumer *consumer)
{
    const uint64_t state = consumer->closings << 8;

    consumer->taken++;
    consumer->head_at = hoop_ring_turn(consumer->head_at, consumer->slots + 1);
    consumer->room_at = hoop_ring_turn(consumer->room_at, consumer->slots);
    HOOP_ATOMIC_STORE(&consumer->ring->consumed, (uint64_t)consumer->taken << 32 | state, release);
}

#endif
