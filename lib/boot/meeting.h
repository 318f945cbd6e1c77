// SPDX-License-Identifier: BSD-3-Clause
/* One meeting at its server: who has joined, and the one verdict for all.
 *
 * Waiting: ranks join; the last one's coming sends everybody the table. Setting up: ranks report; the last report
 * sends everybody HOOP_OK. Any contradiction, failure, death or the deadline sends everybody that as the verdict
 * instead. Over: late comers get the verdict of a failed meeting, or hear that the id is used. Not thread-safe: the
 * server's lock guards it.
 */
#ifndef HOOP_BOOT_MEETING_H
#define HOOP_BOOT_MEETING_H

#include <poll.h>
#include <stdint.h>

#include "boot/message.h"

struct hoop_meeting;

/* NULL: no memory, recorded. */
struct hoop_meeting *hoop_meeting_create(const struct hoop_id *id);

/* Close all connections and free it. */
void hoop_meeting_destroy(struct hoop_meeting *meeting);

/* Was it made for the id with this nonce? */
bool hoop_meeting_is(const struct hoop_meeting *meeting, const unsigned char nonce[HOOP_ID_NONCE]);

/* The key that its messages are sealed with. */
const unsigned char *hoop_meeting_key(const struct hoop_meeting *meeting);

/* Nothing more will come from it but answers to late comers. */
bool hoop_meeting_finished(const struct hoop_meeting *meeting);

/* A rank whose hello was proved. Takes the connection over. */
void hoop_meeting_join(struct hoop_meeting *meeting, int sock, const struct hoop_seal *seal,
                       const struct hoop_hello *hello);

/* End it with this verdict for all; no effect when it has one. */
void hoop_meeting_conclude(struct hoop_meeting *meeting, enum hoop_status status, const char *text);

/* Its connections, to be polled: as many entries as hoop_meeting_entries says, or n == 0: none. */
int hoop_meeting_entries(const struct hoop_meeting *meeting);
void hoop_meeting_watch(const struct hoop_meeting *meeting, struct pollfd *entries, int n);

/* Handle what poll found; entries as written by hoop_meeting_watch, n of them. */
void hoop_meeting_ready(struct hoop_meeting *meeting, const struct pollfd *entries, int n);

/* Handle the time; returns when it wants to be called again (UINT64_MAX: no need). */
uint64_t hoop_meeting_tick(struct hoop_meeting *meeting);

/* Close its descriptors and nothing else: for the child after fork. */
void hoop_meeting_forget(struct hoop_meeting *meeting);

#endif
