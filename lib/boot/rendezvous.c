// SPDX-License-Identifier: BSD-3-Clause
/* The rendezvous server.
 *
 * One thread per listening address, one poll loop, nothing in it blocks. A fresh connection gets a challenge and one of
 * a fixed number of slots, in which its hello must be complete within two seconds. Nothing else is spent on a
 * stranger: what is no hello is dropped at its first wrong byte, a hello that does not prove the id's key is
 * told so and dropped. When all slots are taken, further clients wait in the listen queue until one is free or the
 * oldest has had its fair time. Those that wait silently cost nothing in a round of the loop. So port scanners, web
 * clients and slow or silent connections disturb no meeting (tests/perf/junk.c measures how little).
 *
 * The thread and its listener live as long as the process, for the late comers of old ids, and serve all later ids of
 * the same address too. A child after fork has neither.
 */
#include "boot/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"
#include "boot/meeting.h"
#include "boot/message.h"
#include "wire/sock.h"

#define HELLO_TIME 2000000000u /* ns to complete a hello */
#define FAIR_TIME  200000000u  /* ns that a client keeps its slot though others wait */
#define PAUSE      50000000u   /* ns without accepting after the process ran out of descriptors */

enum {
    SLOTS = 256,        /* clients that have not proved a key: 1280 silent ones a second make nobody wait */
    SLOTS_LEAST = 16,   /* … where the process may open few files: they get a quarter of these */
    BATCH = 16,         /* clients taken in before those that are in are looked at again */
    ROOM = 64,          /* of the poll set, to begin with */
    FINISHED = 256,     /* finished meetings that are remembered */
    STACK = 1024 * 1024 /* bytes of the thread's stack */
};

/* The poll set. */
enum { LISTENER, WATCH, MEETINGS };

struct client {
    int sock; /* -1: the slot is free */
    uint64_t since;
    unsigned char nonce[HOOP_AUTH_NONCE];
    size_t used;
    unsigned char hello[HOOP_HELLO_MAX];
};

struct entry {
    struct hoop_meeting *meeting;
    struct entry *next; /* newest first */
    int watched;        /* entries in the poll set of this round */
};

struct server {
    struct server *next;
    struct hoop_address address;
    int listener, watch;   /* watch: an epoll set of all clients */
    uint64_t paused_until; /* 0: accepting */
    pthread_mutex_t lock;  /* guards the meetings */
    struct entry *entries;
    int slots; /* of these */
    struct client clients[SLOTS];
    struct pollfd *polls;
    size_t room; /* of polls */
};

static pthread_mutex_t servers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct server *servers;

/* ---- strangers ---- */

/* Closing would end this, too, but not while a forked child still has the socket. */
static void unwatch(const struct server *server, const struct client *client)
{
    struct epoll_event unused;

    epoll_ctl(server->watch, EPOLL_CTL_DEL, client->sock, &unused);
}

static void drop(const struct server *server, struct client *client)
{
    unwatch(server, client);
    close(client->sock);
    client->sock = -1;
}

static void reject(const struct server *server, struct client *client, enum hoop_reject why)
{
    unsigned char message[HOOP_MESSAGE_HEAD + 1 + HOOP_AUTH_MAC] = {HOOP_REJECT, 1, 0, 0, 0, (unsigned char)why};
    size_t moved;

    hoop_sock_send_some(client->sock, message, sizeof message, &moved);
    drop(server, client);
}

/* A whole hello has come: whose is it? */
static void identify(struct server *server, struct client *client)
{
    struct hoop_hello hello;
    struct hoop_seal seal = {.server = true};
    struct entry *entry = server->entries;

    if (!hoop_hello_read(client->hello, client->used, &hello)) {
        drop(server, client);
        return;
    }
    while (entry && !hoop_meeting_is(entry->meeting, hello.id_nonce))
        entry = entry->next;
    if (entry == NULL) {
        reject(server, client, HOOP_REJECT_UNKNOWN);
        return;
    }
    memcpy(seal.key, hoop_meeting_key(entry->meeting), sizeof seal.key);
    memcpy(seal.server_nonce, client->nonce, sizeof seal.server_nonce);
    memcpy(seal.client_nonce, hello.client_nonce, sizeof seal.client_nonce);
    if (hoop_hello_proved(client->hello, client->used, &seal)) {
        unwatch(server, client);
        hoop_meeting_join(entry->meeting, client->sock, &seal, &hello);
        client->sock = -1;
    } else {
        reject(server, client, HOOP_REJECT_SECRET);
    }
    hoop_auth_wipe(&seal, sizeof seal);
}

static void read_client(struct server *server, struct client *client)
{
    size_t moved;

    for (;;) {
        const size_t whole = hoop_hello_size(client->hello, client->used);
        if (whole == SIZE_MAX) {
            drop(server, client);
            return;
        }
        if (whole != 0 && whole == client->used) {
            identify(server, client);
            return;
        }
        const size_t want = (whole ? whole : HOOP_HELLO_HEAD) - client->used;
        const enum hoop_status status = hoop_sock_recv_some(client->sock, client->hello + client->used, want, &moved);
        if (status == HOOP_AGAIN)
            return;
        if (status != HOOP_OK) {
            drop(server, client);
            return;
        }
        client->used += moved;
    }
}

static struct client *oldest(struct server *server)
{
    struct client *found = NULL;

    for (int i = 0; i < server->slots; i++)
        if (server->clients[i].sock >= 0 && (found == NULL || server->clients[i].since < found->since))
            found = &server->clients[i];
    return found;
}

static bool is_full(const struct server *server)
{
    for (int i = 0; i < server->slots; i++)
        if (server->clients[i].sock < 0)
            return false;
    return true;
}

static struct client *free_slot(struct server *server)
{
    for (int i = 0; i < server->slots; i++)
        if (server->clients[i].sock < 0)
            return &server->clients[i];

    struct client *client = oldest(server);
    if (hoop_now() - client->since < FAIR_TIME)
        return NULL;
    drop(server, client);
    return client;
}

/* Many have spoken, or left, already. */
static void watch_client(struct server *server, struct client *client)
{
    struct epoll_event news = {.events = EPOLLIN, .data.u32 = (uint32_t)(client - server->clients)};

    read_client(server, client);
    if (client->sock >= 0 && epoll_ctl(server->watch, EPOLL_CTL_ADD, client->sock, &news) != 0)
        drop(server, client);
}

static void accept_clients(struct server *server)
{
    unsigned char challenge[HOOP_CHALLENGE];
    size_t moved;

    for (int i = 0; i < BATCH; i++) {
        struct client *client = free_slot(server);
        if (client == NULL)
            return;
        const enum hoop_status status = hoop_sock_accept(server->listener, &client->sock);
        if (status != HOOP_OK) {
            client->sock = -1;
            if (status != HOOP_AGAIN) {
                struct client *victim = oldest(server); /* out of descriptors: strangers are the first to go */
                if (victim)
                    drop(server, victim);
                server->paused_until = hoop_now() + PAUSE;
            }
            return;
        }
        client->since = hoop_now();
        client->used = 0;
        hoop_auth_random(client->nonce, sizeof client->nonce);
        hoop_challenge_write(challenge, client->nonce);
        if (hoop_sock_send_some(client->sock, challenge, sizeof challenge, &moved) == HOOP_OK &&
            moved == sizeof challenge)
            watch_client(server, client);
        else
            drop(server, client);
    }
}

/* ---- the loop ---- */

/* Room for the poll set; a meeting that there is no memory to watch must end. */
static void reserve(struct server *server)
{
    size_t need = MEETINGS;

    for (struct entry *entry = server->entries; entry; entry = entry->next)
        need += (size_t)hoop_meeting_entries(entry->meeting);
    if (need <= server->room)
        return;
    struct pollfd *polls = hoop_realloc(server->polls, need * 2, sizeof *polls);
    if (polls) {
        server->polls = polls;
        server->room = need * 2;
        return;
    }
    for (struct entry *entry = server->entries; entry; entry = entry->next)
        if (hoop_meeting_entries(entry->meeting))
            hoop_meeting_conclude(entry->meeting, HOOP_ERR_MEMORY, hoop_error_text());
}

static size_t build_polls(struct server *server)
{
    const uint64_t now = hoop_now();
    size_t n = MEETINGS;

    reserve(server);
    const bool accepting =
        now >= server->paused_until && (!is_full(server) || now - oldest(server)->since >= FAIR_TIME);
    server->polls[LISTENER] = (struct pollfd){.fd = accepting ? server->listener : -1, .events = POLLIN};
    server->polls[WATCH] = (struct pollfd){.fd = server->watch, .events = POLLIN};
    for (struct entry *entry = server->entries; entry; entry = entry->next) {
        entry->watched = hoop_meeting_entries(entry->meeting);
        if (n + (size_t)entry->watched > server->room)
            entry->watched = 0;
        hoop_meeting_watch(entry->meeting, server->polls + n, entry->watched);
        n += (size_t)entry->watched;
    }
    return n;
}

static void handle_polls(struct server *server)
{
    struct epoll_event news[BATCH];
    size_t n = MEETINGS;

    const int count = server->polls[WATCH].revents ? epoll_wait(server->watch, news, BATCH, 0) : 0;
    for (int i = 0; i < count; i++)
        if (server->clients[news[i].data.u32].sock >= 0)
            read_client(server, &server->clients[news[i].data.u32]);
    for (struct entry *entry = server->entries; entry; entry = entry->next) {
        hoop_meeting_ready(entry->meeting, server->polls + n, entry->watched);
        n += (size_t)entry->watched;
    }
    if (server->polls[LISTENER].revents)
        accept_clients(server);
}

/* Forget the oldest of too many finished meetings. */
static void forget_finished(struct server *server)
{
    int finished = 0;

    for (struct entry **link = &server->entries; *link;) {
        struct entry *entry = *link;
        if (hoop_meeting_finished(entry->meeting) && ++finished > FINISHED) {
            *link = entry->next;
            hoop_meeting_destroy(entry->meeting);
            hoop_free(entry);
        } else {
            link = &entry->next;
        }
    }
}

/* Handle what time has brought; returns when to wake again. */
static uint64_t tick(struct server *server)
{
    const uint64_t now = hoop_now();
    uint64_t wake = UINT64_MAX;

    for (int i = 0; i < server->slots; i++) {
        struct client *client = &server->clients[i];
        if (client->sock >= 0 && now - client->since >= HELLO_TIME)
            drop(server, client);
        if (client->sock >= 0)
            wake = client->since + HELLO_TIME < wake ? client->since + HELLO_TIME : wake;
    }
    if (is_full(server) && oldest(server)->since + FAIR_TIME > now)
        wake = oldest(server)->since + FAIR_TIME;
    if (server->paused_until > now && server->paused_until < wake)
        wake = server->paused_until;
    for (struct entry *entry = server->entries; entry; entry = entry->next) {
        const uint64_t due = hoop_meeting_tick(entry->meeting);
        wake = due < wake ? due : wake;
    }
    forget_finished(server);
    return wake;
}

static void *serve(void *argument)
{
    struct server *server = argument;

    for (;;) {
        pthread_mutex_lock(&server->lock);
        const uint64_t wake = tick(server);
        const size_t n = build_polls(server);
        pthread_mutex_unlock(&server->lock);

        const int ready = poll(server->polls, n, wake == UINT64_MAX ? -1 : hoop_poll_timeout(wake, 60000));
        if (ready <= 0)
            continue; /* time, or a passing lack of kernel memory */
        pthread_mutex_lock(&server->lock);
        handle_polls(server);
        pthread_mutex_unlock(&server->lock);
    }
    return NULL;
}

/* ---- starting ---- */

/* The child after fork has no server threads: it must not hold their connections open either. */
static void forget_in_child(void)
{
    for (struct server *server = servers; server; server = server->next) {
        close(server->listener);
        close(server->watch);
        for (int i = 0; i < server->slots; i++)
            if (server->clients[i].sock >= 0)
                close(server->clients[i].sock);
        for (struct entry *entry = server->entries; entry; entry = entry->next)
            hoop_meeting_forget(entry->meeting);
    }
    servers = NULL;
    pthread_mutex_init(&servers_lock, NULL);
}

static void register_fork(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
}

/* Strangers must not use up the files that the process may open. */
static int count_slots(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 >= SLOTS)
        return SLOTS;
    return limit.rlim_cur / 4 > SLOTS_LEAST ? (int)(limit.rlim_cur / 4) : SLOTS_LEAST;
}

/* The host program's signal handlers must not run on the server's thread. */
static int start_thread(struct server *server)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread, &attributes, serve, server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

static enum hoop_status start(const struct hoop_address *address, struct server **started)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct server *server = hoop_calloc(1, sizeof *server);
    enum hoop_status status = HOOP_ERR_MEMORY;
    int error;

    if (server == NULL)
        return HOOP_ERR_MEMORY;
    pthread_once(&once, register_fork);
    pthread_mutex_init(&server->lock, NULL);
    server->address = *address;
    server->slots = count_slots();
    for (int i = 0; i < server->slots; i++)
        server->clients[i].sock = -1;
    server->room = ROOM;
    server->polls = hoop_calloc(server->room, sizeof *server->polls);
    if (server->polls == NULL)
        goto free_server;
    server->watch = epoll_create1(EPOLL_CLOEXEC);
    if (server->watch < 0) {
        status = hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot make an epoll set for the rendezvous");
        goto free_polls;
    }
    status = hoop_sock_listen(&server->address, &server->listener);
    if (status != HOOP_OK)
        goto close_watch;
    error = start_thread(server);
    if (error == 0) {
        *started = server;
        return HOOP_OK;
    }
    errno = error;
    status = hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot start the thread that serves the rendezvous");
    close(server->listener);
close_watch:
    close(server->watch);
free_polls:
    hoop_free(server->polls);
free_server:
    hoop_free(server);
    return status;
}

/* The server that listens on the host, started if there is none. */
static enum hoop_status find_server(const struct hoop_address *address, struct server **found)
{
    for (struct server *server = servers; server; server = server->next) {
        if (server->address.family == address->family &&
            (address->port == 0 || server->address.port == address->port) &&
            memcmp(server->address.host, address->host, sizeof address->host) == 0) {
            *found = server;
            return HOOP_OK;
        }
    }
    const enum hoop_status status = start(address, found);
    if (status == HOOP_OK) {
        (*found)->next = servers;
        servers = *found;
    }
    return status;
}

enum hoop_status hoop_rendezvous_serve(struct hoop_id *id)
{
    struct server *server = NULL;
    struct entry *entry = hoop_calloc(1, sizeof *entry);

    if (entry == NULL)
        return HOOP_ERR_MEMORY;
    entry->meeting = hoop_meeting_create(id);
    if (entry->meeting == NULL) {
        hoop_free(entry);
        return HOOP_ERR_MEMORY;
    }
    pthread_mutex_lock(&servers_lock);
    const enum hoop_status status = find_server(&id->address, &server);
    if (status == HOOP_OK) {
        id->address.port = server->address.port;
        pthread_mutex_lock(&server->lock);
        entry->next = server->entries;
        server->entries = entry;
        pthread_mutex_unlock(&server->lock);
    }
    pthread_mutex_unlock(&servers_lock);
    if (status != HOOP_OK) {
        hoop_meeting_destroy(entry->meeting);
        hoop_free(entry);
    }
    return status;
}

bool hoop_rendezvous_is_home(const struct hoop_id *id)
{
    bool home = false;

    pthread_mutex_lock(&servers_lock);
    for (struct server *server = servers; server && !home; server = server->next) {
        pthread_mutex_lock(&server->lock);
        for (struct entry *entry = server->entries; entry && !home; entry = entry->next)
            home = hoop_meeting_is(entry->meeting, id->nonce);
        pthread_mutex_unlock(&server->lock);
    }
    pthread_mutex_unlock(&servers_lock);
    return home;
}
