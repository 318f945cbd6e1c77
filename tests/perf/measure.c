// SPDX-License-Identifier: BSD-3-Clause
#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RANKS_MOST = 64, CALLS_MOST = 1000, CALLS_LEAST = 5, WARMUPS = 3, MISSING_AFTER = 60 /* seconds */ };

/* What one rank writes and the others read; two lines apart, because processors fetch them in pairs. */
struct measure_board {
    struct place {
        _Alignas(128) _Atomic uint64_t barriers;
        _Atomic long number, turn;
    } places[RANKS_MOST];
    _Atomic long trips; /* round trips measured by ranks 0 and 1 */
    double times[RANKS_MOST][CALLS_MOST];
};

void measure_fail(const struct measure *m, const char *what, const char *why)
{
    fprintf(stderr, "rank %d: %s: %s\n", m->rank, what, why);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum measure_call call_of(const struct measure *m, const char *name)
{
    static const char *const names[MEASURE_CALLS] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter",
                                                     "all_to_all"};

    for (int i = 0; i < MEASURE_CALLS; i++)
        if (strcmp(names[i], name) == 0)
            return (enum measure_call)i;
    measure_fail(m, name, "is not measured");
    return ALL_REDUCE;
}

static int rank_of_launcher(void)
{
    static const char *const names[] = {"HOOP_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (getenv(names[i]) != NULL)
            return (int)strtol(getenv(names[i]), NULL, 10);
    return -1;
}

/* Take the rank's processor of the list, or all of them. */
static void bind_process(struct measure *m, const char *list, bool alone)
{
    int processors[RANKS_MOST], count = 0;
    cpu_set_t set;
    char *end;

    for (const char *at = list; count < RANKS_MOST; at = end + 1) {
        processors[count++] = (int)strtol(at, &end, 10);
        if (*end != ',')
            break;
    }
    m->rank = rank_of_launcher();
    if (m->rank < 0)
        measure_fail(m, "no rank", "none of the known launchers has set its variable");
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++)
        if (!alone || i == m->rank % count)
            CPU_SET((size_t)processors[i], &set);
    m->crowded = !alone;
    if (count > 1)
        memcpy(m->processors, processors, sizeof m->processors);
    if (sched_setaffinity(0, sizeof(set), &set) != 0)
        measure_fail(m, list, strerror(errno));
}

void measure_begin(struct measure *m, int argc, char **argv)
{
    const char *processors = NULL;
    bool alone = false;

    *m = (struct measure){.seconds = 0.4, .processors = {-1, -1}};
    for (int option; (option = getopt(argc, argv, "f:c:k:pmbs:")) != -1;)
        switch (option) {
        case 'f':
            m->meeting = optarg;
            break;
        case 'c':
            processors = optarg;
            break;
        case 'k':
            m->call = call_of(m, optarg);
            break;
        case 'p':
            alone = true;
            break;
        case 'm':
            m->ordinary = true;
            break;
        case 'b':
            m->own = true;
            break;
        case 's':
            m->seconds = strtod(optarg, NULL);
            break;
        default:
            exit(2);
        }
    for (; optind < argc && m->size_count < 64; optind++) {
        const size_t bytes = strtoul(argv[optind], NULL, 10) / sizeof(float) * sizeof(float);

        m->sizes[m->size_count++] = bytes;
        m->most = bytes > m->most ? bytes : m->most;
    }
    if (m->meeting == NULL || m->size_count == 0) {
        fprintf(stderr, "usage: %s -f MEETING_FILE [-k CALL] [-c PROCESSORS [-p]] [-m] [-b] [-s SECONDS] BYTES...\n",
                argv[0]);
        exit(2);
    }
    if (processors != NULL)
        bind_process(m, processors, alone);
}

void measure_join(struct measure *m, int rank, int ranks)
{
    const int descriptor = open(m->meeting, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *board;

    m->rank = rank;
    m->ranks = ranks;
    if (ranks > RANKS_MOST)
        measure_fail(m, "too many ranks", "64 at most");
    if (descriptor < 0 || ftruncate(descriptor, sizeof(struct measure_board)) != 0)
        measure_fail(m, m->meeting, strerror(errno));
    board = mmap(NULL, sizeof(struct measure_board), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (board == MAP_FAILED)
        measure_fail(m, m->meeting, strerror(errno));
    close(descriptor);
    m->board = board;
    memset(m->board->times[rank], 0, sizeof(m->board->times[rank]));
    measure_barrier(m);
}

static void wait_for_rank(const struct measure *m, int rank, uint64_t barrier)
{
    const _Atomic uint64_t *there = &m->board->places[rank].barriers;
    const unsigned patience = m->crowded ? 50 : 10000;
    double deadline = 0;

    for (unsigned i = 1; atomic_load_explicit(there, memory_order_acquire) < barrier; i++) {
        if (i < patience)
            continue;
        sched_yield();
        if (i % 1024 != 0)
            continue;
        if (deadline == 0)
            deadline = now() + MISSING_AFTER;
        if (now() > deadline)
            measure_fail(m, "barrier", "another rank is missing");
    }
}

void measure_barrier(struct measure *m)
{
    _Atomic uint64_t *own = &m->board->places[m->rank].barriers;
    const uint64_t barrier = atomic_load_explicit(own, memory_order_relaxed) + 1;

    atomic_store_explicit(own, barrier, memory_order_release);
    for (int rank = 0; rank < m->ranks; rank++)
        wait_for_rank(m, rank, barrier);
}

void measure_publish(struct measure *m, long number)
{
    atomic_store_explicit(&m->board->places[m->rank].number, number, memory_order_relaxed);
}

long measure_published(const struct measure *m, int rank)
{
    return atomic_load_explicit(&m->board->places[rank].number, memory_order_relaxed);
}

size_t measure_room(const struct measure *m)
{
    return (m->most + 64 + 4095) / 4096 * 4096;
}

float *measure_ordinary(const struct measure *m)
{
    void *memory = aligned_alloc(4096, measure_room(m));

    if (memory == NULL)
        measure_fail(m, "buffers", "no memory");
    memset(memory, 0, measure_room(m)); /* pages of their own */
    return memory;
}

/* Small integers, so that every order of summation gives the same bits. */
static float base_value(int rank, int call)
{
    return (float)(rank + 1 + call % 8);
}

static void rewrite(float *send, size_t count, int rank, int call)
{
    const float base = base_value(rank, call);

    for (size_t i = 0; i < count; i++)
        send[i] = base + (float)((unsigned)i & 15);
}

/* What an element of the result must be. */
static float expected(const struct measure *m, size_t i, size_t block, int call)
{
    const unsigned own = (unsigned)((size_t)m->rank * block + i % block) & 15;
    float sum = 0;

    for (int rank = 0; rank < m->ranks; rank++)
        sum += base_value(rank, call);
    switch (m->call) {
    case BROADCAST:
        return base_value(0, call) + (float)((unsigned)i & 15);
    case ALL_GATHER:
        return base_value((int)(i / block), call) + (float)((unsigned)(i % block) & 15);
    case REDUCE_SCATTER:
        return sum + (float)m->ranks * (float)own;
    case ALL_TO_ALL:
        return base_value((int)(i / block), call) + (float)own;
    default:
        return sum + (float)m->ranks * (float)((unsigned)i & 15);
    }
}

static void check(const struct measure *m, const float *recv, size_t count, int call)
{
    const size_t block = count < (size_t)m->ranks ? 1 : count / (size_t)m->ranks;

    if (m->call == BROADCAST && m->rank == 0)
        return;
    for (size_t i = 0; i < (m->call == REDUCE_SCATTER ? block : count); i++)
        if (recv[i] != expected(m, i, block, call))
            measure_fail(m, "wrong result", "an element of the last call is not what it should be");
}

/* All ranks come together outside the time of any call. */
static void come_together(struct measure *m, const struct measure_peer *peer)
{
    if (m->own && peer->barrier != NULL)
        peer->barrier(peer->context);
    else
        measure_barrier(m);
}

/* Where ranks share processors, who is ready early waits before it rewrites its buffer: that would take the processor from ranks that
 * are still in the call, and count as their time. */
static void run(struct measure *m, const struct measure_peer *peer, size_t count, int calls)
{
    for (int call = 0; call < calls; call++) {
        double start;

        rewrite(peer->send, count, m->rank, call);
        come_together(m, peer);
        start = now();
        peer->run(peer->context, m->call, peer->send, peer->recv, count);
        m->board->times[m->rank][call] = now() - start;
        if (m->crowded)
            come_together(m, peer);
    }
    measure_barrier(m);
}

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The median over the calls of the slowest rank's time. */
static double slowest_median(struct measure *m, int calls)
{
    double slowest[CALLS_MOST];

    for (int call = 0; call < calls; call++) {
        slowest[call] = 0;
        for (int rank = 0; rank < m->ranks; rank++)
            if (m->board->times[rank][call] > slowest[call])
                slowest[call] = m->board->times[rank][call];
    }
    measure_barrier(m); /* all have read */
    qsort(slowest, (size_t)calls, sizeof(*slowest), by_size);
    return slowest[(calls - 1) / 2];
}

/* The least time of a word from rank 0 to rank 1 and back, each on a processor of its own. */
static double exchange_words(struct measure *m)
{
    enum { TURNS = 2000 };
    struct place *own = &m->board->places[m->rank], *other = &m->board->places[m->rank ^ 1];
    double least = 0;

    for (int turn = 0; turn < TURNS; turn++) {
        const long word = ++m->turns;
        const double start = now();

        if (m->rank == 0)
            atomic_store_explicit(&own->turn, word, memory_order_release);
        while (atomic_load_explicit(&other->turn, memory_order_acquire) < word)
            ;
        if (m->rank == 1)
            atomic_store_explicit(&own->turn, word, memory_order_release);
        const double took = now() - start;
        least = least == 0 || took < least ? took : least;
    }
    return least * 1e9;
}

enum { NOT_OURS = -1 }; /* a trip was made, but by other ranks */

/* The same where ranks share the processors: the two take one each, the others sleep. */
static double exchange_apart(struct measure *m)
{
    const struct timespec moment = {.tv_nsec = 200000};
    cpu_set_t shared, single;
    double least = 0;

    m->trips++;
    if (m->rank > 1) {
        while (atomic_load(&m->board->trips) < 2 * m->trips)
            nanosleep(&moment, NULL);
        return NOT_OURS;
    }
    CPU_ZERO(&single);
    CPU_SET((size_t)m->processors[m->rank], &single);
    if (sched_getaffinity(0, sizeof(shared), &shared) != 0 || sched_setaffinity(0, sizeof(single), &single) != 0)
        measure_fail(m, "sched_setaffinity", strerror(errno));
    least = exchange_words(m);
    if (sched_setaffinity(0, sizeof(shared), &shared) != 0)
        measure_fail(m, "sched_setaffinity", strerror(errno));
    atomic_fetch_add(&m->board->trips, 1);
    return least;
}

/* Nanoseconds that a word takes from rank 0 to rank 1 and back, undisturbed: where the processors are virtual, it tells whether they
 * share a core's caches just now. 0: there are no two ranks or processors. */
static double round_trip(struct measure *m)
{
    measure_barrier(m);
    if (m->ranks < 2 || m->processors[0] < 0)
        return 0;
    if (m->crowded)
        return exchange_apart(m);
    return m->rank > 1 ? NOT_OURS : exchange_words(m);
}

double measure_size(struct measure *m, const struct measure_peer *peer, size_t bytes)
{
    const size_t all = bytes / sizeof(float),
                 count = m->call < ALL_GATHER ? all : all / (size_t)m->ranks * (size_t)m->ranks;
    double start, each, median;
    int calls;

    if (m->trip[0] == 0)
        m->trip[0] = round_trip(m);
    run(m, peer, count, WARMUPS); /* what a library sets up in its first calls would leave time for only a few */
    start = now();
    run(m, peer, count, WARMUPS);
    slowest_median(m, WARMUPS);
    m->board->times[m->rank][0] = (now() - start) / WARMUPS; /* with what surrounds the call */
    measure_barrier(m);
    each = slowest_median(m, 1);
    calls = each * CALLS_MOST <= m->seconds ? CALLS_MOST : (int)(m->seconds / each);
    calls = calls < CALLS_LEAST ? CALLS_LEAST : calls;
    run(m, peer, count, calls);
    median = slowest_median(m, calls);
    check(m, peer->recv, count, calls - 1);
    m->trip[1] = round_trip(m);
    return median;
}

void measure_print(struct measure *m, size_t bytes, double seconds, const char *how)
{
    if (m->rank == 0) {
        printf("%zu %.3f %s", bytes, seconds * 1e6, how);
        if (m->trip[1] > 0)
            printf(" ~%.0f,%.0f", m->trip[0], m->trip[1]);
        printf("\n");
        fflush(stdout);
    }
    m->trip[0] = m->trip[1];
}

void measure_title(const struct measure *m, const char *title)
{
    if (m->rank == 0)
        printf("# %.*s\n", (int)strcspn(title, "\n"), title);
}

void measure_sizes(struct measure *m, const struct measure_peer *peer, const char *(*how)(void *context))
{
    for (int i = 0; i < m->size_count; i++) {
        const double seconds = measure_size(m, peer, m->sizes[i]);

        measure_print(m, m->sizes[i], seconds, how != NULL ? how(peer->context) : "");
    }
}
