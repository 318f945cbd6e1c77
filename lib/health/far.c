// SPDX-License-Identifier: BSD-3-Clause
/* A frame says all: the verdict's word, whether its sender leaves, and perhaps the card of a rank. */
#include "health/far.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "health/verdict.h"
#include "wire/cursor.h"

enum { TAG = 0x68616c65 };
static const uint64_t beat_every = 250000000u; /* ns */
static const double longest_tick =
    0.1; /* seconds: what one tick counts for at most, so that nobody dies of our own sleep */

enum hoop_status hoop_far_new(struct hoop_far **far, struct hoop_domain *domain, int ranks, int links, double silent)
{
    const size_t head = sizeof **far + (size_t)links * sizeof(struct hoop_far_link),
                 words = (size_t)ranks * sizeof(uint64_t);
    struct hoop_far *new = hoop_calloc(1, head + ((size_t)links + 1) * words);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->domain = domain;
    new->silent = silent;
    new->seen = (uint64_t *)((char *)new + head);
    for (int i = 0; i < links; i++) {
        new->link[i].quiet = -1;
        new->link[i].card = new->seen + (size_t)ranks *(size_t)(i + 1);
    }
    *far = new;
    return HOOP_OK;
}

void hoop_far_free(struct hoop_far *far)
{
    if (far)
        hoop_council_free(far->council);
    hoop_free(far);
}

bool hoop_far_busy(const struct hoop_far *far, const struct hoop_board *board)
{
    return far->links > 0 || hoop_verdict_stands(board);
}

/* ---- telling ---- */

/* The latest calls that a rank has made, and that its kernels have begun. */
struct standing {
    uint64_t started, begun;
};

static struct standing standing_of(const struct hoop_board *board, int rank)
{
    struct hoop_card *card = hoop_board_card(board, rank);

    return (struct standing){hoop_card_started(card), atomic_load(&card->begun)};
}

/* Both only grow, so different ones have different keys for as long as anybody lives. */
static uint64_t key_of(struct standing where)
{
    return where.started + (where.begun << 32 | where.begun >> 32);
}

/* The head of a frame. rank < 0: no card. */
static struct hoop_writer begin_frame(const struct hoop_board *board, bool leaving, int rank, struct standing where,
                                      unsigned char frame[HOOP_FAR_FRAME])
{
    struct hoop_writer writer = hoop_writer(frame, HOOP_FAR_FRAME);

    memset(frame, 0, HOOP_FAR_FRAME);
    hoop_put_u64(&writer, hoop_verdict_word(board));
    hoop_put_u32(&writer, leaving);
    hoop_put_u32(&writer, (uint32_t)(rank + 1));
    hoop_put_u64(&writer, where.started);
    hoop_put_u64(&writer, where.begun);
    return writer;
}

static bool send_frame(const struct hoop_far_link *one, const unsigned char frame[HOOP_FAR_FRAME])
{
    return one->link->transport->send(one->link, frame, HOOP_FAR_FRAME, TAG, HOOP_SEND_STAGED) == HOOP_OK;
}

/* What rank has called. False: not now. The rank may go on meanwhile; the reader looks at each record's own number. */
static bool tell_card(const struct hoop_board *board, struct hoop_far_link *one, int rank, struct standing where)
{
    const struct hoop_card *card = hoop_board_card(board, rank);
    unsigned char frame[HOOP_FAR_FRAME];
    struct hoop_writer writer = begin_frame(board, false, rank, where, frame);

    for (int i = 0; i < HOOP_CALL_RECORDS; i++) {
        const struct hoop_call *call = &card->call[i];
        hoop_put_u64(&writer, __atomic_load_n(&call->sequence, __ATOMIC_ACQUIRE));
        hoop_put_u64(&writer, __atomic_load_n(&call->fingerprint, __ATOMIC_ACQUIRE));
        hoop_put_u64(&writer, __atomic_load_n(&call->count, __ATOMIC_ACQUIRE));
        hoop_put_u64(&writer, __atomic_load_n(&call->kind, __ATOMIC_ACQUIRE));
    }
    if (hoop_card_started(card) != where.started || !send_frame(one, frame))
        return false;
    one->card[rank] = key_of(where);
    one->told = hoop_verdict_word(board);
    return true;
}

/* Tell of ranks that stand still. */
static void tell_cards(struct hoop_far *far, const struct hoop_board *board)
{
    for (int rank = 0; rank < board->shape.ranks; rank++) {
        const struct standing where = standing_of(board, rank);
        const uint64_t key = key_of(where);

        for (int i = 0; i < far->links && far->seen[rank] == key; i++)
            if (!far->link[i].over && far->link[i].card[rank] != key)
                tell_card(board, &far->link[i], rank, where);
        far->seen[rank] = key;
    }
}

static void tell(struct hoop_far *far, const struct hoop_board *board, bool beat, bool leaving)
{
    const uint64_t word = hoop_verdict_word(board);
    unsigned char frame[HOOP_FAR_FRAME];

    begin_frame(board, leaving, -1, (struct standing){0, 0}, frame);
    for (int i = 0; i < far->links; i++) {
        struct hoop_far_link *one = &far->link[i];
        if ((leaving || !one->over) && (beat || one->told != word) && send_frame(one, frame))
            one->told = word;
    }
}

/* ---- hearing ---- */

/* Note what a rank of another host has called. */
static void note_card(struct hoop_board *board, struct hoop_reader *reader, int rank, struct standing where)
{
    struct hoop_card *card = hoop_board_card(board, rank);

    if (atomic_load(&card->started) != UINT64_MAX)
        return; /* one of our own */
    if (where.begun > atomic_load(&card->begun))
        atomic_store(&card->begun, where.begun);
    if (where.started <= atomic_load(&card->heard))
        return; /* old news, which others pass on */
    for (int i = 0; i < HOOP_CALL_RECORDS; i++) {
        struct hoop_call *call = &card->call[i];
        const uint64_t sequence = hoop_get_u64(reader);
        __atomic_store_n(&call->sequence, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&call->fingerprint, hoop_get_u64(reader), __ATOMIC_RELEASE);
        __atomic_store_n(&call->count, hoop_get_u64(reader), __ATOMIC_RELEASE);
        __atomic_store_n(&call->kind, hoop_get_u64(reader), __ATOMIC_RELEASE);
        __atomic_store_n(&call->sequence, sequence, __ATOMIC_RELEASE);
    }
    atomic_store(&card->heard, where.started);
}

static void hear(struct hoop_board *board, struct hoop_far_link *one, const unsigned char *frame)
{
    struct hoop_reader reader = hoop_reader(frame, HOOP_FAR_FRAME);
    const uint64_t word = hoop_get_u64(&reader);
    const bool leaving = hoop_get_u32(&reader) != 0;
    const int rank = (int)hoop_get_u32_range(&reader, 0, (uint32_t)board->shape.ranks) - 1;
    const uint64_t started = hoop_get_u64(&reader), begun = hoop_get_u64(&reader);

    if (leaving) {
        one->over = true;
        atomic_store(&hoop_board_card(board, one->link->peer)->life, HOOP_LIFE_LEFT);
    }
    if (rank >= 0)
        note_card(board, &reader, rank, (struct standing){started, begun});
    hoop_verdict_take(board, word);
}

/* The link has ended: a death, unless something else is known to be the matter. */
static void note_end(const struct hoop_far *far, struct hoop_board *board, struct hoop_far_link *one)
{
    one->over = true;
    if (!far->rests && !hoop_verdict_stands(board))
        hoop_verdict_pass(board, (struct hoop_verdict){HOOP_VERDICT_DIED, one->link->peer, far->domain->rank, 0});
}

static void listen_to(struct hoop_far *far, struct hoop_board *board, struct hoop_far_link *one, double tick)
{
    const struct hoop_transport *way = one->link->transport;
    const void *frame;

    if (one->quiet >= 0)
        one->quiet += tick;
    while (!one->over && way->peek(one->link, HOOP_FAR_FRAME, TAG, &frame) == HOOP_OK) {
        one->quiet = 0;
        hear(board, one, frame);
        way->release(one->link);
    }
    if (one->over)
        return;
    if (one->link->status != HOOP_OK)
        note_end(far, board, one);
    else if (one->quiet > far->silent && !far->rests)
        hoop_verdict_pass(board, (struct hoop_verdict){HOOP_VERDICT_SILENT, one->link->peer, far->domain->rank, 0});
}

void hoop_far_tick(struct hoop_far *far, struct hoop_board *board)
{
    const uint64_t now = hoop_now();
    const double since = far->last ? (double)(now - far->last) / 1e9 : 0;
    const bool beat = now >= far->next_beat;

    far->last = now;
    if (!hoop_far_busy(far, board))
        return;
    far->domain->transport->progress(far->domain);
    hoop_council_tick(far->council, board);
    for (int i = 0; i < far->links; i++)
        listen_to(far, board, &far->link[i], since < longest_tick ? since : longest_tick);
    tell_cards(far, board);
    tell(far, board, beat, false);
    if (beat)
        far->next_beat = now + beat_every;
}

int hoop_far_unheard(const struct hoop_far *far)
{
    for (int i = 0; i < far->links; i++)
        if (far->link[i].quiet < 0 && !far->link[i].over)
            return far->link[i].link->peer;
    return -1;
}

void hoop_far_leave(struct hoop_far *far, struct hoop_board *board)
{
    far->rests = true;
    far->domain->transport->progress(far->domain);
    hoop_council_leave(far->council, board);
    tell(far, board, true, true);
}
