// SPDX-License-Identifier: BSD-3-Clause
/* Going on without the dead: the survivors of a communicator that has failed agree on who they are, and make a smaller one.
 *
 * They agree through the board of the old one, which outlives its ranks. An attempt goes through three states, kept in one word that only
 * compare-and-swap changes, so that all see the same outcome whoever dies meanwhile:
 *
 *     gathering   every rank comes, or is found lost, or gives up. When that is so for all, the first one that has come notes who is in,
 *                 makes a unique id and tries to set
 *     fixed       who is in makes the new communicator with that id, and says so. When all have, any of them sets
 *     done        and returns. When one is lost or fails before that, any of them sets
 *     gathering   of the next attempt; what was made is thrown away.
 *
 * Who is in, and the id, stand on the card of the rank that fixes the attempt, which the word names; so what a rank wrote that died, or was
 * stopped, before it could set the word means nothing.
 *
 * Over several hosts each has a board with a word of its own, and the monitor threads carry words and cards from board to board
 * (health/council.h). The word is turned on one host only, that of the lowest rank that lives, which the word names as its view; the
 * others follow. If that rank is lost, the view passes to the next one's host. Each board's word takes the new view over, from when on it
 * follows the old one no more, and the new host turns nothing before it has seen that of all, and taken over the farthest that any had come
 * to. So an attempt that was done anywhere where somebody lives is done everywhere. Nobody returns before all boards say so: it might
 * have been the only one that could tell.
 */
#include <poll.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "boot/boot.h"
#include "comm/comm.h"
#include "health/council.h"
#include "health/verdict.h"

enum { PAUSE_MS = 1, MORE_ATTEMPTS = 8 };

static const double first_patience = 2; /* seconds to make the new communicator; twice as many at each attempt */

struct shrinking {
    struct hoop_comm *comm;
    uint64_t deadline;
    uint64_t *beat, *since; /* of each rank: its heartbeat as last seen, and when that changed */
    double silent, patience;
};

/* ---- who is there ---- */

/* Dead, gone, or silent for too long. */
static bool is_lost(struct shrinking *shrinking, int rank)
{
    const struct hoop_board *board = shrinking->comm->board;
    struct hoop_card *card = hoop_board_card(board, rank);
    const uint64_t beat = atomic_load(&card->heartbeat), now = hoop_now();

    if (rank == board->rank)
        return false;
    if (hoop_health_gone(board, rank) || atomic_load(&card->shrinks) == UINT32_MAX)
        return true;
    if (beat != shrinking->beat[rank] || shrinking->since[rank] == 0) {
        shrinking->beat[rank] = beat;
        shrinking->since[rank] = now;
    }
    return (double)(now - shrinking->since[rank]) > shrinking->silent * 1e9;
}

/* ---- the word ---- */

static struct hoop_shrink_word look(const struct hoop_board *board)
{
    return hoop_shrink_unpack(atomic_load(&board->head->shrink));
}

/* Is that rank's host another one? */
static bool is_far(const struct shrinking *shrinking, int rank)
{
    const struct hoop_hosts *hosts = &shrinking->comm->hosts;

    return hosts->count > 1 && hosts->of[rank] != hosts->own;
}

/* The other hosts' words as last heard: that of the rank's. */
static struct hoop_shrink_word far_word(const struct shrinking *shrinking, int rank)
{
    return hoop_shrink_unpack(atomic_load(&hoop_board_card(shrinking->comm->board, rank)->shrink_word));
}

/* Note it if the rank whose host turns the word is lost. */
static void look_for_view(struct shrinking *shrinking)
{
    const struct hoop_board *board = shrinking->comm->board;
    struct hoop_shrink_word word = look(board);

    if (shrinking->comm->hosts.count == 1)
        return;
    while ((int)word.view < board->rank && is_lost(shrinking, (int)word.view))
        word.view++;
    hoop_shrink_follow(board, word, false);
}

/* Does this host turn the word, and know how far all others have come? Takes over what another has from the host that did so before. */
static bool in_charge(struct shrinking *shrinking)
{
    const struct hoop_board *board = shrinking->comm->board;
    const struct hoop_shrink_word word = look(board);

    if (shrinking->comm->hosts.count == 1)
        return true;
    if (is_far(shrinking, (int)word.view))
        return false;
    for (int rank = 0; rank < board->shape.ranks; rank++) {
        struct hoop_shrink_word other = far_word(shrinking, rank);
        if (!is_far(shrinking, rank) || is_lost(shrinking, rank))
            continue;
        if (other.view < word.view)
            return false;
        other.view = word.view;
        hoop_shrink_follow(board, other, true);
    }
    return true;
}

/* From that progress to that, if this host may; the view is what it is just now. */
static void turn(struct shrinking *shrinking, struct hoop_shrink_word from, struct hoop_shrink_word to)
{
    const struct hoop_board *board = shrinking->comm->board;
    uint64_t old;

    from.view = to.view = look(board).view;
    old = hoop_shrink_pack(from);
    if (in_charge(shrinking))
        atomic_compare_exchange_strong(&board->head->shrink, &old, hoop_shrink_pack(to));
}

static void give_up_attempt(struct shrinking *shrinking, struct hoop_shrink_word word)
{
    turn(shrinking, word, (struct hoop_shrink_word){.attempt = word.attempt + 1});
}

/* Is the attempt still where it was? */
static bool stands(const struct shrinking *shrinking, struct hoop_shrink_word word)
{
    return hoop_shrink_progress(look(shrinking->comm->board)) == hoop_shrink_progress(word);
}

static void rest(struct shrinking *shrinking)
{
    if (shrinking->comm->hosts.count > 1)
        hoop_watch_spread(shrinking->comm->watch);
    poll(NULL, 0, PAUSE_MS);
    look_for_view(shrinking);
}

/* Has every rank come to the attempt, or been lost? The ranks that are awaited as text. */
static bool all_settled(struct shrinking *shrinking, uint32_t attempt, char *missing, size_t size)
{
    const struct hoop_board *board = shrinking->comm->board;
    bool all = true;
    size_t used = 0;

    for (int rank = 0; rank < board->shape.ranks; rank++) {
        if (atomic_load(&hoop_board_card(board, rank)->shrinks) > attempt || is_lost(shrinking, rank))
            continue;
        if (used < size)
            used += (size_t)snprintf(missing + used, size - used, all ? "%d" : ", %d", rank);
        all = false;
    }
    return all;
}

static bool is_member(const struct hoop_board *board, int rank, struct hoop_shrink_word word)
{
    const uint64_t *members = hoop_board_card(board, (int)word.leader)->shrink_members;

    return __atomic_load_n(&members[rank / 64], __ATOMIC_RELAXED) >> rank % 64 & 1;
}

/* How many are in, and which place this rank has among them. */
static int count_members(const struct hoop_board *board, struct hoop_shrink_word word, int *place)
{
    int count = 0;

    *place = 0;
    for (int rank = 0; rank < board->shape.ranks; rank++) {
        count += is_member(board, rank, word);
        *place += rank < board->rank && is_member(board, rank, word);
    }
    return count;
}

/* ---- gathering ---- */

/* This rank is the first of those that have come: say who is in. */
static enum hoop_status fix(struct shrinking *shrinking, struct hoop_shrink_word word)
{
    const struct hoop_board *board = shrinking->comm->board;
    const struct hoop_shrink_word fixed = {
        .attempt = word.attempt, .state = HOOP_SHRINK_FIXED, .leader = (uint32_t)board->rank};
    struct hoop_card *own = hoop_board_card(board, board->rank);
    uint64_t in_words[HOOP_SHRINK_RANKS / 64] = {0};
    _Alignas(8) struct hoop_unique_id id = {{0}};
    int members = 0;

    if (!in_charge(shrinking) || !stands(shrinking, word)) {
        if (hoop_expired(shrinking->deadline))
            return hoop_fail(HOOP_ERR_TIMEOUT,
                             "hoop_comm_shrink: the other hosts have not agreed within HOOP_INIT_TIMEOUT");
        rest(shrinking);
        return HOOP_OK;
    }
    for (int rank = 0; rank < board->shape.ranks; rank++) {
        const bool in = atomic_load(&hoop_board_card(board, rank)->shrinks) > word.attempt && !is_lost(shrinking, rank);
        in_words[rank / 64] |= (uint64_t)in << rank % 64;
        members += in;
    }
    if (members > 1) {
        const enum hoop_status status = hoop_hosts_create_id(shrinking->comm, &id);
        if (status != HOOP_OK)
            return status;
    }
    hoop_shrink_copy(own->shrink_members, in_words, sizeof in_words);
    hoop_shrink_copy(own->shrink_id, &id, sizeof id);
    HOOP_FAULT_POINT(FIX);
    turn(shrinking, word, fixed);
    return HOOP_OK;
}

static enum hoop_status gather(struct shrinking *shrinking, struct hoop_shrink_word word)
{
    const struct hoop_board *board = shrinking->comm->board;
    struct hoop_card *own = hoop_board_card(board, board->rank);
    char missing[256] = "";

    if (atomic_load(&own->shrinks) <= word.attempt)
        atomic_store(&own->shrinks, word.attempt + 1);
    HOOP_FAULT_POINT(GATHER);
    if (!all_settled(shrinking, word.attempt, missing, sizeof missing)) {
        if (hoop_expired(shrinking->deadline))
            return hoop_fail(HOOP_ERR_TIMEOUT,
                             "hoop_comm_shrink: ranks that live have not called it within HOOP_INIT_TIMEOUT: %s",
                             missing);
        rest(shrinking);
        return HOOP_OK;
    }
    for (int rank = 0; rank < board->rank; rank++)
        if (!is_lost(shrinking, rank)) { /* it fixes the attempt */
            rest(shrinking);
            return HOOP_OK;
        }
    return fix(shrinking, word);
}

/* ---- making ---- */

/* Wait until the attempt is done, or the next one begins. */
static void await_others(struct shrinking *shrinking, struct hoop_shrink_word word)
{
    const struct hoop_board *board = shrinking->comm->board;

    while (stands(shrinking, word)) {
        bool all = true, lost = false;
        for (int rank = 0; rank < board->shape.ranks; rank++) {
            struct hoop_card *card = hoop_board_card(board, rank);
            if (!is_member(board, rank, word))
                continue;
            all &= atomic_load(&card->shrink_made) > word.attempt;
            lost |= is_lost(shrinking, rank) || atomic_load(&card->shrink_failed) > word.attempt;
        }
        if (all)
            turn(shrinking, word,
                 (struct hoop_shrink_word){.attempt = word.attempt, .state = HOOP_SHRINK_DONE, .leader = word.leader});
        else if (lost)
            give_up_attempt(shrinking, word);
        if (stands(shrinking, word))
            rest(shrinking);
    }
}

/* The attempt is done here: wait until all hosts know it. */
static void await_news(struct shrinking *shrinking, struct hoop_shrink_word word)
{
    const int ranks = shrinking->comm->ranks;

    for (int rank = 0; rank < ranks; rank++)
        while (is_far(shrinking, rank) && !is_lost(shrinking, rank) &&
               hoop_shrink_progress(far_word(shrinking, rank)) < hoop_shrink_progress(word))
            rest(shrinking);
}

/* Can another attempt help? A peer that dies in the middle shows as whatever it was needed for just then: a socket that nobody listens on
 * (HOOP_ERR_SETUP), a process that is not there (HOOP_ERR_SYSTEM). The number of attempts is bounded, so it is not asked which it was. */
static bool is_worth(enum hoop_status status)
{
    return status != HOOP_ERR_MEMORY && status != HOOP_ERR_ARG;
}

static enum hoop_status make(struct shrinking *shrinking, struct hoop_shrink_word word, struct hoop_comm **made)
{
    struct hoop_comm *comm = shrinking->comm;
    const struct hoop_board *board = comm->board;
    _Alignas(8) struct hoop_unique_id id;
    int place;
    const int members = count_members(board, word, &place);

    if (!is_member(board, board->rank, word))
        return hoop_fail(HOOP_ERR_PEER,
                         "hoop_comm_shrink: the other ranks went on without rank %d, which had shown no "
                         "sign of life for HOOP_SILENT",
                         board->rank);
    hoop_shrink_copy(&id, hoop_board_card(board, (int)word.leader)->shrink_id, sizeof id);
    comm->patience = shrinking->patience;
    const enum hoop_status status = hoop_comm_make(made, members, members > 1 ? &id : NULL, place, comm);
    shrinking->patience *= 2;
    if (status != HOOP_OK) {
        *made = NULL;
        atomic_store(&hoop_board_card(board, board->rank)->shrink_failed, word.attempt + 1);
        await_others(shrinking, word);
        return is_worth(status) ? HOOP_OK : status;
    }
    HOOP_FAULT_POINT(MAKE);
    atomic_store(&hoop_board_card(board, board->rank)->shrink_made, word.attempt + 1);
    HOOP_FAULT_POINT(AWAIT);
    await_others(shrinking, word);
    const struct hoop_shrink_word now = look(board);
    if (now.attempt == word.attempt && now.state == HOOP_SHRINK_DONE) {
        await_news(shrinking, now);
        return HOOP_OK;
    }
    hoop_comm_free(*made);
    *made = NULL;
    return HOOP_OK;
}

static enum hoop_status run(struct shrinking *shrinking, struct hoop_comm **made)
{
    const struct hoop_board *board = shrinking->comm->board;
    const struct hoop_shrink_word begin = look(board);
    enum hoop_status status = HOOP_OK;

    if (begin.state == HOOP_SHRINK_DONE && is_member(board, board->rank, begin))
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_shrink: the communicator has been shrunk before");
    while (status == HOOP_OK && *made == NULL) {
        const struct hoop_shrink_word word = look(board);
        if (word.attempt > (uint32_t)(board->shape.ranks + MORE_ATTEMPTS))
            status = hoop_fail(HOOP_ERR_PEER, "hoop_comm_shrink: %u attempts have failed; the last one: %s",
                               word.attempt, hoop_error_text());
        else
            status = word.state == HOOP_SHRINK_GATHERING ? gather(shrinking, word) : make(shrinking, word, made);
    }
    if (status != HOOP_OK) /* the others need not wait for us */
        atomic_store(&hoop_board_card(board, board->rank)->shrinks, UINT32_MAX);
    return status;
}

enum hoop_status hoop_comm_shrink(struct hoop_comm *comm, struct hoop_comm **smaller)
{
    struct shrinking shrinking = {.comm = comm, .patience = first_patience};
    struct hoop_comm *made = NULL;

    if (comm == NULL || smaller == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_shrink: comm or smaller is NULL");
    if (comm->forks != hoop_comm_forks())
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "hoop_comm_shrink: this process was forked after the communicator was made");
    if (hoop_comm_async_error(comm) == HOOP_OK)
        return hoop_fail(HOOP_ERR_ARG,
                         "hoop_comm_shrink: the communicator has not failed; hoop_comm_split makes smaller ones "
                         "of it");
    if (comm->ranks > HOOP_SHRINK_RANKS)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "hoop_comm_shrink: %d ranks; it is for %d at most", comm->ranks,
                         HOOP_SHRINK_RANKS);
    hoop_comm_drain(comm);
    shrinking.silent = hoop_setting_number(&comm->settings, HOOP_SETTING_SILENT);
    shrinking.deadline = hoop_deadline(hoop_setting_number(&comm->settings, HOOP_SETTING_INIT_TIMEOUT));
    shrinking.beat = hoop_calloc(2 * (size_t)comm->ranks, sizeof *shrinking.beat);
    if (shrinking.beat == NULL) {
        atomic_store(&hoop_board_card(comm->board, comm->rank)->shrinks, UINT32_MAX);
        return HOOP_ERR_MEMORY;
    }
    shrinking.since = shrinking.beat + comm->ranks;
    const enum hoop_status status = run(&shrinking, &made);
    hoop_free(shrinking.beat);
    if (status == HOOP_OK)
        *smaller = made;
    return status;
}
