// SPDX-License-Identifier: BSD-3-Clause
/* Groups of ranks: see hoop/plan.h. One block of memory, and the notes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "hoop/plan.h"
#include "plan/crossing.h"

/* Number the groups by their first ranks; group[] holds labels before. Returns how many there are. */
static int number_groups(int ranks, const int *label, int *group, int *leader)
{
    int groups = 0;

    for (int rank = 0; rank < ranks; rank++) {
        int g = rank > 0 && label[rank] == label[rank - 1] ? group[rank - 1] : 0; /* neighbours mostly go together */

        while (g < groups && label[leader[g]] != label[rank])
            g++;
        if (g == groups)
            leader[groups++] = rank;
        group[rank] = g;
    }
    return groups;
}

enum hoop_status hoop_groups_new(struct hoop_groups **groups, int ranks, const int *label)
{
    const size_t n = (size_t)ranks;
    struct hoop_groups *new = hoop_calloc(1, sizeof *new + (4 * n + 1) * sizeof(int));

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->notes = hoop_calloc(1, sizeof *new->notes);
    if (new->notes == NULL) {
        hoop_free(new);
        return HOOP_ERR_MEMORY;
    }
    int *group = (int *)(new + 1), *place = group + n, *member = place + n, *first = member + n;

    new->ranks = ranks;
    new->groups = number_groups(ranks, label, group, first);
    memset(first, 0, (n + 1) * sizeof *first);
    for (int rank = 0; rank < ranks; rank++)
        place[rank] = first[group[rank] + 1]++;
    new->equal = true;
    for (int g = 0; g < new->groups; g++)
        new->equal = new->equal &&first[g + 1] == first[1];
    for (int g = 0; g < new->groups; g++)
        first[g + 1] += first[g];
    for (int rank = 0; rank < ranks; rank++)
        member[first[group[rank]] + place[rank]] = rank;
    new->group = group;
    new->place = place;
    new->first = first;
    new->member = member;
    *groups = new;
    return HOOP_OK;
}

/* The next size of the text; 0: it is none. */
static int read_size(const char **text)
{
    int size = 0, digits = 0;

    for (; **text >= '0' && **text <= '9' && digits < 7; digits++)
        size = 10 * size + *(*text)++ - '0';
    if (**text == ',')
        ++*text;
    else if (**text != '\0')
        return 0;
    return size;
}

enum hoop_status hoop_groups_cut(struct hoop_groups **groups, int ranks, const char *sizes)
{
    int *label = hoop_calloc((size_t)ranks, sizeof *label);
    enum hoop_status status = label ? HOOP_OK : HOOP_ERR_MEMORY;
    const char *at = sizes;

    for (int rank = 0, group = 0; rank < ranks && status == HOOP_OK; group++) {
        int size = read_size(&at);

        if (size == 0)
            status = hoop_fail(HOOP_ERR_ARG,
                               "groups \"%s\": give the number of ranks in a group, or several with commas", sizes);
        if (*at == '\0')
            at = sizes;
        while (size-- > 0 && rank < ranks)
            label[rank++] = group;
    }
    if (status == HOOP_OK)
        status = hoop_groups_new(groups, ranks, label);
    hoop_free(label);
    return status;
}

/* Are the groups neighbours whose sizes come by turns of so many, but for the last one, which may be smaller? */
static bool by_turns(const struct hoop_groups *groups, int turns)
{
    for (int i = 0; i < groups->ranks; i++)
        if (groups->member[i] != i)
            return false;
    for (int g = turns; g < groups->groups; g++) {
        const int size = groups->first[g + 1] - groups->first[g],
                  wanted = groups->first[g % turns + 1] - groups->first[g % turns];
        if (size != wanted && (g < groups->groups - 1 || size > wanted))
            return false;
    }
    return true;
}

void hoop_groups_text(char text[HOOP_GROUPS_TEXT], const struct hoop_groups *groups)
{
    uint64_t hash = 0xcbf29ce484222325u;

    snprintf(text, HOOP_GROUPS_TEXT, "none");
    if (groups == NULL)
        return;
    for (int turns = 1; turns <= groups->groups; turns++) {
        size_t used = 0;

        for (int g = 0; g < turns && used < HOOP_GROUPS_TEXT; g++)
            used += (size_t)snprintf(text + used, HOOP_GROUPS_TEXT - used, "%s%d", g > 0 ? "," : "",
                                     groups->first[g + 1] - groups->first[g]);
        if (used >= HOOP_GROUPS_TEXT)
            break;
        if (by_turns(groups, turns))
            return;
    }
    for (int rank = 0; rank < groups->ranks; rank++)
        hash = (hash ^ (uint64_t)groups->group[rank]) * 0x100000001b3u;
    snprintf(text, HOOP_GROUPS_TEXT, "~%016" PRIx64, hash);
}

void hoop_groups_free(struct hoop_groups *groups)
{
    if (groups)
        hoop_free(groups->notes);
    hoop_free(groups);
}
