// SPDX-License-Identifier: BSD-3-Clause
/* Rules of captures, of what processes share, of entry points and injected faults. */
#include <signal.h>
#include <sys/wait.h>

#include "tests/fakecuda/rules.h"

/* ---- captures ---- */

START_TEST(graphs_replay)
{
    handle first, second, event, joined, graph, exec, copy;
    address at;

    begin(1);
    at = memory(64);
    first = stream();
    second = stream();
    copy = function("fake_test_copy");
    GOOD(cu.cuEventCreate(&event, 0));
    GOOD(cu.cuEventCreate(&joined, 0));
    GOOD(cu.cuStreamBeginCapture(first, FAKE_CAPTURE_GLOBAL));
    GOOD(run(copy, 1, first, (struct fake_test){.at = at + 8, .other = at, .count = 1}));
    GOOD(cu.cuEventRecord(event, first));
    GOOD(cu.cuStreamWaitEvent(second, event, 0));
    GOOD(run(copy, 1, second, (struct fake_test){.at = at + 16, .other = at + 8, .count = 1}));
    GOOD(cu.cuEventRecord(joined, second));
    GOOD(cu.cuStreamWaitEvent(first, joined, 0));
    GOOD(cu.cuStreamEndCapture(first, &graph));
    GOOD(cu.cuGraphInstantiate(&exec, graph, 0));
    GOOD(cu.cuGraphDestroy(graph));
    for (uint64_t i = 1; i < 20; i++) {
        GOOD(cu.cuMemcpyHtoD(at, &i, 8));
        GOOD(cu.cuGraphLaunch(exec, first));
        GOOD(cu.cuStreamSynchronize(first));
        ck_assert_uint_eq(word(at + 16), i);
    }
    GOOD(cu.cuGraphExecDestroy(exec));
}
END_TEST

START_TEST(captures_forbid)
{
    handle queue, other, event, graph;
    address at;
    int capturing;

    begin(1);
    queue = stream();
    other = stream();
    GOOD(cu.cuEventCreate(&event, 0));
    GOOD(cu.cuStreamBeginCapture(queue, FAKE_CAPTURE_GLOBAL));
    switch (_i) {
    case 0:
        EXPECT(STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamSynchronize(queue));
        break;
    case 1:
        EXPECT(STREAM_CAPTURE_UNSUPPORTED, cu.cuMemAlloc(&at, 8));
        break;
    case 2:
        EXPECT(STREAM_CAPTURE_UNSUPPORTED, cu.cuCtxSynchronize());
        break;
    default:
        GOOD(cu.cuEventRecord(event, queue));
        GOOD(cu.cuStreamWaitEvent(other, event, 0));
        EXPECT(STREAM_CAPTURE_UNMATCHED, cu.cuStreamEndCapture(other, &graph));
        EXPECT(STREAM_CAPTURE_UNJOINED, cu.cuStreamEndCapture(queue, &graph));
        return;
    }
    GOOD(cu.cuStreamIsCapturing(queue, &capturing));
    ck_assert_int_eq(capturing, 2);
    EXPECT(STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(queue, &graph));
}
END_TEST

/* ---- other processes ---- */

struct parcel {
    struct fake_ipc_handle memory, event;
    address at;
};

/* Starts a process of its own driver, which sends a parcel; the other end of its standard input ends it. */
static pid_t exporter(struct parcel *parcel, int *end)
{
    int up[2], down[2];
    pid_t child;

    ck_assert_int_eq(pipe(up) | pipe(down), 0);
    child = fork();
    if (child == 0) {
        handle event, queue;
        char none;

        close(down[1]);
        begin(1);
        queue = stream();
        parcel->at = memory(4096) + 128;
        GOOD(cu.cuIpcGetMemHandle(&parcel->memory, parcel->at));
        EXPECT(INVALID_CONTEXT, cu.cuIpcOpenMemHandle(&parcel->at, parcel->memory, 1));
        EXPECT(INVALID_VALUE, cu.cuEventCreate(&event, FAKE_EVENT_INTERPROCESS));
        GOOD(cu.cuEventCreate(&event, FAKE_EVENT_DISABLE_TIMING));
        EXPECT(INVALID_HANDLE, cu.cuIpcGetEventHandle(&parcel->event, event));
        GOOD(cu.cuEventCreate(&event, FAKE_EVENT_DISABLE_TIMING | FAKE_EVENT_INTERPROCESS));
        GOOD(cu.cuIpcGetEventHandle(&parcel->event, event));
        GOOD(run(function("fake_test_fill"), 1, queue,
                 (struct fake_test){.at = parcel->at - 128, .value = 40, .count = 512}));
        GOOD(cu.cuEventRecord(event, queue));
        _exit(write(up[1], parcel, sizeof *parcel) == sizeof *parcel && read(down[0], &none, 1) == 0 ? 0 : 1);
    }
    close(up[1]);
    close(down[0]);
    ck_assert_int_eq(read(up[0], parcel, sizeof *parcel), sizeof *parcel);
    close(up[0]);
    *end = down[1];
    return child;
}

START_TEST(handles_of_other_processes)
{
    struct parcel parcel;
    handle event;
    address at, again;
    int end, status;
    pid_t child;

    if (_i)
        setenv("FAKECUDA_OLD_IPC", "1", 1);
    child = exporter(&parcel, &end);
    begin(2);
    GOOD(cu.cuCtxSetCurrent(context[1]));
    EXPECT(PEER_ACCESS_UNSUPPORTED, cu.cuIpcOpenMemHandle(&at, parcel.memory, 0));
    GOOD(cu.cuIpcOpenMemHandle(&at, parcel.memory, FAKE_IPC_LAZY_ENABLE_PEER_ACCESS));
    ck_assert_uint_ne(at, parcel.at - 128);
    GOOD(cu.cuIpcOpenEventHandle(&event, parcel.event));
    GOOD(cu.cuEventSynchronize(event));
    ck_assert_uint_eq(word(at + 8), 41); /* the base's handle: the offset of 128 is lost */
    EXPECT(_i ? ALREADY_MAPPED : OK, cu.cuIpcOpenMemHandle(&again, parcel.memory, FAKE_IPC_LAZY_ENABLE_PEER_ACCESS));
    EXPECT(INVALID_VALUE, cu.cuMemFree(at));
    GOOD(cu.cuIpcCloseMemHandle(at));
    EXPECT(_i ? INVALID_VALUE : OK, cu.cuIpcCloseMemHandle(at));
    EXPECT(INVALID_VALUE, cu.cuIpcCloseMemHandle(at));
    close(end);
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    EXPECT(INVALID_VALUE, cu.cuIpcOpenMemHandle(&at, parcel.memory, 1)); /* its process is gone */
}
END_TEST

START_TEST(not_all_memory_is_exportable)
{
    struct fake_ipc_handle unused;
    address pool, managed;

    begin(1);
    GOOD(cu.cuMemAllocAsync(&pool, 64, NULL));
    GOOD(cu.cuMemAllocManaged(&managed, 64, 1));
    *(uint64_t *)(uintptr_t)managed = 9; /* the host may */
    ck_assert_uint_eq(word(managed), 9);
    EXPECT(INVALID_VALUE, cu.cuIpcGetMemHandle(&unused, pool));
    EXPECT(INVALID_VALUE, cu.cuIpcGetMemHandle(&unused, managed));
}
END_TEST

/* ---- entry points and injected faults ---- */

START_TEST(entry_points_by_version)
{
    void *wide = NULL, *gone = NULL;
    int status;

    setenv("FAKECUDA_VERSION", "12020", 1);
    setenv("FAKECUDA_REMOVE", "cuMemCreate", 1);
    begin(1);
    GOOD(cu.cuGetProcAddress("cuMemAlloc", &wide, 3020, 0, &status));
    ck_assert_ptr_eq(wide, *(void **)&cu.cuMemAlloc);
    GOOD(cu.cuGetProcAddress("cuFuncLoad", &gone, 12000, 0, &status)); /* of 12.4 */
    ck_assert_ptr_null(gone);
    EXPECT(INVALID_VALUE, cu.cuGetProcAddress("cuFuncLoad", &gone, 12040, 0, &status));
    GOOD(cu.cuGetProcAddress("cuMemCreate", &gone, 12000, 0, &status));
    ck_assert_ptr_null(gone);
    ck_assert_int_eq(status, 1);
}
END_TEST

START_TEST(calls_fail_as_told)
{
    address at;

    setenv("FAKECUDA_FAIL", "cuMemAlloc:2=2,kernel:1=719", 1);
    begin(1);
    at = memory(64);
    EXPECT(OUT_OF_MEMORY, cu.cuMemAlloc(&at, 64));
    at = memory(64);
    GOOD(run(function("fake_test_fill"), 1, NULL, (struct fake_test){.at = at, .count = 1}));
    EXPECT(LAUNCH_FAILED, cu.cuCtxSynchronize());
    EXPECT(LAUNCH_FAILED, cu.cuCtxSynchronize());
}
END_TEST

START_TEST(processes_die_as_told)
{
    int status;
    const pid_t child = fork();

    if (child == 0) {
        setenv("FAKECUDA_FAIL", "cuMemAlloc:2=die", 1);
        begin(1);
        memory(64);
        memory(64);
        _exit(0);
    }
    waitpid(child, &status, 0);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
END_TEST

void rules_of_sharing(TCase *tests)
{
    tcase_add_test(tests, graphs_replay);
    tcase_add_loop_test(tests, captures_forbid, 0, 4);
    tcase_add_loop_test(tests, handles_of_other_processes, 0, 2);
    tcase_add_test(tests, not_all_memory_is_exportable);
    tcase_add_test(tests, entry_points_by_version);
    tcase_add_test(tests, calls_fail_as_told);
    tcase_add_test(tests, processes_die_as_told);
}
