// SPDX-License-Identifier: BSD-3-Clause
/* Board: the memory that the ranks of one communicator share on one host.
 *
 * One memfd, made by the lowest rank and passed to the others, mapped whole by every rank at its own address. It is
 * sparse: its size is address space, pages are taken range by range with fallocate just before they are first used, so
 * that a machine without memory answers with an error and not with a signal. Since both ends of a link may reserve the same
 * range, links need no handshake; since a rank's heap (hoop_mem_alloc) lies in the board from birth, every peer can
 * read it without mapping anything. The memfd has no name and is sealed against growing and shrinking: nothing can
 * leak, and no peer can make an access fault.
 *
 *     head | card of each rank | flight recorder of each rank | flat slots of each rank | rings [to][from][lane] |
 *     stages of each rank | heap of each rank
 *
 * Fresh pages are zero, and zero is the valid first state of everything here.
 */
#ifndef HOOP_MEM_BOARD_H
#define HOOP_MEM_BOARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hoop.h"
#include "mem/bell.h"

/* RUN_AHEAD: calls that a rank may start before the slowest rank has started the first of them, so that records that two ranks
 * compare are still there. */
enum {
    HOOP_LINE = 64,
    HOOP_CALL_RECORDS = 64,
    HOOP_FLAT_SLOTS = 4,
    HOOP_RUN_AHEAD = HOOP_CALL_RECORDS - 4,
    HOOP_SHRINK_RANKS = 4096
};

/* What decides about the layout; equal on all ranks. */
struct hoop_board_shape {
    int ranks;    /* ranks on this board */
    int lanes;    /* lanes of links */
    size_t ring;  /* bytes of one ring */
    size_t flat;  /* payload bytes of one flat slot */
    size_t stage; /* bytes of one stage; 0: none */
    size_t heap;  /* bytes of one rank's heap window */
};

/* A collective as its rank called it: what a mismatch report shows. */
struct hoop_call {
    uint64_t sequence;    /* 1, 2, 3, … per communicator */
    uint64_t fingerprint; /* hash of all below and of all calls before */
    uint64_t count;
    uint64_t kind; /* the rest, in one word: it is written with every call */
};

struct hoop_call_kind {
    unsigned coll, type, op, in_place;
    unsigned device; /* 1: its buffers are device memory */
    int root;
};

static inline uint64_t hoop_call_pack(struct hoop_call_kind kind)
{
    return (uint64_t)(kind.coll | kind.type << 8 | kind.op << 16 | kind.in_place << 24 | kind.device << 25) |
           (uint64_t)(uint32_t)kind.root << 32;
}

static inline struct hoop_call_kind hoop_call_unpack(uint64_t kind)
{
    return (struct hoop_call_kind){(unsigned)kind & 255,         (unsigned)(kind >> 8) & 255,
                                   (unsigned)(kind >> 16) & 255, (unsigned)(kind >> 24) & 1,
                                   (unsigned)(kind >> 25) & 1,   (int)(uint32_t)(kind >> 32)};
}

/* A rank's life: the mutex is held by the rank's helper thread as long as the process lives. */
enum hoop_life {
    HOOP_LIFE_NONE,
    HOOP_LIFE_ALIVE,
    HOOP_LIFE_LEFT,
    HOOP_LIFE_DEAD /* somebody has found it so */
};

struct hoop_card {
    struct hoop_bell bell;                         /* rung by peers when they have published something */
    _Alignas(HOOP_LINE) _Atomic uint64_t started;  /* sequence of the latest call of this rank */
    _Alignas(HOOP_LINE) _Atomic uint64_t finished; /* of the latest call in which it has done with peers' memory */
    /* exec/staged.h: pieces of vectors that this rank has staged, and whose own slice it has summed; of a broadcast: that it has fetched */
    _Alignas(HOOP_LINE) _Atomic uint64_t staged;
    _Alignas(HOOP_LINE) _Atomic uint64_t summed;
    _Alignas(HOOP_LINE) _Atomic uint64_t
        begun; /* of the latest call that a kernel of this rank has begun, as far as known */
    _Atomic uint64_t
        let_go; /* 1: the communicator has failed, and no kernel of this rank touches a peer's memory any more */
    _Alignas(HOOP_LINE) struct hoop_call call[HOOP_CALL_RECORDS]; /* at sequence modulo HOOP_CALL_RECORDS */
    _Alignas(HOOP_LINE) pthread_mutex_t life_lock;                /* robust, shared */
    _Atomic uint32_t life;                                        /* enum hoop_life */
    int32_t process;                                              /* pid, for reports */
    _Atomic uint64_t heartbeat;                                   /* counts up while the helper thread runs */
    _Atomic uint64_t
        heard; /* of a rank of another host, whose `started` is UINT64_MAX: what has been heard of it (health/far.h) */
    /* what the rank waits for, as obs/recorder.h packs it, and since when; noted once it sleeps for it */
    _Alignas(HOOP_LINE) _Atomic uint64_t where;
    _Atomic uint64_t waits_since;
    /* on which the rank was last seen to run, + 1; negative: it may use no other; 0: not known (exec/spread.h) */
    _Atomic int32_t processor;
    /* comm/shrink.c: attempts that this rank has come to (UINT32_MAX: it has given up), in which it has made the new communicator, and in
     * which it could not; who is in and how they meet, of the attempt that this rank has fixed */
    _Alignas(HOOP_LINE) _Atomic uint32_t shrinks;
    _Atomic uint32_t shrink_made, shrink_failed;
    _Atomic uint32_t still;       /* 1: silent for longer than HOOP_SILENT, as a rank of its host has found */
    _Atomic uint64_t shrink_word; /* of a rank of another host: head->shrink there, as last heard (health/council.h) */
    uint64_t shrink_members[HOOP_SHRINK_RANKS / 64];
    unsigned char shrink_id[sizeof(struct hoop_unique_id)];
};

/* First line of a flat slot; the payload beyond the inline bytes follows it. */
struct hoop_flat_slot {
    _Alignas(HOOP_LINE) _Atomic uint64_t word; /* 2 * sequence of the call + 1 if data are offers; written last */
    uint64_t tag;
    unsigned char data[];
};

enum { HOOP_FLAT_HEAD = 16 };

struct hoop_board_head {
    uint64_t magic;
    struct hoop_board_shape shape;
    _Alignas(HOOP_LINE) _Atomic uint64_t verdict; /* health/verdict.h; 0: all is well */
    _Atomic uint64_t shrink;                      /* comm/shrink.c; 0: nobody has begun to */
    _Atomic uint64_t dumped;                      /* when it was written to a file; 0: it was not */
};

enum { HOOP_REGISTRATIONS = 64 };

/* Memory of the program whose whole pages are pages of this rank's heap: registry.h. */
struct hoop_registration {
    uintptr_t begin, end; /* of those pages; equal if there are none */
    size_t offset;        /* of begin in the board */
    void *memory;         /* as it was registered */
    size_t bytes;
};

/* One rank's view. */
struct hoop_board {
    struct hoop_board_shape shape;
    int rank, descriptor;
    unsigned char *base; /* where this process has it */
    size_t size;
    struct hoop_board_head *head;
    size_t card_at, flight_at, flat_at, ring_at, stage_at, heap_at; /* offsets from base */
    size_t flat_stride;                                             /* bytes of one flat slot */
    int registrations;
    struct hoop_registration registration[HOOP_REGISTRATIONS]; /* by address */
};

/* Make the segment and view it as `rank`. The descriptor is given to the other ranks of the host.
 * Errors: HOOP_ERR_MEMORY (with what is needed and what limits it), HOOP_ERR_SYSTEM. */
enum hoop_status hoop_board_create(struct hoop_board **board, const struct hoop_board_shape *shape, int rank);

/* View a segment that another rank made; takes over the descriptor, also on failure.
 * Errors: HOOP_ERR_SETUP (not a sealed segment of this shape), HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM. */
enum hoop_status hoop_board_attach(struct hoop_board **board, const struct hoop_board_shape *shape, int rank,
                                   int descriptor);

/* A view of a copy of another process's board: fill in shape and offsets; base, head and what is behind them are the caller's.
 * Errors: HOOP_ERR_ARG (not the head of a board of this version), HOOP_ERR_MEMORY (of an impossible shape). */
enum hoop_status hoop_board_picture(struct hoop_board *board, const struct hoop_board_head *head);

/* Unmap and close. NULL is allowed. */
void hoop_board_close(struct hoop_board *board);

/* Make sure that pages stand behind [offset, offset + bytes). Idempotent; content is kept.
 * Errors: HOOP_ERR_MEMORY (names what it is for, the bytes, and the limit that is in the way). */
enum hoop_status hoop_board_reserve(struct hoop_board *board, size_t offset, size_t bytes, const char *purpose);

/* Before reserving a fresh range: put huge pages where whole ones fit. They are there faster than small ones, and large sums
 * run faster, since fewer addresses have to be looked up. Where the kernel will not, nothing is lost. */
void hoop_board_enlarge_pages(struct hoop_board *board, size_t offset, size_t bytes);

/* Map whole pages that stand there already into this process now, and not one by one when they are used. Where the kernel cannot,
 * nothing is lost. */
void hoop_board_populate(struct hoop_board *board, size_t offset, size_t bytes);

/* Give the pages back; the range reads as zero afterwards. */
void hoop_board_release(struct hoop_board *board, size_t offset, size_t bytes);

/* Take [data, data + bytes) of this rank's heap, and the rest of its pages, off the board for good: content and address stay, but
 * peers no longer reach it. For a communicator that is dead.
 * Errors: HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM; peers still reach it then. */
enum hoop_status hoop_board_detach(struct hoop_board *board, void *data, size_t bytes);

enum { HOOP_CARD_STRIDE = (sizeof(struct hoop_card) + 127) / 128 * 128 };

static inline struct hoop_card *hoop_board_card(const struct hoop_board *board, int rank)
{
    return (struct hoop_card *)(board->base + board->card_at + (size_t)rank * HOOP_CARD_STRIDE);
}

/* Where a rank's flight recorder lies (obs/recorder.h). What is before the flat slots is all that tells of a communicator's state: hosts and
 * programs that look at it from outside need no more. */
enum { HOOP_FLIGHT_BYTES = 64 + 64 * 1024 };

static inline void *hoop_board_flight(const struct hoop_board *board, int rank)
{
    return board->base + board->flight_at + (size_t)rank * HOOP_FLIGHT_BYTES;
}

/* The latest call of a rank, as far as is known here. */
static inline uint64_t hoop_card_started(const struct hoop_card *card)
{
    const uint64_t started = atomic_load_explicit(&card->started, memory_order_acquire);

    return started == UINT64_MAX ? atomic_load_explicit(&card->heard, memory_order_acquire) : started;
}

static inline struct hoop_flat_slot *hoop_board_flat(const struct hoop_board *board, int rank, uint64_t sequence)
{
    const size_t slot = (size_t)rank * HOOP_FLAT_SLOTS + sequence % HOOP_FLAT_SLOTS;
    return (struct hoop_flat_slot *)(board->base + board->flat_at + slot * board->flat_stride);
}

/* Offset of the ring that carries frames from `from` to `to` on a lane; reserve it before use. */
static inline size_t hoop_board_ring_offset(const struct hoop_board *board, int to, int from, int lane)
{
    const size_t ranks = (size_t)board->shape.ranks, lanes = (size_t)board->shape.lanes;
    return board->ring_at + (((size_t)to * ranks + (size_t)from) * lanes + (size_t)lane) * board->shape.ring;
}

/* A rank's stages, for inputs and for results; reserve them before use. Each is followed by some pages: see HOOP_HEAP_SKEW. */
enum hoop_stage_half { HOOP_STAGE_IN, HOOP_STAGE_OUT, HOOP_STAGES };
enum { HOOP_STAGE_SKEW = 5 * 4096 };

static inline unsigned char *hoop_board_stage(const struct hoop_board *board, int rank, enum hoop_stage_half stage)
{
    const size_t at = (size_t)rank * HOOP_STAGES + stage;

    return board->base + board->stage_at + at * (board->shape.stage + HOOP_STAGE_SKEW);
}

/* Between two windows of heaps, some pages. Buffers that ranks allocate alike would else lie a large power of two apart, and the first
 * caches of some processors (AMD's guess the way from a hash of the address) hold only one of two such lines: a sum of two
 * of them took nearly twice the time. Blocks of one heap are kept seven pages apart for the same reason; eleven is no sum of sevens,
 * and the last block of a window ends before the next begins. */
enum { HOOP_HEAP_SKEW = 11 * 4096 };

/* Offset of a rank's heap window. */
static inline size_t hoop_board_heap_offset(const struct hoop_board *board, int rank)
{
    return board->heap_at + (size_t)rank * (board->shape.heap + HOOP_HEAP_SKEW);
}

/* The rest of hoop_board_owns. */
bool hoop_board_find_registered(const struct hoop_board *board, uintptr_t data, size_t bytes, size_t *offset);

/* Does [data, data + bytes) lie in this rank's heap, by its address there or by that of registered memory? Then *offset is where
 * in the board. */
static inline bool hoop_board_owns(const struct hoop_board *board, const void *data, size_t bytes, size_t *offset)
{
    const size_t at = (size_t)((uintptr_t)data - (uintptr_t)board->base),
                 from = hoop_board_heap_offset(board, board->rank);

    *offset = at;
    if ((uintptr_t)data >= (uintptr_t)board->base && at >= from && at - from <= board->shape.heap &&
        bytes <= board->shape.heap - (at - from))
        return true;
    return board->registrations > 0 && hoop_board_find_registered(board, (uintptr_t)data, bytes, offset);
}

#endif
