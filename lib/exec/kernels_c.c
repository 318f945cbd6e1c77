// SPDX-License-Identifier: BSD-3-Clause
/* The kernels as C functions, for the fake driver of the tests. */
#include "exec/device/interp.cu"
