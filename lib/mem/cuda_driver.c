// SPDX-License-Identifier: BSD-3-Clause
/* Finding the driver and its entry points.
 *
 * cuGetProcAddress gives a function by its plain name and the version of its prototype, so drivers old and new give the same
 * one. Where it is missing (before CUDA 12) or does not know a name, the exported symbol of that very prototype is taken.
 * The outcome, good or bad, is found once in a process and kept.
 */
#include "mem/cuda_driver.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char library[] = "libcuda.so.1";

typedef void (*function)(void);
typedef hoop_cu_result (*get_function)(const char *name, void **function, int version, uint64_t flags,
                                       hoop_cu_symbol_status *status);

static struct hoop_cuda_driver driver_found;
static enum hoop_status outcome;     /* of looking for it */
static char reason[HOOP_ERROR_TEXT]; /* why outcome is not HOOP_OK */
static pid_t process;                /* that started it */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- results ---- */

static enum hoop_status status_of(hoop_cu_result result)
{
    switch (result) {
    case HOOP_CU_SUCCESS:
        return HOOP_OK;
    case HOOP_CU_OUT_OF_MEMORY:
        return HOOP_ERR_MEMORY;
    case HOOP_CU_NO_BINARY_FOR_GPU:
    case HOOP_CU_UNSUPPORTED_PTX_VERSION:
    case HOOP_CU_PEER_ACCESS_UNSUPPORTED:
    case HOOP_CU_NOT_PERMITTED:
    case HOOP_CU_NOT_SUPPORTED:
    case HOOP_CU_STREAM_CAPTURE_UNSUPPORTED:
        return HOOP_ERR_UNSUPPORTED;
    default:
        return HOOP_ERR_SYSTEM;
    }
}

enum hoop_status hoop_cuda_check(hoop_cu_result result, const char *call, int device)
{
    const char *name = NULL, *text = NULL;
    char where[32] = "";

    if (result == HOOP_CU_SUCCESS)
        return HOOP_OK;
    if (driver_found.cuGetErrorName)
        driver_found.cuGetErrorName(result, &name);
    if (driver_found.cuGetErrorString)
        driver_found.cuGetErrorString(result, &text);
    if (device >= 0)
        snprintf(where, sizeof where, " on CUDA device %d", device);
    return hoop_fail(status_of(result), "%s%s failed: %s (%d: %s)", call, where, name ? name : "unknown result",
                     (int)result, text ? text : "the driver has no text for it");
}

/* ---- entry points ---- */

static function look_up(void *handle, get_function get, const char *name, int version, const char *symbol)
{
    hoop_cu_symbol_status found = HOOP_CU_SYMBOL_FOUND;
    void *address = NULL;

    if (get == NULL || get(name, &address, version, 0, &found) != HOOP_CU_SUCCESS || found != HOOP_CU_SYMBOL_FOUND)
        address = NULL;
    if (address == NULL)
        address = dlsym(handle, symbol);
    function as_function;
    memcpy(&as_function, &address, sizeof as_function); /* POSIX: a function's address fits a pointer to an object */
    return as_function;
}

/* All rows of the table; false if a required one is missing. */
static bool look_up_all(void *handle)
{
    const function get = look_up(handle, NULL, NULL, 0, "cuGetProcAddress_v2");
    const char *missing = NULL;

    driver_found.by_name = get == NULL;
#define X(name, version, symbol, required, parameters)                                                             \
    driver_found.name = (hoop_cu_result(*) parameters)look_up(handle, (get_function)get, #name, version, #symbol); \
    if ((required) && driver_found.name == NULL && missing == NULL)                                                \
        missing = #name;
#include "mem/cuda_driver.def"
#undef X
    if (missing)
        snprintf(reason, sizeof reason,
                 "the CUDA driver %s has no %s: it is too old; install one for CUDA 11.7 or later", driver_found.origin,
                 missing);
    return missing == NULL;
}

static void note_origin(void *handle)
{
    struct link_map *map = NULL;

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == NULL)
        map = NULL;
    snprintf(driver_found.origin, sizeof driver_found.origin, "%s", map && map->l_name[0] ? map->l_name : library);
}

/* ---- starting ---- */

static bool start(void)
{
    const hoop_cu_result begun = driver_found.cuInit(0);
    if (begun != HOOP_CU_SUCCESS && begun != HOOP_CU_NO_DEVICE) {
        hoop_cuda_check(begun, "cuInit", -1);
        snprintf(
            reason, sizeof reason,
            "the CUDA driver %s does not start: %.600s; is the kernel's NVIDIA module loaded, and of the same version?",
            driver_found.origin, hoop_error_text());
        return false;
    }
    if (begun == HOOP_CU_SUCCESS)
        driver_found.cuDeviceGetCount(&driver_found.devices);
    driver_found.cuDriverGetVersion(&driver_found.version);
    if (driver_found.devices < 1) {
        snprintf(reason, sizeof reason, "the CUDA driver %s finds no device; does CUDA_VISIBLE_DEVICES hide them?",
                 driver_found.origin);
        return false;
    }
    return true;
}

static void find(void)
{
    outcome = HOOP_ERR_UNSUPPORTED;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *text = dlerror();
        snprintf(reason, sizeof reason, "there is no CUDA driver: %.600s", text ? text : library);
        return;
    }
    note_origin(handle);
    process = getpid();
    if (look_up_all(handle) && start())
        outcome = HOOP_OK;
}

enum hoop_status hoop_cuda_driver(const struct hoop_cuda_driver **driver)
{
    pthread_once(&once, find);
    if (outcome != HOOP_OK)
        return hoop_fail(outcome, "%s", reason);
    if (process != getpid())
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "CUDA cannot be used in process %d: process %d started the driver and then "
                         "forked; start it after the fork",
                         (int)getpid(), (int)process);
    *driver = &driver_found;
    return HOOP_OK;
}

/* Has anybody in this process called cuInit? *context: the thread's current one. */
static bool started(void **context)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    hoop_cu_result result = HOOP_CU_NOT_INITIALIZED;

    *context = NULL;
    if (handle == NULL)
        return false;
    hoop_cu_result (*get)(void *context) = (hoop_cu_result(*)(void *))look_up(handle, NULL, NULL, 0, "cuCtxGetCurrent");
    if (get)
        result = get(context);
    dlclose(handle);
    return result != HOOP_CU_NOT_INITIALIZED;
}

bool hoop_cuda_unusable(void)
{
    const struct hoop_cuda_driver *driver = NULL;
    void *context;

    return started(&context) && context && hoop_cuda_driver(&driver) != HOOP_OK;
}

enum hoop_status hoop_cuda_driver_if_started(const struct hoop_cuda_driver **driver)
{
    void *context;

    return started(&context) ? hoop_cuda_driver(driver)
                             : hoop_fail(HOOP_ERR_UNSUPPORTED, "CUDA is not in use in this process");
}
