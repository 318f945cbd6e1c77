// SPDX-License-Identifier: BSD-3-Clause
/* One mutex, one condition, one linked queue. */
#include "exec/stream.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h"

struct job {
    struct job *next;
    enum hoop_status (*run)(void *data);
    void *data;
};

struct hoop_stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *first, **end;
    uint64_t given, done;     /* jobs */
    enum hoop_status failure; /* the first one since the last synchronize */
    char text[HOOP_ERROR_TEXT];
    bool closing;
    struct hoop_stream *next; /* in the list of living streams */
};

/* All living streams of the process: where a stream may be a device's, it is looked up here before it is touched. */
static struct hoop_stream *living;
static pthread_mutex_t living_lock = PTHREAD_MUTEX_INITIALIZER;

static void run_job(struct hoop_stream *stream, struct job *job)
{
    const enum hoop_status status = job->run(job->data);

    pthread_mutex_lock(&stream->lock);
    if (status != HOOP_OK && stream->failure == HOOP_OK) {
        stream->failure = status;
        snprintf(stream->text, sizeof stream->text, "%s", hoop_error_text());
    }
    stream->done++;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    hoop_free(job->data);
    hoop_free(job);
}

static void *serve(void *argument)
{
    struct hoop_stream *stream = argument;

    for (;;) {
        pthread_mutex_lock(&stream->lock);
        while (stream->first == NULL && !stream->closing)
            pthread_cond_wait(&stream->changed, &stream->lock);
        struct job *job = stream->first;
        if (job) {
            stream->first = job->next;
            if (stream->first == NULL)
                stream->end = &stream->first;
        }
        pthread_mutex_unlock(&stream->lock);
        if (job == NULL)
            return NULL;
        run_job(stream, job);
    }
}

enum hoop_status hoop_stream_create(hoop_stream **stream)
{
    sigset_t all, old;

    if (stream == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_stream_create: stream is NULL");
    struct hoop_stream *new = hoop_calloc(1, sizeof *new);
    if (new == NULL)
        return HOOP_ERR_MEMORY;
    new->end = &new->first;
    pthread_mutex_init(&new->lock, NULL);
    pthread_cond_init(&new->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    const int failed = pthread_create(&new->thread, NULL, serve, new);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed) {
        hoop_free(new);
        errno = failed;
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot start the stream's thread");
    }
    pthread_mutex_lock(&living_lock);
    new->next = living;
    living = new;
    pthread_mutex_unlock(&living_lock);
    *stream = new;
    return HOOP_OK;
}

bool hoop_stream_is_host(const hoop_stream *stream)
{
    pthread_mutex_lock(&living_lock);
    const struct hoop_stream *one = living;
    while (one && one != stream)
        one = one->next;
    pthread_mutex_unlock(&living_lock);
    return one != NULL;
}

static void forget(const struct hoop_stream *stream)
{
    struct hoop_stream **one = &living;

    pthread_mutex_lock(&living_lock);
    while (*one != stream)
        one = &(*one)->next;
    *one = stream->next;
    pthread_mutex_unlock(&living_lock);
}

enum hoop_status hoop_stream_enqueue(struct hoop_stream *stream, enum hoop_status (*run)(void *data), void *data)
{
    struct job *job = hoop_calloc(1, sizeof *job);

    if (job == NULL)
        return HOOP_ERR_MEMORY;
    *job = (struct job){NULL, run, data};
    pthread_mutex_lock(&stream->lock);
    *stream->end = job;
    stream->end = &job->next;
    stream->given++;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return HOOP_OK;
}

enum hoop_status hoop_stream_synchronize(hoop_stream *stream)
{
    if (stream == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_stream_synchronize: stream is NULL");
    pthread_mutex_lock(&stream->lock);
    for (const uint64_t target = stream->given; stream->done < target;)
        pthread_cond_wait(&stream->changed, &stream->lock);
    const enum hoop_status failure = stream->failure;
    stream->failure = HOOP_OK;
    if (failure != HOOP_OK)
        hoop_fail(failure, "%s", stream->text);
    pthread_mutex_unlock(&stream->lock);
    return failure;
}

enum hoop_status hoop_stream_query(hoop_stream *stream)
{
    if (stream == NULL)
        return hoop_fail(HOOP_ERR_ARG, "hoop_stream_query: stream is NULL");
    pthread_mutex_lock(&stream->lock);
    const bool idle = stream->done == stream->given;
    pthread_mutex_unlock(&stream->lock);
    return idle ? HOOP_OK : HOOP_AGAIN;
}

enum hoop_status hoop_stream_destroy(hoop_stream *stream)
{
    if (stream == NULL)
        return HOOP_OK;
    const enum hoop_status status = hoop_stream_synchronize(stream);
    forget(stream);
    pthread_mutex_lock(&stream->lock);
    stream->closing = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->changed);
    hoop_free(stream);
    return status;
}
