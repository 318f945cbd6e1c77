// SPDX-License-Identifier: BSD-3-Clause
/* Counted allocation with an injectable failure. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static atomic_long made, fail_at;

long hoop_alloc_fail_at(long n)
{
    const long before = atomic_exchange(&made, 0);

    atomic_store(&fail_at, n);
    return before;
}

static bool allowed(size_t count, size_t size)
{
    const long number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed) + 1;

    if (size != 0 && count > SIZE_MAX / size) {
        hoop_fail(HOOP_ERR_MEMORY, "cannot allocate %zu objects of %zu bytes: the product does not fit in size_t",
                  count, size);
        return false;
    }
    if (number == atomic_load_explicit(&fail_at, memory_order_relaxed)) {
        hoop_fail(HOOP_ERR_MEMORY, "allocation %ld made to fail by a test", number);
        return false;
    }
    return true;
}

static void *told(void *memory, size_t count, size_t size)
{
    if (memory == NULL)
        hoop_fail(HOOP_ERR_MEMORY, "out of memory for %zu bytes", count * size);
    return memory;
}

void *hoop_calloc(size_t count, size_t size)
{
    return allowed(count, size) ? told(calloc(count ? count : 1, size ? size : 1), count, size) : NULL;
}

void *hoop_calloc_aligned(size_t alignment, size_t count, size_t size)
{
    if (!allowed(count, size))
        return NULL;
    const size_t bytes = (count * size + alignment - 1) / alignment * alignment;
    void *memory = told(aligned_alloc(alignment, bytes ? bytes : alignment), count, size);
    return memory ? memset(memory, 0, bytes) : NULL;
}

void *hoop_realloc(void *old, size_t count, size_t size)
{
    return allowed(count, size) ? told(realloc(old, count && size ? count * size : 1), count, size) : NULL;
}

char *hoop_strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = hoop_calloc(size, 1);

    return copy ? memcpy(copy, text, size) : NULL;
}

void hoop_free(void *memory)
{
    free(memory);
}
