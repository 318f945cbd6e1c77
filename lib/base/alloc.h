// SPDX-License-Identifier: BSD-3-Clause
/* All heap memory of the library comes through here, so that tests can make the N-th allocation fail. */
#ifndef HOOP_BASE_ALLOC_H
#define HOOP_BASE_ALLOC_H

#include <stddef.h>

#include "base/status.h"

/* Zero-filled memory for count objects of size bytes, or NULL with the error recorded. Free with hoop_free. */
void *hoop_calloc(size_t count, size_t size);

/* Zero-filled memory aligned to `alignment` (a power of two, at least sizeof(void *)), or NULL with the error recorded. */
void *hoop_calloc_aligned(size_t alignment, size_t count, size_t size);

/* Resize, keeping content; the old block stays valid on failure (NULL, error recorded). */
void *hoop_realloc(void *old, size_t count, size_t size);

char *hoop_strdup(const char *text);

void hoop_free(void *memory);

/* Make the n-th allocation from now fail (1: the next), once; 0: none. Returns how many were made since the last call. For tests. */
long hoop_alloc_fail_at(long n);

#endif
