// SPDX-License-Identifier: BSD-3-Clause
/* Exit codes, and the one error record of the process.
 *
 * The function that first knows what is wrong calls train_fail() and returns its value; callers pass the code on; main
 * prints the text. A verdict that every rank reaches alike is recorded with train_fail_shared() and printed by rank 0
 * alone. */
#ifndef TRAINER_FAIL_H
#define TRAINER_FAIL_H

#include <stdbool.h>

#include "hoop.h"

/* What the process ends with. */
enum train_exit {
    TRAIN_OK = 0,
    TRAIN_USAGE = 1,       /* options, launcher's environment, folder for the results */
    TRAIN_DATA = 2,        /* the data set is missing or broken */
    TRAIN_DIVERGED = 3,    /* loss or gradient not finite, or the wanted accuracy was not reached */
    TRAIN_DISAGREE = 4,    /* ranks have different parameters, data or options */
    TRAIN_PEER = 5,        /* another rank died, left or came too late */
    TRAIN_RESOURCE = 7,    /* memory, disk or a system call */
    TRAIN_INTERRUPT = 130, /* SIGINT */
    TRAIN_TERMINATE = 143  /* SIGTERM */
};

/* Record an error of this rank alone; returns code. The first record wins: later ones only follow from it. */
int train_fail(enum train_exit code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Record a verdict that all ranks reach together, from the same values; returns code. */
int train_fail_shared(enum train_exit code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Record a failed library call: what this rank was doing, with the library's own words. comm may be NULL. */
int train_fail_call(enum hoop_status status, const struct hoop_comm *comm, const char *doing) __attribute__((cold));

/* The recorded text, "" if none. */
const char *train_fail_text(void);

/* The other ranks have learnt of this rank's error through an exchange. */
void train_fail_told(void);

/* Whether the others do not know of this rank's error, so that they have to be stopped. */
bool train_fail_is_untold(void);

/* Whether this rank has to print the text: its own error, or a shared verdict on rank 0. */
bool train_fail_is_mine(int rank);

/* Forget the record. For tests. */
void train_fail_clear(void);

#endif
