// SPDX-License-Identifier: BSD-3-Clause
/* After a failure: the hosts' survivors hear of each other, whoever of them has died.
 *
 * The star of far.h ends with rank 0. So once a verdict stands, the speaker of each host, its first rank that lives, tells those of all
 * others what stands on its host's board about shrinking (comm/shrink.c): the word, who is in, and of each rank of the host whether it
 * lives and how far it has come. What it hears it notes on the cards of the ranks concerned, where all ranks of its host see it.
 * What is told is state, not news: if a speaker dies with something untold, its successor tells it.
 *
 * Of two speakers each connects to the other, so each learns it when nobody listens there any more: a rank that refuses is dead, and the next
 * one of its host is tried. The monitor threads do all this, so a rank that has not called hoop_comm_shrink yet is known to live.
 */
#ifndef HOOP_HEALTH_COUNCIL_H
#define HOOP_HEALTH_COUNCIL_H

#include "hoop/transport.h"
#include "mem/board.h"

/* ---- the word: how far an agreement is, as it stands in board->head->shrink */

enum hoop_shrink_state { HOOP_SHRINK_GATHERING, HOOP_SHRINK_FIXED, HOOP_SHRINK_DONE };

struct hoop_shrink_word {
    uint32_t
        view; /* the lowest rank that lives, as far as is known: its host alone turns the word, and others follow */
    uint32_t attempt; /* 0, 1, 2, … */
    enum hoop_shrink_state state;
    uint32_t leader; /* who has fixed the attempt */
};

enum { HOOP_SHRINK_LEADER_BITS = 14, HOOP_SHRINK_STATE_AT = HOOP_SHRINK_LEADER_BITS, HOOP_SHRINK_ATTEMPT_AT = 16 };
enum { HOOP_SHRINK_VIEW_AT = 48, HOOP_SHRINK_ATTEMPTS = 1 << 16 };

/* All but the view; it only grows, as the view does. */
static inline uint64_t hoop_shrink_progress(struct hoop_shrink_word word)
{
    return (uint64_t)word.attempt << HOOP_SHRINK_ATTEMPT_AT | (uint64_t)word.state << HOOP_SHRINK_STATE_AT |
           word.leader;
}

static inline uint64_t hoop_shrink_pack(struct hoop_shrink_word word)
{
    return (uint64_t)word.view << HOOP_SHRINK_VIEW_AT | hoop_shrink_progress(word);
}

static inline struct hoop_shrink_word hoop_shrink_unpack(uint64_t word)
{
    return (struct hoop_shrink_word){.view = (uint32_t)(word >> HOOP_SHRINK_VIEW_AT),
                                     .attempt = (uint32_t)(word >> HOOP_SHRINK_ATTEMPT_AT) & (HOOP_SHRINK_ATTEMPTS - 1),
                                     .state = (enum hoop_shrink_state)(word >> HOOP_SHRINK_STATE_AT & 3),
                                     .leader = (uint32_t)word & ((1u << HOOP_SHRINK_LEADER_BITS) - 1)};
}

/* Copy words of a card's members or id: the monitor thread may look at what the rank itself writes anew for a later attempt, and then
 * means nothing to anybody. to and from are aligned; bytes a multiple of 8. */
static inline void hoop_shrink_copy(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
        __atomic_store_n((uint64_t *)to + i, __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
}

/* Move this board's word on to that one: to its view, and if `rules` says that it comes from the host that turns it, to its progress.
 * Never back. */
void hoop_shrink_follow(const struct hoop_board *board, struct hoop_shrink_word word, bool rules);

/* ---- the council */

/* Where a rank is. */
struct hoop_council_place {
    int host;
    const unsigned char *address; /* of its watch domain */
    size_t size;
};

struct hoop_council;

/* Lanes of the watch domain: odd ones are those on which the higher rank connects. */
enum { HOOP_COUNCIL_LANE_DOWN = 1, HOOP_COUNCIL_LANE_UP = 2, HOOP_COUNCIL_LANES };

/* place: one for each rank, the caller's until the council is freed, as the domain is.   Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_council_new(struct hoop_council **council, struct hoop_domain *domain,
                                  const struct hoop_council_place *place);

/* NULL is allowed. The links go with it. */
void hoop_council_free(struct hoop_council *council);

/* Hear and tell what is new, if a verdict stands. NULL: nothing. On one thread at a time, that of the domain. */
void hoop_council_tick(struct hoop_council *council, struct hoop_board *board);

/* Tell that this rank leaves. NULL: nothing. */
void hoop_council_leave(struct hoop_council *council, struct hoop_board *board);

/* What one rank says to another; frame: HOOP_FAR_FRAME bytes. For the council, and for tests. */
void hoop_council_hear(const struct hoop_council *council, struct hoop_board *board, int from,
                       const unsigned char *frame);

#endif
