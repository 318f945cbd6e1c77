// SPDX-License-Identifier: BSD-3-Clause
#include "device.h"

#include <check.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SHARED_BYTES = 8192 };

struct block {
    unsigned char *shared;
    pthread_barrier_t barrier;
};

struct thread {
    struct launch *launch;
    pthread_t id;
    uint32_t block, thread;
};

struct launch {
    void (*run)(const void *argument);
    void *argument;
    uint32_t blocks, threads;
    struct block *block;
    struct thread *thread;
};

_Thread_local struct hoop_device_emulation hoop_device_emulation;
static _Thread_local struct block *own;
static _Thread_local size_t shared_used;

static void *take_shared(size_t bytes)
{
    unsigned char *memory = own->shared + shared_used;

    shared_used += (bytes + 63) / 64 * 64;
    ck_assert_uint_le(shared_used, SHARED_BYTES);
    return memory;
}

static void meet(void)
{
    if (hoop_device_emulation.threads > 1)
        pthread_barrier_wait(&own->barrier);
}

/* Waiting: a few looks, then sleep until somebody stores something. Who is going to sleep looks once more after it has been counted as a
 * sleeper, so that no ring is missed. */
static uint32_t bell, sleepers;
static _Thread_local uint32_t heard;
static _Thread_local int looks;

static void pause_a_little(xg address)
{
    const struct timespec most = {.tv_nsec = 2000000};

    (void)address;
    if (++looks < 3) {
        sched_yield();
    } else if (looks == 3) {
        __atomic_fetch_add(&sleepers, 1, __ATOMIC_SEQ_CST);
        heard = __atomic_load_n(&bell, __ATOMIC_SEQ_CST);
    } else {
        syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, heard, &most, NULL, 0);
        __atomic_fetch_sub(&sleepers, 1, __ATOMIC_SEQ_CST);
        looks = 0;
    }
}

static void wake(xg address)
{
    (void)address;
    __atomic_fetch_add(&bell, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST) > 0)
        syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void run_thread(const struct launch *launch, struct block *block, uint32_t number, uint32_t thread)
{
    own = block;
    shared_used = 0;
    hoop_device_emulation = (struct hoop_device_emulation){.thread = thread,
                                                           .threads = launch->threads,
                                                           .block = number,
                                                           .blocks = launch->blocks,
                                                           .shared = take_shared,
                                                           .sync = meet,
                                                           .poll = pause_a_little,
                                                           .ring = wake};
    launch->run(launch->argument);
}

static void *thread_main(void *data)
{
    const struct thread *thread = data;

    run_thread(thread->launch, &thread->launch->block[thread->block], thread->block, thread->thread);
    return NULL;
}

static const struct hoop_device_kernel *find(const char *name)
{
    const struct hoop_device_kernel *kernel = hoop_device_kernels;

    while (kernel->name && strcmp(kernel->name, name) != 0)
        kernel++;
    ck_assert_msg(kernel->name != NULL, "no kernel %s", name);
    return kernel;
}

struct launch *launch_begin(const char *name, const void *argument, int blocks, int threads)
{
    const struct hoop_device_kernel *kernel = find(name);
    struct launch *launch = calloc(1, sizeof *launch);
    const uint32_t all = (uint32_t)blocks * (uint32_t)threads;

    launch->run = kernel->run;
    launch->argument = malloc(kernel->argument_size);
    memcpy(launch->argument, argument, kernel->argument_size);
    launch->blocks = (uint32_t)blocks;
    launch->threads = (uint32_t)threads;
    launch->block = calloc(launch->blocks, sizeof *launch->block);
    launch->thread = calloc(all, sizeof *launch->thread);
    for (uint32_t b = 0; b < launch->blocks; b++) {
        launch->block[b].shared = aligned_alloc(64, SHARED_BYTES);
        memset(launch->block[b].shared, 0xa5, SHARED_BYTES);
        pthread_barrier_init(&launch->block[b].barrier, NULL, launch->threads);
    }
    for (uint32_t i = 0; i < all; i++) {
        launch->thread[i] =
            (struct thread){.launch = launch, .block = i / launch->threads, .thread = i % launch->threads};
        ck_assert_int_eq(pthread_create(&launch->thread[i].id, NULL, thread_main, &launch->thread[i]), 0);
    }
    return launch;
}

static void drop(struct launch *launch)
{
    for (uint32_t b = 0; b < launch->blocks; b++) {
        pthread_barrier_destroy(&launch->block[b].barrier);
        free(launch->block[b].shared);
    }
    free(launch->block);
    free(launch->thread);
    free(launch->argument);
    free(launch);
}

void launch_end(struct launch *launch)
{
    for (uint32_t i = 0; i < launch->blocks * launch->threads; i++)
        pthread_join(launch->thread[i].id, NULL);
    drop(launch);
}

void launch_alone(const char *name, const void *argument)
{
    static _Thread_local unsigned char shared[SHARED_BYTES] __attribute__((aligned(64)));
    const struct hoop_device_kernel *kernel = find(name);
    struct block block = {.shared = shared};
    const struct launch launch = {
        .run = kernel->run, .argument = (void *)(uintptr_t)argument, .blocks = 1, .threads = 1};

    run_thread(&launch, &block, 0, 0);
}
