// SPDX-License-Identifier: BSD-3-Clause
/* Arena of chained blocks, each twice as large as the one before. */
#include "base/arena.h"

#include <stdint.h>

#include "base/alloc.h"

enum { FIRST = 4096, ALIGN = 16 };

struct hoop_arena_block {
    struct hoop_arena_block *next;
    size_t used, size;
    _Alignas(ALIGN) unsigned char data[];
};

static struct hoop_arena_block *grow(struct hoop_arena *arena, size_t need)
{
    size_t size = arena->head ? arena->head->size * 2 : FIRST;

    while (size < need)
        size *= 2;
    struct hoop_arena_block *block = hoop_calloc(1, sizeof *block + size);
    if (block == NULL)
        return NULL;
    block->size = size;
    block->next = arena->head;
    arena->head = block;
    return block;
}

void *hoop_arena_take(struct hoop_arena *arena, size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX / 4) / size) {
        hoop_fail(HOOP_ERR_MEMORY, "cannot allocate %zu objects of %zu bytes", count, size);
        return NULL;
    }
    const size_t bytes = (count * size + ALIGN - 1) / ALIGN * ALIGN;
    struct hoop_arena_block *block = arena->head;
    if (block == NULL || block->size - block->used < bytes)
        block = grow(arena, bytes);
    if (block == NULL)
        return NULL;
    void *object = block->data + block->used;
    block->used += bytes;
    return object;
}

void hoop_arena_clear(struct hoop_arena *arena)
{
    while (arena->head) {
        struct hoop_arena_block *next = arena->head->next;
        hoop_free(arena->head);
        arena->head = next;
    }
}
