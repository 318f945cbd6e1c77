// SPDX-License-Identifier: BSD-3-Clause
/* The board's layout, its memfd and its mappings. Ranks that are threads of one process share one mapping. */
#include "mem/board.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "mem/room.h"

#define MAGIC \
    0x33647261426f6f48u /* "HooBard3" in memory; another one for another layout: programs of other versions look at it */

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; older kernels answer EINVAL */
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum {
    PAGE = 4096,
    CHECK_ROOM_FROM = 1 << 20,
    RESERVE_PIECE = 16 << 20,
    HUGE_PAGE = 2 << 20,
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL
};

static size_t page_up(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Fill in the offsets; they depend on the shape alone. */
static enum hoop_status lay_out(struct hoop_board *board)
{
    const struct hoop_board_shape *shape = &board->shape;
    const size_t ranks = (size_t)shape->ranks;
    size_t rings, stages, heaps, size;

    board->card_at = page_up(sizeof *board->head);
    board->flight_at = board->card_at + page_up(ranks * HOOP_CARD_STRIDE);
    board->flat_at = board->flight_at + page_up(ranks * HOOP_FLIGHT_BYTES);
    board->flat_stride = (HOOP_FLAT_HEAD + shape->flat + 127) / 128 * 128;
    board->ring_at = board->flat_at + page_up(ranks * HOOP_FLAT_SLOTS * board->flat_stride);
    if (__builtin_mul_overflow(ranks * ranks * (size_t)shape->lanes, shape->ring, &rings) ||
        __builtin_mul_overflow(ranks, shape->heap + HOOP_HEAP_SKEW, &heaps) ||
        __builtin_add_overflow(board->ring_at, rings, &board->stage_at) ||
        __builtin_mul_overflow(ranks * HOOP_STAGES, shape->stage + HOOP_STAGE_SKEW, &stages) ||
        __builtin_add_overflow(board->stage_at, stages, &board->heap_at) ||
        __builtin_add_overflow(board->heap_at, heaps, &size) || size > (size_t)1 << 46)
        return hoop_fail(
            HOOP_ERR_MEMORY,
            "%d ranks with %d lanes of %zu-byte rings and heaps of %zu bytes do not fit into 64 TiB of address "
            "space. Lower HOOP_HEAP, HOOP_SLOTS or HOOP_SLICE.",
            shape->ranks, shape->lanes, shape->ring, shape->heap);
    board->size = size;
    return HOOP_OK;
}

/* ---- mappings, shared by the ranks of one process ---- */

struct mapping {
    struct mapping *next;
    dev_t device;
    ino_t inode;
    unsigned char *base;
    size_t size;
    int users;
};

static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;

/* A forked child: the lock may have been held by a thread that it does not have. */
static void forget_lock(void)
{
    pthread_mutex_init(&mappings_lock, NULL);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_lock);
}

/* Where huge pages of the file can be huge in this process, too. */
static void *map_aligned(const struct hoop_board *board)
{
    const size_t size = page_up(board->size);
    unsigned char *space = mmap(NULL, size + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (space == MAP_FAILED)
        return MAP_FAILED;
    const size_t before = (size_t)(-(uintptr_t)space % HUGE_PAGE);
    void *base = mmap(space + before, board->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
                      board->descriptor, 0);

    if (base == MAP_FAILED) {
        munmap(space, size + HUGE_PAGE);
        return base;
    }
    if (before > 0)
        munmap(space, before);
    munmap(space + before + size, HUGE_PAGE - before);
    return base;
}

static struct mapping *map_new(const struct hoop_board *board, const struct stat *file)
{
    struct mapping *mapping = hoop_calloc(1, sizeof *mapping);

    if (mapping == NULL)
        return NULL;
    void *base = map_aligned(board);
    if (base == MAP_FAILED) {
        hoop_fail_errno(
            HOOP_ERR_MEMORY,
            "cannot map the shared segment of %zu bytes of address space; lower HOOP_HEAP (%zu bytes a rank) or "
            "raise ulimit -v",
            board->size, board->shape.heap);
        hoop_free(mapping);
        return NULL;
    }
    madvise(base, board->size, MADV_DONTDUMP); /* a core file of the address space would be terabytes */
    *mapping = (struct mapping){mappings, file->st_dev, file->st_ino, base, board->size, 0};
    mappings = mapping;
    return mapping;
}

static enum hoop_status map(struct hoop_board *board)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct stat file;

    pthread_once(&once, watch_forks);
    if (fstat(board->descriptor, &file) < 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot look at the shared segment");
    pthread_mutex_lock(&mappings_lock);
    struct mapping *mapping = mappings;
    while (mapping && (mapping->device != file.st_dev || mapping->inode != file.st_ino))
        mapping = mapping->next;
    if (mapping == NULL)
        mapping = map_new(board, &file);
    if (mapping) {
        mapping->users++;
        board->base = mapping->base;
        board->head = (struct hoop_board_head *)board->base;
    }
    pthread_mutex_unlock(&mappings_lock);
    return mapping ? HOOP_OK : HOOP_ERR_MEMORY;
}

static void unmap(struct hoop_board *board)
{
    pthread_mutex_lock(&mappings_lock);
    for (struct mapping **at = &mappings; *at; at = &(*at)->next) {
        struct mapping *mapping = *at;
        if (mapping->base != board->base)
            continue;
        if (--mapping->users == 0) {
            *at = mapping->next;
            munmap(mapping->base, mapping->size);
            hoop_free(mapping);
        }
        break;
    }
    pthread_mutex_unlock(&mappings_lock);
}

/* ---- making and joining ---- */

static enum hoop_status board_new(struct hoop_board **board, const struct hoop_board_shape *shape, int rank,
                                  int descriptor)
{
    struct hoop_board *new = hoop_calloc(1, sizeof *new);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->shape = *shape;
    new->shape.heap = page_up(shape->heap);
    new->shape.ring = page_up(shape->ring);
    new->shape.stage = page_up(shape->stage);
    new->rank = rank;
    new->descriptor = descriptor;
    enum hoop_status status = lay_out(new);
    if (status != HOOP_OK) {
        hoop_free(new);
        return status;
    }
    *board = new;
    return HOOP_OK;
}

enum hoop_status hoop_board_create(struct hoop_board **board, const struct hoop_board_shape *shape, int rank)
{
    struct hoop_board *new = NULL;
    enum hoop_status status = board_new(&new, shape, rank, -1);

    if (status != HOOP_OK)
        return status;
    new->descriptor = memfd_create("hoop", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (new->descriptor < 0)
        status = hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot create a memfd for the shared segment");
    else if (ftruncate(new->descriptor, (off_t) new->size) < 0 || fcntl(new->descriptor, F_ADD_SEALS, SEALS) < 0)
        status = hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot size and seal the shared segment of %zu bytes", new->size);
    else
        status = map(new);
    if (status == HOOP_OK)
        status = hoop_board_reserve(new, 0, new->ring_at, "the ranks' shared cards");
    if (status != HOOP_OK) {
        hoop_board_close(new);
        return status;
    }
    new->head->magic = MAGIC;
    new->head->shape = new->shape;
    *board = new;
    return HOOP_OK;
}

static enum hoop_status verify(const struct hoop_board *board)
{
    struct stat file;

    if (fstat(board->descriptor, &file) < 0)
        return hoop_fail_errno(HOOP_ERR_SETUP, "the descriptor for the shared segment is bad");
    if ((fcntl(board->descriptor, F_GET_SEALS) & SEALS) != SEALS)
        return hoop_fail(HOOP_ERR_SETUP, "the shared segment that arrived is not sealed; it is not from hoop");
    if ((uint64_t)file.st_size != board->size)
        return hoop_fail(HOOP_ERR_SETUP,
                         "the shared segment has %llu bytes where this rank expects %zu: the settings differ",
                         (unsigned long long)file.st_size, board->size);
    return HOOP_OK;
}

static bool same_shape(const struct hoop_board_shape *a, const struct hoop_board_shape *b)
{
    return a->ranks == b->ranks && a->lanes == b->lanes && a->ring == b->ring && a->flat == b->flat &&
           a->stage == b->stage && a->heap == b->heap;
}

enum hoop_status hoop_board_attach(struct hoop_board **board, const struct hoop_board_shape *shape, int rank,
                                   int descriptor)
{
    struct hoop_board *new = NULL;
    enum hoop_status status = board_new(&new, shape, rank, descriptor);

    if (status != HOOP_OK) {
        close(descriptor);
        return status;
    }
    status = verify(new);
    if (status == HOOP_OK)
        status = map(new);
    if (status == HOOP_OK && (new->head->magic != MAGIC || !same_shape(&new->head->shape, &new->shape)))
        status = hoop_fail(HOOP_ERR_SETUP,
                           "the shared segment that arrived has another layout: library versions or settings differ");
    if (status != HOOP_OK) {
        hoop_board_close(new);
        return status;
    }
    *board = new;
    return HOOP_OK;
}

void hoop_board_close(struct hoop_board *board)
{
    if (board == NULL)
        return;
    if (board->base)
        unmap(board);
    if (board->descriptor >= 0)
        close(board->descriptor);
    hoop_free(board);
}

enum hoop_status hoop_board_picture(struct hoop_board *board, const struct hoop_board_head *head)
{
    const struct hoop_board_shape *shape = &head->shape;

    if (head->magic != MAGIC || shape->ranks < 1 || shape->lanes < 1)
        return hoop_fail(HOOP_ERR_ARG, "no memory of a communicator, or that of another version of hoop");
    *board = (struct hoop_board){.shape = *shape, .descriptor = -1};
    return lay_out(board);
}

/* ---- pages ---- */

enum hoop_status hoop_board_reserve(struct hoop_board *board, size_t offset, size_t bytes, const char *purpose)
{
    if (bytes >= CHECK_ROOM_FROM) {
        enum hoop_status status = hoop_room_check(bytes, purpose);
        if (status != HOOP_OK)
            return status;
    }
    /* In pieces: a signal undoes what a fallocate has done so far, and a timer's signals must not undo everything for ever. */
    for (size_t done = 0; done < bytes;) {
        const size_t piece = bytes - done < RESERVE_PIECE ? bytes - done : RESERVE_PIECE;
        if (fallocate(board->descriptor, 0, (off_t)(offset + done), (off_t)piece) == 0)
            done += piece;
        else if (errno != EINTR)
            return hoop_fail_errno(HOOP_ERR_MEMORY, "%s needs %zu bytes of shared memory, which the kernel refuses",
                                   purpose, bytes);
    }
    return HOOP_OK;
}

void hoop_board_enlarge_pages(struct hoop_board *board, size_t offset, size_t bytes)
{
    const size_t end = (offset + bytes) / HUGE_PAGE * HUGE_PAGE;

    if (bytes < HUGE_PAGE || hoop_room_check(bytes, "huge pages") != HOOP_OK)
        return;
    for (size_t at = (offset + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE; at < end; at += HUGE_PAGE)
        if (fallocate(board->descriptor, 0, (off_t)at, PAGE) < 0 ||
            madvise(board->base + at, HUGE_PAGE, MADV_COLLAPSE) < 0)
            return;
}

void hoop_board_populate(struct hoop_board *board, size_t offset, size_t bytes)
{
    madvise(board->base + offset, bytes, MADV_POPULATE_WRITE);
}

void hoop_board_release(struct hoop_board *board, size_t offset, size_t bytes)
{
    while (fallocate(board->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) < 0 &&
           errno == EINTR)
        ;
}

enum hoop_status hoop_board_detach(struct hoop_board *board, void *data, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), skew = (uintptr_t)data % page,
                 size = (skew + bytes + page - 1) / page * page;
    unsigned char *const from = (unsigned char *)data - skew;
    void *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (own == MAP_FAILED)
        return hoop_fail_errno(HOOP_ERR_MEMORY, "%zu bytes to take a buffer of rank %d off the board", size,
                               board->rank);
    memcpy(own, from, size);
    if (mremap(own, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, from) != MAP_FAILED)
        return HOOP_OK;
    munmap(own, size);
    return hoop_fail_errno(HOOP_ERR_SYSTEM, "mremap of %zu bytes of rank %d's buffer", size, board->rank);
}
