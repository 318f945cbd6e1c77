// SPDX-License-Identifier: BSD-3-Clause
/* A libcuda.so.1 for the tests of tools that only look: it has devices and facts, and every other entry point is there and refuses.
 *
 * FACTS_DEVICES   how many devices (default 4). Device i is on bus 0000:1i:00.0.
 * FACTS_ISLAND    devices i and j reach each other if i / island == j / island (default: all).
 * FACTS_FABRIC    1: and do so over a fabric, with atomic operations.
 * FACTS_INIT      what cuInit returns.
 * FACTS_CURRENT   1: a context is current.
 * FACTS_MIG       1: devices 0 and 1, 2 and 3, … are the parts of one GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/cuda_types.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define FACT(symbol) __attribute__((visibility("default"))) hoop_cu_result symbol

static int number(const char *name, int standard)
{
    const char *text = getenv(name);

    return text ? (int)strtol(text, NULL, 10) : standard;
}

static int devices(void)
{
    return number("FACTS_DEVICES", 4);
}

static int reach(int a, int b)
{
    const int island = number("FACTS_ISLAND", 64);

    return a != b && a / island == b / island;
}

static int gpu_of(hoop_cu_device device)
{
    return number("FACTS_MIG", 0) ? device / 2 : device;
}

FACT(cuInit)(unsigned flags)
{
    return (hoop_cu_result)number("FACTS_INIT", 0);
}

FACT(cuCtxGetCurrent)(hoop_cu_context *context)
{
    static char place;

    *context = number("FACTS_CURRENT", 0) ? (hoop_cu_context)(void *)&place : NULL;
    return HOOP_CU_SUCCESS;
}

FACT(cuDriverGetVersion)(int *version)
{
    *version = 12040;
    return HOOP_CU_SUCCESS;
}

FACT(cuGetErrorName)(hoop_cu_result result, const char **name)
{
    *name = "CUDA_ERROR_OF_THE_TEST";
    return HOOP_CU_SUCCESS;
}

FACT(cuGetErrorString)(hoop_cu_result result, const char **text)
{
    *text = "as the test says";
    return HOOP_CU_SUCCESS;
}

FACT(cuDeviceGetCount)(int *count)
{
    *count = devices();
    return HOOP_CU_SUCCESS;
}

FACT(cuDeviceGet)(hoop_cu_device *device, int ordinal)
{
    *device = ordinal;
    return ordinal >= 0 && ordinal < devices() ? HOOP_CU_SUCCESS : HOOP_CU_INVALID_DEVICE;
}

FACT(cuDeviceGetName)(char *name, int size, hoop_cu_device device)
{
    snprintf(name, (size_t)size, number("FACTS_MIG", 0) ? "NVIDIA Test %d MIG 1g.5gb" : "NVIDIA Test %d",
             gpu_of(device));
    return HOOP_CU_SUCCESS;
}

FACT(cuDeviceTotalMem_v2)(size_t *bytes, hoop_cu_device device)
{
    *bytes = (size_t)3 << 30;
    return HOOP_CU_SUCCESS;
}

FACT(cuDeviceGetAttribute)(int *value, hoop_cu_device_attribute attribute, hoop_cu_device device)
{
    *value = attribute == HOOP_CU_DEVICE_CAPABILITY_MAJOR     ? 9
             : attribute == HOOP_CU_DEVICE_MULTIPROCESSORS    ? 100 + device
             : attribute == HOOP_CU_DEVICE_UNIFIED_ADDRESSING ? 1
             : attribute == HOOP_CU_DEVICE_HOST_REGISTER      ? 1
             : attribute == HOOP_CU_DEVICE_COMPUTE_PREEMPTION ? 1
             : attribute == HOOP_CU_DEVICE_COOPERATIVE_LAUNCH ? 1
             : attribute == HOOP_CU_DEVICE_VIRTUAL_MEMORY     ? 1
             : attribute == HOOP_CU_DEVICE_POSIX_FD           ? device == 0
                                                              : 0;
    return attribute == HOOP_CU_DEVICE_HOST_NUMA_NODE ? HOOP_CU_INVALID_VALUE : HOOP_CU_SUCCESS;
}

FACT(cuDeviceGetPCIBusId)(char *text, int size, hoop_cu_device device)
{
    snprintf(text, (size_t)size, "0000:%02X:00.0", 0xa0 + gpu_of(device));
    return HOOP_CU_SUCCESS;
}

FACT(cuDeviceGetUuid_v2)(hoop_cu_uuid *uuid, hoop_cu_device device)
{
    memset(uuid, 0x11 * (device + 1), sizeof *uuid);
    return HOOP_CU_SUCCESS;
}

FACT(cuDeviceCanAccessPeer)(int *can, hoop_cu_device device, hoop_cu_device peer)
{
    *can = reach(device, peer);
    return HOOP_CU_SUCCESS;
}

FACT(cuDeviceGetP2PAttribute)
(int *value, hoop_cu_peer_attribute attribute, hoop_cu_device device, hoop_cu_device peer)
{
    *value = reach(device, peer) && (attribute != HOOP_CU_PEER_NATIVE_ATOMICS || number("FACTS_FABRIC", 0));
    return HOOP_CU_SUCCESS;
}
