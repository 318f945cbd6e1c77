// SPDX-License-Identifier: BSD-3-Clause
/* What the ranks tell each other of their devices when they meet. See device_meet.c. */
#ifndef HOOP_COMM_DEVICE_MEET_H
#define HOOP_COMM_DEVICE_MEET_H

#include "comm/comm.h"
#include "wire/cursor.h"

struct hoop_device_self {
    bool present;
    char bus[20];           /* of the GPU */
    unsigned char uuid[16]; /* of the GPU, or of its part (MIG) */
    int process;
    uint64_t token; /* of the process, at random: numbers of processes repeat where they are counted apart */
};

/* Fill in what the others are told of this rank. */
void hoop_device_tell(const struct hoop_comm *comm, struct hoop_device_self *self);

void hoop_device_self_put(struct hoop_writer *writer, const struct hoop_device_self *self);
void hoop_device_self_get(struct hoop_reader *reader, struct hoop_device_self *self);

/* Are both in the same process? */
static inline bool hoop_device_same_process(const struct hoop_device_self *a, const struct hoop_device_self *b)
{
    return a->process == b->process && a->token == b->token;
}

/* Are both on the same device? */
bool hoop_device_same(const struct hoop_device_self *a, const struct hoop_device_self *b);

/* Has any rank a device? Do any two share one? The same on all ranks. */
bool hoop_device_any(const struct hoop_comm *comm);
bool hoop_device_any_shared(const struct hoop_comm *comm);

/* Look at the devices of all ranks (comm->devices): no two may have the same one, unless HOOP_SHARED_GPU=1.
 * Errors: HOOP_ERR_SETUP (names both ranks), the same on all ranks. */
enum hoop_status hoop_device_survey(const struct hoop_comm *comm);

#endif
