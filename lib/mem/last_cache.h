// SPDX-License-Identifier: BSD-3-Clause
/* The size of the processor's last cache, as one core sees it. */
#ifndef HOOP_MEM_LAST_CACHE_H
#define HOOP_MEM_LAST_CACHE_H

#include <stddef.h>

/* Bytes; 16 MiB where nobody tells. The kernel is asked, not sysconf: on virtual machines the C library takes the cache of all sockets
 * of the host together for that of one. Reads files: for set-up. */
size_t hoop_last_cache_bytes(void);

#endif
