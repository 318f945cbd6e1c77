// SPDX-License-Identifier: BSD-3-Clause
/* Status texts and the thread's error record. */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char record[HOOP_ERROR_TEXT];

enum hoop_status hoop_fail(enum hoop_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(record, sizeof record, format, arguments);
    va_end(arguments);
    return status;
}

enum hoop_status hoop_fail_errno(enum hoop_status status, const char *format, ...)
{
    const int error = errno;
    char reason[128];
    va_list arguments;

    va_start(arguments, format);
    int used = vsnprintf(record, sizeof record, format, arguments);
    va_end(arguments);
    const char *text = strerror_r(error, reason, sizeof reason); /* GNU's form: the text may be elsewhere */
    if (used >= 0 && (size_t)used < sizeof record)
        snprintf(record + used, sizeof record - (size_t)used, ": %s", text);
    return status;
}

const char *hoop_error_text(void)
{
    return record;
}

const char *hoop_strerror(enum hoop_status status)
{
    switch (status) {
    case HOOP_OK:
        return "success";
    case HOOP_AGAIN:
        return "nothing happened yet; call again";
    case HOOP_ERR_ARG:
        return "an argument is wrong";
    case HOOP_ERR_MISMATCH:
        return "ranks made different calls";
    case HOOP_ERR_PEER:
        return "another rank died or left";
    case HOOP_ERR_TIMEOUT:
        return "a deadline passed";
    case HOOP_ERR_ABORTED:
        return "the communicator was aborted";
    case HOOP_ERR_MEMORY:
        return "no memory, or a limit of the machine was reached";
    case HOOP_ERR_SYSTEM:
        return "a system call failed";
    case HOOP_ERR_SETUP:
        return "the launcher's environment or the rendezvous is wrong";
    case HOOP_ERR_UNSUPPORTED:
        return "not supported by this build or machine";
    case HOOP_ERR_INTERNAL:
        return "a bug in hoop";
    }
    return "unknown status";
}

int hoop_version(void)
{
    return HOOP_VERSION_MAJOR * 10000 + HOOP_VERSION_MINOR * 100 + HOOP_VERSION_PATCH;
}
