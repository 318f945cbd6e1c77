// SPDX-License-Identifier: BSD-3-Clause
/* Which way calls on device memory go, agreed by all ranks when the communicator is made. See device_links.c. */
#ifndef HOOP_COMM_DEVICE_LINKS_H
#define HOOP_COMM_DEVICE_LINKS_H

#include "comm/comm.h"

#ifdef HOOP_CUDA

/* Choose the way; collective, and nothing where no rank has a device. comm->device_way says in words what came out and why.
 * id: by which the ranks have met; NULL: this one is alone.
 * Errors: those of a collective; concluded. What is missing for kernels is no error. */
enum hoop_status hoop_device_agree(struct hoop_comm *comm, const struct hoop_unique_id *id);

/* Give up the links to peers, after this rank's kernels have ended: no rank may free memory that another has open. */
void hoop_device_links_drop(struct hoop_comm *comm);

/* Free what peers could reach, after all of them have dropped their links. On a communicator that is dead they may still write there: then
 * the memory stays for the end of the communicator. */
void hoop_device_links_free(struct hoop_comm *comm);

#else

static inline enum hoop_status hoop_device_agree(struct hoop_comm *comm, const struct hoop_unique_id *id)
{
    (void)comm, (void)id;
    return HOOP_OK;
}

static inline void hoop_device_links_drop(struct hoop_comm *comm)
{
    (void)comm;
}

#endif
#endif
