// SPDX-License-Identifier: BSD-3-Clause
/* Recorder: the last operations of a communicator, for reports after a failure. A fixed ring, one writer, no locks: a
 * reader in another thread may see the entry that is being written half done, which a report can bear. */
#ifndef HOOP_OBS_RECORDER_H
#define HOOP_OBS_RECORDER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "hoop.h"

enum { HOOP_RECORDS = 1024 };

struct hoop_record {
    uint64_t sequence; /* 0: empty */
    uint64_t count;
    const char *plan; /* static name of the algorithm */
    int32_t root;
    int32_t status; /* enum hoop_status */
    uint8_t coll, type, op, in_place;
};

struct hoop_recorder {
    uint64_t next;
    struct hoop_record record[HOOP_RECORDS];
};

/* The entry of a call that begins; valid until HOOP_RECORDS later calls have begun. */
static inline struct hoop_record *hoop_record_begin(struct hoop_recorder *recorder)
{
    return &recorder->record[recorder->next++ % HOOP_RECORDS];
}

/* Write the last `most` entries, oldest first, a line each: "call 118 all_reduce 1024 float sum ring: success". */
void hoop_recorder_print(const struct hoop_recorder *recorder, size_t most, const char *const *coll_names, FILE *file);

#endif
