// SPDX-License-Identifier: BSD-3-Clause
/* Device memory that peers of other processes may read where it is.
 *
 * Between devices of one process addresses are the same, and a kernel that has something to send needs to know no more. Another process
 * has to open the memory first, by its handle, at an address of its own. So each rank has a table in the board's heap: what it offers
 * (what hoop_mem_alloc gave out), and where it has opened what others offer. Only memory that a peer says it has opened is ever lent to it;
 * until then data go through slots, so offers need no agreement and allocating stays a rank's own business. Nobody ever writes into
 * another's buffer.
 *
 * Opening and closing may wait for the device, on which kernels may be waiting for peers. So neither a call nor the thread that watches
 * does it, but a worker. A withdrawn offer is closed by the peers' workers in their time, and its memory is freed after that
 * (comm/device.c).
 *
 * Each word has one writer. An offer's state is odd while it stands and changes with each new one in its row; an opening carries
 * the state that it belongs to. An opening is BUSY from before its maker looks at the offer for the last time, and an owner first withdraws
 * its offer and then looks at the openings: so either the maker sees that the offer has gone, or the owner sees that somebody may be
 * opening it, and frees nothing.
 */
#include "comm/lend.h"

#include <string.h>

#include "base/alloc.h"
#include "comm/device.h"
#include "exec/direct.h"
#include "exec/stream.h"
#include "transports/transports.h"

enum { ROWS = HOOP_CUDA_VIEWS };

static const uint64_t BUSY = UINT64_MAX; /* of an opening that is being made; no offer's state */

struct offer {
    _Atomic uint64_t state;
    struct hoop_cuda_export export;
};

struct opening {
    _Atomic uint64_t state;
    uint64_t address;
};

struct table {
    _Alignas(HOOP_LINE) _Atomic uint64_t offered; /* counts changes of offers */
    _Alignas(HOOP_LINE) _Atomic uint64_t opened;  /* counts changes of openings */
    struct offer offer[ROWS];
    struct opening opening[]; /* of rank r's row i: r * ROWS + i */
};

/* What this rank offers. */
struct row {
    uint64_t base, bytes; /* bytes 0: the row is free */
};

struct hoop_lend {
    struct hoop_comm *comm;
    struct hoop_cuda *cuda;
    struct table **table; /* of each rank; NULL: it is linked in another way than by handles */
    struct table *own;
    pthread_mutex_t lock; /* of rows */
    struct row row[ROWS];
    uint64_t *shift;         /* what kernels were told: row by row, one a rank */
    hoop_cu_address *import; /* the worker's: by rank and row */
    uint64_t *offered;       /* the watching thread's: changes of peers that were seen */
    uint64_t *opened;
    hoop_stream *worker;
    _Atomic bool news;    /* openings have changed: kernels are to be told */
    _Atomic bool working; /* the worker has something to do */
    _Atomic bool closing;
};

static size_t table_bytes(int ranks)
{
    return sizeof(struct table) + (size_t)ranks * ROWS * sizeof(struct opening);
}

/* ---- making ---- */

enum hoop_status hoop_lend_new(struct hoop_comm *comm, struct hoop_lend **lend, uint64_t *place)
{
    struct hoop_lend *new = hoop_calloc(1, sizeof *new);
    const size_t ranks = (size_t)comm->ranks;
    void *memory = NULL;

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->comm = comm;
    new->cuda = comm->device->cuda;
    pthread_mutex_init(&new->lock, NULL);
    new->table = hoop_calloc(ranks, sizeof(struct table *));
    new->shift = hoop_calloc(ranks * ROWS, sizeof *new->shift);
    new->import = hoop_calloc(ranks * ROWS, sizeof *new->import);
    new->offered = hoop_calloc(2 * ranks, sizeof *new->offered);
    enum hoop_status status =
        new->table &&new->shift &&new->import &&new->offered ? hoop_stream_create(&new->worker) : HOOP_ERR_MEMORY;
    if (status == HOOP_OK)
        status = hoop_heap_take_for(comm->heap, table_bytes(comm->ranks), "the list of device memory lent to peers",
                                    &memory);
    if (status != HOOP_OK) {
        hoop_lend_free(new);
        return status;
    }
    new->own = memory;
    new->opened = new->offered + ranks;
    memset(new->shift, 0xff, ranks * ROWS * sizeof *new->shift);
    hoop_board_owns(comm->board, memory, 1, place);
    *lend = new;
    return HOOP_OK;
}

static const struct hoop_link *link_to(const struct hoop_comm *comm, int rank)
{
    return comm->device->links[rank * hoop_device_lanes(comm)];
}

enum hoop_status hoop_lend_start(struct hoop_lend *lend, const uint64_t *place, size_t stride)
{
    const struct hoop_comm *comm = lend->comm;

    for (int rank = 0; rank < comm->ranks; rank++) {
        const uint64_t at = *(const uint64_t *)(const void *)((const unsigned char *)place + (size_t)rank * stride);
        if (rank == comm->rank || link_to(comm, rank)->transport != &hoop_transport_cuda_ipc)
            continue;
        if (at % HOOP_LINE || !hoop_direct_inside(comm->board, rank, at, table_bytes(comm->ranks)))
            return hoop_fail(HOOP_ERR_SETUP, "rank %d has no list of device memory for its peers", rank);
        lend->table[rank] = (struct table *)(void *)(comm->board->base + at);
    }
    return HOOP_OK;
}

void hoop_lend_free(struct hoop_lend *lend)
{
    if (lend == NULL)
        return;
    hoop_stream_destroy(lend->worker);
    if (lend->own)
        hoop_heap_give(lend->comm->heap, lend->own);
    pthread_mutex_destroy(&lend->lock);
    hoop_free(lend->table);
    hoop_free(lend->shift);
    hoop_free(lend->import);
    hoop_free(lend->offered);
    hoop_free(lend);
}

/* ---- what this rank offers ---- */

static bool any_peer(const struct hoop_lend *lend)
{
    for (int rank = 0; rank < lend->comm->ranks; rank++)
        if (lend->table[rank])
            return true;
    return false;
}

/* Under the lock. */
static int free_row(const struct hoop_lend *lend)
{
    for (int row = 0; row < ROWS; row++)
        if (lend->row[row].bytes == 0)
            return row;
    return -1;
}

int hoop_lend_offer(struct hoop_lend *lend, const void *memory, size_t bytes)
{
    struct hoop_cuda_export export;

    if (lend == NULL || !any_peer(lend) || hoop_cuda_export(lend->cuda, memory, &export) != HOOP_OK)
        return -1;
    pthread_mutex_lock(&lend->lock);
    const int row = free_row(lend);
    if (row >= 0) {
        struct offer *offer = &lend->own->offer[row];
        lend->row[row] = (struct row){hoop_cuda_address(memory), bytes};
        offer->export = export;
        atomic_fetch_add_explicit(&offer->state, 1, memory_order_release);
        atomic_fetch_add_explicit(&lend->own->offered, 1, memory_order_release);
    }
    pthread_mutex_unlock(&lend->lock);
    return row;
}

void hoop_lend_withdraw(struct hoop_lend *lend, int row)
{
    atomic_fetch_add(&lend->own->offer[row].state, 1); /* in one order with is_open and open_one */
    atomic_fetch_add_explicit(&lend->own->offered, 1, memory_order_release);
    atomic_store(&lend->news, true);
}

bool hoop_lend_is_open(const struct hoop_lend *lend, int row)
{
    const struct hoop_comm *comm = lend->comm;

    for (int rank = 0; rank < comm->ranks; rank++)
        if (lend->table[rank] && atomic_load(&lend->table[rank]->opening[comm->rank * ROWS + row].state) != 0)
            return true;
    return false;
}

void hoop_lend_vacate(struct hoop_lend *lend, int row)
{
    pthread_mutex_lock(&lend->lock);
    lend->row[row].bytes = 0;
    pthread_mutex_unlock(&lend->lock);
}

uint32_t hoop_lend_row(const struct hoop_lend *lend, const void *address)
{
    struct hoop_lend *own = (struct hoop_lend *)(uintptr_t)lend; /* only its lock */
    const uint64_t at = hoop_cuda_address(address);
    uint32_t found = 0;

    if (lend == NULL)
        return 0;
    pthread_mutex_lock(&own->lock);
    for (uint32_t row = 0; row < ROWS && found == 0; row++)
        if (at >= lend->row[row].base && at - lend->row[row].base < lend->row[row].bytes)
            found = row + 1;
    pthread_mutex_unlock(&own->lock);
    return found;
}

bool hoop_lend_has_news(const struct hoop_lend *lend)
{
    return lend && atomic_load(&lend->news);
}

/* ---- what peers offer: on the worker ---- */

static void set_opening(struct hoop_lend *lend, int at, uint64_t state)
{
    atomic_store(&lend->own->opening[at].state, state);
    atomic_fetch_add_explicit(&lend->own->opened, 1, memory_order_release);
}

static void close_one(struct hoop_lend *lend, int rank, int row)
{
    const int at = rank * ROWS + row;

    hoop_cuda_import_end(lend->cuda, lend->import[at]);
    lend->import[at] = 0;
    set_opening(lend, at, 0);
}

static void open_one(struct hoop_lend *lend, int rank, int row, uint64_t state)
{
    const struct offer *offer = &lend->table[rank]->offer[row];
    const int at = rank * ROWS + row;
    struct hoop_cuda_export export;

    atomic_store(&lend->own->opening[at].state, BUSY);
    bool open = atomic_load(&offer->state) == state;
    if (open) { /* and its owner leaves it as it is */
        memcpy(&export, &offer->export, sizeof export);
        open = hoop_cuda_import(lend->cuda, &export, &lend->import[at]) == HOOP_OK;
    }
    if (open) {
        lend->own->opening[at].address = lend->import[at];
        set_opening(lend, at, state);
        return;
    }
    atomic_store(&lend->own->opening[at].state, 0); /* it goes through slots, then */
    if (atomic_load(&offer->state) != state)
        set_opening(lend, at, 0); /* its owner may be waiting for that */
}

static void follow_offers(struct hoop_lend *lend, int rank)
{
    for (int row = 0; row < ROWS; row++) {
        const uint64_t state = atomic_load(&lend->closing)
                                   ? 0
                                   : atomic_load_explicit(&lend->table[rank]->offer[row].state, memory_order_acquire);
        const uint64_t opened = atomic_load(&lend->own->opening[rank * ROWS + row].state);
        if (opened == state)
            continue;
        if (opened != 0)
            close_one(lend, rank, row);
        if (state % 2 == 1)
            open_one(lend, rank, row, state);
    }
}

static enum hoop_status work(void *data)
{
    struct hoop_lend *lend = *(struct hoop_lend **)data;

    atomic_store(&lend->working, false);
    for (int rank = 0; rank < lend->comm->ranks; rank++)
        if (lend->table[rank])
            follow_offers(lend, rank);
    hoop_device_reap(lend->comm);
    return HOOP_OK;
}

static enum hoop_status give_work(struct hoop_lend *lend)
{
    struct hoop_lend **data = hoop_calloc(1, sizeof(struct hoop_lend *));

    if (data == NULL)
        return HOOP_ERR_MEMORY;
    *data = lend;
    const enum hoop_status status = hoop_stream_enqueue(lend->worker, work, data);
    if (status != HOOP_OK)
        hoop_free(data);
    return status;
}

void hoop_lend_look(struct hoop_lend *lend)
{
    bool any = false;

    if (lend == NULL)
        return;
    for (int rank = 0; rank < lend->comm->ranks; rank++) {
        if (lend->table[rank] == NULL)
            continue;
        const uint64_t offered = atomic_load_explicit(&lend->table[rank]->offered, memory_order_acquire),
                       opened = atomic_load_explicit(&lend->table[rank]->opened, memory_order_acquire);
        any |= offered != lend->offered[rank] || opened != lend->opened[rank];
        if (opened != lend->opened[rank])
            atomic_store(&lend->news, true);
        lend->offered[rank] = offered;
        lend->opened[rank] = opened;
    }
    if (any && !atomic_exchange(&lend->working, true) && give_work(lend) != HOOP_OK)
        atomic_store(&lend->working, false);
}

void hoop_lend_stop(struct hoop_lend *lend)
{
    if (lend == NULL)
        return;
    atomic_store(&lend->closing, true);
    const enum hoop_status status = give_work(lend);
    hoop_stream_synchronize(lend->worker);
    for (int rank = 0; status != HOOP_OK && rank < lend->comm->ranks; rank++)
        if (lend->table[rank])
            follow_offers(lend, rank);
}

/* ---- what peers have opened ---- */

/* What a peer has to add to addresses of the row's memory; all ones: it does not reach it. */
static uint64_t shift_of(const struct hoop_lend *lend, int row, int rank)
{
    const struct table *table = lend->table[rank];
    const uint64_t state = atomic_load(&lend->own->offer[row].state);
    const struct opening *opening = table ? &table->opening[lend->comm->rank * ROWS + row] : NULL;

    if (opening == NULL || state % 2 == 0 || atomic_load_explicit(&opening->state, memory_order_acquire) != state)
        return HOOP_DEVICE_NOT_SEEN;
    return opening->address - lend->row[row].base;
}

enum hoop_status hoop_lend_tell(struct hoop_lend *lend, struct hoop_cuda_exec *exec, hoop_cu_stream stream)
{
    enum hoop_status status = HOOP_OK;

    if (lend == NULL || !atomic_exchange(&lend->news, false))
        return HOOP_OK;
    pthread_mutex_lock(&lend->lock);
    for (int row = 0; row < ROWS && status == HOOP_OK; row++) {
        uint64_t *shift = &lend->shift[row * lend->comm->ranks];
        bool changed = false;
        for (int rank = 0; rank < lend->comm->ranks; rank++) {
            const uint64_t now = shift_of(lend, row, rank);
            changed |= shift[rank] != now;
            shift[rank] = now;
        }
        if (changed)
            status = hoop_cuda_exec_view(exec, row, shift, stream);
    }
    pthread_mutex_unlock(&lend->lock);
    return status;
}
