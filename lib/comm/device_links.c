// SPDX-License-Identifier: BSD-3-Clause
/* Can kernels of all ranks work together?
 *
 * They can if every rank has a device of its own with device code, and every pair of ranks a path by which a pattern has come both ways
 * and back. Some machines say that they have peer access and lose or corrupt what goes over it (an IOMMU or a bridge in between), so
 * saying is not believed. The paths are tried one after the other, each by the pairs that have none yet: between the memories of two
 * devices, then through memory of the host; between hosts there is one, by pinned memory and a thread that carries it on. A path that one end of a pair refuses or finds corrupt is left out for that pair, and the reason
 * kept. Each step ends with all ranks telling all what they found about their pairs; so all know the same, and come to the same
 * answer. Where a pair has no path at all, calls are staged.
 */
#include "comm/device_links.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/device.h"
#include "comm/device_meet.h"
#include "comm/device_order.h"
#include "comm/device_pattern.h"
#include "comm/device_relay.h"
#include "comm/device_team.h"
#include "comm/kernel.h"
#include "comm/lend.h"
#include "comm/messages.h"
#include "transports/landing.h"
#include "transports/transports.h"

enum { PATHS = HOOP_DEVICE_PATHS, WHY = 320, PAIR_WHY = 120 };

/* In the order in which they are tried. */
static const struct {
    const struct hoop_transport *transport;
    bool same_process, other_process, other_host; /* which pairs it serves */
    bool host; /* what it leads through is this rank's host memory: peers never need it to live on */
} path[PATHS] = {{&hoop_transport_pci_p2p, true, false, false, false},
                 {&hoop_transport_cuda_ipc, false, true, false, false},
                 {&hoop_transport_cuda_host, true, true, false, true},
                 {&hoop_relay_links, false, false, true, true}};

/* What a rank has found out about the path to another. */
struct view {
    uint8_t good; /* 1: yes, so far */
    char why[PAIR_WHY - 1];
};

_Static_assert(sizeof(struct view) % sizeof(uint64_t) == 0, "facts lie one behind the other");

/* What a rank tells after each step. */
struct fact {
    uint32_t content;      /* 1: yes; 0: no kernels at all, and why */
    uint32_t address_size; /* of its end of the path that is tried; 0: it has none */
    uint64_t team;         /* the team that it has made for its device; 0: none */
    uint32_t channels;     /* that its device has room for */
    uint64_t lend;         /* where its list of lent memory is in the board */
    uint64_t messages;     /* and that of its messages */
    char why[WHY];
    unsigned char address[HOOP_ADDRESS_MAX];
    struct view view[]; /* of the path to each rank */
};

struct survey {
    struct hoop_comm *comm;
    const struct hoop_unique_id *id;
    unsigned char *facts; /* of each rank, fact_bytes each */
    size_t fact_bytes;
    unsigned char *way;   /* of each pair, by a * ranks + b, the same on all ranks: 1 + its path; 0: none yet */
    char (*refused)[WHY]; /* by peer: the paths that this rank has not to it, and why */
    bool *with;           /* by peer: tries the path that is tried now */
    int trying;           /* a path */
    struct hoop_pattern pattern;
    bool content;
};

static struct fact *fact_of(const struct survey *survey, int rank)
{
    return (struct fact *)(void *)(survey->facts + (size_t)rank * survey->fact_bytes);
}

static struct fact *own(const struct survey *survey)
{
    return fact_of(survey, survey->comm->rank);
}

/* The texts go into JSON. */
static void make_plain(char *text)
{
    for (char *c = text; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            *c = '\'';
}

/* This rank is not content: the thread's last error says why. */
static void object(const struct survey *survey)
{
    struct fact *fact = own(survey);

    if (!fact->content)
        return;
    fact->content = 0;
    snprintf(fact->why, sizeof fact->why, "%s", hoop_error_text());
    make_plain(fact->why);
}

/* Tell all, hear all: survey->content: all are. */
static enum hoop_status tell(struct survey *survey)
{
    struct hoop_comm *comm = survey->comm;
    const struct hoop_comm_call gather = {.comm = comm,
                                          .coll = HOOP_ALL_GATHER,
                                          .type = HOOP_U8,
                                          .op = HOOP_OPS,
                                          .root = -1,
                                          .in_place = true,
                                          .count = survey->fact_bytes,
                                          .in = own(survey),
                                          .out = survey->facts};

    const enum hoop_status status = comm->ranks > 1 ? hoop_comm_run_part(&gather) : HOOP_OK;
    if (status != HOOP_OK)
        return hoop_comm_conclude(comm, status);
    survey->content = true;
    for (int rank = comm->ranks - 1; rank >= 0; rank--) {
        struct fact *fact = fact_of(survey, rank);
        fact->why[WHY - 1] = 0;
        for (int peer = 0; peer < comm->ranks; peer++)
            fact->view[peer].why[PAIR_WHY - 2] = 0;
        if (fact->content)
            continue;
        survey->content = false;
        snprintf(comm->device_way, sizeof comm->device_way, "rank %d: %s", rank, fact->why);
    }
    return HOOP_OK;
}

/* ---- what each rank has ---- */

static enum hoop_status check_devices(const struct hoop_comm *comm)
{
    for (int b = 0; b < comm->ranks && comm->devices; b++) {
        if (!comm->devices[b].present)
            return hoop_fail(HOOP_ERR_UNSUPPORTED, "rank %d has no device", b);
        for (int a = 0; a < b; a++)
            if (hoop_device_same(&comm->devices[a], &comm->devices[b]) &&
                !hoop_device_same_process(&comm->devices[a], &comm->devices[b]))
                return hoop_fail(HOOP_ERR_UNSUPPORTED,
                                 "ranks %d and %d, of two processes, share the GPU %s: kernels of processes take turns",
                                 a, b, comm->devices[a].bus);
    }
    return comm->device ? HOOP_OK : hoop_fail(HOOP_ERR_UNSUPPORTED, "rank %d has no device", comm->rank);
}

static enum hoop_status check_code(const struct survey *survey)
{
    struct hoop_comm *comm = survey->comm;

    if (hoop_setting_number(&comm->settings, HOOP_SETTING_STAGED) > 0)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "HOOP_STAGED=1");
    if (comm->ranks == 1)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "it is alone");
    return hoop_kernels_new(comm);
}

/* ---- pairs ---- */

static bool linked(const struct survey *survey, int a, int b)
{
    return survey->way[a * survey->comm->ranks + b] != 0;
}

/* Does the path serve the pair? */
static bool serves(const struct hoop_comm *comm, int number, int a, int b)
{
    if (comm->hosts.count > 1 && comm->hosts.of[a] != comm->hosts.of[b])
        return path[number].other_host;
    return hoop_device_same_process(&comm->devices[a], &comm->devices[b]) ? path[number].same_process
                                                                          : path[number].other_process;
}

/* Does the pair need the path that is tried now, and does that serve it? */
static bool tries(const struct survey *survey, int a, int b)
{
    return a != b && !linked(survey, a, b) && serves(survey->comm, survey->trying, a, b);
}

static bool anyone_tries(const struct survey *survey)
{
    const int ranks = survey->comm->ranks;

    for (int a = 0; a < ranks; a++)
        for (int b = a + 1; b < ranks; b++)
            if (tries(survey, a, b))
                return true;
    return false;
}

/* The path to the peer is no good: the thread's last error says why. */
static void leave_out(const struct survey *survey, int peer)
{
    struct view *view = &own(survey)->view[peer];

    if (!view->good)
        return;
    view->good = 0;
    snprintf(view->why, sizeof view->why, "%s", hoop_error_text());
    make_plain(view->why);
}

static void drop_peer(const struct hoop_comm *comm, int peer)
{
    const int lanes = hoop_device_lanes(comm);

    for (int lane = 0; lane < lanes; lane++) {
        struct hoop_link **link = &comm->device->links[peer * lanes + lane];
        if (*link)
            (*link)->transport->disconnect(*link);
        *link = NULL;
    }
}

/* Note why this rank and the peer do not use the path: what this rank found, else what the peer says. */
static void note_refusal(const struct survey *survey, int peer)
{
    const struct view *mine = &own(survey)->view[peer], *theirs = &fact_of(survey, peer)->view[survey->comm->rank];
    char *text = survey->refused[peer];
    const size_t used = strlen(text);

    if (mine->good)
        snprintf(text + used, WHY - used, "%s%s: rank %d says: %s", used ? "; " : "",
                 path[survey->trying].transport->name, peer, theirs->why);
    else
        snprintf(text + used, WHY - used, "%s%s: %s", used ? "; " : "", path[survey->trying].transport->name,
                 mine->why);
}

/* All have told: pairs of which an end found the path no good do not go on with it. */
static void settle(const struct survey *survey)
{
    const struct hoop_comm *comm = survey->comm;

    for (int peer = 0; peer < comm->ranks; peer++) {
        if (!survey->with[peer] || (own(survey)->view[peer].good && fact_of(survey, peer)->view[comm->rank].good))
            continue;
        note_refusal(survey, peer);
        drop_peer(comm, peer);
        survey->with[peer] = false;
    }
}

/* One step with every peer that tries the path, then tell all. */
static enum hoop_status with_each(struct survey *survey, enum hoop_status (*step)(const struct survey *, int))
{
    const struct hoop_comm *comm = survey->comm;

    for (int i = 1; i < comm->ranks && own(survey)->content; i++) {
        const int peer = (comm->rank + i) % comm->ranks;
        if (survey->with[peer] && step(survey, peer) != HOOP_OK)
            leave_out(survey, peer);
    }
    const enum hoop_status status = tell(survey);
    if (status == HOOP_OK)
        settle(survey);
    return status;
}

/* ---- one path ---- */

static enum hoop_status open_domain(struct survey *survey)
{
    struct hoop_comm *comm = survey->comm;
    const struct hoop_transport *transport = path[survey->trying].transport;
    struct hoop_cuda_host_place place = {comm->device->cuda, comm->heap, survey->with};
    const struct hoop_domain_setup setup = {.rank = comm->rank,
                                            .ranks = comm->ranks,
                                            .lanes = hoop_device_lanes(comm),
                                            .frame = comm->choice.frame,
                                            .slots = comm->slots,
                                            .context = path[survey->trying].host ? (void *)&place
                                                                                 : (void *)comm->device->cuda};
    struct hoop_domain **domain = &comm->device->domain[survey->trying];
    size_t size = 0;

    enum hoop_status status = path[survey->trying].other_host
                                  ? hoop_device_relay_open(comm, survey->id, survey->with, &setup, domain)
                                  : transport->open(&setup, domain);
    if (status == HOOP_OK)
        status = transport->address(*domain, own(survey)->address, &size);
    own(survey)->address_size = status == HOOP_OK ? (uint32_t)size : 0;
    return status;
}

/* Begin with a path: this rank's end, for the pairs that try it. */
static enum hoop_status offer(struct survey *survey)
{
    const struct hoop_comm *comm = survey->comm;
    bool any = false;

    own(survey)->address_size = 0;
    for (int peer = 0; peer < comm->ranks; peer++) {
        survey->with[peer] = tries(survey, comm->rank, peer);
        any |= survey->with[peer];
        own(survey)->view[peer] = (struct view){.good = survey->with[peer]};
    }
    if (any && open_domain(survey) != HOOP_OK)
        for (int peer = 0; peer < comm->ranks; peer++)
            leave_out(survey, peer);
    const enum hoop_status status = tell(survey);
    if (status == HOOP_OK)
        settle(survey);
    return status;
}

static enum hoop_status connect_peer(const struct survey *survey, int peer)
{
    const struct hoop_transport *transport = path[survey->trying].transport;
    const struct fact *theirs = fact_of(survey, peer);
    struct hoop_comm_device *device = survey->comm->device;
    struct hoop_domain *domain = device->domain[survey->trying];
    const int lanes = hoop_device_lanes(survey->comm);
    enum hoop_status status = HOOP_OK;

    if (theirs->address_size > HOOP_ADDRESS_MAX)
        return hoop_fail(HOOP_ERR_INTERNAL, "rank %d gave an address of %u bytes", peer, theirs->address_size);
    for (int lane = 0; lane < lanes && status == HOOP_OK; lane++)
        status = transport->connect(domain, peer, lane, theirs->address, theirs->address_size,
                                    &device->links[peer * lanes + lane]);
    return status;
}

static enum hoop_status write_pattern(const struct survey *survey, int peer)
{
    return hoop_pattern_write(&survey->pattern, peer);
}

/* What goes to another host has been read back here, and does not arrive before there is a relay. */
static enum hoop_status hear_pattern(const struct survey *survey, int peer)
{
    return path[survey->trying].other_host ? HOOP_OK : hoop_pattern_hear(&survey->pattern, peer);
}

/* ---- all of it ---- */

/* Every rank comes to the same table of ways. */
static void mark_ways(const struct survey *survey)
{
    const int ranks = survey->comm->ranks;

    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < a; b++)
            if (fact_of(survey, a)->view[b].good && fact_of(survey, b)->view[a].good)
                survey->way[a * ranks + b] = survey->way[b * ranks + a] = (unsigned char)(survey->trying + 1);
}

static enum hoop_status try_path(struct survey *survey)
{
    enum hoop_status status = offer(survey);

    if (status == HOOP_OK && survey->content)
        status = with_each(survey, connect_peer);
    if (status == HOOP_OK && survey->content)
        status = with_each(survey, write_pattern);
    if (status == HOOP_OK && survey->content)
        status = with_each(survey, hear_pattern);
    if (status == HOOP_OK && survey->content)
        mark_ways(survey);
    return status;
}

/* A pair without any path: no kernels. */
static void need_paths(const struct survey *survey)
{
    const struct hoop_comm *comm = survey->comm;

    for (int peer = 0; peer < comm->ranks && own(survey)->content; peer++)
        if (peer != comm->rank && !linked(survey, comm->rank, peer)) {
            hoop_fail(HOOP_ERR_UNSUPPORTED, "no path to rank %d: %s", peer, survey->refused[peer]);
            object(survey);
        }
}

/* As many channels as all devices have room for. */
static void agree_channels(const struct survey *survey)
{
    const struct hoop_comm *comm = survey->comm;
    int least = comm->device->channels;

    for (int rank = 0; rank < comm->ranks; rank++) {
        const int its = (int)fact_of(survey, rank)->channels;
        least = its > 0 && its < least ? its : least;
    }
    hoop_kernels_set_channels(comm->device->kernels, least);
}

/* Where every pair has a path: kernels from now on. */
static enum hoop_status begin(struct survey *survey)
{
    struct hoop_comm_device *device = survey->comm->device;
    const int ranks = survey->comm->ranks;

    need_paths(survey);
    agree_channels(survey);
    device->one_process = survey->comm->hosts.count == 1;
    for (int rank = 1; rank < ranks; rank++)
        device->one_process &= hoop_device_same_process(&survey->comm->devices[0], &survey->comm->devices[rank]);
    if (own(survey)->content &&
        (hoop_lend_start(device->lend, &fact_of(survey, 0)->lend, survey->fact_bytes) != HOOP_OK ||
         (device->messages &&
          hoop_messages_start(device->messages, &fact_of(survey, 0)->messages, survey->fact_bytes) != HOOP_OK) ||
         hoop_kernels_start(survey->comm) != HOOP_OK))
        object(survey);
    return tell(survey);
}

/* What every peer's path needs beside the path. */
static enum hoop_status prepare(struct survey *survey)
{
    struct hoop_comm *comm = survey->comm;

    comm->device->links =
        hoop_calloc((size_t)comm->ranks * (size_t)hoop_device_lanes(comm), sizeof(struct hoop_link *));
    if (comm->device->links == NULL)
        return HOOP_ERR_MEMORY;
    own(survey)->channels = (uint32_t)comm->device->channels;
    enum hoop_status status = hoop_lend_new(comm, &comm->device->lend, &own(survey)->lend);
    /* who shares a device launches with all others that do; and lists of messages are read in the board */
    if (status == HOOP_OK && !hoop_device_any_shared(comm) && comm->hosts.count == 1)
        status = hoop_messages_new(comm, &comm->device->messages, &own(survey)->messages);
    return status == HOOP_OK ? hoop_pattern_new(&survey->pattern, comm) : status;
}

/* Ranks of this process on one device: the first of them makes their team before all tell what they have, the others enter it then. */
static enum hoop_status make_team(const struct survey *survey)
{
    struct hoop_comm *comm = survey->comm;

    return hoop_device_team_maker(comm) == comm->rank ? hoop_device_team_make(comm, &own(survey)->team) : HOOP_OK;
}

static enum hoop_status enter_team(const struct survey *survey)
{
    const int maker = hoop_device_team_maker(survey->comm);

    return maker < 0 ? HOOP_OK : hoop_device_team_enter(survey->comm, fact_of(survey, maker)->team);
}

static enum hoop_status try_links(struct survey *survey)
{
    if (own(survey)->content && (prepare(survey) != HOOP_OK || make_team(survey) != HOOP_OK))
        object(survey);
    enum hoop_status status = tell(survey);
    if (status == HOOP_OK && survey->content && enter_team(survey) != HOOP_OK)
        object(survey);
    for (int i = 0; i < PATHS && status == HOOP_OK && survey->content; i++) {
        survey->trying = i;
        if (anyone_tries(survey))
            status = try_path(survey);
    }
    return status == HOOP_OK && survey->content ? begin(survey) : status;
}

/* All drop their links before anyone frees what they lead to. */
static enum hoop_status give_up(struct survey *survey)
{
    struct hoop_comm *comm = survey->comm;

    hoop_device_links_drop(comm);
    if (comm->device) {
        hoop_kernels_free(comm->device->kernels);
        comm->device->kernels = NULL;
        hoop_device_team_leave(comm);
    }
    const enum hoop_status status = tell(survey);
    if (status == HOOP_OK && comm->device)
        hoop_device_links_free(comm);
    return status;
}

/* The thread's last error is that of all ranks. */
static enum hoop_status refuse(struct survey *survey)
{
    char why[HOOP_ERROR_TEXT];

    snprintf(why, sizeof why, "%s", hoop_error_text());
    const enum hoop_status status = give_up(survey);
    return status == HOOP_OK ? hoop_fail(HOOP_ERR_SETUP, "%s", why) : status;
}

/* Say by which path this rank reaches which peers, and why not by one that was tried before. */
static void tell_ways(const struct survey *survey)
{
    struct hoop_comm *comm = survey->comm;
    const unsigned char *way = &survey->way[comm->rank * comm->ranks];
    const size_t size = sizeof comm->device_way;
    size_t used = hoop_kernels_tell(comm, comm->device_way, size);

    for (int peer = 0; peer < comm->ranks && used < size; peer++) {
        const char *refused = survey->refused[peer], *more = refused[0] ? " (not by " : "";
        if (way[peer])
            used += (size_t)snprintf(comm->device_way + used, size - used, "%s rank %d by %s%s%s%s",
                                     peer == (comm->rank == 0) ? "; linked:" : ",", peer,
                                     path[way[peer] - 1].transport->name, more, refused, refused[0] ? ")" : "");
    }
}

static void close_domain(struct hoop_comm_device *device, int number)
{
    struct hoop_domain *domain = device->domain[number];

    domain->transport->close(domain);
    device->domain[number] = NULL;
    if (domain == device->relay)
        device->relay = NULL;
}

/* Close what nobody took: all have dropped their links to it. */
static void close_unused(const struct survey *survey)
{
    const struct hoop_comm *comm = survey->comm;

    for (int i = 0; i < PATHS; i++)
        if (comm->device->domain[i] && !memchr(&survey->way[comm->rank * comm->ranks], i + 1, (size_t)comm->ranks))
            close_domain(comm->device, i);
}

static enum hoop_status make_survey(struct survey *survey, struct hoop_comm *comm)
{
    const size_t ranks = (size_t)comm->ranks;

    *survey = (struct survey){.comm = comm, .fact_bytes = sizeof(struct fact) + ranks * sizeof(struct view)};
    survey->facts = hoop_calloc(ranks, survey->fact_bytes);
    survey->way = hoop_calloc(ranks, ranks);
    survey->refused = hoop_calloc(ranks, sizeof *survey->refused);
    survey->with = hoop_calloc(ranks, sizeof *survey->with);
    return survey->facts && survey->way && survey->refused && survey->with ? HOOP_OK : HOOP_ERR_MEMORY;
}

static void free_survey(struct survey *survey)
{
    hoop_pattern_free(&survey->pattern);
    hoop_free(survey->facts);
    hoop_free(survey->way);
    hoop_free(survey->refused);
    hoop_free(survey->with);
}

enum hoop_status hoop_device_agree(struct hoop_comm *comm, const struct hoop_unique_id *id)
{
    struct survey survey;

    if (!hoop_device_any(comm))
        return HOOP_OK;
    enum hoop_status status = make_survey(&survey, comm);
    survey.id = id;
    if (status != HOOP_OK) {
        free_survey(&survey);
        return hoop_comm_conclude(comm, status);
    }
    own(&survey)->content = 1;
    if (check_devices(comm) != HOOP_OK || check_code(&survey) != HOOP_OK)
        object(&survey);
    status = try_links(&survey);
    if (status == HOOP_OK && !survey.content)
        status = give_up(&survey);
    else if (status == HOOP_OK) {
        tell_ways(&survey);
        close_unused(&survey);
        status = comm->hosts.count == 1 ? hoop_device_order(comm) : HOOP_OK;
        if (status == HOOP_ERR_SETUP)
            status = refuse(&survey);
    }
    free_survey(&survey);
    return status;
}

void hoop_device_links_drop(struct hoop_comm *comm)
{
    struct hoop_comm_device *device = comm->device;

    if (device == NULL)
        return;
    hoop_kernels_drain(device->kernels);
    hoop_device_relay_stop(comm);
    hoop_lend_stop(device->lend);
    for (int i = 0; device->links && i < comm->ranks * hoop_device_lanes(comm); i++)
        if (device->links[i])
            device->links[i]->transport->disconnect(device->links[i]);
    hoop_free(device->links);
    device->links = NULL;
}

void hoop_device_links_free(struct hoop_comm *comm)
{
    struct hoop_comm_device *device = comm->device;

    hoop_device_links_drop(comm);
    for (int i = 0; i < PATHS; i++)
        if (device->domain[i] && (comm->error == HOOP_OK || path[i].host))
            close_domain(device, i);
}
