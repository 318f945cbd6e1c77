// SPDX-License-Identifier: BSD-3-Clause
/* The flight recorders of a host's ranks, as a file. See flight.c. */
#ifndef HOOP_COMM_FLIGHT_H
#define HOOP_COMM_FLIGHT_H

struct hoop_comm;

/* The communicator has failed: write what its ranks on this host did last, if HOOP_FLIGHT asks for it and none of them has. The first error
 * of the thread stays. */
void hoop_flight_dump(struct hoop_comm *comm);

#endif
