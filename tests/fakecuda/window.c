// SPDX-License-Identifier: BSD-3-Clause
/* The range of device addresses, the windows on it, and the table of what lies where. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"
#include "tests/tsan.h"

#define RANGE ((uint64_t)32 << 30)
#define LARGE ((uint64_t)2 << 20)
#define SMALL ((uint64_t)64 << 10)

/* ThreadSanitizer does not look at what the thread reads, writes and maps in between; pages that it maps count as new ones. */
#if UNDER_TSAN
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#define UNSEEN_BEGIN() AnnotateIgnoreWritesBegin(__FILE__, __LINE__)
#define UNSEEN_END()   AnnotateIgnoreWritesEnd(__FILE__, __LINE__)
#else
#define UNSEEN_BEGIN() ((void)0)
#define UNSEEN_END()   ((void)0)
#endif

static char *range, *driver_window;
static uint64_t next_address;
static struct fake_memory *table[65536]; /* by address */
static unsigned entries;
static uint64_t charged[FAKE_DEVICES];
static uint64_t freed_start, freed_length;

/* What a context sees of a device that it reaches by a broken path: pages of its own. */
struct shadow {
    struct fake_context *context;
    struct fake_memory *memory;
    uint64_t *last; /* as it was when forwarded last */
    enum fake_path path;
    struct shadow *next;
};
static struct shadow *shadows;
static pthread_mutex_t shadow_mutex = PTHREAD_MUTEX_INITIALIZER;

uint64_t fake_round(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static char *reserve(uint64_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* Children of one parent get equal addresses from mmap; the pid keeps their ranges apart, so that a pointer sent to
 * another process means nothing there. */
int fake_window_init(void)
{
    const uint64_t apart = (uint64_t)(getpid() % 4096) * LARGE;

    range = reserve(RANGE + 4097 * LARGE);
    driver_window = reserve(RANGE);
    if (!range || !driver_window)
        return OUT_OF_MEMORY;
    range = (char *)(uintptr_t)(fake_round((uint64_t)(uintptr_t)range, LARGE) + apart);
    next_address = (uint64_t)(uintptr_t)range + LARGE;
    return OK;
}

uint64_t fake_range_begin(void)
{
    return (uint64_t)(uintptr_t)range;
}

bool fake_in_range(uint64_t address)
{
    return range && address >= fake_range_begin() && address - fake_range_begin() < RANGE;
}

char *fake_window_new(void)
{
    return fake_options.FLAT ? driver_window : reserve(RANGE);
}

void fake_window_drop(char *window)
{
    if (window && window != driver_window)
        munmap(window, RANGE);
}

char *fake_driver_view(uint64_t address)
{
    return driver_window + (address - fake_range_begin());
}

int64_t fake_delta(const struct fake_context *context)
{
    return context->window - range;
}

uint64_t fake_address_of(const struct fake_context *context, const void *pointer)
{
    const char *at = pointer;

    return context && at >= context->window && at < context->window + RANGE
               ? fake_range_begin() + (uint64_t)(at - context->window)
               : 0;
}

/* ---- the table ---- */

/* The first entry that begins beyond the address. */
static unsigned beyond(uint64_t address)
{
    unsigned low = 0, high = entries;

    while (low < high) {
        const unsigned middle = (low + high) / 2;

        if (table[middle]->start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_free(uint64_t start, uint64_t length)
{
    const unsigned after = beyond(start);

    return (after == 0 || table[after - 1]->start + table[after - 1]->length <= start) &&
           (after == entries || start + length <= table[after]->start);
}

/* Addresses go round the range, so that what was freed is not given out again soon. At least a page stays free behind. */
static uint64_t take(uint64_t length, uint64_t alignment)
{
    if (fake_options.REUSE && freed_start && freed_length == length && freed_start % alignment == 0 &&
        is_free(freed_start, length))
        return freed_start;
    for (unsigned tries = 0; tries < 100000; tries++) {
        const uint64_t start = fake_round(next_address, alignment);

        if (start + length + SMALL > fake_range_begin() + RANGE) {
            next_address = fake_range_begin() + LARGE;
            continue;
        }
        next_address = start + length + 4096;
        if (is_free(start, length + 4096))
            return start;
    }
    return 0;
}

uint64_t fake_place_in_pages(uint64_t start, uint64_t length, uint64_t bytes)
{
    const uint64_t grain = (uint64_t)fake_options.GUARD;

    return grain ? start + (length - fake_round(bytes, grain)) : start;
}

struct fake_memory *fake_memory_new(enum fake_kind kind, uint64_t bytes, uint64_t length, uint64_t alignment)
{
    static uint64_t ids;
    struct fake_memory *memory = calloc(1, sizeof *memory);
    const uint64_t grain = alignment ? alignment : length >= LARGE ? LARGE : SMALL, start = take(length, grain);
    unsigned at;

    if (!memory || !start || entries == sizeof table / sizeof table[0]) {
        free(memory);
        return NULL;
    }
    *memory = (struct fake_memory){.kind = kind,
                                   .bytes = bytes,
                                   .start = start,
                                   .length = length,
                                   .file = -1,
                                   .device = -1,
                                   .machine = -1,
                                   .id = ++ids,
                                   .base = start};
    at = beyond(start);
    memmove(&table[at + 1], &table[at], (entries - at) * sizeof table[0]);
    table[at] = memory;
    entries++;
    return memory;
}

void fake_memory_drop(struct fake_memory *memory)
{
    const unsigned at = beyond(memory->start) - 1;

    freed_start = memory->start;
    freed_length = memory->length;
    memmove(&table[at], &table[at + 1], (entries - at - 1) * sizeof table[0]);
    entries--;
    if (memory->file >= 0)
        close(memory->file);
    free(memory->origin);
    free(memory);
}

struct fake_memory *fake_memory_at(uint64_t address)
{
    for (unsigned at = beyond(address); at > 0; at--) {
        struct fake_memory *memory = table[at - 1];

        if (address >= memory->base && address - memory->base < memory->bytes)
            return memory;
        if (address - memory->start >= memory->length)
            return NULL;
    }
    return NULL;
}

struct fake_memory *fake_memory_host(const void *pointer)
{
    for (unsigned i = 0; i < entries; i++)
        if (table[i]->host && (const char *)pointer >= table[i]->host &&
            (const char *)pointer < table[i]->host + table[i]->bytes)
            return table[i];
    return NULL;
}

struct fake_memory *fake_memory_next(struct fake_memory *from)
{
    const unsigned at = from ? beyond(from->start) : 0;

    return at < entries ? table[at] : NULL;
}

bool fake_charge(int device, uint64_t bytes)
{
    if (charged[device] + bytes > fake_device(device)->memory)
        return false;
    charged[device] += bytes;
    return true;
}

void fake_discharge(int device, uint64_t bytes)
{
    charged[device] -= bytes;
}

uint64_t fake_charged(int device)
{
    return charged[device];
}

int fake_file_new(uint64_t length, const char *name)
{
    const int file = memfd_create(name, MFD_CLOEXEC);

    if (file >= 0 && ftruncate(file, (off_t)length) != 0) {
        close(file);
        return -1;
    }
    return file;
}

void fake_poison(const struct fake_memory *memory)
{
    if (fake_options.POISON)
        memset(fake_driver_view(memory->start), 0xA5, memory->length);
}

/* ---- showing ---- */

static bool reaches(const struct fake_context *context, const struct fake_memory *memory)
{
    switch (memory->kind) {
    case FAKE_MANAGED:
    case FAKE_PINNED:
    case FAKE_REGISTERED:
        return true;
    case FAKE_MAPPED:
        return (memory->access >> context->device & 1) != 0;
    case FAKE_IMPORTED:
        return memory->context == context;
    case FAKE_LEGACY:
    case FAKE_POOL:
        return memory->context == context || fake_context_reaches(context, memory->context);
    default:
        return false;
    }
}

/* Pages of the context's own in place of memory that it reaches by a broken path. */
static bool show_shadow(struct fake_context *context, struct fake_memory *memory, char *at, enum fake_path path)
{
    struct shadow *shadow = calloc(1, sizeof *shadow);

    if (!shadow ||
        mmap(at, memory->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
        free(shadow);
        return false;
    }
    *shadow = (struct shadow){context, memory, malloc(memory->length), path, NULL};
    memcpy(at, fake_driver_view(memory->start), memory->length);
    if (shadow->last)
        memcpy(shadow->last, at, memory->length);
    pthread_mutex_lock(&shadow_mutex);
    shadow->next = shadows;
    __atomic_store_n(&shadows, shadow, __ATOMIC_RELAXED); /* others look without the lock whether there are any */
    pthread_mutex_unlock(&shadow_mutex);
    return true;
}

/* What a kernel has stored through a path that flips bits goes on its way, and what the owner has stored comes in. A word of which only
 * the lowest 4 bytes are in use looks like a counter or a flag, and passes. As hardware would, this goes on beside kernels that are just storing
 * there, which is no race of theirs. */
static void forward(struct shadow *shadow)
{
    uint64_t *ours = (uint64_t *)(void *)(shadow->context->window + (shadow->memory->start - fake_range_begin()));
    uint64_t *real = (uint64_t *)(void *)fake_driver_view(shadow->memory->start);

    UNSEEN_BEGIN();
    for (uint64_t i = 0; i < shadow->memory->length / 8; i++) {
        const uint64_t mine = __atomic_load_n(&ours[i], __ATOMIC_ACQUIRE),
                       theirs = __atomic_load_n(&real[i], __ATOMIC_ACQUIRE);

        if (mine != shadow->last[i]) {
            __atomic_store_n(&real[i], mine >> 32 ? mine ^ (uint64_t)1 << 40 : mine, __ATOMIC_RELEASE);
            shadow->last[i] = mine;
        } else if (theirs != shadow->last[i] && theirs != (shadow->last[i] ^ (uint64_t)1 << 40)) {
            __atomic_store_n(&ours[i], theirs, __ATOMIC_RELEASE);
            shadow->last[i] = theirs;
        }
    }
    UNSEEN_END();
}

void fake_shadows_forward(const struct fake_context *context)
{
    if (!__atomic_load_n(&shadows, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&shadow_mutex);
    for (struct shadow *shadow = shadows; shadow; shadow = shadow->next)
        if (shadow->context == context && shadow->path == FAKE_PATH_FLIP && shadow->last)
            forward(shadow);
    pthread_mutex_unlock(&shadow_mutex);
}

bool fake_shadowed(const struct fake_context *context, uint64_t address)
{
    bool found = false;

    if (!__atomic_load_n(&shadows, __ATOMIC_RELAXED))
        return false;
    pthread_mutex_lock(&shadow_mutex);
    for (const struct shadow *shadow = shadows; shadow && !found; shadow = shadow->next)
        found = shadow->context == context && address - shadow->memory->start < shadow->memory->length;
    pthread_mutex_unlock(&shadow_mutex);
    return found;
}

static void drop_shadows(const struct fake_context *context, const struct fake_memory *memory)
{
    pthread_mutex_lock(&shadow_mutex);
    for (struct shadow **link = &shadows; *link;) {
        struct shadow *shadow = *link;

        if ((context && shadow->context != context) || (memory && shadow->memory != memory)) {
            link = &shadow->next;
            continue;
        }
        __atomic_store_n(link, shadow->next, __ATOMIC_RELAXED);
        free(shadow->last);
        free(shadow);
    }
    pthread_mutex_unlock(&shadow_mutex);
}

/* To ThreadSanitizer a mapping is a write by the thread that makes it. Who comes before it faults anyway; and who comes after may know of it
 * through another process, which ThreadSanitizer cannot see. */
static bool map_at(char *at, const struct fake_memory *memory)
{
    const void *mapped;

    UNSEEN_BEGIN();
    if (memory->alias)
        mapped = mremap((char *)((uintptr_t)memory->host & ~(uintptr_t)4095), 0, memory->length,
                        MREMAP_MAYMOVE | MREMAP_FIXED, at);
    else
        mapped = mmap(at, memory->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->file, memory->offset);
    UNSEEN_END();
    return mapped != MAP_FAILED;
}

static void unmap_at(char *at, uint64_t length)
{
    mmap(at, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static bool show_in(struct fake_context *context, struct fake_memory *memory)
{
    char *at = context->window + (memory->start - fake_range_begin());
    const enum fake_path path = memory->machine < 0 || memory->kind == FAKE_MANAGED
                                    ? FAKE_PATH_GOOD
                                    : fake_path(fake_device(context->device)->index, memory->machine);

    if (context->window == driver_window)
        return true;
    if (!reaches(context, memory)) {
        drop_shadows(context, memory);
        unmap_at(at, memory->length);
        return true;
    }
    if (path == FAKE_PATH_LOSE || path == FAKE_PATH_FLIP)
        return show_shadow(context, memory, at, path);
    return map_at(at, memory);
}

bool fake_show(struct fake_memory *memory)
{
    bool shown = map_at(fake_driver_view(memory->start), memory);

    if (shown && memory->kind == FAKE_MANAGED)
        shown = map_at(range + (memory->start - fake_range_begin()), memory);
    for (struct fake_context *context = fake_contexts; context && shown; context = context->next)
        if (context->references)
            shown = !reaches(context, memory) || show_in(context, memory);
    return shown;
}

void fake_hide(struct fake_memory *memory)
{
    const uint64_t at = memory->start - fake_range_begin();

    drop_shadows(NULL, memory);
    unmap_at(driver_window + at, memory->length);
    if (memory->kind == FAKE_MANAGED)
        unmap_at(range + at, memory->length);
    for (struct fake_context *context = fake_contexts; context; context = context->next)
        if (context->references && context->window != driver_window)
            unmap_at(context->window + at, memory->length);
}

/* A context is new, or has other peers than before. */
bool fake_show_again(struct fake_context *context)
{
    drop_shadows(context, NULL);
    for (unsigned i = 0; i < entries; i++)
        if (table[i]->kind != FAKE_RESERVED && !show_in(context, table[i]))
            return false;
    return true;
}
