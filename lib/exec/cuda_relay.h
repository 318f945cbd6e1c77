// SPDX-License-Identifier: BSD-3-Clause
/* Links of kernels to ranks on other hosts.
 *
 * A kernel knows nothing of networks. To it such a link is like any other, but both landing areas are pinned memory of this host: the one
 * that it writes to, as if that were the peer's, and the one that it reads. A thread, the relay, stands where the peer would: it takes what
 * the kernel has written, sends it by a link of the network and gives the slot back as soon as that has let go of it; and it puts what
 * comes from the network, by the peer's relay, into the slots that the kernel reads. So the steps of one plan that go over the network and those
 * that stay on the host are pipelined in one launch, and everything that a launch may wait for is a word of memory.
 *
 *     kernel -> out slots -> relay -> network -> relay -> in slots -> kernel
 *
 * Each frame is two of the network: a head, which has the header that the kernel wrote and how many bytes come, and the bytes, straight
 * from a slot into a slot. Credit goes hop by hop, so a lane whose kernel does not take anything holds up no other lane.
 *
 * The relay goes by the kernels' counters alone. It need not know of launches, so what a graph replays is carried like anything else. It
 * calls nothing of CUDA, takes no lock that a caller holds, and never waits for one thing only; so no kernel that waits for it waits for
 * ever. It looks often while kernels run, and for some time after a launch or the last frame; else once a millisecond, since nothing
 * tells it that a graph is replayed.
 *
 * It is made as transports are (hoop/transport.h), one domain a rank; addresses are those of the network's domain. A link of the network
 * is made when somebody asks for it (hoop_relay_want), since most pairs and lanes have none.
 *
 * Threads: one at a time, but for want and wake, which any may call.
 */
#ifndef HOOP_EXEC_CUDA_RELAY_H
#define HOOP_EXEC_CUDA_RELAY_H

#include "exec/device/program.h"
#include "hoop/transport.h"
#include "mem/cuda.h"

/* No probe, cost, or anything that moves frames from the host. */
extern const struct hoop_transport hoop_relay_links;

/* Slots and bytes of a frame that the network's links need. */
enum { HOOP_RELAY_FRAME = 64 };
static inline int hoop_relay_slots(int slots)
{
    return 2 * slots;
}

/* Context of open. */
struct hoop_relay_place {
    struct hoop_cuda *cuda;
    struct hoop_domain *network; /* the caller's again if open fails */
    const bool *with;            /* by rank: links to it will be made */
};

/* A peer is needed, and its link has ended: called once for each link, on the relay's thread, which has nothing to do then. status: of
 * the link. */
typedef void (*hoop_relay_lost)(void *context, int peer, enum hoop_status status);

/* All links are made: begin to carry frames. report: of the kernels; it and context outlive stop.   Errors: HOOP_ERR_SYSTEM. */
enum hoop_status hoop_relay_start(struct hoop_domain *domain, const struct hoop_device_report *report,
                                  hoop_relay_lost lost, void *context);

/* A launch will use the link to that peer and lane. Never blocks.   Threads: any. */
void hoop_relay_want(struct hoop_domain *domain, int peer, int lane);

/* Wake the relay for a launch that has been given to a stream. Never blocks. */
void hoop_relay_wake(struct hoop_domain *domain);

/* Has everything that kernels had written when hoop_relay_round returned `since` left this process? */
uint64_t hoop_relay_round(const struct hoop_domain *domain);
bool hoop_relay_idle(const struct hoop_domain *domain, uint64_t since);

/* Does the thread carry frames? */
bool hoop_relay_runs(const struct hoop_domain *domain);

/* End the thread. Nothing is waited for but what it is doing. */
void hoop_relay_stop(struct hoop_domain *domain);

#endif
