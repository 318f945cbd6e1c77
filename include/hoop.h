// SPDX-License-Identifier: BSD-3-Clause
/* hoop: collective communication in C.
 *
 * A communicator joins n ranks (processes, or threads of one process). Every rank calls the same
 * collectives in the same order; the library moves and combines the data. Ranks differ only in the
 * number that hoop_comm_rank returns.
 *
 * Every call that can fail returns enum hoop_status: 0 is success, an error is negative, and
 * hoop_last_error then tells the cause, the object and the cure. The library never prints to stdout,
 * exits, aborts or installs signal handlers, and reads the environment only while a communicator is made.
 *
 *     struct hoop_comm *comm;
 *     if (hoop_comm_init_env(&comm) != HOOP_OK) { fputs(hoop_last_error(NULL), stderr); return 1; }
 *     hoop_all_reduce(x, x, count, HOOP_F32, HOOP_SUM, comm, NULL);
 *     hoop_comm_destroy(comm);
 */
#ifndef HOOP_H
#define HOOP_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HOOP_API __attribute__((visibility("default")))
#else
#define HOOP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HOOP_VERSION_MAJOR 0
#define HOOP_VERSION_MINOR 1
#define HOOP_VERSION_PATCH 0

/* Results of calls. Values are never renumbered.
 * OK and AGAIN are not errors; AGAIN is returned only by the extenders' interfaces (hoop/transport.h)
 * and hoop_stream_query. */
enum hoop_status {
    HOOP_OK = 0,
    HOOP_AGAIN = 1,            /* nothing happened yet; call again */
    HOOP_ERR_ARG = -1,         /* an argument is wrong; the call had no effect */
    HOOP_ERR_MISMATCH = -2,    /* ranks made different calls; the communicator is dead */
    HOOP_ERR_PEER = -3,        /* another rank died or left; the communicator is dead */
    HOOP_ERR_TIMEOUT = -4,     /* a deadline passed; the communicator is dead */
    HOOP_ERR_ABORTED = -5,     /* hoop_comm_abort was called on some rank */
    HOOP_ERR_MEMORY = -6,      /* no memory, or a limit of the machine was reached */
    HOOP_ERR_SYSTEM = -7,      /* a system call failed */
    HOOP_ERR_SETUP = -8,       /* the launcher's environment or the rendezvous is wrong */
    HOOP_ERR_UNSUPPORTED = -9, /* this build or machine cannot do it */
    HOOP_ERR_INTERNAL = -10    /* a bug in the library */
};

/* Element types; the list with sizes and names is lib/dtype/types.def. HOOP_F8E4M3 and HOOP_F8E5M2 are the 8-bit formats of
 * the Open Compute Project, of which E4M3 has no infinity. */
enum hoop_type {
    HOOP_F32,
    HOOP_F64,
    HOOP_I32,
    HOOP_I64,
    HOOP_U8,
    HOOP_BF16,
    HOOP_F16,
    HOOP_I8,
    HOOP_I16,
    HOOP_U16,
    HOOP_U32,
    HOOP_U64,
    HOOP_F8E4M3,
    HOOP_F8E5M2,
    HOOP_F32_I32, /* struct hoop_f32_i32, and so on: a value and its index */
    HOOP_F64_I64,
    HOOP_I32_I32,
    HOOP_I64_I64,
    HOOP_TYPES
};

/* Elements of the pair types, as they lie in memory: the value, then the index, without gaps. */
struct hoop_f32_i32 {
    float value;
    int32_t index;
};

struct hoop_f64_i64 {
    double value;
    int64_t index;
};

struct hoop_i32_i32 {
    int32_t value, index;
};

struct hoop_i64_i64 {
    int64_t value, index;
};

/* Reduction operators; the list is lib/dtype/ops.def.
 *
 * Integers wrap modulo 2^bits; HOOP_AVG of integers divides the wrapped sum, rounding toward zero.
 * f16, bf16 and the 8-bit formats are summed and multiplied in f32 over all ranks and rounded once at the end (to nearest,
 * ties to even). Beyond the range f16 and bf16 become infinite; the 8-bit formats saturate, as NVIDIA's conversions do: a
 * finite result becomes at most 448 (E4M3) or 57344 (E5M2), an infinite one (of an infinite input, or a product that is too
 * large for f32) becomes 448 in E4M3 and stays infinite in E5M2.
 * NaN that comes of combining is the quiet NaN with sign and payload zero (E4M3: 0x7f).
 * HOOP_MIN and HOOP_MAX return NaN if any input is NaN; -0 is less than +0.
 * HOOP_AVG is the sum divided by the number of ranks.
 * The order in which the ranks' parts are combined shows in the bits of floating-point sums and products. It depends on the
 * number of ranks, the size, the settings and the kind of memory, so the bits are the same on all ranks and in every run. With
 * HOOP_DETERMINISTIC=1 it is ((x0 op x1) op x2) … always, whatever algorithm, size, memory and transport.
 * HOOP_BAND, _BOR and _BXOR combine the bits; HOOP_LAND, _LOR and _LXOR combine truth: an input is true if it is not 0, and
 * the result is 0 or 1, also on a single rank. These six take integers only (hoop_op_accepts).
 * HOOP_MINLOC and HOOP_MAXLOC take pairs only, and pairs take no other operator: the result is the pair with the least
 * (greatest) value, and where several ranks have it, the one with the least index. Values are compared as by HOOP_MIN and
 * HOOP_MAX: -0 is less than +0, and NaN wins, among NaN the one with the least index. The order of combining does not matter. */
enum hoop_op {
    HOOP_SUM,
    HOOP_PROD,
    HOOP_MIN,
    HOOP_MAX,
    HOOP_AVG,
    HOOP_BAND,
    HOOP_BOR,
    HOOP_BXOR,
    HOOP_LAND,
    HOOP_LOR,
    HOOP_LXOR,
    HOOP_MINLOC,
    HOOP_MAXLOC,
    HOOP_OPS,
    HOOP_OPS_CREATED = 64, /* values of created operators (hoop_op_premul_create, hoop_op_user_create) begin here … */
    HOOP_OPS_END = 256     /* … and are below this */
};

struct hoop_comm;
struct hoop_handle;
/* A host stream (hoop_stream_create), or, where buffers are device memory, a CUDA stream of that device: CUstream or cudaStream_t,
 * cast to this type. */
struct hoop_stream;
typedef struct hoop_stream hoop_stream;

/* Buffers may be memory of the rank's CUDA device: hoop/device.h says which, and in what order such calls run. */

/* Where and how the ranks of one communicator meet. Treat it as a secret: it holds the 256-bit key. */
struct hoop_unique_id {
    unsigned char bytes[128];
};

#define HOOP_UNIQUE_ID_TEXT 256 /* bytes that the text form needs, with its final NUL */

/* Version of the library that runs, as major * 10000 + minor * 100 + patch.
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API int hoop_version(void);

/* One sentence for a status, in static storage; unknown values give "unknown status".
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const char *hoop_strerror(enum hoop_status status);

/* The cause of the last error: which rank, link, file or value, and what to do.
 *
 * comm    the communicator's first error (the cause; later ones only follow from it), or NULL: the last
 *         error of the calling thread. "" if there was none. The text stays valid until the next call on
 *         the communicator (NULL: of the thread).
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const char *hoop_last_error(const struct hoop_comm *comm);

/* Make a unique id and start answering the ranks that will join with it.
 *
 * A helper thread of this process serves the rendezvous until all ranks have joined or been refused, so
 * the process must live until then. Address: setting HOOP_ADDRESS (default 127.0.0.1), a free port.
 * Blocking: no longer than a socket takes to open.   Threads: any.
 * Errors: HOOP_ERR_SYSTEM (the address cannot be bound), HOOP_ERR_SETUP (bad setting), HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_unique_id_create(struct hoop_unique_id *id);

/* Read the text form back (from a file or an environment variable).
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_ARG (says which part is wrong; *id is unchanged). */
HOOP_API enum hoop_status hoop_unique_id_parse(struct hoop_unique_id *id, const char *text);

/* Write the text form: version, address, port, secret, nonce and checksum, one word of printable ASCII.
 *
 * text, size   where to, at least HOOP_UNIQUE_ID_TEXT bytes.
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_ARG (size too small, or id not a valid one). */
HOOP_API enum hoop_status hoop_unique_id_print(const struct hoop_unique_id *id, char *text, size_t size);

/* Join a communicator of n ranks as one of them.
 *
 * comm         receives the communicator on success and is unchanged on failure.
 * ranks        its size, 1 or more; equal on all ranks.
 * id           from hoop_unique_id_create on one process, carried to all by any means; used for one
 *              communicator only. NULL is allowed for ranks == 1, which needs no meeting and opens no socket.
 * rank         0 … ranks - 1, different on every rank.
 * Blocking: until all ranks have joined, at most HOOP_INIT_TIMEOUT (60 s).   Threads: any.
 * Errors: HOOP_ERR_ARG, HOOP_ERR_SETUP (refused: duplicate rank, other size, version, settings or secret, id
 * used), HOOP_ERR_TIMEOUT (names the missing ranks), HOOP_ERR_PEER, HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM. All
 * ranks get the same verdict. */
HOOP_API enum hoop_status hoop_comm_init_rank(struct hoop_comm **comm, int ranks, const struct hoop_unique_id *id,
                                              int rank);

/* Make the communicators of n ranks that are threads of this process.
 *
 * comms        array of ranks entries; entry r receives rank r's communicator. Each is then used by one
 *              thread at a time, and the ranks' calls must be able to run at the same time.
 * Blocking: until all are made.   Threads: any.   Errors: as hoop_comm_init_rank; on failure none is made. */
HOOP_API enum hoop_status hoop_comm_init_all(struct hoop_comm **comms, int ranks);

enum { HOOP_NO_COLOR = -1 };

/* Form smaller communicators: the ranks that give the same color form one, ordered by key, then by their rank here.
 *
 * color        0 or more, or HOOP_NO_COLOR: this rank joins none and *split becomes NULL.
 * key          any; orders the ranks of a color.
 * split        receives the new communicator; it is independent of comm and destroyed apart. Unchanged on failure.
 * Equal on all ranks: nothing; but all ranks of comm must call it, as a collective.
 * Blocking: until all ranks of comm have called it and those of this color have joined, at most HOOP_INIT_TIMEOUT.
 * Threads: one call at a time per communicator.   Errors: those of a collective and of hoop_comm_init_rank; HOOP_ERR_ARG. */
HOOP_API enum hoop_status hoop_comm_split(struct hoop_comm *comm, int color, int key, struct hoop_comm **split);

/* Wait until every rank has finished its calls on the communicator and calls this too; then part in peace.
 * After it only hoop_comm_destroy, _rank, _size, _async_error and hoop_last_error are legal.
 * Reports an error that this rank has not seen yet (a mismatch found by others after its call returned).
 * Blocking: until all ranks call it, with the bounds of a collective.   Threads: one call at a time per communicator.
 * Errors: as a collective. */
HOOP_API enum hoop_status hoop_comm_finalize(struct hoop_comm *comm);

/* Free a communicator. Finalizes it first if it is healthy and was not finalized. NULL is allowed.
 * Buffers of hoop_mem_alloc on it must have been freed; those that were not are freed here.
 * Blocking: as finalize; at once on a dead communicator.   Threads: no other call may be running on it.
 * Errors: those of finalize; the memory is freed in any case. */
HOOP_API enum hoop_status hoop_comm_destroy(struct hoop_comm *comm);

/* Make every rank's running and later calls on the communicator return HOOP_ERR_ABORTED. Idempotent; legal in
 * any state. The communicator still has to be destroyed.
 * Blocking: never (returns within 100 ms).   Threads: any, also while another thread is in a call.
 * Errors: HOOP_ERR_ARG (comm is NULL). */
HOOP_API enum hoop_status hoop_comm_abort(struct hoop_comm *comm);

/* The communicator's state: HOOP_OK, or the first error, also one that no call of this rank has returned yet.
 * Blocking: never.   Threads: any.   Errors: the value itself. */
HOOP_API enum hoop_status hoop_comm_async_error(const struct hoop_comm *comm);

/* This rank's number, 0 … size - 1.   Blocking: never.   Threads: any.   Errors: -1 if comm is NULL. */
HOOP_API int hoop_comm_rank(const struct hoop_comm *comm);

/* The number of ranks.   Blocking: never.   Threads: any.   Errors: -1 if comm is NULL. */
HOOP_API int hoop_comm_size(const struct hoop_comm *comm);

/* The CUDA device of this rank on the communicator: its ordinal in this process, or -1: none.
 *
 * It was chosen when the communicator was made, as the setting HOOP_DEVICE says: by default the device whose primary context was current
 * on the thread that made it, as it is after cudaSetDevice and a first call, or none. With hoop_comm_init_all ranks have none by default, since their
 * communicators are made by threads of their own; HOOP_DEVICE=cuda gives rank r device r. What hoop_comm_split makes has the same device.
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_ARG (NULL). */
HOOP_API enum hoop_status hoop_comm_device(const struct hoop_comm *comm, int *ordinal);

/* All-reduce: combine every rank's vector with op; every rank receives the result.
 *
 * send, recv   count elements of type. recv == send: in place; any other overlap: HOOP_ERR_ARG. Any alignment.
 *              May be NULL if count is 0.
 * count        elements, 0 … SIZE_MAX / element size.
 * op           one of the list, or a created operator of this communicator.
 * stream       NULL: the call returns with the result. Else the call returns at once and runs in stream order;
 *              the buffers belong to the library until then. With device memory a CUDA stream, cast to hoop_stream *.
 * Where ranks outnumber the cores of their host, a waiting call may move its thread to another processor, within the
 * thread's binding, which stays as it is (HOOP_SPREAD).
 * Equal on all ranks: count, type, op, in place or not. A difference is HOOP_ERR_MISMATCH on every rank, before
 * data is used; hoop_last_error shows both calls.
 * Blocking: as stream says; a dead peer ends it in bounded time.   Threads: one call at a time per communicator.
 * Memory: buffers of hoop_mem_alloc, and registered ones, are read and written by peers in place during the call, others through a copy.
 * Errors: HOOP_ERR_ARG (nothing happened; also if op does not take the type), HOOP_ERR_MISMATCH, HOOP_ERR_PEER
 * (hoop_last_error names the rank), HOOP_ERR_TIMEOUT, HOOP_ERR_ABORTED, HOOP_ERR_MEMORY. */
HOOP_API enum hoop_status hoop_all_reduce(const void *send, void *recv, size_t count, enum hoop_type type,
                                          enum hoop_op op, struct hoop_comm *comm, hoop_stream *stream);

/* Reduce: as all-reduce, but only rank root receives the result.
 *
 * recv         count elements on the root; ignored (may be NULL) on others.
 * root         0 … size - 1, equal on all ranks. In place on the root (recv == send) need not be told to the others.
 * Blocking, threads, memory, errors: as hoop_all_reduce. */
HOOP_API enum hoop_status hoop_reduce(const void *send, void *recv, size_t count, enum hoop_type type, enum hoop_op op,
                                      int root, struct hoop_comm *comm, hoop_stream *stream);

/* Broadcast: rank root's send vector is copied to every rank's recv.
 *
 * send         count elements on the root; ignored (may be NULL) on others.
 * recv         count elements on every rank; on the root it may equal send, and then nothing is copied there.
 * root         equal on all ranks.
 * Blocking, threads, memory, errors: as hoop_all_reduce. */
HOOP_API enum hoop_status hoop_broadcast(const void *send, void *recv, size_t count, enum hoop_type type, int root,
                                         struct hoop_comm *comm, hoop_stream *stream);

/* All-gather: every rank receives the ranks' vectors one after the other, in rank order.
 *
 * send         count elements.
 * recv         size × count elements. In place: send == recv + rank × count elements.
 * Equal on all ranks: count, type, in place or not.
 * Blocking, threads, memory, errors: as hoop_all_reduce. */
HOOP_API enum hoop_status hoop_all_gather(const void *send, void *recv, size_t count, enum hoop_type type,
                                          struct hoop_comm *comm, hoop_stream *stream);

/* Reduce-scatter: the combined vector is cut into size blocks; rank r receives block r.
 *
 * send         size × count elements.
 * recv         count elements. In place: recv == send + rank × count elements.
 * Equal on all ranks: count, type, op, in place or not.
 * Blocking, threads, memory, errors: as hoop_all_reduce. */
HOOP_API enum hoop_status hoop_reduce_scatter(const void *send, void *recv, size_t count, enum hoop_type type,
                                              enum hoop_op op, struct hoop_comm *comm, hoop_stream *stream);

/* All-to-all: every rank sends each rank a block of its own; rank r receives everybody's block r, in rank order.
 *
 * send, recv   size × count elements; block i of send goes to rank i, block i of recv came from rank i.
 *              In place: recv == send.
 * count        elements of one block.
 * Equal on all ranks: count, type, in place or not.
 * Blocking, threads, memory, errors: as hoop_all_reduce. */
HOOP_API enum hoop_status hoop_all_to_all(const void *send, void *recv, size_t count, enum hoop_type type,
                                          struct hoop_comm *comm, hoop_stream *stream);

/* All-gather with a count of its own for each rank: every rank receives everybody's vector, each where it wants it.
 *
 * send         count elements.
 * count        must be counts[rank].
 * recv         rank i's vector, counts[i] elements, goes to element displacements[i] and on. These blocks may not overlap each
 *              other; what lies between them is not touched.
 *              In place: send == recv + displacements[rank] elements, on each rank as it likes.
 * counts, displacements   size entries each, read before the call returns. displacements NULL: one after the other in rank order.
 * Equal on all ranks: counts, type.
 * Blocking, threads, memory, errors: as hoop_all_reduce; blocks that overlap are HOOP_ERR_ARG. */
HOOP_API enum hoop_status hoop_all_gatherv(const void *send, size_t count, void *recv, const size_t *counts,
                                           const size_t *displacements, enum hoop_type type, struct hoop_comm *comm,
                                           hoop_stream *stream);

/* All-to-all with counts of its own for each pair of ranks.
 *
 * send         send_counts[i] elements from element send_displacements[i] on go to rank i.
 * recv         recv_counts[i] elements from rank i go to element recv_displacements[i] and on. These blocks may not overlap each
 *              other; what lies between them is not touched.
 *              In place: recv == send with the same counts and displacements, on all ranks that have elements at all.
 * counts, displacements   size entries each, read before the call returns. Displacements NULL: one after the other in rank order.
 * Equal on all ranks: type, in place or not; and send_counts[j] on rank i must be recv_counts[i] on rank j. The ranks tell each
 * other their counts before data moves (on host memory in messages that count as a call of their own); a pair that differs is
 * HOOP_ERR_MISMATCH on every rank, and hoop_last_error names it.
 * Blocking, threads, memory, errors: as hoop_all_reduce; blocks that overlap are HOOP_ERR_ARG. */
HOOP_API enum hoop_status hoop_all_to_allv(const void *send, const size_t *send_counts,
                                           const size_t *send_displacements, void *recv, const size_t *recv_counts,
                                           const size_t *recv_displacements, enum hoop_type type,
                                           struct hoop_comm *comm, hoop_stream *stream);

/* Gather: as all-gather, but only rank root receives the ranks' vectors.
 *
 * send         count elements.
 * recv         size × count elements on the root; ignored (may be NULL) on others.
 * root         equal on all ranks. In place on the root (send == recv + root × count elements) need not be told to the
 *              others.
 * Equal on all ranks: count, type, root.
 * Blocking, threads, memory, errors: as hoop_all_reduce. */
HOOP_API enum hoop_status hoop_gather(const void *send, void *recv, size_t count, enum hoop_type type, int root,
                                      struct hoop_comm *comm, hoop_stream *stream);

/* Scatter: rank root's vector is cut into size blocks; rank r receives block r.
 *
 * send         size × count elements on the root; ignored (may be NULL) on others.
 * recv         count elements on every rank; on the root it may be send + root × count elements, and then nothing is
 *              copied there.
 * Equal on all ranks: count, type, root.
 * Blocking, threads, memory, errors: as hoop_all_reduce. */
HOOP_API enum hoop_status hoop_scatter(const void *send, void *recv, size_t count, enum hoop_type type, int root,
                                       struct hoop_comm *comm, hoop_stream *stream);

/* Barrier: no rank leaves before all have entered.
 * Blocking, threads, errors: as hoop_all_reduce. */
HOOP_API enum hoop_status hoop_barrier(struct hoop_comm *comm, hoop_stream *stream);

/* Persistent handles: hoop_X_init takes the arguments of hoop_X and keeps them instead of running it; hoop_start then runs it, as
 * often as wanted, on whatever the buffers hold at that time. The arguments are checked once, here.
 *
 * handle       receives the handle; free it with hoop_handle_free. Unchanged on failure.
 * Not collective, and nothing runs, also inside a group. The calls that hoop_start makes are those of hoop_X: a rank may start
 * handles where another makes the ordinary call.
 * Blocking: never.   Threads: one call at a time per communicator.
 * Errors: HOOP_ERR_ARG (as hoop_X; also if handle is NULL), HOOP_ERR_MEMORY; those of a dead communicator. */
HOOP_API enum hoop_status hoop_all_reduce_init(const void *send, void *recv, size_t count, enum hoop_type type,
                                               enum hoop_op op, struct hoop_comm *comm, hoop_stream *stream,
                                               struct hoop_handle **handle);
HOOP_API enum hoop_status hoop_reduce_init(const void *send, void *recv, size_t count, enum hoop_type type,
                                           enum hoop_op op, int root, struct hoop_comm *comm, hoop_stream *stream,
                                           struct hoop_handle **handle);
HOOP_API enum hoop_status hoop_broadcast_init(const void *send, void *recv, size_t count, enum hoop_type type, int root,
                                              struct hoop_comm *comm, hoop_stream *stream, struct hoop_handle **handle);
HOOP_API enum hoop_status hoop_all_gather_init(const void *send, void *recv, size_t count, enum hoop_type type,
                                               struct hoop_comm *comm, hoop_stream *stream,
                                               struct hoop_handle **handle);
HOOP_API enum hoop_status hoop_reduce_scatter_init(const void *send, void *recv, size_t count, enum hoop_type type,
                                                   enum hoop_op op, struct hoop_comm *comm, hoop_stream *stream,
                                                   struct hoop_handle **handle);
HOOP_API enum hoop_status hoop_all_to_all_init(const void *send, void *recv, size_t count, enum hoop_type type,
                                               struct hoop_comm *comm, hoop_stream *stream,
                                               struct hoop_handle **handle);
HOOP_API enum hoop_status hoop_gather_init(const void *send, void *recv, size_t count, enum hoop_type type, int root,
                                           struct hoop_comm *comm, hoop_stream *stream, struct hoop_handle **handle);
HOOP_API enum hoop_status hoop_scatter_init(const void *send, void *recv, size_t count, enum hoop_type type, int root,
                                            struct hoop_comm *comm, hoop_stream *stream, struct hoop_handle **handle);
HOOP_API enum hoop_status hoop_barrier_init(struct hoop_comm *comm, hoop_stream *stream, struct hoop_handle **handle);
HOOP_API enum hoop_status hoop_all_gatherv_init(const void *send, size_t count, void *recv, const size_t *counts,
                                                const size_t *displacements, enum hoop_type type,
                                                struct hoop_comm *comm, hoop_stream *stream,
                                                struct hoop_handle **handle);
HOOP_API enum hoop_status hoop_all_to_allv_init(const void *send, const size_t *send_counts,
                                                const size_t *send_displacements, void *recv, const size_t *recv_counts,
                                                const size_t *recv_displacements, enum hoop_type type,
                                                struct hoop_comm *comm, hoop_stream *stream,
                                                struct hoop_handle **handle);

/* Start the call of a handle: run it, or give it to the handle's stream, or note it in the thread's group, just as the ordinary
 * call would be. A handle may be started again before earlier starts on its stream have ended; they run in order.
 * Equal on all ranks, blocking, threads: as the ordinary call.
 * Errors: as the ordinary call; HOOP_ERR_ARG (handle is NULL, or its communicator was destroyed: only hoop_handle_free is left). */
HOOP_API enum hoop_status hoop_start(struct hoop_handle *handle);

/* Free a handle, before or after its communicator is destroyed, also while calls that it started are running. NULL is allowed.
 * Blocking: never.   Threads: one call at a time per communicator.   Errors: none. */
HOOP_API enum hoop_status hoop_handle_free(struct hoop_handle *handle);

/* Send a message to one rank, which receives it with hoop_recv.
 *
 * data         count elements of type; may be NULL if count is 0.
 * peer         0 … size - 1. Not this rank itself, except inside a group that holds the receive, too.
 * stream       as in hoop_all_reduce.
 * Equal on both ranks: count and type; a difference is HOOP_ERR_MISMATCH, and the receiver's hoop_last_error shows both. Messages of
 * one pair of ranks and direction are received in the order in which they were sent. Collectives may be called between.
 * Blocking: until the data may be overwritten: a short message is buffered, a long one (or any from host memory, where calls on device
 * memory run as kernels) waits for its receiver. Two ranks that send to each other and then receive may wait for ever: use a group.
 * Threads: one call at a time per communicator.   Errors: as hoop_all_reduce. */
HOOP_API enum hoop_status hoop_send(const void *data, size_t count, enum hoop_type type, int peer,
                                    struct hoop_comm *comm, hoop_stream *stream);

/* Receive a message that rank peer sends with hoop_send.
 * Parameters, threads, errors: as hoop_send.   Blocking: until the message is there. */
HOOP_API enum hoop_status hoop_recv(void *data, size_t count, enum hoop_type type, int peer, struct hoop_comm *comm,
                                    hoop_stream *stream);

/* Begin a group: the calling thread's collectives, sends and receives up to hoop_group_end are only noted, after their arguments
 * were checked, and run together at its end. So one thread can call for several communicators of hoop_comm_init_all, and
 * sends and receives of one communicator all go on at the same time. Groups nest; the outermost end runs them.
 * Blocking: never.   Threads: any; each has its own group.   Errors: none. */
HOOP_API enum hoop_status hoop_group_start(void);

/* End a group and run it. The calls of one communicator must all have the same stream. Its collectives run first, in the order
 * of their calls, then its sends and receives, all together; this rank's order must suit the other ranks' as outside of groups.
 * Buffers must not overlap between the calls of a group.
 * Blocking: as the calls; with streams at once.   Threads: the one that began it.
 * Errors: HOOP_ERR_ARG (no group was begun; two streams for one communicator; nothing of the group has run), HOOP_ERR_MEMORY, and
 * the first error of its calls. */
HOOP_API enum hoop_status hoop_group_end(void);

/* Allocate memory that the communicator's peers on this host can read in place: no copy is needed to send it. On a communicator with a
 * device (hoop_comm_device) it is memory of that device, which the host cannot read or write; see hoop_mem_copy.
 *
 * comm         whose ranks shall share it; used as ordinary memory by anyone in this process.
 * buffer       receives the address, aligned to 4096 bytes (device memory: to 256), zero-filled.
 * bytes        1 or more.
 * Not collective: each rank allocates as it likes.
 * Blocking: no longer than the kernel takes to hand out the pages; device memory: the driver may wait for work on the device.
 * Threads: any.
 * Errors: HOOP_ERR_ARG, HOOP_ERR_MEMORY (says what was asked for and what is left); on a device also HOOP_ERR_SYSTEM (the driver's). */
HOOP_API enum hoop_status hoop_mem_alloc(struct hoop_comm *comm, void **buffer, size_t bytes);

/* As hoop_mem_alloc, but always memory of the host.
 * Blocking, threads, errors: as hoop_mem_alloc on a communicator without a device. */
HOOP_API enum hoop_status hoop_mem_alloc_host(struct hoop_comm *comm, void **buffer, size_t bytes);

/* Give memory of hoop_mem_alloc or hoop_mem_alloc_host back. No call that uses it may be running. NULL is allowed.
 * Memory of a device is free for others a little later, when peers that read it in place have closed it.
 * Blocking: as alloc.   Threads: any.   Errors: HOOP_ERR_ARG (not such a buffer of this communicator; nothing happened);
 * HOOP_ERR_SYSTEM (of the device's driver). */
HOOP_API enum hoop_status hoop_mem_free(struct hoop_comm *comm, void *buffer);

/* Copy between any two places that this rank can use: host memory, and memory of its device, also of other allocators.
 *
 * to, from     bytes each; they may overlap only if both are host memory. May be NULL if bytes is 0.
 * Not collective. It is not ordered with calls that were given to streams: synchronize them first.
 * Blocking: until it is done.   Threads: any.
 * Errors: HOOP_ERR_ARG (NULL), HOOP_ERR_SYSTEM (of the device's driver: one of the places is none), HOOP_ERR_TIMEOUT. */
HOOP_API enum hoop_status hoop_mem_copy(struct hoop_comm *comm, void *to, const void *from, size_t bytes);

/* Make ordinary memory readable by the communicator's peers on this host in place, as memory of hoop_mem_alloc is.
 *
 * memory, bytes   any range of private anonymous memory that may be read and written: malloc, static arrays without initial
 *              values, mmap with MAP_PRIVATE and MAP_ANONYMOUS. Address and content stay. Only the whole pages in it become
 *              shared; the rest of the first and the last page is copied when it is sent. Best is a range of whole pages.
 * Until it is deregistered: it must not be freed, unmapped, resized or registered elsewhere; it is shared with children that the
 * process forks, so what one writes the other sees; and what was said about its pages (locked, huge, of a NUMA node) is forgotten.
 * No thread may write into the range during this call and hoop_deregister, and no call that was given the range may be running.
 * The calls take as much further memory as the range has while they run. At most 64 ranges of a communicator at a time.
 * Not collective: each rank registers as it likes.
 * Blocking: until the calls that were given to streams have ended, and while pages are copied.
 * Threads: one call at a time per communicator.
 * Errors, all of which leave the memory as it was: HOOP_ERR_ARG (not mapped; overlaps memory of hoop_mem_alloc or another registration;
 * too many ranges), HOOP_ERR_UNSUPPORTED (another kind of memory: says which), HOOP_ERR_MEMORY; those of a dead communicator. */
HOOP_API enum hoop_status hoop_register(struct hoop_comm *comm, void *memory, size_t bytes);

/* Make registered memory ordinary again, with its content; legal on a dead communicator, too. NULL is allowed. hoop_comm_destroy does it
 * with all that is still registered.
 *
 * memory       the start of the range, as it was registered.
 * Blocking, threads: as hoop_register.
 * Errors: HOOP_ERR_ARG (not registered on this communicator; nothing happened), HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM (it stays registered). */
HOOP_API enum hoop_status hoop_deregister(struct hoop_comm *comm, void *memory);

/* Make a host stream: a helper thread that runs the calls given to it, one after the other.
 * Blocking: never.   Threads: any.   Errors: HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM (no thread). */
HOOP_API enum hoop_status hoop_stream_create(hoop_stream **stream);

/* Wait for the stream's calls, then free it. NULL is allowed.
 * Blocking: until they are done.   Threads: no other call on the stream may run.   Errors: as synchronize. */
HOOP_API enum hoop_status hoop_stream_destroy(hoop_stream *stream);

/* Wait until all calls given to the stream so far are done.
 * Blocking: until then, with the bounds of those calls.   Threads: any.
 * Errors: the first error of the calls since the last synchronize; calls after a failed one still run (and fail by themselves). */
HOOP_API enum hoop_status hoop_stream_synchronize(hoop_stream *stream);

/* HOOP_OK if all calls given to the stream are done, else HOOP_AGAIN.
 * Blocking: never.   Threads: any.   Errors: none: failures are reported by synchronize. */
HOOP_API enum hoop_status hoop_stream_query(hoop_stream *stream);

/* Figures of a communicator since it was made. Set size to sizeof(struct hoop_stats) before the call. */
struct hoop_stats {
    size_t size;          /* of this struct, for later growth */
    uint64_t calls;       /* collectives finished */
    uint64_t bytes;       /* bytes of their vectors */
    uint64_t plans_built; /* plan cache misses */
    uint64_t sleeps;      /* times a wait went to sleep in the kernel */
    /* Of the last call: algorithm, transport and protocol. "flat/shm/lines": a small exchange through slots, "twoshot/shm/direct":
     * in each other's memory, "twoshot/shm/staged", "flat/shm/staged": by way of memory that they share, "ring/shm/links/1ch/4sl": a plan over links, with its channels and slices. */
    char last_plan[64];
};

/* Read the figures.   Blocking: never.   Threads: as a collective.   Errors: HOOP_ERR_ARG. */
HOOP_API enum hoop_status hoop_stats(const struct hoop_comm *comm, struct hoop_stats *stats);

#define HOOP_EXPLAIN_TEXT 32768 /* bytes that every explanation fits into, with its final NUL */

/* Explain how a collective of some size is done on this communicator: every candidate with its predicted time, who was left
 * out and why, the choice and its reason, what setting would change it, and, after such calls that ran a plan, how long
 * they took on this rank. As `hoop-plan explain` shows it, for a communicator of the same ranks, cores and settings.
 *
 * collective   "all_reduce", "broadcast", … as hoop-plan lists them.
 * bytes        of its whole vector: count elements; where that is of one block, all ranks' blocks.
 * json         0: text for people; else one JSON object.
 * text, size   receives the explanation with a final NUL; at least HOOP_EXPLAIN_TEXT bytes.
 * Not collective: any rank may ask.
 * Blocking: never.   Threads: as a collective.   Errors: HOOP_ERR_ARG (no such collective, or size too small). */
HOOP_API enum hoop_status hoop_explain(const struct hoop_comm *comm, const char *collective, size_t bytes, int json,
                                       char *text, size_t size);

/* Bytes of one element; 0 for a value that is not a type.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API size_t hoop_type_size(enum hoop_type type);

/* Short name as the tools print it ("float", "sum"); "?" for a value that is none. Created operators have the name of their kind:
 * "premul", "user", or "user_in_order" if they do not commute.
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API const char *hoop_type_name(enum hoop_type type);
HOOP_API const char *hoop_op_name(enum hoop_op op);

/* 1 if the operator can combine elements of the type, else 0, also for values that are none and for created operators, which only
 * their communicator knows.
 * Blocking: never.   Threads: any.   Errors: none. */
HOOP_API int hoop_op_accepts(enum hoop_op op, enum hoop_type type);

/* One entry of the table of settings: environment variable HOOP_<name>. */
struct hoop_setting {
    const char *name, *value, *unit, *help; /* value: the one in force for this process, as text */
    const char *origin;                     /* "default" or "environment" */
};

/* Entry i of the settings table, read from the environment now; false past the end.
 * The texts stay valid until the next call of the thread.   Blocking: never.   Threads: any.   Errors: none. */
HOOP_API int hoop_setting_get(int i, struct hoop_setting *setting);

#ifdef __cplusplus
}
#endif

#include "hoop/device.h"    /* CUDA devices of the machine */
#include "hoop/launcher.h"  /* hoop_comm_init_env: joining as a launcher says */
#include "hoop/operators.h" /* operators that a program makes itself */
#include "hoop/shrink.h"    /* going on after a failure */
#endif
