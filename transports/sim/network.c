// SPDX-License-Identifier: BSD-3-Clause
/* Pipes and the clock of the virtual network.
 *
 * Pipes with frames in flight hang in a heap by the arrival of their next frame; the top of it is the next event. A
 * shuffled network takes any entry instead, which keeps every pipe a FIFO and mixes everything else.
 */
#include "transports/sim/network.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

static uint64_t draw(struct hoop_sim *sim)
{
    uint64_t x = sim->random += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* ---- heap of flying pipes ---- */

static const struct sim_frame *next_frame(const struct sim_pipe *pipe)
{
    return &pipe->frame[(pipe->first + pipe->arrived) % pipe->slots];
}

static bool before(const struct sim_pipe *a, const struct sim_pipe *b)
{
    const struct sim_frame *x = next_frame(a), *y = next_frame(b);

    return x->arrival != y->arrival ? x->arrival < y->arrival : x->order < y->order;
}

static void place(struct hoop_sim *sim, struct sim_pipe *pipe, int at)
{
    sim->flying[at] = pipe;
    pipe->heap_at = at;
}

static void sift(struct hoop_sim *sim, int at)
{
    struct sim_pipe *pipe = sim->flying[at];

    for (; at > 0 && before(pipe, sim->flying[(at - 1) / 2]); at = (at - 1) / 2)
        place(sim, sim->flying[(at - 1) / 2], at);
    for (int child; (child = 2 * at + 1) < sim->flying_count; at = child) {
        if (child + 1 < sim->flying_count && before(sim->flying[child + 1], sim->flying[child]))
            child++;
        if (!before(sim->flying[child], pipe))
            break;
        place(sim, sim->flying[child], at);
    }
    place(sim, pipe, at);
}

static void heap_remove(struct hoop_sim *sim, struct sim_pipe *pipe)
{
    const int at = pipe->heap_at;

    if (at < 0)
        return;
    pipe->heap_at = -1;
    struct sim_pipe *last = sim->flying[--sim->flying_count];
    if (last == pipe)
        return;
    place(sim, last, at);
    sift(sim, at);
}

static void heap_add(struct hoop_sim *sim, struct sim_pipe *pipe)
{
    place(sim, pipe, sim->flying_count++); /* room was made when the pipe was */
    sift(sim, pipe->heap_at);
}

/* ---- pipes ---- */

static struct sim_pipe *pipe_make(struct hoop_sim *sim, const struct sim_pipe *shape)
{
    struct sim_pipe *pipe = hoop_calloc(1, sizeof *pipe);

    if (!pipe)
        return NULL;
    *pipe = *shape;
    pipe->frame = hoop_calloc((size_t)shape->slots, sizeof *pipe->frame);
    if (!pipe->frame) {
        hoop_free(pipe);
        return NULL;
    }
    pipe->heap_at = -1;
    pipe->gigabytes_per_second = sim->config.gigabytes_per_second;
    pipe->nanoseconds = sim->config.nanoseconds;
    if (sim->config.link)
        sim->config.link(sim->config.context, pipe->from, pipe->to, &pipe->gigabytes_per_second, &pipe->nanoseconds);
    pipe->sender = sim->dead[pipe->from] ? HOOP_ERR_PEER : HOOP_OK;
    pipe->receiver = sim->dead[pipe->to] ? HOOP_ERR_PEER : HOOP_OK;
    pipe->next = sim->into[pipe->to];
    sim->into[pipe->to] = pipe;
    return pipe;
}

static void pipe_free(struct hoop_sim *sim, struct sim_pipe *pipe)
{
    struct sim_pipe **at = &sim->into[pipe->to];

    while (*at != pipe)
        at = &(*at)->next;
    *at = pipe->next;
    heap_remove(sim, pipe);
    for (int i = 0; i < pipe->slots; i++)
        hoop_free(pipe->frame[i].copy);
    hoop_free(pipe->frame);
    hoop_free(pipe);
    sim->flying_room--;
}

/* Every pipe needs a place in the heap; it is made here so that sending cannot fail for it. */
static enum hoop_status room_for_pipe(struct hoop_sim *sim)
{
    struct sim_pipe **flying = hoop_realloc(sim->flying, (size_t)sim->flying_room + 1, sizeof *flying);

    if (!flying)
        return HOOP_ERR_MEMORY;
    sim->flying = flying;
    sim->flying_room++;
    return HOOP_OK;
}

enum hoop_status sim_pipe_join(struct hoop_sim *sim, struct sim_pipe *shape, enum sim_end end, struct sim_pipe **result)
{
    struct sim_pipe *pipe = NULL;

    /* The oldest one: an end that connects again must not take what belongs to its peer's earlier connection. */
    for (struct sim_pipe *each = sim->into[shape->to]; each; each = each->next)
        if (each->from == shape->from && each->lane == shape->lane && !each->joined[end])
            pipe = each;
    if (!pipe) {
        if (room_for_pipe(sim) != HOOP_OK)
            return HOOP_ERR_MEMORY;
        pipe = pipe_make(sim, shape);
        if (!pipe) {
            sim->flying_room--;
            return HOOP_ERR_MEMORY;
        }
    }
    if (pipe->slots != shape->slots || pipe->frame_bytes != shape->frame_bytes)
        return hoop_fail(HOOP_ERR_ARG, "sim: ranks %d and %d have %d slots of %zu bytes and %d of %zu", pipe->from,
                         pipe->to, pipe->slots, pipe->frame_bytes, shape->slots, shape->frame_bytes);
    pipe->joined[end] = true;
    *result = pipe;
    return HOOP_OK;
}

void sim_pipe_leave(struct hoop_sim *sim, struct sim_pipe *pipe, enum sim_end end)
{
    if (end == SIM_SENDER)
        sim_pipe_stop(pipe, HOOP_ERR_PEER);
    else if (pipe->receiver == HOOP_OK)
        pipe->receiver = HOOP_ERR_PEER;
    pipe->left[end] = true;
    if (pipe->left[1 - end])
        pipe_free(sim, pipe);
}

void sim_pipe_stop(struct sim_pipe *pipe, enum hoop_status cause)
{
    if (pipe->sender == HOOP_OK)
        pipe->sender = cause;
    for (int i = 0; i < pipe->count; i++) {
        struct sim_frame *frame = &pipe->frame[(pipe->first + i) % pipe->slots];

        frame->lost |= !frame->copy && frame->bytes > 0;
    }
}

void sim_pipe_push(struct hoop_sim *sim, struct sim_pipe *pipe, const void *data, void *copy, size_t bytes,
                   uint64_t tag)
{
    const uint64_t start = sim->now > pipe->free_at ? sim->now : pipe->free_at;

    pipe->free_at = start;
    if (pipe->gigabytes_per_second > 0)
        pipe->free_at += (uint64_t)((double)bytes / pipe->gigabytes_per_second); /* 1 GB/s is 1 B/ns */
    uint64_t arrival = pipe->free_at + (uint64_t)pipe->nanoseconds;
    if (arrival < pipe->last_arrival)
        arrival = pipe->last_arrival;
    pipe->last_arrival = arrival;
    pipe->frame[(pipe->first + pipe->count++) % pipe->slots] = (struct sim_frame){
        .arrival = arrival, .order = sim->order++, .tag = tag, .bytes = bytes, .data = data, .copy = copy};
    if (pipe->heap_at < 0)
        heap_add(sim, pipe);
    sim->idle = 0;
}

struct sim_frame *sim_pipe_look(struct sim_pipe *pipe)
{
    return pipe->arrived > 0 ? &pipe->frame[pipe->first] : NULL;
}

void sim_pipe_take(struct hoop_sim *sim, struct sim_pipe *pipe)
{
    struct sim_frame *frame = &pipe->frame[pipe->first];

    hoop_free(frame->copy);
    *frame = (struct sim_frame){0};
    pipe->first = (pipe->first + 1) % pipe->slots;
    pipe->count--;
    pipe->arrived--;
    pipe->taken++;
    sim->idle = 0;
}

/* ---- clock ---- */

bool sim_deliver(struct hoop_sim *sim)
{
    if (sim->flying_count == 0)
        return false;
    const int at = sim->config.shuffle ? (int)(draw(sim) % (uint64_t)sim->flying_count) : 0;
    struct sim_pipe *pipe = sim->flying[at];
    const uint64_t arrival = next_frame(pipe)->arrival;

    if (arrival > sim->now)
        sim->now = arrival;
    sim->idle = 0;
    pipe->arrived++;
    if (pipe->arrived == pipe->count)
        heap_remove(sim, pipe);
    else
        sift(sim, at);
    return true;
}

void sim_tick(struct hoop_sim *sim, bool moved)
{
    if (moved)
        sim->idle = 0;
    else
        sim->idle++;
    if (sim->idle >= sim->open || (sim->config.shuffle && (draw(sim) & 1)))
        sim_deliver(sim);
}

/* ---- network ---- */

enum hoop_status hoop_sim_create(struct hoop_sim **result, int ranks, const struct hoop_sim_config *config)
{
    if (ranks < 1 || !(config->gigabytes_per_second >= 0) || !(config->nanoseconds >= 0))
        return hoop_fail(HOOP_ERR_ARG, "sim: %d ranks, %g GB/s, %g ns are out of range", ranks,
                         config->gigabytes_per_second, config->nanoseconds);
    struct hoop_sim *sim = hoop_calloc(1, sizeof *sim);
    if (!sim)
        return HOOP_ERR_MEMORY;
    sim->config = *config;
    sim->ranks = ranks;
    sim->random = config->seed;
    sim->dead = hoop_calloc((size_t)ranks, sizeof *sim->dead);
    sim->into = hoop_calloc((size_t)ranks, sizeof *sim->into);
    pthread_mutex_init(&sim->lock, NULL);
    if (!sim->dead || !sim->into) {
        hoop_sim_destroy(sim);
        return HOOP_ERR_MEMORY;
    }
    *result = sim;
    return HOOP_OK;
}

void hoop_sim_destroy(struct hoop_sim *sim)
{
    if (!sim)
        return;
    for (int rank = 0; sim->into && rank < sim->ranks; rank++)
        while (sim->into[rank])
            pipe_free(sim, sim->into[rank]); /* its other end never connected */
    pthread_mutex_destroy(&sim->lock);
    hoop_free(sim->flying);
    hoop_free(sim->into);
    hoop_free(sim->dead);
    hoop_free(sim);
}

uint64_t hoop_sim_now(struct hoop_sim *sim)
{
    pthread_mutex_lock(&sim->lock);
    const uint64_t now = sim->now;
    pthread_mutex_unlock(&sim->lock);
    return now;
}

bool hoop_sim_advance(struct hoop_sim *sim)
{
    pthread_mutex_lock(&sim->lock);
    const bool any = sim_deliver(sim);
    pthread_mutex_unlock(&sim->lock);
    return any;
}

void hoop_sim_kill(struct hoop_sim *sim, int rank)
{
    pthread_mutex_lock(&sim->lock);
    sim->dead[rank] = true;
    for (int to = 0; to < sim->ranks; to++)
        for (struct sim_pipe *pipe = sim->into[to]; pipe; pipe = pipe->next) {
            if (pipe->from == rank) {
                heap_remove(sim, pipe);
                while (pipe->count > pipe->arrived) { /* what has not arrived never will */
                    struct sim_frame *frame = &pipe->frame[(pipe->first + --pipe->count) % pipe->slots];

                    hoop_free(frame->copy);
                    *frame = (struct sim_frame){0};
                }
                sim_pipe_stop(pipe, HOOP_ERR_PEER);
            }
            if (pipe->to == rank && pipe->receiver == HOOP_OK)
                pipe->receiver = HOOP_ERR_PEER;
        }
    sim->idle = 0;
    pthread_mutex_unlock(&sim->lock);
}
