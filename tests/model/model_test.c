// SPDX-License-Identifier: BSD-3-Clause
/* The ring and the bell under every interleaving (memory.h): the library's own text, compiled against modelled memory.
 *
 * Each case is also run with the fences, the releases or the acquires left out, where it must fail: a model that finds
 * nothing then proves nothing.
 */
#include "model/memory.h"
#include "tsan.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/bell.c"
#include "mem/ring.c"

enum { SLOTS = 2, FRAME = 64, EXECUTIONS = 3000000, TAG = 0x7a6, OLD = 1000, NEW = 2000 };

static _Alignas(128) unsigned char memory[4096];
static struct hoop_ring_producer producer;
static struct hoop_ring_consumer consumer;
static struct hoop_bell bell[2]; /* of the producer, of the consumer */
static uint64_t lent;            /* what direct frames point to */
static _Atomic uint64_t shared_lent;

static void setup_rings(int slots)
{
    memset(memory, 0, sizeof memory);
    memset(bell, 0, sizeof bell);
    lent = 0;
    shared_lent = OLD;
    hoop_ring_produce(&producer, memory, slots, FRAME);
    hoop_ring_consume(&consumer, memory, slots, FRAME);
}

static void setup(void)
{
    setup_rings(SLOTS);
}

static void setup_one_slot(void)
{
    setup_rings(1);
}

static void must(bool truth, const char *what)
{
    if (!truth)
        model_fail("%s", what);
}

/* ---- the ring alone: three frames through two slots, then the producer hangs up ---- */

enum { FRAMES = 3 };
static const enum hoop_frame_kind copied[FRAMES] = {HOOP_FRAME_SLOT, HOOP_FRAME_INLINE, HOOP_FRAME_SLOT};
static const enum hoop_frame_kind loaned[FRAMES] = {HOOP_FRAME_INLINE, HOOP_FRAME_DIRECT, HOOP_FRAME_INLINE};
static const enum hoop_frame_kind *kinds;

static void setup_copied(void)
{
    setup_rings(SLOTS);
    kinds = copied;
}

static void setup_loaned(void)
{
    setup_rings(SLOTS);
    kinds = loaned;
}

static void wait_for_room(struct hoop_ring_producer *ring)
{
    for (;;) {
        model_poll();
        const enum hoop_status status = hoop_ring_room(ring);
        if (status == HOOP_OK)
            return;
        must(status == HOOP_AGAIN, "the producer sees an error");
        model_wait();
    }
}

static void send_all(void)
{
    for (int i = 0; i < FRAMES; i++) {
        wait_for_room(&producer);
        if (kinds[i] == HOOP_FRAME_SLOT)
            model_write(hoop_ring_slot(&producer), (uint64_t)i);
        else if (kinds[i] == HOOP_FRAME_INLINE)
            model_write(hoop_ring_head(&producer)->data, (uint64_t)i);
        else {
            model_write(&lent, (uint64_t)i);
            HOOP_ATOMIC_STORE(&hoop_ring_head(&producer)->offset, 5, relaxed);
        }
        hoop_ring_publish(&producer, kinds[i], 8, (uint64_t)(TAG + i));
    }
    while (producer.seen < 2) { /* the lent word is ours again when frame 2 has been taken */
        model_poll();
        must(hoop_ring_refresh(&producer) == HOOP_OK, "the producer sees an error");
        if (producer.seen < 2)
            model_wait();
    }
    model_write(&lent, OLD);
    hoop_ring_hang_up_sending(&producer);
}

static enum hoop_status wait_for_frame(struct hoop_ring_consumer *ring, struct hoop_frame *frame)
{
    for (;;) {
        model_poll();
        const enum hoop_status status = hoop_ring_look(ring, frame);
        if (status != HOOP_AGAIN)
            return status;
        model_wait();
    }
}

static void take_all(void)
{
    struct hoop_frame frame = {0};

    for (int i = 0; i < FRAMES; i++) {
        must(wait_for_frame(&consumer, &frame) == HOOP_OK, "the consumer sees an error");
        must(frame.kind == kinds[i] && frame.bytes == 8, "a header differs from what was sent");
        must(frame.tag == (uint64_t)(TAG + i), "a tag is not the one of its frame");
        must(frame.kind != HOOP_FRAME_DIRECT || frame.offset == 5, "an offset is not the one of its frame");
        must(model_read(frame.kind == HOOP_FRAME_DIRECT ? &lent : frame.data) == (uint64_t)i,
             "the data of another frame");
        if (frame.kind == HOOP_FRAME_DIRECT)
            must(hoop_ring_lender_status(&consumer) == HOOP_OK, "the lender seems to be gone");
        hoop_ring_take(&consumer);
    }
    must(wait_for_frame(&consumer, &frame) == HOOP_ERR_PEER, "the end is not seen");
}

static const struct model_test copied_test = {setup_copied, 2, {send_all, take_all}};
static const struct model_test loaned_test = {setup_loaned, 2, {send_all, take_all}};

/* ---- a lender that goes away while the peer reads: the peer gets the old bytes or an error ---- */

static void lend_and_leave(void)
{
    HOOP_ATOMIC_STORE(&hoop_ring_head(&producer)->offset, 5, relaxed);
    hoop_ring_publish(&producer, HOOP_FRAME_DIRECT, 8, TAG);
    hoop_ring_hang_up_sending(&producer);
    HOOP_ATOMIC_STORE(&shared_lent, NEW, relaxed);
}

static void borrow(void)
{
    struct hoop_frame frame;

    if (wait_for_frame(&consumer, &frame) != HOOP_OK)
        model_fail("the frame is lost");
    const uint64_t value = HOOP_ATOMIC_LOAD(&shared_lent, relaxed);
    must(hoop_ring_lender_status(&consumer) != HOOP_OK || value == OLD,
         "bytes that were not lent any more were taken for good");
}

static const struct model_test lender_test = {setup, 2, {lend_and_leave, borrow}};

/* ---- the bell: whoever finds nothing sleeps, and somebody must wake him ---- */

static enum hoop_status look(void *ring)
{
    struct hoop_frame frame;
    const enum hoop_status status = hoop_ring_look(ring, &frame);

    if (status == HOOP_OK) {
        must(frame.tag == TAG, "a tag is not the one of its frame");
        hoop_ring_take(ring);
    }
    return status;
}

static enum hoop_status room(void *ring)
{
    return hoop_ring_room(ring);
}

static void sleep_until(enum hoop_status (*ready)(void *), void *ring, struct hoop_bell *own)
{
    while (ready(ring) == HOOP_AGAIN) {
        hoop_bell_arm(own);
        if (ready(ring) == HOOP_OK) {
            hoop_bell_disarm(own);
            return;
        }
        hoop_bell_sleep(own, 1);
    }
}

static void ring_in(void)
{
    hoop_ring_publish(&producer, HOOP_FRAME_INLINE, 0, TAG);
    hoop_bell_ring(&bell[1]);
}

static void send_one(void)
{
    ring_in();
}

/* Somebody whose news the sleeper does not wait for. */
static void ring_only(void)
{
    hoop_bell_ring(&bell[1]);
}

static void sleep_for_one(void)
{
    sleep_until(look, &consumer, &bell[1]);
}

static void send_and_sleep_for_room(void)
{
    ring_in();
    sleep_until(room, &producer, &bell[0]);
}

static void sleep_and_ring_back(void)
{
    sleep_until(look, &consumer, &bell[1]);
    hoop_bell_ring(&bell[0]);
}

static const struct model_test bell_test = {setup, 2, {send_one, sleep_for_one}};
static const struct model_test two_ringers_test = {setup, 3, {send_one, ring_only, sleep_for_one}};
static const struct model_test both_sleep_test = {setup_one_slot, 2, {send_and_sleep_for_room, sleep_and_ring_back}};

/* ---- cases ---- */

static const struct {
    const char *name;
    const struct model_test *test;
    unsigned fails_without; /* each of these must be missed */
} cases[] = {
    {"copied", &copied_test, MODEL_NO_RELEASE | MODEL_NO_ACQUIRE},
    {"loaned", &loaned_test, MODEL_NO_RELEASE | MODEL_NO_ACQUIRE},
    {"lender", &lender_test, MODEL_NO_FENCE},
    {"bell", &bell_test, MODEL_NO_FENCE},
    {"two ringers", &two_ringers_test, MODEL_NO_FENCE},
    {"both sleep", &both_sleep_test, MODEL_NO_FENCE},
};
enum { CASES = sizeof cases / sizeof cases[0] };

START_TEST(holds)
{
    const struct model_result result = model_explore(cases[_i].test, 0, EXECUTIONS);

    ck_assert_msg(!result.failure[0], "%s: %s\n%s", cases[_i].name, result.failure, result.trace);
    ck_assert_int_gt(result.executions, 1);
    if (getenv("HOOP_TEST_VERBOSE"))
        printf("%s: %ld executions, %ld pruned\n", cases[_i].name, result.executions, result.pruned);
}
END_TEST

START_TEST(fails_when_weakened)
{
    for (unsigned part = 1; part <= MODEL_NO_ACQUIRE; part *= 2)
        if (cases[_i].fails_without & part) {
            const struct model_result result = model_explore(cases[_i].test, part, EXECUTIONS);

            ck_assert_msg(result.failure[0], "%s: nothing found without part %u", cases[_i].name, part);
            if (getenv("HOOP_TEST_VERBOSE"))
                printf("%s without %u: %s after %ld\n", cases[_i].name, part, result.failure, result.executions);
        }
}
END_TEST

int main(void)
{
    if (UNDER_TSAN) {
        puts("skipped: modelled threads switch stacks by hand, which ThreadSanitizer does not follow");
        return 77;
    }
    Suite *suite = suite_create("model");
    TCase *tests = tcase_create("interleavings");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, holds, 0, CASES);
    tcase_add_loop_test(tests, fails_when_weakened, 0, CASES);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
