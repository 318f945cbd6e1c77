// SPDX-License-Identifier: BSD-3-Clause
/* What ranks tell each other once they have met: where they are, their devices, their transports' addresses, and what first ranks of
 * hosts say of theirs. Any bytes are read or refused; what is read is written again as the same bytes; and no frame of another host
 * changes what is known of this host's ranks. (The first messages: fuzz_hello, tcp's: fuzz_tcp.) */
#include <stdlib.h>
#include <string.h>

#include "comm/device_meet.h"
#include "comm/hosts.h"
#include "health/far.h"
#include "health/verdict.h"
#include "transports/landing.h"
#include "transports/sim/sim.h"
#include "transports/transports.h"

enum { FRAME = 4096, SLOTS = 4, OWN = 0, FAR = 1 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void host(const uint8_t *data, size_t bytes)
{
    unsigned char again[sizeof(struct hoop_host_self)];
    struct hoop_reader reader = hoop_reader(data, bytes);
    struct hoop_writer writer = hoop_writer(again, sizeof again);
    struct hoop_host_self self;

    memset(&self, 0, sizeof self);
    hoop_hosts_get(&reader, &self);
    if (reader.failed)
        return;
    check(self.data.size <= HOOP_ADDRESS_MAX && self.watch.size <= HOOP_ADDRESS_MAX);
    hoop_hosts_put(&writer, &self);
    check(!writer.failed && memcmp(again, data, hoop_writer_used(&writer)) == 0);
}

static void device(const uint8_t *data, size_t bytes)
{
    struct hoop_reader reader = hoop_reader(data, bytes);
    struct hoop_device_self self;

    memset(&self, 0, sizeof self);
    hoop_device_self_get(&reader, &self);
    check(reader.failed || (memchr(self.bus, 0, sizeof self.bus) != NULL && self.process >= 0));
}

/* ---- addresses ---- */

static void address(const struct hoop_transport *transport, void *context, const uint8_t *data, size_t bytes)
{
    const struct hoop_domain_setup setup = {
        .rank = 0, .ranks = 2, .lanes = 1, .frame = FRAME, .slots = SLOTS, .context = context};
    struct hoop_transport_cost cost;
    struct hoop_domain *domain = NULL;
    struct hoop_link *link = NULL;

    check(transport->open(&setup, &domain) == HOOP_OK);
    if (transport->cost(domain, data, bytes, &cost) == HOOP_OK)
        check(cost.gigabytes_per_second >= 0 && cost.nanoseconds >= 0);
    if (transport->connect(domain, 1, 0, data, bytes, &link) == HOOP_OK)
        transport->disconnect(link);
    transport->close(domain);
}

#ifdef HOOP_CUDA
static void landing(const uint8_t *data, size_t bytes)
{
    struct hoop_landing_domain domain = {.head = {.transport = &hoop_transport_cuda_ipc, .ranks = 2},
                                         .own = {.ranks = 2, .lanes = 1, .slots = SLOTS, .frame = FRAME}};
    struct hoop_landing_address read;

    if (hoop_landing_read(&domain.head, data, bytes, &read) == HOOP_OK)
        check(read.ranks == 2 && read.slots == SLOTS && memchr(read.giver, 0, sizeof read.giver) != NULL);
}
#endif

/* ---- first ranks of hosts ---- */

static struct {
    const uint8_t *data;
    size_t bytes;
    unsigned char frame[HOOP_FAR_FRAME];
} coming;

static enum hoop_status next_frame(struct hoop_link *link, size_t bytes, uint64_t tag, const void **frame)
{
    const size_t part = coming.bytes < bytes ? coming.bytes : bytes;

    (void)link, (void)tag;
    if (part == 0)
        return HOOP_AGAIN;
    memset(coming.frame, 0, sizeof coming.frame);
    memcpy(coming.frame, coming.data, part);
    *frame = coming.frame;
    coming.data += part;
    coming.bytes -= part;
    return HOOP_OK;
}

static enum hoop_status nothing(struct hoop_link *link)
{
    (void)link;
    return HOOP_OK;
}

static enum hoop_status no_progress(struct hoop_domain *domain)
{
    (void)domain;
    return HOOP_AGAIN;
}

static enum hoop_status take(struct hoop_link *link, const void *data, size_t bytes, uint64_t tag, unsigned flags)
{
    (void)link, (void)data, (void)bytes, (void)tag, (void)flags;
    return HOOP_OK;
}

static void far_host(struct hoop_board *board, const uint8_t *data, size_t bytes)
{
    static const struct hoop_transport way = {
        .size = sizeof way, .progress = no_progress, .send = take, .peek = next_frame, .release = nothing};
    struct hoop_domain domain = {.transport = &way, .rank = OWN, .ranks = 2};
    struct hoop_link link = {.transport = &way, .domain = &domain, .peer = FAR, .frame = HOOP_FAR_FRAME};
    struct hoop_card *own = hoop_board_card(board, OWN), *other = hoop_board_card(board, FAR);
    struct hoop_far *far;
    char text[512];

    check(hoop_far_new(&far, &domain, 2, 1, 1) == HOOP_OK);
    far->links = 1;
    far->link[0].link = &link;
    atomic_store(&board->head->verdict, 0);
    atomic_store(&other->started, UINT64_MAX);
    atomic_store(&other->heard, 0);
    atomic_store(&own->started, 7);
    const struct hoop_call before = own->call[7];
    coming.data = data;
    coming.bytes = bytes;
    hoop_far_tick(far, board);
    check(atomic_load(&own->started) == 7 && memcmp(&before, &own->call[7], sizeof before) == 0);
    const struct hoop_verdict verdict = hoop_verdict_get(board);
    check(verdict.a >= 0 && verdict.a < 2 && verdict.b >= 0 && verdict.b < 2);
    hoop_verdict_text(board, verdict, text, sizeof text);
    check(strlen(text) < sizeof text);
    hoop_call_text(&other->call[3], text, sizeof text);
    hoop_far_free(far);
}

/* What another host's speaker says after a failure: of a rank of this host it has nothing to say. */
static void council(struct hoop_board *board, const uint8_t *data, size_t bytes)
{
    static const struct hoop_council_place place[2] = {{.host = OWN}, {.host = FAR}};
    struct hoop_domain domain = {.rank = OWN, .ranks = 2};
    struct hoop_card *own = hoop_board_card(board, OWN), *other = hoop_board_card(board, FAR);
    unsigned char frame[HOOP_FAR_FRAME] = {0};
    struct hoop_council *heard;

    check(hoop_council_new(&heard, &domain, place) == HOOP_OK);
    memcpy(frame, data, bytes < sizeof frame ? bytes : sizeof frame);
    atomic_store(&board->head->shrink, 0);
    atomic_store(&own->shrinks, 5);
    hoop_council_hear(heard, board, FAR, frame);
    const struct hoop_shrink_word word = hoop_shrink_unpack(atomic_load(&board->head->shrink));
    check(word.view < 2 && word.leader < 2 && word.state <= HOOP_SHRINK_DONE);
    check(atomic_load(&own->shrinks) == 5 && atomic_load(&own->still) == 0 && atomic_load(&own->shrink_word) == 0);
    check(atomic_load(&other->life) <= HOOP_LIFE_DEAD && atomic_load(&other->still) <= 1);
    hoop_council_free(heard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct hoop_board_shape shape = {.ranks = 2, .lanes = 1, .ring = 65536, .flat = 4096, .heap = 4096};
    static struct hoop_board *board;
    static struct hoop_sim *sim;

    if (board == NULL) {
        check(hoop_board_create(&board, &shape, OWN) == HOOP_OK);
        check(hoop_sim_create(&sim, 2, &(struct hoop_sim_config){.gigabytes_per_second = 1}) == HOOP_OK);
    }
    host(data, bytes);
    device(data, bytes);
    far_host(board, data, bytes);
    council(board, data, bytes);
    address(&hoop_transport_shm, board, data, bytes);
    address(&hoop_transport_sim, sim, data, bytes);
#ifdef HOOP_CUDA
    landing(data, bytes);
#endif
    return 0;
}
