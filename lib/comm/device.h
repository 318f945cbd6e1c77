// SPDX-License-Identifier: BSD-3-Clause
/* The CUDA device of a rank's communicator, chosen once when it is made. See device.c. */
#ifndef HOOP_COMM_DEVICE_H
#define HOOP_COMM_DEVICE_H

#include <pthread.h>

#include "comm/comm.h"

#ifdef HOOP_CUDA

#include "exec/device/program.h"
#include "mem/cuda.h"

enum { HOOP_DEVICE_PATHS = 4 };

struct hoop_device_buffer {
    struct hoop_device_buffer *next;
    hoop_cu_address address;
    int row; /* of its offer to peers (lend.h); -1: none */
};

struct hoop_comm_device {
    struct hoop_cuda *cuda;
    hoop_cu_stream stream;              /* the communicator's own, for copies; does not wait for the default stream */
    struct hoop_device_buffer *buffers; /* of hoop_mem_alloc */
    struct hoop_device_buffer *leaving; /* given back, but peers may have them open */
    pthread_mutex_t lock;               /* of both lists */
    struct hoop_lend *lend;             /* lend.h; NULL: no kernels */
    struct hoop_messages *messages;     /* messages.h; NULL: they are staged */
    struct hoop_stage *stage;           /* stage.h; NULL until a call needs it */
    struct hoop_kernels *kernels;       /* kernel.h: runs calls as kernels; NULL: they are staged */
    struct hoop_domain *domain[HOOP_DEVICE_PATHS]; /* device_links.c: of links between kernels */
    struct hoop_domain *relay;                     /* device_relay.h: that of links to other hosts; NULL: none */
    struct hoop_cuda_team *team; /* of the ranks of this process on this device; NULL: it is alone there */
    hoop_cu_stream stand_in;     /* of a team: for default streams of threads, whose calls another thread launches */
    int channels;                /* of calls as kernels: 1 … the communicator's; the same on all ranks */
    bool one_process;            /* all ranks are threads of this process */
    bool through_host;           /* some pair of ranks is linked through memory of the host; the same on all ranks */
    struct hoop_link **links;    /* by peer * hoop_device_lanes + lane; NULL: none */
};

/* Lanes of links between kernels: those of plans, then those of messages. */
static inline int hoop_device_lanes(const struct hoop_comm *comm)
{
    return comm->lanes - 1 + HOOP_DEVICE_MESSAGE_LANES;
}

/* Zero-filled memory of the device.   Errors: HOOP_ERR_MEMORY, and those of mem/cuda.h.   Threads: any. */
enum hoop_status hoop_device_take(struct hoop_comm *comm, size_t bytes, void **buffer);

/* Give it back; HOOP_AGAIN: not memory of hoop_device_take.   Threads: any. */
enum hoop_status hoop_device_give(struct hoop_comm *comm, void *buffer);

/* Free what was given back, as far as no peer has it open. May wait for the device.   Threads: any. */
void hoop_device_reap(struct hoop_comm *comm);

/* Copy between memory of any kinds; returns when it is done. Waits for nothing else on the device.   Threads: any. */
enum hoop_status hoop_device_copy(struct hoop_comm *comm, void *to, const void *from, size_t bytes);

#endif

/* Choose the rank's device as HOOP_DEVICE says: comm->device, or NULL and none; comm->device_reason says why. A communicator that was split
 * off another has its device.
 * parent: what it was split off; NULL: nothing.
 * Errors: HOOP_ERR_UNSUPPORTED (a device is asked for, but there is no driver, or this build has no CUDA), HOOP_ERR_ARG (no such device),
 * HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM. */
enum hoop_status hoop_device_choose(struct hoop_comm *comm, const struct hoop_comm *parent);

/* Free the device's buffers and let go of it. What peers may still reach is freed later (device_grave.h), and comm->board is NULL then. */
void hoop_device_free(struct hoop_comm *comm);

#endif
