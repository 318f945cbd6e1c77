// SPDX-License-Identifier: BSD-3-Clause
/* Communicators over several hosts.
 *
 * A host is where ranks share a board. Ranks that see the same kernel and network name space, and carry the same HOOP_HOST, are taken
 * for such; it is proved when the host's first rank hands them the board, over a socket on which both show the key, and a rank that
 * does not get it fails. Each host has a board of its own with cards for all ranks; those of other hosts stand as if they were ahead
 * of everybody, so nobody waits for them there, and verdicts and their calls are brought by the monitor threads (health/far.h).
 *
 * Sockets are opened only where an id goes beyond loopback, or HOOP_HOST or HOOP_TRANSPORTS ask for it.
 */
#include "comm/hosts.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "boot/boot.h"
#include "boot/id.h"
#include "comm/comm.h"
#include "comm/device_meet.h"
#include "health/verdict.h"
#include "transports/tcp/tcp.h"
#include "transports/transports.h"
#include "wire/iface.h"

/* ns: how long another host's verdict, or calls, are waited for */
static const uint64_t verdict_time = 1000000000u, calls_time = 1000000000u;
enum { PAUSE_MS = 2 };

/* What ranks on several hosts cost where nothing was measured: a message through two kernels, and ten gigabits. */
static const double tcp_hop = 20000, tcp_post = 6000, tcp_uplink = 1.2;

/* ---- opening ---- */

static bool is_word(const struct hoop_comm *comm, enum hoop_setting_id id, const char *word)
{
    return strcmp(comm->settings.value[id].word, word) == 0;
}

static enum hoop_status read_ports(const struct hoop_comm *comm, struct hoop_tcp_setup *setup)
{
    const char *text = comm->settings.value[HOOP_SETTING_PORTS].word;

    if (*text != 0 && !hoop_ports_read(text, &setup->first_port, &setup->last_port))
        return hoop_fail(HOOP_ERR_SETUP, "HOOP_PORTS=%s: give a port, or the first and the last one: 40000-40100",
                         text);
    return HOOP_OK;
}

/* How many channels there are if there are several hosts. */
static int channels_across(const struct hoop_comm *comm)
{
    return comm->settings.value[HOOP_SETTING_CHANNELS].empty ? HOOP_CHANNELS_ACROSS : comm->channels;
}

size_t hoop_hosts_frame(const struct hoop_comm *comm)
{
    return comm->settings.value[HOOP_SETTING_SLICE].empty ? HOOP_FRAME_ACROSS : comm->choice.frame;
}

enum hoop_status hoop_hosts_open_network(const struct hoop_comm *comm, const struct hoop_unique_id *id,
                                         const char *purpose, bool both_ways, const struct hoop_domain_setup *shape,
                                         struct hoop_domain **domain)
{
    struct hoop_tcp_setup tcp = {.interfaces = comm->settings.value[HOOP_SETTING_IFACE].word,
                                 .both_ways = both_ways,
                                 .reno = hoop_setting_number(&comm->settings, HOOP_SETTING_RENO) != 0};
    struct hoop_domain_setup setup = *shape;

    enum hoop_status status = read_ports(comm, &tcp);
    if (status != HOOP_OK)
        return status;
    hoop_boot_key(id, purpose, tcp.key);
    setup.context = &tcp;
    status = hoop_transport_tcp.open(&setup, domain);
    hoop_auth_wipe(tcp.key, sizeof tcp.key);
    return status;
}

enum hoop_status hoop_hosts_open(struct hoop_comm *comm, const struct hoop_unique_id *id)
{
    const struct hoop_domain_setup data = {.rank = comm->rank,
                                           .ranks = comm->ranks,
                                           .lanes = hoop_lanes_of(channels_across(comm)),
                                           .frame = hoop_hosts_frame(comm),
                                           .slots = comm->slots},
                                   watch = {.rank = comm->rank,
                                            .ranks = comm->ranks,
                                            .lanes = HOOP_COUNCIL_LANES,
                                            .frame = HOOP_FAR_FRAME,
                                            .slots = HOOP_FAR_SLOTS};
    const bool shm = is_word(comm, HOOP_SETTING_TRANSPORTS, "shm"),
               only = is_word(comm, HOOP_SETTING_TRANSPORTS, "tcp");

    if (!shm && !only && !is_word(comm, HOOP_SETTING_TRANSPORTS, "auto"))
        return hoop_fail(HOOP_ERR_SETUP, "HOOP_TRANSPORTS=%s: give auto, shm or tcp",
                         comm->settings.value[HOOP_SETTING_TRANSPORTS].word);
    if (shm || (!only && is_word(comm, HOOP_SETTING_HOST, "") && !hoop_boot_goes_far(id)))
        return HOOP_OK;
    const enum hoop_status status = hoop_hosts_open_network(comm, id, "tcp", false, &data, &comm->hosts.domain);
    return status == HOOP_OK ? hoop_hosts_open_network(comm, id, "watch", true, &watch, &comm->hosts.watch) : status;
}

/* ---- telling ---- */

static void read_address(struct hoop_domain *domain, struct hoop_host_address *address)
{
    size_t size = 0;

    if (domain)
        domain->transport->address(domain, address->data, &size);
    address->size = (uint16_t)size;
}

void hoop_hosts_tell(const struct hoop_comm *comm, struct hoop_host_self *self)
{
    unsigned char facts[HOOP_NET_HOME + HOOP_SETTING_WORD + 4] = {0}, digest[16];
    const bool apart = is_word(comm, HOOP_SETTING_TRANSPORTS, "tcp");
    struct hoop_writer writer = hoop_writer(facts, sizeof facts);

    hoop_net_home(facts);
    writer.at += HOOP_NET_HOME;
    hoop_put_u32(&writer, apart ? (uint32_t)comm->rank : UINT32_MAX);
    hoop_put_text(&writer, comm->settings.value[HOOP_SETTING_HOST].word);
    hoop_auth_digest(digest, sizeof digest, facts, sizeof facts);
    memcpy(self->host, digest, sizeof self->host);
    hoop_net_kernel(self->kernel);
    read_address(comm->hosts.domain, &self->data);
    read_address(comm->hosts.watch, &self->watch);
}

static void put_address(struct hoop_writer *writer, const struct hoop_host_address *address)
{
    hoop_put_u16(writer, address->size);
    hoop_put_bytes(writer, address->data, address->size);
}

static void get_address(struct hoop_reader *reader, struct hoop_host_address *address)
{
    address->size = hoop_get_u16_range(reader, 0, HOOP_ADDRESS_MAX);
    hoop_get_bytes(reader, address->data, address->size);
}

void hoop_hosts_put(struct hoop_writer *writer, const struct hoop_host_self *self)
{
    hoop_put_bytes(writer, self->host, sizeof self->host);
    hoop_put_bytes(writer, self->kernel, sizeof self->kernel);
    put_address(writer, &self->data);
    put_address(writer, &self->watch);
}

void hoop_hosts_get(struct hoop_reader *reader, struct hoop_host_self *self)
{
    hoop_get_bytes(reader, self->host, sizeof self->host);
    hoop_get_bytes(reader, self->kernel, sizeof self->kernel);
    get_address(reader, &self->data);
    get_address(reader, &self->watch);
}

/* ---- who is where ---- */

static void close_domains(struct hoop_hosts *hosts)
{
    if (hosts->domain)
        hosts->domain->transport->close(hosts->domain);
    if (hosts->watch)
        hosts->watch->transport->close(hosts->watch);
    hosts->domain = hosts->watch = NULL;
}

static int number_of(struct hoop_hosts *hosts, int rank)
{
    for (int before = 0; before < rank; before++)
        if (memcmp(hosts->self[before].host, hosts->self[rank].host, HOOP_NET_HOME) == 0)
            return hosts->of[before];
    return hosts->count++;
}

bool hoop_hosts_share_kernel(const struct hoop_host_self *a, const struct hoop_host_self *b)
{
    static const unsigned char unknown[HOOP_NET_HOME];

    return memcmp(a->kernel, unknown, sizeof unknown) != 0 && memcmp(a->kernel, b->kernel, sizeof unknown) == 0;
}

enum hoop_status hoop_hosts_survey(struct hoop_comm *comm)
{
    struct hoop_hosts *hosts = &comm->hosts;

    hosts->count = hosts->locals = 0;
    hosts->unpaced = hoop_setting_number(&comm->settings, HOOP_SETTING_RENO) != 0;
    for (int rank = 0; rank < comm->ranks; rank++)
        hosts->unpaced &= hoop_hosts_share_kernel(&hosts->self[0], &hosts->self[rank]);
    for (int rank = 0; rank < comm->ranks; rank++)
        hosts->of[rank] = number_of(hosts, rank);
    hosts->own = hosts->of[comm->rank];
    for (int rank = comm->ranks - 1; rank >= 0; rank--) {
        if (hosts->of[rank] != hosts->own)
            continue;
        hosts->leader = rank;
        hosts->locals++;
        hosts->place += rank < comm->rank;
    }
    if (hosts->count == 1) {
        close_domains(hosts);
        return HOOP_OK;
    }
    comm->channels = channels_across(comm);
    comm->lanes = hoop_lanes_of(comm->channels);
    for (int rank = 0; rank < comm->ranks; rank++)
        if (hosts->self[rank].data.size == 0)
            return is_word(comm, HOOP_SETTING_TRANSPORTS, "shm")
                       ? hoop_fail(HOOP_ERR_UNSUPPORTED,
                                   "the ranks are on %d hosts, and HOOP_TRANSPORTS=shm joins those of one only",
                                   hosts->count)
                       : hoop_fail(
                             HOOP_ERR_SETUP,
                             "the ranks are on %d hosts, and rank %d listens on loopback only: set HOOP_ADDRESS to "
                             "an address of the first rank's host that all hosts reach, or HOOP_HOST on all ranks",
                             hosts->count, rank);
    return HOOP_OK;
}

int hoop_hosts_local(const struct hoop_comm *comm, int place)
{
    int rank = comm->hosts.leader;

    for (; place > 0; place--)
        do
            rank++;
        while (comm->hosts.of[rank] != comm->hosts.own);
    return rank;
}

/* ---- joining ---- */

static enum hoop_status join_leader(struct hoop_comm *comm, int peer)
{
    struct hoop_hosts *hosts = &comm->hosts;
    const struct hoop_host_address *address = &hosts->self[peer].watch;
    struct hoop_far_link *link = &hosts->far->link[hosts->far->links];

    const enum hoop_status status =
        hosts->watch->transport->connect(hosts->watch, peer, 0, address->data, address->size, &link->link);
    hosts->far->links += status == HOOP_OK;
    return status;
}

/* Is that the first rank of its host? */
static bool leads(const struct hoop_hosts *hosts, int rank)
{
    for (int before = 0; before < rank; before++)
        if (hosts->of[before] == hosts->of[rank])
            return false;
    return true;
}

static void note_others(const struct hoop_comm *comm)
{
    for (int rank = 0; rank < comm->ranks; rank++) {
        struct hoop_card *card = hoop_board_card(comm->board, rank);
        if (comm->hosts.of[rank] == comm->hosts.own)
            continue;
        card->process = comm->devices[rank].process;
        atomic_store(&card->started, UINT64_MAX);
    }
}

static enum hoop_status call_council(struct hoop_comm *comm)
{
    struct hoop_hosts *hosts = &comm->hosts;

    hosts->places = hoop_calloc((size_t)comm->ranks, sizeof *hosts->places);
    if (hosts->places == NULL)
        return HOOP_ERR_MEMORY;
    for (int rank = 0; rank < comm->ranks; rank++) {
        const struct hoop_host_address *address = &hosts->self[rank].watch;
        hosts->places[rank] = (struct hoop_council_place){hosts->of[rank], address->data, address->size};
    }
    return hoop_council_new(&hosts->far->council, hosts->watch, hosts->places);
}

enum hoop_status hoop_hosts_join(struct hoop_comm *comm)
{
    struct hoop_hosts *hosts = &comm->hosts;
    enum hoop_status status = HOOP_OK;

    if (hosts->count == 1)
        return HOOP_OK;
    status = hoop_far_new(&hosts->far, hosts->watch, comm->ranks, hosts->count,
                          hoop_setting_number(&comm->settings, HOOP_SETTING_SILENT));
    if (status == HOOP_OK && comm->ranks <= HOOP_SHRINK_RANKS)
        status = call_council(comm);
    if (comm->rank != hosts->leader)
        return status;
    note_others(comm);
    for (int rank = 0; rank < comm->ranks && status == HOOP_OK; rank++)
        if (rank != comm->rank && (comm->rank == 0 || rank == 0) && leads(hosts, rank))
            status = join_leader(comm, rank);
    return status;
}

void hoop_hosts_adjust(struct hoop_comm *comm)
{
    if (comm->hosts.count == 1)
        return;
    comm->choice.far = true;
    if (comm->choice.model.measured)
        return;
    comm->choice.model.hop_across = tcp_hop;
    comm->choice.model.post_across = tcp_post;
    comm->choice.model.uplink = tcp_uplink;
}

void hoop_hosts_close(struct hoop_comm *comm)
{
    struct hoop_hosts *hosts = &comm->hosts;

    for (int i = 0; hosts->far && i < hosts->far->links; i++)
        hosts->watch->transport->disconnect(hosts->far->link[i].link);
    hoop_far_free(hosts->far); /* with links of the domain */
    close_domains(hosts);
    hoop_free(hosts->places);
    hoop_free(hosts->of);
    hoop_free(hosts->self);
    *hosts = (struct hoop_hosts){.count = 1};
}

enum hoop_status hoop_hosts_create_id(const struct hoop_comm *comm, struct hoop_unique_id *id)
{
    enum { INTERFACES = 64 };
    struct hoop_iface list[INTERFACES];
    char host[HOOP_ADDRESS_TEXT];
    int count = comm->hosts.count > 1 ? hoop_iface_list(list, INTERFACES) : 0;

    if (count > 0 && hoop_iface_choose(list, &count, comm->settings.value[HOOP_SETTING_IFACE].word) == HOOP_OK)
        for (int i = 0; i < count; i++) {
            if (hoop_address_is_link_local(&list[i].address))
                continue;
            inet_ntop(list[i].address.family == 6 ? AF_INET6 : AF_INET, list[i].address.host, host, sizeof host);
            return hoop_id_create(id, host);
        }
    return hoop_unique_id_create(id);
}

/* ---- links ---- */

enum hoop_status hoop_comm_connect(struct hoop_comm *comm, int peer, int lane, struct hoop_link **link)
{
    const struct hoop_hosts *hosts = &comm->hosts;

    if (hosts->count == 1 || hosts->of[peer] == hosts->own)
        return comm->domain->transport->connect(comm->domain, peer, lane, NULL, 0, link);
    const struct hoop_host_address *address = &hosts->self[peer].data;
    return hosts->domain->transport->connect(hosts->domain, peer, lane, address->data, address->size, link);
}

enum hoop_status hoop_comm_flush(struct hoop_comm *comm)
{
    struct hoop_domain *domain = comm->hosts.domain;

    if (domain == NULL || domain->transport->flush(domain) == HOOP_OK)
        return HOOP_OK;
    domain->transport->progress(domain);
    return domain->transport->flush(domain);
}

void hoop_comm_lost(struct hoop_comm *comm, int peer, uint64_t sequence)
{
    const bool far = comm->hosts.count > 1 && comm->hosts.of[peer] != comm->hosts.own;
    const uint64_t end = hoop_now() + verdict_time;

    hoop_health_look(comm->board, sequence);
    while (far && !hoop_verdict_stands(comm->board) && hoop_now() < end) {
        poll(NULL, 0, PAUSE_MS);
        hoop_health_look(comm->board, sequence);
    }
    /* A host's first rank says so when it leaves in peace. */
    const bool died =
        far && leads(&comm->hosts, peer) && atomic_load(&hoop_board_card(comm->board, peer)->life) != HOOP_LIFE_LEFT;
    hoop_verdict_pass(comm->board, (struct hoop_verdict){died ? HOOP_VERDICT_DIED : HOOP_VERDICT_LEFT, peer, comm->rank,
                                                         (unsigned)sequence});
}

void hoop_comm_await_calls(const struct hoop_comm *comm)
{
    const struct hoop_verdict verdict = hoop_verdict_get(comm->board);
    const uint64_t end = hoop_now() + calls_time;
    const int rank[2] = {verdict.a, verdict.b};

    if (verdict.kind != HOOP_VERDICT_MISMATCH || comm->hosts.count == 1)
        return;
    for (int i = 0; i < 2; i++) {
        const struct hoop_card *card = hoop_board_card(comm->board, rank[i]);
        while (comm->hosts.of[rank[i]] != comm->hosts.own && hoop_now() < end &&
               (int16_t)(uint16_t)(hoop_card_started(card) - verdict.sequence) < 0)
            poll(NULL, 0, PAUSE_MS);
    }
}
