// SPDX-License-Identifier: BSD-3-Clause
/* Devices: identity, attributes, who reaches whom. */
#include <stdio.h>
#include <string.h>

#include "tests/fakecuda/fake.h"

FAKE_ENTRY(cuDeviceGetCount, int *devices)
{
    FAKE_ENTER(cuDeviceGetCount);
    if (!devices)
        return INVALID_VALUE;
    *devices = fake_device_count;
    return OK;
}

FAKE_ENTRY(cuDeviceGet, int *device, int ordinal)
{
    FAKE_ENTER(cuDeviceGet);
    if (!device)
        return INVALID_VALUE;
    if (!fake_device(ordinal))
        return INVALID_DEVICE;
    *device = ordinal;
    return OK;
}

FAKE_ENTRY(cuDeviceGetName, char *name, int bytes, int device)
{
    FAKE_ENTER(cuDeviceGetName);
    if (!fake_device(device))
        return INVALID_DEVICE;
    if (!name || bytes < 1)
        return INVALID_VALUE;
    snprintf(name, (size_t)bytes, "%s", fake_device(device)->name);
    return OK;
}

FAKE_ENTRY(cuDeviceTotalMem_v2, size_t *bytes, int device)
{
    FAKE_ENTER(cuDeviceTotalMem_v2);
    if (!fake_device(device))
        return INVALID_DEVICE;
    *bytes = fake_device(device)->memory;
    return OK;
}

FAKE_ENTRY(cuDeviceGetPCIBusId, char *text, int bytes, int device)
{
    FAKE_ENTER(cuDeviceGetPCIBusId);
    if (!fake_device(device))
        return INVALID_DEVICE;
    if (!text || bytes < 1)
        return INVALID_VALUE;
    snprintf(text, (size_t)bytes, "%s", fake_device(device)->bus);
    return OK;
}

FAKE_ENTRY(cuDeviceGetByPCIBusId, int *device, const char *text)
{
    FAKE_ENTER(cuDeviceGetByPCIBusId);
    for (int i = 0; i < fake_device_count; i++) {
        if (strcmp(fake_device(i)->bus, text) == 0) {
            *device = i;
            return OK;
        }
    }
    return INVALID_DEVICE;
}

/* The older form gives the board's, which MIG instances have in common. */
FAKE_ENTRY(cuDeviceGetUuid, struct fake_uuid *uuid, int device)
{
    FAKE_ENTER(cuDeviceGetUuid);
    if (!fake_device(device))
        return INVALID_DEVICE;
    *uuid = fake_device(device)->instance ? fake_device(device)->board : fake_device(device)->uuid;
    return OK;
}

FAKE_ENTRY(cuDeviceGetUuid_v2, struct fake_uuid *uuid, int device)
{
    FAKE_ENTER(cuDeviceGetUuid_v2);
    if (!fake_device(device))
        return INVALID_DEVICE;
    *uuid = fake_device(device)->uuid;
    return OK;
}

static int bus_part(const struct fake_device *device, int which)
{
    unsigned domain = 0, bus = 0, slot = 0;

    sscanf(device->bus, "%x:%x:%x", &domain, &bus, &slot);
    return (int)(which == 0 ? domain : which == 1 ? bus : slot);
}

/* Attributes that are the same for all devices. What is in neither list is 0, number 91 among them: registered memory has another
 * address for the device. */
static const struct {
    int attribute, value;
} constants[] = {
    {1, 1024},       {2, 1024},   {3, 1024},  {4, 64},
    {5, 0x7fffffff}, {6, 65535},  {7, 65535}, {8, 49152}, /* block and grid */
    {81, 49152},     {97, 49152}, {10, 32},   {12, 65536},
    {82, 65536},     {39, 2048},  {40, 2},    {19, 1}, /* maps host memory */
    {31, 1},                                           /* runs kernels side by side */
    {41, 1},                                           /* unified addresses */
    {78, 1},                                           /* priorities */
    {83, 1},         {89, 1},                          /* managed memory */
    {90, 1},                                           /* preemption */
    {115, 1},                                          /* pools */
    {125, 1},                                          /* events between processes */
};

static int attribute_of(const struct fake_device *device, int attribute)
{
    const struct {
        int attribute, value;
    } own[] = {{16, device->multiprocessors},
               {33, bus_part(device, 1)},
               {34, bus_part(device, 2)},
               {50, bus_part(device, 0)},
               {75, device->major},
               {76, device->minor},
               {95, fake_options.COOPERATIVE != 0},
               {99, fake_options.REGISTER != 0},
               {102, fake_options.VMM != 0},
               {103, fake_options.VMM != 0},
               {106, device->blocks},
               {122, fake_options.STREAM_OPS != 0},
               {123, fake_options.STREAM_OPS != 0},
               {133, fake_options.MPS != 0},
               {134, device->node}};

    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (constants[i].attribute == attribute)
            return constants[i].value;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (own[i].attribute == attribute)
            return own[i].value;
    return 0;
}

FAKE_ENTRY(cuDeviceGetAttribute, int *value, int attribute, int device)
{
    FAKE_ENTER(cuDeviceGetAttribute);
    if (!fake_device(device))
        return INVALID_DEVICE;
    if (!value || attribute < 1 || attribute > 160)
        return INVALID_VALUE;
    *value = attribute_of(fake_device(device), attribute);
    return OK;
}

FAKE_ENTRY(cuDeviceCanAccessPeer, int *can, int device, int peer)
{
    FAKE_ENTER(cuDeviceCanAccessPeer);
    if (!fake_device(device) || !fake_device(peer))
        return INVALID_DEVICE;
    *can = device != peer && fake_path(fake_device(device)->index, fake_device(peer)->index) != FAKE_PATH_NONE;
    return OK;
}

FAKE_ENTRY(cuDeviceGetP2PAttribute, int *value, int attribute, int device, int peer)
{
    int from, to;

    FAKE_ENTER(cuDeviceGetP2PAttribute);
    if (!fake_device(device) || !fake_device(peer) || device == peer)
        return INVALID_DEVICE;
    if (!value || attribute < 1 || attribute > 5)
        return INVALID_VALUE;
    from = fake_device(device)->index;
    to = fake_device(peer)->index;
    *value = attribute == 1 ? fake_path_rank(from, to) : attribute == 2 ? fake_path(from, to) != FAKE_PATH_NONE : 0;
    return OK;
}
