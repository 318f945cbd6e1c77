// SPDX-License-Identifier: BSD-3-Clause
/* How much do strangers at the rendezvous port delay a join?
 *
 *     junk [RANKS [RATE [BLOCKS]]]         (4 ranks, 1000 connections a second, 20 blocks)
 *
 * RANKS processes make a communicator again and again, by blocks of joins: one block in peace, one while a process of its own makes RATE
 * connections a second to a port of its own, one while it makes them to that of the rendezvous, and so on by turns, so that a machine that
 * grows slower does so for all. The second tells what strangers cost because they share the processors with the ranks here. They are, by
 * turns, one that says nothing and stays, one that asks for a web page, one that begins a hello and stays, one that leaves at once. A join's
 * time is from when all ranks are ready to when its slowest rank has its communicator. Printed are the medians and their ratios.
 *
 * A failure ends the process with a message: this is a measuring program.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "boot/id.h"

enum { RANKS_MOST = 64, JOINS = 20, BLOCKS_MOST = 1000, HELD_MOST = 4096, SETTLE_MS = 400 };

enum phase { PEACE, ELSEWHERE, HERE, PHASES };

struct meeting {
    pthread_barrier_t barrier;
    struct hoop_unique_id id;
    struct hoop_address address;
    atomic_uint_fast64_t slowest; /* ns of the last rank */
    double flooded;               /* seconds of strangers */
    atomic_int phase;
    atomic_long strangers, refused; /* connections made, and those that could not be */
};

static struct meeting *meeting;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "junk: %s: %s\n", what, why);
    exit(1);
}

/* ---- strangers ---- */

struct crowd {
    int held[HELD_MOST];
    int next, kind;
};

/* One connection: told something or nothing, and kept, in the place of the oldest one, or closed. taker: who takes it, -1: the rendezvous. */
static void annoy(struct crowd *crowd, const struct hoop_address *address, int taker)
{
    static const char *const talk[] = {"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "hoopjoin", NULL};
    const char *words = talk[crowd->kind++ % 4];
    size_t moved;
    int sock, taken;

    if (hoop_sock_connect(address, &sock, hoop_deadline(1)) != HOOP_OK) {
        atomic_fetch_add(&meeting->refused, 1);
        return;
    }
    atomic_fetch_add(&meeting->strangers, 1);
    if (taker >= 0 && hoop_sock_accept(taker, &taken) == HOOP_OK)
        close(taken);
    if (words == NULL) {
        close(sock);
        return;
    }
    if (*words)
        hoop_sock_send_some(sock, words, strlen(words), &moved);
    int *place = &crowd->held[crowd->next++ % HELD_MOST];
    if (*place >= 0)
        close(*place);
    *place = sock;
}

static void disperse(struct crowd *crowd)
{
    for (int i = 0; i < HELD_MOST; i++) {
        if (crowd->held[i] >= 0)
            close(crowd->held[i]);
        crowd->held[i] = -1;
    }
}

static void strangers(double rate)
{
    static struct crowd crowd;
    struct hoop_address own = {.family = 4, .host = {127, 0, 0, 1}};
    struct rlimit files = {HELD_MOST + 64, HELD_MOST + 64};
    const uint64_t step = (uint64_t)(1e9 / rate);
    uint64_t due = 0;
    int listener;

    setrlimit(RLIMIT_NOFILE, &files);
    memset(crowd.held, -1, sizeof crowd.held);
    if (hoop_sock_listen(&own, &listener) != HOOP_OK)
        fail("no port", hoop_last_error(NULL));
    for (;; due += step) {
        const int phase = atomic_load(&meeting->phase);
        if (phase == PEACE) {
            disperse(&crowd);
            poll(NULL, 0, 5);
            due = hoop_now();
            continue;
        }
        while (hoop_now() < due)
            poll(NULL, 0, 1);
        annoy(&crowd, phase == HERE ? &meeting->address : &own, phase == HERE ? -1 : listener);
    }
}

/* ---- ranks ---- */

static void make_id(void)
{
    struct hoop_id parts;

    if (hoop_unique_id_create(&meeting->id) != HOOP_OK || hoop_id_decode(&meeting->id, &parts) != HOOP_OK)
        fail("no id", hoop_last_error(NULL));
    meeting->address = parts.address;
}

static double join_once(int rank, int ranks)
{
    struct hoop_comm *comm;

    if (rank == 0) {
        make_id();
        atomic_store(&meeting->slowest, 0);
    }
    pthread_barrier_wait(&meeting->barrier);
    const uint64_t begin = hoop_now();
    if (hoop_comm_init_rank(&comm, ranks, &meeting->id, rank) != HOOP_OK)
        fail("no communicator", hoop_last_error(NULL));
    const uint64_t took = hoop_now() - begin;
    uint_fast64_t slowest = atomic_load(&meeting->slowest);
    while (took > slowest && !atomic_compare_exchange_weak(&meeting->slowest, &slowest, took))
        ;
    pthread_barrier_wait(&meeting->barrier);
    const double ms = (double)atomic_load(&meeting->slowest) / 1e6;
    hoop_comm_destroy(comm);
    pthread_barrier_wait(&meeting->barrier);
    return ms;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The first block is in peace, so there is an address when strangers are let loose on it. */
static void measure(int rank, int ranks, int blocks, double *ms[PHASES])
{
    for (int block = 0; block < PHASES * blocks; block++) {
        const int phase = block % PHASES;
        const uint64_t begin = hoop_now();
        if (rank == 0) {
            atomic_store(&meeting->phase, phase);
            poll(NULL, 0, SETTLE_MS);
        }
        pthread_barrier_wait(&meeting->barrier);
        for (int i = 0; i < JOINS; i++)
            ms[phase][block / PHASES * JOINS + i] = join_once(rank, ranks);
        if (rank == 0 && phase != PEACE)
            meeting->flooded += (double)(hoop_now() - begin) / 1e9;
    }
}

static void print(int ranks, int joins, double *ms[PHASES])
{
    static const char *const name[] = {"in peace", "elsewhere", "strangers"};

    for (int i = 0; i < PHASES; i++) {
        qsort(ms[i], (size_t)joins, sizeof **ms, by_size);
        printf("%-10s %d joins of %d ranks: %.2f ms (p50), %.2f (p90), %.2f (p99), %.2f (most)\n", name[i], joins,
               ranks, ms[i][joins / 2], ms[i][joins * 9 / 10], ms[i][joins * 99 / 100], ms[i][joins - 1]);
    }
    printf("strangers / in peace %.3f, strangers / elsewhere %.3f (medians), with %.0f connections a second (%ld "
           "refused)\n",
           ms[HERE][joins / 2] / ms[PEACE][joins / 2], ms[HERE][joins / 2] / ms[ELSEWHERE][joins / 2],
           (double)atomic_load(&meeting->strangers) / meeting->flooded, atomic_load(&meeting->refused));
}

static void set_up(int ranks)
{
    pthread_barrierattr_t shared;

    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (meeting == MAP_FAILED)
        fail("mmap", strerror(errno));
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting->barrier, &shared, (unsigned)ranks);
}

/* A process of its own; it ends with this one. */
static bool is_child(void)
{
    const pid_t process = fork();

    if (process < 0)
        fail("fork", strerror(errno));
    if (process == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return process == 0;
}

/* An argument from 1 to most, or what holds without it. */
static double read_number(int argc, char **argv, int at, double otherwise, double most)
{
    char *end;

    if (at >= argc)
        return otherwise;
    const double number = strtod(argv[at], &end);
    if (*end || !(number >= 1 && number <= most))
        fail(argv[at], "usage: junk [RANKS [RATE [BLOCKS]]]");
    return number;
}

int main(int argc, char **argv)
{
    const int ranks = (int)read_number(argc, argv, 1, 4, RANKS_MOST),
              blocks = (int)read_number(argc, argv, 3, 20, BLOCKS_MOST);
    const double rate = read_number(argc, argv, 2, 1000, 100000);
    double *ms[PHASES];

    set_up(ranks);
    for (int i = 0; i < PHASES; i++)
        if ((ms[i] = calloc((size_t)blocks * JOINS, sizeof **ms)) == NULL)
            fail("calloc", strerror(errno));
    if (is_child())
        strangers(rate);
    int rank = ranks - 1; /* this process is rank 0, which serves the ids */
    while (rank > 0 && !is_child())
        rank--;
    measure(rank, ranks, blocks, ms);
    if (rank == 0)
        print(ranks, blocks * JOINS, ms);
    return 0;
}
