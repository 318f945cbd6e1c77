// SPDX-License-Identifier: BSD-3-Clause
/* The public collectives: check the arguments, say what is asked for. */
#include "comm/comm.h"

static enum hoop_status check_type(const char *what, enum hoop_type type, size_t count, size_t blocks)
{
    if ((unsigned)type >= HOOP_TYPES)
        return hoop_fail(HOOP_ERR_ARG, "%s: type %d is no enum hoop_type", what, (int)type);
    if (count > SIZE_MAX / hoop_type_size(type) / blocks)
        return hoop_fail(HOOP_ERR_ARG, "%s: %zu elements of %s for %zu ranks are more than an address space holds",
                         what, count, hoop_type_name(type), blocks);
    return HOOP_OK;
}

static enum hoop_status check_op(const char *what, enum hoop_op op, enum hoop_type type)
{
    if ((unsigned)op >= HOOP_OPS)
        return hoop_fail(HOOP_ERR_ARG, "%s: operator %d is no enum hoop_op", what, (int)op);
    if (!hoop_op_accepts(op, type))
        return hoop_fail(HOOP_ERR_ARG, "%s: operator %s takes integers, not elements of type %s", what,
                         hoop_op_name(op), hoop_type_name(type));
    return HOOP_OK;
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

/* The checks that all collectives share. blocks: how many times count the larger buffer holds. */
static enum hoop_status check_call(const char *what, struct hoop_comm *comm, size_t count, enum hoop_type type,
                                   bool blocks, const enum hoop_op *op, const int *root)
{
    enum hoop_status status = hoop_comm_usable(comm, what);

    if (status == HOOP_OK)
        status = check_type(what, type, count, blocks ? (size_t)comm->ranks : 1);
    if (status == HOOP_OK && op)
        status = check_op(what, *op, type);
    if (status == HOOP_OK && root)
        status = check_root(what, comm, *root);
    return status;
}

enum hoop_status hoop_all_reduce(const void *send, void *recv, size_t count, enum hoop_type type, enum hoop_op op,
                                 struct hoop_comm *comm, hoop_stream *stream)
{
    static const char what[] = "all_reduce";
    enum hoop_status status = check_call(what, comm, count, type, false, &op, NULL);

    if (status != HOOP_OK)
        return status;
    const size_t bytes = count * hoop_type_size(type);
    status = check_buffers(what, send, bytes, recv, bytes, send == recv);
    if (status != HOOP_OK)
        return status;
    return hoop_comm_submit(&(struct hoop_comm_call){.comm = comm,
                                                     .coll = HOOP_ALL_REDUCE,
                                                     .type = type,
                                                     .op = op,
                                                     .root = -1,
                                                     .in_place = count > 0 && send == recv,
                                                     .count = count,
                                                     .in = send,
                                                     .out = recv},
                            stream);
}

enum hoop_status hoop_reduce(const void *send, void *recv, size_t count, enum hoop_type type, enum hoop_op op, int root,
                             struct hoop_comm *comm, hoop_stream *stream)
{
    static const char what[] = "reduce";
    enum hoop_status status = check_call(what, comm, count, type, false, &op, &root);

    if (status != HOOP_OK)
        return status;
    const size_t bytes = count * hoop_type_size(type);
    void *const out = comm->rank == root ? recv : NULL;
    status = check_buffers(what, send, bytes, out, comm->rank == root ? bytes : 0, send == recv);
    if (status != HOOP_OK)
        return status;
    return hoop_comm_submit(&(struct hoop_comm_call){.comm = comm,
                                                     .coll = HOOP_REDUCE,
                                                     .type = type,
                                                     .op = op,
                                                     .root = root,
                                                     .count = count,
                                                     .in = send,
                                                     .out = out},
                            stream);
}

enum hoop_status hoop_broadcast(const void *send, void *recv, size_t count, enum hoop_type type, int root,
                                struct hoop_comm *comm, hoop_stream *stream)
{
    static const char what[] = "broadcast";
    enum hoop_status status = check_call(what, comm, count, type, false, NULL, &root);

    if (status != HOOP_OK)
        return status;
    const size_t bytes = count * hoop_type_size(type);
    const void *const in = comm->rank == root ? send : NULL;
    status = check_buffers(what, in, comm->rank == root ? bytes : 0, recv, bytes, send == recv);
    if (status != HOOP_OK)
        return status;
    return hoop_comm_submit(&(struct hoop_comm_call){.comm = comm,
                                                     .coll = HOOP_BROADCAST,
                                                     .type = type,
                                                     .op = HOOP_OPS,
                                                     .root = root,
                                                     .count = count,
                                                     .in = in,
                                                     .out = recv},
                            stream);
}

enum hoop_status hoop_all_gather(const void *send, void *recv, size_t count, enum hoop_type type,
                                 struct hoop_comm *comm, hoop_stream *stream)
{
    static const char what[] = "all_gather";
    enum hoop_status status = check_call(what, comm, count, type, true, NULL, NULL);

    if (status != HOOP_OK)
        return status;
    const size_t bytes = count * hoop_type_size(type);
    const bool in_place = count > 0 && send == (unsigned char *)recv + (size_t)comm->rank * bytes;
    status = check_buffers(what, send, bytes, recv, bytes * (size_t)comm->ranks, in_place);
    if (status != HOOP_OK)
        return status;
    return hoop_comm_submit(&(struct hoop_comm_call){.comm = comm,
                                                     .coll = HOOP_ALL_GATHER,
                                                     .type = type,
                                                     .op = HOOP_OPS,
                                                     .root = -1,
                                                     .in_place = in_place,
                                                     .count = count,
                                                     .in = send,
                                                     .out = recv},
                            stream);
}

enum hoop_status hoop_reduce_scatter(const void *send, void *recv, size_t count, enum hoop_type type, enum hoop_op op,
                                     struct hoop_comm *comm, hoop_stream *stream)
{
    static const char what[] = "reduce_scatter";
    enum hoop_status status = check_call(what, comm, count, type, true, &op, NULL);

    if (status != HOOP_OK)
        return status;
    const size_t bytes = count * hoop_type_size(type);
    const bool in_place = count > 0 && recv == (const unsigned char *)send + (size_t)comm->rank * bytes;
    status = check_buffers(what, send, bytes * (size_t)comm->ranks, recv, bytes, in_place);
    if (status != HOOP_OK)
        return status;
    return hoop_comm_submit(&(struct hoop_comm_call){.comm = comm,
                                                     .coll = HOOP_REDUCE_SCATTER,
                                                     .type = type,
                                                     .op = op,
                                                     .root = -1,
                                                     .in_place = in_place,
                                                     .count = count,
                                                     .in = send,
                                                     .out = recv},
                            stream);
}

enum hoop_status hoop_all_to_all(const void *send, void *recv, size_t count, enum hoop_type type,
                                 struct hoop_comm *comm, hoop_stream *stream)
{
    static const char what[] = "all_to_all";
    enum hoop_status status = check_call(what, comm, count, type, true, NULL, NULL);

    if (status != HOOP_OK)
        return status;
    const size_t bytes = count * hoop_type_size(type) * (size_t)comm->ranks;
    status = check_buffers(what, send, bytes, recv, bytes, send == recv);
    if (status != HOOP_OK)
        return status;
    return hoop_comm_submit(&(struct hoop_comm_call){.comm = comm,
                                                     .coll = HOOP_ALL_TO_ALL,
                                                     .type = type,
                                                     .op = HOOP_OPS,
                                                     .root = -1,
                                                     .in_place = count > 0 && send == recv,
                                                     .count = count,
                                                     .in = send,
                                                     .out = recv},
                            stream);
}

enum hoop_status hoop_gather(const void *send, void *recv, size_t count, enum hoop_type type, int root,
                             struct hoop_comm *comm, hoop_stream *stream)
{
    static const char what[] = "gather";
    enum hoop_status status = check_call(what, comm, count, type, true, NULL, &root);

    if (status != HOOP_OK)
        return status;
    const bool at_root = comm->rank == root;
    const size_t bytes = count * hoop_type_size(type);
    unsigned char *const out = at_root ? recv : NULL;
    const bool in_place = out && send == out + (size_t)root * bytes;
    status = check_buffers(what, send, bytes, out, at_root ? bytes * (size_t)comm->ranks : 0, in_place);
    if (status != HOOP_OK)
        return status;
    return hoop_comm_submit(&(struct hoop_comm_call){.comm = comm,
                                                     .coll = HOOP_GATHER,
                                                     .type = type,
                                                     .op = HOOP_OPS,
                                                     .root = root,
                                                     .count = count,
                                                     .in = send,
                                                     .out = out},
                            stream);
}

enum hoop_status hoop_scatter(const void *send, void *recv, size_t count, enum hoop_type type, int root,
                              struct hoop_comm *comm, hoop_stream *stream)
{
    static const char what[] = "scatter";
    enum hoop_status status = check_call(what, comm, count, type, true, NULL, &root);

    if (status != HOOP_OK)
        return status;
    const bool at_root = comm->rank == root;
    const size_t bytes = count * hoop_type_size(type);
    const unsigned char *const in = at_root ? send : NULL;
    const bool in_place = in && recv == in + (size_t)root * bytes;
    status = check_buffers(what, in, at_root ? bytes * (size_t)comm->ranks : 0, recv, bytes, in_place);
    if (status != HOOP_OK)
        return status;
    return hoop_comm_submit(&(struct hoop_comm_call){.comm = comm,
                                                     .coll = HOOP_SCATTER,
                                                     .type = type,
                                                     .op = HOOP_OPS,
                                                     .root = root,
                                                     .count = count,
                                                     .in = in,
                                                     .out = recv},
                            stream);
}

enum hoop_status hoop_barrier(struct hoop_comm *comm, hoop_stream *stream)
{
    enum hoop_status status = hoop_comm_usable(comm, "barrier");

    if (status != HOOP_OK)
        return status;
    return hoop_comm_submit(
        &(struct hoop_comm_call){.comm = comm, .coll = HOOP_BARRIER, .type = HOOP_TYPES, .op = HOOP_OPS, .root = -1},
        stream);
}
