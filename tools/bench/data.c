// SPDX-License-Identifier: BSD-3-Clause
/* Test data whose result is known to the bit, for every type and operator and in every order of reduction.
 *
 * Integers wrap, so any bits will do (with some zeros, which alone are not true). Floating-point inputs are small integers or powers of two, chosen so that every
 * partial result is exact in the type that accumulates (f32 for types smaller than it, else the type itself) and only the
 * last step may round; the same rounding is done here in double. The inputs differ from rank to rank and from element
 * to element, so that a lost, doubled or misplaced contribution shows.
 */
#include "bench.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

struct kind {
    const char *name, *long_name;
    bool is_float, is_signed;
    int exponent_bits, fraction_bits;
    int magnitude;    /* floating point: inputs of a sum are integers in ±magnitude */
    uint64_t largest; /* bits of the number at which it saturates, or 0 */
};

/* Of a pair: its value. */
static const struct kind kinds[] = {
    [HOOP_F32] = {"float", "float32", true, true, 8, 23, 1 << 10, 0},
    [HOOP_F64] = {"double", "float64", true, true, 11, 52, 1 << 30, 0},
    [HOOP_I32] = {"int32", "i32", false, true, 0, 0, 0, 0},
    [HOOP_I64] = {"int64", "i64", false, true, 0, 0, 0, 0},
    [HOOP_U8] = {"uint8", "u8", false, false, 0, 0, 0, 0},
    [HOOP_BF16] = {"bfloat16", "bf16", true, true, 8, 7, 1 << 7, 0},
    [HOOP_F16] = {"half", "float16", true, true, 5, 10, 1 << 8, 0},
    [HOOP_I8] = {"int8", "i8", false, true, 0, 0, 0, 0},
    [HOOP_I16] = {"int16", "i16", false, true, 0, 0, 0, 0},
    [HOOP_U16] = {"uint16", "u16", false, false, 0, 0, 0, 0},
    [HOOP_U32] = {"uint32", "u32", false, false, 0, 0, 0, 0},
    [HOOP_U64] = {"uint64", "u64", false, false, 0, 0, 0, 0},
    [HOOP_F8E4M3] = {"f8e4m3", "fp8_e4m3", true, true, 4, 3, 1 << 4, 0x7e},
    [HOOP_F8E5M2] = {"f8e5m2", "fp8_e5m2", true, true, 5, 2, 1 << 3, 0x7b},
    [HOOP_F32_I32] = {"float_int32", "f32_i32", true, true, 8, 23, 0, 0},
    [HOOP_F64_I64] = {"double_int64", "f64_i64", true, true, 11, 52, 0, 0},
    [HOOP_I32_I32] = {"int32_int32", "i32_i32", false, true, 0, 0, 0, 0},
    [HOOP_I64_I64] = {"int64_int64", "i64_i64", false, true, 0, 0, 0, 0},
};
_Static_assert(sizeof(kinds) / sizeof(*kinds) == HOOP_TYPES, "a type is missing");

const char *data_type_name(enum hoop_type type)
{
    return kinds[type].name;
}

int data_type_parse(const char *text)
{
    for (int type = 0; type < HOOP_TYPES; type++)
        if (strcmp(text, kinds[type].name) == 0 || strcmp(text, kinds[type].long_name) == 0 ||
            strcmp(text, hoop_type_name((enum hoop_type)type)) == 0)
            return type;
    return -1;
}

/* Bits without any order, from a rank and an element. */
static uint64_t scatter(int rank, size_t index)
{
    uint64_t x = ((uint64_t)rank + 1) * 0x9e3779b97f4a7c15u + (uint64_t)index * 0xd1342543de82ef95u;

    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

static double float_sum_input(const struct problem *p, int rank, size_t index)
{
    long long most = kinds[p->type].magnitude;

    if (p->type == HOOP_F16 && most > 32768 / p->ranks)
        most = 32768 / p->ranks; /* or the sum leaves the range */
    return (double)((long long)(scatter(rank, index) % (uint64_t)(2 * most + 1)) - most);
}

/* The mean must be exact too: the ranks' parts are 0 … n-1 in some order, so their mean is a whole or a half. 8 bits hold
 * only small integers, and their mean is rounded so coarsely that it may be anything. */
static double float_average_input(const struct problem *p, int rank, size_t index)
{
    const double common = (double)(scatter(0, index) % 64);

    if (hoop_type_size(p->type) == 1)
        return float_sum_input(p, rank, index);
    return p->ranks <= 128 ? common + (double)(((size_t)rank + index) % (size_t)p->ranks) : common;
}

/* At most six ranks bring 2 or 1/2, so that no partial product leaves any type's range; signs come from all. */
static double float_product_input(const struct problem *p, int rank, size_t index)
{
    const uint64_t bits = scatter(rank, index);
    const bool scales = ((size_t)rank + index) % (size_t)p->ranks < 6;

    return (bits & 1 ? -1.0 : 1.0) * (scales ? ldexp(1.0, (int)(bits / 2 % 3) - 1) : 1.0);
}

static double float_input(const struct problem *p, int rank, size_t index)
{
    switch (p->op) {
    case HOOP_AVG:
        return float_average_input(p, rank, index);
    case HOOP_PROD:
        return float_product_input(p, rank, index);
    default:
        return float_sum_input(p, rank, index);
    }
}

static uint64_t integer_input(const struct problem *p, int rank, size_t index)
{
    const uint64_t bits = scatter(rank, index);

    if (p->op >= HOOP_LAND && p->op <= HOOP_LXOR && (bits >> 32) % (uint64_t)(p->ranks + 1) == 0)
        return 0;
    return bits | (p->op == HOOP_PROD); /* odd factors: no bit of the product is lost */
}

static double float_combine(enum hoop_op op, double a, double b)
{
    switch (op) {
    case HOOP_PROD:
        return a * b;
    case HOOP_MIN:
        return b < a ? b : a;
    case HOOP_MAX:
        return b > a ? b : a;
    default:
        return a + b;
    }
}

/* The value of the low bytes as the type sees it. */
static int64_t widen(enum hoop_type type, uint64_t bits)
{
    const int unused = 64 - 8 * (int)hoop_type_size(type);

    return kinds[type].is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)(bits << unused >> unused);
}

static uint64_t integer_combine(const struct problem *p, uint64_t a, uint64_t b)
{
    const int64_t x = widen(p->type, a), y = widen(p->type, b);
    const bool less = kinds[p->type].is_signed ? y < x : (uint64_t)y < (uint64_t)x;

    switch (p->op) {
    case HOOP_PROD:
        return a * b;
    case HOOP_MIN:
        return less ? b : a;
    case HOOP_MAX:
        return less ? a : b;
    case HOOP_BAND:
        return a & b;
    case HOOP_BOR:
        return a | b;
    case HOOP_BXOR:
        return a ^ b;
    case HOOP_LAND:
        return x && y;
    case HOOP_LOR:
        return x || y;
    case HOOP_LXOR:
        return !x != !y;
    default:
        return a + b;
    }
}

/* The bits of the nearest number of a floating-point type (ties to even). */
static uint64_t encode(const struct kind *kind, double value)
{
    const int bias = (1 << (kind->exponent_bits - 1)) - 1;
    const uint64_t sign = signbit(value) ? (uint64_t)1 << (kind->exponent_bits + kind->fraction_bits) : 0;
    const uint64_t infinity = (((uint64_t)1 << kind->exponent_bits) - 1) << kind->fraction_bits;
    const uint64_t largest = kind->largest ? kind->largest : infinity;
    uint64_t bits;
    int exponent;
    double fraction;

    if (value == 0)
        return sign;
    frexp(value, &exponent);
    if (exponent < 2 - bias)
        exponent = 2 - bias; /* subnormal: the scale of the least normal number */
    fraction =
        rint(ldexp(fabs(value), kind->fraction_bits + 1 - exponent)); /* below 2^(fraction bits + 1), or just that */
    /* the leading bit of the fraction carries into the exponent, also when rounding made a power of two */
    bits = ((uint64_t)(exponent + bias - 2) << kind->fraction_bits) + (uint64_t)fraction;
    return sign | (bits < largest ? bits : largest);
}

static void store(size_t size, void *pattern, size_t index, uint64_t bits)
{
    unsigned char *to = (unsigned char *)pattern + index * size;

    for (size_t i = 0; i < size; i++) /* in the machine's order */
        to[__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? i : size - 1 - i] = (unsigned char)(bits >> 8 * i);
}

static bool is_pair(enum hoop_type type)
{
    return hoop_op_accepts(HOOP_MINLOC, type);
}

/* Few values, so that several ranks often have the wanted one and the index decides. */
struct pair {
    int64_t value, index;
};

static struct pair pair_input(int rank, size_t index)
{
    const uint64_t bits = scatter(rank, index);

    return (struct pair){(int64_t)(bits % 5) - 2, (int64_t)(bits >> 40)};
}

static struct pair pair_result(const struct problem *p, size_t index)
{
    struct pair best = pair_input(0, index);

    for (int rank = 1; rank < p->ranks; rank++) {
        const struct pair other = pair_input(rank, index);
        const int64_t gain = p->op == HOOP_MINLOC ? best.value - other.value : other.value - best.value;

        if (gain > 0 || (gain == 0 && other.index < best.index))
            best = other;
    }
    return best;
}

static void store_pair(enum hoop_type type, void *pattern, size_t i, struct pair pair)
{
    const struct kind *kind = &kinds[type];
    const size_t size = hoop_type_size(type) / 2;

    store(size, pattern, 2 * i, kind->is_float ? encode(kind, (double)pair.value) : (uint64_t)pair.value);
    store(size, pattern, 2 * i + 1, (uint64_t)pair.index);
}

void data_input(const struct problem *problem, int rank, void *pattern, size_t elements)
{
    const struct kind *kind = &kinds[problem->type];

    for (size_t i = 0; i < elements; i++)
        if (is_pair(problem->type))
            store_pair(problem->type, pattern, i, pair_input(rank, i));
        else
            store(hoop_type_size(problem->type), pattern, i,
                  kind->is_float ? encode(kind, float_input(problem, rank, i)) : integer_input(problem, rank, i));
}

static uint64_t float_result(const struct problem *problem, size_t index)
{
    double result = float_input(problem, 0, index);

    for (int rank = 1; rank < problem->ranks; rank++)
        result = float_combine(problem->op, result, float_input(problem, rank, index));
    return encode(&kinds[problem->type], problem->op == HOOP_AVG ? result / problem->ranks : result);
}

static uint64_t integer_result(const struct problem *problem, size_t index)
{
    uint64_t result = integer_input(problem, 0, index);

    for (int rank = 1; rank < problem->ranks; rank++)
        result = integer_combine(problem, result, integer_input(problem, rank, index));
    if (problem->ranks == 1 && problem->op >= HOOP_LAND && problem->op <= HOOP_LXOR)
        return widen(problem->type, result) != 0;
    if (problem->op != HOOP_AVG)
        return result;
    return kinds[problem->type].is_signed ? (uint64_t)(widen(problem->type, result) / problem->ranks)
                                          : (uint64_t)widen(problem->type, result) / (uint64_t)problem->ranks;
}

void data_result(const struct problem *problem, void *pattern, size_t elements)
{
    const struct kind *kind = &kinds[problem->type];

    for (size_t i = 0; i < elements; i++)
        if (is_pair(problem->type))
            store_pair(problem->type, pattern, i, pair_result(problem, i));
        else
            store(hoop_type_size(problem->type), pattern, i,
                  kind->is_float ? float_result(problem, i) : integer_result(problem, i));
}

void data_fill(void *vector, size_t elements, const void *pattern, size_t first, size_t size)
{
    char *to = vector;

    for (size_t at = first % PATTERN_PERIOD; elements > 0; at = 0) {
        const size_t run = elements < PATTERN_PERIOD - at ? elements : PATTERN_PERIOD - at;

        memcpy(to, (const char *)pattern + at * size, run * size);
        to += run * size;
        elements -= run;
    }
}

static size_t count_differences(const char *a, const char *b, size_t elements, size_t size)
{
    size_t count = 0;

    if (memcmp(a, b, elements * size) == 0)
        return 0;
    for (size_t i = 0; i < elements; i++)
        count += memcmp(a + i * size, b + i * size, size) != 0;
    return count;
}

size_t data_wrong(const void *vector, size_t elements, const void *pattern, size_t first, size_t size)
{
    const char *from = vector;
    size_t wrong = 0;

    for (size_t at = first % PATTERN_PERIOD; elements > 0; at = 0) {
        const size_t run = elements < PATTERN_PERIOD - at ? elements : PATTERN_PERIOD - at;

        wrong += count_differences(from, (const char *)pattern + at * size, run, size);
        from += run * size;
        elements -= run;
    }
    return wrong;
}
