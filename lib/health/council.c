// SPDX-License-Identifier: BSD-3-Clause
/* A frame holds the host's word, what the word's leader has noted, and some of the host's ranks. */
#include "health/council.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "health/far.h"
#include "health/verdict.h"
#include "wire/cursor.h"

enum {
    TAG = 0x636e636c,
    MEMBERS = HOOP_SHRINK_RANKS / 64,
    ID = sizeof(struct hoop_unique_id),
    HEAD = 8 + ID + 8 * MEMBERS + 4,
    ONE = 5 * 4 + 8,
    MOST = (HOOP_FAR_FRAME - HEAD) / ONE /* ranks in a frame */
};

/* ns: between signs of life; for a host's first rank to be followed by an answer: it may be stopped, and another one may speak */
static const uint64_t beat_every = 250000000u, patience = 300000000u;

_Static_assert(offsetof(struct hoop_card, shrink_id) % 8 == 0 && ID % 8 == 0, "copied in words");

/* What is between this rank and one of another host. */
struct seat {
    struct hoop_link *out, *in; /* we have connected; it has, or may */
    uint64_t told;              /* the version of which it has been told */
};

struct host {
    uint64_t since; /* when we first connected to a rank of it; 0: not yet */
    bool heard;
};

struct hoop_council {
    struct hoop_domain *domain;
    const struct hoop_council_place *place;
    bool sits; /* this rank is its host's speaker */
    bool leaves;
    int locals, frames;
    uint64_t version, next_beat;
    unsigned char *now, *last; /* frames: of this tick, and as they are being told */
    struct host *host;
    struct seat seat[];
};

/* ---- the word ---- */

void hoop_shrink_follow(const struct hoop_board *board, struct hoop_shrink_word word, bool rules)
{
    uint64_t old = atomic_load(&board->head->shrink), new;

    do {
        struct hoop_shrink_word next = hoop_shrink_unpack(old);
        const uint32_t view = word.view > next.view ? word.view : next.view;
        if (rules && word.view == view && hoop_shrink_progress(word) > hoop_shrink_progress(next))
            next = word;
        next.view = view;
        new = hoop_shrink_pack(next);
    } while (new != old && !atomic_compare_exchange_weak(&board->head->shrink, &old, new));
}

/* ---- making ---- */

static bool is_far(const struct hoop_council *council, int rank)
{
    return council->place[rank].host != council->place[council->domain->rank].host;
}

enum hoop_status hoop_council_new(struct hoop_council **council, struct hoop_domain *domain,
                                  const struct hoop_council_place *place)
{
    const size_t ranks = (size_t)domain->ranks, head = sizeof **council + ranks * sizeof(struct seat);
    struct hoop_council *new = hoop_calloc(1, head + ranks * sizeof *new->host);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->host = (struct host *)((char *)new + head);
    new->domain = domain;
    new->place = place;
    for (int rank = 0; rank < domain->ranks; rank++)
        new->locals += !is_far(new, rank);
    new->frames = (new->locals + MOST - 1) / MOST;
    new->now = hoop_calloc(2 * (size_t) new->frames, HOOP_FAR_FRAME);
    if (new->now == NULL) {
        hoop_free(new);
        return HOOP_ERR_MEMORY;
    }
    new->last = new->now + (size_t) new->frames *HOOP_FAR_FRAME;
    *council = new;
    return HOOP_OK;
}

void hoop_council_free(struct hoop_council *council)
{
    if (council == NULL)
        return;
    for (int rank = 0; rank < council->domain->ranks; rank++) {
        const struct seat *seat = &council->seat[rank];
        if (seat->out)
            council->domain->transport->disconnect(seat->out);
        if (seat->in)
            council->domain->transport->disconnect(seat->in);
    }
    hoop_free(council->now);
    hoop_free(council);
}

/* ---- hearing ---- */

static void lift(_Atomic uint32_t *to, uint32_t value)
{
    uint32_t old = atomic_load(to);

    while (old < value && !atomic_compare_exchange_weak(to, &old, value))
        ;
}

static bool is_word(const struct hoop_board *board, struct hoop_shrink_word word)
{
    const uint32_t ranks = (uint32_t)board->shape.ranks;

    return word.view < ranks && word.leader < ranks && word.state <= HOOP_SHRINK_DONE;
}

static void hear_rank(struct hoop_board *board, int rank, struct hoop_shrink_word word, struct hoop_reader *reader)
{
    struct hoop_card *card = hoop_board_card(board, rank);
    const uint64_t old = atomic_load(&card->shrink_word), new = hoop_shrink_pack(word);

    lift(&card->shrinks, hoop_get_u32(reader));
    lift(&card->shrink_made, hoop_get_u32(reader));
    lift(&card->shrink_failed, hoop_get_u32(reader));
    const uint32_t life = hoop_get_u32_range(reader, 0, 2 * HOOP_LIFE_DEAD + 1);
    if (life / 2 >= HOOP_LIFE_LEFT)
        lift(&card->life, life / 2);
    lift(&card->still, life % 2);
    atomic_store(&card->heartbeat, hoop_get_u64(reader));
    if (new > old)
        atomic_store(&card->shrink_word, new);
}

void hoop_council_hear(const struct hoop_council *council, struct hoop_board *board, int from,
                       const unsigned char *frame)
{
    struct hoop_reader reader = hoop_reader(frame, HOOP_FAR_FRAME);
    const struct hoop_shrink_word word = hoop_shrink_unpack(hoop_get_u64(&reader));
    uint64_t members[MEMBERS], id[ID / 8];

    hoop_get_bytes(&reader, id, ID);
    if (!is_word(board, word))
        return;
    for (int i = 0; i < MEMBERS; i++)
        members[i] = hoop_get_u64(&reader);
    const struct hoop_shrink_word own = hoop_shrink_unpack(atomic_load(&board->head->shrink));
    if (is_far(council, (int)word.leader) && word.state != HOOP_SHRINK_GATHERING &&
        hoop_shrink_progress(word) > hoop_shrink_progress(own)) { /* else it is known, or means nothing */
        struct hoop_card *card = hoop_board_card(board, (int)word.leader);
        hoop_shrink_copy(card->shrink_members, members, sizeof members);
        hoop_shrink_copy(card->shrink_id, id, ID);
    }
    const uint32_t count = hoop_get_u32_range(&reader, 0, MOST);
    for (uint32_t i = 0; i < count && !reader.failed; i++) {
        const int rank = (int)hoop_get_u32_range(&reader, 0, (uint32_t)board->shape.ranks - 1);
        if (reader.failed || council->place[rank].host != council->place[from].host)
            return;
        hear_rank(board, rank, word, &reader);
    }
    hoop_shrink_follow(board, word, council->place[from].host == council->place[word.view].host);
}

/* Nobody is there any more, or has ever been. */
static void note_end(struct hoop_board *board, int rank)
{
    uint32_t none = HOOP_LIFE_NONE;

    atomic_compare_exchange_strong(&hoop_board_card(board, rank)->life, &none, HOOP_LIFE_DEAD);
}

/* The oldest frame of a link; NULL: there is none, or no link. Notes the link's end. */
static const void *peek(struct hoop_board *board, const struct hoop_link *link)
{
    const void *frame;

    if (link == NULL || link->status != HOOP_OK)
        return NULL;
    if (link->transport->peek((struct hoop_link *)(uintptr_t)link, HOOP_FAR_FRAME, TAG, &frame) == HOOP_OK)
        return frame;
    if (link->status != HOOP_OK)
        note_end(board, link->peer);
    return NULL;
}

static void listen_to(const struct hoop_council *council, struct hoop_board *board, int rank)
{
    const struct seat *seat = &council->seat[rank];
    const void *frame;

    while ((frame = peek(board, seat->in)) != NULL) {
        council->host[council->place[rank].host].heard = true;
        hoop_council_hear(council, board, rank, frame);
        seat->in->transport->release(seat->in);
    }
    peek(board, seat->out); /* nothing comes there but its end */
}

/* ---- telling ---- */

static bool is_present(const struct hoop_board *board, int rank)
{
    const struct hoop_card *card = hoop_board_card(board, rank);

    return atomic_load(&card->life) < HOOP_LIFE_LEFT && atomic_load(&card->still) == 0;
}

static struct hoop_link *connect_to(const struct hoop_council *council, int rank, bool out)
{
    const struct hoop_council_place *place = &council->place[rank];
    const bool down = (council->domain->rank > rank) == out; /* the higher rank connects */
    struct hoop_link *link = NULL;

    council->domain->transport->connect(council->domain, rank, down ? HOOP_COUNCIL_LANE_DOWN : HOOP_COUNCIL_LANE_UP,
                                        place->address, place->size, &link);
    return link; /* NULL: not this time */
}

/* Is that the rank of its host to tell? The first that is there; any, if nobody of the host has been heard for a while. */
static bool is_told(const struct hoop_council *council, const struct hoop_board *board, int rank, uint64_t now)
{
    const int number = council->place[rank].host;
    const struct host *host = &council->host[number];

    if (!is_present(board, rank))
        return false;
    if (host->since > 0 && !host->heard && now - host->since > patience)
        return true;
    for (int before = 0; before < rank; before++)
        if (council->place[before].host == number && is_present(board, before))
            return false;
    return true;
}

/* Whoever of a host speaks can be heard. */
static void connect_all(struct hoop_council *council, const struct hoop_board *board, uint64_t now)
{
    for (int rank = 0; rank < board->shape.ranks; rank++) {
        struct host *host = &council->host[council->place[rank].host];
        struct seat *seat = &council->seat[rank];

        if (!is_far(council, rank))
            continue;
        if (seat->in == NULL)
            seat->in = connect_to(council, rank, false);
        if (seat->out != NULL || !is_told(council, board, rank, now))
            continue;
        seat->out = connect_to(council, rank, true);
        host->since = host->since > 0 ? host->since : now;
    }
}

static void put_rank(const struct hoop_council *council, const struct hoop_board *board, int rank, bool beat,
                     struct hoop_writer *writer, const unsigned char *last)
{
    const struct hoop_card *card = hoop_board_card(board, rank);
    const uint32_t life = council->leaves && rank == board->rank ? (uint32_t)HOOP_LIFE_LEFT : atomic_load(&card->life);

    hoop_put_u32(writer, (uint32_t)rank);
    hoop_put_u32(writer, atomic_load(&card->shrinks));
    hoop_put_u32(writer, atomic_load(&card->shrink_made));
    hoop_put_u32(writer, atomic_load(&card->shrink_failed));
    hoop_put_u32(writer, 2 * life + atomic_load(&card->still));
    if (beat)
        hoop_put_u64(writer, atomic_load(&card->heartbeat));
    else /* not news by itself */
        hoop_put_bytes(writer, last + (writer->at - (unsigned char *)council->now), 8);
}

static void write_frames(struct hoop_council *council, const struct hoop_board *board, bool beat)
{
    const uint64_t word = atomic_load(&board->head->shrink);
    const struct hoop_card *leader = hoop_board_card(board, (int)hoop_shrink_unpack(word).leader);
    uint64_t members[MEMBERS], id[ID / 8];
    int rank = 0;

    hoop_shrink_copy(members, leader->shrink_members, sizeof members);
    hoop_shrink_copy(id, leader->shrink_id, ID);

    for (int i = 0; i < council->frames; i++) {
        unsigned char *frame = council->now + (size_t)i * HOOP_FAR_FRAME;
        struct hoop_writer writer = hoop_writer(frame, HOOP_FAR_FRAME);
        const int left = council->locals - i * MOST, count = left < MOST ? left : MOST;

        hoop_put_u64(&writer, word);
        hoop_put_bytes(&writer, id, ID);
        for (int k = 0; k < MEMBERS; k++)
            hoop_put_u64(&writer, members[k]);
        hoop_put_u32(&writer, (uint32_t)count);
        for (int k = 0; k < count; k++, rank++) {
            while (is_far(council, rank))
                rank++;
            put_rank(council, board, rank, beat, &writer, council->last);
        }
    }
    const size_t bytes = (size_t)council->frames * HOOP_FAR_FRAME;
    if (memcmp(council->now, council->last, bytes) != 0) {
        memcpy(council->last, council->now, bytes);
        council->version++;
    }
}

static void tell(const struct hoop_council *council, struct seat *seat)
{
    if (seat->out == NULL || seat->out->status != HOOP_OK || seat->told == council->version)
        return;
    for (int i = 0; i < council->frames; i++)
        if (seat->out->transport->send(seat->out, council->last + (size_t)i * HOOP_FAR_FRAME, HOOP_FAR_FRAME, TAG,
                                       HOOP_SEND_STAGED) != HOOP_OK)
            return; /* all of it again, another time */
    seat->told = council->version;
}

/* ---- a tick ---- */

static bool speaks(const struct hoop_council *council, const struct hoop_board *board)
{
    for (int rank = 0; rank < board->rank; rank++)
        if (!is_far(council, rank) && is_present(board, rank))
            return false;
    return true;
}

void hoop_council_tick(struct hoop_council *council, struct hoop_board *board)
{
    const uint64_t now = hoop_now();

    if (council == NULL || !hoop_verdict_stands(board))
        return;
    council->sits = council->sits || speaks(council, board);
    if (!council->sits)
        return;
    const bool beat = now >= council->next_beat;
    for (int rank = 0; rank < board->shape.ranks; rank++)
        listen_to(council, board, rank);
    connect_all(council, board, now);
    write_frames(council, board, beat);
    for (int rank = 0; rank < board->shape.ranks; rank++)
        tell(council, &council->seat[rank]);
    if (beat)
        council->next_beat = now + beat_every;
}

void hoop_council_leave(struct hoop_council *council, struct hoop_board *board)
{
    if (council == NULL)
        return;
    council->leaves = true;
    hoop_council_tick(council, board);
}
