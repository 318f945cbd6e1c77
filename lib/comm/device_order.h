// SPDX-License-Identifier: BSD-3-Clause
/* In which orders calls that run as kernels go from device to device. See device_order.c. */
#ifndef HOOP_COMM_DEVICE_ORDER_H
#define HOOP_COMM_DEVICE_ORDER_H

#include "comm/comm.h"

/* Agree on comm->orders, NULL: those of numbers; collective, of ranks whose calls run as kernels. comm->device_way goes on with what came
 * out. Errors: those of a collective, concluded; HOOP_ERR_SETUP where HOOP_TOPO_FILE or HOOP_TOPO_FACTS cannot be read, on all ranks, which then still have their
 * links. */
enum hoop_status hoop_device_order(struct hoop_comm *comm);

#endif
