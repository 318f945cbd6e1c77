// SPDX-License-Identifier: BSD-3-Clause
/* The ring's rare paths: its size, views, and the end of a connection. */
#include "mem/ring.h"

enum { PAGE = 4096, LINE = 64, CLOSINGS = (1 << 24) - 1 };

static size_t stride_of(size_t frame)
{
    return (frame + LINE - 1) / LINE * LINE;
}

static size_t room_offset(int slots)
{
    return offsetof(struct hoop_ring, head) + ((size_t)slots + 1) * sizeof(struct hoop_frame_head);
}

size_t hoop_ring_bytes(int slots, size_t frame)
{
    if (slots < 1 || slots > HOOP_RING_SLOTS_MAX || frame > HOOP_RING_FRAME_MAX)
        return 0;
    return (room_offset(slots) + (size_t)slots * stride_of(frame) + PAGE - 1) / PAGE * PAGE;
}

void hoop_ring_produce(struct hoop_ring_producer *producer, void *memory, int slots, size_t frame)
{
    struct hoop_ring *ring = memory;
    const uint32_t closings = (uint32_t)HOOP_ATOMIC_LOAD(&ring->producer_state, relaxed) >> 8;
    const uint32_t base = (uint32_t)HOOP_ATOMIC_LOAD(&ring->base[closings & 1], relaxed);

    *producer = (struct hoop_ring_producer){
        .ring = ring,
        .room = (unsigned char *)memory + room_offset(slots),
        .stride = stride_of(frame),
        .frame = frame,
        .slots = (uint32_t)slots,
        .sent = base,
        .seen = base,
        .closings = closings,
    };
}

void hoop_ring_consume(struct hoop_ring_consumer *consumer, void *memory, int slots, size_t frame)
{
    struct hoop_ring *ring = memory;
    const uint32_t closings = (uint32_t)HOOP_ATOMIC_LOAD(&ring->consumed, relaxed) >> 8;

    *consumer = (struct hoop_ring_consumer){
        .ring = ring,
        .room = (unsigned char *)memory + room_offset(slots),
        .stride = stride_of(frame),
        .frame = frame,
        .slots = (uint32_t)slots,
        .taken = (uint32_t)HOOP_ATOMIC_LOAD(&ring->base[closings & 1], acquire),
        .closings = closings,
    };
}

/* An end's state word means: hung up since, gave up since, or neither. */
static enum hoop_status judge(uint32_t state, uint32_t closings)
{
    if (state >> 8 != closings)
        return HOOP_ERR_PEER;
    return (state & 255) == 0 ? HOOP_OK : hoop_ring_cause_status(state & 255);
}

void hoop_ring_give_up_sending(struct hoop_ring_producer *producer, enum hoop_status cause)
{
    const uint32_t number = hoop_ring_cause(cause);
    const uint64_t word = (uint64_t)(producer->sent + 1) << 32 | (uint64_t)HOOP_FRAME_CLOSE << 28 | number;

    if (producer->closed)
        return;
    producer->closed = 1;
    HOOP_ATOMIC_STORE(&producer->ring->producer_state, producer->closings << 8 | number, release);
    HOOP_ATOMIC_STORE(&hoop_ring_head(producer)->word, word, release);
    /* Only behind this may the memory of direct frames be used for something else: see hoop_ring_lender_status. */
    HOOP_ATOMIC_FENCE();
}

void hoop_ring_give_up_taking(struct hoop_ring_consumer *consumer, enum hoop_status cause)
{
    const uint32_t state = consumer->closings << 8 | hoop_ring_cause(cause);

    if (consumer->closed)
        return;
    consumer->closed = 1;
    HOOP_ATOMIC_STORE(&consumer->ring->consumed, (uint64_t)consumer->taken << 32 | state, release);
}

void hoop_ring_hang_up_sending(struct hoop_ring_producer *producer)
{
    const uint32_t closings = (producer->closings + 1) & CLOSINGS;

    hoop_ring_give_up_sending(producer, HOOP_ERR_PEER);
    HOOP_ATOMIC_STORE(&producer->ring->base[closings & 1], producer->sent + 1, relaxed);
    HOOP_ATOMIC_STORE(&producer->ring->producer_state, closings << 8, release);
}

void hoop_ring_hang_up_taking(struct hoop_ring_consumer *consumer)
{
    const uint32_t closings = (consumer->closings + 1) & CLOSINGS;

    consumer->closed = 1;
    HOOP_ATOMIC_STORE(&consumer->ring->consumed, (uint64_t)consumer->taken << 32 | closings << 8, release);
}

enum hoop_status hoop_ring_refresh(struct hoop_ring_producer *producer)
{
    const uint64_t word = HOOP_ATOMIC_LOAD(&producer->ring->consumed, acquire);
    const uint32_t news = (uint32_t)(word >> 32) - producer->seen;

    /* Behind what is known: the number is of an earlier connection, the consumer has not begun this one. */
    if ((int32_t)news > 0) {
        if (news > producer->sent - producer->seen)
            return HOOP_ERR_INTERNAL;
        producer->seen += news;
    }
    return judge((uint32_t)word, producer->closings);
}

enum hoop_status hoop_ring_lender_status(struct hoop_ring_consumer *consumer)
{
    HOOP_ATOMIC_FENCE(); /* what the caller read comes before the word */
    return judge((uint32_t)HOOP_ATOMIC_LOAD(&consumer->ring->producer_state, relaxed), consumer->closings);
}
