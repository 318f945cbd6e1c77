// SPDX-License-Identifier: BSD-3-Clause
/* The public list of devices. */
#include <stdio.h>
#include <string.h>

#include "mem/cuda.h"

enum hoop_status hoop_device_driver(int *version, int *devices, const char **origin)
{
    const struct hoop_cuda_driver *driver = NULL;
    const enum hoop_status status = hoop_cuda_driver(&driver);

    if (status != HOOP_OK)
        return status;
    if (version)
        *version = driver->version;
    if (devices)
        *devices = driver->devices;
    if (origin)
        *origin = driver->origin;
    return HOOP_OK;
}

static void write_uuid(const struct hoop_cuda_device *device, char *text, size_t size)
{
    const unsigned char *u = device->uuid;

    snprintf(text, size, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             device->mig ? "MIG" : "GPU", u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
             u[12], u[13], u[14], u[15]);
}

/* What hoop would use and the device lacks. */
static void write_limits(const struct hoop_cuda_device *device, char *text, size_t size)
{
    const struct {
        bool lacks;
        const char *text;
    } limits[] = {
        {!device->host_register, "cannot reach registered host memory: no kernels without peer access"},
        {!device->posix_fd, "its memory cannot be passed as a file descriptor"},
        {!device->cooperative,
         "no cooperative launches: threads cannot share it with HOOP_SHARED_GPU=1 but through the host"},
        {!device->preemption, "a waiting kernel cannot be put aside"},
    };
    size_t used = 0;

    text[0] = 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits && used + 1 < size; i++)
        if (limits[i].lacks)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "; " : "", limits[i].text);
}

static void find_peers(const struct hoop_cuda_driver *driver, const struct hoop_cuda_device *facts,
                       struct hoop_device *device)
{
    for (int peer = 0; peer < driver->devices && peer < 64; peer++) {
        bool access = false, back = false, atomics, ignored;
        struct hoop_cuda_device other;
        int rank;

        if (peer == facts->ordinal || hoop_cuda_peer_facts(facts->ordinal, peer, &access, &atomics, &rank) != HOOP_OK ||
            hoop_cuda_peer_facts(peer, facts->ordinal, &back, &ignored, &rank) != HOOP_OK ||
            hoop_cuda_device(peer, &other) != HOOP_OK)
            continue;
        device->peers |= (uint64_t)access << peer;
        device->atomics |= (uint64_t)atomics << peer;
        if (!(access && back) && facts->host_register && other.host_register)
            device->through_host |= (uint64_t)1 << peer;
    }
}

enum hoop_status hoop_device_info(int ordinal, struct hoop_device *device)
{
    const struct hoop_cuda_driver *driver = NULL;
    struct hoop_cuda_device facts;

    if (device == NULL || device->size < sizeof device->size)
        return hoop_fail(HOOP_ERR_ARG, "hoop_device_info: device is NULL, or device->size is not set");
    enum hoop_status status = hoop_cuda_driver(&driver);
    if (status == HOOP_OK)
        status = hoop_cuda_device(ordinal, &facts);
    if (status != HOOP_OK)
        return status;
    struct hoop_device all = {.size = device->size,
                              .memory = facts.bytes,
                              .ordinal = ordinal,
                              .major = facts.major,
                              .minor = facts.minor,
                              .multiprocessors = facts.multiprocessors,
                              .numa_node = facts.host_node};
    find_peers(driver, &facts, &all);
    snprintf(all.name, sizeof all.name, "%s", facts.name);
    snprintf(all.bus, sizeof all.bus, "%s", facts.bus);
    write_uuid(&facts, all.uuid, sizeof all.uuid);
    write_limits(&facts, all.limits, sizeof all.limits);
    memcpy(device, &all, device->size < sizeof all ? device->size : sizeof all);
    return HOOP_OK;
}
