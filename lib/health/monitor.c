// SPDX-License-Identifier: BSD-3-Clause
/* The monitor thread. It starts with the process's first watch and ends with the last one. */
#include "health/monitor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "health/verdict.h"

enum { TICKS_TO_SILENCE = 10, MOST_TICK_MS = 500, AWAIT_MS = 1 };

struct peer {
    uint64_t heartbeat; /* as last seen */
    int quiet;          /* own ticks since it moved, in ms */
    int lifeline;
};

struct hoop_watch {
    struct hoop_watch *next;
    struct hoop_board *board;
    struct hoop_far *far; /* NULL: none */
    double silent;
    bool holding; /* the monitor thread holds our life lock */
    bool leaving;
    struct peer peer[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct hoop_watch *watches;
static pthread_t thread;
static bool running;
static int waker = -1; /* eventfd: look at the list again */

/* ---- death marks ---- */

static void init_life(struct hoop_card *card)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&card->life_lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    card->process = (int32_t)getpid();
}

/* Whoever finds a death keeps it: the lock tells it for sure only once. Asked again, trylock may find it taken (seen with glibc 2.36), as if
 * the owner lived. */
static bool note_death(struct hoop_card *card)
{
    uint32_t alive = HOOP_LIFE_ALIVE;

    atomic_compare_exchange_strong(&card->life, &alive, HOOP_LIFE_DEAD);
    return true;
}

/* Is the owner of this card, who has not left, dead? */
static bool is_dead(struct hoop_card *card)
{
    if (atomic_load_explicit(&card->life, memory_order_acquire) == HOOP_LIFE_DEAD)
        return true;
    switch (pthread_mutex_trylock(&card->life_lock)) {
    case EOWNERDEAD:
        pthread_mutex_unlock(&card->life_lock);
        return note_death(card);
    case ENOTRECOVERABLE:
        return note_death(card);
    case 0: /* given back: the rank is leaving */
        pthread_mutex_unlock(&card->life_lock);
        return false;
    default:
        return false;
    }
}

bool hoop_health_gone(const struct hoop_board *board, int rank)
{
    struct hoop_card *card = hoop_board_card(board, rank);
    const uint32_t life = atomic_load_explicit(&card->life, memory_order_acquire);

    return life == HOOP_LIFE_LEFT || (life != HOOP_LIFE_NONE && is_dead(card));
}

void hoop_health_look(struct hoop_board *board, uint64_t sequence)
{
    for (int rank = 0; rank < board->shape.ranks; rank++) {
        struct hoop_card *card = hoop_board_card(board, rank);
        const uint32_t life = atomic_load_explicit(&card->life, memory_order_acquire);
        enum hoop_verdict_kind kind = HOOP_VERDICT_NONE;

        if (rank == board->rank)
            continue;
        if (life != HOOP_LIFE_NONE && life != HOOP_LIFE_LEFT && is_dead(card))
            kind = HOOP_VERDICT_DIED;
        else if (life == HOOP_LIFE_LEFT && atomic_load(&card->started) < sequence)
            kind = HOOP_VERDICT_LEFT;
        if (kind != HOOP_VERDICT_NONE) {
            hoop_verdict_pass(board, (struct hoop_verdict){kind, rank, board->rank, (unsigned)sequence});
            return;
        }
    }
}

/* ---- one watch, seen from the thread ---- */

static void check_silence(struct hoop_watch *watch, int tick_ms)
{
    struct hoop_board *board = watch->board;

    for (int rank = 0; rank < board->shape.ranks; rank++) {
        struct hoop_card *card = hoop_board_card(board, rank);
        struct peer *peer = &watch->peer[rank];
        const uint64_t heartbeat = atomic_load_explicit(&card->heartbeat, memory_order_relaxed);

        if (rank == board->rank || atomic_load(&card->life) != HOOP_LIFE_ALIVE)
            continue;
        peer->quiet = heartbeat == peer->heartbeat ? peer->quiet + tick_ms : 0;
        peer->heartbeat = heartbeat;
        if (peer->quiet <= (int)(watch->silent * 1000))
            continue;
        atomic_store(&card->still, 1);
        hoop_verdict_pass(board, (struct hoop_verdict){HOOP_VERDICT_SILENT, rank, board->rank, 0});
    }
}

/* A lifeline that ended: the peer's process is gone, unless it left in peace. */
static void check_lifeline(struct hoop_watch *watch, int rank)
{
    struct peer *peer = &watch->peer[rank];
    struct hoop_board *board = watch->board;
    char byte;
    const ssize_t got = recv(peer->lifeline, &byte, 1, MSG_DONTWAIT);

    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    close(peer->lifeline);
    peer->lifeline = -1;
    struct hoop_card *card = hoop_board_card(board, rank);
    if (atomic_load(&card->life) != HOOP_LIFE_LEFT && note_death(card))
        hoop_verdict_pass(board, (struct hoop_verdict){HOOP_VERDICT_DIED, rank, board->rank, 0});
}

static void take_life(struct hoop_watch *watch)
{
    struct hoop_card *card = hoop_board_card(watch->board, watch->board->rank);

    pthread_mutex_trylock(&card->life_lock); /* free: nobody else touches it before the next line */
    atomic_store_explicit(&card->life, HOOP_LIFE_ALIVE, memory_order_release);
    watch->holding = true;
}

static void give_life(struct hoop_watch *watch)
{
    struct hoop_card *card = hoop_board_card(watch->board, watch->board->rank);

    atomic_store(&card->life, HOOP_LIFE_LEFT);
    pthread_mutex_unlock(&card->life_lock);
    watch->holding = false;
}

/* ---- the thread ---- */

/* Take new watches in and let leaving ones go. Caller holds the lock. Returns the tick in ms. */
static int tend_watches(void)
{
    int tick = MOST_TICK_MS;

    for (struct hoop_watch **at = &watches; *at;) {
        struct hoop_watch *watch = *at;
        if (watch->leaving) {
            if (watch->far)
                hoop_far_leave(watch->far, watch->board);
            give_life(watch);
            *at = watch->next;
            continue;
        }
        if (!watch->holding)
            take_life(watch);
        const int wish = (int)(watch->silent * 1000 / TICKS_TO_SILENCE);
        tick = wish < tick ? wish : tick;
        if (watch->far && tick > HOOP_FAR_TICK_MS && hoop_far_busy(watch->far, watch->board))
            tick = HOOP_FAR_TICK_MS;
        at = &watch->next;
    }
    pthread_cond_broadcast(&changed);
    return tick > 1 ? tick : 1;
}

static void tick_watches(int tick_ms)
{
    for (struct hoop_watch *watch = watches; watch; watch = watch->next) {
        atomic_fetch_add(&hoop_board_card(watch->board, watch->board->rank)->heartbeat, 1);
        hoop_health_look(watch->board, 0);
        check_silence(watch, tick_ms);
    }
}

static void tick_far(void)
{
    for (struct hoop_watch *watch = watches; watch; watch = watch->next)
        if (watch->far)
            hoop_far_tick(watch->far, watch->board);
}

/* Lifelines of all watches, and their links to other hosts, as a poll set, grown as needed; entry 0 is the waker. Returns the number of entries. */
static size_t gather(struct pollfd **set, size_t *room)
{
    size_t count = 1;

    for (struct hoop_watch *watch = watches; watch; watch = watch->next) {
        count += watch->far != NULL;
        for (int rank = 0; rank < watch->board->shape.ranks; rank++)
            count += watch->peer[rank].lifeline >= 0;
    }
    if (count > *room) {
        struct pollfd *more = hoop_realloc(*set, count * 2, sizeof **set);
        if (more == NULL)
            return *room ? 1 : 0; /* without memory: only ticks; deaths still show in the marks */
        *set = more;
        *room = count * 2;
    }
    count = 1;
    for (struct hoop_watch *watch = watches; watch; watch = watch->next) {
        struct hoop_domain *domain = watch->far ? watch->far->domain : NULL;
        if (domain)
            (*set)[count++] = (struct pollfd){.fd = domain->transport->descriptor(domain), .events = POLLIN};
        for (int rank = 0; rank < watch->board->shape.ranks; rank++)
            if (watch->peer[rank].lifeline >= 0)
                (*set)[count++] = (struct pollfd){.fd = watch->peer[rank].lifeline, .events = POLLIN | POLLRDHUP};
    }
    (*set)[0] = (struct pollfd){.fd = waker, .events = POLLIN};
    return count;
}

static void check_lifelines(const struct pollfd *set, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (set[i].revents == 0)
            continue;
        for (struct hoop_watch *watch = watches; watch; watch = watch->next)
            for (int rank = 0; rank < watch->board->shape.ranks; rank++)
                if (watch->peer[rank].lifeline == set[i].fd)
                    check_lifeline(watch, rank);
    }
}

static void *monitor(void *unused)
{
    struct pollfd *set = NULL;
    size_t room = 0;
    uint64_t next_tick = 0;
    int tick = MOST_TICK_MS;

    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        tick = tend_watches();
        if (watches == NULL)
            break;
        const uint64_t now = hoop_now();
        if (now >= next_tick) {
            tick_watches(tick);
            next_tick = now + (uint64_t)tick * 1000000;
        }
        const size_t count = gather(&set, &room);
        const int timeout = hoop_poll_timeout(next_tick, tick);
        pthread_mutex_unlock(&lock);
        if (count == 0)
            poll(NULL, 0, timeout);
        else if (poll(set, count, timeout) < 0)
            for (size_t i = 0; i < count; i++)
                set[i].revents = 0;
        pthread_mutex_lock(&lock);
        if (count > 0) {
            eventfd_t ignored;
            if (set[0].revents)
                eventfd_read(waker, &ignored);
            check_lifelines(set, count);
        }
        tick_far();
    }
    close(waker);
    waker = -1;
    running = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    hoop_free(set);
    return NULL;
}

/* A forked child has neither the thread nor the watches. */
static void forget_all(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&changed, NULL);
    for (struct hoop_watch *watch = watches; watch; watch = watch->next)
        for (int rank = 0; rank < watch->board->shape.ranks; rank++)
            if (watch->peer[rank].lifeline >= 0)
                close(watch->peer[rank].lifeline);
    if (waker >= 0)
        close(waker);
    waker = -1;
    watches = NULL;
    running = false;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_all);
}

/* Caller holds the lock. Signals stay with the program's own threads. */
static enum hoop_status start_thread(void)
{
    sigset_t all, old;

    waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (waker < 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot make an eventfd for the monitor thread");
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    const int failed = pthread_create(&thread, NULL, monitor, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed) {
        close(waker);
        waker = -1;
        errno = failed;
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot start the monitor thread");
    }
    pthread_detach(thread);
    running = true;
    return HOOP_OK;
}

enum hoop_status hoop_watch_start(struct hoop_watch **watch, struct hoop_board *board, const int *lifeline,
                                  double silent, struct hoop_far *far)
{
    const size_t ranks = (size_t)board->shape.ranks;
    struct hoop_watch *new = hoop_calloc(1, sizeof *new + ranks * sizeof *new->peer);
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    enum hoop_status status = HOOP_OK;

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    pthread_once(&once, watch_forks);
    new->board = board;
    new->silent = silent;
    new->far = far;
    for (size_t rank = 0; rank < ranks; rank++)
        new->peer[rank].lifeline = lifeline[rank];
    init_life(hoop_board_card(board, board->rank));
    pthread_mutex_lock(&lock);
    new->next = watches;
    watches = new;
    if (!running)
        status = start_thread();
    if (status != HOOP_OK) {
        watches = new->next;
        pthread_mutex_unlock(&lock);
        hoop_free(new);
        return status;
    }
    eventfd_write(waker, 1);
    while (!new->holding)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    *watch = new;
    return HOOP_OK;
}

enum hoop_status hoop_watch_await(struct hoop_watch *watch, int cancel, uint64_t deadline)
{
    struct pollfd pause = {.fd = cancel, .events = POLLIN};

    if (watch == NULL || watch->far == NULL)
        return HOOP_OK;
    for (;;) {
        pthread_mutex_lock(&lock);
        const int peer = hoop_far_unheard(watch->far);
        pthread_mutex_unlock(&lock);
        if (peer < 0 || hoop_verdict_stands(watch->board))
            return HOOP_OK;
        if (hoop_expired(deadline))
            return hoop_fail(
                HOOP_ERR_TIMEOUT,
                "rank %d: the host of rank %d was not heard before the deadline (HOOP_INIT_TIMEOUT): do the "
                "addresses that HOOP_IFACE chooses reach each other?",
                watch->board->rank, peer);
        if (poll(&pause, 1, AWAIT_MS) > 0)
            return hoop_fail(HOOP_ERR_ABORTED, "cancelled while the hosts were joined");
    }
}

void hoop_watch_spread(struct hoop_watch *watch)
{
    if (watch == NULL || watch->far == NULL)
        return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 2; i++) /* the second time calls that have not changed since are told, too */
        hoop_far_tick(watch->far, watch->board);
    pthread_mutex_unlock(&lock);
}

void hoop_watch_rest(struct hoop_watch *watch)
{
    if (watch == NULL)
        return;
    atomic_store(&hoop_board_card(watch->board, watch->board->rank)->life, HOOP_LIFE_LEFT);
    pthread_mutex_lock(&lock);
    if (watch->far)
        hoop_far_leave(watch->far, watch->board);
    pthread_mutex_unlock(&lock);
}

void hoop_watch_stop(struct hoop_watch *watch)
{
    if (watch == NULL)
        return;
    pthread_mutex_lock(&lock);
    watch->leaving = true;
    eventfd_write(waker, 1);
    while (watch->holding)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    for (int rank = 0; rank < watch->board->shape.ranks; rank++)
        if (watch->peer[rank].lifeline >= 0)
            close(watch->peer[rank].lifeline);
    hoop_free(watch);
}
