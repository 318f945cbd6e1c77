// SPDX-License-Identifier: BSD-3-Clause
/* The host executor: runs one rank's plan on host memory over any transport.
 *
 * Each lane runs its steps until one would block; then the next lane has its turn. Nothing here waits: the caller polls,
 * so one thread can also run the plans of many ranks (the tests do). How a frame moves is the link's business; the
 * executor asks only whether it can compute straight into and out of the link's frames, and remembers which parts of the
 * buffers are lent to peers, since a step that overwrites one has to wait until it comes back.
 */
#ifndef HOOP_EXEC_HOST_H
#define HOOP_EXEC_HOST_H

#include "dtype/dtype.h"
#include "hoop/plan.h"
#include "hoop/transport.h"
#include "obs/recorder.h"
#include "plan/bind.h"

struct hoop_exec;

/* One run. All pointers stay the caller's and must outlive it. */
struct hoop_exec_call {
    const struct hoop_plan *plan;
    const struct hoop_binding *binding;
    struct hoop_domain *domain;     /* whose progress moves the links */
    struct hoop_domain *far;        /* of links to other hosts; NULL: there are none */
    struct hoop_link *const *links; /* of (peer, lane) at peer * lanes + lane; those the plan names are connected */
    int lanes;
    enum hoop_type type;
    enum hoop_op op;                 /* HOOP_AVG adds; the caller divides */
    const struct hoop_user_op *user; /* instead of op; NULL: op */
    const void *in;
    void *out, *tmp;
    uint64_t tag;    /* fingerprint of the call, on every frame */
    bool out_shared; /* peers can read OUT in place, so forwarding by lending beats copying into a frame */
};

/* An executor, reused from run to run. Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_exec_new(struct hoop_exec **exec);
void hoop_exec_free(struct hoop_exec *exec);

/* Begin a run; the one before must have ended. *call is copied. Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_exec_start(struct hoop_exec *exec, const struct hoop_exec_call *call);

/* Go on with the run. Returns HOOP_OK when all is done and no peer can still read the buffers, HOOP_AGAIN (*moved: something
 * was done), or the error of a link; hoop_exec_peer then tells whose. Never blocks. */
enum hoop_status hoop_exec_poll(struct hoop_exec *exec, bool *moved);

/* What the run waits for, when hoop_exec_poll has moved nothing: of the first lane that waits for a peer. */
struct hoop_where hoop_exec_where(const struct hoop_exec *exec);

/* The peer of the link that failed. */
int hoop_exec_peer(const struct hoop_exec *exec);

#endif
