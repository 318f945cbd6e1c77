// SPDX-License-Identifier: BSD-3-Clause
/* Splitting: the ranks of a communicator form smaller ones, one a colour.
 *
 * All tell all their colour and key; so everybody knows every new communicator. The first rank of each makes a unique id,
 * again all tell all, and the ranks of a colour meet by it as strangers would. The ids travel only through the parent, which
 * its ranks trust already.
 */
#include <string.h>

#include "base/alloc.h"
#include "comm/comm.h"

struct wish {
    int32_t color, key;
};

/* Does rank a come before rank b in a new communicator? */
static bool comes_before(const struct wish *wish, int a, int b)
{
    return wish[a].key != wish[b].key ? wish[a].key < wish[b].key : a < b;
}

/* This rank's place among those of its colour; how many there are; who is first. */
static void find_place(const struct wish *wish, int ranks, int self, int *place, int *size, int *first)
{
    *place = *size = 0;
    *first = self;
    for (int rank = 0; rank < ranks; rank++) {
        if (wish[rank].color != wish[self].color)
            continue;
        ++*size;
        *place += comes_before(wish, rank, self);
        if (comes_before(wish, rank, *first))
            *first = rank;
    }
}

/* Everybody's wishes, then the ids that the first ranks made. */
static enum hoop_status exchange(struct hoop_comm *comm, struct wish *wish, struct hoop_unique_id *ids, int *place,
                                 int *size, int *first)
{
    enum hoop_status status = hoop_all_gather(&wish[comm->rank], wish, sizeof *wish, HOOP_U8, comm, NULL);

    if (status != HOOP_OK)
        return status;
    find_place(wish, comm->ranks, comm->rank, place, size, first);
    enum hoop_status made = HOOP_OK;
    if (*first == comm->rank && *size > 1 && wish[comm->rank].color != HOOP_NO_COLOR)
        made = hoop_hosts_create_id(comm,
                                    &ids[comm->rank]); /* on failure the id stays zero, and the others learn it below */
    status = hoop_all_gather(&ids[comm->rank], ids, sizeof *ids, HOOP_U8, comm, NULL);
    return made != HOOP_OK ? made : status;
}

static enum hoop_status meet(struct hoop_comm *comm, struct hoop_comm **split, const struct wish *wish,
                             const struct hoop_unique_id *ids, int place, int size, int first)
{
    static const struct hoop_unique_id none;

    if (wish[comm->rank].color == HOOP_NO_COLOR) {
        *split = NULL;
        return HOOP_OK;
    }
    if (size > 1 && memcmp(&ids[first], &none, sizeof none) == 0)
        return hoop_fail(
            HOOP_ERR_PEER,
            "hoop_comm_split: rank %d could not make the unique id of colour %d; its own message has the reason", first,
            wish[comm->rank].color);
    return hoop_comm_make(split, size, size > 1 ? &ids[first] : NULL, place, comm);
}

enum hoop_status hoop_comm_split(struct hoop_comm *comm, int color, int key, struct hoop_comm **split)
{
    enum hoop_status status = hoop_comm_usable(comm, "hoop_comm_split");
    int place = 0, size = 0, first = 0;

    if (status != HOOP_OK)
        return status;
    if (split == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_split: split is NULL");
    if (color < 0 && color != HOOP_NO_COLOR)
        return hoop_fail(HOOP_ERR_ARG, "hoop_comm_split: color %d; give 0 or more, or HOOP_NO_COLOR", color);
    struct wish *wish = hoop_calloc((size_t)comm->ranks, sizeof *wish);
    struct hoop_unique_id *ids = hoop_calloc((size_t)comm->ranks, sizeof *ids);
    if (wish && ids) {
        wish[comm->rank] = (struct wish){color, key};
        status = exchange(comm, wish, ids, &place, &size, &first);
    } else {
        status = HOOP_ERR_MEMORY;
        hoop_comm_failed(comm, status); /* the others wait for us: */
        hoop_comm_abort(comm);
    }
    if (status == HOOP_OK)
        status = meet(comm, split, wish, ids, place, size, first);
    hoop_free(wish);
    hoop_free(ids);
    return status;
}
