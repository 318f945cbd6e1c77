// SPDX-License-Identifier: BSD-3-Clause
#include "exec/cuda_code.h"

#include <pthread.h>

#include "base/alloc.h"

enum { THREADS = 512 };

/* The fat binary that the build has embedded (device/image.S), or something that drivers refuse. */
extern const unsigned char hoop_device_image[];
extern const unsigned char hoop_device_image_is_code;
extern const int hoop_device_image_toolkit; /* CUDA version that made it: 1000 * major + 10 * minor */
extern const int hoop_device_image_oldest;  /* compute capability that it begins with: 10 * major + minor */

struct loaded {
    struct loaded *next;
    int ordinal, uses;
    int held; /* blocks */
    hoop_cu_module module;
    struct hoop_cuda_code code;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct loaded *all;

/* Why the driver does not take the image, and what helps. A driver runs machine code of toolkits up to its own major version, and compiles
 * PTX of toolkits up to its own version. */
static enum hoop_status refused(const struct hoop_cuda *cuda, hoop_cu_result result)
{
    const struct hoop_cuda_device *device = &cuda->device;
    const int driver = cuda->driver->version, toolkit = hoop_device_image_toolkit, oldest = hoop_device_image_oldest;

    if (!hoop_device_image_is_code)
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "this build of the library has no device code: nvcc was not there when it was built");
    if (driver < toolkit)
        return hoop_fail(
            HOOP_ERR_UNSUPPORTED,
            "the driver is of CUDA %d.%d and does not load the device code (result %d), which CUDA %d.%d has made: "
            "update the driver to one of CUDA %d.%d or newer, or build hoop with nvcc of CUDA %d.%d or older",
            driver / 1000, driver % 1000 / 10, (int)result, toolkit / 1000, toolkit % 1000 / 10, toolkit / 1000,
            toolkit % 1000 / 10, driver / 1000, driver % 1000 / 10);
    if (10 * device->major + device->minor < oldest)
        return hoop_fail(
            HOOP_ERR_UNSUPPORTED,
            "device %d, %s, has compute capability %d.%d, and the device code begins with %d.%d: build hoop with an "
            "nvcc that knows the device",
            device->ordinal, device->name, device->major, device->minor, oldest / 10, oldest % 10);
    return hoop_fail(
        HOOP_ERR_UNSUPPORTED,
        "the driver (CUDA %d.%d) does not load the device code on device %d, %s, compute capability %d.%d: "
        "result %d of cuModuleLoadData",
        driver / 1000, driver % 1000 / 10, device->ordinal, device->name, device->major, device->minor, (int)result);
}

static enum hoop_status load_module(const struct hoop_cuda *cuda, hoop_cu_module *module)
{
    const hoop_cu_result result = cuda->driver->cuModuleLoadData(module, hoop_device_image);

    return result == HOOP_CU_SUCCESS ? HOOP_OK : refused(cuda, result);
}

/* The function, loaded now: a first launch that loads code would wait for the device, where a peer may be waiting for us. */
static enum hoop_status find(const struct hoop_cuda *cuda, hoop_cu_module module, const char *name,
                             hoop_cu_function *function, int *threads)
{
    const struct hoop_cuda_driver *driver = cuda->driver;
    const int ordinal = cuda->device.ordinal;
    int most;

    enum hoop_status status =
        hoop_cuda_check(driver->cuModuleGetFunction(function, module, name), "cuModuleGetFunction", ordinal);
    if (status == HOOP_OK && driver->cuFuncLoad)
        status = hoop_cuda_check(driver->cuFuncLoad(*function), "cuFuncLoad", ordinal);
    if (status == HOOP_OK)
        status = hoop_cuda_check(driver->cuFuncGetAttribute(&most, HOOP_CU_FUNCTION_MAX_THREADS_PER_BLOCK, *function),
                                 "cuFuncGetAttribute", ordinal);
    if (status == HOOP_OK && most < *threads)
        *threads = most;
    return status;
}

static enum hoop_status find_all(const struct hoop_cuda *cuda, hoop_cu_module module, struct hoop_cuda_code *code)
{
    static const char *const names[HOOP_CUDA_VECTORS] = {
        "hoop_interpret",       "hoop_vector_divide", "hoop_vector_widen",  "hoop_vector_narrow",
        "hoop_vector_multiply", "hoop_vector_fill",   "hoop_vector_compare"};
    int blocks = 0;

    code->threads = code->vector_threads = THREADS;
    enum hoop_status status = find(cuda, module, "hoop_interpret", &code->interpret, &code->threads);
    for (int i = 0; status == HOOP_OK && i < HOOP_CUDA_VECTORS; i++)
        status = find(cuda, module, names[i], &code->vector[i], &code->vector_threads);
    if (status == HOOP_OK)
        status = hoop_cuda_check(
            cuda->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, code->interpret, code->threads, 0),
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", cuda->device.ordinal);
    code->resident = blocks * cuda->device.multiprocessors;
    if (status == HOOP_OK && code->resident < 1)
        status = hoop_fail(HOOP_ERR_UNSUPPORTED, "device %d, %s, has no room for a block of %d threads of the kernel",
                           cuda->device.ordinal, cuda->device.name, code->threads);
    return status;
}

static enum hoop_status load(const struct hoop_cuda *cuda, struct loaded *loaded)
{
    enum hoop_status status = hoop_cuda_enter(cuda);

    if (status != HOOP_OK)
        return status;
    status = load_module(cuda, &loaded->module);
    if (status == HOOP_OK) {
        status = find_all(cuda, loaded->module, &loaded->code);
        if (status != HOOP_OK)
            cuda->driver->cuModuleUnload(loaded->module);
    }
    hoop_cuda_leave(cuda);
    return status;
}

/* Under the lock. */
static struct loaded *find_loaded(const struct hoop_cuda *cuda)
{
    struct loaded *loaded = all;

    while (loaded && loaded->ordinal != cuda->device.ordinal)
        loaded = loaded->next;
    return loaded;
}

int hoop_cuda_code_hold(const struct hoop_cuda *cuda, int blocks)
{
    pthread_mutex_lock(&lock);
    struct loaded *loaded = find_loaded(cuda);
    const int left = loaded ? loaded->code.resident - loaded->held : 0, got = blocks < left ? blocks : left;
    if (loaded)
        loaded->held += got;
    pthread_mutex_unlock(&lock);
    return got;
}

void hoop_cuda_code_let(const struct hoop_cuda *cuda, int blocks)
{
    pthread_mutex_lock(&lock);
    struct loaded *loaded = find_loaded(cuda);
    if (loaded)
        loaded->held -= blocks;
    pthread_mutex_unlock(&lock);
}

enum hoop_status hoop_cuda_code_get(const struct hoop_cuda *cuda, const struct hoop_cuda_code **code)
{
    enum hoop_status status = HOOP_OK;

    pthread_mutex_lock(&lock);
    struct loaded *loaded = find_loaded(cuda);
    if (loaded == NULL) {
        loaded = hoop_calloc(1, sizeof *loaded);
        status = loaded ? load(cuda, loaded) : HOOP_ERR_MEMORY;
        if (status == HOOP_OK) {
            loaded->ordinal = cuda->device.ordinal;
            loaded->next = all;
            all = loaded;
        } else {
            hoop_free(loaded);
        }
    }
    if (status == HOOP_OK) {
        loaded->uses++;
        *code = &loaded->code;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void hoop_cuda_code_drop(const struct hoop_cuda *cuda)
{
    pthread_mutex_lock(&lock);
    for (struct loaded **at = &all; *at; at = &(*at)->next) {
        struct loaded *loaded = *at;
        if (loaded->ordinal != cuda->device.ordinal)
            continue;
        if (--loaded->uses == 0) {
            if (hoop_cuda_enter(cuda) == HOOP_OK) {
                cuda->driver->cuModuleUnload(loaded->module);
                hoop_cuda_leave(cuda);
            }
            *at = loaded->next;
            hoop_free(loaded);
        }
        break;
    }
    pthread_mutex_unlock(&lock);
}
