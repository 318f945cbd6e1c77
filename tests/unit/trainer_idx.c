// SPDX-License-Identifier: BSD-3-Clause
/* The IDX reader: good files of every shape, plain and compressed, and every way a file can be broken. */
#include "trainer/idx.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "trainer_check.h"

/* A descriptor of a file in memory that holds the bytes, compressed or not. */
static int file_of(const void *bytes, size_t size, bool packed)
{
    const int fd = memfd_create("idx", MFD_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    if (packed) {
        gzFile file = gzdopen(dup(fd), "wb");

        ck_assert_int_eq(gzwrite(file, bytes, (unsigned)size), (int)size);
        ck_assert_int_eq(gzclose(file), Z_OK);
    } else {
        ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    }
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

/* A header of `dimensions` sizes, then 0, 1, 2, … Returns the length. */
static size_t build(uint8_t *bytes, int dimensions, const uint32_t *sizes)
{
    size_t elements = 1, at = 4;

    memcpy(bytes, (uint8_t[]){0, 0, 8, (uint8_t)dimensions}, 4);
    for (int i = 0; i < dimensions; i++, at += 4) {
        for (int byte = 0; byte < 4; byte++)
            bytes[at + (size_t)byte] = (uint8_t)(sizes[i] >> (24 - 8 * byte));
        elements *= sizes[i];
    }
    for (size_t i = 0; i < elements; i++)
        bytes[at + i] = (uint8_t)i;
    return at + elements;
}

static void check_refused(int fd, const char *reason)
{
    struct idx idx;

    train_fail_clear();
    ck_assert_int_eq(idx_load_fd(&idx, fd, "some-file"), TRAIN_DATA);
    ck_assert_ptr_null(idx.data);
    ck_assert_msg(strstr(train_fail_text(), "some-file") && strstr(train_fail_text(), reason),
                  "\"%s\" does not say \"%s\"", train_fail_text(), reason);
}

START_TEST(good_files)
{
    static const uint32_t sizes[][4] = {{1, 1, 1, 1}, {7, 1, 1, 1}, {3, 5, 1, 1},
                                        {4, 3, 2, 1}, {2, 3, 4, 5}, {40, 28, 28, 1}};
    static uint8_t bytes[40 * 28 * 28 + 64];

    for (size_t shape = 0; shape < sizeof sizes / sizeof *sizes; shape++)
        for (int dimensions = 1; dimensions <= 4; dimensions++)
            for (int packed = 0; packed <= 1; packed++) {
                const size_t size = build(bytes, dimensions, sizes[shape]);
                const size_t head = 4 + 4 * (size_t)dimensions;
                struct idx idx;

                ck_assert_int_eq(idx_load_fd(&idx, file_of(bytes, size, packed), "some-file"), TRAIN_OK);
                ck_assert_int_eq(idx.dimensions, dimensions);
                ck_assert_uint_eq(idx.bytes, size - head);
                ck_assert_mem_eq(idx.data, bytes + head, idx.bytes);
                for (int i = 0; i < 4; i++)
                    ck_assert_uint_eq(idx.size[i], i < dimensions ? sizes[shape][i] : 1);
                free(idx.data);
            }
}
END_TEST

/* Several chunks of reading and doublings of memory. */
START_TEST(large_file)
{
    const uint32_t sizes[] = {5, 1 << 20};
    uint8_t *bytes = malloc((5 << 20) + 64);
    const size_t size = build(bytes, 2, sizes);
    struct idx idx;

    ck_assert_int_eq(idx_load_fd(&idx, file_of(bytes, size, true), "some-file"), TRAIN_OK);
    ck_assert_uint_eq(idx.bytes, 5 << 20);
    ck_assert_mem_eq(idx.data, bytes + 12, idx.bytes);
    free(idx.data);
    free(bytes);
}
END_TEST

START_TEST(cut_off_anywhere)
{
    uint8_t bytes[64];
    const size_t size = build(bytes, 2, (uint32_t[]){4, 6});

    for (size_t length = 0; length < size; length++)
        for (int packed = 0; packed <= 1; packed++)
            check_refused(file_of(bytes, length, packed), length < 4    ? "begins with 4 bytes"
                                                          : length < 12 ? "cut off inside its 2 sizes"
                                                                        : "of 24 elements");
}
END_TEST

/* A compressed file that ends early: in the middle of the data, or before its checksum. */
START_TEST(cut_off_compressed)
{
    uint8_t bytes[4096], packed[8192];
    const size_t size = build(bytes, 2, (uint32_t[]){40, 100});
    const int fd = file_of(bytes, size, true);
    const size_t length = (size_t)read(fd, packed, sizeof packed);

    close(fd);
    ck_assert_uint_gt(length, 40);
    for (size_t shorter = length - 1; shorter > length - 40; shorter--)
        check_refused(file_of(packed, shorter, false), "cut off");
}
END_TEST

START_TEST(damaged_compressed)
{
    uint8_t bytes[4096], packed[8192];
    const size_t size = build(bytes, 2, (uint32_t[]){40, 100});
    const int fd = file_of(bytes, size, true);
    const size_t length = (size_t)read(fd, packed, sizeof packed);

    close(fd);
    packed[length - 6] ^= 1; /* its checksum */
    check_refused(file_of(packed, length, false), "damaged");
}
END_TEST

START_TEST(wrong_headers)
{
    uint8_t bytes[64];
    size_t size = build(bytes, 1, (uint32_t[]){5});

    bytes[size] = 1;
    check_refused(file_of(bytes, size + 1, true), "beyond the 5 elements");
    bytes[0] = 0x89;
    check_refused(file_of(bytes, size, false), "not an IDX file");
    bytes[0] = 0;
    bytes[2] = 0x0d;
    check_refused(file_of(bytes, size, false), "element type 0x0d");
    bytes[2] = 8;
    bytes[3] = 0;
    check_refused(file_of(bytes, size, false), "0 dimensions");
    bytes[3] = 5;
    check_refused(file_of(bytes, size, false), "5 dimensions");
    size = build(bytes, 2, (uint32_t[]){3, 0});
    check_refused(file_of(bytes, size, false), "size 2 of 2 is 0");
}
END_TEST

/* Sizes that promise more than any file may have, also where their product overflows. Nothing is allocated for them. */
START_TEST(huge_promises)
{
    static const uint32_t sizes[][3] = {
        {0xffffffff, 1, 1}, {65536, 65536, 1}, {0x80000000, 2, 1}, {0x10000, 0x10000, 0x10000}};
    uint8_t bytes[64] = {0, 0, 8, 3};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int k = 0; k < 3; k++)
            for (int byte = 0; byte < 4; byte++)
                bytes[4 + 4 * k + byte] = (uint8_t)(sizes[i][k] >> (24 - 8 * byte));
        check_refused(file_of(bytes, sizeof bytes, false), "promise more than");
    }
}
END_TEST

START_TEST(missing_file)
{
    struct idx idx;

    train_fail_clear();
    ck_assert_int_eq(idx_load(&idx, "/nowhere/at-all"), TRAIN_DATA);
    ck_assert_ptr_nonnull(strstr(train_fail_text(), "/nowhere/at-all"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {good_files,         large_file,         cut_off_anywhere,
                                  cut_off_compressed, damaged_compressed, wrong_headers,
                                  huge_promises,      missing_file,       NULL};

    return run_tests("trainer idx", tests, 60);
}
