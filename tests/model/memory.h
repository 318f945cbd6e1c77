// SPDX-License-Identifier: BSD-3-Clause
/* A small explorer of everything that two or three threads may do to shared memory.
 *
 * Threads are coroutines. Before each atomic access the explorer chooses who goes on; a load also chooses which of
 * the values that the C11 memory model still allows it sees. It goes through all choices, depth first, by running the
 * test again and again with another last choice. Interleavings that differ only in the order of independent accesses
 * are skipped (sleep sets).
 *
 * Memory: every location keeps all its stores. A store carries what its thread knew (its view) if it was a release; a
 * load that acquires joins that view; a thread never sees a store older than its view. Sequentially consistent fences
 * pass one global view on. Loads may be old but not from the future (no load buffering), and a store is always the
 * newest of its location; both are true of the machines we know for code of this shape.
 *
 * Ordinary accesses (model_read, model_write) are checked for data races with vector clocks.
 * A thread that polls in vain (model_wait) goes on when a newer value exists; the next poll then sees it, so loops end.
 */
#ifndef TESTS_MODEL_MEMORY_H
#define TESTS_MODEL_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_THREADS = 3 };

/* What is left out, to see that the test would notice. */
enum { MODEL_NO_FENCE = 1, MODEL_NO_RELEASE = 2, MODEL_NO_ACQUIRE = 4 };

enum model_order { MODEL_relaxed, MODEL_acquire, MODEL_release, MODEL_acq_rel };

struct model_test {
    void (*setup)(void); /* make the shared state anew; memory is what it writes, unseen by the explorer */
    int threads;
    void (*thread[MODEL_THREADS])(void);
};

struct model_result {
    long executions;   /* complete ones */
    long pruned;       /* given up as equivalent to others */
    char failure[256]; /* "" if none was found */
    char trace[8192];  /* the accesses of the failing execution */
};

/* Explore all executions, or up to the first failure. Reaching `most` executions is a failure. */
struct model_result model_explore(const struct model_test *test, unsigned leave_out, long most);

uint64_t model_load(const volatile void *object, unsigned size, enum model_order order);
void model_store(volatile void *object, unsigned size, uint64_t value, enum model_order order);
uint64_t model_exchange(volatile void *object, unsigned size, uint64_t value, enum model_order order);
void model_fence(void);
uint64_t model_read(const volatile void *object);
void model_write(volatile void *object, uint64_t value);

/* Futex: sleep if the word is 1 now; true: somebody woke us. */
bool model_futex_wait(volatile void *word);
void model_futex_wake(volatile void *word);

/* A round of polling begins; it found nothing. */
void model_poll(void);
void model_wait(void);

/* End this execution as a failure. */
void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define HOOP_ATOMIC_LOAD(object, order)            model_load((object), sizeof *(object), MODEL_##order)
#define HOOP_ATOMIC_STORE(object, value, order)    model_store((object), sizeof *(object), (value), MODEL_##order)
#define HOOP_ATOMIC_EXCHANGE(object, value, order) model_exchange((object), sizeof *(object), (value), MODEL_##order)
#define HOOP_ATOMIC_FENCE()                        model_fence()
#define HOOP_FUTEX_WAIT(word, deadline)            ((void)(deadline), model_futex_wait(word))
#define HOOP_FUTEX_WAKE(word)                      model_futex_wake(word)
#define HOOP_FUTEX_DEADLINE(from_now)              (from_now)
#define HOOP_BELL_LETTER(bell)                     ((void)(bell))

#endif
