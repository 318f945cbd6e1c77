// SPDX-License-Identifier: BSD-3-Clause
/* See agree.h. */
#include "agree.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "random.h"

enum { TAIL = 32 }; /* bytes kept for the last line: "rest=" and 16 digits */

void agree_line(struct agree *agree, const char *key, const char *format, ...)
{
    char line[512];
    va_list values;
    int length = snprintf(line, sizeof line, "%s=", key);

    va_start(values, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length, format, values);
    va_end(values);
    if ((size_t)length > sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    if (agree->length + (size_t)length + TAIL < AGREE_TEXT) {
        memcpy(agree->text + agree->length, line, (size_t)length);
        agree->length += (size_t)length;
        return;
    }
    char *tail = agree->text + agree->length;
    const uint64_t folded = digest(line, (size_t)length, strtoull(*tail ? tail + 5 : "0", NULL, 16));
    snprintf(tail, TAIL, "rest=%016" PRIx64 "\n", folded);
}

/* Length of the line at `at`, without its newline; 0 at the end. */
static int line_length(const char *at)
{
    return (int)strcspn(at, "\n");
}

static const char *next_line(const char *at)
{
    at += line_length(at);
    return *at ? at + 1 : at;
}

/* The first line of rank's text that differs from rank 0's. */
static int report_difference(const char *zero, const char *other, int rank)
{
    while (*zero && *other && line_length(zero) == line_length(other) &&
           !memcmp(zero, other, (size_t)line_length(zero))) {
        zero = next_line(zero);
        other = next_line(other);
    }
    return train_fail_shared(TRAIN_DISAGREE,
                             "ranks are not about to train the same: rank 0 has \"%.*s\", rank %d has \"%.*s\". "
                             "Start all ranks with the same program, options and data.",
                             line_length(zero), zero, rank, line_length(other), other);
}

int agree_compare(const char *texts, int ranks)
{
    for (int rank = 1; rank < ranks; rank++) {
        const char *other = texts + (size_t)rank * AGREE_TEXT;

        if (strncmp(texts, other, AGREE_TEXT) != 0)
            return report_difference(texts, other, rank);
    }
    return TRAIN_OK;
}

/* Exchange "how far did you get" first: a rank that failed has no lines worth comparing. */
static int exchange_codes(int code, struct hoop_comm *comm)
{
    const int ranks = hoop_comm_size(comm);
    const int32_t mine = code;
    int32_t *all = calloc((size_t)ranks, sizeof *all);

    if (!all)
        return train_fail(TRAIN_RESOURCE, "no memory for the codes of %d ranks", ranks);
    const enum hoop_status status = hoop_all_gather(&mine, all, 1, HOOP_I32, comm, NULL);
    int worst = 0;

    for (int rank = 0; status == HOOP_OK && rank < ranks; rank++)
        if (all[rank] > all[worst])
            worst = rank;
    const int verdict = all[worst];
    free(all);
    if (status != HOOP_OK)
        return train_fail_call(status, comm, "first exchange");
    if (verdict == TRAIN_OK)
        return TRAIN_OK;
    train_fail_told();
    if (code == TRAIN_OK)
        train_fail_shared((enum train_exit)verdict, "rank %d could not begin; its own message says why", worst);
    return verdict;
}

int agree_exchange(const struct agree *agree, int code, struct hoop_comm *comm)
{
    const int ranks = hoop_comm_size(comm);
    int verdict = exchange_codes(code, comm);

    if (verdict != TRAIN_OK)
        return verdict;
    char *texts = malloc((size_t)ranks * AGREE_TEXT);
    if (!texts)
        return train_fail(TRAIN_RESOURCE, "no memory for the settings of %d ranks", ranks);
    const enum hoop_status status = hoop_all_gather(agree->text, texts, AGREE_TEXT, HOOP_U8, comm, NULL);

    verdict = status == HOOP_OK ? agree_compare(texts, ranks)
                                : train_fail_call(status, comm, "comparison of the ranks' settings");
    free(texts);
    return verdict;
}

/* The first tensor whose digest differs from rank 0's on some rank. */
static int compare_digests(const struct model *model, const uint64_t *all, int ranks)
{
    for (int rank = 1; rank < ranks; rank++)
        for (int i = 0; i < model->tensors; i++) {
            const uint64_t zero = all[i], other = all[rank * model->tensors + i];

            if (zero != other)
                return train_fail_shared(TRAIN_DISAGREE,
                                         "the parameters differ between ranks: digest of %s is %016" PRIx64
                                         " on rank 0 and %016" PRIx64 " on rank %d",
                                         model->tensor[i].name, zero, other, rank);
        }
    return TRAIN_OK;
}

int agree_digests(const struct model *model, struct hoop_comm *comm, uint64_t *parameters)
{
    const int ranks = hoop_comm_size(comm);
    uint64_t mine[MODEL_TENSORS], *all = calloc((size_t)(ranks * model->tensors), sizeof *all);

    if (!all)
        return train_fail(TRAIN_RESOURCE, "no memory for the digests of %d ranks", ranks);
    for (int i = 0; i < model->tensors; i++)
        mine[i] = digest(model->tensor[i].value, model->tensor[i].count * sizeof(float), 0);
    *parameters = digest(mine, (size_t)model->tensors * sizeof *mine, 0);
    const enum hoop_status status = hoop_all_gather(mine, all, (size_t)model->tensors, HOOP_I64, comm, NULL);
    const int code = status == HOOP_OK ? compare_digests(model, all, ranks)
                                       : train_fail_call(status, comm, "comparison of parameters");

    free(all);
    return code;
}
