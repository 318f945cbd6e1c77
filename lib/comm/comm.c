// SPDX-License-Identifier: BSD-3-Clause
/* Life of a communicator as its user sees it. */
#include "comm/comm.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "boot/launch.h"
#include "comm/device_links.h"
#include "comm/tune.h"
#include "mem/registry.h"
#include "wire/auth.h"

enum { MOST_RANKS = 1 << 20 };

enum hoop_status hoop_comm_init_rank(struct hoop_comm **comm, int ranks, const struct hoop_unique_id *id, int rank)
{
    if (comm == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_init_rank: comm is NULL");
    if (ranks < 1 || ranks > MOST_RANKS)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_init_rank: %d ranks; give 1 to %d", ranks, MOST_RANKS);
    if (rank < 0 || rank >= ranks)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_init_rank: rank %d is not one of 0 to %d", rank, ranks - 1);
    if (id == NULL && ranks > 1)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_init_rank: %d ranks need a unique id to meet by", ranks);
    return hoop_comm_make(comm, ranks, id, rank, NULL);
}

enum hoop_status hoop_comm_init_env(struct hoop_comm **comm)
{
    struct hoop_launch launch;

    if (comm == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_init_env: comm is NULL");
    enum hoop_status status = hoop_launch_find(&launch);
    if (status == HOOP_OK)
        status = hoop_launch_meet(&launch);
    if (status == HOOP_OK)
        status = hoop_comm_make(comm, launch.ranks, launch.ranks > 1 ? &launch.id : NULL, launch.rank, NULL);
    hoop_auth_wipe(&launch, sizeof launch);
    return status;
}

enum hoop_status hoop_launcher_get(struct hoop_launcher *launcher)
{
    static _Thread_local char how[HOOP_LAUNCH_HOW];
    struct hoop_launch launch;

    if (launcher == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_launcher_get: launcher is NULL");
    enum hoop_status status = hoop_launch_find(&launch);
    if (status != HOOP_OK)
        return status;
    hoop_launch_describe(&launch, how);
    *launcher = (struct hoop_launcher){.name = launch.launcher,
                                       .rank = launch.rank,
                                       .ranks = launch.ranks,
                                       .local_rank = launch.local_rank,
                                       .local_size = launch.local_size,
                                       .meeting = how};
    hoop_auth_wipe(&launch, sizeof launch);
    return HOOP_OK;
}

/* ---- ranks as threads of this process ---- */

struct joiner {
    pthread_t thread;
    const struct hoop_unique_id *id;
    struct hoop_comm *comm;
    int ranks, rank;
    bool started;
    enum hoop_status status;
    char text[HOOP_ERROR_TEXT];
};

static void *join_one(void *argument)
{
    struct joiner *joiner = argument;

    joiner->status = hoop_comm_make(&joiner->comm, joiner->ranks, joiner->id, joiner->rank, NULL);
    if (joiner->status != HOOP_OK)
        snprintf(joiner->text, sizeof joiner->text, "%s", hoop_error_text());
    return NULL;
}

static enum hoop_status join_all(struct joiner *joiner, const struct hoop_unique_id *id, int ranks)
{
    const struct joiner *failed = NULL;
    sigset_t all, old;

    sigfillset(&all); /* signals stay with the program's own threads */
    pthread_sigmask(SIG_BLOCK, &all, &old);
    for (int rank = 0; rank < ranks; rank++) {
        struct joiner *one = &joiner[rank];
        one->id = id;
        one->ranks = ranks;
        one->rank = rank;
        one->started = pthread_create(&one->thread, NULL, join_one, one) == 0;
        if (!one->started) {
            one->status = HOOP_ERR_SYSTEM;
            snprintf(one->text, sizeof one->text, "cannot start a thread to join rank %d of %d", rank, ranks);
        }
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    for (int rank = 0; rank < ranks; rank++) {
        if (joiner[rank].started)
            pthread_join(joiner[rank].thread, NULL);
        if (joiner[rank].status != HOOP_OK && (failed == NULL || !joiner[rank].started))
            failed = &joiner[rank];
    }
    return failed ? hoop_fail(failed->status, "%s", failed->text) : HOOP_OK;
}

enum hoop_status hoop_comm_init_all(struct hoop_comm **comms, int ranks)
{
    struct hoop_unique_id id;

    if (comms == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_init_all: comms is NULL");
    if (ranks < 1 || ranks > MOST_RANKS)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_init_all: %d ranks; give 1 to %d", ranks, MOST_RANKS);
    if (ranks == 1)
        return hoop_comm_make(comms, 1, NULL, 0, NULL);
    enum hoop_status status = hoop_unique_id_create(&id);
    if (status != HOOP_OK)
        return status;
    struct joiner *joiner = hoop_calloc((size_t)ranks, sizeof *joiner);
    if (joiner == NULL)
        return HOOP_ERR_MEMORY;
    status = join_all(joiner, &id, ranks);
    for (int rank = 0; rank < ranks; rank++)
        if (status == HOOP_OK)
            comms[rank] = joiner[rank].comm;
        else if (joiner[rank].comm)
            hoop_comm_free(joiner[rank].comm);
    hoop_free(joiner);
    return status;
}

/* ---- the end ---- */

enum hoop_status hoop_comm_finalize(struct hoop_comm *comm)
{
    if (comm && comm->finalized && comm->error == HOOP_OK)
        return HOOP_OK;
    enum hoop_status status = hoop_comm_usable(comm, "finalize");
    if (status != HOOP_OK)
        return status;
    hoop_comm_drain(comm);
    hoop_device_links_drop(comm);
    status = hoop_comm_submit(
        &(struct hoop_comm_call){
            .comm = comm, .coll = HOOP_BARRIER, .closing = true, .type = HOOP_TYPES, .op = HOOP_OPS, .root = -1},
        NULL);
    comm->finalized = true;
    if (status == HOOP_OK && comm->rank == 0)
        hoop_tune_save(comm);
    HOOP_FAULT_POINT(REST);
    if (status == HOOP_OK)
        hoop_watch_rest(comm->watch);
    return status;
}

enum hoop_status hoop_comm_destroy(struct hoop_comm *comm)
{
    enum hoop_status status = HOOP_OK;

    if (comm == NULL)
        return HOOP_OK;
    if (comm->forks != hoop_comm_forks())
        return hoop_fail(
            HOOP_ERR_UNSUPPORTED,
            "hoop_comm_destroy: this process was forked after the communicator was made; only the parent may use it");
    if (comm->error == HOOP_OK && !comm->finalized)
        status = hoop_comm_finalize(comm);
    hoop_comm_drain(comm);
    hoop_comm_free(comm);
    return status;
}

/* ---- asking ---- */

int hoop_comm_rank(const struct hoop_comm *comm)
{
    return comm ? comm->rank : -1;
}

int hoop_comm_size(const struct hoop_comm *comm)
{
    return comm ? comm->ranks : -1;
}

enum hoop_status hoop_stats(const struct hoop_comm *comm, struct hoop_stats *stats)
{
    if (comm == NULL || stats == NULL || stats->size < sizeof stats->size)
        return hoop_fail(HOOP_ERR_ARG, "hoop_stats: comm or stats is NULL, or stats->size is not set");
    struct hoop_stats all = comm->stats;
    const size_t size = stats->size < sizeof all ? stats->size : sizeof all;
    all.size = stats->size;
    all.plans_built = comm->plans.built;
    all.sleeps = comm->wait.sleeps;
    memcpy(stats, &all, size);
    return HOOP_OK;
}

/* ---- memory ---- */

enum hoop_status hoop_register(struct hoop_comm *comm, void *memory, size_t bytes)
{
    enum hoop_status status = hoop_comm_usable(comm, "hoop_register");

    if (status != HOOP_OK)
        return status;
    if (memory == NULL || bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t)memory)
        return hoop_fail(HOOP_ERR_ARG, "hoop_register: %zu bytes at %p are no memory", bytes, memory);
    hoop_comm_drain(comm); /* calls look into the table */
    return hoop_registry_add(comm->heap, memory, bytes);
}

enum hoop_status hoop_deregister(struct hoop_comm *comm, void *memory)
{
    if (comm == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_deregister: the communicator is NULL");
    if (comm->forks != hoop_comm_forks())
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "hoop_deregister: this process was forked; the registration is its parent's");
    if (memory == NULL)
        return HOOP_OK;
    hoop_comm_drain(comm);
    return hoop_registry_remove(comm->heap, memory);
}
