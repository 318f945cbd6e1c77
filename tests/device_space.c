// SPDX-License-Identifier: BSD-3-Clause
#include "device_space.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool space_goes(const struct hoop_comm *comm, const char *way)
{
    char *text = malloc(HOOP_EXPLAIN_TEXT), words[40];

    if (!cuda_is_fake()) { /* what there is decides */
        free(text);
        return true;
    }
    snprintf(words, sizeof words, "\"way\":\"%s\"", way);
    const bool good = hoop_explain(comm, "all_reduce", 4096, 1, text, HOOP_EXPLAIN_TEXT) == HOOP_OK &&
                      (strstr(text, words) || hoop_comm_size(comm) == 1);
    if (!good)
        fprintf(stderr, "calls should go by %s: %s\n", way, text);
    free(text);
    return good;
}

void space_open(struct rank_space *space, struct hoop_comm *comm)
{
    int ordinal = -1;

    ck_assert_int_eq(hoop_comm_device(comm, &ordinal), HOOP_OK);
    cuda_open(&space->cuda, ordinal, STREAMS);
    space->host = cuda_host(&space->cuda, SPACE);
    space->device = cuda_device(&space->cuda, SPACE);
}

void space_close(struct rank_space *space)
{
    cuda_close(&space->cuda);
}

static enum hoop_status call(const struct hoop_case *c, enum way way, const void *in, void *out, struct hoop_comm *comm,
                             hoop_stream *stream)
{
    struct hoop_handle *handle = NULL;
    enum hoop_status status;

    if (way == AS_HANDLE) {
        status = case_init(c, in, out, comm, stream, &handle);
        if (status == HOOP_OK)
            status = hoop_start(handle);
        hoop_handle_free(handle);
        return status;
    }
    if (way == IN_GROUP)
        hoop_group_start();
    status = case_call(c, in, out, comm, stream);
    return way == IN_GROUP && status == HOOP_OK ? hoop_group_end() : status;
}

enum hoop_status space_run(const struct hoop_case *c, enum way way, struct rank_space *space, int rank,
                           struct hoop_comm *comm, char *text, size_t size)
{
    const size_t in_bytes = case_in_bytes(c), out_bytes = case_out_bytes(c), all = in_bytes + out_bytes + 128;
    const bool in_place = c->in_place && (!case_rooted(c) || rank == c->root);
    const size_t in = 32 + (in_place ? case_in_offset(c, rank) : 0),
                 out = 32 + (in_place ? case_out_offset(c, rank) : in_bytes + 32);
    hoop_cu_stream stream = way == AT_ONCE ? NULL : space->cuda.stream[c->turn % STREAMS];

    ck_assert_uint_le(all, SPACE);
    memset(space->host, 0xa5, all);
    if (case_gives(c, rank))
        case_fill(c, rank, space->host + in);
    cuda_copy(&space->cuda, space->device, space->host, all, stream);
    if (stream)
        cuda_wait_late(&space->cuda, space->host, all, stream); /* the host's copy is rubbish from here on */
    enum hoop_status status =
        call(c, way, space->device + in, space->device + out, comm, (hoop_stream *)(void *)stream);
    cuda_copy(&space->cuda, space->host, space->device, all, stream);
    cuda_synchronize(&space->cuda, stream);
    if (status == HOOP_OK)
        status = hoop_comm_async_error(comm);
    if (status != HOOP_OK) {
        char words[160];
        case_text(c, words, sizeof words);
        snprintf(text, size, "%s: %s", words, hoop_last_error(comm));
        return status;
    }
    for (size_t i = 0; i < 32; i++)
        if (space->host[i] != 0xa5 || space->host[all - 1 - i] != 0xa5) {
            snprintf(text, size, "bytes around the buffers were written");
            return HOOP_ERR_INTERNAL;
        }
    return !case_gets(c, rank) || case_check(c, rank, space->host + out, text, size) ? HOOP_OK : HOOP_ERR_INTERNAL;
}

bool space_tells(const struct hoop_comm *comm, const char *reason)
{
    char *text = malloc(HOOP_EXPLAIN_TEXT);
    const bool good = hoop_explain(comm, "all_reduce", 4096, 0, text, HOOP_EXPLAIN_TEXT) == HOOP_OK &&
                      strstr(text, "calls on its memory: ") && strstr(text, reason);

    if (!good)
        fprintf(stderr, "should tell \"%s\": %s\n", reason, text);
    free(text);
    return good;
}
