// SPDX-License-Identifier: BSD-3-Clause
/* PMIx through libpmix: what is used of it is in one table of functions. */
#include "boot/pmix.h"

#include "base/status.h"

#ifndef HAVE_PMIX

enum hoop_status hoop_pmix_ready(void)
{
    return hoop_fail(HOOP_ERR_UNSUPPORTED,
                     "this build of hoop knows nothing of PMIx: configure found no libpmix headers");
}

enum hoop_status hoop_pmix_open(struct hoop_pmix_job *job)
{
    (void)job;
    return hoop_pmix_ready();
}

enum hoop_status hoop_pmix_share(int giver, bool mine, const char *key, char *text, uint64_t deadline)
{
    (void)giver, (void)mine, (void)key, (void)text, (void)deadline;
    return hoop_pmix_ready();
}

void hoop_pmix_close(void)
{
}

#else

#include <dlfcn.h>
#include <pmix.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "wire/auth.h"

static const char library[] = "libpmix.so.2";

static struct {
    void *handle;
    __typeof__(PMIx_Init) *init;
    __typeof__(PMIx_Finalize) *finalize;
    __typeof__(PMIx_Put) *put;
    __typeof__(PMIx_Commit) *commit;
    __typeof__(PMIx_Fence_nb) *fence;
    __typeof__(PMIx_Get) *get;
    __typeof__(PMIx_Error_string) *text;
    pmix_proc_t self;
} pmix;

/* Fill in a pointer to a function; POSIX: its address fits a pointer to an object. */
static bool find(const char *symbol, void *pointer)
{
    void *address = dlsym(pmix.handle, symbol);

    memcpy(pointer, &address, sizeof address);
    return address != NULL;
}

static void load(void)
{
    pmix.handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (pmix.handle == NULL)
        return;
    if (find("PMIx_Init", &pmix.init) && find("PMIx_Finalize", &pmix.finalize) && find("PMIx_Put", &pmix.put) &&
        find("PMIx_Commit", &pmix.commit) && find("PMIx_Fence_nb", &pmix.fence) && find("PMIx_Get", &pmix.get) &&
        find("PMIx_Error_string", &pmix.text))
        return;
    dlclose(pmix.handle);
    pmix.handle = NULL;
}

enum hoop_status hoop_pmix_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    if (pmix.handle)
        return HOOP_OK;
    return hoop_fail(HOOP_ERR_UNSUPPORTED, "%s cannot be loaded, or lacks functions: install it (Debian: libpmix2)",
                     library);
}

static enum hoop_status failed(const char *what, pmix_status_t code)
{
    return hoop_fail(HOOP_ERR_SETUP, "PMIx, the launcher's key store: %s: %s", what, pmix.text(code));
}

static void name_proc(pmix_proc_t *proc, pmix_rank_t rank)
{
    *proc = pmix.self;
    proc->rank = rank;
}

/* A number that the launcher tells of a rank, or of the job (PMIX_RANK_WILDCARD); -1: it does not. */
static int number(const char *key, pmix_rank_t rank)
{
    pmix_value_t *value = NULL;
    pmix_proc_t proc;
    int64_t told = -1;

    name_proc(&proc, rank);
    if (pmix.get(&proc, key, NULL, 0, &value) != PMIX_SUCCESS || value == NULL)
        return -1;
    if (value->type == PMIX_UINT32)
        told = value->data.uint32;
    else if (value->type == PMIX_UINT16)
        told = value->data.uint16;
    free(value);
    return told >= 0 && told <= INT32_MAX ? (int)told : -1;
}

enum hoop_status hoop_pmix_open(struct hoop_pmix_job *job)
{
    const enum hoop_status status = hoop_pmix_ready();

    if (status != HOOP_OK)
        return status;
    const pmix_status_t code = pmix.init(&pmix.self, NULL, 0);
    if (code != PMIX_SUCCESS)
        return failed("no launcher answers", code);
    *job = (struct hoop_pmix_job){.rank = (int)pmix.self.rank,
                                  .ranks = number(PMIX_JOB_SIZE, PMIX_RANK_WILDCARD),
                                  .local_rank = number(PMIX_LOCAL_RANK, pmix.self.rank),
                                  .local_size = number(PMIX_LOCAL_SIZE, PMIX_RANK_WILDCARD)};
    if (job->rank >= 0 && job->ranks > job->rank)
        return HOOP_OK;
    pmix.finalize(NULL, 0);
    return hoop_fail(HOOP_ERR_SETUP, "PMIx, the launcher's key store, tells rank %d of %d: one of the two is wrong",
                     job->rank, job->ranks);
}

void hoop_pmix_close(void)
{
    pmix.finalize(NULL, 0);
}

/* ---- the fence, with a deadline ---- */

/* libpmix may call back after nobody waits any more: who is last frees it. */
struct fence {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool over, left;
    pmix_status_t code;
};

static void free_fence(struct fence *fence)
{
    pthread_cond_destroy(&fence->done);
    pthread_mutex_destroy(&fence->lock);
    hoop_free(fence);
}

static void fence_is_over(pmix_status_t code, void *context)
{
    struct fence *fence = context;

    pthread_mutex_lock(&fence->lock);
    const bool left = fence->left;
    fence->over = true;
    fence->code = code;
    pthread_cond_signal(&fence->done);
    pthread_mutex_unlock(&fence->lock);
    if (left)
        free_fence(fence);
}

static struct fence *make_fence(void)
{
    struct fence *fence = hoop_calloc(1, sizeof *fence);
    pthread_condattr_t attributes;

    if (fence == NULL)
        return NULL;
    pthread_mutex_init(&fence->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&fence->done, &attributes);
    pthread_condattr_destroy(&attributes);
    return fence;
}

/* Wait; the fence is freed here, or by the late call. */
static enum hoop_status wait_fence(struct fence *fence, uint64_t deadline)
{
    const struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
                                   .tv_nsec = (long)(deadline % 1000000000u)};

    pthread_mutex_lock(&fence->lock);
    while (!fence->over && !hoop_expired(deadline)) {
        if (deadline == UINT64_MAX)
            pthread_cond_wait(&fence->done, &fence->lock);
        else
            pthread_cond_timedwait(&fence->done, &fence->lock, &until);
    }
    const bool over = fence->over;
    const pmix_status_t code = fence->code;
    fence->left = true;
    pthread_mutex_unlock(&fence->lock);
    if (over)
        free_fence(fence);
    if (!over)
        return hoop_fail(HOOP_ERR_TIMEOUT, "PMIx, the launcher's key store: not all ranks came before the deadline "
                                           "(HOOP_INIT_TIMEOUT)");
    return code == PMIX_SUCCESS ? HOOP_OK : failed("the ranks cannot meet", code);
}

static enum hoop_status meet(uint64_t deadline)
{
    struct fence *fence = make_fence();
    pmix_info_t collect = {.flags = 0};
    pmix_proc_t all;

    if (fence == NULL)
        return HOOP_ERR_MEMORY;
    name_proc(&all, PMIX_RANK_WILDCARD);
    snprintf(collect.key, sizeof collect.key, "%s", PMIX_COLLECT_DATA);
    collect.value.type = PMIX_BOOL;
    collect.value.data.flag = true;
    const pmix_status_t code = pmix.fence(&all, 1, &collect, 1, fence_is_over, fence);
    if (code == PMIX_SUCCESS)
        return wait_fence(fence, deadline);
    free_fence(fence);
    return code == PMIX_OPERATION_SUCCEEDED ? HOOP_OK : failed("the ranks cannot meet", code);
}

/* ---- sharing ---- */

static enum hoop_status put(const char *key, char *text)
{
    pmix_value_t value = {.type = PMIX_STRING, .data.string = text};
    pmix_status_t code = pmix.put(PMIX_GLOBAL, key, &value);

    if (code == PMIX_SUCCESS)
        code = pmix.commit();
    return code == PMIX_SUCCESS ? HOOP_OK : failed("it takes no key", code);
}

static enum hoop_status get(int rank, const char *key, char *text)
{
    pmix_value_t *value = NULL;
    pmix_proc_t proc;
    bool good;

    name_proc(&proc, (pmix_rank_t)rank);
    const pmix_status_t code = pmix.get(&proc, key, NULL, 0, &value);
    if (code != PMIX_SUCCESS || value == NULL)
        return failed("it has no key of rank 0", code);
    good = value->type == PMIX_STRING && value->data.string && strlen(value->data.string) < HOOP_PMIX_VALUE;
    if (good)
        snprintf(text, HOOP_PMIX_VALUE, "%s", value->data.string);
    if (value->type == PMIX_STRING && value->data.string) {
        hoop_auth_wipe(value->data.string, strlen(value->data.string));
        free(value->data.string);
    }
    free(value);
    return good ? HOOP_OK : hoop_fail(HOOP_ERR_SETUP, "PMIx, the launcher's key store, gives a damaged key %s", key);
}

enum hoop_status hoop_pmix_share(int giver, bool mine, const char *key, char *text, uint64_t deadline)
{
    enum hoop_status status = mine ? put(key, text) : HOOP_OK;

    if (status == HOOP_OK)
        status = meet(deadline);
    if (status == HOOP_OK && !mine)
        status = get(giver, key, text);
    return status;
}

#endif
