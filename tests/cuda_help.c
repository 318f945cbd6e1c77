// SPDX-License-Identifier: BSD-3-Clause
#include "cuda_help.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int real_devices; /* of the real driver */

bool cuda_is_fake(void)
{
    const char *driver = getenv("TEST_DRIVER");

    return driver == NULL || strcmp(driver, "real") != 0;
}

/* Ask in a process of its own: who has started the driver cannot fork ranks that use it. */
static void count_or_skip(void)
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        const struct hoop_cuda_driver *driver = NULL;
        if (hoop_cuda_driver(&driver) != HOOP_OK)
            fprintf(stderr, "skipped: %s\n", hoop_error_text());
        _exit(driver == NULL ? 0 : driver->devices < 100 ? driver->devices : 100);
    }
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status))
        real_devices = WEXITSTATUS(status);
    if (real_devices == 0)
        exit(77);
}

bool cuda_suits(const char *test, int devices, bool faults)
{
    if (cuda_is_fake() || (!faults && devices <= real_devices))
        return true;
    if (faults)
        fprintf(stderr, "skipped: %s needs the faults of the fake driver\n", test);
    else
        fprintf(stderr, "skipped: %s needs %d devices, there is %d\n", test, devices, real_devices);
    return false;
}

int cuda_devices(int wanted)
{
    char text[16];

    if (cuda_is_fake()) {
        snprintf(text, sizeof text, "%d", wanted);
        setenv("FAKECUDA_DEVICES", text, 1);
        return wanted;
    }
    if (real_devices < wanted)
        setenv("HOOP_SHARED_GPU", "1", 1);
    if (wanted == 1)
        setenv("CUDA_VISIBLE_DEVICES", "0", 0);
    return real_devices < wanted ? real_devices : wanted;
}

void cuda_driver_or_skip(char **argv)
{
    const char *build = getenv("TEST_BUILD"), *path = getenv("LD_LIBRARY_PATH");
    char folder[1024], library[1100], all[2100];

    if (!cuda_is_fake()) {
        count_or_skip();
        return;
    }
    snprintf(folder, sizeof folder, "%s/tests/fakecuda/.libs", build ? build : ".");
    snprintf(library, sizeof library, "%s/libcuda.so.1", folder);
    if (access(library, R_OK) != 0) {
        fprintf(stderr, "skipped: there is no fake driver in %s\n", folder);
        exit(77);
    }
    if (path && strncmp(path, folder, strlen(folder)) == 0)
        return;
    snprintf(all, sizeof all, "%s%s%.1000s", folder, path ? ":" : "", path ? path : "");
    setenv("LD_LIBRARY_PATH", all, 1);
    execv("/proc/self/exe", argv);
    exit(1);
}

#define GOOD(call)                                                          \
    do {                                                                    \
        const enum hoop_status good = (call);                               \
        ck_assert_msg(good == HOOP_OK, "%s: %s", #call, hoop_error_text()); \
    } while (0)

void cuda_open(struct cuda_help *help, int ordinal, int streams)
{
    *help = (struct cuda_help){.streams = streams};
    GOOD(hoop_cuda_open(ordinal, &help->cuda));
    for (int i = 0; i < streams; i++)
        GOOD(hoop_cuda_stream_create(help->cuda, false, &help->stream[i]));
}

void cuda_close(struct cuda_help *help)
{
    for (int i = 0; i < help->streams; i++)
        GOOD(hoop_cuda_stream_destroy(help->cuda, help->stream[i]));
    for (int i = 0; i < help->hosts; i++)
        GOOD(hoop_cuda_host_free(help->cuda, help->host[i]));
    for (int i = 0; i < help->devices; i++)
        GOOD(hoop_cuda_free(help->cuda, help->device[i]));
    hoop_cuda_close(help->cuda);
}

void *cuda_host(struct cuda_help *help, size_t bytes)
{
    hoop_cu_address address;

    GOOD(hoop_cuda_host_alloc(help->cuda, bytes, &help->host[help->hosts], &address));
    return help->host[help->hosts++];
}

void *cuda_device(struct cuda_help *help, size_t bytes)
{
    GOOD(hoop_cuda_alloc(help->cuda, bytes, &help->device[help->devices]));
    return (void *)(uintptr_t)help->device[help->devices++];
}

void cuda_copy(struct cuda_help *help, void *to, const void *from, size_t bytes, hoop_cu_stream stream)
{
    GOOD(hoop_cuda_copy(help->cuda, to, from, bytes, stream));
    if (stream == NULL)
        cuda_synchronize(help, NULL);
}

struct late {
    void *memory;
    size_t bytes;
};

static void overwrite(void *data)
{
    const struct late *late = data;

    memset(late->memory, 0x3c, late->bytes);
    free(data);
}

void cuda_wait_late(struct cuda_help *help, void *memory, size_t bytes, hoop_cu_stream stream)
{
    struct late *late = malloc(sizeof *late);

    *late = (struct late){memory, bytes};
    GOOD(hoop_cuda_enter(help->cuda));
    GOOD(hoop_cuda_check(help->cuda->driver->cuLaunchHostFunc(stream, overwrite, late), "cuLaunchHostFunc", 0));
    hoop_cuda_leave(help->cuda);
}

void cuda_synchronize(struct cuda_help *help, hoop_cu_stream stream)
{
    GOOD(hoop_cuda_stream_wait(help->cuda, stream, UINT64_MAX));
}

/* ---- graphs: entry points that the library itself does not use ---- */

typedef hoop_cu_result (*entry_begin)(hoop_cu_stream, hoop_cu_capture_mode);
typedef hoop_cu_result (*entry_end)(hoop_cu_stream, hoop_cu_graph *);
typedef hoop_cu_result (*entry_instantiate)(hoop_cu_graph_exec *, hoop_cu_graph, unsigned long long);
typedef hoop_cu_result (*entry_launch)(hoop_cu_graph_exec, hoop_cu_stream);
typedef hoop_cu_result (*entry_drop)(void *);

static void *entry(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = driver ? dlsym(driver, name) : NULL;

    ck_assert_msg(found != NULL, "the driver has no %s", name);
    dlclose(driver); /* the library keeps it open */
    return found;
}

#define CALL(help, type, name, ...)                                                                             \
    do {                                                                                                        \
        GOOD(hoop_cuda_enter((help)->cuda));                                                                    \
        GOOD(hoop_cuda_check(((type)(uintptr_t)entry(name))(__VA_ARGS__), name, (help)->cuda->device.ordinal)); \
        hoop_cuda_leave((help)->cuda);                                                                          \
    } while (0)

void cuda_capture(struct cuda_help *help, hoop_cu_stream stream)
{
    CALL(help, entry_begin, "cuStreamBeginCapture_v2", stream, HOOP_CU_CAPTURE_THREAD_LOCAL);
}

hoop_cu_graph_exec cuda_captured(struct cuda_help *help, hoop_cu_stream stream)
{
    hoop_cu_graph graph;
    hoop_cu_graph_exec recorded;

    CALL(help, entry_end, "cuStreamEndCapture", stream, &graph);
    CALL(help, entry_instantiate, "cuGraphInstantiateWithFlags", &recorded, graph, 0);
    CALL(help, entry_drop, "cuGraphDestroy", graph);
    return recorded;
}

void cuda_replay(struct cuda_help *help, hoop_cu_graph_exec graph, hoop_cu_stream stream)
{
    CALL(help, entry_launch, "cuGraphLaunch", graph, stream);
}

void cuda_forget(struct cuda_help *help, hoop_cu_graph_exec graph)
{
    CALL(help, entry_drop, "cuGraphExecDestroy", graph);
}
