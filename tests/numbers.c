// SPDX-License-Identifier: BSD-3-Clause
#include "numbers.h"

#include <string.h>

static uint64_t state = 1;

uint64_t numbers_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

void numbers_fill(unsigned char *data, size_t bytes, size_t lane)
{
    static const uint64_t special[] = {0,           0x80,       0x8000,      0x80000000u, (uint64_t)1 << 63,
                                       0x7f800000u, 0xff800000, 0x7fc00001u, 0x7f800001,  0x7ff0000000000000u,
                                       0x7c00,      0x7c01,     0x7e00,      0x7f80,      0x7f81,
                                       0x7f,        0x7c,       0x7e,        0xff,        1,
                                       0x7fefffffu, 0x3f800000, 0x3f80,      0x3c00,      0x8001};

    for (size_t at = 0; at + lane <= bytes; at += lane) {
        const uint64_t word =
            numbers_random() % 3 ? numbers_random() : special[numbers_random() % (sizeof special / sizeof *special)];
        memcpy(data + at, &word, lane < 8 ? lane : 8);
        if (lane == 16) {
            const uint64_t index = numbers_random() % 4;
            memcpy(data + at + 8, &index, 8);
        }
    }
}

size_t numbers_grain(enum hoop_type type)
{
    const size_t size = hoop_type_size(type);

    return hoop_op_accepts(HOOP_MINLOC, type) ? size / 2 : size;
}
