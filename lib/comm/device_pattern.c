// SPDX-License-Identifier: BSD-3-Clause
/* A pattern that is different for every pair and direction, written into the first frame of a link by the copies of the device that will
 * send there, read back by the same way, and read where it arrived by the peer. */
#include "comm/device_pattern.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "hoop/transport.h"

enum { PATTERN = 4096, PATTERN_SECONDS = 20 };

enum hoop_status hoop_pattern_new(struct hoop_pattern *pattern, struct hoop_comm *comm)
{
    *pattern = (struct hoop_pattern){.comm = comm, .made = hoop_calloc(2, PATTERN)};
    if (pattern->made == NULL)
        return HOOP_ERR_MEMORY;
    pattern->seen = pattern->made + PATTERN;
    return hoop_cuda_alloc(comm->device->cuda, PATTERN, &pattern->scratch);
}

void hoop_pattern_free(struct hoop_pattern *pattern)
{
    if (pattern->scratch)
        hoop_cuda_free(pattern->comm->device->cuda, pattern->scratch);
    hoop_free(pattern->made);
}

static void make(unsigned char *pattern, int from, int to)
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

static enum hoop_status read_back(const struct hoop_pattern *pattern, uint64_t address, int from, int to,
                                  const char *how)
{
    void *scratch = (void *)(uintptr_t)pattern->scratch;

    memset(pattern->seen, 0, PATTERN);
    make(pattern->made, from, to);
    enum hoop_status status = copy(pattern->comm, scratch, pattern->seen, PATTERN);
    if (status == HOOP_OK)
        status = copy(pattern->comm, scratch, (const void *)(uintptr_t)address, PATTERN);
    if (status == HOOP_OK)
        status = copy(pattern->comm, pattern->seen, scratch, PATTERN);
    if (status == HOOP_OK && memcmp(pattern->seen, pattern->made, PATTERN) != 0)
        return hoop_fail(HOOP_ERR_UNSUPPORTED, "a pattern that rank %d wrote for rank %d is corrupt %s", from, to, how);
    return status;
}

enum hoop_status hoop_pattern_write(const struct hoop_pattern *pattern, int peer)
{
    const struct hoop_comm *comm = pattern->comm;
    struct hoop_link *link = comm->device->links[peer * hoop_device_lanes(comm)];
    struct hoop_device_link ends;

    enum hoop_status status = link->transport->device(link, &ends);
    make(pattern->made, comm->rank, peer);
    if (status == HOOP_OK)
        status = copy(comm, (void *)(uintptr_t)pattern->scratch, pattern->made, PATTERN);
    if (status == HOOP_OK)
        status = copy(comm, (void *)(uintptr_t)ends.out_frames, (const void *)(uintptr_t)pattern->scratch, PATTERN);
    return status == HOOP_OK ? read_back(pattern, ends.out_frames, comm->rank, peer, "when read back") : status;
}

enum hoop_status hoop_pattern_hear(const struct hoop_pattern *pattern, int peer)
{
    const struct hoop_comm *comm = pattern->comm;
    const struct hoop_cuda *cuda = comm->device->cuda;
    struct hoop_link *link = comm->device->links[peer * hoop_device_lanes(comm)];
    struct hoop_device_link ends;

    enum hoop_status status = link->transport->device(link, &ends);
    if (status == HOOP_OK)
        status = read_back(pattern, ends.in_frames, peer, comm->rank, "where it arrived");
    if (status == HOOP_OK)
        status = hoop_cuda_fill(cuda, ends.in_frames, 0, PATTERN, comm->device->stream);
    return status == HOOP_OK ? hoop_cuda_stream_wait(cuda, comm->device->stream, hoop_deadline(PATTERN_SECONDS))
                             : status;
}
