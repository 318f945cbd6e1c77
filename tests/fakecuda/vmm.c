// SPDX-License-Identifier: BSD-3-Clause
/* Virtual memory management: memory without an address, addresses without memory, and mappings of one to the other. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"

#define GRAIN ((uint64_t)2 << 20)

struct fake_handle {
    int file, machine, device; /* device: visible ordinal, or -1 */
    uint64_t bytes;
    unsigned types, references;
    bool charged;
    struct fake_handle *next;
};
static struct fake_handle *handles;

static bool handle_lives(const struct fake_handle *handle)
{
    for (const struct fake_handle *each = handles; each; each = each->next)
        if (each == handle)
            return true;
    return false;
}

static void drop_handle(struct fake_handle *handle)
{
    if (--handle->references > 0)
        return;
    for (struct fake_handle **link = &handles; *link; link = &(*link)->next) {
        if (*link == handle) {
            *link = handle->next;
            break;
        }
    }
    if (handle->charged)
        fake_discharge(handle->device, handle->bytes);
    close(handle->file);
    free(handle);
}

static struct fake_handle *new_handle(int file, int machine, int device, uint64_t bytes, unsigned types)
{
    struct fake_handle *handle = calloc(1, sizeof *handle);

    if (handle) {
        *handle = (struct fake_handle){file, machine, device, bytes, types, 1, false, handles};
        handles = handle;
    }
    return handle;
}

FAKE_ENTRY(cuMemGetAllocationGranularity, size_t *bytes, const struct fake_allocation_properties *properties, int which)
{
    FAKE_ENTER(cuMemGetAllocationGranularity);
    if (!fake_options.VMM)
        return NOT_SUPPORTED;
    if (!bytes || !properties || which < 0 || which > 1)
        return INVALID_VALUE;
    *bytes = GRAIN;
    return OK;
}

FAKE_ENTRY(cuMemCreate, struct fake_handle **result, size_t bytes, const struct fake_allocation_properties *properties,
           uint64_t flags)
{
    struct fake_handle *handle;
    int device, file;

    FAKE_ENTER(cuMemCreate);
    if (!fake_options.VMM)
        return NOT_SUPPORTED;
    if (!result || !properties || flags || bytes == 0 || bytes % GRAIN || properties->type != 1 ||
        properties->location.type != FAKE_LOCATION_DEVICE || properties->handle_types & ~FAKE_HANDLE_POSIX_FD)
        return INVALID_VALUE;
    device = properties->location.id;
    if (!fake_device(device))
        return INVALID_DEVICE;
    fake_lock();
    if (!fake_charge(device, bytes)) {
        fake_unlock();
        return OUT_OF_MEMORY;
    }
    file = fake_file_new(bytes, "fakecuda-vmm");
    handle = file < 0 ? NULL
                      : new_handle(file, fake_device(device)->index, device, bytes, (unsigned)properties->handle_types);
    if (handle)
        handle->charged = true;
    else
        fake_discharge(device, bytes);
    fake_unlock();
    *result = handle;
    return handle ? OK : OUT_OF_MEMORY;
}

FAKE_ENTRY(cuMemRelease, struct fake_handle *handle)
{
    int status = INVALID_VALUE;

    FAKE_ENTER(cuMemRelease);
    fake_lock();
    if (handle_lives(handle)) {
        drop_handle(handle);
        status = OK;
    }
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuMemAddressReserve, uint64_t *address, size_t bytes, size_t alignment, uint64_t hint, uint64_t flags)
{
    const struct fake_memory *memory;

    FAKE_ENTER(cuMemAddressReserve);
    (void)hint;
    if (!address || bytes == 0 || bytes % GRAIN || flags || (alignment & (alignment - 1)))
        return INVALID_VALUE;
    fake_lock();
    memory = fake_memory_new(FAKE_RESERVED, bytes, bytes, alignment > GRAIN ? alignment : GRAIN);
    if (memory)
        *address = memory->base;
    fake_unlock();
    return memory ? OK : OUT_OF_MEMORY;
}

FAKE_ENTRY(cuMemAddressFree, uint64_t address, size_t bytes)
{
    struct fake_memory *memory;
    int status = INVALID_VALUE;

    FAKE_ENTER(cuMemAddressFree);
    fake_lock();
    memory = fake_memory_at(address);
    if (memory && memory->kind == FAKE_RESERVED && memory->base == address && memory->bytes == bytes) {
        fake_memory_drop(memory);
        status = OK;
    }
    fake_unlock();
    return status;
}

/* A mapping takes a whole reservation: that is all that the table of memory can hold. */
FAKE_ENTRY(cuMemMap, uint64_t address, size_t bytes, size_t offset, struct fake_handle *handle, uint64_t flags)
{
    struct fake_memory *memory;
    int status = INVALID_VALUE;

    FAKE_ENTER(cuMemMap);
    fake_lock();
    memory = fake_memory_at(address);
    if (memory && memory->kind == FAKE_RESERVED && memory->base == address && memory->bytes == bytes &&
        handle_lives(handle) && !flags && offset == 0 && bytes <= handle->bytes) {
        memory->kind = FAKE_MAPPED;
        memory->handle = handle;
        memory->file = dup(handle->file);
        memory->machine = handle->machine;
        memory->device = handle->device;
        memory->flags = handle->types;
        memory->access = 0;
        handle->references++;
        status = fake_show(memory) ? OK : OUT_OF_MEMORY;
    }
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuMemUnmap, uint64_t address, size_t bytes)
{
    struct fake_memory *memory;
    int status = INVALID_VALUE;

    FAKE_ENTER(cuMemUnmap);
    fake_lock();
    memory = fake_memory_at(address);
    if (memory && memory->kind == FAKE_MAPPED && memory->base == address && memory->bytes == bytes) {
        fake_hide(memory);
        close(memory->file);
        memory->file = -1;
        memory->kind = FAKE_RESERVED;
        drop_handle(memory->handle);
        memory->handle = NULL;
        status = OK;
    }
    fake_unlock();
    return status;
}

/* Nobody reaches a mapping, not even the device it lies on, before this. */
FAKE_ENTRY(cuMemSetAccess, uint64_t address, size_t bytes, const struct fake_access *access, size_t count)
{
    struct fake_memory *memory;
    int status = INVALID_VALUE;

    FAKE_ENTER(cuMemSetAccess);
    fake_lock();
    memory = fake_memory_at(address);
    if (memory && memory->kind == FAKE_MAPPED && memory->base == address && memory->bytes == bytes) {
        status = OK;
        for (size_t i = 0; i < count && status == OK; i++) {
            const int device = access[i].location.id;

            if (access[i].location.type != FAKE_LOCATION_DEVICE || !fake_device(device))
                status = INVALID_DEVICE;
            else if (fake_path(fake_device(device)->index, memory->machine) == FAKE_PATH_NONE)
                status = INVALID_DEVICE;
            else if (access[i].flags == FAKE_ACCESS_READWRITE)
                memory->access |= 1u << device;
            else
                memory->access &= ~(1u << device);
        }
        fake_hide(memory);
        if (!fake_show(memory))
            status = OUT_OF_MEMORY;
    }
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuMemGetAccess, uint64_t *flags, const struct fake_location *location, uint64_t address)
{
    const struct fake_memory *memory;

    FAKE_ENTER(cuMemGetAccess);
    fake_lock();
    memory = fake_memory_at(address);
    if (memory && memory->kind == FAKE_MAPPED)
        *flags = memory->access >> location->id & 1 ? FAKE_ACCESS_READWRITE : 0;
    fake_unlock();
    return memory && memory->kind == FAKE_MAPPED ? OK : INVALID_VALUE;
}

FAKE_ENTRY(cuMemExportToShareableHandle, void *result, struct fake_handle *handle, int type, uint64_t flags)
{
    int status = INVALID_VALUE;

    FAKE_ENTER(cuMemExportToShareableHandle);
    fake_lock();
    if (handle_lives(handle) && type == FAKE_HANDLE_POSIX_FD && handle->types & FAKE_HANDLE_POSIX_FD && !flags) {
        const int file = dup(handle->file);

        /* What device it is on travels as the time of the file. */
        futimens(file,
                 (const struct timespec[]){{.tv_sec = 1000 + handle->machine}, {.tv_sec = 1000 + handle->machine}});
        *(int *)result = file;
        status = file < 0 ? OPERATING_SYSTEM : OK;
    }
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuMemImportFromShareableHandle, struct fake_handle **result, void *shareable, int type)
{
    const int file = (int)(intptr_t)shareable;
    struct stat status;
    int machine, copy;

    FAKE_ENTER(cuMemImportFromShareableHandle);
    if (!result || type != FAKE_HANDLE_POSIX_FD || fstat(file, &status) != 0)
        return INVALID_VALUE;
    machine = (int)status.st_mtim.tv_sec - 1000;
    if (!fake_machine_device(machine))
        return INVALID_VALUE;
    copy = dup(file);
    if (copy < 0)
        return OPERATING_SYSTEM;
    fake_lock();
    *result = new_handle(copy, machine, fake_device_ordinal(machine), (uint64_t)status.st_size, 0);
    fake_unlock();
    return *result ? OK : OUT_OF_MEMORY;
}

FAKE_ENTRY(cuMemRetainAllocationHandle, struct fake_handle **result, void *address)
{
    struct fake_memory *memory;

    FAKE_ENTER(cuMemRetainAllocationHandle);
    fake_lock();
    memory = fake_memory_at((uint64_t)(uintptr_t)address);
    if (memory && memory->kind == FAKE_MAPPED) {
        memory->handle->references++;
        *result = memory->handle;
    }
    fake_unlock();
    return memory && memory->kind == FAKE_MAPPED ? OK : INVALID_VALUE;
}

FAKE_ENTRY(cuMemGetAllocationPropertiesFromHandle, struct fake_allocation_properties *properties,
           struct fake_handle *handle)
{
    int status = INVALID_VALUE;

    FAKE_ENTER(cuMemGetAllocationPropertiesFromHandle);
    fake_lock();
    if (handle_lives(handle)) {
        *properties = (struct fake_allocation_properties){
            .type = 1, .handle_types = (int)handle->types, .location = {FAKE_LOCATION_DEVICE, handle->device}};
        status = OK;
    }
    fake_unlock();
    return status;
}
