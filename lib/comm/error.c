// SPDX-License-Identifier: BSD-3-Clause
/* The communicator's first error, and what follows from a verdict. */
#include <stdio.h>

#include "comm/device_call.h"
#include "comm/flight.h"
#include "health/verdict.h"

enum hoop_status hoop_comm_failed(struct hoop_comm *comm, enum hoop_status status)
{
    if (comm->error == HOOP_OK &&
        hoop_verdict_stands(comm->board)) /* whoever learns it may free what was lent to peers */
        hoop_device_let_go(comm);
    pthread_mutex_lock(&comm->error_lock);
    if (comm->error == HOOP_OK) {
        comm->error = (int)status;
        snprintf(comm->error_text, sizeof comm->error_text, "rank %d: %s", comm->rank, hoop_error_text());
    }
    status = (enum hoop_status)comm->error;
    hoop_fail(status, "%s", comm->error_text);
    pthread_mutex_unlock(&comm->error_lock);
    hoop_flight_dump(comm);
    return status;
}

bool hoop_comm_own_failure(const struct hoop_comm *comm, struct hoop_verdict verdict)
{
    return (verdict.kind == HOOP_VERDICT_FAILED && verdict.a == comm->rank) ||
           (verdict.kind == HOOP_VERDICT_PAIR && verdict.b == comm->rank);
}

enum hoop_status hoop_comm_condemned(struct hoop_comm *comm)
{
    const struct hoop_verdict verdict = hoop_verdict_get(comm->board);
    char text[HOOP_ERROR_TEXT - 32];

    if (verdict.kind == HOOP_VERDICT_NONE)
        return HOOP_OK;
    hoop_watch_spread(comm->watch);
    hoop_comm_await_calls(comm);
    hoop_verdict_text(comm->board, verdict, text, sizeof text);
    enum hoop_status status = hoop_fail(hoop_verdict_status(verdict), "%s", text);
    pthread_mutex_lock(&comm->error_lock);
    const bool recorded = comm->error != HOOP_OK;
    pthread_mutex_unlock(&comm->error_lock);
    if (!recorded && hoop_comm_own_failure(comm, verdict)) {
        const enum hoop_status found = verdict.kind == HOOP_VERDICT_PAIR ? hoop_device_pair(comm) : HOOP_OK;
        if (found == HOOP_OK) /* the thread that failed is about to, and its text tells more */
            return status;
        status = found; /* by a kernel */
    }
    return hoop_comm_failed(comm, status);
}

enum hoop_status hoop_comm_usable(struct hoop_comm *comm, const char *what)
{
    if (comm == NULL)
        return hoop_fail(HOOP_ERR_ARG, "%s: the communicator is NULL", what);
    if (comm->forks != hoop_comm_forks())
        return hoop_fail(
            HOOP_ERR_UNSUPPORTED,
            "%s: this process was forked after the communicator was made; only the parent may use it. Make "
            "communicators after the fork.",
            what);
    if (comm->error != HOOP_OK)
        return hoop_comm_failed(comm, (enum hoop_status)comm->error);
    if (hoop_verdict_stands(comm->board))
        return hoop_comm_condemned(comm);
    if (comm->finalized)
        return hoop_fail(HOOP_ERR_ARG, "%s: the communicator was finalized", what);
    return HOOP_OK;
}

enum hoop_status hoop_comm_abort(struct hoop_comm *comm)
{
    if (comm == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_abort: the communicator is NULL");
    if (comm->forks == hoop_comm_forks())
        hoop_verdict_pass(comm->board, (struct hoop_verdict){HOOP_VERDICT_ABORTED, comm->rank, comm->rank, 0});
    return HOOP_OK;
}

enum hoop_status hoop_comm_async_error(const struct hoop_comm *comm)
{
    if (comm == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_async_error: the communicator is NULL");
    struct hoop_comm *own =
        (struct hoop_comm *)(uintptr_t)comm; /* only the error record is filled in, under its lock */
    pthread_mutex_lock(&own->error_lock);
    const enum hoop_status error = (enum hoop_status)own->error;
    pthread_mutex_unlock(&own->error_lock);
    if (error != HOOP_OK)
        return error;
    hoop_device_notice(own);
    return hoop_comm_condemned(own);
}

const char *hoop_last_error(const struct hoop_comm *comm)
{
    if (comm == NULL)
        return hoop_error_text();
    hoop_comm_async_error(comm);
    return comm->error_text;
}
