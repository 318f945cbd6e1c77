// SPDX-License-Identifier: BSD-3-Clause
/* Time isolated collective calls of any library in the same way.
 *
 * One program a library; each is started n times by its own launcher and calls, in this order,
 *
 *     measure_begin     options, and the processors that the layout gives this rank (before the library starts its threads)
 *     measure_join      meet the other ranks
 *     measure_sizes     time all sizes and print them
 *
 * Everything between the timed calls is done here and is the same for all: a barrier and the collection of times through
 * a small shared file, not by the library under test, whose own barrier would let its ranks go more or less together.
 * (It waits by spinning, which starves a library's helper threads on the same processors: such a library takes its own.)
 * A call's time is that of its slowest rank; the figure of a size is the median of its calls. Before each call every rank
 * rewrites its send buffer, as a program would (where ranks share processors, when all have ended the call before); the last call's
 * result is checked.
 *
 * A failure ends the process with a message: these are measuring programs, not parts of the library.
 */
#ifndef HOOP_TESTS_PERF_MEASURE_H
#define HOOP_TESTS_PERF_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct measure_board; /* the shared file */

/* What is called. A size is that of the whole vector: of all ranks' blocks together where there are blocks. The root is rank 0. */
enum measure_call { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, MEASURE_CALLS };

struct measure {
    int rank, ranks;
    enum measure_call call; /* -k */
    bool ordinary;          /* -m: ordinary memory, where a library has its own kind as well */
    bool own;               /* -b: before each call the library's own barrier, if the peer has one */
    bool crowded;           /* more ranks than processors: waiting must give way */
    double seconds;         /* -s: about the most to spend on a size */
    const char *meeting;
    size_t sizes[64], most; /* bytes of the vectors, and the largest */
    int size_count;
    struct measure_board *board;
    int processors[2]; /* that two ranks have to themselves for a moment where all share them; -1: none were given */
    long turns, trips;
    double trip[2]; /* ns of a word's way there and back, before and after the latest size; 0: not known */
};

/* A library, or one way to do it. */
struct measure_peer {
    void *context;
    /* Floats, sums; count: elements of the whole vector. The root of a broadcast is to send from `send` alone. */
    void (*run)(void *context, enum measure_call call, const float *send, float *recv, size_t count);
    void (*barrier)(void *context); /* or NULL */
    float *send, *recv;             /* of measure_room() bytes */
};

/* Read the command line and bind this process to its processors. The rank is taken from the launcher's environment. */
void measure_begin(struct measure *m, int argc, char **argv);

/* Meet the other ranks, as the library numbers them. */
void measure_join(struct measure *m, int rank, int ranks);

/* Bytes that each buffer needs: the largest size and a cache line. */
size_t measure_room(const struct measure *m);

/* Ordinary memory of that many bytes, aligned to pages. */
float *measure_ordinary(const struct measure *m);

/* The median time of a call, in seconds; the same on all ranks. */
double measure_size(struct measure *m, const struct measure_peer *peer, size_t bytes);

/* Print one row: size, microseconds, and a word on how it was done (or ""). Rank 0 prints, others do nothing. */
void measure_print(struct measure *m, size_t bytes, double seconds, const char *how);

/* Time and print all sizes; how (or NULL) gives the word for the size just measured. */
void measure_sizes(struct measure *m, const struct measure_peer *peer, const char *(*how)(void *context));

/* Print the library's name and version, once, from rank 0. */
void measure_title(const struct measure *m, const char *title);

void measure_barrier(struct measure *m);

/* Put a number up for the others, and read theirs after the next barrier. */
void measure_publish(struct measure *m, long number);
long measure_published(const struct measure *m, int rank);

/* End the process with a message. */
void measure_fail(const struct measure *m, const char *what, const char *why) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
#endif
