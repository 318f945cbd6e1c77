// SPDX-License-Identifier: BSD-3-Clause
/* Reader of IDX files, the format of MNIST and its kin, plain or gzip-compressed.
 *
 * A file is: two zero bytes, the element type (0x08: unsigned byte, the only one read here), the number of dimensions,
 * one big-endian 32-bit size for each, then the elements. What the header promises is not believed: memory grows only
 * as bytes arrive, and a file that is too short, too long or beyond a limit is refused with its name and the reason. */
#ifndef TRAINER_IDX_H
#define TRAINER_IDX_H

#include <stddef.h>
#include <stdint.h>

enum { IDX_DIMENSIONS = 4 };             /* at most */
#define IDX_BYTES_MOST ((size_t)1 << 31) /* elements of a file, at most */

struct idx {
    int dimensions;                /* 1 … IDX_DIMENSIONS */
    uint32_t size[IDX_DIMENSIONS]; /* each ≥ 1; 1 beyond the file's dimensions */
    size_t bytes;                  /* their product */
    uint8_t *data;                 /* to be freed with free() */
};

/* Read a whole file. Returns 0, or TRAIN_DATA or TRAIN_RESOURCE with the reason recorded; then idx is empty. */
int idx_load(struct idx *idx, const char *path);

/* The same from an open file; name is for messages. Takes the descriptor over and closes it. */
int idx_load_fd(struct idx *idx, int fd, const char *name);

#endif
