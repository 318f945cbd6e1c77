// SPDX-License-Identifier: BSD-3-Clause
/* Memory and events of other processes.
 *
 * A handle says which process has the memory as which open file; /proc gives the file. So nothing has to be cleaned up
 * after a crash, and a handle dies with its process.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/fakecuda/event.h"
#include "tests/fakecuda/queue.h"

struct fake_ipc_record {
    uint32_t magic, kind; /* 1: memory, 2: event */
    int32_t process, file, machine, pad;
    uint64_t id, bytes, length, base; /* base: where in its pages it begins */
    uint64_t node;                    /* of the file, so that a number used again is noticed */
};
_Static_assert(sizeof(struct fake_ipc_record) <= sizeof(struct fake_ipc_handle), "a record fits a handle");

enum { MAGIC = 0x68616e64 };

static uint64_t node_of(int file)
{
    struct stat status;

    return fstat(file, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

static int open_record(const struct fake_ipc_record *record)
{
    char path[64];
    int file;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", record->process, record->file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0 && node_of(file) != record->node) {
        close(file);
        return -1;
    }
    return file;
}

/* The handle is the whole allocation's, wherever in it the address points: the offset is lost. */
FAKE_ENTRY(cuIpcGetMemHandle, struct fake_ipc_handle *handle, uint64_t address)
{
    const struct fake_memory *memory;
    int status = INVALID_VALUE;

    FAKE_ENTER(cuIpcGetMemHandle);
    if (!fake_options.IPC)
        return NOT_SUPPORTED;
    fake_lock();
    memory = fake_memory_at(address);
    if (memory && memory->kind == FAKE_LEGACY) {
        const struct fake_ipc_record record = {.magic = MAGIC,
                                               .kind = 1,
                                               .process = getpid(),
                                               .file = memory->file,
                                               .machine = memory->machine,
                                               .id = memory->id,
                                               .bytes = memory->bytes,
                                               .length = memory->length,
                                               .base = memory->base - memory->start,
                                               .node = node_of(memory->file)};

        memset(handle, 0, sizeof *handle);
        memcpy(handle, &record, sizeof record);
        status = OK;
    }
    fake_unlock();
    return status;
}

static struct fake_memory *find_import(const struct fake_context *context, const struct fake_ipc_record *record)
{
    for (struct fake_memory *memory = fake_memory_next(NULL); memory; memory = fake_memory_next(memory))
        if (memory->kind == FAKE_IMPORTED && memory->context == context &&
            memcmp(memory->origin, record, sizeof *record) == 0)
            return memory;
    return NULL;
}

static int import(struct fake_context *context, const struct fake_ipc_record *record, uint64_t *address)
{
    struct fake_memory *memory = find_import(context, record);
    int file;

    if (memory) {
        if (fake_options.OLD_IPC)
            return ALREADY_MAPPED;
        memory->opened++;
        *address = memory->base;
        return OK;
    }
    file = open_record(record);
    if (file < 0)
        return INVALID_VALUE;
    memory = fake_memory_new(FAKE_IMPORTED, record->bytes, record->length, 0);
    if (!memory) {
        close(file);
        return OUT_OF_MEMORY;
    }
    memory->file = file;
    memory->context = context;
    memory->machine = record->machine;
    memory->device = fake_device_ordinal(record->machine);
    memory->base = memory->start + record->base;
    memory->opened = 1;
    memory->origin = malloc(sizeof *memory->origin);
    *memory->origin = *record;
    if (!fake_show(memory)) {
        fake_hide(memory);
        fake_memory_drop(memory);
        return MAP_OF_BUFFER_FAILED;
    }
    fake_import_note(record->process, record->id, true);
    *address = memory->base;
    return OK;
}

void fake_import_end(const struct fake_memory *memory)
{
    fake_import_note(memory->origin->process, memory->origin->id, false);
}

/* It is open from the beginning on. Without the lock. */
static void open_slowly(const struct fake_ipc_record *record)
{
    const struct timespec time = {.tv_sec = fake_options.OPENING / 1000,
                                  .tv_nsec = fake_options.OPENING % 1000 * 1000000};

    fake_import_note(record->process, record->id, true);
    nanosleep(&time, NULL);
}

static int open_memory(uint64_t *address, const struct fake_ipc_handle *handle, unsigned flags)
{
    struct fake_context *context = fake_current();
    struct fake_ipc_record record;
    int status;

    memcpy(&record, handle, sizeof record);
    if (!fake_options.IPC)
        return NOT_SUPPORTED;
    if (!address || flags > FAKE_IPC_LAZY_ENABLE_PEER_ACCESS || record.magic != MAGIC || record.kind != 1)
        return INVALID_VALUE;
    if (record.process == getpid())
        return INVALID_CONTEXT;
    if (fake_path(fake_device(context->device)->index, record.machine) == FAKE_PATH_NONE)
        return PEER_ACCESS_UNSUPPORTED;
    if (fake_device(context->device)->index != record.machine && flags == 0)
        return PEER_ACCESS_UNSUPPORTED;
    if (fake_options.OPENING)
        open_slowly(&record);
    fake_lock();
    status = import(context, &record, address);
    fake_unlock();
    if (fake_options.OPENING)
        fake_import_note(record.process, record.id, false);
    return status;
}

FAKE_ENTRY(cuIpcOpenMemHandle, uint64_t *address, struct fake_ipc_handle handle, unsigned flags)
{
    FAKE_ENTER(cuIpcOpenMemHandle);
    return open_memory(address, &handle, flags);
}

FAKE_ENTRY(cuIpcOpenMemHandle_v2, uint64_t *address, struct fake_ipc_handle handle, unsigned flags)
{
    FAKE_ENTER(cuIpcOpenMemHandle_v2);
    return open_memory(address, &handle, flags);
}

/* A context that is broken reaches nothing any more: what it had open is closed, though the call fails. */
FAKE_ENTRY(cuIpcCloseMemHandle, uint64_t address)
{
    struct fake_context *context;
    struct fake_memory *memory;
    int status = INVALID_VALUE;

    FAKE_ENTER(cuIpcCloseMemHandle);
    context = fake_current();
    if (!context || !fake_context_lives(context))
        return INVALID_CONTEXT;
    fake_lock();
    memory = fake_memory_at(address);
    fake_unlock();
    if (memory && memory->kind == FAKE_IMPORTED && memory->context == context && memory->opened == 1)
        fake_context_wait(context);
    fake_lock();
    memory = fake_memory_at(address);
    if (memory && memory->kind == FAKE_IMPORTED && memory->base == address && memory->context == context) {
        status = atomic_load(&context->error);
        if (--memory->opened == 0) {
            fake_import_end(memory);
            fake_hide(memory);
            fake_memory_drop(memory);
        }
    }
    fake_unlock();
    return status;
}

FAKE_ENTRY(cuIpcGetEventHandle, struct fake_ipc_handle *handle, struct fake_event *event)
{
    struct fake_ipc_record record = {.magic = MAGIC, .kind = 2, .process = getpid()};

    FAKE_ENTER(cuIpcGetEventHandle);
    if (!fake_event_lives(event) || !(event->flags & FAKE_EVENT_INTERPROCESS) || event->file < 0)
        return INVALID_HANDLE;
    record.file = event->file;
    record.node = node_of(event->file);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &record, sizeof record);
    return OK;
}

FAKE_ENTRY(cuIpcOpenEventHandle, struct fake_event **result, struct fake_ipc_handle handle)
{
    struct fake_ipc_record record;
    int file;

    FAKE_ENTER(cuIpcOpenEventHandle);
    memcpy(&record, &handle, sizeof record);
    if (record.magic != MAGIC || record.kind != 2)
        return INVALID_VALUE;
    if (record.process == getpid())
        return INVALID_CONTEXT;
    file = open_record(&record);
    if (file < 0)
        return INVALID_VALUE;
    fake_lock();
    *result = fake_event_new(fake_current(), FAKE_EVENT_INTERPROCESS | FAKE_EVENT_DISABLE_TIMING, file);
    fake_unlock();
    return *result ? OK : OUT_OF_MEMORY;
}
