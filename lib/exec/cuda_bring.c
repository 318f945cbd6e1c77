// SPDX-License-Identifier: BSD-3-Clause
#include "exec/cuda_bring.h"

#include <string.h>

#include "base/alloc.h"

enum { SLOTS = 32 };

struct slot {
    struct slot *next;
    unsigned char *memory;
    size_t room;
    hoop_cu_event passed; /* the stream has read it */
    bool kept;            /* by a captured copy */
    bool own;             /* memory is this slot's alone */
};

struct hoop_cuda_bring {
    struct hoop_cuda *cuda;
    struct slot *slots;
    void *memory; /* of the first slots */
};

static enum hoop_status add_slot(struct hoop_cuda_bring *bring, unsigned char *memory, size_t room, bool own)
{
    struct slot *new = hoop_calloc(1, sizeof *new);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    const enum hoop_status status = hoop_cuda_event_create(bring->cuda, &new->passed);
    if (status != HOOP_OK) {
        hoop_free(new);
        return status;
    }
    new->memory = memory;
    new->room = room;
    new->own = own;
    new->next = bring->slots;
    bring->slots = new;
    return HOOP_OK;
}

enum hoop_status hoop_cuda_bring_new(struct hoop_cuda_bring **made, struct hoop_cuda *cuda, size_t room)
{
    struct hoop_cuda_bring *bring = hoop_calloc(1, sizeof *bring);
    hoop_cu_address address;

    if (bring == NULL)
        return HOOP_ERR_MEMORY;
    bring->cuda = cuda;
    enum hoop_status status = hoop_cuda_host_alloc(cuda, SLOTS * room, &bring->memory, &address);
    for (size_t i = 0; i < SLOTS && status == HOOP_OK; i++)
        status = add_slot(bring, (unsigned char *)bring->memory + i * room, room, false);
    if (status != HOOP_OK) {
        hoop_cuda_bring_free(bring);
        return status;
    }
    *made = bring;
    return HOOP_OK;
}

void hoop_cuda_bring_free(struct hoop_cuda_bring *bring)
{
    if (bring == NULL)
        return;
    while (bring->slots) {
        struct slot *slot = bring->slots;
        bring->slots = slot->next;
        hoop_cuda_event_destroy(bring->cuda, slot->passed);
        if (slot->own)
            hoop_cuda_host_free(bring->cuda, slot->memory);
        hoop_free(slot);
    }
    if (bring->memory)
        hoop_cuda_host_free(bring->cuda, bring->memory);
    hoop_free(bring);
}

/* A slot that nobody reads any more. */
static struct slot *find(const struct hoop_cuda_bring *bring, size_t bytes)
{
    for (struct slot *slot = bring->slots; slot; slot = slot->next)
        if (!slot->kept && slot->room >= bytes && hoop_cuda_event_query(bring->cuda, slot->passed) == HOOP_OK)
            return slot;
    return NULL;
}

static enum hoop_status take(struct hoop_cuda_bring *bring, size_t bytes, struct slot **slot)
{
    hoop_cu_address address;
    void *memory;

    *slot = find(bring, bytes);
    if (*slot)
        return HOOP_OK;
    enum hoop_status status = hoop_cuda_host_alloc(bring->cuda, bytes, &memory, &address);
    if (status != HOOP_OK)
        return status;
    status = add_slot(bring, memory, bytes, true);
    if (status != HOOP_OK) {
        hoop_cuda_host_free(bring->cuda, memory);
        return status;
    }
    *slot = bring->slots;
    return HOOP_OK;
}

enum hoop_status hoop_cuda_bring(struct hoop_cuda_bring *bring, hoop_cu_address to, const void *data, size_t bytes,
                                 hoop_cu_stream stream)
{
    hoop_cu_capture_mode mode = HOOP_CU_CAPTURE_RELAXED;
    struct slot *slot = NULL;
    bool capturing;

    enum hoop_status status = hoop_cuda_stream_capturing(bring->cuda, stream, &capturing);
    if (status != HOOP_OK)
        return status;
    bring->cuda->driver->cuThreadExchangeStreamCaptureMode(
        &mode); /* what is asked and taken here is not of the capture */
    status = take(bring, bytes, &slot);
    bring->cuda->driver->cuThreadExchangeStreamCaptureMode(&mode);
    if (status != HOOP_OK)
        return status;
    memcpy(slot->memory, data, bytes);
    slot->kept = capturing;
    status = hoop_cuda_copy(bring->cuda, (void *)(uintptr_t)to, slot->memory, bytes, stream);
    return status == HOOP_OK && !capturing ? hoop_cuda_event_record(bring->cuda, slot->passed, stream) : status;
}
