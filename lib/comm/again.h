// SPDX-License-Identifier: BSD-3-Clause
/* Calls like one before.
 *
 * A small exchange takes the peers a few hundred cycles, and to check the arguments of a call, to find the way that it goes and to
 * put together what the peers are told of it took more than that. All of it depends on the call, not on its buffers. So for each
 * collective what was found for the latest call that went through slots is kept, and a call that equals it, at any buffers,
 * goes that way at once. Everything else, and whatever is wrong, takes the long way, which knows the error.
 */
#ifndef HOOP_COMM_AGAIN_H
#define HOOP_COMM_AGAIN_H

#include "exec/flat.h"

struct hoop_comm;
struct hoop_comm_call;

struct hoop_again {
    bool holds;
    enum hoop_type type;
    enum hoop_op op;
    int root;
    size_t count;
    bool rooted;
    bool plain;                 /* goes through slots whatever the buffers are, */
    bool receives;              /* and this rank takes a result from them */
    size_t in_bytes, out_bytes; /* that this rank's buffers hold */
    size_t in_skip, out_skip;   /* from the start of the whole vector to the buffer */
    uint64_t kind[2];           /* what the peers are told, not in place and in place */
    struct hoop_flat_call flat; /* buffers, sequence and tag are those of the latest call */
};

/* A call went through slots or in each other's memory: remember it for calls like it. What is no collective of equal blocks with a
 * built-in operator on host memory is not kept, nor what may be timed to find the best way. */
void hoop_again_keep(const struct hoop_comm_call *call, const struct hoop_flat_call *flat);

/* Make a call without stream that is not checked yet. HOOP_AGAIN: there was none like it, nothing has happened.
 * Blocking: until done or a verdict.   Errors: the verdict's; concluded. */
enum hoop_status hoop_again_run(const struct hoop_comm_call *call);

#endif
