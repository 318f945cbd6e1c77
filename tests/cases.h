// SPDX-License-Identifier: BSD-3-Clause
/* Collectives with known results: what each rank puts in and must get out, computed the plainest way.
 * Inputs are small integers, so that every order of combining gives the same exact result in every type. */
#ifndef HOOP_TESTS_CASES_H
#define HOOP_TESTS_CASES_H

#include <stdbool.h>
#include <stddef.h>

#include "hoop/plan.h"

struct hoop_case {
    enum hoop_coll coll;
    enum hoop_type type;
    enum hoop_op op;
    int ranks, root;
    size_t count;
    bool in_place;
    unsigned turn; /* other inputs for the same call */
};

/* Does the collective have a root? */
bool case_rooted(const struct hoop_case *c);

/* Bytes of a rank's send and receive buffers; in place the larger one holds both. */
size_t case_in_bytes(const struct hoop_case *c);
size_t case_out_bytes(const struct hoop_case *c);

/* Where in the buffer of an in-place case the send and the receive part begin. */
size_t case_in_offset(const struct hoop_case *c, int rank);
size_t case_out_offset(const struct hoop_case *c, int rank);

/* Does this rank put data in; does it get data out? */
bool case_gives(const struct hoop_case *c, int rank);
bool case_gets(const struct hoop_case *c, int rank);

/* Write the rank's input. */
void case_fill(const struct hoop_case *c, int rank, void *in);

/* Compare the rank's output with what it must be. False: text tells the first difference and the case. */
bool case_check(const struct hoop_case *c, int rank, const void *out, char *text, size_t size);

/* The case in words. */
void case_text(const struct hoop_case *c, char *text, size_t size);

/* Make the call on this rank; buffers as above. */
enum hoop_status case_call(const struct hoop_case *c, const void *in, void *out, struct hoop_comm *comm,
                           hoop_stream *stream);

/* The same call as a persistent handle. */
enum hoop_status case_init(const struct hoop_case *c, const void *in, void *out, struct hoop_comm *comm,
                           hoop_stream *stream, struct hoop_handle **handle);

#endif
