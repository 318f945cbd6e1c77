// SPDX-License-Identifier: BSD-3-Clause
/* Registry: memory of the program that peers may read in place.
 *
 * Peers can reach the board and nothing else. So registering puts pages of this rank's heap in the place of the program's own
 * pages, with the same content: the addresses stay, and what lies there is on the board from then on. Only whole pages can
 * change places; the rest of the first and the last page stays ordinary, and is copied when it is sent. The way back is the same.
 * The board's table says which addresses are now which part of the heap (hoop_board_owns).
 *
 * Threads: the program's matter; nothing here locks the table, which a running call looks into.
 */
#ifndef HOOP_MEM_REGISTRY_H
#define HOOP_MEM_REGISTRY_H

#include "mem/heap.h"

/* Register [memory, memory + bytes): private anonymous memory that may be read and written, 1 byte or more. On failure it is what it
 * was, where it was.
 * Errors: HOOP_ERR_ARG (a part is not mapped, is on a board already, or the table is full), HOOP_ERR_UNSUPPORTED (another kind
 * of memory: says which), HOOP_ERR_MEMORY. */
enum hoop_status hoop_registry_add(struct hoop_heap *heap, void *memory, size_t bytes);

/* Make it ordinary again, with the content that it has. On failure it stays registered.
 * Errors: HOOP_ERR_ARG (no registration begins there), HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM. */
enum hoop_status hoop_registry_remove(struct hoop_heap *heap, const void *memory);

/* Remove all, before the heap is freed. What cannot be made ordinary keeps its pages and its content. */
void hoop_registry_clear(struct hoop_heap *heap);

#endif
