// SPDX-License-Identifier: BSD-3-Clause
/* Giving a descriptor to other processes, at any time and without their partners' doing: a thread waits at a Unix socket with a random
 * name, and gives the descriptor to whoever is of the same user and shows the key. Name and key are told to those who shall have it.
 */
#ifndef HOOP_WIRE_GIVE_H
#define HOOP_WIRE_GIVE_H

#include "wire/auth.h"
#include "wire/unixfd.h"

struct hoop_giver;

/* Begin to give `descriptor`, which is the giver's from now on, also on failure.   Errors: HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM. */
enum hoop_status hoop_giver_open(struct hoop_giver **giver, int descriptor);

/* Both live as long as the giver. */
const char *hoop_giver_name(const struct hoop_giver *giver);
const unsigned char *hoop_giver_key(const struct hoop_giver *giver);

/* Give no more; what was given stays valid. NULL is allowed. */
void hoop_giver_close(struct hoop_giver *giver);

/* Get the descriptor (close-on-exec; the caller's) from the giver of that name.
 * Blocking: until it answers, at most until deadline.
 * Errors: HOOP_ERR_TIMEOUT, HOOP_ERR_SETUP (nobody of this user listens there, or the key is wrong), HOOP_ERR_SYSTEM. */
enum hoop_status hoop_gift_fetch(const char *name, const unsigned char key[HOOP_AUTH_KEY], int *descriptor,
                                 uint64_t deadline);

#endif
