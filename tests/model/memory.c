// SPDX-License-Identifier: BSD-3-Clause
/* The explorer: choices, scheduler, memory. See memory.h for the idea. */
#include "model/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { LOCATIONS = 40, STORES = 24, CHOICES = 1024, STACK = 256 * 1024, POLLED = 8 };

/* What a thread knows: per location the oldest store that it may still see; per thread how far it has come. */
struct view {
    uint8_t store[LOCATIONS];
    uint16_t clock[MODEL_THREADS];
};

struct store {
    uint64_t value;
    struct view view;
};

struct location {
    const volatile void *object;
    bool plain;
    int stores;
    struct store store[STORES];
    /* plain: */
    int writer;
    uint16_t written, read[MODEL_THREADS];
};

enum access { ACCESS_LOCAL, ACCESS_LOAD, ACCESS_STORE, ACCESS_FENCE };

enum state { READY, POLLING, SLEEPING, DONE };

struct thread {
    ucontext_t context;
    char *stack;
    enum state state;
    enum access access; /* what it will do next */
    const volatile void *object;
    struct view now, acquired, released;
    int polls, polled[POLLED], seen[POLLED]; /* location and store of each load of the round */
};

struct choice {
    bool schedule;
    unsigned enabled, asleep, done; /* schedule: threads */
    int taken, count;               /* thread, or number of the option */
};

static struct {
    const struct model_test *test;
    unsigned leave_out;
    struct thread thread[MODEL_THREADS];
    ucontext_t explorer;
    int running; /* -1: setup */
    struct location location[LOCATIONS];
    int locations;
    struct view fence;
    struct choice choice[CHOICES];
    int choices, depth;
    unsigned asleep;
    bool pruned;
    struct model_result result;
    size_t traced;
} model;

/* ---- reports ---- */

static void trace(const char *format, ...)
{
    va_list arguments;

    if (model.traced >= sizeof model.result.trace)
        return;
    va_start(arguments, format);
    const int used =
        vsnprintf(model.result.trace + model.traced, sizeof model.result.trace - model.traced, format, arguments);
    va_end(arguments);
    model.traced += used > 0 ? (size_t)used : 0;
}

void model_fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(model.result.failure, sizeof model.result.failure, format, arguments);
    va_end(arguments);
    setcontext(&model.explorer);
    abort();
}

/* ---- choices ---- */

/* One of `count` options; walks through all of them over the executions. */
static int choose(int count)
{
    if (count == 1)
        return 0;
    if (model.depth == model.choices) {
        if (model.choices == CHOICES)
            model_fail("more than %d choices in one execution: is there an endless loop?", CHOICES);
        model.choice[model.choices++] = (struct choice){.count = count};
    }
    return model.choice[model.depth++].taken;
}

static int lowest(unsigned set)
{
    return __builtin_ctz(set);
}

/* Take the last choice that has another option; false: all are used up. */
static bool next_choice(void)
{
    for (; model.choices > 0; model.choices--) {
        struct choice *choice = &model.choice[model.choices - 1];

        if (!choice->schedule) {
            if (++choice->taken < choice->count)
                return true;
            continue;
        }
        choice->done |= 1u << choice->taken;
        const unsigned left = choice->enabled & ~choice->asleep & ~choice->done;
        if (left) {
            choice->taken = lowest(left);
            return true;
        }
    }
    return false;
}

/* ---- scheduler ---- */

static bool enabled(const struct thread *thread)
{
    if (thread->state == POLLING)
        for (int i = 0; i < thread->polls; i++)
            if (thread->seen[i] < model.location[thread->polled[i]].stores - 1)
                return true;
    return thread->state == READY;
}

static bool dependent(const struct thread *a, const struct thread *b)
{
    if (a->access == ACCESS_LOCAL || b->access == ACCESS_LOCAL)
        return false;
    if (a->access == ACCESS_FENCE || b->access == ACCESS_FENCE)
        return a->access == b->access;
    return a->object == b->object && (a->access == ACCESS_STORE || b->access == ACCESS_STORE);
}

/* Who goes on? -1: nobody can, or only such as would repeat what was explored already. */
static int pick(void)
{
    unsigned able = 0;

    for (int i = 0; i < model.test->threads; i++)
        able |= enabled(&model.thread[i]) ? 1u << i : 0;
    if (model.depth == model.choices) {
        const unsigned candidates = able & ~model.asleep;

        model.pruned = able && !candidates;
        if (!candidates)
            return -1;
        if (model.choices == CHOICES)
            model_fail("more than %d choices in one execution: is there an endless loop?", CHOICES);
        const bool stay = model.running >= 0 && candidates >> model.running & 1;
        model.choice[model.choices++] = (struct choice){.schedule = true,
                                                        .enabled = able,
                                                        .asleep = model.asleep,
                                                        .taken = stay ? model.running : lowest(candidates)};
    }
    const struct choice *choice = &model.choice[model.depth++];
    model.asleep = choice->asleep | choice->done;
    for (int i = 0; i < model.test->threads; i++)
        if (dependent(&model.thread[i], &model.thread[choice->taken]))
            model.asleep &= ~(1u << i);
    return choice->taken;
}

/* Let the chosen thread run; returns when this one is chosen. */
static void reschedule(void)
{
    const int self = model.running, next = pick();

    if (next == self)
        return;
    if (next < 0)
        setcontext(&model.explorer);
    model.running = next;
    swapcontext(&model.thread[self].context, &model.thread[next].context);
}

/* Before an access: others may go first. */
static struct thread *arrive(enum access access, const volatile void *object)
{
    if (model.running < 0)
        return NULL;
    struct thread *thread = &model.thread[model.running];
    thread->access = access;
    thread->object = object;
    reschedule();
    return thread;
}

static void run_thread(void)
{
    model.test->thread[model.running]();
    model.thread[model.running].state = DONE;
    const int next = pick();
    if (next >= 0) {
        model.running = next;
        setcontext(&model.thread[next].context);
    }
    setcontext(&model.explorer);
}

/* ---- memory ---- */

static int locate(const volatile void *object, unsigned size, bool plain)
{
    for (int i = 0; i < model.locations; i++)
        if (model.location[i].object == object && model.location[i].plain == plain)
            return i;
    if (model.locations == LOCATIONS)
        model_fail("more than %d locations", LOCATIONS);
    struct location *location = &model.location[model.locations];
    location->object = object;
    location->plain = plain;
    location->stores = 1;
    memset(&location->store[0], 0, sizeof location->store[0]);
    location->writer = 0;
    location->written = 0;
    memset(location->read, 0, sizeof location->read);
    location->store[0].value = size == 4 ? *(const volatile uint32_t *)object : *(const volatile uint64_t *)object;
    return model.locations++;
}

static void join(struct view *to, const struct view *from)
{
    for (int i = 0; i < LOCATIONS; i++)
        to->store[i] = to->store[i] > from->store[i] ? to->store[i] : from->store[i];
    for (int i = 0; i < MODEL_THREADS; i++)
        to->clock[i] = to->clock[i] > from->clock[i] ? to->clock[i] : from->clock[i];
}

static bool acquires(enum model_order order)
{
    return (order == MODEL_acquire || order == MODEL_acq_rel) && !(model.leave_out & MODEL_NO_ACQUIRE);
}

static bool releases(enum model_order order)
{
    return (order == MODEL_release || order == MODEL_acq_rel) && !(model.leave_out & MODEL_NO_RELEASE);
}

static void see(struct thread *thread, int at, int number, enum model_order order)
{
    const struct store *store = &model.location[at].store[number];

    thread->now.store[at] = (uint8_t)number;
    join(&thread->acquired, &store->view);
    if (acquires(order))
        join(&thread->now, &store->view);
}

uint64_t model_load(const volatile void *object, unsigned size, enum model_order order)
{
    struct thread *thread = arrive(ACCESS_LOAD, object);
    const int at = locate(object, size, false);
    const struct location *location = &model.location[at];

    if (!thread)
        return location->store[location->stores - 1].value;
    const int oldest = thread->now.store[at];
    const int number = location->stores - 1 - choose(location->stores - oldest);
    see(thread, at, number, order);
    if (thread->polls < POLLED) {
        thread->polled[thread->polls] = at;
        thread->seen[thread->polls++] = number;
    }
    trace("thread %d loads    %2d: %llx (store %d of %d)\n", model.running, at,
          (unsigned long long)location->store[number].value, number, location->stores - 1);
    return location->store[number].value;
}

static void append(struct thread *thread, int at, uint64_t value, enum model_order order, const struct view *carried)
{
    struct location *location = &model.location[at];

    if (location->stores == STORES)
        model_fail("more than %d stores to one location", STORES);
    const int number = location->stores++;
    struct store *store = &location->store[number];
    store->value = value;
    memset(&store->view, 0, sizeof store->view);
    if (!thread)
        return;
    thread->now.store[at] = (uint8_t)number;
    store->view = releases(order) ? thread->now : thread->released;
    store->view.store[at] = (uint8_t)number;
    if (carried)
        join(&store->view, carried);
    thread->now.clock[model.running]++;
    trace("thread %d stores   %2d: %llx\n", model.running, at, (unsigned long long)value);
}

void model_store(volatile void *object, unsigned size, uint64_t value, enum model_order order)
{
    struct thread *thread = arrive(ACCESS_STORE, object);

    append(thread, locate(object, size, false), value, order, NULL);
}

uint64_t model_exchange(volatile void *object, unsigned size, uint64_t value, enum model_order order)
{
    struct thread *thread = arrive(ACCESS_STORE, object);
    const int at = locate(object, size, false), number = model.location[at].stores - 1;
    const struct store *before = &model.location[at].store[number];

    see(thread, at, number, order);
    append(thread, at, value, order, &before->view);
    return before->value;
}

void model_fence(void)
{
    struct thread *thread = arrive(ACCESS_FENCE, NULL);

    if (!thread || (model.leave_out & MODEL_NO_FENCE))
        return;
    join(&thread->now, &thread->acquired);
    join(&thread->now, &model.fence);
    model.fence = thread->now;
    thread->released = thread->now;
    thread->now.clock[model.running]++;
    trace("thread %d fences\n", model.running);
}

static void check_race(const struct thread *thread, const struct location *location, bool writing)
{
    if (thread->now.clock[location->writer] < location->written)
        model_fail("data race: thread %d %s location %d that thread %d has written", model.running,
                   writing ? "writes" : "reads", (int)(location - model.location), location->writer);
    for (int i = 0; writing && i < MODEL_THREADS; i++)
        if (i != model.running && thread->now.clock[i] < location->read[i])
            model_fail("data race: thread %d writes location %d that thread %d reads", model.running,
                       (int)(location - model.location), i);
}

uint64_t model_read(const volatile void *object)
{
    struct location *location = &model.location[locate(object, 8, true)];

    if (model.running >= 0) {
        struct thread *thread = &model.thread[model.running];

        check_race(thread, location, false);
        location->read[model.running] = thread->now.clock[model.running];
        trace("thread %d reads    %2d: %llx\n", model.running, (int)(location - model.location),
              (unsigned long long)location->store[0].value);
    }
    return location->store[0].value;
}

void model_write(volatile void *object, uint64_t value)
{
    struct location *location = &model.location[locate(object, 8, true)];

    location->store[0].value = value;
    if (model.running < 0)
        return;
    struct thread *thread = &model.thread[model.running];
    check_race(thread, location, true);
    location->writer = model.running;
    location->written = thread->now.clock[model.running];
    trace("thread %d writes   %2d: %llx\n", model.running, (int)(location - model.location), (unsigned long long)value);
}

/* ---- waiting ---- */

bool model_futex_wait(volatile void *word)
{
    struct thread *thread = arrive(ACCESS_STORE, word); /* ordered with wakes of the word */
    const struct location *location = &model.location[locate(word, 4, false)];

    if (location->store[location->stores - 1].value != 1)
        return false;
    trace("thread %d sleeps\n", model.running);
    thread->state = SLEEPING;
    thread->object = word;
    thread->access = ACCESS_LOCAL;
    reschedule();
    return true;
}

void model_futex_wake(volatile void *word)
{
    arrive(ACCESS_STORE, word);
    for (int i = 0; i < model.test->threads; i++)
        if (model.thread[i].state == SLEEPING && model.thread[i].object == word) {
            trace("thread %d wakes thread %d\n", model.running, i);
            model.thread[i].state = READY;
            return;
        }
}

void model_poll(void)
{
    model.thread[model.running].polls = 0;
}

void model_wait(void)
{
    struct thread *thread = &model.thread[model.running];

    thread->state = POLLING;
    thread->access = ACCESS_LOAD;
    thread->object = model.location[thread->polled[thread->polls - 1]].object;
    reschedule();
    thread->state = READY;
    for (int i = 0; i < thread->polls; i++) {
        const int at = thread->polled[i], newer = thread->seen[i] + 1;

        if (newer < model.location[at].stores && thread->now.store[at] < newer)
            thread->now.store[at] = (uint8_t)newer;
    }
}

/* ---- exploring ---- */

static void start(void)
{
    model.locations = model.depth = 0;
    model.asleep = 0;
    model.traced = 0;
    model.result.trace[0] = 0;
    model.pruned = false;
    memset(&model.fence, 0, sizeof model.fence);
    model.running = -1;
    model.test->setup();
    for (int i = 0; i < model.test->threads; i++) {
        struct thread *thread = &model.thread[i];

        thread->state = READY;
        thread->access = ACCESS_LOCAL;
        thread->polls = 0;
        memset(&thread->now, 0, sizeof thread->now);
        for (int at = 0; at < model.locations; at++) /* what setup stored is known to all */
            thread->now.store[at] = (uint8_t)(model.location[at].stores - 1);
        thread->now.clock[i] = 1;
        thread->acquired = thread->released = thread->now;
        getcontext(&thread->context);
        thread->context.uc_stack.ss_sp = thread->stack;
        thread->context.uc_stack.ss_size = STACK;
        thread->context.uc_link = NULL;
        makecontext(&thread->context, run_thread, 0);
    }
}

/* Everybody that can has run: is everybody done? */
static void judge(void)
{
    if (model.pruned) {
        model.result.pruned++;
        return;
    }
    model.result.executions++;
    for (int i = 0; i < model.test->threads; i++)
        if (model.thread[i].state != DONE)
            snprintf(model.result.failure, sizeof model.result.failure, "thread %d %s for ever", i,
                     model.thread[i].state == SLEEPING ? "sleeps" : "waits");
}

static void execute(void)
{
    volatile bool begun = false;

    getcontext(&model.explorer); /* threads that end, fail or find nobody to go on come back here */
    if (!begun) {
        begun = true;
        start();
        model.running = pick();
        setcontext(&model.thread[model.running].context);
    }
    if (!model.result.failure[0])
        judge();
}

struct model_result model_explore(const struct model_test *test, unsigned leave_out, long most)
{
    memset(&model.result, 0, sizeof model.result);
    model.test = test;
    model.leave_out = leave_out;
    model.choices = 0;
    for (int i = 0; i < test->threads; i++)
        model.thread[i].stack = calloc(1, STACK);
    do {
        execute();
        if (!model.result.failure[0] && model.result.executions + model.result.pruned > most)
            snprintf(model.result.failure, sizeof model.result.failure, "more than %ld executions", most);
    } while (!model.result.failure[0] && next_choice());
    for (int i = 0; i < test->threads; i++)
        free(model.thread[i].stack);
    return model.result;
}
