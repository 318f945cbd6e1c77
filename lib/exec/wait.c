// SPDX-License-Identifier: BSD-3-Clause
/* The phases of waiting, and what is looked at meanwhile. */
#include "exec/wait.h"

#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "health/monitor.h"
#include "health/verdict.h"
#include "mem/letterbox.h"

enum {
    YIELDS = 64,         /* polls with the core given away between them */
    YIELDS_CROWDED = 24, /* fewer: whoever sleeps leaves the core to a rank that has something to do */
    LOOK_EVERY_POLLS = 256,
    SPINS_A_MICROSECOND = 25 /* pause takes about 40 ns on current x86 cores */
};

static const uint64_t look_every = 5000000, longest_sleep = 10000000; /* ns */

static void pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void hoop_wait_init(struct hoop_wait *wait, struct hoop_board *board, double spin, bool crowded, double late,
                    double timeout)
{
    *wait = (struct hoop_wait){.board = board,
                               .spins = crowded ? 0 : (int)(spin * 1e6 * SPINS_A_MICROSECOND),
                               .yields = crowded ? YIELDS_CROWDED : YIELDS,
                               .late = late,
                               .timeout = timeout,
                               .descriptor = -1,
                               .letterbox = -1};
}

enum hoop_status hoop_wait_add(struct hoop_wait *wait, int descriptor)
{
    struct hoop_bell *bell = &hoop_board_card(wait->board, wait->board->rank)->bell;
    const enum hoop_status status = hoop_letterbox_open(bell, &wait->letterbox);

    if (status == HOOP_OK)
        wait->descriptor = descriptor;
    return status;
}

void hoop_wait_free(struct hoop_wait *wait)
{
    if (wait->board && wait->letterbox >= 0)
        close(wait->letterbox);
    *wait = (struct hoop_wait){.board = NULL};
}

/* Compare our calls with the peers': a rank that made another call may never send what we wait for. One that is ahead of us
 * kept the record of our call; of one that is behind we know what we called under its number. */
static void look_for_mismatch(const struct hoop_wait *wait)
{
    struct hoop_board *board = wait->board;
    const struct hoop_call *own = hoop_board_card(board, board->rank)->call;

    for (int rank = 0; rank < board->shape.ranks; rank++) {
        struct hoop_card *card = hoop_board_card(board, rank);
        const uint64_t started = hoop_card_started(card);
        const uint64_t sequence = started < wait->sequence ? started : wait->sequence;
        const size_t at = sequence % HOOP_CALL_RECORDS;

        if (rank == board->rank || sequence == 0 || wait->sequence - sequence >= HOOP_CALL_RECORDS)
            continue;
        const uint64_t fingerprint = __atomic_load_n(&card->call[at].fingerprint, __ATOMIC_ACQUIRE);
        const uint64_t ours = __atomic_load_n(&own[at].fingerprint, __ATOMIC_ACQUIRE);
        if (hoop_card_started(card) >= sequence + HOOP_CALL_RECORDS - 1 ||
            __atomic_load_n(&card->call[at].sequence, __ATOMIC_ACQUIRE) != sequence ||
            atomic_load(&hoop_board_card(board, board->rank)->started) >= sequence + HOOP_CALL_RECORDS - 1)
            continue; /* one of us went on meanwhile and may have written over what we read */
        if (fingerprint != ours) {
            const int a = rank < board->rank ? rank : board->rank, b = rank < board->rank ? board->rank : rank;
            hoop_verdict_pass(board, (struct hoop_verdict){HOOP_VERDICT_MISMATCH, a, b, (unsigned)sequence});
            return;
        }
    }
}

/* Has the rank come to our call? */
static bool has_come(const struct hoop_wait *wait, int rank)
{
    const struct hoop_card *card = hoop_board_card(wait->board, rank);

    return (wait->kernels ? atomic_load(&card->begun) : hoop_card_started(card)) >= wait->sequence;
}

/* The ranks that have not come to our call yet, as "2, 5"; returns the first one, -1 if all have. */
static int late_ranks(const struct hoop_wait *wait, char *text, size_t size)
{
    int first = -1;
    size_t used = 0;

    text[0] = 0;
    for (int rank = 0; rank < wait->board->shape.ranks; rank++) {
        if (rank == wait->board->rank || has_come(wait, rank))
            continue;
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, first < 0 ? "%d" : ", %d", rank);
        first = first < 0 ? rank : first;
    }
    return first;
}

static void report_late(struct hoop_wait *wait, uint64_t now)
{
    struct hoop_board *board = wait->board;
    char call[160], ranks[256];
    const double seconds = (double)(now - wait->begun) / 1e9;

    wait->next_report = now + (uint64_t)(2 * wait->late * 1e9);
    if (wait->sequence == 0) {
        hoop_log(HOOP_LOG_WARN, board->rank, "a send or receive has waited %.3g s for its peer", seconds);
        return;
    }

    const struct hoop_card *own = hoop_board_card(board, board->rank);
    if (atomic_load(&own->started) < wait->sequence + HOOP_CALL_RECORDS - 1)
        hoop_call_text(&own->call[wait->sequence % HOOP_CALL_RECORDS], call, sizeof call);
    else /* kernels: the host is far ahead of them */
        snprintf(call, sizeof call, "%" PRIu64 " calls ago", atomic_load(&own->started) - wait->sequence);
    if (late_ranks(wait, ranks, sizeof ranks) >= 0)
        hoop_log(HOOP_LOG_WARN, board->rank, "call %" PRIu64 " (%s) has waited %.3g s for ranks that have not %s: %s",
                 wait->sequence, call, seconds, wait->kernels ? "begun it on their devices yet" : "made it yet", ranks);
    else
        hoop_log(HOOP_LOG_WARN, board->rank, "call %" PRIu64 " (%s) has taken %.3g s; all ranks are in it",
                 wait->sequence, call, seconds);
}

void hoop_wait_look(struct hoop_wait *wait)
{
    struct hoop_board *board = wait->board;
    const uint64_t now = hoop_now();

    if (wait->begun == 0) {
        wait->begun = now;
        wait->next_look = now;
        wait->next_report = now + (uint64_t)(wait->late * 1e9);
    }
    if (now < wait->next_look)
        return;
    wait->next_look = now + look_every;
    hoop_health_look(board, wait->sequence);
    look_for_mismatch(wait);
    if (now >= wait->next_report)
        report_late(wait, now);
    if (wait->timeout > 0 && (double)(now - wait->begun) > wait->timeout * 1e9) {
        char ranks[256];
        const int late = late_ranks(wait, ranks, sizeof ranks);
        hoop_verdict_pass(board, (struct hoop_verdict){HOOP_VERDICT_LATE, late < 0 ? board->rank : late, board->rank,
                                                       (unsigned)wait->sequence});
    }
}

/* Polls in the phase are used up: go on to the next. */
static void next_phase(struct hoop_wait *wait)
{
    const int most = wait->phase == HOOP_WAIT_SPIN ? wait->spins : wait->yields;

    if (++wait->polls > most) {
        wait->phase++;
        wait->polls = 0;
    }
}

void hoop_wait_ring(struct hoop_wait *wait)
{
    const struct hoop_board *board = wait->board;

    wait->owes = false;
    HOOP_ATOMIC_FENCE();
    for (int rank = 0; rank < board->shape.ranks; rank++) {
        struct hoop_bell *bell = &hoop_board_card(board, rank)->bell;
        if (atomic_load_explicit(&bell->armed, memory_order_relaxed) && rank != board->rank)
            hoop_bell_wake(bell);
    }
}

static void arm(const struct hoop_wait *wait, struct hoop_bell *bell)
{
    if (wait->descriptor < 0)
        hoop_bell_arm(bell);
    else
        hoop_bell_arm_letters(bell);
}

static void sleep_for_news(const struct hoop_wait *wait, struct hoop_bell *bell)
{
    struct pollfd news[2] = {{.fd = wait->letterbox, .events = POLLIN}, {.fd = wait->descriptor, .events = POLLIN}};
    const struct timespec most = {.tv_nsec = (long)longest_sleep};

    if (wait->descriptor < 0) {
        hoop_bell_sleep(bell, longest_sleep);
        return;
    }
    ppoll(news, 2, &most, NULL);
    hoop_bell_disarm(bell);
    if (news[0].revents != 0)
        hoop_letterbox_empty(wait->letterbox);
}

/* Show to whoever looks from outside what this rank waits for. */
static void show_where(const struct hoop_wait *wait)
{
    struct hoop_card *card = hoop_board_card(wait->board, wait->board->rank);
    const uint64_t where = hoop_where_pack(wait->where);

    atomic_store_explicit(&card->waits_since, wait->begun, memory_order_relaxed);
    atomic_store_explicit(&card->where, where, memory_order_relaxed);
    if (wait->record)
        wait->record->where = where;
}

void hoop_wait_rise(struct hoop_wait *wait)
{
    struct hoop_card *card = hoop_board_card(wait->board, wait->board->rank);

    if (wait->phase == HOOP_WAIT_SLEEP)
        hoop_bell_disarm(&card->bell);
    atomic_store_explicit(&card->where, 0, memory_order_relaxed);
}

enum hoop_status hoop_wait_step(struct hoop_wait *wait)
{
    struct hoop_bell *bell = &hoop_board_card(wait->board, wait->board->rank)->bell;

    hoop_wait_settle(wait);
    switch (wait->phase) {
    case HOOP_WAIT_SPIN:
        if (wait->polls < wait->spins)
            pause_core();
        next_phase(wait);
        if (wait->polls % LOOK_EVERY_POLLS == LOOK_EVERY_POLLS - 1)
            hoop_wait_look(wait);
        break;
    case HOOP_WAIT_YIELD:
        hoop_spread_look(&wait->spread, wait->board);
        sched_yield();
        next_phase(wait);
        break;
    case HOOP_WAIT_ARM: /* the caller polls once more before we sleep */
        hoop_wait_look(wait);
        show_where(wait);
        arm(wait, bell);
        wait->phase = HOOP_WAIT_SLEEP;
        break;
    case HOOP_WAIT_SLEEP:
        if (!hoop_verdict_stands(wait->board)) {
            wait->sleeps++;
            sleep_for_news(wait, bell);
        } else {
            hoop_bell_disarm(bell);
        }
        wait->phase = HOOP_WAIT_ARM;
        break;
    }
    return hoop_verdict_stands(wait->board) ? hoop_verdict_status(hoop_verdict_get(wait->board)) : HOOP_OK;
}
