// SPDX-License-Identifier: BSD-3-Clause
/* See signals.h. */
#include "signals.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t pending;

static void note(int number)
{
    pending = number;
}

void signals_catch(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)(SA_RESETHAND | (unsigned)SA_RESTART)};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int signals_pending(void)
{
    return pending;
}
