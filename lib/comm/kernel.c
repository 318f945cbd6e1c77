// SPDX-License-Identifier: BSD-3-Clause
/* What stands behind calls that run as kernels (kernel_call.c): the code, the links, and someone who watches.
 *
 * A kernel that waits knows nothing of processes. So a thread looks for it, as long as the communicator lives: a verdict that stands, or
 * a peer that is dead, reaches the kernels through their abort flag, and what a kernel reports becomes the verdict. Where kernels
 * stand still it reports who is late, as whoever waits on the host does for itself.
 */
#include "comm/kernel.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "comm/device.h"
#include "comm/device_relay.h"
#include "comm/lend.h"
#include "health/monitor.h"
#include "health/verdict.h"

/* PATIENCE: that kernels, and living peers, have to let go of lent memory after a failure. */
enum { LOOK_US = 2000, DRAIN_SECONDS = 30, PATIENCE_SECONDS = 1 };

/* ---- watching ---- */

enum hoop_status hoop_kernels_pair(const struct hoop_kernels *kernels)
{
    const int rank = kernels->comm->rank;
    struct hoop_program_pair pair;

    if (!hoop_program_pair(kernels->report, &pair))
        return HOOP_OK;
    const char *sent = hoop_type_name((enum hoop_type)(pair.sent_shape & 0xffff)),
               *expected = hoop_type_name((enum hoop_type)(pair.expected_shape & 0xffff));
    const uint32_t place = pair.sent_shape & HOOP_DEVICE_PLACES;
    if ((pair.expected_shape & HOOP_DEVICE_PLACES) == 0 && place == 0)
        return hoop_fail(HOOP_ERR_MISMATCH, "mismatch: rank %d sends %llu %s where rank %d receives %llu %s", pair.peer,
                         (unsigned long long)pair.sent, sent, rank, (unsigned long long)pair.expected, expected);
    if (pair.sent == pair.expected)
        return hoop_fail(
            HOOP_ERR_MISMATCH, "all_to_allv: rank %d calls in place, rank %d does not; all ranks must alike",
            place == HOOP_DEVICE_IN_PLACE ? pair.peer : rank, place == HOOP_DEVICE_IN_PLACE ? rank : pair.peer);
    return hoop_fail(
        HOOP_ERR_MISMATCH,
        "all_to_allv: rank %d sends %llu %s to rank %d, which expects %llu from it; compare send_counts[%d] "
        "of the one with recv_counts[%d] of the other",
        pair.peer, (unsigned long long)pair.sent, sent, rank, (unsigned long long)pair.expected, rank, pair.peer);
}

/* What a kernel reports is what all get as the verdict. */
void hoop_kernels_look(const struct hoop_kernels *kernels)
{
    const struct hoop_comm *comm = kernels->comm;
    struct hoop_program_pair pair;
    int peer = comm->rank;

    const enum hoop_status status = hoop_program_verdict(kernels->report, &peer);
    if (status == HOOP_ERR_MISMATCH && !hoop_verdict_stands(comm->board)) {
        const int a = peer < comm->rank ? peer : comm->rank, b = peer < comm->rank ? comm->rank : peer;
        const struct hoop_verdict calls = {HOOP_VERDICT_MISMATCH, a, b, (unsigned)hoop_program_begun(kernels->report)},
                                  messages = {HOOP_VERDICT_PAIR, peer, comm->rank, 0};
        hoop_verdict_pass(comm->board, hoop_program_pair(kernels->report, &pair) ? messages : calls);
    }
}

/* Kernels that stand still wait as long as a call on the host would. */
static void look_for_late(struct hoop_kernels *kernels)
{
    struct hoop_comm *comm = kernels->comm;
    struct hoop_wait *wait = &kernels->wait;
    uint64_t call;
    char text[400];

    atomic_store(&hoop_board_card(comm->board, comm->rank)->begun, hoop_program_begun(kernels->report));
    const uint64_t stands = hoop_program_standstill(kernels->report, &call);
    if (stands == 0 || stands != kernels->seen) {
        hoop_wait_begin(wait, call);
        kernels->seen = stands;
        return;
    }
    const bool first = wait->begun == 0;
    const uint64_t report = wait->next_report;
    hoop_wait_look(wait);
    if (!first && wait->next_report != report && hoop_program_waits(kernels->report, text, sizeof text) > 0)
        hoop_log(HOOP_LOG_WARN, comm->rank, "on device %d %s", kernels->cuda->device.ordinal, text);
}

/* Make the kernels that run end, and let no others begin; then tell the peers that nothing of theirs is touched any more. What waits in
 * a stream for its turn finds the flag before it reads what was lent. */
static void give_up(struct hoop_kernels *kernels)
{
    struct hoop_comm *comm = kernels->comm;
    const uint64_t deadline = hoop_deadline(PATIENCE_SECONDS);

    hoop_cuda_exec_abort(kernels->exec);
    pthread_mutex_lock(&kernels->gate);
    kernels->closed = true;
    pthread_mutex_unlock(&kernels->gate);
    do
        usleep(500); /* also, whoever began before it could see the flag has said so by then */
    while (hoop_program_runs(kernels->report) && !hoop_expired(deadline));
    atomic_store_explicit(&hoop_board_card(comm->board, comm->rank)->let_go, 1, memory_order_release);
    hoop_comm_condemned(comm);
}

void hoop_kernels_let_go(const struct hoop_kernels *kernels)
{
    const uint64_t deadline = hoop_deadline(PATIENCE_SECONDS);

    if (kernels == NULL || !kernels->watched)
        return;
    const struct hoop_board *board = kernels->comm->board;
    for (int rank = 0; rank < board->shape.ranks; rank++)
        while (kernels->comm->hosts.of[rank] == kernels->comm->hosts.own && /* others are lent nothing */
               atomic_load_explicit(&hoop_board_card(board, rank)->let_go, memory_order_acquire) == 0 &&
               (rank == board->rank || !hoop_health_gone(board, rank)) && !hoop_expired(deadline))
            usleep(100);
}

static void *watch(void *argument)
{
    struct hoop_kernels *kernels = argument;

    while (!atomic_load(&kernels->closing)) {
        hoop_kernels_look(kernels);
        hoop_health_look(kernels->comm->board, 0);
        look_for_late(kernels);
        hoop_lend_look(kernels->comm->device->lend);
        if (hoop_verdict_stands(kernels->comm->board)) {
            give_up(kernels);
            return NULL;
        }
        usleep(LOOK_US);
    }
    return NULL;
}

/* ---- making ---- */

/* Where there is no room for the lanes of all channels kernels have fewer of them. */
static enum hoop_status count_channels(struct hoop_kernels *kernels)
{
    const int lanes = hoop_cuda_exec_lanes(kernels->exec);

    if (lanes < HOOP_LANES_A_CHANNEL)
        return hoop_fail(
            HOOP_ERR_UNSUPPORTED,
            "device %d has room for %d more lanes beside those of this process's other communicators, and a "
            "plan may have %d",
            kernels->cuda->device.ordinal, lanes, HOOP_LANES_A_CHANNEL);
    hoop_kernels_set_channels(kernels, lanes / HOOP_LANES_A_CHANNEL);
    return HOOP_OK;
}

void hoop_kernels_set_channels(struct hoop_kernels *kernels, int channels)
{
    kernels->comm->device->channels = channels;
    hoop_cuda_exec_set_lanes(kernels->exec, channels * HOOP_LANES_A_CHANNEL);
}

enum hoop_status hoop_kernels_new(struct hoop_comm *comm)
{
    struct hoop_kernels *new = hoop_calloc(1, sizeof *new);
    const int lanes = comm->lanes - 1; /* as many as a plan may have */

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->comm = comm;
    new->cuda = comm->device->cuda;
    hoop_wait_init(&new->wait, comm->board, 0, true, hoop_setting_number(&comm->settings, HOOP_SETTING_LATE),
                   hoop_setting_number(&comm->settings, HOOP_SETTING_TIMEOUT));
    new->wait.kernels = true;
    pthread_mutex_init(&new->gate, NULL);
    enum hoop_status status = hoop_cuda_exec_new(&new->exec, new->cuda, comm->ranks, lanes);
    if (status == HOOP_OK) {
        new->report = hoop_cuda_exec_report(new->exec);
        status = count_channels(new);
    }
    if (status == HOOP_OK)
        status = hoop_cuda_event_create(new->cuda, &new->before);
    if (status == HOOP_OK)
        status = hoop_cuda_event_create(new->cuda, &new->ended);
    if (status != HOOP_OK) {
        hoop_kernels_free(new);
        return status;
    }
    comm->device->kernels = new;
    return HOOP_OK;
}

static enum hoop_status connect_all(struct hoop_kernels *kernels)
{
    const struct hoop_comm *comm = kernels->comm;
    const int lanes = hoop_device_lanes(comm);
    enum hoop_status status = HOOP_OK;

    for (int peer = 0; peer < comm->ranks; peer++)
        for (int lane = 0; lane < lanes && peer != comm->rank && status == HOOP_OK; lane++) {
            struct hoop_link *link = comm->device->links[peer * lanes + lane];
            struct hoop_device_link ends;
            status = link->transport->device(link, &ends);
            if (status == HOOP_OK)
                status = hoop_cuda_exec_connect(kernels->exec, peer, lane, &ends);
        }
    return status;
}

enum hoop_status hoop_kernels_start(struct hoop_comm *comm)
{
    struct hoop_kernels *kernels = comm->device->kernels;
    sigset_t all, old;

    const enum hoop_status status = connect_all(kernels);
    if (status != HOOP_OK)
        return status;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    kernels->watched = true; /* before there is a thread that looks at it */
    if (pthread_create(&kernels->watch, NULL, watch, kernels) != 0)
        kernels->watched = false;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return kernels->watched ? hoop_device_relay_start(comm)
                            : hoop_fail(HOOP_ERR_SYSTEM, "cannot start the thread that watches kernels");
}

void hoop_kernels_drain(struct hoop_kernels *kernels)
{
    const uint64_t deadline = hoop_deadline(DRAIN_SECONDS);

    if (kernels == NULL)
        return;
    for (;;) {
        if (kernels->comm->error !=
            HOOP_OK) /* also if the event is over: a kernel may run behind which none could be recorded */
            hoop_cuda_exec_abort(kernels->exec);
        if (hoop_cuda_event_query(kernels->cuda, kernels->ended) != HOOP_AGAIN || hoop_expired(deadline))
            break;
        usleep(100);
    }
    hoop_kernels_look(kernels);
}

void hoop_kernels_free(struct hoop_kernels *kernels)
{
    if (kernels == NULL)
        return;
    if (kernels->ended)
        hoop_kernels_drain(kernels);
    hoop_device_relay_stop(kernels->comm);
    atomic_store(&kernels->closing, true);
    if (kernels->watched)
        pthread_join(kernels->watch, NULL);
    hoop_cuda_exec_free(kernels->exec);
    if (kernels->before)
        hoop_cuda_event_destroy(kernels->cuda, kernels->before);
    if (kernels->ended)
        hoop_cuda_event_destroy(kernels->cuda, kernels->ended);
    pthread_mutex_destroy(&kernels->gate);
    hoop_free(kernels);
}
