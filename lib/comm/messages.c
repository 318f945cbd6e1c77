// SPDX-License-Identifier: BSD-3-Clause
/* Messages of device memory as one kernel, beside those of host memory.
 *
 * The two ends of a message may lie in memory of different kinds, and neither knows the other's. A kernel that waits cannot be called
 * back, so an end in device memory always goes by the kernel. An end in host memory waits until its peer has made its call,
 * which says where that end lies: if it is device memory, this one goes by way of device memory, too. So each rank tells every
 * other, for every message between the two, which kind its own end is: a bit in the board, in the order of the messages.
 *
 * Calls that are being captured into a graph tell nothing: both ends must be captured then, or in device memory.
 */
#include "comm/messages.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/device.h"
#include "comm/kernel.h"
#include "comm/lend.h"
#include "exec/direct.h"

enum { WINDOW = 4096, WORD = 64, BOUNCE_SCRATCH = HOOP_CUDA_MESSAGES + 1, ALIGNMENT = 256 };

static const uint64_t message_tag = 0x706f696e74;

/* What a rank tells of its messages to one peer, or of those from it. */
struct end {
    _Alignas(HOOP_LINE) _Atomic uint64_t made; /* how many it has called */
    _Atomic uint64_t known;                    /* of how many it need not know the peer's kind any more */
    _Alignas(HOOP_LINE) _Atomic uint64_t device[WINDOW / WORD]; /* bit k % WINDOW: message k is in device memory */
};

struct hoop_messages {
    struct hoop_comm *comm;
    struct end *own;    /* of messages to each rank, then from each */
    struct end **table; /* the same of each rank */
};

/* ---- making ---- */

static size_t table_bytes(const struct hoop_comm *comm)
{
    return 2 * (size_t)comm->ranks * sizeof(struct end);
}

enum hoop_status hoop_messages_new(struct hoop_comm *comm, struct hoop_messages **messages, uint64_t *place)
{
    struct hoop_messages *new = hoop_calloc(1, sizeof *new);
    void *memory = NULL;

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->comm = comm;
    new->table = hoop_calloc((size_t)comm->ranks, sizeof(struct end *));
    const enum hoop_status status =
        new->table ? hoop_heap_take_for(comm->heap, table_bytes(comm), "the list of messages in device memory", &memory)
                   : HOOP_ERR_MEMORY;
    if (status != HOOP_OK) {
        hoop_messages_free(new);
        return status;
    }
    new->own = memory;
    memset(memory, 0, table_bytes(comm));
    hoop_board_owns(comm->board, memory, 1, place);
    *messages = new;
    return HOOP_OK;
}

enum hoop_status hoop_messages_start(struct hoop_messages *messages, const uint64_t *place, size_t stride)
{
    const struct hoop_comm *comm = messages->comm;

    for (int rank = 0; rank < comm->ranks; rank++) {
        const uint64_t at = *(const uint64_t *)(const void *)((const unsigned char *)place + (size_t)rank * stride);
        if (at % HOOP_LINE || !hoop_direct_inside(comm->board, rank, at, table_bytes(comm)))
            return hoop_fail(HOOP_ERR_SETUP, "rank %d has no list of messages for its peers", rank);
        messages->table[rank] = (struct end *)(void *)(comm->board->base + at);
    }
    return HOOP_OK;
}

void hoop_messages_free(struct hoop_messages *messages)
{
    if (messages == NULL)
        return;
    if (messages->own)
        hoop_heap_give(messages->comm->heap, messages->own);
    hoop_free(messages->table);
    hoop_free(messages);
}

bool hoop_messages_take(const struct hoop_comm *comm)
{
    return comm->device && comm->device->messages && comm->device->kernels;
}

/* ---- kinds ---- */

struct item {
    const struct hoop_comm_call *call;
    uint64_t number; /* among those of its pair and direction; 0: not told yet */
    bool known;      /* which way it goes: */
    bool kernel;
    size_t bounce; /* host memory that goes by the kernel: its place in device memory */
};

/* The messages of a turn. */
struct batch {
    struct hoop_comm *comm;
    size_t items;
    struct item *item;
};

static bool is_send(const struct item *item)
{
    return (int)item->call->coll == HOOP_POINT_SEND;
}

static bool to_itself(const struct item *item)
{
    return item->call->root == item->call->comm->rank;
}

static size_t bytes_of(const struct item *item)
{
    return item->call->count * hoop_type_size(item->call->type);
}

static struct end *own_end(const struct hoop_messages *messages, const struct item *item)
{
    return &messages->own[(is_send(item) ? 0 : messages->comm->ranks) + item->call->root];
}

static struct end *peers_end(const struct hoop_messages *messages, const struct item *item)
{
    return &messages->table[item->call->root][(is_send(item) ? messages->comm->ranks : 0) + messages->comm->rank];
}

/* Tell the peer which kind the message is. False: it has not looked at one of long ago yet, whose bit this is. */
static bool tell(const struct hoop_messages *messages, struct item *item)
{
    struct end *end = own_end(messages, item);
    const uint64_t number = atomic_load_explicit(&end->made, memory_order_relaxed) + 1;
    _Atomic uint64_t *word = &end->device[number % WINDOW / WORD];
    const uint64_t bit = (uint64_t)1 << number % WORD, before = atomic_load_explicit(word, memory_order_relaxed);

    if (number > WINDOW &&
        atomic_load_explicit(&peers_end(messages, item)->known, memory_order_acquire) < number - WINDOW)
        return false;
    atomic_store_explicit(word, item->call->device ? before | bit : before & ~bit, memory_order_relaxed);
    atomic_store_explicit(&end->made, number, memory_order_release);
    item->number = number;
    return true;
}

/* Find out which way the message goes. False: the peer has not made its call yet. */
static bool find_out(const struct hoop_messages *messages, struct item *item)
{
    const struct end *theirs = peers_end(messages, item);

    item->kernel = item->call->device;
    if (!item->kernel) {
        if (atomic_load_explicit(&theirs->made, memory_order_acquire) < item->number)
            return false;
        const uint64_t word = atomic_load_explicit(&theirs->device[item->number % WINDOW / WORD], memory_order_relaxed);
        item->kernel = word >> item->number % WORD & 1;
    }
    atomic_store_explicit(&own_end(messages, item)->known, item->number, memory_order_release);
    item->known = true;
    return true;
}

/* Once over all: those of a pair in their order. */
static bool tell_all(const struct batch *batch, bool *any)
{
    const struct hoop_messages *messages = batch->comm->device->messages;
    bool all = true;

    for (size_t i = 0; i < batch->items && all; i++) {
        struct item *item = &batch->item[i];
        if (to_itself(item) || item->number)
            continue;
        all = tell(messages, item);
        *any |= all;
    }
    for (size_t i = 0; i < batch->items; i++) {
        struct item *item = &batch->item[i];
        if (item->known || to_itself(item))
            continue;
        if (item->number == 0 || !find_out(messages, item))
            return false;
        *any = true;
    }
    return all;
}

static enum hoop_status agree(const struct batch *batch)
{
    struct hoop_wait *wait = &batch->comm->wait;
    enum hoop_status status = HOOP_OK;
    bool any = false;

    hoop_wait_begin(wait, 0);
    while (!tell_all(batch, &any) && status == HOOP_OK) {
        if (any)
            hoop_wait_ring(wait); /* peers may wait for what was told */
        if (any)
            hoop_wait_moved(wait);
        else
            status = hoop_wait_step(wait);
        any = false;
    }
    hoop_wait_ring(wait);
    hoop_wait_moved(wait);
    return status;
}

/* ---- to this rank itself ---- */

/* The receive that the item, a send to this rank, meets: the k-th of each; NULL: there is none. */
static struct item *partner_of(const struct batch *batch, const struct item *send)
{
    size_t before = 0;

    for (const struct item *item = batch->item; item < send; item++)
        before += to_itself(item) && is_send(item);
    for (struct item *item = batch->item; item < batch->item + batch->items; item++)
        if (to_itself(item) && !is_send(item) && before-- == 0)
            return item;
    return NULL;
}

/* Both go by the kernel if either is in device memory; what does not fit together is told as on the host. */
static enum hoop_status agree_with_itself(const struct batch *batch)
{
    size_t sends = 0, receives = 0;

    for (size_t i = 0; i < batch->items; i++) {
        struct item *item = &batch->item[i];
        if (!to_itself(item))
            continue;
        sends += is_send(item);
        receives += !is_send(item);
        if (!is_send(item))
            continue;
        struct item *partner = partner_of(batch, item);
        if (partner == NULL || partner->call->count != item->call->count || partner->call->type != item->call->type)
            return hoop_fail(HOOP_ERR_MISMATCH,
                             "rank %d sends itself %zu %s and has no receive of the same in the group",
                             batch->comm->rank, item->call->count, hoop_type_name(item->call->type));
        item->kernel = partner->kernel = item->call->device || partner->call->device;
    }
    return sends == receives
               ? HOOP_OK
               : hoop_fail(HOOP_ERR_MISMATCH, "rank %d receives from itself and has no send of the same in the group",
                           batch->comm->rank);
}

/* ---- the kernel ---- */

struct list {
    struct hoop_cuda_messages list;
    hoop_cu_address bounce;
    struct hoop_device_message message[];
};

static uint64_t address_of(const struct list *list, const struct item *item)
{
    const void *data = is_send(item) ? item->call->in : item->call->out;

    return item->call->device ? hoop_cuda_address(data) : list->bounce + item->bounce;
}

static void add(const struct batch *batch, struct list *list, const struct item *item)
{
    const struct hoop_comm_call *call = item->call;
    struct hoop_lend *lend = batch->comm->device->lend;
    struct hoop_device_message *message = &list->message[list->list.messages++];

    *message = (struct hoop_device_message){.data = address_of(list, item),
                                            .count = call->count,
                                            .bytes = bytes_of(item),
                                            .kind = to_itself(item) ? HOOP_DEVICE_COPY
                                                    : is_send(item) ? HOOP_DEVICE_SEND
                                                                    : HOOP_DEVICE_RECV,
                                            .peer = (uint32_t)call->root,
                                            .shape = (uint32_t)call->type};
    batch->comm->stats.bytes += to_itself(item) ? 2 * bytes_of(item) : bytes_of(item);
    if (to_itself(item))
        message->to = address_of(list, partner_of(batch, item));
    else if (is_send(item) && call->device) {
        message->view = hoop_lend_has_news(lend) ? 0 : hoop_lend_row(lend, call->in); /* news: the stream is captured */
        message->keep = call->in_own;
    }
}

/* Those of one peer and direction one behind the other, the next rank's first. */
static void fill(const struct batch *batch, struct list *list)
{
    const int ranks = batch->comm->ranks;

    for (int i = 0; i < ranks; i++)
        for (int send = 0; send < 2; send++) {
            const int peer = (batch->comm->rank + (send ? i : ranks - i)) % ranks;
            for (size_t k = 0; k < batch->items; k++) {
                const struct item *item = &batch->item[k];
                if (item->kernel && item->call->root == peer && is_send(item) == send && (send || !to_itself(item)))
                    add(batch, list, item);
            }
        }
}

/* Places for host memory in device memory. */
static enum hoop_status place_bounces(const struct batch *batch, struct list *list)
{
    size_t bytes = 0;

    for (size_t i = 0; i < batch->items; i++) {
        struct item *item = &batch->item[i];
        if (!item->kernel || item->call->device)
            continue;
        item->bounce = bytes;
        bytes += (bytes_of(item) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return hoop_cuda_exec_scratch(batch->comm->device->kernels->exec, BOUNCE_SCRATCH, bytes, &list->bounce);
}

/* Between host memory and its place: of what is sent, or of what was received. */
static enum hoop_status bounce(const struct batch *batch, const struct list *list, bool sent, hoop_cu_stream stream)
{
    const struct hoop_cuda *cuda = batch->comm->device->cuda;
    enum hoop_status status = HOOP_OK;

    for (size_t i = 0; i < batch->items && status == HOOP_OK; i++) {
        const struct item *item = &batch->item[i];
        void *place = (void *)(uintptr_t)(list->bounce + item->bounce);
        if (!item->kernel || item->call->device || is_send(item) != sent || bytes_of(item) == 0)
            continue;
        status =
            hoop_cuda_copy(cuda, sent ? place : item->call->out, sent ? item->call->in : place, bytes_of(item), stream);
    }
    return status;
}

/* A job of hoop_kernels_give. */
static enum hoop_status launch(struct hoop_kernels *kernels, const void *data, hoop_cu_stream stream)
{
    const struct batch *batch = data;
    struct list *list = hoop_calloc(1, sizeof *list + batch->items * sizeof *list->message);

    enum hoop_status status = list ? place_bounces(batch, list) : HOOP_ERR_MEMORY;
    if (status == HOOP_OK)
        status = hoop_cuda_exec_follow(kernels->exec, stream); /* calls share the places */
    if (status == HOOP_OK)
        status = bounce(batch, list, true, stream);
    if (status == HOOP_OK) {
        fill(batch, list);
        list->list.message = list->message;
        list->list.parts = HOOP_DEVICE_MESSAGE_LANES;
        list->list.tag = message_tag;
        status = hoop_cuda_exec_messages(kernels->exec, &list->list, stream);
    }
    if (status == HOOP_OK)
        status = bounce(batch, list, false, stream);
    if (status == HOOP_OK)
        status = hoop_cuda_exec_lead(kernels->exec, stream);
    snprintf(batch->comm->stats.last_plan, sizeof batch->comm->stats.last_plan, "messages/kernel");
    hoop_free(list);
    return status;
}

/* ---- calls ---- */

static enum hoop_status open_batch(struct batch *batch, struct hoop_comm *comm, const struct hoop_comm_call *call,
                                   size_t calls)
{
    *batch = (struct batch){.comm = comm, .item = hoop_calloc(calls, sizeof *batch->item)};
    if (batch->item == NULL)
        return HOOP_ERR_MEMORY;
    for (size_t i = 0; i < calls; i++)
        if ((int)call[i].coll > HOOP_COLLS)
            batch->item[batch->items++].call = &call[i];
    return HOOP_OK;
}

static bool any_item(const struct batch *batch, bool kernel)
{
    for (size_t i = 0; i < batch->items; i++)
        if (batch->item[i].kernel == kernel)
            return true;
    return false;
}

static bool any_device(const struct batch *batch)
{
    for (size_t i = 0; i < batch->items; i++)
        if (batch->item[i].call->device)
            return true;
    return false;
}

/* Those of host memory at both ends. */
static enum hoop_status run_on_host(const struct batch *batch)
{
    struct hoop_comm_call *call = hoop_calloc(batch->items, sizeof *call);
    size_t calls = 0;

    if (call == NULL)
        return hoop_comm_conclude(batch->comm, HOOP_ERR_MEMORY);
    for (size_t i = 0; i < batch->items; i++)
        if (!batch->item[i].kernel)
            call[calls++] = *batch->item[i].call;
    const enum hoop_status status = hoop_point_run_on_host(batch->comm, call, calls);
    hoop_free(call);
    return status;
}

/* Both at the same time. What was given to the stream must have passed before memory is the caller's again, also after a failure, which
 * ends the kernel. */
static enum hoop_status run(const struct batch *batch)
{
    struct hoop_comm *comm = batch->comm;
    const bool kernel = any_item(batch, true);
    enum hoop_status status = HOOP_OK;

    if (kernel)
        status = hoop_kernels_begin(comm, any_device(batch));
    if (kernel && status == HOOP_OK)
        status = hoop_kernels_give(comm, "message", launch, batch, comm->device->stream);
    if (status == HOOP_OK && any_item(batch, false))
        status = run_on_host(batch);
    if (kernel) {
        const enum hoop_status ended = hoop_kernels_await(comm);
        status = status == HOOP_OK ? ended : status;
    }
    return status;
}

enum hoop_status hoop_messages_run(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls)
{
    struct batch batch;

    enum hoop_status status = open_batch(&batch, comm, call, calls);
    if (status == HOOP_OK)
        status = agree_with_itself(&batch);
    if (status == HOOP_OK)
        status = agree(&batch);
    status = status == HOOP_OK ? run(&batch) : hoop_comm_conclude(comm, status);
    hoop_free(batch.item);
    return status;
}

enum hoop_status hoop_messages_launch(struct hoop_comm *comm, const struct hoop_comm_call *call, size_t calls,
                                      hoop_cu_stream stream)
{
    struct batch batch;
    bool capturing = false;

    enum hoop_status status = hoop_cuda_stream_capturing(comm->device->cuda, stream, &capturing);
    if (status == HOOP_OK)
        status = open_batch(&batch, comm, call, calls);
    if (status != HOOP_OK)
        return hoop_comm_conclude(comm, status);
    for (size_t i = 0; i < batch.items; i++)
        batch.item[i].kernel = true;
    status = agree_with_itself(&batch);
    if (status == HOOP_OK && !capturing)
        status = agree(&batch);
    status = status == HOOP_OK ? hoop_kernels_give(comm, "message", launch, &batch, stream)
                               : hoop_comm_conclude(comm, status);
    hoop_free(batch.item);
    return status;
}
