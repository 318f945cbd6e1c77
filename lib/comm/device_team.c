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
        hoop_cuda_exec_join(device->kernels->exec, device->team, seat, &comm->wait);
    return status;
}

void hoop_device_team_leave(struct hoop_comm *comm)
{
    hoop_cuda_team_leave(comm->device->team);
    comm->device->team = NULL;
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

#endif
