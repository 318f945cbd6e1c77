// SPDX-License-Identifier: BSD-3-Clause
/* A list of blocks, sorted by offset; the first gap that is large enough wins. */
#include "mem/heap.h"

#include "base/alloc.h"

enum { PAGE = 4096, SPARE = 7 * PAGE };

struct block {
    struct block *next;
    size_t offset; /* in the board */
    size_t bytes;  /* with pages that are not used, where there is room for them: see HOOP_HEAP_SKEW */
};

struct hoop_heap {
    struct hoop_board *board;
    pthread_mutex_t lock;
    struct block *blocks;
};

enum hoop_status hoop_heap_new(struct hoop_heap **heap, struct hoop_board *board)
{
    struct hoop_heap *new = hoop_calloc(1, sizeof *new);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->board = board;
    pthread_mutex_init(&new->lock, NULL);
    *heap = new;
    return HOOP_OK;
}

void hoop_heap_free(struct hoop_heap *heap)
{
    if (heap == NULL)
        return;
    while (heap->blocks) {
        struct block *block = heap->blocks;
        heap->blocks = block->next;
        hoop_board_release(heap->board, block->offset, block->bytes);
        hoop_free(block);
    }
    pthread_mutex_destroy(&heap->lock);
    hoop_free(heap);
}

/* The place in the list and the offset of the first gap of `bytes`; NULL if there is none. */
static struct block **find_gap(struct hoop_heap *heap, size_t bytes, size_t *offset)
{
    const size_t from = hoop_board_heap_offset(heap->board, heap->board->rank), end = from + heap->board->shape.heap;
    struct block **at = &heap->blocks;

    *offset = from;
    for (; *at; at = &(*at)->next) {
        if ((*at)->offset - *offset >= bytes)
            return at;
        *offset = (*at)->offset + (*at)->bytes;
    }
    return *offset <= end && end - *offset >= bytes ? at
                                                    : NULL; /* the last block's spare pages may lie behind the end */
}

struct hoop_board *hoop_heap_board(const struct hoop_heap *heap)
{
    return heap->board;
}

enum hoop_status hoop_heap_take(struct hoop_heap *heap, size_t bytes, void **memory)
{
    return hoop_heap_take_for(heap, bytes, "hoop_mem_alloc", memory);
}

enum hoop_status hoop_heap_take_for(struct hoop_heap *heap, size_t bytes, const char *purpose, void **memory)
{
    const size_t rounded = bytes > SIZE_MAX - PAGE ? SIZE_MAX : (bytes + PAGE - 1) / PAGE * PAGE;
    enum hoop_status status = HOOP_OK;
    struct block *block = hoop_calloc(1, sizeof *block);
    size_t offset = 0;

    if (block == NULL)
        return HOOP_ERR_MEMORY;
    pthread_mutex_lock(&heap->lock);
    struct block **at = find_gap(heap, rounded, &offset);
    if (at == NULL)
        status = hoop_fail(HOOP_ERR_MEMORY,
                           "%s of %zu bytes: no such gap is left in the rank's heap of %zu bytes. Raise HOOP_HEAP.",
                           purpose, bytes, heap->board->shape.heap);
    else {
        hoop_board_enlarge_pages(heap->board, offset, rounded);
        status = hoop_board_reserve(heap->board, offset, rounded, purpose);
    }
    if (status == HOOP_OK) {
        *block =
            (struct block){*at, offset, *at && (*at)->offset - offset < rounded + SPARE ? rounded : rounded + SPARE};
        *at = block;
        *memory = heap->board->base + offset;
    }
    pthread_mutex_unlock(&heap->lock);
    if (status != HOOP_OK)
        hoop_free(block);
    return status;
}

/* Take the block out of the list; its pages go unless they are left. False: there is no such block. */
static bool drop(struct hoop_heap *heap, const void *memory, bool leave)
{
    const size_t offset = (size_t)((uintptr_t)memory - (uintptr_t)heap->board->base);
    struct block *block = NULL;

    pthread_mutex_lock(&heap->lock);
    for (struct block **at = &heap->blocks; *at; at = &(*at)->next)
        if ((*at)->offset == offset) {
            block = *at;
            *at = block->next;
            if (!leave) /* before anybody else can take the gap */
                hoop_board_release(heap->board, block->offset, block->bytes);
            break;
        }
    pthread_mutex_unlock(&heap->lock);
    hoop_free(block);
    return block != NULL;
}

void hoop_heap_leave(struct hoop_heap *heap, void *memory)
{
    drop(heap, memory, true);
}

enum hoop_status hoop_heap_give(struct hoop_heap *heap, void *memory)
{
    if (!drop(heap, memory, false))
        return hoop_fail(HOOP_ERR_ARG,
                         "hoop_mem_free: %p is not a buffer that hoop_mem_alloc gave out on this communicator", memory);
    return HOOP_OK;
}
