// SPDX-License-Identifier: BSD-3-Clause
/* What a pointer is. */
#include <string.h>

#include "tests/fakecuda/fake.h"

static const struct fake_memory *find(uint64_t address)
{
    const struct fake_memory *memory =
        fake_in_range(address) ? fake_memory_at(address) : fake_memory_host((const void *)(uintptr_t)address);

    return memory && memory->kind != FAKE_RESERVED ? memory : NULL;
}

static bool is_host(const struct fake_memory *memory)
{
    return memory->kind == FAKE_PINNED || memory->kind == FAKE_REGISTERED;
}

static uint64_t offset_of(const struct fake_memory *memory, uint64_t address)
{
    return fake_in_range(address) ? address - memory->base : address - (uint64_t)(uintptr_t)memory->host;
}

#define PUT(type, what)                  \
    do {                                 \
        const type put = (type)(what);   \
        memcpy(value, &put, sizeof put); \
        return OK;                       \
    } while (0)

static int tell(void *value, int attribute, uint64_t address, const struct fake_memory *memory)
{
    switch (attribute) {
    case 1:
        PUT(void *, memory->context);
    case 2:
        PUT(unsigned, is_host(memory) ? FAKE_MEMORY_HOST : FAKE_MEMORY_DEVICE);
    case 3:
        PUT(uint64_t, memory->base + offset_of(memory, address));
    case 4:
        if (!memory->host)
            return INVALID_VALUE;
        PUT(void *, memory->host + offset_of(memory, address));
    case 6:
        PUT(unsigned char, memory->sync_operations);
    case 7:
        PUT(uint64_t, memory->id);
    case 8:
        PUT(unsigned char, memory->kind == FAKE_MANAGED);
    case 9:
        PUT(int, memory->context && memory->device < 0 ? memory->context->device : memory->device);
    case 10:
        PUT(unsigned char, memory->kind == FAKE_LEGACY);
    case 11:
        PUT(uint64_t, fake_in_range(address) ? memory->base : (uint64_t)(uintptr_t)memory->host);
    case 12:
        PUT(uint64_t, memory->bytes);
    case 13:
        PUT(unsigned char, 1);
    case 14:
        PUT(uint64_t, memory->kind == FAKE_MAPPED ? memory->flags : 0);
    case 15:
        PUT(unsigned char, 0);
    case 16:
        PUT(int, 3);
    case 17:
        PUT(void *, memory->kind == FAKE_POOL ? (const void *)fake_device(memory->device) : NULL);
    default:
        return INVALID_VALUE;
    }
}

FAKE_ENTRY(cuPointerGetAttribute, void *value, int attribute, uint64_t address)
{
    const struct fake_memory *memory;
    int status;

    FAKE_ENTER(cuPointerGetAttribute);
    if (!value)
        return INVALID_VALUE;
    fake_lock();
    memory = find(address);
    status = memory ? tell(value, attribute, address, memory) : INVALID_VALUE;
    fake_unlock();
    return status;
}

static size_t size_of(int attribute)
{
    switch (attribute) {
    case 6:
    case 8:
    case 10:
    case 13:
    case 15:
        return 1;
    case 2:
    case 9:
    case 16:
        return 4;
    default:
        return 8;
    }
}

/* Does not fail for unknown pointers: what cannot be told is 0, and the device -2. */
FAKE_ENTRY(cuPointerGetAttributes, unsigned count, const int *attributes, void **values, uint64_t address)
{
    const struct fake_memory *memory;

    FAKE_ENTER(cuPointerGetAttributes);
    if (!attributes || !values)
        return INVALID_VALUE;
    fake_lock();
    memory = find(address);
    for (unsigned i = 0; i < count; i++) {
        memset(values[i], 0, size_of(attributes[i]));
        if (attributes[i] == 9 && !memory)
            *(int *)values[i] = -2;
        if (memory)
            tell(values[i], attributes[i], address, memory);
    }
    fake_unlock();
    return OK;
}

FAKE_ENTRY(cuPointerSetAttribute, const void *value, int attribute, uint64_t address)
{
    struct fake_memory *memory;
    int status = INVALID_VALUE;

    FAKE_ENTER(cuPointerSetAttribute);
    fake_lock();
    memory = fake_memory_at(address);
    if (memory && attribute == 6 && value && (memory->kind == FAKE_LEGACY || memory->kind == FAKE_IMPORTED)) {
        memory->sync_operations = *(const unsigned *)value != 0;
        status = OK;
    }
    fake_unlock();
    return status;
}
