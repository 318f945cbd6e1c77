// SPDX-License-Identifier: BSD-3-Clause
/* Drivers that fail. Each call of the driver that the library makes fails once, early or later, on one of two ranks. Whatever it is, both
 * ranks end soon and alike, with right results by a way whose reason is told, or with an error that names what failed; nothing crashes,
 * hangs or leaks. And ranks without a device. */
#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_help.h"
#include "harness.h"

enum { COUNT = 3000, ROUNDS = 3, CAP = 60, TEXT = 1000 };

/* How far a rank came. */
enum stage { REFUSED = 1, BROKEN, RIGHT };

struct fault {
    int rank;      /* that it hits */
    char set[64];  /* of FAKECUDA_FAIL there */
    bool streamed; /* calls are given to the legacy default stream */
};

static void say_way(struct harness_rank *self, const struct hoop_comm *comm)
{
    char *text = malloc(HOOP_EXPLAIN_TEXT);
    const char *line =
        hoop_explain(comm, "all_reduce", 4096, 0, text, HOOP_EXPLAIN_TEXT) == HOOP_OK ? strstr(text, "\ndevice") : NULL;

    snprintf(self->report->text, sizeof self->report->text, "%.*s", line ? (int)strcspn(line + 1, "\n") : 0,
             line ? line + 1 : "");
    free(text);
}

static enum hoop_status wait_for(struct hoop_comm *comm, hoop_stream *stream)
{
    struct hoop_cuda *cuda;
    int ordinal = -1;

    if (stream == NULL)
        return HOOP_OK;
    enum hoop_status status = hoop_comm_device(comm, &ordinal);
    if (status == HOOP_OK)
        status = hoop_cuda_open(ordinal, &cuda);
    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_stream_wait(cuda, (hoop_cu_stream)(void *)stream, UINT64_MAX);
    hoop_cuda_close(cuda);
    return status;
}

static enum hoop_status sum(struct hoop_comm *comm, float *device, hoop_stream *stream, bool *wrong)
{
    float host[COUNT];
    const int ranks = hoop_comm_size(comm);

    for (int i = 0; i < COUNT; i++)
        host[i] = (float)(i % 1000 + hoop_comm_rank(comm));
    enum hoop_status status = hoop_mem_copy(comm, device, host, sizeof host);
    if (status == HOOP_OK)
        status = hoop_all_reduce(device, device, COUNT, HOOP_F32, HOOP_SUM, comm, stream);
    if (status == HOOP_OK)
        status = wait_for(comm, stream);
    if (status == HOOP_OK)
        status = hoop_comm_async_error(comm);
    if (status == HOOP_OK)
        status = hoop_mem_copy(comm, host, device, sizeof host);
    for (int i = 0; i < COUNT && status == HOOP_OK; i++)
        *wrong |= host[i] != (float)(ranks * (i % 1000) + ranks * (ranks - 1) / 2);
    return status;
}

static int with_fault(struct harness_rank *self)
{
    const struct fault *fault = self->argument;
    hoop_stream *stream = fault->streamed ? (hoop_stream *)(uintptr_t)1 : NULL; /* the legacy default stream */
    struct hoop_comm *comm;
    void *device = NULL;
    bool wrong = false;

    if (self->rank == fault->rank)
        setenv("FAKECUDA_FAIL", fault->set, 1);
    comm = harness_join(self);
    if (comm == NULL) {
        atomic_store(&self->report->stage, REFUSED);
        return 0;
    }
    enum hoop_status status = hoop_mem_alloc(comm, &device, COUNT * sizeof(float));
    for (int i = 0; i < ROUNDS && status == HOOP_OK; i++)
        status = sum(comm, device, stream, &wrong);
    if (status == HOOP_OK)
        status = hoop_barrier(comm, NULL);
    if (status == HOOP_OK) {
        say_way(self, comm);
    } else {
        harness_tell(self, status, hoop_comm_async_error(comm) == HOOP_OK ? NULL : comm);
        hoop_comm_abort(comm);
    }
    atomic_store(&self->report->stage, status == HOOP_OK ? RIGHT : BROKEN);
    hoop_comm_destroy(comm);
    return wrong;
}

/* What fails, and what comes of it when it fails the first time; then what the reason that is told must hold. */
static const struct {
    const char *name;
    int result, stage;
    const char *reason;
} calls[] = {{"cuInit", 100, REFUSED, "finds no device"},
             {"cuDeviceGetCount", 100, REFUSED, "finds no device"},
             {"cuDeviceGet", 101, REFUSED, "CUDA_ERROR_INVALID_DEVICE"},
             {"cuDeviceGetName", 1, REFUSED, "CUDA_ERROR_INVALID_VALUE"},
             {"cuDeviceGetUuid", 1, REFUSED, "CUDA_ERROR_INVALID_VALUE"},
             {"cuDevicePrimaryCtxRetain", 2, REFUSED, "CUDA_ERROR_OUT_OF_MEMORY"},
             {"cuCtxPushCurrent", 201, REFUSED, "cuCtxPushCurrent"},
             {"cuStreamCreateWithPriority", 2, REFUSED, "cuStreamCreateWithPriority"},
             {"cuMemAlloc", 2, RIGHT, "bytes left"},
             {"cuMemHostAlloc", 2, REFUSED, "cuMemHostAlloc"},
             {"cuMemHostGetDevicePointer", 1, REFUSED, "cuMemHostGetDevicePointer"},
             {"cuStreamWaitValue32", 801, REFUSED, "cannot wait for a word of memory: cuStreamWaitValue32 on CUDA"},
             {"cuMemsetD8Async", 700, RIGHT, "cuMemsetD8Async"},
             {"cuMemcpyAsync", 700, RIGHT, "cuMemcpyAsync"},
             {"cuEventCreate", 2, RIGHT, "cuEventCreate"},
             {"cuModuleLoadData", 209, RIGHT, "device code"},
             {"cuModuleGetFunction", 500, RIGHT, "cuModuleGetFunction"},
             {"cuFuncGetAttribute", 1, RIGHT, "cuFuncGetAttribute"},
             {"cuOccupancyMaxActiveBlocksPerMultiprocessor", 1, RIGHT, "cuOccupancyMaxActive"},
             {"cuIpcGetMemHandle", 801, RIGHT, "by cuda_ipc"},
             {"cuIpcOpenMemHandle", 217, RIGHT, "not by cuda_ipc"},
             {"cuPointerGetAttributes", 700, RIGHT, ""},
             {"cuStreamQuery", 700, REFUSED, "cannot wait for a word of memory"},
             {"cuStreamIsCapturing", 1, BROKEN, "cuStreamIsCapturing"},
             {"cuStreamWaitEvent", 700, BROKEN, "cuStreamWaitEvent"},
             {"cuEventRecord", 700, BROKEN, "cuEventRecord"},
             {"cuLaunchKernel", 701, BROKEN, "cuLaunchKernel"},
             {"kernel", 719, BROKEN, "CUDA_ERROR_LAUNCH_FAILED"}};
enum { CALLS = sizeof calls / sizeof *calls };

/* The same for calls that are staged and given to a stream. */
static const struct {
    const char *name;
    int result;
} staged_calls[] = {
    {"cuMemHostRegister", 1},    {"cuMemHostRegister", 719}, {"cuLaunchHostFunc", 1}, {"cuMemcpyAsync", 719},
    {"cuEventCreate", 2},        {"cuEventRecord", 719},     {"cuEventQuery", 719},   {"cuPointerGetAttributes", 719},
    {"cuStreamWaitValue32", 719}};
enum { STAGED_CALLS = sizeof staged_calls / sizeof *staged_calls };

static void settings(void)
{
    setenv("FAKECUDA_DEVICES", "2", 1);
    setenv("FAKECUDA_NOISE", "0", 1);
    setenv("HOOP_DEVICE", "cuda", 1);
}

/* Both ranks end in time; both have right results or none has; who has none gives a reason. Returns what the rank that was hit says. */
static void run_with(struct fault *fault, struct harness *harness)
{
    harness_start(harness, 2, with_fault, fault, CAP);
    const bool in_time = harness_wait(harness);
    for (int rank = 0; rank < 2; rank++) {
        const struct harness_report *report = &harness->report[rank];
        ck_assert_msg(in_time && harness->code[rank] == 0, "%s on rank %d: rank %d ended with %d%s: %s", fault->set,
                      fault->rank, rank, harness->code[rank], in_time ? "" : " (cap reached)", report->text);
        ck_assert_msg(report->text[0] != 0, "%s on rank %d: rank %d gives no reason", fault->set, fault->rank, rank);
    }
    ck_assert_msg((harness->report[0].stage == RIGHT) == (harness->report[1].stage == RIGHT),
                  "%s on rank %d: rank 0: %s; rank 1: %s", fault->set, fault->rank, harness->report[0].text,
                  harness->report[1].text);
}

START_TEST(a_call_fails_at_first)
{
    struct fault fault = {.rank = _i % 2};
    struct harness harness;

    settings();
    snprintf(fault.set, sizeof fault.set, "%s:1=%d", calls[_i].name, calls[_i].result);
    run_with(&fault, &harness);
    const struct harness_report *hit = &harness.report[fault.rank];
    ck_assert_msg(hit->stage == calls[_i].stage && strstr(hit->text, calls[_i].reason), "%s on rank %d: came to %d: %s",
                  fault.set, fault.rank, hit->stage, hit->text);
}
END_TEST

START_TEST(a_call_fails_later)
{
    struct harness harness;

    settings();
    for (int nth = 2; nth < 20; nth = nth * 2 + 1) {
        struct fault fault = {.rank = (_i + nth) % 2};
        snprintf(fault.set, sizeof fault.set, "%s:%d=%d", calls[_i].name, nth, calls[_i].result);
        run_with(&fault, &harness);
    }
}
END_TEST

START_TEST(a_staged_call_fails)
{
    struct harness harness;

    settings();
    setenv("HOOP_STAGED", "1", 1);
    for (int nth = 1; nth < 8; nth = nth * 2 + 1) {
        struct fault fault = {.rank = (_i + nth) % 2, .streamed = true};
        snprintf(fault.set, sizeof fault.set, "%s:%d=%d", staged_calls[_i].name, nth, staged_calls[_i].result);
        run_with(&fault, &harness);
    }
}
END_TEST

/* ---- drivers and devices that are of no use ---- */

/* Whoever asks for the device, or has made its context current, learns why it cannot be had and what to do. */
static const struct {
    const char *set, *reason, *cure;
    bool current; /* the program uses CUDA, and says nothing to hoop */
} useless[] = {{"FAKECUDA_STREAM_OPS=0", "streams cannot wait for a word of memory", "Update the driver", false},
               {"FAKECUDA_STREAM_OPS=0", "streams cannot wait for a word of memory", "HOOP_DEVICE=none", true}};
enum { USELESS = sizeof useless / sizeof *useless };

START_TEST(drivers_of_no_use)
{
    hoop_cu_result (*start)(unsigned), (*retain)(hoop_cu_context *, int), (*set)(hoop_cu_context);
    struct hoop_comm *comm = NULL;
    hoop_cu_context context;

    settings();
    putenv((char *)(uintptr_t)useless[_i].set);
    if (useless[_i].current) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        *(void **)&start = dlsym(driver, "cuInit");
        *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
        *(void **)&set = dlsym(driver, "cuCtxSetCurrent");
        ck_assert(start(0) == 0 && retain(&context, 1) == 0 && set(context) == 0);
        setenv("HOOP_DEVICE", "auto", 1);
    }
    ck_assert_int_eq(hoop_comm_init_rank(&comm, 1, NULL, 0), HOOP_ERR_UNSUPPORTED);
    const char *text = hoop_last_error(NULL);
    ck_assert_msg(strstr(text, useless[_i].reason) && strstr(text, useless[_i].cure), "%s", text);
    setenv("HOOP_DEVICE", "none", 1);
    ck_assert_int_eq(hoop_comm_init_rank(&comm, 1, NULL, 0), HOOP_OK);
    hoop_comm_destroy(comm);
}
END_TEST

/* ---- a rank without a device ---- */

/* Rank 1 of three has no device: calls on host memory go as ever, messages from device to host memory, too; a collective for which one
 * rank gives device memory and another host memory is refused by all. */
static int with_or_without(struct harness_rank *self)
{
    enum { BYTES = COUNT * sizeof(int) };
    const bool without = self->rank == 1;
    int host[COUNT], ordinal = 0;
    void *buffer = NULL;

    if (without)
        setenv("HOOP_DEVICE", "none", 1);
    struct hoop_comm *comm = harness_join(self);
    if (comm == NULL)
        return 1;
    HARNESS_EXPECT(hoop_comm_device(comm, &ordinal) == HOOP_OK && (ordinal < 0) == without);
    for (int i = 0; i < COUNT; i++)
        host[i] = i + self->rank;
    HARNESS_EXPECT(hoop_mem_alloc(comm, &buffer, BYTES) == HOOP_OK); /* of the device, if there is one */
    HARNESS_EXPECT(hoop_mem_copy(comm, buffer, host, BYTES) == HOOP_OK);
    HARNESS_EXPECT(hoop_all_reduce(host, host, COUNT, HOOP_I32, HOOP_MAX, comm, NULL) == HOOP_OK);
    for (int i = 0; i < COUNT; i++)
        HARNESS_EXPECT(host[i] == i + 2);
    hoop_group_start();
    hoop_send(buffer, COUNT, HOOP_I32, (self->rank + 1) % 3, comm, NULL);
    hoop_recv(host, COUNT, HOOP_I32, (self->rank + 2) % 3, comm, NULL);
    HARNESS_EXPECT(hoop_group_end() == HOOP_OK);
    for (int i = 0; i < COUNT; i++)
        HARNESS_EXPECT(host[i] == i + (self->rank + 2) % 3);
    say_way(self, comm);
    HARNESS_EXPECT(without || strstr(self->report->text, "rank 1 has no device"));
    harness_meet(self, 1);
    enum hoop_status status = hoop_all_reduce(buffer, buffer, COUNT, HOOP_I32, HOOP_SUM, comm, NULL);
    if (status == HOOP_OK) /* whoever was told late */
        status = hoop_comm_finalize(comm);
    const char *text = hoop_last_error(comm);
    HARNESS_EXPECT(status == HOOP_ERR_MISMATCH && strstr(text, "in device memory") && strstr(text, "in host memory"));
    hoop_comm_destroy(comm);
    return 0;
}

START_TEST(one_rank_without_a_device)
{
    settings();
    setenv("FAKECUDA_DEVICES", "3", 1);
    harness_run(3, with_or_without, NULL, CAP);
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    cuda_driver_or_skip(argv);
    if (!cuda_suits("device_faults", 3, true))
        return 77;
    Suite *suite = suite_create("drivers that fail");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, CAP + 20);
    tcase_add_loop_test(all, a_call_fails_at_first, 0, CALLS);
    tcase_add_loop_test(all, a_call_fails_later, 0, CALLS);
    tcase_add_loop_test(all, a_staged_call_fails, 0, STAGED_CALLS);
    tcase_add_loop_test(all, drivers_of_no_use, 0, USELESS);
    tcase_add_test(all, one_rank_without_a_device);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
