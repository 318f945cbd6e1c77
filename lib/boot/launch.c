// SPDX-License-Identifier: BSD-3-Clause
/* Finding the launcher's variables, and the way to a common id. An empty variable counts as not set. */
#include "boot/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "base/status.h"
#include "boot/pmix.h"

enum store { NONE, PMI, PMIX, MASTER, NODES };

struct launcher {
    const char *name, *rank, *size, *local_rank, *local_size, *hosts, *marker;
    enum store store, place;
    const char *job;
};

static const struct launcher launchers[] = {
#define LAUNCHER(name, rank, size, local_rank, local_size, hosts, marker, store, place, job) \
    {name, rank, size, local_rank, local_size, hosts, marker, store, place, job},
#include "boot/launchers.def"
#undef LAUNCHER
};

enum { LAUNCHERS = sizeof launchers / sizeof *launchers, RANKS_MAX = 1048576, DESCRIPTORS = 1 << 30 };

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

static enum hoop_status missing(const struct launcher *launcher, const char *name, const char *other)
{
    return hoop_fail(HOOP_ERR_SETUP, "%s is set, but %s is not: %s sets both; set it too, or unset %s", other, name,
                     launcher->name, other);
}

/* Read a variable that must be there. */
static enum hoop_status needed(const struct launcher *launcher, const char *name, const char *other, int least,
                               int most, int *value)
{
    const char *text = variable(name);

    return text ? number(name, text, least, most, value) : missing(launcher, name, other);
}

/* Read a number, which may be missing (-1). */
static enum hoop_status optional(const char *name, int least, int most, int *value)
{
    const char *text = variable(name);

    *value = -1;
    return text ? number(name, text, least, most, value) : HOOP_OK;
}

static enum hoop_status read_group(const struct launcher *launcher, struct hoop_launch *launch)
{
    enum hoop_status status = HOOP_OK;
    int hosts = -1;

    launch->launcher = launcher->name;
    launch->ranks = 0;
    if (*launcher->size)
        status = needed(launcher, launcher->size, launcher->rank, 1, RANKS_MAX, &launch->ranks);
    if (status == HOOP_OK)
        status = needed(launcher, launcher->rank, launcher->size, 0, (launch->ranks ? launch->ranks : RANKS_MAX) - 1,
                        &launch->rank);
    if (status == HOOP_OK)
        status = optional(launcher->local_size, 1, launch->ranks, &launch->local_size);
    if (status == HOOP_OK)
        status = optional(launcher->local_rank, 0, (launch->local_size > 0 ? launch->local_size : launch->ranks) - 1,
                          &launch->local_rank);
    if (status == HOOP_OK)
        status = optional(launcher->hosts, 1, RANKS_MAX, &hosts);
    launch->one_host = hosts == 1 || (launch->ranks > 0 && launch->local_size == launch->ranks);
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
    launch->way = HOOP_LAUNCH_ID;
    return HOOP_OK;
}

/* ---- without HOOP_ID ---- */

/* What tells this job from others: "NAME=value " of its variables. */
static void name_job(const struct launcher *launcher, char job[HOOP_LAUNCH_JOB])
{
    size_t used = 0;
    char name[64];

    *job = 0;
    for (const char *at = launcher->job; *at; at += strcspn(at, " "), at += *at == ' ') {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
        const char *value = variable(name);
        if (value && used < HOOP_LAUNCH_JOB)
            used += (size_t)snprintf(job + used, HOOP_LAUNCH_JOB - used, "%s=%.100s ", name, value);
    }
}

/* MASTER_ADDR and the port after MASTER_PORT, where torch's own store is. */
static enum hoop_status read_master(const struct launcher *launcher, struct hoop_launch *launch)
{
    const char *host = variable("MASTER_ADDR"), *port = variable("MASTER_PORT");
    int value = 0;

    if (host == NULL || port == NULL)
        return missing(launcher, host ? "MASTER_PORT" : "MASTER_ADDR",
                       host   ? "MASTER_ADDR"
                       : port ? "MASTER_PORT"
                              : launcher->rank);
    if (strlen(host) >= sizeof launch->place.host)
        return hoop_fail(HOOP_ERR_SETUP, "MASTER_ADDR=%.32s… is longer than the name of a host can be", host);
    const enum hoop_status status = number("MASTER_PORT", port, 1, UINT16_MAX - 1, &value);
    snprintf(launch->place.host, sizeof launch->place.host, "%s", host);
    launch->place.port = (uint16_t)(value + 1);
    launch->place_from = "MASTER_ADDR, and the port after MASTER_PORT";
    return status;
}

static enum hoop_status read_nodes(struct hoop_launch *launch)
{
    const char *list = variable("SLURM_STEP_NODELIST");

    if (list == NULL || !hoop_place_first_host(list, launch->place.host))
        return hoop_fail(
            HOOP_ERR_SETUP,
            "SLURM_STEP_ID is set, but SLURM_STEP_NODELIST%s%.64s: srun sets it to a list of hosts, such as n[1-4]",
            list ? " is not a list of hosts: " : " is not", list ? list : "");
    launch->place.port = hoop_place_port(launch->job);
    launch->place_from = "the first host of SLURM_STEP_NODELIST, at a port of the job's number";
    return HOOP_OK;
}

/* Whatever the launcher's own store is, it can be used here. */
static enum hoop_status read_store(const struct launcher *launcher, struct hoop_launch *launch)
{
    if (launcher->store == PMI && variable("PMI_FD")) {
        launch->way = HOOP_LAUNCH_PMI;
        return number("PMI_FD", variable("PMI_FD"), 0, DESCRIPTORS, &launch->pmi_fd);
    }
    if (launcher->store == PMIX && variable("PMIX_NAMESPACE")) {
        launch->way = HOOP_LAUNCH_PMIX;
        return hoop_pmix_ready();
    }
    return HOOP_OK;
}

static enum hoop_status no_way(const struct launcher *launcher, const struct hoop_launch *launch)
{
    if (launcher == launchers)
        return hoop_fail(
            HOOP_ERR_SETUP,
            "HOOP_RANK and HOOP_SIZE are set, but HOOP_ID is not: start with hooprun, or set it "
            "to the text form of a unique id, or set HOOP_MEET to a place and HOOP_SECRET to a secret, the same on all "
            "ranks");
    return hoop_fail(
        HOOP_ERR_SETUP,
        "started by %s as rank %d of %d, but it gives no key store (%s is not set) and no place to meet: set HOOP_MEET "
        "to host:port of rank 0 and HOOP_SECRET to a secret, the same on all ranks, or start with hooprun",
        launch->launcher, launch->rank, launch->ranks, launcher->store == PMI ? "PMI_FD" : "PMIX_NAMESPACE");
}

static enum hoop_status read_place(const struct launcher *launcher, const struct hoop_settings *settings,
                                   struct hoop_launch *launch)
{
    const struct hoop_setting_value *meet = &settings->value[HOOP_SETTING_MEET];
    enum hoop_status status;
    char why[HOOP_ERROR_TEXT] = "";

    launch->way = HOOP_LAUNCH_PLACE;
    launch->place_from = "HOOP_MEET";
    if (meet->given)
        status = hoop_place_parse(&launch->place, "HOOP_MEET", meet->word);
    else if (launcher->place == MASTER || (variable("MASTER_ADDR") && variable("MASTER_PORT")))
        status = read_master(launcher, launch);
    else if (launcher->place == NODES)
        status = read_nodes(launch);
    else
        status = no_way(launcher, launch);
    if (status != HOOP_OK || (status = hoop_place_key(settings, launch->key, &launch->key_from)) == HOOP_OK)
        return status;
    strncat(why, hoop_error_text(), sizeof why - 1);
    return hoop_fail(status, "started by %s as rank %d of %d: %s", launch->launcher, launch->rank, launch->ranks, why);
}

/* The way to an id for more than one rank. */
static enum hoop_status find_way(const struct launcher *launcher, struct hoop_launch *launch)
{
    struct hoop_settings settings;

    enum hoop_status status = hoop_settings_read(&settings);
    if (status != HOOP_OK)
        return status;
    name_job(launcher, launch->job);
    if (!settings.value[HOOP_SETTING_MEET].given)
        status = read_store(launcher, launch);
    if (status == HOOP_OK && launch->way == HOOP_LAUNCH_ALONE)
        status = read_place(launcher, &settings, launch);
    return status;
}

/* Variables of no whole group. */
static enum hoop_status check_strays(const struct hoop_launch *launch)
{
    if (launch->way == HOOP_LAUNCH_ID)
        return hoop_fail(HOOP_ERR_SETUP,
                         "HOOP_ID is set, but HOOP_RANK and HOOP_SIZE are not: set them too, or unset HOOP_ID");
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "MASTER_PORT" : "MASTER_ADDR";
        if (variable(name))
            return hoop_fail(
                HOOP_ERR_SETUP,
                "%s is set, but RANK and WORLD_SIZE are not: torchrun sets all of them; set them too, or unset %s",
                name, name);
    }
    return HOOP_OK;
}

enum hoop_status hoop_launch_find(struct hoop_launch *launch)
{
    struct hoop_launch found = {.launcher = "none", .rank = 0, .ranks = 1, .local_rank = -1, .local_size = -1};
    int i = 0;

    enum hoop_status status = read_id(&found);
    while (i < LAUNCHERS && !present(&launchers[i]))
        i++;
    if (status == HOOP_OK)
        status = i < LAUNCHERS ? read_group(&launchers[i], &found) : check_strays(&found);
    if (status == HOOP_OK && found.ranks == 0 && found.way == HOOP_LAUNCH_ID)
        status = hoop_fail(HOOP_ERR_SETUP,
                           "HOOP_ID is set, but %s does not tell the number of ranks: set HOOP_RANK and HOOP_SIZE "
                           "too, or unset HOOP_ID",
                           found.launcher);
    if (status == HOOP_OK && found.ranks != 1 && found.way == HOOP_LAUNCH_ALONE)
        status = find_way(&launchers[i], &found);
    if (status == HOOP_OK)
        *launch = found;
    return status;
}

void hoop_launch_describe(const struct hoop_launch *launch, char how[HOOP_LAUNCH_HOW])
{
    switch (launch->way) {
    case HOOP_LAUNCH_ALONE:
        snprintf(how, HOOP_LAUNCH_HOW, "alone");
        break;
    case HOOP_LAUNCH_ID:
        snprintf(how, HOOP_LAUNCH_HOW, "by HOOP_ID");
        break;
    case HOOP_LAUNCH_PMI:
        snprintf(how, HOOP_LAUNCH_HOW, "rank 0 puts an id into the launcher's key store (PMI-1 at PMI_FD=%d)",
                 launch->pmi_fd);
        break;
    case HOOP_LAUNCH_PMIX:
        snprintf(how, HOOP_LAUNCH_HOW, "rank 0 puts an id into the launcher's key store (PMIx)");
        break;
    case HOOP_LAUNCH_PLACE:
        snprintf(how, HOOP_LAUNCH_HOW, "rank 0 serves at %.200s port %u (%s), with the secret of %s",
                 launch->place.host, (unsigned)launch->place.port, launch->place_from, launch->key_from);
        break;
    }
}
