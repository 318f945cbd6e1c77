// SPDX-License-Identifier: BSD-3-Clause
/* The few types and numbers of the CUDA driver interface that the fake speaks, under names of its own.
 *
 * Handles are pointers to the fake's own structures; devices and results are int. abi_check.c compares sizes and numbers
 * with cuda.h where that is at hand.
 */
#ifndef HOOP_FAKECUDA_ABI_H
#define HOOP_FAKECUDA_ABI_H

#include <stdint.h>

/* Results: X(name without CUDA_ERROR_, number, text). */
#define FAKE_RESULTS(X)                                                                                             \
    X(INVALID_VALUE, 1, "invalid argument")                                                                         \
    X(OUT_OF_MEMORY, 2, "out of memory")                                                                            \
    X(NOT_INITIALIZED, 3, "initialization error")                                                                   \
    X(DEINITIALIZED, 4, "driver shutting down")                                                                     \
    X(STUB_LIBRARY, 34, "CUDA driver is a stub library")                                                            \
    X(NO_DEVICE, 100, "no CUDA-capable device is detected")                                                         \
    X(INVALID_DEVICE, 101, "invalid device ordinal")                                                                \
    X(INVALID_IMAGE, 200, "device kernel image is invalid")                                                         \
    X(INVALID_CONTEXT, 201, "invalid device context")                                                               \
    X(MAP_OF_BUFFER_FAILED, 205, "mapping of buffer object failed")                                                 \
    X(ALREADY_MAPPED, 208, "resource already mapped")                                                               \
    X(NO_BINARY_FOR_GPU, 209, "no kernel image is available for execution on the device")                           \
    X(PEER_ACCESS_UNSUPPORTED, 217, "peer access is not supported between these two devices")                       \
    X(INVALID_PTX, 218, "a PTX JIT compilation failed")                                                             \
    X(UNSUPPORTED_PTX_VERSION, 222, "the provided PTX was compiled with an unsupported toolchain.")                 \
    X(OPERATING_SYSTEM, 304, "OS call failed or operation not supported on this OS")                                \
    X(INVALID_HANDLE, 400, "invalid resource handle")                                                               \
    X(NOT_FOUND, 500, "named symbol not found")                                                                     \
    X(NOT_READY, 600, "device not ready")                                                                           \
    X(ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                                             \
    X(LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")                                      \
    X(PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is already enabled")                                           \
    X(PEER_ACCESS_NOT_ENABLED, 705, "peer access has not been enabled")                                             \
    X(PRIMARY_CONTEXT_ACTIVE, 708, "cannot set while device is active in this process")                             \
    X(CONTEXT_IS_DESTROYED, 709, "context is destroyed")                                                            \
    X(HOST_MEMORY_ALREADY_REGISTERED, 712, "part or all of the requested memory range is already mapped")           \
    X(HOST_MEMORY_NOT_REGISTERED, 713, "pointer does not correspond to a registered memory region")                 \
    X(LAUNCH_FAILED, 719, "unspecified launch failure")                                                             \
    X(COOPERATIVE_LAUNCH_TOO_LARGE, 720, "too many blocks in cooperative launch")                                   \
    X(NOT_PERMITTED, 800, "operation not permitted")                                                                \
    X(NOT_SUPPORTED, 801, "operation not supported")                                                                \
    X(STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing")                          \
    X(STREAM_CAPTURE_INVALIDATED, 901, "operation failed due to a previous error during capture")                   \
    X(STREAM_CAPTURE_MERGE, 902, "operation would result in a merge of separate capture sequences")                 \
    X(STREAM_CAPTURE_UNMATCHED, 903, "capture was not ended in the same stream as it began")                        \
    X(STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work")                                           \
    X(STREAM_CAPTURE_ISOLATION, 905, "dependency created on uncaptured work in another stream")                     \
    X(STREAM_CAPTURE_IMPLICIT, 906, "operation would make the legacy stream depend on a capturing blocking stream") \
    X(CAPTURED_EVENT, 907, "operation not permitted on an event last recorded in a capturing stream")               \
    X(STREAM_CAPTURE_WRONG_THREAD, 908, "attempt to terminate a thread-local capture sequence from another thread") \
    X(UNKNOWN, 999, "unknown error")

enum fake_result {
    OK = 0,
#define X(name, number, text) name = number,
    FAKE_RESULTS(X)
#undef X
};

/* Flags of streams, events, host memory, IPC. */
enum {
    FAKE_STREAM_NON_BLOCKING = 1,
    FAKE_EVENT_BLOCKING_SYNC = 1,
    FAKE_EVENT_DISABLE_TIMING = 2,
    FAKE_EVENT_INTERPROCESS = 4,
    FAKE_HOST_PORTABLE = 1,
    FAKE_HOST_DEVICEMAP = 2,
    FAKE_HOST_WRITECOMBINED = 4,
    FAKE_IPC_LAZY_ENABLE_PEER_ACCESS = 1,
    FAKE_HANDLE_POSIX_FD = 1,
    FAKE_LOCATION_DEVICE = 1,
    FAKE_ACCESS_READWRITE = 3,
    FAKE_ATTRIBUTE_COOPERATIVE = 2, /* of a launch */
    FAKE_CAPTURE_GLOBAL = 0,
    FAKE_CAPTURE_THREAD_LOCAL = 1,
    FAKE_CAPTURE_RELAXED = 2,
    FAKE_WAIT_GEQ = 0,
    FAKE_WAIT_EQ = 1,
    FAKE_WAIT_AND = 2,
    FAKE_WAIT_NOR = 3,
    FAKE_MEMORY_HOST = 1, /* kinds that pointer attributes tell */
    FAKE_MEMORY_DEVICE = 2,
};

/* Handles that streams may be given in place of a stream. */
#define FAKE_STREAM_LEGACY     ((struct fake_stream *)1)
#define FAKE_STREAM_PER_THREAD ((struct fake_stream *)2)

struct fake_uuid {
    unsigned char bytes[16];
};

struct fake_ipc_handle {
    unsigned char bytes[64];
};

struct fake_location {
    int type, id;
};

struct fake_allocation_properties {
    int type, handle_types;
    struct fake_location location;
    void *meta;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};

struct fake_access {
    struct fake_location location;
    int flags;
};

struct fake_launch_attribute {
    int id;
    char pad[4];
    union {
        char bytes[64];
        int number;
        uint64_t word;
    } value;
};

struct fake_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    struct fake_stream *stream;
    const struct fake_launch_attribute *attributes;
    unsigned attribute_count;
};

#endif
