// SPDX-License-Identifier: BSD-3-Clause
/* The bounded cursor: any sequence of getters on any bytes stays inside them, stops for good at the first failure, and
 * what was read and written again is the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "wire/cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* One getter, chosen by op; its value written again, unless it failed. */
static void step(struct hoop_reader *reader, struct hoop_writer *writer, unsigned op)
{
    unsigned char copy[16];
    char text[16];

    switch (op % 8) {
    case 0:
        hoop_put_u8(writer, hoop_get_u8(reader));
        break;
    case 1:
        hoop_put_u16(writer, hoop_get_u16(reader));
        break;
    case 2:
        hoop_put_u32(writer, hoop_get_u32(reader));
        break;
    case 3:
        hoop_put_u64(writer, hoop_get_u64(reader));
        break;
    case 4: {
        const uint32_t value = hoop_get_u32_range(reader, op, 0x40000000);
        check(reader->failed ? value == 0 : value >= op && value <= 0x40000000);
        hoop_put_u32(writer, value);
        break;
    }
    case 5:
        hoop_get_bytes(reader, copy, op / 8 % sizeof copy);
        hoop_put_bytes(writer, copy, op / 8 % sizeof copy);
        break;
    case 6:
        hoop_get_text(reader, text, sizeof text);
        check(strlen(text) < sizeof text);
        hoop_put_text(writer, text);
        break;
    default: {
        const unsigned char *view = hoop_get_view(reader, op / 8);
        check((view == NULL) == reader->failed);
        hoop_put_bytes(writer, view, view ? op / 8 : 0);
        break;
    }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const size_t ops = bytes / 2;
    const uint8_t *wire = data + ops;
    unsigned char *again = malloc(bytes + 64);
    struct hoop_reader reader = hoop_reader(wire, bytes - ops);
    struct hoop_writer writer = hoop_writer(again, bytes + 64);

    for (size_t i = 0; i < ops; i++) {
        const struct hoop_reader before = reader;
        const size_t used = hoop_writer_used(&writer);
        step(&reader, &writer, data[i]);
        check(reader.at >= before.at && reader.at <= reader.end && reader.end == before.end);
        check(!before.failed || (reader.failed && reader.at == before.at));
        if (reader.failed) {
            check(!hoop_reader_done(&reader));
            writer.at = writer.start + used; /* what a failed getter yields was never on the wire */
        }
    }
    check(hoop_writer_used(&writer) <= (size_t)(reader.at - wire));
    check(reader.failed || memcmp(again, wire, hoop_writer_used(&writer)) == 0);
    free(again);
    return 0;
}
