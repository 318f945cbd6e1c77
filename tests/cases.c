// SPDX-License-Identifier: BSD-3-Clause
#include "cases.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "dtype/dtype.h"

/* Is the input, the output made of a block for each rank? */
static bool takes_blocks(const struct hoop_case *c)
{
    return c->coll == HOOP_REDUCE_SCATTER || c->coll == HOOP_ALL_TO_ALL || c->coll == HOOP_SCATTER;
}

static bool makes_blocks(const struct hoop_case *c)
{
    return c->coll == HOOP_ALL_GATHER || c->coll == HOOP_ALL_TO_ALL || c->coll == HOOP_GATHER;
}

bool case_rooted(const struct hoop_case *c)
{
    return c->coll == HOOP_REDUCE || c->coll == HOOP_BROADCAST || c->coll == HOOP_GATHER || c->coll == HOOP_SCATTER;
}

size_t case_in_bytes(const struct hoop_case *c)
{
    return c->count * hoop_type_size(c->type) * (takes_blocks(c) ? (size_t)c->ranks : 1);
}

size_t case_out_bytes(const struct hoop_case *c)
{
    return c->count * hoop_type_size(c->type) * (makes_blocks(c) ? (size_t)c->ranks : 1);
}

size_t case_in_offset(const struct hoop_case *c, int rank)
{
    return makes_blocks(c) && !takes_blocks(c) ? (size_t)rank * case_in_bytes(c) : 0;
}

size_t case_out_offset(const struct hoop_case *c, int rank)
{
    return takes_blocks(c) && !makes_blocks(c) ? (size_t)rank * case_out_bytes(c) : 0;
}

bool case_gives(const struct hoop_case *c, int rank)
{
    return c->coll != HOOP_BARRIER && ((c->coll != HOOP_BROADCAST && c->coll != HOOP_SCATTER) || rank == c->root);
}

bool case_gets(const struct hoop_case *c, int rank)
{
    return c->coll != HOOP_BARRIER && ((c->coll != HOOP_REDUCE && c->coll != HOOP_GATHER) || rank == c->root);
}

static bool is_unsigned(enum hoop_type type)
{
    return type == HOOP_U8 || type == HOOP_U16 || type == HOOP_U32 || type == HOOP_U64;
}

static bool is_real(enum hoop_type type)
{
    return hoop_type_wide(type) == HOOP_F32 || type == HOOP_F64;
}

static bool is_pair(enum hoop_type type)
{
    return hoop_op_accepts(HOOP_MINLOC, type);
}

/* Element i of a rank's input; of a pair: value * INDICES + index, so that the least number is the pair wanted. */
enum { INDICES = 16 };

static int64_t pair(int rank, size_t i)
{
    const uint64_t mixed = ((uint64_t)rank * 5 + i * 3 + i / 7) % 7, index = ((uint64_t)rank * 3 + i) % INDICES;

    return ((int64_t)(mixed % 3) - 1) * INDICES + (int64_t)index;
}

static int64_t index_of(int64_t pair)
{
    return (pair % INDICES + INDICES) % INDICES;
}

static int64_t value(const struct hoop_case *c, int rank, size_t i)
{
    const uint64_t mixed = ((uint64_t)rank * 5 + i * 3 + i / 7 + c->turn) % 7;

    if (is_pair(c->type))
        return pair(rank, i + c->turn);
    if (c->op == HOOP_PROD)
        return mixed % 3 == 0 ? 2 : 1;
    if (c->op >= HOOP_BAND) /* a bit that all have, one that differs, and 0 now and then */
        return mixed == 6 ? 0 : (int64_t)(mixed % 3 | 4);
    return is_unsigned(c->type) ? (int64_t)mixed : (int64_t)mixed - 3;
}

static void store(enum hoop_type type, void *at, size_t i, double number);

static void store_pair(enum hoop_type type, unsigned char *to, int64_t number)
{
    const bool real = type == HOOP_F32_I32 || type == HOOP_F64_I64, wide = hoop_type_size(type) == 16;
    const int64_t index = index_of(number);

    store(real ? (wide ? HOOP_F64 : HOOP_F32) : (wide ? HOOP_I64 : HOOP_I32), to, 0,
          (double)((number - index) / INDICES));
    store(wide ? HOOP_I64 : HOOP_I32, to, 1, (double)index);
}

static void store(enum hoop_type type, void *at, size_t i, double number)
{
    const size_t size = hoop_type_size(type);
    const float narrow = (float)number;
    const int64_t whole = (int64_t)number;
    unsigned char *to = (unsigned char *)at + i * size;

    if (is_pair(type))
        store_pair(type, to, whole);
    else if (type == HOOP_F64)
        memcpy(to, &number, size);
    else if (is_real(type))
        hoop_kernel_narrow(to, &narrow, 1, type);
    else
        for (size_t byte = 0; byte < size; byte++) /* in the machine's order */
            to[__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? byte : size - 1 - byte] = (unsigned char)(whole >> 8 * byte);
}

static int64_t combine(enum hoop_op op, int64_t a, int64_t b)
{
    switch (op) {
    case HOOP_MINLOC:
        return b < a ? b : a;
    case HOOP_MAXLOC: /* the greater value, the smaller index */
        return b - 2 * index_of(b) > a - 2 * index_of(a) ? b : a;
    case HOOP_PROD:
        return a * b;
    case HOOP_MIN:
        return b < a ? b : a;
    case HOOP_MAX:
        return b > a ? b : a;
    case HOOP_BAND:
        return a & b;
    case HOOP_BOR:
        return a | b;
    case HOOP_BXOR:
        return a ^ b;
    case HOOP_LAND:
        return a && b;
    case HOOP_LOR:
        return a || b;
    case HOOP_LXOR:
        return !a != !b;
    default:
        return a + b;
    }
}

static double combined(const struct hoop_case *c, size_t i)
{
    int64_t all = value(c, 0, i);

    for (int rank = 1; rank < c->ranks; rank++)
        all = combine(c->op, all, value(c, rank, i));
    if (c->ranks == 1 && c->op >= HOOP_LAND && c->op <= HOOP_LXOR)
        return all != 0;
    if (c->op != HOOP_AVG)
        return (double)all;
    if (!is_real(c->type))
        return (double)(all / c->ranks);
    return c->type == HOOP_F64 ? (double)all / c->ranks : (double)((float)all / (float)c->ranks);
}

static double expected(const struct hoop_case *c, int rank, size_t i)
{
    switch (c->coll) {
    case HOOP_BROADCAST:
        return (double)value(c, c->root, i);
    case HOOP_SCATTER:
        return (double)value(c, c->root, (size_t)rank * c->count + i);
    case HOOP_ALL_TO_ALL:
        return (double)value(c, (int)(i / c->count), (size_t)rank * c->count + i % c->count);
    case HOOP_GATHER:
    case HOOP_ALL_GATHER:
        return (double)value(c, (int)(i / c->count), i % c->count);
    case HOOP_REDUCE_SCATTER:
        return combined(c, (size_t)rank * c->count + i);
    default:
        return combined(c, i);
    }
}

void case_fill(const struct hoop_case *c, int rank, void *in)
{
    const size_t elements = case_in_bytes(c) / hoop_type_size(c->type);

    for (size_t i = 0; i < elements; i++)
        store(c->type, in, i, (double)value(c, rank, i));
}

bool case_check(const struct hoop_case *c, int rank, const void *out, char *text, size_t size)
{
    const size_t element = hoop_type_size(c->type), elements = case_out_bytes(c) / element;
    uint64_t want[2] = {0}, got[2] = {0};
    char words[160];

    for (size_t i = 0; i < elements; i++) {
        store(c->type, want, 0, expected(c, rank, i));
        memcpy(got, (const unsigned char *)out + i * element, element);
        if (memcmp(want, got, element) == 0)
            continue;
        case_text(c, words, sizeof words);
        snprintf(text, size, "%s: rank %d, element %zu: bits %#llx %#llx, must be %#llx %#llx", words, rank, i,
                 (unsigned long long)got[0], (unsigned long long)got[1], (unsigned long long)want[0],
                 (unsigned long long)want[1]);
        return false;
    }
    return true;
}

void case_text(const struct hoop_case *c, char *text, size_t size)
{
    snprintf(text, size, "%s ranks=%d count=%zu type=%s op=%s root=%d in_place=%d", hoop_coll_name(c->coll), c->ranks,
             c->count, hoop_type_name(c->type), hoop_op_name(c->op), c->root, c->in_place);
}

enum hoop_status case_call(const struct hoop_case *c, const void *in, void *out, struct hoop_comm *comm,
                           hoop_stream *stream)
{
    switch (c->coll) {
    case HOOP_ALL_REDUCE:
        return hoop_all_reduce(in, out, c->count, c->type, c->op, comm, stream);
    case HOOP_REDUCE:
        return hoop_reduce(in, out, c->count, c->type, c->op, c->root, comm, stream);
    case HOOP_BROADCAST:
        return hoop_broadcast(in, out, c->count, c->type, c->root, comm, stream);
    case HOOP_ALL_GATHER:
        return hoop_all_gather(in, out, c->count, c->type, comm, stream);
    case HOOP_REDUCE_SCATTER:
        return hoop_reduce_scatter(in, out, c->count, c->type, c->op, comm, stream);
    case HOOP_ALL_TO_ALL:
        return hoop_all_to_all(in, out, c->count, c->type, comm, stream);
    case HOOP_GATHER:
        return hoop_gather(in, out, c->count, c->type, c->root, comm, stream);
    case HOOP_SCATTER:
        return hoop_scatter(in, out, c->count, c->type, c->root, comm, stream);
    default:
        return hoop_barrier(comm, stream);
    }
}

enum hoop_status case_init(const struct hoop_case *c, const void *in, void *out, struct hoop_comm *comm,
                           hoop_stream *stream, struct hoop_handle **handle)
{
    switch (c->coll) {
    case HOOP_ALL_REDUCE:
        return hoop_all_reduce_init(in, out, c->count, c->type, c->op, comm, stream, handle);
    case HOOP_REDUCE:
        return hoop_reduce_init(in, out, c->count, c->type, c->op, c->root, comm, stream, handle);
    case HOOP_BROADCAST:
        return hoop_broadcast_init(in, out, c->count, c->type, c->root, comm, stream, handle);
    case HOOP_ALL_GATHER:
        return hoop_all_gather_init(in, out, c->count, c->type, comm, stream, handle);
    case HOOP_REDUCE_SCATTER:
        return hoop_reduce_scatter_init(in, out, c->count, c->type, c->op, comm, stream, handle);
    case HOOP_ALL_TO_ALL:
        return hoop_all_to_all_init(in, out, c->count, c->type, comm, stream, handle);
    case HOOP_GATHER:
        return hoop_gather_init(in, out, c->count, c->type, c->root, comm, stream, handle);
    case HOOP_SCATTER:
        return hoop_scatter_init(in, out, c->count, c->type, c->root, comm, stream, handle);
    default:
        return hoop_barrier_init(comm, stream, handle);
    }
}
