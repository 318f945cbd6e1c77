// SPDX-License-Identifier: BSD-3-Clause
/* Letterbox: a descriptor that a bell can be rung through, for those who wait for sockets at the same time; a futex cannot be polled.
 *
 * It is a datagram socket with a random name that no file system holds and that ends with its owner. The name stands in the
 * bell, in shared memory, so whoever can ring the bell can write to it. A letter says nothing but "look again": a stranger's costs a look.
 */
#ifndef HOOP_MEM_LETTERBOX_H
#define HOOP_MEM_LETTERBOX_H

#include "hoop.h"
#include "mem/bell.h"

/* Give the caller's own bell a letterbox. *box: non-blocking, readable when there are letters; the caller's to close, after which the
 * bell must not be armed for letters any more. Errors: HOOP_ERR_SYSTEM. */
enum hoop_status hoop_letterbox_open(struct hoop_bell *bell, int *box);

/* Write a letter to the bell's owner. One that does not fit, or finds nobody, is not needed. Costs a few system calls; never blocks. */
void hoop_letterbox_write(const struct hoop_bell *bell);

/* Throw away what has come. Never blocks. */
void hoop_letterbox_empty(int box);

#endif
