// SPDX-License-Identifier: BSD-3-Clause
/* Does a path carry data? See device_pattern.c. */
#ifndef HOOP_COMM_DEVICE_PATTERN_H
#define HOOP_COMM_DEVICE_PATTERN_H

#include "comm/device.h"

#ifdef HOOP_CUDA

struct hoop_pattern {
    struct hoop_comm *comm;
    unsigned char *made, *seen;
    hoop_cu_address scratch; /* on this rank's device: what goes from there takes the path between the two */
};

/* Memory for it; free it also after a failure.   Errors: HOOP_ERR_MEMORY, the driver's. */
enum hoop_status hoop_pattern_new(struct hoop_pattern *pattern, struct hoop_comm *comm);
void hoop_pattern_free(struct hoop_pattern *pattern);

/* Write to the peer's landing area and read it back.
 * Errors: HOOP_ERR_UNSUPPORTED (what came back is something else), the driver's. */
enum hoop_status hoop_pattern_write(const struct hoop_pattern *pattern, int peer);

/* What the peer, which has done that, wrote here; then zeros again, as links begin.   Errors: as write. */
enum hoop_status hoop_pattern_hear(const struct hoop_pattern *pattern, int peer);

#endif
#endif
