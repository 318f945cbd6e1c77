// SPDX-License-Identifier: BSD-3-Clause
/* Running kernels: device threads, residence of blocks, barriers, waiting, and faults.
 *
 * Each block that is resident has a thread of its own (FAKECUDA_THREADS of them); what exceeds the device's blocks waits, in
 * order, until others have ended, so that code whose blocks wait for later blocks hangs here as on a device. A fault ends the kernel
 * and leaves its error in the context; other kernels of that context end where they wait.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exec/device/device.h"
#include "tests/fakecuda/queue.h"

_Thread_local struct hoop_device_emulation hoop_device_emulation;

enum { SHARED_BYTES = 49152 };

struct block {
    struct grid *grid;
    unsigned number;
    unsigned arrived, present, round; /* of the barrier */
    pthread_mutex_t mutex;
    pthread_cond_t met;
    char *shared;
};

struct grid {
    struct fake_context *context;
    const struct fake_launch *launch;
    const void *argument;
    unsigned threads, running;
    struct grid *next;
};

/* One for each device. */
static struct engine {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int resident;
    struct grid *first; /* whose blocks are let in now; the others wait behind */
} engines[FAKE_DEVICES];

static _Thread_local struct {
    sigjmp_buf out;
    volatile sig_atomic_t active;
    const struct fake_context *context;
    const char *what;
    struct block *block;
    size_t shared;
    xg polled;
    unsigned polls;
    int bell; /* -1: not a waiter */
    uint32_t noted;
} running = {.bell = -1};

static struct sigaction before_segv, before_bus;

/* ---- faults ---- */

static void on_fault(int number, siginfo_t *info, void *registers)
{
    const uint64_t at = (uint64_t)(uintptr_t)info->si_addr;

    (void)registers;
    if (running.active) {
        const uint64_t address = fake_address_of(running.context, info->si_addr);

        if (address)
            fake_say("%s on device %d touched address %#lx, which its context cannot reach", running.what,
                     running.context->device, (unsigned long)address);
        else
            fake_say("%s on device %d touched %p, which is no device memory", running.what, running.context->device,
                     info->si_addr);
        siglongjmp(running.out, 1);
    }
    if (fake_in_range(at))
        fake_say("host access to device address %#lx", (unsigned long)at);
    sigaction(number, number == SIGSEGV ? &before_segv : &before_bus,
              NULL); /* it happens again, under the old action */
}

void fake_faults_init(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

    for (int i = 0; i < FAKE_DEVICES; i++) {
        pthread_mutex_init(&engines[i].mutex, NULL);
        pthread_cond_init(&engines[i].changed, NULL);
    }
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before_segv);
    sigaction(SIGBUS, &action, &before_bus);
}

_Noreturn void fake_leave(void)
{
    siglongjmp(running.out, 1);
}

static void stop_waiting(void)
{
    if (running.bell >= 0)
        fake_bell_leave(running.bell);
    running.bell = -1;
    running.polls = 0;
}

bool fake_guarded(void (*function)(void *), void *data, const struct fake_context *context, const char *what)
{
    running.context = context;
    running.what = what;
    if (sigsetjmp(running.out, 0) != 0) {
        running.active = 0;
        stop_waiting();
        return false;
    }
    running.active = 1;
    function(data);
    running.active = 0;
    stop_waiting();
    return true;
}

/* ---- what kernels call ---- */

static void *take_shared(size_t bytes)
{
    void *at = running.block->shared + running.shared;

    running.shared += (size_t)fake_round(bytes, 16);
    if (running.shared > SHARED_BYTES) {
        fake_say("%s asks for more than %d bytes of shared memory", running.what, SHARED_BYTES);
        fake_leave();
    }
    return at;
}

static void leave_if_broken(void)
{
    if (atomic_load(&running.context->error) != OK)
        fake_leave();
}

/* With the block's mutex: everybody who is still there has arrived. */
static void open_barrier(struct block *block)
{
    block->arrived = 0;
    block->round++;
    pthread_cond_broadcast(&block->met);
}

static void synchronize(void)
{
    struct block *block = running.block;
    unsigned round;
    bool broken = false;

    if (block->grid->threads == 1)
        return;
    pthread_mutex_lock(&block->mutex);
    round = block->round;
    if (++block->arrived >= block->present)
        open_barrier(block);
    while (round == block->round && !broken) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 20000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&block->met, &block->mutex, &until);
        broken = atomic_load(&running.context->error) != OK;
    }
    pthread_mutex_unlock(&block->mutex);
    if (broken)
        fake_leave();
}

/* Look again a few times, give the processor away, then sleep until the bell of that word (0: of any) is rung or 2 ms are over. */
static void poll_word(xg address)
{
    leave_if_broken();
    fake_shadows_forward(running.context);
    if (address != running.polled) {
        stop_waiting();
        running.polled = address;
    }
    if (++running.polls < 16) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        return;
    }
    if (running.polls < 20) {
        struct timespec none = {0};

        nanosleep(&none, NULL);
    } else if (running.bell < 0) {
        running.bell = fake_bell_of(address);
        running.noted = fake_bell_note(running.bell);
    } else {
        fake_bell_sleep(running.bell, running.noted, 2000000);
        fake_bell_leave(running.bell);
        running.bell = -1;
    }
}

static void ring_word(xg address)
{
    running.polls = 0;
    if (fake_shadowed(running.context, address)) /* small frames ring for every word, which may go another way */
        fake_shadows_forward(running.context);
    fake_ring(fake_bell_of(address));
}

/* ---- blocks ---- */

static void run_kernel(void *data)
{
    const struct grid *grid = data;
    const int fault = running.block->number == 0 && XTID == 0 ? fake_fault(FAKE_INDEX_KERNEL) : OK;

    if (fault != OK) {
        int none = OK;

        atomic_compare_exchange_strong(&grid->context->error, &none, fault);
        fake_leave();
    }
    grid->launch->function->kernel->run(grid->argument);
}

static void run_thread(struct block *block, unsigned thread)
{
    struct grid *grid = block->grid;
    int none = OK;

    running.block = block;
    running.shared = 0;
    hoop_device_emulation = (struct hoop_device_emulation){.delta = fake_delta(grid->context),
                                                           .thread = thread,
                                                           .threads = grid->threads,
                                                           .block = block->number,
                                                           .blocks = grid->launch->blocks,
                                                           .shared = take_shared,
                                                           .sync = synchronize,
                                                           .poll = poll_word,
                                                           .ring = ring_word};
    if (!fake_guarded(run_kernel, grid, grid->context, grid->launch->function->kernel->name))
        atomic_compare_exchange_strong(&grid->context->error, &none, ILLEGAL_ADDRESS);
    fake_shadows_forward(grid->context);
}

/* A thread is done; true: it was the block's last. */
static bool finish_thread(struct block *block)
{
    bool last;

    pthread_mutex_lock(&block->mutex);
    last = --block->present == 0;
    if (!last && block->arrived >= block->present)
        open_barrier(block);
    pthread_mutex_unlock(&block->mutex);
    return last;
}

static void finish_block(struct block *block)
{
    struct engine *engine = &engines[block->grid->context->device];
    struct grid *grid = block->grid;

    pthread_mutex_destroy(&block->mutex);
    pthread_cond_destroy(&block->met);
    free(block->shared);
    free(block);
    pthread_mutex_lock(&engine->mutex);
    engine->resident--;
    grid->running--;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
}

/* ---- workers: there is always one idle, or a new one, for each thread that is let in ---- */

struct worker {
    pthread_cond_t wake;
    struct block *block;
    unsigned thread;
    struct worker *next;
};
static pthread_mutex_t workers_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct worker *idle;

static void *work(void *data)
{
    struct worker *worker = data;

    for (;;) {
        struct block *block = worker->block;

        run_thread(block, worker->thread);
        if (finish_thread(block))
            finish_block(block);
        pthread_mutex_lock(&workers_mutex);
        worker->block = NULL;
        worker->next = idle;
        idle = worker;
        while (!worker->block)
            pthread_cond_wait(&worker->wake, &workers_mutex);
        pthread_mutex_unlock(&workers_mutex);
    }
    return NULL;
}

static void start_thread(struct block *block, unsigned thread)
{
    struct worker *worker;
    pthread_t made;

    pthread_mutex_lock(&workers_mutex);
    worker = idle;
    if (worker) {
        idle = worker->next;
        worker->block = block;
        worker->thread = thread;
        pthread_cond_signal(&worker->wake);
        pthread_mutex_unlock(&workers_mutex);
        return;
    }
    pthread_mutex_unlock(&workers_mutex);
    worker = calloc(1, sizeof *worker);
    if (!worker)
        abort();
    pthread_cond_init(&worker->wake, NULL);
    worker->block = block;
    worker->thread = thread;
    if (pthread_create(&made, NULL, work, worker) != 0)
        abort();
    pthread_detach(made);
}

static struct block *new_block(struct grid *grid, unsigned number)
{
    struct block *block = calloc(1, sizeof *block);

    if (!block)
        abort();
    block->grid = grid;
    block->number = number;
    block->present = grid->threads;
    block->shared = aligned_alloc(64, SHARED_BYTES);
    if (!block->shared)
        abort();
    memset(block->shared, 0xA5, 1024);
    pthread_mutex_init(&block->mutex, NULL);
    pthread_cond_init(&block->met, NULL);
    return block;
}

/* ---- launches ---- */

int fake_engine_room(int device)
{
    return fake_device(device)->multiprocessors * fake_device(device)->blocks;
}

/* With the engine's lock: wait until `needed` blocks fit, and it is this grid's turn. */
static void wait_for_room(struct engine *engine, const struct grid *grid, int needed)
{
    while ((engine->first != grid || engine->resident + needed > fake_engine_room(grid->context->device)) &&
           atomic_load(&grid->context->error) == OK)
        pthread_cond_wait(&engine->changed, &engine->mutex);
}

static void let_in(struct engine *engine, struct grid *grid)
{
    for (unsigned i = 0; i < grid->launch->blocks; i++) {
        struct block *block;

        wait_for_room(engine, grid, grid->launch->cooperative && i == 0 ? (int)grid->launch->blocks : 1);
        if (atomic_load(&grid->context->error) != OK)
            return;
        engine->resident++;
        grid->running++;
        block = new_block(grid, i);
        for (unsigned thread = 0; thread < grid->threads; thread++)
            start_thread(block, thread);
    }
}

void fake_engine_run(struct fake_stream *stream, const struct fake_launch *launch, const void *argument)
{
    struct engine *engine = &engines[stream->context->device];
    struct grid grid = {.context = stream->context, .launch = launch, .argument = argument};
    struct grid **link;

    grid.threads = launch->threads < (unsigned)fake_options.THREADS ? launch->threads : (unsigned)fake_options.THREADS;
    pthread_mutex_lock(&engine->mutex);
    for (link = &engine->first; *link; link = &(*link)->next)
        ;
    *link = &grid;
    let_in(engine, &grid);
    for (link = &engine->first; *link != &grid; link = &(*link)->next)
        ;
    *link = grid.next;
    pthread_cond_broadcast(&engine->changed);
    while (grid.running > 0)
        pthread_cond_wait(&engine->changed, &engine->mutex);
    pthread_mutex_unlock(&engine->mutex);
}
