// SPDX-License-Identifier: BSD-3-Clause
/* Inside of the shared-memory transport: its link and domain, and the entries of the vtable that work on a link. */
#ifndef HOOP_TRANSPORTS_SHM_LINK_H
#define HOOP_TRANSPORTS_SHM_LINK_H

#include "hoop/transport.h"
#include "mem/board.h"
#include "mem/ring.h"

struct shm_pending {
    void *data;
    size_t bytes;
    uint64_t tag;
};

struct shm_link {
    struct hoop_link head;
    struct hoop_ring_producer out;
    struct hoop_ring_consumer in;
    struct hoop_board *board;
    struct hoop_bell *bell; /* the peer's */
    size_t reserved;        /* bytes of the frame that is being filled, SIZE_MAX: none */
    enum { SHOWN_NOTHING, SHOWN_SLOT, SHOWN_DIRECT } shown; /* by peek */
    bool lending;
    uint32_t lent; /* sequence of the last frame that was lent */
    bool is_busy;
    struct shm_link *next, **back; /* in the domain's busy list */
    uint32_t first, count;         /* of the pending receives, a circle of `slots` */
    struct shm_pending pending[];
};

struct shm_domain {
    struct hoop_domain head;
    struct hoop_board *board;
    struct shm_link *busy;
    uint64_t device, inode; /* of the segment: who shares it sees the same */
    size_t frame;
    int slots, lanes;
    struct shm_link *links[]; /* [peer][lane] */
};

enum hoop_status shm_send(struct hoop_link *head, const void *data, size_t bytes, uint64_t tag, unsigned flags);
enum hoop_status shm_recv(struct hoop_link *head, void *data, size_t bytes, uint64_t tag);
enum hoop_status shm_reserve(struct hoop_link *head, size_t bytes, void **data);
enum hoop_status shm_commit(struct hoop_link *head, size_t bytes, uint64_t tag);
enum hoop_status shm_peek(struct hoop_link *head, size_t bytes, uint64_t tag, const void **data);
enum hoop_status shm_release(struct hoop_link *head);
enum hoop_status shm_progress(struct hoop_domain *head);

/* Take the link out of everything, tell the peer that this end is gone, and free it. */
void shm_disconnect(struct hoop_link *head);

#endif
