// SPDX-License-Identifier: BSD-3-Clause
/* A communicator for people. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "status.h"

static void print_call(const struct hoop_flight_call *call)
{
    if (call->sequence > 0)
        printf("call %" PRIu64 " ", call->sequence);
    fputs(call->what[0] != '\0' ? call->what : "none yet", stdout);
    if (call->plan[0] != '\0')
        printf(" by %s", call->plan);
}

static void print_rank(const struct found *found, const struct hoop_flight_rank *rank, int number)
{
    const char *process = process_state(found, rank);

    printf("  %5d  %8d  %-8s %-8s ", number, rank->process, state_name(rank->state), rank->here ? process : "far");
    print_call(&rank->call);
    if (rank->state == HOOP_FLIGHT_WAITING && rank->waits >= 0)
        printf(", has waited %.3g s", rank->waits);
    if (rank->state == HOOP_FLIGHT_WAITING)
        printf(" for %s", rank->call.wait);
    else if (rank->state == HOOP_FLIGHT_INSIDE && rank->call.age >= 0)
        printf(", since %.3g s", rank->call.age);
    else if (rank->state == HOOP_FLIGHT_FAILED)
        printf(": %s%s%s", hoop_strerror(rank->call.status), rank->call.wait[0] != '\0' ? "; it waited for " : "",
               rank->call.wait);
    putchar('\n');
}

static void print_history(const struct hoop_flight *flight, int rank, int history)
{
    struct hoop_flight_call call;

    for (int back = history - 1; back >= 0; back--) {
        if (hoop_flight_call(flight, rank, back, &call) != HOOP_OK)
            continue;
        printf("         %10.3f s ago  ", call.age);
        print_call(&call);
        printf(": %s", call.status == HOOP_AGAIN ? "under way" : hoop_strerror(call.status));
        if (call.seconds >= 0)
            printf(" after %.3f s", call.seconds);
        if (call.wait[0] != '\0')
            printf("; has slept for %s", call.wait);
        putchar('\n');
    }
}

bool write_text(const struct hoop_flight *flight, const struct found *found, int history)
{
    struct hoop_flight_facts facts;
    struct hoop_flight_rank rank;
    char why[256];

    hoop_flight_ask(flight, &facts);
    int *late = calloc((size_t)facts.ranks, sizeof(*late));
    if (late == NULL)
        return false;
    printf("communicator of %d rank%s%s\n", facts.ranks, facts.ranks > 1 ? "s" : "",
           facts.dumped ? ", as it was when it failed" : "");
    printf("  %5s  %8s  %-17s operation\n", "rank", "process", "state");
    for (int i = 0; i < facts.ranks; i++) {
        hoop_flight_rank(flight, i, &rank);
        print_rank(found, &rank, i);
        print_history(flight, i, history);
    }
    const int count = hoop_flight_late(flight, late, why, sizeof(why));
    for (int i = 0; i < count; i++) {
        hoop_flight_rank(flight, late[i], &rank);
        const char *process = process_state(found, &rank);
        printf("  late: rank %d (process %d%s%s): %s\n", late[i], rank.process, process[0] != '\0' ? ", " : "", process,
               why);
    }
    if (count == 0)
        printf("  late: nobody; %s\n", why);
    if (facts.verdict[0] != '\0')
        printf("  failed: %s\n", facts.verdict);
    free(late);
    return true;
}
