// SPDX-License-Identifier: BSD-3-Clause
#include "exec/cuda_team.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "exec/cuda_code.h"
#include "health/verdict.h"

enum {
    RING = 32, /* launches that may be under way; the next waits */
    LOOK_NS = 2000000
};

struct seat {
    struct hoop_device_call call;
    hoop_cu_event ready; /* behind what the rank's stream held */
    int threads;
};

struct hoop_cuda_team {
    struct hoop_cuda_team *next;
    uint64_t id;
    int seats, members;
    struct hoop_cuda *cuda;
    const struct hoop_cuda_code *code;
    hoop_cu_stream stream;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    uint64_t launches;
    int come;                 /* to the next one */
    enum hoop_status outcome; /* of the latest */
    char text[HOOP_ERROR_TEXT];
    hoop_cu_event ended[RING];      /* by launches modulo RING: behind the launch */
    struct hoop_device_call *calls; /* what the launches read: RING times seats, in memory of the host */
    hoop_cu_address calls_address;
    struct seat seat[];
};

static struct hoop_cuda_team *teams;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- making ---- */

static void free_team(struct hoop_cuda_team *team)
{
    for (int i = 0; i < RING; i++)
        if (team->ended[i])
            hoop_cuda_event_destroy(team->cuda, team->ended[i]);
    for (int i = 0; i < team->seats; i++)
        if (team->seat[i].ready)
            hoop_cuda_event_destroy(team->cuda, team->seat[i].ready);
    if (team->stream)
        hoop_cuda_stream_destroy(team->cuda, team->stream);
    if (team->calls)
        hoop_cuda_host_free(team->cuda, team->calls);
    if (team->code)
        hoop_cuda_code_drop(team->cuda);
    hoop_cuda_close(team->cuda);
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->changed);
    hoop_free(team);
}

static enum hoop_status check_device(const struct hoop_cuda_team *team)
{
    const struct hoop_cuda_device *device = &team->cuda->device;

    if (!device->cooperative)
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "device %d, %s, has no cooperative launches, which ranks that share it need", device->ordinal,
                         device->name);
    return HOOP_OK;
}

static enum hoop_status equip(struct hoop_cuda_team *team)
{
    const size_t bytes = (size_t)RING * (size_t)team->seats * sizeof *team->calls;
    void *calls = NULL;

    enum hoop_status status = hoop_cuda_code_get(team->cuda, &team->code);
    if (status == HOOP_OK)
        status = check_device(team);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_create(team->cuda, true, &team->stream);
    if (status == HOOP_OK)
        status = hoop_cuda_host_alloc(team->cuda, bytes, &calls, &team->calls_address);
    team->calls = calls;
    for (int i = 0; i < RING && status == HOOP_OK; i++)
        status = hoop_cuda_event_create(team->cuda, &team->ended[i]);
    for (int i = 0; i < team->seats && status == HOOP_OK; i++)
        status = hoop_cuda_event_create(team->cuda, &team->seat[i].ready);
    return status;
}

enum hoop_status hoop_cuda_team_new(struct hoop_cuda_team **team, struct hoop_cuda *cuda, int seats, uint64_t *id)
{
    static uint64_t ids;
    struct hoop_cuda *again;
    struct hoop_cuda_team *new = hoop_calloc(1, sizeof *new + (size_t)seats * sizeof *new->seat);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    enum hoop_status status = hoop_cuda_open(cuda->device.ordinal, &again);
    if (status != HOOP_OK) {
        hoop_free(new);
        return status;
    }
    new->cuda = again;
    new->seats = seats;
    new->members = 1;
    pthread_mutex_init(&new->lock, NULL);
    pthread_cond_init(&new->changed, NULL);
    status = equip(new);
    if (status != HOOP_OK) {
        free_team(new);
        return status;
    }
    pthread_mutex_lock(&list_lock);
    *id = new->id = ++ids;
    new->next = teams;
    teams = *team = new;
    pthread_mutex_unlock(&list_lock);
    return HOOP_OK;
}

enum hoop_status hoop_cuda_team_enter(struct hoop_cuda_team **team, uint64_t id)
{
    struct hoop_cuda_team *one;

    pthread_mutex_lock(&list_lock);
    for (one = teams; one && one->id != id;)
        one = one->next;
    if (one)
        one->members++;
    pthread_mutex_unlock(&list_lock);
    *team = one;
    return one ? HOOP_OK : hoop_fail(HOOP_ERR_INTERNAL, "this process has no team of ranks with that number");
}

void hoop_cuda_team_leave(struct hoop_cuda_team *team)
{
    struct hoop_cuda_team **place = &teams;

    if (team == NULL)
        return;
    pthread_mutex_lock(&list_lock);
    const bool last = --team->members == 0;
    if (last) {
        while (*place != team)
            place = &(*place)->next;
        *place = team->next;
    }
    pthread_mutex_unlock(&list_lock);
    if (last)
        free_team(team);
}

/* ---- launching ---- */

/* Under the lock: wait a little for a change. */
static void wait_a_little(struct hoop_cuda_team *team)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&team->changed, &team->lock, &until);
}

/* Look for what can go wrong. */
static enum hoop_status look(struct hoop_wait *wait)
{
    hoop_wait_look(wait);
    return hoop_verdict_stands(wait->board)
               ? hoop_fail(HOOP_ERR_ABORTED,
                           "the communicator has failed while ranks of one device waited for each other")
               : HOOP_OK;
}

/* Under the lock: the calls' place in the ring is free again. */
static enum hoop_status await_place(struct hoop_cuda_team *team, struct hoop_wait *wait)
{
    enum hoop_status status;

    while ((status = hoop_cuda_event_query(team->cuda, team->ended[team->launches % RING])) == HOOP_AGAIN) {
        status = look(wait);
        if (status != HOOP_OK)
            return status;
        wait_a_little(team);
    }
    return status;
}

static enum hoop_status launch_cooperative(const struct hoop_cuda_team *team, struct hoop_device_call *argument,
                                           int threads)
{
    const struct hoop_cuda *cuda = team->cuda;
    void *arguments[] = {argument};
    enum hoop_status status = hoop_cuda_enter(cuda);

    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_check(
        cuda->driver->cuLaunchCooperativeKernel(team->code->interpret, (unsigned)team->seats * argument->lanes, 1, 1,
                                                (unsigned)threads, 1, 1, 0, team->stream, arguments),
        "cuLaunchCooperativeKernel", cuda->device.ordinal);
    hoop_cuda_leave(cuda);
    return status;
}

/* Under the lock: all have come. */
static enum hoop_status launch_all(struct hoop_cuda_team *team, struct hoop_wait *wait)
{
    const size_t first = (size_t)(team->launches % RING) * (size_t)team->seats;
    struct hoop_device_call argument = {.flags = HOOP_DEVICE_TEAM,
                                        .lane = team->calls_address + first * sizeof *team->calls};
    int threads = 1;

    enum hoop_status status = await_place(team, wait);
    for (int i = 0; i < team->seats && status == HOOP_OK; i++) {
        const struct seat *seat = &team->seat[i];
        team->calls[first + (size_t)i] = seat->call;
        threads = seat->threads > threads ? seat->threads : threads;
        argument.lanes = seat->call.lanes > argument.lanes ? seat->call.lanes : argument.lanes;
        status = hoop_cuda_stream_wait_event(team->cuda, team->stream, seat->ready);
    }
    if (status == HOOP_OK)
        status = launch_cooperative(team, &argument, threads);
    if (status == HOOP_OK)
        status = hoop_cuda_event_record(team->cuda, team->ended[team->launches % RING], team->stream);
    return status;
}

/* Under the lock: the launch that this seat's call is in. */
static enum hoop_status meet(struct hoop_cuda_team *team, struct hoop_wait *wait)
{
    const uint64_t launches = team->launches;

    if (++team->come == team->seats) {
        team->outcome = launch_all(team, wait);
        if (team->outcome != HOOP_OK)
            snprintf(team->text, sizeof team->text, "%s", hoop_error_text());
        team->come = 0;
        team->launches++;
        pthread_cond_broadcast(&team->changed);
    }
    while (team->launches == launches) {
        const enum hoop_status status = look(wait);
        if (status != HOOP_OK) {
            team->come--; /* nobody comes any more */
            return status;
        }
        wait_a_little(team);
    }
    return team->outcome == HOOP_OK ? HOOP_OK : hoop_fail(team->outcome, "%s", team->text);
}

enum hoop_status hoop_cuda_team_launch(struct hoop_cuda_team *team, int number, const struct hoop_device_call *call,
                                       int threads, hoop_cu_stream stream, struct hoop_wait *wait)
{
    struct seat *seat = &team->seat[number];

    enum hoop_status status = hoop_cuda_event_record(team->cuda, seat->ready, stream);
    if (status != HOOP_OK)
        return status;
    hoop_wait_begin(wait, call->number);
    pthread_mutex_lock(&team->lock);
    seat->call = *call;
    seat->threads = threads;
    status = meet(team, wait);
    const hoop_cu_event ended = team->ended[(team->launches + RING - 1) % RING]; /* the next waits for this seat */
    pthread_mutex_unlock(&team->lock);
    return status == HOOP_OK ? hoop_cuda_stream_wait_event(team->cuda, stream, ended) : status;
}
