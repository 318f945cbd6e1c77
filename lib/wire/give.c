// SPDX-License-Identifier: BSD-3-Clause
/* One client at a time: each has a moment to show the key. Strangers of other users are turned away at once. */
#include "wire/give.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"

enum { CLIENT_SECONDS = 1 };

struct hoop_giver {
    int descriptor, listener, end; /* end: readable when the thread shall end */
    char name[HOOP_UNIX_NAME];
    unsigned char key[HOOP_AUTH_KEY];
    pthread_t thread;
    bool runs;
};

const char *hoop_giver_name(const struct hoop_giver *giver)
{
    return giver->name;
}

const unsigned char *hoop_giver_key(const struct hoop_giver *giver)
{
    return giver->key;
}

static void serve(const struct hoop_giver *giver, int client)
{
    static const unsigned char gift = 1;
    unsigned char shown[HOOP_AUTH_KEY];
    size_t bytes = 0;

    if (hoop_unix_same_user(client) && hoop_unix_wait(client, giver->end, hoop_deadline(CLIENT_SECONDS)) == HOOP_OK &&
        hoop_unix_recv(client, shown, sizeof shown, &bytes, NULL) == HOOP_OK && bytes == sizeof shown &&
        hoop_auth_equal(shown, giver->key, sizeof shown))
        hoop_unix_send(client, &gift, sizeof gift, giver->descriptor);
    close(client);
}

static void *run(void *argument)
{
    const struct hoop_giver *giver = argument;
    int client;

    while (hoop_unix_wait(giver->listener, giver->end, UINT64_MAX) == HOOP_OK)
        if (hoop_unix_accept(giver->listener, &client) == HOOP_OK)
            serve(giver, client);
    return NULL;
}

static enum hoop_status start(struct hoop_giver *giver)
{
    sigset_t every, old;

    enum hoop_status status = hoop_auth_start();
    if (status == HOOP_OK)
        status = hoop_unix_listen(false, &giver->listener, giver->name);
    if (status != HOOP_OK)
        return status;
    hoop_auth_random(giver->key, sizeof giver->key);
    giver->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigfillset(&every);
    pthread_sigmask(SIG_BLOCK, &every, &old);
    giver->runs = giver->end >= 0 && pthread_create(&giver->thread, NULL, run, giver) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return giver->runs ? HOOP_OK : hoop_fail(HOOP_ERR_SYSTEM, "cannot start the thread that gives a descriptor");
}

enum hoop_status hoop_giver_open(struct hoop_giver **giver, int descriptor)
{
    struct hoop_giver *new = hoop_calloc(1, sizeof *new);

    if (new == NULL) {
        close(descriptor);
        return HOOP_ERR_MEMORY;
    }
    new->descriptor = descriptor;
    new->listener = new->end = -1;
    const enum hoop_status status = start(new);
    if (status == HOOP_OK)
        *giver = new;
    else
        hoop_giver_close(new);
    return status;
}

void hoop_giver_close(struct hoop_giver *giver)
{
    if (giver == NULL)
        return;
    if (giver->runs) {
        eventfd_write(giver->end, 1);
        pthread_join(giver->thread, NULL);
    }
    if (giver->end >= 0)
        close(giver->end);
    if (giver->listener >= 0) {
        close(giver->listener);
        hoop_unix_unlink(giver->name);
    }
    close(giver->descriptor);
    hoop_auth_wipe(giver->key, sizeof giver->key);
    hoop_free(giver);
}

/* ---- the other end ---- */

static enum hoop_status receive(int sock, int *descriptor, uint64_t deadline)
{
    unsigned char gift;
    size_t bytes;
    int passed = -1;

    enum hoop_status status = hoop_unix_wait(sock, -1, deadline);
    if (status != HOOP_OK)
        return status;
    status = hoop_unix_recv(sock, &gift, sizeof gift, &bytes, &passed);
    if (status != HOOP_OK || passed < 0)
        return hoop_fail(HOOP_ERR_SETUP,
                         "the process that has the descriptor does not give it: the key is wrong, or it ended");
    *descriptor = passed;
    return HOOP_OK;
}

enum hoop_status hoop_gift_fetch(const char *name, const unsigned char key[HOOP_AUTH_KEY], int *descriptor,
                                 uint64_t deadline)
{
    int sock;

    enum hoop_status status = hoop_unix_connect(name, -1, &sock, deadline);
    if (status != HOOP_OK)
        return status;
    if (!hoop_unix_same_user(sock))
        status = hoop_fail(HOOP_ERR_SETUP, "the socket %s belongs to another user", name);
    else if (hoop_unix_send(sock, key, HOOP_AUTH_KEY, -1) != HOOP_OK)
        status = hoop_fail(HOOP_ERR_SETUP, "the process that has the descriptor has closed its socket %s", name);
    else
        status = receive(sock, descriptor, deadline);
    close(sock);
    return status;
}
