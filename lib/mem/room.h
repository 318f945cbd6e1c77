// SPDX-License-Identifier: BSD-3-Clause
/* How much memory may still be taken. An over-large fallocate inside a memory cgroup is not refused but ends in the
 * kernel's killer, so the limits are compared before. */
#ifndef HOOP_MEM_ROOM_H
#define HOOP_MEM_ROOM_H

#include <stddef.h>

#include "hoop.h"

/* May `bytes` more be taken? Looks at the memory limit of every enclosing control group (version 2 or 1) and at the machine.
 * Errors: HOOP_ERR_MEMORY with the limit that is in the way and what `purpose` needs. Files that cannot be read limit nothing. */
enum hoop_status hoop_room_check(size_t bytes, const char *purpose);

#endif
