// SPDX-License-Identifier: BSD-3-Clause
/* The device code in a device: loaded once for each device that this process uses. */
#ifndef HOOP_EXEC_CUDA_CODE_H
#define HOOP_EXEC_CUDA_CODE_H

#include "exec/cuda.h"

struct hoop_cuda_code {
    hoop_cu_function interpret, vector[HOOP_CUDA_VECTORS];
    int threads;        /* that a block of the interpreter may have */
    int vector_threads; /* of the others */
    int resident;       /* blocks of the interpreter that the device holds at once */
};

/* Errors: HOOP_ERR_UNSUPPORTED (no code for this device: says why), the driver's. */
enum hoop_status hoop_cuda_code_get(const struct hoop_cuda *cuda, const struct hoop_cuda_code **code);
/* Blocks of the interpreter that a communicator may have on the device at once: kernels of several wait side by side, so all of them
 * together must be resident. hold takes up to `blocks` of those that nobody in this process has, and returns how many; let gives them
 * back. While the code is held. */
int hoop_cuda_code_hold(const struct hoop_cuda *cuda, int blocks);
void hoop_cuda_code_let(const struct hoop_cuda *cuda, int blocks);

void hoop_cuda_code_drop(const struct hoop_cuda *cuda);

#endif
