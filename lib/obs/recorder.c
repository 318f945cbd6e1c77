// SPDX-License-Identifier: BSD-3-Clause
/* Text form of the recorder. */
#include "obs/recorder.h"

#include <inttypes.h>

static void print_record(const struct hoop_record *record, const char *const *coll_names, FILE *file)
{
    fprintf(file, "call %" PRIu64 " %s", record->sequence, coll_names[record->coll]);
    if (record->type < HOOP_TYPES)
        fprintf(file, " %" PRIu64 " %s", record->count, hoop_type_name((enum hoop_type)record->type));
    if (record->op != HOOP_OPS)
        fprintf(file, " %s", hoop_op_name((enum hoop_op)record->op));
    if (record->root >= 0)
        fprintf(file, " root %d", record->root);
    if (record->in_place)
        fprintf(file, " in place");
    if (record->plan)
        fprintf(file, " %s", record->plan);
    fprintf(file, ": %s\n", record->status == HOOP_AGAIN ? "running" : hoop_strerror((enum hoop_status)record->status));
}

void hoop_recorder_print(const struct hoop_recorder *recorder, size_t most, const char *const *coll_names, FILE *file)
{
    const uint64_t kept = recorder->next < HOOP_RECORDS ? recorder->next : HOOP_RECORDS;
    const uint64_t count = kept < most ? kept : most;

    for (uint64_t i = recorder->next - count; i < recorder->next; i++)
        print_record(&recorder->record[i % HOOP_RECORDS], coll_names, file);
}
