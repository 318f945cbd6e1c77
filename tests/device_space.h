// SPDX-License-Identifier: BSD-3-Clause
/* Cases of collectives on device memory: a rank's buffers on its device, and one case on them. */
#ifndef HOOP_TESTS_DEVICE_SPACE_H
#define HOOP_TESTS_DEVICE_SPACE_H

#include "cases.h"
#include "cuda_help.h"
#include "hoop.h"

enum { SPACE = 1 << 19, STREAMS = 2 };

enum way { AT_ONCE, IN_STREAM, AS_HANDLE, IN_GROUP, WAYS };

struct rank_space {
    struct cuda_help cuda;
    unsigned char *host, *device; /* the same content */
};

/* Buffers on the device of this rank of the communicator. Fails the test when it cannot. */
void space_open(struct rank_space *space, struct hoop_comm *comm);
void space_close(struct rank_space *space);

/* Fill, copy to the device, call, copy back, compare; with a stream all of it in its order, so that a call that does not
 * wait for what is before it, or is not waited for by what is behind, shows. What is wrong is in text. */
enum hoop_status space_run(const struct hoop_case *c, enum way way, struct rank_space *space, int rank,
                           struct hoop_comm *comm, char *text, size_t size);

/* Do calls go the way that is meant ("kernel", "staged")? A rank alone needs none. */
bool space_goes(const struct hoop_comm *comm, const char *way);

/* Does hoop_explain give that as the way of calls on this rank's device memory, or as its reason? If not it is printed. */
bool space_tells(const struct hoop_comm *comm, const char *reason);

#endif
