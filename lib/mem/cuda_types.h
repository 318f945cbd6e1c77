// SPDX-License-Identifier: BSD-3-Clause
/* What the CUDA driver's calls take and give: the library is built without the toolkit's headers. Only what it uses is here, under
 * names of its own; sizes, offsets, values and prototypes are compared with the toolkit's by tests/unit/cuda_header_*.c where it
 * is installed. */
#ifndef HOOP_MEM_CUDA_TYPES_H
#define HOOP_MEM_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef int hoop_cu_device;                 /* a device's ordinal in this process */
typedef unsigned long long hoop_cu_address; /* of device memory, 64 bits */
typedef unsigned long long hoop_cu_memory;  /* handle of physical memory (VMM) */
typedef struct hoop_cu_context_object *hoop_cu_context;
typedef struct hoop_cu_stream_object *hoop_cu_stream;
typedef struct hoop_cu_event_object *hoop_cu_event;
typedef struct hoop_cu_module_object *hoop_cu_module;
typedef struct hoop_cu_function_object *hoop_cu_function;
typedef struct hoop_cu_graph_object *hoop_cu_graph;
typedef struct hoop_cu_graph_exec_object *hoop_cu_graph_exec;
typedef void (*hoop_cu_host_function)(void *argument);

/* Results that the library tells apart. */
typedef enum hoop_cu_result {
    HOOP_CU_SUCCESS = 0,
    HOOP_CU_INVALID_VALUE = 1,
    HOOP_CU_OUT_OF_MEMORY = 2,
    HOOP_CU_NOT_INITIALIZED = 3,
    HOOP_CU_DEINITIALIZED = 4,
    HOOP_CU_NO_DEVICE = 100,
    HOOP_CU_INVALID_DEVICE = 101,
    HOOP_CU_INVALID_IMAGE = 200,
    HOOP_CU_INVALID_CONTEXT = 201,
    HOOP_CU_ALREADY_MAPPED = 208,
    HOOP_CU_NO_BINARY_FOR_GPU = 209,
    HOOP_CU_PEER_ACCESS_UNSUPPORTED = 217,
    HOOP_CU_INVALID_PTX = 218,
    HOOP_CU_UNSUPPORTED_PTX_VERSION = 222,
    HOOP_CU_INVALID_HANDLE = 400,
    HOOP_CU_NOT_FOUND = 500,
    HOOP_CU_NOT_READY = 600,
    HOOP_CU_ILLEGAL_ADDRESS = 700,
    HOOP_CU_PEER_ACCESS_ALREADY_ENABLED = 704,
    HOOP_CU_PEER_ACCESS_NOT_ENABLED = 705,
    HOOP_CU_CONTEXT_IS_DESTROYED = 709,
    HOOP_CU_HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOOP_CU_HOST_MEMORY_NOT_REGISTERED = 713,
    HOOP_CU_LAUNCH_FAILED = 719,
    HOOP_CU_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    HOOP_CU_NOT_PERMITTED = 800,
    HOOP_CU_NOT_SUPPORTED = 801,
    HOOP_CU_STREAM_CAPTURE_UNSUPPORTED = 900,
    HOOP_CU_STREAM_CAPTURE_INVALIDATED = 901,
    HOOP_CU_UNKNOWN = 999
} hoop_cu_result;

typedef enum hoop_cu_device_attribute {
    HOOP_CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    HOOP_CU_DEVICE_CLOCK_RATE = 13, /* kHz */
    HOOP_CU_DEVICE_MULTIPROCESSORS = 16,
    HOOP_CU_DEVICE_INTEGRATED = 18,
    HOOP_CU_DEVICE_CAN_MAP_HOST_MEMORY = 19,
    HOOP_CU_DEVICE_PCI_BUS = 33,
    HOOP_CU_DEVICE_PCI_DEVICE = 34,
    HOOP_CU_DEVICE_COPY_ENGINES = 40,
    HOOP_CU_DEVICE_UNIFIED_ADDRESSING = 41,
    HOOP_CU_DEVICE_PCI_DOMAIN = 50,
    HOOP_CU_DEVICE_CAPABILITY_MAJOR = 75,
    HOOP_CU_DEVICE_CAPABILITY_MINOR = 76,
    HOOP_CU_DEVICE_MANAGED_MEMORY = 83,
    HOOP_CU_DEVICE_COMPUTE_PREEMPTION = 90,
    HOOP_CU_DEVICE_HOST_POINTER_FOR_REGISTERED = 91,
    HOOP_CU_DEVICE_COOPERATIVE_LAUNCH = 95,
    HOOP_CU_DEVICE_HOST_REGISTER = 99,
    HOOP_CU_DEVICE_VIRTUAL_MEMORY = 102,
    HOOP_CU_DEVICE_POSIX_FD = 103,
    HOOP_CU_DEVICE_DMABUF = 124,
    HOOP_CU_DEVICE_IPC_EVENTS = 125,
    HOOP_CU_DEVICE_MPS = 133,
    HOOP_CU_DEVICE_HOST_NUMA_NODE = 134
} hoop_cu_device_attribute;

typedef enum hoop_cu_peer_attribute {
    HOOP_CU_PEER_RANK = 1, /* performance rank of the path; smaller is better */
    HOOP_CU_PEER_ACCESS = 2,
    HOOP_CU_PEER_NATIVE_ATOMICS = 3,
    HOOP_CU_PEER_ARRAY_ACCESS = 4
} hoop_cu_peer_attribute;

typedef enum hoop_cu_pointer_attribute {
    HOOP_CU_POINTER_CONTEXT = 1,
    HOOP_CU_POINTER_MEMORY_TYPE = 2,
    HOOP_CU_POINTER_DEVICE_POINTER = 3,
    HOOP_CU_POINTER_HOST_POINTER = 4,
    HOOP_CU_POINTER_SYNC_MEMOPS = 6,
    HOOP_CU_POINTER_BUFFER_ID = 7,
    HOOP_CU_POINTER_IS_MANAGED = 8,
    HOOP_CU_POINTER_DEVICE_ORDINAL = 9,
    HOOP_CU_POINTER_IS_LEGACY_IPC_CAPABLE = 10,
    HOOP_CU_POINTER_RANGE_START = 11,
    HOOP_CU_POINTER_RANGE_SIZE = 12,
    HOOP_CU_POINTER_MAPPED = 13,
    HOOP_CU_POINTER_ALLOWED_HANDLE_TYPES = 14
} hoop_cu_pointer_attribute;

typedef enum hoop_cu_function_attribute {
    HOOP_CU_FUNCTION_MAX_THREADS_PER_BLOCK = 0,
    HOOP_CU_FUNCTION_SHARED_BYTES = 1,
    HOOP_CU_FUNCTION_LOCAL_BYTES = 3,
    HOOP_CU_FUNCTION_REGISTERS = 4,
    HOOP_CU_FUNCTION_BINARY_VERSION = 6,
    HOOP_CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES = 8
} hoop_cu_function_attribute;

typedef enum hoop_cu_capture_status {
    HOOP_CU_CAPTURE_NONE = 0,
    HOOP_CU_CAPTURE_ACTIVE = 1,
    HOOP_CU_CAPTURE_INVALIDATED = 2
} hoop_cu_capture_status;

typedef enum hoop_cu_capture_mode {
    HOOP_CU_CAPTURE_GLOBAL = 0,
    HOOP_CU_CAPTURE_THREAD_LOCAL = 1,
    HOOP_CU_CAPTURE_RELAXED = 2
} hoop_cu_capture_mode;

typedef enum hoop_cu_handle_type { HOOP_CU_HANDLE_NONE = 0, HOOP_CU_HANDLE_POSIX_FD = 1 } hoop_cu_handle_type;
typedef enum hoop_cu_allocation_type { HOOP_CU_ALLOCATION_PINNED = 1 } hoop_cu_allocation_type;
typedef enum hoop_cu_location_type { HOOP_CU_LOCATION_DEVICE = 1 } hoop_cu_location_type;
typedef enum hoop_cu_access { HOOP_CU_ACCESS_NONE = 0, HOOP_CU_ACCESS_READ_WRITE = 3 } hoop_cu_access;
typedef enum hoop_cu_granularity { HOOP_CU_GRANULARITY_MINIMUM = 0 } hoop_cu_granularity;
typedef enum hoop_cu_symbol_status { HOOP_CU_SYMBOL_FOUND = 0 } hoop_cu_symbol_status;
typedef enum hoop_cu_jit_option { HOOP_CU_JIT_ERROR_LOG = 5, HOOP_CU_JIT_ERROR_LOG_BYTES = 6 } hoop_cu_jit_option;

/* Values of memory type, and flags. */
enum {
    HOOP_CU_MEMORY_HOST = 1,
    HOOP_CU_MEMORY_DEVICE = 2,
    HOOP_CU_STREAM_NON_BLOCKING = 1,
    HOOP_CU_STREAM_PER_THREAD =
        2, /* the handle: the default stream of the thread that gives it; 0 and 1: the legacy one */
    HOOP_CU_EVENT_DISABLE_TIMING = 2,
    HOOP_CU_EVENT_INTERPROCESS = 4,
    HOOP_CU_IPC_LAZY_ENABLE_PEER_ACCESS = 1,
    HOOP_CU_HOST_PORTABLE = 1, /* of cuMemHostAlloc and cuMemHostRegister alike */
    HOOP_CU_HOST_DEVICE_MAP = 2,
    HOOP_CU_MANAGED_ATTACH_GLOBAL = 1
};

typedef struct hoop_cu_uuid {
    char bytes[16];
} hoop_cu_uuid;

typedef struct hoop_cu_ipc_memory {
    char bytes[64];
} hoop_cu_ipc_memory;

typedef struct hoop_cu_location {
    hoop_cu_location_type type;
    int id;
} hoop_cu_location;

typedef struct hoop_cu_memory_properties {
    hoop_cu_allocation_type type;
    hoop_cu_handle_type handle_types;
    hoop_cu_location location;
    void *unused;
    unsigned char flags[8]; /* flags[1]: GPUDirect RDMA capable */
} hoop_cu_memory_properties;

typedef struct hoop_cu_access_of {
    hoop_cu_location location;
    hoop_cu_access access;
} hoop_cu_access_of;

#endif
