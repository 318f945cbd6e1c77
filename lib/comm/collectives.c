// SPDX-License-Identifier: BSD-3-Clause
/* The public collectives: check the arguments, say what is asked for; at once, or kept in a handle that is started later. */
#include "comm/comm.h"

static enum hoop_status check_type(const char *what, enum hoop_type type)
{
    if ((unsigned)type >= HOOP_TYPES)
        return hoop_fail(HOOP_ERR_ARG, "%s: type %d is no enum hoop_type", what, (int)type);
    return HOOP_OK;
}

static enum hoop_status check_count(const char *what, const struct hoop_comm_call *call, size_t blocks)
{
    size_t bytes;

    if (__builtin_mul_overflow(call->count, hoop_call_element(call) * blocks, &bytes))
        return hoop_fail(HOOP_ERR_ARG,
                         "%s: %zu elements of %zu bytes for %zu ranks are more than an address space holds", what,
                         call->count, hoop_call_element(call), blocks);
    return HOOP_OK;
}

static enum hoop_status check_op(const char *what, struct hoop_comm_call *call)
{
    const enum hoop_op op = call->op;
    const enum hoop_type type = call->type;

    if (hoop_op_accepts(op, type))
        return HOOP_OK;
    if (op >= HOOP_OPS_CREATED && op < HOOP_OPS_END)
        return hoop_operator_check(what, call);
    if (!hoop_op_is_builtin(op))
        return hoop_fail(HOOP_ERR_ARG, "%s: operator %d is no enum hoop_op", what, (int)op);
    const char *taken = op == HOOP_MINLOC || op == HOOP_MAXLOC ? "pairs of a value and an index"
                        : hoop_op_accepts(HOOP_MINLOC, type)   ? "no pairs (minloc and maxloc do)"
                                                               : "integers";
    return hoop_fail(HOOP_ERR_ARG, "%s: operator %s takes %s; the call has elements of type %s", what, hoop_op_name(op),
                     taken, hoop_type_name(type));
}

static enum hoop_status check_root(const char *what, const struct hoop_comm *comm, int root)
{
    if (root < 0 || root >= comm->ranks)
        return hoop_fail(HOOP_ERR_ARG, "%s: root %d is not one of the ranks 0 to %d", what, root, comm->ranks - 1);
    return HOOP_OK;
}

/* Buffers: not NULL unless empty, and either the very same place (`same`) or apart. */
static enum hoop_status check_buffers(const char *what, const void *in, size_t in_bytes, const void *out,
                                      size_t out_bytes, bool same)
{
    const uintptr_t a = (uintptr_t)in, b = (uintptr_t)out;

    if ((in == NULL && in_bytes > 0) || (out == NULL && out_bytes > 0))
        return hoop_fail(HOOP_ERR_ARG, "%s: the %s buffer is NULL", what,
                         in == NULL && in_bytes > 0 ? "send" : "receive");
    if (!same && in_bytes > 0 && out_bytes > 0 && a < b + out_bytes && b < a + in_bytes)
        return hoop_fail(
            HOOP_ERR_ARG,
            "%s: the send buffer (%zu bytes at %p) and the receive buffer (%zu bytes at %p) overlap without being in "
            "place",
            what, in_bytes, in, out_bytes, out);
    return HOOP_OK;
}

/* The checks that need no buffer. */
static enum hoop_status check_call(struct hoop_comm_call *call)
{
    const struct hoop_coll_shape *shape = hoop_coll_shape(call->coll);
    const char *what = hoop_coll_name(call->coll);

    enum hoop_status status = hoop_comm_usable(call->comm, what);
    if (status == HOOP_OK)
        status = check_type(what, call->type);
    if (status == HOOP_OK && shape->sums)
        status = check_op(what, call);
    if (status == HOOP_OK)
        status = check_count(what, call, shape->blocks ? (size_t)call->comm->ranks : 1);
    if (status == HOOP_OK && shape->rooted)
        status = check_root(what, call->comm, call->root);
    return status;
}

/* Bytes that a buffer of this rank holds; `block` and `whole` as hoop_coll_shape counts them. */
static size_t held(enum hoop_holds holds, bool at_root, size_t block, size_t whole)
{
    return holds == HOOP_OWN_BLOCK ? block : holds == HOOP_WHOLE || at_root ? whole : 0;
}

void hoop_call_held(const struct hoop_comm_call *call, size_t *in, size_t *out)
{
    const size_t block = call->count * hoop_call_element(call);

    if ((int)call->coll > HOOP_COLLS) {
        *in = call->in ? block : 0;
        *out = call->out ? block : 0;
        return;
    }
    const struct hoop_coll_shape *shape = hoop_coll_shape(call->coll);
    const bool at_root = !shape->rooted || call->comm->rank == call->root;
    const size_t whole = shape->blocks ? block * (size_t)call->comm->ranks : block;
    *in = held(shape->in, at_root, block, whole);
    *out = held(shape->out, at_root, block, whole);
}

/* What all collectives have in common: the table of shapes tells what each buffer holds, so also what in place means: both
 * lie where they would lie in one vector. Completes the call. */
static enum hoop_status check(struct hoop_comm_call *call)
{
    const struct hoop_coll_shape *shape = hoop_coll_shape(call->coll);

    if (call->coll == HOOP_BARRIER)
        return hoop_comm_usable(call->comm, "barrier");
    enum hoop_status status = check_call(call);
    if (status != HOOP_OK)
        return status;
    const bool at_root = !shape->rooted || call->comm->rank == call->root;
    const size_t skipped = (size_t)call->comm->rank * call->count * hoop_call_element(call);
    if (shape->in == HOOP_ROOT_ONLY && !at_root)
        call->in = NULL;
    if (shape->out == HOOP_ROOT_ONLY && !at_root)
        call->out = NULL;
    const bool same = (uintptr_t)call->in - (shape->in == HOOP_OWN_BLOCK ? skipped : 0) ==
                      (uintptr_t)call->out - (shape->out == HOOP_OWN_BLOCK ? skipped : 0);
    call->in_place = same && call->count > 0 && !shape->rooted;
    size_t in, out;
    hoop_call_held(call, &in, &out);
    return check_buffers(hoop_coll_name(call->coll), call->in, in, call->out, out, same);
}

static enum hoop_status run(struct hoop_comm_call call, hoop_stream *stream)
{
    enum hoop_status status = stream ? HOOP_AGAIN : hoop_again_run(&call);

    if (status != HOOP_AGAIN)
        return status;
    status = check(&call);
    return status == HOOP_OK ? hoop_comm_submit(&call, stream) : status;
}

static enum hoop_status prepare(struct hoop_comm_call call, hoop_stream *stream, struct hoop_handle **handle)
{
    const enum hoop_status status = check(&call);

    return status == HOOP_OK ? hoop_handle_new(handle, &call, stream) : status;
}

/* hoop_name(parameters) and hoop_name_init(parameters, handle); the rest are the members of the call. */
#define LIST(...) __VA_ARGS__
#define COLLECTIVE(name, parameters, ...)                                                   \
    enum hoop_status hoop_##name parameters                                                 \
    {                                                                                       \
        return run((struct hoop_comm_call){.comm = comm, __VA_ARGS__}, stream);             \
    }                                                                                       \
    enum hoop_status hoop_##name##_init(LIST parameters, struct hoop_handle **handle)       \
    {                                                                                       \
        return prepare((struct hoop_comm_call){.comm = comm, __VA_ARGS__}, stream, handle); \
    }

COLLECTIVE(all_reduce,
           (const void *send, void *recv, size_t count, enum hoop_type type, enum hoop_op op, struct hoop_comm *comm,
            hoop_stream *stream),
           .coll = HOOP_ALL_REDUCE, .in = send, .out = recv, .count = count, .type = type, .op = op, .root = -1)
COLLECTIVE(reduce,
           (const void *send, void *recv, size_t count, enum hoop_type type, enum hoop_op op, int root,
            struct hoop_comm *comm, hoop_stream *stream),
           .coll = HOOP_REDUCE, .in = send, .out = recv, .count = count, .type = type, .op = op, .root = root)
COLLECTIVE(reduce_scatter,
           (const void *send, void *recv, size_t count, enum hoop_type type, enum hoop_op op, struct hoop_comm *comm,
            hoop_stream *stream),
           .coll = HOOP_REDUCE_SCATTER, .in = send, .out = recv, .count = count, .type = type, .op = op, .root = -1)
COLLECTIVE(broadcast,
           (const void *send, void *recv, size_t count, enum hoop_type type, int root, struct hoop_comm *comm,
            hoop_stream *stream),
           .coll = HOOP_BROADCAST, .in = send, .out = recv, .count = count, .type = type, .op = HOOP_OPS, .root = root)
COLLECTIVE(all_gather,
           (const void *send, void *recv, size_t count, enum hoop_type type, struct hoop_comm *comm,
            hoop_stream *stream),
           .coll = HOOP_ALL_GATHER, .in = send, .out = recv, .count = count, .type = type, .op = HOOP_OPS, .root = -1)
COLLECTIVE(all_to_all,
           (const void *send, void *recv, size_t count, enum hoop_type type, struct hoop_comm *comm,
            hoop_stream *stream),
           .coll = HOOP_ALL_TO_ALL, .in = send, .out = recv, .count = count, .type = type, .op = HOOP_OPS, .root = -1)
COLLECTIVE(gather,
           (const void *send, void *recv, size_t count, enum hoop_type type, int root, struct hoop_comm *comm,
            hoop_stream *stream),
           .coll = HOOP_GATHER, .in = send, .out = recv, .count = count, .type = type, .op = HOOP_OPS, .root = root)
COLLECTIVE(scatter,
           (const void *send, void *recv, size_t count, enum hoop_type type, int root, struct hoop_comm *comm,
            hoop_stream *stream),
           .coll = HOOP_SCATTER, .in = send, .out = recv, .count = count, .type = type, .op = HOOP_OPS, .root = root)
COLLECTIVE(barrier, (struct hoop_comm * comm, hoop_stream *stream), .coll = HOOP_BARRIER, .type = HOOP_TYPES,
           .op = HOOP_OPS, .root = -1)
