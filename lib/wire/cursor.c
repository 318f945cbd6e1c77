// SPDX-License-Identifier: BSD-3-Clause
/* Bounded reading and writing: every access goes through hoop_get_view and room. */
#include "wire/cursor.h"

#include <string.h>

struct hoop_reader hoop_reader(const void *data, size_t bytes)
{
    const unsigned char *at = data;

    return (struct hoop_reader){at, bytes ? at + bytes : at, false};
}

const unsigned char *hoop_get_view(struct hoop_reader *reader, size_t bytes)
{
    if (reader->failed || hoop_reader_left(reader) < bytes) {
        reader->failed = true;
        return NULL;
    }
    const unsigned char *at = reader->at;
    if (bytes)
        reader->at += bytes;
    return at;
}

static uint64_t get(struct hoop_reader *reader, size_t bytes, uint64_t least, uint64_t most)
{
    const unsigned char *at = hoop_get_view(reader, bytes);
    uint64_t value = 0;

    if (at == NULL)
        return 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    if (value < least || value > most) {
        reader->failed = true;
        return 0;
    }
    return value;
}

uint8_t hoop_get_u8(struct hoop_reader *reader)
{
    return (uint8_t)get(reader, 1, 0, UINT8_MAX);
}

uint16_t hoop_get_u16(struct hoop_reader *reader)
{
    return (uint16_t)get(reader, 2, 0, UINT16_MAX);
}

uint32_t hoop_get_u32(struct hoop_reader *reader)
{
    return (uint32_t)get(reader, 4, 0, UINT32_MAX);
}

uint64_t hoop_get_u64(struct hoop_reader *reader)
{
    return get(reader, 8, 0, UINT64_MAX);
}

double hoop_get_f64(struct hoop_reader *reader)
{
    const uint64_t bits = hoop_get_u64(reader);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

uint8_t hoop_get_u8_range(struct hoop_reader *reader, uint8_t least, uint8_t most)
{
    return (uint8_t)get(reader, 1, least, most);
}

uint16_t hoop_get_u16_range(struct hoop_reader *reader, uint16_t least, uint16_t most)
{
    return (uint16_t)get(reader, 2, least, most);
}

uint32_t hoop_get_u32_range(struct hoop_reader *reader, uint32_t least, uint32_t most)
{
    return (uint32_t)get(reader, 4, least, most);
}

uint64_t hoop_get_u64_range(struct hoop_reader *reader, uint64_t least, uint64_t most)
{
    return get(reader, 8, least, most);
}

void hoop_get_bytes(struct hoop_reader *reader, void *to, size_t bytes)
{
    const unsigned char *at = hoop_get_view(reader, bytes);

    if (bytes == 0)
        return;
    if (at)
        memcpy(to, at, bytes);
    else
        memset(to, 0, bytes);
}

void hoop_get_text(struct hoop_reader *reader, char *text, size_t size)
{
    const size_t length = hoop_get_u16(reader);
    const unsigned char *at = hoop_get_view(reader, length);

    text[0] = 0;
    if (at == NULL || length == 0)
        return;
    if (length >= size || memchr(at, 0, length)) {
        reader->failed = true;
        return;
    }
    memcpy(text, at, length);
    text[length] = 0;
}

size_t hoop_reader_left(const struct hoop_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

bool hoop_reader_done(const struct hoop_reader *reader)
{
    return !reader->failed && reader->at == reader->end;
}

struct hoop_writer hoop_writer(void *data, size_t bytes)
{
    unsigned char *start = data;

    return (struct hoop_writer){start, start, bytes ? start + bytes : start, false};
}

static unsigned char *room(struct hoop_writer *writer, size_t bytes)
{
    if (writer->failed || (size_t)(writer->end - writer->at) < bytes) {
        writer->failed = true;
        return NULL;
    }
    unsigned char *at = writer->at;
    if (bytes)
        writer->at += bytes;
    return at;
}

static void put(struct hoop_writer *writer, size_t bytes, uint64_t value)
{
    unsigned char *at = room(writer, bytes);

    for (size_t i = 0; at && i < bytes; i++, value >>= 8)
        at[i] = (unsigned char)value;
}

void hoop_put_u8(struct hoop_writer *writer, uint8_t value)
{
    put(writer, 1, value);
}

void hoop_put_u16(struct hoop_writer *writer, uint16_t value)
{
    put(writer, 2, value);
}

void hoop_put_u32(struct hoop_writer *writer, uint32_t value)
{
    put(writer, 4, value);
}

void hoop_put_u64(struct hoop_writer *writer, uint64_t value)
{
    put(writer, 8, value);
}

void hoop_put_f64(struct hoop_writer *writer, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    hoop_put_u64(writer, bits);
}

void hoop_put_bytes(struct hoop_writer *writer, const void *from, size_t bytes)
{
    unsigned char *at = room(writer, bytes);

    if (at && bytes)
        memcpy(at, from, bytes);
}

void hoop_put_text(struct hoop_writer *writer, const char *text)
{
    const size_t length = strnlen(text, UINT16_MAX);

    hoop_put_u16(writer, (uint16_t)length);
    hoop_put_bytes(writer, text, length);
}

size_t hoop_writer_used(const struct hoop_writer *writer)
{
    return (size_t)(writer->at - writer->start);
}
