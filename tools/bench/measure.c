// SPDX-License-Identifier: BSD-3-Clause
/* Measure one row. What decides the course (how many calls) is agreed by all ranks with the collective under test's
 * own library, outside of what is timed. */
#include "bench.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECONDS_A_METHOD 0.3 /* for one side of one row, unless -n says how many calls */

enum { GUARD_BYTES = 64, GUARD_VALUE = 0x5a, ISOLATED_LEAST = 5 };

double clock_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void must(enum hoop_status status, const char *what, const struct hoop_comm *comm)
{
    const char *cause = hoop_last_error(comm);

    if (status == HOOP_OK)
        return;
    if (comm != NULL && *cause == '\0')
        cause = hoop_last_error(NULL); /* a wrong argument leaves the communicator alone */
    progress_clear();
    if (comm != NULL && strncmp(cause, "rank ", 5) != 0)
        fprintf(stderr, "hoop-bench: rank %d: %s: ", hoop_comm_rank(comm), what);
    else
        fprintf(stderr, "hoop-bench: %s: ", what);
    fprintf(stderr, "%s\n", *cause != '\0' ? cause : hoop_strerror(status));
    exit(EXIT_LIBRARY);
}

void *must_have(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "hoop-bench: no memory\n");
        exit(EXIT_LIBRARY);
    }
    return memory;
}

static void agree(const struct problem *p, double *values, size_t count, enum hoop_op op)
{
    must(hoop_all_reduce(values, values, count, HOOP_F64, op, p->comm, NULL), "agreeing on times", p->comm);
}

static size_t largest(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void *ordinary_memory(size_t bytes)
{
    return must_have(aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
}

/* Bring the first bytes of a buffer to where the calls see them, and back to where the host does. */
static void to_buffer(const struct workspace *w, int i, size_t bytes)
{
    if (w->images[i] != w->buffers[i])
        must(hoop_mem_copy(w->comm, w->buffers[i], w->images[i], bytes), "copying to the device", w->comm);
}

static void to_image(const struct workspace *w, int i, size_t bytes)
{
    if (w->images[i] != w->buffers[i])
        must(hoop_mem_copy(w->comm, w->images[i], w->buffers[i], bytes), "copying from the device", w->comm);
}

static void clear(const struct workspace *w, size_t bytes)
{
    for (int i = 0; i < 2; i++) {
        memset(w->images[i], 0, bytes);
        to_buffer(w, i, bytes);
    }
}

void workspace_open(struct workspace *place, const struct options *options, struct hoop_comm *comm)
{
    *place = (struct workspace){.options = options, .comm = comm, .bytes = options->most + GUARD_BYTES};
    for (int i = 0; i < 2; i++) {
        void *buffer = NULL;

        if (options->ordinary)
            buffer = ordinary_memory(place->bytes);
        else if (options->device)
            must(hoop_mem_alloc(comm, &buffer, place->bytes), "device memory for the buffers", comm);
        else
            must(hoop_mem_alloc_host(comm, &buffer, place->bytes), "memory for the buffers", comm);
        place->buffers[i] = buffer;
        place->images[i] = options->device ? ordinary_memory(place->bytes) : buffer;
        memset(place->images[i], 0, place->bytes); /* pages of their own, not the kernel's one page of zeros */
        place->patterns[i] = must_have(malloc(PATTERN_PERIOD * sizeof(struct hoop_f64_i64)));
    }
}

void workspace_close(struct workspace *place)
{
    for (int i = 0; i < 2; i++) {
        if (place->options->ordinary)
            free(place->buffers[i]);
        else
            must(hoop_mem_free(place->comm, place->buffers[i]), "freeing the buffers", place->comm);
        if (place->options->device)
            free(place->images[i]);
        free(place->patterns[i]);
    }
    free(place->times);
}

/* Where a call reads and writes. */
struct place {
    char *send, *recv;
};

static struct place place_in(char *const *buffers, const struct problem *p, bool in_place)
{
    const size_t block = (size_t)p->rank * p->count * hoop_type_size(p->type);
    struct place place = {buffers[in_place], buffers[1]};

    if (in_place && p->collective->shape == SHAPE_GATHER)
        place.send += block;
    if (in_place && p->collective->shape == SHAPE_SCATTER)
        place.recv += block;
    return place;
}

static struct place where(const struct workspace *w, const struct problem *p, bool in_place)
{
    return place_in(w->buffers, p, in_place);
}

static void call(const struct problem *p, struct place at)
{
    must(p->collective->run(p, at.send, at.recv), p->collective->name, p->comm);
}

static void barrier(struct hoop_comm *comm)
{
    must(hoop_barrier(comm, NULL), "barrier", comm);
}

/* Run count calls back to back; returns the seconds of one, on this rank. */
static double run_back_to_back(const struct problem *p, struct place at, int count)
{
    double start;

    barrier(p->comm);
    start = clock_seconds();
    for (int i = 0; i < count; i++)
        call(p, at);
    return (clock_seconds() - start) / count;
}

/* How many calls: what was asked for, or by size, but no longer than bearable. Warms up, too. */
static int plan_iterations(const struct workspace *w, const struct row *row, struct place at)
{
    const struct problem *p = &row->problem;
    const int usual = row->bytes <= 65536 ? 1000 : row->bytes <= 1048576 ? 200 : 20;
    double seconds = 0;

    if (w->options->warmups > 0 || w->options->iterations == 0)
        seconds = run_back_to_back(p, at, w->options->warmups > 0 ? w->options->warmups : 1);
    if (w->options->iterations > 0)
        return w->options->iterations;
    agree(p, &seconds, 1, HOOP_MAX);
    if (seconds * usual <= SECONDS_A_METHOD)
        return usual;
    return seconds * ISOLATED_LEAST >= SECONDS_A_METHOD ? ISOLATED_LEAST : (int)(SECONDS_A_METHOD / seconds);
}

static void room_for_times(struct workspace *w, int count)
{
    if (count <= w->times_capacity)
        return;
    w->times = must_have(realloc(w->times, (size_t)count * sizeof(*w->times)));
    w->times_capacity = count;
}

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The least time that so many percent of the calls did not exceed. */
static double percentile(const double *sorted, int count, int percent)
{
    const int rank = (int)(((long long)count * percent + 99) / 100);

    return sorted[rank > 0 ? rank - 1 : 0];
}

/* Times of the slowest rank, sorted. */
static void sort_times(const struct problem *p, double *times, int count)
{
    agree(p, times, (size_t)count, HOOP_MAX);
    qsort(times, (size_t)count, sizeof(*times), by_size);
}

static void evaluate_isolated(const struct problem *p, double *times, int count, struct side *side)
{
    double mean = 0;
    static const enum hoop_op ops[3] = {HOOP_AVG, HOOP_MIN, HOOP_MAX};

    for (int i = 0; i < count; i++)
        mean += times[i] / count;
    for (int i = 0; i < 3; i++) {
        side->mean[i] = mean;
        agree(p, &side->mean[i], 1, ops[i]);
    }
    sort_times(p, times, count);
    side->p50 = percentile(times, count, 50);
    side->p99 = percentile(times, count, 99);
    side->most = times[count - 1];
}

/* As a program that computes its input would have done just before the call. */
static void rewrite_input(const struct workspace *w, const struct problem *p, struct place at)
{
    const size_t bytes = problem_send_elements(p) * hoop_type_size(p->type);

    if (w->options->device)
        must(hoop_mem_copy(w->comm, at.send, w->images[0], bytes), "copying to the device", w->comm);
    else
        memset(at.send, 0, bytes);
}

/* One isolated call; returns its seconds on this rank. */
static double run_isolated(const struct workspace *w, const struct problem *p, struct place at)
{
    double start;

    if (w->options->dirty)
        rewrite_input(w, p, at);
    barrier(w->gate ? w->gate : p->comm);
    start = clock_seconds();
    call(p, at);
    return clock_seconds() - start;
}

static void measure_isolated(struct workspace *w, const struct row *row, struct place at, struct side *side)
{
    const struct problem *p = &row->problem;

    room_for_times(w, row->iterations);
    for (int i = 0; i < row->iterations; i++) {
        w->times[i] = run_isolated(w, p, at);
        progress_part("isolated calls", (double)i / row->iterations);
    }
    evaluate_isolated(p, w->times, row->iterations, side);
}

static void read_plan(const struct problem *p, char plan[static 64])
{
    struct hoop_stats stats = {.size = sizeof(stats)};

    must(hoop_stats(p->comm, &stats), "hoop_stats", p->comm);
    memcpy(plan, stats.last_plan, sizeof(stats.last_plan));
}

/* Calls without and with HOOP_DETERMINISTIC by turns, so that whatever else the machine does meets both. */
static void measure_price(struct workspace *w, const struct row *row, bool in_place, struct price *price)
{
    struct problem p = row->problem, q = row->problem;
    const struct place at = where(w, &p, in_place), at_ordered = where(w->ordered, &q, in_place);

    q.comm = w->ordered->comm;
    room_for_times(w, row->iterations);
    room_for_times(w->ordered, row->iterations);
    clear(w->ordered, row->bytes);
    call(&q, at_ordered);
    read_plan(&q, price->plan);
    for (int i = 0; i < row->iterations; i++) {
        w->times[i] = run_isolated(w, &p, at);
        w->ordered->times[i] = run_isolated(w->ordered, &q, at_ordered);
        progress_part("with and without HOOP_DETERMINISTIC", (double)i / row->iterations);
    }
    sort_times(&p, w->times, row->iterations);
    sort_times(&p, w->ordered->times, row->iterations);
    price->present = true;
    price->p50 = percentile(w->ordered->times, row->iterations, 50);
    price->ratio = price->p50 / percentile(w->times, row->iterations, 50);
}

/* This rank's input, and what it must receive (blocks from everybody: see check_blocks). */
static void write_patterns(const struct workspace *w, const struct problem *p)
{
    const size_t total = largest(problem_send_elements(p), problem_recv_elements(p));
    const size_t elements = total < PATTERN_PERIOD ? total : PATTERN_PERIOD;

    data_input(p, p->rank, w->patterns[0], elements);
    if (p->collective->reduces)
        data_result(p, w->patterns[1], elements);
    else
        data_input(p, p->root, w->patterns[1], elements);
}

/* One block from every rank: all of its input, or (all_to_all) the block for this rank. */
static size_t check_blocks(const struct workspace *w, const struct problem *p, const char *recv)
{
    const size_t first = p->collective->shape == SHAPE_EXCHANGE ? (size_t)p->rank * p->count : 0;
    const size_t inputs = problem_send_elements(p);
    const size_t size = hoop_type_size(p->type);
    size_t wrong = 0;

    for (int rank = 0; rank < p->ranks; rank++) {
        data_input(p, rank, w->patterns[1], inputs < PATTERN_PERIOD ? inputs : PATTERN_PERIOD);
        wrong += data_wrong(recv + (size_t)rank * p->count * size, p->count, w->patterns[1], first, size);
    }
    return wrong;
}

/* Elements of this rank that are not as they must be: received ones, inputs that were changed, bytes behind the end. */
static size_t check_result(const struct workspace *w, const struct problem *p, struct place at, bool in_place)
{
    const size_t size = hoop_type_size(p->type);
    const size_t first = p->collective->shape == SHAPE_SCATTER ? (size_t)p->rank * p->count : 0;
    const char *end = w->images[1] + largest(problem_send_elements(p), problem_recv_elements(p)) * size;
    const bool to_root = p->collective->rooted && (p->collective->reduces || p->collective->shape == SHAPE_GATHER);
    const bool receives = !to_root || p->rank == p->root;
    size_t wrong = 0;

    if (receives && (p->collective->shape == SHAPE_GATHER || p->collective->shape == SHAPE_EXCHANGE))
        wrong += check_blocks(w, p, w->images[1]);
    else if (receives)
        wrong += data_wrong(at.recv, p->count, w->patterns[1], first, size);
    if (!in_place)
        wrong += data_wrong(at.send, problem_send_elements(p), w->patterns[0], 0, size);
    for (size_t i = 0; i < GUARD_BYTES; i++)
        wrong += end[i] != GUARD_VALUE;
    return wrong;
}

/* Fresh data, one call, a look at every element; the sum over all ranks. */
static long long check(const struct workspace *w, const struct problem *p, bool in_place)
{
    const struct place at = place_in(w->images, p, in_place);
    const size_t size = hoop_type_size(p->type);
    const size_t bytes = GUARD_BYTES + largest(problem_send_elements(p), problem_recv_elements(p)) * size;
    double wrong;

    write_patterns(w, p);
    memset(w->images[1], GUARD_VALUE, bytes);
    data_fill(at.send, problem_send_elements(p), w->patterns[0], 0, size);
    to_buffer(w, 0, bytes);
    to_buffer(w, 1, bytes);
    call(p, where(w, p, in_place));
    to_image(w, 0, bytes);
    to_image(w, 1, bytes);
    wrong = (double)check_result(w, p, at, in_place);
    agree(p, &wrong, 1, HOOP_SUM);
    return (long long)wrong;
}

static void measure_side(struct workspace *w, struct row *row, bool in_place)
{
    struct side *side = &row->sides[in_place];
    const struct problem *p = &row->problem;
    const struct place at = where(w, p, in_place);

    *side = (struct side){.present = true, .wrong = -1};
    progress_part("warming up", 0);
    clear(w, row->bytes);
    row->iterations = plan_iterations(w, row, at);
    progress_part("back to back", 0);
    if (!w->options->osu)
        side->time = run_back_to_back(p, at, row->iterations);
    read_plan(p, side->plan);
    agree(p, &side->time, 1, HOOP_AVG);
    measure_isolated(w, row, at, side);
    if (w->ordered)
        measure_price(w, row, in_place, &side->price);
    if (w->options->checks > 0 && p->collective->shape != SHAPE_NONE)
        side->wrong = 0;
    for (int i = 0; i < w->options->checks && p->collective->shape != SHAPE_NONE; i++) {
        progress_part("checking", (double)i / w->options->checks);
        side->wrong += check(w, p, in_place);
    }
}

void measure_row(struct workspace *w, struct row *row)
{
    const struct problem *p = &row->problem;

    row->bytes = largest(problem_send_elements(p), problem_recv_elements(p)) * hoop_type_size(p->type);
    row->sides[1].present = false;
    measure_side(w, row, false);
    if (p->collective->shape != SHAPE_NONE && !w->options->osu)
        measure_side(w, row, true);
}

double measure_quartile(struct workspace *w, const struct problem *p)
{
    enum { LEAST = 3, MOST = 25 };
    const struct place at = where(w, p, false);
    double seconds;

    run_isolated(w, p, at); /* makes the plan and its links */
    seconds = run_isolated(w, p, at);
    agree(p, &seconds, 1, HOOP_MAX);
    const int count = seconds * LEAST > 0.01 ? LEAST : seconds * MOST < 0.01 ? MOST : (int)(0.01 / seconds);
    room_for_times(w, count);
    for (int i = 0; i < count; i++)
        w->times[i] = run_isolated(w, p, at);
    sort_times(p, w->times, count);
    return percentile(w->times, count, 25);
}
