// SPDX-License-Identifier: BSD-3-Clause
/* Devices, their primary contexts, and what a pointer is. */
#include "mem/cuda.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { MOST_DEVICES = 128, WAIT_SECONDS = 30 };

static struct hoop_cuda *in_use[MOST_DEVICES]; /* by ordinal */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- facts ---- */

static int attribute(const struct hoop_cuda_driver *driver, hoop_cu_device_attribute which, hoop_cu_device device)
{
    int value = 0;

    return driver->cuDeviceGetAttribute(&value, which, device) == HOOP_CU_SUCCESS ? value : 0;
}

static bool has(const struct hoop_cuda_driver *driver, hoop_cu_device_attribute which, hoop_cu_device device)
{
    return attribute(driver, which, device) != 0;
}

/* Older drivers do not know the attribute: then the node is unknown, not 0. */
static int host_node(const struct hoop_cuda_driver *driver, hoop_cu_device device)
{
    int node = -1;

    return driver->cuDeviceGetAttribute(&node, HOOP_CU_DEVICE_HOST_NUMA_NODE, device) == HOOP_CU_SUCCESS ? node : -1;
}

static void read_attributes(const struct hoop_cuda_driver *driver, hoop_cu_device handle,
                            struct hoop_cuda_device *device)
{
    device->major = attribute(driver, HOOP_CU_DEVICE_CAPABILITY_MAJOR, handle);
    device->minor = attribute(driver, HOOP_CU_DEVICE_CAPABILITY_MINOR, handle);
    device->multiprocessors = attribute(driver, HOOP_CU_DEVICE_MULTIPROCESSORS, handle);
    device->host_node = host_node(driver, handle);
    device->mig = strstr(device->name, " MIG ") != NULL; /* what the driver calls instances */
    device->mps = has(driver, HOOP_CU_DEVICE_MPS, handle);
    device->integrated = has(driver, HOOP_CU_DEVICE_INTEGRATED, handle);
    device->preemption = has(driver, HOOP_CU_DEVICE_COMPUTE_PREEMPTION, handle);
    device->cooperative = has(driver, HOOP_CU_DEVICE_COOPERATIVE_LAUNCH, handle);
    device->host_register = has(driver, HOOP_CU_DEVICE_HOST_REGISTER, handle);
    device->host_pointer = has(driver, HOOP_CU_DEVICE_HOST_POINTER_FOR_REGISTERED, handle);
    device->managed = has(driver, HOOP_CU_DEVICE_MANAGED_MEMORY, handle);
    device->virtual_memory = driver->cuMemCreate && has(driver, HOOP_CU_DEVICE_VIRTUAL_MEMORY, handle);
    device->posix_fd = device->virtual_memory && has(driver, HOOP_CU_DEVICE_POSIX_FD, handle);
    device->dmabuf = has(driver, HOOP_CU_DEVICE_DMABUF, handle);
}

static enum hoop_status read_device(const struct hoop_cuda_driver *driver, int ordinal, struct hoop_cuda_device *device)
{
    hoop_cu_device handle = 0;
    hoop_cu_uuid uuid;

    if (ordinal < 0 || ordinal >= driver->devices)
        return hoop_fail(HOOP_ERR_ARG,
                         "there is no CUDA device %d; this process sees 0 to %d (CUDA_VISIBLE_DEVICES may hide some)",
                         ordinal, driver->devices - 1);
    *device = (struct hoop_cuda_device){.ordinal = ordinal};
    hoop_cu_result result = driver->cuDeviceGet(&handle, ordinal);
    if (result == HOOP_CU_SUCCESS)
        result = driver->cuDeviceGetName(device->name, (int)sizeof device->name, handle);
    if (result == HOOP_CU_SUCCESS)
        result = driver->cuDeviceTotalMem(&device->bytes, handle);
    if (result == HOOP_CU_SUCCESS)
        result = driver->cuDeviceGetPCIBusId(device->bus, (int)sizeof device->bus, handle);
    if (result == HOOP_CU_SUCCESS)
        result = driver->cuDeviceGetUuid(&uuid, handle);
    if (result != HOOP_CU_SUCCESS)
        return hoop_cuda_check(result, "asking what the device is", ordinal);
    memcpy(device->uuid, uuid.bytes, sizeof device->uuid);
    for (char *c = device->bus; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    read_attributes(driver, handle, device);
    if (!has(driver, HOOP_CU_DEVICE_UNIFIED_ADDRESSING, handle))
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "CUDA device %d (%s) has no unified addressing", ordinal, device->name);
    return HOOP_OK;
}

enum hoop_status hoop_cuda_device(int ordinal, struct hoop_cuda_device *device)
{
    const struct hoop_cuda_driver *driver = NULL;
    const enum hoop_status status = hoop_cuda_driver(&driver);

    return status == HOOP_OK ? read_device(driver, ordinal, device) : status;
}

enum hoop_status hoop_cuda_peer_facts(int ordinal, int peer, bool *access, bool *native_atomics, int *rank)
{
    const struct hoop_cuda_driver *driver = NULL;
    hoop_cu_device a = 0, b = 0;
    int reach = 0, atomics = 0;
    enum hoop_status status = hoop_cuda_driver(&driver);

    if (status == HOOP_OK)
        status = hoop_cuda_check(driver->cuDeviceGet(&a, ordinal), "cuDeviceGet", ordinal);
    if (status == HOOP_OK)
        status = hoop_cuda_check(driver->cuDeviceGet(&b, peer), "cuDeviceGet", peer);
    if (status == HOOP_OK)
        status = hoop_cuda_check(driver->cuDeviceCanAccessPeer(&reach, a, b), "cuDeviceCanAccessPeer", ordinal);
    if (status != HOOP_OK)
        return status;
    *access = reach != 0;
    *rank = 0;
    driver->cuDeviceGetP2PAttribute(&atomics, HOOP_CU_PEER_NATIVE_ATOMICS, a, b);
    driver->cuDeviceGetP2PAttribute(rank, HOOP_CU_PEER_RANK, a, b);
    *native_atomics = atomics != 0;
    return HOOP_OK;
}

/* ---- contexts ---- */

/* Calls that go through the host hold streams at a word of memory. No attribute says whether a device can do that, so one waits for a
 * word that is there already. */
static enum hoop_status try_waiting(struct hoop_cuda *cuda)
{
    hoop_cu_stream stream = NULL;
    char why[HOOP_ERROR_TEXT];
    hoop_cu_address address;

    enum hoop_status status = hoop_cuda_host_alloc(cuda, sizeof(uint32_t), &cuda->word, &address);
    if (status != HOOP_OK)
        return status;
    *(uint32_t *)cuda->word = 0;
    status = hoop_cuda_stream_create(cuda, false, &stream);
    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_stream_wait_word(cuda, stream, address, 0);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_wait(cuda, stream, hoop_deadline(WAIT_SECONDS));
    snprintf(why, sizeof why, "%s", hoop_error_text());
    if (status != HOOP_OK) /* an error may be told before the stream is done with the word */
        hoop_cuda_stream_wait(cuda, stream, hoop_deadline(WAIT_SECONDS));
    hoop_cuda_stream_destroy(cuda, stream);
    return status == HOOP_OK
               ? HOOP_OK
               : hoop_fail(HOOP_ERR_UNSUPPORTED,
                           "CUDA device %d (%s) cannot be used, since its streams cannot wait for a word of memory: "
                           "%.300s. Update the driver (CUDA 11.7 or later), or set HOOP_DEVICE=none to have "
                           "communicators of host memory",
                           cuda->device.ordinal, cuda->device.name, why);
}

/* As both ends of an open device. */
static void let_go(struct hoop_cuda *cuda)
{
    if (cuda->word)
        hoop_cuda_host_free(cuda, cuda->word);
    cuda->driver->cuDevicePrimaryCtxRelease(cuda->device.ordinal);
    hoop_free(cuda);
}

static enum hoop_status open_first(int ordinal, struct hoop_cuda **cuda)
{
    struct hoop_cuda *new = hoop_calloc(1, sizeof *new);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    enum hoop_status status = hoop_cuda_driver(&new->driver);
    if (status == HOOP_OK)
        status = read_device(new->driver, ordinal, &new->device);
    if (status == HOOP_OK && ordinal >= MOST_DEVICES)
        status =
            hoop_fail(HOOP_ERR_UNSUPPORTED, "CUDA device %d: only the first %d can be used", ordinal, MOST_DEVICES);
    if (status == HOOP_OK)
        status = hoop_cuda_check(new->driver->cuDevicePrimaryCtxRetain(&new->context, ordinal),
                                 "cuDevicePrimaryCtxRetain", ordinal);
    if (status != HOOP_OK) {
        hoop_free(new);
        return status;
    }
    status = try_waiting(new);
    if (status != HOOP_OK) {
        let_go(new);
        return status;
    }
    *cuda = in_use[ordinal] = new;
    return HOOP_OK;
}

enum hoop_status hoop_cuda_open(int ordinal, struct hoop_cuda **cuda)
{
    enum hoop_status status = HOOP_OK;

    pthread_mutex_lock(&lock);
    if (ordinal >= 0 && ordinal < MOST_DEVICES && in_use[ordinal])
        *cuda = in_use[ordinal];
    else
        status = open_first(ordinal, cuda);
    if (status == HOOP_OK)
        (*cuda)->uses++;
    pthread_mutex_unlock(&lock);
    return status;
}

void hoop_cuda_close(struct hoop_cuda *cuda)
{
    if (cuda == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (--cuda->uses == 0) {
        in_use[cuda->device.ordinal] = NULL;
        let_go(cuda);
    }
    pthread_mutex_unlock(&lock);
}

enum hoop_status hoop_cuda_enter(const struct hoop_cuda *cuda)
{
    return hoop_cuda_check(cuda->driver->cuCtxPushCurrent(cuda->context), "cuCtxPushCurrent", cuda->device.ordinal);
}

void hoop_cuda_leave(const struct hoop_cuda *cuda)
{
    hoop_cu_context ours;

    cuda->driver->cuCtxPopCurrent(&ours);
}

/* Is the thread's current context, of that device, the primary one? */
static bool is_primary(const struct hoop_cuda_driver *driver, hoop_cu_context context, hoop_cu_device device)
{
    hoop_cu_context primary = NULL;
    unsigned flags = 0;
    int active = 0;

    if (driver->cuDevicePrimaryCtxGetState(device, &flags, &active) != HOOP_CU_SUCCESS || !active ||
        driver->cuDevicePrimaryCtxRetain(&primary, device) != HOOP_CU_SUCCESS)
        return false;
    driver->cuDevicePrimaryCtxRelease(device);
    return context == primary;
}

int hoop_cuda_current(const char **reason)
{
    const struct hoop_cuda_driver *driver = NULL;
    hoop_cu_context context = NULL;
    hoop_cu_device device = -1;

    *reason = "CUDA is not in use in this process";
    if (hoop_cuda_driver_if_started(&driver) != HOOP_OK)
        return -1;
    *reason = "no CUDA context is current on the thread that makes the communicator";
    if (driver->cuCtxGetCurrent(&context) != HOOP_CU_SUCCESS || context == NULL ||
        driver->cuCtxGetDevice(&device) != HOOP_CU_SUCCESS)
        return -1;
    *reason = "the current CUDA context is not its device's primary context";
    if (!is_primary(driver, context, device))
        return -1;
    *reason = "it is the device of the current CUDA context";
    return device;
}

enum hoop_status hoop_cuda_reach(const struct hoop_cuda *cuda, const struct hoop_cuda *peer)
{
    const int ordinal = cuda->device.ordinal;
    int can = 0;

    if (cuda == peer)
        return HOOP_OK;
    enum hoop_status status = hoop_cuda_check(cuda->driver->cuDeviceCanAccessPeer(&can, ordinal, peer->device.ordinal),
                                              "cuDeviceCanAccessPeer", ordinal);
    if (status == HOOP_OK && !can)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "CUDA device %d has no peer access to device %d", ordinal,
                         peer->device.ordinal);
    if (status == HOOP_OK)
        status = hoop_cuda_enter(cuda);
    if (status != HOOP_OK)
        return status;
    const hoop_cu_result result = cuda->driver->cuCtxEnablePeerAccess(peer->context, 0);
    hoop_cuda_leave(cuda);
    return result == HOOP_CU_PEER_ACCESS_ALREADY_ENABLED ? HOOP_OK
                                                         : hoop_cuda_check(result, "cuCtxEnablePeerAccess", ordinal);
}

/* ---- what a pointer is ---- */

const char *hoop_cuda_kind_name(enum hoop_cuda_kind kind)
{
    static const char *const names[] = {"host", "pinned host", "managed", "device"};

    return names[kind];
}

enum hoop_status hoop_cuda_classify(const struct hoop_cuda_driver *driver, const void *pointer,
                                    struct hoop_cuda_memory *memory)
{
    /* Zero first: the driver writes fewer bytes of some, and none of what it does not know. */
    struct {
        uint64_t type, managed, ipc, handles, id, start, bytes;
        int ordinal;
    } fact = {.ordinal = -1};
    hoop_cu_pointer_attribute which[] = {
        HOOP_CU_POINTER_MEMORY_TYPE,          HOOP_CU_POINTER_IS_MANAGED,    HOOP_CU_POINTER_IS_LEGACY_IPC_CAPABLE,
        HOOP_CU_POINTER_ALLOWED_HANDLE_TYPES, HOOP_CU_POINTER_BUFFER_ID,     HOOP_CU_POINTER_RANGE_START,
        HOOP_CU_POINTER_RANGE_SIZE,           HOOP_CU_POINTER_DEVICE_ORDINAL};
    void *value[] = {&fact.type, &fact.managed, &fact.ipc,   &fact.handles,
                     &fact.id,   &fact.start,   &fact.bytes, &fact.ordinal};

    *memory = (struct hoop_cuda_memory){.kind = HOOP_CUDA_HOST, .ordinal = -1};
    const hoop_cu_result result = driver->cuPointerGetAttributes((unsigned)(sizeof which / sizeof *which), which, value,
                                                                 hoop_cuda_address(pointer));
    if (result == HOOP_CU_INVALID_VALUE || result == HOOP_CU_INVALID_CONTEXT)
        return HOOP_OK; /* nothing that a context allocated */
    if (result != HOOP_CU_SUCCESS)
        return hoop_cuda_check(result, "cuPointerGetAttributes", -1);
    if (fact.type != HOOP_CU_MEMORY_HOST && fact.type != HOOP_CU_MEMORY_DEVICE)
        return HOOP_OK;
    memory->kind = fact.managed                         ? HOOP_CUDA_MANAGED
                   : fact.type == HOOP_CU_MEMORY_DEVICE ? HOOP_CUDA_DEVICE
                                                        : HOOP_CUDA_PINNED;
    memory->ordinal = fact.ordinal;
    memory->base = fact.start;
    memory->bytes = (size_t)fact.bytes;
    memory->id = fact.id;
    memory->ipc = memory->kind == HOOP_CUDA_DEVICE && fact.ipc;
    memory->posix_fd = memory->kind == HOOP_CUDA_DEVICE && fact.handles & HOOP_CU_HANDLE_POSIX_FD;
    return HOOP_OK;
}
