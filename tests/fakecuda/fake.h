// SPDX-License-Identifier: BSD-3-Clause
/* The fake driver's own structures: machine, contexts, memory.
 *
 * Device memory is memfds. A process reserves one range of addresses in which device pointers lie; nothing is ever mapped there
 * (except managed memory), so the host faults when it follows one. Each context has a window of the same size, in which
 * what that context may reach is mapped at the same offset; a device thread adds (window - range) to its addresses. One
 * more window, the driver's, shows everything, for copies.
 *
 * One lock (fake_lock) covers contexts, memory and the lists of streams and events; queues of streams have their own. Order:
 * fake_lock, then a stream's, then an engine's.
 */
#ifndef HOOP_FAKECUDA_FAKE_H
#define HOOP_FAKECUDA_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/fakecuda/abi.h"

#define FAKE_DEVICES 16
#define FAKE_MAGIC   0xBA55ED50u /* the first word of an image of device code */

/* An entry point: declared and defined, seen by dlsym. Its body begins with FAKE_ENTER(name). */
#define FAKE_ENTRY(name, ...)                                     \
    __attribute__((visibility("default"))) int name(__VA_ARGS__); \
    __attribute__((visibility("default"))) int name(__VA_ARGS__)

/* What every call does first: driver initialised, not a forked child, faults to inject, context current and sound, capture. */
#define FAKE_ENTER(name)                                    \
    do {                                                    \
        const int entered_ = fake_enter(FAKE_INDEX_##name); \
        if (entered_ != OK)                                 \
            return entered_;                                \
    } while (0)

/* What a call needs (entries.def). */
enum {
    FAKE_ANYTIME = 0,
    FAKE_INITIALIZED = 1, /* cuInit was called in this process */
    FAKE_CURRENT = 3,     /* and a context is current, without an error */
    FAKE_UNSAFE = 4,      /* not allowed while a capture is going on that forbids it */
};

enum fake_index {
#define ENTRY(symbol, base, version, needs) FAKE_INDEX_##symbol,
#include "tests/fakecuda/entries.def"
    FAKE_INDEX_KERNEL, /* a kernel begins; not an entry point, but it can be made to fail */
    FAKE_INDEX_COUNT
};

int fake_enter(enum fake_index index);
/* The fault to inject at this count of a call: OK, or its result. Does not return where the process is to die. */
int fake_fault(enum fake_index index);
void fake_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- machine ---- */

struct fake_device {
    char name[64], bus[16];
    struct fake_uuid uuid, board; /* of this device; of the board that MIG instances share */
    int multiprocessors, blocks, major, minor, node, index;
    bool instance; /* MIG */
    uint64_t memory;
};

/* How one device reaches another's memory. The last two are broken: stores vanish; a bit of what is stored changes. */
enum fake_path { FAKE_PATH_NONE, FAKE_PATH_GOOD, FAKE_PATH_LOSE, FAKE_PATH_FLIP };

struct fake_options {
#define OPTION(name, value, unit, help) long name;
#include "tests/fakecuda/options.def"
};
extern struct fake_options fake_options;

extern int fake_device_count;                       /* visible ones */
const struct fake_device *fake_device(int ordinal); /* NULL: there is none */
const struct fake_device *fake_machine_device(int index);
/* By indices in the machine, not by visible ordinals: other processes see others. */
enum fake_path fake_path(int from, int to);
int fake_path_rank(int from, int to);
int fake_machine_load(void);
int fake_device_ordinal(int index); /* of a machine's device, -1: not visible here */

/* ---- contexts ---- */

struct fake_stream;
struct fake_memory;

struct fake_context {
    int device;
    bool primary;
    unsigned references, flags;
    _Atomic int error; /* sticky */
    uint64_t id;
    char *window;
    uint32_t peers[FAKE_DEVICES]; /* ids of the contexts whose memory this one may reach, 0-ended */
    struct fake_stream *streams;  /* all of them; the legacy one is made with the context */
    struct fake_stream *legacy;
    struct fake_module *modules;
    struct fake_context *next;
};

extern pthread_mutex_t fake_mutex;
extern struct fake_context *fake_contexts;
static inline void fake_lock(void)
{
    pthread_mutex_lock(&fake_mutex);
}
static inline void fake_unlock(void)
{
    pthread_mutex_unlock(&fake_mutex);
}

struct fake_context *fake_current(void);
bool fake_context_lives(const struct fake_context *context);
bool fake_context_reaches(const struct fake_context *context, const struct fake_context *peer);
int fake_context_enable(struct fake_context *context, struct fake_context *peer);
/* Wait until the streams of the context are empty; its error. Without the lock. */
int fake_context_wait(struct fake_context *context);

/* What the calling thread is. */
struct fake_thread {
    struct fake_context *stack[16];
    int depth;
    int capture_mode;
    bool callback; /* inside a host function: calls are refused */
};
extern _Thread_local struct fake_thread fake_thread;

/* ---- memory ---- */

enum fake_kind {
    FAKE_FREE,
    FAKE_LEGACY,     /* cuMemAlloc */
    FAKE_POOL,       /* cuMemAllocAsync */
    FAKE_MANAGED,    /* cuMemAllocManaged */
    FAKE_PINNED,     /* cuMemHostAlloc */
    FAKE_REGISTERED, /* cuMemHostRegister */
    FAKE_IMPORTED,   /* cuIpcOpenMemHandle */
    FAKE_MAPPED,     /* cuMemMap */
    FAKE_RESERVED,   /* cuMemAddressReserve: addresses only */
};

struct fake_memory {
    enum fake_kind kind;
    struct fake_context *context; /* NULL: VMM */
    int device;                   /* visible ordinal, -1: host memory, or a device that is not visible */
    int machine;                  /* index of the device in the machine, -1: host memory */
    uint64_t base, bytes;         /* as the program sees it */
    uint64_t start, length;       /* the pages of it */
    char *host;                   /* first byte for the host, of host and managed memory */
    bool alias;                   /* the pages are the program's own, aliased by mremap */
    int file;
    off_t offset; /* of the pages in the file */
    uint64_t id;
    unsigned opened;                /* imports: how often */
    unsigned flags;                 /* of host memory; of exportable types */
    uint32_t access;                /* VMM: bit a visible device */
    struct fake_handle *handle;     /* VMM */
    struct fake_ipc_record *origin; /* imports: what it is */
    bool sync_operations;
};

/* Where device addresses lie. fake_range_at: offset of an address from the beginning of the range. */
int fake_window_init(void);
uint64_t fake_range_begin(void);
uint64_t fake_range_end(void);
bool fake_in_range(uint64_t address);
char *fake_window_new(void);
void fake_window_drop(char *window);
char *fake_driver_view(uint64_t address); /* where the driver reads and writes a device address */
int64_t fake_delta(const struct fake_context *context);
uint64_t fake_address_of(const struct fake_context *context, const void *pointer); /* 0: not in a window */

/* Show or hide pages in the driver's window and those of contexts that may reach them. With the lock. */
bool fake_show(struct fake_memory *memory);
void fake_hide(struct fake_memory *memory);
bool fake_show_again(struct fake_context *context); /* after its peers have changed */
void fake_shadows_forward(const struct fake_context *context);
bool fake_shadowed(const struct fake_context *context, uint64_t address);

/* The table of memory, with the lock. Pointers are valid until the entry is removed. */
struct fake_memory *fake_memory_new(enum fake_kind kind, uint64_t bytes, uint64_t length, uint64_t alignment);
void fake_memory_drop(struct fake_memory *memory);
struct fake_memory *fake_memory_at(uint64_t address);      /* NULL: nothing there */
struct fake_memory *fake_memory_host(const void *pointer); /* pinned, registered or managed; by host address */
struct fake_memory *
fake_memory_next(struct fake_memory *from); /* all, one after the other; NULL: the first, or the end */
/* A memfd of these pages; -1. */
int fake_file_new(uint64_t length, const char *name);
uint64_t fake_round(uint64_t value, uint64_t unit);
uint64_t fake_place_in_pages(uint64_t start, uint64_t length, uint64_t bytes);
void fake_poison(const struct fake_memory *memory);
/* Everything that a context owns. With the lock. */
void fake_memory_end(struct fake_context *context);
int fake_memory_give_back(struct fake_memory *memory);
bool fake_charge(int device, uint64_t bytes); /* false: no memory left */
void fake_discharge(int device, uint64_t bytes);
uint64_t fake_charged(int device);

/* ---- what processes share ---- */

/* Bells: counters that are rung when something changed; who waits notes the count, looks again, and sleeps. Bell 0 is for
 * fences, streams and host functions; kernels wait at one chosen by where in its page the word lies, or at the last one for any word. */
enum { FAKE_BELLS = 64, FAKE_BELL_ANY = FAKE_BELLS - 1 };
int fake_share_init(void);
void fake_share_end(void);
void fake_ring(int bell);
void fake_ring_all(void);
uint32_t fake_bell_note(int bell); /* count the caller as a waiter and note the count */
void fake_bell_sleep(int bell, uint32_t noted, long nanoseconds);
void fake_bell_leave(int bell);
int fake_bell_of(uint64_t address); /* 0: any word */
/* Who has opened whose memory. fake_import_count: by processes that live. */
void fake_import_note(pid_t owner, uint64_t id, bool open);
int fake_import_count(pid_t owner, uint64_t id);
void fake_import_end(const struct fake_memory *memory); /* an import is not open any more */

#endif
