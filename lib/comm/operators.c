// SPDX-License-Identifier: BSD-3-Clause
/* Created operators: premultiplied sums and functions of the user.
 *
 * An operator's value is its kind and its number, so that it fits the byte that calls publish, and ranks whose operators differ
 * in kind notice before data is used. Numbers are handed out by the order of creation, which must be the same on all ranks:
 * nothing is sent. A premultiplied sum is a sum of what hoop_operator_multiply makes; the executors see functions only.
 */
#include <string.h>

#include "base/alloc.h"
#include "comm/comm.h"

enum {
    FACTORS = 256,
    ELEMENT_MOST = 4096
}; /* ELEMENT_MOST: the least HOOP_SLICE, so that every element fits a frame */

struct hoop_operator {
    enum hoop_op value;
    enum hoop_type type; /* of a premultiplied sum */
    struct hoop_user_op user;
    unsigned char
        factor[FACTORS * sizeof(uint64_t)]; /* the scalar FACTORS times, in the wide type: an operand for the kernels */
};

static unsigned kind_of(enum hoop_op op)
{
    return (unsigned)op / HOOP_OP_NUMBERS;
}

const struct hoop_operator *hoop_operator_find(const struct hoop_comm *comm, enum hoop_op op)
{
    const struct hoop_operator *created = comm->operators[(unsigned)op % HOOP_OP_NUMBERS];

    return created && created->value == op ? created : NULL;
}

const struct hoop_user_op *hoop_operator_user(const struct hoop_operator *created)
{
    return kind_of(created->value) == HOOP_OP_PREMUL ? NULL : &created->user;
}

bool hoop_operator_is_premul(enum hoop_op op)
{
    return kind_of(op) == HOOP_OP_PREMUL;
}

uint64_t hoop_operator_factor(const struct hoop_operator *created)
{
    uint64_t bits = 0;

    memcpy(&bits, created->factor, hoop_type_size(hoop_type_wide(created->type)));
    return bits;
}

void hoop_operator_multiply(const struct hoop_operator *created, void *to, const void *from, size_t count)
{
    const enum hoop_type type = created->type, wide = hoop_type_wide(type);
    const size_t size = hoop_type_size(type), wide_size = hoop_type_size(wide);

    for (size_t at = 0, some; at < count; at += some) {
        unsigned char *product = (unsigned char *)to + at * wide_size;
        const void *input = (const unsigned char *)from + at * size;

        some = count - at < FACTORS ? count - at : FACTORS;
        if (wide != type) {
            hoop_kernel_widen((float *)(void *)product, input, some, type);
            input = product;
        }
        hoop_kernel_reduce(product, input, created->factor, some, wide, HOOP_PROD);
    }
}

void hoop_operators_free(struct hoop_comm *comm)
{
    for (int i = 0; i < HOOP_OP_NUMBERS; i++)
        hoop_free(comm->operators[i]);
}

/* ---- use ---- */

/* A forced algorithm that mixes the order of ranks: better no result than a wrong one, or one by another algorithm. */
static enum hoop_status check_order(const char *what, const struct hoop_comm_call *call)
{
    const struct hoop_comm *comm = call->comm;
    const struct hoop_algo *forced = comm->choice.forced;
    const struct hoop_problem problem = {
        .coll = call->coll, .ranks = comm->ranks, .in_place = call->in_place, .channels = 1};

    if (comm->ranks == 1 || forced == NULL || forced->rank_order)
        return HOOP_OK;
    const struct hoop_problem its = hoop_choice_problem(&comm->choice, forced, &problem, 0);
    if (!forced->applicable(&its))
        return HOOP_OK;
    return hoop_fail(HOOP_ERR_ARG,
                     "%s: operator %d does not commute, and HOOP_ALGO=%s does not combine in rank order; give flat, "
                     "twoshot or auto",
                     what, (int)call->op, forced->name);
}

enum hoop_status hoop_operator_check(const char *what, struct hoop_comm_call *call)
{
    const struct hoop_operator *created = hoop_operator_find(call->comm, call->op);

    if (created == NULL)
        return hoop_fail(HOOP_ERR_ARG,
                         "%s: operator %d is none of this communicator's: it was created for another one, or destroyed",
                         what, (int)call->op);
    if (kind_of(created->value) == HOOP_OP_PREMUL && call->type != created->type)
        return hoop_fail(HOOP_ERR_ARG, "%s: operator %d multiplies elements of type %s; the call has type %s", what,
                         (int)call->op, hoop_type_name(created->type), hoop_type_name(call->type));
    if (created->user.element && call->type != HOOP_U8)
        return hoop_fail(HOOP_ERR_ARG,
                         "%s: operator %d has elements of %zu bytes: give HOOP_U8 and the number of such elements, not "
                         "type %s",
                         what, (int)call->op, created->user.element, hoop_type_name(call->type));
    call->element = created->user.element;
    return kind_of(created->value) == HOOP_OP_IN_ORDER ? check_order(what, call) : HOOP_OK;
}

/* ---- life ---- */

/* A free number for a new operator. */
static enum hoop_status make(struct hoop_comm *comm, unsigned kind, struct hoop_operator **created)
{
    unsigned number = 0;

    while (number < HOOP_OP_NUMBERS && comm->operators[number])
        number++;
    if (number == HOOP_OP_NUMBERS)
        return hoop_fail(HOOP_ERR_ARG, "a communicator has at most %d created operators at a time; destroy one",
                         HOOP_OP_NUMBERS);
    *created = hoop_calloc(1, sizeof **created);
    if (*created == NULL)
        return HOOP_ERR_MEMORY;
    (*created)->value = (enum hoop_op)(kind * HOOP_OP_NUMBERS + number);
    comm->operators[number] = *created;
    return HOOP_OK;
}

enum hoop_status hoop_op_premul_create(enum hoop_op *op, const void *scalar, enum hoop_type type,
                                       struct hoop_comm *comm)
{
    enum hoop_status status = hoop_comm_usable(comm, "hoop_op_premul_create");
    struct hoop_operator *created = NULL;
    uint64_t wide_scalar = 0;

    if (status != HOOP_OK)
        return status;
    if (op == NULL || scalar == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_op_premul_create: %s is NULL", op ? "scalar" : "op");
    if (!hoop_op_accepts(HOOP_PROD, type))
        return hoop_fail(HOOP_ERR_ARG, "hoop_op_premul_create: elements of type %d (%s) cannot be multiplied",
                         (int)type, hoop_type_name(type));
    status = make(comm, HOOP_OP_PREMUL, &created);
    if (status != HOOP_OK)
        return status;
    const enum hoop_type wide = hoop_type_wide(type);
    const size_t size = hoop_type_size(wide);
    if (wide != type)
        hoop_kernel_widen((float *)(void *)&wide_scalar, scalar, 1, type);
    else
        memcpy(&wide_scalar, scalar, size);
    for (int i = 0; i < FACTORS; i++)
        memcpy(created->factor + (size_t)i * size, &wide_scalar, size);
    created->type = type;
    *op = created->value;
    return HOOP_OK;
}

enum hoop_status hoop_op_user_create(enum hoop_op *op, hoop_op_function function, void *context, size_t element_bytes,
                                     int commutative, struct hoop_comm *comm)
{
    enum hoop_status status = hoop_comm_usable(comm, "hoop_op_user_create");
    struct hoop_operator *created = NULL;

    if (status != HOOP_OK)
        return status;
    if (op == NULL || function == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_op_user_create: %s is NULL", op ? "function" : "op");
    if (element_bytes > ELEMENT_MOST)
        return hoop_fail(HOOP_ERR_ARG, "hoop_op_user_create: elements of %zu bytes; at most %d are possible",
                         element_bytes, ELEMENT_MOST);
    status = make(comm, commutative ? HOOP_OP_USER : HOOP_OP_IN_ORDER, &created);
    if (status != HOOP_OK)
        return status;
    created->user = (struct hoop_user_op){function, context, element_bytes, commutative != 0};
    *op = created->value;
    return HOOP_OK;
}

enum hoop_status hoop_op_destroy(enum hoop_op op, struct hoop_comm *comm)
{
    if (comm == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_op_destroy: the communicator is NULL");
    if (comm->forks != hoop_comm_forks())
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "hoop_op_destroy: this process was forked; the operator is its parent's");
    if (hoop_operator_find(comm, op) == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_op_destroy: operator %d is none that was created for this communicator",
                         (int)op);
    if (hoop_group_open())
        return hoop_fail(HOOP_ERR_ARG,
                         "hoop_op_destroy: operator %d inside a group, whose calls may use it: end the group first",
                         (int)op);
    if (hoop_handle_uses(comm, op))
        return hoop_fail(HOOP_ERR_ARG, "hoop_op_destroy: operator %d is used by a persistent handle: free that first",
                         (int)op);
    hoop_comm_drain(comm); /* calls given to streams may use it */
    hoop_free(comm->operators[(unsigned)op % HOOP_OP_NUMBERS]);
    comm->operators[(unsigned)op % HOOP_OP_NUMBERS] = NULL;
    return HOOP_OK;
}
