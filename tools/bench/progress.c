// SPDX-License-Identifier: BSD-3-Clause
/* One line on a terminal that says what is being measured. It ends in a carriage return, so that whatever is printed
 * next takes its place, also through hooprun. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    bool on, dirty;
    int rows, done;
    double next; /* do not show more often */
    const struct row *row;
} progress;

void progress_open(int rank, int rows)
{
    const char *terminal = getenv("HOOPRUN_TERMINAL");

    progress.on = rank == 0 && (isatty(STDERR_FILENO) || (terminal != NULL && strcmp(terminal, "1") == 0));
    progress.rows = rows;
    progress.done = -1;
}

void progress_row(const struct row *row)
{
    progress.row = row;
    progress.done++;
}

void progress_part(const char *what, double part)
{
    double now;

    if (!progress.on || progress.row == NULL || (now = clock_seconds()) < progress.next)
        return;
    progress.next = now + 0.1;
    fprintf(stderr, "\033[K%s %s: row %d of %d, %zu bytes: %s %.0f %%\r", progress.row->problem.collective->name,
            data_type_name(progress.row->problem.type), progress.done + 1, progress.rows, progress.row->bytes, what,
            part * 100);
    fflush(stderr);
    progress.dirty = true;
}

void progress_clear(void)
{
    if (progress.dirty)
        fputs("\033[K", stderr);
    progress.dirty = false;
}
