// SPDX-License-Identifier: BSD-3-Clause
/* The cursor at every cut: a getter that has one byte too few fails, moves nothing and yields zero; so does all
 * after it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "wire/cursor.h"

/* Every getter on the same bytes; returns what it read. */
enum { GETTERS = 7 };
static const size_t need[GETTERS] = {1, 2, 4, 8, 5, 6, 2 + 3};

static uint64_t call(int getter, struct hoop_reader *reader)
{
    unsigned char bytes[5] = {1, 1, 1, 1, 1};
    char text[4] = "?";

    switch (getter) {
    case 0:
        return hoop_get_u8(reader);
    case 1:
        return hoop_get_u16(reader);
    case 2:
        return hoop_get_u32(reader);
    case 3:
        return hoop_get_u64(reader);
    case 4:
        hoop_get_bytes(reader, bytes, sizeof bytes);
        return bytes[0] | (uint64_t)bytes[4] << 8;
    case 5:
        return hoop_get_view(reader, 6) ? 1 : 0;
    default:
        hoop_get_text(reader, text, sizeof text);
        return (uint64_t)strlen(text);
    }
}

START_TEST(every_getter_at_every_cut)
{
    static const unsigned char wire[8] = {3, 0, 'a', 'b', 'c', 0x85, 0x86, 0x87};
    static const uint64_t value[GETTERS] = {3, 3, 0x62610003, 0x8786856362610003, 3 | 'c' << 8, 1, 3};

    for (int getter = 0; getter < GETTERS; getter++) {
        for (size_t cut = 0; cut <= sizeof wire; cut++) {
            unsigned char *exact = malloc(cut ? cut : 1); /* so that a sanitizer sees one byte too many */
            memcpy(exact, wire, cut);
            struct hoop_reader reader = hoop_reader(exact, cut);
            const uint64_t got = call(getter, &reader);
            const bool enough = cut >= need[getter];
            ck_assert_msg(reader.failed == !enough, "getter %d, %zu bytes", getter, cut);
            ck_assert_msg(got == (enough ? value[getter] : 0), "getter %d, %zu bytes: %llx", getter, cut,
                          (unsigned long long)got);
            if (enough)
                ck_assert_uint_eq(hoop_reader_left(&reader), cut - need[getter]);
            ck_assert(hoop_reader_done(&reader) == (cut == need[getter]));
            if (!enough) {
                const unsigned char *at = reader.at;
                ck_assert_uint_eq(hoop_get_u8(&reader), 0); /* sticky, though a byte may be left */
                ck_assert(reader.failed && reader.at == at);
            }
            free(exact);
        }
    }
}
END_TEST

START_TEST(ranges_are_closed)
{
    for (unsigned value = 0; value < 256; value++) {
        const unsigned char wire[8] = {(unsigned char)value};
        const bool fits = value >= 10 && value <= 20;
        struct hoop_reader readers[4];
        for (int i = 0; i < 4; i++)
            readers[i] = hoop_reader(wire, sizeof wire);
        const uint64_t got[4] = {hoop_get_u8_range(&readers[0], 10, 20), hoop_get_u16_range(&readers[1], 10, 20),
                                 hoop_get_u32_range(&readers[2], 10, 20), hoop_get_u64_range(&readers[3], 10, 20)};
        for (int i = 0; i < 4; i++) {
            ck_assert_msg(got[i] == (fits ? value : 0), "getter %d, value %u", i, value);
            ck_assert(readers[i].failed == !fits);
        }
    }
}
END_TEST

START_TEST(text_refuses_what_is_no_text)
{
    char text[4];
    struct hoop_reader too_long = hoop_reader("\4\0abcd", 6), with_nul = hoop_reader("\3\0a\0c", 5);

    hoop_get_text(&too_long, text, sizeof text);
    ck_assert(too_long.failed);
    ck_assert_str_eq(text, "");
    hoop_get_text(&with_nul, text, sizeof text);
    ck_assert(with_nul.failed);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(writer_stops_at_the_end)
{
    unsigned char expected[64];
    struct hoop_writer whole = hoop_writer(expected, sizeof expected);

    for (size_t size = 0; size <= sizeof expected; size++) {
        unsigned char *wire = malloc(size ? size : 1);
        struct hoop_writer writer = hoop_writer(wire, size);
        struct hoop_writer *both[2] = {&whole, &writer};
        whole = hoop_writer(expected, sizeof expected);
        for (int i = 0; i < 2; i++) {
            hoop_put_u8(both[i], 0x11);
            hoop_put_u16(both[i], 0x2233);
            hoop_put_u32(both[i], 0x44556677);
            hoop_put_u64(both[i], 0x8899aabbccddeeff);
            hoop_put_bytes(both[i], "xyz", 3);
            hoop_put_text(both[i], "hoop");
        }
        ck_assert(!whole.failed);
        ck_assert_uint_eq(hoop_writer_used(&whole), 1 + 2 + 4 + 8 + 3 + 2 + 4);
        ck_assert(writer.failed == (size < hoop_writer_used(&whole)));
        ck_assert(memcmp(wire, expected, hoop_writer_used(&writer)) == 0);
        free(wire);
    }
    ck_assert(memcmp(expected, "\x11\x33\x22\x77\x66\x55\x44\xff\xee\xdd\xcc\xbb\xaa\x99\x88xyz\4\0hoop", 24) == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire/cursor");
    TCase *tests = tcase_create("cursor");

    tcase_add_test(tests, every_getter_at_every_cut);
    tcase_add_test(tests, ranges_are_closed);
    tcase_add_test(tests, text_refuses_what_is_no_text);
    tcase_add_test(tests, writer_stops_at_the_end);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
