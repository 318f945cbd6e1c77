// SPDX-License-Identifier: BSD-3-Clause
/* Transports: how bytes get from one rank to another.
 *
 * A transport is a table of functions (struct hoop_transport) that opens a *domain*, one rank's end of it in one
 * communicator, and makes *links*, each a pair of FIFOs (out and in) to one peer for one lane. Nothing here blocks,
 * and nothing calls back: the executor polls.
 *
 * Completion is a counter, since a link is FIFO: the k-th accepted send (or receive) is complete when
 * link->sent_done (link->received_done) has reached k. After an operation has completed, also with the link's death,
 * the transport touches none of its memory.
 *
 * A link dies once, for one reason, which its status keeps and the error text explains. Whoever finds the reason tells
 * the peer, so both ends report the same. The death shows in operations that start or wait; a link that nobody uses
 * need not notice. Frames sent before the sender left still arrive, except those that were lent (see send), and unless
 * something that waits for the sender, such as a loan to it, finds the link dead first.
 *
 * A frame carries the sender's tag (the fingerprint of its call). The receiver names the tag that it expects; a
 * difference is HOOP_ERR_MISMATCH before any data is used.
 *
 * Two ways to move a frame: send/recv copy for any memory; and where the transport keeps its frames in
 * memory (slots, mapped peers) reserve/commit and peek/release let the executor compute straight into and out of them.
 */
#ifndef HOOP_TRANSPORT_H
#define HOOP_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hoop.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOOP_ADDRESS_MAX = 256 }; /* bytes of a transport's address blob */

/* Flags of send. */
enum { HOOP_SEND_STAGED = 1 }; /* the source must be free again on return, whatever sent_done says */

struct hoop_transport;

/* Head of every transport's domain. A domain and its links are used by one thread at a time. */
struct hoop_domain {
    const struct hoop_transport *transport;
    int rank, ranks;
};

/* Head of every transport's link. The executor reads it; only the transport writes it. */
struct hoop_link {
    const struct hoop_transport *transport;
    struct hoop_domain *domain;
    int peer, lane;
    size_t frame;             /* most bytes of one frame */
    bool lands;               /* moves data by copying, so recv and send beat peek and reserve: one copy less */
    enum hoop_status status;  /* HOOP_OK, or why the link is dead (set once, before the operations complete) */
    uint64_t sent, sent_done; /* sends accepted, complete */
    uint64_t received, received_done;
};

/* The two FIFOs of a link in memory that kernels of both ranks' devices reach, as this rank's kernels see it: addresses in its
 * context. Each rank has a landing area for what comes in, of hoop_device_landing(frame, slots) bytes, and two counters of
 * 64 bits. Areas are aligned to 64 bytes, counters to 8 and best on cache lines of their own; all of it is 0 when the link is made.
 * A counter lives with the one who polls it and has one writer, who uses plain stores, so nothing needs atomics across devices.
 * Frames, counters and their numbers belong to the device code from then on (lib/exec/device/program.h). */
struct hoop_device_link {
    uint64_t out_frames; /* the peer's landing area: we write frames */
    uint64_t out_head;   /* with the peer: we write how many have been sent */
    uint64_t out_taken;  /* here: the peer writes how many of them it has taken */
    uint64_t in_frames;  /* our landing area: the peer writes, we read */
    uint64_t in_head;    /* here: the peer writes how many it has sent */
    uint64_t in_taken;   /* with the peer: we write how many of them we have taken */
    uint32_t frame;      /* most bytes of one frame, a multiple of 16; equal at both ends, as slots */
    uint32_t slots;      /* frames that the landing area holds, 2 or more */
    bool direct;         /* addresses of the peer's buffers are valid here, and ours there */
    bool relayed; /* all of it is memory of this host, whence a thread carries frames on (lib/exec/cuda_relay.h) */
};

enum {
    HOOP_DEVICE_HEADER = 64, /* bytes before each frame */
    HOOP_DEVICE_SMALL = 4096 /* most bytes of a frame that may come in words which carry their own flags */
};

/* Bytes of one slot of a landing area: a header, room for a frame wherever in 16 bytes it begins, and again room for a small one in
 * which half of the words are flags. */
static inline uint64_t hoop_device_slot(uint32_t frame)
{
    const uint64_t small = frame < (uint32_t)HOOP_DEVICE_SMALL ? frame : (uint32_t)HOOP_DEVICE_SMALL;

    return (HOOP_DEVICE_HEADER + (uint64_t)frame + 16 + 2 * (small + 16) + 63) / 64 * 64;
}

/* Bytes of a landing area. */
static inline uint64_t hoop_device_landing(uint32_t frame, uint32_t slots)
{
    return slots * hoop_device_slot(frame);
}

/* What open gets. */
struct hoop_domain_setup {
    int rank, ranks;
    int lanes;    /* lanes 0 … lanes - 1 may be connected */
    size_t frame; /* most bytes of one frame */
    int slots;    /* frames that may be under way per link and direction, 2 or more */
    void *
        context; /* the transport's own: shm: struct hoop_board *, sim: struct hoop_sim *, tcp: struct hoop_tcp_setup *; self: NULL */
};

struct hoop_transport_cost {
    bool reachable;
    double gigabytes_per_second; /* 10^9 bytes; 0: unknown */
    double nanoseconds;          /* of one empty frame; 0: unknown */
};

struct hoop_transport {
    size_t size; /* of this struct */
    const char *name;

    /* Does this machine have what the transport needs?
     * Returns HOOP_OK, or HOOP_ERR_UNSUPPORTED with the reason in the thread's last error.  Never blocks. */
    enum hoop_status (*probe)(void);

    /* Open one rank's end. On success *domain is owned by the caller until close.
     * Errors: HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM, HOOP_ERR_ARG.  Never blocks. */
    enum hoop_status (*open)(const struct hoop_domain_setup *setup, struct hoop_domain **domain);

    /* Free the domain; its links must have been disconnected.  Never blocks, cannot fail. */
    void (*close)(struct hoop_domain *domain);

    /* Write this end's address: at most HOOP_ADDRESS_MAX bytes; *size receives how many.
     * Errors: none that a caller could mend (HOOP_ERR_INTERNAL). */
    enum hoop_status (*address)(struct hoop_domain *domain, unsigned char *blob, size_t *size);

    /* Judge a peer by its address. A malformed blob is HOOP_ERR_ARG, never a crash.  Never blocks. */
    enum hoop_status (*cost)(struct hoop_domain *domain, const unsigned char *blob, size_t size,
                             struct hoop_transport_cost *cost);

    /* Make the link to (peer, lane), both directions. Both ends connect, in any order, and may connect again once both
     * have disconnected and know it of each other. blob: the peer's address; NULL where it is known to be one of this
     * transport (self, shm, sim). Returns HOOP_OK (link usable at once; frames may be sent before the peer has
     * connected), HOOP_ERR_ARG (bad blob or numbers, or connected already), HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM.
     * Never blocks. */
    enum hoop_status (*connect)(struct hoop_domain *domain, int peer, int lane, const unsigned char *blob, size_t size,
                                struct hoop_link **link);

    /* Drop and free the link. All accepted operations count as complete and no caller memory is written afterwards; a
     * peer that waits learns it as HOOP_ERR_PEER, and one that was reading lent memory gets that instead of the data.
     * Legal in any state.  Never blocks. */
    void (*disconnect)(struct hoop_link *link);

    /* Accept one frame of 0 … link->frame bytes, or nothing.
     * Returns HOOP_OK (taken whole; the bytes belong to the caller again when sent_done reaches the new value of sent:
     * until then they may be lent, and the peer reads them where they are), HOOP_AGAIN (nothing taken: no room; call
     * again after progress), HOOP_ERR_ARG (more than link->frame; nothing taken) or the link's error.
     * With HOOP_SEND_STAGED the bytes are free on return; sent_done may lag behind while an older send is still lent.
     * Never blocks. */
    enum hoop_status (*send)(struct hoop_link *link, const void *data, size_t bytes, uint64_t tag, unsigned flags);

    /* Accept one receive of exactly `bytes` into data. As send; the data is there when received_done reaches the new
     * value of received and the link is not dead. A frame of another tag kills the link, at both ends, with
     * HOOP_ERR_MISMATCH, one of another size with HOOP_ERR_INTERNAL; data is not written then.  Never blocks. */
    enum hoop_status (*recv)(struct hoop_link *link, void *data, size_t bytes, uint64_t tag);

    /* Move accepted operations on. Returns HOOP_OK if anything completed, also by a link's death, HOOP_AGAIN if not.
     * Link deaths show in link->status.  Never blocks. */
    enum hoop_status (*progress)(struct hoop_domain *domain);

    /* Optional (all four or none; NULL: not there). peek may not be mixed with an unfinished recv.
     * reserve: room for one frame of `bytes`, aligned to 16, to be filled by the caller; HOOP_AGAIN if there is none.
     *     May be repeated; the last one counts, and is void once something else is sent.
     * commit: send the first `bytes` of what was reserved; complete at once, as a staged send.
     * peek: the next frame where it lies, if it has come; it stays there until release. Checks size and tag as recv
     *     does. May be repeated. What it shows may be the peer's own memory: read each value once.
     * release: give it back; counts as one receive. An error says that the data seen since peek is not to be trusted.
     * Errors as send and recv.  None blocks. */
    enum hoop_status (*reserve)(struct hoop_link *link, size_t bytes, void **data);
    enum hoop_status (*commit)(struct hoop_link *link, size_t bytes, uint64_t tag);
    enum hoop_status (*peek)(struct hoop_link *link, size_t bytes, uint64_t tag, const void **data);
    enum hoop_status (*release)(struct hoop_link *link);

    /* Optional (NULL: nothing is ever held back). Has everything that was accepted left this process's own memory, so that it arrives
     * though nobody calls progress any more? HOOP_OK, or HOOP_AGAIN (call again after progress). What dead links held does not
     * count.  Never blocks. */
    enum hoop_status (*flush)(struct hoop_domain *domain);

    /* Optional (NULL: peers ring the bell of the shared memory). A descriptor to sleep on: readable when progress has something to
     * do. It stays the domain's.  Never blocks, cannot fail. */
    int (*descriptor)(struct hoop_domain *domain);

    /* Optional (NULL: not there). Where the link's FIFOs for kernels are. The link then serves kernels only: none of the calls above that
     * move frames is made for it.
     * Errors: HOOP_ERR_UNSUPPORTED (this link has none: says why).  Never blocks. */
    enum hoop_status (*device)(struct hoop_link *link, struct hoop_device_link *ends);

    /* One line for people about a link ("shm ring 0 -> 1, lane 0, 4 slots of 128 KiB").  Always ends with NUL. */
    void (*describe)(const struct hoop_link *link, char *text, size_t size);
};

/* Entry i of the list of transports of this build, NULL past the end; *help (may be NULL) receives what it is for.
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const struct hoop_transport *hoop_transport_get(int i, const char **help);

#ifdef __cplusplus
}
#endif
#endif
