// SPDX-License-Identifier: BSD-3-Clause
/* Board and heap: layout, seals, reservation, and what a heap promises. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "harness.h"
#include "mem/board.h"
#include "mem/heap.h"
#include "tsan.h"

enum { MIB = 1 << 20 };

static const struct hoop_board_shape shape = {.ranks = 3, .lanes = 2, .ring = 12288, .flat = 100, .heap = 8 * MIB};

static struct hoop_board *make(int rank)
{
    struct hoop_board *board = NULL;

    ck_assert_msg(hoop_board_create(&board, &shape, rank) == HOOP_OK, "%s", hoop_last_error(NULL));
    return board;
}

START_TEST(parts_do_not_overlap)
{
    struct hoop_board *board = make(0);
    const unsigned char *flat = (unsigned char *)hoop_board_flat(board, 0, 0), *end = flat;

    ck_assert((unsigned char *)hoop_board_card(board, shape.ranks) <= flat);
    for (int rank = 0; rank < shape.ranks; rank++)
        for (uint64_t sequence = 0; sequence < HOOP_FLAT_SLOTS; sequence++) {
            const unsigned char *slot = (unsigned char *)hoop_board_flat(board, rank, sequence);
            ck_assert(slot >= end);
            ck_assert_int_eq((int)((uintptr_t)slot % HOOP_LINE), 0);
            end = slot + HOOP_FLAT_HEAD + shape.flat;
        }
    size_t at = (size_t)(end - board->base);
    for (int to = 0; to < shape.ranks; to++)
        for (int from = 0; from < shape.ranks; from++)
            for (int lane = 0; lane < shape.lanes; lane++) {
                ck_assert_uint_ge(hoop_board_ring_offset(board, to, from, lane), at);
                at = hoop_board_ring_offset(board, to, from, lane) + shape.ring;
            }
    for (int rank = 0; rank < shape.ranks; rank++) {
        ck_assert_uint_ge(hoop_board_heap_offset(board, rank), at);
        at = hoop_board_heap_offset(board, rank) + shape.heap;
    }
    ck_assert_uint_le(at, board->size);
    hoop_board_close(board);
}
END_TEST

START_TEST(other_ranks_see_it)
{
    struct hoop_board *board = make(0), *other = NULL;

    ck_assert_int_eq(hoop_board_attach(&other, &shape, 2, dup(board->descriptor)), HOOP_OK);
    hoop_board_card(board, 1)->process = 77;
    ck_assert_int_eq(hoop_board_card(other, 1)->process, 77);
    ck_assert_int_lt(ftruncate(board->descriptor, 4096), 0); /* sealed: nobody can take pages away below us */
    ck_assert_int_lt(ftruncate(board->descriptor, (off_t)board->size * 2), 0);
    hoop_board_close(board);
    ck_assert_int_eq(hoop_board_card(other, 1)->process,
                     77); /* ranks of one process share the mapping; the last one unmaps */
    hoop_board_close(other);
}
END_TEST

START_TEST(strange_segments_are_refused)
{
    struct hoop_board *board = make(0), *other = NULL;
    struct hoop_board_shape odd = shape;

    odd.heap *= 2;
    ck_assert_int_eq(hoop_board_attach(&other, &odd, 1, dup(board->descriptor)), HOOP_ERR_SETUP);
    ck_assert_int_eq(hoop_board_attach(&other, &shape, 1, memfd_create("x", MFD_CLOEXEC)), HOOP_ERR_SETUP);
    ck_assert_int_eq(hoop_board_attach(&other, &shape, 1, open("/dev/null", O_RDWR)), HOOP_ERR_SETUP);
    ck_assert_ptr_null(other);
    odd = shape;
    odd.heap = (size_t)1 << 62;
    ck_assert_int_eq(hoop_board_create(&other, &odd, 0), HOOP_ERR_MEMORY);
    hoop_board_close(board);
}
END_TEST

START_TEST(more_than_there_is)
{
    struct hoop_board_shape large = shape;
    struct hoop_board *board = NULL;
    struct hoop_heap *heap = NULL;
    void *memory = NULL;

    large.heap = (size_t)1 << 43; /* more than any machine has, less than an address space */
    ck_assert_int_eq(hoop_board_create(&board, &large, 0), HOOP_OK);
    ck_assert_int_eq(hoop_heap_new(&heap, board), HOOP_OK);
    ck_assert_int_eq(hoop_heap_take(heap, (size_t)1 << 42, &memory), HOOP_ERR_MEMORY);
    ck_assert_msg(strstr(hoop_last_error(NULL), "4398046511104") != NULL, "%s", hoop_last_error(NULL));
    ck_assert_int_eq(hoop_heap_take(heap, (size_t)1 << 44, &memory), HOOP_ERR_MEMORY);
    ck_assert_int_eq(hoop_heap_take(heap, SIZE_MAX, &memory), HOOP_ERR_MEMORY);
    ck_assert_int_eq(hoop_heap_take(heap, MIB, &memory), HOOP_OK); /* and the heap is unharmed */
    memset(memory, 1, MIB);
    hoop_heap_free(heap);
    hoop_board_close(board);
}
END_TEST

/* Random takes and gives: blocks are zero, apart from each other, inside the window, and keep what is written. */
START_TEST(blocks_keep_apart)
{
    enum { BLOCKS = 24, TURNS = 4000 };
    struct hoop_board *board = make(1);
    struct hoop_heap *heap = NULL;
    unsigned char *block[BLOCKS] = {NULL};
    size_t size[BLOCKS], offset;
    unsigned seed = 42;

    ck_assert_int_eq(hoop_heap_new(&heap, board), HOOP_OK);
    for (int turn = 0; turn < TURNS; turn++) {
        const int i = (int)((seed = seed * 1103515245 + 12345) >> 16) % BLOCKS;
        if (block[i]) {
            ck_assert_int_eq(block[i][0], i + 1);
            ck_assert_int_eq(block[i][size[i] - 1], i + 1);
            ck_assert_int_eq(hoop_heap_give(heap, block[i]), HOOP_OK);
            block[i] = NULL;
            continue;
        }
        size[i] = 1 + (seed = seed * 1103515245 + 12345) % (MIB / 2);
        const enum hoop_status status = hoop_heap_take(heap, size[i], (void **)&block[i]);
        if (status == HOOP_ERR_MEMORY) /* full: possible with 24 blocks of up to half a MiB in 8 MiB */
            continue;
        ck_assert_msg(status == HOOP_OK, "turn %d: %s", turn, hoop_last_error(NULL));
        ck_assert(hoop_board_owns(board, block[i], size[i], &offset));
        ck_assert_int_eq(block[i][0] | block[i][size[i] - 1], 0);
        memset(block[i], i + 1, size[i]);
    }
    ck_assert_int_eq(hoop_heap_give(heap, board->base), HOOP_ERR_ARG);
    hoop_heap_free(heap);
    hoop_board_close(board);
}
END_TEST

static size_t bytes_taken(const struct hoop_board *board)
{
    struct stat file;

    ck_assert_int_eq(fstat(board->descriptor, &file), 0);
    return (size_t)file.st_blocks * 512;
}

static bool all_bytes(const unsigned char *from, size_t bytes, unsigned char value)
{
    for (size_t i = 0; i < bytes; i++) /* an assertion for each would write to check's pipe for each */
        if (from[i] != value)
            return false;
    return true;
}

START_TEST(huge_pages_keep_to_their_range)
{
    struct hoop_board *board = make(0);
    const size_t heap = hoop_board_heap_offset(board, 1), before = 64 * 4096, bytes = 5 * MIB + 4096;
    unsigned char *const from = board->base + heap, *const block = from + before;
    const size_t taken = bytes_taken(board);

    ck_assert_int_eq(hoop_board_reserve(board, heap, before, "what lies before"), HOOP_OK);
    memset(from, 7, before);
    hoop_board_enlarge_pages(board, heap + before, bytes);
    ck_assert_int_eq(hoop_board_reserve(board, heap + before, bytes, "the block"), HOOP_OK);
    ck_assert_uint_eq(bytes_taken(board) - taken, before + bytes);
    ck_assert(all_bytes(block, bytes, 0));
    memset(block, 9, bytes);
    hoop_board_release(board, heap + before + 4096, MIB); /* a part of a huge page, too */
    ck_assert(all_bytes(block, 4096, 9));
    ck_assert(all_bytes(block + 4096, MIB, 0));
    ck_assert(all_bytes(block + 4096 + MIB, bytes - 4096 - MIB, 9));
    ck_assert(all_bytes(from, before, 7));
    hoop_board_close(board);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    for (long n = 1; n < 20; n++) {
        struct hoop_board *board = NULL;
        hoop_alloc_fail_at(n);
        if (hoop_board_create(&board, &shape, 0) == HOOP_OK)
            hoop_board_close(board);
        else
            ck_assert_ptr_null(board);
    }
    hoop_alloc_fail_at(0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("board and heap");
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, parts_do_not_overlap);
    tcase_add_test(tests, other_ranks_see_it);
    tcase_add_test(tests, strange_segments_are_refused);
    if (!UNDER_TSAN)
        tcase_add_test(tests, more_than_there_is);
    tcase_add_test(tests, blocks_keep_apart);
    tcase_add_test(tests, huge_pages_keep_to_their_range);
    tcase_add_test(tests, every_allocation_may_fail);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
