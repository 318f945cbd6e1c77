// SPDX-License-Identifier: BSD-3-Clause
#include "plan/simulate_queue.h"

#include "base/alloc.h"

enum { FIRST_ROOM = 1024 };

/* ---- room ---- */

static uint32_t hash_of(const struct hoop_sim_queue *queue, uint64_t time)
{
    return (uint32_t)(time * 0x9e3779b97f4a7c15u >> 32) & (queue->moment_room - 1);
}

static void enter(struct hoop_sim_queue *queue, uint32_t number)
{
    uint32_t *place = &queue->place[hash_of(queue, queue->moment[number].time)];

    queue->moment[number].next = *place;
    *place = number;
}

/* Twice the room; every moment is in use. */
static enum hoop_status more_moments(struct hoop_sim_queue *queue)
{
    const uint32_t room = queue->moment_room ? 2 * queue->moment_room : FIRST_ROOM;
    struct hoop_sim_moment *moment = hoop_realloc(queue->moment, room, sizeof *moment);

    if (moment == NULL)
        return HOOP_ERR_MEMORY;
    queue->moment = moment;
    struct hoop_sim_time *heap = hoop_realloc(queue->heap, room, sizeof *heap);
    if (heap == NULL)
        return HOOP_ERR_MEMORY;
    queue->heap = heap;
    uint32_t *place = hoop_calloc(room, sizeof *place);
    if (place == NULL)
        return HOOP_ERR_MEMORY;
    hoop_free(queue->place);
    queue->place = place;
    queue->moment_room = room;
    if (queue->moments == 0)
        queue->moments = 1;
    for (uint32_t i = 1; i < queue->moments; i++)
        enter(queue, i);
    return HOOP_OK;
}

/* A number of its own for a moment or a lot; 0: no memory. */
static uint32_t new_moment(struct hoop_sim_queue *queue)
{
    const uint32_t number = queue->free_moment;

    if (number != 0) {
        queue->free_moment = queue->moment[number].next;
        return number;
    }
    if (queue->moments == queue->moment_room && more_moments(queue) != HOOP_OK)
        return 0;
    return queue->moments++;
}

static uint32_t new_lot(struct hoop_sim_queue *queue)
{
    const uint32_t number = queue->free_lot;

    if (number != 0) {
        queue->free_lot = queue->lot[number].next;
        return number;
    }
    if (queue->lots == queue->lot_room) {
        const uint32_t room = queue->lot_room ? 2 * queue->lot_room : FIRST_ROOM;
        struct hoop_sim_lot *lot = hoop_realloc(queue->lot, room, sizeof *lot);
        if (lot == NULL)
            return 0;
        queue->lot = lot;
        queue->lot_room = room;
        if (queue->lots == 0)
            queue->lots = 1;
    }
    return queue->lots++;
}

static void free_lot(struct hoop_sim_queue *queue, uint32_t number)
{
    queue->lot[number].next = queue->free_lot;
    queue->free_lot = number;
}

/* ---- times ---- */

static void push_time(struct hoop_sim_queue *queue, uint64_t time, uint32_t moment)
{
    struct hoop_sim_time *heap = queue->heap;
    uint32_t at = queue->times++;

    for (; at > 0 && time < heap[(at - 1) / 2].time; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = (struct hoop_sim_time){time, moment};
}

static void pop_time(struct hoop_sim_queue *queue)
{
    struct hoop_sim_time *heap = queue->heap;
    const struct hoop_sim_time last = heap[--queue->times];
    uint32_t at = 0, child;

    while ((child = 2 * at + 1) < queue->times) {
        child += child + 1 < queue->times && heap[child + 1].time < heap[child].time;
        if (heap[child].time >= last.time)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
}

/* The moment of that time, made if there is none; 0: no memory. */
static uint32_t moment_at(struct hoop_sim_queue *queue, uint64_t time)
{
    uint32_t number = queue->moment_room ? queue->place[hash_of(queue, time)] : 0;

    while (number != 0 && queue->moment[number].time != time)
        number = queue->moment[number].next;
    if (number != 0 || (number = new_moment(queue)) == 0)
        return number;
    queue->moment[number] = (struct hoop_sim_moment){.time = time};
    enter(queue, number);
    push_time(queue, time, number);
    return number;
}

enum hoop_status hoop_sim_push(struct hoop_sim_queue *queue, uint64_t time, uint32_t what)
{
    if (queue->latest == 0 || queue->moment[queue->latest].time != time)
        queue->latest = moment_at(queue, time);
    if (queue->latest == 0)
        return HOOP_ERR_MEMORY;
    struct hoop_sim_moment *moment = &queue->moment[queue->latest];
    if (moment->last == 0 || moment->filled == HOOP_SIM_LOT) {
        const uint32_t lot = new_lot(queue);
        if (lot == 0)
            return HOOP_ERR_MEMORY;
        queue->lot[lot].next = 0;
        if (moment->last != 0)
            queue->lot[moment->last].next = lot;
        else
            moment->first = lot;
        moment->last = lot;
        moment->filled = 0;
    }
    queue->lot[moment->last].what[moment->filled++] = what;
    return HOOP_OK;
}

bool hoop_sim_earliest(const struct hoop_sim_queue *queue, uint64_t *time)
{
    if (queue->times > 0)
        *time = queue->heap[0].time;
    return queue->times > 0;
}

bool hoop_sim_take(struct hoop_sim_queue *queue, uint32_t *what)
{
    struct hoop_sim_moment *moment = &queue->moment[queue->heap[0].moment];
    const uint32_t first = moment->first;

    if (first == moment->last && moment->taken == moment->filled) /* also if there is no lot */
        return false;
    *what = queue->lot[first].what[moment->taken++];
    if (moment->taken == HOOP_SIM_LOT) {
        moment->first = queue->lot[first].next;
        if (first == moment->last)
            moment->last = moment->filled = 0;
        moment->taken = 0;
        free_lot(queue, first);
    }
    return true;
}

void hoop_sim_end(struct hoop_sim_queue *queue)
{
    const uint32_t number = queue->heap[0].moment;
    struct hoop_sim_moment *moment = &queue->moment[number];
    uint32_t *place = &queue->place[hash_of(queue, moment->time)];

    while (*place != number)
        place = &queue->moment[*place].next;
    *place = moment->next;
    if (moment->first != 0)
        free_lot(queue, moment->first);
    if (queue->latest == number)
        queue->latest = 0;
    moment->next = queue->free_moment;
    queue->free_moment = number;
    pop_time(queue);
}

size_t hoop_sim_queue_bytes(const struct hoop_sim_queue *queue)
{
    return queue->lot_room * sizeof *queue->lot +
           queue->moment_room * (sizeof *queue->moment + sizeof *queue->heap + sizeof *queue->place);
}

void hoop_sim_queue_free(struct hoop_sim_queue *queue)
{
    hoop_free(queue->lot);
    hoop_free(queue->moment);
    hoop_free(queue->heap);
    hoop_free(queue->place);
}
