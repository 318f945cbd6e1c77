// SPDX-License-Identifier: BSD-3-Clause
/* Can kernels of all ranks work together?
 *
 * They can if every rank has a device of its own with device code, and every pair of ranks a path between the devices' memories that
 * has carried a pattern both ways and back. Some machines say that they have peer access and lose or corrupt what goes
 * over it (an IOMMU or a bridge in between), so saying is not believed. Each step ends with all ranks telling all whether they are content; so
 * all come to the same answer, with the same reason: that of the lowest rank that is not. Otherwise calls are staged.
 */
#include "comm/device_links.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/device.h"
#include "comm/device_meet.h"
#include "comm/kernel.h"
#include "transports/transports.h"

enum { PATHS = 2, WHY = 200, PATTERN = 4096, PATTERN_SECONDS = 20 };

static const struct hoop_transport *const path[PATHS] = {&hoop_transport_pci_p2p, &hoop_transport_cuda_ipc};

/* What a rank tells after each step. */
struct fact {
    uint32_t content; /* 1: yes */
    uint32_t address_size[PATHS];
    char why[WHY];
    unsigned char address[PATHS][HOOP_ADDRESS_MAX];
};

struct survey {
    struct hoop_comm *comm;
    struct fact *fact; /* of each rank */
    unsigned char *pattern, *seen;
    hoop_cu_address
        scratch; /* on this rank's device: what goes from there to a peer's takes the path between the two */
    bool content;
};

static struct fact *own(const struct survey *survey)
{
    return &survey->fact[survey->comm->rank];
}

/* This rank is not content: the thread's last error says why. */
static void object(const struct survey *survey, const char *about)
{
    struct fact *fact = own(survey);

    if (!fact->content)
        return;
    fact->content = 0;
    snprintf(fact->why, sizeof fact->why, "%s%s", about, hoop_error_text());
    for (char *c = fact->why; *c; c++) /* goes into JSON */
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            *c = '\'';
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
                                          .count = sizeof *survey->fact,
                                          .in = own(survey),
                                          .out = survey->fact};

    const enum hoop_status status = comm->ranks > 1 ? hoop_comm_run_part(&gather) : HOOP_OK;
    if (status != HOOP_OK)
        return hoop_comm_conclude(comm, status);
    survey->content = true;
    for (int rank = comm->ranks - 1; rank >= 0; rank--) {
        struct fact *fact = &survey->fact[rank];
        fact->why[WHY - 1] = 0;
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
            if (hoop_device_same(&comm->devices[a], &comm->devices[b]))
                return hoop_fail(HOOP_ERR_UNSUPPORTED, "ranks %d and %d share the GPU %s", a, b, comm->devices[a].bus);
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

/* All paths are good: kernels from now on. */
static enum hoop_status begin(struct survey *survey)
{
    if (hoop_kernels_start(survey->comm) != HOOP_OK)
        object(survey, "");
    return tell(survey);
}

static void open_paths(struct survey *survey)
{
    struct hoop_comm *comm = survey->comm;
    const struct hoop_domain_setup setup = {.rank = comm->rank,
                                            .ranks = comm->ranks,
                                            .lanes = comm->lanes - 1,
                                            .frame = comm->choice.frame,
                                            .slots = comm->slots,
                                            .context = comm->device->cuda};

    comm->device->links = hoop_calloc((size_t)comm->ranks * (size_t)(comm->lanes - 1), sizeof(struct hoop_link *));
    if (comm->device->links == NULL)
        object(survey, "");
    if (hoop_cuda_alloc(comm->device->cuda, PATTERN, &survey->scratch) != HOOP_OK)
        object(survey, "");
    for (int i = 0; i < PATHS && own(survey)->content; i++) {
        size_t size = 0;
        enum hoop_status status = path[i]->open(&setup, &comm->device->domain[i]);
        if (status == HOOP_OK)
            status = path[i]->address(comm->device->domain[i], own(survey)->address[i], &size);
        if (status != HOOP_OK)
            object(survey, "");
        own(survey)->address_size[i] = (uint32_t)size;
    }
}

/* ---- paths ---- */

/* The first path that reaches the peer; NULL: none does. */
static struct hoop_domain *path_to(const struct survey *survey, int peer, int *which)
{
    for (int i = 0; i < PATHS; i++) {
        struct hoop_domain *domain = survey->comm->device->domain[i];
        struct hoop_transport_cost cost = {.reachable = false};
        const uint32_t size = survey->fact[peer].address_size[i];
        *which = i;
        if (size <= HOOP_ADDRESS_MAX && path[i]->cost(domain, survey->fact[peer].address[i], size, &cost) == HOOP_OK &&
            cost.reachable)
            return domain;
    }
    return NULL;
}

static enum hoop_status connect_peer(const struct survey *survey, int peer)
{
    struct hoop_comm_device *device = survey->comm->device;
    const int lanes = survey->comm->lanes - 1;
    enum hoop_status status = HOOP_OK;
    int which;
    struct hoop_domain *domain = path_to(survey, peer, &which);

    if (domain == NULL)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "no path between the memories of the two devices");
    for (int lane = 0; lane < lanes && status == HOOP_OK; lane++)
        status = path[which]->connect(domain, peer, lane, survey->fact[peer].address[which],
                                      survey->fact[peer].address_size[which], &device->links[peer * lanes + lane]);
    return status;
}

/* ---- patterns ---- */

static void make_pattern(unsigned char *pattern, int from, int to)
{
    uint64_t state = (uint64_t)from << 32 | (uint64_t)to << 1 | 1;

    for (int i = 0; i < PATTERN; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        pattern[i] = (unsigned char)(state >> 56);
    }
}

static enum hoop_status copy(const struct hoop_comm *comm, void *to, const void *from, size_t bytes)
{
    const struct hoop_comm_device *device = comm->device;

    const enum hoop_status status = hoop_cuda_copy(device->cuda, to, from, bytes, device->stream);
    return status == HOOP_OK ? hoop_cuda_stream_wait(device->cuda, device->stream, hoop_deadline(PATTERN_SECONDS))
                             : status;
}

static enum hoop_status read_pattern(const struct survey *survey, uint64_t address, int from, int to, const char *how)
{
    void *scratch = (void *)(uintptr_t)survey->scratch;

    memset(survey->seen, 0, PATTERN);
    make_pattern(survey->pattern, from, to);
    enum hoop_status status = copy(survey->comm, scratch, survey->seen, PATTERN);
    if (status == HOOP_OK)
        status = copy(survey->comm, scratch, (const void *)(uintptr_t)address, PATTERN);
    if (status == HOOP_OK)
        status = copy(survey->comm, survey->seen, scratch, PATTERN);
    if (status == HOOP_OK && memcmp(survey->seen, survey->pattern, PATTERN) != 0)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "a pattern that rank %d wrote for rank %d is corrupt %s", from, to, how);
    return status;
}

/* Write to every peer and read it back. */
static enum hoop_status write_pattern(const struct survey *survey, int peer)
{
    const struct hoop_comm *comm = survey->comm;
    struct hoop_link *link = comm->device->links[peer * (comm->lanes - 1)];
    struct hoop_device_link ends;

    enum hoop_status status = link->transport->device(link, &ends);
    make_pattern(survey->pattern, comm->rank, peer);
    if (status == HOOP_OK)
        status = copy(comm, (void *)(uintptr_t)survey->scratch, survey->pattern, PATTERN);
    if (status == HOOP_OK)
        status = copy(comm, (void *)(uintptr_t)ends.out_frames, (const void *)(uintptr_t)survey->scratch, PATTERN);
    return status == HOOP_OK ? read_pattern(survey, ends.out_frames, comm->rank, peer, "when read back") : status;
}

/* What the peer wrote, and then zeros again, as links begin. */
static enum hoop_status hear_pattern(const struct survey *survey, int peer)
{
    const struct hoop_comm *comm = survey->comm;
    const struct hoop_cuda *cuda = comm->device->cuda;
    struct hoop_link *link = comm->device->links[peer * (comm->lanes - 1)];
    struct hoop_device_link ends;

    enum hoop_status status = link->transport->device(link, &ends);
    if (status == HOOP_OK)
        status = read_pattern(survey, ends.in_frames, peer, comm->rank, "where it arrived");
    if (status == HOOP_OK)
        status = hoop_cuda_fill(cuda, ends.in_frames, 0, PATTERN, comm->device->stream);
    return status == HOOP_OK ? hoop_cuda_stream_wait(cuda, comm->device->stream, hoop_deadline(PATTERN_SECONDS))
                             : status;
}

/* One step with every peer, then tell all. */
static enum hoop_status with_each(struct survey *survey, enum hoop_status (*step)(const struct survey *, int))
{
    const struct hoop_comm *comm = survey->comm;
    char about[64];

    for (int i = 1; i < comm->ranks && own(survey)->content; i++) {
        const int peer = (comm->rank + i) % comm->ranks;
        snprintf(about, sizeof about, "to rank %d: ", peer);
        if (step(survey, peer) != HOOP_OK)
            object(survey, about);
    }
    return tell(survey);
}

/* ---- all of it ---- */

static enum hoop_status try_links(struct survey *survey)
{
    enum hoop_status status;

    if (own(survey)->content)
        open_paths(survey);
    status = tell(survey);
    if (status == HOOP_OK && survey->content)
        status = with_each(survey, connect_peer);
    if (status == HOOP_OK && survey->content)
        status = with_each(survey, write_pattern);
    if (status == HOOP_OK && survey->content)
        status = with_each(survey, hear_pattern);
    if (status == HOOP_OK && survey->content)
        status = begin(survey);
    return status;
}

/* All drop their links before anyone frees what they lead to. */
static enum hoop_status give_up(struct survey *survey)
{
    struct hoop_comm *comm = survey->comm;

    hoop_device_links_drop(comm);
    if (comm->device) {
        hoop_kernels_free(comm->device->kernels);
        comm->device->kernels = NULL;
    }
    const enum hoop_status status = tell(survey);
    if (status == HOOP_OK && comm->device)
        hoop_device_links_free(comm);
    return status;
}

static bool any_device(const struct hoop_comm *comm)
{
    bool any = comm->device != NULL;

    for (int rank = 0; rank < comm->ranks && comm->devices; rank++)
        any |= comm->devices[rank].present;
    return any;
}

enum hoop_status hoop_device_agree(struct hoop_comm *comm)
{
    struct survey survey = {.comm = comm, .fact = NULL};

    if (!any_device(comm))
        return HOOP_OK;
    survey.fact = hoop_calloc((size_t)comm->ranks, sizeof *survey.fact);
    survey.pattern = hoop_calloc(2, PATTERN);
    if (survey.fact == NULL || survey.pattern == NULL) {
        hoop_free(survey.fact);
        hoop_free(survey.pattern);
        return hoop_comm_conclude(comm, HOOP_ERR_MEMORY);
    }
    survey.seen = survey.pattern + PATTERN;
    own(&survey)->content = 1;
    if (check_devices(comm) != HOOP_OK || check_code(&survey) != HOOP_OK)
        object(&survey, "");
    enum hoop_status status = try_links(&survey);
    if (status == HOOP_OK && !survey.content)
        status = give_up(&survey);
    if (survey.scratch)
        hoop_cuda_free(comm->device->cuda, survey.scratch);
    hoop_free(survey.fact);
    hoop_free(survey.pattern);
    return status;
}

void hoop_device_links_drop(struct hoop_comm *comm)
{
    struct hoop_comm_device *device = comm->device;

    if (device == NULL)
        return;
    hoop_kernels_drain(device->kernels);
    for (int i = 0; device->links && i < comm->ranks * (comm->lanes - 1); i++)
        if (device->links[i])
            device->links[i]->transport->disconnect(device->links[i]);
    hoop_free(device->links);
    device->links = NULL;
}

void hoop_device_links_free(struct hoop_comm *comm)
{
    struct hoop_comm_device *device = comm->device;

    hoop_device_links_drop(comm);
    for (int i = 0; i < PATHS && comm->error == HOOP_OK; i++)
        if (device->domain[i]) {
            device->domain[i]->transport->close(device->domain[i]);
            device->domain[i] = NULL;
        }
}
