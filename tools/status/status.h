// SPDX-License-Identifier: BSD-3-Clause
/* The parts of hoop-status. */
#ifndef HOOP_TOOLS_STATUS_H
#define HOOP_TOOLS_STATUS_H

#include <hoop/flight.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The memory of a communicator that some process has open, or a file. */
struct found {
    dev_t device;
    ino_t inode;
    int descriptor;
    pid_t *holder; /* processes that have it; none of a file */
    size_t holders;
};

struct finds {
    struct found *found;
    size_t count;
    size_t unreadable; /* processes of the job that this user may not look at */
};

/* Look through the processes. job: that one and those that it has started; 0: all. The descriptors stay open.
 * Returns false, with the reason on stderr, when there is no such process or no memory. */
bool find_processes(struct finds *finds, pid_t job);

/* The file. False, with the reason on stderr, when it cannot be opened. */
bool find_file(struct finds *finds, const char *path);

/* Close and free all that was found. */
void find_free(struct finds *finds);

/* What the system says of the rank's process: "stopped", "gone", "zombie", or "" if nothing is the matter or it cannot be told. */
const char *process_state(const struct found *found, const struct hoop_flight_rank *rank);

/* "waiting" */
const char *state_name(enum hoop_flight_state state);

/* Write one communicator, with the latest `history` operations of each rank. False: no memory. */
bool write_text(const struct hoop_flight *flight, const struct found *found, int history);
bool write_json(const struct hoop_flight *flight, const struct found *found, int history);

#endif
