// SPDX-License-Identifier: BSD-3-Clause
/* Only in a build with --enable-faults. */
#include "base/fault.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static atomic_uint_fast64_t visits[HOOP_FAULTS_COUNT];
static enum hoop_fault set_point = HOOP_FAULTS_COUNT;
static uint64_t set_visit;
static enum hoop_fault_deed set_deed;

bool hoop_fault_visit(enum hoop_fault point)
{
    const struct timespec pause = {.tv_nsec = HOOP_FAULT_DAWDLE_MS * 1000000L};

    if (atomic_fetch_add(&visits[point], 1) + 1 != set_visit || point != set_point)
        return false;
    switch (set_deed) {
    case HOOP_FAULT_KILL:
        kill(getpid(), SIGKILL);
        break;
    case HOOP_FAULT_DAWDLE:
        nanosleep(&pause, NULL);
        break;
    case HOOP_FAULT_BREAK:
        return true;
    case HOOP_FAULT_DEEDS:
        break;
    }
    return false;
}

void hoop_fault_cut(enum hoop_fault point, int sock)
{
    if (hoop_fault_visit(point))
        shutdown(sock, SHUT_RDWR);
}

void hoop_fault_set(enum hoop_fault point, uint64_t visit, enum hoop_fault_deed deed)
{
    for (int i = 0; i < HOOP_FAULTS_COUNT; i++)
        atomic_store(&visits[i], 0);
    set_point = point;
    set_visit = visit;
    set_deed = deed;
}

uint64_t hoop_fault_visits(enum hoop_fault point)
{
    return atomic_load(&visits[point]);
}
