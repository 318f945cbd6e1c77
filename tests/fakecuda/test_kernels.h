// SPDX-License-Identifier: BSD-3-Clause
/* Small kernels for the tests of the fake's own rules. */
#ifndef HOOP_FAKECUDA_TEST_KERNELS_H
#define HOOP_FAKECUDA_TEST_KERNELS_H

#include "exec/device/device.h"

/* Argument of all of them. */
struct fake_test {
    xg at, other;
    uint64_t value, count;
};

extern const struct hoop_device_kernel fake_test_kernels[];

#endif
