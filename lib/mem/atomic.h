// SPDX-License-Identifier: BSD-3-Clause
/* Atomic accesses of the structures that processes share.
 *
 * The ring and the bell reach shared memory only through these macros, so that the interleaving test (tests/model)
 * can compile the same text against its own memory, in which it enumerates every order and every old value that
 * the language allows. `order` is a bare word: relaxed, acquire, release, acq_rel.
 */
#ifndef HOOP_MEM_ATOMIC_H
#define HOOP_MEM_ATOMIC_H

#ifndef HOOP_ATOMIC_LOAD
#include <stdatomic.h>

#define HOOP_ATOMIC_LOAD(object, order)            atomic_load_explicit((object), memory_order_##order)
#define HOOP_ATOMIC_STORE(object, value, order)    atomic_store_explicit((object), (value), memory_order_##order)
#define HOOP_ATOMIC_EXCHANGE(object, value, order) atomic_exchange_explicit((object), (value), memory_order_##order)

#ifdef __SANITIZE_THREAD__
/* This sanitizer does not know fences; a locked instruction on the side orders the machine as well. */
static inline void hoop_atomic_fence(void)
{
    _Atomic int side = 0;

    atomic_fetch_add(&side, 1);
}
#define HOOP_ATOMIC_FENCE() hoop_atomic_fence()
#else
#define HOOP_ATOMIC_FENCE() atomic_thread_fence(memory_order_seq_cst)
#endif
#endif

#endif
