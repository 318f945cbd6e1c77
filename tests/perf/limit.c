// SPDX-License-Identifier: BSD-3-Clause
/* What the machine allows: sums and copies over all ranks in memory that all have mapped, with nothing around them.
 *
 * No types, operators, checks, errors or choice: each way below is tried at each size that suits it, and has a row of its own; which
 * is the best, the table says (table.awk) by the medians of many runs. The best way of each run would be more than any one can do.
 *
 *     lines   Data and sequence number share a cache line: one miss brings both. Every rank sums all in rank order.
 *     push    Rank r sums slice r from all inputs and writes it to all outputs.
 *     stream  The same with stores that pass the caches by, for what does not fit into them.
 *     pull    Rank r sums slice r into its own output; then each fetches the other slices.
 *     copy    The other calls: each rank copies from the others' inputs what it is to have (reduce-scatter: sums).
 *     past    The same with stores that pass the caches by.
 *
 * A rank's memory is one memfd; the others open it through /proc and map it whole.
 */
#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { RANKS_MOST = 64, LINE_FLOATS = 16, DATA_FLOATS = 14, LINES_MOST = 320 };

typedef float line_of_floats __attribute__((vector_size(64)));
typedef int32_t line_of_words __attribute__((vector_size(64)));
typedef float any_line_of_floats __attribute__((vector_size(64), aligned(4), may_alias));

/* The last two floats' place holds the number of the call that wrote the line. */
union line {
    line_of_floats floats;
    struct {
        float data[DATA_FLOATS];
        _Atomic uint64_t call;
    } parts;
};

/* One rank's memory, as all see it; the buffers follow. */
struct segment {
    _Alignas(128) _Atomic uint64_t ready; /* calls for which the input is there */
    _Alignas(128) _Atomic uint64_t done;  /* calls whose slice is finished */
    _Alignas(4096) union line lines[2][LINES_MOST];
};

struct exchange {
    int rank, ranks;
    bool crowded;
    uint64_t call;
    struct segment *segments[RANKS_MOST];
    float *sends[RANKS_MOST], *recvs[RANKS_MOST];
};

struct way {
    const char *name;
    bool all_reduce;    /* or one of the other calls */
    size_t least, most; /* bytes that it suits */
    void (*run)(void *context, enum measure_call call, const float *send, float *recv, size_t count);
};

static inline void wait_for(const struct exchange *x, const _Atomic uint64_t *number, uint64_t call)
{
    for (unsigned i = 1; atomic_load_explicit(number, memory_order_acquire) < call; i++)
        if (i > 50 && (x->crowded || i > 10000))
            sched_yield();
}

static void put_lines(union line *lines, const float *send, size_t count, uint64_t call)
{
    for (size_t i = 0, at = 0; at < count; i++, at += DATA_FLOATS) {
        memcpy(lines[i].parts.data, send + at, sizeof(lines[i].parts.data)); /* the buffer has a line to spare */
        atomic_store_explicit(&lines[i].parts.call, call, memory_order_release);
    }
}

/* A line's data, and 0 for its number: as floats that would be denormal, and slow to add. */
static inline line_of_floats line_data(const union line *line)
{
    const line_of_words keep = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 0};

    return (line_of_floats)((line_of_words)line->floats & keep);
}

static void by_lines(void *context, enum measure_call what, const float *send, float *recv, size_t count)
{
    struct exchange *x = context;
    (void)what;
    const uint64_t call = ++x->call;
    const int half = (int)(call & 1); /* nobody writes it again before all have read it and gone on */

    put_lines(x->segments[x->rank]->lines[half], send, count, call);
    for (size_t i = 0, at = 0; at < count; i++, at += DATA_FLOATS) {
        line_of_floats sum = {0};

        for (int rank = 0; rank < x->ranks; rank++) {
            const union line *line = &x->segments[rank]->lines[half][i];

            wait_for(x, &line->parts.call, call);
            sum += line_data(line);
        }
        *(any_line_of_floats *)(recv + at) = sum; /* two floats too many: the next line's, or to spare */
    }
}

/* Lines of slice r: from its start to the next one's. */
static size_t slice_start(size_t count, int rank, int ranks)
{
    const size_t lines = (count + LINE_FLOATS - 1) / LINE_FLOATS;

    return lines * (size_t)rank / (size_t)ranks;
}

static inline void store_past_caches(line_of_floats *to, line_of_floats value)
{
#if defined(__AVX512F__)
    _mm512_stream_ps((float *)to, (__m512)value);
#elif defined(__x86_64__)
    for (int i = 0; i < 4; i++)
        _mm_stream_ps((float *)to + 4 * i, _mm_loadu_ps((const float *)&value + 4 * i));
#else
    *to = value;
#endif
}

static inline line_of_floats sum_line(const struct exchange *x, size_t i)
{
    line_of_floats sum = ((const line_of_floats *)x->sends[0])[i];

    for (int rank = 1; rank < x->ranks; rank++)
        sum += ((const line_of_floats *)x->sends[rank])[i];
    return sum;
}

static inline void push_slice(struct exchange *x, size_t first, size_t end, bool stream)
{
    if (x->ranks == 2) { /* without inner loops */
        const line_of_floats *a = (const line_of_floats *)x->sends[0], *b = (const line_of_floats *)x->sends[1];
        line_of_floats *c = (line_of_floats *)x->recvs[0], *d = (line_of_floats *)x->recvs[1];

        for (size_t i = first; i < end; i++) {
            const line_of_floats sum = a[i] + b[i];

            if (stream) {
                store_past_caches(&c[i], sum);
                store_past_caches(&d[i], sum);
            } else {
                c[i] = d[i] = sum;
            }
        }
        return;
    }
    for (size_t i = first; i < end; i++) {
        const line_of_floats sum = sum_line(x, i);

        for (int rank = 0; rank < x->ranks; rank++)
            if (stream)
                store_past_caches((line_of_floats *)x->recvs[rank] + i, sum);
            else
                ((line_of_floats *)x->recvs[rank])[i] = sum;
    }
}

static void all_ready(struct exchange *x)
{
    atomic_store_explicit(&x->segments[x->rank]->ready, ++x->call, memory_order_release);
    for (int rank = 0; rank < x->ranks; rank++)
        wait_for(x, &x->segments[rank]->ready, x->call);
}

static void all_done(struct exchange *x)
{
    atomic_store_explicit(&x->segments[x->rank]->done, x->call, memory_order_release);
    for (int rank = 0; rank < x->ranks; rank++)
        wait_for(x, &x->segments[rank]->done, x->call);
}

static void by_push(void *context, enum measure_call what, const float *send, float *recv, size_t count)
{
    struct exchange *x = context;

    (void)what, (void)send, (void)recv;
    all_ready(x);
    push_slice(x, slice_start(count, x->rank, x->ranks), slice_start(count, x->rank + 1, x->ranks), false);
    all_done(x);
}

static void by_stream(void *context, enum measure_call what, const float *send, float *recv, size_t count)
{
    struct exchange *x = context;

    (void)what, (void)send, (void)recv;
    all_ready(x);
    push_slice(x, slice_start(count, x->rank, x->ranks), slice_start(count, x->rank + 1, x->ranks), true);
#ifdef __x86_64__
    _mm_sfence();
#endif
    all_done(x);
}

static void by_pull(void *context, enum measure_call what, const float *send, float *recv, size_t count)
{
    struct exchange *x = context;

    (void)what, (void)send;
    all_ready(x);
    for (size_t i = slice_start(count, x->rank, x->ranks); i < slice_start(count, x->rank + 1, x->ranks); i++)
        ((line_of_floats *)recv)[i] = sum_line(x, i);
    atomic_store_explicit(&x->segments[x->rank]->done, x->call, memory_order_release);
    for (int step = 1; step < x->ranks; step++) {
        const int rank = (x->rank + step) % x->ranks;
        const size_t first = slice_start(count, rank, x->ranks), end = slice_start(count, rank + 1, x->ranks);

        wait_for(x, &x->segments[rank]->done, x->call);
        memcpy((line_of_floats *)recv + first, (line_of_floats *)x->recvs[rank] + first,
               (end - first) * sizeof(line_of_floats));
    }
}

static void move(float *to, const float *from, size_t count, bool past)
{
    if (!past) {
        memcpy(to, from, count * sizeof(float));
        return;
    }
    for (size_t i = 0; i < count / LINE_FLOATS; i++)
        store_past_caches((line_of_floats *)to + i, ((const line_of_floats *)from)[i]);
}

static void sum_own_block(const struct exchange *x, float *recv, size_t block, bool past)
{
    const size_t first = (size_t)x->rank * block / LINE_FLOATS;

    for (size_t i = 0; i < block / LINE_FLOATS; i++) {
        const line_of_floats sum = sum_line(x, first + i);

        if (past)
            store_past_caches((line_of_floats *)recv + i, sum);
        else
            ((line_of_floats *)recv)[i] = sum;
    }
}

/* The other calls; blocks are whole lines at the sizes that are asked for. */
static void copy_or_sum(struct exchange *x, enum measure_call what, float *recv, size_t count, bool past)
{
    const size_t block = count / (size_t)x->ranks;

    all_ready(x);
    if (what == REDUCE_SCATTER)
        sum_own_block(x, recv, block, past);
    else if (what == BROADCAST && x->rank > 0)
        move(recv, x->sends[0], count, past);
    for (int step = 0; step < x->ranks && (what == ALL_GATHER || what == ALL_TO_ALL); step++) {
        const size_t rank = (size_t)((x->rank + step) % x->ranks), of = what == ALL_GATHER ? 0 : (size_t)x->rank;
        move(recv + rank * block, x->sends[rank] + of * block, block, past);
    }
#ifdef __x86_64__
    _mm_sfence();
#endif
    all_done(x);
}

static void by_copy(void *context, enum measure_call what, const float *send, float *recv, size_t count)
{
    (void)send;
    copy_or_sum(context, what, recv, count, false);
}

static void by_copy_past(void *context, enum measure_call what, const float *send, float *recv, size_t count)
{
    (void)send;
    copy_or_sum(context, what, recv, count, true);
}

static const struct way ways[] = {
    {"lines", true, 0, LINES_MOST *DATA_FLOATS * sizeof(float), by_lines},
    {"push", true, 1024, SIZE_MAX, by_push},
    {"stream", true, 256 << 10, SIZE_MAX, by_stream},
    {"pull", true, 1024, SIZE_MAX, by_pull},
    {"copy", false, 1024, SIZE_MAX, by_copy},
    {"past", false, 256 << 10, SIZE_MAX, by_copy_past},
};

static struct segment *map(const struct measure *m, int descriptor)
{
    void *memory =
        mmap(NULL, sizeof(struct segment) + 2 * measure_room(m), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);

    if (memory == MAP_FAILED)
        measure_fail(m, "mmap", strerror(errno));
    return memory;
}

/* Make the own segment and map all. */
static void open_segments(struct measure *m, struct exchange *x)
{
    const int own = memfd_create("limit", MFD_CLOEXEC);

    if (own < 0 || ftruncate(own, (off_t)(sizeof(struct segment) + 2 * measure_room(m))) != 0)
        measure_fail(m, "memfd", strerror(errno));
    memset(map(m, own), 0,
           sizeof(struct segment) + 2 * measure_room(m)); /* this rank's pages, on its side of the machine */
    measure_publish(m, (long)getpid() << 16 | own);
    measure_barrier(m);
    for (int rank = 0; rank < m->ranks; rank++) {
        const long number = measure_published(m, rank);
        char path[64];
        int descriptor;

        snprintf(path, sizeof(path), "/proc/%ld/fd/%ld", number >> 16, number & 0xffff);
        descriptor = open(path, O_RDWR | O_CLOEXEC);
        if (descriptor < 0)
            measure_fail(m, path, strerror(errno));
        x->segments[rank] = map(m, descriptor);
        x->sends[rank] = (float *)(x->segments[rank] + 1);
        x->recvs[rank] = x->sends[rank] + measure_room(m) / sizeof(float);
        close(descriptor);
    }
    measure_barrier(m);
}

int main(int argc, char **argv)
{
    static struct exchange x;
    struct measure m;
    const char *size = getenv("HOOP_SIZE");

    measure_begin(&m, argc, argv);
    if (size == NULL)
        measure_fail(&m, "HOOP_SIZE", "start it by hooprun");
    measure_join(&m, m.rank, (int)strtol(size, NULL, 10));
    x = (struct exchange){.rank = m.rank, .ranks = m.ranks, .crowded = m.crowded};
    open_segments(&m, &x);
    for (int i = 0; i < m.size_count; i++)
        for (const struct way *way = ways; way < ways + sizeof(ways) / sizeof(*ways); way++) {
            const struct measure_peer peer = {&x, way->run, NULL, x.sends[m.rank], x.recvs[m.rank]};

            if (m.sizes[i] >= way->least && m.sizes[i] <= way->most && way->all_reduce == (m.call == ALL_REDUCE))
                measure_print(&m, m.sizes[i], measure_size(&m, &peer, m.sizes[i]), way->name);
        }
    return 0;
}
