// SPDX-License-Identifier: BSD-3-Clause
/* Facts as texts: bus ids, link speeds, sets of CPUs. Exact readers: what is not such a text is refused, not half read. */
#include <ctype.h>
#include <string.h>

#include "topo/model.h"

enum { MOST_WORDS = 1024 };

/* Up to `most` hexadecimal digits at *at, which moves behind them; -1: none, or more. */
static int64_t take_hex(const char **at, int most)
{
    int64_t value = 0;
    int digits = 0;

    for (; isxdigit((unsigned char)**at); (*at)++) {
        const int c = tolower((unsigned char)**at);

        if (++digits > most)
            return -1;
        value = value << 4 | (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return digits == 0 ? -1 : value;
}

static bool take_char(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

bool hoop_topo_parse_bus(const char *text, struct hoop_topo_bus *bus)
{
    const int64_t domain = take_hex(&text, 8), number = take_char(&text, ':') ? take_hex(&text, 2) : -1;
    const int64_t device = take_char(&text, ':') ? take_hex(&text, 2) : -1;
    const int64_t function = take_char(&text, '.') ? take_hex(&text, 1) : -1;

    if (domain < 0 || number < 0 || device < 0 || device > 31 || function < 0 || function > 7 || *text != '\0')
        return false;
    *bus = (struct hoop_topo_bus){true, (uint32_t)domain, (uint8_t)number, (uint8_t)device, (uint8_t)function};
    return true;
}

/* By hand: strtod would ask the locale what stands before the fraction. */
bool hoop_topo_parse_transfers(const char *text, double *gigatransfers)
{
    double value = 0, digit = 1;
    int digits = 0;

    for (; isdigit((unsigned char)*text) && digits < 6; text++, digits++)
        value = value * 10 + (*text - '0');
    if (digits > 0 && take_char(&text, '.'))
        for (; isdigit((unsigned char)*text) && digits < 9; text++, digits++)
            value += (*text - '0') * (digit /= 10);
    if (digits == 0 || value <= 0 || strncmp(text, " GT/s", 5) != 0)
        return false;
    *gigatransfers = value;
    return true;
}

double hoop_topo_pci_lane(double gigatransfers)
{
    if (gigatransfers <= 5)
        return gigatransfers * 8 / 10 / 8;
    if (gigatransfers <= 32)
        return gigatransfers * 128 / 130 / 8;
    return gigatransfers * 242 / 256 / 8; /* flits of 256 bytes, 14 of them for checks and acknowledgements */
}

bool hoop_topo_parse_mask(const char *text, hwloc_bitmap_t set)
{
    int64_t word[MOST_WORDS];
    int words = 0;

    do {
        if (words == MOST_WORDS || (word[words++] = take_hex(&text, 8)) < 0)
            return false;
    } while (take_char(&text, ','));
    if (*text != '\0')
        return false;
    for (int i = 0; i < words; i++)
        for (unsigned bit = 0; bit < 32; bit++)
            if (word[i] >> bit & 1 && hwloc_bitmap_set(set, (unsigned)(words - 1 - i) * 32 + bit) != 0)
                return false;
    return true;
}
