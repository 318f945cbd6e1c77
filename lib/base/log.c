// SPDX-License-Identifier: BSD-3-Clause
/* One write per line, so that lines of several ranks on one terminal do not mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int threshold = HOOP_LOG_WARN;

void hoop_log_level_set(enum hoop_log_level level)
{
    atomic_store(&threshold, (int)level);
}

void hoop_log(enum hoop_log_level level, int rank, const char *format, ...)
{
    char line[1400];
    int used = 0;
    va_list arguments;

    if ((int)level > atomic_load_explicit(&threshold, memory_order_relaxed))
        return;
    used = rank < 0 ? snprintf(line, sizeof line, "hoop: ") : snprintf(line, sizeof line, "hoop: rank %d: ", rank);
    va_start(arguments, format);
    used += vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    if (used > (int)sizeof line - 2)
        used = (int)sizeof line - 2;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)used) < 0)
        return; /* nobody reads: a log line may be lost, the work goes on */
}
