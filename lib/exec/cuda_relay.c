// SPDX-License-Identifier: BSD-3-Clause
#include "exec/cuda_relay.h"

#include <endian.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"
#include "exec/program.h"

enum {
    COUNTER = 64, /* each on a line of its own */
    COUNTERS = 2 * COUNTER,
    UNIT = 16,
    HEAD = HOOP_DEVICE_HEADER_BYTES + 8, /* bytes of a frame's head on the network */
    SLOTS_MOST = 4096,
    YIELDS = 64,         /* rounds without news before it sleeps while kernels run */
    ALERT = 500,         /* the same before it sleeps long while none does: the next one may begin soon */
    SLEEP_US = 50,       /* between looks at the kernels' counters */
    SLEEP_LONG_US = 1000 /* a graph may be replayed any time, and a launch come to its turn */
};

static const uint64_t relay_tag = 0x72656c6179;

/* What a relay waits for on the way in. */
enum incoming { IN_NOTHING, IN_HEAD, IN_ROOM, IN_DATA };

/* A link: two places, each of two counters and a landing area. */
struct relay_link {
    struct hoop_link head;
    unsigned char *out, *in; /* the kernel writes to the one and reads the other */
    hoop_cu_address out_at, in_at;
    _Atomic bool wanted;
    struct hoop_link *net; /* NULL: not wanted yet, or over */
    bool lost;             /* and has been told */
    enum hoop_status ended;
    /* out */
    uint64_t sent, returned; /* frames given to the network, slots given back */
    bool told;               /* the head of the next one has been sent */
    uint64_t *due;           /* by slot: what net->sent_done must have reached */
    /* in */
    enum incoming state;
    uint64_t received, awaited;
    unsigned char incoming[HEAD];
    uint64_t where, bytes; /* of the frame whose head has come */
};

struct relay {
    struct hoop_domain head;
    struct hoop_cuda *cuda;
    struct hoop_domain *network;
    int lanes, slots;
    uint32_t frame;
    uint64_t slot, place; /* bytes */
    unsigned char *memory;
    hoop_cu_address memory_at;
    int *number;              /* by rank: of its places, from 1; 0: none */
    struct relay_link **link; /* by peer * lanes + lane */
    struct hoop_relay_address {
        unsigned char data[HOOP_ADDRESS_MAX];
        size_t size;
    } * address; /* of each rank */
    /* the thread */
    const struct hoop_device_report *report;
    hoop_relay_lost call_lost;
    void *context;
    pthread_t thread;
    bool runs;
    _Atomic bool closing;
    _Atomic uint64_t round, idle; /* rounds begun; the latest that found nothing to carry, 0: the latest of all did */
    int waker, quiet;
};

static struct relay *relay_of(struct hoop_domain *domain)
{
    return (struct relay *)domain;
}

static uint64_t look(const void *word)
{
    return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
}

static void tell(void *word, uint64_t value)
{
    __atomic_store_n((uint64_t *)word, value, __ATOMIC_RELEASE);
}

/* The counters of a place: what the sender has written, what the receiver has taken. */
static uint64_t *written(unsigned char *place)
{
    return (uint64_t *)(void *)place;
}

static uint64_t *taken(unsigned char *place)
{
    return (uint64_t *)(void *)(place + COUNTER);
}

static unsigned char *slot_of(const struct relay *relay, unsigned char *place, uint64_t number)
{
    return place + COUNTERS + number % (uint64_t)relay->slots * relay->slot;
}

/* ---- out: from the kernel to the network ---- */

/* One frame. HOOP_AGAIN: the network has no room. */
static enum hoop_status send_frame(const struct relay *relay, struct relay_link *link)
{
    const unsigned char *slot = slot_of(relay, link->out, link->sent);
    const struct hoop_transport *network = link->net->transport;
    unsigned char head[HEAD];
    uint64_t where, bytes;

    memcpy(&where, slot + 8, sizeof where);
    memcpy(&bytes, slot + HOOP_DEVICE_HEADER_BYTES, sizeof bytes);
    if (where >= UNIT || bytes > relay->frame)
        return hoop_fail(HOOP_ERR_INTERNAL, "a kernel wrote a frame of %llu bytes at %llu for another host",
                         (unsigned long long)bytes, (unsigned long long)where);
    if (!link->told) {
        memcpy(head, slot, HOOP_DEVICE_HEADER_BYTES);
        memcpy(head + HOOP_DEVICE_HEADER_BYTES, &(uint64_t){htole64(bytes)}, sizeof bytes);
        const enum hoop_status status = network->send(link->net, head, HEAD, relay_tag, HOOP_SEND_STAGED);
        if (status != HOOP_OK)
            return status;
        link->told = true;
    }
    if (bytes > 0) {
        const enum hoop_status status =
            network->send(link->net, slot + HOOP_DEVICE_HEADER + where, (size_t)bytes, relay_tag, 0);
        if (status != HOOP_OK)
            return status;
    }
    link->told = false;
    link->due[link->sent++ % (uint64_t)relay->slots] = link->net->sent;
    return HOOP_OK;
}

/* Give the slots back that the network has let go. */
static bool return_slots(const struct relay *relay, struct relay_link *link)
{
    const uint64_t before = link->returned;

    while (link->returned < link->sent && link->net->sent_done >= link->due[link->returned % (uint64_t)relay->slots])
        link->returned++;
    if (link->returned == before)
        return false;
    tell(taken(link->out), link->returned);
    return true;
}

static enum hoop_status carry_out(const struct relay *relay, struct relay_link *link, bool *moved)
{
    const uint64_t there = look(written(link->out));
    enum hoop_status status = HOOP_OK;

    while (status == HOOP_OK && link->sent < there) {
        status = send_frame(relay, link);
        *moved |= status == HOOP_OK;
    }
    *moved |= return_slots(relay, link);
    return status == HOOP_AGAIN ? HOOP_OK : status;
}

/* ---- in: from the network to the kernel ---- */

/* Ask for a frame of the network. */
static enum hoop_status expect(struct relay_link *link, void *data, size_t bytes, enum incoming state)
{
    const enum hoop_status status = link->net->transport->recv(link->net, data, bytes, relay_tag);

    if (status == HOOP_OK) {
        link->awaited = link->net->received;
        link->state = state;
    }
    return status;
}

static enum hoop_status has_come(const struct relay_link *link)
{
    return link->net->status != HOOP_OK                ? link->net->status
           : link->net->received_done >= link->awaited ? HOOP_OK
                                                       : HOOP_AGAIN;
}

/* A head has come. What it says is another process's word: an address in its place would be read by our kernel. */
static enum hoop_status read_head(const struct relay *relay, struct relay_link *link)
{
    memcpy(&link->where, link->incoming + 8, sizeof link->where);
    memcpy(&link->bytes, link->incoming + HOOP_DEVICE_HEADER_BYTES, sizeof link->bytes);
    link->bytes = le64toh(link->bytes);
    if (link->where >= UNIT || link->bytes > relay->frame)
        return hoop_fail(HOOP_ERR_INTERNAL, "rank %d sent a frame of %llu bytes at %llu; frames have %u at most",
                         link->head.peer, (unsigned long long)link->bytes, (unsigned long long)link->where,
                         relay->frame);
    link->state = IN_ROOM;
    return HOOP_OK;
}

static void hand_over(const struct relay *relay, struct relay_link *link)
{
    memcpy(slot_of(relay, link->in, link->received), link->incoming, HOOP_DEVICE_HEADER_BYTES);
    tell(written(link->in), ++link->received);
    link->state = IN_NOTHING;
}

static enum hoop_status take_data(const struct relay *relay, struct relay_link *link)
{
    unsigned char *slot = slot_of(relay, link->in, link->received);

    if (link->received - look(taken(link->in)) >= (uint64_t)relay->slots)
        return HOOP_AGAIN;
    if (link->bytes > 0)
        return expect(link, slot + HOOP_DEVICE_HEADER + link->where, (size_t)link->bytes, IN_DATA);
    hand_over(relay, link);
    return HOOP_OK;
}

/* One step. HOOP_AGAIN: it has to wait. */
static enum hoop_status take_step(const struct relay *relay, struct relay_link *link)
{
    enum hoop_status status;

    switch (link->state) {
    case IN_NOTHING:
        return expect(link, link->incoming, HEAD, IN_HEAD);
    case IN_HEAD:
        status = has_come(link);
        return status == HOOP_OK ? read_head(relay, link) : status;
    case IN_ROOM:
        return take_data(relay, link);
    case IN_DATA:
        status = has_come(link);
        if (status == HOOP_OK)
            hand_over(relay, link);
        return status;
    }
    return HOOP_ERR_INTERNAL;
}

static enum hoop_status carry_in(const struct relay *relay, struct relay_link *link, bool *moved)
{
    enum hoop_status status;

    while ((status = take_step(relay, link)) == HOOP_OK)
        *moved = true;
    return status == HOOP_AGAIN ? HOOP_OK : status;
}

/* ---- ends ---- */

/* Does a kernel need the peer of a link that has ended? A peer that has left in peace has sent all that we need, and a kernel that has
 * taken it has said before that it waits no more. */
static bool is_missed(const struct relay *relay, struct relay_link *link)
{
    const uint64_t *wait = &relay->report->lane[link->head.lane].wait;

    if (look(written(link->out)) != link->sent)
        return true;
    return look(taken(link->in)) == link->received &&
           look(wait) == (HOOP_DEVICE_WAITS_FRAME | (uint64_t)(unsigned)link->head.peer << 8);
}

/* The network lets all memory go. */
static void end_link(struct relay_link *link, enum hoop_status status)
{
    link->ended = status;
    if (link->net == NULL)
        return;
    link->net->transport->disconnect(link->net);
    link->net = NULL;
    link->returned = link->sent;
    tell(taken(link->out), link->returned);
}

static void connect_wanted(const struct relay *relay, struct relay_link *link)
{
    const struct hoop_relay_address *address = &relay->address[link->head.peer];

    const enum hoop_status status = relay->network->transport->connect(relay->network, link->head.peer, link->head.lane,
                                                                       address->data, address->size, &link->net);
    if (status != HOOP_OK) {
        link->net = NULL;
        end_link(link, status);
    }
}

/* All that can be done for a link now. */
static bool serve(const struct relay *relay, struct relay_link *link)
{
    bool moved = false;

    if (link->net == NULL && link->ended == HOOP_OK && atomic_load(&link->wanted))
        connect_wanted(relay, link);
    if (link->net) {
        enum hoop_status status = carry_in(relay, link, &moved);
        if (status == HOOP_OK)
            status = carry_out(relay, link, &moved);
        if (status != HOOP_OK)
            end_link(link, status);
    }
    if (link->ended != HOOP_OK && !link->lost && is_missed(relay, link)) {
        link->lost = true;
        relay->call_lost(relay->context, link->head.peer, link->ended);
    }
    return moved;
}

/* ---- the thread ---- */

static bool serve_all(struct relay *relay)
{
    const uint64_t round = atomic_fetch_add(&relay->round, 1) + 1;
    bool moved = relay->network->transport->progress(relay->network) == HOOP_OK, carries = false;

    for (int i = 0; i < relay->head.ranks * relay->lanes; i++) {
        struct relay_link *link = relay->link[i];
        if (link == NULL)
            continue;
        moved |= serve(relay, link);
        carries |= link->net && (link->sent != look(written(link->out)) || link->returned != link->sent);
    }
    carries |= relay->network->transport->flush(relay->network) != HOOP_OK;
    atomic_store(&relay->idle, carries ? 0 : round);
    return moved;
}

/* Nothing moved: let others work, or sleep until something may have. */
static void rest(struct relay *relay)
{
    const bool busy = hoop_program_runs(relay->report) || atomic_load(&relay->idle) == 0;
    struct pollfd fds[2] = {{.fd = relay->waker, .events = POLLIN},
                            {.fd = relay->network->transport->descriptor(relay->network), .events = POLLIN}};
    eventfd_t ignored;

    relay->quiet += relay->quiet < ALERT;
    if (busy && relay->quiet < YIELDS) {
        sched_yield();
        return;
    }
    const struct timespec most = {.tv_nsec = 1000 * (busy || relay->quiet < ALERT ? SLEEP_US : SLEEP_LONG_US)};
    ppoll(fds, 2, &most, NULL);
    if (fds[0].revents) {
        eventfd_read(relay->waker, &ignored);
        relay->quiet = 0;
    }
}

static void *run(void *argument)
{
    struct relay *relay = argument;

    while (!atomic_load(&relay->closing))
        if (serve_all(relay))
            relay->quiet = 0;
        else
            rest(relay);
    return NULL;
}

enum hoop_status hoop_relay_start(struct hoop_domain *domain, const struct hoop_device_report *report,
                                  hoop_relay_lost lost, void *context)
{
    struct relay *relay = relay_of(domain);
    sigset_t all, old;

    relay->report = report;
    relay->call_lost = lost;
    relay->context = context;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    relay->runs = pthread_create(&relay->thread, NULL, run, relay) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return relay->runs ? HOOP_OK : hoop_fail(HOOP_ERR_SYSTEM, "cannot start the thread that carries kernels' frames");
}

void hoop_relay_want(struct hoop_domain *domain, int peer, int lane)
{
    const struct relay *relay = relay_of(domain);
    struct relay_link *link = relay->link[peer * relay->lanes + lane];

    if (link && !atomic_load_explicit(&link->wanted, memory_order_relaxed))
        atomic_store(&link->wanted, true);
}

void hoop_relay_wake(struct hoop_domain *domain)
{
    eventfd_write(relay_of(domain)->waker, 1);
}

uint64_t hoop_relay_round(const struct hoop_domain *domain)
{
    return atomic_load(&((const struct relay *)domain)->round);
}

bool hoop_relay_idle(const struct hoop_domain *domain, uint64_t since)
{
    return atomic_load(&((const struct relay *)domain)->idle) > since;
}

bool hoop_relay_runs(const struct hoop_domain *domain)
{
    return ((const struct relay *)domain)->runs;
}

void hoop_relay_stop(struct hoop_domain *domain)
{
    struct relay *relay = relay_of(domain);

    if (!relay->runs)
        return;
    atomic_store(&relay->closing, true);
    hoop_relay_wake(domain);
    pthread_join(relay->thread, NULL);
    relay->runs = false;
}

/* ---- as a transport ---- */

static void close_domain(struct hoop_domain *domain)
{
    struct relay *relay = relay_of(domain);

    hoop_relay_stop(domain);
    if (relay->network)
        relay->network->transport->close(relay->network);
    if (relay->memory)
        hoop_cuda_host_free(relay->cuda, relay->memory);
    if (relay->waker >= 0)
        close(relay->waker);
    hoop_free(relay->number);
    hoop_free(relay->link);
    hoop_free(relay->address);
    hoop_free(relay);
}

static enum hoop_status take_memory(struct relay *relay, const bool *with)
{
    size_t places = 0;
    void *memory;

    for (int rank = 0; rank < relay->head.ranks; rank++)
        relay->number[rank] = with[rank] ? (int)++places : 0;
    const size_t bytes = 2 * places * (size_t)relay->lanes * (size_t)relay->place;
    const enum hoop_status status = hoop_cuda_host_alloc(relay->cuda, bytes, &memory, &relay->memory_at);
    if (status != HOOP_OK)
        return status;
    relay->memory = memset(memory, 0, bytes);
    return HOOP_OK;
}

static enum hoop_status fill_in(struct relay *relay, const struct hoop_domain_setup *setup)
{
    const struct hoop_relay_place *place = setup->context;
    const size_t ranks = (size_t)setup->ranks;

    relay->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (relay->waker < 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot make an eventfd for links to other hosts");
    relay->lanes = setup->lanes;
    relay->slots = setup->slots;
    relay->frame = ((uint32_t)setup->frame + 15) / 16 * 16;
    relay->slot = hoop_device_slot(relay->frame);
    relay->place = COUNTERS + hoop_device_landing(relay->frame, (uint32_t)relay->slots);
    relay->number = hoop_calloc(ranks, sizeof *relay->number);
    relay->link = hoop_calloc(ranks * (size_t)relay->lanes, sizeof(struct relay_link *));
    relay->address = hoop_calloc(ranks, sizeof *relay->address);
    if (relay->number == NULL || relay->link == NULL || relay->address == NULL)
        return HOOP_ERR_MEMORY;
    return take_memory(relay, place->with);
}

static enum hoop_status open_domain(const struct hoop_domain_setup *setup, struct hoop_domain **domain)
{
    const struct hoop_relay_place *place = setup->context;

    if (setup->lanes < 1 || setup->slots < 2 || setup->slots > SLOTS_MOST || setup->frame > UINT32_MAX - 15)
        return hoop_fail(HOOP_ERR_ARG, "%s: %d lanes and %d slots of %zu bytes are no shape of links",
                         hoop_relay_links.name, setup->lanes, setup->slots, setup->frame);
    struct relay *relay = hoop_calloc(1, sizeof *relay);
    if (relay == NULL)
        return HOOP_ERR_MEMORY;
    *relay = (struct relay){.head = {&hoop_relay_links, setup->rank, setup->ranks},
                            .cuda = place->cuda,
                            .network = place->network,
                            .waker = -1};
    const enum hoop_status status = fill_in(relay, setup);
    if (status != HOOP_OK) {
        relay->network = NULL;
        close_domain(&relay->head);
        return status;
    }
    *domain = &relay->head;
    return HOOP_OK;
}

static enum hoop_status own_address(struct hoop_domain *domain, unsigned char *blob, size_t *size)
{
    struct hoop_domain *network = relay_of(domain)->network;

    return network->transport->address(network, blob, size);
}

static enum hoop_status connect_link(struct hoop_domain *domain, int peer, int lane, const unsigned char *blob,
                                     size_t size, struct hoop_link **link)
{
    struct relay *relay = relay_of(domain);

    if (peer < 0 || peer >= domain->ranks || lane < 0 || lane >= relay->lanes || relay->number[peer] == 0 ||
        relay->link[peer * relay->lanes + lane] || size > HOOP_ADDRESS_MAX)
        return hoop_fail(HOOP_ERR_ARG, "%s: no link of rank %d to rank %d, lane %d, can be made", hoop_relay_links.name,
                         domain->rank, peer, lane);
    struct relay_link *new = hoop_calloc(1, sizeof *new);
    uint64_t *due = hoop_calloc((size_t)relay->slots, sizeof *due);
    if (new == NULL || due == NULL) {
        hoop_free(new);
        hoop_free(due);
        return HOOP_ERR_MEMORY;
    }
    const uint64_t at =
        2 * ((uint64_t)(relay->number[peer] - 1) * (uint64_t)relay->lanes + (uint64_t)lane) * relay->place;
    *new = (struct relay_link){
        .head = {.transport = domain->transport, .domain = domain, .peer = peer, .lane = lane, .frame = relay->frame},
        .out = relay->memory + at,
        .in = relay->memory + at + relay->place,
        .out_at = relay->memory_at + at,
        .in_at = relay->memory_at + at + relay->place,
        .due = due};
    memcpy(relay->address[peer].data, blob, size);
    relay->address[peer].size = size;
    relay->link[peer * relay->lanes + lane] = new;
    *link = &new->head;
    return HOOP_OK;
}

static void disconnect(struct hoop_link *link)
{
    struct relay *relay = relay_of(link->domain);
    struct relay_link *gone = (struct relay_link *)link;

    end_link(gone, HOOP_ERR_PEER);
    relay->link[link->peer * relay->lanes + link->lane] = NULL;
    hoop_free(gone->due);
    hoop_free(gone);
}

static enum hoop_status device_ends(struct hoop_link *link, struct hoop_device_link *ends)
{
    const struct relay *relay = relay_of(link->domain);
    const struct relay_link *self = (const struct relay_link *)link;

    *ends = (struct hoop_device_link){.out_frames = self->out_at + COUNTERS,
                                      .out_head = self->out_at,
                                      .out_taken = self->out_at + COUNTER,
                                      .in_frames = self->in_at + COUNTERS,
                                      .in_head = self->in_at,
                                      .in_taken = self->in_at + COUNTER,
                                      .frame = relay->frame,
                                      .slots = (uint32_t)relay->slots,
                                      .relayed = true};
    return HOOP_OK;
}

static void describe(const struct hoop_link *link, char *text, size_t size)
{
    const struct relay *relay = relay_of(link->domain);

    snprintf(text, size, "%s %d -> %d, lane %d, %d slots of %u bytes, for kernels", link->transport->name,
             link->domain->rank, link->peer, link->lane, relay->slots, relay->frame);
}

const struct hoop_transport hoop_relay_links = {.size = sizeof(struct hoop_transport),
                                                .name = "cuda_net",
                                                .open = open_domain,
                                                .close = close_domain,
                                                .address = own_address,
                                                .connect = connect_link,
                                                .disconnect = disconnect,
                                                .device = device_ends,
                                                .describe = describe};
