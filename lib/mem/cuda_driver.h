// SPDX-License-Identifier: BSD-3-Clause
/* The CUDA driver, loaded when it is first needed: no program depends on it, and the same library runs where there is none.
 *
 * Every entry point is a row of cuda_driver.def and becomes a pointer in struct hoop_cuda_driver. Whatever cannot be used is
 * HOOP_ERR_UNSUPPORTED with its reason: no library, cuInit failed, no device, or a driver that lacks something.
 */
#ifndef HOOP_MEM_CUDA_DRIVER_H
#define HOOP_MEM_CUDA_DRIVER_H

#include <stdbool.h>

#include "base/status.h"
#include "mem/cuda_types.h"

struct hoop_cuda_driver {
#define X(name, version, symbol, required, parameters) hoop_cu_result(*name) parameters;
#include "mem/cuda_driver.def"
#undef X
    int version;      /* of CUDA that it supports: major * 1000 + minor * 10 */
    int devices;      /* 1 or more */
    bool by_name;     /* entry points were looked up by their exported names: it has no cuGetProcAddress of CUDA 12 */
    char origin[256]; /* file that it was loaded from */
};

/* The driver; loads and starts it at the first call of the process.
 * *driver stays valid for the life of the process: keep it. Blocks while the driver starts (seconds on some machines). Any thread.
 * Errors: HOOP_ERR_UNSUPPORTED, and then for every later call with the same reason; also in a process that was forked after
 * the driver was started, where CUDA cannot be used any more. */
enum hoop_status hoop_cuda_driver(const struct hoop_cuda_driver **driver);

/* The same if this process has started the driver already, the program itself or an earlier call; else HOOP_ERR_UNSUPPORTED, and a
 * program that uses no CUDA stays one. */
enum hoop_status hoop_cuda_driver_if_started(const struct hoop_cuda_driver **driver);

/* Is a context of a driver current on this thread that hoop cannot use? The thread's last error says why, then. */
bool hoop_cuda_unusable(void);

/* Turn the result of a call into a status: HOOP_OK, or an error whose text names the call, the device (-1: none) and the driver's
 * own name and text of the result. Running out of memory is HOOP_ERR_MEMORY, what a device cannot do HOOP_ERR_UNSUPPORTED,
 * all else HOOP_ERR_SYSTEM. */
enum hoop_status hoop_cuda_check(hoop_cu_result result, const char *call, int device);

#endif
