// SPDX-License-Identifier: BSD-3-Clause
/* Names and shapes of the collectives. */
#include <string.h>

#include "hoop/plan.h"

static const struct {
    const char *name;
    struct hoop_coll_shape shape; /* blocks, rooted, sums, in, out */
} colls[HOOP_COLLS] = {
    [HOOP_ALL_REDUCE] = {"all_reduce", {false, false, true, HOOP_WHOLE, HOOP_WHOLE}},
    [HOOP_REDUCE] = {"reduce", {false, true, true, HOOP_WHOLE, HOOP_ROOT_ONLY}},
    [HOOP_BROADCAST] = {"broadcast", {false, true, false, HOOP_ROOT_ONLY, HOOP_WHOLE}},
    [HOOP_ALL_GATHER] = {"all_gather", {true, false, false, HOOP_OWN_BLOCK, HOOP_WHOLE}},
    [HOOP_REDUCE_SCATTER] = {"reduce_scatter", {true, false, true, HOOP_WHOLE, HOOP_OWN_BLOCK}},
    [HOOP_BARRIER] = {"barrier", {false, false, false, HOOP_WHOLE, HOOP_WHOLE}},
    [HOOP_ALL_TO_ALL] = {"all_to_all", {true, false, false, HOOP_WHOLE, HOOP_WHOLE}},
    [HOOP_GATHER] = {"gather", {true, true, false, HOOP_OWN_BLOCK, HOOP_ROOT_ONLY}},
    [HOOP_SCATTER] = {"scatter", {true, true, false, HOOP_ROOT_ONLY, HOOP_OWN_BLOCK}},
};

const struct hoop_coll_shape *hoop_coll_shape(enum hoop_coll coll)
{
    static const struct hoop_coll_shape none;

    return (unsigned)coll < HOOP_COLLS ? &colls[coll].shape : &none;
}

const char *hoop_coll_name(enum hoop_coll coll)
{
    return (unsigned)coll < HOOP_COLLS ? colls[coll].name : "?";
}

int hoop_coll_find(const char *name)
{
    for (int i = 0; i < HOOP_COLLS; i++)
        if (strcmp(colls[i].name, name) == 0)
            return i;
    return -1;
}
