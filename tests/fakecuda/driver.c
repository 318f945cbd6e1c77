// SPDX-License-Identifier: BSD-3-Clause
/* Entry: what every call does first, the table of entry points, and faults to inject.
 *
 * FAKECUDA_FAIL="cuMemAlloc:3=2,kernel:1=719,cuStreamSynchronize:2+=700,cuIpcOpenMemHandle:1=die": the third cuMemAlloc gives
 * 2, the first kernel that begins fails with 719, from the second synchronisation on 700, and the process is killed at its
 * first opening of a handle. FAKECUDA_REMOVE="cuFuncLoad,cuMemCreate": these entry points do not exist.
 */
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakecuda/queue.h"

static const struct entry {
    const char *symbol, *base;
    int version;
    unsigned needs;
    enum fake_index index;
} entries[] = {
#define ENTRY(symbol, base, version, needs) {#symbol, #base, version, needs, FAKE_INDEX_##symbol},
#include "tests/fakecuda/entries.def"
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

#define ENTRY(symbol, base, version, needs) void fake_extern_##symbol(void) __asm__(#symbol);
#include "tests/fakecuda/entries.def"
static void (*const functions[])(void) = {
#define ENTRY(symbol, base, version, needs) fake_extern_##symbol,
#include "tests/fakecuda/entries.def"
};

enum { FAULTS = 16 };
static struct fault {
    enum fake_index index;
    long nth;
    bool onwards, die;
    int result;
} faults[FAULTS];
static int fault_count;
static _Atomic long calls[FAKE_INDEX_COUNT];
static bool removed[FAKE_INDEX_COUNT];
static _Atomic pid_t initialized;

pthread_mutex_t fake_mutex = PTHREAD_MUTEX_INITIALIZER;
_Thread_local struct fake_thread fake_thread;

void fake_say(const char *format, ...)
{
    char text[400];
    va_list list;
    int length;

    if (!fake_options.NOISE)
        return;
    va_start(list, format);
    length = vsnprintf(text, sizeof text - 1, format, list);
    va_end(list);
    if (length > 0 && (size_t)length < sizeof text - 1) {
        text[length++] = '\n';
        if (write(STDERR_FILENO, "fakecuda: ", 10) == 10 && write(STDERR_FILENO, text, (size_t)length) < 0)
            return;
    }
}

static void add_fault(const char *word)
{
    char name[64], code[16];
    struct fault fault = {0};

    if (fault_count == FAULTS || sscanf(word, "%63[^:]:%ld", name, &fault.nth) != 2 || !strchr(word, '='))
        return;
    snprintf(code, sizeof code, "%s", strchr(word, '=') + 1);
    fault.onwards = strstr(word, "+=") != NULL;
    fault.die = strcmp(code, "die") == 0;
    fault.result = (int)strtol(code, NULL, 10);
    if (strcmp(name, "kernel") == 0) {
        fault.index = FAKE_INDEX_KERNEL;
        faults[fault_count++] = fault;
    }
    for (int i = 0; i < ENTRIES && fault_count < FAULTS; i++) {
        if (strcmp(entries[i].base, name) == 0) {
            fault.index = entries[i].index;
            faults[fault_count++] = fault;
        }
    }
}

static void read_faults(void)
{
    const char *fail = getenv("FAKECUDA_FAIL"), *remove_list = getenv("FAKECUDA_REMOVE");
    char text[2048], *rest = NULL;

    snprintf(text, sizeof text, "%s", fail ? fail : "");
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        add_fault(word);
    snprintf(text, sizeof text, "%s", remove_list ? remove_list : "");
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        for (int i = 0; i < ENTRIES; i++)
            if (strcmp(entries[i].base, word) == 0 || strcmp(entries[i].symbol, word) == 0)
                removed[entries[i].index] = true;
}

int fake_fault(enum fake_index index)
{
    const long nth = atomic_fetch_add(&calls[index], 1) + 1;

    for (int i = 0; i < fault_count; i++) {
        const struct fault *fault = &faults[i];

        if (fault->index != index || nth < fault->nth || (nth > fault->nth && !fault->onwards))
            continue;
        if (fault->die)
            raise(SIGKILL);
        return fault->result;
    }
    return OK;
}

/* The first call may be any: what the environment says is read once. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int machine_result, window_result;

static void prepare(void)
{
    machine_result = fake_machine_load();
    read_faults();
}

static unsigned needs_of(enum fake_index index)
{
    return entries[index].needs;
}

int fake_enter(enum fake_index index)
{
    const unsigned needs = needs_of(index);
    int result;

    pthread_once(&once, prepare);
    if (removed[index])
        return NOT_FOUND;
    result = fake_fault(index);
    if (result != OK)
        return result;
    if ((needs & FAKE_INITIALIZED) == 0)
        return OK;
    if (atomic_load(&initialized) != getpid())
        return NOT_INITIALIZED;
    if (fake_thread.callback)
        return NOT_PERMITTED;
    if ((needs & FAKE_CURRENT) == FAKE_CURRENT) {
        struct fake_context *context = fake_current();

        if (!context)
            return INVALID_CONTEXT;
        if (!fake_context_lives(context))
            return CONTEXT_IS_DESTROYED;
        if (atomic_load(&context->error) != OK)
            return atomic_load(&context->error);
    }
    if (needs & FAKE_UNSAFE && fake_capture_forbids()) {
        fake_capture_spoil();
        return STREAM_CAPTURE_UNSUPPORTED;
    }
    return OK;
}

static void initialize(void)
{
    window_result = fake_window_init();
    if (window_result != OK)
        return;
    fake_share_init();
    fake_faults_init();
    atexit(fake_share_end);
    atomic_store(&initialized, getpid());
}

FAKE_ENTRY(cuInit, unsigned flags)
{
    static pthread_once_t initialize_once = PTHREAD_ONCE_INIT;

    FAKE_ENTER(cuInit);
    if (flags)
        return INVALID_VALUE;
    if (machine_result != OK)
        return machine_result;
    pthread_once(&initialize_once, initialize);
    if (window_result != OK)
        return window_result;
    return atomic_load(&initialized) == getpid() ? OK : NOT_INITIALIZED;
}

FAKE_ENTRY(cuDriverGetVersion, int *version)
{
    FAKE_ENTER(cuDriverGetVersion);
    if (!version)
        return INVALID_VALUE;
    *version = (int)fake_options.VERSION;
    return OK;
}

/* The newest form of the name that is not newer than the version asked for and than the driver. */
static int find(const char *name, int version, void **function, int *status)
{
    int best = -1;

    if (!name || !function)
        return INVALID_VALUE;
    *function = NULL;
    for (int i = 0; i < ENTRIES; i++) {
        if (strcmp(entries[i].base, name) != 0 || removed[entries[i].index] ||
            entries[i].version > fake_options.VERSION)
            continue;
        if (status && best < 0)
            *status = 2; /* known, but not in that version */
        if (entries[i].version <= version && (best < 0 || entries[i].version > entries[best].version))
            best = i;
    }
    if (best < 0)
        return version > fake_options.VERSION ? INVALID_VALUE : NOT_FOUND;
    if (status)
        *status = 0;
    memcpy(function, &functions[best], sizeof *function);
    return OK;
}

FAKE_ENTRY(cuGetProcAddress, const char *name, void **function, int version, uint64_t flags)
{
    FAKE_ENTER(cuGetProcAddress);
    if (flags > 2 || version > fake_options.VERSION)
        return INVALID_VALUE;
    return find(name, version, function, NULL);
}

/* With the fifth parameter, a name that is not found is told there, and the call succeeds. */
FAKE_ENTRY(cuGetProcAddress_v2, const char *name, void **function, int version, uint64_t flags, int *status)
{
    int result;

    FAKE_ENTER(cuGetProcAddress_v2);
    if (flags > 2 || version > fake_options.VERSION)
        return INVALID_VALUE;
    if (status)
        *status = 1; /* not found */
    result = find(name, version, function, status);
    return result == NOT_FOUND && status ? OK : result;
}

static const struct {
    int number;
    const char *name, *text;
} results[] = {{0, "CUDA_SUCCESS", "no error"},
#define X(name, number, text) {number, "CUDA_ERROR_" #name, text},
               FAKE_RESULTS(X)
#undef X
};

FAKE_ENTRY(cuGetErrorName, int result, const char **name)
{
    FAKE_ENTER(cuGetErrorName);
    *name = NULL;
    for (unsigned i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].number == result)
            *name = results[i].name;
    return *name ? OK : INVALID_VALUE;
}

FAKE_ENTRY(cuGetErrorString, int result, const char **text)
{
    FAKE_ENTER(cuGetErrorString);
    *text = NULL;
    for (unsigned i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].number == result)
            *text = results[i].text;
    return *text ? OK : INVALID_VALUE;
}
