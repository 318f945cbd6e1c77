// SPDX-License-Identifier: BSD-3-Clause
/* How the ranks of a launcher come to one id: from rank 0 through the launcher's key store, or made of an agreed place. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "boot/id.h"
#include "boot/launch.h"
#include "boot/pmi.h"
#include "boot/pmix.h"
#include "wire/iface.h"

enum { INTERFACES = 64, KEY = 32 };

/* Meetings of this process so far: all ranks count alike, and each has a key or an id of its own. */
static struct {
    pthread_mutex_t lock;
    unsigned count;
    pid_t owner;
    struct hoop_pmi pmi;
} meetings = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((destructor)) static void take_leave(void)
{
    hoop_pmi_finish(&meetings.pmi);
}

/* The first address of this host that others may reach, as text; false: it has none. */
static bool far_address(const struct hoop_settings *settings, char *text, size_t size)
{
    struct hoop_iface list[INTERFACES];
    int count = hoop_iface_list(list, INTERFACES);

    if (count < 0 || hoop_iface_choose(list, &count, settings->value[HOOP_SETTING_IFACE].word) != HOOP_OK)
        return false;
    for (int i = 0; i < count; i++) {
        char printed[HOOP_ADDRESS_TEXT];
        if (list[i].loopback || hoop_address_is_link_local(&list[i].address))
            continue;
        hoop_address_print(&list[i].address, printed); /* "10.0.0.1:0" or "[fd00::1]:0" */
        const bool bracket = printed[0] == '[';
        snprintf(text, size, "%.*s", (int)(strrchr(printed, ':') - printed) - 2 * bracket, printed + bracket);
        return true;
    }
    return false;
}

/* Rank 0's id: to be met on loopback where all ranks are on one host. */
static enum hoop_status make_id(const struct hoop_launch *launch, const struct hoop_settings *settings, char *text,
                                size_t size)
{
    const struct hoop_setting_value *address = &settings->value[HOOP_SETTING_ADDRESS];
    char far[HOOP_ADDRESS_TEXT];
    struct hoop_unique_id id;

    const bool near = address->given || launch->one_host;
    if (!near && !far_address(settings, far, sizeof far))
        return hoop_fail(
            HOOP_ERR_SETUP,
            "rank 0: %s may have started ranks on other hosts, and this one has no address that they could reach; set "
            "HOOP_ADDRESS to one, or to 127.0.0.1 if all are here, or check HOOP_IFACE",
            launch->launcher);
    enum hoop_status status = hoop_id_create(&id, near ? address->word : far);
    if (status == HOOP_OK)
        status = hoop_unique_id_print(&id, text, size);
    hoop_auth_wipe(&id, sizeof id);
    return status;
}

static enum hoop_status share(const struct hoop_launch *launch, const char *key, char *text, uint64_t deadline)
{
    if (launch->way == HOOP_LAUNCH_PMIX)
        return hoop_pmix_share(0, launch->rank == 0, key, text, deadline);
    if (!meetings.pmi.greeted || meetings.pmi.fd != launch->pmi_fd)
        meetings.pmi = (struct hoop_pmi){.fd = launch->pmi_fd};
    return hoop_pmi_share(&meetings.pmi, launch->rank == 0, key, text, deadline);
}

/* Through the store. A rank 0 that cannot make an id tells the others so, or they would wait for it. */
static enum hoop_status by_store(struct hoop_launch *launch, const struct hoop_settings *settings, uint64_t deadline)
{
    static const char none[] = "none";
    char text[HOOP_UNIQUE_ID_TEXT] = "", key[KEY], why[HOOP_ERROR_TEXT] = "";
    enum hoop_status made = HOOP_OK;

    snprintf(key, sizeof key, "hoop-id-%u", meetings.count);
    if (launch->rank == 0 && (made = make_id(launch, settings, text, sizeof text)) != HOOP_OK) {
        strncat(why, hoop_error_text(), sizeof why - 1);
        snprintf(text, sizeof text, "%s", none);
    }
    enum hoop_status status = share(launch, key, text, deadline);
    if (status == HOOP_OK && made != HOOP_OK)
        return hoop_fail(made, "%s", why);
    if (status == HOOP_OK && strcmp(text, none) == 0)
        return hoop_fail(HOOP_ERR_PEER, "rank %d: rank 0 could make no id, and says why itself", launch->rank);
    if (status == HOOP_OK)
        status = hoop_unique_id_parse(&launch->id, text);
    hoop_auth_wipe(text, sizeof text);
    return status;
}

static enum hoop_status by_pmix(struct hoop_launch *launch, const struct hoop_settings *settings, uint64_t deadline)
{
    struct hoop_pmix_job job;

    enum hoop_status status = hoop_pmix_open(&job);
    if (status != HOOP_OK)
        return status;
    if (job.rank != launch->rank || (launch->ranks && job.ranks != launch->ranks)) {
        status = hoop_fail(HOOP_ERR_SETUP,
                           "%s says rank %d of %d, but its key store rank %d of %d: are its variables inherited "
                           "from another job?",
                           launch->launcher, launch->rank, launch->ranks, job.rank, job.ranks);
    } else {
        launch->ranks = job.ranks;
        launch->local_rank = job.local_rank;
        launch->local_size = job.local_size;
        launch->one_host = launch->one_host || job.local_size == job.ranks;
        if (job.ranks > 1)
            status = by_store(launch, settings, deadline);
    }
    hoop_pmix_close();
    return status;
}

static enum hoop_status by_place(struct hoop_launch *launch)
{
    char job[HOOP_LAUNCH_JOB + KEY];

    snprintf(job, sizeof job, "%s#%u", launch->job, meetings.count);
    return hoop_place_id(&launch->place, launch->key, job, launch->rank == 0, &launch->id);
}

enum hoop_status hoop_launch_meet(struct hoop_launch *launch)
{
    struct hoop_settings settings;

    if (launch->way == HOOP_LAUNCH_ALONE || launch->way == HOOP_LAUNCH_ID)
        return HOOP_OK;
    enum hoop_status status = hoop_settings_read(&settings);
    if (status != HOOP_OK)
        return status;
    const uint64_t deadline = hoop_deadline(settings.value[HOOP_SETTING_INIT_TIMEOUT].number);
    pthread_mutex_lock(&meetings.lock);
    if (meetings.count && meetings.owner != getpid()) {
        status = hoop_fail(HOOP_ERR_SETUP,
                           "this process was forked from rank %d after that had met the others: it is no rank of %s",
                           launch->rank, launch->launcher);
    } else {
        meetings.owner = getpid();
        status = launch->way == HOOP_LAUNCH_PMI    ? by_store(launch, &settings, deadline)
                 : launch->way == HOOP_LAUNCH_PMIX ? by_pmix(launch, &settings, deadline)
                                                   : by_place(launch);
        meetings.count++;
    }
    pthread_mutex_unlock(&meetings.lock);
    return status;
}
