// SPDX-License-Identifier: BSD-3-Clause
/* Harness for tests with several ranks: as processes forked from the test, or as threads of it.
 *
 * Processes get a session of their own and end with it: when the cap is reached or a rank leaves children behind, all are
 * killed and the test fails. Each rank writes what it found into shared memory. */
#ifndef HOOP_TESTS_HARNESS_H
#define HOOP_TESTS_HARNESS_H

#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "hoop.h"

enum { HARNESS_MOST = 16 };

/* What one rank reports. Shared between processes. */
struct harness_report {
    enum hoop_status status; /* as the body says */
    char text[1024];
    uint64_t at;      /* hoop_now when it was written */
    atomic_int stage; /* the body's own progress marks */
};

struct harness_rank {
    int rank, ranks;
    const struct hoop_unique_id *id;
    void *argument;
    struct harness_report *report;  /* this rank's */
    struct harness_report *reports; /* all ranks' */
};

/* One rank's work: returns its exit code. */
typedef int (*harness_body)(struct harness_rank *rank);

struct harness {
    int ranks, left;
    pid_t keeper; /* serves the id */
    pid_t process[HARNESS_MOST];
    int code[HARNESS_MOST]; /* exit code, or 128 + signal; -1: still runs */
    struct harness_report *report;
    struct hoop_unique_id id;
    double cap;
};

/* Fork the ranks. cap: seconds after which everything is killed. Fails the test (check) when it cannot. */
void harness_start(struct harness *harness, int ranks, harness_body body, void *argument, double cap);

/* Wait for all. False if the cap was reached. */
bool harness_wait(struct harness *harness);

/* Spin until the rank's stage has reached a value; fails the test when the cap is reached. */
void harness_stage(struct harness *harness, int rank, int stage);

/* Start, wait and require that every rank exits with 0; prints the texts of those that do not. */
void harness_run(int ranks, harness_body body, void *argument, double cap);

/* The same with threads of this process and communicators of hoop_comm_init_all; body gets the communicator. */
typedef int (*harness_thread_body)(int rank, struct hoop_comm *comm, void *argument);
void harness_threads(int ranks, harness_thread_body body, void *argument);

/* Join as this rank; on failure write the report and return NULL. */
struct hoop_comm *harness_join(struct harness_rank *rank);

/* Set this rank's stage, and wait until all ranks have come so far: after it nobody is in an earlier call any more, whose result a failure
 * that one of them causes on purpose would spoil. Ended by the test's cap. */
void harness_meet(const struct harness_rank *rank, int stage);

/* Write the report: status and the communicator's (NULL: the thread's) last error. Returns 1, an exit code. */
int harness_tell(struct harness_rank *rank, enum hoop_status status, const struct hoop_comm *comm);

/* A rank that is expected to be refused when it joins: argument is a word of the reason. */
int harness_refused(struct harness_rank *rank);

/* In a body that has `comm`: print what does not hold and return 1. The abort ends the others' calls, too. */
#define HARNESS_EXPECT(condition)                                                                      \
    do {                                                                                               \
        if (!(condition)) {                                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __func__, __LINE__, #condition, hoop_last_error(NULL)); \
            hoop_comm_abort(comm);                                                                     \
            return 1;                                                                                  \
        }                                                                                              \
    } while (0)

/* What the communicator's last call ran: the whole name in stats, or the algorithm alone. "" if there is none. */
enum { HARNESS_PLAN = 64 };
void harness_last_plan(const struct hoop_comm *comm, char name[HARNESS_PLAN]);
void harness_last_algorithm(const struct hoop_comm *comm, char name[HARNESS_PLAN]);

/* A temporary file that holds the text; text NULL: only its name, there is no such file. Unlink it. Fails the test when it cannot. */
enum { HARNESS_PATH = 64 };
void harness_file(char path[HARNESS_PATH], const char *text);

/* Run a suite and free it; returns main's exit code. */
int harness_suite(Suite *suite);

/* What a test may not leave behind: entries of /dev/shm and /tmp, sockets, descriptors and child processes. */
struct harness_traces {
    int shm, tmp, sockets, descriptors;
    bool alone; /* nobody else can make such entries meanwhile */
};

/* Give this process /tmp, /dev/shm and a network (with only lo) of its own, if it may, and look.
 * makes_ids: the process itself will make ids (communicators of threads), not only its forked ranks. */
struct harness_traces harness_look(bool makes_ids);

/* Require that nothing is left. Where the process could not be set apart, only its own descriptors and children are compared. */
void harness_compare(const struct harness_traces *before);

#endif
