// SPDX-License-Identifier: BSD-3-Clause
#include "unit/dtype_reference.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#if defined(__SIZEOF_FLOAT128__)
typedef __float128 wide_real;
#else
typedef long double wide_real; /* 113 bits on the other 64-bit machines */
#endif
typedef __int128 wide_integer;
typedef unsigned __int128 wide_unsigned;

struct format {
    bool real, has_sign;
    int fraction, exponent;       /* bits */
    uint64_t largest;             /* where finite numbers saturate, or 0 */
    bool only_ones_are_no_number; /* no infinity; NaN is all ones */
};

static struct format format_of(enum hoop_type type)
{
    switch (type) {
    case HOOP_F32:
        return (struct format){.real = true, .fraction = 23, .exponent = 8};
    case HOOP_F64:
        return (struct format){.real = true, .fraction = 52, .exponent = 11};
    case HOOP_F16:
        return (struct format){.real = true, .fraction = 10, .exponent = 5};
    case HOOP_BF16:
        return (struct format){.real = true, .fraction = 7, .exponent = 8};
    case HOOP_F8E4M3:
        return (struct format){
            .real = true, .fraction = 3, .exponent = 4, .largest = 0x7e, .only_ones_are_no_number = true};
    case HOOP_F8E5M2:
        return (struct format){.real = true, .fraction = 2, .exponent = 5, .largest = 0x7b};
    case HOOP_I8:
    case HOOP_I16:
    case HOOP_I32:
    case HOOP_I64:
        return (struct format){.has_sign = true};
    default:
        return (struct format){0};
    }
}

static uint64_t read_bits(const void *from, size_t i, enum hoop_type type)
{
    uint64_t bits = 0;

    memcpy(&bits, (const unsigned char *)from + i * hoop_type_size(type), hoop_type_size(type));
    return bits;
}

static void write_bits(void *to, size_t i, enum hoop_type type, uint64_t bits)
{
    memcpy((unsigned char *)to + i * hoop_type_size(type), &bits, hoop_type_size(type));
}

static double decode(uint64_t bits, struct format format)
{
    const uint64_t fraction = bits & ((UINT64_C(1) << format.fraction) - 1);
    const int top = (1 << format.exponent) - 1, exponent = (int)(bits >> format.fraction) & top;
    const int bias = top / 2;
    const double sign = bits >> (format.fraction + format.exponent) ? -1 : 1;

    if (format.only_ones_are_no_number && exponent == top) {
        if (fraction + 1 == UINT64_C(1) << format.fraction)
            return (double)NAN;
    } else if (exponent == top)
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp((double)fraction, 1 - bias - format.fraction);
    return sign * ldexp((double)(fraction + (UINT64_C(1) << format.fraction)), exponent - bias - format.fraction);
}

static uint64_t encode(double value, struct format format)
{
    const int top = (1 << format.exponent) - 1, bias = top / 2;
    const uint64_t infinite = (uint64_t)top << format.fraction;
    const uint64_t ones = infinite | ((UINT64_C(1) << format.fraction) - 1);
    const uint64_t largest = format.largest ? format.largest : infinite;
    const uint64_t sign = (uint64_t)(signbit(value) != 0) << (format.fraction + format.exponent);
    int exponent = 1 - bias;

    if (isnan(value))
        return format.only_ones_are_no_number ? ones : infinite | UINT64_C(1) << (format.fraction - 1);
    value = fabs(value);
    if (isinf(value))
        return sign | (format.only_ones_are_no_number ? largest : infinite);
    if (value >= ldexp(1, exponent))
        exponent = ilogb(value);

    /* In units of the last place; a carry moves on into the exponent, at last to infinity. */
    const uint64_t units = (uint64_t)rint(ldexp(value, format.fraction - exponent));
    const uint64_t bits = units + ((uint64_t)(exponent + bias - 1) << format.fraction);
    return sign | (bits < largest ? bits : largest);
}

double reference_decode(uint16_t stored, enum hoop_type type)
{
    return decode(stored, format_of(type));
}

uint16_t reference_encode(double value, enum hoop_type type)
{
    return (uint16_t)encode(value, format_of(type));
}

static bool below(double a, double b)
{
    return a < b || (a == b && signbit(a) && !signbit(b));
}

/* The type to carry is double for F64, float for the others. */
static double combine_reals(double a, double b, enum hoop_type type, enum hoop_op op)
{
    wide_real wide;

    if (op == HOOP_MIN || op == HOOP_MAX) {
        if (isnan(a) || isnan(b))
            return (double)NAN;
        return below(a, b) == (op == HOOP_MIN) ? a : b;
    }
    wide = op == HOOP_PROD ? (wide_real)a * (wide_real)b : (wide_real)a + (wide_real)b;
    return type == HOOP_F64 ? (double)wide : (double)(float)wide;
}

static uint64_t reduce_reals(const unsigned char *const *inputs, int n, size_t i, enum hoop_type type, enum hoop_op op,
                             int ranks)
{
    const struct format format = format_of(type);
    double value = decode(read_bits(inputs[0], i, type), format);

    for (int k = 1; k < n; k++)
        value = combine_reals(value, decode(read_bits(inputs[k], i, type), format), type, op);
    if (ranks > 0) {
        const wide_real wide = (wide_real)value / ranks;
        value = type == HOOP_F64 ? (double)wide : (double)(float)wide;
    }
    return encode(value, format);
}

static wide_integer read_integer(const void *from, size_t i, enum hoop_type type)
{
    const uint64_t bits = read_bits(from, i, type), unused = 64 - 8 * hoop_type_size(type);

    return format_of(type).has_sign ? (wide_integer)((int64_t)(bits << unused) >> unused) : (wide_integer)bits;
}

static wide_integer wrap(wide_integer value, enum hoop_type type)
{
    uint64_t bits = (uint64_t)value;

    return read_integer(&bits, 0, type);
}

static wide_integer combine_integers(wide_integer a, wide_integer b, enum hoop_type type, enum hoop_op op)
{
    switch (op) {
    case HOOP_MIN:
        return b < a ? b : a;
    case HOOP_MAX:
        return b > a ? b : a;
    case HOOP_PROD: /* of unsigned numbers, since two of 64 bits do not fit the signed type; the low bits are the same */
        return wrap((wide_integer)((wide_unsigned)a * (wide_unsigned)b), type);
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
        return wrap(a + b, type);
    }
}

static uint64_t reduce_integers(const unsigned char *const *inputs, int n, size_t i, enum hoop_type type,
                                enum hoop_op op, int ranks)
{
    wide_integer value = read_integer(inputs[0], i, type);

    for (int k = 1; k < n; k++)
        value = combine_integers(value, read_integer(inputs[k], i, type), type, op);
    if (n == 1 && (op == HOOP_LAND || op == HOOP_LOR || op == HOOP_LXOR))
        value = value != 0;
    return (uint64_t)(ranks > 0 ? value / ranks : value);
}

bool reference_pair(enum hoop_type type, enum hoop_type *value)
{
    switch (type) {
    case HOOP_F32_I32:
        *value = HOOP_F32;
        return true;
    case HOOP_F64_I64:
        *value = HOOP_F64;
        return true;
    case HOOP_I32_I32:
        *value = HOOP_I32;
        return true;
    case HOOP_I64_I64:
        *value = HOOP_I64;
        return true;
    default:
        *value = type;
        return false;
    }
}

/* Is the value of pair a better than that of pair b: 1; worse: -1; as good: 0. */
static int compare_values(const void *a, const void *b, enum hoop_type value, enum hoop_op op)
{
    const int sense = op == HOOP_MINLOC ? 1 : -1;

    if (format_of(value).real) {
        const double x = decode(read_bits(a, 0, value), format_of(value));
        const double y = decode(read_bits(b, 0, value), format_of(value));

        if (isnan(x) || isnan(y))
            return isnan(x) - isnan(y);
        return below(x, y) ? sense : below(y, x) ? -sense : 0;
    }
    const wide_integer x = read_integer(a, 0, value), y = read_integer(b, 0, value);
    return x < y ? sense : y < x ? -sense : 0;
}

static void reduce_pairs(unsigned char *to, const unsigned char *const *inputs, int n, size_t i, enum hoop_type type,
                         enum hoop_type value, enum hoop_op op)
{
    const size_t size = hoop_type_size(type);
    const enum hoop_type index = size == 8 ? HOOP_I32 : HOOP_I64;
    const unsigned char *best = inputs[0] + i * size;
    uint64_t bits;

    for (int k = 1; k < n; k++) {
        const unsigned char *other = inputs[k] + i * size;
        const int order = compare_values(best, other, value, op);

        if (order < 0 || (order == 0 && read_integer(other, 1, index) < read_integer(best, 1, index)))
            best = other;
    }
    bits = read_bits(best, 0, value);
    if (format_of(value).real && isnan(decode(bits, format_of(value))))
        bits = encode((double)NAN, format_of(value));
    write_bits(to + i * size, 1, index, read_bits(best, 1, index));
    write_bits(to + i * size, 0, value, bits);
}

void reference_reduce(void *to, const unsigned char *const *inputs, int n, size_t count, enum hoop_type type,
                      enum hoop_op op, int ranks)
{
    enum hoop_type value;

    for (size_t i = 0; i < count; i++) {
        if (reference_pair(type, &value)) {
            reduce_pairs(to, inputs, n, i, type, value, op);
            continue;
        }
        const uint64_t bits = format_of(type).real ? reduce_reals(inputs, n, i, type, op, ranks)
                                                   : reduce_integers(inputs, n, i, type, op, ranks);
        write_bits(to, i, type, bits);
    }
}

uint64_t reference_random(uint64_t *seed, uint64_t limit)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 32 ^ *seed >> 11) % limit;
}

static uint64_t random_bits(uint64_t *seed)
{
    const uint64_t high = reference_random(seed, UINT64_C(1) << 32);

    return high << 32 | reference_random(seed, UINT64_C(1) << 32);
}

static uint64_t corner_real(struct format format, uint64_t *seed)
{
    const uint64_t one = UINT64_C(1), infinite = ((one << format.exponent) - 1) << format.fraction;
    const uint64_t quiet = one << (format.fraction - 1), sign = one << (format.fraction + format.exponent);
    const uint64_t corners[] = {
        0,
        1,                            /* the smallest subnormal */
        (one << format.fraction) - 1, /* the largest */
        one << format.fraction,       /* the smallest normal */
        infinite - 1,                 /* the largest finite */
        infinite,
        infinite | quiet,
        infinite | quiet | 5,                              /* NaN with a payload */
        infinite | 1,                                      /* signalling NaN */
        (infinite >> 1) & ~((one << format.fraction) - 1), /* 1 */
        sign - 1,                                          /* all ones */
        sign - 2,
    };
    const uint64_t corner = corners[reference_random(seed, sizeof(corners) / sizeof(*corners))];

    return reference_random(seed, 2) ? corner : corner | sign;
}

static void fill_pairs(unsigned char *to, size_t count, enum hoop_type type, enum hoop_type value, uint64_t *seed)
{
    const size_t size = hoop_type_size(type);
    const enum hoop_type index = size == 8 ? HOOP_I32 : HOOP_I64;

    for (size_t i = 0; i < count; i++) {
        const uint64_t near = reference_random(seed, 5) - 2; /* so that both are often the same on several inputs */

        reference_fill(to + i * size, 1, value, seed);
        reference_fill(to + i * size + size / 2, 1, index, seed);
        if (reference_random(seed, 2))
            write_bits(to + i * size, 0, value,
                       format_of(value).real ? encode((double)(int64_t)near / 2, format_of(value)) : near);
        if (reference_random(seed, 2))
            write_bits(to + i * size, 1, index, reference_random(seed, 3) - 1);
    }
}

void reference_fill(void *to, size_t count, enum hoop_type type, uint64_t *seed)
{
    enum hoop_type value;

    if (reference_pair(type, &value)) {
        fill_pairs(to, count, type, value, seed);
        return;
    }
    const struct format format = format_of(type);
    const uint64_t corners[] = {0, 1, UINT64_MAX, UINT64_MAX >> 1, UINT64_C(1) << 63};
    const unsigned unused = 64 - 8 * (unsigned)hoop_type_size(type);

    for (size_t i = 0; i < count; i++) {
        const uint64_t kind = reference_random(seed, 4);
        uint64_t bits = random_bits(seed);

        if (kind == 0 && format.real)
            bits = corner_real(format, seed);
        else if (kind == 0 || (kind == 1 && !format.real)) /* often 0: it alone is not true */
            bits = corners[reference_random(seed, 5)] >> unused;
        else if (kind < 3 && format.real) /* ordinary size, so that sums round and do not only absorb */
            bits = encode(((double)(int32_t)bits) / 0x1p24, format);
        write_bits(to, i, type, bits);
    }
}
