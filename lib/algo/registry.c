// SPDX-License-Identifier: BSD-3-Clause
/* The list of algorithms, grown from algos.def. */
#include <string.h>

#include "hoop/plan.h"

#define ALGO(name, help) extern const struct hoop_algo hoop_algo_##name;
#include "algo/algos.def"
#undef ALGO

static const struct hoop_algo *const algos[] = {
#define ALGO(name, help) &hoop_algo_##name,
#include "algo/algos.def"
#undef ALGO
};

static const char *const helps[] = {
#define ALGO(name, help) help,
#include "algo/algos.def"
#undef ALGO
};

enum { ALGOS = sizeof algos / sizeof algos[0] };

const struct hoop_algo *hoop_algo_get(int i)
{
    return i >= 0 && i < ALGOS ? algos[i] : NULL;
}

const char *hoop_algo_help(int i)
{
    return i >= 0 && i < ALGOS ? helps[i] : "";
}

const struct hoop_algo *hoop_algo_find(const char *name)
{
    for (int i = 0; i < ALGOS; i++)
        if (strcmp(algos[i]->name, name) == 0)
            return algos[i];
    return NULL;
}
