// SPDX-License-Identifier: BSD-3-Clause
/* The fake's entry points for the tests of its rules, loaded as a program loads the driver. */
#ifndef HOOP_FAKECUDA_CALLS_H
#define HOOP_FAKECUDA_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "tests/fakecuda/abi.h"
#include "tests/fakecuda/test_kernels.h"

typedef uint64_t address;
typedef void *handle;

/* X(name, exported symbol, parameters) */
#define CALLS(X)                                                                                                \
    X(cuInit, "cuInit", (unsigned))                                                                             \
    X(cuDriverGetVersion, "cuDriverGetVersion", (int *))                                                        \
    X(cuGetProcAddress, "cuGetProcAddress_v2", (const char *, void **, int, uint64_t, int *))                   \
    X(cuGetErrorName, "cuGetErrorName", (int, const char **))                                                   \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int *))                                                            \
    X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *, int, int))                                           \
    X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", (struct fake_uuid *, int))                                         \
    X(cuDeviceGetBoard, "cuDeviceGetUuid", (struct fake_uuid *, int))                                           \
    X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int *, int, int))                                        \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (handle *, int))                                    \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int))                                         \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (handle))                                                             \
    X(cuCtxSynchronize, "cuCtxSynchronize", (void))                                                             \
    X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", (handle, unsigned))                                       \
    X(cuMemAlloc, "cuMemAlloc_v2", (address *, size_t))                                                         \
    X(cuMemAllocAsync, "cuMemAllocAsync", (address *, size_t, handle))                                          \
    X(cuMemAllocManaged, "cuMemAllocManaged", (address *, size_t, unsigned))                                    \
    X(cuMemFree, "cuMemFree_v2", (address))                                                                     \
    X(cuMemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                            \
    X(cuMemHostRegister, "cuMemHostRegister_v2", (void *, size_t, unsigned))                                    \
    X(cuMemHostUnregister, "cuMemHostUnregister", (void *))                                                     \
    X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", (address *, void *, unsigned))                 \
    X(cuIpcGetMemHandle, "cuIpcGetMemHandle", (struct fake_ipc_handle *, address))                              \
    X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2", (address *, struct fake_ipc_handle, unsigned))               \
    X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", (address))                                                    \
    X(cuIpcGetEventHandle, "cuIpcGetEventHandle", (struct fake_ipc_handle *, handle))                           \
    X(cuIpcOpenEventHandle, "cuIpcOpenEventHandle", (handle *, struct fake_ipc_handle))                         \
    X(cuStreamCreate, "cuStreamCreate", (handle *, unsigned))                                                   \
    X(cuStreamDestroy, "cuStreamDestroy_v2", (handle))                                                          \
    X(cuStreamSynchronize, "cuStreamSynchronize", (handle))                                                     \
    X(cuStreamQuery, "cuStreamQuery", (handle))                                                                 \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", (handle, handle, unsigned))                                       \
    X(cuEventCreate, "cuEventCreate", (handle *, unsigned))                                                     \
    X(cuEventRecord, "cuEventRecord", (handle, handle))                                                         \
    X(cuEventQuery, "cuEventQuery", (handle))                                                                   \
    X(cuEventSynchronize, "cuEventSynchronize", (handle))                                                       \
    X(cuMemcpy, "cuMemcpy", (address, address, size_t))                                                         \
    X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (address, const void *, size_t))                                         \
    X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *, address, size_t))                                               \
    X(cuMemcpyAsync, "cuMemcpyAsync", (address, address, size_t, handle))                                       \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (address, const void *, size_t, handle))                       \
    X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (address, address, size_t, handle))                            \
    X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", (address, handle, address, handle, size_t, handle))               \
    X(cuModuleLoadData, "cuModuleLoadData", (handle *, const void *))                                           \
    X(cuModuleGetFunction, "cuModuleGetFunction", (handle *, handle, const char *))                             \
    X(cuFuncGetAttribute, "cuFuncGetAttribute", (int *, int, handle))                                           \
    X(cuLaunchKernel, "cuLaunchKernel",                                                                         \
      (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **)) \
    X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel",                                                   \
      (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **))          \
    X(cuLaunchHostFunc, "cuLaunchHostFunc", (handle, void (*)(void *), void *))                                 \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (handle, int))                                           \
    X(cuStreamEndCapture, "cuStreamEndCapture", (handle, handle *))                                             \
    X(cuStreamIsCapturing, "cuStreamIsCapturing", (handle, int *))                                              \
    X(cuGraphInstantiate, "cuGraphInstantiateWithFlags", (handle *, handle, uint64_t))                          \
    X(cuGraphLaunch, "cuGraphLaunch", (handle, handle))                                                         \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", (handle))                                                       \
    X(cuGraphDestroy, "cuGraphDestroy", (handle))

struct calls {
#define X(name, symbol, parameters) int(*name) parameters;
    CALLS(X)
#undef X
};

#endif
