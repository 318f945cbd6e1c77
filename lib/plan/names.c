// SPDX-License-Identifier: BSD-3-Clause
/* Names of the collectives. */
#include <string.h>

#include "hoop/plan.h"

static const char *const names[HOOP_COLLS] = {
    [HOOP_ALL_REDUCE] = "all_reduce",         [HOOP_REDUCE] = "reduce",
    [HOOP_BROADCAST] = "broadcast",           [HOOP_ALL_GATHER] = "all_gather",
    [HOOP_REDUCE_SCATTER] = "reduce_scatter", [HOOP_BARRIER] = "barrier",
};

const char *hoop_coll_name(enum hoop_coll coll)
{
    return (unsigned)coll < HOOP_COLLS ? names[coll] : "?";
}

int hoop_coll_find(const char *name)
{
    for (int i = 0; i < HOOP_COLLS; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}
