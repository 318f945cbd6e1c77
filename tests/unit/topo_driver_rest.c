// SPDX-License-Identifier: BSD-3-Clause
/* Every entry point that topo_driver.c does not have: it is there, and refuses. */
#include "mem/cuda_types.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define X(name, version, symbol, required, parameters)                            \
    __attribute__((weak, visibility("default"))) hoop_cu_result symbol parameters \
    {                                                                             \
        return HOOP_CU_NOT_SUPPORTED;                                             \
    }
#include "mem/cuda_driver.def"
#undef X
