// SPDX-License-Identifier: BSD-3-Clause
/* Arena: many small objects that die together. Objects are zero-filled, aligned to 16 bytes and never move. */
#ifndef HOOP_BASE_ARENA_H
#define HOOP_BASE_ARENA_H

#include <stddef.h>

struct hoop_arena {
    struct hoop_arena_block *head;
};

/* Memory for count objects of size bytes, or NULL with the error recorded. A zeroed struct hoop_arena is an empty one. */
void *hoop_arena_take(struct hoop_arena *arena, size_t count, size_t size);

/* Free all objects; the arena is empty and usable again. */
void hoop_arena_clear(struct hoop_arena *arena);

#endif
