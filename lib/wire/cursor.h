// SPDX-License-Identifier: BSD-3-Clause
/* Bounded reading and writing of wire bytes. All integers are little-endian.
 *
 * A cursor keeps the first failure (too few bytes, value out of range) and from then on yields zeros and moves no
 * further, so a parser reads all fields and asks once at the end. No function reads or writes outside the bounds.
 */
#ifndef HOOP_WIRE_CURSOR_H
#define HOOP_WIRE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hoop_reader {
    const unsigned char *at, *end;
    bool failed;
};

struct hoop_reader hoop_reader(const void *data, size_t bytes);

uint8_t hoop_get_u8(struct hoop_reader *reader);
uint16_t hoop_get_u16(struct hoop_reader *reader);
uint32_t hoop_get_u32(struct hoop_reader *reader);
uint64_t hoop_get_u64(struct hoop_reader *reader);

/* A number in the form of IEEE 754; any bits are taken. */
double hoop_get_f64(struct hoop_reader *reader);

/* As above; a value below least or above most is a failure (and yields 0). */
uint8_t hoop_get_u8_range(struct hoop_reader *reader, uint8_t least, uint8_t most);
uint16_t hoop_get_u16_range(struct hoop_reader *reader, uint16_t least, uint16_t most);
uint32_t hoop_get_u32_range(struct hoop_reader *reader, uint32_t least, uint32_t most);
uint64_t hoop_get_u64_range(struct hoop_reader *reader, uint64_t least, uint64_t most);

/* Copy bytes out; on failure they are zeroed. */
void hoop_get_bytes(struct hoop_reader *reader, void *to, size_t bytes);

/* The next bytes where they lie, or NULL on failure. */
const unsigned char *hoop_get_view(struct hoop_reader *reader, size_t bytes);

/* A text of u16 length, copied with a NUL into size bytes; longer, or with a NUL in it: failure ("" then). size > 0. */
void hoop_get_text(struct hoop_reader *reader, char *text, size_t size);

size_t hoop_reader_left(const struct hoop_reader *reader);

/* Nothing failed and nothing is left. */
bool hoop_reader_done(const struct hoop_reader *reader);

struct hoop_writer {
    unsigned char *start, *at, *end;
    bool failed; /* some value did not fit; nothing was written after it */
};

struct hoop_writer hoop_writer(void *data, size_t bytes);

void hoop_put_u8(struct hoop_writer *writer, uint8_t value);
void hoop_put_u16(struct hoop_writer *writer, uint16_t value);
void hoop_put_u32(struct hoop_writer *writer, uint32_t value);
void hoop_put_u64(struct hoop_writer *writer, uint64_t value);
void hoop_put_f64(struct hoop_writer *writer, double value);
void hoop_put_bytes(struct hoop_writer *writer, const void *from, size_t bytes);
void hoop_put_text(struct hoop_writer *writer, const char *text); /* u16 length, bytes without NUL; cut at 65535 */

/* Bytes written so far. */
size_t hoop_writer_used(const struct hoop_writer *writer);

#endif
