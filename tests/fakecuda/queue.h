// SPDX-License-Identifier: BSD-3-Clause
/* Streams, what is in them, and fences.
 *
 * A stream is a thread with a queue. A fence is one moment in a stream: an event's record makes one, and waiting for an event copies
 * the one it has at that time. While a stream is captured its operations go to a graph instead, with the same structures.
 */
#ifndef HOOP_FAKECUDA_QUEUE_H
#define HOOP_FAKECUDA_QUEUE_H

#include "tests/fakecuda/fake.h"

/* Reached when *word >= ticket. Local fences have their own word, those of events between processes one in a shared page. */
struct fake_fence {
    _Atomic int references;
    _Atomic uint64_t own;
    _Atomic uint64_t *word;
    uint64_t ticket;
    void *page;           /* shared page to unmap with the last reference to it */
    uint64_t nanoseconds; /* when it was reached */
    int node;             /* in a capture: which record of the graph it stands for; else -1 */
    struct fake_capture *capture;
};

struct fake_fence *fake_fence_new(void);
struct fake_fence *fake_fence_keep(struct fake_fence *fence);
void fake_fence_drop(struct fake_fence *fence);
bool fake_fence_reached(const struct fake_fence *fence);
void fake_fence_set(struct fake_fence *fence);
/* Until reached, or until *stop (if any) is not 0. */
void fake_fence_wait(const struct fake_fence *fence, const _Atomic int *stop);

struct fake_function {
    const struct hoop_device_kernel *kernel;
    struct fake_module *module;
    _Atomic bool loaded;
};

struct fake_launch {
    const struct fake_function *function;
    unsigned blocks, threads;
    bool cooperative;
};

enum fake_operation_kind {
    FAKE_COPY,
    FAKE_FILL,
    FAKE_CALL,
    FAKE_RECORD,
    FAKE_WAIT,
    FAKE_WAIT_VALUE,
    FAKE_WRITE_VALUE,
    FAKE_LAUNCH,
};

/* One operation; the bytes of a kernel's argument, or of a pageable source, follow it. */
struct fake_operation {
    struct fake_operation *next;
    enum fake_operation_kind kind;
    size_t tail;
    uint64_t flush, queued; /* for the lazy mode */
    union {
        struct {
            char *to, *from; /* as the driver sees them; from NULL: in the tail */
            size_t bytes;
            enum fake_path path;
        } copy;
        struct {
            char *to;
            uint32_t value;
            size_t width, count;
        } fill;
        struct {
            void (*function)(void *);
            void *data;
        } call;
        struct fake_fence *fence;
        struct {
            char *at;
            uint64_t value;
            bool wide;
            unsigned flags;
        } word;
        struct fake_launch launch;
    };
};

struct fake_stream {
    struct fake_context *context;
    unsigned flags;
    int priority;
    uint64_t id;
    uint64_t thread; /* whose default stream it is; 0: none's */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct fake_operation *first, *last;
    uint64_t queued;
    _Atomic uint64_t done;
    bool closing;
    struct fake_capture *capture; /* with the lock */
    int branch;
    struct fake_stream *next;
};

struct fake_operation *fake_operation_new(enum fake_operation_kind kind, size_t tail);
void fake_operation_free(struct fake_operation *operation);
struct fake_operation *fake_operation_copy(const struct fake_operation *operation);
static inline char *fake_operation_tail(struct fake_operation *operation)
{
    return (char *)(operation + 1);
}
void fake_operation_run(struct fake_stream *stream, struct fake_operation *operation);

/* The stream that a handle means in the current context, checked; takes the lock and keeps it if the result is OK. */
int fake_stream_enter(struct fake_stream *handle, struct fake_stream **stream);
/* The same for streams of any context. */
int fake_stream_find(struct fake_stream *handle, struct fake_stream **stream);
struct fake_stream *fake_stream_new(struct fake_context *context, unsigned flags, int priority);
void fake_stream_close(struct fake_stream *stream);
/* With the lock: into the stream's queue, or into the graph that it is captured to. Takes the operation over. */
int fake_stream_add(struct fake_stream *stream, struct fake_operation *operation);
/* The same without a look at captures. */
void fake_stream_push(struct fake_stream *stream, struct fake_operation *operation);
/* Without the lock: until everything queued so far is done; the context's error. */
int fake_stream_wait(struct fake_stream *stream);
bool fake_stream_idle(struct fake_stream *stream);
/* Somebody waits: what is held back by the lazy mode goes on. */
void fake_flush(void);
uint64_t fake_flushes(void);
uint64_t fake_clock(void);

/* Captures (graph.c), with the lock. */
int fake_capture_add(struct fake_stream *stream, struct fake_operation *operation);
int fake_capture_record(struct fake_stream *stream, struct fake_fence **fence);
int fake_capture_wait(struct fake_stream *stream, struct fake_fence *fence);
void fake_capture_break(struct fake_capture *capture);
bool fake_capture_forbids(void);
void fake_capture_spoil(void); /* a call that the going capture forbids was made */

/* Execution (engine.c). */
void fake_engine_run(struct fake_stream *stream, const struct fake_launch *launch, const void *argument);
int fake_engine_room(int device);
/* Run the function with faults caught: false, if it touched what it must not. */
bool fake_guarded(void (*function)(void *), void *data, const struct fake_context *context, const char *what);
void fake_faults_init(void);
/* Leave what fake_guarded runs in this thread. */
_Noreturn void fake_leave(void);

#endif
