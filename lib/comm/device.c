// SPDX-License-Identifier: BSD-3-Clause
/* Which CUDA device a rank uses, and the memory that it hands out there.
 *
 * A program that uses CUDA has made the device's context current, as every CUDA program does, and gets that device without saying
 * anything. A program that does not use CUDA never gets into touch with the driver. HOOP_DEVICE=cuda is for programs that
 * know nothing of CUDA themselves, such as hoop-bench.
 */
#include "comm/device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/device_grave.h"
#include "comm/device_links.h"
#include "comm/device_team.h"
#include "comm/kernel.h"
#include "comm/lend.h"
#include "comm/messages.h"
#include "comm/stage.h"
#include "transports/landing.h"

enum { PATIENCE = 1 }; /* seconds that peers have to close what was given back, where it is waited for */

/* What HOOP_DEVICE says; settings.c lets nothing else pass. */
enum wish { AUTO, NONE, BY_RANK, NUMBER };

static enum wish wish_of(const struct hoop_comm *comm)
{
    const char *word = comm->settings.value[HOOP_SETTING_DEVICE].word;

    return strcmp(word, "auto") == 0 ? AUTO : strcmp(word, "none") == 0 ? NONE : word[4] == ':' ? NUMBER : BY_RANK;
}

static void give_reason(struct hoop_comm *comm, const char *reason)
{
    snprintf(comm->device_reason, sizeof comm->device_reason, "%s", reason);
}

#ifdef HOOP_CUDA

/* The rank's number on its host: what the launcher says, if this is the communicator of all that it launched. All ranks of a
 * communicator are on one host. */
static int local_rank(const struct hoop_comm *comm)
{
    const struct hoop_setting_value *value = comm->settings.value;
    const bool launched = value[HOOP_SETTING_LOCAL_RANK].given && (int)value[HOOP_SETTING_RANK].number == comm->rank &&
                          (int)value[HOOP_SETTING_SIZE].number == comm->ranks;

    return launched ? (int)value[HOOP_SETTING_LOCAL_RANK].number : comm->rank;
}

/* Say what asked for the driver before why it cannot be had. */
static enum hoop_status not_there(const struct hoop_comm *comm, enum hoop_status status)
{
    char why[HOOP_ERROR_TEXT];

    snprintf(why, sizeof why, "%s", hoop_error_text());
    if (wish_of(comm) == AUTO)
        return hoop_fail(
            status,
            "a CUDA context is current, but hoop cannot use its device: %.600s; or set HOOP_DEVICE=none to "
            "have a communicator of host memory",
            why);
    return hoop_fail(status, "HOOP_DEVICE=%s: %s", comm->settings.value[HOOP_SETTING_DEVICE].word, why);
}

/* The device's ordinal, -1: none. */
static enum hoop_status choose_ordinal(struct hoop_comm *comm, const struct hoop_comm *parent, int *ordinal)
{
    const struct hoop_cuda_driver *driver = NULL;
    const enum wish wish = wish_of(comm);
    const char *reason = "HOOP_DEVICE=none";

    *ordinal = -1;
    if (parent) {
        give_reason(comm, parent->device_reason);
        *ordinal = parent->device ? parent->device->cuda->device.ordinal : -1;
        return HOOP_OK;
    }
    if (wish == AUTO) {
        *ordinal = hoop_cuda_current(&reason);
        if (*ordinal < 0 && hoop_cuda_unusable())
            return not_there(comm, HOOP_ERR_UNSUPPORTED);
    }
    if (wish == NUMBER || wish == BY_RANK) {
        const enum hoop_status status = hoop_cuda_driver(&driver);
        if (status != HOOP_OK)
            return not_there(comm, status);
        *ordinal =
            wish == BY_RANK ? local_rank(comm) % driver->devices : (int)comm->settings.value[HOOP_SETTING_DEVICE].size;
        reason = wish == BY_RANK ? "HOOP_DEVICE=cuda: the rank's number on its host, modulo the devices that it sees"
                                 : "HOOP_DEVICE names it";
    }
    give_reason(comm, reason);
    return HOOP_OK;
}

enum hoop_status hoop_device_choose(struct hoop_comm *comm, const struct hoop_comm *parent)
{
    int ordinal = -1;

    hoop_device_graves_look(NULL); /* what earlier communicators have left may be free by now */
    enum hoop_status status = choose_ordinal(comm, parent, &ordinal);
    if (status != HOOP_OK || ordinal < 0)
        return status;
    struct hoop_comm_device *device = hoop_calloc(1, sizeof *device);
    if (device == NULL)
        return HOOP_ERR_MEMORY;
    status = hoop_cuda_open(ordinal, &device->cuda);
    if (status == HOOP_OK) {
        status = hoop_cuda_stream_create(device->cuda, false, &device->stream);
        if (status != HOOP_OK)
            hoop_cuda_close(device->cuda);
    }
    if (status != HOOP_OK) {
        hoop_free(device);
        return status;
    }
    pthread_mutex_init(&device->lock, NULL);
    comm->device = device;
    return HOOP_OK;
}

/* ---- memory ---- */

void hoop_device_reap(struct hoop_comm *comm)
{
    struct hoop_comm_device *device = comm->device;
    struct hoop_device_buffer *closed = NULL;

    pthread_mutex_lock(&device->lock);
    for (struct hoop_device_buffer **one = &device->leaving; *one;) {
        struct hoop_device_buffer *buffer = *one;
        if (hoop_lend_is_open(device->lend, buffer->row)) {
            one = &buffer->next;
            continue;
        }
        *one = buffer->next;
        buffer->next = closed;
        closed = buffer;
    }
    pthread_mutex_unlock(&device->lock);
    while (closed) {
        struct hoop_device_buffer *buffer = closed;
        closed = buffer->next;
        hoop_lend_vacate(device->lend, buffer->row);
        hoop_cuda_free(device->cuda, buffer->address);
        hoop_free(buffer);
    }
}

/* Memory may be short only until peers have closed what was given back. */
static enum hoop_status allocate(struct hoop_comm *comm, size_t bytes, hoop_cu_address *address)
{
    const struct hoop_comm_device *device = comm->device;
    const uint64_t deadline = hoop_deadline(PATIENCE);
    enum hoop_status status;

    while ((status = hoop_cuda_alloc(device->cuda, bytes, address)) == HOOP_ERR_MEMORY && device->leaving &&
           !hoop_expired(deadline)) {
        usleep(1000);
        hoop_device_reap(comm);
    }
    return status;
}

static enum hoop_status wait_for_stream(struct hoop_comm *comm)
{
    return hoop_cuda_stream_wait(comm->device->cuda, comm->device->stream,
                                 hoop_deadline(hoop_setting_number(&comm->settings, HOOP_SETTING_TIMEOUT)));
}

enum hoop_status hoop_device_take(struct hoop_comm *comm, size_t bytes, void **buffer)
{
    struct hoop_comm_device *device = comm->device;
    struct hoop_device_buffer *new = hoop_calloc(1, sizeof *new);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    enum hoop_status status = allocate(comm, bytes, &new->address);
    if (status != HOOP_OK) {
        hoop_free(new);
        return status;
    }
    status = hoop_cuda_fill(device->cuda, new->address, 0, bytes, device->stream);
    if (status == HOOP_OK)
        status = wait_for_stream(comm);
    if (status != HOOP_OK) {
        hoop_cuda_free(device->cuda, new->address);
        hoop_free(new);
        return status;
    }
    *buffer = (void *)(uintptr_t) new->address;
    new->row = hoop_lend_offer(device->lend, *buffer, bytes);
    pthread_mutex_lock(&device->lock);
    new->next = device->buffers;
    device->buffers = new;
    pthread_mutex_unlock(&device->lock);
    return HOOP_OK;
}

enum hoop_status hoop_device_give(struct hoop_comm *comm, void *buffer)
{
    struct hoop_comm_device *device = comm->device;
    struct hoop_device_buffer *found, **place = &device->buffers;

    pthread_mutex_lock(&device->lock);
    while (*place && (*place)->address != hoop_cuda_address(buffer))
        place = &(*place)->next;
    found = *place;
    if (found)
        *place = found->next;
    if (found && found->row >= 0) { /* peers close it first */
        hoop_lend_withdraw(device->lend, found->row);
        found->next = device->leaving;
        device->leaving = found;
    }
    pthread_mutex_unlock(&device->lock);
    if (found == NULL)
        return HOOP_AGAIN;
    if (found->row >= 0) {
        hoop_device_reap(comm);
        return HOOP_OK;
    }
    const enum hoop_status status = hoop_cuda_free(device->cuda, found->address);
    hoop_free(found);
    return status;
}

enum hoop_status hoop_device_copy(struct hoop_comm *comm, void *to, const void *from, size_t bytes)
{
    const struct hoop_cuda *cuda = comm->device->cuda;
    struct hoop_cuda_memory source, target;

    enum hoop_status status = hoop_cuda_classify(cuda->driver, from, &source);
    if (status == HOOP_OK)
        status = hoop_cuda_classify(cuda->driver, to, &target);
    if (status != HOOP_OK)
        return status;
    if (source.kind != HOOP_CUDA_DEVICE && target.kind != HOOP_CUDA_DEVICE) {
        memmove(to, from, bytes);
        return HOOP_OK;
    }
    status = hoop_cuda_copy(cuda, to, from, bytes, comm->device->stream);
    return status == HOOP_OK ? wait_for_stream(comm) : status;
}

/* ---- the end ---- */

static bool anything_left(const struct hoop_comm_device *device)
{
    bool left = device->leaving != NULL;

    for (int i = 0; i < HOOP_DEVICE_PATHS; i++)
        left |= device->domain[i] != NULL;
    return left;
}

/* Without memory to note it down: it stays until the process ends. */
static void leave_behind(struct hoop_comm_device *device)
{
    for (int i = 0; i < HOOP_DEVICE_PATHS; i++)
        if (device->domain[i])
            hoop_landing_abandon(device->domain[i]);
    while (device->leaving) {
        struct hoop_device_buffer *buffer = device->leaving;
        device->leaving = buffer->next;
        hoop_free(buffer);
    }
}

/* The links are free; what peers may still reach is buried, or left behind. */
static void free_rest(struct hoop_comm *comm)
{
    struct hoop_comm_device *device = comm->device;

    while (device->buffers)
        hoop_device_give(comm, (void *)(uintptr_t)device->buffers->address);
    hoop_device_reap(comm);
    hoop_lend_free(device->lend);
    hoop_cuda_stream_destroy(device->cuda, device->stream);
    if (anything_left(device) && hoop_device_bury(comm) == HOOP_OK)
        return;
    leave_behind(device);
    hoop_cuda_close(device->cuda);
}

void hoop_device_free(struct hoop_comm *comm)
{
    struct hoop_comm_device *device = comm->device;

    if (device == NULL)
        return;
    hoop_stage_free(device->stage);
    hoop_kernels_free(device->kernels);
    device->kernels = NULL;
    hoop_device_team_leave(comm);
    hoop_device_links_free(comm);
    hoop_messages_free(device->messages);
    free_rest(comm);
    pthread_mutex_destroy(&device->lock);
    hoop_free(device);
    comm->device = NULL;
}

#else

enum hoop_status hoop_device_choose(struct hoop_comm *comm, const struct hoop_comm *parent)
{
    const enum wish wish = wish_of(comm);

    if (parent == NULL && (wish == BY_RANK || wish == NUMBER))
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "HOOP_DEVICE=%s: this build of hoop has no CUDA (configure --without-cuda)",
                         comm->settings.value[HOOP_SETTING_DEVICE].word);
    give_reason(comm, wish == NONE ? "HOOP_DEVICE=none" : "this build of hoop has no CUDA");
    return HOOP_OK;
}

void hoop_device_free(struct hoop_comm *comm)
{
    (void)comm;
}

#endif
