// SPDX-License-Identifier: BSD-3-Clause
/* The CUDA devices of the machine, as this process sees them. hoop.h includes this file.
 *
 * Which of them a rank uses is decided when its communicator is made (HOOP_DEVICE, hoop_comm_device); here they are only
 * told about. */
#ifndef HOOP_DEVICE_H
#define HOOP_DEVICE_H

#include "hoop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Device memory. On a rank that has a CUDA device (hoop_comm_device) the buffers of collectives and messages may be memory of that device
 * instead of host memory (all that the host can read counts as host memory: pinned and managed memory, too). All buffers of one call
 * are of one kind, on all ranks: else HOOP_ERR_ARG, or HOOP_ERR_MISMATCH on every rank; hoop_send and hoop_recv may differ.
 *
 * With stream NULL a call on device memory follows what was given to the legacy default stream of the device, and returns with the result.
 * With a CUDA stream it returns at once (it may take a moment to get memory) and runs in the order of that stream; a later
 * error is told by hoop_comm_async_error. A host stream with device memory, or a CUDA stream with host memory, is HOOP_ERR_ARG. A call without
 * any element is of the kind of its stream. Calls that go through the host (hoop_explain tells which way
 * and why; those with operators of the user always do) cannot be captured into a graph: HOOP_ERR_UNSUPPORTED. A captured message meets a
 * captured one, replayed as often.
 *
 * Kernels and copies of several communicators, or of several ranks of one process, wait on one device at the same time, each in its stream. A
 * device has a limited number of queues for streams: 8, or what the environment variable CUDA_DEVICE_MAX_CONNECTIONS says when
 * CUDA starts, at most 32. Streams that share one wait for each other, and so perhaps for ever. Set the variable to the number of streams that
 * have such calls at the same time and three more for each communicator, or to 32, where that is more than 8. */

/* A CUDA device that this process sees. Set size to sizeof(struct hoop_device) before the call. */
struct hoop_device {
    size_t size;      /* of this struct, for later growth */
    size_t memory;    /* bytes */
    uint64_t peers;   /* bit i: its kernels can reach the memory of device i (0 … 63) */
    uint64_t atomics; /* bit i: and its atomic operations there are carried out there, as over NVLink */
    int ordinal;      /* as HOOP_DEVICE=cuda:N means it; another process may count otherwise */
    int major, minor; /* compute capability */
    int multiprocessors;
    int numa_node;    /* of the host, that it is near; -1: unknown */
    char name[128];   /* "NVIDIA H100 80GB HBM3" */
    char uuid[48];    /* "GPU-…", or "MIG-…": the same in all processes */
    char bus[20];     /* PCI bus id, "0000:3b:00.0" */
    char limits[256]; /* what it cannot do that hoop would use, and what follows; "" if nothing is missing */
    uint64_t
        through_host; /* bit i: no peer access to or from device i, so kernels of both meet in memory of the host */
};

/* The CUDA driver of this machine. Loads and starts it, if that has not happened yet.
 *
 * version      receives the CUDA version that it supports: 1000 * major + 10 * minor.
 * devices      receives how many devices this process sees: 1 or more.
 * origin       receives the file it was loaded from; static text. Each may be NULL.
 * Blocking: until the driver has started (seconds on some machines).   Threads: any.
 * Errors: HOOP_ERR_UNSUPPORTED (hoop_last_error(NULL) says why: no driver, it does not start, it sees no device, it is too old, or this
 * build of hoop has no CUDA). */
HOOP_API enum hoop_status hoop_device_driver(int *version, int *devices, const char **origin);

/* Facts of CUDA device `ordinal`. No context is made on it.
 * Blocking: as hoop_device_driver.   Threads: any.
 * Errors: HOOP_ERR_ARG (no such device; size is not set), HOOP_ERR_UNSUPPORTED (as hoop_device_driver; or it cannot be used at all),
 * HOOP_ERR_SYSTEM. */
HOOP_API enum hoop_status hoop_device_info(int ordinal, struct hoop_device *device);

#ifdef __cplusplus
}
#endif
#endif
