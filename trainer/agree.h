// SPDX-License-Identifier: BSD-3-Clause
/* What all ranks must have in common, and how they find out that they have not.
 *
 * Before step 1 every rank writes what it is about to train as lines "key=value"; all lines are exchanged and compared,
 * so that every rank reaches the same verdict and names the first line that differs, with both values. A rank that
 * could not get that far (no data, no memory) says so before, and all leave together. Later the parameters'
 * digests are compared the same way. */
#ifndef TRAINER_AGREE_H
#define TRAINER_AGREE_H

#include <stddef.h>
#include <stdint.h>

#include "hoop.h"
#include "model.h"

enum { AGREE_TEXT = 4096 };

struct agree {
    char text[AGREE_TEXT]; /* lines, each ended by a newline */
    size_t length;
};

/* Append "key=value\n". Lines that do not fit are folded into a digest in the last line. */
void agree_line(struct agree *agree, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Exchange and compare. code: 0, or the exit code of what already failed on this rank.
 * Returns 0 on all ranks, or an error on all ranks. Blocking as a collective. */
int agree_exchange(const struct agree *agree, int code, struct hoop_comm *comm);

/* Compare n texts of AGREE_TEXT bytes; 0 or a shared TRAIN_DISAGREE. The inner part of agree_exchange(), for tests. */
int agree_compare(const char *texts, int ranks);

/* Compare the parameters of all ranks tensor by tensor. *parameters receives the digest of all. Collective. */
int agree_digests(const struct model *model, struct hoop_comm *comm, uint64_t *parameters);

#endif
