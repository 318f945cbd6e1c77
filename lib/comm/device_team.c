// SPDX-License-Identifier: BSD-3-Clause
#include "comm/device_team.h"

#ifdef HOOP_CUDA

#include "comm/device.h"
#include "comm/device_meet.h"
#include "comm/kernel.h"
#include "exec/cuda_team.h"

/* How many ranks are on this rank's device, and how many of them come before it. Returns the first. */
static int count(const struct hoop_comm *comm, int *seat, int *seats)
{
    int first = -1;

    *seat = *seats = 0;
    for (int rank = 0; rank < comm->ranks; rank++)
        if (hoop_device_same(&comm->devices[rank], &comm->devices[comm->rank])) {
            first = first < 0 ? rank : first;
            *seat += rank < comm->rank;
            ++*seats;
        }
    return first;
}

int hoop_device_team_maker(const struct hoop_comm *comm)
{
    int seat, seats;
    const int first = count(comm, &seat, &seats);

    return seats > 1 ? first : -1;
}

enum hoop_status hoop_device_team_make(struct hoop_comm *comm, uint64_t *id)
{
    int seat, seats;

    count(comm, &seat, &seats);
    return hoop_cuda_team_new(&comm->device->team, comm->device->cuda, seats, id);
}

enum hoop_status hoop_device_team_enter(struct hoop_comm *comm, uint64_t id)
{
    struct hoop_comm_device *device = comm->device;
    enum hoop_status status = HOOP_OK;
    int seat, seats;

    count(comm, &seat, &seats);
    if (device->team == NULL)
        status = hoop_cuda_team_enter(&device->team, id);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_create(device->cuda, false, &device->stand_in);
    if (status == HOOP_OK)
        hoop_cuda_exec_join(device->kernels->exec, device->team, seat, &comm->wait);
    return status;
}

void hoop_device_team_leave(struct hoop_comm *comm)
{
    struct hoop_comm_device *device = comm->device;

    if (device->stand_in)
        hoop_cuda_stream_destroy(device->cuda, device->stand_in);
    device->stand_in = NULL;
    hoop_cuda_team_leave(device->team);
    device->team = NULL;
}

/* What `later` gets from now on comes behind what `earlier` holds. */
static enum hoop_status order(const struct hoop_comm_device *device, hoop_cu_stream earlier, hoop_cu_stream later)
{
    const enum hoop_status status = hoop_cuda_event_record(device->cuda, device->kernels->before, earlier);

    return status == HOOP_OK ? hoop_cuda_stream_wait_event(device->cuda, later, device->kernels->before) : status;
}

enum hoop_status hoop_device_team_replace(struct hoop_comm_batch *batch, bool *replaced)
{
    const struct hoop_comm_device *device = batch->comm->device;

    *replaced = (uintptr_t)batch->stream == HOOP_CU_STREAM_PER_THREAD;
    if (!*replaced)
        return HOOP_OK;
    const enum hoop_status status = order(device, (hoop_cu_stream)(void *)batch->stream, device->stand_in);
    batch->stream = (hoop_stream *)(void *)device->stand_in;
    return status;
}

enum hoop_status hoop_device_team_rejoin(const struct hoop_comm *comm)
{
    return order(comm->device, comm->device->stand_in, (hoop_cu_stream)(uintptr_t)HOOP_CU_STREAM_PER_THREAD);
}

bool hoop_device_team_waits(const struct hoop_comm *comm)
{
    return comm->device && comm->device->team && comm->device->kernels;
}

#else

bool hoop_device_team_waits(const struct hoop_comm *comm)
{
    (void)comm;
    return false;
}

enum hoop_status hoop_device_team_replace(struct hoop_comm_batch *batch, bool *replaced)
{
    (void)batch;
    *replaced = false;
    return HOOP_OK;
}

enum hoop_status hoop_device_team_rejoin(const struct hoop_comm *comm)
{
    (void)comm;
    return HOOP_OK;
}

#endif
