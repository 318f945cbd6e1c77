// SPDX-License-Identifier: BSD-3-Clause
/* The device executor: four ranks of this process on four devices, or sharing those there are, links by hand in their memory. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cases.h"
#include "cuda_help.h"
#include "dtype/dtype.h"
#include "exec/cuda.h"
#include "harness.h"

enum { RANKS = 4, LANES = 4, SLOTS = 2, FRAME = 32768, BUFFER = 1 << 20, LINE = 64 };

#define GOOD(call)                                                          \
    do {                                                                    \
        const enum hoop_status good = (call);                               \
        ck_assert_msg(good == HOOP_OK, "%s: %s", #call, hoop_error_text()); \
    } while (0)

struct rank {
    struct cuda_help device;
    struct hoop_cuda_exec *exec;
    hoop_cu_address areas, in, out, tmp;
    struct hoop_plan *plan;
    struct hoop_binding binding;
};

static struct rank rank[RANKS];
static int devices; /* rank i is on device i modulo that */

/* Where `to` has the landing area and the two counters for what it shares with `from` in a lane. */
static uint64_t area(int to, int from, int lane)
{
    const uint64_t bytes = hoop_device_landing(FRAME, SLOTS) + 2 * LINE;

    return rank[to].areas + ((uint64_t)from * LANES + (uint64_t)lane) * bytes + 2 * LINE;
}

static void link_all(bool direct)
{
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b < RANKS; b++)
            for (int l = 0; l < LANES && a != b; l++) {
                const struct hoop_device_link link = {.out_frames = area(b, a, l),
                                                      .out_head = area(b, a, l) - LINE,
                                                      .out_taken = area(a, b, l) - 2 * LINE,
                                                      .in_frames = area(a, b, l),
                                                      .in_head = area(a, b, l) - LINE,
                                                      .in_taken = area(b, a, l) - 2 * LINE,
                                                      .frame = FRAME,
                                                      .slots = SLOTS,
                                                      .direct = direct};
                GOOD(hoop_cuda_exec_connect(rank[a].exec, b, l, &link));
                ck_assert(hoop_cuda_exec_connected(rank[a].exec, b, l));
            }
}

static void zero(struct rank *r, hoop_cu_address address, size_t bytes)
{
    GOOD(hoop_cuda_fill(r->device.cuda, address, 0, bytes, r->device.stream[0]));
    cuda_synchronize(&r->device, r->device.stream[0]);
}

static void open_all(bool direct)
{
    const size_t bytes = RANKS * LANES * (hoop_device_landing(FRAME, SLOTS) + 2 * LINE);

    for (int i = 0; i < RANKS; i++) {
        cuda_open(&rank[i].device, i % devices, 2);
        rank[i].areas = hoop_cuda_address(cuda_device(&rank[i].device, bytes));
        rank[i].in = hoop_cuda_address(cuda_device(&rank[i].device, BUFFER));
        rank[i].out = hoop_cuda_address(cuda_device(&rank[i].device, BUFFER));
        zero(&rank[i], rank[i].areas, bytes);
        GOOD(hoop_cuda_exec_new(&rank[i].exec, rank[i].device.cuda, RANKS, LANES));
        ck_assert_int_eq(hoop_cuda_exec_lanes(rank[i].exec), LANES);
        GOOD(hoop_cuda_exec_scratch(rank[i].exec, 0, BUFFER, &rank[i].tmp));
    }
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b < RANKS; b++)
            if (a % devices != b % devices)
                GOOD(hoop_cuda_reach(rank[a].device.cuda, rank[b].device.cuda));
    link_all(direct);
}

static void close_all(void)
{
    for (int i = 0; i < RANKS; i++) {
        hoop_cuda_exec_free(rank[i].exec);
        hoop_plan_free(rank[i].plan);
        cuda_close(&rank[i].device);
    }
}

static void plan_all(const struct hoop_case *c, const char *algo)
{
    for (int i = 0; i < RANKS; i++) {
        const struct hoop_problem problem = {
            .coll = c->coll, .ranks = RANKS, .rank = i, .root = c->root, .channels = 1};
        GOOD(hoop_plan_build(&rank[i].plan, hoop_algo_find(algo), &problem, true));
        GOOD(hoop_bind(&rank[i].binding, rank[i].plan, c->count, hoop_type_size(c->type), FRAME, 1));
        ck_assert_uint_le(rank[i].binding.tmp_bytes, BUFFER);
        /* now, since what takes device memory may wait for another rank's kernel */
        GOOD(hoop_cuda_exec_upload(rank[i].exec, rank[i].plan));
    }
}

static void give(const struct hoop_case *c, int i)
{
    static _Alignas(64) unsigned char data[BUFFER];

    case_fill(c, i, data);
    cuda_copy(&rank[i].device, (void *)(uintptr_t)rank[i].in, data, case_in_bytes(c), rank[i].device.stream[0]);
    cuda_synchronize(&rank[i].device, rank[i].device.stream[0]);
    zero(&rank[i], rank[i].out, case_out_bytes(c));
}

static void launch_one(const struct hoop_case *c, int i, uint64_t tag, int stream)
{
    const struct hoop_cuda_call call = {.plan = rank[i].plan,
                                        .binding = &rank[i].binding,
                                        .type = c->type,
                                        .op = c->op,
                                        .in = rank[i].in,
                                        .out = rank[i].out,
                                        .tmp = rank[i].tmp,
                                        .tag = tag,
                                        .number = 5};

    GOOD(hoop_cuda_exec_launch(rank[i].exec, &call, rank[i].device.stream[stream]));
}

static void check_all(const struct hoop_case *c, int stream)
{
    static _Alignas(64) unsigned char data[BUFFER];
    char text[512];
    int peer;

    for (int i = 0; i < RANKS; i++) {
        GOOD(hoop_cuda_stream_wait(rank[i].device.cuda, rank[i].device.stream[stream], hoop_deadline(60)));
        GOOD(hoop_program_verdict(hoop_cuda_exec_report(rank[i].exec), &peer));
        cuda_copy(&rank[i].device, data, (void *)(uintptr_t)rank[i].out, case_out_bytes(c), rank[i].device.stream[1]);
        cuda_synchronize(&rank[i].device, rank[i].device.stream[1]);
        ck_assert_msg(case_check(c, i, data, text, sizeof text), "%s", text);
    }
}

static const struct hoop_case sum = {
    .coll = HOOP_ALL_REDUCE, .type = HOOP_F32, .op = HOOP_SUM, .ranks = RANKS, .count = 100000};

/* Calls of several sizes one after the other, on two streams by turns: small frames, slots, lent pieces. */
START_TEST(calls)
{
    static const size_t counts[] = {1, 900, 5000, 100000};

    struct hoop_plan *old[8][RANKS]; /* plans must outlive the executors */

    open_all(_i);
    for (int turn = 0; turn < 8; turn++) {
        struct hoop_case c = sum;
        c.count = counts[turn % 4];
        c.turn = (unsigned)turn;
        for (int i = 0; i < RANKS; i++)
            old[turn][i] = rank[i].plan;
        plan_all(&c, turn < 4 ? "ring" : "tree");
        for (int i = 0; i < RANKS; i++)
            give(&c, i);
        for (int i = 0; i < RANKS; i++)
            launch_one(&c, i, 9 + (uint64_t)turn, turn % 2);
        check_all(&c, turn % 2);
    }
    close_all();
    for (int i = 0; i < 8 * RANKS; i++)
        hoop_plan_free(old[i / RANKS][i % RANKS]);
}
END_TEST

START_TEST(graphs)
{
    hoop_cu_graph_exec recorded[RANKS];
    struct hoop_case c = sum;

    open_all(true);
    c.count = 3000;
    plan_all(&c, "ring");
    for (int i = 0; i < RANKS; i++) {
        cuda_capture(&rank[i].device, rank[i].device.stream[0]);
        launch_one(&c, i, 9, 0);
        recorded[i] = cuda_captured(&rank[i].device, rank[i].device.stream[0]);
    }
    for (int turn = 0; turn < 100; turn++) {
        c.turn = (unsigned)turn;
        for (int i = 0; i < RANKS; i++)
            give(&c, i);
        for (int i = 0; i < RANKS; i++)
            if (turn % 10 == 3)
                launch_one(&c, i, 11, 0);
            else
                cuda_replay(&rank[i].device, recorded[i], rank[i].device.stream[0]);
        check_all(&c, 0);
    }
    for (int i = 0; i < RANKS; i++)
        cuda_forget(&rank[i].device, recorded[i]);
    close_all();
}
END_TEST

/* A rank that stays away: what is waited for, and an abort. */
START_TEST(aborts)
{
    char text[512];
    int peer, waits = 0;

    open_all(false);
    plan_all(&sum, "ring");
    for (int i = 0; i < RANKS; i++)
        give(&sum, i);
    for (int i = 0; i < RANKS - 1; i++)
        launch_one(&sum, i, 9, 0);
    for (int i = 0; i < 5000 && waits == 0; i++) {
        usleep(1000);
        waits = hoop_program_waits(hoop_cuda_exec_report(rank[0].exec), text, sizeof text);
    }
    ck_assert_int_ge(waits, 1);
    ck_assert_msg(strstr(text, "call 5") && strstr(text, "rank 3"), "%s", text);
    for (int i = 0; i < RANKS; i++)
        hoop_cuda_exec_abort(rank[i].exec);
    for (int i = 0; i < RANKS - 1; i++) {
        GOOD(hoop_cuda_stream_wait(rank[i].device.cuda, rank[i].device.stream[0], hoop_deadline(60)));
        ck_assert_int_eq(hoop_program_verdict(hoop_cuda_exec_report(rank[i].exec), &peer), HOOP_ERR_ABORTED);
    }
    close_all();
}
END_TEST

START_TEST(mismatches)
{
    int peer, found = 0;

    open_all(false);
    plan_all(&sum, "ring");
    for (int i = 0; i < RANKS; i++)
        give(&sum, i);
    for (int i = 0; i < RANKS; i++)
        launch_one(&sum, i, i == 2 ? 10 : 9, 0);
    for (int turn = 0; turn < 5000 && found == 0; turn++) {
        usleep(1000);
        for (int i = 0; i < RANKS; i++)
            found += hoop_program_verdict(hoop_cuda_exec_report(rank[i].exec), &peer) == HOOP_ERR_MISMATCH &&
                     (i == 2 || peer == 2);
    }
    ck_assert_int_ge(found, 1);
    for (int i = 0; i < RANKS; i++)
        hoop_cuda_exec_abort(rank[i].exec);
    for (int i = 0; i < RANKS; i++)
        GOOD(hoop_cuda_stream_wait(rank[i].device.cuda, rank[i].device.stream[0], hoop_deadline(60)));
    close_all();
}
END_TEST

/* A pattern written by one device, compared by another, whole and with one word changed. */
START_TEST(patterns)
{
    uint64_t *found;
    hoop_cu_address report;
    static const uint64_t wrong = 1;

    open_all(false);
    struct rank *r = &rank[0];
    GOOD(hoop_cuda_host_alloc(r->device.cuda, sizeof *found, (void **)&found, &report));
    *found = 0;
    struct hoop_device_vector pattern = {.to = r->in, .left = r->in, .count = 5000, .seed = 3, .report = report};
    GOOD(hoop_cuda_exec_vector(r->exec, HOOP_CUDA_FILL, &pattern, 0, r->device.stream[0]));
    cuda_synchronize(&r->device, r->device.stream[0]);
    GOOD(hoop_cuda_exec_vector(rank[1].exec, HOOP_CUDA_COMPARE, &pattern, 0, rank[1].device.stream[0]));
    cuda_synchronize(&rank[1].device, rank[1].device.stream[0]);
    ck_assert_uint_eq(*found, 0);
    cuda_copy(&r->device, (void *)(uintptr_t)(r->in + 8 * 77), &wrong, 8, r->device.stream[0]);
    GOOD(hoop_cuda_exec_vector(r->exec, HOOP_CUDA_COMPARE, &pattern, 0, r->device.stream[0]));
    cuda_synchronize(&r->device, r->device.stream[0]);
    ck_assert_uint_eq(*found, 78);
    GOOD(hoop_cuda_host_free(r->device.cuda, found));
    close_all();
}
END_TEST

/* A driver that does not take the device code: what it says depends on the reason. */
static const struct {
    const char *variable, *value, *words, *also;
} refusals[] = {
    {"FAKECUDA_VERSION", "11080", "the driver is of CUDA 11.8 and does not load", "update the driver to one of CUDA 1"},
    {"FAKECUDA_MACHINE", "device name=OLD capability=7.0", "OLD, has compute capability 7.0", "begins with"},
    {"FAKECUDA_MACHINE", "device name=NEW", "does not load the device code on device 0, NEW, compute capability 9.0",
     "result 209"},
};
enum { REFUSALS = sizeof refusals / sizeof *refusals };
extern const unsigned char hoop_device_image_is_code;

START_TEST(code_that_is_not_taken)
{
    struct hoop_cuda *cuda;
    struct hoop_cuda_exec *exec;

    setenv("FAKECUDA_NO_BINARY", "1", 1);
    setenv(refusals[_i].variable, refusals[_i].value, 1);
    GOOD(hoop_cuda_open(0, &cuda));
    ck_assert_int_eq(hoop_cuda_exec_new(&exec, cuda, 1, 1), HOOP_ERR_UNSUPPORTED);
    const char *text = hoop_error_text();
    if (hoop_device_image_is_code)
        ck_assert_msg(strstr(text, refusals[_i].words) && strstr(text, refusals[_i].also), "%s", text);
    else
        ck_assert_msg(strstr(text, "nvcc was not there"), "%s", text);
    hoop_cuda_close(cuda);
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    cuda_driver_or_skip(argv);
    Suite *suite = suite_create("plans on devices");
    TCase *tests = tcase_create("all");

    devices = cuda_devices(RANKS);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, calls, 0, 2);
    tcase_add_test(tests, graphs);
    tcase_add_test(tests, aborts);
    tcase_add_test(tests, mismatches);
    tcase_add_test(tests, patterns);
    if (cuda_suits("code_that_is_not_taken", 1, true))
        tcase_add_loop_test(tests, code_that_is_not_taken, 0, REFUSALS);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
