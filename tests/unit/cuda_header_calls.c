// SPDX-License-Identifier: BSD-3-Clause
/* Our prototypes of the driver's entry points against the toolkit's, row by row: our names of the types stand for the toolkit's
 * here, so that the two can be compared as types. Nothing runs. */
#include <cuda.h>
#include <cudaTypedefs.h>

#define HOOP_MEM_CUDA_TYPES_H /* keeps our own declarations out */
typedef CUdevice hoop_cu_device;
typedef CUdeviceptr hoop_cu_address;
typedef CUmemGenericAllocationHandle hoop_cu_memory;
typedef CUcontext hoop_cu_context;
typedef CUstream hoop_cu_stream;
typedef CUevent hoop_cu_event;
typedef CUmodule hoop_cu_module;
typedef CUfunction hoop_cu_function;
typedef CUgraph hoop_cu_graph;
typedef CUgraphExec hoop_cu_graph_exec;
typedef CUhostFn hoop_cu_host_function;
typedef CUresult hoop_cu_result;
typedef CUdevice_attribute hoop_cu_device_attribute;
typedef CUdevice_P2PAttribute hoop_cu_peer_attribute;
typedef CUpointer_attribute hoop_cu_pointer_attribute;
typedef CUfunction_attribute hoop_cu_function_attribute;
typedef CUstreamCaptureStatus hoop_cu_capture_status;
typedef CUstreamCaptureMode hoop_cu_capture_mode;
typedef CUmemAllocationHandleType hoop_cu_handle_type;
typedef CUmemAllocationGranularity_flags hoop_cu_granularity;
typedef CUjit_option hoop_cu_jit_option;
typedef CUuuid hoop_cu_uuid;
typedef CUipcMemHandle hoop_cu_ipc_memory;
typedef CUmemAllocationProp hoop_cu_memory_properties;
typedef CUmemAccessDesc hoop_cu_access_of;

#include "mem/cuda_driver.h"

#define X(name, version, symbol, required, parameters)                                                           \
    _Static_assert(                                                                                              \
        __builtin_types_compatible_p(__typeof__(((struct hoop_cuda_driver *)0)->name), PFN_##name##_v##version), \
        #name ": not the prototype of CUDA " #version);
#include "mem/cuda_driver.def"
#undef X

/* And the exported symbols that stand in for them. */
#define X(name, version, symbol, required, parameters)                                         \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), PFN_##name##_v##version), \
                   #symbol ": not the prototype of CUDA " #version);
#include "mem/cuda_driver.def"
#undef X
