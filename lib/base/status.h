// SPDX-License-Identifier: BSD-3-Clause
/* Error records. The first function that knows an error writes it with hoop_fail; the others pass the status on.
 * The text belongs to the calling thread until its next error. */
#ifndef HOOP_BASE_STATUS_H
#define HOOP_BASE_STATUS_H

#include "hoop.h"

enum { HOOP_ERROR_TEXT = 1024 }; /* bytes of an error text, with its final NUL */

/* Record an error of this thread; returns status. Use: return hoop_fail(HOOP_ERR_ARG, "root %d is not …", root); */
enum hoop_status hoop_fail(enum hoop_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* As hoop_fail, with ": <text of errno>" appended. */
enum hoop_status hoop_fail_errno(enum hoop_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* The thread's last error text, "" if none. */
const char *hoop_error_text(void);

#endif
