// SPDX-License-Identifier: BSD-3-Clause
/* One write per line, so that lines of several ranks on one terminal do not mix. */
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static atomic_int threshold = HOOP_LOG_WARN;

void hoop_log_level_set(enum hoop_log_level level)
{
    atomic_store(&threshold, (int)level);
}

/* Nobody may read any more: then the line is lost, and the signal that would end the program with it. */
static void write_line(const char *line, size_t bytes)
{
    const struct timespec now = {0};
    sigset_t pipe, old, pending;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &old);
    if (write(STDERR_FILENO, line, bytes) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&pipe, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
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
    write_line(line, (size_t)used);
}
