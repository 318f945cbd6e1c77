// SPDX-License-Identifier: BSD-3-Clause
/* The ring: sizes, order, credit, numbers that run over, causes, reconnecting, and what a broken peer may write. */
#include "harness.h"
#include "mem/ring.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME = 200 };

static unsigned char *memory;
static struct hoop_ring_producer producer;
static struct hoop_ring_consumer consumer;

static void view(int slots)
{
    hoop_ring_produce(&producer, memory, slots, FRAME);
    hoop_ring_consume(&consumer, memory, slots, FRAME);
}

static void fresh(int slots)
{
    free(memory);
    memory = aligned_alloc(4096, hoop_ring_bytes(slots, FRAME));
    memset(memory, 0, hoop_ring_bytes(slots, FRAME));
    view(slots);
}

static void send(unsigned char number)
{
    ck_assert_int_eq(hoop_ring_room(&producer), HOOP_OK);
    memset(hoop_ring_slot(&producer), number, FRAME);
    hoop_ring_publish(&producer, HOOP_FRAME_SLOT, FRAME, number);
}

static void take(unsigned char number)
{
    struct hoop_frame frame;

    ck_assert_int_eq(hoop_ring_look(&consumer, &frame), HOOP_OK);
    ck_assert_uint_eq(frame.kind, HOOP_FRAME_SLOT);
    ck_assert_uint_eq(frame.bytes, FRAME);
    ck_assert_uint_eq(frame.tag, number);
    for (size_t i = 0; i < FRAME; i++)
        ck_assert_uint_eq(((const unsigned char *)frame.data)[i], number);
    hoop_ring_take(&consumer);
}

START_TEST(sizes)
{
    ck_assert_uint_eq(hoop_ring_bytes(0, 64), 0);
    ck_assert_uint_eq(hoop_ring_bytes(-1, 64), 0);
    ck_assert_uint_eq(hoop_ring_bytes(HOOP_RING_SLOTS_MAX + 1, 64), 0);
    ck_assert_uint_eq(hoop_ring_bytes(2, (size_t)HOOP_RING_FRAME_MAX + 1), 0);
    for (int slots = 1; slots < 70; slots++)
        for (size_t frame = 0; frame < 9000; frame += 611) {
            const size_t bytes = hoop_ring_bytes(slots, frame);

            ck_assert_uint_eq(bytes % 4096, 0);
            ck_assert_uint_gt(bytes, (size_t)slots * (frame + sizeof(struct hoop_frame_head)));
        }
}
END_TEST

/* Any number of slots, each fill level, past several laps. */
START_TEST(order_and_credit)
{
    fresh(_i);
    unsigned char in = 0, out = 0;
    for (int round = 0; round < 7 * _i; round++) {
        const int burst = round % _i + 1;

        for (int i = 0; i < burst; i++)
            send(in++);
        if (burst == _i)
            ck_assert_int_eq(hoop_ring_room(&producer), HOOP_AGAIN);
        for (int i = 0; i < burst; i++)
            take(out++);
        struct hoop_frame frame;
        ck_assert_int_eq(hoop_ring_look(&consumer, &frame), HOOP_AGAIN);
    }
}
END_TEST

START_TEST(numbers_run_over)
{
    fresh(3);
    struct hoop_ring *ring = producer.ring;
    ring->base[0] = UINT32_MAX - 4;
    ring->consumed = (uint64_t)(UINT32_MAX - 4) << 32;
    view(3);
    for (unsigned char i = 0; i < 20; i++) {
        send(i);
        if (i % 3 == 2) {
            ck_assert_int_eq(hoop_ring_room(&producer), HOOP_AGAIN);
            for (int k = 2; k >= 0; k--)
                take((unsigned char)(i - k));
        }
    }
    ck_assert_uint_lt(producer.sent, 100);
}
END_TEST

/* The cause for giving up comes after the frames, also when every slot is full. */
START_TEST(gives_up)
{
    static const enum hoop_status causes[] = {HOOP_ERR_PEER, HOOP_ERR_MISMATCH, HOOP_ERR_INTERNAL};
    struct hoop_frame frame;

    for (size_t i = 0; i < 3; i++) {
        fresh(2);
        send(1);
        send(2);
        hoop_ring_give_up_sending(&producer, causes[i]);
        hoop_ring_give_up_sending(&producer, HOOP_ERR_ABORTED);
        take(1);
        take(2);
        ck_assert_int_eq(hoop_ring_look(&consumer, &frame), causes[i]);
        ck_assert_int_eq(hoop_ring_lender_status(&consumer), causes[i]);

        fresh(2);
        send(1);
        ck_assert_int_eq(hoop_ring_refresh(&producer), HOOP_OK);
        take(1);
        hoop_ring_give_up_taking(&consumer, causes[i]);
        ck_assert_int_eq(hoop_ring_refresh(&producer), causes[i]);
        ck_assert_uint_eq(producer.seen, producer.sent);
    }
}
END_TEST

START_TEST(connects_again)
{
    struct hoop_frame frame;

    fresh(2);
    for (unsigned char round = 0; round < 5; round++) {
        send(10);
        take(10);
        send(11);
        if (round % 2)
            send(12); /* left behind */
        if (round == 3)
            hoop_ring_give_up_sending(&producer, HOOP_ERR_MISMATCH);
        hoop_ring_hang_up_sending(&producer);
        take(11);
        ck_assert_int_eq(hoop_ring_lender_status(&consumer), HOOP_ERR_PEER);
        hoop_ring_hang_up_taking(&consumer);
        ck_assert_int_eq(hoop_ring_refresh(&producer), HOOP_ERR_PEER);
        view(2);
        ck_assert_int_eq(hoop_ring_look(&consumer, &frame), HOOP_AGAIN);
        ck_assert_int_eq(hoop_ring_refresh(&producer), HOOP_OK);
        ck_assert_int_eq(hoop_ring_lender_status(&consumer), HOOP_OK);
    }
}
END_TEST

/* A consumer that comes late finds the frames, then the end. */
START_TEST(producer_leaves_first)
{
    struct hoop_frame frame;

    fresh(2);
    send(1);
    hoop_ring_hang_up_sending(&producer);
    hoop_ring_consume(&consumer, memory, 2, FRAME);
    take(1);
    ck_assert_int_eq(hoop_ring_look(&consumer, &frame), HOOP_ERR_PEER);
}
END_TEST

START_TEST(impossible_headers)
{
    struct hoop_frame frame;
    static const uint64_t words[] = {
        2ull << 32,                                                              /* a number ahead */
        1ull << 32 | (uint64_t)HOOP_FRAME_SLOT << 28 | (FRAME + 1),              /* larger than a frame */
        1ull << 32 | (uint64_t)HOOP_FRAME_INLINE << 28 | (HOOP_RING_INLINE + 1), /* larger than the line */
        1ull << 32 | (uint64_t)HOOP_FRAME_DIRECT << 28 | HOOP_RING_FRAME_MAX,
        1ull << 32 | 4ull << 28, /* no such kind */
        1ull << 32 | 15ull << 28 | 3,
        1ull << 32 | (uint64_t)HOOP_FRAME_CLOSE << 28 | 77, /* no such cause */
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        fresh(2);
        producer.ring->head[0].word = words[i];
        ck_assert_int_eq(hoop_ring_look(&consumer, &frame), HOOP_ERR_INTERNAL);
    }
}
END_TEST

START_TEST(impossible_counters)
{
    fresh(2);
    send(1);
    producer.ring->consumed = 2ull << 32; /* more than was sent */
    ck_assert_int_eq(hoop_ring_refresh(&producer), HOOP_ERR_INTERNAL);
    producer.ring->consumed = 77; /* no such cause */
    ck_assert_int_eq(hoop_ring_refresh(&producer), HOOP_ERR_INTERNAL);
    producer.ring->consumed = UINT64_MAX;
    ck_assert_int_eq(hoop_ring_refresh(&producer), HOOP_ERR_PEER);
    ck_assert_uint_le(producer.sent - producer.seen, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ring");
    TCase *tests = tcase_create("ring");

    tcase_add_test(tests, sizes);
    tcase_add_loop_test(tests, order_and_credit, 1, 9);
    tcase_add_test(tests, numbers_run_over);
    tcase_add_test(tests, gives_up);
    tcase_add_test(tests, connects_again);
    tcase_add_test(tests, producer_leaves_first);
    tcase_add_test(tests, impossible_headers);
    tcase_add_test(tests, impossible_counters);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
