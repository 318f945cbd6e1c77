// SPDX-License-Identifier: BSD-3-Clause
/* What a communicator that has failed leaves on the device.
 *
 * Kernels of peers write into this rank's landing areas, and read what was lent to them. When all goes well, ranks part: none frees what
 * another has open. After a failure nobody can be waited for, and a rank that lives may come to the end of its communicator late or never. So what
 * it can reach is buried with the board, on which it shows that it has left, and freed when all peers have left or died: at
 * the end of this or another communicator of the process, or when one is made.
 */
#include "comm/device_grave.h"

#include <pthread.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/device.h"
#include "comm/device_meet.h"
#include "health/monitor.h"

/* Seconds. PATIENCE: that peers have to come to their end. DYING: a process is known to be dead before the kernel has taken down what it
 * had mapped, and the driver what it had open. */
enum { PATIENCE = 1, DYING = 2 };

/* Where a rank is; those of other hosts reach nothing here. */
enum where { THIS_PROCESS, OTHER_PROCESS, OTHER_HOST };

struct grave {
    struct grave *next;
    pid_t process; /* a forked child cannot free it */
    bool ready;    /* the communicator has come to its end, and uses the board no more */
    struct hoop_cuda *cuda;
    struct hoop_board *board;
    struct hoop_domain *domain[HOOP_DEVICE_PATHS];
    struct hoop_device_buffer *buffers;
    uint64_t quiet;        /* when all had gone, some of them dead; 0: not yet */
    unsigned char where[]; /* by rank */
};

static struct grave *graves;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum hoop_status hoop_device_bury(struct hoop_comm *comm)
{
    struct hoop_comm_device *device = comm->device;
    struct grave *new = hoop_calloc(1, sizeof *new + (size_t)comm->ranks * sizeof *new->where);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->process = getpid();
    new->cuda = device->cuda;
    new->board = comm->board;
    new->buffers = device->leaving;
    for (int i = 0; i < HOOP_DEVICE_PATHS; i++) {
        new->domain[i] = device->domain[i];
        device->domain[i] = NULL;
    }
    for (int rank = 0; rank < comm->ranks; rank++)
        new->where[rank] = comm->hosts.of[rank] != comm->hosts.own                                      ? OTHER_HOST
                           : hoop_device_same_process(&comm->devices[rank], &comm->devices[comm->rank]) ? THIS_PROCESS
                                                                                                        : OTHER_PROCESS;
    comm->board = NULL;
    device->cuda = NULL;
    device->leaving = NULL;
    pthread_mutex_lock(&lock);
    new->next = graves;
    graves = new;
    pthread_mutex_unlock(&lock);
    return HOOP_OK;
}

static void clear(struct grave *grave)
{
    for (int i = 0; i < HOOP_DEVICE_PATHS; i++)
        if (grave->domain[i])
            grave->domain[i]->transport->close(grave->domain[i]);
    while (grave->buffers) {
        struct hoop_device_buffer *buffer = grave->buffers;
        grave->buffers = buffer->next;
        hoop_cuda_free(grave->cuda, buffer->address);
        hoop_free(buffer);
    }
    hoop_cuda_close(grave->cuda);
    hoop_board_close(grave->board);
    hoop_free(grave);
}

/* Are there peers on this host, in so distant a place at least, that have not come to their end? A lone thread may be all ranks of this
 * process. */
static bool awaits(const struct grave *grave, enum where least)
{
    for (int rank = 0; rank < grave->board->shape.ranks; rank++)
        if (rank != grave->board->rank && grave->where[rank] >= least && grave->where[rank] != OTHER_HOST &&
            !hoop_health_gone(grave->board, rank))
            return true;
    return false;
}

/* Under the lock: is nothing touched any more? */
static bool is_quiet(struct grave *grave)
{
    bool dead = false;

    if (!grave->ready || awaits(grave, THIS_PROCESS))
        return false;
    for (int rank = 0; rank < grave->board->shape.ranks; rank++)
        dead |= grave->where[rank] != OTHER_HOST &&
                atomic_load(&hoop_board_card(grave->board, rank)->life) != HOOP_LIFE_LEFT;
    if (grave->quiet == 0)
        grave->quiet = hoop_now();
    return !dead || hoop_now() - grave->quiet > (uint64_t)DYING * 1000000000;
}

/* Take the graves that can be cleared out of the list; is something left that `own` waits for? */
static bool look(const struct hoop_board *own, struct grave **over)
{
    bool wait = false;

    pthread_mutex_lock(&lock);
    for (struct grave **one = &graves; *one;) {
        struct grave *grave = *one;
        grave->ready |= grave->board == own;
        if (grave->process != getpid() || !is_quiet(grave)) {
            wait |= grave->board == own && awaits(grave, OTHER_PROCESS);
            one = &grave->next;
            continue;
        }
        *one = grave->next;
        grave->next = *over;
        *over = grave;
    }
    pthread_mutex_unlock(&lock);
    return wait;
}

void hoop_device_graves_look(const struct hoop_board *own)
{
    const uint64_t deadline = hoop_deadline(PATIENCE);
    struct grave *over = NULL;

    while (look(own, &over) && !hoop_expired(deadline))
        usleep(1000);
    while (over) {
        struct grave *grave = over;
        over = grave->next;
        clear(grave);
    }
}
