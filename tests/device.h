// SPDX-License-Identifier: BSD-3-Clause
/* Kernels of the C build run by threads, without a driver: each thread of each block is one of the process, and device addresses are
 * plain pointers. */
#ifndef HOOP_TESTS_DEVICE_H
#define HOOP_TESTS_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "exec/device/device.h"

enum { LAUNCH_THREADS = 512 };

struct launch;

/* Begin to run the kernel of that name with a copy of the argument; end waits until it is done. */
struct launch *launch_begin(const char *kernel, const void *argument, int blocks, int threads);
void launch_end(struct launch *launch);

/* Both, on this thread alone. */
void launch_alone(const char *kernel, const void *argument);

static inline uint64_t device_address(const void *memory)
{
    return (uint64_t)(uintptr_t)memory;
}

#endif
