// SPDX-License-Identifier: BSD-3-Clause
/* Meeting: how n processes that share nothing but a unique id find each other and agree that all is well.
 *
 * The process that made the id serves the meeting from a helper thread (rendezvous.c). Every rank connects, proves that
 * it holds the id's secret and says who it is; the server waits for all and then gives every rank one answer: the
 * table of all ranks' blobs, or one refusal with its reason. In the second phase the ranks set up what they need with
 * the table, report how that went, and get one more common answer: go, or the first failure. So no rank is ever
 * left waiting for another that has given up, and all ranks return the same error text.
 *
 * Use:  join → set up, watching hoop_boot_descriptor → agree → close.
 */
#ifndef HOOP_BOOT_BOOT_H
#define HOOP_BOOT_BOOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/settings.h"
#include "hoop.h"

struct hoop_boot; /* one rank's connection to the meeting */

enum { HOOP_BOOT_BLOB = 1024 }; /* most bytes of a rank's blob */

/* What a rank tells all others: opaque to the meeting. */
struct hoop_boot_blob {
    uint16_t size; /* 0 … HOOP_BOOT_BLOB */
    unsigned char data[HOOP_BOOT_BLOB];
};

/* Join the meeting of id as one of its ranks and wait until all have come.
 *
 * boot      receives the connection on success, owned by the caller until hoop_boot_close; unchanged on failure.
 * settings  the AGREED ones must be equal on all ranks.
 * mine      copied.   table   ranks entries, filled on success in rank order; undefined on failure.
 * Blocking: until the verdict, at most until deadline and one second (hoop_deadline; the server answers at the deadline
 * of the rank that has the least time left).   Threads: any.
 * Errors: HOOP_ERR_ARG, HOOP_ERR_SETUP (refused), HOOP_ERR_TIMEOUT (names the missing ranks), HOOP_ERR_PEER (a rank or
 * the server died), HOOP_ERR_SYSTEM, HOOP_ERR_MEMORY. */
enum hoop_status hoop_boot_join(struct hoop_boot **boot, const struct hoop_unique_id *id, int ranks, int rank,
                                const struct hoop_settings *settings, const struct hoop_boot_blob *mine,
                                struct hoop_boot_blob *table, uint64_t deadline);

/* A descriptor to poll while setting up: readable when an early verdict has come (another rank failed or died).
 * Then give up and call hoop_boot_agree, which returns it. Owned by boot; never read it. */
int hoop_boot_descriptor(const struct hoop_boot *boot);

/* Report this rank's set-up result and wait for the verdict of all. Call it once.
 *
 * mine, text  HOOP_OK (text ignored, may be NULL), or the error and its text (NULL: the thread's last error).
 * Returns HOOP_OK when every rank reported HOOP_OK; else the first failure, the same status and text on every rank.
 * Blocking: until the verdict, at most until deadline and one second.
 * Errors: the verdict's; HOOP_ERR_PEER (a rank died before it reported, or the server did), HOOP_ERR_TIMEOUT (names the
 * ranks that did not report). */
enum hoop_status hoop_boot_agree(struct hoop_boot *boot, enum hoop_status mine, const char *text, uint64_t deadline);

/* Close the connection. Before hoop_boot_agree has returned this counts as this rank's death. NULL is allowed.
 * Never blocks. */
void hoop_boot_close(struct hoop_boot *boot);

/* A key for one purpose, derived from the id's secret: equal on all holders of the id, unrelated to the keys of other
 * purposes. */
void hoop_boot_key(const struct hoop_unique_id *id, const char *purpose, unsigned char key[32]);

/* Can ranks meet by this id that do not share loopback? false: its rendezvous listens on loopback alone. */
bool hoop_boot_goes_far(const struct hoop_unique_id *id);

#endif
