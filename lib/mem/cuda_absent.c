// SPDX-License-Identifier: BSD-3-Clause
/* The public list of devices in a build without CUDA: there are none. */
#include "base/status.h"

static enum hoop_status absent(void)
{
    return hoop_fail(HOOP_ERR_UNSUPPORTED, "this build of hoop has no CUDA (configure --without-cuda)");
}

enum hoop_status hoop_device_driver(int *version, int *devices, const char **origin)
{
    (void)version;
    (void)devices;
    (void)origin;
    return absent();
}

enum hoop_status hoop_device_info(int ordinal, struct hoop_device *device)
{
    (void)ordinal;
    (void)device;
    return absent();
}
