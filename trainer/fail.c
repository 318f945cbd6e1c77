// SPDX-License-Identifier: BSD-3-Clause
/* See fail.h. One training thread a process writes here, so a plain static record is enough. */
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct {
    char text[2048];
    bool local, told;
} record;

static void keep(bool local, const char *format, va_list values)
{
    if (record.text[0])
        return;
    vsnprintf(record.text, sizeof record.text, format, values);
    record.local = local;
}

int train_fail(enum train_exit code, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    keep(true, format, values);
    va_end(values);
    return (int)code;
}

int train_fail_shared(enum train_exit code, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    keep(false, format, values);
    va_end(values);
    return (int)code;
}

static enum train_exit code_of(enum hoop_status status)
{
    switch (status) {
    case HOOP_ERR_PEER:
    case HOOP_ERR_TIMEOUT:
    case HOOP_ERR_ABORTED:
        return TRAIN_PEER;
    case HOOP_ERR_MISMATCH:
        return TRAIN_DISAGREE;
    case HOOP_ERR_SETUP:
        return TRAIN_USAGE;
    default:
        return TRAIN_RESOURCE;
    }
}

/* The library's text without the rank it may begin with: main says that already. */
static const char *without_rank(const char *text, const struct hoop_comm *comm)
{
    char own[32];
    const int length = snprintf(own, sizeof own, "rank %d: ", hoop_comm_rank(comm));

    return strncmp(text, own, (size_t)length) == 0 ? text + length : text;
}

int train_fail_call(enum hoop_status status, const struct hoop_comm *comm, const char *doing)
{
    const char *cause = hoop_last_error(comm);

    if (!cause[0])
        cause = hoop_last_error(NULL);
    return train_fail(code_of(status), "%s: %s", doing, cause[0] ? without_rank(cause, comm) : hoop_strerror(status));
}

const char *train_fail_text(void)
{
    return record.text;
}

void train_fail_told(void)
{
    record.told = true;
}

bool train_fail_is_untold(void)
{
    return record.text[0] && record.local && !record.told;
}

bool train_fail_is_mine(int rank)
{
    return record.text[0] && (record.local || rank == 0);
}

void train_fail_clear(void)
{
    record.text[0] = '\0';
    record.told = false;
}
