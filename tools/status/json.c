// SPDX-License-Identifier: BSD-3-Clause
/* A communicator for programs. */
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "status.h"

static void text(const char *key, const char *value)
{
    printf(", \"%s\": ", key);
    if (value[0] == '\0')
        fputs("null", stdout);
    else
        hoop_json_string(stdout, value);
}

static void seconds(const char *key, double value)
{
    if (value < 0)
        printf(", \"%s\": null", key);
    else
        printf(", \"%s\": %.6f", key, value);
}

static void write_call(const struct hoop_flight_call *call)
{
    printf("{\"sequence\": %" PRIu64, call->sequence);
    text("what", call->what);
    text("plan", call->plan);
    text("status", call->status == HOOP_AGAIN ? "under way" : hoop_strerror(call->status));
    printf(", \"device\": %s", call->device ? "true" : "false");
    seconds("age_s", call->age);
    seconds("took_s", call->seconds);
    text("wait", call->wait);
    putchar('}');
}

static void write_rank(const struct hoop_flight *flight, const struct found *found, int number, int history)
{
    struct hoop_flight_rank rank;
    struct hoop_flight_call call;
    bool first = true;

    hoop_flight_rank(flight, number, &rank);
    printf("      {\"rank\": %d, \"process\": %d, \"here\": %s", number, rank.process, rank.here ? "true" : "false");
    text("process_state", process_state(found, &rank));
    text("state", state_name(rank.state));
    if (rank.waits_for < 0)
        fputs(", \"waits_for\": null", stdout);
    else
        printf(", \"waits_for\": %d", rank.waits_for);
    seconds("waits_s", rank.waits);
    printf(", \"operations\": %" PRIu64 ", \"call\": ", rank.operations);
    write_call(&rank.call);
    fputs(", \"history\": [", stdout);
    for (int back = history - 1; back >= 0; back--)
        if (hoop_flight_call(flight, number, back, &call) == HOOP_OK) {
            fputs(first ? "\n        " : ",\n        ", stdout);
            write_call(&call);
            first = false;
        }
    fputs("]}", stdout);
}

bool write_json(const struct hoop_flight *flight, const struct found *found, int history)
{
    struct hoop_flight_facts facts;
    char why[256];

    hoop_flight_ask(flight, &facts);
    int *late = calloc((size_t)facts.ranks, sizeof(*late));
    if (late == NULL)
        return false;
    const int count = hoop_flight_late(flight, late, why, sizeof(why));
    printf("    {\"ranks\": %d, \"dumped\": %s", facts.ranks, facts.dumped ? "true" : "false");
    text("verdict", facts.verdict);
    fputs(", \"late\": [", stdout);
    for (int i = 0; i < count; i++)
        printf("%s%d", i > 0 ? ", " : "", late[i]);
    fputs("]", stdout);
    text("why", why);
    fputs(", \"rank\": [\n", stdout);
    for (int i = 0; i < facts.ranks; i++) {
        if (i > 0)
            fputs(",\n", stdout);
        write_rank(flight, found, i, history);
    }
    fputs("]}", stdout);
    free(late);
    return true;
}
