// SPDX-License-Identifier: BSD-3-Clause
/* Finding the launcher's variables. An empty variable counts as not set. */
#include "boot/launch.h"

#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "base/status.h"

struct launcher {
    const char *name, *rank, *size, *local_rank, *local_size, *marker;
};

static const struct launcher launchers[] = {
#define LAUNCHER(name, rank, size, local_rank, local_size, marker) {name, rank, size, local_rank, local_size, marker},
#include "boot/launchers.def"
#undef LAUNCHER
};

enum { LAUNCHERS = sizeof launchers / sizeof *launchers, RANKS_MAX = 1048576 };

static const char *variable(const char *name)
{
    const char *value = *name ? getenv(name) : NULL;

    return value && *value ? value : NULL;
}

static bool present(const struct launcher *launcher)
{
    if (*launcher->marker && !variable(launcher->marker))
        return false;
    return variable(launcher->rank) || variable(launcher->size);
}

/* Read a variable as a number from least to most. */
static enum hoop_status number(const char *name, const char *text, int least, int most, int *value)
{
    long read = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9' && read <= most; at++)
        read = read * 10 + (*at - '0');
    if (*at != 0 || at == text || read < least || read > most)
        return hoop_fail(HOOP_ERR_SETUP, "%s=%.32s is not allowed: give a whole number from %d to %d", name, text,
                         least, most);
    *value = (int)read;
    return HOOP_OK;
}

/* Read a variable that must be there. */
static enum hoop_status needed(const struct launcher *launcher, const char *name, const char *other, int least,
                               int most, int *value)
{
    const char *text = variable(name);

    if (text == NULL)
        return hoop_fail(HOOP_ERR_SETUP, "%s is set, but %s is not: %s sets both; set it too, or unset %s", other, name,
                         launcher->name, other);
    return number(name, text, least, most, value);
}

/* Read a local number, which may be missing (-1). */
static enum hoop_status optional(const char *name, int least, int most, int *value)
{
    const char *text = variable(name);

    *value = -1;
    return text ? number(name, text, least, most, value) : HOOP_OK;
}

static enum hoop_status read_group(const struct launcher *launcher, struct hoop_launch *launch)
{
    launch->launcher = launcher->name;
    enum hoop_status status = needed(launcher, launcher->size, launcher->rank, 1, RANKS_MAX, &launch->ranks);
    if (status == HOOP_OK)
        status = needed(launcher, launcher->rank, launcher->size, 0, launch->ranks - 1, &launch->rank);
    if (status == HOOP_OK)
        status = optional(launcher->local_size, 1, launch->ranks, &launch->local_size);
    if (status == HOOP_OK)
        status = optional(launcher->local_rank, 0, (launch->local_size > 0 ? launch->local_size : launch->ranks) - 1,
                          &launch->local_rank);
    return status;
}

/* The unique id, if HOOP_ID gives one. */
static enum hoop_status read_id(struct hoop_launch *launch)
{
    const char *text = variable("HOOP_ID");

    if (text == NULL)
        return HOOP_OK;
    if (hoop_unique_id_parse(&launch->id, text) != HOOP_OK) {
        char why[256] = "";
        strncat(why, hoop_error_text(), sizeof why - 1);
        return hoop_fail(HOOP_ERR_SETUP, "HOOP_ID is damaged: %s", why);
    }
    launch->has_id = true;
    return HOOP_OK;
}

static enum hoop_status without_id(const struct hoop_launch *launch, bool ours)
{
    if (ours)
        return hoop_fail(HOOP_ERR_SETUP,
                         "HOOP_RANK and HOOP_SIZE are set, but HOOP_ID is not: start with hooprun, or set it "
                         "to the text form of a unique id");
    return hoop_fail(HOOP_ERR_SETUP,
                     "started by %s as rank %d of %d, but meeting through its key store is not built yet: "
                     "start with hooprun, or set HOOP_ID",
                     launch->launcher, launch->rank, launch->ranks);
}

enum hoop_status hoop_launch_find(struct hoop_launch *launch)
{
    struct hoop_launch found = {.launcher = "none", .rank = 0, .ranks = 1, .local_rank = -1, .local_size = -1};
    int i = 0;

    enum hoop_status status = read_id(&found);
    while (i < LAUNCHERS && !present(&launchers[i]))
        i++;
    if (status == HOOP_OK && i < LAUNCHERS)
        status = read_group(&launchers[i], &found);
    else if (status == HOOP_OK && found.has_id)
        status = hoop_fail(HOOP_ERR_SETUP,
                           "HOOP_ID is set, but HOOP_RANK and HOOP_SIZE are not: set them too, or unset HOOP_ID");
    if (status == HOOP_OK && found.ranks > 1 && !found.has_id)
        status = without_id(&found, i == 0);
    if (status == HOOP_OK)
        *launch = found;
    return status;
}
