// SPDX-License-Identifier: BSD-3-Clause
/* What kind of memory it is, pages in, pages out. */
#include "mem/registry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "mem/room.h"

enum { LINE = 4400 };

static uintptr_t page_down(uintptr_t address)
{
    return address / (uintptr_t)sysconf(_SC_PAGESIZE) * (uintptr_t)sysconf(_SC_PAGESIZE);
}

static uintptr_t page_up(uintptr_t address)
{
    return page_down(address + (uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* ---- is it the right kind of memory? ---- */

/* A line of /proc/self/maps. */
struct mapping {
    uintptr_t begin, end;
    char access[8]; /* "rw-p" */
    unsigned long inode;
    char name[LINE];
};

static bool read_mapping(FILE *file, struct mapping *mapping)
{
    char line[LINE];
    int name = 0;

    if (fgets(line, sizeof line, file) == NULL ||
        sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s %*s %*s %lu %n", &mapping->begin, &mapping->end, mapping->access,
               &mapping->inode, &name) != 4)
        return false;
    line[strcspn(line, "\n")] = 0;
    snprintf(mapping->name, sizeof mapping->name, "%s", line + name);
    return true;
}

static enum hoop_status check_kind(const struct mapping *mapping)
{
    const char *name = mapping->name, *what = NULL;

    if (strncmp(name, "/memfd:hoop", strlen("/memfd:hoop")) == 0)
        return hoop_fail(HOOP_ERR_ARG, "the memory at %" PRIxPTR " is of hoop_mem_alloc, or registered already",
                         mapping->begin);
    if (mapping->access[3] == 's')
        what = "is shared with other processes";
    else if (mapping->inode != 0)
        what = "is mapped from a file";
    else if (mapping->access[0] != 'r' || mapping->access[1] != 'w')
        what = "cannot be both read and written";
    else if (mapping->access[2] == 'x')
        what = "can be executed";
    else if (name[0] && strcmp(name, "[heap]") != 0 && strncmp(name, "[anon", strlen("[anon")) != 0)
        what = "serves the process itself";
    if (what == NULL)
        return HOOP_OK;
    return hoop_fail(HOOP_ERR_UNSUPPORTED,
                     "the memory at %" PRIxPTR
                     " %s (%s %s): only private anonymous memory, as of malloc or of mmap with "
                     "MAP_PRIVATE and MAP_ANONYMOUS, can be registered",
                     mapping->begin, what, mapping->access, name);
}

/* All of it must be mapped; its whole pages, [begin, end), must be of the kind that is taken. */
static enum hoop_status check_memory(const struct hoop_registration *new)
{
    const uintptr_t last = (uintptr_t) new->memory + new->bytes;
    uintptr_t next = (uintptr_t) new->memory;
    enum hoop_status status = HOOP_OK;
    struct mapping mapping;
    FILE *file = fopen("/proc/self/maps", "re");

    if (file == NULL)
        return hoop_fail_errno(HOOP_ERR_UNSUPPORTED, "cannot look at the process's memory in /proc/self/maps");
    while (status == HOOP_OK && next < last && read_mapping(file, &mapping)) {
        if (mapping.end <= next)
            continue;
        if (mapping.begin > next)
            break;
        next = mapping.end;
        if (mapping.begin < new->end && mapping.end > new->begin)
            status = check_kind(&mapping);
    }
    fclose(file);
    return status == HOOP_OK && next < last ? hoop_fail(HOOP_ERR_ARG, "no memory is mapped at %" PRIxPTR, next)
                                            : status;
}

/* ---- the table ---- */

/* Where in the table it belongs. Errors: it overlaps another, or the table is full. */
static enum hoop_status find_place(const struct hoop_board *board, const struct hoop_registration *new, int *place)
{
    const uintptr_t from = (uintptr_t) new->memory, base = (uintptr_t)board->base;
    int i = 0;

    if (board->registrations == HOOP_REGISTRATIONS)
        return hoop_fail(HOOP_ERR_ARG, "%d ranges are registered, more cannot be; deregister some, or join them",
                         HOOP_REGISTRATIONS);
    if (from < base + board->size && base < from + new->bytes)
        return hoop_fail(HOOP_ERR_ARG, "%p is memory of hoop_mem_alloc, which peers can read anyway", new->memory);
    while (i < board->registrations && (uintptr_t)board->registration[i].memory < from)
        i++;
    *place = i;
    for (int other = i > 0 ? i - 1 : 0; other < board->registrations && other <= i; other++) {
        const struct hoop_registration *old = &board->registration[other];
        const uintptr_t begin = (uintptr_t)old->memory;
        if (from < begin + old->bytes && begin < from + new->bytes)
            return hoop_fail(HOOP_ERR_ARG, "%zu bytes at %p overlap the %zu bytes at %p that are registered already",
                             new->bytes, new->memory, old->bytes, old->memory);
    }
    return HOOP_OK;
}

static int find(const struct hoop_board *board, const void *memory)
{
    for (int i = 0; i < board->registrations; i++)
        if (board->registration[i].memory == memory)
            return i;
    return -1;
}

bool hoop_board_find_registered(const struct hoop_board *board, uintptr_t data, size_t bytes, size_t *offset)
{
    int low = 0, high = board->registrations; /* the last one that begins at or before data is low - 1 */

    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (board->registration[middle].begin <= data)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    const struct hoop_registration *found = &board->registration[low - 1];
    *offset = found->offset + (data - found->begin);
    return data <= found->end && bytes <= found->end - data;
}

/* ---- pages ---- */

/* Put the heap's pages, which hold the same, in the place of the program's. */
static enum hoop_status change_pages(const struct hoop_board *board, const struct hoop_registration *new)
{
    void *const at = (void *)new->begin, *const pages = board->base + new->offset;
    const size_t size = new->end - new->begin;

    memcpy(pages, at, size);
    if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, board->descriptor, (off_t) new->offset) !=
        MAP_FAILED)
        return HOOP_OK;
    const enum hoop_status status = hoop_fail_errno(
        HOOP_ERR_MEMORY,
        "cannot put shared pages in the place of %zu bytes at %p; the process may have too many mappings", size, at);
    /* The kernel may have taken the old pages away before it failed. */
    if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
        memcpy(at, pages, size);
    return status;
}

enum hoop_status hoop_registry_add(struct hoop_heap *heap, void *memory, size_t bytes)
{
    struct hoop_board *board = hoop_heap_board(heap);
    const uintptr_t begin = page_up((uintptr_t)memory), end = page_down((uintptr_t)memory + bytes);
    struct hoop_registration new = {(uintptr_t)memory, (uintptr_t)memory, 0, memory, bytes};
    void *pages = NULL;
    int place = 0;

    enum hoop_status status = find_place(board, &new, &place);
    if (begin < end) {
        new.begin = begin;
        new.end = end;
    }
    if (status == HOOP_OK)
        status = check_memory(&new);
    if (status != HOOP_OK)
        return status;
    if (begin < end) {
        status = hoop_heap_take_for(heap, end - begin, "hoop_register", &pages);
        if (status != HOOP_OK)
            return status;
        new.offset = (size_t)((unsigned char *)pages - board->base);
        status = change_pages(board, &new);
        if (status != HOOP_OK) {
            hoop_heap_give(heap, pages);
            return status;
        }
    }
    memmove(&board->registration[place + 1], &board->registration[place],
            (size_t)(board->registrations - place) * sizeof new);
    board->registration[place] = new;
    board->registrations++;
    return HOOP_OK;
}

static void forget(struct hoop_board *board, int i)
{
    board->registrations--;
    memmove(&board->registration[i], &board->registration[i + 1],
            (size_t)(board->registrations - i) * sizeof board->registration[i]);
}

static enum hoop_status take_back(struct hoop_heap *heap, const struct hoop_registration *old)
{
    struct hoop_board *board = hoop_heap_board(heap);
    const size_t size = old->end - old->begin;

    if (size == 0)
        return HOOP_OK;
    enum hoop_status status = hoop_room_check(size, "making registered memory ordinary again");
    if (status == HOOP_OK)
        status = hoop_board_detach(board, (void *)old->begin, size);
    return status == HOOP_OK ? hoop_heap_give(heap, board->base + old->offset) : status;
}

enum hoop_status hoop_registry_remove(struct hoop_heap *heap, const void *memory)
{
    struct hoop_board *board = hoop_heap_board(heap);
    const int i = find(board, memory);

    if (i < 0)
        return hoop_fail(HOOP_ERR_ARG, "hoop_deregister: no registration on this communicator begins at %p", memory);
    const enum hoop_status status = take_back(heap, &board->registration[i]);
    if (status == HOOP_OK)
        forget(board, i);
    return status;
}

void hoop_registry_clear(struct hoop_heap *heap)
{
    struct hoop_board *board = heap ? hoop_heap_board(heap) : NULL;

    while (board && board->registrations > 0) {
        const struct hoop_registration *last = &board->registration[board->registrations - 1];
        if (take_back(heap, last) != HOOP_OK) {
            hoop_log(HOOP_LOG_WARN, board->rank, "%zu bytes at %p stay in shared memory after their communicator: %s",
                     last->bytes, last->memory, hoop_error_text());
            hoop_heap_leave(heap, board->base + last->offset);
        }
        forget(board, board->registrations - 1);
    }
}
