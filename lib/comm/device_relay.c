// SPDX-License-Identifier: BSD-3-Clause
/* The relay of a communicator (exec/cuda_relay.c): the network that it goes by, which of its links launches need, and what it means when
 * one ends.
 *
 * It has a domain of the network to itself, since a domain is one thread's. */
#include "comm/device_relay.h"

#include <unistd.h>

#include "base/clock.h"
#include "comm/device.h"
#include "comm/kernel.h"
#include "health/verdict.h"

enum { PAUSE_US = 200 };

enum hoop_status hoop_device_relay_open(struct hoop_comm *comm, const struct hoop_unique_id *id, const bool *with,
                                        const struct hoop_domain_setup *setup, struct hoop_domain **domain)
{
    struct hoop_relay_place place = {.cuda = comm->device->cuda, .with = with};
    struct hoop_domain_setup shape = *setup;

    shape.slots = hoop_relay_slots(setup->slots);
    shape.frame = setup->frame > HOOP_RELAY_FRAME ? setup->frame : HOOP_RELAY_FRAME;
    enum hoop_status status = hoop_hosts_open_network(comm, id, "relay", false, &shape, &place.network);
    if (status != HOOP_OK)
        return status;
    shape = *setup;
    shape.context = &place;
    status = hoop_relay_links.open(&shape, domain);
    if (status == HOOP_OK)
        comm->device->relay = *domain;
    else
        place.network->transport->close(place.network);
    return status;
}

/* A hoop_relay_lost. */
static void lost(void *context, int peer, enum hoop_status status)
{
    struct hoop_comm *comm = context;
    const uint64_t sequence = hoop_program_begun(comm->device->kernels->report);

    if (hoop_verdict_stands(comm->board))
        return;
    if (status == HOOP_ERR_PEER) {
        hoop_comm_lost(comm, peer, sequence);
        return;
    }
    hoop_verdict_pass(comm->board, (struct hoop_verdict){HOOP_VERDICT_FAILED, comm->rank, peer, (unsigned)sequence});
    hoop_comm_failed(comm, status);
}

enum hoop_status hoop_device_relay_start(struct hoop_comm *comm)
{
    const struct hoop_comm_device *device = comm->device;

    return device->relay ? hoop_relay_start(device->relay, device->kernels->report, lost, comm) : HOOP_OK;
}

static bool is_far(const struct hoop_comm *comm, int rank)
{
    return comm->hosts.of[rank] != comm->hosts.own;
}

void hoop_device_relay_want(const struct hoop_comm *comm, const struct hoop_plan *plan)
{
    struct hoop_domain *relay = comm->device->relay;

    if (relay == NULL)
        return;
    for (uint32_t l = 0; l < plan->lanes; l++)
        for (uint32_t s = 0; s < plan->lane[l].steps; s++) {
            const struct hoop_step *step = &plan->lane[l].step[s];
            if (step->kind >= HOOP_STEP_SEND && step->kind <= HOOP_STEP_RECV_REDUCE && is_far(comm, step->peer))
                hoop_relay_want(relay, step->peer, (int)l);
        }
    hoop_relay_wake(relay);
}

void hoop_device_relay_want_all(const struct hoop_comm *comm, int lanes)
{
    struct hoop_domain *relay = comm->device->relay;

    if (relay == NULL)
        return;
    for (int rank = 0; rank < comm->ranks; rank++)
        for (int lane = 0; lane < lanes && is_far(comm, rank); lane++)
            hoop_relay_want(relay, rank, lane);
    hoop_relay_wake(relay);
}

void hoop_device_relay_stop(struct hoop_comm *comm)
{
    struct hoop_domain *relay = comm->device->relay;
    const uint64_t deadline = hoop_deadline(hoop_setting_number(&comm->settings, HOOP_SETTING_TIMEOUT));

    if (relay == NULL)
        return;
    const uint64_t since = hoop_relay_round(relay);
    hoop_relay_wake(relay);
    while (hoop_relay_runs(relay) && !hoop_relay_idle(relay, since) && comm->error == HOOP_OK &&
           !hoop_verdict_stands(comm->board) && !hoop_expired(deadline)) {
        hoop_health_look(comm->board, 0);
        usleep(PAUSE_US);
    }
    hoop_relay_stop(relay);
}
