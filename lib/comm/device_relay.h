// SPDX-License-Identifier: BSD-3-Clause
/* Links of kernels to ranks on other hosts, on the communicator's side. See device_relay.c; exec/cuda_relay.h has what they are. */
#ifndef HOOP_COMM_DEVICE_RELAY_H
#define HOOP_COMM_DEVICE_RELAY_H

#include "comm/comm.h"
#include "exec/cuda_relay.h"

/* Open this rank's end, for links to the ranks of `with`; setup: all but the context.
 * Errors: HOOP_ERR_SETUP, HOOP_ERR_SYSTEM, HOOP_ERR_MEMORY, the driver's. */
enum hoop_status hoop_device_relay_open(struct hoop_comm *comm, const struct hoop_unique_id *id, const bool *with,
                                        const struct hoop_domain_setup *setup, struct hoop_domain **domain);

/* All links are there: begin to carry frames; nothing where no link leads to another host.   Errors: HOOP_ERR_SYSTEM. */
enum hoop_status hoop_device_relay_start(struct hoop_comm *comm);

/* Before a launch: it will use the links of that plan, or on the first `lanes` lanes those to all ranks. */
void hoop_device_relay_want(const struct hoop_comm *comm, const struct hoop_plan *plan);
void hoop_device_relay_want_all(const struct hoop_comm *comm, int lanes);

/* This rank's kernels have ended: wait until what they sent has left, unless the communicator is dead, and carry nothing more. May be
 * repeated. */
void hoop_device_relay_stop(struct hoop_comm *comm);

#endif
