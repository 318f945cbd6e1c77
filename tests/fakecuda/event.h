// SPDX-License-Identifier: BSD-3-Clause
#ifndef HOOP_FAKECUDA_EVENT_H
#define HOOP_FAKECUDA_EVENT_H

#include "tests/fakecuda/queue.h"

/* What processes share of an event: how often it was recorded, and up to which record it was reached. */
struct fake_event_page {
    _Atomic uint64_t recorded, reached;
};

struct fake_event {
    struct fake_context *context;
    unsigned flags;
    struct fake_fence *fence; /* the last record; NULL: none. Not used by events between processes. */
    int file;
    struct fake_event_page *page;
    struct fake_event *next;
};

/* With the lock: a fence of the moment that the event stands for now, to be dropped; NULL: never recorded. */
struct fake_fence *fake_event_fence(struct fake_event *event);
bool fake_event_lives(const struct fake_event *event);
/* With the lock. file: of the shared page of an event of another process, taken over; -1: make one if the flags ask for it. */
struct fake_event *fake_event_new(struct fake_context *context, unsigned flags, int file);

#endif
