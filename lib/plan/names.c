// SPDX-License-Identifier: BSD-3-Clause
/* Names and shapes of the collectives; names of composed algorithms. */
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

static const struct hoop_algo *find_word(const char *text, size_t length)
{
    const struct hoop_algo *algo;

    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++)
        if (strlen(algo->name) == length && memcmp(algo->name, text, length) == 0)
            return algo;
    return NULL;
}

bool hoop_algo_read(const char *text, const struct hoop_algo **algo, const struct hoop_algo **inter,
                    const struct hoop_algo **intra)
{
    const size_t name = strcspn(text, "("), first = text[name] ? strcspn(text + name + 1, ",") : 0;
    const struct hoop_algo *whole = find_word(text, name), *across = NULL, *inside = NULL;

    if (whole != NULL && text[name] != '\0') {
        const char *second = text + name + 1 + first;
        const size_t length = *second ? strcspn(second + 1, ")") : 0;

        across = find_word(text + name + 1, first);
        inside = *second ? find_word(second + 1, length) : NULL;
        if (!whole->composed || across == NULL || inside == NULL || across->composed || inside->composed ||
            strcmp(second + 1 + length, ")") != 0)
            return false;
    }
    if (whole == NULL)
        return false;
    *algo = whole;
    *inter = across;
    *intra = inside;
    return true;
}

void hoop_algo_text(char text[HOOP_ALGO_TEXT], const struct hoop_algo *algo, const struct hoop_algo *inter,
                    const struct hoop_algo *intra)
{
    if (inter != NULL && intra != NULL)
        snprintf(text, HOOP_ALGO_TEXT, "%s(%s,%s)", algo->name, inter->name, intra->name);
    else
        snprintf(text, HOOP_ALGO_TEXT, "%s", algo->name);
}
