// SPDX-License-Identifier: BSD-3-Clause
/* Who has which device.
 *
 * Between processes a device is known by its bus id and its UUID: ordinals depend on CUDA_VISIBLE_DEVICES, and the parts of a GPU
 * (MIG), which are devices of their own, share its bus id. Kernels of two processes on one GPU take turns, so a kernel that
 * waits for one of another rank there may wait for ever; therefore two ranks on one device must be asked for.
 */
#include "comm/device_meet.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "comm/device.h"
#include "wire/auth.h"

static uint64_t token;

static void make_token(void)
{
    hoop_auth_random(&token, sizeof token);
}

void hoop_device_tell(const struct hoop_comm *comm, struct hoop_device_self *self)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_token);
    *self = (struct hoop_device_self){.process = (int)getpid(), .token = token};
#ifdef HOOP_CUDA
    if (comm->device == NULL)
        return;
    const struct hoop_cuda_device *device = &comm->device->cuda->device;
    self->present = true;
    memcpy(self->bus, device->bus, sizeof self->bus);
    memcpy(self->uuid, device->uuid, sizeof self->uuid);
#else
    (void)comm;
#endif
}

void hoop_device_self_put(struct hoop_writer *writer, const struct hoop_device_self *self)
{
    hoop_put_u8(writer, self->present);
    hoop_put_bytes(writer, self->bus, sizeof self->bus);
    hoop_put_bytes(writer, self->uuid, sizeof self->uuid);
    hoop_put_u32(writer, (uint32_t)self->process);
    hoop_put_u64(writer, self->token);
}

void hoop_device_self_get(struct hoop_reader *reader, struct hoop_device_self *self)
{
    self->present = hoop_get_u8_range(reader, 0, 1);
    hoop_get_bytes(reader, self->bus, sizeof self->bus);
    self->bus[sizeof self->bus - 1] = 0;
    hoop_get_bytes(reader, self->uuid, sizeof self->uuid);
    self->process = (int)hoop_get_u32_range(reader, 0, INT32_MAX);
    self->token = hoop_get_u64(reader);
}

bool hoop_device_same(const struct hoop_device_self *a, const struct hoop_device_self *b)
{
    return a->present && b->present && memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0 && strcmp(a->bus, b->bus) == 0;
}

bool hoop_device_any(const struct hoop_comm *comm)
{
    bool any = comm->device != NULL;

    for (int rank = 0; rank < comm->ranks && comm->devices; rank++)
        any |= comm->devices[rank].present;
    return any;
}

bool hoop_device_any_shared(const struct hoop_comm *comm)
{
    for (int b = 1; b < comm->ranks; b++)
        for (int a = 0; a < b; a++)
            if (hoop_device_same(&comm->devices[a], &comm->devices[b]))
                return true;
    return false;
}

enum hoop_status hoop_device_survey(const struct hoop_comm *comm)
{
    const bool shared = hoop_setting_number(&comm->settings, HOOP_SETTING_SHARED_GPU) > 0;
    const struct hoop_device_self *selves = comm->devices;

    for (int b = 1; b < comm->ranks && !shared; b++)
        for (int a = 0; a < b && selves[b].present; a++)
            if (hoop_device_same(&selves[a], &selves[b]))
                return hoop_fail(
                    HOOP_ERR_SETUP,
                    "ranks %d (process %d) and %d (process %d) have the same GPU (%s). Give each rank its own "
                    "(HOOP_DEVICE=cuda or CUDA_VISIBLE_DEVICES) or none (HOOP_DEVICE=none), or let ranks share "
                    "GPUs with HOOP_SHARED_GPU=1",
                    a, selves[a].process, b, selves[b].process, selves[a].bus);
    return HOOP_OK;
}
