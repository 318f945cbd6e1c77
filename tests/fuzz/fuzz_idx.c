// SPDX-License-Identifier: BSD-3-Clause
/* The IDX reader of the trainer: any bytes, plain or compressed, as a file. What is taken has sizes within the limits,
 * and exactly the elements they promise; what is refused has a reason and leaves no memory. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trainer/fail.h"
#include "trainer/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* One file in memory for all runs; the reader gets a duplicate, which it closes. */
static int file_of(const uint8_t *data, size_t bytes)
{
    static int kept = -1;

    if (kept < 0)
        kept = memfd_create("idx", MFD_CLOEXEC);
    check(kept >= 0 && ftruncate(kept, 0) == 0 && pwrite(kept, data, bytes, 0) == (ssize_t)bytes);
    const int fd = dup(kept);
    check(fd >= 0 && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct idx idx;
    size_t product = 1;
    unsigned sum = 0;

    train_fail_clear();
    const int code = idx_load_fd(&idx, file_of(data, bytes), "input");
    if (code != TRAIN_OK) {
        check(code == TRAIN_DATA && idx.data == NULL && train_fail_text()[0]);
        return 0;
    }
    check(idx.dimensions >= 1 && idx.dimensions <= IDX_DIMENSIONS && idx.bytes >= 1 && idx.bytes <= IDX_BYTES_MOST);
    for (int i = 0; i < IDX_DIMENSIONS; i++)
        product *= idx.size[i];
    check(product == idx.bytes && !train_fail_text()[0]);
    for (size_t i = 0; i < idx.bytes; i++)
        sum += idx.data[i];
    check(sum <= 255 * idx.bytes);
    free(idx.data);
    return 0;
}
