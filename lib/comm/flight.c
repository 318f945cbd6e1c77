// SPDX-License-Identifier: BSD-3-Clause
/* Looking at a communicator from outside, or after its end.
 *
 * Everything that tells of its state lies at the beginning of the board, without pointers: verdict, cards, recorders. A snapshot is a copy
 * of that, a file holds the same bytes, and one reader serves both. The copy is of another process's memory and may hold anything:
 * nothing in it is followed, numbers are compared with what there is.
 */
#include "hoop/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "comm/comm.h"
#include "comm/flight.h"
#include "health/verdict.h"

enum { MOST_FILES = 100 };

struct hoop_flight {
    struct hoop_board board; /* its base is our copy */
    uint64_t now;            /* when it was taken, CLOCK_MONOTONIC of its host */
    bool dumped;
};

/* ---- writing ---- */

static int create_file(const struct hoop_comm *comm, const char *prefix, char *name, size_t size)
{
    int file = -1;

    for (int number = 0; number < MOST_FILES; number++) {
        snprintf(name, size, number ? "%s.%d.%d" : "%s.%d", prefix, comm->rank, number);
        file = open(name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return file;
}

static bool write_all(int file, const unsigned char *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t written = write(file, data, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        data += written;
        bytes -= (size_t)written;
    }
    return true;
}

void hoop_flight_dump(struct hoop_comm *comm)
{
    const char *prefix = comm->settings.value[HOOP_SETTING_FLIGHT].word;
    char name[HOOP_SETTING_WORD + 32];
    uint64_t none = 0;

    if (*prefix == 0 || !atomic_compare_exchange_strong(&comm->board->head->dumped, &none, hoop_now()))
        return;
    const int file = create_file(comm, prefix, name, sizeof name);
    const bool written = file >= 0 && write_all(file, comm->board->base, comm->board->flat_at);
    const int error = errno;
    if (file >= 0)
        close(file);
    if (written)
        hoop_log(HOOP_LOG_WARN, comm->rank, "what the ranks of this host did last is in %s: hoop-status %s shows it",
                 name, name);
    else
        hoop_log(HOOP_LOG_WARN, comm->rank, "what the ranks of this host did last cannot be written to %s: %s", name,
                 strerror(error));
}

/* ---- reading ---- */

static enum hoop_status read_at(int descriptor, void *to, size_t bytes, size_t offset)
{
    while (bytes > 0) {
        const ssize_t got = pread(descriptor, to, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot read a communicator's memory");
        if (got == 0)
            return hoop_fail(HOOP_ERR_ARG, "no memory of a communicator: it ends at byte %zu", offset);
        to = (unsigned char *)to + got;
        bytes -= (size_t)got;
        offset += (size_t)got;
    }
    return HOOP_OK;
}

enum hoop_status hoop_flight_open(struct hoop_flight **flight, int descriptor)
{
    struct hoop_board_head head;
    struct hoop_board board;
    struct stat file;

    if (flight == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_flight_open: flight is NULL");
    enum hoop_status status = read_at(descriptor, &head, sizeof head, 0);
    if (status == HOOP_OK)
        status = hoop_board_picture(&board, &head);
    if (status != HOOP_OK)
        return status;
    if (fstat(descriptor, &file) < 0 || (size_t)file.st_size < board.flat_at)
        return hoop_fail(HOOP_ERR_ARG, "the file of a communicator's memory is cut off: it needs %zu bytes",
                         board.flat_at);
    struct hoop_flight *new = hoop_calloc(1, sizeof *new);
    unsigned char *copy = hoop_calloc_aligned(HOOP_LINE, board.flat_at, 1);
    status = new &&copy ? read_at(descriptor, copy, board.flat_at, 0) : HOOP_ERR_MEMORY;
    if (status != HOOP_OK) {
        hoop_free(copy);
        hoop_free(new);
        return status;
    }
    board.base = copy;
    board.head = (struct hoop_board_head *)copy;
    new->dumped = (size_t)file.st_size == board.flat_at;
    new->now = new->dumped ? atomic_load(&board.head->dumped) : hoop_now();
    new->board = board;
    *flight = new;
    return HOOP_OK;
}

void hoop_flight_close(struct hoop_flight *flight)
{
    if (flight == NULL)
        return;
    hoop_free(flight->board.base);
    hoop_free(flight);
}

void hoop_flight_ask(const struct hoop_flight *flight, struct hoop_flight_facts *facts)
{
    const struct hoop_verdict verdict = hoop_verdict_get(&flight->board);

    *facts = (struct hoop_flight_facts){.ranks = flight->board.shape.ranks, .dumped = flight->dumped};
    if (verdict.kind != HOOP_VERDICT_NONE)
        hoop_verdict_text(&flight->board, verdict, facts->verdict, sizeof facts->verdict);
}

/* ---- one operation ---- */

static double since(const struct hoop_flight *flight, uint64_t time)
{
    return time == 0 ? -1 : time < flight->now ? (double)(flight->now - time) / 1e9 : 0;
}

static void wait_text(uint64_t word, char *text, size_t size)
{
    static const char *const forms[] = {[HOOP_AWAIT_NOTHING] = "",
                                        [HOOP_AWAIT_START] = "rank %d to make the call",
                                        [HOOP_AWAIT_DATA] = "data from rank %d",
                                        [HOOP_AWAIT_ROOM] = "rank %d to take data",
                                        [HOOP_AWAIT_END] = "rank %d to be done with its memory",
                                        [HOOP_AWAIT_LANE] = "another lane or lent memory",
                                        [HOOP_AWAIT_AWAY] = "the network to take data"};
    const struct hoop_where where = hoop_where_unpack(word);
    size_t used = 0;

    *text = 0;
    if (where.what == HOOP_AWAIT_NOTHING || where.what > HOOP_AWAIT_AWAY)
        return;
    if (where.peer >= 0 && strstr(forms[where.what], "%d")) {
        const char *form = forms[where.what], *number = strstr(form, "%d");
        used = (size_t)snprintf(text, size, "%.*s%d%s", (int)(number - form), form, where.peer, number + 2);
    } else {
        used = (size_t)snprintf(text, size, "%s", forms[where.what]);
    }
    if (where.step > 0 && used < size)
        snprintf(text + used, size - used, ", step %u of lane %u, slice %u", where.step, where.lane, where.slice);
}

/* What a record says, in words. */
static void tell_record(const struct hoop_flight *flight, const struct hoop_record *record,
                        struct hoop_flight_call *call)
{
    const struct hoop_call shown = {
        .count = record->count,
        .kind = hoop_call_pack((struct hoop_call_kind){record->coll, record->type, record->op, record->in_place,
                                                       record->device, record->root})};

    *call = (struct hoop_flight_call){.sequence = record->sequence,
                                      .status = (enum hoop_status)record->status,
                                      .device = record->device,
                                      .age = since(flight, record->begun),
                                      .seconds = -1};
    if (record->ended >= record->begun && record->begun > 0)
        call->seconds = (double)(record->ended - record->begun) / 1e9;
    if (record->sequence == 0)
        snprintf(call->what, sizeof call->what, "%s rank %d: %" PRIu64 " %s",
                 record->coll == HOOP_POINT_SEND ? "send to" : "receive from", record->root, record->count,
                 record->type < HOOP_TYPES ? hoop_type_name((enum hoop_type)record->type) : "elements");
    else
        hoop_call_text(&shown, call->what, sizeof call->what);
    memcpy(call->plan, record->plan, sizeof record->plan);
    wait_text(record->where, call->wait, sizeof call->wait);
}

/* A call that is known from the rank's card alone. */
static void tell_card(const struct hoop_board *board, int rank, uint64_t sequence, struct hoop_flight_call *call)
{
    const struct hoop_call *shown = &hoop_board_card(board, rank)->call[sequence % HOOP_CALL_RECORDS];

    *call = (struct hoop_flight_call){.sequence = sequence, .status = HOOP_AGAIN, .age = -1, .seconds = -1};
    if (sequence > 0 && shown->sequence == sequence)
        hoop_call_text(shown, call->what, sizeof call->what);
}

static const struct hoop_recorder *recorder_of(const struct hoop_flight *flight, int rank)
{
    return hoop_board_flight(&flight->board, rank);
}

static bool is_rank(const struct hoop_flight *flight, int rank)
{
    return rank >= 0 && rank < flight->board.shape.ranks;
}

/* Is the rank on another host? Its calls are ahead of everybody's then. */
static bool is_far(const struct hoop_flight *flight, int rank)
{
    return atomic_load(&hoop_board_card(&flight->board, rank)->started) == UINT64_MAX;
}

enum hoop_status hoop_flight_call(const struct hoop_flight *flight, int rank, int back, struct hoop_flight_call *call)
{
    if (!is_rank(flight, rank) || is_far(flight, rank))
        return hoop_fail(HOOP_ERR_ARG, "hoop_flight_call: rank %d is not one of this host", rank);
    const struct hoop_recorder *recorder = recorder_of(flight, rank);
    const uint64_t next = atomic_load(&recorder->next);
    if (back < 0 || back >= HOOP_RECORDS || (uint64_t)back >= next)
        return hoop_fail(HOOP_ERR_ARG, "hoop_flight_call: %d operations back is not known of rank %d", back, rank);
    tell_record(flight, &recorder->record[(next - 1 - (uint64_t)back) % HOOP_RECORDS], call);
    return HOOP_OK;
}

/* ---- one rank ---- */

static enum hoop_flight_state state_of(const struct hoop_flight *flight, int rank, struct hoop_flight_call *call)
{
    const struct hoop_card *card = hoop_board_card(&flight->board, rank);
    const uint64_t started = hoop_card_started(card);

    if (is_far(flight, rank)) {
        tell_card(&flight->board, rank, started, call);
        return atomic_load(&card->life) == HOOP_LIFE_LEFT ? HOOP_FLIGHT_LEFT
               : started > 0                              ? HOOP_FLIGHT_INSIDE
                                                          : HOOP_FLIGHT_ABSENT;
    }
    if (hoop_flight_call(flight, rank, 0, call) != HOOP_OK || (call->sequence > 0 && call->sequence < started))
        tell_card(&flight->board, rank, started, call); /* it has told the others of it, and no more */
    if (atomic_load(&card->life) == HOOP_LIFE_LEFT)
        return HOOP_FLIGHT_LEFT;
    if (atomic_load(&card->life) == HOOP_LIFE_NONE && flight->board.shape.ranks > 1)
        return HOOP_FLIGHT_ABSENT;
    if (call->sequence == 0 && call->what[0] == 0)
        return HOOP_FLIGHT_OUTSIDE;
    if (call->status != HOOP_AGAIN)
        return call->status == HOOP_OK ? HOOP_FLIGHT_OUTSIDE : HOOP_FLIGHT_FAILED;
    return atomic_load(&card->where) ? HOOP_FLIGHT_WAITING : HOOP_FLIGHT_INSIDE;
}

enum hoop_status hoop_flight_rank(const struct hoop_flight *flight, int rank, struct hoop_flight_rank *facts)
{
    if (!is_rank(flight, rank))
        return hoop_fail(HOOP_ERR_ARG, "hoop_flight_rank: rank %d is not one of 0 to %d", rank,
                         flight->board.shape.ranks - 1);
    const struct hoop_card *card = hoop_board_card(&flight->board, rank);
    *facts = (struct hoop_flight_rank){
        .process = card->process, .here = !is_far(flight, rank), .waits_for = -1, .waits = -1};
    facts->operations = facts->here ? atomic_load(&recorder_of(flight, rank)->next) : hoop_card_started(card);
    facts->state = state_of(flight, rank, &facts->call);
    if (facts->state != HOOP_FLIGHT_WAITING)
        return HOOP_OK;
    const struct hoop_where where = hoop_where_unpack(atomic_load(&card->where));
    facts->waits_for = is_rank(flight, where.peer) ? where.peer : -1;
    facts->waits = since(flight, atomic_load(&card->waits_since));
    wait_text(atomic_load(&card->where), facts->call.wait, sizeof facts->call.wait);
    return HOOP_OK;
}

/* ---- who is late ---- */

static uint64_t started_of(const struct hoop_flight *flight, int rank)
{
    return hoop_card_started(hoop_board_card(&flight->board, rank));
}

/* The ranks that have not made the call that others wait in. chained: also those that wait for another one of them. */
static int behind(const struct hoop_flight *flight, uint64_t newest, bool chained, int *late)
{
    int count = 0;

    for (int rank = 0; rank < flight->board.shape.ranks; rank++) {
        struct hoop_flight_rank one;
        hoop_flight_rank(flight, rank, &one);
        const bool known = one.here || started_of(flight, rank) > 0,
                   innocent = !chained && one.waits_for >= 0 && started_of(flight, one.waits_for) < newest;
        if (one.state != HOOP_FLIGHT_LEFT && started_of(flight, rank) < newest && known && !innocent)
            late[count++] = rank;
    }
    return count;
}

/* The ranks that others wait for, and that wait for nobody. */
static int waited_for(const struct hoop_flight *flight, int *late)
{
    const int ranks = flight->board.shape.ranks;
    struct hoop_flight_rank one;
    int count = 0;

    memset(late, 0, (size_t)ranks * sizeof *late); /* first whether a rank is waited for */
    for (int rank = 0; rank < ranks; rank++) {
        hoop_flight_rank(flight, rank, &one);
        if (one.waits_for >= 0)
            late[one.waits_for] = 1;
    }
    for (int rank = 0; rank < ranks; rank++) {
        hoop_flight_rank(flight, rank, &one);
        if (late[rank] && one.state != HOOP_FLIGHT_WAITING)
            late[count++] = rank;
    }
    return count;
}

int hoop_flight_late(const struct hoop_flight *flight, int *late, char *why, size_t size)
{
    const struct hoop_verdict verdict = hoop_verdict_get(&flight->board);
    uint64_t newest = 0;
    int waiting = 0, count;

    if (verdict.kind == HOOP_VERDICT_DIED || verdict.kind == HOOP_VERDICT_SILENT || verdict.kind == HOOP_VERDICT_LEFT) {
        late[0] = verdict.a;
        snprintf(why, size, "the communicator has failed because of it");
        return 1;
    }
    for (int rank = 0; rank < flight->board.shape.ranks; rank++) {
        const uint64_t started = started_of(flight, rank);
        struct hoop_flight_rank one;
        hoop_flight_rank(flight, rank, &one);
        waiting += one.state == HOOP_FLIGHT_WAITING;
        newest = started > newest ? started : newest;
    }
    if (waiting == 0) {
        snprintf(why, size, "no rank waits");
        return 0;
    }
    count = behind(flight, newest, false, late);
    if (count == 0)
        count = behind(flight, newest, true, late);
    if (count > 0) {
        snprintf(why, size, "others are in call %" PRIu64 ", which is not made there yet", newest);
        return count;
    }
    count = waited_for(flight, late);
    snprintf(why, size, count > 0 ? "others wait for it, and it waits for nobody" : "all ranks wait for one another");
    return count;
}
