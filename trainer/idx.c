// SPDX-License-Identifier: BSD-3-Clause
/* See idx.h. */
#include "idx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "fail.h"

enum { CHUNK = 1 << 20, BUFFER = 1 << 17 };

/* Read up to size bytes; *got tells how many came. An error of the file or of its compression ends here. */
static int read_bytes(gzFile file, const char *name, void *to, size_t size, size_t *got)
{
    const int count = gzread(file, to, (unsigned)size); /* size is at most CHUNK */
    int code = Z_OK;

    if (count >= 0) {
        *got = (size_t)count;
        const char *text = gzerror(file, &code);
        if (code == Z_OK || code == Z_STREAM_END)
            return TRAIN_OK;
        return train_fail(TRAIN_DATA, "%s: %s: the file is cut off or damaged", name, text);
    }
    const char *text = gzerror(file, &code);
    return train_fail(TRAIN_DATA, "%s: %s: the file is cut off or damaged", name,
                      code == Z_ERRNO ? strerror(errno) : text);
}

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static int read_header(gzFile file, const char *name, struct idx *idx)
{
    uint8_t magic[4], sizes[4 * IDX_DIMENSIONS];
    size_t got;
    int code = read_bytes(file, name, magic, sizeof magic, &got);

    if (code != TRAIN_OK)
        return code;
    if (got < sizeof magic)
        return train_fail(TRAIN_DATA, "%s: only %zu bytes; an IDX file begins with 4 bytes of magic number", name, got);
    if (magic[0] != 0 || magic[1] != 0)
        return train_fail(TRAIN_DATA, "%s: not an IDX file: it begins with %02x %02x, not 00 00", name, magic[0],
                          magic[1]);
    if (magic[2] != 8)
        return train_fail(TRAIN_DATA, "%s: IDX element type 0x%02x; only 0x08 (unsigned byte) is read", name, magic[2]);
    if (magic[3] < 1 || magic[3] > IDX_DIMENSIONS)
        return train_fail(TRAIN_DATA, "%s: %d dimensions; 1 to %d are read", name, magic[3], IDX_DIMENSIONS);
    idx->dimensions = magic[3];
    code = read_bytes(file, name, sizes, 4 * (size_t)idx->dimensions, &got);
    if (code != TRAIN_OK)
        return code;
    if (got < 4 * (size_t)idx->dimensions)
        return train_fail(TRAIN_DATA, "%s: cut off inside its %d sizes", name, idx->dimensions);

    idx->bytes = 1;
    for (int i = 0; i < IDX_DIMENSIONS; i++) {
        idx->size[i] = i < idx->dimensions ? big_endian(sizes + 4 * i) : 1;
        if (idx->size[i] == 0)
            return train_fail(TRAIN_DATA, "%s: size %d of %d is 0", name, i + 1, idx->dimensions);
        if (idx->bytes > IDX_BYTES_MOST / idx->size[i])
            return train_fail(TRAIN_DATA, "%s: its sizes promise more than %zu bytes", name, IDX_BYTES_MOST);
        idx->bytes *= idx->size[i];
    }
    return TRAIN_OK;
}

/* Memory for at least `need` bytes, by doubling, never more than the file promised. */
static int grow(struct idx *idx, const char *name, size_t need, size_t *room)
{
    if (need <= *room)
        return TRAIN_OK;
    size_t more = *room * 2 < need ? need : *room * 2;
    if (more > idx->bytes)
        more = idx->bytes;
    uint8_t *data = realloc(idx->data, more);
    if (!data)
        return train_fail(TRAIN_RESOURCE, "%s: no memory for %zu bytes", name, more);
    idx->data = data;
    *room = more;
    return TRAIN_OK;
}

static int read_elements(gzFile file, const char *name, struct idx *idx)
{
    size_t have = 0, room = 0, got;
    uint8_t extra;
    int code;

    while (have < idx->bytes) {
        const size_t want = idx->bytes - have < CHUNK ? idx->bytes - have : CHUNK;

        code = grow(idx, name, have + want, &room);
        if (code == TRAIN_OK)
            code = read_bytes(file, name, idx->data + have, want, &got);
        if (code != TRAIN_OK)
            return code;
        if (got == 0)
            return train_fail(TRAIN_DATA, "%s: cut off after %zu of %zu elements", name, have, idx->bytes);
        have += got;
    }
    code = read_bytes(file, name, &extra, 1, &got); /* reaches the end, where the checksum of gzip is checked */
    if (code == TRAIN_OK && got > 0)
        return train_fail(TRAIN_DATA, "%s: has bytes beyond the %zu elements that its sizes promise", name, idx->bytes);
    return code;
}

int idx_load_fd(struct idx *idx, int fd, const char *name)
{
    gzFile file = gzdopen(fd, "rb");
    int code;

    *idx = (struct idx){0};
    if (!file) {
        close(fd);
        return train_fail(TRAIN_RESOURCE, "%s: no memory to read it", name);
    }
    gzbuffer(file, BUFFER);
    code = read_header(file, name, idx);
    if (code == TRAIN_OK)
        code = read_elements(file, name, idx);
    gzclose_r(file);
    if (code != TRAIN_OK) {
        free(idx->data);
        *idx = (struct idx){0};
    }
    return code;
}

int idx_load(struct idx *idx, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    *idx = (struct idx){0};
    if (fd < 0)
        return train_fail(TRAIN_DATA, "%s: %s", path, strerror(errno));
    return idx_load_fd(idx, fd, path);
}
