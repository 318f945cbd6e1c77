// SPDX-License-Identifier: BSD-3-Clause
/* The rank's heap in the board: what hoop_mem_alloc hands out. Whole pages, first fit; blocks are few and large. */
#ifndef HOOP_MEM_HEAP_H
#define HOOP_MEM_HEAP_H

#include "mem/board.h"

struct hoop_heap;

enum hoop_status hoop_heap_new(struct hoop_heap **heap, struct hoop_board *board);

/* Give all blocks back and free the heap. NULL is allowed. */
void hoop_heap_free(struct hoop_heap *heap);

struct hoop_board *hoop_heap_board(const struct hoop_heap *heap);

/* Whole pages, zero. _for: errors say what it is for.
 * Errors: HOOP_ERR_MEMORY.   Threads: any. */
enum hoop_status hoop_heap_take(struct hoop_heap *heap, size_t bytes, void **memory);
enum hoop_status hoop_heap_take_for(struct hoop_heap *heap, size_t bytes, const char *purpose, void **memory);

/* Errors: HOOP_ERR_ARG: not the start of a block.   Threads: any. */
enum hoop_status hoop_heap_give(struct hoop_heap *heap, void *memory);

/* Let a block keep its pages and its content for good: somebody has them mapped. Threads: any. */
void hoop_heap_leave(struct hoop_heap *heap, void *memory);

#endif
