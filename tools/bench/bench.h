// SPDX-License-Identifier: BSD-3-Clause
/* hoop-bench: time a collective over a range of sizes and check its results.
 *
 * Each row of the table is one problem: a collective, a count, a type, an operator and a root. It is measured out of
 * place and in place, each by two methods, because they answer different questions:
 *     back to back  many calls between two looks at the clock: the rate of a stream of calls (time, bandwidth)
 *     isolated      a barrier, then one call; the slowest rank's time, call by call: the latency (p50, p99)
 * Then the call runs on fresh data whose result is known exactly (data.c), and wrong elements are counted.
 *
 *     options.c      command line              collectives.c  what the six calls have in common, as a table
 *     data.c         exact test data           measure.c      clocks, buffers, checks: one row
 *     report.c       the table of rows         report_osu.c, report_json.c, progress.c
 *     calibrate.c    the cost model's constants from measured times; fit.c
 */
#ifndef HOOP_TOOLS_BENCH_H
#define HOOP_TOOLS_BENCH_H

#include <hoop.h>
#include <stdbool.h>
#include <stdio.h>

enum { EXIT_WRONG_VALUES = 1, EXIT_LIBRARY = 3 };

/* How many elements a rank sends and receives for a count of c. */
enum shape {
    SHAPE_NONE,
    SHAPE_SAME,    /* c, c */
    SHAPE_GATHER,  /* c, nc */
    SHAPE_SCATTER, /* nc, c */
    SHAPE_EXCHANGE /* nc, nc */
};

struct problem;

struct collective {
    const char *name, *osu_name;
    enum shape shape;
    bool reduces, rooted;
    double (*factor)(int ranks); /* bus bandwidth over algorithm bandwidth */
    enum hoop_status (*run)(const struct problem *problem, const void *send, void *recv);
};

extern const struct collective collectives[]; /* ends with a NULL name */

struct problem {
    const struct collective *collective;
    struct hoop_comm *comm;
    int rank, ranks, root;
    enum hoop_type type;
    enum hoop_op op;
    size_t count; /* elements */
};

struct options {
    const struct collective *collective;
    size_t least, most, step; /* bytes; step: to add, or 0 */
    size_t factor;            /* to multiply with, or 1 */
    int iterations;           /* 0: as many as make sense */
    int warmups, checks;
    unsigned types, ops; /* bit masks */
    int root;            /* -1: all */
    const char *json;
    const char *calibrate; /* NULL: no; "": save in the usual place; else the file */
    const char *device;    /* where the buffers are, as HOOP_DEVICE takes it; NULL: host memory */
    bool osu, ordinary, dirty, deterministic;
};

/* The price of HOOP_DETERMINISTIC=1: isolated calls with and without it by turns. */
struct price {
    bool present;
    double p50, ratio; /* with it; and over the one without */
    char plan[64];
};

/* One of the two ways: out of place, in place. Times in seconds. */
struct side {
    bool present;
    double time;           /* of a call, back to back, mean over ranks */
    double p50, p99, most; /* of isolated calls: the slowest rank's */
    double mean[3];        /* of isolated calls: per-rank means, their mean, least and most over the ranks */
    long long wrong;       /* elements, all ranks; -1: not checked */
    char plan[64];
    struct price price;
};

struct row {
    struct problem problem;
    size_t bytes; /* the larger of what a rank sends and receives */
    int iterations;
    struct side sides[2];
};

struct totals {
    long long wrong;
    double bandwidth; /* sum of bus bandwidths, bytes a second */
    int sides, rows;
};

/* options.c: exits on wrong usage. */
void options_parse(struct options *options, int argc, char **argv);
/* Are the type and the operator chosen, and do they go together? And how many such pairs are there? */
bool options_choose(const struct options *options, int type, int op);
int options_pairs(const struct options *options);

/* collectives.c */
size_t problem_send_elements(const struct problem *problem);
size_t problem_recv_elements(const struct problem *problem);
/* The largest count whose larger side has at most so many bytes; blocks of gather and scatter are multiples of 16 bytes. */
size_t problem_count(const struct problem *problem, size_t bytes);
double side_algorithm_bandwidth(const struct row *row, const struct side *side); /* bytes a second */
double side_bus_bandwidth(const struct row *row, const struct side *side);

/* data.c: a pattern holds the first elements of a vector, which goes on periodically. */
enum { PATTERN_PERIOD = 16381 }; /* a prime, so that no power of two shifts it onto itself */

const char *data_type_name(enum hoop_type type); /* as the table shows it */
int data_type_parse(const char *text);           /* -1: no type */
/* The input of a rank, and the result of reducing the inputs of all ranks, for elements 0 … elements - 1. */
void data_input(const struct problem *problem, int rank, void *pattern, size_t elements);
void data_result(const struct problem *problem, void *pattern, size_t elements);
/* Write or compare a vector that begins at element first of the pattern. */
void data_fill(void *vector, size_t elements, const void *pattern, size_t first, size_t size);
size_t data_wrong(const void *vector, size_t elements, const void *pattern, size_t first, size_t size);

/* measure.c */
struct workspace {
    const struct options *options;
    struct hoop_comm *comm;
    size_t bytes;     /* of each buffer */
    char *buffers[2]; /* [0]: send, [1]: receive, and both in place */
    char *images[2];  /* what the host writes and checks of them: the buffers themselves, or copies of device memory */
    void *patterns[2];
    double *times; /* one a call */
    int times_capacity;
    struct hoop_comm *gate;    /* whose barrier comes before an isolated call; NULL: comm */
    struct workspace *ordered; /* the same on a communicator with HOOP_DETERMINISTIC=1, or NULL */
};

void workspace_open(struct workspace *place, const struct options *options, struct hoop_comm *comm);
void workspace_close(struct workspace *place);
void measure_row(struct workspace *place, struct row *row);
/* Seconds of an isolated call out of place on the slowest rank: of a few, a quarter took no longer. (What else the machine does
 * only adds.) */
double measure_quartile(struct workspace *place, const struct problem *problem);
/* Exit with a message if a call failed. */
void must(enum hoop_status status, const char *what, const struct hoop_comm *comm);
/* Exit with a message if there is no memory; else give it back. */
void *must_have(void *memory);
double clock_seconds(void);

/* report*.c: only rank 0 calls them. */
void report_head(const struct options *options, const char *places); /* places: a line a rank */
void report_row(const struct row *row);
void report_foot(const struct options *options, const struct totals *totals);
void report_osu_head(const struct options *options, enum hoop_type type);
void report_osu_row(const struct row *row);

/* A file of JSON; NULL file: every call does nothing. */
FILE *report_json_open(const struct options *options, int ranks);
void report_json_row(FILE *file, const struct row *row, bool first);
void report_json_close(FILE *file, const struct totals *totals);

/* progress.c: on a terminal, what is being measured. Only rank 0 shows it. */
void progress_open(int rank, int rows);
void progress_row(const struct row *row);
void progress_part(const char *what, double part); /* 0 … 1; cheap enough for every call */
void progress_clear(void);

#endif
