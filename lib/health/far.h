// SPDX-License-Identifier: BSD-3-Clause
/* Between hosts: verdicts and signs of life.
 *
 * The first ranks of the hosts are joined in a star with rank 0 in its middle, by links of their own that the monitor thread alone
 * uses. Over them goes the verdict of each host's board, as soon as one stands; the calls that its ranks have made, and which their
 * kernels have begun, when they stand still, so that who waits on another host can see who is late and who has called something else; and a beat. A link that
 * ends without a word is the death of the rank behind it; one that is silent for HOOP_SILENT likewise.
 */
#ifndef HOOP_HEALTH_FAR_H
#define HOOP_HEALTH_FAR_H

#include "health/council.h"
#include "hoop/transport.h"
#include "mem/board.h"

enum { HOOP_FAR_FRAME = 32 + 32 * HOOP_CALL_RECORDS, HOOP_FAR_SLOTS = 64, HOOP_FAR_TICK_MS = 20 };

struct hoop_far_link {
    struct hoop_link *link;
    uint64_t told;  /* the verdict that the other end has been told */
    uint64_t *card; /* of each rank: where it stood when the other end was told of it */
    double quiet;   /* seconds of our own ticks since it was heard; below 0: it never was */
    bool over;      /* it left in peace, or its end has been noted */
};

struct hoop_far {
    struct hoop_domain *domain;
    struct hoop_council *council; /* what takes over once a verdict stands; NULL: nothing does */
    double silent;                /* seconds */
    uint64_t last, next_beat;
    uint64_t *seen; /* of each rank: where it stood at the last tick */
    bool rests;     /* this rank has said that it leaves: what ends now ends in peace */
    int links;
    struct hoop_far_link link[];
};

/* For a communicator of that many ranks, with at most that many links; the links are filled in by the caller. Errors: HOOP_ERR_MEMORY. */
enum hoop_status hoop_far_new(struct hoop_far **far, struct hoop_domain *domain, int ranks, int links, double silent);
void hoop_far_free(struct hoop_far *far); /* its council, too, but not the links of the star */

/* Has it to be ticked every HOOP_FAR_TICK_MS? */
bool hoop_far_busy(const struct hoop_far *far, const struct hoop_board *board);

/* Hear and tell what is new. Any time; on one thread at a time. */
void hoop_far_tick(struct hoop_far *far, struct hoop_board *board);

/* The first rank that has neither been heard nor been lost; -1: there is none. */
int hoop_far_unheard(const struct hoop_far *far);

/* Say that this rank leaves in peace. */
void hoop_far_leave(struct hoop_far *far, struct hoop_board *board);

#endif
